/* idle.c - stops a server that nobody uses.

   A server with a limit (max_idle_ms) is in use while

       a request is being answered      that carried the token, for a route
                                        that needs one: no health check, and
                                        no GET of the page, except for a file
                                        while it is sent
       a command waits or runs          of any of its tools
       a part needs it                  a host with sandboxes in it

   and stops, as by hfsb_server_stop(), once it has not been in use for that
   long. The timer fires when that can be the case at the earliest. While the
   server is in use it fires every few seconds, and counts the time up to its
   next turn as used, so that the server never stops too early. */
#include "server_private.h"

enum { HFSBI_IDLE_LOOK_MS = 5000 };

/* True for what the page at "/" requests to show it: a forgotten tab requests
   it forever. The page requests no file by itself. Its terminal is a
   WebSocket, without the field. */
static bool hfsbi_idle_is_watching(const hfsb_request *r) {
    return r->reply.state != HFSBI_REPLY_FILE &&
           hfsb_str_equal(r->head.method, HFSB_LIT("GET")) &&
           hfsb_http_same(hfsb_http_field_find(&r->head, "X-Hfsb-Who"),
                          HFSB_LIT("page"));
}

/* True for a request whose sender uses the server. */
static bool hfsbi_idle_counts(const hfsb_request *r) {
    return r->trusted && r->route && !r->route->set.no_token &&
           !hfsbi_idle_is_watching(r);
}

/* `used` may be in the future, see hfsbi_idle_look(). */
HFSBI_FN void hfsbi_idle_end_request(const hfsb_request *r) {
    hfsbi_idle *idle = &r->conn->server->stop.idle;
    long long   now = hfsb_clock_ms();
    if (hfsbi_idle_counts(r) && idle->used < now) idle->used = now;
}

static bool hfsbi_idle_in_use(const hfsb_server *server) {
    const size_t      *jobs = server->group.jobs;
    hfsbi_server_part *part;
    const hfsbi_conn  *conn;
    if (jobs[HFSBI_JOB_WAITING] || jobs[HFSBI_JOB_RUNNING]) return true;
    for (conn = server->conns; conn; conn = conn->next)
        if (conn->request && hfsbi_idle_counts(conn->request)) return true;
    for (part = server->parts; part; part = part->next)
        if (part->needs && part->needs(part)) return true;
    return false;
}

static void hfsbi_idle_log(hfsb_server *server) {
    hfsb_server_event event = HFSB_INIT;
    char              text[96];
    if (!server->on_event) return;
    (void)snprintf(text, sizeof text,
                   "no request and no command for %lld s: the server stops",
                   server->stop.idle.max_ms / 1000);
    event.what = "idle";
    event.detail = hfsb_cstr(text);
    server->on_event(server->user, &event);
}

static void hfsbi_idle_look(hfsbi_timer *timer) {
    hfsb_server *server =
        (hfsb_server *)(void *)((char *)timer -
                                offsetof(hfsb_server, stop.idle.timer));
    hfsbi_idle *idle = &server->stop.idle;
    long long   now = hfsb_clock_ms(), look = HFSBI_IDLE_LOOK_MS;
    if (hfsbi_idle_in_use(server)) {
        idle->used = now + (look < idle->max_ms ? look : idle->max_ms);
        hfsbi_loop_timer(server->loop, timer, idle->used);
    } else if (now - idle->used < idle->max_ms) {
        hfsbi_loop_timer(server->loop, timer, idle->used + idle->max_ms);
    } else {
        hfsbi_idle_log(server);
        hfsb_server_stop(server);
    }
}

HFSBI_FN void hfsbi_server_set_idle(hfsb_server *server, long long max_ms) {
    hfsbi_idle *idle = &server->stop.idle;
    if (idle->max_ms > 0 || max_ms <= 0) return;
    idle->max_ms = max_ms;
    idle->used = hfsb_clock_ms();
    idle->timer.fn = hfsbi_idle_look;
    hfsbi_loop_timer(server->loop, &idle->timer, idle->used + max_ms);
}
