/* explain.c - what a refusal says: where the text probably is, what differs, what
   to do.

   Nothing here is ever applied. The work is linear in the file, with fixed
   limits on everything that is compared more closely. */
#include "edit_private.h"

/* ==== screen ==== */

/* an edit before the search: line ends, copied line numbers, code
   left out. */

/* ---- line ends ---- */

HFSBI_FN hfsb_status hfsbi_fold_newlines(hfsb_str text, bool lone_cr,
                                         hfsb_buf *copy, hfsb_str *out) {
    hfsbi_folder f = hfsbi_folder_make(text, lone_cr ? HFSBI_FOLD_CR : 0);
    hfsbi_unit   u;
    size_t       mark = copy->len;
    *out = text;
    if (hfsb_str_find_byte(text, '\r') == HFSB_NPOS) return HFSB_OK;
    while (hfsbi_folder_next(&f, &u)) hfsb_buf_append(copy, u.out);
    *out = hfsb_str_slice(hfsb_buf_str(copy), mark, copy->len);
    return hfsb_buf_finish(copy, mark);
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
    size_t             mark = out->len;
    hfsb_str           line, ending;
    unsigned long long number;
    size_t             kind;
    while (hfsb_text_line(&text, &line, &ending)) {
        size_t n = hfsbi_number_prefix(line, &number, &kind);
        hfsb_buf_append(out, hfsb_str_slice(line, n, line.len));
        hfsb_buf_append(out, ending);
    }
    return hfsb_buf_finish(out, mark);
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
    size_t                   i = 0, n = sizeof fillers / sizeof *fillers;
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
        if (hfsb_str_starts(hfsb_cstr(words), hfsb_cstr(list[i]))) return true;
    return false;
}

#define HFSBI_COUNT(list) (sizeof(list) / sizeof *(list))

/* "... existing code ...", "rest of the function ...", "... unchanged": a
   whole line that says something was left out. */
