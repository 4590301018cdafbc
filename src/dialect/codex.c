/* codex.c - the exec-server of Codex: an unmodified Codex runs its commands
   and changes its files here.

   The protocol is JSON-RPC without "jsonrpc", one object per message, over two
   kinds of channels: a WebSocket (GET /codex, and GET / on a port of its own)
   and a pair of descriptors, where each line is a message.

       message --> call --> run() in the loop ------------> answer
                     |----> work() in a thread -----------> answer
       process --> feed --> process/output, exited, closed, as notifications

   The output of a process is sent as fast as the client reads; beyond that the
   process is held, so that our memory does not fill. While the session is
   detached nothing is sent. A start that is repeated after the session was
   resumed joins the process of the first one: its answer may have been lost.

   Over descriptors there is one client: the server stops at the end of its
   input, and its processes end at once. */
#include "dialect_private.h"

enum {
    HFSBI_CODEX_WORKING = 32,      /* calls of a channel in threads */
    HFSBI_CODEX_CHOKE = 4 << 20,   /* unsent bytes that stop reading */
    HFSBI_CODEX_HELD = 256 << 20,  /* bytes of all messages in memory */
    HFSBI_CODEX_SILENCE_MS = 5000, /* a client tries to resume for 25 s: a
                                       dead connection must be known before */
    HFSBI_CODEX_LINGER_MS = 500    /* after the end of input, for answers */
};

/* ---- channels ---- */

HFSBI_FN size_t hfsbi_codex_waiting(const hfsbi_codex_channel *c) {
    if (c->socket) return hfsbi_websocket_waiting(c->socket);
    return c->wire ? hfsbi_wire_waiting(c->wire) : 0;
}

/* Nobody can be answered from now on. */
static void hfsbi_codex_lose(hfsbi_codex_channel *c) {
    hfsb_buf none = HFSB_INIT;
    if (c->socket)
        hfsbi_websocket_close(c->socket, 1011, HFSB_LIT("out of memory"));
    else if (c->wire) hfsbi_wire_send(c->wire, &none);
}

HFSBI_FN void hfsbi_codex_send(hfsbi_codex_channel *c, hfsb_buf *message) {
    if (c->socket) {
        if (message->status != HFSB_OK || !message->len) hfsbi_codex_lose(c);
        else
            (void)hfsbi_websocket_send(c->socket, true, hfsb_buf_str(message));
    } else if (c->wire) {
        if (message->status != HFSB_OK) hfsb_buf_truncate(message, 0);
        hfsbi_wire_send(c->wire, message);
    }
}

/* Reads from the peer only while there is room for what it asks. */
static void hfsbi_codex_balance(hfsbi_codex_channel *c) {
    bool pause = c->working >= HFSBI_CODEX_WORKING ||
                 c->held > HFSBI_CODEX_MESSAGE ||
                 hfsbi_codex_waiting(c) > HFSBI_CODEX_CHOKE;
    if (pause == c->paused) return;
    c->paused = pause;
    if (c->socket) hfsbi_websocket_pause(c->socket, pause);
    else if (c->wire && !c->over) hfsbi_wire_pause(c->wire, pause);
}

static void hfsbi_codex_channel_free(hfsbi_codex_channel *c) {
    hfsbi_codex          *codex = c->codex;
    hfsbi_codex_channel **link = &codex->channels;
    while (*link != c) link = &(*link)->next;
    *link = c->next;
    codex->held -= c->text.len;
    if (codex->stdio == c) codex->stdio = NULL;
    hfsbi_loop_timer_clear(codex->dialect.loop, &c->timer);
    hfsbi_wire_free(c->wire);
    hfsb_buf_free(&c->text);
    hfsbi_array_free(&codex->dialect.alloc, c, 1, sizeof *c);
}

static hfsbi_codex_channel *hfsbi_codex_channel_new(hfsbi_codex *codex) {
    hfsbi_codex_channel *c = (hfsbi_codex_channel *)hfsbi_array(
        &codex->dialect.alloc, 1, sizeof *c);
    if (!c) return NULL;
    memset(c, 0, sizeof *c);
    c->codex = codex;
    c->text.alloc = codex->dialect.alloc;
    c->next = codex->channels;
    codex->channels = c;
    return c;
}

