/* test_server_stream.c - the output of a command as events, while it runs. */
#include "../support/t_server.h"

/* One event of a stream that was read as a whole. */
typedef struct event {
    hfsb_str      name, id, data;
    hfsb_json_doc json;
} event;

enum { EVENTS = 4096 };

typedef struct events {
    size_t count, comments;
    event  at[EVENTS];
} events;

static events all; /* of the last stream */

static void drop_events(void) {
    size_t i;
    for (i = 0; i < all.count; i++) hfsb_json_free(&all.at[i].json);
    memset(&all, 0, sizeof all);
}

/* As in the standard: blocks of lines, each followed by an empty line. */
static void read_events(hfsb_str body) {
    event e;
    drop_events();
    memset(&e, 0, sizeof e);
    while (body.len && all.count < EVENTS) {
        size_t   n = hfsb_str_find_byte(body, '\n');
        hfsb_str line = hfsb_str_slice(body, 0, n);
        T_CHECK(n != HFSB_NPOS);
        if (n == HFSB_NPOS) return;
        body = hfsb_str_slice(body, n + 1, body.len);
        if (hfsb_str_starts(line, HFSB_LIT("event: ")))
            e.name = hfsb_str_slice(line, 7, line.len);
        else if (hfsb_str_starts(line, HFSB_LIT("id: ")))
            e.id = hfsb_str_slice(line, 4, line.len);
        else if (hfsb_str_starts(line, HFSB_LIT("data: ")))
            e.data = hfsb_str_slice(line, 6, line.len);
        else if (hfsb_str_starts(line, HFSB_LIT(":"))) all.comments++;
        else T_CHECK(line.len == 0);
        if (line.len == 0 && e.data.ptr) {
            T_CHECK(hfsb_json_parse(e.data, NULL, &e.json, NULL) == HFSB_OK);
            all.at[all.count++] = e;
            memset(&e, 0, sizeof e);
        }
    }
}

static bool is(const event *e, const char *name) {
    return hfsb_str_equal(e->name, hfsb_cstr(name));
}
static hfsb_str text_of(const event *e, const char *key) {
    return hfsb_json_str(hfsb_json_get(e->json.root, key), HFSB_LIT("?"));
}
static long long int_of(const event *e, const char *key) {
    return hfsb_json_int(hfsb_json_get(e->json.root, key), -12345);
}

/* Puts the pieces of a stream together; each must begin where the last one,
   or a gap, ended. Gives the bytes that are missing. */
static unsigned long long join(const char *stream, hfsb_buf *out) {
    unsigned long long missing = 0;
    long long          at = 0;
    size_t             i;
    for (i = 0; i < all.count; i++) {
        const event *e = &all.at[i];
        if (is(e, stream)) {
            T_CHECK(int_of(e, "offset") == at);
            if (hfsb_buf_append(out, text_of(e, "text")) != HFSB_OK) abort();
            at += (long long)text_of(e, "text").len;
            if (!strcmp(stream, "stdout"))
                T_CHECK(strtoll(e->id.ptr, NULL, 10) == at);
        } else if (is(e, "gap") && hfsb_str_equal(text_of(e, "stream"),
                                                  hfsb_cstr(stream))) {
            T_CHECK(int_of(e, "from") == at && int_of(e, "to") > at);
            missing += (unsigned long long)(int_of(e, "to") - at);
            at = int_of(e, "to");
        }
    }
    return missing;
}

static void check_frame(const ts_reply *r) {
    T_CHECK(r->status == 200 && r->whole);
    T_STR(ts_field(r, "Content-Type"), "text/event-stream");
    T_STR(ts_field(r, "Cache-Control"), "no-store");
    T_STR(ts_field(r, "X-Accel-Buffering"), "no");
    T_CHECK(all.count >= 2 && is(&all.at[0], "job"));
    T_CHECK(all.count && is(&all.at[all.count - 1], "result"));
}

