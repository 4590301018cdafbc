/* test_regex_peer.c - regular expressions compared with GNU grep: random
   patterns select the same lines of random texts. */
#include "../support/t_regex.h"

#include <unistd.h>

#define TEXTS 12
#define LINES 60
#define CASES 2400

typedef enum mode { EXTENDED, EXTENDED_CASE, FIXED, FIXED_CASE } mode;
static const char *const mode_flags[] = {"-E", "-Ei", "-F", "-Fi"};

static unsigned long long seed = 20260728;
static hfsb_buf           texts[TEXTS];
static hfsb_buf           patterns[CASES];
static mode               modes[CASES];
static unsigned           text_of[CASES];

static unsigned below(unsigned n) { return (unsigned)(t_random(&seed) % n); }
static void     put(hfsb_buf *b, const char *s) {
    T_CHECK(hfsb_buf_append(b, hfsb_cstr(s)) == HFSB_OK);
}
#define PICK(list) (list)[below((unsigned)(sizeof(list) / sizeof *(list)))]

/* ---- texts ---- */

static const char *const bits[] = {
    "a",  "a",  "b",  "b",    "c",  "A",  "B",        "1",   "2",
    " ",  "_",  "-",  ".",    "ab", "ba", "abc",      "aa",  "foo",
    "x=", "[",  "]",  "(",    ")",  "{",  "}",        "*",   "+",
    "?",  "|",  "^",  "$",    "/",  "\t", "\xc3\xa9", "\\",  "\xc3\x89",
    ",",  "a1", "Ab", "\xd0\xb6", "\xce\xa3", "\xe2\x82\xac", "{1}", ";"};

static void make_text(hfsb_buf *out, bool wild) {
    unsigned line, n;
    for (line = 0; line < LINES; line++) {
        for (n = below(4) ? below(9) : below(30); n > 0; n--)
            put(out, PICK(bits));
        /* not UTF-8; grep takes it for a letter beside borders of words */
        if (wild && below(20) == 0) put(out, below(2) ? "\xff" : "\xc3");
        put(out, "\n");
    }
}

/* ---- patterns ---- */

static const char *const atoms[] = {
    "a", "b", "c", "A", "1", "_", "-", "foo", "ab", ".", ".", "x", "=",
    "\xc3\xa9", "\xd0\xb6", "\\.", "\\*", "\\(", "\\)", "\\[", "\\{", "\\|",
    "\\^", "\\$", "\\\\", "\\+", "\\?", "\\w", "\\W", "\\s", "\\S", "[ab]",
    "[^ab]", "[a-c]", "[^a-z]", "[]a]", "[^]a]", "[a-]", "[-a]", "[[:alpha:]]",
    "[[:digit:]_]", "[^[:space:]]", "[[:upper:]]", "[[:lower:]]",
    "[[:punct:]]", "[[:alnum:]]", "[[:blank:]]", "[[:xdigit:]]", "[[=a=]]",
    "[[.-.]]", "[[.a.]-c]", "[^\xc3\xa9]", "\xe2\x82\xac", "[.]",
    "[*+]", "[^[:alnum:]]", ";", ",", "]", "}", "/"};
static const char *const repeats[] = {"*", "+", "?", "{2}", "{1,2}", "{0,1}",
                                      "{,2}", "{2,}", "{0}", "{1}", "{1,3}"};
static const char *const borders[] = {"^", "$", "\\b", "\\B", "\\<", "\\>"};

/* No "?" after another repeat: that is a lazy one here, and not for grep. No
   repeat of a border, and none within a group: grep gets some of those wrong.
   No {n} at a beginning, which grep reads in two ways. */
static void make_either(hfsb_buf *out, unsigned depth);

static void make_list(hfsb_buf *out, unsigned depth) {
    unsigned n = below(8) ? 1 + below(4) : 0, k;
    for (; n > 0; n--) {
        if (below(9) == 0 && depth == 3) {
            put(out, borders[below(6)]);
            continue;
        }
        if (depth > 0 && below(5) == 0) {
            put(out, "(");
            make_either(out, depth - 1);
            put(out, ")");
        } else {
            put(out, PICK(atoms));
        }
        if (below(3) == 0) put(out, PICK(repeats));
        for (k = below(12); k > 10; k--)
            put(out, below(2) ? "*" : "{2}");
    }
}

static void make_either(hfsb_buf *out, unsigned depth) {
    make_list(out, depth);
    while (below(4) == 0) {
        put(out, "|");
        make_list(out, depth);
    }
}

