/* http.c - MCP over HTTP: POST of one message, the answer as JSON
   or as a stream of events. */
#include "mcp_private.h"

/*  POST -> checks of the head -> session -> receive
              answers at once, or by and by:
              nothing was sent before    whole: its own status, JSON
              a notification, a beat     200, a stream of events
              a beat, and only JSON is   200, blanks, JSON
              taken, or it is a batch

    The stream is begun as late as possible: plain JSON is what most clients
    and all proxies handle best, and only it can carry another status. */

enum {
    HFSBI_MCP_ID = 128,           /* bytes of a session's id */
    HFSBI_MCP_CHOKE = 256 * 1024, /* bytes not taken yet: no notifications */
    HFSBI_MCP_PEEK = 65536,       /* initialize is shorter */
    HFSBI_MCP_ALIVE = 3           /* beats between signs of life: 15 s */
};

/* One POST. */
typedef struct hfsbi_mcp_post {
    hfsbi_mcp_channel channel; /* first: it is found by it */
    hfsbi_timer       timer;
    hfsb_request     *request;      /* NULL: gone, or answered */
    bool              json, events; /* what the client takes */
    bool              modern, batch;
    bool              begun, streaming; /* 200 is sent, as events */
    bool              receiving;
    bool              lost; /* an answer, for want of memory */
    size_t            expected, answered;
    int               status;  /* of the last answer, 0: there was none */
    hfsb_buf          answers; /* those that are to be sent as a whole, commas
                                  between */
} hfsbi_mcp_post;

static void hfsbi_mcp_post_free(hfsbi_mcp_post *p) {
    hfsb_mcp *mcp = p->channel.mcp;
    hfsbi_loop_timer_clear(mcp->loop, &p->timer);
    if (p->channel.session) hfsbi_mcp_session_release(p->channel.session);
    hfsb_buf_free(&p->answers);
    hfsbi_array_free(&mcp->alloc, p, 1, sizeof *p);
}

/* ---- the reply ---- */

static void hfsbi_mcp_post_event(hfsbi_mcp_post *p, hfsb_str message) {
    (void)hfsb_reply_write(p->request, HFSB_LIT("event: message\ndata: "));
    (void)hfsb_reply_write(p->request, message);
    (void)hfsb_reply_write(p->request, HFSB_LIT("\n\n"));
}

/* Sends the head: from here on it is 200. */
static void hfsbi_mcp_post_begin(hfsbi_mcp_post *p) {
    p->begun = true;
    p->streaming = p->events;
    (void)hfsb_reply_field(p->request, "X-Accel-Buffering", HFSB_LIT("no"));
    (void)hfsb_reply_field(p->request, "Cache-Control", HFSB_LIT("no-store"));
    hfsb_reply_begin(p->request, 200,
                     p->streaming ? "text/event-stream" : "application/json");
}

/* Puts the answers to a batch into brackets. One that was refused as a whole
   has one answer, that of no one, and stays as it is. */
static void hfsbi_mcp_post_wrap(hfsbi_mcp_post *p) {
    hfsb_buf array = HFSB_INIT;
    if (p->answered == 1 && p->status >= 400) return;
    p->status = 200;
    array.alloc = p->answers.alloc;
    if (hfsb_buf_append_byte(&array, '[') != HFSB_OK ||
        hfsb_buf_append(&array, hfsb_buf_str(&p->answers)) != HFSB_OK ||
        hfsb_buf_append_byte(&array, ']') != HFSB_OK)
        p->lost = true;
    hfsb_buf_free(&p->answers);
    p->answers = array;
}

/* All answers as one body. */
static void hfsbi_mcp_post_whole(hfsbi_mcp_post *p, hfsb_request *request) {
    if (p->batch) hfsbi_mcp_post_wrap(p);
    if (p->lost && p->begun) {
        hfsb_reply_abort(request);
    } else if (p->lost) {
        hfsb_reply_error(request, 503,
                         "Out of memory: the call may have run.");
    } else if (p->begun) {
        (void)hfsb_reply_write(request, hfsb_buf_str(&p->answers));
        hfsb_reply_end(request);
    } else {
        hfsbi_reply_take(request, p->status, "application/json", &p->answers);
    }
}

