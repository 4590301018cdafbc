/* fetch.c - a request on top of a transport: redirects followed, the reply
   kept; and the retry policy.

   hfsb_http_send() performs the call, and while the reply is a redirect
   performs the next one:

       call --perform--> reply --3xx, Location--> next call --perform--> ...
                           |
                           +--anything else--> the caller's on_head, on_body

   Each redirect may change the method, drop the body, and drop the fields
   that only the first host may see. A redirect is not a retry: nothing is sent
   twice to the same address here. hfsbi_retry is for callers that try again;
   it counts their tries and waits between them. */
#include "net_private.h"

enum {
    HFSBI_FOLLOW_MAX = 10,            /* redirects */
    HFSBI_FOLLOW_MAX_BODY = 67108864, /* bytes of a reply that are kept */
    HFSBI_FOLLOW_MAX_WASTE = 262144   /* bytes of a redirect's own body */
};

/* A call that follows redirects. */
typedef struct hfsbi_follow {
    const hfsb_transport *transport;
    const hfsb_http_call *call; /* as the caller gave it */
    hfsb_http_reply      *reply;
    hfsb_err             *err;
    hfsb_http_call        now;    /* the call being performed ... */
    hfsb_http_field      *fields; /* ... and its fields */
    hfsb_buf              location;
    long long             deadline; /* on the clock, when total_ms is set */
    int                   hops;
    int                   status;
    bool                  moved; /* the reply is a redirect */
    bool                  asked; /* body_read was called */
    bool                  acted; /* a redirected POST may have taken effect */
    size_t                waste; /* bytes of the redirect's body so far */
    hfsb_status           fault; /* why one of our callbacks ended the call */
} hfsbi_follow;

/* ---- retries ---- */

HFSBI_FN void hfsbi_retry_reset(hfsbi_retry *retry) {
    retry->failed = retry->waits = 0;
}

HFSBI_FN hfsb_status hfsbi_retry_wait(hfsbi_retry *retry) {
    long long ms = retry->delay_ms;
    size_t    n;
    for (n = 0; n < retry->waits && ms < retry->max_delay_ms; n++)
        ms += retry->linear ? retry->delay_ms : ms;
    if (n && ms > retry->max_delay_ms) ms = retry->max_delay_ms;
    if (retry->asked_ms > 0) ms = retry->asked_ms;
    retry->asked_ms = 0;
    if (retry->deadline && ms >= retry->deadline - hfsb_clock_ms())
        return HFSB_LIMIT;
    retry->waits++;
    if (retry->on_wait) retry->on_wait(retry->user, ms);
    return hfsb_cancel_wait(retry->cancel, ms) ? HFSB_OK : HFSB_CANCELLED;
}

HFSBI_FN hfsb_status hfsbi_retry_again(hfsbi_retry *retry) {
    if (++retry->failed == retry->tries) return HFSB_LIMIT;
    return hfsbi_retry_wait(retry);
}

/* ---- the fields of a reply ----

   reply->head holds them one after the other:

       size of name | size of value | name | value                         */

static hfsb_status hfsbi_reply_put_field(hfsb_buf *head, hfsb_str name,
                                         hfsb_str value) {
    size_t mark = head->len;
    size_t sizes[2], i;
    sizes[0] = name.len;
    sizes[1] = value.len;
    hfsb_buf_append(head, hfsb_str_make((const char *)sizes, sizeof sizes));
    hfsb_buf_append(head, name);
    for (i = 0; i < value.len; i++) /* a folded line becomes blanks */
        hfsb_buf_append_byte(head, value.ptr[i] == '\r' || value.ptr[i] == '\n'
                                       ? ' '
                                       : value.ptr[i]);
    return hfsb_buf_finish(head, mark);
}

/* ---- one reply ---- */

static bool hfsbi_follow_is_redirect(int status) {
    return status == 301 || status == 302 || status == 303 || status == 307 ||
           status == 308;
}

