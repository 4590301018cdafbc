/* intent.c - texts of an edit that are not meant literally.

   Models make a few mistakes that every literal engine writes into the file.
   Some are only refused: a line of new_str that is a placeholder for omitted
   code, a new_str that is a diff. Others have one sensible reading, although
   old_str is in the file exactly; new_str is then changed to it:

       line end    old_str ends with its line, new_str lacks the line end, and
                   the next line would be joined to it
       last line   old_str stops inside its last line, new_str has all of it,
                   and the rest would appear twice
       indent      one of the texts begins after the indentation of the first
                   line, the other with it: it would be doubled or lost
       re-indent   old_str is one line without some or all of its indentation,
                   and the other lines of new_str lack the same blanks

   A reading is taken only if real edits that are meant literally cannot look
   like that. It is reported in the note, and exact=true turns it off. */
#include "edit_private.h"

static hfsb_str hfsbi_first_line(hfsb_str text) {
    return hfsb_str_slice(text, 0, hfsb_str_find_byte(text, '\n'));
}

/* ---- omitted code ---- */

/* The kinds of words in an omission line. FILLERs may precede the START.
   With "..." a line is one if it contains an OMITTED phrase, or begins with a
   START word and contains a REST word and a THING: "rest of the function ...".
   Without dots it must be a comment of nothing but a REST word, a THING (not
   after "rest") and an OMITTED phrase. */
enum {
    HFSBI_WORD_OMITTED = 1,
    HFSBI_WORD_FILLER = 2,
    HFSBI_WORD_START = 4,
    HFSBI_WORD_REST = 8,
    HFSBI_WORD_THING = 16,
    HFSBI_WORD_HERE = 32 /* may replace OMITTED, or precede it */
};

/* Length of the first phrase of that kind in words, which have a blank before
   and after each; 0 if not found. */
static size_t hfsbi_find_phrase(hfsb_str words, unsigned kind, bool at_start) {
    static const struct {
        unsigned    kinds;
        const char *phrases;
    } table[] = {
        {HFSBI_WORD_OMITTED,
         "unchanged|as before|same as|stays the same|remains the same|"
         "remain the same|no change|no changes|omitted|for brevity"},
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

/* "rest of the code remains the same", "existing code here", "rest unchanged",
   and in brackets "[existing code]". A comment such as "other imports" is
   ordinary. */
static bool hfsbi_omits_in_words(hfsb_str words, bool bracketed) {
    hfsbi_skip_phrases(&words, HFSBI_WORD_FILLER);
    if (hfsb_str_starts(words, HFSB_LIT(" rest ")) &&
        !hfsb_str_starts(words, HFSB_LIT(" rest of ")) &&
        hfsbi_find_phrase(words, HFSBI_WORD_OMITTED, false))
        words = hfsb_str_slice(words, sizeof " rest" - 1, words.len);
    else if (!hfsbi_skip_phrases(&words,
                                 HFSBI_WORD_REST | HFSBI_WORD_FILLER) ||
             !hfsbi_skip_phrases(&words, HFSBI_WORD_THING))
        return false;
    return (hfsbi_skip_phrases(&words, HFSBI_WORD_OMITTED | HFSBI_WORD_HERE) ||
            bracketed) &&
           words.len == 1;
}

/* The leader of a comment that fills the line; empty if none. */
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

/* True when line is a placeholder for omitted code; last and next are its
   neighbours. A comment of dots is one unless it is part of a longer comment;
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

/* ---- what new_str means ---- */

/* How new_text is changed to what it means. */
typedef struct hfsbi_intent {
    const hfsbi_edit_text *file;
    const hfsbi_match     *match;
    hfsb_str               old_text, new_text; /* LF only */
    hfsb_str               before; /* the blanks before the match on its line;
                                      ptr NULL: other text is there */
    unsigned               notes;  /* HFSBI_MEANT_ */
    size_t                 skip;   /* bytes dropped from the start */
    hfsb_str               first;  /* put before the first line */
    hfsb_str               indent; /* put before the others, if not blank */
    size_t                 drop;   /* bytes dropped from the end */
} hfsbi_intent;

/* The text after the first line end; empty if not found. */
static hfsb_str hfsbi_other_lines(hfsb_str text) {
    size_t at = hfsb_str_find_byte(text, '\n');
    return hfsb_str_slice(text, at == HFSB_NPOS ? text.len : at + 1, text.len);
}

static hfsb_str hfsbi_final_line(hfsb_str text) {
    size_t at = text.len;
    while (at > 0 && text.ptr[at - 1] != '\n') at--;
    return hfsb_str_slice(text, at, text.len);
}

/* True when s has a letter, a digit, or a character that is not ASCII. */
static bool hfsbi_has_word(hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len; i++) {
        char c = hfsbi_lower(s.ptr[i]);
        if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
            (unsigned char)c >= 0x80)
            return true;
    }
    return false;
}