static bool hfsbi_is_omission(hfsb_str line) {
    static const char *const plain[] = {
        " unchanged ",      " as before ",        " same as ",
        " stays the same ", " remains the same ", " remain the same ",
        " no change ",      " no changes ",       " omitted "};
    static const char *const starts[] = {
        " existing ", " rest ",   " remaining ", " other ", " previous ",
        " add ",      " insert ", " include ",   " leave ", " same ",
        " original ", " more ",   " the rest ",  " put "};
    static const char *const things[] = {
        " code ",           " function ",
        " functions ",      " method ",
        " methods ",        " class ",
        " classes ",        " file ",
        " implementation ", " implementations ",
        " lines ",          " line ",
        " imports ",        " import ",
        " content ",        " contents ",
        " body ",           " logic ",
        " fields ",         " tests ",
        " test ",           " cases ",
        " props ",          " properties ",
        " definitions ",    " variables ",
        " config ",         " configuration ",
        " entries ",        " parameters ",
        " statements ",     " comments ",
        " module ",         " component ",
        " components ",     " script ",
        " block ",          " section ",
        " sections ",       " document ",
        " styles ",         " rules ",
        " routes ",         " handlers ",
        " elements ",       " attributes ",
        " constructor ",    " declarations "};
    static const char *const rest[] = {
        " rest of ",  " existing ", " remaining ", " other ",
        " previous ", " original ", " same "};
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

static bool hfsbi_is_line_end(char c) {
    return c == '\n' || c == '\r';
}

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

#define HFSBI_HINT_KEYS       32    /* old lines looked for in the file */
#define HFSBI_HINT_CANDIDATES 64    /* places compared line by line */
#define HFSBI_HINT_LINES      64    /* lines compared at each */
#define HFSBI_HINT_READ       65536 /* longest old_str read another way */
#define HFSBI_HINT_SHOWN      6     /* lines shown of the closest place */
#define HFSBI_HINT_WIDTH      72    /* characters shown of a line */
#define HFSBI_HINT_ROOM       800 /* no more lines when the message is longer */

static const unsigned hfsbi_hint_flags = HFSBI_FOLD_TRAIL | HFSBI_FOLD_LOOKS;

static hfsb_str hfsbi_row_text(hfsb_str text, const hfsbi_row *row) {
    return hfsb_str_slice(text, row->start, row->text_end);
}

/* ---- showing text ---- */

/* A line with its blanks visible, cut to a width. Other control characters
   are shown by their code. */
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

/* "U+0009 (tab)" */
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

typedef struct hfsbi_closest {
    size_t row;   /* of the file, where the old text's first line would be */
    size_t skip;  /* first lines of the old text that lie before the file */
    size_t equal; /* lines that are the same there */
    bool   found;
} hfsbi_closest;

typedef struct hfsbi_look {
    const hfsbi_hint *hint;
    hfsbi_file        old_file;
    hfsbi_rows        olds, rows;
    hfsb_err         *err;
} hfsbi_look;

static bool hfsbi_row_is_blank(hfsb_str text, const hfsbi_row *row) {
    return hfsbi_is_all_blank(hfsbi_row_text(text, row), hfsbi_hint_flags);
}

/* The old lines worth looking for: the first that are not blank. */
static size_t hfsbi_pick_keys(const hfsbi_look *l, size_t *keys) {
    size_t i, n = 0;
    for (i = 0; i < l->olds.count && n < HFSBI_HINT_KEYS; i++)
        if (!hfsbi_row_is_blank(l->old_file.text, l->olds.items + i))
            keys[n++] = i;
    return n;
}

/* How many lines agree when old line 0 stands at file row `row - skip`. */
static size_t hfsbi_count_equal(const hfsbi_look *l, size_t row, size_t skip) {
    size_t i, n = 0;
    for (i = skip; i < l->olds.count && i < skip + HFSBI_HINT_LINES; i++) {
        if (row + i - skip >= l->rows.count) break;
        if (l->olds.items[i].hash == l->rows.items[row + i - skip].hash &&
            !hfsbi_row_is_blank(l->old_file.text, l->olds.items + i))
            n++;
    }
    return n;
}

/* By equal lines: each file line that is one of the keys proposes a place. */
static hfsbi_closest hfsbi_closest_by_lines(const hfsbi_look *l) {
    hfsbi_closest best = HFSB_INIT;
    size_t keys[HFSBI_HINT_KEYS], count = hfsbi_pick_keys(l, keys), r, k;
    size_t tried = 0;
    for (r = 0; r < l->rows.count && tried < HFSBI_HINT_CANDIDATES; r++)
        for (k = 0; k < count; k++) {
            size_t j = keys[k], row, skip, equal;
            if (l->rows.items[r].hash != l->olds.items[j].hash) continue;
            tried++;
            skip = j > r ? j - r : 0;
            row = j > r ? 0 : r - j;
            equal = hfsbi_count_equal(l, row, skip);
            if (equal > best.equal || !best.found) {
                best.found = true;
                best.row = row;
                best.skip = skip;
                best.equal = equal;
            }
            break;
        }
    return best;
}

/* 64 bits, one for each kind of letter pair that the line has. */
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

/* By similar letters, when no line is the same: the file's line that looks
   most like the longest old line. At least six in ten pairs must agree. */
static hfsbi_closest hfsbi_closest_by_letters(const hfsbi_look *l) {
    hfsbi_closest      best = HFSB_INIT;
    size_t             i, longest = 0, r;
    unsigned           want, most = 0;
    unsigned long long sign;
    for (i = 1; i < l->olds.count; i++)
        if (l->olds.items[i].text_end - l->olds.items[i].start >
            l->olds.items[longest].text_end - l->olds.items[longest].start)
            longest = i;
    sign = hfsbi_signature(
        hfsbi_row_text(l->old_file.text, l->olds.items + longest));
    want = hfsbi_count_bits(sign);
    for (r = 0; r < l->rows.count; r++) {
        unsigned long long s = hfsbi_signature(
            hfsbi_row_text(l->hint->file->text, l->rows.items + r));
        unsigned both = hfsbi_count_bits(s & sign);
        unsigned all = hfsbi_count_bits(s | sign);
        if (want < 4 || both * 10 < all * 6 || both * 64 / all <= most)
            continue;
        most = both * 64 / all;
        best.found = true;
        best.skip = longest > r ? longest - r : 0;
        best.row = longest > r ? 0 : r - longest;
    }
    return best;
}

/* ---- what differs ---- */

static void hfsbi_say_kind(const hfsbi_look *l, hfsb_str o, hfsb_str f,
                           size_t line) {
    hfsb_err *err = l->err;
    size_t    oi = hfsbi_indent_len(o, 0), fi = hfsbi_indent_len(f, 0);
    bool      same = hfsb_str_equal(hfsb_str_slice(o, oi, o.len),
                                    hfsb_str_slice(f, fi, f.len));
    bool      old_tab = oi && memchr(o.ptr, '\t', oi) != NULL;
    bool      file_tab = fi && memchr(f.ptr, '\t', fi) != NULL;
    if (same && oi && old_tab != file_tab)
        hfsbi_err_add(err,
                      " The file indents this line with %s, old_str "
                      "with %s.",
                      file_tab ? "tabs" : "spaces",
                      old_tab ? "tabs" : "spaces");
    else if (same)
        hfsbi_err_add(err, " Only the indentation of this line differs.");
    else if (hfsbi_fold_equal(
                 o, f, HFSBI_FOLD_TRAIL | HFSBI_FOLD_LOOKS | HFSBI_FOLD_RUNS))
        hfsbi_err_add(err, " Only blanks or look-alike characters differ.");
    else
        hfsbi_err_add(err, " Line %zu of old_str is not what the file has.",
                      line + 1);
}

/* The old line to talk about: the first that is another line, else the first
   that is not the same to the letter; HFSB_NPOS when the file ends before. */
static size_t hfsbi_differing_line(const hfsbi_look *l, hfsbi_closest c,
                                   bool *ends) {
    size_t i, first = HFSB_NPOS;
    *ends = false;
    for (i = c.skip; i < l->olds.count; i++) {
        size_t r = c.row + i - c.skip;
        if (r >= l->rows.count) {
            *ends = true;
            return first == HFSB_NPOS ? i : first;
        }
        if (l->olds.items[i].hash != l->rows.items[r].hash) return i;
        if (first == HFSB_NPOS &&
            !hfsb_str_equal(
                hfsbi_row_text(l->old_file.text, l->olds.items + i),
                hfsbi_row_text(l->hint->file->text, l->rows.items + r)))
            first = i;
    }
    return first;
}

static void hfsbi_say_difference(const hfsbi_look *l, hfsbi_closest c) {
    bool     ends;
    size_t   i = hfsbi_differing_line(l, c, &ends), r, o_pos = 0, f_pos = 0;
    hfsb_str o, f;
    if (i == HFSB_NPOS) return;
    r = c.row + i - c.skip;
    if (ends && r >= l->rows.count) {
        hfsbi_err_add(l->err, "\nThe file ends before line %zu of old_str.",
                      i + 1);
        return;
    }
    o = hfsbi_row_text(l->old_file.text, l->olds.items + i);
    f = hfsbi_row_text(l->hint->file->text, l->rows.items + r);
    if (l->olds.items[i].hash != l->rows.items[r].hash) {
        o_pos = hfsbi_indent_len(o, hfsbi_hint_flags);
        f_pos = hfsbi_indent_len(f, hfsbi_hint_flags);
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
    hfsbi_err_add(l->err,
                  "\nFirst difference: line %zu, column %zu: you sent ", r + 1,
                  hfsb_utf8_count(hfsb_str_slice(f, 0, f_pos)) + 1);
    hfsbi_show_code(l->err, o, o_pos);
    hfsbi_err_add(l->err, ", the file has ");
    hfsbi_show_code(l->err, f, f_pos);
    hfsbi_err_add(l->err, ".");
    hfsbi_say_kind(l, o, f, i);
}

static void hfsbi_say_closest(const hfsbi_look *l, hfsbi_closest c) {
    size_t want = l->olds.count - c.skip, i, n, from = c.row;
    n = l->rows.count - c.row < want ? l->rows.count - c.row : want;
    hfsbi_err_add(l->err, "\nClosest lines (\xE2\x86\x92 is a tab, \xC2\xB7 a "
                          "space):");
    for (i = 0; i < n && i < HFSBI_HINT_SHOWN &&
                strlen(l->err->msg) < HFSBI_HINT_ROOM;
         i++)
        hfsbi_show_line(
            l->err,
            hfsbi_row_text(l->hint->file->text, l->rows.items + from + i),
            from + i + 1);
    if (n > i) hfsbi_err_add(l->err, "\n  ... to line %zu", from + n);
    hfsbi_say_difference(l, c);
    hfsbi_err_add(l->err,
                  "\nTo see the place call read with offset=%zu, "
                  "limit=%zu.",
                  from > 2 ? from - 1 : 1, n + 4);
}

/* ---- two places taken for one ---- */

/* The longest head of `olds` that stands in rows (Knuth-Morris-Pratt), and
   the row of its last line; or, backwards, the longest tail and the row of
   its first. */
static size_t hfsbi_longest_run(const hfsbi_rows *olds, const hfsbi_rows *rows,
                                bool backwards, size_t *fail, size_t *at) {
    size_t           n = olds->count, i, k = 0, best = 0;
    const hfsbi_row *o = olds->items, *r = rows->items;
#define HFSBI_OLD(x) o[backwards ? n - 1 - (x) : (x)].hash
#define HFSBI_ROW(x) r[backwards ? rows->count - 1 - (x) : (x)].hash
    fail[0] = 0;
    for (i = 1; i < n; i++) {
        while (k && HFSBI_OLD(i) != HFSBI_OLD(k)) k = fail[k - 1];
        if (HFSBI_OLD(i) == HFSBI_OLD(k)) k++;
        fail[i] = k;
    }
    for (i = k = 0; i < rows->count; i++) {
        while (k && (k == n || HFSBI_ROW(i) != HFSBI_OLD(k))) k = fail[k - 1];
        if (HFSBI_ROW(i) == HFSBI_OLD(k)) k++;
        if (k > best) {
            best = k;
            *at = backwards ? rows->count - 1 - i : i;
        }
    }
#undef HFSBI_OLD
#undef HFSBI_ROW
    return best;
}

/* "lines 1-3 are at 120-122, the rest at 2457". */
static void hfsbi_say_split(const hfsbi_look *l) {
    size_t  n = l->olds.count, head, tail, head_end = 0, tail_start = 0;
    size_t *fail;
    if (n < 2 || !l->rows.count) return;
    fail = (size_t *)hfsbi_array(l->hint->alloc, n, sizeof *fail);
    if (!fail) return;
    head = hfsbi_longest_run(&l->olds, &l->rows, false, fail, &head_end);
    tail = hfsbi_longest_run(&l->olds, &l->rows, true, fail, &tail_start);
    hfsbi_array_free(l->hint->alloc, fail, n, sizeof *fail);
    if (!head || !tail || head + tail < n || head == n) return;
    hfsbi_err_add(l->err,
                  head == 1 ? "\nLine 1 of old_str is at line %zu"
                            : "\nLines 1-%zu of old_str are at lines",
                  head == 1 ? head_end + 1 : head);
    if (head > 1)
        hfsbi_err_add(l->err, " %zu-%zu", head_end + 2 - head, head_end + 1);
    hfsbi_err_add(l->err,
                  " of the file, the rest is at line %zu: not contiguous. "
                  "Make two edits, or quote all lines between.",
                  tail_start + 1 + (head + tail - n));
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

static void hfsbi_put_unescaped(hfsb_buf *sink, hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len; i++) {
        char c = s.ptr[i] == '\\' && i + 1 < s.len
                     ? hfsbi_unescaped(s.ptr[i + 1])
                     : '\0';
        if (c) i++;
        if (c != '\r') hfsb_buf_append_byte(sink, c ? c : s.ptr[i]);
    }
}

/* Room for n bytes, to be filled directly; NULL when there is none. */
static char *hfsbi_room(hfsb_buf *sink, size_t n) {
    if (sink->status == HFSB_OK) sink->status = hfsb_buf_reserve(sink, n);
    return sink->status == HFSB_OK ? sink->ptr + sink->len : NULL;
}

static void hfsbi_put_lower(hfsb_buf *sink, hfsb_str s) {
    char  *to = hfsbi_room(sink, s.len);
    size_t i;
    if (!to) return;
    for (i = 0; i < s.len; i++) to[i] = hfsbi_lower(s.ptr[i]);
    sink->len += s.len;
}

static void hfsbi_put_squeezed(hfsb_buf *sink, hfsb_str s) {
    char  *to = hfsbi_room(sink, s.len);
    size_t i, n = 0;
    if (!to) return;
    for (i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] > ' ') to[n++] = s.ptr[i];
    sink->len += n;
}

static const hfsb_str *hfsbi_entities(size_t *count) {
    static const hfsb_str list[] = {
        {"&amp;", 5}, {"&", 1},      {"&lt;", 4}, {"<", 1},     {"&gt;", 4},
        {">", 1},     {"&quot;", 6}, {"\"", 1},   {"&#39;", 5}, {"'", 1}};
    *count = sizeof list / sizeof *list;
    return list;
}

static void hfsbi_put_entities(hfsb_buf *sink, hfsb_str s, bool encode) {
    size_t          count, i = 0, k;
    const hfsb_str *list = hfsbi_entities(&count);
    while (i < s.len) {
        for (k = 0; k < count; k += 2)
            if (hfsb_str_starts(hfsb_str_slice(s, i, s.len),
                                list[encode ? k + 1 : k]))
                break;
        if (k < count) {
            hfsb_buf_append(sink, list[encode ? k : k + 1]);
            i += list[encode ? k + 1 : k].len;
        } else {
            hfsb_buf_append_byte(sink, s.ptr[i++]);
        }
    }
}

static void hfsbi_put_encoded(hfsb_buf *sink, hfsb_str s) {
    hfsbi_put_entities(sink, s, true);
}

static void hfsbi_put_decoded(hfsb_buf *sink, hfsb_str s) {
    hfsbi_put_entities(sink, s, false);
}

typedef void hfsbi_reading(hfsb_buf *sink, hfsb_str s);

/* Offset of the other reading of old_str in the file (with `both`, in the
   file read that way too), or HFSB_NPOS. */
static size_t hfsbi_find_reading(const hfsbi_hint *h, hfsbi_reading *reading,
                                 bool both) {
    hfsb_buf needle = HFSB_INIT, text = HFSB_INIT;
    size_t   at = HFSB_NPOS;
    needle.alloc = text.alloc = *h->alloc;
    reading(&needle, h->old_text);
    if (both) reading(&text, h->file->text);
    if (needle.status == HFSB_OK && text.status == HFSB_OK && needle.len &&
        (both || !hfsb_str_equal(hfsb_buf_str(&needle), h->old_text)))
        at = hfsb_str_find(both ? hfsb_buf_str(&text) : h->file->text,
                           hfsb_buf_str(&needle));
    hfsb_buf_free(&needle);
    hfsb_buf_free(&text);
    return at;
}

/* Offset of the visible byte with `count` visible ones before it. */
static size_t hfsbi_nth_visible(hfsb_str s, size_t count) {
    size_t i;
    for (i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] > ' ' && count-- == 0) return i;
    return s.len;
}

