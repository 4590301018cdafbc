/* exec.c - a program on a sandbox, byte for byte, and questions to its server.

   hfsb_sandbox_exec() is the client of /api/exec (api/exec.c has the messages):
   one WebSocket, this machine's descriptor for standard input, and one poll()
   that waits for both:

       descriptor --read--> message --> WebSocket --> program
       on_output  <-------- message <-- WebSocket <-- program

   Nothing is read from the descriptor while a message has not left, and
   nothing from the WebSocket while on_output runs: so a slow side holds the
   other one, through the network, and memory is bounded. A turn takes a
   limited amount of output, so that a flood of it holds up neither input nor
   cancel. While the server does not read, its pings show that it is there. A
   lost connection ends the remote program, and is not made again: bytes of a
   pipe cannot be repeated. */
#include "remote_private.h"

enum {
    HFSBI_REXEC_READ = 65536,    /* bytes of input in one message */
    HFSBI_REXEC_TAKE = 65536,    /* bytes, or ... */
    HFSBI_REXEC_FRAMES = 16,     /* ... frames of output in one turn */
    HFSBI_REXEC_LOOK_MS = 500,   /* between looks at the window's size */
    HFSBI_REXEC_PING_MS = 20000, /* of silence, then a ping */
    HFSBI_REXEC_LOST_MS = 60000, /* of silence, then it is lost */
    HFSBI_REXEC_MOST = 4 << 20   /* bytes of a message */
};

typedef struct hfsbi_rexec_run {
    hfsb_sandbox         *sandbox;
    const hfsb_exec_opts *opts;
    const hfsb_cancel    *cancel;
    hfsb_exec_result     *result;
    hfsbi_ws_client      *ws;
    hfsb_err             *err;
    bool                  reading; /* the descriptor has not ended */
    hfsb_buf              out;     /* the message that is being sent ... */
    bool                  text;
    size_t                sent;  /* ... of which so much was sent */
    hfsb_buf              in;    /* a text message, as far as it has come */
    size_t                piece; /* bytes of the message that came so far */
    hfsb_proc_stream      stream;
    unsigned              cols, rows;
    long long             heard, pinged;
    bool                  more; /* has arrived, and must be taken */
    bool                  over;
} hfsbi_rexec_run;

/* ---- sending ---- */

static void hfsbi_rexec_queue(hfsbi_rexec_run *x, bool text) {
    x->text = text;
    x->sent = 0;
}

/* Sends the message, as much as fits. */
static hfsb_status hfsbi_rexec_send(hfsbi_rexec_run *x) {
    bool        whole = false;
    hfsb_status st;
    if (!x->out.len) return hfsbi_ws_client_flush(x->ws, x->err);
    st = hfsbi_ws_client_send_as(x->ws, x->text, hfsb_buf_str(&x->out),
                                 &x->sent, &whole, x->err);
    if (st == HFSB_OK && whole) hfsb_buf_truncate(&x->out, 0);
    return st;
}

static void hfsbi_rexec_put_env(hfsb_json_writer *w, const char *const *env) {
    hfsb_json_put_key(w, HFSB_LIT("env"));
    hfsb_json_put_object(w);
    for (; env && *env; env++) {
        size_t len = strcspn(*env, "=");
        hfsb_json_put_key(w, hfsb_str_make(*env, len));
        if ((*env)[len]) hfsb_json_put_str(w, hfsb_cstr(*env + len + 1));
        else hfsb_json_put_null(w);
    }
    hfsb_json_put_end(w);
}

