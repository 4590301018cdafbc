/* test_feed.c - the raw output of a process as numbered events: what readers
   take, lose and wait for. */
#include "../support/t_loop.h"
#include "../support/t_proc.h"

static hfsb_alloc plain;

typedef struct owner {
    hfsbi_feed feed;
    bool       held;
    size_t     holds, releases;
} owner;

static void on_hold(void *user, bool hold) {
    owner *o = (owner *)user;
    T_CHECK(o->held != hold);
    o->held = hold;
    if (hold) o->holds++;
    else o->releases++;
}

static void begin(owner *o, size_t max) {
    memset(o, 0, sizeof *o);
    hfsbi_feed_init(&o->feed, max, on_hold, o, &plain);
}

static void out(owner *o, const char *text) {
    hfsb_str s = t_exact(text, strlen(text));
    hfsbi_feed_write(&o->feed, HFSBI_FEED_STDOUT, s);
    t_drop(s);
}

static void err_out(owner *o, const char *text) {
    hfsbi_feed_write(&o->feed, HFSBI_FEED_STDERR, hfsb_cstr(text));
}

static hfsbi_feed_reader *reader(owner *o, unsigned long long from,
                                 bool text) {
    hfsbi_feed_reader *r = (hfsbi_feed_reader *)calloc(1, sizeof *r);
    if (!r) abort();
    r->text = text;
    hfsbi_feed_attach(&o->feed, r, from);
    return r;
}

static void drop(hfsbi_feed_reader *r) {
    hfsbi_feed_detach(r);
    hfsbi_feed_detach(r); /* quiet */
    free(r);
}

/* What take gives, as text: "1o:abc 2e:d+ gap(3,12)4 5x:3/0 6c". */
static const char *taken(hfsbi_feed_reader *r, size_t n, size_t times) {
    static char      text[4096];
    char            *piece = (char *)malloc(n), *at = text;
    hfsbi_feed_event e;
    if (!piece) abort();
    *at = '\0';
    while (times-- > 0 && hfsbi_feed_take(r, piece, n, &e)) {
        size_t left = sizeof text - (size_t)(at - text);
        T_CHECK(e.bytes.len <= n);
        if (at > text) *at++ = ' ';
        if (e.kind == HFSBI_FEED_GAP)
            at += snprintf(at, left, "gap(%llu,%llu)%llu", e.gone_events,
                           e.gone_bytes, e.seq);
        else if (e.kind == HFSBI_FEED_EXITED)
            at += snprintf(at, left, "%llux:%d/%d", e.seq, e.exit.exit_code,
                           e.exit.signal);
        else if (e.kind == HFSBI_FEED_CLOSED)
            at += snprintf(at, left, "%lluc", e.seq);
        else
            at += snprintf(at, left, "%llu%c:%.*s%s", e.seq, "?oep"[e.kind],
                           (int)e.bytes.len, e.bytes.ptr, e.more ? "+" : "");
    }
    free(piece);
    return text;
}

#define TAKES_SOME(r, n, times, want)                  \
    do {                                               \
        hfsb_str got_ = hfsb_cstr(taken(r, n, times)); \
        T_STR(got_, want);                             \
    } while (0)
#define TAKES(r, n, want) TAKES_SOME(r, n, 100, want)

static void events_are_numbered_across_streams(void) {
    owner              o;
    hfsbi_feed_reader *r;
    begin(&o, 0);
    r = reader(&o, 0, false);
    TAKES(r, 64, "");
    out(&o, "one");
    err_out(&o, "two");
    out(&o, "");
    hfsbi_feed_write(&o.feed, HFSBI_FEED_PTY, HFSB_LIT("three"));
    TAKES(r, 64, "1o:one 2e:two 3p:three");
    TAKES(r, 64, "");
    hfsbi_feed_end(&o.feed, HFSB_PROC_EXITED, 3, 0);
    out(&o, "ignored after the end");
    hfsbi_feed_end(&o.feed, HFSB_PROC_EXITED, 4, 0);
    TAKES(r, 64, "4x:3/0 5c");
    TAKES(r, 64, "");
    drop(r);
    hfsbi_feed_free(&o.feed);
}

