/* test_regex.c - regular expressions: matches, refusals, limits. */
#include "../support/t_regex.h"

static hfsb_regex *open_with(const char *pattern, const char *flags) {
    hfsb_regex_opts opts = HFSB_INIT;
    hfsb_str        s = t_exact(pattern, strlen(pattern));
    hfsb_regex     *re = NULL;
    hfsb_err        err;
    opts.ignore_case = strchr(flags, 'i') != NULL;
    opts.literal = strchr(flags, 'F') != NULL;
    if (hfsb_regex_open(s, &opts, &re, &err) != HFSB_OK)
        printf("%s: %s\n", pattern, err.msg);
    T_CHECK(re != NULL && err.code == HFSB_OK);
    t_drop(s); /* it was copied */
    return re;
}

/* ---- where a match is ---- */

#define NO HFSB_NPOS

typedef struct find_case {
    const char *flags, *pattern, *text;
    size_t      from, begin, end; /* begin NO: none */
} find_case;

static const find_case finds[] = {
    {"", "", "abc", 0, 0, 0},
    {"", "", "", 0, 0, 0},
    {"", "b", "abc", 0, 1, 2},
    {"", "b", "abc", 2, NO, 0},
    {"", "b", "abc", 9, NO, 0},
    {"", "a|ab|abc", "xabcd", 0, 1, 4}, /* the longest */
    {"", "abcd|bc", "abcd", 0, 0, 4},   /* the leftmost */
    {"", "abcd|bc", "abcx", 0, 1, 3},
    {"", "a*", "baaa", 0, 0, 0},
    {"", "a*", "baaa", 1, 1, 4},
    {"", "a+?", "baaa", 0, 1, 4},
    {"", "(a*)*", "aab", 0, 0, 2},
    {"", "(a|ab)(c|bcd)", "abcd", 0, 0, 4},
    {"", "^a", "aa", 0, 0, 1},
    {"", "^a", "aa", 1, NO, 0}, /* the line begins at 0 */
    {"", "a$", "aa", 0, 1, 2},
    {"", "^$", "", 0, 0, 0},
    {"", "$^", "", 0, 0, 0},
    {"", "$", "ab", 0, 2, 2},
    {"", "a^b|c$d", "a^b c$d", 0, NO, 0},
    {"", "x{2,3}", "xxxxx", 0, 0, 3},
    {"", "x{2}", "x xx", 0, 2, 4},
    {"", "x{0}y", "xy", 0, 1, 2},
    {"", "(ab){2}", "ababab", 0, 0, 4},
    {"", "a{,2}b", "aaab", 0, 1, 4},
    {"", ".", "\xc3\xa9x", 0, 0, 2},
    {"", ".", "\xffx", 0, 1, 2}, /* no character at all */
    {"", "[^a]", "\xffx", 0, 1, 2},
    {"", "\\W", "\xff", 0, NO, 0},
    {"F", "\xbb\xbfw", "\xef\xbb\xbfw", 0, 1, 4}, /* bytes */
    {"iF", "\xbb\xbfw", "\xef\xbb\xbfW", 0, 1, 4},
    {"iF", "\xc3\xa9", "\xc3\xc3\x89", 0, 1, 3},
    {"", "..", "\xe2\x82\xac\xf0\x9f\x98\x80", 0, 0, 7},
    {"", "[\xc3\xa0-\xc3\xbf]", "x\xc3\xa9", 0, 1, 3},
    {"", "[^\xc3\xa9]", "\xc3\xa9\xc3\xa8", 0, 2, 4},
    {"", "\xc3\xa9*x", "\xc3\xa9\xc3\xa9x", 0, 0, 5},
    {"", "[\xe4\xb8\x80-\xe9\xbe\xbf]+", "a\xe6\xbc\xa2\xe5\xad\x97.", 0, 1,
     7},
    {"", "\\d+", "ab123", 0, 2, 5},
    {"", "\\D+", "12ab3", 0, 2, 4},
    {"", "\\w+", "--ab_1--", 0, 2, 6},
    {"", "\\w+", "-\xc3\xa9t\xc3\xa9-", 0, 1, 6},
    {"", "\\s", "ab\tc", 0, 2, 3},
    {"", "\\t", "ab\tc", 0, 2, 3},
    {"", "\\bb", "ab b", 0, 3, 4},
    {"", "\\Bb", "b ab", 0, 3, 4},
    {"", "\\<a\\>", "aa a", 0, 3, 4},
    {"", "\\bt", "\xc3\xa9t t", 0, 4, 5},   /* a letter before it */
    {"", "\\bt", "\xe2\x80\x94t", 0, 3, 4}, /* a dash before it */
    {"", "\\b", "", 0, NO, 0},
    {"", "\\B", "", 0, 0, 0},
    {"", "\\B", "\xc3\xa9", 0, NO, 0}, /* not inside of a character */
    {"", "(?:ab)+", "xababx", 0, 1, 5},
    {"", "(?i)AB", "xab", 0, 1, 3},
    {"", "[\\w.]+", "-a.b-", 0, 1, 4},
    {"", "[^\\s]+", " ab ", 0, 1, 3},
    {"", "[\\]x]+", "a]x]", 0, 1, 4},
    {"", "[a\\-z]+", "ba-z", 0, 1, 4},
    {"", "[^\\n]+", "an\\", 0, 0, 3},
    {"", "[\\\\]", "a\\", 0, 1, 2},
    {"", "a\\.b", "axb a.b", 0, 4, 7},
    {"", "\\/\\-\\\"", "/-\"", 0, 0, 3},
    {"", "\\`a\\'", "a", 0, 0, 1},
    {"", "\\Aa\\z", "a", 0, 0, 1},
    {"", "a)", "(a)", 0, 1, 3},
    {"", "a{x", "a{x", 0, 0, 3},
    {"", "a{1,2", "a{1,2", 0, 0, 5},
    {"", "*a", "*a", 0, 1, 2},
    {"", "a|*b", "b", 0, 0, 1},
    {"", "(|a)b", "ab", 0, 0, 2},
    {"", "()", "a", 0, 0, 0},
    {"", "a**", "aa", 0, 0, 2},
    {"", "(a?){3}", "aaaa", 0, 0, 3},
    {"", "[[:alpha:]]+[[:digit:]]+", "-ab12", 0, 1, 5},
    {"", "[[:upper:]]", "a\xc3\x89", 0, 1, 3},
    {"", "[[:punct:]]", "a\xe2\x82\xac", 0, 1, 4},
    {"", "[[.-.][=a=]]+", "b-a", 0, 1, 3},
    {"", "a\nb", "a\nb", 0, NO, 0}, /* no line holds a line feed */
    {"i", "STRASSE", "strasse", 0, 0, 7},
    {"i", "\xc3\x89\xce\xa3\xd0\x96", "\xc3\xa9\xcf\x83\xd0\xb6", 0, 0, 6},
    {"i", "[a-c]+", "xABCx", 0, 1, 4},
    {"i", "[^a]", "Ab", 0, 1, 2},
    {"i", "[[:upper:]]", "a", 0, 0, 1},
    {"F", "a.c", "abc a.c", 0, 4, 7},
    {"F", "", "abc", 1, 1, 1},
    {"F", "\xff(", "x\xff(", 0, 1, 3},
    {"F", "a\nb", "a\nb", 0, NO, 0},
    {"Fi", "A.C\xff", "abc a.c\xff", 0, 4, 8},
    {"Fi", "A\n", "a\n", 0, NO, 0}};

