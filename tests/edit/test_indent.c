/* test_indent.c - what the indentations of old lines tell about new ones. */
#include "../support/t_edit.h"

#ifdef HFSBI_SPLIT
/* Appends an indentation: "4" is four spaces, "t" a tab, "t2" both. */
static void put_indent(hfsb_buf *out, hfsb_str code) {
    size_t i, n = 0;
    for (i = 0; i <= code.len; i++) {
        if (i < code.len && code.ptr[i] != 't') {
            n = n * 10 + (size_t)(code.ptr[i] - '0');
            continue;
        }
        for (; n; n--) te_append(out, HFSB_LIT(" "));
        if (i < code.len) te_append(out, HFSB_LIT("\t"));
    }
}

/* The next of some words. */
static bool next_word(hfsb_str *rest, hfsb_str *word) {
    size_t end;
    while (rest->len && rest->ptr[0] == ' ')
        *rest = hfsb_str_slice(*rest, 1, rest->len);
    end = hfsb_str_find_byte(*rest, ' ');
    *word = hfsb_str_slice(*rest, 0, end);
    *rest = hfsb_str_slice(*rest, word->len, rest->len);
    return word->len > 0;
}

typedef struct indent_case {
    const char *pairs; /* "4>t 8>tt": of the old lines and of the file's */
    const char *others; /* of other lines of the file; "-": a blank one */
    const char *news;   /* of the new lines; the last one is put */
    const char *far;    /* what it becomes; NULL: not told */
    const char *near;   /* next to a line that is off */
} indent_case;

#define MAX_LINES 80

typedef struct indent_texts {
    hfsb_buf       text; /* all indentations */
    hfsb_buf       file, news;
    hfsbi_old_line lines[MAX_LINES];
    size_t         count;
    hfsb_str       put; /* the last of news */
} indent_texts;

static hfsb_str add_indent(indent_texts *t, hfsb_str code) {
    size_t   mark = t->text.len;
    hfsb_str none = HFSB_INIT;
    if (hfsb_str_equal(code, HFSB_LIT("-"))) return none;
    put_indent(&t->text, code);
    return hfsb_str_slice(hfsb_buf_str(&t->text), mark, HFSB_NPOS);
}

static void read_case(const indent_case *c, indent_texts *t) {
    hfsb_str rest = hfsb_cstr(c->pairs), word;
    memset(t, 0, sizeof *t);
    T_CHECK(hfsb_buf_reserve(&t->text, 10000) == HFSB_OK);
    while (next_word(&rest, &word) && t->count < MAX_LINES) {
        size_t   at = hfsb_str_find_byte(word, '>');
        hfsb_str file = hfsb_str_slice(word, at + 1, word.len);
        t->lines[t->count].indent =
            add_indent(t, hfsb_str_slice(word, 0, at));
        t->lines[t->count++].file_indent = add_indent(t, file);
        put_indent(&t->file, file);
        te_append(&t->file, HFSB_LIT("x\n"));
    }
    for (rest = hfsb_cstr(c->others); next_word(&rest, &word);) {
        bool blank = hfsb_str_equal(word, HFSB_LIT("-"));
        if (!blank) put_indent(&t->file, word);
        te_append(&t->file, blank ? HFSB_LIT("\n") : HFSB_LIT("x\n"));
    }
    for (rest = hfsb_cstr(c->news); next_word(&rest, &word);) {
        t->put = add_indent(t, word);
        put_indent(&t->news, word);
        te_append(&t->news, HFSB_LIT("y\n"));
    }
}

static bool puts_as(const indent_case *c, indent_texts *t, bool near_off) {
    const char        *code = near_off ? c->near : c->far;
    hfsbi_edit_text    file =
        hfsbi_edit_text_make(hfsb_buf_str(&t->file), false);
    hfsbi_lines        news = HFSB_INIT;
    hfsbi_indent_map   map;
    hfsb_alloc         alloc = HFSB_INIT;
    hfsb_buf           out = HFSB_INIT, want = HFSB_INIT;
    unsigned long long steps = 0;
    bool               told, ok;
    T_CHECK(hfsbi_lines_split(&alloc, hfsb_buf_str(&t->news), &news) ==
            HFSB_OK);
    memset(&map, 0x5A, sizeof map);
    hfsbi_indent_map_make(&map, t->lines, t->count, &news, 0, &file, &steps);
    told = hfsbi_indent_put(&map, t->put, near_off, &out);
    if (code) put_indent(&want, hfsb_cstr(code));
    ok = told == (code != NULL) && te_same(&out, hfsb_buf_str(&want));
    if (!ok)
        printf("  %s, new %s%s: rule %d, %zu blanks%s\n", c->pairs, c->news,
               near_off ? " (near)" : "", (int)map.rule, out.len,
               told ? "" : ", not told");
    hfsbi_lines_free(&alloc, &news);
    hfsb_buf_free(&out);
    hfsb_buf_free(&want);
    return ok;
}

