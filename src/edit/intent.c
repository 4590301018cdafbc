/* intent.c - texts of an edit that are not meant to the letter.

   Models make a few mistakes that every literal engine writes into the file:
   a line of new_str that stands for code left out, a new_str that is a diff.
   They are recognised here and refused; exact=true turns that off. */
#include "edit_private.h"

static hfsb_str hfsbi_first_line(hfsb_str text) {
    return hfsb_str_slice(text, 0, hfsb_str_find_byte(text, '\n'));
}

/* ---- omitted code ---- */

/* What the words of an omission line are. FILLERs may precede the START.
   With "..." a line is one if it contains an OMITTED phrase, or begins with a
   START word and contains a REST word and a THING: "rest of the function ...".
   Without dots it must be a comment that says nothing else: a REST word, a
   THING and an OMITTED phrase. */
enum {
    HFSBI_WORD_OMITTED = 1,
    HFSBI_WORD_FILLER = 2,
    HFSBI_WORD_START = 4,
    HFSBI_WORD_REST = 8,
    HFSBI_WORD_THING = 16,
    HFSBI_WORD_HERE = 32 /* may replace OMITTED, or precede it */
};

/* Length of the first phrase of that kind in words, which have a blank before
   and after each; 0 if there is none. */
static size_t hfsbi_find_phrase(hfsb_str words, unsigned kind, bool at_start) {
    static const struct {
        unsigned    kinds;
        const char *phrases;
    } table[] = {
        {HFSBI_WORD_OMITTED,
         "unchanged|as before|same as|stays the same|remains the same|"
         "remain the same|no change|no changes|omitted"},
        {HFSBI_WORD_FILLER, "all|and|some|the|or|then|keep|your"},
        {HFSBI_WORD_START | HFSBI_WORD_REST,
         "existing|remaining|other|previous|original|same"},
        {HFSBI_WORD_START, "rest|add|insert|include|leave|more|put"},
        {HFSBI_WORD_REST, "rest of"},
        {HFSBI_WORD_THING,
         "code|function|functions|method|methods|class|classes|file|"
         "implementation|implementations|lines|line|imports|import|content|"
         "contents|body|logic|fields|tests|test|cases|props|properties|"
         "definitions|variables|config|configuration|entries|parameters|"
         "statements|comments|module|component|components|script|block|"
         "section|sections|document|styles|rules|routes|handlers|elements|"
         "attributes|constructor|declarations"},
        {HFSBI_WORD_HERE,
         "here|goes here|stays here|follows|continues|is|are|remains|remain|"
         "stays|the same"}};
    size_t i;
    for (i = 0; i < sizeof table / sizeof *table; i++) {
        hfsb_str list = hfsb_cstr(table[i].phrases), phrase;
        char     spaced[32];
        if (!(table[i].kinds & kind)) continue;
        while (hfsbi_list_next(&list, '|', &phrase)) {
            snprintf(spaced, sizeof spaced, " %.*s ", (int)phrase.len,
                     phrase.ptr);
            if (at_start
                    ? hfsb_str_starts(words, hfsb_cstr(spaced))
                    : hfsb_str_find(words, hfsb_cstr(spaced)) != HFSB_NPOS)
                return phrase.len;
        }
    }
    return 0;
}

/* The line without the signs of comments and placeholders around it. */
static hfsb_str hfsbi_unwrap(hfsb_str s) {
    static const char open[] = "/*#<!-;%([{\"'", close[] = "*/-->)]}\"';";
    s = hfsbi_trim(s);
    while (s.len && memchr(open, s.ptr[0], sizeof open - 1))
        s = hfsbi_trim(hfsb_str_slice(s, 1, s.len));
    while (s.len && memchr(close, s.ptr[s.len - 1], sizeof close - 1))
        s = hfsbi_trim(hfsb_str_slice(s, 0, s.len - 1));
    return s;
}

static bool hfsbi_starts_dots(hfsb_str s) {
    return hfsb_str_starts(s, HFSB_LIT("...")) ||
           hfsb_str_starts(s, HFSB_LIT("\xE2\x80\xA6"));
}

/* True for a character that may separate the words of an omission line. After
   dots at the start there may be more of them, "... (lines 10-20: unchanged)
   ..."; any other line that has them is more likely code or prose. */
static bool hfsbi_separates_words(char c, bool dots_first) {
    static const char plain[] = " \t,-'/", more[] = "()[]{}:;!`_\"0123456789";
    return memchr(plain, c, sizeof plain - 1) ||
           (dots_first && memchr(more, c, sizeof more - 1));
}

