/* e2b_watch.c - E2B's filesystem.Filesystem: watching directories.

   A watcher (watch.c) belongs to a stream, WatchDir, or waits to be asked by
   its id, GetWatcherEvents:

       OPENING (thread) --> READY <--> READING (thread) --> freed
                              \__ ended: by the client, the sandbox or the end
                                  of the directory; after the thread

   Changes become messages in a thread, since an event may contain the entry
   that has changed. A stream takes no changes while its client does not read:
   the watcher keeps some, and reports when it had to drop others. */
#include "dialect_private.h"

enum {
    HFSBI_E2B_WATCHERS = 64,   /* of a sandbox that streams have, and as many
                                that are polled by id */
    HFSBI_E2B_PROBE_MS = 1000, /* between keepalives to a client that may
                                     be gone */
    HFSBI_E2B_EVENTS = 128 << 10, /* bytes of messages made at once */
    HFSBI_E2B_POLLED = 1 << 20    /* bytes of one reply */
};

typedef enum hfsbi_e2b_watch_state {
    HFSBI_E2B_OPENING,
    HFSBI_E2B_READY,
    HFSBI_E2B_READING
} hfsbi_e2b_watch_state;

struct hfsbi_e2b_watcher {
    hfsbi_e2b_watcher    *next;
    hfsbi_e2b_box        *box;
    hfsbi_e2b_watch_state state;
    bool                  ended; /* free it as soon as no thread uses it */
    bool                  stream, recursive, entries;
    bool                  over, lost; /* the directory is gone; changes were
                                         lost */
    bool                  more;       /* there may be changes to take */
    bool                  news;       /* the same, since a thread reads */
    char                  id[20];
    hfsb_buf              path;
    hfsbi_folder_watch   *watch;
    hfsb_request         *request; /* of the stream, or of the one that asks */
    hfsbi_timer           beat, deadline;
    long long             every, until, sent, began;
    hfsb_buf              out; /* what a thread has written */
    hfsb_status           st;
    hfsb_err              err;
};

/* ---- life ---- */

/* No thread uses the root of the sandbox now. */
static void hfsbi_e2b_watcher_drop(void *user) {
    hfsbi_e2b_watcher *w = (hfsbi_e2b_watcher *)user;
    hfsb_alloc         alloc = w->path.alloc;
    hfsbi_guest_release(&w->box->guest);
    hfsb_buf_free(&w->path);
    hfsb_buf_free(&w->out);
    hfsbi_array_free(&alloc, w, 1, sizeof *w);
}

static void hfsbi_e2b_watcher_free(hfsbi_e2b_watcher *w) {
    hfsbi_e2b_watcher **link = &w->box->watchers;
    hfsbi_loop         *loop = w->box->guest.tools->loop;
    while (*link != w) link = &(*link)->next;
    *link = w->next;
    hfsbi_loop_timer_clear(loop, &w->beat);
    hfsbi_loop_timer_clear(loop, &w->deadline);
    if (w->watch) hfsbi_folder_watch_close(w->watch);
    else hfsbi_e2b_watcher_drop(w);
}

/* Ends a watcher; message: for the client of its stream (NULL: none). */
static void hfsbi_e2b_watcher_end(hfsbi_e2b_watcher *w,
                                  hfsbi_connect_code code,
                                  const char        *message) {
    if (w->stream && w->request && w->state != HFSBI_E2B_OPENING) {
        hfsb_request *request = w->request;
        w->request = NULL;
        hfsb_request_on_gone(request, NULL, NULL);
        hfsb_reply_on_drained(request, NULL, NULL);
        hfsbi_request_on_eof(request, NULL, NULL);
        hfsbi_e2b_end(request, code, message);
    }
    hfsbi_loop_timer_clear(w->box->guest.tools->loop, &w->beat);
    hfsbi_loop_timer_clear(w->box->guest.tools->loop, &w->deadline);
    w->ended = true;
    if (w->state == HFSBI_E2B_READY) hfsbi_e2b_watcher_free(w);
}

