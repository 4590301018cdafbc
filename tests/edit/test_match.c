/* test_match.c - the ladder by itself: where an old text is found, by which
   rung, and how much of the file is folded for that. */
#include "../support/t_edit.h"

#ifdef HFSBI_SPLIT
#define APOS     "\xE2\x80\x99"
#define ELLIPSIS "\xE2\x80\xA6"
#define EM_DASH  "\xE2\x80\x94"
#define NBSP     "\xC2\xA0"
#define ZWSP     "\xE2\x80\x8B"
#define ZWJ      "\xE2\x80\x8D"

enum {
    ANY_RUNG = HFSBI_MATCH_EXACT | HFSBI_MATCH_LOOSE,
    HIDDEN_TOO = ANY_RUNG | HFSBI_MATCH_HIDDEN
};

static hfsbi_matches find(hfsb_alloc alloc, hfsb_str content,
                          hfsb_str old_text, unsigned rungs) {
    hfsbi_edit_text file = hfsbi_edit_text_make(content, false);
    hfsbi_matches   found;
    hfsbi_edit_text_scan(&file);
    T_CHECK(hfsbi_match_find(&alloc, &file, old_text, rungs, &found) ==
            HFSB_OK);
    return found;
}

/* The content with each match in angle brackets. After a match stands "+" if
   another one starts in it, "." if it lacks the last newline of old_text, and
   ":" if it lacks the blank line at its end. */
static void show_matches(hfsb_str content, const hfsbi_matches *found,
                         hfsb_buf *out) {
    size_t i, pos = 0;
    for (i = 0; i < found->count; i++) {
        const hfsbi_match *m = found->items + i;
        te_append(out, hfsb_str_slice(content, pos, m->start));
        te_append(out, HFSB_LIT("<"));
        te_append(out, hfsb_str_slice(content, m->start, m->end));
        te_append(out, HFSB_LIT(">"));
        if (m->overlaps) te_append(out, HFSB_LIT("+"));
        if (m->lacks_newline) te_append(out, HFSB_LIT("."));
        if (m->lacks_blank) te_append(out, HFSB_LIT(":"));
        pos = m->end;
    }
    te_append(out, hfsb_str_slice(content, pos, content.len));
}

typedef struct match_case {
    const char *content, *old_text;
    hfsbi_rung  rung; /* HFSBI_RUNG_NONE: not found */
    const char *places;
} match_case;

static void check_matches(const match_case *list, size_t count,
                          unsigned rungs) {
    hfsb_alloc alloc = HFSB_INIT;
    size_t     i;
    for (i = 0; i < count; i++) {
        hfsb_str      content = hfsb_cstr(list[i].content);
        hfsb_str      old_text = hfsb_cstr(list[i].old_text);
        hfsb_str      text = t_exact(content.ptr, content.len);
        hfsb_str      old_copy = t_exact(old_text.ptr, old_text.len);
        hfsbi_matches found = find(alloc, text, old_copy, rungs);
        hfsb_buf      places = HFSB_INIT;
        bool          ok;
        show_matches(text, &found, &places);
        ok = (list[i].rung ? found.rung == list[i].rung : !found.count) &&
             te_same(&places, hfsb_cstr(list[i].places));
        T_CHECK(ok);
        if (!ok)
            printf("  case %zu: rung %d\n  is   \"%s\"\n  want \"%s\"\n", i,
                   (int)found.rung, places.ptr, list[i].places);
        hfsb_buf_free(&places);
        hfsbi_matches_free(&alloc, &found);
        T_CHECK(!found.items && !found.count && !found.cap);
        t_drop(text);
        t_drop(old_copy);
    }
}