#define HFSBI_OMISSION_WORDS 12

/* Writes the words of a line to out, in lower case, with one blank before and
   after each; *has_dots: there is a "..." among them. False when the line
   contains anything else. */
static bool hfsbi_omission_words(hfsb_str s, char *out, size_t size,
                                 bool *has_dots) {
    size_t i, n = 0, words = 0, dots = 0, most = 0;
    bool   dots_first = hfsbi_starts_dots(s);
    out[n++] = ' ';
    for (i = 0; i < s.len; i++) {
        char c = hfsbi_lower(s.ptr[i]);
        if (hfsb_str_starts(hfsb_str_slice(s, i, s.len),
                            HFSB_LIT("\xE2\x80\xA6"))) {
            i += 2;
            dots = 3;
        } else {
            dots = c == '.' ? dots + 1 : 0;
        }
        if (dots > most) most = dots;
        if (!(c >= 'a' && c <= 'z')) {
            if (!dots && !hfsbi_separates_words(c, dots_first)) return false;
            c = ' ';
        }
        if (c == ' ' && out[n - 1] == ' ') continue;
        if (c == ' ' && ++words > HFSBI_OMISSION_WORDS) return false;
        if (n + 2 >= size) return false;
        out[n++] = c;
    }
    if (out[n - 1] != ' ') out[n++] = ' ';
    out[n] = '\0';
    *has_dots = most >= 3;
    return most != 2;
}

/* Skips the phrases of these kinds at the start of words; returns how many. */
static size_t hfsbi_skip_phrases(hfsb_str *words, unsigned kinds) {
    size_t n, count = 0;
    while ((n = hfsbi_find_phrase(*words, kinds, true)) > 0) {
        *words = hfsb_str_slice(*words, n + 1, words->len);
        count++;
    }
    return count;
}

/* "... existing code ...", "rest of the function ...", "... unchanged". */
static bool hfsbi_omits_with_dots(hfsb_str words, bool dots_first) {
    hfsb_str rest = words;
    if (hfsbi_find_phrase(words, HFSBI_WORD_OMITTED, false)) return true;
    hfsbi_skip_phrases(&rest, HFSBI_WORD_FILLER);
    if (!hfsbi_find_phrase(rest, HFSBI_WORD_START, true)) return false;
    if (dots_first && hfsb_str_starts(rest, HFSB_LIT(" rest of ")))
        return true;
    return hfsbi_find_phrase(words, HFSBI_WORD_REST, false) &&
           hfsbi_find_phrase(words, HFSBI_WORD_THING, false);
}

/* "rest of the code remains the same", "existing code here", and in brackets
   "[existing code]". A comment such as "other imports" is ordinary. */
static bool hfsbi_omits_in_words(hfsb_str words, bool bracketed) {
    hfsbi_skip_phrases(&words, HFSBI_WORD_FILLER);
    if (!hfsbi_skip_phrases(&words, HFSBI_WORD_REST | HFSBI_WORD_FILLER) ||
        !hfsbi_skip_phrases(&words, HFSBI_WORD_THING))
        return false;
    return (hfsbi_skip_phrases(&words, HFSBI_WORD_OMITTED | HFSBI_WORD_HERE) ||
            bracketed) &&
           words.len == 1;
}

/* The leader of a comment that is all of the line; empty if none. */
static hfsb_str hfsbi_comment_leader(hfsb_str line) {
    static const char *const leaders[] = {"//",   "{/*", "/*", "#",
                                          "<!--", "--",  ";",  "%"};
    hfsb_str                 none = HFSB_INIT;
    size_t                   i;
    line = hfsbi_trim(line);
    for (i = 0; i < sizeof leaders / sizeof *leaders; i++)
        if (hfsb_str_starts(line, hfsb_cstr(leaders[i])))
            return hfsb_cstr(leaders[i]);
    return none;
}

/* The text after the leader, and after one blank: before dots, more blanks
   are the indentation of an example. */
static hfsb_str hfsbi_comment_text(hfsb_str line, hfsb_str leader) {
    line = hfsbi_trim(line);
    line = hfsb_str_slice(line, leader.len, line.len);
    return hfsb_str_starts(line, HFSB_LIT(" "))
               ? hfsb_str_slice(line, 1, line.len)
               : line;
}

