/* http.c - MCP over HTTP: each POST is a channel of its own.

   The reply starts as late as possible: plain JSON is what most clients and
   all proxies handle best, and only it can carry a status other than 200.

       OPEN --- an answer: JSON with its status, or 202 for none ---> CLOSED
         |
         +--> JSON ----- the answer, or an array of all answers ---> CLOSED
         |      ^ for a client that takes only JSON: a sign of life, or an
         |        answer to a batch
         |
         +--> EVENTS --- each answer as an event, then the end ----> CLOSED
                ^ a notification or a sign of life; or an answer, for a
                  client that takes only events and for a batch

   The answers to a batch are sent as they come, in any order: none is kept
   until the others are there.

   A client may disconnect in any state, which leads to CLOSED too: its calls
   then go on unanswered, or, since 2026-07-28, are cancelled.

   Which session a request belongs to:

       2025-11-25 and before   Mcp-Session-Id, which initialize gives out;
                               DELETE ends the session
       2026-07-28              has no sessions: X-Hfsb-Client, which a user may
                               set in the host's configuration; else name and
                               version of the client

   Clients with the same name, and those without any id, share a session and
   cannot be distinguished: a host opens several connections and closes them at
   will. So kill without an id ends only the jobs that came over the same
   connection (channel.owner), and names the others. */
#include "mcp_private.h"

enum {
    HFSBI_MCP_ID = 128,           /* bytes of an id that a client sends */
    HFSBI_MCP_KEY_SIZE = 256,     /* of a session's id, with NUL */
    HFSBI_MCP_CHOKE = 256 * 1024, /* unsent bytes that stop notifications */
    HFSBI_MCP_UNSENT = 64 << 20,  /* unsent bytes that end a batch */
    HFSBI_MCP_ALIVE = 3           /* beats between signs of life: 15 s */
};

typedef enum hfsbi_mcp_post_state {
    HFSBI_POST_OPEN,   /* nothing was sent */
    HFSBI_POST_JSON,   /* 200, JSON: blanks so far, or a part of an array */
    HFSBI_POST_EVENTS, /* 200, a stream of events */
    HFSBI_POST_CLOSED  /* the request is gone, or was answered */
} hfsbi_mcp_post_state;

/* One POST. */
typedef struct hfsbi_mcp_post {
    hfsbi_mcp_channel    channel; /* first: the post is found by it */
    hfsbi_timer          timer;   /* signs of life */
    hfsb_request        *request;
    hfsbi_mcp_post_state state;
    bool                 json, events; /* what the client accepts */
    bool                 modern;       /* a disconnect cancels */
    bool                 batch;     /* its answers are an array, or events */
    bool                 receiving; /* hfsbi_mcp_receive() is using it */
    size_t               sent;      /* answers */
} hfsbi_mcp_post;

static void hfsbi_mcp_post_free(hfsbi_mcp_post *p) {
    hfsb_mcp *mcp = p->channel.mcp;
    hfsbi_loop_timer_clear(mcp->loop, &p->timer);
    if (p->channel.session) hfsbi_mcp_session_release(p->channel.session);
    hfsbi_array_free(&mcp->alloc, p, 1, sizeof *p);
}

/* ---- the reply ---- */

static void hfsbi_mcp_post_event(hfsbi_mcp_post *p, hfsb_str message) {
    (void)hfsb_reply_write(p->request, HFSB_LIT("event: message\ndata: "));
    (void)hfsb_reply_write(p->request, message);
    (void)hfsb_reply_write(p->request, HFSB_LIT("\n\n"));
}

/* Sends the head: 200, and events if the client accepts them. */
static void hfsbi_mcp_post_begin(hfsbi_mcp_post *p) {
    p->state = p->events ? HFSBI_POST_EVENTS : HFSBI_POST_JSON;
    (void)hfsb_reply_field(p->request, "X-Accel-Buffering", HFSB_LIT("no"));
    (void)hfsb_reply_field(p->request, "Cache-Control", HFSB_LIT("no-store"));
    hfsb_reply_begin(p->request, 200,
                     p->events ? "text/event-stream" : "application/json");
}

