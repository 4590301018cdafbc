/* sandbox_try.c - a call is sent until there is a reply, and runs once.
   Depends on: sandbox_request, sandbox_stream, json. */
#include "sandbox_call.h"

/*  What may be sent again:

                          ours, with a key   ours, harmless   not ours
    nothing was sent            yes               yes            yes
    a wake-up page              yes               yes            yes
    it may have run        to the same            yes            no
                             instance

    The key makes a repeat join the first one. Only the instance that got it
    knows it: before a repeat health is asked who is there, and the repeat
    says whom it is for. */

enum {
    HFSBI_REMOTE_PREVIEW = 200, /* characters of a page in a message, */
    HFSBI_REMOTE_LOOK = 2048,   /* bytes of it in which tokens are sought */
    HFSBI_REMOTE_ASKS = 3       /* of health, before a repeat */
};

/* ---- the call ---- */

/* Tools that change nothing, and kill, which may as well ask twice. */
static bool hfsbi_remote_harmless(const char *tool) {
    static const char *const list[] = {"read", "exists", "glob",
                                       "grep", "list",   "bash_output",
                                       "kill"};
    size_t                   i;
    for (i = 0; i < sizeof list / sizeof *list; i++)
        if (strcmp(list[i], tool) == 0) return true;
    return false;
}

static void hfsbi_remote_make_key(hfsbi_remote *r) {
    unsigned char bytes[16];
    size_t        i;
    hfsbi_random(bytes, sizeof bytes);
    for (i = 0; i < sizeof bytes; i++)
        (void)snprintf(r->key + 2 * i, 3, "%02x", bytes[i]);
}

HFSBI_FN void hfsbi_remote_init(hfsbi_remote *r, hfsb_sandbox *sandbox,
                                const hfsbi_tool  *tool,
                                const hfsb_cancel *cancel) {
    const hfsb_alloc alloc = sandbox->o.alloc;
    memset(r, 0, sizeof *r);
    r->sandbox = sandbox;
    r->tool = tool;
    r->cancel = cancel;
    r->timeout = sandbox->o.timeout;
    r->harmless = hfsbi_remote_harmless(tool->name);
    r->body.alloc = r->doc.alloc = r->text.errors.alloc = alloc;
    r->text.plain.alloc = r->text.result.alloc = alloc;
    r->text.sse.line.alloc = r->text.sse.event.alloc = alloc;
    r->text.sse.data.alloc = alloc;
    pthread_mutex_lock(&sandbox->lock);
    r->trusted = sandbox->ours;
    memcpy(r->instance, sandbox->instance, sizeof r->instance);
    pthread_mutex_unlock(&sandbox->lock);
    if (tool->keyed || strcmp(tool->name, "bash") == 0)
        hfsbi_remote_make_key(r);
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

/* It may have run: whether it may be sent again all the same. */
static void hfsbi_remote_ran(hfsbi_remote *r) {
    r->may_have_run = true;
    r->again = r->trusted && (r->harmless || r->key[0]);
}

/* A repeat that must join the first one, and is for that instance alone. */
static bool hfsbi_remote_joins(const hfsbi_remote *r) {
    return r->may_have_run && !r->harmless && r->trusted;
}

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
        r->again = true; /* the words for it come at the end */
        return HFSB_CONNECT;
    }
    if (st != HFSB_LOST && st != HFSB_TIMEOUT && st != HFSB_REMOTE &&
        st != HFSB_IO)
        return st;
    if (sent) hfsbi_remote_ran(r);
    if (st == HFSB_TIMEOUT) {
        hfsbi_seconds_text((long long)(r->timeout * 1000.0), seconds);
        return hfsbi_fail(err, st, 0, "Timeout after %ss", seconds);
    }
    return hfsbi_fail(err, st, 0,
                      "The connection to the sandbox was lost before its "
                      "reply was there (%s).%s",
                      why.msg,
                      r->harmless ? ""
                                  : " The call may have run: look before you "
                                    "repeat it.");
}

static bool hfsbi_is_success(int status) {
    return status >= 200 && status < 300;
}

/* A page of the Hub's edge while a Space wakes up: the call went no further.
   What says that it is JSON, or who sent it, is a server's reply cut short.
   A gateway that had no good answer (502, 504), and a server that failed
   (500), have been asked. */
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