static void both_streams_come_as_events(void) {
    static const char *const asks[] = {
        TS_JSON "Accept: text/event-stream\r\n",
        TS_JSON "Accept: text/html, text/event-stream;q=0.5\r\n", TS_JSON};
    static const char *const bodies[] = {
        "{\"command\":\"echo one; echo err >&2; sleep 0.3; printf "
        "'t\\u00e9\\\\nx'; exit 4\"}",
        "{\"command\":\"echo one; echo err >&2; sleep 0.3; printf "
        "'t\\u00e9\\\\nx'; exit 4\"}",
        "{\"stream\":true,\"command\":\"echo one; echo err >&2; sleep 0.3; "
        "printf 't\\u00e9\\\\nx'; exit 4\"}"};
    ts_server s;
    ts_reply  r = HFSB_INIT;
    size_t    i;
    ts_start(&s, NULL, NULL);
    for (i = 0; i < TT_COUNT(asks); i++) {
        hfsb_buf     out = HFSB_INIT, err = HFSB_INIT;
        const event *last;
        ts_call(&s, &r, "POST", "/api/bash", asks[i], hfsb_cstr(bodies[i]));
        read_events(hfsb_buf_str(&r.body));
        check_frame(&r);
        T_CHECK(join("stdout", &out) == 0 && join("stderr", &err) == 0);
        T_STR(out, "one\nt\xC3\xA9\nx");
        T_STR(err, "err\n");
        last = &all.at[all.count - 1];
        T_STR(text_of(last, "output"), "one\nt\xC3\xA9\nxerr\n");
        T_STR(text_of(last, "error"), "Exit code 4");
        T_CHECK(int_of(last, "exit_code") == 4);
        T_CHECK(hfsb_str_equal(text_of(&all.at[0], "id"),
                               text_of(last, "id")));
        hfsb_buf_free(&out);
        hfsb_buf_free(&err);
    }
    drop_events();
    ts_drop(&r);
    ts_end(&s, false);
}

static void text_comes_while_the_command_runs(void) {
    ts_server s;
    ts_conn   c;
    ts_reply  r = HFSB_INIT;
    T_CHECK(!mkfifo("go", 0600));
    ts_start(&s, NULL, NULL);
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/api/bash", TS_JSON,
           HFSB_LIT("{\"command\":\"echo early; read x < go; echo late\","
                    "\"stream\":true}"));
    T_CHECK(ts_await(&c, "early", 20000));
    T_CHECK(hfsb_str_find(hfsb_buf_str(&c.in), HFSB_LIT("event: job")) !=
            HFSB_NPOS);
    tt_put("go", HFSB_LIT("\n"));
    T_CHECK(ts_read(&c, &r, false));
    read_events(hfsb_buf_str(&r.body));
    check_frame(&r);
    T_STR(text_of(&all.at[all.count - 1], "output"), "early\nlate\n");
    ts_hang_up(&c);
    drop_events();
    ts_drop(&r);
    ts_end(&s, false);
}

static void a_silent_command_sends_comments(void) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    ts_server         s;
    ts_conn           c;
    ts_reply          r = HFSB_INIT;
    long long         began = hfsb_clock_ms();
    int               i;
    box.beat_ms = 100;
    ts_start(&s, NULL, &box);
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/api/bash", TS_JSON,
           HFSB_LIT("{\"command\":\"until [ -e quiet ]; do sleep 0.05; done\","
                    "\"stream\":true}"));
    /* the head, the job, and three of them by the clock */
    for (i = 0; i < 5; i++) T_CHECK(ts_more(&c, 20000));
    tt_sleep_ms(300);
    tt_put("quiet", HFSB_LIT(""));
    T_CHECK(ts_read(&c, &r, false));
    read_events(hfsb_buf_str(&r.body));
    check_frame(&r);
    T_CHECK(all.count == 2 && all.comments >= 3);
    T_CHECK((long long)all.comments <= (hfsb_clock_ms() - began) / 100 + 2);
    ts_hang_up(&c);
    drop_events();
    ts_drop(&r);
    ts_end(&s, false);
}