/* True when line stands for omitted code; last and next are its neighbours.
   A comment that is only dots does, unless it is part of a longer comment;
   `...` alone is code in Python. */
static bool hfsbi_is_omission(hfsb_str line, hfsb_str last, hfsb_str next) {
    char     text[160];
    hfsb_str s = hfsbi_unwrap(line), leader = hfsbi_comment_leader(line);
    hfsb_str comment = hfsbi_comment_text(line, leader);
    bool     dots;
    if (!hfsbi_omission_words(s, text, sizeof text, &dots)) return false;
    if (!dots)
        return leader.len && comment.len &&
               hfsbi_omits_in_words(hfsb_cstr(text),
                                    memchr("[(<{", comment.ptr[0], 4) != NULL);
    if (leader.len && hfsbi_starts_dots(comment) &&
        hfsb_str_equal(hfsb_cstr(text), HFSB_LIT(" ")))
        return !hfsb_str_equal(leader, hfsbi_comment_leader(last)) &&
               !hfsb_str_equal(leader, hfsbi_comment_leader(next));
    return hfsbi_omits_with_dots(hfsb_cstr(text), hfsbi_starts_dots(s));
}

/* True when the bytes [from, to) are a whole line but for blanks. */
static bool hfsbi_is_whole_line(hfsb_str text, size_t from, size_t to) {
    while (from > 0 && hfsbi_is_blank(text.ptr[from - 1])) from--;
    while (to < text.len && hfsbi_is_blank(text.ptr[to])) to++;
    return (from == 0 || text.ptr[from - 1] == '\n' ||
            text.ptr[from - 1] == '\r') &&
           (to == text.len || text.ptr[to] == '\n' || text.ptr[to] == '\r');
}

/* True when text contains this line, whatever blanks surround it. */
static bool hfsbi_has_line(hfsb_str text, hfsb_str line) {
    size_t at = 0, step;
    line = hfsbi_trim(line);
    for (;; at += line.len) {
        step = hfsb_str_find(hfsb_str_slice(text, at, text.len), line);
        if (step == HFSB_NPOS) return false;
        at += step;
        if (hfsbi_is_whole_line(text, at, at + line.len)) return true;
    }
}

HFSBI_FN hfsb_str hfsbi_find_omission(hfsb_str new_text, hfsb_str old_text,
                                      hfsb_str file_text) {
    hfsb_str line, last = HFSB_INIT, none = HFSB_INIT;
    size_t   searches = 0; /* each costs a pass over the file */
    for (; searches < 64 && hfsb_text_line(&new_text, &line, NULL);
         last = line) {
        if (!hfsbi_is_omission(line, last, hfsbi_first_line(new_text)))
            continue;
        searches++;
        if (!hfsbi_has_line(old_text, line) &&
            !hfsbi_has_line(file_text, line))
            return hfsbi_trim(line);
    }
    return none;
}

/* ---- diffs ---- */

static hfsb_str hfsbi_indentation(hfsb_str line) {
    return hfsb_str_slice(line, 0, hfsbi_indent_len(line, 0));
}

/* True when a line of text has this indentation and, without the blanks around
   them, these words. */
static bool hfsbi_has_indented(hfsb_str text, hfsb_str indent,
                               hfsb_str words) {
    hfsb_str line;
    while (hfsb_text_line(&text, &line, NULL))
        if (hfsb_str_equal(hfsbi_indentation(line), indent) &&
            hfsb_str_equal(hfsbi_trim(line), words))
            return true;
    return false;
}

#define HFSBI_INTENT_LINES 32 /* lines looked for in the other text */

HFSBI_FN bool hfsbi_is_diff(hfsb_str new_text, hfsb_str old_text) {
    hfsb_str line;
    size_t   removed = 0, added = 0, known = 0;
    while (hfsb_text_line(&new_text, &line, NULL)) {
        hfsb_str rest = hfsb_str_slice(line, 1, line.len);
        if (!line.len) continue;
        if (line.ptr[0] != ' ' && line.ptr[0] != '+' && line.ptr[0] != '-')
            return false;
        if (line.ptr[0] == '+') added++;
        if (line.ptr[0] == '-' && removed++ < HFSBI_INTENT_LINES &&
            !hfsbi_is_all_blank(rest, 0) &&
            hfsbi_has_indented(old_text, hfsbi_indentation(rest),
                               hfsbi_trim(rest)))
            known++;
    }
    return added && known;
}
