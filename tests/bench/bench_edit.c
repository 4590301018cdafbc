/* bench_edit.c - an edit of a 10 MB file, exact and by each rung, as multiples
   of the time that memcpy of the same bytes takes in the same run. */
#define _GNU_SOURCE /* memmem, clock_gettime */
#define HFSB_IMPLEMENTATION
#include "../../hfsb.h"

#include "bench.h"

#define FILE_SIZE ((size_t)bench_part(10 * 1000 * 1000, 10))
#define ROUNDS    bench_rounds(15)

/* A source file of functions that are all alike but for a number. */
static void make_file(hfsb_buf *out) {
    unsigned i;
    for (i = 0; out->len < FILE_SIZE; i++)
        if (hfsb_buf_printf(out,
                            "def function_%u(self, value, other=None):\n"
                            "    \"\"\"Adds what is known about item %u.\"\"\"\n"
                            "    if value > %u and other is not None:\n"
                            "        self.items.append(value * %u)\n"
                            "        return self.total + other\n"
                            "    return None\n\n",
                            i, i, i, i) != HFSB_OK)
            abort();
}

/* The same text with each newline written as CRLF. */
static void make_crlf(hfsb_str text, hfsb_buf *out) {
    hfsb_str line;
    while (hfsb_text_line(&text, &line, NULL))
        if (hfsb_buf_append(out, line) != HFSB_OK ||
            hfsb_buf_append(out, HFSB_LIT("\r\n")) != HFSB_OK)
            abort();
}

static double time_memcpy(hfsb_str text, char *to) {
    double best = 1e9;
    int    i;
    for (i = 0; i < ROUNDS; i++) {
        double start = bench_now(), took;
        memcpy(to, text.ptr, text.len);
        took = bench_now() - start;
        if (took < best) best = took;
    }
    return best;
}

static double time_memmem(hfsb_str text, hfsb_str needle) {
    double      best = 1e9;
    const void *volatile found;
    int i;
    for (i = 0; i < ROUNDS; i++) {
        double start = bench_now(), took;
        found = memmem(text.ptr, text.len, needle.ptr, needle.len);
        took = bench_now() - start;
        if (took < best) best = took;
    }
    (void)found;
    return best;
}

/* One edit, from the call to the new content and its diff. */
static void measure(const char *name, hfsb_str text, const char *old_str,
                    const char *new_str, hfsb_status expected, double base,
                    hfsb_buf *out) {
    hfsb_edit edit = HFSB_INIT;
    double    best = 1e9;
    char      note[256] = "";
    int       i;
    edit.old_str = hfsb_cstr(old_str);
    edit.new_str = hfsb_cstr(new_str);
    for (i = 0; i < ROUNDS; i++) {
        hfsb_edit_result result = HFSB_INIT;
        hfsb_err         err;
        double           start, took;
        hfsb_buf_truncate(out, 0);
        start = bench_now();
        if (hfsb_edit_apply(text, &edit, 1, NULL, out, &result, &err) !=
            expected) {
            printf("  %-34s did not do what it should: %s\n", name, err.msg);
            exit(1);
        }
        took = bench_now() - start;
        if (took < best) best = took;
        memcpy(note, result.note, sizeof note);
        hfsb_edit_result_free(&result);
    }
    printf("  %-34s %6.2f x memcpy  (%.2f ms) %s\n", name, best / base,
           best * 1e3, note);
}


/* text with each "%s" replaced by `at` */
static void fill(char *out, size_t size, const char *text, const char *at) {
    size_t n = 0;
    for (; *text && n + 32 < size; text++)
        if (text[0] == '%' && text[1] == 's') {
            n += (size_t)snprintf(out + n, size - n, "%s", at);
            text++;
        } else {
            out[n++] = *text;
        }
    out[n] = '\0';
}

