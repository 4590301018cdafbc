/* codex_bridge.c - the exec-server of Codex on another machine: its messages
   pass between a pair of descriptors here and the WebSocket /codex of a
   sandbox.

       Codex --line--> queue --frames--> WebSocket --> codex.c, remote
       Codex <--wire-- message <--frames-- WebSocket

   After a lost connection the bridge reconnects and resumes the session; Codex
   does not notice:

       OPEN --lost--> DIALING --connected--> RESUMING --answered--> OPEN
         |               |       (without a session: OPEN)
         |               +--no time left, refused--> DONE
         +--end of input--> ENDING --closed, late--> DONE

   A call stays in the queue until it is answered. Calls that were sent when
   the connection broke are sent again if that is safe; the others are answered
   with an error. The start of each running process is kept: after a resume it
   is repeated, the server joins it with the process and sends all events
   again, and those that Codex already has are dropped. So an event passes only
   if it has the next number.

   Memory is bounded: input is read only while little waits to be sent or
   answered, and the WebSocket only while Codex reads. Pings are always sent,
   so that the server does not take a busy Codex for a dead one. */
#include "../remote/remote_private.h"
#include "dialect_private.h"

enum {
    HFSBI_BRIDGE_AHEAD = 1 << 20,   /* bytes that Codex has not read: stop
                                      reading from the server */
    HFSBI_BRIDGE_HELD = 4 << 20,    /* bytes of calls: stop reading input, */
    HFSBI_BRIDGE_CALLS = 1024,      /* or this many calls */
    HFSBI_BRIDGE_STARTS = 16 << 20, /* bytes of the starts that are kept */
    HFSBI_BRIDGE_TURN = 64,         /* events in one turn of the loop */
    HFSBI_BRIDGE_PING_MS = 4000,    /* the server gives up after 10 s */
    HFSBI_BRIDGE_SILENCE_MS = 12000,
    HFSBI_BRIDGE_RETRY_MS = 50000, /* the server keeps a session for 60 s */
    HFSBI_BRIDGE_DELAY_MS = 100,   /* before the first try, doubled up to */
    HFSBI_BRIDGE_MAX_DELAY_MS = 4000,
    HFSBI_BRIDGE_END_MS = 900 /* after the end of input */
};

typedef enum hfsbi_bridge_state {
    HFSBI_BRIDGE_OPEN,
    HFSBI_BRIDGE_DIALING,
    HFSBI_BRIDGE_RESUMING,
    HFSBI_BRIDGE_ENDING,
    HFSBI_BRIDGE_DONE
} hfsbi_bridge_state;

/* Connecting, in a thread; the loop waits. */
typedef struct hfsbi_bridge_dial {
    hfsbi_task       task;
    hfsbi_retry      retry;
    hfsb_cancel     *cancel;
    hfsbi_ws_client *ws; /* the result */
    hfsb_status      status;
    hfsb_err         err;
} hfsbi_bridge_dial;

/* The connection. */
typedef struct hfsbi_bridge_far {
    hfsbi_ws_client *ws; /* NULL: not connected */
    hfsbi_io         io;
    hfsb_buf         text;         /* a message that is not complete */
    long long        since, heard; /* hfsb_clock_ms() */
    char             session[80];  /* "": none yet */
} hfsbi_bridge_far;

typedef struct hfsbi_bridge {
    hfsbi_server_part  part; /* first: its functions cast it back */
    hfsb_server       *server;
    hfsbi_loop        *loop;
    hfsb_alloc         alloc;
    hfsb_sandbox      *sandbox;
    hfsb_err          *why; /* the caller's, or NULL */
    hfsbi_bridge_state state;
    hfsbi_wire        *wire;
    hfsbi_bridge_far   far;
    hfsbi_bridge_dial  dial;
    hfsbi_bridge_calls calls;
    hfsbi_timer        timer;
    hfsbi_task         turn;
    bool               turn_posted;
} hfsbi_bridge;

static void hfsbi_bridge_ready(hfsbi_io *io, unsigned events);

/* Continues in the next turn of the loop. */
static void hfsbi_bridge_post(hfsbi_bridge *r) {
    if (r->turn_posted) return;
    r->turn_posted = true;
    hfsbi_loop_post(r->loop, &r->turn);
}