static bool hfsbi_follow_keep_head(hfsbi_follow          *f,
                                   const hfsb_http_field *fields,
                                   size_t                 count) {
    size_t i;
    f->reply->status = f->status;
    hfsb_buf_truncate(&f->reply->head, 0);
    for (i = 0; i < count && f->fault == HFSB_OK; i++)
        f->fault = hfsbi_reply_put_field(&f->reply->head, fields[i].name,
                                         fields[i].value);
    return f->fault == HFSB_OK;
}

static bool hfsbi_follow_head(void *user, int status,
                              const hfsb_http_field *fields, size_t count) {
    hfsbi_follow *f = (hfsbi_follow *)user;
    size_t        i;
    f->status = status;
    f->moved = false;
    hfsb_buf_truncate(&f->location, 0);
    for (i = 0; hfsbi_follow_is_redirect(status) && i < count; i++)
        if (!f->moved &&
            hfsb_http_same(fields[i].name, hfsb_str_make("Location", 8))) {
            f->fault = hfsb_buf_append(&f->location, fields[i].value);
            f->moved = true;
        }
    if (!hfsbi_follow_keep_head(f, fields, count)) return false;
    if (f->moved || !f->call->on_head) return true;
    return f->call->on_head(f->call->user, status, fields, count);
}

static bool hfsbi_follow_body(void *user, hfsb_str piece) {
    hfsbi_follow *f = (hfsbi_follow *)user;
    if (f->moved) { /* a small one is read so that the connection is kept */
        f->waste += piece.len;
        return f->waste <= HFSBI_FOLLOW_MAX_WASTE;
    }
    if (f->call->on_body && f->status / 100 == 2)
        return f->call->on_body(f->call->user, piece);
    f->fault = hfsb_buf_append(&f->reply->body, piece);
    return f->fault == HFSB_OK;
}

static hfsb_status hfsbi_follow_read(void *user, char *ptr, size_t room,
                                     size_t *got, hfsb_err *err) {
    hfsbi_follow *f = (hfsbi_follow *)user;
    f->asked = true;
    return f->call->body_read(f->call->user, ptr, room, got, err);
}

/* ---- from one call to the next ---- */

/* True for fields that only the first host may see. */
static bool hfsbi_follow_is_secret(hfsb_str name) {
    static const char *const secret[] = {
        "Authorization",       "X-Sandbox-Authorization", "X-Sandbox-Token",
        "Proxy-Authorization", "Cookie",                  "Idempotency-Key"};
    size_t i;
    for (i = 0; i < sizeof secret / sizeof *secret; i++)
        if (hfsb_http_same(name, hfsb_cstr(secret[i]))) return true;
    return false;
}

static bool hfsbi_follow_is_content(hfsb_str name) {
    return name.len > 8 && hfsb_http_same(hfsb_str_slice(name, 0, 8),
                                          hfsb_str_make("Content-", 8));
}

/* Removes the fields for which fn is true. */
static void hfsbi_follow_drop(hfsbi_follow *f, bool (*fn)(hfsb_str name)) {
    size_t i, n = 0;
    for (i = 0; i < f->now.field_count; i++)
        if (!fn(f->fields[i].name)) f->fields[n++] = f->fields[i];
    f->now.field_count = n;
}

/* A 303, and a POST answered with 301 or 302, continue as a GET. */
static hfsb_status hfsbi_follow_method(hfsbi_follow *f) {
    hfsb_str post = hfsb_str_make("POST", 4), head = hfsb_str_make("HEAD", 4);
    bool     get = f->status == 303 && !hfsb_str_equal(f->now.method, head);
    if ((f->status == 301 || f->status == 302) &&
        hfsb_str_equal(f->now.method, post))
        get = true;
    if (get) {
        if (!hfsb_str_equal(f->now.method, hfsb_str_make("GET", 3)))
            f->acted = true; /* only its answer is elsewhere */
        f->now.method = hfsb_str_make("GET", 3);
        f->now.body = hfsb_str_make(NULL, 0);
        f->now.body_read = NULL;
        f->now.body_length = 0;
        hfsbi_follow_drop(f, hfsbi_follow_is_content);
    } else if (f->now.body_read && f->asked) {
        return hfsbi_fail(f->err, HFSB_REMOTE, 0,
                          "The server redirects (status %d) a request whose "
                          "body was already sent in part and cannot be sent "
                          "again.",
                          f->status);
    }
    return HFSB_OK;
}

