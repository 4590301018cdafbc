/* test_text.c - lines, and command output through the filter. */
#include "../support/t.h"

static void check_same(hfsb_str got, hfsb_str want) {
    t_str(__FILE__, __LINE__, got.ptr, got.len, want.ptr, want.len);
}

/* ---- lines ---- */

static void lines_end_at_lf_or_crlf(void) {
    hfsb_str text = HFSB_LIT("one\ntwo\r\n\n\r\nx\ry\r\r\nlast"), s, rest;
    hfsb_str line, ending;
    s = rest = t_exact(text.ptr, text.len);
    T_CHECK(hfsb_text_line(&rest, &line, &ending));
    T_STR(line, "one");
    T_STR(ending, "\n");
    T_CHECK(hfsb_text_line(&rest, &line, &ending));
    T_STR(line, "two");
    T_STR(ending, "\r\n");
    T_CHECK(hfsb_text_line(&rest, &line, NULL));
    T_STR(line, "");
    T_CHECK(hfsb_text_line(&rest, &line, &ending));
    T_STR(line, "");
    T_STR(ending, "\r\n");
    T_CHECK(hfsb_text_line(&rest, &line, &ending));
    T_STR(line, "x\ry\r");
    T_STR(ending, "\r\n");
    T_CHECK(hfsb_text_line(&rest, &line, &ending));
    T_STR(line, "last");
    T_STR(ending, "");
    T_CHECK(line.ptr == s.ptr + s.len - 4);
    T_CHECK(!hfsb_text_line(&rest, &line, &ending));
    t_drop(s);
    rest = hfsb_str_make(NULL, 0);
    T_CHECK(!hfsb_text_line(&rest, &line, &ending));
    rest = HFSB_LIT("a\r");
    T_CHECK(hfsb_text_line(&rest, &line, &ending));
    T_STR(line, "a\r");
    T_CHECK(ending.len == 0 && rest.len == 0);
}

static void lines_are_numbered_from_one(void) {
    hfsb_str s = HFSB_LIT("ab\n\ncd");
    T_CHECK(hfsb_text_line_number(s, 0) == 1);
    T_CHECK(hfsb_text_line_number(s, 2) == 1);
    T_CHECK(hfsb_text_line_number(s, 3) == 2);
    T_CHECK(hfsb_text_line_number(s, 4) == 3);
    T_CHECK(hfsb_text_line_number(s, 6) == 3);
    T_CHECK(hfsb_text_line_number(HFSB_LIT("\n"), 1) == 2);
    T_CHECK(hfsb_text_line_number(hfsb_str_make(NULL, 0), 0) == 1);
}

/* ---- the filter, fed in different ways ---- */

static void feed(hfsb_text_filter *f, hfsb_str s, size_t from, size_t to,
                 hfsb_buf *out) {
    hfsb_str piece = t_exact(s.ptr ? s.ptr + from : "", to - from);
    T_CHECK(hfsb_text_filter_write(f, piece, out) == HFSB_OK);
    t_drop(piece);
}

/* The whole of s in pieces of `size` bytes. */
static void filter_pieces(hfsb_str s, size_t size, hfsb_buf *out) {
    hfsb_text_filter *f = hfsb_text_filter_open(NULL);
    size_t            i;
    for (i = 0; i < s.len; i += size)
        feed(f, s, i, s.len - i < size ? s.len : i + size, out);
    T_CHECK(hfsb_text_filter_finish(f, out) == HFSB_OK);
    hfsb_text_filter_close(f);
}

static void filter_cut(hfsb_text_filter *f, hfsb_str s, size_t a, size_t b,
                       hfsb_str want) {
    hfsb_buf out = HFSB_INIT;
    feed(f, s, 0, a, &out);
    feed(f, s, a, b, &out);
    feed(f, s, b, s.len, &out);
    T_CHECK(hfsb_text_filter_finish(f, &out) == HFSB_OK);
    check_same(hfsb_buf_str(&out), want);
    hfsb_buf_free(&out);
}

/* s gives want: whole, byte by byte, and for every pair of cuts. Reusing the
   filter shows that finish() leaves it as new. */
