/* test_diff.c - unified diffs, and which lines two texts share. */
#include "../support/t_edit.h"
#ifdef HFSBI_SPLIT
#include "../../src/edit/edit_private.h"
#endif

/* A span that replaces old_len bytes at old_start; new_start is worked out. */
static hfsb_span span(size_t old_start, size_t old_len, size_t new_len) {
    hfsb_span s = HFSB_INIT;
    s.old_start = old_start;
    s.old_len = old_len;
    s.new_len = new_len;
    return s;
}

/* Places the spans in the new text; their lines stay unknown. */
static void place(hfsb_span *spans, size_t count) {
    size_t i, gained = 0;
    for (i = 0; i < count; i++) {
        spans[i].new_start = spans[i].old_start + gained;
        gained += spans[i].new_len - spans[i].old_len;
    }
}

static void fill_lines(hfsb_span *spans, size_t count, hfsb_str new_text) {
    size_t i;
    for (i = 0; i < count; i++)
        spans[i].first_line =
            1 + te_lines_before(new_text, spans[i].new_start);
}

/* The diff, from texts in exact-size blocks; it always applies. */
static hfsb_buf diff_of(hfsb_str old_text, hfsb_str new_text,
                        const hfsb_span *spans, size_t count,
                        const hfsb_diff_opts *opts) {
    hfsb_buf out = HFSB_INIT;
    hfsb_str o = t_exact(old_text.ptr, old_text.len);
    hfsb_str n = t_exact(new_text.ptr, new_text.len);
    bool     cut = true;
    T_CHECK(hfsb_diff_unified(o, n, spans, count, opts, &out, &cut) ==
            HFSB_OK);
    T_CHECK(!cut);
    T_CHECK(te_diff_fits(o, n, hfsb_buf_str(&out)));
    t_drop(o);
    t_drop(n);
    return out;
}

static void diff_shows_changed_lines(void) {
    static const struct {
        const char *old_text, *new_text;
        size_t      start, old_len, new_len;
        const char *hunks; /* after the head lines */
    } list[] = {
        {"", "a\n", 0, 0, 2, "@@ -0,0 +1,1 @@\n+a\n"},
        {"a\n", "", 0, 2, 0, "@@ -1,1 +0,0 @@\n-a\n"},
        {"a\n", "b\n", 0, 1, 1, "@@ -1,1 +1,1 @@\n-a\n+b\n"},
        {"a", "b", 0, 1, 1,
         "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+b\n"
         "\\ No newline at end of file\n"},
        {"a", "a\n", 1, 0, 1,
         "@@ -1,1 +1,1 @@\n-a\n\\ No newline at end of file\n+a\n"},
        {"a\n", "a", 1, 1, 0,
         "@@ -1,1 +1,1 @@\n-a\n+a\n\\ No newline at end of file\n"},
        {"a\nb", "a\nb\nc", 3, 0, 2,
         "@@ -1,2 +1,3 @@\n a\n-b\n\\ No newline at end of file\n+b\n+c\n"
         "\\ No newline at end of file\n"},
        {"a\nb", "x\nb", 0, 1, 1,
         "@@ -1,2 +1,2 @@\n-a\n+x\n b\n\\ No newline at end of file\n"},
        {"a\nb\n", "a\nb\nc\n", 4, 0, 2, "@@ -1,2 +1,3 @@\n a\n b\n+c\n"},
        {"a\nb\n", "c\na\nb\n", 0, 0, 2, "@@ -1,2 +1,3 @@\n+c\n a\n b\n"},
        {"a\r\nb\r\n", "a\r\nc\r\n", 3, 1, 1,
         "@@ -1,2 +1,2 @@\n a\r\n-b\r\n+c\r\n"},
        {"a\nb\nc\n", "ac\n", 1, 3, 0,
         "@@ -1,3 +1,1 @@\n-a\n-b\n-c\n+ac\n"},
        {"a\nb\n", "ab\n", 1, 1, 0, "@@ -1,2 +1,1 @@\n-a\n-b\n+ab\n"},
        {"1\n2\n3\n4\n5\n6\n7\n8\n9\n", "1\n2\n3\n4\nX\n6\n7\n8\n9\n", 8, 1,
         1, "@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+X\n 6\n 7\n 8\n"},
        /* lines inside the span that did not change are context */
        {"a\nb\nc\n", "x\nb\nz\n", 0, 6, 6,
         "@@ -1,3 +1,3 @@\n-a\n+x\n b\n-c\n+z\n"},
        {"a\nb\nc\n", "b\nc\na\n", 0, 6, 6,
         "@@ -1,3 +1,3 @@\n-a\n b\n c\n+a\n"},
        {"a\nb\n", "b\na\n", 0, 4, 4, "@@ -1,2 +1,2 @@\n-a\n b\n+a\n"},
        {"a\nc\n", "a\nb\nc\n", 0, 4, 6, "@@ -1,2 +1,3 @@\n a\n+b\n c\n"},
    };
    size_t i, lines;
    for (i = 0; i < TE_COUNT(list); i++)
        for (lines = 0; lines < 2; lines++) {
            hfsb_span s = span(list[i].start, list[i].old_len,
                               list[i].new_len);
            hfsb_buf  out;
            place(&s, 1);
            if (lines) fill_lines(&s, 1, hfsb_cstr(list[i].new_text));
            out = diff_of(hfsb_cstr(list[i].old_text),
                          hfsb_cstr(list[i].new_text), &s, 1, NULL);
            T_CHECK(te_begins(out.ptr, "--- a/file\n+++ b/file\n"));
            T_CHECK(!strcmp(out.ptr + 22, list[i].hunks));
            if (strcmp(out.ptr + 22, list[i].hunks))
                printf("  case %zu:\n%s", i, out.ptr);
            hfsb_buf_free(&out);
        }
}

