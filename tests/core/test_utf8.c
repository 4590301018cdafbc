/* test_utf8.c - decoding, validating and repairing UTF-8. */
#include "../support/t.h"

/* ---- the oracle: Table 3-7 of the Unicode standard, row by row ---- */

typedef struct row {
    size_t        len;
    unsigned char low[4], high[4];
} row;

static const row rows[] = {
    {1, {0x00, 0, 0, 0}, {0x7F, 0, 0, 0}},
    {2, {0xC2, 0x80, 0, 0}, {0xDF, 0xBF, 0, 0}},
    {3, {0xE0, 0xA0, 0x80, 0}, {0xE0, 0xBF, 0xBF, 0}},
    {3, {0xE1, 0x80, 0x80, 0}, {0xEC, 0xBF, 0xBF, 0}},
    {3, {0xED, 0x80, 0x80, 0}, {0xED, 0x9F, 0xBF, 0}},
    {3, {0xEE, 0x80, 0x80, 0}, {0xEF, 0xBF, 0xBF, 0}},
    {4, {0xF0, 0x90, 0x80, 0x80}, {0xF0, 0xBF, 0xBF, 0xBF}},
    {4, {0xF1, 0x80, 0x80, 0x80}, {0xF3, 0xBF, 0xBF, 0xBF}},
    {4, {0xF4, 0x80, 0x80, 0x80}, {0xF4, 0x8F, 0xBF, 0xBF}}};

/* Length of the character or maximal subpart at p. */
static size_t oracle(const char *text, size_t left, bool *valid) {
    const unsigned char *p = (const unsigned char *)text;
    size_t best = 1, r, n;
    *valid = false;
    for (r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (n = 0; n < rows[r].len && n < left && p[n] >= rows[r].low[n] &&
                    p[n] <= rows[r].high[n];)
            n++;
        if (n == rows[r].len) *valid = true;
        if (n > best) best = n;
    }
    return best;
}

/* Every function against the oracle, on s. */
static void check_all(hfsb_str s) {
    size_t        at = 0, count = 0, first_bad = s.len;
    hfsb_buf      want = HFSB_INIT, got = HFSB_INIT;
    unsigned long code;
    bool          valid, good;
    while (at < s.len) {
        size_t n = oracle(s.ptr + at, s.len - at, &valid);
        T_CHECK(hfsb_utf8_step(s, at, &code, &good) == n && good == valid);
        T_CHECK(valid || code == 0xFFFD);
        T_CHECK(hfsb_utf8_offset(s, count) == at);
        if (!valid && first_bad == s.len) first_bad = at;
        T_CHECK(hfsb_buf_append(&want, valid
                                           ? hfsb_str_make(s.ptr + at, n)
                                           : HFSB_LIT("\xEF\xBF\xBD")) ==
                HFSB_OK);
        at += n;
        count++;
    }
    T_CHECK(hfsb_utf8_offset(s, count) == s.len);
    T_CHECK(hfsb_utf8_offset(s, HFSB_NPOS) == s.len);
    T_CHECK(hfsb_utf8_count(s) == count);
    T_CHECK(hfsb_utf8_validate(s) == first_bad);
    T_CHECK(hfsb_utf8_repair(s, &got) == HFSB_OK);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&got), hfsb_buf_str(&want)));
    T_CHECK(hfsb_utf8_validate(hfsb_buf_str(&got)) == got.len);
    hfsb_buf_free(&want);
    hfsb_buf_free(&got);
}

/* ---- single characters ---- */

static void every_scalar_value_round_trips(void) {
    unsigned long c, code = 0;
    char          text[4];
    bool          valid;
    size_t        wrong = 0;
    for (c = 0; c <= 0x10FFFF; c++) {
        size_t   n = hfsb_utf8_encode(c, text);
        hfsb_str s = hfsb_str_make(text, n);
        bool     surrogate = c >= 0xD800 && c <= 0xDFFF;
        if (hfsb_utf8_step(s, 0, &code, &valid) != n || !valid) wrong++;
        if (code != (surrogate ? 0xFFFD : c)) wrong++;
        if (n != (c < 0x80 ? 1u : c < 0x800 ? 2u : c < 0x10000 ? 3u : 4u))
            wrong++;
    }
    T_CHECK(wrong == 0);
    T_CHECK(hfsb_utf8_encode(0x110000, text) == 3);
    T_STR(hfsb_str_make(text, 3), "\xEF\xBF\xBD");
    T_CHECK(hfsb_utf8_encode(~0ul, text) == 3);
    T_STR(hfsb_str_make(text, 3), "\xEF\xBF\xBD");
}