/* The beginning of a page; a debugging one shows what it was sent. */
static void hfsbi_remote_preview(const hfsbi_remote *r, hfsb_str page,
                                 hfsb_err *err) {
    char   text[HFSBI_REMOTE_LOOK + 1];
    size_t pos = 0, shown = 0, i;
    page = hfsb_str_slice(page, 0, HFSBI_REMOTE_LOOK);
    for (i = 0; i < page.len; i++) text[i] = page.ptr[i] ? page.ptr[i] : ' ';
    text[i] = '\0';
    hfsbi_sandbox_hide(r->sandbox, text);
    page = hfsb_cstr(text);
    while (pos < page.len && shown++ < HFSBI_REMOTE_PREVIEW) {
        unsigned long code;
        char          bytes[4];
        pos += hfsb_utf8_step(page, pos, &code, NULL);
        hfsbi_err_add(err, "%.*s", (int)hfsb_utf8_encode(code, bytes), bytes);
    }
    if (!page.len) hfsbi_err_add(err, "(empty)");
}

static hfsb_status hfsbi_remote_page(hfsbi_remote          *r,
                                     const hfsb_http_reply *reply,
                                     hfsb_str page, hfsb_err *err) {
    bool        waking = hfsbi_is_wake_page(reply);
    hfsb_status st = waking ? HFSB_BUSY : HFSB_REMOTE;
    if (r->status == 401 || r->status == 403) st = HFSB_AUTH;
    r->again = waking;
    if (!waking && (r->status >= 500 || hfsbi_is_success(r->status)))
        hfsbi_remote_ran(r);
    hfsbi_fail(err, st, 0,
               "Sandbox returned non-JSON response (HTTP %d): ", r->status);
    hfsbi_remote_preview(r, page, err);
    return st;
}

static hfsb_status hfsbi_remote_anew(hfsbi_remote *r, hfsb_err *err) {
    r->again = false;
    return hfsbi_fail(err, HFSB_LOST, 0,
                      "The sandbox's server was started anew while this call "
                      "was under way. It may have run or not, and is not sent "
                      "again: look before you repeat it.");
}

/* True when a repeat found another instance, which refused it. */
static bool hfsbi_remote_was_misled(const hfsbi_remote    *r,
                                    const hfsb_http_reply *reply) {
    hfsb_str said = hfsb_http_reply_field(reply, "X-Hfsb", 0);
    return reply->status == 409 && said.ptr && hfsbi_remote_joins(r) &&
           !hfsb_str_equal(hfsbi_sandbox_said(said), hfsb_cstr(r->instance));
}

/* A whole reply came. */
static hfsb_status hfsbi_remote_read(hfsbi_remote          *r,
                                     const hfsb_http_reply *reply,
                                     hfsb_err              *err) {
    hfsb_str    body = hfsb_buf_str(&reply->body);
    hfsb_err    why = HFSB_INIT;
    hfsb_status st;
    r->status = reply->status;
    if (hfsbi_remote_was_misled(r, reply)) return hfsbi_remote_anew(r, err);
    if (r->text.streams && !r->text.ended) {
        hfsbi_fail(&why, HFSB_LOST, 0, "it ended without a result");
        *err = why;
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
                                  hfsb_http_field field[4]) {
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
    if (stream) {
        field[n].name = HFSB_LIT("Accept");
        field[n++].value = HFSB_LIT("text/event-stream, application/json");
    }
    return n;
}

/* A repeat joins a command whose text went to the first: it gets the result
   alone, and is not asked for more. */
static bool hfsbi_remote_may_stream(const hfsbi_remote *r) {
    return r->opts.on_text && r->trusted && !r->may_have_run &&
           strcmp(r->tool->name, "bash") == 0;
}

static hfsb_status hfsbi_remote_try(hfsbi_remote *r, hfsb_err *err) {
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_http_field field[4];
    hfsb_status     st;
    bool            stream = hfsbi_remote_may_stream(r);
    call.method = HFSB_LIT("POST");
    call.body = hfsb_buf_str(&r->body);
    call.fields = field;
    call.field_count = hfsbi_remote_fields(r, stream, field);
    call.total_ms = (long long)(r->timeout * 1000.0) + r->sandbox->o.margin_ms;
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
        !hfsbi_sandbox_is_there(r->sandbox, hfsb_buf_str(&reply.url)))
        r->trusted = false; /* redirected to one who got no key */
    if (st == HFSB_CANCELLED && r->text.status != HFSB_OK)
        st = hfsbi_fail_status(err, r->text.status, "Reading a stream");
    st = st == HFSB_OK ? hfsbi_remote_read(r, &reply, err)
                       : hfsbi_remote_no_reply(r, st, reply.sent, err);
    hfsb_http_reply_free(&reply);
    return st;
}

