/* sandbox_call.c - a tool on another machine: from its arguments to its
   result.

   The arguments become the body of POST /api/{tool}, with the defaults that
   the reference's client adds. The body is sent until a reply comes, as often
   as that is safe:

                          hfsb-server,     hfsb-server,     another
                          with a key       harmless tool    server
    nothing was sent         again            again          again
    a wake-up page           again            again          again
    it may have run        to the same        again          never
                             instance

   The key makes a repeat join the first call instead of running it twice. Only
   the instance that received the key knows it. So before a repeat the server's
   health says which instance answers, and the repeat names the instance it is
   meant for: another one refuses it with 409.

   bash on hfsb-server can stream: its reply is then a series of events, each
   with a piece of output, and the last one holds the result. If a stream
   breaks, the repeat brings the result alone, and bash_output the rest of the
   text. */
#include "remote_private.h"

/* ---- the arguments ---- */

enum {
    HFSBI_REMOTE_SECONDS = 1200, /* the longest timeout */
    HFSBI_REMOTE_KILL = 30       /* seconds for kill */
};

static bool hfsbi_remote_is(const hfsbi_remote *r, const char *tool) {
    return strcmp(r->tool->name, tool) == 0;
}

/* How long the tool may take. */
static double hfsbi_remote_seconds(const hfsbi_remote    *r,
                                   const hfsb_json_value *args) {
    double    seconds = 0;
    long long wait_ms = 0;
    if (hfsbi_remote_is(r, "kill")) return HFSBI_REMOTE_KILL;
    if (hfsbi_remote_is(r, "bash") && !r->background)
        (void)hfsb_json_arg_double(args, "timeout", false, &seconds, NULL);
    if (hfsbi_remote_is(r, "bash_output") || hfsbi_remote_is(r, "bash_input"))
        (void)hfsb_json_arg_int(args, "wait_ms", false, &wait_ms, NULL);
    if (wait_ms > 0) seconds = (double)wait_ms / 1000.0;
    if (!(seconds > 0)) seconds = r->sandbox->o.timeout;
    return seconds > (double)HFSBI_REMOTE_SECONDS
               ? (double)HFSBI_REMOTE_SECONDS
               : seconds;
}

/* True when the caller leaves an optional parameter to its default: it is
   absent or null, an empty text, or 0 seconds. */
static bool hfsbi_remote_is_default(const hfsbi_param     *p,
                                    const hfsb_json_value *args) {
    const hfsb_json_value *given = hfsb_json_get(args, p->name);
    double                 number = 1;
    if (hfsb_json_type_of(given) == HFSB_JSON_NULL) return true;
    if (p->type == HFSBI_ARG_STR)
        return hfsb_json_type_of(given) == HFSB_JSON_STRING &&
               hfsb_json_str(given, HFSB_LIT("")).len == 0;
    return p->type == HFSBI_ARG_NUMBER &&
           hfsb_json_arg_double(args, p->name, false, &number, NULL) ==
               HFSB_OK &&
           !(number < 0 || number > 0);
}

/* A server other than hfsb-server sets no limit to a timeout itself, so it is
   sent no more than the longest. */
static bool hfsbi_remote_is_too_long(const hfsbi_remote    *r,
                                     const hfsbi_param     *p,
                                     const hfsb_json_value *args) {
    double seconds = 0;
    return !r->trusted && p->type == HFSBI_ARG_NUMBER &&
           hfsb_json_arg_double(args, p->name, false, &seconds, NULL) ==
               HFSB_OK &&
           seconds > (double)HFSBI_REMOTE_SECONDS;
}

/* Writes what the reference's client sends for a parameter that the caller
   leaves to its default. */
static void hfsbi_remote_put_default(hfsb_json_writer      *w,
                                     const hfsbi_remote    *r,
                                     const hfsb_json_value *args,
                                     const hfsbi_param     *p) {
    const hfsb_json_value *offset = hfsb_json_get(args, "offset");
    hfsb_str               rest = hfsb_cstr(p->choices), choice;
    if (p->type == HFSBI_ARG_NUMBER &&
        r->timeout > (double)(long long)r->timeout)
        hfsb_json_put_double(w, r->timeout);
    else if (p->type == HFSBI_ARG_NUMBER)
        hfsb_json_put_int(w, (long long)r->timeout);
    else if (p->type == HFSBI_ARG_BOOL) hfsb_json_put_bool(w, false);
    else if (p->choices && hfsbi_param_choice(&rest, &choice))
        hfsb_json_put_str(w, choice);
    else if (p->type == HFSBI_ARG_STR)
        hfsb_json_put_str(w, r->sandbox->o.work_dir);
    else if (p->preset && !hfsb_json_get(args, p->name) &&
             hfsb_json_type_of(offset) == HFSB_JSON_NULL)
        hfsb_json_put_int(w, p->preset);
    else hfsb_json_put_null(w); /* from an offset on: all lines */
}

/* Writes a required parameter or one that is SENT. A missing required one is
   for the server to report; a background command has no timeout unless asked
   for; a server at a URL, and hfsb-server anywhere, has a working directory of
   its own, and resolves relative paths against it. */
static void hfsbi_remote_put(hfsb_json_writer *w, const hfsbi_remote *r,
                             const hfsb_json_value *args,
                             const hfsbi_param     *p) {
    const hfsb_json_value *given = hfsb_json_get(args, p->name);
    bool                   required = p->flags & HFSBI_REQUIRED;
    bool none = !required && hfsbi_remote_is_default(p, args);
    if (required && !given) return;
    if (none && p->type == HFSBI_ARG_NUMBER && r->background) return;
    if (none && p->type == HFSBI_ARG_STR && !p->choices &&
        (!r->sandbox->o.work_dir.len ||
         (r->sandbox->usual_dir && r->instance[0])))
        return;
    hfsb_json_put_key(w, hfsb_cstr(p->name));
    if (none || hfsbi_remote_is_too_long(r, p, args))
        hfsbi_remote_put_default(w, r, args, p);
    else hfsb_json_put_value(w, given);
}