static void readers_attach_anywhere(void) {
    owner              o;
    hfsbi_feed_reader *r;
    begin(&o, 0);
    out(&o, "a");
    out(&o, "b");
    out(&o, "c");
    r = reader(&o, 0, false);
    TAKES(r, 64, "1o:a 2o:b 3o:c");
    drop(r);
    r = reader(&o, 2, false);
    TAKES(r, 64, "2o:b 3o:c");
    drop(r);
    r = reader(&o, 77, false); /* still to come */
    drop(r);
    r = reader(&o, HFSBI_FEED_NOW, false);
    TAKES(r, 64, "");
    out(&o, "d");
    TAKES(r, 64, "4o:d");
    drop(r);
    hfsbi_feed_free(&o.feed);
}

static void the_exit_stays_readable(void) {
    owner              o;
    hfsbi_feed_reader *r;
    begin(&o, 300);
    out(&o, "a");
    hfsbi_feed_end(&o.feed, HFSB_PROC_SIGNALED, 0, 9);
    r = reader(&o, 0, false);
    TAKES(r, 64, "1o:a 2x:0/9 3c");
    drop(r);
    r = reader(&o, HFSBI_FEED_NOW, false);
    TAKES(r, 64, "2x:0/9 3c");
    drop(r);
    r = reader(&o, 3, false);
    TAKES(r, 64, "3c");
    drop(r);
    r = reader(&o, 4, true);
    TAKES(r, 64, "");
    drop(r);
    hfsbi_feed_free(&o.feed);
}

static void a_large_event_comes_in_parts(void) {
    owner              o;
    hfsbi_feed_reader *r;
    begin(&o, 0);
    out(&o, "abcdefghij");
    out(&o, "k");
    r = reader(&o, 0, false);
    TAKES(r, 4, "1o:abcd+ 1o:efgh+ 1o:ij 2o:k");
    drop(r);
    hfsbi_feed_free(&o.feed);
}

static void without_readers_the_oldest_events_go(void) {
    owner              o;
    hfsbi_feed_reader *r;
    char               text[61];
    int                i;
    memset(text, 'x', 60);
    text[60] = '\0';
    begin(&o, 256);
    for (i = 0; i < 10; i++) out(&o, text); /* four of them fit */
    T_CHECK(o.holds == 0 && o.feed.cap <= 4096);
    r = reader(&o, 0, false);
    TAKES(r, 4,
          "gap(6,360)7"
          " 7o:xxxx+ 7o:xxxx+ 7o:xxxx+ 7o:xxxx+ 7o:xxxx+ 7o:xxxx+"
          " 7o:xxxx+ 7o:xxxx+ 7o:xxxx+ 7o:xxxx+ 7o:xxxx+ 7o:xxxx+"
          " 7o:xxxx+ 7o:xxxx+ 7o:xxxx"
          " 8o:xxxx+ 8o:xxxx+ 8o:xxxx+ 8o:xxxx+ 8o:xxxx+ 8o:xxxx+"
          " 8o:xxxx+ 8o:xxxx+ 8o:xxxx+ 8o:xxxx+ 8o:xxxx+ 8o:xxxx+"
          " 8o:xxxx+ 8o:xxxx+ 8o:xxxx"
          " 9o:xxxx+ 9o:xxxx+ 9o:xxxx+ 9o:xxxx+ 9o:xxxx+ 9o:xxxx+"
          " 9o:xxxx+ 9o:xxxx+ 9o:xxxx+ 9o:xxxx+ 9o:xxxx+ 9o:xxxx+"
          " 9o:xxxx+ 9o:xxxx+ 9o:xxxx"
          " 10o:xxxx+ 10o:xxxx+ 10o:xxxx+ 10o:xxxx+ 10o:xxxx+ 10o:xxxx+"
          " 10o:xxxx+ 10o:xxxx+ 10o:xxxx+ 10o:xxxx+ 10o:xxxx+ 10o:xxxx+"
          " 10o:xxxx+ 10o:xxxx+ 10o:xxxx");
    drop(r);
    r = reader(&o, 9, false);
    TAKES_SOME(r, 4, 1, "9o:xxxx+");
    drop(r);
    r = reader(&o, 5, false); /* gone, but at most so many bytes */
    TAKES_SOME(r, 4, 1, "gap(2,360)7");
    drop(r);
    hfsbi_feed_free(&o.feed);
}

