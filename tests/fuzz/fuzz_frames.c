/* fuzz_frames.c - WebSocket frames, multipart bodies, Connect envelopes and the
   frames of pipes under libFuzzer. The first byte chooses one of them, its role and limits;
   the second seeds how the rest is cut. The events, and the code, place and
   words of a refusal, must be the same for the whole and for the pieces. The
   same bytes as a payload are written, and must be read as they were. */
#ifdef HFSBI_SPLIT
#include "../../src/http/http_private.h"
#else
#define HFSB_IMPLEMENTATION
#include "../../hfsb.h"
#endif
#include "must.h"

/* What was read: events that do not depend on the cut. */
typedef struct reading {
    unsigned flags;
    hfsb_buf seen;
    hfsb_buf data; /* of the message or part that is open */
    bool     done; /* END, or refused */
} reading;

typedef union parser {
    hfsbi_ws_reader      ws;
    hfsbi_multipart      multipart;
    hfsbi_connect_reader connect;
    hfsbi_mux_reader     mux;
} parser;

enum { WS, MULTIPART, CONNECT, MUX, KINDS };

/* Bits of flags, above the kind. */
enum { CLIENT = 4, SMALL = 8, TYPED = 16 };

static unsigned kind_of(const reading *r) { return r->flags % 4 % KINDS; }

static void say(reading *r, const char *what, hfsb_str s) {
    MUST(hfsb_buf_append(&r->seen, hfsb_cstr(what)) == HFSB_OK);
    MUST(hfsb_buf_append(&r->seen, s) == HFSB_OK);
    MUST(hfsb_buf_append_byte(&r->seen, '\n') == HFSB_OK);
}

static void say_data(reading *r, const char *what) {
    say(r, what, hfsb_buf_str(&r->data));
    hfsb_buf_truncate(&r->data, 0);
}

static void say_bad(reading *r, unsigned code, const hfsb_err *err) {
    say_data(r, "open ");
    MUST(err->code != HFSB_OK && err->msg[0]);
    MUST(hfsb_utf8_validate(hfsb_cstr(err->msg)) == strlen(err->msg));
    MUST(hfsb_buf_printf(&r->seen, "bad %u %d %zu %s\n", code, (int)err->code,
                         err->pos, err->msg) == HFSB_OK);
    r->done = true;
}

static void must_be_inside(hfsb_str s, const char *in, size_t n) {
    MUST(!s.len || (s.ptr >= in && s.ptr + s.len <= in + n));
}

/* ---- one call of each; false when there is nothing more in the bytes ---- */

static bool ws_call(reading *r, hfsbi_ws_reader *ws, char *p, size_t n,
                    size_t *used) {
    hfsbi_ws_frame frame;
    hfsb_err       err;
    hfsbi_ws_event event = hfsbi_ws_next(ws, p, n, &frame, used, &err);
    MUST(*used <= n);
    switch (event) {
    case HFSBI_WS_EVENT_MORE: MUST(*used == n); return false;
    case HFSBI_WS_EVENT_DATA:
        MUST(frame.data.len || frame.last);
        must_be_inside(frame.data, p, n);
        MUST(hfsb_buf_append(&r->data, frame.data) == HFSB_OK);
        if (!frame.last) return true;
        MUST(r->data.len <= (r->flags & SMALL ? 20u : 1u << 24));
        MUST(!frame.text || hfsb_utf8_validate(hfsb_buf_str(&r->data)) ==
                                r->data.len);
        say_data(r, frame.text ? "text " : "binary ");
        return true;
    case HFSBI_WS_EVENT_PING: say(r, "ping ", frame.data); return true;
    case HFSBI_WS_EVENT_PONG: say(r, "pong ", frame.data); return true;
    case HFSBI_WS_EVENT_CLOSE:
        MUST(frame.data.len <= 123);
        MUST(hfsb_utf8_validate(frame.data) == frame.data.len);
        MUST(hfsb_buf_printf(&r->seen, "%u ", frame.code) == HFSB_OK);
        say(r, "close ", frame.data);
        return true;
    default:
        MUST(frame.code == 1002 || frame.code == 1007 || frame.code == 1009);
        say_bad(r, frame.code, &err);
        return false;
    }
}