static void hfsbi_say_reading(const hfsbi_hint *h, hfsb_err *err) {
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
        {hfsbi_put_squeezed, true, "Only blanks and line breaks differ"}};
    size_t i, at;
    if (h->old_text.len > HFSBI_HINT_READ) return;
    for (i = 0; i < sizeof list / sizeof *list; i++) {
        at = hfsbi_find_reading(h, list[i].reading, list[i].both);
        if (at == HFSB_NPOS) continue;
        if (list[i].reading == hfsbi_put_squeezed)
            at = hfsbi_nth_visible(h->file->text, at);
        hfsbi_err_add(err, "\n%s, at line %zu.", list[i].text,
                      hfsb_text_line_number(h->file->text, at));
        return;
    }
}

/* ---- the messages ---- */

static void hfsbi_say_numbers(const hfsbi_hint *h, hfsb_err *err) {
    hfsbi_numbered o = hfsbi_numbered_scan(h->old_text);
    hfsbi_numbered n = hfsbi_numbered_scan(h->new_text);
    if (o.prefixed && (o.prefixed < o.lines || !o.consecutive))
        hfsbi_err_add(err,
                      "\n%zu of %zu lines of old_str begin with a line "
                      "number as read shows it: leave those out.",
                      o.prefixed, o.lines);
    else if (o.prefixed && n.prefixed && n.prefixed < n.lines)
        hfsbi_err_add(err, "\nSome lines of new_str begin with a line number "
                           "as read shows it: leave those out.");
}