static void diff_of_equal_texts_is_empty(void) {
    hfsb_span s = span(0, 1, 1);
    hfsb_buf  out = diff_of(HFSB_LIT("a\n"), HFSB_LIT("a\n"), &s, 1, NULL);
    T_CHECK(!out.len);
    hfsb_buf_free(&out);
    out = diff_of(HFSB_LIT(""), HFSB_LIT(""), NULL, 0, NULL);
    T_CHECK(!out.len);
    hfsb_buf_free(&out);
}

static void diff_joins_spans_that_touch_or_share_a_line(void) {
    hfsb_span s[3];
    hfsb_buf  out;
    /* on one line */
    s[0] = span(0, 1, 2);
    s[1] = span(2, 1, 0);
    place(s, 2);
    out = diff_of(HFSB_LIT("a-b\n"), HFSB_LIT("AA-\n"), s, 2, NULL);
    T_STR(out, "--- a/file\n+++ b/file\n@@ -1,1 +1,1 @@\n-a-b\n+AA-\n");
    hfsb_buf_free(&out);
    /* end to end, at a line's border */
    s[0] = span(0, 2, 2);
    s[1] = span(2, 2, 2);
    place(s, 2);
    out = diff_of(HFSB_LIT("a\nb\nc\n"), HFSB_LIT("1\n2\nc\n"), s, 2, NULL);
    hfsb_buf_free(&out);
    /* the first eats its newline, so the next line belongs to it */
    s[0] = span(0, 2, 1);
    s[1] = span(2, 1, 1);
    place(s, 2);
    out = diff_of(HFSB_LIT("a\nb\nc\n"), HFSB_LIT("12\nc\n"), s, 2, NULL);
    T_STR(out,
          "--- a/file\n+++ b/file\n@@ -1,3 +1,2 @@\n-a\n-b\n+12\n c\n");
    hfsb_buf_free(&out);
    /* the same at the end of the file: an insertion after a lost newline */
    s[0] = span(2, 2, 1);
    s[1] = span(4, 0, 3);
    place(s, 2);
    out = diff_of(HFSB_LIT("a\nb\n"), HFSB_LIT("a\nX+\ny"), s, 2, NULL);
    T_STR(out, "--- a/file\n+++ b/file\n@@ -1,2 +1,3 @@\n a\n-b\n+X+\n+y\n"
               "\\ No newline at end of file\n");
    hfsb_buf_free(&out);
    /* three at one point */
    s[0] = span(1, 0, 1);
    s[1] = span(1, 0, 1);
    s[2] = span(1, 1, 1);
    place(s, 3);
    out = diff_of(HFSB_LIT("ab"), HFSB_LIT("a123"), s, 3, NULL);
    hfsb_buf_free(&out);
}