static void check_indents(const indent_case *list, size_t count) {
    size_t i;
    for (i = 0; i < count; i++) {
        indent_texts t;
        read_case(list + i, &t);
        T_CHECK(puts_as(list + i, &t, false));
        T_CHECK(puts_as(list + i, &t, true));
        hfsb_buf_free(&t.text);
        hfsb_buf_free(&t.file);
        hfsb_buf_free(&t.news);
    }
}

static void the_same_indentation_is_absolute(void) {
    static const indent_case list[] = {
        {"4>4 8>8", "", "4", "4", "4"},
        {"4>4 ->0 8>8", "", "2", "2", "2"},
        {"4>4", "", "0", "0", "0"},
        {"4>4", "", "t", "t", "t"},
    };
    check_indents(list, TE_COUNT(list));
}

static void a_prefix_is_added_or_removed(void) {
    static const indent_case list[] = {
        {"0>4 4>8", "", "0 4", "8", "8"},
        {"0>4 4>8", "", "0 8", "12", "12"},
        {"0>4 4>8", "", "4 8", NULL, NULL},
        {"0>4 4>8", "", "8 4", "8", "8"},
        {"0>t", "", "0 t", "tt", "tt"},
        {"0>t", "", "0 4", NULL, NULL},
        {"0>4", "", "0 t", NULL, NULL},
        {"4>0 8>4", "", "4 12", "8", "8"},
        {"4>0 8>4", "", "4 2", NULL, NULL},
        {"4>0 8>4", "", "8 12", NULL, NULL},
        {"t>0 tt>t", "", "t ttt", "tt", "tt"},
        {"2t>t", "", "2t 2tt", "tt", "tt"},
        {"2t>t", "", "2t t2", NULL, NULL},
        /* or other units? */
        {"4>2", "0 2", "4 8", NULL, NULL},
        {"4>2", "0 2", "4 6", "4", "4"},
        {"4>2", "0 2", "4", "2", "2"},
        {"8>4", "0 4", "8 12", "8", "8"},
        {"8>4", "0 4", "8 16", NULL, NULL},
        {"8>4", "0 2", "8 12", NULL, NULL},
        {"8>4", "0 2", "8 10", "6", "6"},
        {"2>4", "0 4", "2 4", NULL, NULL},
        {"2>4", "0 4", "2 3", "5", "5"},
        {"4>8", "0 4", "4 8", NULL, NULL},
        {"4>8 8>12", "0 4", "4 12", "16", "16"},
        {"0>4", "0 4", "0 4", "8", "8"},
        {"->0 4>2", "0 2", "4 8", NULL, NULL},
    };
    check_indents(list, TE_COUNT(list));
}

static void levels_of_one_unit_become_those_of_another(void) {
    static const indent_case list[] = {
        {"4>t 8>tt", "", "4 12", "ttt", "ttt"},
        {"4>t 8>tt", "", "0", "0", "0"},
        {"4>t 8>tt", "", "2", NULL, NULL},
        {"4>t 8>tt", "", "tt", "tt", "tt"},
        {"4>t 8>tt", "", "t2", NULL, NULL},
        {"8>tt", "", "8 4", "t", "t"},
        {"3>t 6>tt", "", "9", "ttt", "ttt"},
        {"8>t 16>tt", "", "24", "ttt", "ttt"},
        {"t>4 tt>8", "", "ttt", "12", "12"},
        {"t>3", "", "tt", "6", "6"},
        {"t>2", "", "0", "0", "0"},
        {"t>2", "", "6", "6", "6"},
        /* eight spaces may be two levels */
        {"t>8", "", "t 0", NULL, NULL},
        {"t>8", "", "t tt", "16", "16"},
        {"0>0 t>8", "", "tt", "16", "16"},
        /* and a shift */
        {"0>t 2>tt", "", "0 4", "ttt", "ttt"},
        {"0>t 2>tt", "", "2 4", NULL, NULL},
        {"0>t 2>tt", "", "2", "tt", "tt"},
        {"4>0 8>t", "", "4 12", "tt", "tt"},
        {"4>0 8>t", "", "12 0", NULL, NULL},
        {"2>8 4>12", "0 4", "2 6", "16", "16"},
        /* spaces for spaces */
        {"0>0 2>4 4>8", "0", "6", "12", "12"},
        {"0>0 8>4 8>4", "0", "16", "8", "8"},
        {"0>0 8>4 8>4", "0", "4", NULL, NULL},
        {"0>0 8>4 8>4", "0 2", "4", "2", "2"},
        {"0>0 4>2 8>4", "0", "12", "6", "6"},
        /* seen on one line only: a slip? */
        {"0>0 2>4", "0", "4", NULL, NULL},
        {"0>0 2>4", "0", "8", NULL, NULL},
        {"0>0 2>4", "0", "6", "12", "12"},
        {"0>0 2>4", "0", "12", "24", "24"},
        {"0>0 2>4", "0", "2", "4", "4"},
        {"0>0 2>4", "0", "0", "0", "0"},
        {"0>0 2>4", "0 2", "2", NULL, NULL},
        {"0>0 4>2", "0", "8", "4", "4"},
        {"0>0 4>2", "0", "4", NULL, NULL},
        {"0>0 4>8", "0 4", "4", NULL, NULL},
        {"0>0 4>8 4>8", "0 4", "4", "8", "8"},
        {"0>0 2>4 2>4", "0", "4", "8", "8"},
        {"2>4 0>0", "0 2", "2", NULL, NULL},
        {"2>4 0>0", "0", "8", NULL, NULL},
        {"8>4 0>0", "0", "8", NULL, NULL},
    };
    check_indents(list, TE_COUNT(list));
}