static void a_slow_reader_holds_the_process(void) {
    owner              o;
    hfsbi_feed_reader *slow, *quick;
    char               text[61];
    int                i;
    memset(text, 'x', 60);
    text[60] = '\0';
    begin(&o, 640);
    slow = reader(&o, 0, false);
    quick = reader(&o, 0, false);
    for (i = 0; !o.held && i < 100; i++) {
        out(&o, text);
        (void)taken(quick, 64, 100);
    }
    T_CHECK(i == 10 && o.holds == 1);
    for (i = 0; i < 20; i++) out(&o, text); /* what was on its way */
    (void)taken(quick, 64, 100);
    (void)taken(slow, 64, 24);
    T_CHECK(o.held && o.releases == 0);
    (void)taken(slow, 64, 1);
    T_CHECK(!o.held && o.releases == 1);
    T_CHECK(memcmp(taken(slow, 64, 1), "26o:", 4) == 0);
    for (i = 0; i < 6; i++) out(&o, text);
    T_CHECK(o.held);
    hfsbi_feed_detach(slow);
    T_CHECK(o.held); /* the other one is slow now */
    drop(quick);
    T_CHECK(!o.held && o.releases == 2);
    hfsbi_feed_attach(&o.feed, slow, 1);
    T_CHECK(memcmp(taken(slow, 64, 1), "gap(26,", 7) == 0 && o.held);
    (void)taken(slow, 64, 100);
    T_CHECK(!o.held && o.releases == 3);
    drop(slow);
    hfsbi_feed_free(&o.feed);
}

/* An owner that goes on writing costs bounded memory, and the reader is told
   what it lost. */
static void an_owner_that_does_not_hold_loses_events(void) {
    enum { N = 30000 };
    owner              o;
    hfsbi_feed_reader *r;
    hfsbi_feed_event   e;
    char               piece[64];
    unsigned long long got = 0, gone = 0, next = 1, lost = 0;
    int                i;
    begin(&o, 1000);
    r = reader(&o, 0, false);
    for (i = 0; i < N; i++) out(&o, "0123456789");
    T_CHECK(o.feed.cap <= 1000 + (128 << 10));
    hfsbi_feed_end(&o.feed, HFSB_PROC_EXITED, 0, 0);
    while (hfsbi_feed_take(r, piece, sizeof piece, &e)) {
        if (e.kind == HFSBI_FEED_GAP) {
            lost += e.gone_events;
            gone += e.gone_bytes;
            next += e.gone_events;
            T_CHECK(e.seq == next);
            continue;
        }
        T_CHECK(e.seq == next++);
        got += e.bytes.len;
    }
    T_CHECK(next == N + 3 && lost > 0 && gone == 10 * lost);
    T_CHECK(got + gone == 10 * N && got > 90000);
    drop(r);
    hfsbi_feed_free(&o.feed);
}

/* ---- text ---- */