static void hfsbi_say_elision(const hfsbi_hint *h, hfsb_err *err) {
    hfsb_str rest = h->old_text, line;
    size_t   number = 1;
    for (; hfsb_text_line(&rest, &line, NULL); number++) {
        size_t   n = hfsbi_indent_len(line, 0);
        hfsb_str text = hfsb_str_slice(line, n, line.len);
        if (hfsb_str_equal(text, HFSB_LIT("...")) ||
            hfsb_str_equal(text, HFSB_LIT("\xE2\x80\xA6"))) {
            hfsbi_err_add(err,
                          "\nLine %zu of old_str is \"...\": quote every "
                          "line, or make an edit before and one behind.",
                          number);
            return;
        }
    }
}

static void hfsbi_say_applied(const hfsbi_hint *h, hfsb_err *err) {
    size_t at;
    if (hfsbi_is_all_blank(h->new_text, 0) || h->new_text.len < 4) return;
    at = hfsb_str_find(h->file->text, h->new_text);
    if (at != HFSB_NPOS)
        hfsbi_err_add(err,
                      "\nnew_str is already at line %zu: was this edit "
                      "made before?",
                      hfsb_text_line_number(h->file->text, at));
}

/* What a search of the bytes tells, in the file with its line ends folded as
   those of old_str and new_str are. */