static void find_gives_the_leftmost_longest_match(void) {
    size_t i;
    for (i = 0; i < sizeof finds / sizeof *finds; i++) {
        const find_case *c = &finds[i];
        hfsb_regex      *re = open_with(c->pattern, c->flags);
        hfsb_str         text = t_exact(c->text, strlen(c->text));
        size_t           begin = 0, end = 0;
        bool             ok = hfsb_regex_find(re, text, c->from, &begin, &end);
        ok = ok ? begin == c->begin && end == c->end : c->begin == NO;
        if (!ok)
            printf("/%s/ on \"%s\" from %zu: %zu to %zu\n", c->pattern,
                   c->text, c->from, begin, end);
        T_CHECK(ok);
        /* a line that is the whole text gives the same */
        if (c->from == 0 && text.len && !memchr(text.ptr, '\n', text.len)) {
            ok = hfsb_regex_line(re, text, 0, &begin, &end);
            if (ok != (c->begin != NO)) printf("/%s/ as line\n", c->pattern);
            T_CHECK(ok == (c->begin != NO));
            T_CHECK(!ok || (begin == 0 && end == text.len));
        }
        t_drop(text);
        hfsb_regex_close(re);
    }
}

/* ---- lines ---- */

typedef struct line_case {
    const char *flags, *pattern, *text;
    const char *lines; /* those found, each in <> */
} line_case;

