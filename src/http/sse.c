/* sse.c - server-sent events from bytes that arrive in pieces.

   The fields of an event collect in `event` and `data` until an empty line
   completes it; they are cleared when the next one is asked for. A line that
   one piece contains is read in place; only a line cut by the end of a piece
   is kept in `line`. Lines end in LF, CR or CRLF, so a LF at the start of a
   piece may belong to a CR before it (after_cr). */
#include "http_private.h"

/* True when `more` bytes fit the limit. A line may be as long as an event and
   the name of its field, however it is split. */
static bool hfsbi_sse_fits(const hfsb_sse *sse, const hfsb_buf *to,
                           size_t more) {
    size_t max = sse->max ? sse->max : (size_t)1 << 20;
    size_t held = sse->event.len + sse->data.len;
    if (to == &sse->line) {
        held = to->len;
        if (max < (size_t)-1 - 16) max += 16;
    }
    return more <= max && held <= max - more;
}

static void hfsbi_sse_add(hfsb_sse *sse, hfsb_buf *to, hfsb_str s) {
    if (sse->status != HFSB_OK) return;
    sse->status =
        hfsbi_sse_fits(sse, to, s.len) ? hfsb_buf_append(to, s) : HFSB_LIMIT;
}

/* Forgets the fields of an event. */
static void hfsbi_sse_clear(hfsb_sse *sse) {
    sse->has_data = sse->complete = false;
    hfsb_buf_truncate(&sse->event, 0);
    hfsb_buf_truncate(&sse->data, 0);
}

/* Takes a line from *piece, without its line break. False when the rest of
   the piece has no line break and was kept, or after a failure. */
static bool hfsbi_sse_take_line(hfsb_sse *sse, hfsb_str *piece,
                                hfsb_str *line) {
    size_t at = sse->after_cr && hfsb_str_starts(*piece, HFSB_LIT("\n"));
    size_t end = at;
    bool   whole;
    if (!piece->len) return false;
    while (end < piece->len && piece->ptr[end] != '\n' &&
           piece->ptr[end] != '\r')
        end++;
    whole = end < piece->len;
    sse->after_cr = whole && piece->ptr[end] == '\r';
    *line = hfsb_str_slice(*piece, at, end);
    *piece = hfsb_str_slice(*piece, end + 1, piece->len);
    if (!hfsbi_sse_fits(sse, &sse->line, line->len)) sse->status = HFSB_LIMIT;
    if (!whole || sse->line.len) {
        hfsbi_sse_add(sse, &sse->line, *line);
        *line = hfsb_buf_str(&sse->line);
    }
    if (!whole || sse->status != HFSB_OK) return false;
    if (!sse->started && hfsb_str_starts(*line, HFSB_LIT("\xEF\xBB\xBF")))
        *line = hfsb_str_slice(*line, 3, line->len);
    sse->started = true;
    return true;
}

/* Reads a line that is not empty. */
static void hfsbi_sse_read_field(hfsb_sse *sse, hfsb_str line) {
    size_t   colon = hfsb_str_find_byte(line, ':');
    hfsb_str name = hfsb_str_slice(line, 0, colon);
    hfsb_str value = hfsb_str_slice(line, name.len + 1, line.len);
    if (value.len && *value.ptr == ' ')
        value = hfsb_str_slice(value, 1, value.len);
    if (hfsb_str_equal(name, HFSB_LIT("data"))) {
        if (sse->has_data) hfsbi_sse_add(sse, &sse->data, HFSB_LIT("\n"));
        hfsbi_sse_add(sse, &sse->data, value);
        sse->has_data = true;
    } else if (hfsb_str_equal(name, HFSB_LIT("event"))) {
        hfsb_buf_truncate(&sse->event, 0);
        hfsbi_sse_add(sse, &sse->event, value);
    }
}

bool hfsb_sse_next(hfsb_sse *sse, hfsb_str *piece) {
    hfsb_str line;
    if (!sse->event.alloc.fn) sse->event.alloc = sse->line.alloc;
    if (!sse->data.alloc.fn) sse->data.alloc = sse->line.alloc;
    if (sse->complete) hfsbi_sse_clear(sse);
    while (sse->status == HFSB_OK && hfsbi_sse_take_line(sse, piece, &line)) {
        if (line.len) hfsbi_sse_read_field(sse, line);
        else if (sse->has_data) sse->complete = true;
        else hfsbi_sse_clear(sse); /* without data there is no event */
        hfsb_buf_truncate(&sse->line, 0);
        if (sse->complete) return true;
    }
    return false;
}

void hfsb_sse_free(hfsb_sse *sse) {
    hfsb_buf_free(&sse->line);
    hfsb_buf_free(&sse->event);
    hfsb_buf_free(&sse->data);
    sse->after_cr = sse->has_data = sse->complete = sse->started = false;
    sse->status = HFSB_OK;
}
