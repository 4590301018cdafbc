/* explain.c - reasons to refuse an edit, and the hints that go with them.

   Before the search: lines of new_str that stand for code left out. After a
   search that found nothing: where the text probably is, what differs there,
   what to do; or, when it was found more than once, where. The reader is the
   model that sent the edit: hints are short, concrete, and name the next step.
   Nothing here is ever applied.

   Hints take time linear in the file; everything that is compared more
   closely has a fixed limit. */
#include "edit_private.h"

#define HFSBI_HINT_KEYS       32    /* old lines looked for in the file */
#define HFSBI_HINT_CANDIDATES 64    /* places compared line by line */
#define HFSBI_HINT_LINES      64    /* lines compared at each */
#define HFSBI_HINT_READ       65536 /* longest old_str read another way */
#define HFSBI_HINT_SHOWN      6     /* lines shown of the closest place */
#define HFSBI_HINT_WIDTH      72    /* characters shown of a line */
#define HFSBI_HINT_ROOM       800   /* message length that ends the lines */

/* ---- omitted code ---- */

/* What the words of an omission line are. A line is one if it contains "..."
   and an OMITTED phrase, or starts with a START word and contains a REST word
   and a THING: "rest of the function ...". FILLERs may precede the START. */
enum {
    HFSBI_WORD_OMITTED = 1,
    HFSBI_WORD_FILLER = 2,
    HFSBI_WORD_START = 4,
    HFSBI_WORD_REST = 8,
    HFSBI_WORD_THING = 16
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
         "attributes|constructor|declarations"}};
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
   after each. False when the line contains anything else, or no "...". */
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
    return most >= 3;
}

/* "... existing code ...", "rest of the function ...", "... unchanged". */
static bool hfsbi_is_omission(hfsb_str line) {
    char     text[160];
    hfsb_str s = hfsbi_unwrap(line), words, rest;
    size_t   n;
    if (!hfsbi_omission_words(s, text, sizeof text)) return false;
    words = rest = hfsb_cstr(text);
    if (hfsbi_find_phrase(words, HFSBI_WORD_OMITTED, false)) return true;
    while ((n = hfsbi_find_phrase(rest, HFSBI_WORD_FILLER, true)) > 0)
        rest = hfsb_str_slice(rest, n + 1, rest.len);
    if (!hfsbi_find_phrase(rest, HFSBI_WORD_START, true)) return false;
    if (hfsbi_starts_dots(s) && hfsb_str_starts(rest, HFSB_LIT(" rest of ")))
        return true;
    return hfsbi_find_phrase(words, HFSBI_WORD_REST, false) &&
           hfsbi_find_phrase(words, HFSBI_WORD_THING, false);
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
    hfsb_str line, none = HFSB_INIT;
    size_t   searches = 0; /* each costs a pass over the file */
    while (searches < 64 && hfsb_text_line(&new_text, &line, NULL)) {
        if (!hfsbi_is_omission(line)) continue;
        searches++;
        if (!hfsbi_has_line(old_text, line) &&
            !hfsbi_has_line(file_text, line))
            return hfsbi_trim(line);
    }
    return none;
}

/* ---- showing text ---- */

/* Adds a line with visible blanks, cut to a width. Other control characters
   appear as their code. */
static void hfsbi_show_line(hfsb_err *err, hfsb_str line, size_t number) {
    size_t pos = 0, shown = 0;
    hfsbi_err_add(err, "\n  %zu| ", number);
    while (pos < line.len && shown++ < HFSBI_HINT_WIDTH) {
        unsigned long code;
        bool          valid;
        size_t        len = hfsb_utf8_step(line, pos, &code, &valid);
        if (code == '\t') hfsbi_err_add(err, "\xE2\x86\x92");
        else if (code == ' ') hfsbi_err_add(err, "\xC2\xB7");
        else if (!valid) hfsbi_err_add(err, "\xEF\xBF\xBD");
        else if (code < ' ' || code == 0x7F)
            hfsbi_err_add(err, "<%02lX>", code);
        else hfsbi_err_add(err, "%.*s", (int)len, line.ptr + pos);
        pos += len;
    }
    if (pos < line.len) hfsbi_err_add(err, "...");
}

