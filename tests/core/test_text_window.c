/* test_text_window.c - truncation, of whole texts and in pieces. */
#include "../support/t.h"

static void check_same(hfsb_str got, hfsb_str want) {
    t_str(__FILE__, __LINE__, got.ptr, got.len, want.ptr, want.len);
}

/* ---- truncation ---- */

static void check_truncate(hfsb_str text, size_t chars, size_t head,
                           hfsb_str spill, hfsb_str want) {
    hfsb_text_limit limit;
    hfsb_buf        out = HFSB_INIT;
    hfsb_err        err;
    bool            cut = false;
    limit.chars = chars;
    limit.head = head;
    T_CHECK(hfsb_text_truncate(text, &limit, spill, &out, &cut, &err) ==
            HFSB_OK);
    T_CHECK(err.code == HFSB_OK && err.msg[0] == '\0');
    T_CHECK(cut == !hfsb_str_equal(text, want));
    check_same(hfsb_buf_str(&out), want);
    hfsb_buf_free(&out);
}

static void long_texts_are_cut_in_the_middle(void) {
    check_truncate(HFSB_LIT("0123456789"), 10, 0, HFSB_LIT("/x"),
                   HFSB_LIT("0123456789"));
    check_truncate(HFSB_LIT("0123456789A"), 10, 0, HFSB_LIT(""),
                   HFSB_LIT("01\n\n... (1 of 11 chars omitted, showing first "
                            "2 + last 8) ...\n3456789A"));
    check_truncate(HFSB_LIT("0123456789A"), 10, 10, HFSB_LIT("/x y"),
                   HFSB_LIT("0123456789\n\n... (1 of 11 chars omitted, "
                            "showing first 10 + last 0) ...\nFull output "
                            "saved to /x y \xE2\x80\x94 use the read tool "
                            "with offset/limit to inspect specific "
                            "sections.\n"));
    check_truncate(HFSB_LIT("\xC3\xA9\xF0\x9F\x98\x80" "b\xFF"), 3, 1,
                   HFSB_LIT(""),
                   HFSB_LIT("\xC3\xA9\n\n... (1 of 4 chars omitted, showing "
                            "first 1 + last 2) ...\nb\xFF"));
    check_truncate(HFSB_LIT("abc"), 1, 0, HFSB_LIT(""),
                   HFSB_LIT("\n\n... (2 of 3 chars omitted, showing first 0 "
                            "+ last 1) ...\nc"));
    check_truncate(hfsb_str_make(NULL, 0), 1, 0, HFSB_LIT("/x"),
                   HFSB_LIT(""));
}

static void the_default_limit_is_25000(void) {
    hfsb_buf text = HFSB_INIT, out = HFSB_INIT;
    bool     cut = true;
    hfsb_str marker = HFSB_LIT("\n\n... (1,234,567 of 1,259,567 chars "
                               "omitted, showing first 6,250 + last 18,750) "
                               "...\n");
    t_repeat(&text, "\xC3\xA9", 25000);
    T_CHECK(hfsb_text_truncate(hfsb_buf_str(&text), NULL, HFSB_LIT("/x"),
                               &out, &cut, NULL) == HFSB_OK);
    T_CHECK(!cut && hfsb_str_equal(hfsb_buf_str(&text), hfsb_buf_str(&out)));
    t_repeat(&text, "\xC3\xA9", 1234567);
    hfsb_buf_truncate(&out, 0);
    T_CHECK(hfsb_text_truncate(hfsb_buf_str(&text), NULL, HFSB_LIT(""), &out,
                               &cut, NULL) == HFSB_OK);
    T_CHECK(cut && out.len == 50000 + marker.len);
    check_same(hfsb_str_slice(hfsb_buf_str(&out), 12500, 12500 + marker.len),
               marker);
    hfsb_buf_free(&text);
    hfsb_buf_free(&out);
}