/* ---- who is there ---- */

/* The instance that answers health; HFSB_LOST when that went wrong on the
   way, another status when there is no one. */
static hfsb_status hfsbi_remote_who(hfsbi_remote *r, char *instance,
                                    size_t room) {
    hfsb_sandbox   *s = r->sandbox;
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_str        said;
    hfsb_status     st;
    call.method = HFSB_LIT("GET");
    call.total_ms = s->o.health_ms;
    call.cancel = r->cancel;
    st = hfsbi_sandbox_send(s, HFSB_LIT("health"), &call, &reply, NULL);
    if (st == HFSB_OK &&
        (reply.status != 200 ||
         !hfsb_http_reply_field(&reply, "X-Hfsb", 0).ptr ||
         !hfsbi_sandbox_is_there(s, hfsb_buf_str(&reply.url))))
        st = HFSB_LOST;
    /* not what the handle knows: another thread may have noted more since */
    said = hfsbi_sandbox_said(hfsb_http_reply_field(&reply, "X-Hfsb", 0));
    (void)snprintf(instance, room, "%.*s", (int)said.len, said.ptr);
    hfsb_http_reply_free(&reply);
    return st;
}

/* Before a repeat of what may have run. HFSB_BUSY: no one answers yet. */
static hfsb_status hfsbi_remote_same(hfsbi_remote *r, hfsb_err *err) {
    char        instance[sizeof r->instance];
    hfsb_status st = HFSB_LOST;
    size_t      n;
    if (!r->may_have_run) return HFSB_OK;
    for (n = 0; st == HFSB_LOST && n < HFSBI_REMOTE_ASKS; n++)
        st = hfsbi_remote_who(r, instance, sizeof instance);
    if (st != HFSB_OK) return HFSB_BUSY;
    if (r->harmless || strcmp(instance, r->instance) == 0) return HFSB_OK;
    return hfsbi_remote_anew(r, err);
}

/* ---- all tries ---- */

static hfsb_status hfsbi_remote_unreachable(hfsbi_remote *r, hfsb_err *err) {
    hfsb_sandbox      *s = r->sandbox;
    hfsb_space_runtime runtime = HFSB_INIT;
    hfsb_err           why = *err;
    const char        *stage = why.msg;
    if (!s->is_url) {
        (void)hfsb_hub_runtime(s->o.hub, hfsb_buf_str(&s->id), r->cancel,
                               &runtime, NULL);
        if (hfsb_cancel_is_set(r->cancel))
            return hfsbi_remote_no_reply(r, HFSB_CANCELLED, false, err);
        stage = runtime.stage[0] ? runtime.stage : "unknown";
    }
    return hfsbi_fail(err, HFSB_CONNECT, 0,
                      "Cannot connect to sandbox. Is %s running? Status: %s",
                      s->is_url ? s->page.ptr : s->id.ptr, stage);
}

HFSBI_FN hfsb_status hfsbi_remote_send(hfsbi_remote *r, hfsb_err *err) {
    const hfsb_sandbox_opts *o = &r->sandbox->o;
    hfsb_status              st = HFSB_OK, same;
    size_t                   n;
    for (n = 0; n < o->tries; n++) {
        if (n > 0 && !hfsb_cancel_wait(r->cancel, o->delay_ms * (long long)n))
            return hfsbi_remote_no_reply(r, HFSB_CANCELLED, r->may_have_run,
                                         err);
        same = n > 0 ? hfsbi_remote_same(r, err) : HFSB_OK;
        if (same == HFSB_BUSY) continue; /* *err says how the last one went */
        st = same == HFSB_OK ? hfsbi_remote_try(r, err) : same;
        if (st == HFSB_OK || !r->again) break;
    }
    if (r->may_have_run && !r->harmless &&
        (st == HFSB_CONNECT || st == HFSB_BUSY))
        return hfsbi_fail(err, HFSB_LOST, 0,
                          "The connection to the sandbox was lost before its "
                          "reply was there, and no new one can be made. The "
                          "call may have run: look before you repeat it.");
    return st == HFSB_CONNECT ? hfsbi_remote_unreachable(r, err) : st;
}
