/* websocket.c - a client's WebSocket, on a stream of any transport.

       open: connect, upgrade --> OPEN --close--> CLOSING, the peer's close
                                   |               is awaited by the owner
                                   +--lost, refused, peer's close--> over

   Opening waits, with a deadline; nothing else does. Output goes through one
   frame at a time:

       pong, ping ----+
       close ---------+--> out, masked --> stream
       message, cut --+
       into fragments

   so a ping is answered in the middle of a long message, and memory is bounded
   by the size of two frames. Each frame has a key of its own. */
#include "net_private.h"

enum {
    HFSBI_WSC_FRAGMENT = 65536, /* bytes of a message in one frame */
    HFSBI_WSC_IN = 65536        /* bytes received at once */
};

struct hfsbi_ws_client {
    hfsb_alloc      alloc;
    hfsb_stream     stream;
    hfsbi_ws_reader reader;
    char            in[HFSBI_WSC_IN];
    size_t          in_at, in_have;
    char            out[HFSBI_WS_HEAD + HFSBI_WSC_FRAGMENT];
    size_t          out_at, out_have;
    char            pong[HFSBI_WS_MAX_CONTROL]; /* the answer that is owed */
    unsigned char   pong_len;
    bool            owes_pong, owes_ping;
    bool            in_message; /* a fragment was sent, but not the last one */
    bool            closing;    /* a close is to be sent, or was */
    unsigned        close_code; /* to be sent; 0: none */
};

HFSBI_FN int hfsbi_ws_client_fd(const hfsbi_ws_client *ws) {
    return ws->stream.fd;
}

HFSBI_FN bool hfsbi_ws_client_waits(const hfsbi_ws_client *ws) {
    return ws->out_at < ws->out_have;
}

HFSBI_FN void hfsbi_ws_client_free(hfsbi_ws_client *ws) {
    hfsb_alloc alloc;
    if (!ws) return;
    alloc = ws->alloc;
    hfsb_stream_close(&ws->stream);
    hfsbi_array_free(&alloc, ws, 1, sizeof *ws);
}

/* ---- opening ---- */

static hfsb_status hfsbi_wsc_request(const hfsb_http_call *call, hfsb_str key,
                                     hfsb_buf *out, hfsb_err *err) {
    hfsb_url    url;
    hfsb_status st = hfsbi_net_check_call(call, &url, err);
    hfsb_str    host;
    size_t      i;
    if (st != HFSB_OK) return st;
    host = url.authority;
    if (host.ptr[host.len - 1] == ':') host.len--; /* "host:" means "host" */
    if (!url.target.len || *url.target.ptr != '/')
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The URL of a WebSocket needs a path.");
    st = hfsb_http_put_request(out, call->method, url.target);
    if (st == HFSB_OK) st = hfsb_http_put_field(out, HFSB_LIT("Host"), host);
    if (st == HFSB_OK) st = hfsbi_ws_request_write(key, out);
    if (st != HFSB_OK) return hfsbi_fail_status(err, st, "request");
    for (i = 0; i < call->field_count; i++) {
        st = hfsbi_net_put_field(&call->fields[i], out, err);
        if (st != HFSB_OK) return st;
    }
    st = hfsb_buf_append(out, HFSB_LIT("\r\n"));
    return st == HFSB_OK ? st : hfsbi_fail_status(err, st, "request");
}

/* Keeps the bytes that came after the head: they are frames. */
static hfsb_status hfsbi_wsc_upgrade(hfsbi_ws_client  *ws,
                                     hfsbi_stream_ask *ask, hfsb_str request,
                                     hfsb_str key, int *status,
                                     hfsb_err *err) {
    hfsb_status st = hfsbi_stream_ask_run(ask, HFSB_LIT("GET"), request, err);
    if (st != HFSB_OK) return st;
    *status = ask->head.status;
    st = hfsbi_ws_reply_check(&ask->head, key, err);
    if (st != HFSB_OK) return st;
    ws->in_have = ask->have - ask->at;
    memcpy(ws->in, ask->in + ask->at, ws->in_have);
    return HFSB_OK;
}