static void text_is_never_cut_inside_a_character(void) {
    owner              o;
    hfsbi_feed_reader *r, *raw, *late;
    begin(&o, 0);
    r = reader(&o, 0, true);
    raw = reader(&o, 0, false);
    out(&o, "a\xF0\x9F");
    err_out(&o, "\xC3");
    TAKES(r, 64, "1o:a"); /* nothing of stderr */
    late = reader(&o, HFSBI_FEED_NOW, true);
    out(&o, "\x98");
    TAKES(r, 64, "");
    out(&o, "\x80z");
    TAKES(r, 64, "4o:\xF0\x9F\x98\x80z");
    err_out(&o, "(\xE2\x82"); /* the first one was no character */
    TAKES(r, 64, "5e:\xC3(");
    TAKES(late, 64, "4o:\xF0\x9F\x98\x80z 5e:\xC3(");
    hfsbi_feed_end(&o.feed, HFSB_PROC_EXITED, 0, 0);
    TAKES(r, 64, "5e:\xE2\x82 6x:0/0 7c");
    TAKES(raw, 64,
          "1o:a\xF0\x9F 2e:\xC3 3o:\x98 4o:\x80z 5e:(\xE2\x82"
          " 6x:0/0 7c");
    drop(r);
    drop(raw);
    drop(late);
    r = reader(&o, 4, true); /* as one that has read on */
    TAKES(r, 64, "4o:\xF0\x9F\x98\x80z 5e:\xC3( 5e:\xE2\x82 6x:0/0 7c");
    drop(r);
    hfsbi_feed_free(&o.feed);
}

static void text_is_not_cut_by_the_size_of_a_take(void) {
    owner              o;
    hfsbi_feed_reader *r;
    begin(&o, 0);
    out(&o, "ab\xE2\x82\xAC\xE2\x82\xAC");
    out(&o, "\xF0\x9F\x98");
    out(&o, "\x80");
    r = reader(&o, 0, true);
    TAKES(r, 4,
          "1o:ab+ 1o:\xE2\x82\xAC+ 1o:\xE2\x82\xAC"
          " 3o:\xF0\x9F\x98\x80");
    drop(r);
    hfsbi_feed_free(&o.feed);
}

static void a_gap_ends_an_incomplete_character(void) {
    owner              o;
    hfsbi_feed_reader *r;
    char               big[30001];
    int                i;
    memset(big, 'x', 30000);
    big[30000] = '\0';
    begin(&o, 1 << 18);
    r = reader(&o, 0, true);
    out(&o, "a\xE2\x82");
    TAKES(r, 64, "1o:a");
    for (i = 0; i < 14; i++) out(&o, big); /* the first of these is lost */
    out(&o, "\xAC");
    TAKES_SOME(r, 64, 2, "1o:\xE2\x82 gap(1,30000)3");
    drop(r);
    hfsbi_feed_free(&o.feed);
}

/* ---- news ---- */

typedef struct listener {
    hfsbi_feed_reader reader;
    size_t            calls;
    hfsb_buf          got;
    bool              takes, leaves;
    struct listener  *drops;
} listener;

static void on_news(void *user) {
    listener        *l = (listener *)user;
    hfsbi_feed_event e;
    char             piece[64];
    l->calls++;
    while (l->takes && hfsbi_feed_take(&l->reader, piece, sizeof piece, &e))
        T_CHECK(hfsb_buf_append(&l->got, e.bytes) == HFSB_OK);
    if (l->leaves) hfsbi_feed_detach(&l->reader);
    if (l->drops) hfsbi_feed_detach(&l->drops->reader);
}

static void listen_to(owner *o, listener *l) {
    memset(l, 0, sizeof *l);
    l->reader.on_news = on_news;
    l->reader.user = l;
    hfsbi_feed_attach(&o->feed, &l->reader, 0);
}

static void readers_hear_of_news_once(void) {
    owner    o;
    listener l[4];
    size_t   i;
    begin(&o, 0);
    for (i = 0; i < 4; i++) listen_to(&o, &l[i]);
    l[1].takes = true;
    l[2].leaves = true;
    l[3].drops = &l[0]; /* is called first, as it attached last */
    out(&o, "one");
    out(&o, "two");
    T_CHECK(l[0].calls == 0 && l[1].calls == 2 && l[2].calls == 1);
    T_CHECK(l[3].calls == 1);
    T_STR(l[1].got, "onetwo");
    TAKES_SOME(&l[3].reader, 64, 1, "1o:one");
    out(&o, "three");
    T_CHECK(l[3].calls == 2 && l[1].calls == 3);
    hfsbi_feed_end(&o.feed, HFSB_PROC_EXITED, 0, 0);
    T_CHECK(l[3].calls == 2 && l[1].calls == 4);
    hfsbi_feed_free(&o.feed); /* detaches the others */
    TAKES_SOME(&l[3].reader, 64, 1, "");
    for (i = 0; i < 4; i++) {
        T_CHECK(!l[i].reader.feed);
        hfsb_buf_free(&l[i].got);
    }
}