/* On texts that are all UTF-8. */
static bool needs_utf8(hfsb_str pattern) {
    size_t i;
    for (i = 2; i < 6; i++)
        if (hfsb_str_find(pattern, hfsb_cstr(borders[i])) != HFSB_NPOS)
            return true;
    return false;
}

/* Any pattern: most are odd, some are refused. */
static const char *const odd[] = {
    "a",  "b", "(", ")",  "|",  "*",   "+",      "{",   "}",       "{1",
    "a{1}", "b{2,1}", "{,", "a{,}", "[",  "]",   "[^", "[a",  "^",  "$",
    "-",  "1", ",", ".",  "[:", "[[:", ":]",     ":]]", "[[:alpha:]", "\\(",
    "\\)", "\\{", "\\w", "[]", "[z-a]", "[a-", "()", "(|", "|)", "ab", "a*"};

static void make_odd(hfsb_buf *out) {
    unsigned n = 1 + below(6);
    for (; n > 0; n--) {
        const char *part = PICK(odd);
        char        last = out->len ? out->ptr[out->len - 1] : '\0';
        /* an escape in brackets is one here, and not for grep */
        if (part[0] == '\\' && strchr(out->ptr, '[')) continue;
        if (last && strchr("^$", last) && strchr("*+{", part[0])) continue;
        put(out, part);
    }
}

static void make_case(unsigned i) {
    hfsb_buf *p = &patterns[i];
    unsigned  n;
    modes[i] = (mode)(i % 8 == 0 ? FIXED + below(2) : below(4) == 0);
    if (modes[i] >= FIXED)
        for (n = below(4); n > 0; n--) put(p, PICK(bits));
    else if (i % 4 == 1)
        make_odd(p);
    else
        make_either(p, 3);
    text_of[i] = needs_utf8(hfsb_buf_str(p)) ? i % 4 * 3 + 1 : i % TEXTS;
}

/* ---- grep ---- */

static void put_quoted(hfsb_buf *out, hfsb_str s) {
    size_t i;
    put(out, "'");
    for (i = 0; i < s.len; i++)
        if (s.ptr[i] == '\'')
            put(out, "'\\''");
        else
            T_CHECK(hfsb_buf_append_byte(out, s.ptr[i]) == HFSB_OK);
    put(out, "'");
}

static void write_file(const char *path, hfsb_str s) {
    FILE *f = fopen(path, "wb");
    T_CHECK(f && fwrite(s.ptr, 1, s.len, f) == s.len);
    if (f) fclose(f);
}

/* One script for all cases: each case prints its lines and "=STATUS". */
static void write_script(const char *dir) {
    hfsb_buf script = HFSB_INIT, path = HFSB_INIT;
    unsigned i;
    for (i = 0; i < TEXTS; i++) {
        hfsb_buf_truncate(&path, 0);
        T_CHECK(hfsb_buf_printf(&path, "%s/t%u", dir, i) == HFSB_OK);
        write_file(path.ptr, hfsb_buf_str(&texts[i]));
    }
    put(&script, "LC_ALL=C.UTF-8; export LC_ALL\ncd '");
    put(&script, dir);
    put(&script, "' || exit 1\nexec 2>/dev/null\n");
    for (i = 0; i < CASES; i++) {
        put(&script, "grep -an ");
        put(&script, mode_flags[modes[i]]);
        put(&script, " -e ");
        put_quoted(&script, hfsb_buf_str(&patterns[i]));
        T_CHECK(hfsb_buf_printf(&script, " t%u; echo \"=$?\"\n", text_of[i]) ==
                HFSB_OK);
    }
    hfsb_buf_truncate(&path, 0);
    T_CHECK(hfsb_buf_printf(&path, "%s/script", dir) == HFSB_OK);
    write_file(path.ptr, hfsb_buf_str(&script));
    hfsb_buf_free(&script);
    hfsb_buf_free(&path);
}

/* Reads grep's output for one case: line numbers, 0 at the end. */
static int read_answer(FILE *f, bool lines[LINES + 1]) {
    static char line[4096];
    memset(lines, 0, (LINES + 1) * sizeof *lines);
    while (fgets(line, sizeof line, f)) {
        long n;
        if (line[0] == '=') return atoi(line + 1);
        n = strtol(line, NULL, 10);
        if (n < 1 || n > LINES) return -1;
        lines[n] = true;
    }
    return -1;
}

/* ---- hfsb ---- */