/* ---- the end of new_str ---- */

/* Whole lines are replaced, and the next one would be joined to new_text. */
static bool hfsbi_lacks_line_end(const hfsbi_intent *t) {
    size_t   len, end = hfsbi_edit_line_end(t->file, t->match->end, &len);
    hfsb_str next = hfsb_str_slice(t->file->text, t->match->end, end);
    char     last = t->new_text.ptr[t->new_text.len - 1];
    return t->before.ptr && hfsb_str_ends(t->old_text, HFSB_LIT("\n")) &&
           !hfsbi_is_all_blank(t->old_text, 0) &&
           (t->old_text.ptr[0] != '\n' || t->new_text.ptr[0] == '\n') &&
           last != '\n' && !hfsbi_is_blank(last) &&
           !hfsbi_is_all_blank(next, 0);
}

/* The number of bytes at the end of new_text that follow the match in the
   file too; 0 unless both end the same line. */
static size_t hfsbi_doubled_tail(const hfsbi_intent *t) {
    hfsb_str old_line = hfsbi_final_line(t->old_text);
    hfsb_str line = hfsbi_final_line(t->new_text);
    size_t   len, end = hfsbi_edit_line_end(t->file, t->match->end, &len);
    hfsb_str tail = hfsb_str_slice(t->file->text, t->match->end, end);
    if (old_line.len == t->old_text.len) { /* it may start after its indent */
        if (!t->before.ptr) return 0;
        if (hfsb_str_starts(line, t->before) && !hfsbi_indent_len(old_line, 0))
            line = hfsb_str_slice(line, t->before.len, line.len);
    }
    if (hfsbi_is_all_blank(old_line, 0) || hfsbi_is_all_blank(tail, 0) ||
        line.len != old_line.len + tail.len ||
        !hfsb_str_starts(line, old_line) || !hfsb_str_ends(line, tail))
        return 0;
    return tail.len;
}

/* ---- the indentation of new_str ---- */

/* True when a line of text has these words, whatever its indentation. */
static bool hfsbi_has_words(hfsb_str text, hfsb_str words) {
    hfsb_str line;
    while (hfsb_text_line(&text, &line, NULL))
        if (hfsb_str_equal(hfsbi_trim(line), words)) return true;
    return false;
}

/* True when no line of old_text after the first has another indentation in
   new_text, and at least `least` of them have the same. */
static bool hfsbi_keeps_indents(const hfsbi_intent *t, size_t least) {
    hfsb_str olds = hfsbi_other_lines(t->old_text), line;
    hfsb_str news = hfsbi_other_lines(t->new_text);
    size_t   n = 0, kept = 0;
    while (n < HFSBI_INTENT_LINES && hfsb_text_line(&olds, &line, NULL)) {
        hfsb_str words = hfsbi_trim(line);
        if (!words.len) continue;
        n++;
        if (hfsbi_has_indented(news, hfsbi_indentation(line), words)) kept++;
        else if (hfsbi_has_words(news, words)) return false;
    }
    return kept >= least;
}

/* True when the first line of new_text, and only that, may have been moved to
   the right: the next one closes a block. */
