/* feed.c - the raw output of one process as numbered events.

   A feed keeps the newest events in a ring of bounded size, and readers take
   them at their own pace:

       write --> [ oldest ... | 17 stdout | 18 stderr ] exited closed
                                 ^ reader              ^ reader

   Each event of the ring is a header, its kind and length, and its bytes. Its
   number is not stored: it follows from its place. The exit and the close are
   the last two events; they need no room, so they stay readable for ever.

   Events that an attached reader has not taken are not dropped. When they fill
   the feed, it asks its owner to hold the process, and when half of them have
   been taken, to release it. There is some more room for output that is on its
   way when the owner is asked. Without readers the oldest events are dropped.

   An attached reader loses events only if its owner does not hold the process
   or memory runs out; like one that attaches too late, it then gets a GAP. */
#include "proc_private.h"

enum {
    HFSBI_FEED_HEAD = 4,         /* bytes of a header */
    HFSBI_FEED_LEAST = 256,      /* bytes that a feed keeps at least */
    HFSBI_FEED_FIRST = 4096,     /* bytes of the first ring */
    HFSBI_FEED_SLACK = 128 << 10 /* bytes beyond max, for data in flight */
};

/* ---- the ring ---- */

static size_t hfsbi_feed_used(const hfsbi_feed *feed) {
    return (size_t)(feed->end - feed->start);
}

/* Copies n bytes from an offset of the output. */
static void hfsbi_feed_get(const hfsbi_feed *feed, unsigned long long at,
                           char *out, size_t n) {
    size_t from = (feed->head + (size_t)(at - feed->start)) % feed->cap;
    size_t part = feed->cap - from < n ? feed->cap - from : n;
    if (part) memcpy(out, feed->ring + from, part);
    if (n > part) memcpy(out + part, feed->ring, n - part);
}

/* Appends n bytes, for which there is room. */
static void hfsbi_feed_put(hfsbi_feed *feed, const char *bytes, size_t n) {
    size_t to = (feed->head + hfsbi_feed_used(feed)) % feed->cap;
    size_t part = feed->cap - to < n ? feed->cap - to : n;
    if (part) memcpy(feed->ring + to, bytes, part);
    if (n > part) memcpy(feed->ring, bytes + part, n - part);
    feed->end += n;
}

/* Reads the header at an offset; returns the length of the event. */
static size_t hfsbi_feed_head(const hfsbi_feed *feed, unsigned long long at,
                              hfsbi_feed_kind *kind) {
    unsigned word;
    char     bytes[HFSBI_FEED_HEAD];
    hfsbi_feed_get(feed, at, bytes, sizeof bytes);
    memcpy(&word, bytes, sizeof word);
    *kind = (hfsbi_feed_kind)(word & 3u);
    return word >> 2;
}

/* Makes the ring hold n bytes. False when out of memory. */
static bool hfsbi_feed_grow(hfsbi_feed *feed, size_t n) {
    size_t used = hfsbi_feed_used(feed), most = feed->max + HFSBI_FEED_SLACK;
    size_t cap = feed->cap ? feed->cap * 2 : (size_t)HFSBI_FEED_FIRST;
    char  *ring;
    if (n <= feed->cap) return true;
    if (cap > most) cap = most;
    if (cap < n) cap = n;
    ring = (char *)hfsbi_array(&feed->alloc, cap, 1);
    if (!ring) return false;
    if (used) hfsbi_feed_get(feed, feed->start, ring, used);
    hfsbi_array_free(&feed->alloc, feed->ring, feed->cap, 1);
    feed->ring = ring;
    feed->cap = cap;
    feed->head = 0;
    return true;
}

/* Makes readers that have reached the event `seq` lose it. */
static void hfsbi_feed_skip(hfsbi_feed *feed, unsigned long long seq,
                            size_t len, size_t size) {
    hfsbi_feed_reader *r;
    for (r = feed->readers; r; r = r->next) {
        if (r->seq != seq) continue;
        r->gone_events++;
        r->gone_bytes += len - r->done;
        r->seq++;
        r->at += size;
        r->done = 0;
    }
    feed->dropped += len;
}