/* Stops the server once a client over descriptors has all its answers, or its
   time is up. */
static void hfsbi_codex_stdio_look(hfsbi_codex_channel *c, bool late) {
    hfsb_server *server = c->codex->dialect.server;
    if (!c->over || !c->wire) return;
    if (!late && (c->users || hfsbi_wire_waiting(c->wire)) &&
        !hfsbi_wire_is_lost(c->wire))
        return;
    hfsbi_loop_timer_clear(c->codex->dialect.loop, &c->timer);
    if (!hfsbi_server_is_stopping(server)) hfsb_server_stop(server);
}

/* ---- calls ---- */

static void hfsbi_codex_call_free(hfsbi_codex_call *call) {
    hfsbi_codex         *codex = call->codex;
    hfsbi_codex_channel *c = call->channel;
    hfsbi_codex_session *s = call->session;
    size_t               size = call->text.len;
    if (call->working) c->working--;
    c->held -= size;
    codex->held -= size;
    hfsb_json_free(&call->doc);
    hfsb_buf_free(&call->text);
    hfsb_buf_free(&call->out);
    hfsb_buf_free(&call->path);
    hfsb_buf_free(&call->to);
    hfsbi_array_free(&codex->dialect.alloc, call, 1, sizeof *call);
    if (s) {
        s->users--;
        hfsbi_codex_session_release(s);
    }
    c->users--;
    hfsbi_codex_balance(c);
    hfsbi_codex_stdio_look(c, false);
    if (!c->users && !c->socket && !c->wire) hfsbi_codex_channel_free(c);
}

/* The code for a failure of the library. */
static int hfsbi_codex_code(hfsb_status st) {
    switch (st) {
    case HFSB_NOT_FOUND: return HFSBI_CODEX_NOT_FOUND;
    case HFSB_ARG:
    case HFSB_SYNTAX:
    case HFSB_LIMIT:
    case HFSB_REFUSED:
    case HFSB_DENIED:
    case HFSB_OUTSIDE:
    case HFSB_EXISTS:
    case HFSB_IS_DIR:
    case HFSB_NOT_REGULAR: return HFSBI_CODEX_INVALID;
    default: return HFSBI_CODEX_INTERNAL;
    }
}

static void hfsbi_codex_put_error(hfsbi_codex_call *call) {
    int code = call->code ? call->code : hfsbi_codex_code(call->err.code);
    hfsb_buf_free(&call->out);
    hfsb_buf_append(&call->out, HFSB_LIT("{\"id\":"));
    (void)hfsb_json_write(call->id, NULL, &call->out, NULL);
    hfsb_buf_printf(&call->out, ",\"error\":{\"code\":%d,\"message\":", code);
    hfsbi_json_put_quoted(&call->out, hfsb_cstr(call->err.msg));
    hfsb_buf_append(&call->out, HFSB_LIT("}}"));
}

HFSBI_FN void hfsbi_codex_answer(hfsbi_codex_call *call) {
    if (call->err.code == HFSB_OK) {
        hfsb_buf_append_byte(&call->out, '}');
        if (call->out.status != HFSB_OK)
            (void)hfsbi_fail_status(&call->err, HFSB_NOMEM, "The answer");
    }
    if (call->err.code != HFSB_OK) hfsbi_codex_put_error(call);
    if (call->owed) hfsbi_codex_send(call->channel, &call->out);
    hfsbi_codex_call_free(call);
}

/* ---- the environment ---- */

static void hfsbi_codex_ready(hfsbi_codex_call *call) {
    hfsb_buf_append(hfsbi_codex_result(call),
                    HFSB_LIT("{\"status\":\"ready\"}"));
    hfsbi_codex_answer(call);
}

static void hfsbi_codex_nothing(hfsbi_codex_call *call) {
    hfsb_buf_append(hfsbi_codex_result(call), HFSB_LIT("{}"));
    hfsbi_codex_answer(call);
}