/* Ends a POST that has all its answers, or whose client is gone. */
static void hfsbi_mcp_post_settle(hfsbi_mcp_post *p) {
    if (p->receiving) return;
    if (p->state != HFSBI_POST_CLOSED && p->channel.owed) return;
    if (p->state == HFSBI_POST_OPEN)
        hfsb_reply(p->request, 202, "", HFSB_LIT(""));
    if (p->state == HFSBI_POST_JSON && p->batch && p->sent)
        (void)hfsb_reply_write(p->request, HFSB_LIT("]"));
    if (p->state == HFSBI_POST_JSON || p->state == HFSBI_POST_EVENTS)
        hfsb_reply_end(p->request);
    hfsbi_mcp_calls_detach(&p->channel, p->modern);
    hfsbi_mcp_post_free(p);
}

/* An answer is lost for want of memory: the client must notice. */
static void hfsbi_mcp_post_lose(hfsbi_mcp_post *p) {
    if (p->state == HFSBI_POST_OPEN)
        hfsb_reply_error(p->request, 503,
                         "Out of memory: the call may have run.");
    else hfsb_reply_abort(p->request);
    p->state = HFSBI_POST_CLOSED;
}

/* Sends an answer in the way that the state and the client allow. */
static void hfsbi_mcp_post_send(hfsbi_mcp_post *p, int status,
                                hfsb_buf *message) {
    if (p->state == HFSBI_POST_OPEN && status == 200 && (p->batch || !p->json))
        hfsbi_mcp_post_begin(p);
    switch (p->state) {
    case HFSBI_POST_OPEN:
        hfsbi_reply_take(p->request, status, "application/json", message);
        p->state = HFSBI_POST_CLOSED;
        break;
    case HFSBI_POST_JSON:
        if (p->batch)
            (void)hfsb_reply_write(p->request,
                                   p->sent ? HFSB_LIT(",") : HFSB_LIT("["));
        (void)hfsb_reply_write(p->request, hfsb_buf_str(message));
        break;
    case HFSBI_POST_EVENTS:
        hfsbi_mcp_post_event(p, hfsb_buf_str(message));
        break;
    case HFSBI_POST_CLOSED: break;
    }
    p->sent++;
}

static void hfsbi_mcp_post_reply(hfsbi_mcp_channel *channel, int status,
                                 hfsb_buf *message) {
    hfsbi_mcp_post *p = (hfsbi_mcp_post *)(void *)channel;
    channel->owed--;
    if (p->state != HFSBI_POST_CLOSED && status) {
        if (message->len && hfsb_reply_waiting(p->request) <= HFSBI_MCP_UNSENT)
            hfsbi_mcp_post_send(p, status, message);
        else hfsbi_mcp_post_lose(p);
    }
    hfsbi_mcp_post_settle(p);
}

static void hfsbi_mcp_post_notify(hfsbi_mcp_channel *channel,
                                  hfsb_str           message) {
    hfsbi_mcp_post *p = (hfsbi_mcp_post *)(void *)channel;
    if (p->state == HFSBI_POST_OPEN && p->events) hfsbi_mcp_post_begin(p);
    if (p->state == HFSBI_POST_EVENTS &&
        hfsb_reply_waiting(p->request) <= HFSBI_MCP_CHOKE)
        hfsbi_mcp_post_event(p, message);
}

/* ---- while it waits ---- */

static void hfsbi_mcp_post_arm(hfsbi_mcp_post *p) {
    hfsb_mcp *mcp = p->channel.mcp;
    hfsbi_loop_timer(mcp->loop, &p->timer,
                     hfsb_clock_ms() + HFSBI_MCP_ALIVE * mcp->limits.beat_ms);
}