/* Reads from Codex only while there is room for what it asks. */
static void hfsbi_bridge_balance(hfsbi_bridge *r) {
    if (r->state >= HFSBI_BRIDGE_ENDING) return;
    hfsbi_wire_pause(r->wire, r->calls.held > HFSBI_BRIDGE_HELD ||
                                  r->calls.count > HFSBI_BRIDGE_CALLS);
}

/* ---- messages to Codex ---- */

/* Passes a message on, whose memory is taken over. */
static void hfsbi_bridge_pass(hfsbi_bridge *r, hfsb_buf *text) {
    size_t i;
    if (text->status != HFSB_OK) hfsb_buf_truncate(text, 0); /* lost */
    for (i = 0; i < text->len; i++) /* between values: strings have none */
        if (text->ptr[i] == '\n' || text->ptr[i] == '\r') text->ptr[i] = ' ';
    hfsbi_wire_send(r->wire, text);
}

static void hfsbi_bridge_refuse(hfsbi_bridge *r, hfsb_str id, int code,
                                const char *message) {
    hfsb_buf out = HFSB_INIT;
    out.alloc = r->alloc;
    hfsb_buf_printf(&out, "{\"id\":%.*s,\"error\":{\"code\":%d,\"message\":",
                    (int)id.len, id.ptr, code);
    hfsbi_json_put_quoted(&out, hfsb_cstr(message));
    hfsb_buf_append(&out, HFSB_LIT("}}"));
    hfsbi_bridge_pass(r, &out);
    hfsb_buf_free(&out);
}

/* Answers a call with an error and frees it. */
static void hfsbi_bridge_fail(hfsbi_bridge *r, hfsbi_bridge_message *m,
                              const char *message) {
    if (m->id.len && m->kind < HFSBI_BRIDGE_RESUME)
        hfsbi_bridge_refuse(r, hfsb_buf_str(&m->id), HFSBI_CODEX_INTERNAL,
                            message);
    hfsbi_bridge_message_free(&r->calls, m);
}

/* ---- the end ---- */

static void hfsbi_bridge_hang_up(hfsbi_bridge *r) {
    if (!r->far.ws) return;
    hfsbi_loop_io_forget(r->loop, &r->far.io);
    hfsbi_ws_client_free(r->far.ws);
    r->far.ws = NULL;
    hfsb_buf_free(&r->far.text);
}

static void hfsbi_bridge_done(hfsbi_bridge *r) {
    if (r->state == HFSBI_BRIDGE_DONE) return;
    r->state = HFSBI_BRIDGE_DONE;
    hfsb_cancel_set(r->dial.cancel);
    hfsbi_loop_timer_clear(r->loop, &r->timer);
    hfsbi_bridge_hang_up(r);
    hfsbi_wire_shut(r->wire);
    if (!hfsbi_server_is_stopping(r->server)) hfsb_server_stop(r->server);
}

/* The session is lost for good: all calls are answered. */
static void hfsbi_bridge_give_up(hfsbi_bridge *r, const hfsb_err *err) {
    if (r->state == HFSBI_BRIDGE_DONE) return;
    if (r->why) *r->why = *err;
    hfsbi_sandbox_log(r->sandbox, "%s", err->msg);
    while (r->calls.queue) hfsbi_bridge_fail(r, r->calls.queue, err->msg);
    hfsbi_bridge_done(r);
}

static void hfsbi_bridge_no_memory(hfsbi_bridge *r) {
    hfsb_err err = HFSB_INIT;
    (void)hfsbi_fail_status(&err, HFSB_NOMEM, "Passing messages on");
    hfsbi_bridge_give_up(r, &err);
}

/* Codex has closed its end, or the server stops. Calls that wait are still
   sent and answered, and what they have started ends. */
static void hfsbi_bridge_finish(hfsbi_bridge *r) {
    const hfsbi_bridge_process *p;
    if (r->state >= HFSBI_BRIDGE_ENDING) return;
    if (r->state == HFSBI_BRIDGE_OPEN) {
        r->state = HFSBI_BRIDGE_ENDING;
        hfsbi_wire_shut(r->wire);
        for (p = r->calls.processes; p; p = p->next)
            hfsbi_bridge_kill(&r->calls, p);
        hfsbi_loop_timer(r->loop, &r->timer,
                         hfsb_clock_ms() + HFSBI_BRIDGE_END_MS);
        hfsbi_bridge_post(r);
    } else {
        hfsbi_bridge_done(r); /* the server ends the session later */
    }
}

/* ---- a lost connection ---- */

