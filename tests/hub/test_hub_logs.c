/* test_hub_logs.c - log streams of Spaces and jobs: whole, broken, replayed,
   cut anywhere. */
#include "../support/t_hub.h"

#define BOX "alice/box"
#define LOG "GET /api/spaces/" BOX "/logs/run"
#define JOB "68a5b3c00000000000000001"
#define JOB_LOG "GET /api/jobs/alice/" JOB "/logs"
#define SSE "Content-Type: text/event-stream; charset=utf-8"

#define E(text, time) \
    "data: {\"data\":\"" text "\\n\",\"timestamp\":\"" time "\"}\n\n"

static hfsb_status t_logs(t_hub *h, const hfsb_log_opts *opts) {
    return hfsb_hub_space_logs(h->hub, t_s(BOX), "run", opts, t_line, h,
                               &h->err);
}

static hfsb_status t_job_logs(t_hub *h, bool follow) {
    hfsb_log_opts opts = HFSB_INIT;
    opts.follow = follow;
    opts.cancel = h->cancel;
    return hfsb_hub_job_logs(h->hub, t_s("alice"), t_s(JOB), &opts, t_line, h,
                             &h->err);
}

static hfsb_status t_follow(t_hub *h, size_t tail) {
    hfsb_log_opts opts = HFSB_INIT;
    opts.follow = true;
    opts.tail = tail;
    opts.cancel = h->cancel;
    return t_logs(h, &opts);
}

/* ---- lines ---- */

static const char STREAM[] =
    ": keep-alive\n\n"
    "data:\n\n" E("first", "2025-03-07T12:24:18.657Z") "event: log\n" E(
        "", "t2") "data: [1]\n\ndata: {not json\n\n"
    "data: {\"data\":12}\n\n"
    "id: 7\nretry: 10\ndata:{\"data\":\"h\xC3\xA9 \\u00e9\\r\\n\"}\n\n"
    "data: {\"data\":\"one\\ntwo\",\"timestamp\":null}\r\n\r\n"
    "data: {\"data\":\"a\\n\"}\ndata: {\"data\":\"b\\n\"}\n\n"
    "data: {\"data\":\"the last\",\"timestamp\":\"t9\"}";

#define LINES                                                          \
    "2025-03-07T12:24:18.657Z|first\nt2|\n|h\xC3\xA9 \xC3\xA9\n|one\n" \
    "|two\n|a\n|b\nt9|the last\n"

static void lines_are_delivered_however_the_stream_is_cut(void) {
    t_reply reply = {LOG, 200, SSE, STREAM, HFSB_OK, false, 0};
    t_hub   h;
    t_hub_init(&h);
    t_hub_open(&h);
    for (reply.piece = 0; reply.piece <= sizeof STREAM; reply.piece++) {
        t_hub_script(&h, &reply, 1);
        T_CHECK(t_logs(&h, NULL) == HFSB_OK && h.err.code == HFSB_OK);
        T_STR(h.text, LINES);
        if (reply.piece > 8 && t_quick()) reply.piece += 13;
    }
    /* one that only keeps alive must end, too */
    T_CHECK(h.idle_ms == 5000 && h.total_ms > 0 && h.total_ms <= 60000);
    t_hub_close(&h);
}

static void line_ends_may_be_cr_or_crlf(void) {
    static const char *const ends[] = {"\n", "\r\n", "\r"};
    size_t                   i, k;
    t_hub                    h;
    t_hub_init(&h);
    t_hub_open(&h);
    for (i = 0; i < 3; i++) {
        hfsb_buf body = HFSB_INIT;
        t_reply  reply = {LOG, 200, SSE, NULL, HFSB_OK, false, 0};
        for (k = 0; k < 2; k++)
            T_CHECK(hfsb_buf_printf(&body,
                                    "data: {\"data\":\"x\"}%s%s: hi%s",
                                    ends[i], ends[i], ends[i]) == HFSB_OK);
        reply.body = body.ptr;
        for (reply.piece = 1; reply.piece <= body.len; reply.piece++) {
            t_hub_script(&h, &reply, 1);
            T_CHECK(t_logs(&h, NULL) == HFSB_OK);
            T_STR(h.text, "|x\n|x\n");
        }
        hfsb_buf_free(&body);
    }
    t_hub_close(&h);
}

