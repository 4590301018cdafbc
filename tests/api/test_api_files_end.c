/* test_api_files_end.c - /api/files when something goes wrong: peers that hang
   up, a server that ends, full disks, forbidden files, no memory. The result
   is the old file or the new one, and no temporary file. */
#include "../support/t_server_files.h"
#ifdef __linux__
#include <sched.h>
#include <sys/mount.h>
#endif

/* ---- interruptions ---- */

/* A server that goes on may make a temporary file after the peer has gone:
   each that comes must go, and at the server's end none is left. */
static void wait_clean(void) {
    int i;
    for (i = 0; i < 20000 && t_entries(".", ".hfsb-") != 0; i++) usleep(1000);
    T_CHECK(i < 20000);
}

static void stop_clean(void) {
    stop();
    T_CLEAN(".");
}

/* The peer hangs up after n bytes of a larger body. */
static void interrupt(size_t n, bool reset, bool chunked) {
    hfsb_buf bytes = HFSB_INIT;
    ts_conn  c = ts_connect(&srv);
    char     size[32];
    make_bytes(&bytes, n);
    ts_ask(&c, "PUT", "/api/files?path=kept",
           chunked ? "Transfer-Encoding: chunked\r\n"
                   : "Content-Length: 1000000000\r\n",
           nothing);
    snprintf(size, sizeof size, "%zx\r\n", n + 1);
    if (chunked) ts_send(&c, hfsb_cstr(size));
    ts_send(&c, hfsb_buf_str(&bytes));
    if (n) while (t_entries(".", ".kept.hfsb-") == 0) usleep(1000);
    if (reset) ts_reset(&c);
    else ts_hang_up(&c);
    wait_clean();
    T_FILE("kept", "old");
    hfsb_buf_free(&bytes);
}

static void an_interrupted_upload_leaves_the_old_file(void) {
    static const size_t sizes[] = {0, 1, 100000, 196608, 500000, 3000000};
    size_t   i;
    ts_conn  c;
    ts_reply r = HFSB_INIT;
    start();
    t_put("kept", "old");
    for (i = 0; i < TT_COUNT(sizes); i++) {
        interrupt(sizes[i], false, false);
        interrupt(sizes[i], true, false);
        interrupt(sizes[i], false, true);
    }
    /* half-closed: refused */
    c = ts_connect(&srv);
    ts_ask(&c, "PUT", "/api/files?path=kept", "Content-Length: 10\r\n",
           nothing);
    ts_send(&c, HFSB_LIT("12345"));
    shutdown(c.fd, SHUT_WR);
    T_CHECK(ts_read(&c, &r, false));
    TS_REFUSED(&r, 400, NULL);
    ts_hang_up(&c);
    wait_clean();
    T_FILE("kept", "old");
    ts_drop(&r);
    stop_clean();
}

static void a_body_that_does_not_come_leaves_the_old_file(void) {
    hfsb_server_opts o = HFSB_INIT;
    ts_reply         r = HFSB_INIT;
    ts_conn          c;
    o.body_ms = 200;
    start_with("", &o);
    t_put("kept", "old");
    c = ts_connect(&srv);
    ts_ask(&c, "PUT", "/api/files?path=kept", "Content-Length: 10\r\n",
           nothing);
    ts_send(&c, HFSB_LIT("12345"));
    T_CHECK(ts_read(&c, &r, false));
    TS_REFUSED(&r, 408, NULL);
    ts_hang_up(&c);
    wait_clean();
    T_FILE("kept", "old");
    ts_drop(&r);
    stop_clean();
}

/* A stop waits for the rest of a body, and for its file. */
static void a_stop_lets_an_upload_finish(void) {
    ts_reply r = HFSB_INIT;
    ts_conn  c;
    start();
    t_put("kept", "old");
    c = ts_connect(&srv);
    ts_ask(&c, "PUT", "/api/files?path=kept", "Content-Length: 6\r\n",
           nothing);
    ts_send(&c, HFSB_LIT("new"));
    while (t_entries(".", ".kept.hfsb-") == 0) usleep(1000);
    hfsb_server_stop(srv.server);
    usleep(20000);
    T_FILE("kept", "old");
    ts_send(&c, HFSB_LIT("est"));
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 200, "\"bytes\":6");
    T_FILE("kept", "newest");
    ts_hang_up(&c);
    ts_drop(&r);
    stop_clean();
}