/* ---- without memory ---- */

static void each_allocation(hfsb_alloc alloc, const t_heap *heap) {
    hfsbi_feed         feed;
    hfsbi_feed_reader  r = HFSB_INIT;
    hfsbi_feed_event   e;
    char               big[1000], piece[2000];
    unsigned long long got = 0, gone = 0, next = 1;
    int                i;
    memset(big, 'x', sizeof big);
    hfsbi_feed_init(&feed, 40000, NULL, NULL, &alloc);
    hfsbi_feed_attach(&feed, &r, 0);
    for (i = 0; i < 30; i++)
        hfsbi_feed_write(&feed, HFSBI_FEED_STDOUT,
                         hfsb_str_make(big, sizeof big));
    hfsbi_feed_end(&feed, HFSB_PROC_EXITED, 0, 0);
    while (hfsbi_feed_take(&r, piece, sizeof piece, &e)) {
        if (e.kind == HFSBI_FEED_GAP) next += e.gone_events;
        T_CHECK(e.seq == next);
        if (e.kind != HFSBI_FEED_GAP) next++;
        got += e.bytes.len;
        gone += e.gone_bytes;
    }
    T_CHECK(next == 33 && got + gone == 30000);
    T_CHECK(heap->fail_at ? got < 30000 || !heap->forever : gone == 0);
    hfsbi_feed_free(&feed);
}

static void lack_of_memory_is_a_gap(void) {
    t_each_allocation_fails(each_allocation);
}

/* ---- random histories against a simple model ---- */

enum { READERS = 4, HISTORY = 4000 };

typedef struct model_event {
    hfsbi_feed_kind kind;
    size_t          from, len; /* in the bytes of the model */
} model_event;

typedef struct model {
    owner       o;
    model_event list[HISTORY * 4];
    size_t      count; /* list[i] has number i + 1 */
    hfsb_buf    bytes; /* of all events */
    bool        ended;
    struct {
        hfsbi_feed_reader r;
        bool              attached, text, whole; /* whole: from the start */
        size_t            seq;                   /* that must come next */
        size_t            done;                  /* bytes of it taken */
        hfsb_buf          got[4];                /* by kind, since attached */
        hfsb_buf          fixed[4];              /* the same, repaired */
    } reader[READERS];
    unsigned long long random;
} model;

static size_t pick(model *m, size_t n) {
    return (size_t)t_random(&m->random) % n;
}

static void model_write(model *m) {
    static const char *const parts[] = {
        "a",    "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80",
        "\xFF", "\xE2\x82"};
    char            text[512];
    size_t          len = 0, want = pick(m, 8) ? pick(m, 40) : pick(m, 400);
    hfsbi_feed_kind kind = pick(m, 3) ? HFSBI_FEED_STDOUT : HFSBI_FEED_STDERR;
    size_t          most = m->o.feed.max / 4;
    hfsb_str        s;
    while (len < want) {
        const char *part = parts[pick(m, 6)];
        memcpy(text + len, part, strlen(part));
        len += strlen(part);
    }
    if (len) len -= pick(m, 2); /* cut anywhere */
    for (want = 0; want < len; want += most) {
        model_event *e = &m->list[m->count++];
        e->kind = kind;
        e->from = m->bytes.len + want;
        e->len = len - want < most ? len - want : most;
    }
    s = t_exact(text, len);
    T_CHECK(hfsb_buf_append(&m->bytes, s) == HFSB_OK);
    hfsbi_feed_write(&m->o.feed, kind, s);
    t_drop(s);
}