HFSBI_FN void hfsbi_e2b_end_watchers(hfsbi_e2b_box *box) {
    hfsbi_e2b_watcher *w, *next;
    hfsbi_loop_lock(box->guest.tools->loop);
    for (w = box->watchers; w; w = next) {
        next = w->next;
        hfsbi_e2b_watcher_end(w, HFSBI_CONNECT_UNAVAILABLE,
                              "The sandbox has ended.");
    }
    hfsbi_loop_unlock(box->guest.tools->loop);
}

static void hfsbi_e2b_watcher_gone(void *user, hfsb_request *request) {
    hfsbi_e2b_watcher *w = (hfsbi_e2b_watcher *)user;
    (void)request;
    w->request = NULL;
    hfsbi_e2b_watcher_end(w, HFSBI_CONNECT_UNKNOWN, NULL);
}

static void hfsbi_e2b_watcher_late(hfsbi_timer *timer) {
    hfsbi_e2b_watcher *w =
        (hfsbi_e2b_watcher *)(void *)((char *)timer -
                                      offsetof(hfsbi_e2b_watcher, deadline));
    hfsbi_e2b_watcher_end(w, HFSBI_CONNECT_DEADLINE_EXCEEDED,
                          "The timeout of the request has passed.");
}

static void hfsbi_e2b_watcher_beat(hfsbi_timer *timer) {
    hfsbi_e2b_watcher *w =
        (hfsbi_e2b_watcher *)(void *)((char *)timer -
                                      offsetof(hfsbi_e2b_watcher, beat));
    long long now = hfsb_clock_ms();
    if (now - w->sent >= w->every) {
        w->sent = now;
        (void)hfsbi_e2b_send(w->request, HFSB_LIT("{\"keepalive\":{}}"));
    }
    hfsbi_loop_timer(w->box->guest.tools->loop, timer, w->sent + w->every);
}

/* The client of a stream sends no more: bytes show whether it still reads, so
   that its stream does not count for long. */
static void hfsbi_e2b_watcher_eof(void *user, hfsb_request *request) {
    hfsbi_e2b_watcher *w = (hfsbi_e2b_watcher *)user;
    (void)request;
    if (w->every > HFSBI_E2B_PROBE_MS) w->every = HFSBI_E2B_PROBE_MS;
    w->sent = hfsb_clock_ms() - w->every;
    hfsbi_loop_timer(w->box->guest.tools->loop, &w->beat, w->sent);
}

/* ---- events, in a thread ---- */

/* Writes {"name":...,"type":...,"entry":...}. */
static void hfsbi_e2b_put_event(hfsbi_e2b_watcher *w, hfsb_json_writer *j,
                                const char *type, hfsb_str name, bool there) {
    hfsb_json_writer test;
    hfsb_buf         path = HFSB_INIT, entry = HFSB_INIT;
    hfsb_json_doc    doc = HFSB_INIT;
    path.alloc = entry.alloc = doc.alloc = w->path.alloc;
    hfsb_json_put_object(j);
    hfsb_json_put_member_str(j, "name", name);
    hfsb_json_put_member_str(j, "type", hfsb_cstr(type));
    if (w->entries && there &&
        hfsb_path_join(hfsb_buf_str(&w->path), name, &path) == HFSB_OK) {
        /* what has changed may be gone: then there is no entry */
        hfsb_json_writer_init_doc(&test, &doc);
        if (hfsbi_e2b_put_entry(&test, w->box, hfsb_buf_str(&path), NULL) ==
                HFSB_OK &&
            hfsb_json_writer_finish(&test, NULL) == HFSB_OK) {
            hfsb_json_put_key(j, HFSB_LIT("entry"));
            hfsb_json_put_value(j, doc.root);
        } else (void)hfsb_json_writer_finish(&test, NULL);
    }
    hfsb_json_put_end(j);
    hfsb_json_free(&doc);
    hfsb_buf_free(&path);
    hfsb_buf_free(&entry);
}