/* The server ends while uploads and downloads are under way. */
static void the_end_of_the_server_leaves_the_old_file(void) {
    int      turn;
    hfsb_buf bytes = HFSB_INIT;
    make_bytes(&bytes, 8 << 20);
    T_CHECK(hfsb_file_write(NULL, HFSB_LIT("large"), hfsb_buf_str(&bytes),
                            NULL, NULL, NULL) == HFSB_OK);
    t_put("kept", "old");
    for (turn = 0; turn < 8; turn++) {
        ts_conn c[4];
        size_t  i;
        start();
        for (i = 0; i < TT_COUNT(c); i++) {
            c[i] = ts_connect(&srv);
            if (i % 2) {
                ts_ask(&c[i], "GET", "/api/files?path=large", "", nothing);
                continue;
            }
            ts_ask(&c[i], "PUT", "/api/files?path=kept",
                   "Content-Length: 100000000\r\n", nothing);
            ts_send(&c[i], hfsb_str_slice(hfsb_buf_str(&bytes), 0,
                                          (size_t)turn * 100000));
        }
        usleep((useconds_t)turn * 2000);
        ts_end(&srv, true);
        T_CHECK(tt_memory.heap.live == 0);
        T_CLEAN(".");
        T_FILE("kept", "old");
        for (i = 0; i < TT_COUNT(c); i++) ts_hang_up(&c[i]);
    }
    hfsb_buf_free(&bytes);
    unlink("large");
}

/* A download that is given up, before and while it is sent. */
static void an_interrupted_download_leaves_nothing_open(void) {
    hfsb_buf bytes = HFSB_INIT;
    int      i;
    size_t   fds;
    start();
    make_bytes(&bytes, 6 << 20);
    T_CHECK(hfsb_file_write(NULL, HFSB_LIT("large"), hfsb_buf_str(&bytes),
                            NULL, NULL, NULL) == HFSB_OK);
    fds = tt_count_fds();
    for (i = 0; i < 30; i++) {
        ts_conn c = ts_connect(&srv);
        ts_ask(&c, "GET", "/api/files?path=large", "", nothing);
        if (i % 3 == 1) (void)ts_more(&c, 1000);
        if (i % 3 == 2) usleep(3000);
        ts_reset(&c);
    }
    for (i = 0; i < 20000 && tt_count_fds() > fds; i++) usleep(1000);
    T_CHECK(tt_count_fds() <= fds + 1); /* a pool's, started meanwhile */
    hfsb_buf_free(&bytes);
    stop();
    unlink("large");
}

static void a_file_that_shrinks_ends_the_connection(void) {
    hfsb_buf bytes = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    ts_conn  c;
    start();
    make_bytes(&bytes, 48 << 20);
    T_CHECK(hfsb_file_write(NULL, HFSB_LIT("large"), hfsb_buf_str(&bytes),
                            NULL, NULL, NULL) == HFSB_OK);
    c = ts_connect(&srv);
    ts_ask(&c, "GET", "/api/files?path=large", "", nothing);
    T_CHECK(ts_more(&c, 20000));
    T_CHECK(truncate("large", 1000) == 0);
    T_CHECK(!ts_read(&c, &r, false)); /* not whole, and at its end */
    T_CHECK(c.ended && r.status == 200);
    ts_hang_up(&c);
    ts_drop(&r);
    hfsb_buf_free(&bytes);
    stop();
    unlink("large");
}

/* ---- limits of the machine ---- */

static const char *no_space(void) {
#ifdef __linux__
    ts_reply r = HFSB_INIT;
    hfsb_buf bytes = HFSB_INIT;
    if (!t_root_user()) return "needs root";
    if (unshare(CLONE_NEWNS) != 0 ||
        mount("none", "/", "none", MS_REC | MS_PRIVATE, NULL) != 0)
        return "no mounts of our own";
    (void)mkdir("small", 0755);
    if (mount("none", "small", "tmpfs", 0, "size=64k") != 0)
        return "no tmpfs";
    t_put("small/file", "old");
    start();
    make_bytes(&bytes, 1 << 20);
    put(&r, "path=small/file", "", hfsb_buf_str(&bytes));
    TS_REFUSED(&r, 507, "no space left on the device");
    T_FILE("small/file", "old");
    T_CLEAN("small");
    if (mount("none", "small", "none", MS_REMOUNT | MS_RDONLY, NULL) == 0) {
        put(&r, "path=small/new", "", HFSB_LIT("x"));
        TS_REFUSED(&r, 403, "the file system is read-only");
    }
    hfsb_buf_free(&bytes);
    ts_drop(&r);
    stop();
    return NULL;
#else
    return "only on Linux";
#endif
}

static const char *file_size_limit(void) {
    struct rlimit limit;
    ts_reply      r = HFSB_INIT;
    hfsb_buf      bytes = HFSB_INIT;
    t_put("limited", "old");
    limit.rlim_cur = limit.rlim_max = 100000;
    T_CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    start();
    make_bytes(&bytes, 1 << 20);
    put(&r, "path=limited", "", hfsb_buf_str(&bytes));
    TS_REFUSED(&r, 507, "the file size limit is reached");
    T_FILE("limited", "old");
    T_CLEAN(".");
    hfsb_buf_free(&bytes);
    ts_drop(&r);
    stop();
    return NULL;
}

