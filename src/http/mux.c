/* mux.c - frames that carry several connections through one pipe.

   A pipe (the standard input and output of ssh, docker exec, srun ...) is one
   stream of bytes in each direction. Frames divide it among connections, each
   with a number that the client chose:

       0        1        2        3        4                 8
       +--------+--------+--------+--------+--------+-- --+--------+-- - --+
       | kind   |      n, big-endian       |  stream, big-endian   | data  |
       +--------+--------+--------+--------+--------+-- --+--------+-- - --+

       O  open     n 0        the client opens the stream
       D  data     n 1..      n bytes of the stream follow
       C  credit   n 1..      n more bytes may be sent on the stream
       E  end      n 0        the sender sends nothing more on the stream
       B  bye      n 0        stream 0: the client no longer needs the server
       \n          this byte alone: ignored. It is sent after each burst, for
                   relays that pass bytes on only at the end of a line, and
                   after a silence, as a sign of life

   Each direction of a stream begins with a credit of HFSBI_MUX_WINDOW bytes,
   so a stream that nobody reads holds up no other, and memory is bounded. The
   reader needs no memory: it passes data on in pieces as they come, and
   refuses a head at its first wrong byte. */
#include "http_private.h"

enum { /* hfsbi_mux_reader.state: what comes next */
       HFSBI_MUX_IN_HEAD,
       HFSBI_MUX_IN_DATA,
       HFSBI_MUX_REFUSED /* nothing, for good */
};

static unsigned long hfsbi_mux_number(const unsigned char *p, size_t n) {
    unsigned long v = 0;
    while (n--) v = v << 8 | *p++;
    return v;
}

static hfsbi_mux_event hfsbi_mux_bad(hfsbi_mux_reader *r, hfsb_err *err,
                                     const char *what) {
    r->state = HFSBI_MUX_REFUSED;
    (void)hfsbi_fail(err, HFSB_SYNTAX, (size_t)r->at,
                     "Invalid frame in the pipe: %s.", what);
    return HFSBI_MUX_BAD;
}

/* A complete head. */
static hfsbi_mux_event hfsbi_mux_head(hfsbi_mux_reader *r,
                                      hfsbi_mux_frame *frame, hfsb_err *err) {
    unsigned char kind = r->head[0];
    unsigned long n = hfsbi_mux_number(r->head + 1, 3);
    unsigned long stream = hfsbi_mux_number(r->head + 4, 4);
    bool          counts = kind == HFSBI_MUX_DATA || kind == HFSBI_MUX_CREDIT;
    r->head_len = 0;
    if (counts != (n > 0)) return hfsbi_mux_bad(r, err, "wrong length");
    if ((kind == HFSBI_MUX_BYE) != (stream == 0))
        return hfsbi_mux_bad(r, err, "wrong stream");
    if (n > HFSBI_MUX_WINDOW)
        return hfsbi_mux_bad(r, err, "longer than the window");
    frame->kind = (hfsbi_mux_kind)kind;
    frame->n = n;
    frame->stream = r->stream = stream;
    if (kind != HFSBI_MUX_DATA) return HFSBI_MUX_FRAME;
    r->left = n;
    r->state = HFSBI_MUX_IN_DATA;
    return HFSBI_MUX_MORE;
}

HFSBI_FN hfsbi_mux_event hfsbi_mux_next(hfsbi_mux_reader *r, hfsb_str in,
                                        hfsbi_mux_frame *frame, size_t *used,
                                        hfsb_err *err) {
    hfsbi_mux_event event = HFSBI_MUX_MORE;
    *used = 0;
    memset(frame, 0, sizeof *frame);
    if (r->state == HFSBI_MUX_REFUSED)
        return hfsbi_mux_bad(r, err, "an earlier one");
    while (*used < in.len && r->state == HFSBI_MUX_IN_HEAD) {
        unsigned char byte = (unsigned char)in.ptr[*used];
        if (!r->head_len && byte != '\n' && byte != HFSBI_MUX_OPEN &&
            byte != HFSBI_MUX_DATA && byte != HFSBI_MUX_CREDIT &&
            byte != HFSBI_MUX_END && byte != HFSBI_MUX_BYE)
            return hfsbi_mux_bad(r, err, "unknown kind");
        ++*used;
        ++r->at;
        if (!r->head_len && byte == '\n') continue;
        r->head[r->head_len++] = byte;
        if (r->head_len < HFSBI_MUX_HEAD) continue;
        event = hfsbi_mux_head(r, frame, err);
        if (event != HFSBI_MUX_MORE) return event;
    }
    if (*used == in.len) return HFSBI_MUX_MORE;
    frame->kind = HFSBI_MUX_DATA;
    frame->stream = r->stream;
    frame->data = hfsb_str_slice(in, *used, in.len);
    if (frame->data.len > r->left) frame->data.len = r->left;
    frame->n = (unsigned long)frame->data.len;
    r->left -= frame->data.len;
    *used += frame->data.len;
    r->at += frame->data.len;
    if (!r->left) r->state = HFSBI_MUX_IN_HEAD;
    return HFSBI_MUX_FRAME;
}

HFSBI_FN void hfsbi_mux_write_head(hfsbi_mux_kind kind, unsigned long n,
                                   unsigned long stream,
                                   char          out[HFSBI_MUX_HEAD]) {
    unsigned char *p = (unsigned char *)out;
    p[0] = (unsigned char)kind;
    p[1] = (unsigned char)(n >> 16 & 0xFF);
    p[2] = (unsigned char)(n >> 8 & 0xFF);
    p[3] = (unsigned char)(n & 0xFF);
    p[4] = (unsigned char)(stream >> 24 & 0xFF);
    p[5] = (unsigned char)(stream >> 16 & 0xFF);
    p[6] = (unsigned char)(stream >> 8 & 0xFF);
    p[7] = (unsigned char)(stream & 0xFF);
}