/* What was sent without an answer is sent again, or fails. */
static void hfsbi_bridge_rewind(hfsbi_bridge *r) {
    hfsbi_bridge_message *m, *next;
    for (m = r->calls.queue; m; m = next) {
        next = m->next;
        if (m->kind >= HFSBI_BRIDGE_RESUME) {
            hfsbi_bridge_message_free(&r->calls, m);
        } else if (m->sent && m->kind == HFSBI_BRIDGE_ONCE) {
            hfsbi_bridge_fail(r, m,
                              "The connection to the sandbox was lost before "
                              "this call was answered. It may have been "
                              "carried out: look before you repeat it.");
        } else {
            m->sent = false;
            m->at = 0;
        }
    }
}

/* After a connection that worked, the next one gets the full time again. */
static void hfsbi_bridge_renew(hfsbi_bridge *r) {
    hfsbi_retry_reset(&r->dial.retry);
    r->dial.retry.deadline = 0;
}

static void hfsbi_bridge_lose(hfsbi_bridge *r, const hfsb_err *err) {
    if (!r->far.ws) return;
    hfsbi_bridge_hang_up(r);
    if (r->state >= HFSBI_BRIDGE_ENDING) {
        hfsbi_bridge_done(r);
        return;
    }
    hfsbi_sandbox_log(r->sandbox, "%s Connecting again.", err->msg);
    if (hfsb_clock_ms() - r->far.since >= HFSBI_BRIDGE_SILENCE_MS)
        hfsbi_bridge_renew(r);
    r->state = HFSBI_BRIDGE_DIALING;
    hfsbi_bridge_rewind(r); /* Codex may turn out to be gone */
    if (r->state != HFSBI_BRIDGE_DIALING) return;
    if (!r->dial.retry.deadline)
        r->dial.retry.deadline = hfsb_clock_ms() + HFSBI_BRIDGE_RETRY_MS;
    hfsbi_loop_timer_clear(r->loop, &r->timer);
    hfsbi_loop_work(r->loop, &r->dial.task);
    hfsbi_bridge_balance(r);
}

/* ---- connecting ---- */

/* Explains an answer other than 101. */
static hfsb_status hfsbi_bridge_explain(const hfsb_sandbox *sandbox,
                                        int status, hfsb_status st,
                                        hfsb_err *err) {
    hfsb_str api = hfsb_sandbox_api(sandbox);
    if (status == 404)
        return hfsbi_fail(err, HFSB_NOT_FOUND, 0,
                          "The server at %.*s does not speak to Codex: start "
                          "hfsb-server there with --api codex.",
                          (int)api.len, api.ptr);
    if (status == 401 || status == 403)
        return hfsbi_fail(err, HFSB_AUTH, 0,
                          "The server at %.*s does not accept this token.",
                          (int)api.len, api.ptr);
    return st;
}

static hfsb_status hfsbi_bridge_connect(hfsbi_bridge      *r,
                                        const hfsb_cancel *cancel,
                                        hfsbi_ws_client **ws, hfsb_err *err) {
    int         status = 0;
    hfsb_status st = hfsbi_sandbox_websocket(
        r->sandbox, "codex", HFSBI_CODEX_MESSAGE, cancel, ws, &status, err);
    return hfsbi_bridge_explain(r->sandbox, status, st, err);
}

/* In a thread: tries until it succeeds, cannot succeed, or the time is up. */
static void hfsbi_bridge_dial_run(hfsbi_task *task) {
    hfsbi_bridge *r =
        (hfsbi_bridge *)(void *)((char *)task - offsetof(hfsbi_bridge, dial));
    hfsbi_bridge_dial *d = &r->dial;
    hfsb_err           last = HFSB_INIT;
    d->ws = NULL;
    for (;;) {
        d->status = hfsbi_retry_again(&d->retry);
        if (d->status != HFSB_OK) break;
        d->status = hfsbi_bridge_connect(r, d->cancel, &d->ws, &last);
        if (d->status == HFSB_OK || d->status == HFSB_AUTH ||
            d->status == HFSB_ARG || d->status == HFSB_NOMEM)
            break;
    }
    d->err = last;
    if (d->status == HFSB_LIMIT)
        (void)hfsbi_fail(&d->err, HFSB_LOST, 0,
                         "The connection was lost, and another one could not "
                         "be made within %d s. %s",
                         HFSBI_BRIDGE_RETRY_MS / 1000, last.msg);
}