static void hfsbi_codex_info(hfsbi_codex_call *call) {
    const hfsb_tools *tools = call->codex->dialect.tools;
    hfsb_str          shell = hfsb_buf_str(&tools->shell), name;
    hfsb_str          cwd = hfsb_root_work_dir(tools->place);
    hfsb_buf         *out = hfsbi_codex_result(call);
    char              here[PATH_MAX];
    if (!shell.len) shell = HFSB_LIT("/bin/sh");
    if (!cwd.len && getcwd(here, sizeof here)) cwd = hfsb_cstr(here);
    name = shell;
    while (hfsb_str_find_byte(name, '/') != HFSB_NPOS)
        name =
            hfsb_str_slice(name, hfsb_str_find_byte(name, '/') + 1, name.len);
    hfsb_buf_append(out, HFSB_LIT("{\"shell\":{\"name\":"));
    hfsbi_json_put_quoted(out, name);
    hfsb_buf_append(out, HFSB_LIT(",\"path\":"));
    hfsbi_json_put_quoted(out, shell);
    hfsb_buf_append(out, HFSB_LIT("},\"cwd\":"));
    if (cwd.len) hfsbi_codex_put_uri(out, cwd);
    else hfsb_buf_append(out, HFSB_LIT("null"));
    hfsb_buf_append(out, HFSB_LIT(",\"capabilities\":{}}"));
    hfsbi_codex_answer(call);
}

/* ---- messages ---- */

static const hfsbi_codex_method hfsbi_codex_methods[] = {
    {"initialize", hfsbi_codex_initialize, NULL, false},
    {"initialized", hfsbi_codex_nothing, NULL, false},
    {"environment/info", hfsbi_codex_info, NULL, false},
    {"environment/status", hfsbi_codex_ready, NULL, false},
    {"process/start", hfsbi_codex_start, NULL, false},
    {"process/read", hfsbi_codex_read, NULL, false},
    {"process/write", hfsbi_codex_write, NULL, false},
    {"process/signal", hfsbi_codex_signal, NULL, false},
    {"process/terminate", hfsbi_codex_terminate, NULL, false},
    {"fs/getMetadata", NULL, hfsbi_codex_fs_stat, false},
    {"fs/readFile", NULL, hfsbi_codex_fs_read, true},
    {"fs/writeFile", NULL, hfsbi_codex_fs_write, true},
    {"fs/createDirectory", NULL, hfsbi_codex_fs_make, true},
    {"fs/remove", NULL, hfsbi_codex_fs_remove, true},
    {"fs/copy", NULL, hfsbi_codex_fs_copy, true},
    {"fs/canonicalize", NULL, hfsbi_codex_fs_canonical, false},
    {"fs/readDirectory", NULL, hfsbi_codex_fs_list, false},
    {"fs/walk", NULL, hfsbi_codex_fs_walk, false},
    {"fs/open", NULL, hfsbi_codex_fs_open, true},
    {"fs/readBlock", NULL, hfsbi_codex_fs_block, false},
    {"fs/close", hfsbi_codex_fs_close, NULL, false}};

static const hfsbi_codex_method *hfsbi_codex_method_find(hfsb_str name) {
    size_t i, n = sizeof hfsbi_codex_methods / sizeof *hfsbi_codex_methods;
    for (i = 0; i < n; i++)
        if (hfsb_str_equal(name, hfsb_cstr(hfsbi_codex_methods[i].name)))
            return &hfsbi_codex_methods[i];
    return NULL;
}

/* In a thread. */
static void hfsbi_codex_work(hfsbi_task *task) {
    hfsbi_codex_call *call = (hfsbi_codex_call *)(void *)task;
    hfsb_status       st = call->method->work(call);
    if (st != HFSB_OK && call->err.code == HFSB_OK)
        (void)hfsbi_fail_status(&call->err, st, call->method->name);
}

static void hfsbi_codex_worked(hfsbi_task *task) {
    hfsbi_codex_call *call = (hfsbi_codex_call *)(void *)task;
    const hfsb_tools *tools = call->codex->dialect.tools;
    if (call->handle) hfsbi_codex_handle_done(call);
    /* Codex looks for .git in all parent folders: those outside the root do
       not exist for it */
    if (call->err.code == HFSB_OUTSIDE &&
        call->method->work == hfsbi_codex_fs_stat)
        call->code = HFSBI_CODEX_NOT_FOUND;
    if (call->method->reported)
        hfsbi_api_report(tools, call->method->name, hfsb_buf_str(&call->path),
                         "", hfsb_cstr(call->err.msg), call->began,
                         call->bytes);
    hfsbi_codex_answer(call);
}