static void check_filter(hfsb_str s, hfsb_str want) {
    hfsb_text_filter *f = hfsb_text_filter_open(NULL);
    hfsb_buf          out = HFSB_INIT;
    size_t            a, b;
    filter_pieces(s, s.len ? s.len : 1, &out);
    check_same(hfsb_buf_str(&out), want);
    hfsb_buf_truncate(&out, 0);
    filter_pieces(s, 1, &out);
    check_same(hfsb_buf_str(&out), want);
    hfsb_buf_free(&out);
    for (a = 0; a <= s.len; a++)
        for (b = a; b <= s.len; b += t_quick() ? 9u : 1u)
            filter_cut(f, s, a, b, want);
    hfsb_text_filter_close(f);
}

typedef struct pair {
    const char *in, *out;
} pair;

static void check_pairs(const pair *pairs, size_t count) {
    size_t i;
    for (i = 0; i < count; i++)
        check_filter(hfsb_cstr(pairs[i].in), hfsb_cstr(pairs[i].out));
}

#define E "\x1B"
#define BAD "\xEF\xBF\xBD"
#define CHECK_PAIRS(pairs) check_pairs(pairs, sizeof(pairs) / sizeof *(pairs))

static void filter_keeps_plain_text(void) {
    static const pair pairs[] = {
        {"", ""},
        {"\n", "\n"},
        {"plain", "plain"},
        {"one\ntwo\n", "one\ntwo\n"},
        {"tab\tbell\afeed\f\vdel\x7F", "tab\tbell\afeed\f\vdel\x7F"},
        {"caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\n",
         "caf\xC3\xA9 \xE2\x82\xAC \xF0\x9F\x98\x80\n"},
        {"c1 \xC2\x9B" "31m \xC2\x85", "c1 \xC2\x9B" "31m \xC2\x85"},
        {"[0m", "[0m"}};
    CHECK_PAIRS(pairs);
    check_filter(HFSB_LIT("a\0b\0\n\0"), HFSB_LIT("a\0b\0\n\0"));
}

static void filter_replaces_bad_bytes(void) {
    static const pair pairs[] = {
        {"\xFF", BAD},
        {"a\xF0\x9F\x98", "a" BAD},
        {"a\xF0\x9F\x98\nb", "a" BAD "\nb"},
        {"\xC0\x80\xED\xA0\x80", BAD BAD BAD BAD BAD},
        {"\xE2\x82\xE2\x82\xAC", BAD "\xE2\x82\xAC"},
        {"\xF0\x9F" E "[m\x98\x80", BAD BAD BAD},
        {"\xE2\x82\r\xAC\n", BAD "\n"},
        {E "]t\xFF\xF0\x9F\a\x98", BAD},
        {E "[3\xFFm", BAD "m"},
        {E "\xC3\xA9", "\xC3\xA9"}};
    CHECK_PAIRS(pairs);
}

static void filter_removes_escape_sequences(void) {
    static const pair pairs[] = {
        {"a" E "[31mb" E "[0mc", "abc"},
        {"a" E "[38;2;1;2;3mb", "ab"},
        {"a" E "[38:5:1mb", "ab"},
        {"a" E "[?25lb" E "[>0cb", "abb"},
        {"a" E "[1 qb" E "[!pb", "abb"},
        {"a" E "[Hb" E "[2Jb" E "[10;20Hb", "abbb"},
        {"a" E "[3Gb" E "[5Cb" E "[@b" E "[~b", "abbbb"},
        {"a" E "]0;title\ab", "ab"},
        {"a" E "]8;;http://x\x1B\\link" E "]8;;" E "\\b", "alinkb"},
        {"a" E "Pq#0~\x1B\\b" E "Pq\ab", "abb"},
        {"a" E "_apc\x1B\\b" E "^pm\x1B\\b" E "Xsos\x1B\\b", "abbb"},
        {"a" E "(Bb" E ")0b" E "%Gb" E "#8b" E " Fb", "abbbbb"},
        {"a" E "7b" E "8b" E "=b" E ">b" E "cb" E "Mb", "abbbbbb"},
        {"a" E "\\b" E "~b", "abb"},
        {"a" E, "a"},
        {"a" E "[", "a"},
        {"a" E "[31", "a"},
        {"a" E "(", "a"},
        {"a" E "]0;x", "a"},
        {"a" E "]0;x" E, "a"}};
    CHECK_PAIRS(pairs);
}