/* True for an argument that is not sent as the caller gave it: "stream",
   because this file decides how the reply is sent, and "id" when an option
   replaces it. */
static bool hfsbi_remote_is_own(const hfsbi_remote *r, const hfsbi_param *p) {
    if (strcmp(p->name, "id") == 0) return r->opts.id.ptr != NULL;
    return hfsbi_remote_is(r, "bash") && strcmp(p->name, "stream") == 0;
}

/* Writes the arguments that come from options of the call. */
static void hfsbi_remote_put_own(hfsb_json_writer *w, const hfsbi_remote *r,
                                 const hfsb_json_value *args) {
    if (r->opts.id.ptr && hfsbi_param_find(r->tool->params, HFSB_LIT("id")))
        hfsb_json_put_member_str(w, "id", r->opts.id);
    /* the command must survive a stream that breaks */
    if (r->opts.on_text && r->trusted && hfsbi_remote_is(r, "bash") &&
        !hfsb_json_get(args, "on_disconnect"))
        hfsb_json_put_member_str(w, "on_disconnect", HFSB_LIT("continue"));
    if (r->opts.images && r->trusted && hfsbi_remote_is(r, "read") &&
        !hfsb_json_get(args, "image"))
        hfsb_json_put_member_bool(w, "image", true);
    if (r->opts.page && r->trusted && !hfsb_json_get(args, "page") &&
        hfsbi_param_find(r->tool->params, HFSB_LIT("page")))
        hfsb_json_put_member_int(w, "page", (long long)r->opts.page);
    hfsbi_remote_put_condition(r, args, w);
}

/* Writes r->body and sets r->timeout. Parameters that are neither required nor
   SENT follow as the caller gave them. */
static hfsb_status hfsbi_remote_write(hfsbi_remote          *r,
                                      const hfsb_json_value *arguments,
                                      hfsb_err              *err) {
    const unsigned     first = HFSBI_REQUIRED | HFSBI_SENT;
    const hfsbi_param *p;
    hfsb_json_iter     it = hfsb_json_begin(arguments);
    hfsb_json_writer   w;
    if (hfsbi_remote_is(r, "bash"))
        (void)hfsb_json_arg_bool(arguments, "background", false,
                                 &r->background, NULL);
    r->timeout = hfsbi_remote_seconds(r, arguments);
    hfsb_json_writer_init(&w, &r->body, NULL);
    hfsb_json_put_object(&w);
    for (p = r->tool->params; p->name; p++)
        if (p->flags & first && !hfsbi_remote_is_own(r, p))
            hfsbi_remote_put(&w, r, arguments, p);
    while (hfsb_json_next(&it)) {
        p = hfsbi_param_find(r->tool->params, it.key);
        if (p && (p->flags & first || hfsbi_remote_is_own(r, p))) continue;
        hfsb_json_put_key(&w, it.key);
        hfsb_json_put_value(&w, it.value);
    }
    hfsbi_remote_put_own(&w, r, arguments);
    hfsb_json_put_end(&w);
    return hfsb_json_writer_finish(&w, err);
}

/* ---- the events of a stream ---- */

enum {
    HFSBI_STREAM_EVENT = 8 << 20,  /* bytes of one event */
    HFSBI_STREAM_ERRORS = 1 << 20, /* of stderr that are remembered */
    HFSBI_STREAM_PLAIN = 64 << 20, /* of a reply that is not a stream */
    HFSBI_STREAM_REST = 16 << 20   /* that are shown after a break */
};

static void hfsbi_remote_show(hfsbi_remote *r, hfsb_proc_stream stream,
                              hfsb_str text) {
    if (text.len) r->opts.on_text(r->opts.user, stream, text);
}

/* {"offset":0,"text":"..."} */
static void hfsbi_remote_show_piece(hfsbi_remote *r, hfsb_proc_stream stream,
                                    const hfsb_json_value *piece) {
    hfsbi_remote_text     *t = &r->text;
    const hfsb_json_value *at = hfsb_json_get(piece, "offset");
    hfsb_str text = hfsb_json_str(hfsb_json_get(piece, "text"), HFSB_LIT(""));
    unsigned long long offset = hfsb_json_uint(at, t->shown[stream]);
    t->shown[stream] = offset + text.len;
    /* its start is enough to find it in the log again; without memory, or
       beyond the limit, what is there must suffice */
    if (stream == HFSB_PROC_STDERR && t->errors.len == offset &&
        hfsb_buf_append(&t->errors, text) != HFSB_OK)
        hfsb_buf_truncate(&t->errors, t->errors.len);
    if (text.len) r->opts.on_text(r->opts.user, stream, text);
}

/* {"stream":"stdout","from":5,"to":70000}: the server dropped these bytes
   because we read too slowly. */