static void truncate_refuses_a_head_above_the_limit(void) {
    hfsb_text_limit limit = HFSB_INIT;
    hfsb_buf        out = HFSB_INIT;
    hfsb_err        err;
    limit.chars = 10;
    limit.head = 11;
    T_CHECK(hfsb_text_truncate(HFSB_LIT("x"), &limit, HFSB_LIT(""), &out,
                               NULL, &err) == HFSB_ARG);
    T_CHECK(err.code == HFSB_ARG && err.pos == 0 && out.len == 0);
    T_STR(hfsb_cstr(err.msg),
          "The head to keep is 11 characters but the whole limit only 10: "
          "make head at most chars.");
    T_CHECK(hfsb_text_window_open(&limit, NULL) == NULL);
    limit.chars = 0;
    limit.head = 25001;
    T_CHECK(hfsb_text_truncate(HFSB_LIT("x"), &limit, HFSB_LIT(""), &out,
                               NULL, NULL) == HFSB_ARG);
    out.max = 60;
    limit.chars = 5;
    limit.head = 0;
    T_CHECK(hfsb_buf_append(&out, HFSB_LIT("was")) == HFSB_OK);
    T_CHECK(hfsb_text_truncate(HFSB_LIT("0123456789"), &limit, HFSB_LIT(""),
                               &out, NULL, &err) == HFSB_LIMIT);
    T_CHECK(err.code == HFSB_LIMIT);
    T_STR(hfsb_cstr(err.msg), "Truncated text: size limit exceeded.");
    T_STR(out, "was");
    hfsb_buf_free(&out);
}

/* ---- the window ---- */

/* After each piece, the window shows the same as truncate on the text so far. */
static void window_step(hfsb_text_window *w, hfsb_str seen, size_t from,
                        const hfsb_text_limit *limit, hfsb_str spill,
                        bool look) {
    hfsb_str piece = t_exact(seen.ptr + from, seen.len - from);
    hfsb_buf got = HFSB_INIT, want = HFSB_INIT;
    bool     cut = false;
    T_CHECK(hfsb_text_window_write(w, piece) == HFSB_OK);
    t_drop(piece);
    if (!look) return;
    T_CHECK(hfsb_text_truncate(seen, limit, spill, &want, &cut, NULL) ==
            HFSB_OK);
    T_CHECK(hfsb_text_window_show(w, spill, &got) == HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&got), hfsb_buf_str(&want)));
    T_CHECK(hfsb_text_window_total(w) == hfsb_utf8_count(seen));
    T_CHECK(hfsb_text_window_truncated(w) == cut);
    hfsb_buf_free(&got);
    hfsb_buf_free(&want);
}

/* Pieces of random sizes up to max; 0: all at once. */
static void check_window(unsigned long long *seed, hfsb_str text,
                         const hfsb_text_limit *limit, hfsb_str spill,
                         size_t max, bool look) {
    hfsb_text_window *w = hfsb_text_window_open(limit, NULL);
    size_t            at = 0;
    while (at < text.len) {
        size_t n = max ? t_random(seed) % (max + 1) : text.len;
        if (n > text.len - at) n = text.len - at;
        window_step(w, hfsb_str_slice(text, 0, at + n), at, limit, spill,
                    look || at + n == text.len);
        at += n;
    }
    hfsb_text_window_close(w);
}

static void truncate_agrees_with_the_reference(void) {
    unsigned long long seed = 23;
    hfsb_buf           file = HFSB_INIT;
    hfsb_str           rest, line;
    size_t             count = 0, i;
    if (!t_data_file("vectors/truncations.jsonl", &file)) return;
    for (rest = hfsb_buf_str(&file); hfsb_text_line(&rest, &line, NULL);) {
        hfsb_json_doc   doc = HFSB_INIT;
        hfsb_text_limit limit = HFSB_INIT;
        hfsb_str        text, spill;
        T_CHECK(hfsb_json_parse(line, NULL, &doc, NULL) == HFSB_OK);
        text = hfsb_json_str(hfsb_json_get(doc.root, "text"), HFSB_LIT("?"));
        spill = hfsb_json_str(hfsb_json_get(doc.root, "spill"), HFSB_LIT(""));
        limit.chars =
            (size_t)hfsb_json_int(hfsb_json_get(doc.root, "limit"), 0);
        limit.head = (size_t)(
            (double)limit.chars *
            hfsb_json_double(hfsb_json_get(doc.root, "head_ratio"), 0));
        check_truncate(text, limit.chars, limit.head, spill,
                       hfsb_json_str(hfsb_json_get(doc.root, "result"),
                                     HFSB_LIT("?")));
        for (i = 0; i < 3; i++)
            check_window(&seed, text, &limit, spill, i * 100, false);
        count++;
        hfsb_json_free(&doc);
    }
    T_CHECK(count == 200);
    hfsb_buf_free(&file);
}