static void maximal_subparts_are_replaced(void) {
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
        {"\xF0\x9F\x98x", "\xEF\xBF\xBDx"},
        {"\xF0\x9F\x98", "\xEF\xBF\xBD"},
        {"\xC0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xED\xA0\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xE0\x80\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xF4\x90\x80", "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
        {"\xE2\x82", "\xEF\xBF\xBD"},
        {"\xE2\x82\xE2\x82\xAC", "\xEF\xBF\xBD\xE2\x82\xAC"},
        /* the standard's own example, Table 3-11 */
        {"\x61\xF1\x80\x80\xE1\x80\xC2\x62\x80\x63\x80\xBF\x64",
         "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"
         "b\xEF\xBF\xBD" "c\xEF\xBF\xBD\xEF\xBF\xBD" "d"}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        hfsb_str s = t_exact(cases[i].in, strlen(cases[i].in));
        hfsb_buf out = HFSB_INIT;
        T_CHECK(hfsb_utf8_repair(s, &out) == HFSB_OK);
        t_str(__FILE__, __LINE__, out.ptr, out.len, cases[i].out,
              strlen(cases[i].out));
        hfsb_buf_free(&out);
        t_drop(s);
    }
}

static void short_sequences_agree_with_the_table(void) {
    static const unsigned char edge[] = {
        0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0,
        0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF, 0xF0,
        0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
    const size_t  n = sizeof edge;
    size_t        i, k, wrong = 0;
    unsigned long code;
    for (i = 0; i < n * n * n * n; i++) {
        size_t   rest = i, len;
        char     bytes[4];
        hfsb_str s;
        bool     valid, good;
        for (k = 0; k < 4; k++, rest /= n) bytes[k] = (char)edge[rest % n];
        for (len = 1; len <= 4; len++) {
            s = hfsb_str_make(bytes, len);
            if (hfsb_utf8_step(s, 0, &code, &good) !=
                    oracle(bytes, len, &valid) ||
                good != valid)
                wrong++;
            if (hfsb_utf8_step(s, 0, &code, NULL) !=
                oracle(bytes, len, &valid))
                wrong++;
        }
    }
    T_CHECK(wrong == 0);
}

/* ---- whole texts ---- */

static void validate_finds_a_bad_byte_anywhere(void) {
    char   text[80];
    size_t len, at;
    for (len = 0; len <= 70; len++)
        for (at = 0; at <= len; at++) {
            hfsb_str s;
            memset(text, 'a', sizeof text);
            text[at] = '\xFF';
            s = t_exact(text, len); /* at == len: no bad byte */
            check_all(s);
            t_drop(s);
            if (at + 2 > len) continue;
            memcpy(text + at, "\xC3\xA9", 2);
            s = t_exact(text, len);
            check_all(s);
            t_drop(s);
        }
}

/* Random bytes, biased towards characters and broken ones. */
static size_t random_text(unsigned long long *seed, char *text, size_t max) {
    static const char *const parts[] = {
        "a", "plain text ", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
        "\xF0\x9F\x98", "\xE2\x82", "\xC3", "\x80", "\xFF", "\xED\xA0\x80",
        "\xF4\x8F\xBF\xBF", "\xEF\xBF\xBD"};
    size_t len = 0;
    while (len + 16 < max && t_random(seed) % 20 != 0) {
        const char *part =
            parts[t_random(seed) % (sizeof parts / sizeof *parts)];
        memcpy(text + len, part, strlen(part));
        len += strlen(part);
    }
    return len;
}

static void random_texts_agree_with_the_table(void) {
    unsigned long long seed = 1;
    char               text[200];
    int                round;
    for (round = 0; round < 3000; round++) {
        hfsb_str s = t_exact(text, random_text(&seed, text, sizeof text));
        check_all(s);
        t_drop(s);
    }
}

static void empty_texts_are_valid(void) {
    hfsb_str s = hfsb_str_make(NULL, 0);
    hfsb_buf out = HFSB_INIT;
    T_CHECK(hfsb_utf8_validate(s) == 0 && hfsb_utf8_count(s) == 0);
    T_CHECK(hfsb_utf8_offset(s, 5) == 0);
    T_CHECK(hfsb_utf8_repair(s, &out) == HFSB_OK && out.len == 0);
    hfsb_buf_free(&out);
}

/* ---- in pieces ---- */

static void stream_piece(hfsb_utf8_stream *st, hfsb_str s, size_t from,
                         size_t to, bool last, hfsb_buf *out) {
    hfsb_str piece = t_exact(s.ptr ? s.ptr + from : "", to - from);
    T_CHECK(hfsb_utf8_stream_write(st, piece, last, out) == HFSB_OK);
    T_CHECK(st->len < 4 && (!last || st->len == 0));
    t_drop(piece);
}

static void check_cuts(hfsb_str s, size_t a, size_t b, hfsb_str want) {
    hfsb_utf8_stream st = HFSB_INIT;
    hfsb_buf         out = HFSB_INIT;
    stream_piece(&st, s, 0, a, false, &out);
    stream_piece(&st, s, a, b, false, &out);
    stream_piece(&st, s, b, s.len, true, &out);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&out), want));
    hfsb_buf_free(&out);
}