/* Appends an event as a message of a stream, or as an item of a list. */
static void hfsbi_e2b_add_event(hfsbi_e2b_watcher *w, const char *type,
                                hfsb_str name, bool there) {
    hfsb_json_writer j;
    size_t           at = w->out.len;
    char             head[HFSBI_CONNECT_HEAD];
    if (w->stream) hfsb_buf_append(&w->out, HFSB_LIT("12345"));
    else if (at) hfsb_buf_append_byte(&w->out, ',');
    if (w->stream) hfsb_buf_append(&w->out, HFSB_LIT("{\"filesystem\":"));
    hfsb_json_writer_init(&j, &w->out, NULL);
    hfsbi_e2b_put_event(w, &j, type, name, there);
    (void)hfsb_json_writer_finish(&j, NULL);
    if (!w->stream) return;
    hfsb_buf_append_byte(&w->out, '}');
    if (w->out.status == HFSB_OK &&
        hfsbi_connect_write_head(0, w->out.len - at - sizeof head, head))
        memcpy(w->out.ptr + at, head, sizeof head);
}

/* Adds a change; it may be two events. */
static void hfsbi_e2b_add_change(hfsbi_e2b_watcher  *w,
                                 const hfsbi_change *change) {
    switch (change->kind) {
    case HFSBI_CHANGE_CREATE:
        hfsbi_e2b_add_event(w, "EVENT_TYPE_CREATE", change->path, true);
        break;
    case HFSBI_CHANGE_WRITE:
        hfsbi_e2b_add_event(w, "EVENT_TYPE_WRITE", change->path, true);
        break;
    case HFSBI_CHANGE_REMOVE:
        hfsbi_e2b_add_event(w, "EVENT_TYPE_REMOVE", change->path, false);
        break;
    case HFSBI_CHANGE_RENAME:
        hfsbi_e2b_add_event(w, "EVENT_TYPE_RENAME", change->path, false);
        if (change->to.len)
            hfsbi_e2b_add_event(w, "EVENT_TYPE_CREATE", change->to, true);
        break;
    case HFSBI_CHANGE_CHMOD:
        hfsbi_e2b_add_event(w, "EVENT_TYPE_CHMOD", change->path, true);
        break;
    case HFSBI_CHANGE_OVERFLOW: w->lost = true; break;
    case HFSBI_CHANGE_END: w->over = true; break;
    }
}

static void hfsbi_e2b_watcher_read(void *user) {
    hfsbi_e2b_watcher *w = (hfsbi_e2b_watcher *)user;
    size_t             max = w->stream ? HFSBI_E2B_EVENTS : HFSBI_E2B_POLLED;
    hfsbi_change       change;
    while (w->out.len < max && !w->over && !w->lost &&
           w->out.status == HFSB_OK) {
        if (!hfsbi_folder_watch_next(w->watch, &change)) return;
        hfsbi_e2b_add_change(w, &change);
    }
    w->more = true;
}

/* ---- streams ---- */

static void hfsbi_e2b_watcher_pump(hfsbi_e2b_watcher *w);

static void hfsbi_e2b_watcher_sent(void *user, hfsb_request *request) {
    hfsbi_e2b_watcher *w = (hfsbi_e2b_watcher *)user;
    hfsb_status        st = w->out.status;
    w->state = HFSBI_E2B_READY;
    w->more = w->more || w->news;
    w->news = false;
    if (w->ended) { /* meanwhile */
        hfsbi_e2b_watcher_free(w);
        return;
    }
    if (w->out.len && st == HFSB_OK) {
        w->sent = hfsb_clock_ms();
        (void)hfsb_reply_write(request, hfsb_buf_str(&w->out));
    }
    hfsb_buf_truncate(&w->out, 0);
    if (st != HFSB_OK)
        hfsbi_e2b_watcher_end(w, HFSBI_CONNECT_UNAVAILABLE, "Out of memory.");
    else if (w->lost)
        hfsbi_e2b_watcher_end(w, HFSBI_CONNECT_INTERNAL,
                              "There were too many changes, and some were "
                              "lost: list the directory, and watch it "
                              "again.");
    else if (w->over) hfsbi_e2b_watcher_end(w, HFSBI_CONNECT_UNKNOWN, NULL);
    else hfsbi_e2b_watcher_pump(w);
}