static void hfsbi_codex_serve(hfsbi_codex_call *call) {
    if (call->method->run) {
        call->method->run(call);
    } else if (!hfsbi_codex_fs_prepare(call)) {
        hfsbi_codex_answer(call);
    } else {
        call->task.run = hfsbi_codex_work;
        call->task.done = hfsbi_codex_worked;
        call->task.rights = call->codex->dialect.tools->rights;
        call->working = true;
        call->channel->working++;
        hfsbi_loop_work(call->codex->dialect.loop, &call->task);
    }
}

/* Reads the request. False after a failure, or when no answer is due. */
static bool hfsbi_codex_understand(hfsbi_codex_call *call) {
    const hfsb_json_value *root = call->doc.root;
    const hfsb_json_value *id = hfsb_json_get(root, "id");
    const hfsb_json_value *method = hfsb_json_get(root, "method");
    hfsb_json_type         type = hfsb_json_type_of(id);
    hfsb_str               name = hfsb_json_str(method, HFSB_LIT(""));
    if (type == HFSB_JSON_STRING || type == HFSB_JSON_INT) call->id = id;
    if (hfsb_json_type_of(root) != HFSB_JSON_OBJECT || (id && !call->id) ||
        (method && !name.len)) {
        hfsbi_codex_fail(call, HFSBI_CODEX_INVALID, "This is not a message.");
        return false;
    }
    call->owed = call->id && method; /* else it is a notification or a reply */
    if (!method) return false;
    call->method = hfsbi_codex_method_find(name);
    call->params = hfsb_json_get(root, "params");
    if (!call->method)
        hfsbi_codex_fail(call, HFSBI_CODEX_NO_METHOD, "unknown method %.*s",
                         (int)hfsb_utf8_offset(name, 80), name.ptr);
    else if (!call->session && call->method->run != hfsbi_codex_initialize)
        hfsbi_codex_fail(call, HFSBI_CODEX_INVALID, "Send initialize first.");
    else if (hfsb_json_type_of(call->params) != HFSB_JSON_OBJECT &&
             hfsb_json_type_of(call->params) != HFSB_JSON_NULL)
        hfsbi_codex_fail(call, HFSBI_CODEX_PARAMS,
                         "params must be an object.");
    else return true;
    return false;
}

static hfsbi_codex_call *hfsbi_codex_call_new(hfsbi_codex_channel *c,
                                              hfsb_buf            *text) {
    const hfsb_alloc *alloc = &c->codex->dialect.alloc;
    hfsbi_codex_call *call =
        (hfsbi_codex_call *)hfsbi_array(alloc, 1, sizeof *call);
    if (!call) return NULL;
    memset(call, 0, sizeof *call);
    call->codex = c->codex;
    call->channel = c;
    call->session = c->session;
    call->began = hfsb_clock_ms();
    call->doc.alloc = call->out.alloc = *alloc;
    call->path.alloc = call->to.alloc = *alloc;
    call->text = *text;
    memset(text, 0, sizeof *text);
    text->alloc = call->text.alloc;
    c->users++;
    c->held += call->text.len;
    c->codex->held += call->text.len;
    if (c->session) c->session->users++;
    return call;
}

/* Serves a message, which is moved out of *text. */
static void hfsbi_codex_receive(hfsbi_codex_channel *c, hfsb_buf *text) {
    hfsb_json_parse_opts how = HFSB_INIT;
    hfsbi_codex_call    *call = hfsbi_codex_call_new(c, text);
    hfsb_err             err = HFSB_INIT;
    hfsb_status          st;
    if (!call) {
        hfsbi_codex_lose(c);
        return;
    }
    how.max_values = HFSBI_CODEX_VALUES;
    st = hfsb_json_parse_in_place(call->text.ptr, call->text.len, &how,
                                  &call->doc, &err);
    call->owed = true;
    if (st != HFSB_OK)
        hfsbi_codex_fail(call, HFSBI_CODEX_PARSE, "%s",
                         st == HFSB_NOMEM ? "Out of memory." : err.msg);
    if (st == HFSB_OK && hfsbi_codex_understand(call)) hfsbi_codex_serve(call);
    else hfsbi_codex_answer(call);
    hfsbi_codex_balance(c);
}

/* ---- WebSockets ---- */