static void hfsbi_remote_show_gap(hfsbi_remote          *r,
                                  const hfsb_json_value *gap) {
    hfsb_str name =
        hfsb_json_str(hfsb_json_get(gap, "stream"), HFSB_LIT("stdout"));
    bool               is_error = hfsb_str_equal(name, HFSB_LIT("stderr"));
    hfsb_proc_stream   stream = is_error ? HFSB_PROC_STDERR : HFSB_PROC_STDOUT;
    unsigned long long from = hfsb_json_uint(hfsb_json_get(gap, "from"), 0);
    unsigned long long to = hfsb_json_uint(hfsb_json_get(gap, "to"), from);
    char               line[96];
    if (to <= from) return;
    r->text.shown[stream] = to;
    (void)snprintf(line, sizeof line, "\n(%llu bytes are not shown)\n",
                   to - from);
    hfsbi_remote_show(r, stream, hfsb_cstr(line));
}

/* {"stream":"stdout","text":"..."}: an unfinished line. */
static void hfsbi_remote_show_line(hfsbi_remote          *r,
                                   const hfsb_json_value *line) {
    hfsb_str text = hfsb_json_str(hfsb_json_get(line, "text"), HFSB_LIT(""));
    hfsb_str name =
        hfsb_json_str(hfsb_json_get(line, "stream"), HFSB_LIT("stdout"));
    bool is_error = hfsb_str_equal(name, HFSB_LIT("stderr"));
    if (r->opts.on_line)
        r->opts.on_line(r->opts.user,
                        is_error ? HFSB_PROC_STDERR : HFSB_PROC_STDOUT, text);
}

/* Reads an event; sets r->text.status. */
static void hfsbi_remote_read_event(hfsbi_remote *r) {
    hfsbi_remote_text *t = &r->text;
    hfsb_str           event = hfsb_buf_str(&t->sse.event);
    hfsb_str           data = hfsb_buf_str(&t->sse.data);
    hfsb_json_doc      doc = HFSB_INIT;
    if (hfsb_str_equal(event, HFSB_LIT("result"))) {
        hfsb_buf_truncate(&t->result, 0);
        t->status = hfsb_buf_append(&t->result, data);
        t->ended = t->status == HFSB_OK;
        return;
    }
    doc.alloc = r->sandbox->o.alloc;
    t->status = hfsb_json_parse(data, NULL, &doc, NULL);
    if (t->status == HFSB_SYNTAX) t->status = HFSB_OK; /* an unknown event */
    if (t->status != HFSB_OK) return;
    if (hfsb_str_equal(event, HFSB_LIT("stdout")))
        hfsbi_remote_show_piece(r, HFSB_PROC_STDOUT, doc.root);
    else if (hfsb_str_equal(event, HFSB_LIT("stderr")))
        hfsbi_remote_show_piece(r, HFSB_PROC_STDERR, doc.root);
    else if (hfsb_str_equal(event, HFSB_LIT("line")))
        hfsbi_remote_show_line(r, doc.root);
    else if (hfsb_str_equal(event, HFSB_LIT("gap")))
        hfsbi_remote_show_gap(r, doc.root);
    hfsb_json_free(&doc);
}

static bool hfsbi_remote_on_head(void *user, int status,
                                 const hfsb_http_field *fields,
                                 size_t                 field_count) {
    hfsbi_remote  *r = (hfsbi_remote *)user;
    const hfsb_str type = HFSB_LIT("text/event-stream");
    size_t         i;
    (void)status;
    for (i = 0; i < field_count; i++)
        if (hfsb_http_same(fields[i].name, HFSB_LIT("Content-Type")) &&
            hfsb_http_same(hfsb_str_slice(fields[i].value, 0, type.len), type))
            r->text.streams = r->text.used = true;
    r->text.errors.max = HFSBI_STREAM_ERRORS;
    r->text.plain.max = HFSBI_STREAM_PLAIN;
    r->text.sse.max = HFSBI_STREAM_EVENT;
    return true;
}

static bool hfsbi_remote_on_body(void *user, hfsb_str piece) {
    hfsbi_remote      *r = (hfsbi_remote *)user;
    hfsbi_remote_text *t = &r->text;
    if (!t->streams) {
        t->status = hfsb_buf_append(&t->plain, piece);
        return t->status == HFSB_OK;
    }
    while (t->status == HFSB_OK && hfsb_sse_next(&t->sse, &piece))
        hfsbi_remote_read_event(r);
    if (t->status == HFSB_OK) t->status = t->sse.status;
    return t->status == HFSB_OK;
}

/* ---- begin and end ---- */

HFSBI_FN void hfsbi_remote_init(hfsbi_remote *r, hfsb_sandbox *sandbox,
                                const hfsbi_tool  *tool,
                                const hfsb_cancel *cancel) {
    const hfsb_alloc alloc = sandbox->o.alloc;
    memset(r, 0, sizeof *r);
    r->sandbox = sandbox;
    r->tool = tool;
    r->cancel = cancel;
    r->timeout = sandbox->o.timeout;
    /* it changes nothing, or may run twice, like kill */
    r->harmless =
        tool->kind == HFSBI_TOOL_READS ||
        (tool->kind == HFSBI_TOOL_REPEATS && !(tool->flags & HFSBI_TOOL_ONCE));
    r->body.alloc = r->doc.alloc = r->text.errors.alloc = alloc;
    r->text.plain.alloc = r->text.result.alloc = alloc;
    r->text.sse.line.alloc = r->text.sse.event.alloc = alloc;
    r->text.sse.data.alloc = alloc;
    pthread_mutex_lock(&sandbox->lock);
    memcpy(r->instance, sandbox->instance, sizeof r->instance);
    pthread_mutex_unlock(&sandbox->lock);
    r->trusted = r->instance[0] != '\0' || sandbox->v1;
    if (tool->flags & HFSBI_TOOL_ONCE || strcmp(tool->name, "bash") == 0)
        hfsbi_random_hex(r->key, 32);
}