static const line_case lines[] = {
    {"", "", "a\n\nb", "<a><><b>"},
    {"", "", "a\n", "<a>"}, /* no line after the last line feed */
    {"", "", "\n", "<>"},
    {"", "", "", ""},
    {"", "x", "a\nx\nb\nxx", "<x><xx>"},
    {"", "^", "a\n\n", "<a><>"},
    {"", "^$", "a\n\nb\n\n", "<><>"},
    {"", "$^", "a\n\nb\n\r\n", "<><>"},
    {"", "^$", "a\r\n\r\n\r", "<>"}, /* a CR at the end ends no line */
    {"", "a$", "a\r\nb a\nab\r\na", "<a><b a><a>"},
    {"", "a.$", "a\r\nab\r\na\r", "<ab><a\r>"},
    {"", "\\r", "a\r\nb\rc\r\nd\r", "<b\rc><d\r>"},
    {"", "a\\r", "a\r\na\rb\n", "<a\rb>"},
    {"F", "a\r", "a\r\na\rb\n", "<a\rb>"},
    {"", "\r\r", "a\r\r\nb\r\r\r\n", "<b\r\r>"},
    {"", "^\r$", "\r\r\n\r\n", "<\r>"},
    {"", "a[^b]b", "a\nb\na\rb\nacb\n", "<a\rb><acb>"},
    {"", "\\s$", "a \r\nb\r\nc\t\n", "<a ><c\t>"},
    {"", "a\\b", "ab\na\r\na b\r\n", "<a><a b>"},
    {"", "a\\b", "a\xc3\xa9\na\xe2\x80\x94\nba", "<a\xe2\x80\x94><ba>"},
    {"", "\\<x\\>", "xy\nx y\nyx\n\xc3\xa9x\n x", "<x y>< x>"},
    {"", "foo.*bar", "foo\nbar\nfoo bar\nbar foo\n", "<foo bar>"},
    {"", "(foo|bar)$", "foo\nfoo x\nx bar\r\n", "<foo><x bar>"},
    {"F", "", "a\n\n", "<a><>"},
    {"F", "b", "abc\nx\ncb\r\n", "<abc><cb>"},
    {"i", "B", "abc\nx\nCB\r\n", "<abc><CB>"},
    {"", "[^x]", "x\n\xff\na\n", "<a>"},
    {"", "a{2}|^b", "ab\nb\naa\n", "<b><aa>"}};

static void lines_are_found_with_either_ending(void) {
    size_t   i, from, begin, end;
    hfsb_buf got = HFSB_INIT;
    for (i = 0; i < sizeof lines / sizeof *lines; i++) {
        const line_case *c = &lines[i];
        hfsb_regex      *re = open_with(c->pattern, c->flags);
        hfsb_str         text = t_exact(c->text, strlen(c->text));
        hfsb_buf_truncate(&got, 0);
        for (from = 0; hfsb_regex_line(re, text, from, &begin, &end);) {
            T_CHECK(begin >= from && end >= begin && end <= text.len);
            T_CHECK(hfsb_buf_printf(&got, "<%.*s>", (int)(end - begin),
                                    text.ptr + begin) == HFSB_OK);
            while (end < text.len && text.ptr[end] != '\n') end++;
            from = end + 1;
        }
        if (!hfsb_str_equal(hfsb_buf_str(&got), hfsb_cstr(c->lines)))
            printf("/%s/: %s\n", c->pattern, got.ptr);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&got), hfsb_cstr(c->lines)));
        t_drop(text);
        hfsb_regex_close(re);
    }
    hfsb_buf_free(&got);
}

/* ---- refusals ---- */

typedef struct refusal {
    const char *pattern;
    size_t      pos;
    const char *part; /* of the message */
} refusal;