static bool multipart_call(reading *r, hfsbi_multipart *m, hfsb_str in,
                           bool last, size_t *used) {
    hfsb_str data;
    hfsb_err err;
    switch (hfsbi_multipart_next(m, in, last, &data, used, &err)) {
    case HFSBI_MULTIPART_MORE: MUST(*used == in.len && !last); return false;
    case HFSBI_MULTIPART_PART:
        MUST(hfsb_utf8_validate(m->name) == m->name.len);
        MUST(hfsb_utf8_validate(m->filename) == m->filename.len);
        MUST(m->name.len <= 4096 && m->filename.len <= 4096);
        say(r, "part ", m->name);
        say(r, m->filename.ptr ? "file " : "no file ", m->filename);
        say(r, m->type.ptr ? "type " : "no type ", m->type);
        return true;
    case HFSBI_MULTIPART_DATA:
        MUST(data.len > 0);
        if (data.ptr < m->delim || data.ptr >= m->delim + sizeof m->delim)
            must_be_inside(data, in.ptr, in.len);
        MUST(hfsb_buf_append(&r->data, data) == HFSB_OK);
        return true;
    case HFSBI_MULTIPART_PART_END:
        MUST(hfsb_str_find(hfsb_buf_str(&r->data),
                           hfsb_str_make(m->delim, m->delim_len)) ==
             HFSB_NPOS);
        say_data(r, "data ");
        return true;
    case HFSBI_MULTIPART_END:
        MUST(last);
        say_data(r, "end ");
        break;
    default: say_bad(r, 0, &err);
    }
    r->done = true;
    return false;
}

static bool connect_call(reading *r, hfsbi_connect_reader *reader, hfsb_str in,
                         bool last, size_t *used) {
    hfsbi_connect_piece piece;
    hfsb_err            err;
    switch (hfsbi_connect_next(reader, in, last, &piece, used, &err)) {
    case HFSBI_CONNECT_MORE: MUST(*used == in.len && !last); return false;
    case HFSBI_CONNECT_DATA:
        MUST(piece.data.len || piece.over);
        must_be_inside(piece.data, in.ptr, in.len);
        MUST(hfsb_buf_append(&r->data, piece.data) == HFSB_OK);
        if (piece.over)
            say_data(r, piece.end_stream ? "end stream " : "message ");
        return true;
    case HFSBI_CONNECT_END:
        MUST(last);
        say_data(r, "end ");
        break;
    default: say_bad(r, (unsigned)piece.code, &err);
    }
    r->done = true;
    return false;
}

/* Pieces of data are joined until another frame comes. */
static bool mux_call(reading *r, hfsbi_mux_reader *reader, hfsb_str in,
                     size_t *used) {
    hfsbi_mux_frame frame;
    hfsb_err        err;
    switch (hfsbi_mux_next(reader, in, &frame, used, &err)) {
    case HFSBI_MUX_MORE: MUST(*used == in.len); return false;
    case HFSBI_MUX_FRAME:
        MUST(frame.stream <= 0xFFFFFFFFul);
        MUST((frame.kind == HFSBI_MUX_BYE) == (frame.stream == 0));
        MUST(frame.n <= HFSBI_MUX_WINDOW);
        must_be_inside(frame.data, in.ptr, in.len);
        MUST((frame.kind == HFSBI_MUX_DATA) == (frame.data.len > 0));
        MUST(hfsb_buf_append(&r->data, frame.data) == HFSB_OK);
        if (frame.data.len) return true;
        MUST(hfsb_buf_printf(&r->seen, "%c %lu %lu ", (char)frame.kind,
                             frame.stream, frame.n) == HFSB_OK);
        say_data(r, "after ");
        return true;
    default: say_bad(r, 0, &err);
    }
    r->done = true;
    return false;
}

/* ---- all of it ---- */

