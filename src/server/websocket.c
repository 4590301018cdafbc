/* websocket.c - a WebSocket on a connection of the server.

     request --hfsbi_websocket_open--> OPEN --close sent--> CLOSING --+
                                        |                             | close
                                        +--close received, answered---+ received
                                                                      v
     tunnel ended <------------------------------------------------- DONE

   The tunnel's bytes go through the frame reader; the owner gets pieces of
   messages as they come, and whole control frames are answered here. A peer
   that has been silent for a while is sent a ping, and is lost when nothing
   comes after that for as long again. While the owner pauses nothing is read:
   then pings only show the peer that this side is alive, and no answer is
   expected. While bytes wait to be sent there are no pings: they would wait
   after those bytes. A peer that does not read is lost after body_ms, as with
   any reply; the owner checks hfsbi_websocket_waiting() before it sends much.
   A patient owner waits for both without end.

   The owner must not use the object after its `closed` was called. */
#include "server_private.h"

typedef enum hfsbi_websocket_state {
    HFSBI_WEBSOCKET_OPEN,
    HFSBI_WEBSOCKET_CLOSING, /* our close is sent, the peer's is awaited */
    HFSBI_WEBSOCKET_DONE     /* the tunnel ends */
} hfsbi_websocket_state;

struct hfsbi_websocket {
    hfsb_request             *request;
    const hfsbi_websocket_fn *fn;
    void                     *user;
    hfsbi_websocket_state     state;
    hfsbi_ws_reader           reader;
    hfsbi_timer               timer;
    hfsbi_loop               *loop;
    long long                 heard;   /* hfsb_clock_ms() of the last bytes */
    bool                      pinged;  /* since then */
    bool                      paused;  /* by the owner */
    bool                      reading; /* in hfsbi_websocket_bytes() */
    hfsb_alloc                alloc;
};

/* ---- the end ---- */

static void hfsbi_websocket_free(hfsbi_websocket *w) {
    hfsb_alloc alloc = w->alloc;
    hfsbi_loop_timer_clear(w->loop, &w->timer);
    hfsbi_array_free(&alloc, w, 1, sizeof *w);
}

/* The connection is lost. */
static void hfsbi_websocket_gone(void *user, hfsb_request *request) {
    hfsbi_websocket *w = (hfsbi_websocket *)user;
    (void)request;
    w->fn->closed(w->user, w);
    hfsbi_websocket_free(w);
}

/* Ends the tunnel, once the bytes that were written are sent. */
static void hfsbi_websocket_end(hfsbi_websocket *w) {
    if (w->state == HFSBI_WEBSOCKET_DONE) return;
    w->state = HFSBI_WEBSOCKET_DONE;
    hfsb_request_on_gone(w->request, NULL, NULL);
    hfsb_reply_end(w->request);
    w->fn->closed(w->user, w);
    if (!w->reading) hfsbi_websocket_free(w);
}

/* ---- sending ---- */

static hfsb_status hfsbi_websocket_put(hfsbi_websocket *w,
                                       hfsbi_ws_opcode opcode, hfsb_str data) {
    char        head[HFSBI_WS_HEAD];
    size_t      n = hfsbi_ws_write_head(opcode, true, data.len, NULL, head);
    hfsb_status st = hfsb_reply_write(w->request, hfsb_str_make(head, n));
    if (st == HFSB_OK) st = hfsb_reply_write(w->request, data);
    return st;
}

HFSBI_FN hfsb_status hfsbi_websocket_send(hfsbi_websocket *w, bool text,
                                          hfsb_str message) {
    if (w->state != HFSBI_WEBSOCKET_OPEN) return HFSB_OK;
    return hfsbi_websocket_put(w, text ? HFSBI_WS_TEXT : HFSBI_WS_BINARY,
                               message);
}

HFSBI_FN size_t hfsbi_websocket_waiting(const hfsbi_websocket *w) {
    return hfsb_reply_waiting(w->request);
}

HFSBI_FN void hfsbi_websocket_close(hfsbi_websocket *w, unsigned code,
                                    hfsb_str reason) {
    char   payload[HFSBI_WS_MAX_CONTROL];
    size_t n = hfsbi_ws_write_close(code, reason, payload);
    if (w->state != HFSBI_WEBSOCKET_OPEN) return;
    w->state = HFSBI_WEBSOCKET_CLOSING;
    (void)hfsbi_websocket_put(w, HFSBI_WS_CLOSE, hfsb_str_make(payload, n));
    hfsbi_loop_timer(w->loop, &w->timer, hfsb_clock_ms() + HFSBI_LINGER_MS);
}

/* ---- receiving ---- */

/* The peer closes, or violates the protocol: our close, if none was sent, is
   the last frame. */
static void hfsbi_websocket_answer(hfsbi_websocket *w, unsigned code) {
    hfsb_str none = HFSB_LIT("");
    if (w->state == HFSBI_WEBSOCKET_OPEN) hfsbi_websocket_close(w, code, none);
    hfsbi_websocket_end(w);
}

/* Acts on one event; false when there is no more to read. */
static bool hfsbi_websocket_take(hfsbi_websocket *w, hfsbi_ws_event event,
                                 const hfsbi_ws_frame *frame) {
    switch (event) {
    case HFSBI_WS_EVENT_MORE: return false;
    case HFSBI_WS_EVENT_DATA:
        if (w->state == HFSBI_WEBSOCKET_OPEN)
            w->fn->message(w->user, w, frame->data, frame->text, frame->last);
        break;
    case HFSBI_WS_EVENT_PING:
        if (w->state == HFSBI_WEBSOCKET_OPEN)
            (void)hfsbi_websocket_put(w, HFSBI_WS_PONG, frame->data);
        break;
    case HFSBI_WS_EVENT_PONG: break;
    case HFSBI_WS_EVENT_CLOSE:
    case HFSBI_WS_EVENT_BAD: hfsbi_websocket_answer(w, frame->code); break;
    }
    return w->state != HFSBI_WEBSOCKET_DONE;
}