static void stream_ignores_how_the_input_is_cut(void) {
    unsigned long long seed = 7;
    char               text[48];
    int                round;
    for (round = 0; round < 200; round++) {
        hfsb_str s = hfsb_str_make(text, 0);
        hfsb_buf want = HFSB_INIT, out = HFSB_INIT;
        hfsb_utf8_stream st = HFSB_INIT;
        size_t           a, b;
        s.len = random_text(&seed, text, sizeof text);
        T_CHECK(hfsb_utf8_repair(s, &want) == HFSB_OK);
        for (a = 0; a <= s.len; a++)
            for (b = a; b <= s.len; b++)
                check_cuts(s, a, b, hfsb_buf_str(&want));
        for (a = 0; a < s.len; a++) stream_piece(&st, s, a, a + 1, false,
                                                 &out);
        stream_piece(&st, s, s.len, s.len, true, &out);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&out), hfsb_buf_str(&want)));
        hfsb_buf_free(&want);
        hfsb_buf_free(&out);
    }
}

static void stream_holds_back_only_incomplete_characters(void) {
    hfsb_utf8_stream st = HFSB_INIT;
    hfsb_buf         out = HFSB_INIT;
    T_CHECK(hfsb_utf8_stream_write(&st, HFSB_LIT("a\xF0\x9F\x98"), false,
                                   &out) == HFSB_OK);
    T_CHECK(st.len == 3);
    T_STR(out, "a");
    T_CHECK(hfsb_utf8_stream_write(&st, HFSB_LIT("\x80\xED\xA0"), false,
                                   &out) == HFSB_OK);
    T_CHECK(st.len == 0); /* ED A0 can not become a character */
    T_STR(out, "a\xF0\x9F\x98\x80\xEF\xBF\xBD\xEF\xBF\xBD");
    hfsb_buf_free(&out);
}

/* ---- failures ---- */

/* The bytes before the first that the table does not allow, in any cut. */
static void check_finds_the_bad_byte_in_any_cut(void) {
    static const struct {
        const char *text;
        size_t      good, open;
    } cases[] = {
        {"", 0, 0},
        {"abc", 3, 0},
        {"a\xc3\xa9" "b", 4, 0},
        {"a\xff" "b", 1, 0},
        {"a\x80", 1, 0},
        {"\xc0\x80", 0, 0},
        {"\xc3", 1, 1},
        {"\xe2\x82", 2, 2},
        {"\xf0\x9f\x98", 3, 3},
        {"\xf0\x9f\x98\x80\xe2", 5, 1},
        {"a\xe2\x28", 2, 1},
        {"\xe0\x80\x80", 1, 1},
        {"\xed\xa0\x80", 1, 1},
        {"\xf4\x90\x80\x80", 1, 1},
        {"\xf0\x9f\x98\xf0", 3, 3},
        {"\xe2\x82\xe2\x82\xac", 2, 2},
        {"0123456789abcdef0123456789abcdef\xc3\xa9\xc3(", 35, 1},
    };
    size_t i, step;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len = strlen(cases[i].text);
        for (step = 1; step <= len + 1; step++) {
            hfsb_utf8_stream stream = HFSB_INIT;
            size_t           at = 0, n, got = 0;
            do {
                n = len - at < step ? len - at : step;
                {
                    hfsb_str piece = t_exact(cases[i].text + at, n);
                    got = hfsbi_utf8_stream_check(&stream, piece);
                    t_drop(piece);
                }
                at += got;
            } while (got == n && at < len);
            T_CHECK(at == cases[i].good && stream.len == cases[i].open);
            if (at < len) /* it stays there */
                T_CHECK(!hfsbi_utf8_stream_check(
                    &stream, hfsb_str_make(cases[i].text + at, len - at)));
        }
    }
}