/* Drops the oldest event. */
static void hfsbi_feed_drop(hfsbi_feed *feed) {
    hfsbi_feed_kind kind;
    size_t          len = hfsbi_feed_head(feed, feed->start, &kind);
    hfsbi_feed_skip(feed, feed->first, len, HFSBI_FEED_HEAD + len);
    feed->head = (feed->head + HFSBI_FEED_HEAD + len) % feed->cap;
    feed->start += HFSBI_FEED_HEAD + len;
    feed->first++;
}

/* True when every attached reader has taken the oldest event. */
static bool hfsbi_feed_may_drop(const hfsbi_feed *feed) {
    const hfsbi_feed_reader *r;
    if (feed->start == feed->end) return false;
    for (r = feed->readers; r; r = r->next)
        if (r->seq == feed->first) return false;
    return true;
}

/* Makes room for an event of this size. False when out of memory; then the
   ring is empty. */
static bool hfsbi_feed_make_room(hfsbi_feed *feed, size_t size) {
    while (hfsbi_feed_used(feed) + size > feed->max &&
           hfsbi_feed_may_drop(feed))
        hfsbi_feed_drop(feed);
    while (hfsbi_feed_used(feed) + size > feed->max + HFSBI_FEED_SLACK)
        hfsbi_feed_drop(feed);
    if (hfsbi_feed_grow(feed, hfsbi_feed_used(feed) + size)) return true;
    while (feed->start < feed->end && hfsbi_feed_used(feed) + size > feed->cap)
        hfsbi_feed_drop(feed);
    return size <= feed->cap;
}

/* ---- calling the owner and the readers ---- */

/* Bytes that the slowest reader has not taken. */
static size_t hfsbi_feed_unread(const hfsbi_feed *feed) {
    const hfsbi_feed_reader *r;
    size_t                   most = 0;
    for (r = feed->readers; r; r = r->next)
        if ((size_t)(feed->end - r->at) > most)
            most = (size_t)(feed->end - r->at);
    return most;
}

static void hfsbi_feed_balance(hfsbi_feed *feed) {
    size_t unread = hfsbi_feed_unread(feed);
    bool hold = unread >= feed->max || (feed->held && unread > feed->max / 2);
    if (feed->ended) hold = false;
    if (hold == feed->held) return;
    feed->held = hold;
    if (feed->on_hold) feed->on_hold(feed->user, hold);
}

/* Notifies the readers, which may take events, attach and detach meanwhile. */
static void hfsbi_feed_tell(hfsbi_feed *feed) {
    hfsbi_feed_reader *r;
    for (r = feed->readers; r; r = r->next) r->news = true;
    r = feed->readers;
    while (r) {
        if (!r->news || r->told || !r->on_news) {
            r->news = false;
            r = r->next;
            continue;
        }
        r->news = false;
        r->told = true;
        r->on_news(r->user);
        r = feed->readers;
    }
}

/* ---- the owner ---- */

HFSBI_FN void hfsbi_feed_init(hfsbi_feed *feed, size_t max,
                              void (*on_hold)(void *user, bool hold),
                              void *user, const hfsb_alloc *alloc) {
    const size_t most = (size_t)1 << 30;
    memset(feed, 0, sizeof *feed);
    feed->alloc = *alloc;
    feed->max = max ? max : (size_t)1 << 20;
    if (feed->max < HFSBI_FEED_LEAST) feed->max = HFSBI_FEED_LEAST;
    if (feed->max > most) feed->max = most;
    feed->first = feed->next = 1;
    feed->on_hold = on_hold;
    feed->user = user;
}

HFSBI_FN void hfsbi_feed_free(hfsbi_feed *feed) {
    feed->on_hold = NULL;
    while (feed->readers) hfsbi_feed_detach(feed->readers);
    while (feed->start < feed->end) hfsbi_feed_drop(feed); /* counts them */
    hfsbi_array_free(&feed->alloc, feed->ring, feed->cap, 1);
    feed->ring = NULL;
    feed->cap = 0;
}