static void mixed_lines_leave_the_rest_as_it_is(void) {
    static const indent_case list[] = {
        {"t>t 4>t", "", "tt", "tt", "tt"},
        {"t>t 4>t", "", "4", "t", "t"},
        {"t>t 4>t", "", "8", "tt", "tt"},
        {"t>t 4>t", "", "0", "0", "0"},
        {"t>t 4>t", "", "t2", NULL, NULL},
        {"t>t 4>t", "", "6", NULL, NULL},
        {"t>t 4>t", "", "16", "tttt", "tttt"},
        {"t>t 4>t", "", "20", NULL, NULL},
        {"t>t 4>t 8>tt", "", "20", "ttttt", "ttttt"},
        {"t>t 2>t", "", "4", "tt", "tt"},
        {"4>4 t>4", "", "tt", "8", "8"},
        {"4>4 t>4", "", "8", "8", "8"},
        {"0>0 t>t 4>t", "", "8", "tt", "tt"},
        /* spaces that became tabs, and spaces that did not */
        {"t>t 4>t 4>4", "", "4", NULL, NULL},
        {"t>t 4>t 4>4", "", "8", NULL, NULL},
        {"t>t 4>t 4>4", "", "tt", "tt", "tt"},
        /* two units at once */
        {"t>t 4>t 2>t", "", "4", NULL, NULL},
        /* one line off, by a blank or two, or by a level */
        {"4>4 4>4 6>4", "0 4", "6", "6", NULL},
        {"4>4 4>4 6>4", "0 4", "8", "8", "8"},
        {"4>4 4>4 6>4", "0 4", "4", "4", "4"},
        {"4>4 4>4 8>4", "0 4", "8", "8", NULL},
        {"4>4 8>8 4>8", "0 4", "4", "4", NULL},
        {"4>4 8>8 4>9 8>8", "0 4", "4", "4", "4"},
        {"4>4 8>8 4>9 8>8", "0 4 5 - 5 4 0", "4", "4", "4"},
        {"4>4 8>8 4>13 8>8", "0 4", "4", "4", "4"},
        {"4>4 8>8 4>67 8>8", "0 4", "4", "4", "4"},
        {"4>4 8>8 4>68 8>8", "0 4", "4", "4", NULL},
        {"4>4 8>8 4>12", "0 8", "4", "4", NULL},
        {"2>2 4>4 6>6 4>8", "", "4", "4", NULL},
        {"4>4 5>4", "0 4", "8", "8", "8"},
        {"t>t 1>0", "", "tt", "tt", "tt"},
        {"t>t 4>4 7>4", "0 4", "tt", "tt", "tt"},
        {"4>4 8>4", "0 4", "8", NULL, NULL},
        {"4>4 8>4", "0 4", "4", NULL, NULL},
        {"4>4 ->0 8>4", "0 4", "4", NULL, NULL},
        {"t1>t", "", "t1", "t", "t"},
        {"0>0 4>4 0>4", "", "0", NULL, NULL},
        {"0>0 0>0 5>4", "", "8", NULL, NULL},
        {"0>0 0>0 5>4", "", "0", "0", "0"},
        {"t>t t>t ttt>t", "", "ttt", "ttt", NULL},
        {"t>t t>t ttt>t", "", "tt", "tt", "tt"},
        {"t>t t>t ttt>t", "", "4", NULL, NULL},
        {"8>8 8>8 10>12", "0 4", "4", "4", "4"},
        /* two lines off */
        {"4>4 4>4 6>4 7>4", "", "4", NULL, NULL},
        {"4>4 12>8 12>8", "0 4", "8", NULL, NULL},
        {"4>4 12>8 12>8", "0 4", "12", NULL, NULL},
        {"4>4 12>8 12>8", "0 4", "4", "4", "4"},
        {"4>4 12>8 12>8", "0 2", "12", NULL, NULL},
        {"t>t 4>4 12>8 12>8", "0 4", "12", NULL, NULL},
        /* each became another, whatever the rule */
        {"0>1 2>4 4>9", "", "2", "4", "4"},
        {"0>1 2>4 4>9", "", "6", NULL, NULL},
        {"t>9 1>10", "", "t", NULL, NULL},
        {"0>9 2>4", "", "2", NULL, NULL},
        {"2>4 0>9", "", "2", NULL, NULL},
        {"0>4 0>9 2>10", "", "2", NULL, NULL},
    };
    check_indents(list, TE_COUNT(list));
}

