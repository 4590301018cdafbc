/* websocket.c - WebSocket (RFC 6455): the handshake, reading and writing of
   frames.

        0               1               2               3
       +-+-+-+-+-------+-+-------------+-------------------------------+
       |F|R|R|R| opcode|M| length      | length, 16 bits if it is 126, |
       |I|S|S|S|       |A|             | 64 bits if it is 127          |
       |N|V|V|V|       |S|             |                               |
       +-+-+-+-+-------+K+-------------+-------------------------------+
       | mask, 4 bytes if MASK is set                                  |
       +---------------------------------------------------------------+

   A message is one frame or several, the later ones with the opcode CONTINUE;
   pings, pongs and closes may come between them. The reader is a state and a
   few counters: the payload of messages is unmasked in the caller's bytes and
   passed on as it comes, that of control frames is collected, since it is
   short. A frame is refused at the first byte that is wrong, whatever the cut.

       HEAD --> DATA or CONTROL --> HEAD
                          +-------> CLOSED     any --> REFUSED, for good   */
#include "http_private.h"

/* ---- the handshake ---- */

HFSBI_FN void hfsbi_ws_accept(hfsb_str key, char out[HFSBI_WS_ACCEPT]) {
    unsigned char digest[HFSBI_SHA1_SIZE];
    const void   *bytes = digest;
    hfsbi_sha1_digest(key, HFSB_LIT("258EAFA5-E914-47DA-95CA-C5AB0DC85B11"),
                      digest);
    hfsbi_base64_write(hfsb_str_make((const char *)bytes, sizeof digest), out);
}

static int hfsbi_ws_refuse(hfsb_err *err, int status, const char *field,
                           const char *message) {
    hfsbi_fail_key(err, HFSB_SYNTAX, field, "%s", message);
    return status;
}

static bool hfsbi_ws_supports(const char *const *protocols, hfsb_str name) {
    for (; protocols && *protocols; protocols++)
        if (hfsb_str_equal(name, hfsb_cstr(*protocols))) return true;
    return false;
}

/* Finds the first subprotocol that is supported. False when one of them is
   not a token. */
static bool hfsbi_ws_choose(const hfsb_http_head *head,
                            const char *const *protocols, hfsb_str *chosen) {
    hfsb_str rest, item;
    size_t   i;
    for (i = 0; i < head->field_count; i++) {
        if (!hfsbi_http_is(head->fields[i].name, "Sec-WebSocket-Protocol"))
            continue;
        rest = head->fields[i].value;
        while (hfsbi_http_list_next(&rest, &item)) {
            if (!hfsbi_http_all(item, HFSBI_HTTP_TOKEN)) return false;
            if (!chosen->len && hfsbi_ws_supports(protocols, item))
                *chosen = item;
        }
    }
    return true;
}

/* The value of a field that must occur once; ptr is NULL when it does not. */
static hfsb_str hfsbi_ws_single(const hfsb_http_head *head, const char *name) {
    if (hfsb_http_field_count(head, name) != 1) return hfsb_str_make(NULL, 0);
    return hfsb_http_field_find(head, name);
}