static hfsb_status hfsbi_wsc_begin(hfsbi_ws_client      *ws,
                                   const hfsb_transport *transport,
                                   const hfsb_http_call *call, int *status,
                                   hfsb_err *err) {
    long long         ms = call->connect_ms > 0 ? call->connect_ms : 30000;
    long long         until = hfsb_clock_ms() + ms;
    unsigned char     random[16];
    const void       *bytes = random;
    char              key[25];
    hfsb_buf          request = HFSB_INIT;
    hfsbi_stream_ask *ask =
        (hfsbi_stream_ask *)hfsbi_array(&ws->alloc, 1, sizeof *ask);
    hfsb_status st;
    if (!ask) return hfsbi_fail_status(err, HFSB_NOMEM, "WebSocket");
    memset(ask, 0, sizeof *ask);
    (void)hfsbi_random(random, sizeof random);
    hfsbi_base64_write(hfsb_str_make((const char *)bytes, sizeof random), key);
    request.alloc = ws->alloc;
    st = hfsbi_wsc_request(call, hfsb_cstr(key), &request, err);
    if (st == HFSB_OK)
        st = transport->connect(transport->user, call, &ws->stream, err);
    if (st == HFSB_OK) {
        ask->stream = &ws->stream;
        ask->until = until;
        ask->cancel = call->cancel;
        st = hfsbi_wsc_upgrade(ws, ask, hfsb_buf_str(&request), hfsb_cstr(key),
                               status, err);
    }
    if (request.ptr) /* has tokens */
        hfsb_secret_wipe(request.ptr, request.len);
    hfsb_buf_free(&request);
    hfsbi_array_free(&ws->alloc, ask, 1, sizeof *ask);
    return st;
}

HFSBI_FN hfsb_status hfsbi_ws_client_open(const hfsb_transport *transport,
                                          const hfsb_http_call *call,
                                          size_t max, const hfsb_alloc *alloc,
                                          hfsbi_ws_client **out, int *status,
                                          hfsb_err *err) {
    hfsbi_ws_client *ws;
    hfsb_http_call   get = *call;
    hfsb_status      st;
    *out = NULL;
    *status = 0;
    if (!transport->connect)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "This transport has no WebSockets: use that of "
                          "hfsb_net_open() or hfsb_http_curl.h.");
    ws = (hfsbi_ws_client *)hfsbi_array(alloc, 1, sizeof *ws);
    if (!ws) return hfsbi_fail_status(err, HFSB_NOMEM, "WebSocket");
    memset(ws, 0, sizeof *ws);
    ws->alloc = *alloc;
    ws->stream.fd = -1;
    ws->reader.client = true;
    ws->reader.max = max;
    get.method = HFSB_LIT("GET");
    st = hfsbi_wsc_begin(ws, transport, &get, status, err);
    if (st == HFSB_OK) *out = ws;
    else hfsbi_ws_client_free(ws);
    return st;
}

/* ---- receiving ---- */

HFSBI_FN hfsb_status hfsbi_ws_client_next(hfsbi_ws_client *ws,
                                          hfsbi_ws_event  *event,
                                          hfsbi_ws_frame  *frame,
                                          hfsb_err        *err) {
    size_t      used, n;
    hfsb_err    why = HFSB_INIT;
    hfsb_status st;
    for (;;) {
        *event = hfsbi_ws_next(&ws->reader, ws->in + ws->in_at,
                               ws->in_have - ws->in_at, frame, &used, &why);
        ws->in_at += used;
        if (*event == HFSBI_WS_EVENT_BAD)
            return hfsbi_fail(err, why.code, why.pos, "%s", why.msg);
        if (*event == HFSBI_WS_EVENT_PING) {
            /* of several only the last must be answered */
            memcpy(ws->pong, frame->data.ptr, frame->data.len);
            ws->pong_len = (unsigned char)frame->data.len;
            ws->owes_pong = true;
        }
        if (*event != HFSBI_WS_EVENT_MORE) return HFSB_OK;
        ws->in_at = ws->in_have = 0;
        st = ws->stream.receive(ws->stream.user, ws->in, sizeof ws->in, &n,
                                err);
        if (st != HFSB_OK || !n) return st;
        ws->in_have = n;
    }
}

