/* test_sandbox_exec.c - programs on a sandbox, byte for byte: both ends of
   /api/exec, and connections that break. Messages that no client of ours sends
   are in tests/api/test_api_exec.c. */
#include "../support/t_calls.h"
#include <fcntl.h>

static ts_server        server;
static tc_proxy         proxy;
static tc_box           box;
static hfsb_exec_result end_of;

typedef struct seen {
    hfsb_buf  text[2];
    size_t    stop_after; /* bytes; 0: never */
    unsigned  cols, rows;
    long long hold_ms; /* before each piece */
} seen;

static int heard; /* atomic: output has come */

static bool take(void *user, hfsb_proc_stream stream, hfsb_str bytes) {
    seen *s = (seen *)user;
    __atomic_store_n(&heard, 1, __ATOMIC_SEQ_CST);
    if (s->hold_ms) (void)hfsb_cancel_wait(NULL, s->hold_ms);
    if (hfsb_buf_append(&s->text[stream], bytes) != HFSB_OK) abort();
    return !s->stop_after || s->text[0].len < s->stop_after;
}

static void size(void *user, unsigned *cols, unsigned *rows) {
    seen *s = (seen *)user;
    *cols = s->cols;
    *rows = s->rows;
}

static void drop(seen *s) {
    hfsb_buf_free(&s->text[0]);
    hfsb_buf_free(&s->text[1]);
    memset(s, 0, sizeof *s);
}

static void begin(void) {
    ts_start(&server, NULL, NULL);
    tc_proxy_open(&proxy, server.port);
    proxy.raw = true;
    tc_open(&box, proxy.port, NULL);
}

static void end(void) {
    tc_close(&box);
    tc_proxy_close(&proxy);
    ts_end(&server, false);
}

static hfsb_status run(seen *s, const char *const *argv, int in,
                       hfsb_err *err) {
    hfsb_exec_opts opts = HFSB_INIT;
    opts.argv = argv;
    opts.in = in;
    opts.on_output = take;
    if (s->cols) opts.size = size;
    opts.user = s;
    return hfsb_sandbox_exec(box.sandbox, &opts, &end_of, err);
}

static hfsb_status shell(seen *s, const char *script, hfsb_err *err) {
    const char *argv[4] = {"/bin/sh", "-c", NULL, NULL};
    argv[2] = script;
    return run(s, argv, -1, err);
}

/* A descriptor with these bytes, in an unlinked file. */
static int bytes_fd(hfsb_str bytes) {
    char path[] = "/tmp/hfsb-exec-XXXXXX";
    int  fd = mkstemp(path);
    if (fd < 0 || unlink(path) != 0) abort();
    if (write(fd, bytes.ptr, bytes.len) != (ssize_t)bytes.len) abort();
    if (lseek(fd, 0, SEEK_SET) != 0) abort();
    return fd;
}

static void words_are_kept_apart(void) {
    static const char *const argv[] = {"printf", "%s|", "a  b", "", "*",
                                       "$HOME", "\xC3\xA9\n", NULL};
    seen                     s = HFSB_INIT;
    hfsb_err                 err = HFSB_INIT;
    begin();
    T_CHECK(run(&s, argv, -1, &err) == HFSB_OK);
    T_STR(s.text[0], "a  b||*|$HOME|\xC3\xA9\n|");
    T_CHECK(end_of.exit_code == 0 && !end_of.signal);
    drop(&s);
    end();
}

static void ends_are_reported(void) {
    seen     s = HFSB_INIT;
    hfsb_err err = HFSB_INIT;
    begin();
    T_CHECK(shell(&s, "echo o; echo e >&2; exit 7", &err) == HFSB_OK);
    T_CHECK(end_of.exit_code == 7);
    T_STR(s.text[0], "o\n");
    T_STR(s.text[1], "e\n");
    T_CHECK(shell(&s, "kill -KILL $$", &err) == HFSB_OK);
    T_CHECK(end_of.signal == 9 && end_of.exit_code == -1);
    drop(&s);
    end();
}

static void a_timeout_ends_it(void) {
    seen           s = HFSB_INIT;
    hfsb_exec_opts opts = HFSB_INIT;
    hfsb_err       err = HFSB_INIT;
    begin();
    opts.command = HFSB_LIT("echo begun; sleep 60");
    opts.in = -1;
    opts.on_output = take;
    opts.user = &s;
    /* longer, if a busy machine prints nothing by then */
    for (opts.timeout = 0.9; !s.text[0].len && opts.timeout < 20;
         opts.timeout *= 4) {
        T_CHECK(hfsb_sandbox_exec(box.sandbox, &opts, &end_of, &err) ==
                HFSB_OK);
        T_CHECK(end_of.timed_out);
    }
    T_STR(s.text[0], "begun\n");
    drop(&s);
    end();
}