static void exact_matches_are_the_bytes_of_old_text(void) {
    static const match_case list[] = {
        {"a b a\n", "a", HFSBI_RUNG_EXACT, "<a> b <a>\n"},
        {"a\nb\nc\n", "b\n", HFSBI_RUNG_EXACT, "a\n<b\n>c\n"},
        {"a\r\nb\r\nc\r\n", "a\nb\n", HFSBI_RUNG_EXACT,
         "<a\r\nb\r\n>c\r\n"},
        {"a\r\nb\r\nc\r\n", "b", HFSBI_RUNG_EXACT, "a\r\n<b>\r\nc\r\n"},
        {"a\rb\rc\r", "a\nb\n", HFSBI_RUNG_EXACT, "<a\rb\r>c\r"},
        {"a\rb\n", "a\rb", HFSBI_RUNG_EXACT, "<a\rb>\n"},
        {"a\r\n", "a\r", HFSBI_RUNG_EXACT, "<a\r>\n"},
        {"a\r\nx a\ry\n", "a\r", HFSBI_RUNG_EXACT, "a\r\nx <a\r>y\n"},
        {"x\r\n\r\ny\r\n", "\n\n", HFSBI_RUNG_EXACT, "x<\r\n\r\n>y\r\n"},
        {"  \n  \n", "  \n", HFSBI_RUNG_EXACT, "<  \n><  \n>"},
        {"a\tb\n", "\t", HFSBI_RUNG_EXACT, "a<\t>b\n"},
        {"a\nb\n", "  ", HFSBI_RUNG_NONE, "a\nb\n"},
        {"a\nb\n", "\t\n", HFSBI_RUNG_NONE, "a\nb\n"},
        {"a", "\n", HFSBI_RUNG_NONE, "a"},
        {"a\r\rb", "\n", HFSBI_RUNG_EXACT, "a<\r><\r>b"},
    };
    check_matches(list, TE_COUNT(list), ANY_RUNG);
}

static void matches_that_overlap_are_noted(void) {
    static const match_case list[] = {
        {"aaa", "aa", HFSBI_RUNG_EXACT, "<aa>+a"},
        {"aaaa", "aa", HFSBI_RUNG_EXACT, "<aa>+<aa>"},
        {"aaaaa aa", "aaa", HFSBI_RUNG_EXACT, "<aaa>+aa aa"},
        {"abababab", "abab", HFSBI_RUNG_EXACT, "<abab>+<abab>"},
        {"aabaabaa x aabaa", "aabaa", HFSBI_RUNG_EXACT,
         "<aabaa>+baa x <aabaa>"},
        {"a\na\na\na\n", "a\na\n", HFSBI_RUNG_EXACT,
         "<a\na\n>+<a\na\n>"},
        /* lines that match after folding share only a line end */
        {"\ta\n\ta\n\ta\n", "  a\n  a\n", HFSBI_RUNG_INDENT,
         "<\ta\n\ta\n>+\ta\n"},
        {"\ta\n\ta\n", "  a\n", HFSBI_RUNG_INDENT, "<\ta\n><\ta\n>"},
        {"\ta\n\ta\n", "  a", HFSBI_RUNG_INDENT, "<\ta>\n<\ta>\n"},
        {"a\n\na\n\na\n", "a\na\n", HFSBI_RUNG_LINES,
         "<a\n\na\n>+\na\n"},
        {"a \na \na \n", "a\na\n", HFSBI_RUNG_TRAIL,
         "<a \na \n>+a \n"},
        {"a \na \n", "a\t\n", HFSBI_RUNG_TRAIL, "<a \n><a \n>"},
        {"a\na\nb\n", "a\t", HFSBI_RUNG_TRAIL, "<a>\n<a>\nb\n"},
        {"x x\nb\n", "x  x", HFSBI_RUNG_RUNS, "<x x>\nb\n"},
        {ELLIPSIS ELLIPSIS ELLIPSIS "\n", "......", HFSBI_RUNG_LOOKS,
         "<" ELLIPSIS ELLIPSIS ">+" ELLIPSIS "\n"},
    };
    check_matches(list, TE_COUNT(list), ANY_RUNG);
}