static void broken_sequences_keep_their_text(void) {
    static const pair pairs[] = {
        {"a" E "\nb", "a\nb"},
        {"a" E "[3\nb", "a\nb"},
        {"a" E "[3\tb", "a\tb"},
        {"a" E "[3\x7F" "b", "a\x7F" "b"},
        {"a" E "[3\rb", "b"},
        {"a" E "(\nb", "a\nb"},
        {"a" E "(\xC3\xA9", "a\xC3\xA9"},
        {"a" E E "[31mb", "ab"},
        {"a" E "[3" E "[31mb", "ab"},
        {"a" E "(" E "(Bb", "ab"},
        {"a" E "]0;x\nb", "a\nb"},
        {"a" E "]0;x\r\nb", "a\nb"},
        {"a" E "]0;x" E "[31mb", "ab"},
        {"a" E "Px" E "]0;y\ab", "ab"},
        {"a" E "]x" E "\nb", "a\nb"}};
    CHECK_PAIRS(pairs);
}

static void returns_and_backspaces_rewrite_the_line(void) {
    static const pair pairs[] = {
        {"a\r\nb\r\n", "a\nb\n"},
        {"a\r\r\nb\r\r\r\n", "a\nb\n"},
        {"10%\r20%\r100%\n", "100%\n"},
        {"long line\rshort\n", "shortline\n"},
        {"abc\rX", "Xbc"},
        {"abc\r", "abc"},
        {"\rabc", "abc"},
        {"abc\b\bX\n", "aXc\n"},
        {"a\b\b\bX", "X"},
        {"\b\bX", "X"},
        {"N\bNA\bA_\bx\n", "NAx\n"},
        {"abc\b\n", "abc\n"},
        {"\xC3\xA9\xE2\x82\xAC\rab", "ab"},
        {"ab\r\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80" "b"},
        {"ab\r\xFF", BAD "b"},
        {"one\ntwo\rT\nx", "one\nTwo\nx"},
        {"ab\r" E "[31mX" E "[0m", "Xb"},
        {"a\tb\r12", "12b"}};
    CHECK_PAIRS(pairs);
}

static void erase_in_line_is_applied(void) {
    static const pair pairs[] = {
        /* at once, when the cursor is inside the line */
        {"10%\r" E "[KDone", "Done"},
        {"100%\r" E "[KOk\n", "Ok\n"},
        {"100%\r" E "[0KOk", "Ok"},
        {"100%\r" E "[2KOk", "Ok"},
        {"100%\r" E "[2K\n", "\n"},
        {"abcdef\b\b" E "[K", "abcd"},
        {"abcdef\b\b" E "[KX", "abcdX"},
        {"abcdef\b\b\b" E "[1K", "    ef"},
        {"abcdef\b\b\b" E "[1KX", "   Xef"},
        {"abc\b" E "[1K", ""},
        {"abc\b" E "[1KX", "  X"},
        {"abc\b" E "[2KX", "  X"},
        {"abc\b" E "[2K\bX", " X"},
        {"abc\r" E "[1KX", "Xbc"},
        {"a\r" E "[K" E "[Kb", "b"},
        /* remembered, when it is at the line's end */
        {"plain" E "[2K", "plain"},
        {"plain" E "[2K\n", "plain\n"},
        {"plain" E "[2K\r\n", "plain\n"},
        {"plain" E "[1K", "plain"},
        {"plain" E "[K", "plain"},
        {"10%" E "[2K\rDone", "Done"},
        {"100%" E "[2K\rOk", "Ok"},
        {"100%" E "[1K\rOk", "Ok"},
        {"100%" E "[K\rOk", "Ok0%"},
        {"100%" E "[2K\r" E "[KOk", "Ok"},
        {"100%" E "[2K\r" E "[1KOk", "Ok"},
        {"abc" E "[2Kdef", "abcdef"},
        {"abc" E "[2Kdef\rX", "X  def"},
        {"abc" E "[2Kdef\r" E "[1KX", "X  def"},
        {"abc" E "[2Kdef" E "[2K\rX", "X"},
        {"abc" E "[2K\bX", "  X"},
        {"abc" E "[2K\b\n", "abc\n"},
        {"abc" E "[2K\nxyz\rX", "abc\nXyz"},
        {E "[2Kabc\rX", "Xbc"},
        /* not an erase in line */
        {"abc\r" E "[3KX", "Xbc"},
        {"abc\r" E "[?2KX", "Xbc"},
        {"abc\r" E "[0;2KX", "Xbc"},
        {"abc\r" E "[2 KX", "Xbc"},
        {"abc\r" E "[4294967298KX", "Xbc"},
        {"abc\r" E "[02KX", "X"},
        {"abc\r" E "[2\nK", "abc\nK"},
        {"abc\r" E "[2;" E "[KX", "X"},
        {"abc\r" E "(K" E "KX", "Xbc"}};
    CHECK_PAIRS(pairs);
}