static void failures_have_their_codes(void) {
    static const char *const none[] = {"hfsb-no-such-program", NULL};
    seen                     s = HFSB_INIT;
    hfsb_exec_opts           opts = HFSB_INIT;
    hfsb_err                 err = HFSB_INIT;
    begin();
    T_CHECK(run(&s, none, -1, &err) == HFSB_NOT_FOUND);
    T_CHECK(strstr(err.msg, "hfsb-no-such-program") != NULL);
    opts.command = HFSB_LIT("true");
    opts.work_dir = HFSB_LIT("/hfsb/no/such");
    opts.in = -1;
    opts.on_output = take;
    opts.user = &s;
    T_CHECK(hfsb_sandbox_exec(box.sandbox, &opts, &end_of, &err) == HFSB_ARG);
    T_CHECK(strstr(err.msg, "Working directory not found") != NULL);
    drop(&s);
    end();
}

/* More bytes than all buffers on the way hold, of every value. */
static void bytes_pass_both_ways_unchanged(void) {
    static const char *const argv[] = {"cat", NULL};
    seen                     s = HFSB_INIT;
    hfsb_buf                 all = HFSB_INIT;
    hfsb_err                 err = HFSB_INIT;
    unsigned                 seed = 7;
    size_t                   i;
    int                      fd;
    for (i = 0; i < 6000000; i++) {
        seed = seed * 1103515245u + 12345u;
        if (hfsb_buf_append_byte(&all, (char)(seed >> 16)) != HFSB_OK) abort();
    }
    begin();
    fd = bytes_fd(hfsb_buf_str(&all));
    T_CHECK(run(&s, argv, fd, &err) == HFSB_OK && end_of.exit_code == 0);
    T_CHECK(hfsb_str_equal(hfsb_buf_str(&s.text[0]), hfsb_buf_str(&all)));
    close(fd);
    drop(&s);
    /* a program that reads slowly, and one that does not read */
    fd = bytes_fd(hfsb_buf_str(&all));
    T_CHECK(shell(&s, "true", &err) == HFSB_OK && end_of.exit_code == 0);
    {
        const char *slow[] = {"/bin/sh", "-c", "sleep 0.3; wc -c", NULL};
        T_CHECK(run(&s, slow, fd, &err) == HFSB_OK);
        T_STR(s.text[0], "6000000\n");
    }
    close(fd);
    hfsb_buf_free(&all);
    drop(&s);
    end();
}

/* The end of input comes while the queue of the program is full. */
static void the_end_of_input_waits_for_room(void) {
    const char *slow[] = {"/bin/sh", "-c", "sleep 0.2; wc -c", NULL};
    hfsb_buf    all = HFSB_INIT;
    hfsb_err    err = HFSB_INIT;
    seen        s = HFSB_INIT;
    size_t      kib;
    begin();
    for (kib = 1088; kib <= 2304; kib += 64) { /* pipes hold up to 1 MiB */
        int  fd;
        char text[32];
        while (all.len < kib * 1024)
            if (hfsb_buf_append_byte(&all, 'x') != HFSB_OK) abort();
        fd = bytes_fd(hfsb_buf_str(&all));
        T_CHECK(run(&s, slow, fd, &err) == HFSB_OK);
        snprintf(text, sizeof text, "%zu\n", kib * 1024);
        T_CHECK(hfsb_str_equal(hfsb_buf_str(&s.text[0]), hfsb_cstr(text)));
        close(fd);
        drop(&s);
    }
    hfsb_buf_free(&all);
    end();
}

static void a_slow_reader_loses_nothing(void) {
    seen     s = HFSB_INIT;
    hfsb_err err = HFSB_INIT;
    begin();
    s.hold_ms = 2;
    T_CHECK(shell(&s, "head -c 5000000 /dev/zero", &err) == HFSB_OK);
    T_CHECK(s.text[0].len == 5000000);
    drop(&s);
    end();
}