static void hfsbi_websocket_bytes(void *user, hfsb_request *request,
                                  char *bytes, size_t n) {
    hfsbi_websocket *w = (hfsbi_websocket *)user;
    hfsbi_ws_frame   frame;
    hfsbi_ws_event   event;
    size_t           used;
    (void)request;
    if (w->state == HFSBI_WEBSOCKET_DONE) return;
    w->heard = hfsb_clock_ms();
    w->pinged = false;
    w->reading = true;
    do {
        event = hfsbi_ws_next(&w->reader, bytes, n, &frame, &used, NULL);
        bytes += used;
        n -= used;
    } while (hfsbi_websocket_take(w, event, &frame));
    w->reading = false;
    if (w->state == HFSBI_WEBSOCKET_DONE) hfsbi_websocket_free(w);
}

/* ---- time ---- */

/* A ping after silence, or in a pause; the end after more silence, or when the
   peer does not answer our close. */
static void hfsbi_websocket_tick(hfsbi_timer *timer) {
    hfsbi_websocket *w =
        (hfsbi_websocket *)(void *)((char *)timer -
                                    offsetof(hfsbi_websocket, timer));
    long long now = hfsb_clock_ms();
    bool      waits = hfsbi_websocket_waiting(w) > 0;
    if (w->paused || waits) {
        w->heard = now;
        w->pinged = false;
    }
    if (w->pinged && w->fn->patient) { /* the next one */
        w->heard = now - w->fn->silence_ms;
        w->pinged = false;
    }
    if (w->state == HFSBI_WEBSOCKET_CLOSING ||
        (w->pinged && now - w->heard >= 2 * w->fn->silence_ms)) {
        hfsbi_websocket_end(w);
        return;
    }
    if ((w->paused && !waits) ||
        (!w->pinged && now - w->heard >= w->fn->silence_ms)) {
        w->pinged = !w->paused;
        (void)hfsbi_websocket_put(w, HFSBI_WS_PING, HFSB_LIT(""));
    }
    hfsbi_loop_timer(w->loop, timer,
                     w->heard + (w->pinged ? 2 : 1) * w->fn->silence_ms);
}

/* ---- the start ---- */

static void hfsbi_websocket_drained(void *user, hfsb_request *request) {
    hfsbi_websocket *w = (hfsbi_websocket *)user;
    (void)request;
    if (w->fn->drained && w->state == HFSBI_WEBSOCKET_OPEN)
        w->fn->drained(w->user, w);
}

/* Refuses a request that is not a valid handshake. */
static void hfsbi_websocket_refuse(hfsb_request *request, int status,
                                   const hfsb_err *err) {
    if (status == 426) {
        (void)hfsb_reply_field(request, "Upgrade", HFSB_LIT("websocket"));
        (void)hfsb_reply_field(request, "Sec-WebSocket-Version",
                               HFSB_LIT("13"));
    }
    hfsb_reply_error(request, status, "%s", err->msg);
}

HFSBI_FN hfsbi_websocket *hfsbi_websocket_open(hfsb_request      *request,
                                               const char *const *protocols,
                                               const hfsbi_websocket_fn *fn,
                                               void *user) {
    hfsb_server     *server = hfsb_request_server(request);
    hfsbi_ws_upgrade upgrade;
    hfsbi_websocket *w;
    hfsb_err         err = HFSB_INIT;
    char             accept[HFSBI_WS_ACCEPT];
    int status = hfsbi_ws_upgrade_read(hfsb_request_head(request), protocols,
                                       &upgrade, &err);
    if (status != 101) {
        hfsbi_websocket_refuse(request, status, &err);
        return NULL;
    }
    w = (hfsbi_websocket *)hfsbi_array(&server->alloc, 1, sizeof *w);
    if (!w) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return NULL;
    }
    memset(w, 0, sizeof *w);
    w->request = request;
    w->fn = fn;
    w->user = user;
    w->loop = server->loop;
    w->alloc = server->alloc;
    w->reader.max = fn->max_message;
    w->heard = hfsb_clock_ms();
    w->timer.fn = hfsbi_websocket_tick;
    hfsbi_ws_accept(upgrade.key, accept);
    (void)hfsb_reply_field(request, "Sec-WebSocket-Accept", hfsb_cstr(accept));
    if (upgrade.protocol.len)
        (void)hfsb_reply_field(request, "Sec-WebSocket-Protocol",
                               upgrade.protocol);
    hfsb_request_on_gone(request, hfsbi_websocket_gone, w);
    hfsb_reply_on_drained(request, hfsbi_websocket_drained, w);
    hfsbi_loop_timer(w->loop, &w->timer, w->heard + fn->silence_ms);
    request->tunnel.patient = fn->patient;
    hfsbi_reply_tunnel(request, "websocket", hfsbi_websocket_bytes, w);
    return w;
}

HFSBI_FN void hfsbi_websocket_pause(hfsbi_websocket *w, bool paused) {
    w->paused = paused;
    if (paused) hfsb_request_pause(w->request);
    else hfsb_request_resume(w->request);
}