/* Sends a sign of life for proxies that wait for bytes: a comment of the event
   stream, or a blank, which JSON allows. */
static void hfsbi_mcp_post_beat(hfsbi_timer *timer) {
    hfsbi_mcp_post *p =
        (hfsbi_mcp_post *)(void *)((char *)timer -
                                   offsetof(hfsbi_mcp_post, timer));
    if (p->state == HFSBI_POST_CLOSED) return;
    if (p->state == HFSBI_POST_OPEN) hfsbi_mcp_post_begin(p);
    if (!hfsb_reply_waiting(p->request))
        (void)hfsb_reply_write(p->request, p->state == HFSBI_POST_EVENTS
                                               ? HFSB_LIT(": \n\n")
                                               : HFSB_LIT(" "));
    hfsbi_mcp_post_arm(p);
}

/* The client has shut down its sending side: it is gone, or still reads. A
   beat finds out: a client that is gone answers it with a reset. */
static void hfsbi_mcp_post_eof(void *user, hfsb_request *request) {
    (void)request;
    hfsbi_mcp_post_beat(&((hfsbi_mcp_post *)user)->timer);
}

static void hfsbi_mcp_post_gone(void *user, hfsb_request *request) {
    hfsbi_mcp_post *p = (hfsbi_mcp_post *)user;
    (void)request;
    p->state = HFSBI_POST_CLOSED;
    hfsbi_mcp_post_settle(p);
}

/* ---- the session ---- */

/* Writes the id of the session of a message. Ids that are generated here have
   a blank, which no Mcp-Session-Id has. True when it names one client. */
static bool hfsbi_mcp_post_id(const hfsbi_mcp_post    *p,
                              const hfsbi_mcp_message *m,
                              char id[HFSBI_MCP_KEY_SIZE]) {
    const hfsb_http_head *head = hfsb_request_head(p->request);
    hfsb_str              given = hfsb_http_field_find(head, "Mcp-Session-Id");
    hfsb_str              own = hfsb_http_field_find(head, "X-Hfsb-Client");
    id[0] = '\0';
    if (m && m->method == HFSBI_MCP_INITIALIZE) hfsbi_random_hex(id, 32);
    else if (!p->modern && given.len)
        (void)snprintf(id, HFSBI_MCP_KEY_SIZE, "%.*s", (int)given.len,
                       given.ptr);
    else if (own.len)
        (void)snprintf(id, HFSBI_MCP_KEY_SIZE, "client %.*s", (int)own.len,
                       own.ptr);
    else {
        if (p->modern)
            (void)snprintf(id, HFSBI_MCP_KEY_SIZE, "info %.*s %.*s",
                           (int)hfsb_utf8_offset(m->client, 40), m->client.ptr,
                           (int)hfsb_utf8_offset(m->client_version, 20),
                           m->client_version.ptr);
        return false;
    }
    return true;
}

/* Refuses a message that has no session. */
static bool hfsbi_mcp_post_refuse(hfsbi_mcp_post *p, bool ended) {
    if (ended) {
        hfsb_reply_error(p->request, 404,
                         "This session has ended: initialize a new one.");
    } else {
        (void)hfsb_reply_field(p->request, "Retry-After", HFSB_LIT("1"));
        hfsb_reply_error(p->request, 503,
                         "Too many sessions are in use: try again later.");
    }
    p->state = HFSBI_POST_CLOSED;
    return false;
}

/* Finds the session of a message; see hfsbi_mcp_channel. initialize gets a new
   id. Any other id is accepted, so that clients survive a restart of the
   server, unless its client has ended it: most never initialize again. */