HFSBI_FN int hfsbi_ws_upgrade_read(const hfsb_http_head *head,
                                   const char *const    *protocols,
                                   hfsbi_ws_upgrade *upgrade, hfsb_err *err) {
    size_t size = 0;
    memset(upgrade, 0, sizeof *upgrade);
    if (!hfsb_str_equal(head->method, HFSB_LIT("GET")))
        return hfsbi_ws_refuse(err, 405, "",
                               "The method for a WebSocket is GET.");
    if (!head->minor)
        return hfsbi_ws_refuse(err, 400, "", "A WebSocket needs HTTP/1.1.");
    if (!hfsb_http_field_lists(head, "Upgrade", "websocket"))
        return hfsbi_ws_refuse(err, 426, "Upgrade",
                               "This is a WebSocket: the request needs the "
                               "field \"Upgrade: websocket\".");
    if (!hfsb_http_field_lists(head, "Connection", "upgrade"))
        return hfsbi_ws_refuse(err, 400, "Connection",
                               "The request needs the field \"Connection: "
                               "Upgrade\".");
    if (head->body == HFSB_HTTP_CHUNKED || head->length)
        return hfsbi_ws_refuse(err, 400, "",
                               "A request for a WebSocket has no body.");
    if (!hfsb_str_equal(hfsbi_ws_single(head, "Sec-WebSocket-Version"),
                        HFSB_LIT("13")))
        return hfsbi_ws_refuse(err, 426, "Sec-WebSocket-Version",
                               "The request needs the field "
                               "\"Sec-WebSocket-Version: 13\", once.");
    upgrade->key = hfsbi_ws_single(head, "Sec-WebSocket-Key");
    if (hfsbi_base64_check(upgrade->key, &size, NULL) != HFSB_OK || size != 16)
        return hfsbi_ws_refuse(err, 400, "Sec-WebSocket-Key",
                               "The request needs one Sec-WebSocket-Key: 16 "
                               "bytes in base64.");
    if (!hfsbi_ws_choose(head, protocols, &upgrade->protocol))
        return hfsbi_ws_refuse(err, 400, "Sec-WebSocket-Protocol",
                               "A Sec-WebSocket-Protocol is not a list of "
                               "names.");
    hfsbi_ok(err);
    return 101;
}

/* ---- the handshake of a client ---- */

HFSBI_FN hfsb_status hfsbi_ws_request_write(hfsb_str key, hfsb_buf *out) {
    hfsb_buf_append(out, HFSB_LIT("Connection: Upgrade\r\n"
                                  "Upgrade: websocket\r\n"
                                  "Sec-WebSocket-Version: 13\r\n"));
    return hfsb_http_put_field(out, HFSB_LIT("Sec-WebSocket-Key"), key);
}

HFSBI_FN hfsb_status hfsbi_ws_reply_check(const hfsb_http_head *head,
                                          hfsb_str key, hfsb_err *err) {
    char        accept[HFSBI_WS_ACCEPT];
    const char *why = NULL;
    hfsbi_ws_accept(key, accept);
    if (head->status != 101)
        return hfsbi_fail(err, HFSB_REMOTE, 0,
                          "The server opens no WebSocket: its answer has the "
                          "status %d.",
                          head->status);
    if (!hfsb_http_field_lists(head, "Upgrade", "websocket") ||
        !hfsb_http_field_lists(head, "Connection", "upgrade"))
        why = "it switches to another protocol";
    else if (!hfsb_str_equal(hfsbi_ws_single(head, "Sec-WebSocket-Accept"),
                             hfsb_cstr(accept)))
        why = "its Sec-WebSocket-Accept is not for this request";
    else if (hfsb_http_field_count(head, "Sec-WebSocket-Extensions") ||
             hfsb_http_field_count(head, "Sec-WebSocket-Protocol"))
        why = "it uses an extension or a subprotocol that was not asked for";
    if (!why) return hfsbi_ok(err);
    return hfsbi_fail(err, HFSB_REMOTE, 0,
                      "Invalid answer to the WebSocket "
                      "handshake: %s.",
                      why);
}

/* ---- masking ---- */

HFSBI_FN void hfsbi_ws_mask(char *bytes, size_t len,
                            const unsigned char mask[4],
                            unsigned long long  offset) {
    unsigned char key[8];
    uint64_t      word, part[4];
    size_t        i;
    for (i = 0; i < 8; i++) key[i] = mask[(offset + i) & 3];
    memcpy(&word, key, 8);
    for (; len >= 32; len -= 32, bytes += 32) {
        memcpy(part, bytes, 32);
        part[0] ^= word;
        part[1] ^= word;
        part[2] ^= word;
        part[3] ^= word;
        memcpy(bytes, part, 32);
    }
    for (; len >= 8; len -= 8, bytes += 8) {
        memcpy(part, bytes, 8);
        part[0] ^= word;
        memcpy(bytes, part, 8);
    }
    for (i = 0; i < len; i++)
        bytes[i] = (char)(unsigned char)((unsigned char)bytes[i] ^ key[i]);
}