HFSBI_FN void hfsbi_remote_free(hfsbi_remote *r) {
    hfsb_buf_free(&r->body);
    hfsb_buf_free(&r->text.errors);
    hfsb_buf_free(&r->text.plain);
    hfsb_buf_free(&r->text.result);
    hfsb_sse_free(&r->text.sse);
    hfsb_json_free(&r->doc);
}

/* ---- one try ---- */

enum {
    HFSBI_REMOTE_PREVIEW = 200, /* characters of a page in a message, */
    HFSBI_REMOTE_LOOK = 2048,   /* bytes of it that are searched for tokens */
    HFSBI_REMOTE_ASKS = 3       /* health checks before a repeat */
};

/* The server may have run the call: decides whether it may be repeated. */
static void hfsbi_remote_set_ran(hfsbi_remote *r) {
    r->may_have_run = true;
    r->again = r->trusted && (r->harmless || r->key[0]);
}

/* True when the next try must join an earlier one, on that instance. */
static bool hfsbi_remote_joins(const hfsbi_remote *r) {
    return r->may_have_run && !r->harmless && r->trusted;
}

/* Handles the lack of a reply, because of st; sent: the request was sent. */
static hfsb_status hfsbi_remote_no_reply(hfsbi_remote *r, hfsb_status st,
                                         bool sent, hfsb_err *err) {
    char     seconds[HFSBI_SECONDS];
    hfsb_err why = *err;
    r->again = false;
    if (st == HFSB_CANCELLED)
        return hfsbi_fail(err, st, 0, "Cancelled.%s",
                          sent ? " What was begun there goes on." : "");
    if (st == HFSB_CONNECT ||
        (!sent && (st == HFSB_TIMEOUT || st == HFSB_LOST))) {
        r->again = true; /* hfsbi_remote_unreachable() writes the message */
        return HFSB_CONNECT;
    }
    if ((st != HFSB_LOST && st != HFSB_TIMEOUT && st != HFSB_REMOTE &&
         st != HFSB_IO) ||
        (!sent && !r->may_have_run))
        return st; /* with the transport's message */
    if (sent) hfsbi_remote_set_ran(r);
    if (st == HFSB_TIMEOUT) {
        hfsbi_seconds_text((long long)(r->timeout * 1000.0), seconds);
        return hfsbi_fail(err, st, 0, "Timeout after %ss", seconds);
    }
    return hfsbi_fail(err, st, 0,
                      "The connection to the sandbox was lost before its "
                      "reply came (%s).%s",
                      why.msg,
                      r->harmless ? ""
                                  : " The call may have run: look before you "
                                    "repeat it.");
}

static bool hfsbi_is_success(int status) {
    return status >= 200 && status < 300;
}

/* True for a page of the Hub's edge while a Space wakes up: the call went no
   further. A reply that claims to be JSON, or carries X-Hfsb, is a server's,
   cut short. After 500, 502 and 504 the server may have been asked. */
static bool hfsbi_is_wake_page(const hfsb_http_reply *reply) {
    const hfsb_str json = HFSB_LIT("application/json");
    hfsb_str       type = hfsb_http_reply_field(reply, "Content-Type", 0);
    int            status = reply->status;
    if (hfsb_http_reply_field(reply, "X-Hfsb", 0).ptr ||
        hfsb_http_same(hfsb_str_slice(type, 0, json.len), json))
        return false;
    return hfsbi_is_success(status) || status == 404 || status == 429 ||
           status == 503;
}

/* Appends the start of a page, tokens removed: a debugging page may show the
   request. */
static void hfsbi_remote_preview(const hfsbi_remote *r, hfsb_str page,
                                 hfsb_err *err) {
    char   text[HFSBI_REMOTE_LOOK + 1];
    size_t pos = 0, shown = 0, i;
    page = hfsb_str_slice(page, 0, HFSBI_REMOTE_LOOK);
    for (i = 0; i < page.len; i++) text[i] = page.ptr[i] ? page.ptr[i] : ' ';
    text[i] = '\0';
    hfsbi_sandbox_scrub(r->sandbox, text);
    page = hfsb_cstr(text);
    while (pos < page.len && shown++ < HFSBI_REMOTE_PREVIEW) {
        unsigned long code;
        char          bytes[4];
        pos += hfsb_utf8_step(page, pos, &code, NULL);
        hfsbi_err_add(err, "%.*s", (int)hfsb_utf8_encode(code, bytes), bytes);
    }
    if (!page.len) hfsbi_err_add(err, "(empty)");
}

/* The reply is not JSON. */
static hfsb_status hfsbi_remote_page(hfsbi_remote          *r,
                                     const hfsb_http_reply *reply,
                                     hfsb_str page, hfsb_err *err) {
    bool        waking = hfsbi_is_wake_page(reply);
    hfsb_status st = waking ? HFSB_BUSY : HFSB_REMOTE;
    if (r->status == 401 || r->status == 403) st = HFSB_AUTH;
    r->again = waking;
    if (!waking && (r->status >= 500 || hfsbi_is_success(r->status)))
        hfsbi_remote_set_ran(r);
    hfsbi_fail(err, st, 0,
               "Sandbox returned non-JSON response (HTTP %d): ", r->status);
    hfsbi_remote_preview(r, page, err);
    return st;
}

/* Another instance answers now: it does not know whether the call ran. */
static hfsb_status hfsbi_remote_restarted(hfsbi_remote *r, hfsb_err *err) {
    r->again = false;
    return hfsbi_fail(err, HFSB_LOST, 0,
                      "The sandbox's server was restarted during this call. "
                      "It may have run or not, and is not sent again: look "
                      "before you repeat it.");
}

