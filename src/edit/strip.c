/* strip.c - what a model copied around the text: the line numbers of a
   listing, the code fence of a chat.

   Both show where a text was copied from, and are not part of the file. They
   are stripped only when the file does not contain the text with them. */
#include "edit_private.h"

/* ---- line numbers ---- */

#define HFSBI_NUMBER_ALONE 99 /* kind of a line that is only a number */

/* Length of the listing prefix of line, 0 if not found; its number and
   the kind of separator. On an empty line the blank that ends a separator, or
   the whole separator, may be missing: editors trim it. */
static size_t hfsbi_number_prefix(hfsb_str line, unsigned long long *number,
                                  size_t *kind) {
    static const char *const separators[] = {"\t", " | ", "|", ": ",
                                             "\xE2\x86\x92"};
    size_t                   pos = hfsbi_indent_len(line, 0), i, digits;
    hfsb_str                 rest = hfsb_str_slice(line, pos, line.len);
    digits = hfsbi_read_decimal(rest, 999999999999999999u, number);
    if (!digits || digits > 18) return 0;
    pos += digits;
    rest = hfsb_str_slice(rest, digits, rest.len);
    *kind = HFSBI_NUMBER_ALONE;
    if (!rest.len) return pos;
    for (i = 0; i < sizeof separators / sizeof *separators; i++) {
        hfsb_str sep = hfsb_cstr(separators[i]);
        *kind = i;
        if (hfsb_str_starts(rest, sep)) return pos + sep.len;
        if (sep.len > 1 && hfsb_str_ends(sep, HFSB_LIT(" ")) &&
            hfsb_str_equal(rest, hfsb_str_slice(sep, 0, sep.len - 1)))
            return line.len;
    }
    return 0;
}

HFSBI_FN hfsbi_numbered hfsbi_numbered_scan(hfsb_str text) {
    hfsbi_numbered     n = HFSB_INIT;
    hfsb_str           line;
    unsigned long long number, last = 0;
    size_t             kind, first_kind = HFSBI_NUMBER_ALONE, alone = 0;
    n.consecutive = true;
    for (; hfsb_text_line(&text, &line, NULL); n.lines++) {
        if (!hfsbi_number_prefix(line, &number, &kind)) continue;
        if (n.prefixed + alone && number != last + 1) n.consecutive = false;
        last = number;
        if (kind == HFSBI_NUMBER_ALONE) {
            alone++;
            continue;
        }
        if (!n.prefixed++) first_kind = kind;
        if (kind != first_kind) n.consecutive = false;
    }
    /* A number alone is an empty line only where all others are numbered. */
    if (n.prefixed && n.prefixed + alone == n.lines) n.prefixed = n.lines;
    if (!n.prefixed || n.prefixed < n.lines) n.consecutive = false;
    return n;
}

HFSBI_FN void hfsbi_numbered_strip(hfsb_str text, hfsb_buf *out) {
    hfsb_str           line, ending;
    unsigned long long number;
    size_t             kind;
    while (hfsb_text_line(&text, &line, &ending)) {
        size_t n = hfsbi_number_prefix(line, &number, &kind);
        hfsb_buf_append(out, hfsb_str_slice(line, n, line.len));
        hfsb_buf_append(out, ending);
    }
}

/* ---- code fences ---- */

HFSBI_FN bool hfsbi_is_fence(hfsb_str line) {
    line = hfsbi_trim(line);
    return hfsb_str_starts(line, HFSB_LIT("```")) ||
           hfsb_str_starts(line, HFSB_LIT("~~~"));
}

/* Number of backticks or tildes at the start of line. */
static size_t hfsbi_fence_len(hfsb_str line) {
    size_t n = 0;
    if (!line.len || (line.ptr[0] != '`' && line.ptr[0] != '~')) return 0;
    while (n < line.len && line.ptr[n] == line.ptr[0]) n++;
    return n;
}

/* Cuts a text into its first line, a fence, and the lines up to the closing
   fence, which must be its last line. */
static bool hfsbi_unfence(hfsb_str text, hfsb_str *fence, hfsb_str *inside) {
    hfsb_str line, rest = text;
    size_t   len;
    if (!hfsb_text_line(&rest, fence, NULL)) return false;
    len = hfsbi_fence_len(*fence);
    line = hfsb_str_slice(*fence, len, fence->len);
    if (len < 3 || hfsb_str_find_byte(line, '`') != HFSB_NPOS) return false;
    *inside = rest;
    while (hfsb_text_line(&rest, &line, NULL)) {
        size_t n = hfsbi_fence_len(line);
        if (n < len || line.ptr[0] != fence->ptr[0]) continue;
        inside->len = (size_t)(line.ptr - inside->ptr);
        return hfsbi_is_all_blank(hfsb_str_slice(line, n, line.len), 0) &&
               hfsbi_is_all_blank(rest, 0);
    }
    return false;
}

HFSBI_FN bool hfsbi_unfence_both(hfsb_str *old_text, hfsb_str *new_text) {
    hfsb_str old_fence, old_inside, new_fence, new_inside;
    if (!hfsbi_unfence(*old_text, &old_fence, &old_inside) ||
        !hfsbi_unfence(*new_text, &new_fence, &new_inside) ||
        !hfsb_str_equal(old_fence, new_fence) || !old_inside.len)
        return false;
    *old_text = old_inside;
    *new_text = new_inside;
    /* A fence around an empty line means no text. */
    if (hfsb_str_equal(new_inside, HFSB_LIT("\n")) &&
        !hfsb_str_ends(old_inside, HFSB_LIT("\n\n")))
        new_text->len = 0;
    return true;
}