/* Adds "U+0009 (tab)" for the character at pos. */
static void hfsbi_show_code(hfsb_err *err, hfsb_str line, size_t pos) {
    unsigned long code;
    bool          valid;
    size_t        len;
    if (pos >= line.len) {
        hfsbi_err_add(err, "the end of the line");
        return;
    }
    len = hfsb_utf8_step(line, pos, &code, &valid);
    if (!valid) {
        hfsbi_err_add(err, "a byte that is not UTF-8");
        return;
    }
    hfsbi_err_add(err, "U+%04lX", code);
    if (code == ' ') hfsbi_err_add(err, " (space)");
    else if (code == '\t') hfsbi_err_add(err, " (tab)");
    else if (code == 0xA0) hfsbi_err_add(err, " (no-break space)");
    else if (code > ' ' && code != 0x7F && (code < 0x80 || code >= 0xA1))
        hfsbi_err_add(err, " (%.*s)", (int)len, line.ptr + pos);
}

/* ---- the closest place ---- */

/* old_str beside the file, line by line, as the loosest folds show them. */
typedef struct hfsbi_comparison {
    const hfsbi_hint *hint;
    hfsbi_line_table  olds, lines;
    hfsb_err         *err;
} hfsbi_comparison;

/* Where old_str would be in the file. */
typedef struct hfsbi_closest {
    size_t line;  /* of the file, 0-based */
    size_t skip;  /* lines of old_str that would lie before the file */
    size_t equal; /* lines that are equal there */
    bool   found;
} hfsbi_closest;

/* True when old line i is line k of the file, to the folds. */
static bool hfsbi_lines_agree(const hfsbi_comparison *c, size_t i, size_t k) {
    return hfsb_str_equal(c->olds.items[i].fold, c->lines.items[k].fold);
}

/* The place where old line i is line k of the file. */
static hfsbi_closest hfsbi_place_at(size_t i, size_t k) {
    hfsbi_closest p = HFSB_INIT;
    p.found = true;
    p.skip = i > k ? i - k : 0;
    p.line = i > k ? 0 : k - i;
    return p;
}

static bool hfsbi_old_is_blank(const hfsbi_comparison *c, size_t i) {
    return hfsbi_is_all_blank(hfsbi_line_text(&c->olds, i), HFSBI_FOLD_LOOKS);
}

/* Lists the old lines worth looking for: the first that are not blank. */
static size_t hfsbi_pick_keys(const hfsbi_comparison *c, size_t *keys) {
    size_t i, n = 0;
    for (i = 0; i < c->olds.count && n < HFSBI_HINT_KEYS; i++)
        if (!hfsbi_old_is_blank(c, i)) keys[n++] = i;
    return n;
}

static size_t hfsbi_count_equal(const hfsbi_comparison *c, hfsbi_closest p) {
    size_t i, n = 0;
    for (i = p.skip; i < c->olds.count && i < p.skip + HFSBI_HINT_LINES; i++) {
        size_t k = p.line + i - p.skip;
        if (k >= c->lines.count) break;
        if (hfsbi_lines_agree(c, i, k) && !hfsbi_old_is_blank(c, i)) n++;
    }
    return n;
}

/* By equal lines: each file line that is one of the keys proposes a place. */
static hfsbi_closest hfsbi_closest_by_lines(const hfsbi_comparison *c) {
    hfsbi_closest best = HFSB_INIT;
    size_t keys[HFSBI_HINT_KEYS], count = hfsbi_pick_keys(c, keys), i, k;
    size_t tried = 0;
    for (i = 0; i < c->lines.count && tried < HFSBI_HINT_CANDIDATES; i++) {
        hfsbi_closest p;
        for (k = 0; k < count && !hfsbi_lines_agree(c, keys[k], i);) k++;
        if (k == count) continue;
        tried++;
        p = hfsbi_place_at(keys[k], i);
        p.equal = hfsbi_count_equal(c, p);
        if (p.equal > best.equal || !best.found) best = p;
    }
    return best;
}