/* True when a repeat reached another instance, which refused it. */
static bool hfsbi_remote_missed(const hfsbi_remote    *r,
                                const hfsb_http_reply *reply) {
    return reply->status == 409 &&
           hfsb_http_reply_field(reply, "X-Hfsb", 0).ptr &&
           hfsbi_remote_joins(r) &&
           !hfsb_str_equal(hfsbi_reply_instance(reply),
                           hfsb_cstr(r->instance));
}

/* A complete reply came. */
static hfsb_status hfsbi_remote_read(hfsbi_remote          *r,
                                     const hfsb_http_reply *reply,
                                     hfsb_err              *err) {
    hfsb_str    body = hfsb_buf_str(&reply->body);
    hfsb_err    why = HFSB_INIT;
    hfsb_status st;
    r->status = reply->status;
    if (hfsbi_remote_missed(r, reply)) return hfsbi_remote_restarted(r, err);
    if (r->text.streams && !r->text.ended) {
        hfsbi_fail(err, HFSB_LOST, 0, "it ended without a result");
        return hfsbi_remote_no_reply(r, HFSB_LOST, true, err);
    }
    if (r->text.streams) body = hfsb_buf_str(&r->text.result);
    else if (r->text.plain.len) body = hfsb_buf_str(&r->text.plain);
    st = hfsb_json_parse(body, NULL, &r->doc, &why);
    if (st == HFSB_OK) return HFSB_OK;
    if (st == HFSB_SYNTAX) return hfsbi_remote_page(r, reply, body, err);
    return hfsbi_fail(err, st, 0, "%s: the call may have run.", why.msg);
}

static size_t hfsbi_remote_fields(hfsbi_remote *r, bool stream,
                                  hfsb_http_field field[6]) {
    size_t n = 0;
    field[n].name = HFSB_LIT("Content-Type");
    field[n++].value = HFSB_LIT("application/json");
    if (r->key[0]) {
        field[n].name = HFSB_LIT("Idempotency-Key");
        field[n++].value = hfsb_cstr(r->key);
    }
    if (hfsbi_remote_joins(r)) {
        field[n].name = HFSB_LIT("X-Hfsb-Instance");
        field[n++].value = hfsb_cstr(r->instance);
    }
    if (r->opts.names == HFSB_EDIT_NAMES_FLAGS) {
        field[n].name = HFSB_LIT("X-Hfsb-Names");
        field[n++].value = HFSB_LIT("flags");
    }
    if (stream) {
        field[n].name = HFSB_LIT("Accept");
        field[n++].value = HFSB_LIT("text/event-stream, application/json");
    }
    if (stream && r->opts.on_line) {
        field[n].name = HFSB_LIT("X-Hfsb-Lines");
        field[n++].value = HFSB_LIT("unfinished");
    }
    return n;
}

/* A repeat does not stream: it joins a command whose text went to the first
   try, and gets the result alone. */
static bool hfsbi_remote_may_stream(const hfsbi_remote *r) {
    return r->opts.on_text && r->trusted && !r->may_have_run &&
           hfsbi_remote_is(r, "bash");
}

static hfsb_status hfsbi_remote_try(hfsbi_remote *r, hfsb_err *err) {
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_http_field field[6];
    hfsb_status     st;
    bool            stream = hfsbi_remote_may_stream(r);
    call.method = HFSB_LIT("POST");
    call.body = hfsb_buf_str(&r->body);
    call.fields = field;
    call.field_count = hfsbi_remote_fields(r, stream, field);
    call.total_ms =
        (long long)(r->timeout * 1000.0) + r->sandbox->o.times.margin_ms;
    call.cancel = r->cancel;
    call.user = r;
    if (stream) {
        call.on_head = hfsbi_remote_on_head;
        call.on_body = hfsbi_remote_on_body;
    }
    r->text.streams = r->text.ended = false;
    r->text.status = HFSB_OK;
    hfsb_buf_truncate(&r->text.plain, 0);
    hfsb_sse_free(&r->text.sse);
    st = hfsbi_sandbox_send(r->sandbox, hfsb_cstr(r->tool->name), &call,
                            &reply, err);
    if (reply.url.len &&
        !hfsbi_sandbox_is_origin(r->sandbox, hfsb_buf_str(&reply.url)))
        r->trusted = false; /* redirected to a server that got no key */
    if (st == HFSB_CANCELLED && r->text.status != HFSB_OK)
        st = hfsbi_fail_status(err, r->text.status, "Reading a stream");
    st = st == HFSB_OK ? hfsbi_remote_read(r, &reply, err)
                       : hfsbi_remote_no_reply(r, st, reply.sent, err);
    hfsb_http_reply_free(&reply);
    return st;
}

/* ---- all tries ---- */

/* The instance that answers a health check. HFSB_LOST when the reply is not
   hfsb-server's; another status when there is none. */
static hfsb_status hfsbi_remote_who(hfsbi_remote *r, char *instance,
                                    size_t room) {
    hfsb_sandbox   *s = r->sandbox;
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_str        id;
    hfsb_status     st;
    call.method = HFSB_LIT("GET");
    call.total_ms = s->o.times.health_ms;
    call.cancel = r->cancel;
    st = hfsbi_sandbox_send(s, HFSB_LIT("health"), &call, &reply, NULL);
    if (st == HFSB_OK &&
        (reply.status != 200 ||
         !hfsb_http_reply_field(&reply, "X-Hfsb", 0).ptr ||
         !hfsbi_sandbox_is_origin(s, hfsb_buf_str(&reply.url))))
        st = HFSB_LOST;
    /* not s->instance: another thread may have noted a later one */
    id = hfsbi_reply_instance(&reply);
    (void)snprintf(instance, room, "%.*s", (int)id.len, id.ptr);
    hfsb_http_reply_free(&reply);
    return st;
}