static void matches_at_the_end_may_lack_a_newline(void) {
    static const match_case list[] = {
        {"a\nb", "b\n", HFSBI_RUNG_EOF, "a\n<b>."},
        {"a\nb\n", "b\n\n", HFSBI_RUNG_EOF, "a\n<b\n>:"},
        {"a\nb", "\nb\n", HFSBI_RUNG_EOF, "a<\nb>."},
        {"a\nb\n", "\nb\n\n", HFSBI_RUNG_EDGES, "a\n<b\n>"},
        {"a\r\nb", "a\nb\n", HFSBI_RUNG_EOF, "<a\r\nb>."},
        {"a\r\nb\r\n", "b\n\n", HFSBI_RUNG_EOF, "a\r\n<b\r\n>:"},
        {"a\rb", "a\nb\n", HFSBI_RUNG_EOF, "<a\rb>."},
        {"a\rb\r", "b\n\n", HFSBI_RUNG_EOF, "a\r<b\r>:"},
        {"a\nxb", "b\n", HFSBI_RUNG_EOF, "a\nx<b>."},
        {"b\nb", "b\n", HFSBI_RUNG_EXACT, "<b\n>b"},
        {"b \nb", "b\n", HFSBI_RUNG_EOF, "b \n<b>."},
        {"b \nb ", "b\n", HFSBI_RUNG_TRAIL, "<b \n>b "},
        {"a\nb ", "b\n", HFSBI_RUNG_TRAIL, "a\n<b >."},
        {"a\nb", "b\n  ", HFSBI_RUNG_TRAIL, "a\n<b>."},
        {"a\nb \n", "b\n\n", HFSBI_RUNG_TRAIL, "a\n<b \n>:"},
        {"a\nit" APOS "s", "it's\n", HFSBI_RUNG_LOOKS,
         "a\n<it" APOS "s>."},
        {"a\nb  c", "b c\n", HFSBI_RUNG_RUNS, "a\n<b  c>."},
        {"a\n\tb", "  b\n", HFSBI_RUNG_INDENT, "a\n<\tb>."},
        {"a\n\tb", "  b", HFSBI_RUNG_INDENT, "a\n<\tb>"},
        {"\tb\na\n", "  b\n", HFSBI_RUNG_INDENT, "<\tb\n>a\n"},
        {"\tb\n\tb", "  b\n", HFSBI_RUNG_INDENT, "<\tb\n><\tb>."},
        {"a\n\nb", "a\nb\n", HFSBI_RUNG_LINES, "<a\n\nb>."},
        {"a\n\nb", "a\nb", HFSBI_RUNG_LINES, "<a\n\nb>"},
        /* the first line is a line: nothing may stand before it */
        {"x \nb ", " \nb\n", HFSBI_RUNG_EDGES, "x \n<b >."},
        {"x\n \nb ", "\t\nb\n", HFSBI_RUNG_TRAIL, "x\n< \nb >."},
        /* half of an ellipsis is no match */
        {"a" ELLIPSIS, ".\n", HFSBI_RUNG_NONE, "a" ELLIPSIS},
        {"a" ELLIPSIS, "a...\n", HFSBI_RUNG_LOOKS, "<a" ELLIPSIS ">."},
    };
    check_matches(list, TE_COUNT(list), ANY_RUNG);
}