static void a_reader_that_stops_ends_it(void) {
    seen     s = HFSB_INIT;
    hfsb_err err = HFSB_INIT;
    begin();
    s.stop_after = 100;
    T_CHECK(shell(&s, "yes", &err) == HFSB_IO);
    T_CHECK(ts_commands(&server, 0, 0));
    drop(&s);
    end();
}

static void *cancel_soon(void *user) {
    (void)hfsb_cancel_wait(NULL, 300);
    hfsb_cancel_set((hfsb_cancel *)user);
    return NULL;
}

static void a_cancel_ends_it(void) {
    seen           s = HFSB_INIT;
    hfsb_exec_opts opts = HFSB_INIT;
    hfsb_cancel   *cancel = NULL;
    hfsb_err       err = HFSB_INIT;
    pthread_t      thread;
    begin();
    T_CHECK(hfsb_cancel_open(NULL, &cancel, NULL) == HFSB_OK);
    opts.command = HFSB_LIT("sleep 60");
    opts.in = -1;
    opts.on_output = take;
    opts.user = &s;
    opts.cancel = cancel;
    if (pthread_create(&thread, NULL, cancel_soon, cancel) != 0) abort();
    T_CHECK(hfsb_sandbox_exec(box.sandbox, &opts, &end_of, &err) ==
            HFSB_CANCELLED);
    pthread_join(thread, NULL);
    T_CHECK(ts_commands(&server, 0, 0)); /* it was killed there */
    hfsb_cancel_close(cancel);
    drop(&s);
    end();
}

static void *cancel_in_mid_output(void *user) {
    while (!__atomic_load_n(&heard, __ATOMIC_SEQ_CST)) tt_sleep_ms(5);
    return cancel_soon(user);
}

/* Output comes quicker than it is taken. */
static void a_flood_does_not_hold_up_a_cancel(void) {
    seen           s = HFSB_INIT;
    hfsb_exec_opts opts = HFSB_INIT;
    hfsb_cancel   *cancel = NULL;
    hfsb_err       err = HFSB_INIT;
    pthread_t      thread;
    begin();
    T_CHECK(hfsb_cancel_open(NULL, &cancel, NULL) == HFSB_OK);
    s.hold_ms = 2;
    s.stop_after = 64 << 20;
    opts.command = HFSB_LIT("yes");
    opts.in = -1;
    opts.on_output = take;
    opts.user = &s;
    opts.cancel = cancel;
    __atomic_store_n(&heard, 0, __ATOMIC_SEQ_CST);
    if (pthread_create(&thread, NULL, cancel_in_mid_output, cancel) != 0)
        abort();
    T_CHECK(hfsb_sandbox_exec(box.sandbox, &opts, &end_of, &err) ==
            HFSB_CANCELLED);
    pthread_join(thread, NULL);
    T_CHECK(s.text[0].len > 0);
    hfsb_cancel_close(cancel);
    drop(&s);
    end();
}

static void *write_soon(void *user) {
    (void)hfsb_cancel_wait(NULL, 300);
    if (write(*(int *)user, "stop\n", 5) != 5) abort();
    return NULL;
}

static void a_flood_does_not_hold_up_input(void) {
    const char *argv[] = {"/bin/sh", "-c",
                          "yes & read x; kill $!; wait; echo $x >&2", NULL};
    seen        s = HFSB_INIT;
    hfsb_err    err = HFSB_INIT;
    pthread_t   thread;
    int         fds[2];
    begin();
    s.hold_ms = 2;
    s.stop_after = 64 << 20;
    if (pipe(fds) != 0) abort();
    if (pthread_create(&thread, NULL, write_soon, &fds[1]) != 0) abort();
    T_CHECK(run(&s, argv, fds[0], &err) == HFSB_OK);
    pthread_join(thread, NULL);
    T_STR(s.text[1], "stop\n");
    close(fds[0]);
    close(fds[1]);
    drop(&s);
    end();
}

static void a_terminal_has_the_size_of_ours(void) {
    seen     s = HFSB_INIT;
    hfsb_err err = HFSB_INIT;
    begin();
    s.cols = 91;
    s.rows = 33;
    T_CHECK(shell(&s, "test -t 0 && test -t 1 && stty size; echo $TERM",
                  &err) == HFSB_OK);
    T_STR(s.text[0], "33 91\r\nxterm-256color\r\n");
    drop(&s);
    end();
}