static void hfsbi_codex_message(void *user, hfsbi_websocket *socket,
                                hfsb_str piece, bool text, bool last) {
    hfsbi_codex_channel *c = (hfsbi_codex_channel *)user;
    hfsbi_codex         *codex = c->codex;
    (void)text;
    if (codex->held + piece.len > HFSBI_CODEX_HELD ||
        hfsb_buf_append(&c->text, piece) != HFSB_OK) {
        hfsbi_websocket_close(socket, 1013, HFSB_LIT("no memory now"));
        return;
    }
    codex->held += piece.len;
    if (!last) return;
    codex->held -= c->text.len;
    c->users++;
    if (c->text.len) hfsbi_codex_receive(c, &c->text);
    hfsb_buf_truncate(&c->text, 0);
    c->users--;
}

static void hfsbi_codex_closed(void *user, hfsbi_websocket *socket) {
    hfsbi_codex_channel *c = (hfsbi_codex_channel *)user;
    (void)socket;
    c->socket = NULL;
    c->users++; /* calls that end here refer to it */
    hfsbi_codex_detach(c);
    if (--c->users == 0) hfsbi_codex_channel_free(c);
}

static void hfsbi_codex_drained(void *user, hfsbi_websocket *socket) {
    hfsbi_codex_channel *c = (hfsbi_codex_channel *)user;
    (void)socket;
    if (c->session) hfsbi_codex_push(c->session);
    hfsbi_codex_balance(c);
}

static const hfsbi_websocket_fn hfsbi_codex_socket_fn = {
    hfsbi_codex_message, hfsbi_codex_closed,     hfsbi_codex_drained,
    HFSBI_CODEX_MESSAGE, HFSBI_CODEX_SILENCE_MS, false};

static void hfsbi_codex_connect(void *user, hfsb_request *request) {
    hfsbi_codex         *codex = (hfsbi_codex *)user;
    hfsbi_codex_channel *c = hfsbi_codex_channel_new(codex);
    if (!c) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return;
    }
    c->socket = hfsbi_websocket_open(request, NULL, &hfsbi_codex_socket_fn, c);
    if (!c->socket) hfsbi_codex_channel_free(c);
}

/* ---- descriptors ---- */

static void hfsbi_codex_line(void *user, hfsb_buf *line) {
    hfsbi_codex_receive((hfsbi_codex_channel *)user, line);
}

static void hfsbi_codex_refused(void *user, const hfsb_err *err) {
    hfsbi_codex_channel *c = (hfsbi_codex_channel *)user;
    hfsb_buf             out = HFSB_INIT;
    out.alloc = c->codex->dialect.alloc;
    hfsb_buf_printf(&out, "{\"id\":null,\"error\":{\"code\":%d,\"message\":",
                    HFSBI_CODEX_PARSE);
    hfsbi_json_put_quoted(&out, hfsb_cstr(err->msg));
    hfsb_buf_append(&out, HFSB_LIT("}}"));
    hfsbi_codex_send(c, &out);
    hfsb_buf_free(&out);
}

static void hfsbi_codex_sent(void *user) {
    hfsbi_codex_channel *c = (hfsbi_codex_channel *)user;
    if (c->session) hfsbi_codex_push(c->session);
    hfsbi_codex_balance(c);
    hfsbi_codex_stdio_look(c, false);
}

static void hfsbi_codex_late(hfsbi_timer *timer) {
    hfsbi_codex_stdio_look(
        (hfsbi_codex_channel *)(void *)((char *)timer -
                                        offsetof(hfsbi_codex_channel, timer)),
        true);
}

static void hfsbi_codex_stdio_ended(void *user, bool lost) {
    hfsbi_codex_channel *c = (hfsbi_codex_channel *)user;
    hfsbi_dialect       *d = &c->codex->dialect;
    c->over = true;
    hfsbi_jobs_end(d->tools, HFSB_LIT(""));
    hfsbi_loop_timer(d->loop, &c->timer,
                     hfsb_clock_ms() + (lost ? 0 : HFSBI_CODEX_LINGER_MS));
    if (!lost) hfsbi_codex_stdio_look(c, false);
}

static const hfsbi_wire_fn hfsbi_codex_wire_fn = {
    hfsbi_codex_line, hfsbi_codex_refused, hfsbi_codex_stdio_ended,
    hfsbi_codex_sent};