/* Before a repeat of a call that may have run: does the same instance still
   answer? HFSB_BUSY: no server answers yet. */
static hfsb_status hfsbi_remote_check_instance(hfsbi_remote *r,
                                               hfsb_err     *err) {
    char        instance[sizeof r->instance];
    hfsbi_retry retry = HFSB_INIT;
    hfsb_status st;
    if (!r->may_have_run) return HFSB_OK;
    retry.tries = HFSBI_REMOTE_ASKS;
    do st = hfsbi_remote_who(r, instance, sizeof instance);
    while (st == HFSB_LOST && hfsbi_retry_again(&retry) == HFSB_OK);
    if (st != HFSB_OK) return HFSB_BUSY;
    if (r->harmless || strcmp(instance, r->instance) == 0) return HFSB_OK;
    return hfsbi_remote_restarted(r, err);
}

static hfsb_status hfsbi_remote_unreachable(hfsbi_remote *r, hfsb_err *err) {
    hfsb_sandbox *s = r->sandbox;
    hfsb_err      why = *err;
    if (s->home) {
        s->home->stage(s, r->cancel, why.msg, sizeof why.msg);
        if (hfsb_cancel_is_set(r->cancel))
            return hfsbi_remote_no_reply(r, HFSB_CANCELLED, false, err);
    }
    return hfsbi_fail(err, HFSB_CONNECT, 0,
                      "Cannot connect to sandbox. Is %s running? Status: %s",
                      s->home ? s->id.ptr : s->page.ptr, why.msg);
}

HFSBI_FN hfsb_status hfsbi_remote_send(hfsbi_remote *r, hfsb_err *err) {
    hfsbi_retry retry = hfsbi_sandbox_retry(r->sandbox, r->cancel);
    hfsb_status st = hfsbi_remote_try(r, err), wait, same;
    while (st != HFSB_OK && r->again) {
        wait = hfsbi_retry_again(&retry);
        if (wait == HFSB_CANCELLED)
            return hfsbi_remote_no_reply(r, wait, r->may_have_run, err);
        if (wait != HFSB_OK) break;
        same = hfsbi_remote_check_instance(r, err);
        if (same == HFSB_BUSY) continue; /* st and *err: of the last try */
        st = same == HFSB_OK ? hfsbi_remote_try(r, err) : same;
    }
    if (r->may_have_run && !r->harmless &&
        (st == HFSB_CONNECT || st == HFSB_BUSY))
        return hfsbi_fail(err, HFSB_LOST, 0,
                          "The connection to the sandbox was lost before its "
                          "reply came, and cannot be made again. The call may "
                          "have run: look before you repeat it.");
    return st == HFSB_CONNECT ? hfsbi_remote_unreachable(r, err) : st;
}

/* ---- the result ---- */

HFSBI_FN hfsb_status hfsbi_remote_status(int http) {
    switch (http) {
    case 400:
    case 415:
    case 422: return HFSB_ARG;
    case 401:
    case 403: return HFSB_AUTH;
    case 404:
    case 405: return HFSB_NOT_FOUND;
    case 409: return HFSB_REFUSED;
    case 413:
    case 429: return HFSB_LIMIT;
    case 503: return HFSB_BUSY;
    case 507: return HFSB_FULL;
    default: return HFSB_REMOTE;
    }
}

/* Appends a string, or the JSON text of any other value. */
static hfsb_status hfsbi_remote_string(const hfsb_json_value *root,
                                       const char *key, hfsb_buf *out) {
    const hfsb_json_value *value = hfsb_json_get(root, key);
    hfsb_json_type         type = hfsb_json_type_of(value);
    if (type == HFSB_JSON_NULL) return HFSB_OK;
    if (type != HFSB_JSON_STRING)
        return hfsb_json_write(value, NULL, out, NULL);
    return hfsb_buf_append(out, hfsb_json_str(value, HFSB_LIT("")));
}

/* All keys but the three that every reply has. */
static hfsb_status hfsbi_remote_added(const hfsb_json_value *root,
                                      hfsb_json_doc         *out) {
    hfsb_json_iter it = hfsb_json_begin(root);
    hfsbi_build    fields;
    hfsb_status    st;
    hfsbi_build_init(&fields, &out->alloc);
    hfsbi_build_object(&fields, NULL);
    while (hfsb_json_next(&it))
        if (!hfsb_str_equal(it.key, HFSB_LIT("success")) &&
            !hfsb_str_equal(it.key, HFSB_LIT("output")) &&
            !hfsb_str_equal(it.key, HFSB_LIT("error")))
            hfsbi_build_value(&fields, it.key.ptr, it.value);
    hfsbi_build_end(&fields);
    st = hfsbi_build_finish(&fields, out);
    if (st == HFSB_OK && !hfsb_json_count(out->root)) hfsb_json_free(out);
    return st;
}

/* True when the server does not know the tool: a server other than
   hfsb-server has only the reference's. */
static bool hfsbi_remote_lacks(const hfsbi_remote *r) {
    return (r->status == 404 || r->status == 405) &&
           !hfsbi_list_has(HFSB_LIT("bash read write edit exists kill"), ' ',
                           hfsb_cstr(r->tool->name));
}