/* Lets a thread take changes, unless the client must read first. */
static void hfsbi_e2b_watcher_pump(hfsbi_e2b_watcher *w) {
    if (w->state != HFSBI_E2B_READY || !w->more ||
        hfsb_reply_waiting(w->request) >= HFSBI_E2B_FULL)
        return;
    w->more = false;
    w->state = HFSBI_E2B_READING;
    hfsbi_request_work(w->request, &w->box->guest.tools->rights,
                       hfsbi_e2b_watcher_read, hfsbi_e2b_watcher_sent, w);
}

static void hfsbi_e2b_watcher_drained(void *user, hfsb_request *request) {
    (void)request;
    hfsbi_e2b_watcher_pump((hfsbi_e2b_watcher *)user);
}

/* There are changes. */
static void hfsbi_e2b_watcher_news(void *user) {
    hfsbi_e2b_watcher *w = (hfsbi_e2b_watcher *)user;
    if (!w->stream) return; /* until it is asked */
    if (w->state == HFSBI_E2B_READY) {
        w->more = true;
        hfsbi_e2b_watcher_pump(w);
    } else w->news = true;
}

static void hfsbi_e2b_watcher_begin(hfsbi_e2b_watcher *w) {
    hfsbi_loop *loop = w->box->guest.tools->loop;
    hfsb_request_on_gone(w->request, hfsbi_e2b_watcher_gone, w);
    hfsb_reply_begin(w->request, 200, "application/connect+json");
    hfsb_reply_on_drained(w->request, hfsbi_e2b_watcher_drained, w);
    hfsbi_request_on_eof(w->request, hfsbi_e2b_watcher_eof, w);
    (void)hfsbi_e2b_send(w->request, HFSB_LIT("{\"start\":{}}"));
    w->sent = hfsb_clock_ms();
    hfsbi_loop_timer(loop, &w->beat, w->sent + w->every);
    if (w->until) hfsbi_loop_timer(loop, &w->deadline, w->until);
    w->more = true;
    hfsbi_e2b_watcher_pump(w);
}

/* ---- WatchDir and CreateWatcher ---- */

static void hfsbi_e2b_watcher_open(void *user) {
    hfsbi_e2b_watcher      *w = (hfsbi_e2b_watcher *)user;
    hfsbi_folder_watch_opts opts = HFSB_INIT;
    opts.recursive = w->recursive;
    opts.rights = w->box->guest.tools->rights;
    opts.fn = hfsbi_e2b_watcher_news;
    opts.gone = hfsbi_e2b_watcher_drop;
    opts.user = w;
    w->st = hfsbi_folder_watch_open(w->box->guest.tools->place,
                                    hfsb_buf_str(&w->path), &opts, &w->watch,
                                    &w->err);
}

static void hfsbi_e2b_watcher_opened(void *user, hfsb_request *request) {
    hfsbi_e2b_watcher *w = (hfsbi_e2b_watcher *)user;
    char               text[64];
    if (w->st == HFSB_OK &&
        !hfsbi_folder_watch_start(w->watch, w->box->guest.tools->loop))
        w->st = hfsbi_fail_status(&w->err, HFSB_NOMEM, "Watching");
    if (w->st == HFSB_OK && w->ended)
        w->st = hfsbi_fail(&w->err, HFSB_BUSY, 0, "The sandbox has ended.");
    hfsbi_api_report(w->box->guest.tools, "watch", hfsb_buf_str(&w->path), "",
                     hfsb_cstr(w->st == HFSB_OK ? "" : w->err.msg), w->began,
                     0);
    w->state = HFSBI_E2B_READY;
    if (w->st != HFSB_OK || hfsbi_request_is_gone(request)) {
        if (w->st != HFSB_OK)
            hfsbi_e2b_fail(request, hfsbi_e2b_code(w->st), "%s", w->err.msg);
        hfsbi_e2b_watcher_free(w);
    } else if (w->stream) hfsbi_e2b_watcher_begin(w);
    else {
        w->request = NULL;
        (void)snprintf(text, sizeof text, "{\"watcherId\":\"%s\"}", w->id);
        hfsb_reply(request, 200, "application/json", hfsb_cstr(text));
    }
}