static void hfsbi_say_found(const hfsbi_hint *hint, hfsb_err *err) {
    hfsbi_hint h = *hint;
    hfsbi_file file = *hint->file;
    hfsb_buf   copy = HFSB_INIT;
    copy.alloc = *hint->alloc;
    h.file = &file;
    if (hfsbi_fold_newlines(hint->file->text, file.lone_cr, &copy,
                            &file.text) == HFSB_OK) {
        hfsbi_say_applied(&h, err);
        hfsbi_say_reading(&h, err);
    }
    hfsb_buf_free(&copy);
}

HFSBI_FN void hfsbi_hint_not_found(const hfsbi_hint *hint, hfsb_err *err) {
    hfsbi_look    l;
    hfsbi_closest c;
    if (!err) return;
    memset(&l, 0, sizeof l);
    l.hint = hint;
    l.err = err;
    l.old_file.text = hint->old_text;
    if (!hint->file->text.len) {
        hfsbi_err_add(err, " The file is empty.");
        return;
    }
    hfsbi_say_numbers(hint, err);
    hfsbi_say_elision(hint, err);
    hfsbi_say_found(hint, err);
    if (hfsbi_rows_of(hint->alloc, &l.old_file, 0, hint->old_text.len,
                      hfsbi_hint_flags, &l.olds) == HFSB_OK &&
        hfsbi_rows_of(hint->alloc, hint->file, 0, hint->file->text.len,
                      hfsbi_hint_flags, &l.rows) == HFSB_OK) {
        hfsbi_say_split(&l);
        c = hfsbi_closest_by_lines(&l);
        if (!c.found) c = hfsbi_closest_by_letters(&l);
        if (c.found) hfsbi_say_closest(&l, c);
        else
            hfsbi_err_add(err, "\nNo line of the file looks like it. Read "
                               "the file and copy old_str from it.");
    }
    hfsbi_rows_free(hint->alloc, &l.olds);
    hfsbi_rows_free(hint->alloc, &l.rows);
}

