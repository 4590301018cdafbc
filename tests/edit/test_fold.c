/* test_fold.c - folds, views and tables of lines by themselves. */
#include "../support/t_edit.h"

#ifdef HFSBI_SPLIT
static hfsbi_view make_view(const char *text, unsigned folds) {
    hfsbi_view view = HFSB_INIT;
    T_CHECK(hfsbi_view_build(&view, hfsb_cstr(text), folds) == HFSB_OK);
    return view;
}

static void views_put_every_line_between_two_newlines(void) {
    static const struct {
        const char *text;
        unsigned    folds;
        const char *want;
    } cases[] = {
        {"a", 0, "\na\n"},
        {"a\r\n", 0, "\na\n\n"},
        {" a \n\tb", HFSBI_FOLD_TRAIL, "\n a\n\tb\n"},
        {" a \n\tb", HFSBI_FOLD_TRAIL | HFSBI_FOLD_INDENT, "\na\nb\n"},
        {" a \n\tb\n", HFSBI_FOLD_TRAIL | HFSBI_FOLD_INDENT, "\na\nb\n"},
        {"a\rb\r", HFSBI_FOLD_CR | HFSBI_FOLD_INDENT, "\na\nb\n"},
        {" a  b\t c", HFSBI_FOLD_RUNS, "\n a b c\n"},
        {"\xE2\x80\x9C\xE2\x80\x94\xE2\x80\xA6", HFSBI_FOLD_LOOKS,
         "\n\"-...\n"},
        {"\xE2\x80\x94\xC2\xA0", HFSBI_FOLD_LOOKS | HFSBI_FOLD_DASHES,
         "\n-- \n"},
        {"\n a\n\n \t\r\nb \n\n",
         HFSBI_FOLD_TRAIL | HFSBI_FOLD_INDENT | HFSBI_FOLD_LINES,
         "\na\nb\n"},
        {"a\r\r \rb",
         HFSBI_FOLD_TRAIL | HFSBI_FOLD_INDENT | HFSBI_FOLD_LINES |
             HFSBI_FOLD_CR,
         "\na\nb\n"},
        {"\xC2\xA0\xE2\x80\x8B\na\n",
         HFSBI_FOLD_TRAIL | HFSBI_FOLD_INDENT | HFSBI_FOLD_LINES |
             HFSBI_FOLD_LOOKS,
         "\na\n"},
        {"a\xE2\x80\x8D\xC2\xAD\xEF\xB8\x8F" "b\xE2\x80\x8B",
         HFSBI_FOLD_JOINERS, "\nab\xE2\x80\x8B\n"},
        {"a\xE2\x81\xA0\xE2\x80\x8D", HFSBI_FOLD_LOOKS,
         "\na\xE2\x80\x8D\n"}};
    size_t i;
    for (i = 0; i < TE_COUNT(cases); i++) {
        hfsbi_view view = make_view(cases[i].text, cases[i].folds);
        T_CHECK(te_same(&view.text, hfsb_cstr(cases[i].want)));
        hfsbi_view_free(&view);
    }
}

static void views_map_back_to_the_original_bytes(void) {
    /* the view is "\n" "a" "\n" "..." "\n" */
    hfsbi_view view = make_view("  a \r\n\xE2\x80\xA6",
                                HFSBI_FOLD_TRAIL | HFSBI_FOLD_INDENT |
                                    HFSBI_FOLD_LOOKS);
    size_t pos;
    T_CHECK(hfsbi_view_before(&view, 1, &pos) && pos == 0);
    T_CHECK(hfsbi_view_after(&view, 1, &pos) && pos == 2);
    T_CHECK(hfsbi_view_before(&view, 2, &pos) && pos == 3);
    T_CHECK(hfsbi_view_after(&view, 2, &pos) && pos == 4);
    T_CHECK(hfsbi_view_before(&view, 3, &pos) && pos == 6);
    T_CHECK(!hfsbi_view_before(&view, 4, &pos)); /* inside the ellipsis */
    T_CHECK(!hfsbi_view_after(&view, 5, &pos));
    T_CHECK(hfsbi_view_before(&view, 6, &pos) && pos == 9);
    hfsbi_view_free(&view);
}