static void moving_to_column_one_is_a_return(void) {
    static const pair pairs[] = {{"10%" E "[1GDone", "Done"},
                                 {"abc" E "[GX", "Xbc"},
                                 {"abc" E "[0GX\n", "Xbc\n"},
                                 {"- wait" E "[2K" E "[1Gok\n", "ok\n"},
                                 {"abc" E "[3GX", "abcX"},
                                 {"abc" E "[1;1GX", "abcX"},
                                 {"abc" E "GX", "abcX"}};
    CHECK_PAIRS(pairs);
}

/* ---- a model without the shortcuts of the filter ---- */

typedef struct model {
    unsigned long cells[16384];
    size_t        len, cursor, erased;
    char          state; /* 0, or e ( [ ] */
    char          args[8];
    size_t        n_args;
    hfsb_buf      out;
} model;

static void model_emit(model *m, size_t n) {
    char   c[4];
    size_t i;
    for (i = 0; i < n; i++)
        T_CHECK(hfsb_buf_append(
                    &m->out, hfsb_str_make(c, hfsb_utf8_encode(m->cells[i],
                                                               c))) ==
                HFSB_OK);
}

static void model_settle(model *m) {
    size_t i;
    if (m->cursor >= m->len || !m->erased) return;
    for (i = 0; i < m->erased; i++) m->cells[i] = ' ';
    if (m->erased == m->len) m->len = 0;
    m->erased = 0;
}

static void model_erase(model *m) {
    size_t i, mode = m->n_args ? (size_t)(m->args[0] - '0') : 0;
    if (m->n_args > 1 || mode > 2) return;
    if (m->cursor >= m->len) {
        if (mode) m->erased = m->len;
        return;
    }
    model_settle(m);
    if (m->cursor >= m->len) {
        m->len = 0; /* all of it was cleared before */
    } else if (mode == 0) {
        m->len = m->cursor;
    } else if (mode == 2 || m->cursor + 1 == m->len) {
        m->len = 0;
    } else {
        for (i = 0; i <= m->cursor; i++) m->cells[i] = ' ';
    }
}

static void model_print(model *m, unsigned long c) {
    model_settle(m);
    if (m->cursor == 16384) {
        model_emit(m, 8192);
        memmove(m->cells, m->cells + 8192, 8192 * sizeof *m->cells);
        m->cursor = m->len = 8192;
        m->erased = m->erased > 8192 ? m->erased - 8192 : 0;
    }
    while (m->len < m->cursor) m->cells[m->len++] = ' ';
    m->cells[m->cursor++] = c;
    if (m->cursor > m->len) m->len = m->cursor;
}

static void model_text(model *m, unsigned long c) {
    if (c == 27) {
        m->state = 'e';
    } else if (c == '\r') {
        m->cursor = 0;
    } else if (c == '\b') {
        m->cursor -= m->cursor > 0;
    } else if (c == '\n') {
        model_emit(m, m->len);
        T_CHECK(hfsb_buf_append_byte(&m->out, '\n') == HFSB_OK);
        m->len = m->cursor = m->erased = 0;
    } else {
        model_print(m, c);
    }
}