static bool hfsbi_mcp_post_open(hfsbi_mcp_channel       *channel,
                                const hfsbi_mcp_message *m) {
    hfsbi_mcp_post *p = (hfsbi_mcp_post *)(void *)channel;
    char            id[HFSBI_MCP_KEY_SIZE];
    hfsb_status     st = HFSB_OK;
    p->batch = !m;
    p->modern = m && m->modern;
    if (p->modern) hfsbi_request_on_eof(p->request, hfsbi_mcp_post_eof, p);
    if (!hfsbi_mcp_post_id(p, m, id))
        channel->owner = hfsbi_request_serial(p->request);
    if (hfsbi_mcp_session_has_ended(channel->mcp, hfsb_cstr(id)))
        return hfsbi_mcp_post_refuse(p, true);
    if (m && m->method == HFSBI_MCP_INITIALIZE)
        st = hfsb_reply_field(p->request, "Mcp-Session-Id", hfsb_cstr(id));
    if (st == HFSB_OK)
        channel->session = hfsbi_mcp_session_hold(channel->mcp, hfsb_cstr(id));
    return channel->session ? true : hfsbi_mcp_post_refuse(p, false);
}

/* ---- the request ---- */

/* True when the client accepts a type, or all types of its range. */
static bool hfsbi_mcp_accepts(const hfsb_http_head *head, const char *range,
                              const char *type) {
    return hfsb_http_field_count(head, "Accept") == 0 ||
           hfsb_http_field_lists(head, "Accept", "*/*") ||
           hfsb_http_field_lists(head, "Accept", range) ||
           hfsb_http_field_lists(head, "Accept", type);
}

static bool hfsbi_mcp_accepts_json(const hfsb_http_head *head) {
    return hfsbi_mcp_accepts(head, "application/*", "application/json");
}

static bool hfsbi_mcp_accepts_events(const hfsb_http_head *head) {
    return hfsbi_mcp_accepts(head, "text/*", "text/event-stream");
}

/* The name of a field that is given more than once, which could be read in two
   ways, or NULL. */
static const char *hfsbi_mcp_repeated_field(const hfsb_http_head *head) {
    static const char *const names[] = {"MCP-Protocol-Version", "Mcp-Method",
                                        "Mcp-Name", "Mcp-Session-Id",
                                        "X-Hfsb-Client"};
    size_t                   i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (hfsb_http_field_count(head, names[i]) > 1) return names[i];
    return NULL;
}

/* True for the value of Mcp-Session-Id and X-Hfsb-Client. */
static bool hfsbi_mcp_is_id_text(hfsb_str id) {
    size_t i;
    if (id.len > HFSBI_MCP_ID) return false;
    for (i = 0; i < id.len; i++)
        if (id.ptr[i] < '!' || id.ptr[i] > '~') return false;
    return true;
}

/* Checks the fields that name session and client; false when the request was
   refused. */
static bool hfsbi_mcp_check_ids(hfsb_request *request) {
    static const char *const names[] = {"Mcp-Session-Id", "X-Hfsb-Client"};
    const hfsb_http_head    *head = hfsb_request_head(request);
    const char              *twice = hfsbi_mcp_repeated_field(head);
    size_t                   i = 0;
    if (twice) {
        hfsb_reply_error(request, 400, "%s must be given once.", twice);
        return false;
    }
    while (i < 2 && hfsbi_mcp_is_id_text(hfsb_http_field_find(head, names[i])))
        i++;
    if (i == 2) return true;
    hfsb_reply_error(request, 400,
                     "%s must be visible ASCII, at most %d bytes.", names[i],
                     HFSBI_MCP_ID);
    return false;
}

/* Checks the head of a request; false when it was refused. */
static bool hfsbi_mcp_check_head(hfsb_request *request) {
    const hfsb_http_head *head = hfsb_request_head(request);
    if (!hfsbi_request_is_json(request))
        hfsb_reply_error(request, 415,
                         "The body must be JSON, with Content-Type: "
                         "application/json.");
    else if (!hfsbi_mcp_accepts_json(head) && !hfsbi_mcp_accepts_events(head))
        hfsb_reply_error(request, 406,
                         "Accept must list application/json and "
                         "text/event-stream.");
    else return hfsbi_mcp_check_ids(request);
    return false;
}