/* Character `code` in UTF-8; it takes two or three bytes. */
static void put_char(hfsb_buf *out, unsigned long code) {
    char bytes[3];
    bytes[0] = (char)(code < 0x800 ? 0xC0 | code >> 6 : 0xE0 | code >> 12);
    bytes[1] = (char)(0x80 | (code >> 6 & 0x3F));
    bytes[2] = (char)(0x80 | (code & 0x3F));
    if (code < 0x800) bytes[1] = bytes[2];
    te_append(out, hfsb_str_make(bytes, code < 0x800 ? 2 : 3));
}

static void look_alikes_become_ascii(void) {
    /* the first and the last of each range, and their neighbours; NULL: the
       character stays */
    static const struct {
        unsigned long code;
        const char   *want;
    } cases[] = {
        {0x9F, NULL},   {0xA0, " "},    {0xA1, NULL},   {0x1FFF, NULL},
        {0x2000, " "},  {0x200A, " "},  {0x200B, ""},   {0x200C, NULL},
        {0x200F, NULL}, {0x2010, "-"},  {0x2013, "-"},  {0x2014, "-"},
        {0x2015, "-"},  {0x2016, NULL}, {0x2017, NULL}, {0x2018, "'"},
        {0x201B, "'"},  {0x201C, "\""}, {0x201F, "\""}, {0x2020, NULL},
        {0x2025, NULL}, {0x2026, "..."}, {0x2027, NULL}, {0x202E, NULL},
        {0x202F, " "},  {0x2030, NULL}, {0x205E, NULL}, {0x205F, " "},
        {0x2060, ""},   {0x2061, NULL}, {0x2211, NULL}, {0x2212, "-"},
        {0x2213, NULL}, {0x2FFF, NULL}, {0x3000, " "},  {0x3001, NULL},
        {0xFEFE, NULL}, {0xFEFF, ""},   {0xFF00, NULL}};
    size_t i;
    for (i = 0; i < TE_COUNT(cases); i++) {
        hfsb_buf text = HFSB_INIT, out = HFSB_INIT;
        put_char(&text, cases[i].code);
        hfsbi_fold(hfsb_buf_str(&text), HFSBI_FOLD_LOOKS, &out);
        T_CHECK(te_same(&out, cases[i].want ? hfsb_cstr(cases[i].want)
                                            : hfsb_buf_str(&text)));
        hfsb_buf_free(&text);
        hfsb_buf_free(&out);
    }
}

/* As long as the text and two LFs: the memory is just enough. */
static void views_of_any_length_are_built(void) {
    size_t n;
    for (n = 0; n < 300; n++) {
        hfsb_buf   text = HFSB_INIT;
        hfsbi_view view;
        t_repeat(&text, "x", n);
        view = make_view(text.ptr ? text.ptr : "", 0);
        T_CHECK(view.text.len == n + 2 && view.text.ptr[n + 1] == '\n');
        T_CHECK(hfsb_str_count_byte(hfsb_buf_str(&view.text), 'x') == n);
        hfsbi_view_free(&view);
        T_CHECK(!view.changes && !view.text.ptr);
        T_CHECK(hfsbi_view_build(&view, HFSB_LIT(" a"), HFSBI_FOLD_INDENT) ==
                HFSB_OK);
        T_STR(view.text, "\na\n");
        hfsbi_view_free(&view);
        hfsb_buf_free(&text);
    }
}