static void random_text(unsigned long long *seed, size_t chars, bool ascii,
                        hfsb_buf *out) {
    static const char *const part[] = {"a", "\n", "\xC3\xA9", "\xE2\x82\xAC",
                                       "\xF0\x9F\x98\x80"};
    size_t i;
    for (i = 0; i < chars; i++)
        T_CHECK(hfsb_buf_append(
                    out, hfsb_cstr(part[t_random(seed) % (ascii ? 2 : 5)])) ==
                HFSB_OK);
}

static void windows_show_the_same_as_truncate(void) {
    static const size_t limits[][2] = {{1, 0}, {1, 1}, {2, 1}, {3, 0},
                                       {5, 5}, {8, 0}, {9, 1}, {40, 39},
                                       {64, 0}, {300, 0}};
    unsigned long long  seed = 29;
    size_t              k, n;
    for (k = 0; k < sizeof limits / sizeof *limits; k++)
        for (n = 0; n < 60; n += limits[k][0] < 20 ? 1 : 7) {
            hfsb_text_limit limit;
            hfsb_buf        text = HFSB_INIT;
            limit.chars = limits[k][0];
            limit.head = limits[k][1];
            /* plain first, so that the ring grows when it is wrapped */
            random_text(&seed, n * limit.chars / 16, true, &text);
            random_text(&seed, n * limit.chars / 16, false, &text);
            check_window(&seed, hfsb_buf_str(&text), &limit, HFSB_LIT("/x"),
                         1, true);
            check_window(&seed, hfsb_buf_str(&text), &limit, HFSB_LIT(""), 5,
                         true);
            check_window(&seed, hfsb_buf_str(&text), &limit, HFSB_LIT("/x"),
                         200, true);
            check_window(&seed, hfsb_buf_str(&text), &limit, HFSB_LIT(""), 0,
                         true);
            hfsb_buf_free(&text);
        }
}

/* Also for bytes that are not UTF-8, and never more than four bytes per character. */
static void windows_use_bounded_memory(void) {
    static const char *const part[] = {"x", "\x80", "\xF0\x9F\x98\x80",
                                       "\x80\x80\x80\x80\x80", "\xF0\x9F",
                                       "\xC3\xA9\x80",
                                       "x\x80\x80\x80\x80\x80\x80"};
    size_t kind, i, at;
    for (kind = 0; kind < sizeof part / sizeof *part; kind++) {
        t_heap            heap = HFSB_INIT;
        hfsb_alloc        alloc;
        hfsb_text_limit   limit = HFSB_INIT;
        hfsb_text_window *w;
        hfsb_buf          text = HFSB_INIT, out = HFSB_INIT;
        alloc.fn = t_heap_fn;
        alloc.user = &heap;
        limit.chars = 1000;
        w = hfsb_text_window_open(&limit, &alloc);
        t_repeat(&text, part[kind], 400);
        for (i = 0; i < 20; i++) {
            if (i > 9) /* first only byte by byte */
                T_CHECK(hfsb_text_window_write(w, hfsb_buf_str(&text)) ==
                        HFSB_OK);
            for (at = 0; at < text.len; at++)
                T_CHECK(hfsb_text_window_write(
                            w, hfsb_str_make(text.ptr + at, 1)) == HFSB_OK);
        }
        T_CHECK(heap.live <= 4096 + 2 * 250 * 4);
        T_CHECK(hfsb_text_window_show(w, HFSB_LIT(""), &out) == HFSB_OK);
        T_CHECK(out.len <= 4100);
        hfsb_text_window_close(w);
        T_CHECK(heap.live == 0 && !heap.wrong);
        hfsb_buf_free(&text);
        hfsb_buf_free(&out);
    }
    hfsb_text_window_close(NULL);
}