/* Begins with a connection. */
static void hfsbi_bridge_begin(hfsbi_bridge *r, hfsbi_ws_client *ws) {
    r->far.ws = ws;
    memset(&r->far.io, 0, sizeof r->far.io);
    r->far.io.fd = hfsbi_ws_client_fd(ws);
    r->far.io.fn = hfsbi_bridge_ready;
    r->far.heard = r->far.since = hfsb_clock_ms();
    r->state = r->far.session[0] ? HFSBI_BRIDGE_RESUMING : HFSBI_BRIDGE_OPEN;
    hfsbi_loop_timer(r->loop, &r->timer, r->far.heard + HFSBI_BRIDGE_PING_MS);
}

/* ---- from the server ---- */

/* Notes the answer to a call of Codex before it is passed on. */
static void hfsbi_bridge_note(hfsbi_bridge *r, const hfsbi_bridge_message *m,
                              const hfsb_json_value *root) {
    hfsb_str session =
        hfsbi_json_get_str(hfsb_json_get(root, "result"), "sessionId");
    bool failed = hfsb_json_get(root, "error") != NULL;
    if (m->kind == HFSBI_BRIDGE_INIT && session.len &&
        session.len < sizeof r->far.session)
        (void)snprintf(r->far.session, sizeof r->far.session, "%.*s",
                       (int)session.len, session.ptr);
    if (m->kind == HFSBI_BRIDGE_START && m->process) {
        m->process->started = true;
        if (failed) hfsbi_bridge_process_free(&r->calls, m->process);
    }
}

/* A process can no longer be followed: reports its end to Codex. */
static void hfsbi_bridge_abandon(hfsbi_bridge *r, hfsbi_bridge_process *p) {
    static const char *const parts[] = {"exited", "closed"};
    size_t                   i;
    for (i = 0; i < 2; i++) {
        hfsb_buf out = HFSB_INIT;
        out.alloc = r->alloc;
        hfsb_buf_printf(&out,
                        "{\"method\":\"process/%s\",\"params\":"
                        "{\"processId\":",
                        parts[i]);
        hfsbi_json_put_quoted(&out, hfsb_buf_str(&p->id));
        hfsb_buf_printf(&out, ",\"seq\":%llu%s}}", p->seq++,
                        i ? "" : ",\"exitCode\":-1,\"sandboxDenied\":false");
        hfsbi_bridge_pass(r, &out);
        hfsb_buf_free(&out);
    }
    hfsbi_bridge_process_free(&r->calls, p);
}

/* The answer to our initialize. */
static void hfsbi_bridge_resumed(hfsbi_bridge          *r,
                                 const hfsb_json_value *root) {
    const hfsb_json_value *error = hfsb_json_get(root, "error");
    hfsb_str               text = hfsbi_json_get_str(error, "message");
    hfsb_err               err = HFSB_INIT;
    if (!error) {
        r->state = HFSBI_BRIDGE_OPEN;
        hfsbi_sandbox_log(r->sandbox, "Connected again.");
        return;
    }
    (void)hfsbi_fail(&err, HFSB_LOST, 0,
                     "The session in the sandbox cannot be resumed:");
    hfsbi_sandbox_quote(r->sandbox, text, &err);
    /* the server has not noticed yet that the previous connection is dead */
    if (hfsb_json_int(hfsb_json_get(error, "code"), 0) == HFSBI_CODEX_ATTACHED)
        hfsbi_bridge_lose(r, &err);
    else hfsbi_bridge_give_up(r, &err);
}

/* The answer to one of our own calls, which is freed. */
static void hfsbi_bridge_own(hfsbi_bridge *r, hfsbi_bridge_message *m,
                             const hfsb_json_value *root) {
    hfsbi_bridge_kind     kind = m->kind;
    hfsbi_bridge_process *p = m->process;
    hfsbi_bridge_message_free(&r->calls, m);
    if (kind == HFSBI_BRIDGE_RESUME) hfsbi_bridge_resumed(r, root);
    else if (kind == HFSBI_BRIDGE_REJOIN && p && hfsb_json_get(root, "error"))
        hfsbi_bridge_abandon(r, p);
}