/* 64 bits, one for each class of letter pairs in the line. */
static unsigned long long hfsbi_signature(hfsb_str line) {
    unsigned long long bits = 0;
    size_t             i, last = 0, end = line.len < 256 ? line.len : 256;
    for (i = 0; i < end; i++) {
        unsigned char c = (unsigned char)hfsbi_lower(line.ptr[i]);
        if (c == ' ' || c == '\t') continue;
        bits |= 1ull << ((last * 31 + c) & 63u);
        last = c;
    }
    return bits;
}

static unsigned hfsbi_count_bits(unsigned long long bits) {
    unsigned n = 0;
    for (; bits; bits &= bits - 1) n++;
    return n;
}

/* By similar letters, when no line is equal: the file's line that is most
   like the longest old line. At least six in ten pairs must agree. */
static hfsbi_closest hfsbi_closest_by_letters(const hfsbi_comparison *c) {
    hfsbi_closest      best = HFSB_INIT;
    size_t             i, longest = 0;
    unsigned           most = 0;
    unsigned long long sign;
    for (i = 1; i < c->olds.count; i++)
        if (hfsbi_line_text(&c->olds, i).len >
            hfsbi_line_text(&c->olds, longest).len)
            longest = i;
    sign = hfsbi_signature(hfsbi_line_text(&c->olds, longest));
    if (hfsbi_count_bits(sign) < 4) return best;
    for (i = 0; i < c->lines.count; i++) {
        unsigned long long s = hfsbi_signature(hfsbi_line_text(&c->lines, i));
        unsigned           both = hfsbi_count_bits(s & sign);
        unsigned           all = hfsbi_count_bits(s | sign);
        if (both * 10 < all * 6 || both * 64 / all <= most) continue;
        most = both * 64 / all;
        best = hfsbi_place_at(longest, i);
    }
    return best;
}

/* ---- what differs ---- */

/* True when the lines differ only in blanks and look-alikes. */
static bool hfsbi_differ_in_blanks(const hfsb_alloc *alloc, hfsb_str a,
                                   hfsb_str b) {
    const unsigned folds = HFSBI_FOLD_INDENT | HFSBI_FOLD_TRAIL |
                           HFSBI_FOLD_LOOKS | HFSBI_FOLD_RUNS;
    hfsb_buf x = HFSB_INIT, y = HFSB_INIT;
    bool     same;
    x.alloc = y.alloc = *alloc;
    hfsbi_fold(a, folds, &x);
    hfsbi_fold(b, folds, &y);
    same = x.status == HFSB_OK && y.status == HFSB_OK &&
           hfsb_str_equal(hfsb_buf_str(&x), hfsb_buf_str(&y));
    hfsb_buf_free(&x);
    hfsb_buf_free(&y);
    return same;
}

/* Adds the kind of difference between an old line and the file's line. */
static void hfsbi_hint_kind(const hfsbi_comparison *c, hfsb_str o, hfsb_str f,
                            size_t line) {
    size_t oi = hfsbi_indent_len(o, 0), fi = hfsbi_indent_len(f, 0);
    bool   same = hfsb_str_equal(hfsb_str_slice(o, oi, o.len),
                                 hfsb_str_slice(f, fi, f.len));
    bool   old_tab = oi && memchr(o.ptr, '\t', oi) != NULL;
    bool   file_tab = fi && memchr(f.ptr, '\t', fi) != NULL;
    if (same && oi && old_tab != file_tab)
        hfsbi_err_add(c->err,
                      " The file indents this line with %s, old_str "
                      "with %s.",
                      file_tab ? "tabs" : "spaces",
                      old_tab ? "tabs" : "spaces");
    else if (same)
        hfsbi_err_add(c->err, " Only the indentation of this line differs.");
    else if (hfsbi_differ_in_blanks(c->hint->alloc, o, f))
        hfsbi_err_add(c->err, " Only blanks or look-alike characters differ.");
    else
        hfsbi_err_add(c->err, " Line %zu of old_str is not what the file has.",
                      line + 1);
}

/* The old line to show: the first that is another line, else the first whose
   bytes differ or that lies after the end of the file; HFSB_NPOS if none. */