/* Writes the first message. */
static hfsb_status hfsbi_rexec_put_spec(hfsbi_rexec_run *x) {
    const hfsb_exec_opts *o = x->opts;
    const char *const    *word = o->argv;
    hfsb_json_writer      w;
    hfsb_json_writer_init(&w, &x->out, NULL);
    hfsb_json_put_object(&w);
    if (word) {
        hfsb_json_put_key(&w, HFSB_LIT("argv"));
        hfsb_json_put_array(&w);
        for (; *word; word++) hfsb_json_put_str(&w, hfsb_cstr(*word));
        hfsb_json_put_end(&w);
    }
    if (o->command.len) hfsb_json_put_member_str(&w, "command", o->command);
    if (o->work_dir.len) hfsb_json_put_member_str(&w, "work_dir", o->work_dir);
    hfsbi_rexec_put_env(&w, o->env);
    hfsb_json_put_key(&w, HFSB_LIT("no_input"));
    hfsb_json_put_bool(&w, o->in < 0);
    hfsb_json_put_key(&w, HFSB_LIT("merge_stderr"));
    hfsb_json_put_bool(&w, o->merge_stderr);
    hfsb_json_put_key(&w, HFSB_LIT("timeout"));
    hfsb_json_put_double(&w, o->timeout > 0 ? o->timeout : 0);
    if (x->cols && x->rows) {
        hfsb_json_put_key(&w, HFSB_LIT("cols"));
        hfsb_json_put_uint(&w, x->cols);
        hfsb_json_put_key(&w, HFSB_LIT("rows"));
        hfsb_json_put_uint(&w, x->rows);
    }
    hfsb_json_put_end(&w);
    hfsbi_rexec_queue(x, true);
    return hfsb_json_writer_finish(&w, x->err);
}

/* Reads input; its end is a message as well. */
static hfsb_status hfsbi_rexec_read(hfsbi_rexec_run *x) {
    char    bytes[HFSBI_REXEC_READ];
    ssize_t n = read(x->opts->in, bytes, sizeof bytes);
    if (n < 0 && (errno == EINTR || errno == EAGAIN)) return HFSB_OK;
    if (n > 0) {
        hfsbi_rexec_queue(x, false);
        return hfsb_buf_append(&x->out, hfsb_str_make(bytes, (size_t)n));
    }
    x->reading = false; /* an error ends it too */
    hfsbi_rexec_queue(x, true);
    return hfsb_buf_append(&x->out, HFSB_LIT("{\"eof\":true}"));
}

/* Sends the size of the window, if it has changed. */
static hfsb_status hfsbi_rexec_look(hfsbi_rexec_run *x) {
    unsigned cols = x->cols, rows = x->rows;
    if (!x->opts->size || !x->cols || x->out.len) return HFSB_OK;
    x->opts->size(x->opts->user, &cols, &rows);
    if (!cols || !rows || (cols == x->cols && rows == x->rows)) return HFSB_OK;
    x->cols = cols;
    x->rows = rows;
    hfsbi_rexec_queue(x, true);
    return hfsb_buf_printf(&x->out, "{\"cols\":%u,\"rows\":%u}", cols, rows);
}

/* ---- receiving ---- */

static hfsb_status hfsbi_rexec_code(hfsb_str word) {
    if (hfsb_str_equal(word, HFSB_LIT("not_found"))) return HFSB_NOT_FOUND;
    if (hfsb_str_equal(word, HFSB_LIT("denied"))) return HFSB_DENIED;
    if (hfsb_str_equal(word, HFSB_LIT("invalid"))) return HFSB_ARG;
    return HFSB_REMOTE;
}

/* A text message: the start, the exit or a failure. */
static hfsb_status hfsbi_rexec_note(hfsbi_rexec_run *x) {
    hfsb_json_doc          doc = HFSB_INIT;
    const hfsb_json_value *code;
    hfsb_status            st;
    doc.alloc = x->sandbox->o.alloc;
    st = hfsb_json_parse(hfsb_buf_str(&x->in), NULL, &doc, x->err);
    code = hfsb_json_get(doc.root, "exit_code");
    if (st == HFSB_OK && hfsb_json_get(doc.root, "error")) {
        char     text[400];
        hfsb_str why = hfsbi_json_get_str(doc.root, "error");
        (void)snprintf(text, sizeof text, "%.*s",
                       (int)hfsb_utf8_offset(why, 90), why.ptr);
        hfsbi_sandbox_scrub(x->sandbox, text);
        st = hfsbi_fail(x->err,
                        hfsbi_rexec_code(hfsbi_json_get_str(doc.root, "code")),
                        0, "%s", text);
    } else if (st == HFSB_OK && code) {
        long long number =
            hfsb_json_int(hfsb_json_get(doc.root, "signal"), 0);
        x->over = true;
        x->result->exit_code = (int)hfsb_json_int(code, -1);
        /* others add 128 to it */
        x->result->signal = number > 0 && number < 128 ? (int)number : 0;
        x->result->timed_out =
            hfsb_json_bool(hfsb_json_get(doc.root, "timed_out"), false);
    }
    hfsb_json_free(&doc);
    hfsb_buf_truncate(&x->in, 0);
    return st;
}