/* ---- reading the head of a frame ---- */

enum { /* hfsbi_ws_reader.state: what comes next */
       HFSBI_WS_IN_HEAD,
       HFSBI_WS_IN_DATA,    /* `left` bytes of a frame of a message */
       HFSBI_WS_IN_CONTROL, /* `left` bytes of a ping, pong or close */
       HFSBI_WS_CLOSED,     /* bytes to be dropped */
       HFSBI_WS_REFUSED
};

/* Bits of the first two bytes. */
enum {
    HFSBI_WS_FIN = 0x80,
    HFSBI_WS_RESERVED = 0x70,
    HFSBI_WS_OPCODE = 0x0F,
    HFSBI_WS_MASKED = 0x80,
    HFSBI_WS_LENGTH = 0x7F
};

/* The state of one call. */
typedef struct hfsbi_ws_call {
    hfsbi_ws_reader *r;
    char            *bytes;
    size_t           len, used;
    hfsbi_ws_frame  *frame;
    hfsb_err        *err;
} hfsbi_ws_call;

/* Refuses what begins at that offset of the stream; returns false. */
static bool hfsbi_ws_bad(hfsbi_ws_call *c, unsigned code,
                         unsigned long long pos, const char *message) {
    c->r->state = HFSBI_WS_REFUSED;
    c->frame->code = code;
    hfsbi_fail(c->err, code == HFSBI_WS_TOO_BIG ? HFSB_LIMIT : HFSB_SYNTAX,
               (size_t)pos, "%s", message);
    return false;
}

static unsigned hfsbi_ws_opcode_of(const hfsbi_ws_reader *r) {
    return r->head[0] & (unsigned)HFSBI_WS_OPCODE;
}

/* True for the opcode of a close, ping or pong. */
static bool hfsbi_ws_is_control(const hfsbi_ws_reader *r) {
    return (hfsbi_ws_opcode_of(r) & 8) != 0;
}

/* Checks FIN, the reserved bits and the opcode. */
static bool hfsbi_ws_first(hfsbi_ws_call *c) {
    hfsbi_ws_reader   *r = c->r;
    unsigned           opcode = hfsbi_ws_opcode_of(r);
    unsigned long long pos = r->at;
    const unsigned     bad = HFSBI_WS_PROTOCOL_ERROR;
    if (r->head[0] & HFSBI_WS_RESERVED)
        return hfsbi_ws_bad(c, bad, pos,
                            "A frame has reserved bits set, but no extension "
                            "was agreed on.");
    if ((opcode > HFSBI_WS_BINARY && opcode < HFSBI_WS_CLOSE) ||
        opcode > HFSBI_WS_PONG) {
        hfsbi_ws_bad(c, bad, pos, "");
        hfsbi_err_add(c->err, "A frame has the unknown opcode %u.", opcode);
        return false;
    }
    if (hfsbi_ws_is_control(r))
        return (r->head[0] & HFSBI_WS_FIN) != 0 ||
               hfsbi_ws_bad(c, bad, pos,
                            "A ping, pong or close is fragmented.");
    if (opcode == HFSBI_WS_CONTINUE && !r->message)
        return hfsbi_ws_bad(c, bad, pos,
                            "A frame continues a message, but there is none "
                            "to be continued.");
    if (opcode != HFSBI_WS_CONTINUE && r->message)
        return hfsbi_ws_bad(c, bad, pos,
                            "A message begins before the one before it has "
                            "ended.");
    return true;
}

/* Checks MASK and, for a control frame, the length. */
static bool hfsbi_ws_second(hfsbi_ws_call *c) {
    hfsbi_ws_reader *r = c->r;
    bool             masked = (r->head[1] & HFSBI_WS_MASKED) != 0;
    if (masked == r->client)
        return hfsbi_ws_bad(c, HFSBI_WS_PROTOCOL_ERROR, r->at,
                            masked ? "A frame from a server is masked."
                                   : "A frame from a client is not masked.");
    return !hfsbi_ws_is_control(r) ||
           (r->head[1] & HFSBI_WS_LENGTH) <= HFSBI_WS_MAX_CONTROL ||
           hfsbi_ws_bad(c, HFSBI_WS_PROTOCOL_ERROR, r->at,
                        "A ping, pong or close has more than 125 bytes.");
}

