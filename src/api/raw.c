/* raw.c - /api/jobs/ID/raw: the output of a command as it came, with its
   colours, for people who watch.

     GET --> what is kept --> more as it comes --> the end of the command
                 |                    |
                 +-- the client goes, or the job is forgotten --> freed

   A command never waits for those who watch it. Output that a slow client has
   no room for is skipped except its last lines, and a line in brackets before
   these says how much: a watcher always sees the end. Other clients read the
   same command in other ways: see /api/jobs/ID/output. */
#include "api_private.h"

enum {
    HFSBI_RAW_TAKE = 16384,          /* bytes of one piece */
    HFSBI_RAW_BACKLOG = 1024 * 1024, /* most unsent bytes of one client */
    HFSBI_RAW_LAST = 32768,          /* of those skipped that are kept */
    HFSBI_RAW_LOOK_MS = 2000         /* interval of looks at the feed */
};

typedef struct hfsbi_raw {
    hfsbi_timer        timer; /* first: its function casts it back */
    hfsbi_feed_reader  reader;
    hfsbi_api         *api;
    hfsb_request      *request;
    unsigned long long missed; /* bytes that were skipped, to report, */
    hfsb_buf           last;   /* and those that follow, the newest */
} hfsbi_raw;

static void hfsbi_raw_free(hfsbi_raw *raw) {
    hfsbi_loop_timer_clear(raw->api->loop, &raw->timer);
    hfsbi_feed_detach(&raw->reader);
    hfsb_buf_free(&raw->last);
    hfsbi_array_free(&raw->api->alloc, raw, 1, sizeof *raw);
}

static void hfsbi_raw_gone(void *user, hfsb_request *request) {
    (void)request;
    hfsbi_raw_free((hfsbi_raw *)user);
}

/* Skips all of what is kept, or up to a new line within its last bytes. */
static void hfsbi_raw_drop(hfsbi_raw *raw, size_t keep) {
    hfsb_str kept = hfsb_buf_str(&raw->last), end;
    size_t   line, from = kept.len > keep ? kept.len - keep : 0;
    end = hfsb_str_slice(kept, from, kept.len);
    line = from ? hfsb_str_find_byte(end, '\n') : HFSB_NPOS;
    if (line != HFSB_NPOS) from += line + 1;
    raw->missed += from;
    if (from) memmove(raw->last.ptr, raw->last.ptr + from, kept.len - from);
    hfsb_buf_truncate(&raw->last, kept.len - from);
}

/* Keeps the newest of the bytes that do not fit now. */
static void hfsbi_raw_skip(hfsbi_raw *raw, hfsb_str bytes) {
    if (raw->last.len > 2 * HFSBI_RAW_LAST)
        hfsbi_raw_drop(raw, HFSBI_RAW_LAST);
    if (hfsb_buf_append(&raw->last, bytes) == HFSB_OK) return;
    hfsbi_raw_drop(raw, 0);
    hfsb_buf_free(&raw->last);
    raw->missed += bytes.len;
}

static void hfsbi_raw_report_missed(hfsbi_raw *raw) {
    char note[80];
    if (raw->missed) hfsbi_raw_drop(raw, HFSBI_RAW_LAST);
    if (raw->missed) {
        (void)snprintf(note, sizeof note, "\n[%llu bytes skipped]\n",
                       raw->missed);
        (void)hfsb_reply_write(raw->request, hfsb_cstr(note));
    }
    if (raw->last.len)
        (void)hfsb_reply_write(raw->request, hfsb_buf_str(&raw->last));
    raw->missed = 0;
    hfsb_buf_free(&raw->last);
}

/* The client has read all: what was kept for it need not wait for more. */
static void hfsbi_raw_drained(void *user, hfsb_request *request) {
    (void)request;
    hfsbi_raw_report_missed((hfsbi_raw *)user);
}

static void hfsbi_raw_end(hfsbi_raw *raw) {
    hfsbi_raw_report_missed(raw);
    hfsb_reply_end(raw->request);
    hfsbi_raw_free(raw);
}

/* Takes all that there is: a feed that is read slowly would hold the programs
   of other protocols. False when the stream has ended, and is freed. */
static bool hfsbi_raw_pump(hfsbi_raw *raw) {
    hfsbi_feed_event event;
    char             bytes[HFSBI_RAW_TAKE];
    while (hfsbi_feed_take(&raw->reader, bytes, sizeof bytes, &event)) {
        if (event.kind == HFSBI_FEED_EXITED) {
            hfsbi_raw_end(raw);
            return false;
        }
        if (event.gone_bytes) hfsbi_raw_drop(raw, 0);
        raw->missed += event.gone_bytes;
        if (hfsb_reply_waiting(raw->request) > HFSBI_RAW_BACKLOG) {
            hfsbi_raw_skip(raw, event.bytes);
        } else if (event.bytes.len) {
            hfsbi_raw_report_missed(raw);
            (void)hfsb_reply_write(raw->request, event.bytes);
        }
    }
    return true;
}

static void hfsbi_raw_news(void *user) {
    (void)hfsbi_raw_pump((hfsbi_raw *)user);
}

/* The job may have been forgotten, which nobody reports. */
static void hfsbi_raw_look(hfsbi_timer *timer) {
    hfsbi_raw *raw = (hfsbi_raw *)(void *)timer;
    if (!raw->reader.feed) hfsbi_raw_end(raw);
    else
        hfsbi_loop_timer(raw->api->loop, timer,
                         hfsb_clock_ms() + HFSBI_RAW_LOOK_MS);
}

static void hfsbi_raw_begin(hfsbi_raw *raw, hfsbi_feed *feed) {
    hfsb_request *request = raw->request;
    raw->timer.fn = hfsbi_raw_look;
    raw->reader.on_news = hfsbi_raw_news;
    raw->reader.user = raw;
    (void)hfsb_reply_field(request, "X-Accel-Buffering", HFSB_LIT("no"));
    (void)hfsb_reply_field(request, "Cache-Control", HFSB_LIT("no-store"));
    hfsb_request_on_gone(request, hfsbi_raw_gone, raw);
    hfsb_reply_on_drained(request, hfsbi_raw_drained, raw);
    hfsb_reply_begin(request, 200, "application/octet-stream");
    hfsbi_feed_attach(feed, &raw->reader, 0);
    if (hfsb_str_equal(hfsb_request_head(request)->method, HFSB_LIT("HEAD")))
        hfsbi_raw_end(raw);
    else if (hfsbi_raw_pump(raw)) hfsbi_raw_look(&raw->timer);
}

HFSBI_FN void hfsbi_raw_get(void *user, hfsb_request *request) {
    hfsbi_api  *api = (hfsbi_api *)user;
    hfsbi_raw  *raw = (hfsbi_raw *)hfsbi_array(&api->alloc, 1, sizeof *raw);
    hfsbi_feed *feed = NULL;
    hfsbi_job  *job;
    if (!raw) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return;
    }
    memset(raw, 0, sizeof *raw);
    raw->api = api;
    raw->request = request;
    raw->last.alloc = api->alloc;
    hfsbi_loop_lock(api->loop);
    job = hfsbi_jobs_find(api->tools, hfsb_request_part(request, 0));
    if (job) feed = job->feed ? job->feed : job->tap;
    if (feed) hfsbi_raw_begin(raw, feed);
    hfsbi_loop_unlock(api->loop);
    if (feed) return;
    hfsbi_array_free(&api->alloc, raw, 1, sizeof *raw);
    hfsb_reply_error(request, 404,
                     job ? "The output of this job is kept as text only: "
                           "/api/jobs/ID/output."
                         : "No such job.");
}
