/* screen.c - an edit before the search: line ends, copied line numbers, code
   left out. Depends on: base, utf8, text, view. */
#include "match.h"

/* ---- line ends ---- */

HFSBI_FN hfsb_status hfsbi_fold_newlines(hfsb_str text, bool lone_cr,
                                         hfsb_buf *copy, hfsb_str *out) {
    hfsbi_folder f = hfsbi_folder_make(text, lone_cr ? HFSBI_FOLD_CR : 0);
    hfsbi_unit   u;
    hfsbi_sink   sink = hfsbi_sink_begin(copy);
    *out = text;
    if (hfsb_str_find_byte(text, '\r') == HFSB_NPOS) return HFSB_OK;
    while (hfsbi_folder_next(&f, &u)) hfsbi_put(&sink, u.out);
    *out = hfsb_str_slice(hfsb_buf_str(copy), sink.mark, copy->len);
    return hfsbi_sink_end(&sink);
}

/* ---- line numbers ---- */

/* What stands between a number and its line. */
static const hfsb_str *hfsbi_separators(size_t *count) {
    static const hfsb_str list[] = {
        {"\t", 1}, {" | ", 3}, {"|", 1}, {": ", 2}, {"\xE2\x86\x92", 3}};
    *count = sizeof list / sizeof *list;
    return list;
}

/* Length of the listing prefix of line, 0 for none; its number and the kind
   of separator. Of a separator that ends in a blank the blank may be missing
   on an empty line. */
static size_t hfsbi_number_prefix(hfsb_str line, unsigned long long *number,
                                  size_t *kind) {
    size_t          pos = 0, start, count, i;
    const hfsb_str *list = hfsbi_separators(&count);
    hfsb_str        rest;
    while (pos < line.len && (line.ptr[pos] == ' ' || line.ptr[pos] == '\t'))
        pos++;
    start = pos;
    *number = 0;
    while (pos < line.len && pos - start < 18 && line.ptr[pos] >= '0' &&
           line.ptr[pos] <= '9')
        *number = *number * 10 + (unsigned long long)(line.ptr[pos++] - '0');
    if (pos == start) return 0;
    rest = hfsb_str_slice(line, pos, line.len);
    for (i = 0; i < count; i++) {
        hfsb_str sep = list[i];
        *kind = i;
        if (hfsb_str_starts(rest, sep)) return pos + sep.len;
        if (sep.len > 1 && sep.ptr[sep.len - 1] == ' ' &&
            hfsb_str_equal(rest, hfsb_str_slice(sep, 0, sep.len - 1)))
            return pos + sep.len - 1;
    }
    return 0;
}

HFSBI_FN hfsbi_numbered hfsbi_numbered_scan(hfsb_str text) {
    hfsbi_numbered     n = HFSB_INIT;
    hfsb_str           line;
    unsigned long long number, last = 0;
    size_t             kind, first_kind = 0;
    n.consecutive = text.len > 0;
    for (; hfsb_text_line(&text, &line, NULL); n.lines++) {
        if (!hfsbi_number_prefix(line, &number, &kind)) {
            n.consecutive = false;
            continue;
        }
        if (!n.prefixed) first_kind = kind;
        else if (number != last + 1) n.consecutive = false;
        if (kind != first_kind) n.consecutive = false;
        last = number;
        n.prefixed++;
    }
    return n;
}

HFSBI_FN hfsb_status hfsbi_numbered_strip(hfsb_str text, hfsb_buf *out) {
    hfsbi_sink         sink = hfsbi_sink_begin(out);
    hfsb_str           line, ending;
    unsigned long long number;
    size_t             kind;
    while (hfsb_text_line(&text, &line, &ending)) {
        size_t n = hfsbi_number_prefix(line, &number, &kind);
        hfsbi_put(&sink, hfsb_str_slice(line, n, line.len));
        hfsbi_put(&sink, ending);
    }
    return hfsbi_sink_end(&sink);
}

/* ---- code left out ---- */

/* What comments and placeholders are wrapped in. */
static hfsb_str hfsbi_unwrap(hfsb_str s) {
    static const char open[] = "/*#<!-;%([{\"'", close[] = "*/-->)]}\"';";
    s = hfsbi_trim(s);
    while (s.len && memchr(open, s.ptr[0], sizeof open - 1))
        s = hfsbi_trim(hfsb_str_slice(s, 1, s.len));
    while (s.len && memchr(close, s.ptr[s.len - 1], sizeof close - 1))
        s = hfsbi_trim(hfsb_str_slice(s, 0, s.len - 1));
    return s;
}

#define HFSBI_OMISSION_WORDS 12

static bool hfsbi_starts_dots(hfsb_str s) {
    return hfsb_str_starts(s, HFSB_LIT("...")) ||
           hfsb_str_starts(s, HFSB_LIT("\xE2\x80\xA6"));
}

/* What may stand between the words of such a line. One that begins with dots
   may say more, "... (lines 10-20: unchanged) ..."; any other is more likely
   to be code or prose. */
static bool hfsbi_is_between(char c, bool dots_first) {
    static const char plain[] = " \t,-'/", more[] = "()[]{}:;!`_\"0123456789";
    return memchr(plain, c, sizeof plain - 1) ||
           (dots_first && memchr(more, c, sizeof more - 1));
}