static const refusal refusals[] = {{"a(b", 1, "\\("},
                                   {"(a|(b)", 0, "not closed"},
                                   {"a[b", 1, "\\["},
                                   {"a[", 1, "not closed"},
                                   {"[]", 0, "not closed"},
                                   {"[[:alpha:]", 0, "not closed"},
                                   {"[[:alpha", 1, "not closed"},
                                   {"[[:foo:]]", 1, "[:alpha:]"},
                                   {"x[:alpha:]", 1, "[[:alpha:]]"},
                                   {"[b-a]", 1, "range"},
                                   {"[a-c-e]", 4, "range"},
                                   {"[[:digit:]-a]", 1, "range"},
                                   {"[\\w-z]", 1, "range"},
                                   {"[[.ab.]]", 1, "one character"},
                                   {"[[==]]", 1, "one character"},
                                   {"a\\", 1, "backslash"},
                                   {"a{2,1}", 1, "{n,m}"},
                                   {"(a)\\1", 3, "Back-references"},
                                   {"\\k", 0, "Back-references"},
                                   {"a(?=b)", 1, "Look-around"},
                                   {"(?!b)", 0, "Look-around"},
                                   {"(?<=b)", 0, "Look-around"},
                                   {"(?<!b)", 0, "Look-around"},
                                   {"(?P<n>b)", 0, "(...)"},
                                   {"(?<n>b)", 0, "(...)"},
                                   {"a(?i)b", 1, "ignore case"},
                                   {"(?>b)", 0, "plain group"},
                                   {"\\p{L}", 0, "[[:alpha:]]"},
                                   {"\\x41", 0, "itself"},
                                   {"a\\n", 1, "line"},
                                   {"\\Qa\\E", 0, "literal"},
                                   {"\\q", 0, "leave the backslash out"},
                                   {"a\xff", 1, "UTF-8"},
                                   {"[\xff]", 1, "UTF-8"}};

static void odd_patterns_are_refused_with_advice(void) {
    size_t i;
    for (i = 0; i < sizeof refusals / sizeof *refusals; i++) {
        const refusal *r = &refusals[i];
        hfsb_str       s = t_exact(r->pattern, strlen(r->pattern));
        hfsb_regex    *re;
        hfsb_err       err;
        bool           ok;
        T_CHECK(hfsb_regex_open(s, NULL, &re, &err) == HFSB_ARG && !re);
        ok = err.code == HFSB_ARG && err.pos == r->pos &&
             strstr(err.msg, r->part) != NULL;
        if (!ok) printf("/%s/ at %zu: %s\n", r->pattern, err.pos, err.msg);
        T_CHECK(ok);
        T_CHECK(hfsb_regex_open(s, NULL, &re, NULL) == HFSB_ARG && !re);
        t_drop(s);
    }
}

static void check_limit(hfsb_str pattern, size_t pos, const char *part) {
    hfsb_regex *re;
    hfsb_err    err;
    T_CHECK(hfsb_regex_open(pattern, NULL, &re, &err) == HFSB_LIMIT && !re);
    T_CHECK(err.code == HFSB_LIMIT && err.pos == pos);
    if (!strstr(err.msg, part)) printf("%s\n", err.msg);
    T_CHECK(strstr(err.msg, part) != NULL);
}

static void large_patterns_are_refused_at_once(void) {
    hfsb_buf deep = HFSB_INIT;
    size_t   i;
    check_limit(HFSB_LIT("a{32768}"), 1, "{32767}");
    check_limit(HFSB_LIT("(a{200}){200}"), 0, "20000 states");
    check_limit(HFSB_LIT("((a{1,300}){1,300}){1,300}"), 0, "smaller");
    check_limit(HFSB_LIT("(((){9999}){9999}){9999}"), 0, "smaller");
    check_limit(HFSB_LIT("\\w{9999}"), 0, "smaller");
    t_repeat(&deep, "(", 5000);
    check_limit(hfsb_buf_str(&deep), 200, "200 levels");
    hfsb_buf_truncate(&deep, 0);
    t_repeat(&deep, "a", 1);
    t_repeat(&deep, "{2}", 20);
    check_limit(hfsb_buf_str(&deep), 0, "repeats of repeats");
    t_repeat(&deep, "b", 70000);
    check_limit(hfsb_buf_str(&deep), 65536, "65,536");
    hfsb_buf_truncate(&deep, 0);
    for (i = 0; i < 200; i++) t_repeat(&deep, "(", 1);
    t_repeat(&deep, "a", 1);
    for (i = 0; i < 200; i++) t_repeat(&deep, ")*", 1);
    t_repeat(&deep, "****+?*", 1000);
    hfsb_regex_close(open_with(deep.ptr, ""));
    hfsb_buf_free(&deep);
}