static void the_caller_can_stop_a_log(void) {
    t_reply reply = {LOG, 200, SSE, STREAM, HFSB_LOST, false, 5};
    size_t  k;
    t_hub   h;
    t_hub_init(&h);
    t_hub_open(&h);
    for (k = 1; k <= 8; k++) { /* "one" and "two" are of one event */
        t_hub_script(&h, &reply, 1);
        h.line_limit = k;
        T_CHECK(t_follow(&h, 0) == HFSB_OK && h.err.code == HFSB_OK);
        T_CHECK(h.lines == k || (k == 8 && h.lines == 7));
        if (k == 7) break; /* the eighth is cut off by the break */
    }
    t_hub_close(&h);
}

/* ---- how it ends ---- */

static void silence_ends_a_log_that_is_not_followed(void) {
    static const t_reply silence[] = {
        {LOG, 200, SSE, E("a", "1"), HFSB_TIMEOUT, false, 0}};
    static const t_reply nothing[] = {
        {LOG, 0, NULL, NULL, HFSB_TIMEOUT, false, 0},
        {LOG, 0, NULL, NULL, HFSB_TIMEOUT, false, 0}};
    hfsb_log_opts opts = HFSB_INIT;
    t_hub         h;
    t_hub_init(&h);
    h.opts.tries = 2;
    t_hub_open(&h);
    T_SCRIPT(&h, silence);
    T_CHECK(t_logs(&h, NULL) == HFSB_OK);
    T_STR(h.text, "1|a\n");
    T_SCRIPT(&h, nothing); /* not even a head: that is no end */
    T_CHECK(t_logs(&h, NULL) == HFSB_TIMEOUT && h.sent_count == 2);
    opts.idle_ms = 77;
    T_SCRIPT(&h, silence);
    T_CHECK(t_logs(&h, &opts) == HFSB_OK && h.idle_ms == 77);
    t_hub_close(&h);
}

static void a_broken_log_continues_where_it_was(void) {
    static const t_reply script[] = {
        {LOG, 200, SSE, E("a", "1") E("b", "2") "data: {\"data\":\"c",
         HFSB_LOST, false, 3},
        {LOG, 503, NULL, NULL, HFSB_OK, false, 0},
        {LOG, 200, SSE, E("a", "1"), HFSB_TIMEOUT, false, 0},
        {LOG, 0, NULL, NULL, HFSB_CONNECT, true, 0},
        {LOG, 200, SSE, E("a", "1") E("b", "2") E("b", "2") E("c", "3"),
         HFSB_LOST, false, 1},
        {LOG, 200, "Content-Type: text/html", "<html>" E("x", "9"), HFSB_OK,
         false, 0},
        {LOG, 200, SSE,
         E("a", "1") E("b", "2") E("b", "2") E("c", "3") E("d", "4"), HFSB_OK,
         false, 0}};
    t_hub h;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(t_follow(&h, 0) == HFSB_OK && h.err.code == HFSB_OK);
    T_STR(h.text, "1|a\n2|b\n2|b\n3|c\n4|d\n");
    T_CHECK(h.sent_count == 7 && h.idle_ms == 120000 && h.total_ms == 0);
    t_hub_close(&h);
}

static void after_a_tail_lines_are_skipped_by_time(void) {
    static const t_reply script[] = {
        {LOG "?tail=2", 200, SSE, E("y", "2025-01-02") E("z", "2025-01-03"),
         HFSB_LOST, false, 0},
        {LOG, 200, SSE,
         E("w", "2025-01-01") E("x", "2025-01-01") E("y", "2025-01-02")
             E("z", "2025-01-03") E("z2", "2025-01-03") E("!", "2025-01-04"),
         HFSB_LOST, false, 0},
        {LOG, 200, SSE,
         E("w", "2025-01-01") E("y", "2025-01-02") E("z", "2025-01-03")
             E("z2", "2025-01-03") E("!", "2025-01-04") E("?", "2025-01-04")
                 E("end", "2025-01-05"),
         HFSB_OK, false, 0}};
    t_hub h;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(t_follow(&h, 2) == HFSB_OK);
    T_STR(h.text, "2025-01-02|y\n2025-01-03|z\n2025-01-03|z2\n"
                  "2025-01-04|!\n2025-01-04|?\n2025-01-05|end\n");
    t_hub_close(&h);
}

#define LONG_TIME                                                      \
    "2025-01-01T00:00:00.00000000000000000000000000000000000000000000" \
    "000000000000000000000000000000000000000000000000000000000000000Z"

static void overlong_timestamps_are_ignored(void) {
    static const t_reply script[] = {
        {LOG "?tail=9", 200, SSE, E("a", "2025-01-01") E("b", LONG_TIME),
         HFSB_LOST, false, 0},
        {LOG, 200, SSE, E("a", "2025-01-01") E("b", LONG_TIME), HFSB_OK,
         false, 0}};
    t_hub h;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(t_follow(&h, 9) == HFSB_OK); /* rather twice than never */
    T_STR(h.text, "2025-01-01|a\n" LONG_TIME "|b\n" LONG_TIME "|b\n");
    t_hub_close(&h);
}