/* Number of bytes of the head up to the end of its length. */
static size_t hfsbi_ws_length_end(const hfsbi_ws_reader *r) {
    unsigned n = r->head[1] & (unsigned)HFSBI_WS_LENGTH;
    return n < 126 ? 2 : n == 126 ? 4 : 10;
}

static bool hfsbi_ws_too_big(hfsbi_ws_call *c, size_t max) {
    hfsbi_ws_bad(c, HFSBI_WS_TOO_BIG, c->r->at, "");
    hfsbi_err_add(c->err, "A message has more than %zu bytes.", max);
    return false;
}

/* Reads the length, whose last byte has arrived. */
static bool hfsbi_ws_length(hfsbi_ws_call *c) {
    hfsbi_ws_reader   *r = c->r;
    size_t             end = hfsbi_ws_length_end(r), i;
    size_t             max = hfsbi_http_limit(r->max, (size_t)16 << 20);
    unsigned long long n = r->head[1] & (unsigned)HFSBI_WS_LENGTH;
    if (end > 2)
        for (n = 0, i = 2; i < end; i++) n = n << 8 | r->head[i];
    if (n >> 63)
        return hfsbi_ws_bad(c, HFSBI_WS_PROTOCOL_ERROR, r->at,
                            "The length of a frame has its highest bit set.");
    if (n < (end == 4 ? 126u : end == 10 ? 65536u : 0u))
        return hfsbi_ws_bad(c, HFSBI_WS_PROTOCOL_ERROR, r->at,
                            "The length of a frame is not in its shortest "
                            "form.");
    r->left = n;
    if (hfsbi_ws_is_control(r)) return true;
    if (n > max || r->length > max - (size_t)n)
        return hfsbi_ws_too_big(c, max);
    r->length += (size_t)n;
    return true;
}

/* The head is complete. */
static void hfsbi_ws_head_end(hfsbi_ws_reader *r) {
    unsigned opcode = hfsbi_ws_opcode_of(r);
    r->state = hfsbi_ws_is_control(r) ? HFSBI_WS_IN_CONTROL : HFSBI_WS_IN_DATA;
    r->head_len = r->control_len = r->phase = 0;
    if (opcode == HFSBI_WS_TEXT || opcode == HFSBI_WS_BINARY)
        r->message = (unsigned char)opcode;
}

/* Takes bytes of the head. False when it is refused. */
static bool hfsbi_ws_head(hfsbi_ws_call *c) {
    hfsbi_ws_reader *r = c->r;
    while (c->used < c->len) {
        size_t n = r->head_len;
        bool   good = true;
        r->head[n++] = (unsigned char)c->bytes[c->used];
        r->head_len = (unsigned char)n;
        if (n == 1) good = hfsbi_ws_first(c);
        if (n == 2) good = hfsbi_ws_second(c);
        if (good && n > 1 && n == hfsbi_ws_length_end(r))
            good = hfsbi_ws_length(c);
        if (!good) return false;
        c->used++;
        r->at++;
        if (n > 1 && n == hfsbi_ws_length_end(r) + (r->client ? 0 : 4)) {
            hfsbi_ws_head_end(r);
            return true;
        }
    }
    return true;
}

/* ---- reading payloads ---- */

static const unsigned char *hfsbi_ws_key(const hfsbi_ws_reader *r) {
    return r->head + hfsbi_ws_length_end(r);
}

/* Consumes n bytes of the payload. */
static void hfsbi_ws_use(hfsbi_ws_call *c, size_t n) {
    c->used += n;
    c->r->at += n;
    c->r->left -= n;
    c->r->phase = (unsigned char)((c->r->phase + n) & 3);
}

/* Checks the n bytes at p, a piece of a text. Returns how many are good: the
   rest, which begins with the byte to be refused, is masked again for the
   next call. */