static void state_limit_can_be_set(void) {
    hfsb_regex_opts opts = HFSB_INIT;
    hfsb_regex     *re;
    opts.max_states = 12;
    T_CHECK(hfsb_regex_open(HFSB_LIT("a{20}b*"), &opts, &re, NULL) ==
            HFSB_LIMIT);
    T_CHECK(hfsb_regex_open(HFSB_LIT("a{5}b*"), &opts, &re, NULL) == HFSB_OK);
    hfsb_regex_close(re);
}

/* ---- the table ---- */

/* Random lines of a and b, some with a word beyond ASCII. */
static void make_lines(hfsb_buf *out, size_t count) {
    unsigned long long seed = 7;
    size_t             i, k;
    for (i = 0; i < count; i++) {
        for (k = t_random(&seed) % 60; k > 0; k--)
            t_repeat(out, t_random(&seed) % 2 ? "a" : "b", 1);
        if (t_random(&seed) % 16 == 0) t_repeat(out, " \xc3\xa9", 1);
        t_repeat(out, "\n", 1);
    }
}

/* The table agrees with the simulation on every line, however small it is. */
static void check_table(const char *pattern, size_t max_bytes, hfsb_str text,
                        bool flushed) {
    hfsb_regex *re = open_with(pattern, "");
    hfsb_str    rest = text, line;
    size_t      from = 0, at = 0, begin, end, a, b, wrong = 0;
    bool        more;
    re->runner.table.max_bytes = max_bytes;
    more = hfsb_regex_line(re, text, 0, &begin, &end);
    for (; hfsb_text_line(&rest, &line, NULL); at += line.len + 1) {
        bool hit = more && begin == at;
        if (hfsbi_nfa_find(&re->runner, line, 0, true, &a, &b) != hit) wrong++;
        if (!hit) continue;
        from = end + 1;
        more = hfsb_regex_line(re, text, from, &begin, &end);
    }
    T_CHECK(wrong == 0 && !more);
    T_CHECK((re->runner.table.flushes > 0) == flushed);
    hfsb_regex_close(re);
}

static void small_table_is_flushed(void) {
    hfsb_buf text = HFSB_INIT;
    hfsb_str s;
    make_lines(&text, 2000);
    s = hfsb_buf_str(&text);
    check_table("(a|b)*a(a|b){3}$", HFSBI_REGEX_CACHE, s, false);
    check_table("(a|b)*a(a|b){3}$", 900, s, true);
    check_table("^(a|b)*a(a|b){12}$", 20000, s, true);
    check_table("\\ba(a|b)*(ab){2}(a|b){6}\\b", 5000, s, true);
    check_table("(a[ab]{40}b|b[ab]{20}a)$", 1, s, true);
    hfsb_buf_free(&text);
}

/* A frequent literal without matches is not searched for a while. */
static void common_literal_finds_all_lines(void) {
    hfsb_buf    text = HFSB_INIT;
    hfsb_regex *re = open_with("ab.*z$", "");
    size_t      i, from = 0, begin, end, found = 0;
    for (i = 0; i < 30000; i++)
        t_repeat(&text, i % 1000 == 999 ? "xabz\n" : "xaby\n", 1);
    while (hfsb_regex_line(re, hfsb_buf_str(&text), from, &begin, &end)) {
        found++;
        T_CHECK(begin % 5000 == 4995 && end == begin + 4);
        from = end + 1;
    }
    T_CHECK(found == 30);
    hfsb_regex_close(re);
    hfsb_buf_free(&text);
}

/* ---- characters ---- */