/* Resolves the Location against `base` into *next; *same: the origin is the
   same. */
static hfsb_status hfsbi_follow_resolve(const hfsbi_follow *f, hfsb_str base,
                                        hfsb_buf *next, bool *same) {
    hfsb_url    from, to;
    hfsb_err    why;
    hfsb_status st =
        hfsb_url_resolve(base, hfsb_buf_str(&f->location), next, &why);
    if (st == HFSB_OK) st = hfsb_url_parse(hfsb_buf_str(next), &to, &why);
    if (st == HFSB_OK) st = hfsb_url_parse(base, &from, &why);
    if (st == HFSB_ARG)
        return hfsbi_fail(f->err, HFSB_REMOTE, 0,
                          "The server redirects to an invalid address. %s",
                          why.msg);
    if (st != HFSB_OK) return hfsbi_fail_status(f->err, st, "redirect");
    if (from.secure && !to.secure)
        return hfsbi_fail(f->err, HFSB_REFUSED, 0,
                          "The server redirects from https to http.");
    if (to.user.ptr)
        return hfsbi_fail(f->err, HFSB_REMOTE, 0,
                          "The server redirects to an address that contains a "
                          "user name.");
    *same = hfsb_url_same_origin(&from, &to);
    return HFSB_OK;
}

/* Moves reply->url to the redirect's target. */
static hfsb_status hfsbi_follow_target(hfsbi_follow *f) {
    hfsb_buf   *url = &f->reply->url, next = HFSB_INIT;
    bool        same = false;
    hfsb_status st;
    next.alloc = url->alloc;
    st = hfsbi_follow_resolve(f, hfsb_buf_str(url), &next, &same);
    if (st != HFSB_OK) {
        hfsb_buf_free(&next);
        return st;
    }
    if (!same) hfsbi_follow_drop(f, hfsbi_follow_is_secret);
    next.max = url->max;
    hfsb_buf_free(url);
    *url = next;
    return HFSB_OK;
}

/* Prepares the call that the redirect leads to. */
static hfsb_status hfsbi_follow_next(hfsbi_follow *f) {
    hfsb_status st;
    if (++f->hops > HFSBI_FOLLOW_MAX)
        return hfsbi_fail(f->err, HFSB_REMOTE, 0,
                          "The server redirects without end: gave up after "
                          "%d redirects.",
                          HFSBI_FOLLOW_MAX);
    st = hfsbi_follow_method(f);
    if (st == HFSB_OK) st = hfsbi_follow_target(f);
    if (st != HFSB_OK || f->call->total_ms <= 0) return st;
    f->now.total_ms = f->deadline - hfsb_clock_ms();
    if (f->now.total_ms <= 0)
        st = hfsbi_fail(f->err, HFSB_TIMEOUT, 0,
                        "The call did not finish within %lld ms.",
                        f->call->total_ms);
    return st;
}

/* ---- the whole call ---- */

/* Performs f->now. */
static hfsb_status hfsbi_follow_once(hfsbi_follow *f) {
    hfsb_status st;
    f->now.url = hfsb_buf_str(&f->reply->url);
    f->status = 0;
    f->waste = 0;
    f->fault = HFSB_OK;
    f->moved = false;
    f->reply->sent = false;
    f->reply->status = 0;
    hfsb_buf_truncate(&f->reply->head, 0);
    st = f->transport->perform(f->transport->user, &f->now, &f->reply->sent,
                               f->err);
    if (f->fault == HFSB_LIMIT)
        return hfsbi_fail(f->err, HFSB_LIMIT, 0,
                          "The reply is larger than %zu bytes.",
                          f->reply->body.max);
    if (f->fault != HFSB_OK)
        return hfsbi_fail_status(f->err, f->fault, "reply");
    /* the rest of a redirect's body is not worth waiting for */
    if (st == HFSB_CANCELLED && f->moved && f->waste > HFSBI_FOLLOW_MAX_WASTE)
        st = HFSB_OK;
    return st;
}