static size_t hfsbi_differing_line(const hfsbi_comparison *c,
                                   hfsbi_closest           p) {
    size_t i, first = HFSB_NPOS;
    for (i = p.skip; i < c->olds.count; i++) {
        size_t k = p.line + i - p.skip;
        if (k >= c->lines.count) return first == HFSB_NPOS ? i : first;
        if (!hfsbi_lines_agree(c, i, k)) return i;
        if (first == HFSB_NPOS &&
            !hfsb_str_equal(hfsbi_line_text(&c->olds, i),
                            hfsbi_line_text(&c->lines, k)))
            first = i;
    }
    return first;
}

/* Adds the first difference, by line, column and code points. */
static void hfsbi_hint_difference(const hfsbi_comparison *c, hfsbi_closest p) {
    size_t   i = hfsbi_differing_line(c, p), k, o_pos = 0, f_pos = 0;
    hfsb_str o, f;
    if (i == HFSB_NPOS) return;
    k = p.line + i - p.skip;
    if (k >= c->lines.count) {
        hfsbi_err_add(c->err, "\nThe file ends before line %zu of old_str.",
                      i + 1);
        return;
    }
    o = hfsbi_line_text(&c->olds, i);
    f = hfsbi_line_text(&c->lines, k);
    if (!hfsbi_lines_agree(c, i, k)) {
        o_pos = hfsbi_indent_len(o, HFSBI_FOLD_LOOKS);
        f_pos = hfsbi_indent_len(f, HFSBI_FOLD_LOOKS);
    }
    while (o_pos < o.len && f_pos < f.len && o.ptr[o_pos] == f.ptr[f_pos]) {
        o_pos++;
        f_pos++;
    }
    while (f_pos > 0 && o_pos > 0 && f_pos < f.len &&
           ((unsigned char)f.ptr[f_pos] & 0xC0u) == 0x80u) {
        o_pos--;
        f_pos--;
    }
    hfsbi_err_add(c->err,
                  "\nFirst difference: line %zu, column %zu: you sent ", k + 1,
                  hfsb_utf8_count(hfsb_str_slice(f, 0, f_pos)) + 1);
    hfsbi_show_code(c->err, o, o_pos);
    hfsbi_err_add(c->err, ", the file has ");
    hfsbi_show_code(c->err, f, f_pos);
    hfsbi_err_add(c->err, ".");
    hfsbi_hint_kind(c, o, f, i);
}

static void hfsbi_hint_closest(const hfsbi_comparison *c, hfsbi_closest p) {
    size_t want = c->olds.count - p.skip, i, n = c->lines.count - p.line;
    if (n > want) n = want;
    hfsbi_err_add(c->err, "\nClosest lines (\xE2\x86\x92 is a tab, \xC2\xB7 a "
                          "space):");
    for (i = 0; i < n && i < HFSBI_HINT_SHOWN &&
                strlen(c->err->msg) < HFSBI_HINT_ROOM;
         i++)
        hfsbi_show_line(c->err, hfsbi_line_text(&c->lines, p.line + i),
                        p.line + i + 1);
    if (n > i) hfsbi_err_add(c->err, "\n  ... to line %zu", p.line + n);
    hfsbi_hint_difference(c, p);
    hfsbi_err_add(c->err,
                  "\nTo see the place call read with offset=%zu, "
                  "limit=%zu.",
                  p.line > 2 ? p.line - 1 : 1, n + 4);
}

/* ---- two places taken for one ---- */

/* Number of lines in the longest head of old_str that is in the file, or the
   longest tail. If one occurs in the file, so does every shorter one: the
   search bisects. */
static size_t hfsbi_longest_part(const hfsbi_comparison *c, bool tail) {
    size_t n = c->olds.count, lo = 0, hi = n;
    while (lo < hi) {
        size_t   mid = hi - (hi - lo) / 2;
        hfsb_str part = tail ? hfsbi_line_folds(&c->olds, n - mid, n)
                             : hfsbi_line_folds(&c->olds, 0, mid);
        if (hfsbi_line_table_find(&c->lines, part, 0) == HFSB_NPOS)
            hi = mid - 1;
        else lo = mid;
    }
    return lo;
}