/* The result of a reply other than 200. */
static hfsb_status hfsbi_remote_failed(hfsbi_remote     *r,
                                       hfsb_tool_result *result) {
    hfsb_str error =
        hfsb_json_str(hfsb_json_get(r->doc.root, "error"), HFSB_LIT(""));
    hfsb_status st;
    if (hfsbi_remote_lacks(r) && (!error.len || r->trusted)) {
        st = hfsb_buf_printf(&result->error,
                             "This sandbox's server has no tool %s; use "
                             "bash.",
                             r->tool->name);
        return st == HFSB_OK ? HFSB_NOT_FOUND : st;
    }
    st = error.len ? hfsb_buf_append(&result->error, error)
                   : hfsb_buf_printf(&result->error, "HTTP %d", r->status);
    return st == HFSB_OK ? hfsbi_remote_status(r->status) : st;
}

HFSBI_FN hfsb_status hfsbi_remote_result(hfsbi_remote     *r,
                                         hfsb_tool_result *result,
                                         hfsb_err         *err) {
    const hfsb_json_value *root = r->doc.root;
    const hfsb_json_value *success = hfsb_json_get(root, "success");
    hfsb_status            st;
    if (r->status != 200) return hfsbi_remote_failed(r, result);
    if (hfsb_json_type_of(root) != HFSB_JSON_OBJECT)
        return hfsbi_fail(
            err, HFSB_REMOTE, 0,
            "Sandbox returned JSON that is no object (HTTP 200): "
            "%s.",
            hfsb_json_type_name(hfsb_json_type_of(root)));
    st = hfsbi_remote_string(root, "output", &result->output);
    if (st == HFSB_OK) st = hfsbi_remote_string(root, "error", &result->error);
    if (st == HFSB_OK) st = hfsbi_remote_added(root, &result->fields);
    result->success =
        st == HFSB_OK && hfsb_json_bool(success, success == NULL);
    if (st == HFSB_OK && !result->success && !result->error.len)
        st = hfsb_buf_printf(&result->error, "Unknown error");
    return st;
}

/* ---- text that a broken stream did not deliver ---- */

/* Appends what the command printed from offset on; *next is where that ends.
   */
static hfsb_status hfsbi_remote_output(hfsbi_remote *r, hfsb_str id,
                                       unsigned long long  offset,
                                       unsigned long long *next,
                                       hfsb_buf           *out) {
    hfsbi_remote     ask;
    hfsb_json_writer w;
    hfsb_err         err;
    hfsb_status      st;
    hfsbi_remote_init(&ask, r->sandbox,
                      hfsbi_tool_find(HFSB_LIT("bash_output")), r->cancel);
    hfsb_json_writer_init(&w, &ask.body, NULL);
    hfsb_json_put_object(&w);
    hfsb_json_put_member_str(&w, "id", id);
    hfsb_json_put_key(&w, HFSB_LIT("offset"));
    hfsb_json_put_uint(&w, offset);
    hfsb_json_put_end(&w);
    st = hfsb_json_writer_finish(&w, &err);
    if (st == HFSB_OK) st = hfsbi_remote_send(&ask, &err);
    *next = hfsb_json_uint(hfsb_json_get(ask.doc.root, "next_offset"), offset);
    if (st == HFSB_OK && ask.status == 200)
        st = hfsb_buf_append(
            out, hfsb_json_str(hfsb_json_get(ask.doc.root, "output"),
                               HFSB_LIT("")));
    hfsbi_remote_free(&ask);
    return st;
}

/* Shows the rest of the log of a command that has ended: stdout, then stderr.
   The stderr that was shown already is somewhere in it and is left out. */
static void hfsbi_remote_show_log(hfsbi_remote *r, hfsb_str log) {
    hfsb_str errors = hfsb_buf_str(&r->text.errors);
    size_t   at = errors.len ? hfsb_str_find(log, errors) : HFSB_NPOS;
    size_t   shown = (size_t)r->text.shown[HFSB_PROC_STDERR];
    if (at == HFSB_NPOS) {
        hfsbi_remote_show(r, HFSB_PROC_STDOUT, log);
        return;
    }
    hfsbi_remote_show(r, HFSB_PROC_STDOUT, hfsb_str_slice(log, 0, at));
    hfsbi_remote_show(r, HFSB_PROC_STDERR,
                      hfsb_str_slice(log, at + shown, log.len));
}

/* After the reply: shows the output that no event delivered. */
static void hfsbi_remote_show_rest(hfsbi_remote *r, hfsb_str output) {
    hfsb_str id =
        hfsb_json_str(hfsb_json_get(r->doc.root, "id"), HFSB_LIT(""));
    unsigned long long offset = r->text.shown[HFSB_PROC_STDOUT], next;
    hfsb_buf           log = HFSB_INIT;
    size_t             had;
    if (!r->opts.on_text || r->text.ended) return;
    if (!r->text.used || !id.len) {
        hfsbi_remote_show(r, HFSB_PROC_STDOUT, output);
        return;
    }
    log.alloc = r->sandbox->o.alloc;
    log.max = HFSBI_STREAM_REST;
    /* a reply without text is the end, whatever its offset says */
    for (had = HFSB_NPOS; had != log.len; offset = next) {
        had = log.len;
        if (hfsbi_remote_output(r, id, offset, &next, &log) != HFSB_OK ||
            next <= offset)
            break;
    }
    hfsbi_remote_show_log(r, hfsb_buf_str(&log));
    hfsb_buf_free(&log);
}

/* ---- the wire ---- */