static void window_without_a_limit_keeps_everything(void) {
    hfsb_text_limit   limit = HFSB_INIT;
    hfsb_text_window *w;
    hfsb_buf          out = HFSB_INIT;
    limit.chars = HFSB_NPOS;
    w = hfsb_text_window_open(&limit, NULL);
    T_CHECK(w && hfsb_text_window_write(w, HFSB_LIT("abc")) == HFSB_OK);
    T_CHECK(hfsb_text_window_write(w, HFSB_LIT("def")) == HFSB_OK);
    T_CHECK(hfsb_text_window_show(w, HFSB_LIT("/x"), &out) == HFSB_OK);
    T_STR(out, "abcdef");
    limit.head = 2;
    hfsb_text_window_close(w);
    w = hfsb_text_window_open(&limit, NULL);
    T_CHECK(w && hfsb_text_window_write(w, HFSB_LIT("abc")) == HFSB_OK);
    T_CHECK(hfsb_text_window_write(w, HFSB_LIT("def")) == HFSB_OK);
    out.max = 11;
    T_CHECK(hfsb_text_window_show(w, HFSB_LIT("/x"), &out) == HFSB_LIMIT);
    T_STR(out, "abcdef");
    hfsb_buf_truncate(&out, out.len); /* forget the failure */
    out.max = 12;
    T_CHECK(hfsb_text_window_show(w, HFSB_LIT("/x"), &out) == HFSB_OK);
    T_STR(out, "abcdefabcdef");
    hfsb_text_window_close(w);
    hfsb_buf_free(&out);
}

/* ---- no memory ---- */

static void window_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_text_limit   limit = HFSB_INIT;
    hfsb_text_window *w;
    hfsb_buf          out = HFSB_INIT, again = HFSB_INIT;
    hfsb_status       st = HFSB_OK;
    size_t            i;
    char              text[100];
    memset(text, 'x', sizeof text);
    limit.chars = 700;
    limit.head = 150;
    out.alloc = alloc;
    w = hfsb_text_window_open(&limit, &alloc);
    T_CHECK(w || heap->fail_at);
    for (i = 0; w && i < 20 && st == HFSB_OK; i++) {
        st = hfsb_text_window_write(w, hfsb_str_make(text, sizeof text));
        if (st == HFSB_OK) continue;
        T_CHECK(st == HFSB_NOMEM && heap->fail_at);
        T_CHECK(hfsb_text_window_total(w) == i * sizeof text);
        T_CHECK(hfsb_text_window_show(w, HFSB_LIT(""), &again) == HFSB_OK);
        T_CHECK(i > 7 || again.len == i * sizeof text);
        hfsb_buf_free(&again);
        st = hfsb_text_window_write(w, hfsb_str_make(text, sizeof text));
        T_CHECK(st == HFSB_OK || heap->forever);
    }
    if (w && st == HFSB_OK) {
        st = hfsb_text_window_show(w, HFSB_LIT("/x"), &out);
        T_CHECK(st == HFSB_OK || (out.len == 0 && heap->fail_at));
        hfsb_buf_truncate(&out, 0);
        T_CHECK(hfsb_text_window_total(w) == 2000);
    }
    hfsb_text_window_close(w);
    hfsb_buf_free(&out);
}

static void truncate_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_text_limit limit = HFSB_INIT;
    hfsb_buf        out = HFSB_INIT;
    hfsb_err        err;
    hfsb_status     st;
    bool            cut = false;
    limit.chars = 4;
    out.alloc = alloc;
    st = hfsb_text_truncate(HFSB_LIT("0123456789"), &limit, HFSB_LIT("/x"),
                            &out, &cut, &err);
    T_CHECK(err.code == st);
    if (st != HFSB_OK) {
        T_CHECK(st == HFSB_NOMEM && out.len == 0 && !cut && heap->fail_at);
        T_STR(hfsb_cstr(err.msg), "Truncated text: out of memory.");
    }
    hfsb_buf_free(&out);
}

static void each_allocation_fails_cleanly(void) {
    t_each_allocation_fails(window_without_memory);
    t_each_allocation_fails(truncate_without_memory);
}

int main(void) {
    T_RUN(long_texts_are_cut_in_the_middle);
    T_RUN(the_default_limit_is_25000);
    T_RUN(truncate_refuses_a_head_above_the_limit);
    T_RUN(truncate_agrees_with_the_reference);
    T_RUN(windows_show_the_same_as_truncate);
    T_RUN(windows_use_bounded_memory);
    T_RUN(window_without_a_limit_keeps_everything);
    T_RUN(each_allocation_fails_cleanly);
    return T_END();
}