/* The number of lines before `at`. */
static size_t line_number(hfsb_str text, size_t at) {
    return hfsb_str_count_byte(hfsb_str_slice(text, 0, at), '\n') + 1;
}

static void run_ours(hfsb_regex *re, hfsb_str text, bool lines[LINES + 1]) {
    size_t from = 0, begin, end;
    memset(lines, 0, (LINES + 1) * sizeof *lines);
    while (hfsb_regex_line(re, text, from, &begin, &end)) {
        lines[line_number(text, begin)] = true;
        from = end + 1;
    }
}

/* find() agrees on each line. */
static bool find_agrees(hfsb_regex *re, hfsb_str text,
                        const bool lines[LINES + 1]) {
    size_t   n = 1, begin, end;
    hfsb_str line;
    for (; text.len > 0; n++) {
        size_t feed = hfsb_str_find_byte(text, '\n');
        line = hfsb_str_slice(text, 0, feed);
        if (hfsb_regex_find(re, line, 0, &begin, &end) != lines[n])
            return false;
        text = hfsb_str_slice(text, feed + 1, text.len);
    }
    return true;
}

static void compare(unsigned i, int status, const bool theirs[LINES + 1]) {
    hfsb_regex_opts opts = HFSB_INIT;
    hfsb_regex     *re;
    hfsb_err        err;
    hfsb_str        text = hfsb_buf_str(&texts[text_of[i]]);
    bool            ours[LINES + 1], ok;
    size_t          n;
    opts.literal = modes[i] >= FIXED;
    opts.ignore_case = modes[i] == EXTENDED_CASE || modes[i] == FIXED_CASE;
    if (hfsb_regex_open(hfsb_buf_str(&patterns[i]), &opts, &re, &err) !=
        HFSB_OK) {
        ok = status == 2 && err.msg[0] && err.pos <= patterns[i].len;
        if (!ok)
            printf("refused: %s '%s': %s\n", mode_flags[modes[i]],
                   patterns[i].ptr, err.msg);
        T_CHECK(ok);
        return;
    }
    run_ours(re, text, ours);
    ok = status == (memchr(ours, 1, sizeof ours) ? 0 : 1);
    for (n = 1; n <= LINES; n++) ok = ok && ours[n] == theirs[n];
    if (!ok) {
        printf("%s '%s' on t%u, status %d:", mode_flags[modes[i]],
               patterns[i].ptr, text_of[i], status);
        for (n = 1; n <= LINES; n++)
            if (ours[n] != theirs[n])
                printf(" %s%u", ours[n] ? "+" : "-", (unsigned)n);
        printf("\n");
    }
    T_CHECK(ok);
    T_CHECK(find_agrees(re, text, ours));
    hfsb_regex_close(re);
}

static bool grep_is_there(void) {
    return system("echo b | LC_ALL=C.UTF-8 grep -E '^[[:alpha:]]$' "
                  ">/dev/null 2>&1 && printf '\\303\\251\\n' | "
                  "LC_ALL=C.UTF-8 grep -Ei '^\\w\\b$' >/dev/null 2>&1 && "
                  "grep --version 2>/dev/null | grep -q GNU") == 0;
}

static void random_patterns_give_the_lines_of_gnu_grep(void) {
    char     dir[] = "/tmp/hfsb-regex-XXXXXX", command[128];
    bool     lines[LINES + 1];
    unsigned i;
    FILE    *f;
    if (!grep_is_there() || !mkdtemp(dir)) {
        t_skipped++;
        return;
    }
    for (i = 0; i < TEXTS; i++) make_text(&texts[i], i % 3 == 0);
    for (i = 0; i < CASES; i++) {
        put(&patterns[i], "");
        make_case(i);
    }
    write_script(dir);
    snprintf(command, sizeof command, "sh %s/script", dir);
    f = popen(command, "r");
    T_CHECK(f != NULL);
    for (i = 0; f && i < CASES; i++) {
        int status = read_answer(f, lines);
        compare(i, status, lines);
        if (t_quick() && i > 200) break;
    }
    if (f) pclose(f);
    snprintf(command, sizeof command, "rm -r %s", dir);
    if (!getenv("HFSB_TEST_KEEP")) T_CHECK(system(command) == 0);
    for (i = 0; i < TEXTS; i++) hfsb_buf_free(&texts[i]);
    for (i = 0; i < CASES; i++) hfsb_buf_free(&patterns[i]);
}

int main(void) {
    T_RUN(random_patterns_give_the_lines_of_gnu_grep);
    return T_END();
}