static void diff_skips_spans_without_a_change(void) {
    hfsb_span s[3];
    hfsb_buf  out;
    s[0] = span(0, 2, 2);
    s[1] = span(20, 2, 2);
    s[2] = span(38, 1, 1);
    place(s, 3);
    out = diff_of(HFSB_LIT("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\np\n"
                           "q\nr\ns\nt\n"),
                  HFSB_LIT("a\nb\nc\nd\ne\nf\ng\nh\ni\nj\nk\nl\nm\nn\no\np\n"
                           "q\nr\ns\nT\n"),
                  s, 3, NULL);
    T_STR(out, "--- a/file\n+++ b/file\n@@ -17,4 +17,4 @@\n q\n r\n s\n-t\n"
               "+T\n");
    hfsb_buf_free(&out);
}

static void diff_merges_hunks_whose_context_meets(void) {
    /* changes on lines 1 and 1 + gap + 1 of 20 */
    size_t gap, context;
    for (context = 1; context <= 4; context++)
        for (gap = 0; gap < 12; gap++) {
            hfsb_buf       a = HFSB_INIT, b = HFSB_INIT, out;
            hfsb_diff_opts opts = HFSB_INIT;
            hfsb_span      s[2];
            size_t         i, hunks = 0;
            hfsb_str       rest;
            for (i = 0; i < 20; i++) {
                te_append(&a, HFSB_LIT("x\n"));
                te_append(&b, i == 0 || i == gap + 1 ? HFSB_LIT("y\n")
                                                     : HFSB_LIT("x\n"));
            }
            s[0] = span(0, 1, 1);
            s[1] = span(2 * (gap + 1), 1, 1);
            place(s, 2);
            opts.context = context;
            out = diff_of(hfsb_buf_str(&a), hfsb_buf_str(&b), s, 2, &opts);
            for (rest = hfsb_buf_str(&out); rest.len;)
                hunks += hfsb_str_starts(te_line(&rest), HFSB_LIT("@@ "));
            T_CHECK(hunks == (gap <= 2 * context ? 1u : 2u));
            hfsb_buf_free(&a);
            hfsb_buf_free(&b);
            hfsb_buf_free(&out);
        }
}

static void diff_accepts_any_amount_of_context(void) {
    static const size_t sizes[] = {1, 2, 100, HFSB_NPOS / 2,
                                   HFSB_NPOS / 2 + 1, HFSB_NPOS};
    size_t i;
    for (i = 0; i < TE_COUNT(sizes); i++) {
        hfsb_diff_opts opts = HFSB_INIT;
        hfsb_span      s[2];
        hfsb_buf       out;
        opts.context = sizes[i];
        s[0] = span(0, 1, 1);
        s[1] = span(10, 1, 1);
        place(s, 2);
        out = diff_of(HFSB_LIT("1\n2\n3\n4\n5\n6\n7\n"),
                      HFSB_LIT("X\n2\n3\n4\n5\nY\n7\n"), s, 2, &opts);
        hfsb_buf_free(&out);
    }
}