/* Takes an answer. True when it is to be passed on. */
static bool hfsbi_bridge_answered(hfsbi_bridge          *r,
                                  const hfsb_json_value *root) {
    hfsbi_bridge_message *m = hfsbi_bridge_match(&r->calls, root);
    if (m && m->kind >= HFSBI_BRIDGE_RESUME) {
        hfsbi_bridge_own(r, m, root);
        return false;
    }
    if (!m) return true;
    hfsbi_bridge_note(r, m, root);
    hfsbi_bridge_message_free(&r->calls, m);
    return true;
}

/* A whole message is in far.text. */
static void hfsbi_bridge_receive(hfsbi_bridge *r) {
    hfsb_json_parse_opts  how = HFSB_INIT;
    hfsb_json_doc         doc = HFSB_INIT;
    hfsbi_bridge_process *p = NULL;
    hfsb_str              method;
    hfsb_err              err = HFSB_INIT, why = HFSB_INIT;
    hfsb_status           st;
    bool                  pass, closed = false;
    doc.alloc = r->alloc;
    how.max_values = 4 * 262144; /* more than a server sends */
    st = hfsb_json_parse(hfsb_buf_str(&r->far.text), &how, &doc, &why);
    if (st != HFSB_OK || hfsb_json_type_of(doc.root) != HFSB_JSON_OBJECT) {
        (void)hfsbi_fail(&err, HFSB_REMOTE, 0,
                         "The server sent a message that is not JSON. %s",
                         why.msg);
        hfsb_json_free(&doc);
        if (st == HFSB_NOMEM) hfsbi_bridge_no_memory(r);
        else hfsbi_bridge_give_up(r, &err);
        return;
    }
    method = hfsbi_json_get_str(doc.root, "method");
    pass = method.len ? hfsbi_bridge_event(&r->calls, method,
                                           hfsb_json_get(doc.root, "params"),
                                           &p, &closed)
                      : hfsbi_bridge_answered(r, doc.root);
    if (pass) {
        hfsbi_bridge_renew(r);
        hfsbi_bridge_pass(r, &r->far.text);
    }
    if (closed) hfsbi_bridge_process_free(&r->calls, p);
    hfsb_json_free(&doc);
    hfsb_buf_truncate(&r->far.text, 0);
    if (r->far.text.cap > HFSBI_BRIDGE_AHEAD) hfsb_buf_free(&r->far.text);
}

/* The server closes the WebSocket. */
static void hfsbi_bridge_closed(hfsbi_bridge *r, const hfsbi_ws_frame *frame) {
    hfsb_err err = HFSB_INIT;
    bool     ours = frame->code == HFSBI_WS_PROTOCOL_ERROR ||
                frame->code == HFSBI_WS_BAD_TEXT ||
                frame->code == HFSBI_WS_TOO_BIG;
    (void)hfsbi_fail(&err, HFSB_LOST, 0,
                     "The server has closed the connection with code %u.",
                     frame->code);
    hfsbi_sandbox_quote(r->sandbox, frame->data, &err);
    if (ours && r->state < HFSBI_BRIDGE_ENDING) hfsbi_bridge_give_up(r, &err);
    else hfsbi_bridge_lose(r, &err);
}

static bool hfsbi_bridge_may_read(const hfsbi_bridge *r) {
    return r->far.ws && (hfsbi_wire_waiting(r->wire) < HFSBI_BRIDGE_AHEAD ||
                         hfsbi_wire_is_lost(r->wire));
}

/* Reads what has come, as far as Codex takes it. */
static void hfsbi_bridge_read(hfsbi_bridge *r) {
    hfsbi_ws_event event = HFSBI_WS_EVENT_MORE;
    hfsbi_ws_frame frame;
    hfsb_err       err = HFSB_INIT;
    hfsb_status    st;
    int            turns;
    for (turns = 0; hfsbi_bridge_may_read(r); turns++) {
        if (turns == HFSBI_BRIDGE_TURN) {
            hfsbi_bridge_post(r);
            return;
        }
        st = hfsbi_ws_client_next(r->far.ws, &event, &frame, &err);
        if (st == HFSB_OK && event == HFSBI_WS_EVENT_MORE) return;
        r->far.heard = hfsb_clock_ms();
        if (st == HFSB_OK && event == HFSBI_WS_EVENT_CLOSE) {
            hfsbi_bridge_closed(r, &frame);
        } else if (st == HFSB_OK && event == HFSBI_WS_EVENT_DATA) {
            if (hfsb_buf_append(&r->far.text, frame.data) != HFSB_OK)
                hfsbi_bridge_no_memory(r);
            else if (frame.last) hfsbi_bridge_receive(r);
        } else if (st == HFSB_SYNTAX || st == HFSB_LIMIT) {
            hfsbi_bridge_give_up(r, &err); /* it would do so again */
        } else if (st != HFSB_OK) {
            hfsbi_bridge_lose(r, &err);
        }
    }
}