int main(void) {
    hfsb_buf file = HFSB_INIT, crlf = HFSB_INIT, out = HFSB_INIT;
    hfsb_buf tail = HFSB_INIT;
    hfsb_str text;
    char    *to = (char *)malloc(2 * FILE_SIZE);
    double   base;
    char     at[16], old_str[512], new_str[512];
    unsigned number;
    make_file(&file);
    make_crlf(hfsb_buf_str(&file), &crlf);
    text = hfsb_buf_str(&file);
    if (!to || hfsb_buf_reserve(&out, 2 * FILE_SIZE) != HFSB_OK) abort();
    memset(to, 1, 2 * FILE_SIZE);
    memset(out.ptr, 1, 2 * FILE_SIZE);
    base = time_memcpy(text, to);
    number = (unsigned)(text.len / 230 * 2 / 3);
    snprintf(at, sizeof at, "%u", number);
    printf("  a file of %.1f MB; memcpy %.2f ms (%.1f GB/s)\n",
           (double)text.len / 1e6, base * 1e3, (double)text.len / base / 1e9);
    snprintf(old_str, sizeof old_str, "self.items.append(value * %s)", at);
    printf("  %-34s %6.2f x memcpy\n", "memmem of the old text alone",
           time_memmem(text, hfsb_cstr(old_str)) / base);

#define CASE(name, content, old_format, new_format, expected)               \
    (fill(old_str, sizeof old_str, old_format, at),                          \
     fill(new_str, sizeof new_str, new_format, at),                          \
     measure(name, content, old_str, new_str, expected, base, &out))

    CASE("1 exact", text, "self.items.append(value * %s)",
         "self.items.append(value + %s)", HFSB_OK);
    CASE("1 exact, CRLF file", hfsb_buf_str(&crlf),
         "    if value > %s and other is not None:\n        self.items",
         "    if value >= %s and other is not None:\n        self.items",
         HFSB_OK);
    if (hfsb_buf_append(&tail, text) != HFSB_OK ||
        hfsb_buf_printf(&tail, "        return self.last + %s\n    return None",
                        at) != HFSB_OK)
        abort();
    CASE("2 missing last newline", hfsb_buf_str(&tail),
         "        return self.last + %s\n    return None\n",
         "        return self.last - %s\n    return None\n", HFSB_OK);
    CASE("3 line numbers", text,
         "  7\t    if value > %s and other is not None:\n",
         "  7\t    if value >= %s and other is not None:\n", HFSB_OK);
    CASE("4 trailing blanks", text,
         "    if value > %s and other is not None:  \n        self.items",
         "    if value >= %s and other is not None:\n        self.items",
         HFSB_OK);
    CASE("5 look-alikes", text,
         "    \xE2\x80\x9C\"\"Adds what is known about item %s.\"\"\"",
         "    \"\"\"Adds all that is known about item %s.\"\"\"", HFSB_OK);
    CASE("6 runs of blanks", text, "if  value > %s  and other is  not None:",
         "if value >= %s and other is not None:", HFSB_OK);
    CASE("7 indentation", text,
         "\tif value > %s and other is not None:\n",
         "\tif value >= %s and other is not None:\n", HFSB_OK);
    CASE("8 blank lines at the edges", text,
         "\n\n\tif value > %s and other is not None:\n\n",
         "\n\n\tif value >= %s and other is not None:\n\n", HFSB_OK);
    CASE("9 tokens of whole lines", text,
         "\tif  value > %s  and other is not None:\n",
         "\tif value >= %s and other is not None:\n", HFSB_OK);
    CASE("refusal with its hint", text, "if value == %s and other is None:",
         "if value > %s:", HFSB_NOT_FOUND);
    CASE("ambiguous", text, "return self.total + other\n    return None",
         "return %s", HFSB_AMBIGUOUS);

    free(to);
    hfsb_buf_free(&file);
    hfsb_buf_free(&crlf);
    hfsb_buf_free(&tail);
    hfsb_buf_free(&out);
    return 0;
}