static void what_is_over_at_once_is_streamed_or_refused(void) {
    ts_server s;
    ts_reply  r = HFSB_INIT;
    ts_start(&s, NULL, NULL);
    ts_post(&s, &r, "/api/bash",
            "{\"command\":\"sleep 60\",\"background\":true,\"stream\":true}");
    read_events(hfsb_buf_str(&r.body));
    check_frame(&r);
    T_CHECK(text_of(&all.at[0], "id").len > 4);
    ts_post(&s, &r, "/api/bash",
            "{\"command\":\"x\",\"work_dir\":\"/no/where\",\"stream\":true}");
    read_events(hfsb_buf_str(&r.body));
    check_frame(&r);
    T_STR(text_of(&all.at[all.count - 1], "error"),
          "Working directory not found: /no/where");
    ts_call(&s, &r, "POST", "/api/bash",
            TS_JSON "Accept: text/event-stream\r\n", HFSB_LIT("{}"));
    TS_REFUSED(&r, 422, "\"missing\"");
    ts_call(&s, &r, "POST", "/api/bash",
            TS_JSON "Accept: text/event-stream\r\n",
            HFSB_LIT("{\"command\":\"echo x\",\"stream\":false}"));
    TS_OK(&r, "x\n"); /* the body has the last word */
    drop_events();
    ts_drop(&r);
    ts_end(&s, false);
}

/* 20 MB to a reader that reads nothing until the command is done: the stream
   reports the gap, and the job still has the bytes. */
static void a_reader_that_does_not_read_gets_a_gap(void) {
    ts_server          s;
    ts_conn            c;
    ts_reply           r = HFSB_INIT;
    hfsb_buf           out = HFSB_INIT;
    unsigned long long missing;
    char               target[300];
    size_t             i;
    ts_start(&s, NULL, NULL);
    c = ts_connect(&s);
    ts_ask(&c, "POST", "/api/bash", TS_JSON,
           HFSB_LIT("{\"command\":\"yes 0123456789abcdef | head -c 20000000; "
                    "touch printed\",\"stream\":true}"));
    while (access("printed", F_OK)) tt_sleep_ms(50);
    tt_sleep_ms(500);
    ts_get(&s, &r, "/api/health"); /* no one else waits */
    TS_IS(&r, 200, NULL);
    T_CHECK(ts_read(&c, &r, false));
    read_events(hfsb_buf_str(&r.body));
    check_frame(&r);
    missing = join("stdout", &out);
    T_CHECK(missing > 5000000 && missing < 20000000);
    T_CHECK(out.len + missing == 20000000);
    T_CHECK(int_of(&all.at[all.count - 1], "total_chars") == 20000000);
    for (i = 0; i < all.count && !is(&all.at[i], "gap"); i++) continue;
    T_CHECK(i < all.count);
    snprintf(target, sizeof target, "/api/jobs/%.*s/output?offset=%lld",
             (int)text_of(&all.at[0], "id").len,
             text_of(&all.at[0], "id").ptr, int_of(&all.at[i], "from"));
    ts_get(&s, &r, target);
    T_CHECK(ts_flag(&r, "success"));
    T_CHECK(ts_text(&r, "output").len > 1000);
    ts_hang_up(&c);
    hfsb_buf_free(&out);
    drop_events();
    ts_drop(&r);
    ts_end(&s, false);
}

static void a_stream_that_is_repeated_gets_the_result(void) {
    ts_server s;
    ts_conn   c[2];
    ts_reply  r = HFSB_INIT;
    size_t    i;
    ts_start(&s, NULL, NULL);
    for (i = 0; i < 2; i++) {
        c[i] = ts_connect(&s);
        ts_ask(&c[i], "POST", "/api/bash", TS_JSON "Idempotency-Key: k\r\n",
               HFSB_LIT("{\"command\":\"echo x >> ran; sleep 0.5; echo y\","
                        "\"stream\":true}"));
        tt_sleep_ms(100);
    }
    for (i = 0; i < 2; i++) {
        T_CHECK(ts_read(&c[i], &r, false));
        read_events(hfsb_buf_str(&r.body));
        check_frame(&r);
        T_STR(text_of(&all.at[all.count - 1], "output"), "y\n");
        ts_hang_up(&c[i]);
    }
    T_CHECK(tt_lines_in("ran") == 1);
    drop_events();
    ts_drop(&r);
    ts_end(&s, false);
}

int main(void) {
    tt_begin();
    TT_RUN(both_streams_come_as_events);
    TT_RUN(text_comes_while_the_command_runs);
    TT_RUN(a_silent_command_sends_comments);
    TT_RUN(what_is_over_at_once_is_streamed_or_refused);
    TT_RUN(a_reader_that_does_not_read_gets_a_gap);
    TT_RUN(a_stream_that_is_repeated_gets_the_result);
    return TT_END();
}