static void each_character_matches_dot_and_word_or_nonword(void) {
    hfsb_regex   *dot = open_with("^.$", "");
    hfsb_regex   *word = open_with("^\\w$", "");
    hfsb_regex   *other = open_with("^\\W$", "");
    unsigned long c;
    size_t        wrong = 0, a, b;
    for (c = 0; c <= 0x10FFFF; c += c < 0x3000 ? 1 : 37) {
        char     bytes[4];
        hfsb_str s;
        bool     is_word;
        if ((c >= 0xD800 && c <= 0xDFFF) || c == '\n') continue;
        s = hfsb_str_make(bytes, hfsb_utf8_encode(c, bytes));
        is_word = hfsb_regex_find(word, s, 0, &a, &b);
        if (!hfsb_regex_find(dot, s, 0, &a, &b)) wrong++;
        if (hfsb_regex_find(other, s, 0, &a, &b) == is_word) wrong++;
        if (is_word != hfsbi_regex_is_word((uint32_t)c)) wrong++;
        if (hfsbi_other_case(hfsbi_other_case((uint32_t)c)) != c) wrong++;
    }
    T_CHECK(wrong == 0);
    hfsb_regex_close(dot);
    hfsb_regex_close(word);
    hfsb_regex_close(other);
}

/* ---- memory ---- */

static void search_with(hfsb_alloc alloc, const t_heap *heap,
                        const char *pattern, bool ignore_case, bool literal) {
    hfsb_regex_opts opts = HFSB_INIT;
    hfsb_regex     *re;
    hfsb_err        err;
    size_t          begin, end;
    hfsb_status     st;
    opts.alloc = alloc;
    opts.ignore_case = ignore_case;
    opts.literal = literal;
    st = hfsb_regex_open(hfsb_cstr(pattern), &opts, &re, &err);
    T_CHECK(st == HFSB_OK || (st == HFSB_NOMEM && heap->fail_at && !re &&
                              err.code == HFSB_NOMEM && err.msg[0]));
    if (st != HFSB_OK) return;
    /* correct with or without memory for the table */
    T_CHECK(hfsb_regex_line(re, HFSB_LIT("b\naxc\nx:y7\n"), 0, &begin, &end));
    T_CHECK(begin == 6 && end == 10);
    T_CHECK(!hfsb_regex_line(re, HFSB_LIT("b\naxc\nzzz\n"), 0, &begin, &end));
    hfsb_regex_close(re);
}

static void search_each_way(hfsb_alloc alloc, const t_heap *heap) {
    search_with(alloc, heap, "x:(y|[^[:alpha:]\xc3\xa9])\\d+$", false, false);
    search_with(alloc, heap, "\\b[w-y]{1,2}[[:punct:]]\\w", true, false);
    search_with(alloc, heap, "x:y", false, true);
    search_with(alloc, heap, "X:Y", true, true);
}

static void each_allocation_fails_cleanly(void) {
    t_each_allocation_fails(search_each_way);
}

static bool stops(void *user) {
    return ++*(int *)user >= 3;
}

static void slow_search_can_be_cancelled(void) {
    hfsb_regex_opts opts = HFSB_INIT;
    hfsb_regex     *re;
    hfsb_buf        text = HFSB_INIT;
    size_t          begin, end, i;
    int             asked = 0;
    for (i = 0; i < 4000000; i++)
        if (hfsb_buf_append_byte(&text, i * i % 7 < 3 ? 'a' : 'b') != HFSB_OK)
            abort();
    opts.cancelled = stops;
    opts.user = &asked;
    T_CHECK(hfsb_regex_open(HFSB_LIT("(a|b)*a(a|b){900}[cd]"), &opts, &re,
                            NULL) == HFSB_OK);
    T_CHECK(!hfsb_regex_find(re, hfsb_buf_str(&text), 0, &begin, &end));
    T_CHECK(asked <= 3);
    T_CHECK(!hfsb_regex_line(re, hfsb_buf_str(&text), 0, &begin, &end));
    T_CHECK(asked == 3);
    hfsb_regex_close(re);
    hfsb_buf_free(&text);
}

int main(void) {
    T_RUN(find_gives_the_leftmost_longest_match);
    T_RUN(lines_are_found_with_either_ending);
    T_RUN(odd_patterns_are_refused_with_advice);
    T_RUN(large_patterns_are_refused_at_once);
    T_RUN(state_limit_can_be_set);
    T_RUN(small_table_is_flushed);
    T_RUN(common_literal_finds_all_lines);
    T_RUN(each_character_matches_dot_and_word_or_nonword);
    T_RUN(each_allocation_fails_cleanly);
    T_RUN(slow_search_can_be_cancelled);
    return T_END();
}
