/* reading.c - readings of an old text that would match the file.

   Models send escapes for characters and characters for escapes, entities,
   other quotes, other line breaks. A reading undoes one such habit in a text.
   If the two texts agree after a reading of the old text, of the file's text,
   or of both, its sentence names the cause of the refusal. Readings are only
   ever named, never applied: each of them is right in some file. */
#include "edit_private.h"

/* ---- escapes and entities ---- */

HFSBI_FN size_t hfsbi_entity_at(hfsb_str s, char *c) {
    static const char *const list[] = {"&amp;",  "&lt;",  "&gt;",
                                       "&quot;", "&#39;", "&apos;"};
    static const char        chars[] = "&<>\"''";
    size_t                   i;
    for (i = 0; i < sizeof list / sizeof *list; i++)
        if (hfsb_str_starts(s, hfsb_cstr(list[i]))) {
            *c = chars[i];
            return strlen(list[i]);
        }
    return 0;
}

HFSBI_FN size_t hfsbi_unicode_escape(hfsb_str s, unsigned long *code) {
    size_t i;
    if (s.len < 6 || s.ptr[0] != '\\' || s.ptr[1] != 'u') return 0;
    for (*code = 0, i = 2; i < 6; i++) {
        int digit = hfsbi_hex_digit(s.ptr[i]);
        if (digit < 0) return 0;
        *code = *code * 16 + (unsigned long)digit;
    }
    return 6;
}

/* ---- readings ---- */

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

/* Drops backslashes before quotes and keeps all other escapes. */
static void hfsbi_put_unquoted(hfsb_buf *out, hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len; i++)
        if (s.ptr[i] != '\\' || i + 1 == s.len ||
            (s.ptr[i + 1] != '"' && s.ptr[i + 1] != '\''))
            hfsb_buf_append_byte(out, s.ptr[i]);
}

/* Decodes only line ends and tabs: where a literal "\n" arrived as a line end,
   other escapes did not change. */
static void hfsbi_put_line_ends(hfsb_buf *out, hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len; i++) {
        char c = s.ptr[i] == '\\' && i + 1 < s.len ? s.ptr[i + 1] : '\0';
        bool is_end = c == 'n' || c == 't';
        hfsb_buf_append_byte(out, is_end ? hfsbi_unescaped(c) : s.ptr[i]);
        i += is_end;
    }
}

static void hfsbi_put_halved(hfsb_buf *out, hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len; i++) {
        hfsb_buf_append_byte(out, s.ptr[i]);
        if (s.ptr[i] == '\\' && i + 1 < s.len && s.ptr[i + 1] == '\\') i++;
    }
}

static void hfsbi_put_unicode(hfsb_buf *out, hfsb_str s) {
    size_t        i = 0, len;
    unsigned long code;
    char          bytes[4];
    for (; i < s.len; i += len) {
        len = hfsbi_unicode_escape(hfsb_str_slice(s, i, s.len), &code);
        if (len)
            hfsb_buf_append(
                out, hfsb_str_make(bytes, hfsb_utf8_encode(code, bytes)));
        else hfsb_buf_append_byte(out, s.ptr[i]);
        if (!len) len = 1;
    }
}

static void hfsbi_put_lower(hfsb_buf *out, hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len; i++)
        hfsb_buf_append_byte(out, hfsbi_lower(s.ptr[i]));
}

static void hfsbi_put_quotes(hfsb_buf *out, hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len; i++)
        hfsb_buf_append_byte(
            out, s.ptr[i] == '\'' || s.ptr[i] == '`' ? '"' : s.ptr[i]);
}

static void hfsbi_put_visible(hfsb_buf *out, hfsb_str s) {
    size_t i;
    for (i = 0; i < s.len; i++)
        if ((unsigned char)s.ptr[i] > ' ') hfsb_buf_append_byte(out, s.ptr[i]);
}

static void hfsbi_put_decoded(hfsb_buf *out, hfsb_str s) {
    size_t i = 0, len;
    char   c;
    for (; i < s.len; i += len) {
        c = s.ptr[i];
        len = hfsbi_entity_at(hfsb_str_slice(s, i, s.len), &c);
        hfsb_buf_append_byte(out, c);
        if (!len) len = 1;
    }
}

/* ---- the reading that fits ---- */

/* True when a is b after the reading of a, or of both. */
static bool hfsbi_reads_as(const hfsb_alloc *alloc, hfsbi_reading *reading,
                           hfsb_str a, hfsb_str b, bool both) {
    hfsb_buf x = HFSB_INIT, y = HFSB_INIT;
    bool     same;
    x.alloc = y.alloc = *alloc;
    reading(&x, a);
    if (both) reading(&y, b);
    same = x.status == HFSB_OK && y.status == HFSB_OK &&
           hfsb_str_equal(hfsb_buf_str(&x), both ? hfsb_buf_str(&y) : b);
    hfsb_buf_free(&x);
    hfsb_buf_free(&y);
    return same;
}

/* The ways in which the old text can misread the file, most specific first. */
static const hfsbi_misread hfsbi_readings[] = {
    {hfsbi_put_halved, HFSBI_READ_OLD, "",
     " has two backslashes where the file has one"},
    {hfsbi_put_halved, HFSBI_READ_FILE, "The file has two backslashes where ",
     " has one"},
    {hfsbi_put_unquoted, HFSBI_READ_OLD, "",
     " has backslashes before quotes where the file has none"},
    {hfsbi_put_unquoted, HFSBI_READ_FILE,
     "The file has backslashes before quotes where ", " has none"},
    {hfsbi_put_unescaped, HFSBI_READ_OLD, "",
     " has escapes such as \\n or \\\" (a backslash and a letter) where the "
     "file has the characters themselves"},
    {hfsbi_put_line_ends, HFSBI_READ_FILE,
     "The file has escapes such as \\n (a backslash and a letter) where ",
     " has the characters themselves"},
    {hfsbi_put_unicode, HFSBI_READ_OLD, "",
     " has escapes such as \\u2019 where the file has the characters "
     "themselves"},
    {hfsbi_put_unicode, HFSBI_READ_FILE,
     "The file has escapes such as \\u2019 where ",
     " has the characters themselves"},
    {hfsbi_put_decoded, HFSBI_READ_FILE,
     "The file has HTML entities such as &amp; where ", " has the characters"},
    {hfsbi_put_decoded, HFSBI_READ_OLD, "",
     " has HTML entities such as &amp; where the file has the characters"},
    {hfsbi_put_lower, HFSBI_READ_BOTH, "Upper and lower case differ", NULL},
    {hfsbi_put_quotes, HFSBI_READ_BOTH, "The kind of quotes differs", NULL},
    {hfsbi_put_visible, HFSBI_READ_BOTH, "Only blanks and line breaks differ",
     NULL}};

HFSBI_FN const hfsbi_misread *hfsbi_reading_of(const hfsb_alloc *alloc,
                                               hfsb_str o, hfsb_str f) {
    size_t i;
    if (!f.len || hfsb_str_equal(o, f)) return NULL;
    for (i = 0; i < sizeof hfsbi_readings / sizeof *hfsbi_readings; i++) {
        const hfsbi_misread *m = hfsbi_readings + i;
        bool                 of_file = m->of == HFSBI_READ_FILE;
        if (hfsbi_reads_as(alloc, m->reading, of_file ? f : o, of_file ? o : f,
                           m->of == HFSBI_READ_BOTH))
            return m;
    }
    return NULL;
}