static void diff_names_the_path(void) {
    static const struct {
        const char *path, *head;
    } list[] = {{"", "--- a/file\n+++ b/file\n"},
                {"x/y.c", "--- a/x/y.c\n+++ b/x/y.c\n"},
                {"//abs/y.c", "--- a//abs/y.c\n+++ b//abs/y.c\n"},
                {"/", "--- a/file\n+++ b/file\n"}};
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++) {
        hfsb_diff_opts opts = HFSB_INIT;
        hfsb_span      s = span(0, 1, 1);
        hfsb_buf       out;
        opts.path = t_exact(list[i].path, strlen(list[i].path));
        out = diff_of(HFSB_LIT("a"), HFSB_LIT("b"), &s, 1, &opts);
        T_CHECK(te_begins(out.ptr, list[i].head));
        hfsb_buf_free(&out);
        t_drop(opts.path);
    }
}

static void diff_is_cut_at_its_limit(void) {
    hfsb_buf       a = HFSB_INIT, b = HFSB_INIT, out = HFSB_INIT;
    hfsb_diff_opts opts = HFSB_INIT;
    hfsb_span      s[100];
    size_t         i;
    bool           cut;
    for (i = 0; i < 1000; i++) {
        te_append(&a, HFSB_LIT("line\n"));
        te_append(&b, i % 10 ? HFSB_LIT("line\n") : HFSB_LIT("LINE\n"));
    }
    for (i = 0; i < 100; i++) s[i] = span(i * 50, 4, 4);
    place(s, 100);
    te_append(&out, HFSB_LIT("kept"));
    for (opts.max_bytes = 1; opts.max_bytes < 20000;
         opts.max_bytes += 1 + opts.max_bytes / 2) {
        hfsb_buf_truncate(&out, 4);
        T_CHECK(hfsb_diff_unified(hfsb_buf_str(&a), hfsb_buf_str(&b), s, 100,
                                  &opts, &out, &cut) == HFSB_OK);
        T_CHECK(cut == hfsb_str_ends(hfsb_buf_str(&out),
                                     HFSB_LIT("\n... (diff cut)\n")));
        T_CHECK(cut == (opts.max_bytes < 6000));
        T_CHECK(!cut || out.len < 2 * opts.max_bytes + 150);
        T_CHECK(te_begins(out.ptr, "kept--- a/file\n"));
        T_CHECK(cut || te_diff_fits(hfsb_buf_str(&a), hfsb_buf_str(&b),
                                    hfsb_str_slice(hfsb_buf_str(&out), 4,
                                                   out.len)));
    }
    hfsb_buf_free(&a);
    hfsb_buf_free(&b);
    hfsb_buf_free(&out);
}

static void diff_of_a_huge_line_is_cut_too(void) {
    hfsb_buf  a = HFSB_INIT, b = HFSB_INIT, out = HFSB_INIT;
    hfsb_span s = span(0, 1, 1);
    size_t    i;
    bool      cut;
    for (i = 0; i < 100000; i++) te_append(&a, HFSB_LIT("x"));
    te_append(&b, hfsb_buf_str(&a));
    b.ptr[0] = 'y';
    T_CHECK(hfsb_diff_unified(hfsb_buf_str(&a), hfsb_buf_str(&b), &s, 1, NULL,
                              &out, &cut) == HFSB_OK);
    T_CHECK(cut && out.len < 1000);
    hfsb_buf_free(&a);
    hfsb_buf_free(&b);
    hfsb_buf_free(&out);
}

static void diff_applies_for_random_changes(void) {
    unsigned long long seed = 5;
    size_t rounds = t_quick() ? 2000 : 20000, i;
    while (rounds--) {
        hfsb_buf       a = HFSB_INIT, b = HFSB_INIT, out;
        hfsb_span      s[6];
        hfsb_diff_opts opts = HFSB_INIT;
        size_t         count = 1 + te_below(&seed, 6), pos = 0;
        te_random_lines(&seed, te_below(&seed, 30), &a);
        for (i = 0; i < count; i++) {
            size_t mark, start = pos + te_below(&seed, a.len - pos + 1) /
                                           (1 + te_below(&seed, 3));
            size_t len = te_below(&seed, a.len - start + 1) /
                         (1 + te_below(&seed, 4));
            te_append(&b, hfsb_str_slice(hfsb_buf_str(&a), pos, start));
            mark = b.len;
            te_append(&b, te_pick(&seed, "||x|y\n|\n|\n\nz|a\nb\nc\n|a"));
            s[i] = span(start, len, b.len - mark);
            pos = start + len;
        }
        te_append(&b, hfsb_str_slice(hfsb_buf_str(&a), pos, a.len));
        place(s, count);
        if (te_below(&seed, 2)) fill_lines(s, count, hfsb_buf_str(&b));
        opts.context = te_below(&seed, 4);
        out = diff_of(hfsb_buf_str(&a), hfsb_buf_str(&b), s, count, &opts);
        hfsb_buf_free(&a);
        hfsb_buf_free(&b);
        hfsb_buf_free(&out);
    }
}