static bool hfsbi_e2b_may_watch(const hfsbi_e2b_box *box, bool stream) {
    const hfsbi_e2b_watcher *w = box->watchers;
    size_t                   n = 0;
    for (; w; w = w->next) n += w->stream == stream;
    return n < HFSBI_E2B_WATCHERS;
}

/* Makes a watcher from a message; NULL without memory. */
static hfsbi_e2b_watcher *hfsbi_e2b_watcher_new(const hfsbi_e2b_ask *ask,
                                                hfsb_request        *request,
                                                bool                 stream) {
    hfsbi_e2b_watcher *w =
        (hfsbi_e2b_watcher *)hfsbi_array(&ask->doc.alloc, 1, sizeof *w);
    long long ms = hfsbi_e2b_field(request, "connect-timeout-ms", 0);
    if (!w) return NULL;
    memset(w, 0, sizeof *w);
    w->box = ask->box;
    w->request = request;
    w->stream = stream;
    w->path.alloc = w->out.alloc = ask->doc.alloc;
    w->recursive =
        hfsb_json_bool(hfsb_json_get(ask->doc.root, "recursive"), false);
    w->entries = hfsb_json_bool(
        hfsbi_e2b_get(ask->doc.root, "includeEntry", "include_entry"), false);
    w->began = hfsb_clock_ms();
    w->every = hfsbi_e2b_beat_ms(request);
    if (ms > 0) w->until = w->began + ms;
    w->beat.fn = hfsbi_e2b_watcher_beat;
    w->deadline.fn = hfsbi_e2b_watcher_late;
    (void)hfsbi_random_hex(w->id, 16);
    w->next = w->box->watchers;
    w->box->watchers = w;
    hfsbi_guest_hold(&w->box->guest);
    if (hfsbi_e2b_path(w->box, hfsbi_json_get_str(ask->doc.root, "path"),
                       &w->path))
        return w;
    w->state = HFSBI_E2B_READY;
    hfsbi_e2b_watcher_free(w);
    return NULL;
}

static void hfsbi_e2b_watcher_start(void *user, hfsb_request *request,
                                    bool stream) {
    hfsbi_e2b_ask      ask;
    hfsbi_e2b_watcher *w = NULL;
    if (!hfsbi_e2b_ask_open((hfsbi_e2b *)user, request, stream, &ask)) return;
    if (!hfsbi_e2b_may_watch(ask.box, stream))
        hfsbi_e2b_fail(request, HFSBI_CONNECT_RESOURCE_EXHAUSTED, "%s",
                       stream
                           ? "There are too many streams of changes: end some."
                           : "There are too many watchers: remove some.");
    else {
        w = hfsbi_e2b_watcher_new(&ask, request, stream);
        if (!w)
            hfsbi_e2b_fail(request, HFSBI_CONNECT_UNAVAILABLE,
                           "Out of memory.");
    }
    hfsb_json_free(&ask.doc);
    if (w)
        hfsbi_request_work(request, &w->box->guest.tools->rights,
                           hfsbi_e2b_watcher_open, hfsbi_e2b_watcher_opened,
                           w);
}

static void hfsbi_e2b_watch_dir(void *user, hfsb_request *request) {
    hfsbi_e2b_watcher_start(user, request, true);
}

static void hfsbi_e2b_create_watcher(void *user, hfsb_request *request) {
    hfsbi_e2b_watcher_start(user, request, false);
}

/* ---- GetWatcherEvents and RemoveWatcher ---- */