static size_t hfsbi_ws_check(hfsbi_ws_reader *r, char *p, size_t n) {
    size_t good = hfsbi_utf8_stream_check(&r->text, hfsb_str_make(p, n));
    if (good < n && !r->client)
        hfsbi_ws_mask(p + good, n - good, hfsbi_ws_key(r), r->phase + good);
    return good;
}

/* Passes on what has arrived of a frame of a message. A text that ends without
   another byte can still lack the end of its last character. */
static hfsbi_ws_event hfsbi_ws_data(hfsbi_ws_call *c) {
    hfsbi_ws_reader *r = c->r;
    char            *p = c->bytes + c->used;
    bool             fin = (r->head[0] & HFSBI_WS_FIN) != 0;
    size_t           n = c->len - c->used, good;
    if (!n && r->left) return HFSBI_WS_EVENT_MORE;
    if (n > r->left) n = (size_t)r->left;
    if (!r->client) hfsbi_ws_mask(p, n, hfsbi_ws_key(r), r->phase);
    c->frame->text = r->message == HFSBI_WS_TEXT;
    good = c->frame->text ? hfsbi_ws_check(r, p, n) : n;
    if ((!good && n) || (!n && fin && r->text.len)) {
        hfsbi_ws_bad(c, HFSBI_WS_BAD_TEXT, r->at,
                     n ? "A text is not valid UTF-8."
                       : "A text ends inside a character.");
        return HFSBI_WS_EVENT_BAD;
    }
    hfsbi_ws_use(c, good);
    c->frame->data = hfsb_str_make(p, good);
    if (!r->left && !(fin && r->text.len)) {
        r->state = HFSBI_WS_IN_HEAD;
        c->frame->last = fin;
    }
    if (c->frame->last) {
        r->message = 0;
        r->length = 0;
    }
    return good || c->frame->last ? HFSBI_WS_EVENT_DATA : HFSBI_WS_EVENT_MORE;
}

/* True for a code that may be sent: not those for local use, nor unassigned
   ones. */
static bool hfsbi_ws_code_ok(unsigned code) {
    if (code >= 3000) return code < 5000;
    return code >= 1000 && code <= 1014 && (code < 1004 || code > 1006);
}

/* Reads the payload of a close. */
static hfsbi_ws_event hfsbi_ws_closed(hfsbi_ws_call *c, hfsb_str payload) {
    hfsbi_ws_reader   *r = c->r;
    unsigned long long pos = r->at - payload.len;
    unsigned code = (unsigned)r->control[0] << 8 | (unsigned)r->control[1];
    hfsb_str reason = hfsb_str_slice(payload, 2, payload.len);
    size_t   good = hfsb_utf8_validate(reason);
    r->state = HFSBI_WS_CLOSED;
    c->frame->code = payload.len ? code : (unsigned)HFSBI_WS_NO_CODE;
    c->frame->data = reason;
    if (payload.len == 1) {
        hfsbi_ws_bad(c, HFSBI_WS_PROTOCOL_ERROR, pos,
                     "A close has one byte; expected none, or a code of two "
                     "bytes and a reason.");
    } else if (payload.len && !hfsbi_ws_code_ok(code)) {
        hfsbi_ws_bad(c, HFSBI_WS_PROTOCOL_ERROR, pos, "");
        hfsbi_err_add(c->err, "A close has the invalid code %u.", code);
    } else if (good < reason.len) {
        hfsbi_ws_bad(c, HFSBI_WS_BAD_TEXT, pos + 2 + good,
                     "The reason of a close is not valid UTF-8.");
    }
    return r->state == HFSBI_WS_CLOSED ? HFSBI_WS_EVENT_CLOSE
                                       : HFSBI_WS_EVENT_BAD;
}