static void matches_start_and_end_between_characters(void) {
    static const match_case list[] = {
        {"a" ELLIPSIS "b\n", "a...", HFSBI_RUNG_LOOKS,
         "<a" ELLIPSIS ">b\n"},
        {"a" ELLIPSIS "b\n", "..b", HFSBI_RUNG_NONE, "a" ELLIPSIS "b\n"},
        {"a" ELLIPSIS "b\n", "a..", HFSBI_RUNG_NONE, "a" ELLIPSIS "b\n"},
        {"..." ELLIPSIS "\n", "....", HFSBI_RUNG_LOOKS,
         "..<." ELLIPSIS ">\n"},
        {"x" ELLIPSIS ".\n", "....", HFSBI_RUNG_LOOKS,
         "x<" ELLIPSIS ".>\n"},
        {"a" EM_DASH "b\n", "a--", HFSBI_RUNG_LOOKS,
         "<a" EM_DASH ">b\n"},
        /* dots may be an ellipsis wherever they stand */
        {ELLIPSIS "\n", "...", HFSBI_RUNG_LOOKS, "<" ELLIPSIS ">\n"},
        {"- " ELLIPSIS "\n", "- ...", HFSBI_RUNG_LOOKS,
         "<- " ELLIPSIS ">\n"},
        {ELLIPSIS " -\n", "... -", HFSBI_RUNG_LOOKS,
         "<" ELLIPSIS " ->\n"},
        {"- " ELLIPSIS "-\n", "...-", HFSBI_RUNG_LOOKS,
         "- <" ELLIPSIS "->\n"},
        {"a" ELLIPSIS "b." APOS "\n", "a...b.'", HFSBI_RUNG_LOOKS,
         "<a" ELLIPSIS "b." APOS ">\n"},
        /* invisible characters next to a match stay outside */
        {"x" ZWSP "it" APOS "s" ZWSP "y\n", "it's", HFSBI_RUNG_LOOKS,
         "x" ZWSP "<it" APOS "s>" ZWSP "y\n"},
        /* so do blanks, unless the line ends there */
        {"x  a  b  y\n", "a b", HFSBI_RUNG_RUNS, "x  <a  b>  y\n"},
        {"x  a  b  \n", "a b\n", HFSBI_RUNG_RUNS, "x  <a  b  \n>"},
        {"x  a  b  \n", "a b", HFSBI_RUNG_RUNS, "x  <a  b>  \n"},
        {"x  a  b  \n", "a b ", HFSBI_RUNG_RUNS, "x  <a  b  >\n"},
        /* indentation belongs to a line */
        {"x\n \ta\n", "   a\n", HFSBI_RUNG_INDENT, "x\n< \ta\n>"},
        {"x\n" NBSP " a\n", "\ta\n", HFSBI_RUNG_INDENT,
         "x\n<" NBSP " a\n>"},
        {"x\n\n\ta\n\n\tb\n\n", "a\nb\n", HFSBI_RUNG_LINES,
         "x\n\n<\ta\n\n\tb\n>\n"},
        {"x\n \n\ta\n\n\tb\n \n", "\na\nb\n\n", HFSBI_RUNG_LINES,
         "x\n \n<\ta\n\n\tb\n> \n"},
        {" \n \ta\n\n\tb", "a\nb", HFSBI_RUNG_LINES,
         " \n< \ta\n\n\tb>"},
        /* a blank first line is a line of the file */
        {"x\n  \na\n", "\t\na ", HFSBI_RUNG_TRAIL, "x\n<  \na>\n"},
        {"x\n  \n\ta\n", "\n  a\n", HFSBI_RUNG_INDENT,
         "x\n<  \n\ta\n>"},
        {"x  \na\n", "\na ", HFSBI_RUNG_TRAIL, "x  <\na>\n"},
        {"x \n \na\n", " \na ", HFSBI_RUNG_TRAIL, "x \n< \na>\n"},
        {"x\n\na\n", "\n\na ", HFSBI_RUNG_TRAIL, "x<\n\na>\n"},
    };
    check_matches(list, TE_COUNT(list), ANY_RUNG);
}