/* Keeps an answer until all are there; it is moved where that can be. */
static void hfsbi_mcp_post_keep(hfsbi_mcp_post *p, hfsb_buf *message) {
    if (p->answers.len == 0) {
        hfsb_buf_free(&p->answers);
        p->answers = *message;
        memset(message, 0, sizeof *message);
        message->alloc = p->answers.alloc;
    } else if (hfsb_buf_append_byte(&p->answers, ',') != HFSB_OK ||
               hfsb_buf_append(&p->answers, hfsb_buf_str(message)) !=
                   HFSB_OK) {
        p->lost = true;
    }
}

/* Ends it when nothing more is to come. */
static void hfsbi_mcp_post_settle(hfsbi_mcp_post *p) {
    hfsb_request *request = p->request;
    if (p->receiving || (request && p->answered < p->expected)) return;
    p->request = NULL;
    if (!request) {                       /* nobody is there any more */
    } else if (!p->status && !p->begun) { /* nothing is to be answered */
        hfsb_reply(request, 202, "", hfsb_str_make("", 0));
    } else if (p->begun && p->lost) {
        hfsb_reply_abort(request);
    } else if (p->streaming || !p->status) {
        hfsb_reply_end(request);
    } else {
        hfsbi_mcp_post_whole(p, request);
    }
    hfsbi_mcp_post_free(p);
}

static void hfsbi_mcp_post_reply(hfsbi_mcp_channel *channel, int status,
                                 hfsb_buf *message) {
    hfsbi_mcp_post *p = (hfsbi_mcp_post *)(void *)channel;
    p->answered++;
    if (status) p->status = status;
    if (!p->json && !p->begun && status == 200) hfsbi_mcp_post_begin(p);
    if (!status) { /* it was cancelled: there is no answer */
    } else if (!message->len) {
        p->lost = true;
    } else if (p->streaming) {
        hfsbi_mcp_post_event(p, hfsb_buf_str(message));
    } else {
        hfsbi_mcp_post_keep(p, message);
    }
    hfsbi_mcp_post_settle(p);
}

static void hfsbi_mcp_post_notify(hfsbi_mcp_channel *channel,
                                  hfsb_str           message) {
    hfsbi_mcp_post *p = (hfsbi_mcp_post *)(void *)channel;
    if (!p->events || (p->begun && !p->streaming)) return;
    if (!p->begun) hfsbi_mcp_post_begin(p);
    if (hfsb_reply_waiting(p->request) <= HFSBI_MCP_CHOKE)
        hfsbi_mcp_post_event(p, message);
}

/* ---- while it waits ---- */

static void hfsbi_mcp_post_arm(hfsbi_mcp_post *p) {
    hfsb_mcp *mcp = p->channel.mcp;
    hfsbi_loop_timer(mcp->loop, &p->timer,
                     hfsb_clock_ms() + HFSBI_MCP_ALIVE * mcp->beat_ms);
}

/* A sign of life, for whoever waits for bytes on the way: a comment, or a
   blank that JSON allows. */
static void hfsbi_mcp_post_beat(hfsbi_timer *timer) {
    hfsbi_mcp_post *p =
        (hfsbi_mcp_post *)(void *)((char *)timer -
                                   offsetof(hfsbi_mcp_post, timer));
    if (!p->begun) hfsbi_mcp_post_begin(p);
    if (!hfsb_reply_waiting(p->request))
        (void)hfsb_reply_write(p->request, p->streaming ? HFSB_LIT(": \n\n")
                                                        : HFSB_LIT(" "));
    hfsbi_mcp_post_arm(p);
}

/* The peer has ended its side: it may be gone, or read on. A beat tells: one
   that is gone answers it with a reset. */
static void hfsbi_mcp_post_eof(void *user, hfsb_request *request) {
    (void)request;
    hfsbi_mcp_post_beat(&((hfsbi_mcp_post *)user)->timer);
}

/* Since 2026-07-28 who closes the connection cancels the call; before, it went
   on. */