/* ---- sending ---- */

/* Makes the frame that is to be sent; the previous one was sent. */
static void hfsbi_wsc_put(hfsbi_ws_client *ws, hfsbi_ws_opcode opcode,
                          bool fin, hfsb_str data) {
    unsigned char mask[4];
    (void)hfsbi_random(mask, sizeof mask);
    ws->out_at = 0;
    ws->out_have = hfsbi_ws_write_head(opcode, fin, data.len, mask, ws->out);
    if (!data.len) return;
    memcpy(ws->out + ws->out_have, data.ptr, data.len);
    hfsbi_ws_mask(ws->out + ws->out_have, data.len, mask, 0);
    ws->out_have += data.len;
}

/* Makes a frame of what is owed to the peer; false when nothing is. A close
   waits for the end of the message that was begun. */
static bool hfsbi_wsc_put_owed(hfsbi_ws_client *ws) {
    char   payload[HFSBI_WS_MAX_CONTROL];
    size_t n;
    if (ws->owes_pong) {
        ws->owes_pong = false;
        hfsbi_wsc_put(ws, HFSBI_WS_PONG, true,
                      hfsb_str_make(ws->pong, ws->pong_len));
    } else if (ws->owes_ping) {
        ws->owes_ping = false;
        hfsbi_wsc_put(ws, HFSBI_WS_PING, true, HFSB_LIT(""));
    } else if (ws->close_code && !ws->in_message) {
        n = hfsbi_ws_write_close(ws->close_code, HFSB_LIT(""), payload);
        ws->close_code = 0;
        hfsbi_wsc_put(ws, HFSBI_WS_CLOSE, true, hfsb_str_make(payload, n));
    } else {
        return false;
    }
    return true;
}

HFSBI_FN hfsb_status hfsbi_ws_client_flush(hfsbi_ws_client *ws,
                                           hfsb_err        *err) {
    hfsb_status st = HFSB_OK;
    size_t      n = 1;
    while (st == HFSB_OK && n) {
        if (!hfsbi_ws_client_waits(ws) && !hfsbi_wsc_put_owed(ws)) break;
        st = ws->stream.send(
            ws->stream.user,
            hfsb_str_make(ws->out + ws->out_at, ws->out_have - ws->out_at), &n,
            err);
        if (st == HFSB_OK) ws->out_at += n;
    }
    return st;
}

HFSBI_FN hfsb_status hfsbi_ws_client_send_as(hfsbi_ws_client *ws, bool text,
                                             hfsb_str message, size_t *at,
                                             bool *whole, hfsb_err *err) {
    hfsbi_ws_opcode kind = text ? HFSBI_WS_TEXT : HFSBI_WS_BINARY;
    hfsb_status     st = hfsbi_ws_client_flush(ws, err);
    *whole = false;
    while (st == HFSB_OK && !hfsbi_ws_client_waits(ws)) {
        hfsb_str piece = hfsb_str_slice(message, *at, message.len);
        *whole = *at == message.len && !ws->in_message;
        if (*whole) break;
        if (piece.len > HFSBI_WSC_FRAGMENT) piece.len = HFSBI_WSC_FRAGMENT;
        hfsbi_wsc_put(ws, ws->in_message ? HFSBI_WS_CONTINUE : kind,
                      *at + piece.len == message.len, piece);
        *at += piece.len;
        ws->in_message = *at < message.len;
        st = hfsbi_ws_client_flush(ws, err);
    }
    return st;
}

HFSBI_FN hfsb_status hfsbi_ws_client_send(hfsbi_ws_client *ws,
                                          hfsb_str message, size_t *at,
                                          bool *whole, hfsb_err *err) {
    return hfsbi_ws_client_send_as(ws, true, message, at, whole, err);
}

HFSBI_FN void hfsbi_ws_client_ping(hfsbi_ws_client *ws) {
    ws->owes_ping = true;
}

HFSBI_FN void hfsbi_ws_client_close(hfsbi_ws_client *ws, unsigned code) {
    if (ws->closing) return;
    ws->closing = true;
    ws->close_code = code;
}