static void rungs_are_tried_in_order(void) {
    static const match_case list[] = {
        {"a b\na  b\n", "a b", HFSBI_RUNG_EXACT, "<a b>\na  b\n"},
        {"x a\n  a \n", "a\t", HFSBI_RUNG_TRAIL, "x <a>\n  <a >\n"},
        {"'a\n" APOS "a \n", "'a \n", HFSBI_RUNG_TRAIL,
         "<'a\n>" APOS "a \n"},
        {"a" EM_DASH "b\n", "a-b", HFSBI_RUNG_LOOKS,
         "<a" EM_DASH "b>\n"},
        /* an em dash is one hyphen before it is two */
        {"a--b\na-b\n", "a" EM_DASH "b", HFSBI_RUNG_LOOKS,
         "a--b\n<a-b>\n"},
        {"a" EM_DASH "b \n", "a--b\n", HFSBI_RUNG_LOOKS,
         "<a" EM_DASH "b \n>"},
        {"a" EM_DASH "b c\n", "a--b ", HFSBI_RUNG_LOOKS,
         "<a" EM_DASH "b >c\n"},
        {"say it\nx\ny\nsay it" APOS "s\n", "say it's", HFSBI_RUNG_LOOKS,
         "say it\nx\ny\n<say it" APOS "s>\n"},
        {"a  " EM_DASH "b \n", "a --b\n", HFSBI_RUNG_RUNS,
         "<a  " EM_DASH "b \n>"},
        {"a  b\n\ta b\n", "a   b\n", HFSBI_RUNG_RUNS,
         "<a  b\n>\t<a b\n>"},
        {"\ta\n", "  a\n", HFSBI_RUNG_INDENT, "<\ta\n>"},
        {"x\n\ta\n", "\n  a\n\n", HFSBI_RUNG_EDGES, "x\n<\ta\n>"},
        {"\ta  b\n", "  a b\n", HFSBI_RUNG_BLANKS, "<\ta  b\n>"},
        {"\ta\n\n\tb\n", "a\nb\n", HFSBI_RUNG_LINES,
         "<\ta\n\n\tb\n>"},
        {"\ta\n\n\tb\n", "a\nb", HFSBI_RUNG_LINES,
         "<\ta\n\n\tb>\n"},
        /* rung 9 knows no look-alikes, rung 10 no runs */
        {"\tit" APOS "s  a\n", "it's a\n", HFSBI_RUNG_RUNS,
         "\t<it" APOS "s  a\n>"},
        {"\tit" APOS "s  a\n", " it's a\n", HFSBI_RUNG_NONE,
         "\tit" APOS "s  a\n"},
        {"a  1\n\nb\n", "a 1\nb\n", HFSBI_RUNG_NONE,
         "a  1\n\nb\n"},
        {"it" APOS "s\n\nb\n", "it's\nb\n", HFSBI_RUNG_LINES,
         "<it" APOS "s\n\nb\n>"},
    };
    check_matches(list, TE_COUNT(list), ANY_RUNG);
}

static void loose_search_leaves_exact_rungs_out(void) {
    static const match_case list[] = {
        {"a b\n", "a b", HFSBI_RUNG_TRAIL, "<a b>\n"},
        {"a\nb", "b\n", HFSBI_RUNG_TRAIL, "a\n<b>."},
    };
    check_matches(list, TE_COUNT(list), HFSBI_MATCH_LOOSE);
}

static void hidden_places_count_only_if_there_is_another(void) {
    static const match_case list[] = {
        {"\tab\na" ZWJ "b\n", "  ab\n", HFSBI_RUNG_INDENT,
         "<\tab\n><a" ZWJ "b\n>"},
        {"a" ZWJ "b\n", "  ab\n", HFSBI_RUNG_NONE, "a" ZWJ "b\n"},
        {"\tab\n" ZWJ "\n", "  ab\n", HFSBI_RUNG_INDENT,
         "<\tab\n>" ZWJ "\n"},
        {"ab\na" ZWJ "b\n", "ab\n", HFSBI_RUNG_EXACT,
         "<ab\n>a" ZWJ "b\n"},
    };
    hfsb_alloc alloc = HFSB_INIT;
    size_t     i;
    check_matches(list, TE_COUNT(list), HIDDEN_TOO);
    for (i = 0; i < TE_COUNT(list); i++) {
        hfsbi_matches found = find(alloc, hfsb_cstr(list[i].content),
                                   hfsb_cstr(list[i].old_text), HIDDEN_TOO);
        T_CHECK(!(found.folds & HFSBI_FOLD_JOINERS) == (found.count < 2));
        hfsbi_matches_free(&alloc, &found);
    }
}

/* Every word of old_text is on many lines. */
static void places_of_common_words_are_all_found(void) {
    hfsb_alloc    alloc = HFSB_INIT;
    hfsb_buf      file = HFSB_INIT;
    hfsbi_matches found;
    t_repeat(&file, "longer  it\n", 40);
    found = find(alloc, hfsb_buf_str(&file), HFSB_LIT("longer it"), ANY_RUNG);
    T_CHECK(found.count == 40 && found.rung == HFSBI_RUNG_RUNS);
    hfsbi_matches_free(&alloc, &found);
    found = find(alloc, hfsb_buf_str(&file), HFSB_LIT("it\nlonger it\n"),
                 ANY_RUNG);
    T_CHECK(found.count == 20 && found.overlapping);
    hfsbi_matches_free(&alloc, &found);
    hfsb_buf_free(&file);
}