static void too_many_indentations_are_not_looked_up(void) {
    size_t count, i;
    for (count = 64; count <= 65; count++) {
        hfsb_buf    pairs = HFSB_INIT;
        indent_case c = HFSB_INIT;
        for (i = 0; i < count; i++)
            T_CHECK(hfsb_buf_printf(&pairs, "%zu>%zu ", i, i + 1 + i / 3) ==
                    HFSB_OK);
        c.pairs = pairs.ptr;
        c.others = "";
        c.news = "3";
        c.far = c.near = count == 64 ? "5" : NULL;
        check_indents(&c, 1);
        hfsb_buf_free(&pairs);
    }
}

static void texts_indented_apart_are_noticed(void) {
    static const struct {
        const char *old_text, *new_text;
        size_t      line;
    } list[] = {
        {"a\nb\n", "a\nc\n", HFSB_NPOS},
        {"a\nb\n", "  a\n  b\nc\n", 0},
        {"a\nb\n", "\n  a\n  b\nc\n", 1},
        {"a\nb\n", "    x\n  y\n  a\n", 2},
        {"q\na\nb\n", "q\n y\n  a\n", HFSB_NPOS},
        {"a\nb\n", "    x\n y\n  a\n", 0},
        {"a\nb\n", "if\n\n  a\n  b\n", HFSB_NPOS},
        {"if\n  a\nb\n", "a\nb\n", HFSB_NPOS},
        {"\n  a\n}\nc\n", "a\n", 0},
        {"    x\n  a\nc\n", "a\nc\n", 0},
        {"    x\n a\n\n  b\nc\n", "b\nc\n", HFSB_NPOS},
        {"x\n  a\n", "x\na\n", HFSB_NPOS},
        /* nothing shared: as deep as before, or deeper */
        {"a\nb\n", "x\n  y\n", HFSB_NPOS},
        {"a,\nb,\n", "  x,\n} y\n", 0},
        {"\n  a\n", "\n    x\n", 1},
        {"\n  a\n", "\n  x\n", HFSB_NPOS},
        {"}\n", "  a\n}\n", HFSB_NPOS},
        {"a\n  }\n", "  x\n}\n", 0},
        {"a\n", "", HFSB_NPOS},
    };
    hfsb_alloc alloc = HFSB_INIT;
    size_t     i;
    for (i = 0; i < TE_COUNT(list); i++) {
        hfsbi_lines olds = HFSB_INIT, news = HFSB_INIT;
        size_t      line = 77;
        T_CHECK(hfsbi_lines_split(&alloc, hfsb_cstr(list[i].old_text),
                                  &olds) == HFSB_OK &&
                hfsbi_lines_split(&alloc, hfsb_cstr(list[i].new_text),
                                  &news) == HFSB_OK &&
                hfsbi_indent_shifted(&alloc, &olds, &news, 0, &line) ==
                    HFSB_OK);
        T_CHECK(line == list[i].line);
        if (line != list[i].line) printf("  case %zu: %zu\n", i, line);
        hfsbi_lines_free(&alloc, &olds);
        hfsbi_lines_free(&alloc, &news);
    }
}
#endif

int main(void) {
#ifdef HFSBI_SPLIT
    T_RUN(the_same_indentation_is_absolute);
    T_RUN(a_prefix_is_added_or_removed);
    T_RUN(levels_of_one_unit_become_those_of_another);
    T_RUN(mixed_lines_leave_the_rest_as_it_is);
    T_RUN(too_many_indentations_are_not_looked_up);
    T_RUN(texts_indented_apart_are_noticed);
#endif
    return T_END();
}
