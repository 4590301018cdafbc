/* sse.c - server-sent events from bytes that arrive in pieces.

   The fields of an event collect in `event` and `data` until an empty line
   dispatches it. A line that one piece contains is read in place; only a line
   cut by the end of a piece is kept in `line`. Lines end in LF, CR or CRLF,
   so a LF at the start of a piece may belong to a CR before it (after_cr). */
#include "http_private.h"

typedef bool hfsbi_sse_fn(void *user, hfsb_str event, hfsb_str data);

/* True when `more` bytes fit the limit. A line may be as long as an event and
   the name of its field, however it is cut. */
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

static hfsb_status hfsbi_sse_add(hfsb_sse *sse, hfsb_buf *to, hfsb_str s) {
    if (!hfsbi_sse_fits(sse, to, s.len)) return HFSB_LIMIT;
    return hfsb_buf_append(to, s);
}

static hfsb_status hfsbi_sse_dispatch(hfsb_sse *sse, hfsbi_sse_fn *fn,
                                      void *user) {
    bool go = !sse->has_data ||
              fn(user, hfsb_buf_str(&sse->event), hfsb_buf_str(&sse->data));
    sse->has_data = false;
    hfsb_buf_truncate(&sse->event, 0);
    hfsb_buf_truncate(&sse->data, 0);
    return go ? HFSB_OK : HFSB_CANCELLED;
}

/* Reads a complete line, without its line break. */
static hfsb_status hfsbi_sse_line(hfsb_sse *sse, hfsb_str line,
                                  hfsbi_sse_fn *fn, void *user) {
    size_t      colon = hfsb_str_find_byte(line, ':');
    hfsb_str    name = hfsb_str_slice(line, 0, colon), value;
    hfsb_status st = HFSB_OK;
    if (!line.len) return hfsbi_sse_dispatch(sse, fn, user);
    value = hfsb_str_slice(line, name.len + 1, line.len);
    if (value.len && *value.ptr == ' ')
        value = hfsb_str_slice(value, 1, value.len);
    if (hfsb_str_equal(name, HFSB_LIT("data"))) {
        if (sse->has_data) st = hfsbi_sse_add(sse, &sse->data, HFSB_LIT("\n"));
        if (st == HFSB_OK) st = hfsbi_sse_add(sse, &sse->data, value);
        if (st == HFSB_OK) sse->has_data = true;
    } else if (hfsb_str_equal(name, HFSB_LIT("event"))) {
        hfsb_buf_truncate(&sse->event, 0);
        st = hfsbi_sse_add(sse, &sse->event, value);
    }
    return st;
}

/* Reads a line that ends in this piece with the bytes `rest`. */
static hfsb_status hfsbi_sse_line_end(hfsb_sse *sse, hfsb_str rest,
                                      hfsbi_sse_fn *fn, void *user) {
    hfsb_str    line = rest;
    hfsb_status st = HFSB_OK;
    if (!hfsbi_sse_fits(sse, &sse->line, rest.len)) return HFSB_LIMIT;
    if (sse->line.len) {
        st = hfsbi_sse_add(sse, &sse->line, rest);
        line = hfsb_buf_str(&sse->line);
    }
    if (st != HFSB_OK) return st;
    if (!sse->started && hfsb_str_starts(line, HFSB_LIT("\xEF\xBB\xBF")))
        line = hfsb_str_slice(line, 3, line.len);
    sse->started = true;
    st = hfsbi_sse_line(sse, line, fn, user);
    hfsb_buf_truncate(&sse->line, 0);
    return st;
}

hfsb_status hfsb_sse_feed(hfsb_sse *sse, hfsb_str piece,
                          bool (*fn)(void *user, hfsb_str event,
                                     hfsb_str data),
                          void *user) {
    size_t      at = 0, end;
    hfsb_status st;
    if (!sse->event.alloc.fn) sse->event.alloc = sse->line.alloc;
    if (!sse->data.alloc.fn) sse->data.alloc = sse->line.alloc;
    while (at < piece.len) {
        if (sse->after_cr && piece.ptr[at] == '\n') at++;
        sse->after_cr = false;
        end = at;
        while (end < piece.len && piece.ptr[end] != '\n' &&
               piece.ptr[end] != '\r')
            end++;
        if (end == piece.len)
            return hfsbi_sse_add(sse, &sse->line,
                                 hfsb_str_slice(piece, at, end));
        sse->after_cr = piece.ptr[end] == '\r';
        st = hfsbi_sse_line_end(sse, hfsb_str_slice(piece, at, end), fn, user);
        if (st != HFSB_OK) return st;
        at = end + 1;
    }
    return HFSB_OK;
}

void hfsb_sse_free(hfsb_sse *sse) {
    hfsb_buf_free(&sse->line);
    hfsb_buf_free(&sse->event);
    hfsb_buf_free(&sse->data);
    sse->after_cr = sse->has_data = sse->started = false;
}