/* ---- windows ---- */

static bool same_matches(const hfsbi_matches *a, const hfsbi_matches *b,
                         size_t shift) {
    size_t i;
    if (a->count != b->count || a->overlapping != b->overlapping ||
        (a->count && a->rung != b->rung))
        return false;
    for (i = 0; i < a->count; i++)
        if (a->items[i].start + shift != b->items[i].start ||
            a->items[i].end + shift != b->items[i].end ||
            a->items[i].lacks_newline != b->items[i].lacks_newline ||
            a->items[i].lacks_blank != b->items[i].lacks_blank ||
            a->items[i].overlaps != b->items[i].overlaps)
            return false;
    return true;
}

static void put_random_line(unsigned long long *seed, hfsb_buf *out) {
    size_t words = te_below(seed, 4);
    te_append(out, te_pick(seed, "|||  |\t"));
    while (words--) {
        te_append(out, te_pick(seed, "a|bb|a.b|...|'|" APOS "|-|" EM_DASH
                                     "|cc|c.|" ELLIPSIS "|bb"));
        te_append(out, te_pick(seed, "| |  |" NBSP));
    }
    te_append(out, te_pick(seed, "||| "));
}

/* A file with an invisible character is searched as a whole, others only
   around a word of the old text. */
static void windows_contain_every_match(void) {
    hfsb_alloc         alloc = HFSB_INIT;
    unsigned long long seed = 11;
    size_t             round = t_quick() ? 4000 : 30000, seen = 0;
    while (round--) {
        hfsb_buf      file = HFSB_INIT, whole = HFSB_INIT, text = HFSB_INIT;
        size_t        lines = 1 + te_below(&seed, 40), i;
        hfsb_str      mark = HFSB_LIT(ZWSP "#\n");
        hfsb_str      newline = te_pick(&seed, "\n|\n|\r\n");
        hfsbi_matches found, want;
        for (i = 0; i < lines; i++) {
            put_random_line(&seed, &file);
            if (i + 1 < lines || te_below(&seed, 4))
                te_append(&file, newline);
        }
        te_append(&whole, mark);
        te_append(&whole, hfsb_buf_str(&file));
        te_misremember(&seed,
                       te_some_lines(hfsb_buf_str(&file),
                                     te_below(&seed, lines),
                                     1 + te_below(&seed, 4),
                                     te_below(&seed, 2) != 0),
                       &text);
        for (i = 0; i < text.len; i++)
            if (text.ptr[i] == '\r') text.ptr[i] = ' ';
        if (text.len && text.ptr[0] != '\n' &&
            hfsb_str_find(hfsb_buf_str(&file), HFSB_LIT("\n")) !=
                HFSB_NPOS) {
            found = find(alloc, hfsb_buf_str(&file), hfsb_buf_str(&text),
                         HFSBI_MATCH_LOOSE);
            want = find(alloc, hfsb_buf_str(&whole), hfsb_buf_str(&text),
                        HFSBI_MATCH_LOOSE);
            T_CHECK(same_matches(&found, &want, mark.len));
            seen += found.count > 0;
            hfsbi_matches_free(&alloc, &found);
            hfsbi_matches_free(&alloc, &want);
        }
        hfsb_buf_free(&file);
        hfsb_buf_free(&whole);
        hfsb_buf_free(&text);
    }
    T_CHECK(seen > 1000);
}
/* ---- how much is folded ---- */

static void *watch_blocks(void *user, void *ptr, size_t old_size,
                          size_t new_size) {
    size_t *largest = (size_t *)user;
    (void)old_size;
    if (new_size > *largest) *largest = new_size;
    if (new_size) return realloc(ptr, new_size);
    free(ptr);
    return NULL;
}

/* 200 lines of 338 bytes, so that three of them fit into 1024. Line 100 is
   "word100 even" and more; 15 lines in a row have the word "seldomtimes", 16
   the word "oftentimes". */