/* What POST /api/{tool} does with the call. */
static hfsb_status hfsbi_remote_post(hfsbi_remote *r, hfsb_tool_result *result,
                                     hfsb_err *err) {
    hfsb_status st = hfsbi_remote_send(r, err);
    if (st == HFSB_OK) st = hfsbi_remote_result(r, result, err);
    if (st == HFSB_OK && hfsbi_remote_is(r, "bash"))
        hfsbi_remote_show_rest(r, hfsb_buf_str(&result->output));
    return st;
}

HFSBI_FN const hfsb_protocol *hfsbi_protocol_api(void) {
    static const hfsb_protocol api = {
        "X-Sandbox-Authorization", "Bearer ",        hfsbi_sandbox_place, NULL,
        hfsbi_probe_check,         hfsbi_remote_post};
    return &api;
}

HFSBI_FN hfsb_status hfsbi_remote_run(hfsbi_remote     *r,
                                      hfsb_tool_result *result,
                                      hfsb_err         *err) {
    return r->sandbox->protocol->run(r, result, err);
}

/* ---- the call ---- */

/* Refuses a call that no server needs to see. */
static hfsb_status hfsbi_remote_check(const hfsbi_tool *tool, hfsb_str name,
                                      const hfsb_json_value *arguments,
                                      const hfsb_call_opts  *opts,
                                      hfsb_err              *err) {
    hfsbi_args_how how = HFSB_INIT; /* the server notes unknown keys */
    if (!tool) return hfsbi_tool_unknown(name, err);
    if (opts->key.len >= sizeof((hfsbi_remote *)0)->key ||
        hfsb_str_find_byte(opts->key, '\0') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The key of a call must have at most %d bytes and "
                          "no NUL.",
                          (int)sizeof((hfsbi_remote *)0)->key - 1);
    how.strict = opts->strict;
    return hfsbi_args_check(tool->params, arguments, &how, err);
}

/* Completes *result; tokens that the peer echoed are removed. */
static hfsb_status hfsbi_remote_finish(const hfsb_sandbox *sandbox,
                                       hfsb_status st, hfsb_err *err,
                                       hfsb_tool_result *result) {
    if (st == HFSB_OK) return st;
    hfsbi_sandbox_scrub(sandbox, err->msg);
    if (result->error.ptr) {
        hfsbi_sandbox_scrub(sandbox, result->error.ptr);
        hfsb_buf_truncate(&result->error, strlen(result->error.ptr));
    }
    hfsbi_result_status(result, st, err);
    return st;
}

/* True when the call must wait for others of its session that change files,
   see seen.c. */
static bool hfsbi_remote_takes_turns(const hfsbi_remote *r) {
    return r->sandbox->o.session && r->tool->flags & HFSBI_TOOL_ON_DISK &&
           r->tool->kind != HFSBI_TOOL_READS;
}

hfsb_status hfsb_sandbox_call(hfsb_sandbox *sandbox, hfsb_str name,
                              const hfsb_json_value *arguments,
                              const hfsb_call_opts  *opts,
                              hfsb_tool_result      *result) {
    const hfsbi_tool *tool = hfsbi_tool_find(name);
    hfsb_call_opts    none = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    hfsbi_remote      r;
    hfsb_status       st;
    bool              turn;
    if (!opts) opts = &none;
    hfsbi_result_init(result, &sandbox->o.alloc);
    st = hfsbi_remote_check(tool, name, arguments, opts, &err);
    if (!tool) hfsbi_tools_list(NULL, 0, &result->output);
    if (st != HFSB_OK) return hfsbi_remote_finish(sandbox, st, &err, result);
    hfsbi_remote_init(&r, sandbox, tool,
                      opts->cancel ? opts->cancel : sandbox->o.cancel);
    r.opts = *opts;
    if (r.key[0] && opts->key.len) {
        memcpy(r.key, opts->key.ptr, opts->key.len);
        r.key[opts->key.len] = '\0';
    }
    turn = hfsbi_remote_takes_turns(&r);
    if (turn) pthread_mutex_lock(&sandbox->seen.changing);
    if (hfsbi_remote_may(&r, arguments, result, &st, &err)) {
        st = hfsbi_remote_write(&r, arguments, &err);
        if (st == HFSB_OK) st = hfsbi_remote_run(&r, result, &err);
        if (st == HFSB_OK) hfsbi_remote_saw(&r, arguments, result);
    }
    if (turn) pthread_mutex_unlock(&sandbox->seen.changing);
    hfsbi_remote_free(&r);
    return hfsbi_remote_finish(sandbox, st, &err, result);
}

hfsb_status hfsb_sandbox_call_text(hfsb_sandbox *sandbox, hfsb_str name,
                                   hfsb_str              arguments,
                                   const hfsb_call_opts *opts,
                                   hfsb_tool_result     *result) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   st =
        hfsbi_arguments_parse(arguments, &sandbox->o.alloc, &doc, result);
    if (st != HFSB_OK) return st;
    st = hfsb_sandbox_call(sandbox, name, doc.root, opts, result);
    hfsb_json_free(&doc);
    return st;
}

hfsb_status hfsb_sandbox_kill_all(hfsb_sandbox     *sandbox,
                                  hfsb_tool_result *result) {
    hfsb_err     err = HFSB_INIT;
    hfsbi_remote r;
    hfsb_status  st;
    hfsbi_result_init(result, &sandbox->o.alloc);
    hfsbi_remote_init(&r, sandbox, hfsbi_tool_find(HFSB_LIT("kill")), NULL);
    st = hfsbi_remote_write(&r, NULL, &err);
    if (st == HFSB_OK) st = hfsbi_remote_run(&r, result, &err);
    hfsbi_remote_free(&r);
    return hfsbi_remote_finish(sandbox, st, &err, result);
}