static bool hfsbi_closes_block(hfsb_str new_text) {
    hfsb_str next = hfsbi_trim(hfsbi_first_line(hfsbi_other_lines(new_text)));
    return next.len && memchr("})]", next.ptr[0], 3);
}

/* True when old_text begins after the indentation and new_text with it. False
   if other lines precede or replace the first one: they may be deeper. */
static bool hfsbi_doubles_indent(const hfsbi_intent *t) {
    hfsb_str words = hfsbi_trim(hfsbi_first_line(t->old_text));
    hfsb_str now = hfsbi_trim(hfsbi_first_line(t->new_text));
    hfsb_str olds = hfsbi_other_lines(t->old_text);
    return t->before.len && !hfsbi_indent_len(t->old_text, 0) &&
           hfsb_str_equal(hfsbi_indentation(t->new_text), t->before) &&
           !hfsbi_has_words(hfsbi_other_lines(t->new_text), words) &&
           !hfsbi_has_words(olds, now) &&
           (olds.len || !hfsbi_closes_block(t->new_text)) &&
           hfsbi_keeps_indents(t, !hfsb_str_equal(words, now));
}

/* True when the first line of old_text has lost its indentation in
   new_text. */
static bool hfsbi_loses_indent(const hfsbi_intent *t, hfsb_str indent) {
    hfsb_str line = hfsbi_first_line(t->old_text);
    hfsb_str last = hfsbi_final_line(t->old_text);
    return t->before.ptr && !t->before.len && indent.len &&
           indent.len < line.len &&
           (!last.len || !hfsbi_is_all_blank(last, 0)) &&
           hfsb_str_equal(hfsb_str_slice(line, indent.len, line.len),
                          hfsbi_first_line(t->new_text)) &&
           hfsbi_keeps_indents(t, 0);
}

/* True when old_text is a line without its indentation, and new_text repeats
   that line without it after others. */
static bool hfsbi_lacks_all_indent(const hfsbi_intent *t) {
    hfsb_str line = hfsbi_first_line(t->old_text);
    return hfsbi_has_word(line) &&
           !hfsb_str_equal(hfsbi_first_line(t->new_text), line) &&
           !hfsbi_indent_len(t->new_text, 0) &&
           hfsbi_has_indented(hfsbi_other_lines(t->new_text), HFSB_LIT(""),
                              hfsbi_trim(line));
}

/* True when old_text is a line with a part of its indentation, and the other
   lines of new_text lack the rest too: one is level with old_text, and none is
   that line as deep as in the file. */
static bool hfsbi_lacks_some_indent(const hfsbi_intent *t, hfsb_str indent) {
    hfsb_str news = hfsbi_other_lines(t->new_text), line;
    hfsb_str words = hfsbi_trim(hfsbi_first_line(t->old_text));
    bool     level = false;
    if (!hfsb_str_starts(t->new_text, indent)) return false;
    while (hfsb_text_line(&news, &line, NULL)) {
        size_t len = hfsbi_indent_len(line, 0);
        if (len == line.len) continue;
        if (!hfsb_str_starts(line, indent) ||
            (len == indent.len + t->before.len &&
             hfsb_str_equal(hfsbi_trim(line), words)))
            return false;
        if (len == indent.len) level = true;
    }
    return level;
}

static bool hfsbi_lacks_indent(const hfsbi_intent *t, hfsb_str indent) {
    return t->before.len && (indent.len ? hfsbi_lacks_some_indent(t, indent)
                                        : hfsbi_lacks_all_indent(t));
}

/* True when the match ends with its line. */
static bool hfsbi_ends_line(const hfsbi_intent *t) {
    size_t len;
    return hfsb_str_ends(t->old_text, HFSB_LIT("\n")) ||
           hfsbi_edit_line_end(t->file, t->match->end, &len) == t->match->end;
}

static hfsb_str hfsbi_without_line_ends(hfsb_str text) {
    while (hfsb_str_ends(text, HFSB_LIT("\n"))) text.len--;
    return text;
}