/* The last line of the file where part starts, which is at line `at`. */
static size_t hfsbi_find_last(const hfsbi_comparison *c, hfsb_str part,
                              size_t at) {
    size_t hi = c->lines.count;
    while (at + 1 < hi) {
        size_t mid = at + (hi - at) / 2;
        size_t found = hfsbi_line_table_find(&c->lines, part, mid);
        if (found == HFSB_NPOS) hi = mid;
        else at = found;
    }
    return at;
}

/* "lines 1-3 are at 120-122, the rest at 2457". */
static void hfsbi_hint_split(const hfsbi_comparison *c) {
    size_t   n = c->olds.count, head, tail, at, rest;
    hfsb_str part;
    if (n < 2 || !c->lines.count) return;
    head = hfsbi_longest_part(c, false);
    if (!head || head == n) return;
    tail = hfsbi_longest_part(c, true);
    if (!tail || head + tail < n) return;
    at = hfsbi_line_table_find(&c->lines, hfsbi_line_folds(&c->olds, 0, head),
                               0);
    part = hfsbi_line_folds(&c->olds, n - tail, n);
    rest = hfsbi_find_last(c, part, hfsbi_line_table_find(&c->lines, part, 0));
    if (head == 1)
        hfsbi_err_add(c->err, "\nLine 1 of old_str is at line %zu", at + 1);
    else
        hfsbi_err_add(c->err, "\nLines 1-%zu of old_str are at lines %zu-%zu",
                      head, at + 1, at + head);
    hfsbi_err_add(c->err,
                  " of the file, the rest is at line %zu: not contiguous. "
                  "Make two edits, or quote all lines between.",
                  rest + 1 + (head + tail - n));
}

/* ---- other readings of old_str ---- */

static char hfsbi_unescaped(char c) {
    switch (c) {
    case 'n': return '\n';
    case 't': return '\t';
    case 'r': return '\r';
    case '"':
    case '\'':
    case '`':
    case '$':
    case '\\':
    case '/': return c;
    default: return 0;
    }
}

static void hfsbi_put_unescaped(hfsb_buf *out, hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len; i++) {
        char c = s.ptr[i] == '\\' && i + 1 < s.len
                     ? hfsbi_unescaped(s.ptr[i + 1])
                     : '\0';
        if (c) i++;
        if (c != '\r') hfsb_buf_append_byte(out, c ? c : s.ptr[i]);
    }
}

/* Lower case; or, in the second, only the visible bytes. Both are used on a
   whole file, so they write into the buffer directly. */
static void hfsbi_put_lower(hfsb_buf *out, hfsb_str s) {
    char  *to;
    size_t i;
    out->status = hfsb_buf_reserve(out, s.len);
    if (out->status != HFSB_OK) return;
    to = out->ptr + out->len;
    for (i = 0; i < s.len; i++) to[i] = hfsbi_lower(s.ptr[i]);
    out->len += s.len;
}

static void hfsbi_put_visible(hfsb_buf *out, hfsb_str s) {
    char  *to;
    size_t i, n = 0;
    out->status = hfsb_buf_reserve(out, s.len);
    if (out->status != HFSB_OK) return;
    to = out->ptr + out->len;
    for (i = 0; i < s.len; i++) {
        to[n] = s.ptr[i];
        n += (unsigned char)s.ptr[i] > ' ';
    }
    out->len += n;
}

static void hfsbi_put_entities(hfsb_buf *out, hfsb_str s, bool encode) {
    static const char *const list[][2] = {{"&amp;", "&"},
                                          {"&lt;", "<"},
                                          {"&gt;", ">"},
                                          {"&quot;", "\""},
                                          {"&#39;", "'"}};
    const size_t             count = sizeof list / sizeof *list;
    size_t                   i = 0, k;
    while (i < s.len) {
        hfsb_str rest = hfsb_str_slice(s, i, s.len);
        for (k = 0; k < count; k++)
            if (hfsb_str_starts(rest, hfsb_cstr(list[k][encode]))) break;
        if (k < count) {
            hfsb_buf_append(out, hfsb_cstr(list[k][!encode]));
            i += strlen(list[k][encode]);
        } else {
            hfsb_buf_append_byte(out, s.ptr[i++]);
        }
    }
}