static void hfsbi_mcp_post_gone(void *user, hfsb_request *request) {
    hfsbi_mcp_post *p = (hfsbi_mcp_post *)user;
    (void)request;
    p->request = NULL;
    hfsbi_mcp_gone(&p->channel, p->modern);
    hfsbi_mcp_post_settle(p);
}

/* ---- the head ---- */

/* False when it has refused. */
static bool hfsbi_mcp_post_accept(const hfsb_http_head *head,
                                  hfsbi_mcp_post       *p) {
    bool any = hfsb_http_field_count(head, "Accept") == 0 ||
               hfsb_http_field_lists(head, "Accept", "*/*");
    p->json = any || hfsb_http_field_lists(head, "Accept", "application/*") ||
              hfsb_http_field_lists(head, "Accept", "application/json");
    p->events = any || hfsb_http_field_lists(head, "Accept", "text/*") ||
                hfsb_http_field_lists(head, "Accept", "text/event-stream");
    return p->json || p->events;
}

/* The name of a field that is given more than once, and could be read in two
   ways; NULL: none. */
static const char *hfsbi_mcp_repeated(const hfsb_http_head *head) {
    static const char *const names[] = {"MCP-Protocol-Version", "Mcp-Method",
                                        "Mcp-Name", "Mcp-Session-Id"};
    size_t                   i;
    for (i = 0; i < sizeof names / sizeof names[0]; i++)
        if (hfsb_http_field_count(head, names[i]) > 1) return names[i];
    return NULL;
}

static bool hfsbi_mcp_is_session_id(hfsb_str id) {
    size_t i;
    if (id.len > HFSBI_MCP_ID) return false;
    for (i = 0; i < id.len; i++)
        if (id.ptr[i] < '!' || id.ptr[i] > '~') return false;
    return true;
}

/* Refuses what no message could mend; true when it has. */
static bool hfsbi_mcp_refuses(hfsb_request *request, hfsbi_mcp_post *p) {
    const hfsb_http_head *head = hfsb_request_head(request);
    const char           *twice = hfsbi_mcp_repeated(head);
    if (!hfsbi_request_is_json(request))
        hfsb_reply_error(request, 415,
                         "The body must be JSON, with Content-Type: "
                         "application/json.");
    else if (!hfsbi_mcp_post_accept(head, p))
        hfsb_reply_error(request, 406,
                         "Accept must list application/json and "
                         "text/event-stream.");
    else if (twice)
        hfsb_reply_error(request, 400, "%s must be given once.", twice);
    else if (!hfsbi_mcp_is_session_id(
                 hfsb_http_field_find(head, "Mcp-Session-Id")))
        hfsb_reply_error(request, 400,
                         "Mcp-Session-Id must be visible ASCII, at most %d "
                         "bytes.",
                         HFSBI_MCP_ID);
    else return false;
    return true;
}

/* ---- the session ---- */

/* The message opens a session. Most that do not are told by a glance. */
static bool hfsbi_mcp_opens(const hfsb_mcp *mcp, hfsb_str body) {
    hfsb_json_doc doc = HFSB_INIT;
    bool          opens;
    if (body.len > HFSBI_MCP_PEEK ||
        hfsb_str_find(body, HFSB_LIT("\"initialize\"")) == HFSB_NPOS)
        return false;
    doc.alloc = mcp->alloc;
    if (hfsb_json_parse(body, NULL, &doc, NULL) != HFSB_OK) return false;
    opens = hfsb_str_equal(
        hfsb_json_str(hfsb_json_get(doc.root, "method"), hfsb_str_make("", 0)),
        HFSB_LIT("initialize"));
    hfsb_json_free(&doc);
    return opens;
}

/* Any id is taken, so that clients survive a new start of the server; most
   never open another session. */