/* True when new_text changes the indentation of the first line, and perhaps
   the line ends after the last, but nothing else: then that is meant. */
static bool hfsbi_only_indents(const hfsbi_intent *t) {
    return hfsb_str_equal(hfsbi_trim(hfsbi_first_line(t->old_text)),
                          hfsbi_trim(hfsbi_first_line(t->new_text))) &&
           hfsb_str_equal(
               hfsbi_without_line_ends(hfsbi_other_lines(t->old_text)),
               hfsbi_without_line_ends(hfsbi_other_lines(t->new_text)));
}

static void hfsbi_read_start(hfsbi_intent *t) {
    hfsb_str indent = hfsbi_indentation(t->old_text);
    bool     one_line = !hfsbi_other_lines(t->old_text).len;
    if (hfsbi_is_all_blank(hfsbi_other_lines(t->new_text), 0) ||
        (one_line && !hfsbi_ends_line(t)) || hfsbi_only_indents(t))
        return;
    if (hfsbi_doubles_indent(t)) {
        t->notes |= HFSBI_MEANT_INDENT;
        t->skip = t->before.len;
    } else if (!one_line && hfsbi_loses_indent(t, indent)) {
        t->notes |= HFSBI_MEANT_INDENT;
        t->first = indent;
    } else if (one_line && hfsbi_lacks_indent(t, indent)) {
        t->notes |= HFSBI_MEANT_REINDENT;
        t->indent = t->before;
    }
}

/* ---- the whole ---- */

static void hfsbi_put_meant(const hfsbi_intent *t, hfsb_buf *out) {
    hfsb_str rest =
        hfsb_str_slice(t->new_text, t->skip, t->new_text.len - t->drop);
    hfsb_str line, ending;
    size_t   n;
    for (n = 0; hfsb_text_line(&rest, &line, &ending); n++) {
        if (n == 0) hfsb_buf_append(out, t->first);
        else if (!hfsbi_is_all_blank(line, 0)) hfsb_buf_append(out, t->indent);
        hfsb_buf_append(out, line);
        hfsb_buf_append(out, ending);
    }
    if (t->notes & HFSBI_MEANT_LINE_END) hfsb_buf_append_byte(out, '\n');
}

/* The blanks between the start of the line and pos; ptr NULL if there is
   other text. */
static hfsb_str hfsbi_blanks_before(const hfsbi_edit_text *file, size_t pos) {
    size_t   from = pos;
    hfsb_str none = HFSB_INIT;
    while (from > 0 && hfsbi_is_blank(file->text.ptr[from - 1])) from--;
    return hfsbi_starts_line(file, from)
               ? hfsb_str_slice(file->text, from, pos)
               : none;
}

HFSBI_FN unsigned hfsbi_read_intent(const hfsbi_edit_text *file,
                                    const hfsbi_match     *match,
                                    hfsbi_edit_texts *texts, hfsb_buf *copy) {
    hfsbi_intent t;
    hfsb_str     meant;
    memset(&t, 0, sizeof t);
    if (!texts->new_text.len || !hfsbi_newline_at(file, match->start).len)
        return 0;
    t.file = file;
    t.match = match;
    t.old_text = texts->old_text;
    t.new_text = texts->new_text;
    t.before = hfsbi_blanks_before(file, match->start);
    hfsbi_read_start(&t);
    if (hfsbi_lacks_line_end(&t)) t.notes |= HFSBI_MEANT_LINE_END;
    t.drop = hfsbi_doubled_tail(&t);
    if (t.drop) t.notes |= HFSBI_MEANT_LAST_LINE;
    if (!t.notes) return 0;
    hfsbi_put_meant(&t, copy);
    meant = hfsb_buf_str(copy);
    /* A reading that leaves nothing to change is not the one meant. */
    if (copy->status != HFSB_OK || hfsb_str_equal(meant, texts->old_text))
        return 0;
    texts->new_text = texts->raw_new = meant;
    return t.notes;
}