/* False when a multipart body cannot begin. */
static bool begin(reading *r, parser *p, hfsb_str type) {
    hfsbi_multipart *m = &p->multipart;
    hfsb_err         err;
    memset(p, 0, sizeof *p);
    if (kind_of(r) == WS) {
        p->ws.client = (r->flags & CLIENT) != 0;
        p->ws.max = r->flags & SMALL ? 20 : 0;
    } else if (kind_of(r) == CONNECT) {
        p->connect.max = r->flags & SMALL ? 20 : 0;
    } else if (kind_of(r) == MULTIPART) {
        if (r->flags & SMALL) {
            m->max_head = 120;
            m->max_parts = 3;
            m->max_name = 8;
            m->max_around = 6;
        }
        if (hfsbi_multipart_begin(m, type, &err) != HFSB_OK) {
            MUST(err.pos <= type.len && err.msg[0]);
            return false;
        }
        MUST(m->delim_len > 4 && m->delim_len <= 74);
    }
    return true;
}

/* Gives a piece in an exact-size block. */
static void give(reading *r, parser *p, hfsb_str piece, bool last) {
    char  *exact = (char *)malloc(piece.len ? piece.len : 1);
    size_t at = 0, used = 0;
    bool   more = true;
    MUST(exact != NULL);
    if (piece.len) memcpy(exact, piece.ptr, piece.len);
    while (more) {
        hfsb_str in = hfsb_str_make(exact + at, piece.len - at);
        if (kind_of(r) == WS)
            more = ws_call(r, &p->ws, exact + at, in.len, &used);
        else if (kind_of(r) == MULTIPART)
            more = multipart_call(r, &p->multipart, in, last, &used);
        else if (kind_of(r) == MUX) more = mux_call(r, &p->mux, in, &used);
        else more = connect_call(r, &p->connect, in, last, &used);
        at += used;
        MUST(at <= piece.len);
    }
    free(exact);
}

/* Reads all bytes, as a whole or, with a seed, in pieces. */
static void read_all(reading *r, hfsb_str all, hfsb_str type, unsigned seed) {
    parser p;
    size_t at = 0;
    bool   last = false;
    if (!begin(r, &p, type)) return;
    while (!r->done && !last) {
        size_t   n = all.len;
        hfsb_str piece;
        if (seed) {
            seed = seed * 1103515245u + 12345u;
            n = 1 + (seed >> 16) % (seed & 0x100 ? 3 : 40);
        }
        piece = hfsb_str_slice(all, at, at + n);
        at += piece.len;
        last = at == all.len && (seed & 0x200 || !piece.len);
        give(r, &p, piece, last);
    }
    if (!r->done) say_data(r, "open ");
    if (kind_of(r) == MULTIPART) hfsbi_multipart_free(&p.multipart);
}

static void reading_free(reading *r) {
    hfsb_buf_free(&r->seen);
    hfsb_buf_free(&r->data);
}

/* ---- writing ---- */

static void put(hfsb_buf *out, hfsb_str s) {
    MUST(hfsb_buf_append(out, s) == HFSB_OK);
}

/* s as a binary message in frames, with a ping between them. */
static void write_ws(hfsb_buf *out, hfsb_str s, bool client, unsigned seed) {
    unsigned char mask[4] = {0, 0x55, 0, 0xFF};
    char          head[HFSBI_WS_HEAD];
    size_t        at = 0, n, start;
    mask[0] = (unsigned char)seed;
    do {
        hfsbi_ws_opcode opcode = at ? HFSBI_WS_CONTINUE : HFSBI_WS_BINARY;
        n = s.len - at < seed * 3 + 1 ? s.len - at : seed * 3 + 1;
        put(out, hfsb_str_make(
                     head, hfsbi_ws_write_head(opcode, at + n == s.len, n,
                                               client ? NULL : mask, head)));
        start = out->len;
        put(out, hfsb_str_slice(s, at, at + n));
        if (!client && n) hfsbi_ws_mask(out->ptr + start, n, mask, 0);
        put(out, hfsb_str_make(head, hfsbi_ws_write_head(
                                         HFSBI_WS_PING, true, 0,
                                         client ? NULL : mask, head)));
        at += n;
    } while (at < s.len);
}