static bool hfsbi_mcp_post_session(hfsbi_mcp_post *p) {
    hfsb_mcp             *mcp = p->channel.mcp;
    const hfsb_http_head *head = hfsb_request_head(p->request);
    hfsb_str              id = hfsb_str_make("", 0);
    char                  fresh[33];
    if (!p->modern) {
        id = hfsb_http_field_find(head, "Mcp-Session-Id");
        if (hfsbi_mcp_opens(mcp, hfsb_request_body(p->request))) {
            hfsbi_random_hex(fresh, sizeof fresh - 1);
            id = hfsb_cstr(fresh);
            if (hfsb_reply_field(p->request, "Mcp-Session-Id", id) != HFSB_OK)
                return false;
        }
    }
    p->channel.session = hfsbi_mcp_session_hold(mcp, id);
    return p->channel.session != NULL;
}

/* ---- from a request ---- */

static hfsbi_mcp_post *hfsbi_mcp_post_new(hfsb_mcp     *mcp,
                                          hfsb_request *request) {
    hfsbi_mcp_post *p =
        (hfsbi_mcp_post *)hfsbi_array(&mcp->alloc, 1, sizeof *p);
    if (!p) {
        hfsb_reply_error(request, 503, "Out of memory; nothing was done.");
        return NULL;
    }
    memset(p, 0, sizeof *p);
    p->channel.mcp = mcp;
    p->channel.reply = hfsbi_mcp_post_reply;
    p->channel.notify = hfsbi_mcp_post_notify;
    p->timer.fn = hfsbi_mcp_post_beat;
    p->answers.alloc = mcp->alloc;
    p->request = request;
    if (hfsbi_mcp_refuses(request, p)) {
        hfsbi_mcp_post_free(p);
        return NULL;
    }
    return p;
}

/* Hands the message over; the answers come while it does, or later. */
static void hfsbi_mcp_post_receive(hfsbi_mcp_post       *p,
                                   const hfsbi_mcp_head *head) {
    hfsb_request *request = p->request;
    hfsb_buf      text = HFSB_INIT;
    hfsb_request_on_gone(request, hfsbi_mcp_post_gone, p);
    if (p->modern) hfsbi_request_on_eof(request, hfsbi_mcp_post_eof, p);
    hfsbi_request_take_body(request, &text);
    p->receiving = true;
    p->expected = hfsbi_mcp_receive(&p->channel, &text, head);
    p->receiving = false;
    hfsb_buf_free(&text);
    if (p->answered < p->expected) hfsbi_mcp_post_arm(p);
    hfsbi_mcp_post_settle(p);
}

static void hfsbi_mcp_posted(void *user, hfsb_request *request) {
    hfsb_mcp             *mcp = (hfsb_mcp *)user;
    const hfsb_http_head *fields = hfsb_request_head(request);
    hfsb_str              body = hfsbi_trim(hfsb_request_body(request));
    hfsbi_mcp_head        head = HFSB_INIT;
    hfsbi_mcp_post       *p = hfsbi_mcp_post_new(mcp, request);
    if (!p) return;
    head.http = true;
    head.version = hfsb_http_field_find(fields, "MCP-Protocol-Version");
    head.method = hfsb_http_field_find(fields, "Mcp-Method");
    head.name = hfsb_http_field_find(fields, "Mcp-Name");
    /* a message of that era that lacks the field is refused */
    if (!hfsbi_mcp_version_known(head.version, &p->modern)) p->modern = false;
    p->batch = body.len && body.ptr[0] == '[';
    if (p->batch && p->json) p->events = false;
    p->channel.can_notify = p->events;
    if (!hfsbi_mcp_post_session(p)) {
        (void)hfsb_reply_field(request, "Retry-After", HFSB_LIT("1"));
        hfsb_reply_error(request, 503,
                         "There is no room for another session now: try again "
                         "later.");
        hfsbi_mcp_post_free(p);
        return;
    }
    hfsbi_mcp_post_receive(p, &head);
}

HFSBI_FN hfsb_status hfsbi_mcp_route(hfsb_mcp *mcp, const char *path,
                                     hfsb_err *err) {
    hfsb_route route = HFSB_INIT;
    route.method = "POST";
    route.path = path;
    route.fn = hfsbi_mcp_posted;
    route.user = mcp;
    route.max_body = mcp->max_message;
    return hfsb_server_add(mcp->server, &route, err);
}