static void hfsbi_put_encoded(hfsb_buf *out, hfsb_str s) {
    hfsbi_put_entities(out, s, true);
}

static void hfsbi_put_decoded(hfsb_buf *out, hfsb_str s) {
    hfsbi_put_entities(out, s, false);
}

typedef void hfsbi_reading(hfsb_buf *out, hfsb_str s);

/* Offset in the file of old_str read another way (with `both`, in the file
   read that way too), or HFSB_NPOS. */
static size_t hfsbi_find_reading(const hfsbi_hint *h, hfsb_str file,
                                 hfsbi_reading *reading, bool both) {
    hfsb_buf needle = HFSB_INIT, text = HFSB_INIT;
    size_t   at = HFSB_NPOS;
    needle.alloc = text.alloc = *h->alloc;
    reading(&needle, h->old_text);
    if (both) reading(&text, file);
    if (needle.status == HFSB_OK && text.status == HFSB_OK && needle.len &&
        (both || !hfsb_str_equal(hfsb_buf_str(&needle), h->old_text)))
        at = hfsb_str_find(both ? hfsb_buf_str(&text) : file,
                           hfsb_buf_str(&needle));
    hfsb_buf_free(&needle);
    hfsb_buf_free(&text);
    return at;
}

/* Offset of the visible byte that follows `count` visible ones. */
static size_t hfsbi_nth_visible(hfsb_str s, size_t count) {
    size_t i;
    for (i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] > ' ' && count-- == 0) return i;
    return s.len;
}

static void hfsbi_hint_reading(const hfsbi_hint *h, hfsb_str file) {
    static const struct {
        hfsbi_reading *reading;
        bool           both;
        const char    *text;
    } list[] = {
        {hfsbi_put_unescaped, false,
         "old_str has escapes such as \\n or \\\" (a backslash and a letter) "
         "where the file has the characters themselves"},
        {hfsbi_put_encoded, false,
         "The file has HTML entities such as &amp; where old_str has the "
         "characters"},
        {hfsbi_put_decoded, false,
         "old_str has HTML entities such as &amp; where the file has the "
         "characters"},
        {hfsbi_put_lower, true, "Upper and lower case differ"},
        {hfsbi_put_visible, true, "Only blanks and line breaks differ"}};
    size_t i, at;
    if (h->old_text.len > HFSBI_HINT_READ) return;
    for (i = 0; i < sizeof list / sizeof *list; i++) {
        at = hfsbi_find_reading(h, file, list[i].reading, list[i].both);
        if (at == HFSB_NPOS) continue;
        if (list[i].reading == hfsbi_put_visible)
            at = hfsbi_nth_visible(file, at);
        hfsbi_err_add(h->err, "\n%s, at line %zu.", list[i].text,
                      hfsb_text_line_number(file, at));
        return;
    }
}

/* ---- the messages ---- */

static void hfsbi_hint_numbers(const hfsbi_hint *h) {
    hfsbi_numbered o = hfsbi_numbered_scan(h->old_text);
    hfsbi_numbered n = hfsbi_numbered_scan(h->new_text);
    if (o.prefixed && (o.prefixed < o.lines || !o.consecutive))
        hfsbi_err_add(h->err,
                      "\n%zu of %zu lines of old_str begin with a line "
                      "number as read shows it: leave those out.",
                      o.prefixed, o.lines);
    else if (o.prefixed && n.prefixed && n.prefixed < n.lines)
        hfsbi_err_add(h->err, "\nSome lines of new_str begin with a line "
                              "number as read shows it: leave those out.");
}

static void hfsbi_hint_elision(const hfsbi_hint *h) {
    hfsb_str rest = h->old_text, line;
    size_t   number = 1;
    for (; hfsb_text_line(&rest, &line, NULL); number++) {
        line = hfsb_str_slice(line, hfsbi_indent_len(line, 0), line.len);
        if (!hfsb_str_equal(line, HFSB_LIT("...")) &&
            !hfsb_str_equal(line, HFSB_LIT("\xE2\x80\xA6")))
            continue;
        hfsbi_err_add(h->err,
                      "\nLine %zu of old_str is \"...\": quote every "
                      "line, or make one edit before it and one after it.",
                      number);
        return;
    }
}