static void model_take(model *m, unsigned long c) {
    char was = m->state;
    if (was == ']') {
        if (c == 7 || c == 27 || c == '\n') m->state = 0;
        if (c == 27 || c == '\n') model_text(m, c);
        return;
    }
    if (was && c >= 0x20 && c < 0x30 && was != '[') {
        m->state = '(';
    } else if (was == '[' && c >= 0x20 && c < 0x40) {
        if (m->n_args < sizeof m->args) m->args[m->n_args++] = (char)c;
    } else if (was == 'e' && c == '[') {
        m->state = '[';
        m->n_args = 0;
    } else if (was == 'e' && c < 0x7F && strchr("]PX^_", (int)c) && c) {
        m->state = ']';
    } else {
        m->state = 0;
        if (!was || c < 0x30 || c > 0x7E) model_text(m, c);
        else if (was == '[' && c == 'K') model_erase(m);
        else if (was == '[' && c == 'G' &&
                 (!m->n_args ||
                  (m->n_args == 1 && strchr("01", m->args[0]))))
            m->cursor = 0;
    }
}

/* The expected output of the filter for s. */
static void model_run(model *m, hfsb_str s) {
    size_t        i = 0;
    unsigned long c;
    memset(m, 0, sizeof *m);
    while (i < s.len) {
        i += hfsb_utf8_step(s, i, &c, NULL);
        model_take(m, c);
    }
    model_emit(m, m->len);
}

/* Text of pieces that matter to the filter; long_runs: also runs that fill
   the row of cells. */
static void random_output(unsigned long long *seed, size_t parts,
                          bool long_runs, hfsb_buf *out) {
    static const char *const part[] = {
        "a", "bc", "12345678901234567890", " ", "\n", "\n", "\r", "\r", "\b",
        "\b\b\b", "\r\n", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
        "\xF0\x9F", "\xFF", "\x98", "\x07", "\t", E, E "[", E "[K", E "[1K",
        E "[2K", E "[1G", E "[0m", E "[31;1m", E "]0;t", E "]0;t\a", E "\\", E "P",
        E "(B", E "7", "K", "2", ";", "[", "]", "\\"};
    static char run[7000];
    size_t      i;
    memset(run, 'x', sizeof run);
    for (i = 0; i < parts; i++) {
        unsigned long r = t_random(seed);
        hfsb_str s = hfsb_cstr(part[r % (sizeof part / sizeof *part)]);
        if (long_runs && r % 1024 < 100)
            s = hfsb_str_make(run, t_random(seed) % sizeof run);
        T_CHECK(hfsb_buf_append(out, s) == HFSB_OK);
    }
}

static void filter_random_cuts(unsigned long long *seed, hfsb_str s,
                               size_t max, hfsb_str want) {
    hfsb_text_filter *f = hfsb_text_filter_open(NULL);
    hfsb_buf          out = HFSB_INIT;
    size_t            i = 0;
    while (i < s.len) {
        size_t n = t_random(seed) % (max + 1);
        if (n > s.len - i) n = s.len - i;
        feed(f, s, i, i + n, &out);
        i += n;
    }
    T_CHECK(hfsb_text_filter_finish(f, &out) == HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&out), want));
    T_CHECK(hfsb_utf8_validate(hfsb_buf_str(&out)) == out.len);
    T_CHECK(hfsb_str_find_byte(hfsb_buf_str(&out), 27) == HFSB_NPOS);
    hfsb_buf_free(&out);
    hfsb_text_filter_close(f);
}

static void random_output_agrees_with_the_model(void) {
    unsigned long long seed = 11;
    model             *m = (model *)malloc(sizeof *m);
    int                round, rounds = t_quick() ? 300 : 3000;
    if (!m) abort();
    for (round = 0; round < rounds; round++) {
        bool     big = round % 100 == 0;
        hfsb_buf text = HFSB_INIT, want = HFSB_INIT;
        random_output(&seed, big ? 600 : 1 + t_random(&seed) % 40, big,
                      &text);
        model_run(m, hfsb_buf_str(&text));
        filter_random_cuts(&seed, hfsb_buf_str(&text), text.len,
                           hfsb_buf_str(&m->out));
        filter_random_cuts(&seed, hfsb_buf_str(&text), big ? 5000 : 4,
                           hfsb_buf_str(&m->out));
        if (big) filter_pieces(hfsb_buf_str(&text), text.len, &want);
        else filter_pieces(hfsb_buf_str(&text), 1, &want);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&want), hfsb_buf_str(&m->out)));
        hfsb_buf_free(&text);
        hfsb_buf_free(&want);
        hfsb_buf_free(&m->out);
    }
    free(m);
}