HFSBI_FN void hfsbi_hint_ambiguous(const hfsbi_hint  *hint,
                                   const hfsbi_found *found, hfsb_err *err) {
    static const char *const how[] = {
        "",
        "exactly",
        "exactly",
        "after trimming trailing whitespace",
        "after unicode normalization",
        "after collapsing runs of blanks",
        "after trimming whitespace",
        "after dropping blank lines at its edges",
        "after trimming and collapsing blanks"};
    hfsb_str text = hint->file->text;
    char     newline = hint->file->lone_cr ? '\r' : '\n';
    size_t   i, pos = 0, line = 1, len;
    hfsbi_err_add(err, "\nIt matches %s at:", how[found->rung]);
    for (i = 0; i < found->count && i < 10; i++) {
        size_t at = found->items[i].start, from = at;
        line += hfsb_str_count_byte(hfsb_str_slice(text, pos, at), newline);
        pos = at;
        while (from > 0 && text.ptr[from - 1] != newline) from--;
        hfsbi_show_line(
            err,
            hfsb_str_slice(text, from,
                           hfsbi_file_line_end(hint->file, from, &len)),
            line);
    }
    if (found->count > 10)
        hfsbi_err_add(err, "\n  ... and %zu more", found->count - 10);
    if (found->overlapping && found->count == 1)
        hfsbi_err_add(err, "\n  ... and again, overlapping itself");
    hfsbi_err_add(err,
                  "\nAdd a neighbouring line to old_str%s, or set "
                  "replace_all=true to change all of them.",
                  found->rung <= HFSBI_RUNG_EOF
                      ? ", or give line=N for the one that starts there"
                      : "");
}