static hfsb_status hfsbi_codex_stdio(hfsbi_codex             *codex,
                                     const hfsb_dialect_opts *opts,
                                     hfsb_err                *err) {
    hfsbi_codex_channel *c = hfsbi_codex_channel_new(codex);
    hfsb_status          st;
    if (!c) return hfsbi_fail_status(err, HFSB_NOMEM, "Serving descriptors");
    c->timer.fn = hfsbi_codex_late;
    st = hfsbi_wire_open(codex->dialect.server, opts->in, opts->out,
                         HFSBI_CODEX_MESSAGE, &hfsbi_codex_wire_fn, c,
                         &c->wire, err);
    if (st != HFSB_OK) {
        hfsbi_codex_channel_free(c);
        return st;
    }
    codex->stdio = c;
    codex->dialect.part.place = true;
    return HFSB_OK;
}

/* ---- the dialect ---- */

/* The token of the server was looked for, and wiped, before. */
static bool hfsbi_codex_trusts(hfsbi_face *face, hfsb_request *request) {
    hfsbi_dialect *d = hfsbi_dialect_of(face);
    if (!d->has_token) return hfsbi_request_is_trusted(request);
    return hfsbi_dialect_trusts(d, request, "Authorization", "Bearer");
}

static void hfsbi_codex_refuse(hfsbi_face *face, hfsb_request *request,
                               int status, hfsb_str message) {
    (void)face;
    hfsb_reply(request, status, "text/plain; charset=utf-8", message);
}

/* The server stops: tells the clients; processes end a moment later. */
static void hfsbi_codex_part_stop(hfsbi_server_part *part) {
    hfsbi_codex         *codex = (hfsbi_codex *)(void *)part;
    hfsbi_codex_channel *c = codex->channels, *next;
    for (; c; c = next) {
        next = c->next;
        if (c->socket)
            hfsbi_websocket_close(c->socket, HFSBI_WS_GOING_AWAY,
                                  HFSB_LIT("the server stops"));
        else if (c->wire) hfsbi_wire_shut(c->wire);
    }
}

static void hfsbi_codex_part_end(hfsbi_server_part *part) {
    hfsbi_codex *codex = (hfsbi_codex *)(void *)part;
    codex->ended = true;
    while (codex->sessions) hfsbi_codex_session_end(codex->sessions);
    hfsbi_jobs_end(codex->dialect.tools, HFSB_LIT(""));
}

static hfsb_status hfsbi_codex_open(hfsbi_dialect           *d,
                                    const hfsb_dialect_opts *opts,
                                    hfsb_err                *err) {
    static const hfsbi_dialect_route routes[] = {
        {"GET", "/codex", hfsbi_codex_connect, false, NULL, NULL},
        {NULL, NULL, NULL, false, NULL, NULL}};
    static const hfsbi_dialect_route alone[] = {
        {"GET", "/", hfsbi_codex_connect, false, NULL, NULL},
        {NULL, NULL, NULL, false, NULL, NULL}};
    hfsb_status st;
    d->part.stop = hfsbi_codex_part_stop;
    d->part.end = hfsbi_codex_part_end;
    if (opts->on_fds)
        return hfsbi_codex_stdio((hfsbi_codex *)(void *)d, opts, err);
    d->face.guard = hfsbi_dialect_guard(d);
    d->face.trusts = hfsbi_codex_trusts;
    d->face.refuse = hfsbi_codex_refuse;
    st = hfsbi_dialect_add(d, routes, err);
    if (st == HFSB_OK && opts->own_port) st = hfsbi_dialect_add(d, alone, err);
    return st;
}

static void hfsbi_codex_close(hfsbi_dialect *d) {
    hfsbi_codex *codex = (hfsbi_codex *)(void *)d;
    while (codex->sessions) hfsbi_codex_session_end(codex->sessions);
    while (codex->channels) hfsbi_codex_channel_free(codex->channels);
}

HFSBI_FN const hfsbi_dialect_kind *hfsbi_dialect_codex(void) {
    static const hfsbi_dialect_kind kind = {
        "codex", sizeof(hfsbi_codex), hfsbi_codex_open, hfsbi_codex_close};
    return &kind;
}