/* Finds the watcher of a request; NULL after an error reply. */
static hfsbi_e2b_watcher *hfsbi_e2b_watcher_find(void         *user,
                                                 hfsb_request *request) {
    hfsbi_e2b_ask      ask;
    hfsbi_e2b_watcher *w;
    hfsb_str           id;
    if (!hfsbi_e2b_ask_open((hfsbi_e2b *)user, request, false, &ask))
        return NULL;
    id = hfsb_json_str(hfsbi_e2b_get(ask.doc.root, "watcherId", "watcher_id"),
                       HFSB_LIT(""));
    for (w = ask.box->watchers; w; w = w->next)
        if (!w->stream && !w->ended && w->state != HFSBI_E2B_OPENING &&
            hfsb_str_equal(hfsb_cstr(w->id), id))
            break;
    hfsb_json_free(&ask.doc);
    if (!w)
        hfsbi_e2b_fail(request, HFSBI_CONNECT_NOT_FOUND,
                       "There is no watcher with this id.");
    return w;
}

static void hfsbi_e2b_watcher_told(void *user, hfsb_request *request) {
    hfsbi_e2b_watcher *w = (hfsbi_e2b_watcher *)user;
    hfsb_buf           out = HFSB_INIT;
    bool               lost = w->lost;
    out.alloc = w->out.alloc;
    hfsb_buf_append(&out, HFSB_LIT("{\"events\":["));
    hfsb_buf_append(&out, hfsb_buf_str(&w->out));
    hfsb_buf_append(&out, HFSB_LIT("]}"));
    if (w->out.status != HFSB_OK || out.status != HFSB_OK)
        hfsbi_e2b_fail(request, HFSBI_CONNECT_UNAVAILABLE, "Out of memory.");
    else if (lost && !w->out.len)
        hfsbi_e2b_fail(request, HFSBI_CONNECT_INTERNAL,
                       "There were too many changes, and some were lost: list "
                       "the directory.");
    else hfsbi_reply_take(request, 200, "application/json", &out);
    if (lost && !w->out.len) w->lost = false; /* it was reported */
    hfsb_buf_free(&out);
    hfsb_buf_free(&w->out);
    w->state = HFSBI_E2B_READY;
    if (w->ended) hfsbi_e2b_watcher_free(w);
}

static void hfsbi_e2b_get_events(void *user, hfsb_request *request) {
    hfsbi_e2b_watcher *w = hfsbi_e2b_watcher_find(user, request);
    if (!w) return;
    if (w->state != HFSBI_E2B_READY) {
        hfsbi_e2b_fail(request, HFSBI_CONNECT_UNAVAILABLE,
                       "Another request asks this watcher: try again.");
        return;
    }
    w->state = HFSBI_E2B_READING;
    hfsbi_request_work(request, &w->box->guest.tools->rights,
                       hfsbi_e2b_watcher_read, hfsbi_e2b_watcher_told, w);
}

static void hfsbi_e2b_remove_watcher(void *user, hfsb_request *request) {
    hfsbi_e2b_watcher *w = hfsbi_e2b_watcher_find(user, request);
    if (!w) return;
    hfsbi_e2b_watcher_end(w, HFSBI_CONNECT_UNKNOWN, NULL);
    hfsbi_e2b_reply_empty(request);
}

HFSBI_FN hfsb_status hfsbi_e2b_add_watch(hfsbi_e2b *e2b, hfsb_err *err) {
#define HFSBI_E2B_ROUTE(name, fn) \
    { "POST", "/filesystem.Filesystem/" name, fn, false, NULL, NULL }
    static const hfsbi_dialect_route routes[] = {
        HFSBI_E2B_ROUTE("WatchDir", hfsbi_e2b_watch_dir),
        HFSBI_E2B_ROUTE("CreateWatcher", hfsbi_e2b_create_watcher),
        HFSBI_E2B_ROUTE("GetWatcherEvents", hfsbi_e2b_get_events),
        HFSBI_E2B_ROUTE("RemoveWatcher", hfsbi_e2b_remove_watcher),
        {NULL, NULL, NULL, false, NULL, NULL}};
#undef HFSBI_E2B_ROUTE
    return hfsbi_dialect_add(&e2b->dialect, routes, err);
}