/* A piece of a message. The first byte of a binary one is its stream. */
static hfsb_status hfsbi_rexec_piece(hfsbi_rexec_run      *x,
                                     const hfsbi_ws_frame *frame) {
    hfsb_str    data = frame->data;
    hfsb_status st = HFSB_OK;
    bool        first = x->piece == 0;
    x->piece = frame->last ? 0 : x->piece + data.len;
    if (frame->text) {
        st = hfsb_buf_append(&x->in, data);
        if (st != HFSB_OK) return hfsbi_fail_status(x->err, st, "Message");
        return frame->last ? hfsbi_rexec_note(x) : HFSB_OK;
    }
    if (first && data.len) {
        x->stream = *data.ptr == 2 ? HFSB_PROC_STDERR : HFSB_PROC_STDOUT;
        data = hfsb_str_slice(data, 1, data.len);
    }
    if (!data.len || x->opts->on_output(x->opts->user, x->stream, data))
        return HFSB_OK;
    return hfsbi_fail(x->err, HFSB_IO, 0, "The output cannot be written.");
}

/* Takes what has arrived, as much as one turn may. */
static hfsb_status hfsbi_rexec_receive(hfsbi_rexec_run *x) {
    hfsbi_ws_event event;
    hfsbi_ws_frame frame;
    hfsb_status    st = HFSB_OK;
    size_t         bytes = 0, frames;
    x->more = true;
    for (frames = 0; frames < HFSBI_REXEC_FRAMES && bytes < HFSBI_REXEC_TAKE;
         frames++) {
        st = hfsbi_ws_client_next(x->ws, &event, &frame, x->err);
        x->more = st == HFSB_OK && event != HFSBI_WS_EVENT_MORE;
        if (!x->more) return st;
        x->heard = hfsb_clock_ms();
        if (event == HFSBI_WS_EVENT_CLOSE)
            return hfsbi_fail(x->err, HFSB_LOST, 0,
                              "The server has closed the connection; the "
                              "program was ended.");
        if (event != HFSBI_WS_EVENT_DATA) continue;
        bytes += frame.data.len;
        st = hfsbi_rexec_piece(x, &frame);
        x->heard = hfsb_clock_ms(); /* on_output may have taken its time */
        if (st != HFSB_OK || x->over) return st;
    }
    return st;
}

/* ---- waiting ---- */

static hfsb_status hfsbi_rexec_silence(hfsbi_rexec_run *x) {
    long long now = hfsb_clock_ms();
    if (now - x->heard > HFSBI_REXEC_LOST_MS)
        return hfsbi_fail(x->err, HFSB_LOST, 0,
                          "The sandbox does not answer any more.");
    if (now - x->heard > HFSBI_REXEC_PING_MS &&
        now - x->pinged > HFSBI_REXEC_PING_MS) {
        x->pinged = now;
        hfsbi_ws_client_ping(x->ws);
    }
    return HFSB_OK;
}

/* Waits for the WebSocket, the cancel and, unless a message is on its way, the
   input. *input: there is some. */
static hfsb_status hfsbi_rexec_wait(hfsbi_rexec_run *x, bool *input) {
    struct pollfd fds[3];
    int           most = x->more ? 0 : HFSBI_REXEC_LOOK_MS;
    memset(fds, 0, sizeof fds);
    fds[0].fd = hfsbi_ws_client_fd(x->ws);
    fds[0].events = POLLIN;
    if (hfsbi_ws_client_waits(x->ws)) fds[0].events |= POLLOUT;
    fds[1].fd = x->reading && !x->out.len ? x->opts->in : -1;
    fds[1].events = POLLIN;
    fds[2].fd = -1;
    most = hfsbi_cancel_watch(x->cancel, &fds[2], most);
    (void)poll(fds, 3, most); /* a signal: the window may have changed */
    if (hfsb_cancel_is_set(x->cancel))
        return hfsbi_fail(x->err, HFSB_CANCELLED, 0, "Cancelled.");
    *input = fds[1].fd >= 0 && fds[1].revents != 0;
    return HFSB_OK;
}