static void put_large_file(hfsb_buf *out, const char *newline) {
    size_t i, start;
    for (i = 0; i < 200; i++) {
        start = out->len;
        T_CHECK(hfsb_buf_printf(out, "word%03zu %s", i,
                                i % 2 ? "odd" : "even") == HFSB_OK);
        if (i < 15) te_append(out, HFSB_LIT(" seldomtimes"));
        if (i >= 20 && i < 36) te_append(out, HFSB_LIT(" oftentimes"));
        te_append(out, HFSB_LIT(" "));
        while (out->len - start < 337) te_append(out, HFSB_LIT("~"));
        te_append(out, hfsb_cstr(newline));
    }
}

/* The largest block that a loose search allocates. */
static size_t largest_block(hfsb_str file, const char *old_text) {
    size_t        largest = 0;
    hfsb_alloc    alloc;
    hfsbi_matches found;
    alloc.fn = watch_blocks;
    alloc.user = &largest;
    found = find(alloc, file, hfsb_cstr(old_text), HFSBI_MATCH_LOOSE);
    hfsbi_matches_free(&alloc, &found);
    return largest;
}

/* Folds only the lines around a word that is rare, else around the longest. */
static void loose_search_folds_few_lines(void) {
    static const struct {
        const char *old_text, *newline;
        size_t      lines; /* that are folded at once, of 338 bytes each */
    } list[] = {
        {"word100", "\n", 3},
        {"word000", "\n", 3},
        {"word199", "\n", 3},
        {"word100 \nword101\n", "\n", 3},
        {"word100 \nword101\n", "\r", 3},
        {"even\nword101\n", "\n", 3},
        {"even\nword101\n", "\r", 3},
        {"odd\neven\nword101", "\n", 3},
        {"even\nword101\nword102\n", "\n", 6},
        {"word100 \nword101\nword102\n", "\n", 6},
        /* in the end without blank lines, which do not count then */
        {"word100 \nword101\n", "\n\n", 3},
        {"even\nword101\n", "\n\n", 3},
        {"odd\neven\nword101", "\n\n", 3},
        {"even\nword101\nword102\n", "\n\n", 6},
        {"word100 \n\n\n\n\nword101\n", "\n\n", 6},
        /* a word with 15 places is rare, with 16 it is not */
        {"seldomtimes  word100", "\n", 24},
        {"seldomtimes \nword100", "\n", 24},
        {"oftentimes  word100", "\n", 3},
        {"oftentimes  even", "\n", 24},
        {"even  oftentimes", "\n", 24},
        /* the eight longest words are looked at */
        {"even even even even even even even even  word100", "\n", 3},
        {"word100  even even even even even even even even", "\n", 3},
        {"odd even odd even odd even odd even word100  odd even", "\n", 3},
        {"oftentimes even even even even even even odd  word100", "\n", 3},
        /* one that is nowhere ends the search */
        {"word100  word777", "\n", 3},
        {"word100\n- -\n", "\n", 3},
        /* without a word the file is searched as a whole */
        {"- -", "\n", 384},
    };
    size_t i;
    for (i = 0; i < TE_COUNT(list); i++) {
        hfsb_buf file = HFSB_INIT;
        size_t   largest, most = 1024 * list[i].lines / 3;
        put_large_file(&file, list[i].newline);
        largest = largest_block(hfsb_buf_str(&file), list[i].old_text);
        T_CHECK(largest <= most && (most == 1024 || largest > most / 2));
        if (largest > most || (most > 1024 && largest <= most / 2))
            printf("  case %zu: %zu\n", i, largest);
        hfsb_buf_free(&file);
    }
}
#endif

int main(void) {
#ifdef HFSBI_SPLIT
    T_RUN(exact_matches_are_the_bytes_of_old_text);
    T_RUN(matches_that_overlap_are_noted);
    T_RUN(matches_at_the_end_may_lack_a_newline);
    T_RUN(matches_start_and_end_between_characters);
    T_RUN(rungs_are_tried_in_order);
    T_RUN(loose_search_leaves_exact_rungs_out);
    T_RUN(hidden_places_count_only_if_there_is_another);
    T_RUN(places_of_common_words_are_all_found);
    T_RUN(windows_contain_every_match);
    T_RUN(loose_search_folds_few_lines);
#endif
    return T_END();
}