/* The words of a line, in lower case, one blank between them and around, so
   that phrases can be looked for; dots are dropped. False when the line holds
   anything but words and dots, or no "...". */
static bool hfsbi_omission_words(hfsb_str s, char *out, size_t size) {
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
            if (!dots && !hfsbi_is_between(c, dots_first)) return false;
            c = ' ';
        }
        if (c == ' ' && out[n - 1] == ' ') continue;
        if (c == ' ' && ++words > HFSBI_OMISSION_WORDS) return false;
        if (n + 2 >= size) return false;
        out[n++] = c;
    }
    if (out[n - 1] != ' ') out[n++] = ' ';
    out[n] = '\0';
    return most >= 3;
}

/* Behind words that only lead up to the others. */
static const char *hfsbi_skip_fillers(const char *words) {
    static const char *const fillers[] = {" all ",  " and ", " some ",
                                          " the ",  " or ",  " then ",
                                          " keep ", " your "};
    size_t i = 0, n = sizeof fillers / sizeof *fillers;
    while (i < n) {
        size_t len = strlen(fillers[i]);
        if (strncmp(words, fillers[i], len) == 0) {
            words += len - 1;
            i = 0;
        } else {
            i++;
        }
    }
    return words;
}

static bool hfsbi_has_word(const char *words, const char *const *list,
                           size_t count) {
    size_t i;
    for (i = 0; i < count; i++)
        if (hfsb_str_find(hfsb_cstr(words), hfsb_cstr(list[i])) != HFSB_NPOS)
            return true;
    return false;
}

static bool hfsbi_starts_word(const char *words, const char *const *list,
                              size_t count) {
    size_t i;
    for (i = 0; i < count; i++)
        if (hfsb_str_starts(hfsb_cstr(words), hfsb_cstr(list[i])))
            return true;
    return false;
}

#define HFSBI_COUNT(list) (sizeof(list) / sizeof *(list))

/* "... existing code ...", "rest of the function ...", "... unchanged": a
   whole line that says something was left out. */
static bool hfsbi_is_omission(hfsb_str line) {
    static const char *const plain[] = {" unchanged ",    " as before ",
                                        " same as ",      " stays the same ",
                                        " remains the same ",
                                        " remain the same ", " no change ",
                                        " no changes ",   " omitted "};
    static const char *const starts[] = {
        " existing ", " rest ",    " remaining ", " other ", " previous ",
        " add ",      " insert ",  " include ",   " leave ", " same ",
        " original ", " more ",    " the rest ",  " put "};
    static const char *const things[] = {
        " code ",     " function ",   " functions ",  " method ",
        " methods ",  " class ",      " classes ",    " file ",
        " implementation ", " implementations ", " lines ", " line ",
        " imports ",  " import ",     " content ",    " contents ",
        " body ",     " logic ",      " fields ",     " tests ",
        " test ",     " cases ",      " props ",      " properties ",
        " definitions ", " variables ", " config ",   " configuration ",
        " entries ",  " parameters ", " statements ", " comments ",
        " module ",   " component ",  " components ", " script ",
        " block ",    " section ",    " sections ",   " document ",
        " styles ",   " rules ",      " routes ",     " handlers ",
        " elements ", " attributes ", " constructor ", " declarations "};
    static const char *const rest[] = {" rest of ", " existing ",
                                       " remaining ", " other ",
                                       " previous ", " original ",
                                       " same "};
    char        words[160];
    const char *rest_words;
    hfsb_str    s = hfsbi_unwrap(line);
    if (!hfsbi_omission_words(s, words, sizeof words)) return false;
    if (hfsbi_has_word(words, plain, HFSBI_COUNT(plain))) return true;
    rest_words = hfsbi_skip_fillers(words);
    if (!hfsbi_starts_word(rest_words, starts, HFSBI_COUNT(starts)))
        return false;
    if (hfsbi_starts_dots(s) &&
        hfsb_str_starts(hfsb_cstr(rest_words), HFSB_LIT(" rest of ")))
        return true;
    return hfsbi_has_word(words, rest, HFSBI_COUNT(rest)) &&
           hfsbi_has_word(words, things, HFSBI_COUNT(things));
}

static bool hfsbi_is_line_end(char c) { return c == '\n' || c == '\r'; }

/* True when the bytes [from, to) are a whole line, blanks aside. */
static bool hfsbi_is_whole_line(hfsb_str text, size_t from, size_t to) {
    while (from > 0 &&
           (text.ptr[from - 1] == ' ' || text.ptr[from - 1] == '\t'))
        from--;
    while (to < text.len && (text.ptr[to] == ' ' || text.ptr[to] == '\t'))
        to++;
    return (from == 0 || hfsbi_is_line_end(text.ptr[from - 1])) &&
           (to == text.len || hfsbi_is_line_end(text.ptr[to]));
}

/* True when text has this line, blanks at its ends aside. */
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
    hfsb_str line, none = HFSB_INIT;
    size_t   looked_up = 0; /* each costs a pass over the file */
    while (looked_up < 64 && hfsb_text_line(&new_text, &line, NULL)) {
        if (!hfsbi_is_omission(line)) continue;
        looked_up++;
        if (!hfsbi_has_line(old_text, line) &&
            !hfsbi_has_line(file_text, line))
            return hfsbi_trim(line);
    }
    return none;
}