/* Collects the payload of a control frame. */
static hfsbi_ws_event hfsbi_ws_control(hfsbi_ws_call *c) {
    hfsbi_ws_reader *r = c->r;
    void            *to = r->control + r->control_len;
    const void      *all = r->control;
    size_t           n = c->len - c->used;
    if (n > r->left) n = (size_t)r->left;
    if (n) memcpy(to, c->bytes + c->used, n);
    if (!r->client) hfsbi_ws_mask((char *)to, n, hfsbi_ws_key(r), r->phase);
    r->control_len = (unsigned char)(r->control_len + n);
    hfsbi_ws_use(c, n);
    if (r->left) return HFSBI_WS_EVENT_MORE;
    r->state = HFSBI_WS_IN_HEAD;
    c->frame->data = hfsb_str_make((const char *)all, r->control_len);
    switch (hfsbi_ws_opcode_of(r)) {
    case HFSBI_WS_PING: return HFSBI_WS_EVENT_PING;
    case HFSBI_WS_PONG: return HFSBI_WS_EVENT_PONG;
    default: return hfsbi_ws_closed(c, c->frame->data);
    }
}

/* One step; MORE without a change of state when all bytes are used. */
static hfsbi_ws_event hfsbi_ws_step(hfsbi_ws_call *c) {
    switch (c->r->state) {
    case HFSBI_WS_IN_HEAD:
        return hfsbi_ws_head(c) ? HFSBI_WS_EVENT_MORE : HFSBI_WS_EVENT_BAD;
    case HFSBI_WS_IN_DATA: return hfsbi_ws_data(c);
    case HFSBI_WS_IN_CONTROL: return hfsbi_ws_control(c);
    case HFSBI_WS_CLOSED: c->used = c->len; return HFSBI_WS_EVENT_MORE;
    default:
        hfsbi_ws_bad(c, HFSBI_WS_PROTOCOL_ERROR, c->r->at,
                     "An earlier frame was refused.");
        return HFSBI_WS_EVENT_BAD;
    }
}

HFSBI_FN hfsbi_ws_event hfsbi_ws_next(hfsbi_ws_reader *reader, char *bytes,
                                      size_t len, hfsbi_ws_frame *frame,
                                      size_t *used, hfsb_err *err) {
    hfsbi_ws_call  c;
    hfsbi_ws_event event;
    unsigned char  before;
    char           none = 0;
    c.r = reader;
    c.bytes = len ? bytes : &none;
    c.len = len;
    c.used = 0;
    c.frame = frame;
    c.err = err;
    do {
        memset(frame, 0, sizeof *frame);
        before = reader->state;
        event = hfsbi_ws_step(&c);
    } while (event == HFSBI_WS_EVENT_MORE && reader->state != before);
    *used = c.used;
    return event;
}

/* ---- writing ---- */

HFSBI_FN size_t hfsbi_ws_write_head(hfsbi_ws_opcode opcode, bool fin,
                                    unsigned long long   length,
                                    const unsigned char *mask,
                                    char                 out[HFSBI_WS_HEAD]) {
    size_t   n = length < 126 ? 0 : length < 65536 ? 2 : 8, i;
    unsigned second = n == 0 ? (unsigned)length : n == 2 ? 126u : 127u;
    unsigned first = (unsigned)opcode | (fin ? (unsigned)HFSBI_WS_FIN : 0u);
    if (mask) second |= HFSBI_WS_MASKED;
    out[0] = (char)(unsigned char)first;
    out[1] = (char)(unsigned char)second;
    for (i = 0; i < n; i++)
        out[2 + i] =
            (char)(unsigned char)(length >> (8 * (n - 1 - i)) & 0xFFu);
    if (!mask) return 2 + n;
    memcpy(out + 2 + n, mask, 4);
    return 2 + n + 4;
}

HFSBI_FN size_t hfsbi_ws_write_close(unsigned code, hfsb_str reason,
                                     char out[HFSBI_WS_MAX_CONTROL]) {
    size_t n = hfsbi_utf8_floor(reason, HFSBI_WS_MAX_CONTROL - 2);
    if (code == HFSBI_WS_NO_CODE) return 0;
    out[0] = (char)(unsigned char)(code >> 8 & 0xFFu);
    out[1] = (char)(unsigned char)(code & 0xFFu);
    if (n) memcpy(out + 2, reason.ptr, n);
    return 2 + n;
}