static void model_forget(model *m, size_t i, size_t kind) {
    hfsb_buf_truncate(&m->reader[i].got[kind], 0);
    hfsb_buf_truncate(&m->reader[i].fixed[kind], 0);
}

static void model_attach(model *m, size_t i) {
    size_t kind, from = pick(m, 3);
    if (from == 2) from = pick(m, m->count + 2);
    memset(&m->reader[i].r, 0, sizeof m->reader[i].r);
    m->reader[i].attached = true;
    m->reader[i].text = m->reader[i].r.text = pick(m, 2) == 1;
    m->reader[i].done = 0;
    hfsbi_feed_attach(&m->o.feed, &m->reader[i].r,
                      from == 1 ? HFSBI_FEED_NOW : from);
    m->reader[i].seq = from == 0 ? 1 : from == 1 ? m->count + 1 : from;
    for (kind = 0; kind < 4; kind++) model_forget(m, i, kind);
}

/* A raw piece must be the bytes of its event. */
static void model_check_raw(model *m, size_t i, const hfsbi_feed_event *e) {
    const model_event *want = &m->list[e->seq - 1];
    T_CHECK(e->seq == m->reader[i].seq && e->kind == want->kind);
    T_CHECK(e->bytes.len > 0 && m->reader[i].done + e->bytes.len <= want->len);
    T_CHECK(memcmp(e->bytes.ptr, m->bytes.ptr + want->from + m->reader[i].done,
                   e->bytes.len) == 0);
    m->reader[i].done += e->bytes.len;
    T_CHECK(e->more == (m->reader[i].done < want->len));
    if (e->more) return;
    m->reader[i].done = 0;
    m->reader[i].seq++;
}

/* Text must be the bytes of its stream, in order; repairing each piece must
   repair the whole. */
static void model_check_text(model *m, size_t i, const hfsbi_feed_event *e) {
    hfsb_buf *got = &m->reader[i].got[e->kind];
    T_CHECK(hfsb_buf_append(got, e->bytes) == HFSB_OK);
    T_CHECK(e->seq + 1 >= m->reader[i].seq && e->bytes.len > 0);
    T_CHECK(hfsb_utf8_repair(e->bytes, &m->reader[i].fixed[e->kind]) ==
            HFSB_OK);
    if (e->seq >= m->reader[i].seq) m->reader[i].seq = e->seq + !e->more;
    m->reader[i].done = e->more;
}

/* What a reader of text got of one kind, since it attached at `seq` or the
   last gap, is in the model; bytes of a character may come before it. */
static void model_check_end(model *m, size_t i) {
    size_t kind, k;
    for (kind = 1; kind < 3; kind++) {
        hfsb_buf all = HFSB_INIT, *got = &m->reader[i].got[kind];
        for (k = 0; k < m->count; k++)
            if (m->list[k].kind == (hfsbi_feed_kind)kind)
                T_CHECK(hfsb_buf_append(
                            &all, hfsb_str_make(m->bytes.ptr + m->list[k].from,
                                                m->list[k].len)) == HFSB_OK);
        T_CHECK(got->len <= all.len);
        if (got->len && got->len <= all.len)
            T_CHECK(memcmp(got->ptr, all.ptr + all.len - got->len, got->len) ==
                    0);
        if (m->reader[i].whole) T_CHECK(got->len == all.len);
        hfsb_buf_truncate(&all, 0);
        T_CHECK(hfsb_utf8_repair(hfsb_buf_str(got), &all) == HFSB_OK);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&all),
                               hfsb_buf_str(&m->reader[i].fixed[kind])));
        hfsb_buf_free(&all);
    }
}