static void tries_are_counted_from_the_last_new_line(void) {
    static const t_reply script[] = {
        {NULL, 0, NULL, NULL, HFSB_LOST, false, 0},
        {NULL, 0, NULL, NULL, HFSB_LOST, false, 0},
        {NULL, 200, SSE, E("a", "1"), HFSB_LOST, false, 0},
        {NULL, 200, SSE, E("a", "1"), HFSB_LOST, false, 0},
        {NULL, 0, NULL, NULL, HFSB_LOST, false, 0}};
    static const t_reply gone[] = {
        {NULL, 200, SSE, E("a", "1"), HFSB_LOST, false, 0},
        {NULL, 404, NULL, NULL, HFSB_OK, false, 0}};
    t_hub h;
    t_hub_init(&h);
    h.opts.tries = 3;
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(t_follow(&h, 0) == HFSB_LOST && h.sent_count == 5);
    T_CHECK(t_says(&h, "Could not read the run log of " BOX));
    T_STR(h.text, "1|a\n");
    T_SCRIPT(&h, gone); /* 4xx is for good */
    T_CHECK(t_follow(&h, 0) == HFSB_NOT_FOUND && h.sent_count == 2);
    h.stop = true;
    T_SCRIPT(&h, script);
    T_CHECK(t_follow(&h, 0) == HFSB_CANCELLED && h.sent_count == 1);
    t_hub_close(&h);
}

static void an_event_without_end_is_refused(void) {
    hfsb_buf body = HFSB_INIT;
    t_reply  reply = {LOG, 200, SSE, NULL, HFSB_OK, false, 65536};
    t_hub    h;
    t_repeat(&body, "data: {\"data\":\"", 1);
    t_repeat(&body, "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", 40000);
    reply.body = body.ptr;
    t_hub_init(&h);
    t_hub_open(&h);
    t_hub_script(&h, &reply, 1);
    T_CHECK(t_follow(&h, 0) == HFSB_LIMIT && h.sent_count == 1);
    hfsb_buf_free(&body);
    t_hub_close(&h);
}

/* ---- jobs ---- */

#define STAGE(name)                                                    \
    {"GET /api/jobs/alice/" JOB, 200, NULL,                            \
     "{\"id\":\"" JOB "\",\"status\":{\"stage\":\"" name "\"}}", HFSB_OK, \
     false, 0}
#define PART(body, fate) {JOB_LOG, 200, SSE, body, fate, false, 0}

static void a_job_is_followed_to_its_end(void) {
    static const t_reply script[] = {
        PART("", HFSB_OK), /* it has not begun */
        STAGE("SCHEDULING"),
        PART(": keep-alive\n\n", HFSB_OK),
        STAGE("SOMETHING_NEW"),
        PART(E("===== Job started at 2025 =====", "0") E("a", "1"),
             HFSB_LOST),
        PART(E("===== Job started at 2025 =====", "0") E("a", "1")
                 E("b", "2"),
             HFSB_OK),
        STAGE("RUNNING"),
        PART(E("===== Job started at 2025 =====", "0") E("a", "1")
                 E("b", "2") E("===== not at its start", "3"),
             HFSB_OK),
        STAGE("COMPLETED")};
    t_hub h;
    t_hub_init(&h);
    h.opts.tries = 2;
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(t_job_logs(&h, true) == HFSB_OK && h.err.code == HFSB_OK);
    T_CHECK(h.sent_count == 9);
    T_STR(h.text, "1|a\n2|b\n3|===== not at its start\n");
    t_hub_close(&h);
}

/* A job that prints nothing for hours, or whose stream the Hub ends early, is
   no failure and nothing to log. */
static void follow_waits_for_a_quiet_job_without_a_word(void) {
    static const t_reply script[] = {
        PART("", HFSB_OK),
        STAGE("SCHEDULING"),
        PART(E("a", "1"), HFSB_TIMEOUT),
        STAGE("RUNNING"),
        PART(E("a", "1"), HFSB_TIMEOUT),
        STAGE("RUNNING"),
        PART(E("a", "1"), HFSB_TIMEOUT),
        STAGE("RUNNING"),
        PART(E("a", "1") E("b", "2"), HFSB_OK),
        STAGE("COMPLETED")};
    t_hub h;
    t_hub_init(&h);
    h.opts.tries = 2;
    h.stop = true; /* would cancel at the first "trying again" */
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(t_job_logs(&h, true) == HFSB_OK && h.err.code == HFSB_OK);
    T_CHECK(h.sent_count == 10);
    T_STR(h.text, "1|a\n2|b\n");
    t_hub_close(&h);
}