static void full_buffer_leaves_the_stream_unchanged(void) {
    hfsb_utf8_stream st = HFSB_INIT, before;
    hfsb_buf         out = HFSB_INIT;
    out.max = 6;
    T_CHECK(hfsb_buf_append(&out, HFSB_LIT("abc")) == HFSB_OK);
    T_CHECK(hfsb_utf8_repair(HFSB_LIT("x\xFF"), &out) == HFSB_LIMIT);
    T_STR(out, "abc");
    hfsb_buf_truncate(&out, out.len); /* forget the failure */
    T_CHECK(hfsb_utf8_stream_write(&st, HFSB_LIT("\xF0\x9F"), false,
                                   &out) == HFSB_OK);
    before = st;
    T_CHECK(hfsb_utf8_stream_write(&st, HFSB_LIT("\x98\x80z\xE2"), false,
                                   &out) == HFSB_LIMIT);
    T_CHECK(st.len == 2 && !memcmp(st.part, before.part, 2));
    T_STR(out, "abc");
    hfsb_buf_truncate(&out, out.len); /* forget the failure */
    T_CHECK(hfsb_utf8_stream_write(&st, HFSB_LIT(""), true, &out) ==
            HFSB_OK);
    T_STR(out, "abc\xEF\xBF\xBD");
    hfsb_buf_free(&out);
}

static void repair_without_memory(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_utf8_stream st = HFSB_INIT;
    hfsb_buf         out = HFSB_INIT;
    hfsb_status      status;
    char             text[300];
    memset(text, '\xFF', sizeof text);
    text[0] = '\x80';
    out.alloc = alloc;
    st.len = 1;
    st.part[0] = 0xC3;
    status = hfsb_utf8_stream_write(&st, hfsb_str_make(text, sizeof text),
                                    true, &out);
    if (!heap->fail_at) T_CHECK(status == HFSB_OK && out.len == 2 + 299 * 3);
    if (status != HFSB_OK)
        T_CHECK(status == HFSB_NOMEM && out.len == 0 && st.len == 1);
    status = hfsb_utf8_repair(hfsb_str_make(text, sizeof text), &out);
    if (!heap->fail_at) T_CHECK(status == HFSB_OK);
    T_CHECK(status == HFSB_OK || status == HFSB_NOMEM);
    T_CHECK(hfsb_utf8_validate(hfsb_buf_str(&out)) == out.len);
    hfsb_buf_free(&out);
}

static void each_allocation_fails_cleanly(void) {
    t_each_allocation_fails(repair_without_memory);
}

static void cuts_fall_between_characters(void) {
    hfsb_str s = HFSB_LIT("a\xE2\x82\xAC!");
    T_CHECK(hfsbi_utf8_floor(s, 0) == 0 && hfsbi_utf8_ceil(s, 0) == 0);
    T_CHECK(hfsbi_utf8_floor(s, 1) == 1 && hfsbi_utf8_ceil(s, 1) == 1);
    T_CHECK(hfsbi_utf8_floor(s, 2) == 1 && hfsbi_utf8_ceil(s, 2) == 4);
    T_CHECK(hfsbi_utf8_floor(s, 3) == 1 && hfsbi_utf8_ceil(s, 3) == 4);
    T_CHECK(hfsbi_utf8_floor(s, 4) == 4 && hfsbi_utf8_ceil(s, 4) == 4);
    T_CHECK(hfsbi_utf8_floor(s, 9) == 5 && hfsbi_utf8_ceil(s, 9) == 5);
}

int main(void) {
    T_RUN(cuts_fall_between_characters);
    T_RUN(every_scalar_value_round_trips);
    T_RUN(maximal_subparts_are_replaced);
    T_RUN(short_sequences_agree_with_the_table);
    T_RUN(validate_finds_a_bad_byte_anywhere);
    T_RUN(random_texts_agree_with_the_table);
    T_RUN(empty_texts_are_valid);
    T_RUN(stream_ignores_how_the_input_is_cut);
    T_RUN(stream_holds_back_only_incomplete_characters);
    T_RUN(check_finds_the_bad_byte_in_any_cut);
    T_RUN(full_buffer_leaves_the_stream_unchanged);
    T_RUN(each_allocation_fails_cleanly);
    return T_END();
}