/* ---- to the server ---- */

static hfsb_status hfsbi_bridge_write(hfsbi_bridge *r, hfsb_err *err) {
    hfsbi_bridge_message *m;
    bool        resuming = r->state == HFSBI_BRIDGE_RESUMING, whole = true;
    hfsb_status st = HFSB_OK;
    while (st == HFSB_OK && whole &&
           (m = hfsbi_bridge_next(&r->calls, resuming)) != NULL) {
        hfsb_str text = m->process ? hfsb_buf_str(&m->process->start)
                                   : hfsb_buf_str(&m->text);
        if (!text.len) { /* its process has ended meanwhile */
            hfsbi_bridge_message_free(&r->calls, m);
            continue;
        }
        st = hfsbi_ws_client_send(r->far.ws, text, &m->at, &whole, err);
        if (st == HFSB_OK && whole) hfsbi_bridge_sent(&r->calls, m);
    }
    if (st == HFSB_OK && r->state == HFSBI_BRIDGE_ENDING && !r->calls.queue)
        hfsbi_ws_client_close(r->far.ws, HFSBI_WS_NORMAL);
    if (st == HFSB_OK) st = hfsbi_ws_client_flush(r->far.ws, err);
    return st;
}

/* ---- turns ---- */

/* Reads, writes, and waits for what is needed. */
static void hfsbi_bridge_run(hfsbi_bridge *r) {
    hfsb_err    err = HFSB_INIT;
    hfsb_status st = HFSB_OK;
    unsigned    want = 0;
    hfsbi_bridge_read(r);
    if (r->far.ws) st = hfsbi_bridge_write(r, &err);
    if (st != HFSB_OK) hfsbi_bridge_lose(r, &err);
    hfsbi_bridge_balance(r);
    if (!r->far.ws) return;
    if (hfsbi_bridge_may_read(r)) want |= HFSBI_IO_READ;
    if (hfsbi_ws_client_waits(r->far.ws)) want |= HFSBI_IO_WRITE;
    if (!hfsbi_loop_io(r->loop, &r->far.io, want)) hfsbi_bridge_no_memory(r);
}

static void hfsbi_bridge_ready(hfsbi_io *io, unsigned events) {
    (void)events;
    hfsbi_bridge_run(
        (hfsbi_bridge *)(void *)((char *)io - offsetof(hfsbi_bridge, far.io)));
}

static void hfsbi_bridge_turn(hfsbi_task *task) {
    hfsbi_bridge *r =
        (hfsbi_bridge *)(void *)((char *)task - offsetof(hfsbi_bridge, turn));
    r->turn_posted = false;
    hfsbi_bridge_run(r);
}

static void hfsbi_bridge_tick(hfsbi_timer *timer) {
    hfsbi_bridge *r = (hfsbi_bridge *)(void *)((char *)timer -
                                               offsetof(hfsbi_bridge, timer));
    long long     now = hfsb_clock_ms();
    hfsb_err      err = HFSB_INIT;
    if (r->state == HFSBI_BRIDGE_ENDING) {
        hfsbi_bridge_done(r);
        return;
    }
    if (!r->far.ws) return;
    if (!hfsbi_bridge_may_read(r)) r->far.heard = now; /* nobody listens */
    if (now - r->far.heard >= HFSBI_BRIDGE_SILENCE_MS) {
        (void)hfsbi_fail(&err, HFSB_LOST, 0,
                         "Nothing came from the sandbox for %d s.",
                         HFSBI_BRIDGE_SILENCE_MS / 1000);
        hfsbi_bridge_lose(r, &err);
        return;
    }
    hfsbi_ws_client_ping(r->far.ws);
    hfsbi_loop_timer(r->loop, &r->timer, now + HFSBI_BRIDGE_PING_MS);
    hfsbi_bridge_run(r);
}