/* ---- long lines ---- */

/* head x's, then the cursor to the start, then "Y": where does it land? */
static size_t place_of_rewrite(size_t count, size_t piece) {
    hfsb_buf text = HFSB_INIT, out = HFSB_INIT;
    size_t   at;
    t_repeat(&text, "x", count);
    t_repeat(&text, "\rY", 1);
    filter_pieces(hfsb_buf_str(&text), piece, &out);
    T_CHECK(out.len == count);
    at = hfsb_str_find_byte(hfsb_buf_str(&out), 'Y');
    hfsb_buf_free(&text);
    hfsb_buf_free(&out);
    return at;
}

static void long_lines_write_their_start_early(void) {
    static const size_t pieces[] = {1, 7, 8192, 8193, 16384, 1000000};
    size_t              i;
    for (i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        T_CHECK(place_of_rewrite(16383, pieces[i]) == 0);
        T_CHECK(place_of_rewrite(16384, pieces[i]) == 0);
        T_CHECK(place_of_rewrite(16385, pieces[i]) == 8192);
        T_CHECK(place_of_rewrite(24576, pieces[i]) == 8192);
        T_CHECK(place_of_rewrite(24577, pieces[i]) == 16384);
        T_CHECK(place_of_rewrite(50000, pieces[i]) == 40960);
    }
}

static void an_endless_line_needs_bounded_memory(void) {
    t_heap            heap = HFSB_INIT;
    hfsb_alloc        alloc;
    hfsb_text_filter *f;
    hfsb_buf          out = HFSB_INIT;
    char              text[997];
    size_t            i, total = 0;
    memset(text, 'x', sizeof text);
    alloc.fn = t_heap_fn;
    alloc.user = &heap;
    f = hfsb_text_filter_open(&alloc);
    for (i = 0; i < 2000; i++) {
        T_CHECK(hfsb_text_filter_write(f, hfsb_str_make(text, sizeof text),
                                       &out) == HFSB_OK);
        total += out.len;
        hfsb_buf_truncate(&out, 0);
    }
    T_CHECK(heap.live < 140000);
    T_CHECK(hfsb_text_filter_finish(f, &out) == HFSB_OK);
    T_CHECK(total + out.len == 2000 * sizeof text);
    hfsb_text_filter_close(f);
    T_CHECK(heap.live == 0 && !heap.wrong);
    hfsb_buf_free(&out);
}

/* ---- other calls of the filter ---- */

static void peek_shows_the_unfinished_line(void) {
    hfsb_text_filter *f = hfsb_text_filter_open(NULL);
    hfsb_buf          out = HFSB_INIT, now = HFSB_INIT;
    T_CHECK(hfsb_text_filter_peek(f, &now) == HFSB_OK && now.len == 0);
    T_CHECK(hfsb_text_filter_write(
                f, HFSB_LIT("one\n10%\r2\xF0\x9F"), &out) == HFSB_OK);
    T_STR(out, "one\n");
    T_CHECK(hfsb_text_filter_peek(f, &now) == HFSB_OK);
    T_STR(now, "20%");
    T_CHECK(hfsb_text_filter_peek(f, &now) == HFSB_OK);
    T_STR(now, "20%20%");
    now.max = 7;
    T_CHECK(hfsb_text_filter_peek(f, &now) == HFSB_LIMIT);
    T_STR(now, "20%20%");
    T_CHECK(hfsb_text_filter_write(f, HFSB_LIT("\x98\x80!\nx"), &out) ==
            HFSB_OK);
    T_STR(out, "one\n2\xF0\x9F\x98\x80!\n");
    T_CHECK(hfsb_text_filter_finish(f, &out) == HFSB_OK);
    T_STR(out, "one\n2\xF0\x9F\x98\x80!\nx");
    T_CHECK(hfsb_text_filter_finish(f, &out) == HFSB_OK);
    T_STR(out, "one\n2\xF0\x9F\x98\x80!\nx");
    hfsb_text_filter_close(f);
    hfsb_text_filter_close(NULL);
    hfsb_buf_free(&out);
    hfsb_buf_free(&now);
}