static hfsb_status hfsbi_rexec_loop(hfsbi_rexec_run *x) {
    hfsb_status st = hfsbi_rexec_put_spec(x);
    bool        input;
    while (st == HFSB_OK && !x->over) {
        input = false;
        st = hfsbi_rexec_receive(x);
        if (st == HFSB_OK && !x->over) st = hfsbi_rexec_send(x);
        if (st == HFSB_OK && !x->over) st = hfsbi_rexec_wait(x, &input);
        if (st == HFSB_OK && input && !x->over) st = hfsbi_rexec_read(x);
        if (st == HFSB_OK && !x->over) st = hfsbi_rexec_look(x);
        if (st == HFSB_OK && !x->over) st = hfsbi_rexec_silence(x);
    }
    if (st == HFSB_NOMEM) (void)hfsbi_fail_status(x->err, st, "Program");
    return st;
}

/* Reports why there is no WebSocket. */
static hfsb_status hfsbi_rexec_refused(const hfsb_sandbox *s, int status,
                                       hfsb_status st, hfsb_err *err) {
    if (status == 404 || status == 405)
        return hfsbi_fail(err, HFSB_REFUSED, 0,
                          "The server at %s has no /api/exec: it is not "
                          "hfsb-server, or an older one.",
                          s->page.ptr);
    if (status && status != 101) {
        st = hfsbi_remote_status(status);
        return hfsbi_fail(err, st, 0, "%s refused to run a program: HTTP %d",
                          s->page.ptr, status);
    }
    return st;
}

hfsb_status hfsb_sandbox_exec(hfsb_sandbox         *sandbox,
                              const hfsb_exec_opts *opts,
                              hfsb_exec_result *result, hfsb_err *err) {
    hfsbi_rexec_run x = HFSB_INIT;
    hfsb_err        own;
    int             status;
    hfsb_status     st;
    memset(result, 0, sizeof *result);
    x.sandbox = sandbox;
    x.opts = opts;
    x.cancel = opts->cancel ? opts->cancel : sandbox->o.cancel;
    x.result = result;
    x.err = err ? err : &own;
    x.out.alloc = x.in.alloc = sandbox->o.alloc;
    x.in.max = HFSBI_REXEC_MOST;
    x.reading = opts->in >= 0;
    x.heard = hfsb_clock_ms();
    if (opts->size) opts->size(opts->user, &x.cols, &x.rows);
    st = hfsbi_sandbox_websocket(sandbox, "api/exec", HFSBI_REXEC_MOST,
                                 x.cancel, &x.ws, &status, x.err);
    if (st != HFSB_OK) return hfsbi_rexec_refused(sandbox, status, st, x.err);
    st = hfsbi_rexec_loop(&x);
    if (st == HFSB_OK) {
        hfsbi_ws_client_close(x.ws, 1000);
        (void)hfsbi_ws_client_flush(x.ws, NULL);
    }
    hfsbi_ws_client_free(x.ws);
    hfsb_buf_free(&x.out);
    hfsb_buf_free(&x.in);
    return st;
}

/* ---- questions ---- */

hfsb_status hfsb_sandbox_ask(hfsb_sandbox *sandbox, hfsb_str path,
                             const hfsb_cancel *cancel, hfsb_json_doc *out,
                             hfsb_err *err) {
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_status     st;
    call.method = HFSB_LIT("GET");
    call.cancel = cancel ? cancel : sandbox->o.cancel;
    st = hfsbi_sandbox_send(sandbox, path, &call, &reply, err);
    if (st == HFSB_OK && reply.status != 200) {
        st = hfsbi_fail(err, hfsbi_remote_status(reply.status), 0,
                        "%s answered %.*s with HTTP %d", sandbox->page.ptr,
                        (int)hfsb_utf8_offset(path, 60), path.ptr,
                        reply.status);
        hfsbi_sandbox_quote(sandbox, hfsb_buf_str(&reply.body), err);
    } else if (st == HFSB_OK) {
        st = hfsb_json_parse(hfsb_buf_str(&reply.body), NULL, out, err);
    }
    hfsb_http_reply_free(&reply);
    return st;
}