/* The thread has connected, or has given up. */
static void hfsbi_bridge_dialed(hfsbi_task *task) {
    hfsbi_bridge *r =
        (hfsbi_bridge *)(void *)((char *)task - offsetof(hfsbi_bridge, dial));
    hfsbi_ws_client *ws = r->dial.ws;
    r->dial.ws = NULL;
    if (r->state != HFSBI_BRIDGE_DIALING) {
        hfsbi_ws_client_free(ws);
        return;
    }
    if (r->dial.status != HFSB_OK) {
        hfsbi_bridge_give_up(r, &r->dial.err);
        return;
    }
    hfsbi_bridge_begin(r, ws);
    if (r->state == HFSBI_BRIDGE_RESUMING &&
        !hfsbi_bridge_resume(&r->calls, r->far.session))
        hfsbi_bridge_no_memory(r);
    hfsbi_bridge_run(r);
}

/* ---- from Codex ---- */

/* Makes the process of a start. False when it was refused, or without memory:
   then the bridge has given up. */
static bool hfsbi_bridge_take_start(hfsbi_bridge *r, hfsb_str id,
                                    hfsb_str call, hfsb_buf *line,
                                    hfsbi_bridge_process **p) {
    if (line->len > HFSBI_BRIDGE_STARTS ||
        r->calls.starts > HFSBI_BRIDGE_STARTS - line->len) {
        hfsbi_bridge_refuse(r, call, HFSBI_CODEX_INVALID,
                            "The processes that run have 16 MiB of arguments "
                            "and environment: end some first.");
        return false;
    }
    *p = hfsbi_bridge_process_new(&r->calls, id, call, line);
    if (!*p) hfsbi_bridge_no_memory(r);
    return *p != NULL;
}

/* Queues a message of Codex. A start with an id that is in use is for the
   server to refuse. */
static void hfsbi_bridge_queue(hfsbi_bridge *r, const hfsb_json_value *root,
                               hfsb_buf *line, const hfsb_buf *call) {
    hfsb_str id =
        hfsbi_json_get_str(hfsb_json_get(root, "params"), "processId");
    hfsbi_bridge_process *p = NULL;
    hfsbi_bridge_message *m;
    hfsbi_bridge_kind     kind = hfsbi_bridge_kind_of(root);
    if (kind == HFSBI_BRIDGE_START &&
        (!id.len || !call->len || hfsbi_bridge_find(&r->calls, id)))
        kind = HFSBI_BRIDGE_ONCE;
    if (kind == HFSBI_BRIDGE_START &&
        !hfsbi_bridge_take_start(r, id, hfsb_buf_str(call), line, &p))
        return;
    m = hfsbi_bridge_add(&r->calls, kind, hfsb_buf_str(call), line, false);
    if (m) m->process = p;
    else hfsbi_bridge_no_memory(r);
}

static void hfsbi_bridge_line(void *user, hfsb_buf *line) {
    hfsbi_bridge          *r = (hfsbi_bridge *)user;
    hfsb_json_parse_opts   how = HFSB_INIT;
    hfsb_json_doc          doc = HFSB_INIT;
    const hfsb_json_value *id;
    hfsb_buf               call = HFSB_INIT;
    hfsb_err               err = HFSB_INIT;
    hfsb_status            st;
    if (r->state >= HFSBI_BRIDGE_ENDING) return;
    doc.alloc = call.alloc = r->alloc;
    how.max_values = HFSBI_CODEX_VALUES;
    st = hfsb_json_parse(hfsb_buf_str(line), &how, &doc, &err);
    if (st == HFSB_NOMEM) {
        hfsbi_bridge_no_memory(r);
    } else if (st != HFSB_OK) {
        hfsbi_bridge_refuse(r, HFSB_LIT("null"), HFSBI_CODEX_PARSE, err.msg);
    } else {
        id = hfsb_json_get(doc.root, "id");
        if (id && hfsb_json_get(doc.root, "method"))
            st = hfsb_json_write(id, NULL, &call, NULL);
        if (st == HFSB_OK) hfsbi_bridge_queue(r, doc.root, line, &call);
        else hfsbi_bridge_no_memory(r);
    }
    hfsb_buf_free(&call);
    hfsb_json_free(&doc);
    hfsbi_bridge_post(r);
}

static void hfsbi_bridge_refused(void *user, const hfsb_err *err) {
    hfsbi_bridge_refuse((hfsbi_bridge *)user, HFSB_LIT("null"),
                        HFSBI_CODEX_PARSE, err->msg);
}

static void hfsbi_bridge_ended(void *user, bool lost) {
    (void)lost;
    hfsbi_bridge_finish((hfsbi_bridge *)user);
}