static void full_buffer_leaves_the_filter_unchanged(void) {
    hfsb_text_filter *f = hfsb_text_filter_open(NULL);
    hfsb_buf          out = HFSB_INIT;
    hfsb_str          piece = HFSB_LIT("\x80\rB\nlonger" E "[K\nend\rE");
    T_CHECK(hfsb_text_filter_write(f, HFSB_LIT("abc\n10%\xF0\x9F\x98"),
                                   &out) == HFSB_OK);
    T_STR(out, "abc\n");
    out.max = 12;
    T_CHECK(hfsb_text_filter_write(f, piece, &out) == HFSB_LIMIT);
    T_STR(out, "abc\n");
    hfsb_buf_truncate(&out, out.len); /* forget the failure */
    T_CHECK(hfsb_text_filter_write(f, HFSB_LIT(""), &out) == HFSB_OK);
    T_CHECK(hfsb_text_filter_finish(f, &out) == HFSB_OK);
    T_STR(out, "abc\n10%" BAD);
    T_CHECK(hfsb_text_filter_write(f, HFSB_LIT("abc\xE2"), &out) == HFSB_OK);
    T_CHECK(hfsb_text_filter_finish(f, &out) == HFSB_LIMIT);
    T_STR(out, "abc\n10%" BAD);
    hfsb_buf_truncate(&out, out.len); /* forget the failure */
    out.max = 0;
    T_CHECK(hfsb_text_filter_write(f, HFSB_LIT("\x82\xAC"), &out) ==
            HFSB_OK);
    T_CHECK(hfsb_text_filter_finish(f, &out) == HFSB_OK);
    T_STR(out, "abc\n10%" BAD "abc\xE2\x82\xAC");
    hfsb_text_filter_close(f);
    hfsb_buf_free(&out);
}

/* ---- the filter on published data ---- */

static void filter_agrees_with_the_reference(void) {
    hfsb_buf file = HFSB_INIT;
    hfsb_str rest, line;
    size_t   count = 0;
    if (!t_data_file("vectors/ansi.jsonl", &file)) return;
    for (rest = hfsb_buf_str(&file); hfsb_text_line(&rest, &line, NULL);) {
        hfsb_json_doc doc = HFSB_INIT;
        T_CHECK(hfsb_json_parse(line, NULL, &doc, NULL) == HFSB_OK);
        check_filter(
            hfsb_json_str(hfsb_json_get(doc.root, "text"), HFSB_LIT("")),
            hfsb_json_str(hfsb_json_get(doc.root, "result"), HFSB_LIT("?")));
        count++;
        hfsb_json_free(&doc);
    }
    T_CHECK(count == 200);
    hfsb_buf_free(&file);
}

static void filter_passes_the_utf8_stress_test(void) {
    unsigned long long seed = 17;
    hfsb_buf           file = HFSB_INIT, want = HFSB_INIT;
    model             *m = (model *)malloc(sizeof *m);
    int                round;
    if (!m) abort();
    if (!t_data_file("data/json/utf8/UTF-8-test.txt", &file)) {
        free(m);
        return;
    }
    model_run(m, hfsb_buf_str(&file));
    T_CHECK(hfsb_utf8_repair(hfsb_buf_str(&file), &want) == HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&want), hfsb_buf_str(&m->out)));
    for (round = 0; round < 20; round++)
        filter_random_cuts(&seed, hfsb_buf_str(&file), round < 10 ? 5 : 2000,
                           hfsb_buf_str(&want));
    hfsb_buf_free(&file);
    hfsb_buf_free(&want);
    hfsb_buf_free(&m->out);
    free(m);
}

/* ---- no memory ---- */

/* A failed write is repeated: when only one allocation fails the second try
   succeeds, and the result is the same as without a failure. */