HFSBI_FN void hfsbi_feed_write(hfsbi_feed *feed, hfsbi_feed_kind kind,
                               hfsb_str bytes) {
    size_t most = feed->max / 4;
    if (most > HFSBI_FEED_EVENT) most = HFSBI_FEED_EVENT;
    if (feed->ended || bytes.len == 0) return;
    while (bytes.len) {
        size_t   len = bytes.len < most ? bytes.len : most;
        unsigned word = (unsigned)len << 2 | (unsigned)kind;
        char     head[HFSBI_FEED_HEAD];
        if (hfsbi_feed_make_room(feed, HFSBI_FEED_HEAD + len)) {
            memcpy(head, &word, sizeof head);
            hfsbi_feed_put(feed, head, sizeof head);
            hfsbi_feed_put(feed, bytes.ptr, len);
        } else {
            hfsbi_feed_skip(feed, feed->next, len, 0);
            feed->first++;
        }
        feed->next++;
        bytes = hfsb_str_slice(bytes, len, bytes.len);
    }
    hfsbi_feed_balance(feed);
    hfsbi_feed_tell(feed);
}

HFSBI_FN void hfsbi_feed_end(hfsbi_feed *feed, hfsb_proc_end end,
                             int exit_code, int signal) {
    if (feed->ended) return;
    feed->ended = true;
    feed->exit.end = end;
    feed->exit.exit_code = exit_code;
    feed->exit.signal = signal;
    hfsbi_feed_balance(feed);
    hfsbi_feed_tell(feed);
}

/* ---- readers ---- */

/* Adds bytes to the incomplete character at the end of a stream. */
static void hfsbi_feed_add_tail(hfsbi_feed_tail *tail, const char *bytes,
                                size_t n) {
    char   both[6];
    size_t open, len = tail->len;
    if (len) memcpy(both, tail->bytes, len);
    memcpy(both + len, bytes, n);
    open = hfsbi_utf8_open(hfsb_str_make(both, len + n));
    memcpy(tail->bytes, both + len + n - open, open);
    tail->len = open;
}

/* Moves the reader from the oldest event to event `seq`, and records
   incomplete characters on the way. */
static void hfsbi_feed_seek(hfsbi_feed_reader *r, unsigned long long seq) {
    const hfsbi_feed *feed = r->feed;
    while (r->seq < seq && r->at < feed->end) {
        hfsbi_feed_kind kind;
        size_t          len = hfsbi_feed_head(feed, r->at, &kind), n;
        char            last[3];
        n = len < sizeof last ? len : sizeof last;
        if (r->text) {
            hfsbi_feed_get(feed, r->at + HFSBI_FEED_HEAD + len - n, last, n);
            if (n == sizeof last) r->tail[kind - 1].len = 0;
            hfsbi_feed_add_tail(&r->tail[kind - 1], last, n);
        }
        r->at += HFSBI_FEED_HEAD + len;
        r->seq++;
    }
}

HFSBI_FN void hfsbi_feed_attach(hfsbi_feed *feed, hfsbi_feed_reader *r,
                                unsigned long long from) {
    unsigned long long last = feed->next + (feed->ended ? 2 : 0);
    if (from == 0) from = 1;
    if (from == HFSBI_FEED_NOW || from > last) from = feed->next;
    r->feed = feed;
    r->seq = feed->first;
    r->at = feed->start;
    r->done = 0;
    r->gone_events = r->gone_bytes = 0;
    r->told = r->news = false;
    memset(r->tail, 0, sizeof r->tail);
    r->next = feed->readers;
    feed->readers = r;
    if (from < feed->first) {
        r->gone_events = feed->first - from;
        r->gone_bytes = feed->dropped;
    } else if (from >= feed->next && (feed->ended || !r->text)) {
        r->at = feed->end;
        r->seq = from;
    } else {
        hfsbi_feed_seek(r, from);
    }
    hfsbi_feed_balance(feed);
}