static void oom_run(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_buf    out = HFSB_INIT;
    hfsb_span   s[2];
    hfsb_status st;
    bool        cut;
    s[0] = span(0, 4, 4);
    s[1] = span(20, 2, 4);
    place(s, 2);
    out.alloc = alloc;
    st = hfsb_buf_append(&out, HFSB_LIT("kept"));
    if (st == HFSB_OK) {
        st = hfsb_diff_unified(
            HFSB_LIT("1\n2\n3\n4\n5\n6\n7\n8\n9\na\nb\n"),
            HFSB_LIT("2\n1\n3\n4\n5\n6\n7\n8\n9\na\nx\ny\n"), s, 2, NULL,
            &out, &cut);
        T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at));
        if (st != HFSB_OK) T_STR(out, "kept");
    }
    hfsb_buf_free(&out);
}

static void diff_survives_each_failing_allocation(void) {
    t_each_allocation_fails(oom_run);
}

static void diff_keeps_the_ceiling_of_the_buffer(void) {
    hfsb_buf  out = HFSB_INIT;
    hfsb_span s = span(0, 1, 1);
    te_append(&out, HFSB_LIT("kept"));
    out.max = 40;
    T_CHECK(hfsb_diff_unified(HFSB_LIT("a"), HFSB_LIT("b"), &s, 1, NULL, &out,
                              NULL) == HFSB_LIMIT);
    T_STR(out, "kept");
    hfsb_buf_free(&out);
}

#ifdef HFSBI_SPLIT
/* One letter a line; '.' in `want` is a new line, a digit the old line. */
static void lines_diff_pairs_unchanged_lines(void) {
    static const struct {
        const char *old_lines, *new_lines, *want;
    } list[] = {
        {"abc", "abc", "012"},    {"abc", "axc", "0.2"},
        {"abc", "ac", "02"},      {"ac", "abc", "0.1"},
        {"", "abc", "..."},       {"abc", "", ""},
        {"abcd", "bxd", "1.3"},   {"abcabba", "cbabac", "24.56."},
        {"ab", "ba", "1."},       {"aab", "ab", "02"},
        {"aaa", "aa", "01"},      {"abx", "cdx", "..2"},
    };
    hfsb_alloc alloc = HFSB_INIT;
    size_t     i, j;
    for (i = 0; i < TE_COUNT(list); i++) {
        hfsb_str o[8], n[8];
        size_t   same[8], a = strlen(list[i].old_lines);
        size_t   b = strlen(list[i].new_lines);
        char     got[9] = "";
        for (j = 0; j < a; j++)
            o[j] = hfsb_str_make(list[i].old_lines + j, 1);
        for (j = 0; j < b; j++)
            n[j] = hfsb_str_make(list[i].new_lines + j, 1);
        T_CHECK(hfsbi_lines_diff(&alloc, o, a, n, b, same) == HFSB_OK);
        for (j = 0; j < b; j++)
            got[j] = same[j] == HFSB_NPOS ? '.' : (char)('0' + same[j]);
        T_CHECK(!strcmp(got, list[i].want));
        if (strcmp(got, list[i].want)) printf("  case %zu: %s\n", i, got);
    }
}

/* What was inserted begins with the least indented line that it can; where that
   is not clear, it stays as late as it is found. */