static void filter_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    static const char *const pieces[] = {
        "first line that is long enough to make the buffers grow\n10%",
        "\xF0\x9F\x98", "\x80 20% and a longer text than before" E "[2",
        ("K\r30%, thirty\nthe end of it all, which needs more memory as well "
         "and yet some more of it\nand\xE2\x82")};
    hfsb_text_filter *f = hfsb_text_filter_open(&alloc);
    hfsb_buf          out = HFSB_INIT;
    size_t            i;
    bool              whole = f != NULL;
    out.alloc = alloc;
    for (i = 0; f && i < sizeof pieces / sizeof *pieces; i++) {
        size_t      was = out.len;
        hfsb_status st = hfsb_text_filter_write(f, hfsb_cstr(pieces[i]),
                                                &out);
        if (st != HFSB_OK) {
            T_CHECK(st == HFSB_NOMEM && out.len == was && heap->fail_at);
            hfsb_buf_truncate(&out, was);
            st = hfsb_text_filter_write(f, hfsb_cstr(pieces[i]), &out);
        }
        if (st != HFSB_OK) {
            T_CHECK(st == HFSB_NOMEM && out.len == was && heap->forever);
            whole = false;
            break;
        }
    }
    if (f && whole) {
        hfsb_status st = hfsb_text_filter_finish(f, &out);
        if (st != HFSB_OK) st = hfsb_text_filter_finish(f, &out);
        T_CHECK(st == HFSB_OK || heap->forever);
        whole = st == HFSB_OK;
    }
    if (whole)
        T_STR(out, "first line that is long enough to make the buffers grow\n"
                   "30%, thirty\n"
                   "the end of it all, which needs more memory as well and "
                   "yet some more of it\nand" BAD);
    T_CHECK(whole || heap->fail_at);
    hfsb_text_filter_close(f);
    hfsb_buf_free(&out);
}

static void each_allocation_fails_cleanly(void) {
    t_each_allocation_fails(filter_without_memory);
}

static void whole_texts_are_cleaned_in_one_call(void) {
    hfsb_buf out = HFSB_INIT;
    T_CHECK(hfsb_buf_append(&out, HFSB_LIT("> ")) == HFSB_OK);
    T_CHECK(hfsb_text_clean(HFSB_LIT("\033[1mbold\033[0m\r\n10%\r50%"),
                            &out) == HFSB_OK);
    T_STR(out, "> bold\n50%");
    out.max = 12;
    T_CHECK(hfsb_text_clean(HFSB_LIT("too long"), &out) == HFSB_LIMIT);
    T_STR(out, "> bold\n50%");
    hfsb_buf_free(&out);
}

static void clean_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_buf    out = HFSB_INIT;
    hfsb_status st;
    out.alloc = alloc;
    st = hfsb_text_clean(HFSB_LIT("one\ntwo\rthree\nfour"), &out);
    T_CHECK(st == HFSB_OK ? out.len == 14
                          : st == HFSB_NOMEM && !out.len && heap->fail_at);
    hfsb_buf_free(&out);
}

static void cleaning_fails_cleanly(void) {
    t_each_allocation_fails(clean_without_memory);
}

int main(void) {
    T_RUN(whole_texts_are_cleaned_in_one_call);
    T_RUN(cleaning_fails_cleanly);
    T_RUN(lines_end_at_lf_or_crlf);
    T_RUN(lines_are_numbered_from_one);
    T_RUN(filter_keeps_plain_text);
    T_RUN(filter_replaces_bad_bytes);
    T_RUN(filter_removes_escape_sequences);
    T_RUN(broken_sequences_keep_their_text);
    T_RUN(returns_and_backspaces_rewrite_the_line);
    T_RUN(erase_in_line_is_applied);
    T_RUN(moving_to_column_one_is_a_return);
    T_RUN(random_output_agrees_with_the_model);
    T_RUN(long_lines_write_their_start_early);
    T_RUN(an_endless_line_needs_bounded_memory);
    T_RUN(peek_shows_the_unfinished_line);
    T_RUN(full_buffer_leaves_the_filter_unchanged);
    T_RUN(filter_agrees_with_the_reference);
    T_RUN(filter_passes_the_utf8_stress_test);
    T_RUN(each_allocation_fails_cleanly);
    return T_END();
}