/* True when s can be the data of a part with the boundary "b". */
static bool write_multipart(hfsb_buf *out, hfsb_str s) {
    if (hfsb_str_starts(s, HFSB_LIT("--b")) ||
        hfsb_str_find(s, HFSB_LIT("\r\n--b")) != HFSB_NPOS)
        return false;
    put(out, HFSB_LIT("--b\r\nContent-Disposition: form-data; name=\"n\"; "
                      "filename=\"f\"\r\n\r\n"));
    put(out, s);
    put(out, HFSB_LIT("\r\n--b--\r\n"));
    return true;
}

static void write_connect(hfsb_buf *out, hfsb_str s) {
    char head[HFSBI_CONNECT_HEAD];
    MUST(hfsbi_connect_write_head(HFSBI_CONNECT_END_STREAM, s.len, head));
    put(out, hfsb_str_make(head, sizeof head));
    put(out, s);
}

static void write_mux(hfsb_buf *out, hfsb_str s, unsigned seed) {
    char head[HFSBI_MUX_HEAD];
    put(out, HFSB_LIT("\n"));
    if (s.len) {
        hfsbi_mux_write_head(HFSBI_MUX_DATA, (unsigned long)s.len, seed + 1,
                             head);
        put(out, hfsb_str_make(head, sizeof head));
        put(out, s);
    }
    hfsbi_mux_write_head(HFSBI_MUX_END, 0, seed + 1, head);
    put(out, hfsb_str_make(head, sizeof head));
}

/* What is written of s is read as s. */
static void check_round_trip(unsigned flags, hfsb_str s, unsigned seed) {
    reading  r = HFSB_INIT;
    hfsb_buf out = HFSB_INIT, want = HFSB_INIT;
    bool     written = true;
    r.flags = flags & ~(unsigned)SMALL;
    if (kind_of(&r) == WS) write_ws(&out, s, (flags & CLIENT) != 0, seed);
    else if (kind_of(&r) == CONNECT) write_connect(&out, s);
    else if (kind_of(&r) == MUX && s.len > HFSBI_MUX_WINDOW) written = false;
    else if (kind_of(&r) == MUX) write_mux(&out, s, seed);
    else written = write_multipart(&out, s);
    if (written) {
        read_all(&r, hfsb_buf_str(&out),
                 HFSB_LIT("multipart/form-data; boundary=b"), seed);
        put(&want, kind_of(&r) == WS        ? HFSB_LIT("binary ")
                   : kind_of(&r) == CONNECT ? HFSB_LIT("end stream ")
                   : kind_of(&r) == MUX     ? HFSB_LIT("after ")
                                            : HFSB_LIT("data "));
        put(&want, s);
        MUST(hfsb_str_find(hfsb_buf_str(&r.seen), hfsb_buf_str(&want)) !=
             HFSB_NPOS);
        MUST(kind_of(&r) == WS || kind_of(&r) == MUX ||
             hfsb_str_ends(hfsb_buf_str(&r.seen), HFSB_LIT("\nend \n")));
    }
    reading_free(&r);
    hfsb_buf_free(&out);
    hfsb_buf_free(&want);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    reading  whole = HFSB_INIT, cut = HFSB_INIT;
    hfsb_str all, type = HFSB_LIT("multipart/form-data; boundary=b");
    if (size < 2) return 0;
    whole.flags = cut.flags = data[0];
    all = hfsb_str_make((const char *)data + 2, size - 2);
    if (kind_of(&whole) == MULTIPART && (data[0] & TYPED)) {
        type = hfsb_str_slice(all, 0, hfsb_str_find_byte(all, '\n'));
        all = hfsb_str_slice(all, type.len + 1, all.len);
    }
    read_all(&whole, all, type, 0);
    read_all(&cut, all, type, 1u + data[1]);
    if (!hfsb_str_equal(hfsb_buf_str(&whole.seen), hfsb_buf_str(&cut.seen)))
        fprintf(stderr, "whole:\n%s\ncut:\n%s\n", whole.seen.ptr,
                cut.seen.ptr);
    MUST(hfsb_str_equal(hfsb_buf_str(&whole.seen), hfsb_buf_str(&cut.seen)));
    check_round_trip(data[0], all, 1u + data[1]);
    reading_free(&whole);
    reading_free(&cut);
    return 0;
}