/* Many changes: characters, blanks at both ends of lines, blank lines. */
static void build_views(hfsb_alloc alloc, const t_heap *heap) {
    static const struct {
        const char *part; /* 40 times */
        unsigned    folds;
        size_t      len; /* of the view */
    } cases[] = {
        {"\xE2\x80\x99", HFSBI_FOLD_LOOKS, 42},
        {" a \r\n", HFSBI_FOLD_TRAIL | HFSBI_FOLD_INDENT, 81},
        {" \r\n", HFSBI_FOLD_TRAIL | HFSBI_FOLD_INDENT | HFSBI_FOLD_LINES, 1}};
    size_t i;
    for (i = 0; i < TE_COUNT(cases); i++) {
        hfsb_buf    text = HFSB_INIT;
        hfsbi_view  view = HFSB_INIT;
        hfsb_status st;
        t_repeat(&text, cases[i].part, 40);
        view.text.alloc = alloc;
        st = hfsbi_view_build(&view, hfsb_buf_str(&text), cases[i].folds);
        T_CHECK(st == HFSB_OK || (heap->fail_at && st == HFSB_NOMEM));
        T_CHECK(st != HFSB_OK ||
                (view.count > 40 && view.text.len == cases[i].len));
        hfsbi_view_free(&view);
        hfsb_buf_free(&text);
    }
}

static void views_survive_each_failing_allocation(void) {
    t_each_allocation_fails(build_views);
}

static void invisible_characters_are_found(void) {
    /* the first and the last of each range, and their neighbours */
    static const struct {
        const char *text;
        bool        want;
    } cases[] = {
        {"", false}, {"plain", false}, {"caf\xC3\xA9 \xE2\x80\x99", false},
        {"\xC2\xAC", false}, {"a\xC2\xAD", true}, {"\xC2\xAE", false},
        {"\xE2\x80\x8A", false}, {"x\xE2\x80\x8B", true},
        {"\xE2\x80\x8C", true}, {"\xE2\x80\x8F", true},
        {"\xE2\x80\x90", false}, {"\xE2\x80\xA9", false},
        {"\xE2\x80\xAA", true}, {"\xE2\x80\xAE", true},
        {"\xE2\x80\xAF", false}, {"\xE2\x81\x9F", false},
        {"\xE2\x81\xA0", true}, {"\xE2\x81\xA1", true},
        {"\xE2\x81\xA9", true}, {"\xE2\x81\xAA", false},
        {"\xEF\xB7\xBF", false}, {"\xEF\xB8\x80", true},
        {"\xEF\xB8\x8F", true}, {"\xEF\xB8\x90", false},
        {"\xEF\xBB\xBF", true}, {"\xE2\x80", false}};
    size_t i;
    for (i = 0; i < TE_COUNT(cases); i++)
        T_CHECK(hfsbi_has_invisible(hfsb_cstr(cases[i].text)) ==
                cases[i].want);
}

/* Repetitive texts: the places are those of a search at every offset. */
static void occurrences_are_all_places_of_a_pattern(void) {
    unsigned long long seed = 4;
    size_t             round, i;
    for (round = 0; round < 20000; round++) {
        char              text[64], pattern[24];
        hfsbi_occurrences o = HFSB_INIT;
        size_t            n = te_below(&seed, sizeof text);
        size_t            m = 1 + te_below(&seed, sizeof pattern - 1);
        size_t            period = 1 + te_below(&seed, 6), next = 0;
        for (i = 0; i < n; i++)
            text[i] = (char)('a' + (i % period == 0) +
                             (te_below(&seed, 20) == 0));
        for (i = 0; i < m; i++) pattern[i] = (char)('a' + (i % period == 0));
        o.text = hfsb_str_make(text, n);
        o.pattern = hfsb_str_make(pattern, m);
        for (i = 0; i + m <= n; i++) {
            if (memcmp(text + i, pattern, m) != 0) continue;
            T_CHECK(hfsbi_occurrence_next(&o, next) == i);
            next = i + 1;
        }
        T_CHECK(hfsbi_occurrence_next(&o, next) == HFSB_NPOS);
    }
}
#endif

int main(void) {
#ifdef HFSBI_SPLIT
    T_RUN(views_put_every_line_between_two_newlines);
    T_RUN(views_map_back_to_the_original_bytes);
    T_RUN(look_alikes_become_ascii);
    T_RUN(views_of_any_length_are_built);
    T_RUN(views_survive_each_failing_allocation);
    T_RUN(invisible_characters_are_found);
    T_RUN(occurrences_are_all_places_of_a_pattern);
#endif
    return T_END();
}
