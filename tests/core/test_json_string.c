/* test_json_string.c - strings of JSON: escapes and UTF-8 at every place. */
#include "../support/t_json.h"

/* The units a string is made of, how each is written and what it means. */
static const struct {
    const char *raw, *decoded;
} units[] = {
    {"\\n", "\n"},
    {"\\\"", "\""},
    {"\\\\", "\\"},
    {"\\/", "/"},
    {"\\b", "\b"},
    {"\\f", "\f"},
    {"\\r", "\r"},
    {"\\t", "\t"},
    {"\\u0041", "A"},
    {"\\u00e9", "\xC3\xA9"},
    {"\\u20AC", "\xE2\x82\xAC"},
    {"\\ud83d\\uDE00", "\xF0\x9F\x98\x80"},
    {"\\u001f", "\x1F"},
    {"\xC3\xA9", "\xC3\xA9"},
    {"\xE2\x82\xAC", "\xE2\x82\xAC"},
    {"\xF0\x9F\x98\x80", "\xF0\x9F\x98\x80"},
    {"\xED\x9F\xBF", "\xED\x9F\xBF"},
    {"\xF4\x8F\xBF\xBF", "\xF4\x8F\xBF\xBF"},
    {"\x7F", "\x7F"},
    {"\xE2\x80\xA8", "\xE2\x80\xA8"},
};
#define UNITS (sizeof units / sizeof units[0])

/* The string, written as a tree, gives these bytes when read again. */
static bool reads_back(const value_t *string, hfsb_str want) {
    hfsb_buf out = HFSB_INIT;
    doc_t    doc = HFSB_INIT;
    bool     ok = hfsb_json_write(string, NULL, &out, NULL) == HFSB_OK &&
              parse_with(text_of(&out), NULL, &doc, NULL) == HFSB_OK &&
              hfsb_str_equal(hfsb_json_str(doc.root, HFSB_LIT("?")), want);
    hfsb_json_free(&doc);
    hfsb_buf_free(&out);
    return ok;
}

/* Parses ["raw"] and "raw", both ways, and compares with what it means. */
static void check_string(hfsb_str raw, hfsb_str want) {
    static const char *const around[][2] = {{"[\"", "\"]"}, {"\"", "\""}};
    int                      i;
    for (i = 0; i < 2; i++) {
        hfsb_buf       text = HFSB_INIT;
        doc_t          doc = HFSB_INIT;
        const value_t *v;
        hfsb_str       got;
        put(&text, around[i][0]);
        T_CHECK(hfsb_buf_append(&text, raw) == HFSB_OK);
        put(&text, around[i][1]);
        T_CHECK(parse_with(text_of(&text), NULL, &doc, NULL) == HFSB_OK);
        v = i ? doc.root : hfsb_json_at(doc.root, 0);
        got = hfsb_json_str(v, HFSB_LIT("?"));
        T_CHECK(hfsb_str_equal(got, want) && got.ptr[got.len] == '\0');
        T_CHECK(both_agree(text_of(&text), NULL));
        T_CHECK(reads_back(v, want));
        hfsb_json_free(&doc);
        hfsb_buf_free(&text);
    }
}

/* Each unit at each place of strings around the block sizes. */
static void json_decodes_strings_at_every_offset(void) {
    size_t before, after, u, i;
    for (before = 0; before < 36; before++)
        for (after = 0; after < 36; after += after < 4 ? 1 : 7)
            for (u = 0; u < UNITS; u++) {
                hfsb_buf raw = HFSB_INIT, want = HFSB_INIT;
                for (i = 0; i < before; i++) put(&raw, "x");
                put(&raw, units[u].raw);
                for (i = 0; i < after; i++) put(&raw, "y");
                for (i = 0; i < before; i++) put(&want, "x");
                put(&want, units[u].decoded);
                for (i = 0; i < after; i++) put(&want, "y");
                check_string(text_of(&raw), text_of(&want));
                hfsb_buf_free(&raw);
                hfsb_buf_free(&want);
            }
}

static void json_decodes_any_mixture(void) {
    unsigned long long state = 3;
    int                round, n;
    for (round = 0; round < (t_quick() ? 300 : 3000); round++) {
        hfsb_buf raw = HFSB_INIT, want = HFSB_INIT;
        for (n = (int)(t_random(&state) % 60); n > 0; n--) {
            size_t u = t_random(&state) % (2 * UNITS);
            put(&raw, u < UNITS ? units[u].raw : &"plain"[u % 5]);
            put(&want, u < UNITS ? units[u].decoded : &"plain"[u % 5]);
        }
        check_string(hfsb_buf_str(&raw), hfsb_buf_str(&want));
        hfsb_buf_free(&raw);
        hfsb_buf_free(&want);
    }
}

/* Accepts exactly the UTF-8 that the utf8 module calls valid, near the end of
   the text, far from it, after and before a character of three bytes. */
static void json_agrees_with_utf8_on_all_sequences(void) {
    static const unsigned char next[] = {0x22, 0x7F, 0x80, 0x8F, 0x90,
                                         0x9F, 0xA0, 0xBF, 0xC0};
    enum { NEAR_END, FAR, AFTER, BEFORE, PLACES };
    const size_t n = sizeof next;
    size_t       lead, i, place;
    for (lead = 0x80; lead < 0x100; lead++)
        for (i = 0; i < n * n * n; i++)
            for (place = 0; place < PLACES; place++) {
                char        text[40] = "\"";
                char       *at = text + (place == AFTER ? 4 : 1);
                size_t      len = place == NEAR_END ? 6 : 30;
                doc_t       doc = HFSB_INIT;
                hfsb_status st;
                bool        valid;
                memset(text + 1, 'x', sizeof text - 1);
                if (place == AFTER) memcpy(text + 1, "\xE3\x81\x82", 3);
                at[0] = (char)(unsigned char)lead;
                at[1] = (char)next[i % n];
                at[2] = (char)next[i / n % n];
                at[3] = (char)next[i / n / n];
                if (memchr(at, '"', 4)) continue;
                if (place == BEFORE) memcpy(at + 3, "\xE3\x81\x82", 3);
                text[len - 1] = '"';
                valid = hfsb_utf8_validate(hfsb_str_make(text, len)) == len;
                st = hfsb_json_parse(hfsb_str_make(text, len), NULL, &doc,
                                     NULL);
                T_CHECK(st == (valid ? HFSB_OK : HFSB_SYNTAX));
                hfsb_json_free(&doc);
            }
}

int main(void) {
    T_RUN(json_decodes_strings_at_every_offset);
    T_RUN(json_decodes_any_mixture);
    T_RUN(json_agrees_with_utf8_on_all_sequences);
    return T_END();
}