static hfsb_status hfsbi_follow_begin(hfsbi_follow         *f,
                                      const hfsb_http_call *call,
                                      hfsb_http_reply      *reply) {
    const hfsb_alloc *alloc = &reply->body.alloc;
    f->call = call;
    f->now = *call;
    f->reply = reply;
    f->deadline = hfsb_clock_ms();
    if (call->total_ms > 0)
        f->deadline = call->total_ms < LLONG_MAX - f->deadline
                          ? f->deadline + call->total_ms
                          : LLONG_MAX;
    f->location.alloc = *alloc;
    if (!reply->url.alloc.fn) reply->url.alloc = *alloc;
    if (!reply->head.alloc.fn) reply->head.alloc = *alloc;
    if (!reply->body.max) reply->body.max = HFSBI_FOLLOW_MAX_BODY;
    reply->status = 0;
    reply->sent = false;
    hfsb_buf_truncate(&reply->url, 0);
    hfsb_buf_truncate(&reply->body, 0);
    f->now.user = f;
    f->now.on_head = hfsbi_follow_head;
    f->now.on_body = hfsbi_follow_body;
    if (call->body_read) f->now.body_read = hfsbi_follow_read;
    f->fields = (hfsb_http_field *)hfsbi_array(alloc, call->field_count,
                                               sizeof *f->fields);
    if (!f->fields) return hfsbi_fail_status(f->err, HFSB_NOMEM, "request");
    if (call->field_count)
        memcpy(f->fields, call->fields, call->field_count * sizeof *f->fields);
    f->now.fields = f->fields;
    if (hfsb_buf_append(&reply->url, call->url) == HFSB_OK) return HFSB_OK;
    return hfsbi_fail_status(f->err, HFSB_NOMEM, "request");
}

hfsb_status hfsb_http_send(const hfsb_transport *transport,
                           const hfsb_http_call *call, hfsb_http_reply *reply,
                           hfsb_err *err) {
    hfsbi_follow f = HFSB_INIT;
    hfsb_status  st;
    f.transport = transport;
    f.err = err;
    st = hfsbi_follow_begin(&f, call, reply);
    while (st == HFSB_OK) {
        st = hfsbi_follow_once(&f);
        if (st != HFSB_OK || !f.moved) break;
        st = hfsbi_follow_next(&f);
    }
    hfsbi_array_free(&reply->body.alloc, f.fields, call->field_count,
                     sizeof *f.fields);
    hfsb_buf_free(&f.location);
    if (!f.acted) return st;
    reply->sent = true; /* even when the last address got nothing */
    if (st == HFSB_CONNECT)
        st = hfsbi_fail(err, HFSB_LOST, 0,
                        "The server's answer is at another address, which "
                        "cannot be reached.");
    return st;
}

hfsb_str hfsb_http_reply_field(const hfsb_http_reply *reply, const char *name,
                               size_t n) {
    hfsb_str rest = hfsb_buf_str(&reply->head), none = HFSB_INIT;
    size_t   sizes[2];
    while (rest.len >= sizeof sizes) {
        hfsb_str found, value;
        memcpy(sizes, rest.ptr, sizeof sizes);
        rest = hfsb_str_slice(rest, sizeof sizes, rest.len);
        found = hfsb_str_slice(rest, 0, sizes[0]);
        rest = hfsb_str_slice(rest, sizes[0], rest.len);
        value = hfsb_str_slice(rest, 0, sizes[1]);
        rest = hfsb_str_slice(rest, sizes[1], rest.len);
        if (hfsb_http_same(found, hfsb_cstr(name)) && n-- == 0) return value;
    }
    return none;
}

void hfsb_http_reply_free(hfsb_http_reply *reply) {
    hfsb_buf_free(&reply->url);
    hfsb_buf_free(&reply->body);
    hfsb_buf_free(&reply->head);
    reply->status = 0;
    reply->sent = false;
}