/* The connection is cut in the middle. */
static void a_lost_connection_is_reported_and_ends_it(void) {
    seen     s = HFSB_INIT;
    hfsb_err err = HFSB_INIT;
    begin();
    proxy.cuts[0] = 5000;
    proxy.cut_at = 0;
    proxy.cut_count = 1;
    T_CHECK(shell(&s, "yes", &err) == HFSB_LOST);
    T_CHECK(ts_commands(&server, 0, 0));
    drop(&s);
    end();
}

static void an_older_server_is_refused(void) {
    seen     s = HFSB_INIT;
    hfsb_err err = HFSB_INIT;
    begin();
    tc_close(&box);
    proxy.raw = false;
    proxy.foreign = true;
    tc_open(&box, proxy.port, NULL);
    T_CHECK(shell(&s, "true", &err) == HFSB_REFUSED);
    T_CHECK(strstr(err.msg, "has no /api/exec") != NULL);
    drop(&s);
    end();
}

/* Callers add 128 to a signal. */
static void a_signal_that_no_system_has_is_none(void) {
    static const char *const puts[] = {"\"signal\":2147483647         }",
                                       "\"signal\":-9,\"timed_out\":false}",
                                       "\"signal\":128               }"};
    size_t                   i;
    begin();
    proxy.find = "\"signal\":15,\"timed_out\":false}";
    for (i = 0; i < TT_COUNT(puts); i++) {
        seen     s = HFSB_INIT;
        hfsb_err err = HFSB_INIT;
        char     put[64];
        snprintf(put, sizeof put, "%-*s", (int)strlen(proxy.find), puts[i]);
        proxy.put = put;
        T_CHECK(shell(&s, "kill -TERM $$", &err) == HFSB_OK);
        T_CHECK(end_of.signal == 0 && end_of.exit_code == -1);
        drop(&s);
    }
    proxy.find = NULL;
    end();
}

static void questions_are_answered(void) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_err      err = HFSB_INIT;
    begin();
    doc.alloc = tt_alloc();
    T_CHECK(hfsb_sandbox_ask(box.sandbox, HFSB_LIT("jobs"), NULL, &doc,
                             &err) == HFSB_OK);
    T_CHECK(hfsb_json_get(doc.root, "jobs") != NULL);
    hfsb_json_free(&doc);
    T_CHECK(hfsb_sandbox_ask(box.sandbox, HFSB_LIT("jobs/none"), NULL, &doc,
                             &err) == HFSB_NOT_FOUND);
    end();
}

/* Each allocation of both ends fails, once or from then on: the whole output,
   or an error. */
static void every_allocation_may_fail(void) {
    static const char *const argv[] = {"cat", NULL};
    size_t                   at, n = 0;
    int                      mode;
    begin();
    for (mode = 0; mode < 2; mode++)
        for (at = 0; at <= n; at += t_quick() ? 7 : 1) {
            seen        s = HFSB_INIT;
            hfsb_err    err = HFSB_INIT;
            hfsb_status st;
            int         in = bytes_fd(HFSB_LIT("abc"));
            tt_faults(at, mode == 1);
            st = run(&s, argv, in, &err);
            if (!at) n = tt_allocations();
            tt_faults(0, false);
            if (!at) T_CHECK(st == HFSB_OK);
            if (st == HFSB_OK) {
                T_STR(s.text[0], "abc");
                T_CHECK(end_of.exit_code == 0);
            } else T_CHECK(err.code == st && err.msg[0]);
            close(in);
            drop(&s);
        }
    T_CHECK(n > 5);
    T_CHECK(ts_commands(&server, 0, 0));
    end();
}

int main(void) {
    T_RUN(words_are_kept_apart);
    T_RUN(ends_are_reported);
    T_RUN(a_timeout_ends_it);
    T_RUN(failures_have_their_codes);
    T_RUN(bytes_pass_both_ways_unchanged);
    T_RUN(the_end_of_input_waits_for_room);
    T_RUN(a_slow_reader_loses_nothing);
    T_RUN(a_reader_that_stops_ends_it);
    T_RUN(a_cancel_ends_it);
    T_RUN(a_flood_does_not_hold_up_a_cancel);
    T_RUN(a_flood_does_not_hold_up_input);
    T_RUN(a_terminal_has_the_size_of_ours);
    T_RUN(a_lost_connection_is_reported_and_ends_it);
    T_RUN(an_older_server_is_refused);
    T_RUN(a_signal_that_no_system_has_is_none);
    T_RUN(questions_are_answered);
    T_RUN(every_allocation_may_fail);
    return T_END();
}