static void hfsbi_bridge_drained(void *user) {
    hfsbi_bridge *r = (hfsbi_bridge *)user;
    if (hfsbi_bridge_may_read(r)) hfsbi_bridge_post(r);
}

/* ---- the part of the server ---- */

static void hfsbi_bridge_part_stop(hfsbi_server_part *part) {
    hfsbi_bridge_finish((hfsbi_bridge *)(void *)part);
}

static void hfsbi_bridge_part_end(hfsbi_server_part *part) {
    hfsb_cancel_set(((hfsbi_bridge *)(void *)part)->dial.cancel);
}

static bool hfsbi_bridge_part_busy(hfsbi_server_part *part) {
    const hfsbi_bridge *r = (const hfsbi_bridge *)(const void *)part;
    return r->state != HFSBI_BRIDGE_DONE ||
           (hfsbi_wire_waiting(r->wire) && !hfsbi_wire_is_lost(r->wire));
}

static void hfsbi_bridge_part_free(hfsbi_server_part *part) {
    hfsbi_bridge *r = (hfsbi_bridge *)(void *)part;
    hfsb_alloc    alloc = r->alloc;
    hfsbi_bridge_hang_up(r);
    hfsbi_loop_timer_clear(r->loop, &r->timer);
    if (r->turn_posted) hfsbi_loop_unpost(r->loop, &r->turn);
    hfsbi_wire_free(r->wire);
    hfsbi_bridge_forget(&r->calls);
    hfsb_cancel_close(r->dial.cancel);
    hfsbi_array_free(&alloc, r, 1, sizeof *r);
}

static hfsbi_bridge *hfsbi_bridge_new(hfsb_server                  *server,
                                      const hfsb_codex_bridge_opts *opts) {
    const hfsb_alloc *alloc = hfsbi_server_alloc(server);
    hfsbi_bridge     *r = (hfsbi_bridge *)hfsbi_array(alloc, 1, sizeof *r);
    if (!r) return NULL;
    memset(r, 0, sizeof *r);
    r->part.stop = hfsbi_bridge_part_stop;
    r->part.end = hfsbi_bridge_part_end;
    r->part.busy = hfsbi_bridge_part_busy;
    r->part.free = hfsbi_bridge_part_free;
    r->part.place = true;
    r->server = server;
    r->loop = hfsbi_server_loop(server);
    r->alloc = r->far.text.alloc = r->calls.alloc = *alloc;
    r->sandbox = opts->sandbox;
    r->why = opts->why;
    r->timer.fn = hfsbi_bridge_tick;
    r->turn.done = hfsbi_bridge_turn;
    r->dial.task.run = hfsbi_bridge_dial_run;
    r->dial.task.done = hfsbi_bridge_dialed;
    r->dial.retry.delay_ms = HFSBI_BRIDGE_DELAY_MS;
    r->dial.retry.max_delay_ms = HFSBI_BRIDGE_MAX_DELAY_MS;
    return r;
}

hfsb_status hfsb_server_add_codex_bridge(hfsb_server                  *server,
                                         const hfsb_codex_bridge_opts *opts,
                                         hfsb_err                     *err) {
    static const hfsbi_wire_fn fn = {hfsbi_bridge_line, hfsbi_bridge_refused,
                                     hfsbi_bridge_ended, hfsbi_bridge_drained};
    hfsbi_bridge              *r = hfsbi_bridge_new(server, opts);
    hfsbi_ws_client           *ws = NULL;
    hfsb_status                st;
    if (!r) return hfsbi_fail_status(err, HFSB_NOMEM, "Passing messages on");
    st = hfsb_cancel_open(&r->alloc, &r->dial.cancel, err);
    r->dial.retry.cancel = r->dial.cancel;
    if (st == HFSB_OK) st = hfsbi_bridge_connect(r, NULL, &ws, err);
    if (st == HFSB_OK)
        st = hfsbi_wire_open(server, opts->in, opts->out, HFSBI_CODEX_MESSAGE,
                             &fn, r, &r->wire, err);
    if (st != HFSB_OK) {
        hfsbi_ws_client_free(ws);
        hfsbi_bridge_part_free(&r->part);
        return st;
    }
    hfsbi_bridge_begin(r, ws);
    hfsbi_server_part_add(server, &r->part);
    hfsbi_bridge_post(r);
    return hfsbi_ok(err);
}