static void every_final_stage_ends_the_log(void) {
    static const t_reply ends[][2] = {
        {PART(E("a", "1"), HFSB_OK), STAGE("COMPLETED")},
        {PART(E("a", "1"), HFSB_OK), STAGE("CANCELED")},
        {PART(E("a", "1"), HFSB_OK), STAGE("ERROR")},
        {PART(E("a", "1"), HFSB_OK), STAGE("DELETED")},
        {PART(E("a", "1"), HFSB_OK), STAGE("STOPPED")}};
    static const t_reply once[] = {PART(E("a", "1"), HFSB_OK)};
    static const t_reply lost[] = {
        PART(E("a", "1"), HFSB_OK),
        {NULL, 404, NULL, "{\"error\":\"Job not found\"}", HFSB_OK, false, 0}};
    size_t i;
    t_hub  h;
    t_hub_init(&h);
    t_hub_open(&h);
    for (i = 0; i < sizeof ends / sizeof *ends; i++) {
        T_SCRIPT(&h, ends[i]);
        T_CHECK(t_job_logs(&h, true) == HFSB_OK && h.sent_count == 2);
        T_STR(h.text, "1|a\n");
    }
    T_SCRIPT(&h, once); /* not followed: the stream's end is the end */
    T_CHECK(t_job_logs(&h, false) == HFSB_OK && h.sent_count == 1);
    T_SCRIPT(&h, lost);
    T_CHECK(t_job_logs(&h, true) == HFSB_NOT_FOUND);
    T_CHECK(t_says(&h, "Could not look at job " JOB ": HTTP 404: Job not "
                       "found."));
    t_hub_close(&h);
}

static void the_owner_of_a_job_is_asked_for(void) {
    static const t_reply script[] = {
        {"GET /api/whoami-v2", 200, NULL, "{\"name\":\"alice\"}", HFSB_OK,
         false, 0},
        PART(E("a", "1"), HFSB_OK), STAGE("COMPLETED")};
    hfsb_log_opts opts = HFSB_INIT;
    t_hub         h;
    opts.follow = true;
    t_hub_init(&h);
    t_hub_open(&h);
    T_SCRIPT(&h, script);
    T_CHECK(hfsb_hub_job_logs(h.hub, t_s(""), t_s(JOB), &opts, t_line, &h,
                              &h.err) == HFSB_OK);
    T_CHECK(h.sent_count == 3);
    t_hub_close(&h);
}

/* ---- memory ---- */

static void logs_fail_cleanly(hfsb_alloc alloc, const t_heap *heap) {
    static const t_reply script[] = {
        PART(E("a", "1") "data: {\"da", HFSB_LOST),
        PART(E("a", "1") E("b", "2"), HFSB_OK), STAGE("COMPLETED")};
    hfsb_status status;
    t_hub       h;
    t_hub_init(&h);
    h.opts.alloc = alloc;
    if (hfsb_hub_open(&h.opts, &h.hub, NULL) == HFSB_OK) {
        h.script = script;
        h.script_count = 3;
        status = t_job_logs(&h, true);
        T_CHECK(status == HFSB_OK || (heap->fail_at && status == HFSB_NOMEM));
        T_CHECK(h.err.code == status);
        if (status == HFSB_OK) T_STR(h.text, "1|a\n2|b\n");
    }
    t_hub_close(&h);
}

int main(void) {
    T_RUN(lines_are_delivered_however_the_stream_is_cut);
    T_RUN(line_ends_may_be_cr_or_crlf);
    T_RUN(the_caller_can_stop_a_log);
    T_RUN(silence_ends_a_log_that_is_not_followed);
    T_RUN(a_broken_log_continues_where_it_was);
    T_RUN(after_a_tail_lines_are_skipped_by_time);
    T_RUN(overlong_timestamps_are_ignored);
    T_RUN(tries_are_counted_from_the_last_new_line);
    T_RUN(an_event_without_end_is_refused);
    T_RUN(a_job_is_followed_to_its_end);
    T_RUN(follow_waits_for_a_quiet_job_without_a_word);
    T_RUN(every_final_stage_ends_the_log);
    T_RUN(the_owner_of_a_job_is_asked_for);
    t_name = "logs_fail_cleanly";
    t_each_allocation_fails(logs_fail_cleanly);
    return T_END();
}