static void lines_diff_begins_insertions_with_their_head(void) {
    static const struct {
        const char *old_lines, *new_lines, *want;
    } list[] = {
        {"-a/ 1/", "-a/ 2/-a/ 1/", "..01"},
        {" 0/-a/ 1/", " 0/-a/ 2/ 0/-a/ 1/", "0...12"}, /* not past - */
        {"-a/ 1/", "-a/ 1/-a/ 1/", "01.."},
        {" a/ 1/", " a/ 2/ a/ 1/", "0..1"}, /* all alike */
        {"a/b/", "a/b/ b/", "01."},         /* nothing to move past */
        {"/-a/", "/-b//-a/", "0..1"},       /* an empty line is no head */
        {"-a/-x/ 1/", "-a/ 2/-a/ 1/", "0..2"}, /* with a removal: stays */
        {" 1/-a/", " 1/-a/ 1/-a/", "0..1"},
    };
    hfsb_alloc alloc = HFSB_INIT;
    size_t     i, j;
    for (i = 0; i < TE_COUNT(list); i++) {
        hfsb_str o[8], n[8], text = hfsb_cstr(list[i].old_lines);
        size_t   same[8], a = 0, b = 0;
        char     got[9] = "";
        while (hfsbi_list_next(&text, '/', &o[a])) a += text.len || o[a].len;
        text = hfsb_cstr(list[i].new_lines);
        while (hfsbi_list_next(&text, '/', &n[b])) b += text.len || n[b].len;
        T_CHECK(hfsbi_lines_diff(&alloc, o, a, n, b, same) == HFSB_OK);
        for (j = 0; j < b; j++)
            got[j] = same[j] == HFSB_NPOS ? '.' : (char)('0' + same[j]);
        T_CHECK(!strcmp(got, list[i].want));
        if (strcmp(got, list[i].want)) printf("  case %zu: %s\n", i, got);
    }
}

/* 2,100 lines with only the middle one in common exceed the limit, so that it
   counts as changed; with fewer lines it is found. */
static void lines_diff_has_a_limit(void) {
    hfsb_alloc   alloc = HFSB_INIT;
    const size_t sizes[] = {1999, 2101};
    size_t       k, i;
    for (k = 0; k < 2; k++) {
        size_t    n = sizes[k], found = 0;
        hfsb_str *o = (hfsb_str *)malloc(n * sizeof *o);
        hfsb_str *m = (hfsb_str *)malloc(n * sizeof *m);
        size_t   *same = (size_t *)malloc(n * sizeof *same);
        if (!o || !m || !same) abort();
        for (i = 0; i < n; i++) {
            o[i] = HFSB_LIT("old");
            m[i] = HFSB_LIT("new");
        }
        o[n / 2] = m[n / 3] = HFSB_LIT("same");
        T_CHECK(hfsbi_lines_diff(&alloc, o, n, m, n, same) == HFSB_OK);
        for (i = 0; i < n; i++) found += same[i] == n / 2;
        T_CHECK(found == (k == 0 ? 1u : 0u));
        free(o);
        free(m);
        free(same);
    }
}
#endif

int main(void) {
    T_RUN(diff_shows_changed_lines);
    T_RUN(diff_of_equal_texts_is_empty);
    T_RUN(diff_joins_spans_that_touch_or_share_a_line);
    T_RUN(diff_skips_spans_without_a_change);
    T_RUN(diff_merges_hunks_whose_context_meets);
    T_RUN(diff_accepts_any_amount_of_context);
    T_RUN(diff_names_the_path);
    T_RUN(diff_is_cut_at_its_limit);
    T_RUN(diff_of_a_huge_line_is_cut_too);
    T_RUN(diff_applies_for_random_changes);
    T_RUN(diff_survives_each_failing_allocation);
    T_RUN(diff_keeps_the_ceiling_of_the_buffer);
#ifdef HFSBI_SPLIT
    T_RUN(lines_diff_pairs_unchanged_lines);
    T_RUN(lines_diff_begins_insertions_with_their_head);
    T_RUN(lines_diff_has_a_limit);
#endif
    return T_END();
}