static hfsbi_mcp_post *hfsbi_mcp_post_new(hfsb_mcp     *mcp,
                                          hfsb_request *request) {
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsbi_mcp_post       *p =
        (hfsbi_mcp_post *)hfsbi_array(&mcp->alloc, 1, sizeof *p);
    if (!p) return NULL;
    memset(p, 0, sizeof *p);
    p->json = hfsbi_mcp_accepts_json(head);
    p->events = hfsbi_mcp_accepts_events(head);
    p->channel.mcp = mcp;
    p->channel.open = hfsbi_mcp_post_open;
    p->channel.reply = hfsbi_mcp_post_reply;
    p->channel.notify = hfsbi_mcp_post_notify;
    p->channel.can_notify = p->events;
    p->timer.fn = hfsbi_mcp_post_beat;
    p->request = request;
    return p;
}

static void hfsbi_mcp_on_post(void *user, hfsb_request *request) {
    hfsb_mcp             *mcp = (hfsb_mcp *)user;
    const hfsb_http_head *fields = hfsb_request_head(request);
    hfsbi_mcp_head        head = HFSB_INIT;
    hfsb_buf              text = HFSB_INIT;
    hfsbi_mcp_post       *p;
    if (!hfsbi_mcp_check_head(request)) return;
    p = hfsbi_mcp_post_new(mcp, request);
    if (!p) {
        hfsb_reply_error(request, 503, "Out of memory; nothing was done.");
        return;
    }
    head.http = true;
    head.version = hfsb_http_field_find(fields, "MCP-Protocol-Version");
    head.method = hfsb_http_field_find(fields, "Mcp-Method");
    head.name = hfsb_http_field_find(fields, "Mcp-Name");
    hfsb_request_on_gone(request, hfsbi_mcp_post_gone, p);
    hfsbi_request_take_body(request, &text);
    p->receiving = true;
    hfsbi_mcp_receive(&p->channel, &text, &head);
    p->receiving = false;
    hfsb_buf_free(&text);
    if (p->channel.owed) hfsbi_mcp_post_arm(p);
    hfsbi_mcp_post_settle(p);
}

/* DELETE ends a session. The newest revision has none, and no DELETE. */
static void hfsbi_mcp_on_delete(void *user, hfsb_request *request) {
    hfsb_mcp             *mcp = (hfsb_mcp *)user;
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsb_str              id = hfsb_http_field_find(head, "Mcp-Session-Id");
    hfsb_str version = hfsb_http_field_find(head, "MCP-Protocol-Version");
    if (hfsbi_mcp_era_of(version) == HFSBI_ERA_MODERN) {
        (void)hfsb_reply_field(request, "Allow", HFSB_LIT("POST"));
        hfsb_reply_error(request, 405, "Method Not Allowed");
    } else if (!hfsbi_mcp_check_ids(request)) {
        return;
    } else if (!id.len) {
        hfsb_reply_error(request, 400,
                         "Mcp-Session-Id must name the session to end.");
    } else if (hfsbi_mcp_session_end(mcp, id)) {
        hfsb_reply(request, 200, "", HFSB_LIT(""));
    } else {
        hfsb_reply_error(request, 404, "There is no such session.");
    }
}

HFSBI_FN hfsb_status hfsbi_mcp_route(hfsb_mcp *mcp, const char *method,
                                     const char *path, hfsb_err *err) {
    bool       post = strcmp(method, "POST") == 0;
    hfsb_route route = HFSB_INIT;
    route.method = method;
    route.path = path;
    route.fn = post ? hfsbi_mcp_on_post : hfsbi_mcp_on_delete;
    route.user = mcp;
    route.max_body = post ? mcp->limits.max_message : 1; /* DELETE has none */
    return hfsb_server_add(mcp->server, &route, err);
}