static void model_take(model *m, size_t i, size_t times) {
    char             piece[256];
    hfsbi_feed_event e;
    while (times-- > 0) {
        size_t n = 4 + pick(m, sizeof piece - 3);
        if (!hfsbi_feed_take(&m->reader[i].r, piece, n, &e)) {
            if (!m->reader[i].text)
                T_CHECK(m->reader[i].seq == m->count + (m->ended ? 3u : 1u));
            return;
        }
        if (e.kind == HFSBI_FEED_GAP) {
            size_t kind;
            /* only those that were away, as the owner holds in time */
            T_CHECK(e.seq == m->reader[i].seq + e.gone_events);
            T_CHECK(m->reader[i].done == 0 && e.gone_events > 0);
            m->reader[i].seq = (size_t)e.seq;
            m->reader[i].whole = false;
            for (kind = 0; kind < 4; kind++) model_forget(m, i, kind);
        } else if (e.kind >= HFSBI_FEED_EXITED) {
            T_CHECK(m->ended);
            if (m->reader[i].text && e.kind == HFSBI_FEED_EXITED)
                m->reader[i].seq = m->count + 1;
            T_CHECK(e.seq == m->reader[i].seq++);
            T_CHECK(e.seq == m->count + 1 + (e.kind == HFSBI_FEED_CLOSED));
        } else if (m->reader[i].text) {
            model_check_text(m, i, &e);
        } else {
            model_check_raw(m, i, &e);
        }
    }
}

static void one_history(model *m, unsigned long long seed) {
    size_t step, i, kind, steps = 200;
    memset(m, 0, sizeof *m);
    m->random = seed;
    begin(&m->o, 256 + pick(m, 2000));
    for (step = 0; step < steps; step++) {
        i = pick(m, READERS);
        if (!m->reader[i].attached && pick(m, 4) == 0) {
            size_t first = (size_t)m->o.feed.first;
            model_attach(m, i);
            m->reader[i].whole = m->reader[i].seq == 1 && first == 1;
        } else if (m->reader[i].attached && pick(m, 30) == 0) {
            hfsbi_feed_detach(&m->reader[i].r);
            m->reader[i].attached = false;
        } else if (m->reader[i].attached && pick(m, 2)) {
            model_take(m, i, 1 + pick(m, 12));
        } else if (!m->o.held) {
            model_write(m);
        }
        T_CHECK(m->o.feed.cap <= m->o.feed.max + 4096);
    }
    hfsbi_feed_end(&m->o.feed, HFSB_PROC_EXITED, 0, 0);
    m->ended = true;
    for (i = 0; i < READERS; i++) {
        if (m->reader[i].attached) {
            model_take(m, i, 100000);
            T_CHECK(m->reader[i].seq == m->count + 3);
            if (m->reader[i].text) model_check_end(m, i);
        }
        for (kind = 0; kind < 4; kind++)
            hfsb_buf_free(&m->reader[i].got[kind]),
                hfsb_buf_free(&m->reader[i].fixed[kind]);
    }
    hfsbi_feed_free(&m->o.feed);
    hfsb_buf_free(&m->bytes);
}

static void random_histories_agree_with_a_model(void) {
    model             *m = (model *)malloc(sizeof *m);
    unsigned long long seed, n = t_long() ? 100000 : t_quick() ? 50 : 1500;
    if (!m) abort();
    for (seed = 1; seed <= n && t_failed == 0; seed++) {
        one_history(m, seed);
        if (t_failed) printf("seed %llu\n", seed);
    }
    free(m);
}

/* ---- the output of a command ---- */

typedef struct source {
    owner              o;
    hfsb_proc         *proc;
    bool               done;
    size_t             most; /* of the feed */
    unsigned long long holds;
} source;

static void source_hold(void *user, bool hold) {
    source *s = (source *)user;
    s->holds += hold;
    hfsbi_proc_hold(s->proc, hold);
}

static void source_output(void *user, hfsb_proc_stream stream,
                          hfsb_str bytes) {
    source *s = (source *)user;
    hfsbi_feed_write(&s->o.feed,
                     stream == HFSB_PROC_STDOUT ? HFSBI_FEED_STDOUT
                                                : HFSBI_FEED_STDERR,
                     bytes);
    if (s->o.feed.cap > s->most) s->most = s->o.feed.cap;
}