static void hfsbi_hint_applied(const hfsbi_hint *h, hfsb_str file) {
    size_t at;
    if (hfsbi_is_all_blank(h->new_text, 0) || h->new_text.len < 4) return;
    at = hfsb_str_find(file, h->new_text);
    if (at != HFSB_NPOS)
        hfsbi_err_add(h->err,
                      "\nnew_str is already at line %zu: was this edit "
                      "made before?",
                      hfsb_text_line_number(file, at));
}

/* Hints of a plain search, in the file with LF for its line ends. */
static void hfsbi_hint_search(const hfsbi_hint *h) {
    hfsb_buf copy = HFSB_INIT;
    hfsb_str file;
    copy.alloc = *h->alloc;
    file = hfsbi_fold_newlines(h->file, h->file->text, &copy);
    if (copy.status == HFSB_OK) {
        hfsbi_hint_applied(h, file);
        hfsbi_hint_reading(h, file);
    }
    hfsb_buf_free(&copy);
}

HFSBI_FN void hfsbi_hint_not_found(const hfsbi_hint *hint) {
    unsigned folds = HFSBI_FOLD_INDENT | HFSBI_FOLD_TRAIL | HFSBI_FOLD_LOOKS;
    hfsbi_comparison c;
    hfsbi_closest    p;
    if (!hint->err) return;
    if (!hint->file->text.len) {
        hfsbi_err_add(hint->err, " The file is empty.");
        return;
    }
    memset(&c, 0, sizeof c);
    c.hint = hint;
    c.err = hint->err;
    c.olds.view.text.alloc = c.lines.view.text.alloc = *hint->alloc;
    hfsbi_hint_numbers(hint);
    hfsbi_hint_elision(hint);
    hfsbi_hint_search(hint);
    if (hfsbi_line_table_build(&c.olds, hint->old_text, folds) == HFSB_OK &&
        hfsbi_line_table_build(&c.lines, hint->file->text,
                               hint->file->lone_cr ? folds | HFSBI_FOLD_CR
                                                   : folds) == HFSB_OK) {
        hfsbi_hint_split(&c);
        p = hfsbi_closest_by_lines(&c);
        if (!p.found) p = hfsbi_closest_by_letters(&c);
        if (p.found) hfsbi_hint_closest(&c, p);
        else
            hfsbi_err_add(c.err, "\nNo line of the file looks like it. Read "
                                 "the file and copy old_str from it.");
    }
    hfsbi_line_table_free(&c.olds);
    hfsbi_line_table_free(&c.lines);
}

HFSBI_FN void hfsbi_hint_ambiguous(const hfsbi_hint    *hint,
                                   const hfsbi_matches *matches) {
    hfsb_str text = hint->file->text;
    size_t   i, pos = 0, line = 1, len;
    hfsbi_err_add(hint->err, "\nIt matches %s at:",
                  hfsbi_rung_words_of(matches->rung)->how);
    for (i = 0; i < matches->count && i < 10; i++) {
        size_t at = matches->items[i].start, from = at;
        line += hfsbi_count_lines(hint->file, hfsb_str_slice(text, pos, at));
        pos = at;
        while (!hfsbi_starts_line(hint->file, from)) from--;
        hfsbi_show_line(
            hint->err,
            hfsb_str_slice(text, from,
                           hfsbi_edit_line_end(hint->file, from, &len)),
            line);
    }
    if (matches->count > 10)
        hfsbi_err_add(hint->err, "\n  ... and %zu more", matches->count - 10);
    if (matches->overlapping && matches->count == 1)
        hfsbi_err_add(hint->err, "\n  ... and again, overlapping itself");
    hfsbi_err_add(hint->err,
                  "\nAdd a neighbouring line to old_str%s, or set "
                  "replace_all=true to change all of them.",
                  matches->rung <= HFSBI_RUNG_EOF
                      ? ", or give line=N for the one that starts there"
                      : "");
}