static const char *another_user(void) {
    ts_reply r = HFSB_INIT;
    if (!t_root_user()) return "needs root";
    t_put("theirs", "old");
    T_CHECK(chmod("theirs", 0600) == 0);
    if (setgid(65534) != 0 || setuid(65534) != 0) return "no other user";
    start();
    get(&r, "path=theirs", "");
    TS_REFUSED(&r, 403, "permission denied");
    put(&r, "path=theirs", "", HFSB_LIT("new"));
    TS_REFUSED(&r, 403, "permission denied");
    put(&r, "path=new", "", HFSB_LIT("new"));
    TS_REFUSED(&r, 403, "permission denied");
    ts_call(&srv, &r, "DELETE", "/api/files?path=theirs", "", nothing);
    TS_REFUSED(&r, 403, "permission denied");
    ts_drop(&r);
    stop();
    return NULL;
}

static void full_disks_and_forbidden_files_have_their_status(void) {
    t_in_child(no_space);
    t_in_child(file_size_limit);
    t_in_child(another_user);
}

/* ---- memory ---- */

/* One exchange, with a connection that may end at any place. */
static void try_exchange(const char *method, const char *target,
                         const char *fields, hfsb_str body) {
    ts_reply r = HFSB_INIT;
    ts_conn  c = ts_connect(&srv);
    ts_ask(&c, method, target, fields, body);
    if (ts_read(&c, &r, false))
        T_CHECK(r.status == 503 || r.status / 100 == 2);
    ts_hang_up(&c);
    ts_drop(&r);
}

static void set_faults(size_t at, bool forever) {
    pthread_mutex_lock(&tt_memory.lock);
    tt_memory.heap.calls = 0;
    tt_memory.heap.forever = forever;
    tt_memory.heap.fail_at = at;
    pthread_mutex_unlock(&tt_memory.lock);
}

static size_t allocations(void) {
    size_t n;
    pthread_mutex_lock(&tt_memory.lock);
    n = tt_memory.heap.calls;
    pthread_mutex_unlock(&tt_memory.lock);
    return n;
}

static void each_allocation_fails_in_turn(void) {
    static const char *fields =
        "Range: bytes=1-\r\nIf-Match: *\r\nIf-Range: \"x\"\r\n";
    hfsb_buf bytes = HFSB_INIT;
    size_t   k, turn, total = 0;
    make_bytes(&bytes, 300000);
    start();
    for (turn = 0; turn < 6; turn++)
        for (k = 0; k == 0 || k <= total; k++) {
            t_put("fails", "old");
            set_faults(k, turn >= 3);
            if (turn % 3 == 0)
                try_exchange("GET", "/api/files?path=fails", fields, nothing);
            else if (turn % 3 == 1)
                try_exchange("PUT", "/api/files?path=fails&mode=644",
                             "If-Match: *\r\n", hfsb_buf_str(&bytes));
            else
                try_exchange("DELETE", "/api/files?path=fails",
                             "If-Match: *\r\n", nothing);
            if (k == 0) total = allocations() + 3;
            set_faults(0, false);
            wait_clean();
        }
    T_CHECK(total > 10);
    stop_clean();
    unlink("fails");
    hfsb_buf_free(&bytes);
}

/* However much comes, only some blocks of it are held. */
static void an_upload_is_not_held_in_memory(void) {
    hfsb_buf bytes = HFSB_INIT;
    ts_reply r = HFSB_INIT;
    ts_conn  c;
    size_t   before, now, most = 0, i;
    start();
    make_bytes(&bytes, 1 << 20);
    c = ts_connect(&srv);
    before = tt_memory_held();
    ts_ask(&c, "PUT", "/api/files?path=much", "Content-Length: 67108864\r\n",
           nothing);
    for (i = 0; i < 64; i++) {
        T_CHECK(ts_send(&c, hfsb_buf_str(&bytes)));
        now = tt_memory_held();
        if (now > most) most = now;
    }
    T_CHECK(ts_read(&c, &r, false));
    TS_IS(&r, 201, "\"bytes\":67108864");
    T_CHECK(most - before < 1 << 20);
    ts_hang_up(&c);
    ts_drop(&r);
    hfsb_buf_free(&bytes);
    stop();
    unlink("much");
}

int main(void) {
    tt_begin();
    (void)umask(022);
    TT_RUN(an_interrupted_upload_leaves_the_old_file);
    TT_RUN(a_body_that_does_not_come_leaves_the_old_file);
    TT_RUN(a_stop_lets_an_upload_finish);
    TT_RUN(the_end_of_the_server_leaves_the_old_file);
    TT_RUN(an_interrupted_download_leaves_nothing_open);
    TT_RUN(a_file_that_shrinks_ends_the_connection);
    TT_RUN(full_disks_and_forbidden_files_have_their_status);
    TT_RUN(each_allocation_fails_in_turn);
    TT_RUN(an_upload_is_not_held_in_memory);
    return TT_END();
}