static void source_change(void *user, hfsb_proc *proc, bool done) {
    source          *s = (source *)user;
    hfsb_proc_result r = hfsb_proc_status(proc);
    if (!done) return;
    s->done = true;
    hfsbi_feed_end(&s->o.feed, r.end, r.exit_code, r.signal);
}

/* A reader of a few bytes a turn makes the command wait, and loses nothing. */
static void a_slow_reader_gets_all_of_a_command(void) {
    enum { LINES = 400000 };
    source             s;
    hfsbi_loop        *loop = loop_open(0);
    hfsbi_feed_reader  r = HFSB_INIT;
    hfsbi_feed_event   e = HFSB_INIT;
    hfsb_proc_opts     o = t_quick_opts();
    unsigned long long bytes[4] = {0};
    long               next = 1;
    size_t             width = 0;
    char              *piece = (char *)malloc(40000);
    if (!piece) abort();
    memset(&s, 0, sizeof s);
    hfsbi_feed_init(&s.o.feed, 100000, source_hold, &s, &plain);
    hfsbi_feed_attach(&s.o.feed, &r, 0);
    o.command = HFSB_LIT("seq -w 400000; seq 1000 >&2; exit 5");
    o.on_output = source_output;
    o.user = &s;
    T_CHECK(hfsb_proc_open(&o, &s.proc, NULL) == HFSB_OK);
    hfsbi_proc_attach(s.proc, loop, source_change, &s);
    while (e.kind != HFSBI_FEED_CLOSED) {
        size_t i;
        if (!hfsbi_feed_take(&r, piece, 40000, &e)) {
            T_CHECK(!s.done);
            loop_turn(loop, 1000);
            continue;
        }
        T_CHECK(e.kind != HFSBI_FEED_GAP);
        if (e.kind == HFSBI_FEED_STDOUT)
            for (i = 0; i < e.bytes.len; i++) {
                char want[8];
                snprintf(want, sizeof want, "%06ld\n", next);
                if (e.bytes.ptr[i] != want[width]) break;
                width = (width + 1) % 7;
                if (width == 0) next++;
            }
        if (e.kind == HFSBI_FEED_STDOUT) T_CHECK(i == e.bytes.len);
        if (e.kind < 4) bytes[e.kind] += e.bytes.len;
        if (e.kind == HFSBI_FEED_EXITED) T_CHECK(e.exit.exit_code == 5);
        if (e.seq % 3 == 0 && !s.done) loop_turn(loop, 0);
    }
    T_CHECK(next == LINES + 1 && bytes[HFSBI_FEED_STDOUT] == 7 * LINES);
    T_CHECK(bytes[HFSBI_FEED_STDERR] == 3893);
    T_CHECK(s.holds > 0 && s.most <= 100000 + (128 << 10));
    hfsbi_feed_free(&s.o.feed);
    hfsb_proc_close(s.proc);
    hfsbi_loop_close(loop);
    free(piece);
}

int main(void) {
    T_RUN(events_are_numbered_across_streams);
    T_RUN(readers_attach_anywhere);
    T_RUN(the_exit_stays_readable);
    T_RUN(a_large_event_comes_in_parts);
    T_RUN(without_readers_the_oldest_events_go);
    T_RUN(a_slow_reader_holds_the_process);
    T_RUN(an_owner_that_does_not_hold_loses_events);
    T_RUN(text_is_never_cut_inside_a_character);
    T_RUN(text_is_not_cut_by_the_size_of_a_take);
    T_RUN(a_gap_ends_an_incomplete_character);
    T_RUN(readers_hear_of_news_once);
    T_RUN(lack_of_memory_is_a_gap);
    T_RUN(random_histories_agree_with_a_model);
    T_RUN(a_slow_reader_gets_all_of_a_command);
    return T_END();
}