HFSBI_FN void hfsbi_feed_detach(hfsbi_feed_reader *r) {
    hfsbi_feed         *feed = r->feed;
    hfsbi_feed_reader **link;
    if (!feed) return;
    for (link = &feed->readers; *link != r;) link = &(*link)->next;
    *link = r->next;
    r->feed = NULL;
    hfsbi_feed_balance(feed);
}

/* Takes an incomplete character that will not be completed. */
static bool hfsbi_feed_take_tail(hfsbi_feed_reader *r, char *out,
                                 hfsbi_feed_event *event) {
    size_t i;
    for (i = 0; i < sizeof r->tail / sizeof *r->tail; i++) {
        size_t len = r->tail[i].len;
        if (len == 0) continue;
        memcpy(out, r->tail[i].bytes, len);
        r->tail[i].len = 0;
        event->kind = (hfsbi_feed_kind)(i + 1);
        event->seq = r->seq - 1 - r->gone_events;
        event->bytes = hfsb_str_make(out, len);
        return true;
    }
    return false;
}

/* Takes bytes of the next event. False when there are none for a reader of
   text: its bytes belong to an incomplete character. */
static bool hfsbi_feed_take_bytes(hfsbi_feed_reader *r, char *out, size_t n,
                                  hfsbi_feed_event *event) {
    hfsbi_feed_tail *tail;
    size_t           len = hfsbi_feed_head(r->feed, r->at, &event->kind);
    size_t           kept, part = len - r->done, open = 0;
    tail = &r->tail[event->kind - 1];
    kept = tail->len;
    if (part > n - kept) part = n - kept;
    if (kept) memcpy(out, tail->bytes, kept);
    hfsbi_feed_get(r->feed, r->at + HFSBI_FEED_HEAD + r->done, out + kept,
                   part);
    tail->len = 0;
    if (r->text) open = hfsbi_utf8_open(hfsb_str_make(out, kept + part));
    event->seq = r->seq;
    event->bytes = hfsb_str_make(out, kept + part - open);
    event->more = r->done + part < len;
    if (event->more) { /* the bytes cut off are taken again */
        r->done += part - open;
        return true;
    }
    memcpy(tail->bytes, out + event->bytes.len, open);
    tail->len = open;
    r->done = 0;
    r->at += HFSBI_FEED_HEAD + len;
    r->seq++;
    return event->bytes.len > 0;
}

static void hfsbi_feed_take_gap(hfsbi_feed_reader *r,
                                hfsbi_feed_event  *event) {
    event->kind = HFSBI_FEED_GAP;
    event->seq = r->seq;
    event->gone_events = r->gone_events;
    event->gone_bytes = r->gone_bytes;
    r->gone_events = r->gone_bytes = 0;
}

/* Takes the last two events. */
static void hfsbi_feed_take_end(hfsbi_feed_reader *r,
                                hfsbi_feed_event  *event) {
    unsigned long long exited = r->feed->next;
    if (r->seq > exited + 1) return;
    event->kind = r->seq == exited ? HFSBI_FEED_EXITED : HFSBI_FEED_CLOSED;
    event->seq = r->seq++;
    event->exit = r->feed->exit;
}

HFSBI_FN bool hfsbi_feed_take(hfsbi_feed_reader *r, char *out, size_t n,
                              hfsbi_feed_event *event) {
    hfsbi_feed *feed = r->feed;
    bool        taken = false;
    memset(event, 0, sizeof *event);
    r->told = false;
    if (!feed) return false;
    HFSB_ASSERT(n >= HFSBI_FEED_TAKE);
    while (!taken && !r->gone_events && r->seq < feed->next)
        taken = hfsbi_feed_take_bytes(r, out, n, event);
    if (!taken) {
        memset(event, 0, sizeof *event);
        if (!r->gone_events && !feed->ended) taken = true; /* nothing yet */
        else taken = hfsbi_feed_take_tail(r, out, event);
    }
    if (!taken && r->gone_events) hfsbi_feed_take_gap(r, event);
    else if (!taken) hfsbi_feed_take_end(r, event);
    hfsbi_feed_balance(feed);
    return event->kind != HFSBI_FEED_NONE;
}
