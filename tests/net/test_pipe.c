/* test_pipe.c - connections through a pipe: two pumps in one loop, hostile
   frames, memory; commands that carry a server, and those that do not; the
   dial hook and Unix sockets. */
#include "../support/t_net.h"
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>

enum { MAX_SOCKETS = 16 };

/* A client's pump and a server's, joined by two pipes, in one loop. */
typedef struct pair {
    hfsbi_loop   *loop;
    hfsbi_mux    *client, *server;
    hfsbi_mux_end client_end, server_end;
    int           accepted[MAX_SOCKETS]; /* the server's ends of streams */
    size_t        count;
    bool          refuse;
} pair;

static void client_over(void *user, hfsbi_mux_end end) {
    ((pair *)user)->client_end = end;
}

static void server_over(void *user, hfsbi_mux_end end) {
    ((pair *)user)->server_end = end;
}

static hfsb_status accept_one(void *user, int *fd) {
    pair *p = (pair *)user;
    int   fds[2];
    if (p->refuse || p->count == MAX_SOCKETS || !hfsbi_socket_pair(fds))
        return HFSB_BUSY;
    p->accepted[p->count++] = fds[1];
    *fd = fds[0];
    return HFSB_OK;
}

/* The server's end says whether it is the server: "y", "n", or that it is
   another ("x"). */
static hfsb_status prove_one(void *user, int fd, void *room) {
    int    *calls = (int *)room;
    char    said;
    ssize_t n = read(fd, &said, 1);
    (void)user;
    T_CHECK(*calls < 2);
    ++*calls;
    if (n < 0 && errno == EAGAIN) return HFSB_BUSY;
    if (n == 1 && said == 'y') return HFSB_OK;
    return n == 1 && said == 'x' ? HFSB_CONNECT : HFSB_LOST;
}

static hfsb_status begin_with(pair *p, hfsb_alloc alloc, bool prove) {
    hfsbi_mux_opts o = HFSB_INIT;
    int            up[2], down[2];
    hfsb_status    st;
    memset(p, 0, sizeof *p);
    if (!hfsbi_pipe(up) || !hfsbi_pipe(down)) abort();
    st = hfsbi_loop_open(&alloc, 0, true, &p->loop, NULL);
    o.loop = p->loop;
    o.user = p;
    o.alloc = alloc;
    o.over = client_over;
    if (p->loop) hfsbi_loop_lock(p->loop);
    if (st == HFSB_OK)
        st = hfsbi_mux_open(&o, &down[0], &up[1], &p->client, NULL);
    o.accept = accept_one;
    if (prove) o.prove = prove_one;
    o.proof_room = sizeof(int);
    o.over = server_over;
    if (st == HFSB_OK)
        st = hfsbi_mux_open(&o, &up[0], &down[1], &p->server, NULL);
    hfsbi_close(&up[0]), hfsbi_close(&up[1]);
    hfsbi_close(&down[0]), hfsbi_close(&down[1]);
    return st;
}

static hfsb_status begin(pair *p, hfsb_alloc alloc) {
    return begin_with(p, alloc, false);
}

static void finish(pair *p) {
    size_t i;
    hfsbi_mux_close(p->client);
    hfsbi_mux_close(p->server);
    for (i = 0; i < p->count; i++) hfsbi_close(&p->accepted[i]);
    if (p->loop) hfsbi_loop_unlock(p->loop);
    hfsbi_loop_close(p->loop);
}

static void turns(pair *p, int n) {
    while (n--) hfsbi_loop_turn(p->loop, 0);
}

/* Sends all of `bytes` from one end to the other, which must be the same. */
static void send_through(pair *p, int from, int to, hfsb_str bytes) {
    size_t sent = 0, got = 0, quiet = 0;
    char  *back = (char *)malloc(bytes.len);
    if (!back) abort();
    while (got < bytes.len && quiet++ < 1000) {
        ssize_t n = sent < bytes.len
                        ? write(from, bytes.ptr + sent, bytes.len - sent)
                        : 0;
        if (n > 0) sent += (size_t)n;
        turns(p, 4);
        n = read(to, back + got, bytes.len - got);
        if (n > 0) got += (size_t)n;
        if (n > 0) quiet = 0;
    }
    T_CHECK(got == bytes.len && !memcmp(back, bytes.ptr, got));
    free(back);
}

static void fill(hfsb_buf *out, size_t n, unsigned seed) {
    while (out->len < n) {
        seed = seed * 1103515245u + 12345u;
        T_CHECK(hfsb_buf_append_byte(out, (char)(seed >> 16)) == HFSB_OK);
    }
}

/* ---- the pump ---- */

static void streams_carry_bytes_both_ways(void) {
    const hfsb_alloc none = HFSB_INIT;
    pair             p;
    hfsb_buf         text = HFSB_INIT;
    int              fd[3] = {-1, -1, -1};
    size_t           i;
    fill(&text, 3000000, 7); /* more than ten windows */
    T_CHECK(begin(&p, none) == HFSB_OK);
    for (i = 0; i < 3; i++) {
        T_CHECK(hfsbi_mux_connect(p.client, &fd[i], NULL) == HFSB_OK);
        turns(&p, 4);
    }
    T_CHECK(p.count == 3);
    for (i = 0; i < 3; i++) {
        send_through(&p, fd[i], p.accepted[i], hfsb_buf_str(&text));
        send_through(&p, p.accepted[i], fd[i], hfsb_buf_str(&text));
    }
    for (i = 0; i < 3; i++) hfsbi_close(&fd[i]);
    finish(&p);
    hfsb_buf_free(&text);
}

static void stream_that_nobody_reads_holds_up_no_other(void) {
    const hfsb_alloc none = HFSB_INIT;
    pair             p;
    hfsb_buf         text = HFSB_INIT;
    int              a = -1, b = -1, quiet = 0;
    size_t           stuck = 0;
    fill(&text, 65536, 3);
    T_CHECK(begin(&p, none) == HFSB_OK);
    T_CHECK(hfsbi_mux_connect(p.client, &a, NULL) == HFSB_OK);
    T_CHECK(hfsbi_mux_connect(p.client, &b, NULL) == HFSB_OK);
    turns(&p, 4);
    while (quiet++ < 100) {
        ssize_t n = write(a, text.ptr, text.len);
        if (n > 0) stuck += (size_t)n;
        if (n > 0) quiet = 0;
        turns(&p, 4);
    }
    /* two windows: one on the way, one in the buffers of sockets */
    T_CHECK(stuck >= HFSBI_MUX_WINDOW && stuck < 8u * HFSBI_MUX_WINDOW);
    send_through(&p, b, p.accepted[1], hfsb_buf_str(&text));
    send_through(&p, p.accepted[1], b, hfsb_buf_str(&text));
    hfsbi_close(&a), hfsbi_close(&b);
    finish(&p);
    hfsb_buf_free(&text);
}

static void end_comes_after_the_last_byte(void) {
    const hfsb_alloc none = HFSB_INIT;
    pair             p;
    char             room[16];
    int              fd = -1, other = -1;
    T_CHECK(begin(&p, none) == HFSB_OK);
    T_CHECK(hfsbi_mux_connect(p.client, &fd, NULL) == HFSB_OK);
    T_CHECK(hfsbi_mux_connect(p.client, &other, NULL) == HFSB_OK);
    turns(&p, 8);
    T_CHECK(p.count == 2 && write(p.accepted[0], "last", 4) == 4);
    hfsbi_close(&p.accepted[0]);
    turns(&p, 16);
    T_CHECK(read(fd, room, sizeof room) == 4 && !memcmp(room, "last", 4));
    T_CHECK(read(fd, room, sizeof room) == 0);
    hfsbi_close(&fd);
    turns(&p, 16);
    send_through(&p, other, p.accepted[1], HFSB_LIT("still there"));
    hfsbi_close(&other);
    turns(&p, 16);
    T_CHECK(read(p.accepted[1], room, sizeof room) == 0);
    T_CHECK(p.client_end == HFSBI_MUX_RUNS && p.server_end == HFSBI_MUX_RUNS);
    finish(&p);
}

static void refused_stream_ends_alone(void) {
    const hfsb_alloc none = HFSB_INIT;
    pair             p;
    char             room[16];
    int              fd = -1;
    T_CHECK(begin(&p, none) == HFSB_OK);
    p.refuse = true;
    T_CHECK(hfsbi_mux_connect(p.client, &fd, NULL) == HFSB_OK);
    T_CHECK(write(fd, "hello", 5) == 5);
    turns(&p, 16);
    T_CHECK(read(fd, room, sizeof room) <= 0 && errno != EAGAIN);
    hfsbi_close(&fd);
    p.refuse = false;
    T_CHECK(hfsbi_mux_connect(p.client, &fd, NULL) == HFSB_OK);
    turns(&p, 16);
    T_CHECK(p.count == 1);
    send_through(&p, fd, p.accepted[0], HFSB_LIT("hello"));
    hfsbi_close(&fd);
    finish(&p);
}

/* Opens n streams, none of them proved. */
static void begin_unproved(pair *p, int *fd, size_t n) {
    const hfsb_alloc none = HFSB_INIT;
    size_t           i;
    T_CHECK(begin_with(p, none, true) == HFSB_OK);
    for (i = 0; i < n; i++) {
        T_CHECK(hfsbi_mux_connect(p->client, &fd[i], NULL) == HFSB_OK);
        T_CHECK(write(fd[i], "held", 4) == 4);
    }
    turns(p, 16);
    T_CHECK(p->count == n && p->server_end == HFSBI_MUX_RUNS);
}

static void stream_without_proof_holds_up_no_other(void) {
    pair p;
    char room[16];
    int  fd[2] = {-1, -1};
    begin_unproved(&p, fd, 2);
    T_CHECK(read(p.accepted[0], room, sizeof room) < 0 && errno == EAGAIN);
    T_CHECK(write(p.accepted[1], "y", 1) == 1);
    turns(&p, 8);
    T_CHECK(read(p.accepted[1], room, sizeof room) == 4);
    send_through(&p, fd[1], p.accepted[1], HFSB_LIT("there"));
    send_through(&p, p.accepted[1], fd[1], HFSB_LIT("back"));
    T_CHECK(read(p.accepted[0], room, sizeof room) < 0 && errno == EAGAIN);
    T_CHECK(write(p.accepted[0], "y", 1) == 1);
    turns(&p, 8);
    T_CHECK(read(p.accepted[0], room, sizeof room) == 4 &&
            !memcmp(room, "held", 4));
    send_through(&p, p.accepted[0], fd[0], HFSB_LIT("back"));
    hfsbi_close(&fd[0]), hfsbi_close(&fd[1]);
    finish(&p);
}

static void stream_that_fails_its_proof_ends_alone(void) {
    pair p;
    char room[16];
    int  fd[4] = {-1, -1, -1, -1};
    begin_unproved(&p, fd, 4);
    T_CHECK(write(p.accepted[0], "n", 1) == 1);
    hfsbi_close(&p.accepted[1]); /* without a word */
    hfsbi_close(&fd[2]);         /* the client does not wait for it */
    turns(&p, 16);
    T_CHECK(read(fd[0], room, sizeof room) == 0);
    T_CHECK(read(fd[1], room, sizeof room) == 0);
    T_CHECK(read(p.accepted[2], room, sizeof room) == 0);
    T_CHECK(write(p.accepted[3], "y", 1) == 1);
    turns(&p, 8);
    T_CHECK(read(p.accepted[3], room, sizeof room) == 4);
    send_through(&p, p.accepted[3], fd[3], HFSB_LIT("back"));
    hfsbi_close(&fd[0]), hfsbi_close(&fd[1]), hfsbi_close(&fd[3]);
    turns(&p, 16);
    T_CHECK(p.client_end == HFSBI_MUX_RUNS && p.server_end == HFSBI_MUX_RUNS);
    finish(&p);
}

static void wrong_proof_ends_the_pipe(void) {
    pair p;
    char room[16];
    int  fd[2] = {-1, -1};
    begin_unproved(&p, fd, 2);
    T_CHECK(write(p.accepted[0], "x", 1) == 1);
    turns(&p, 8);
    T_CHECK(p.server_end == HFSBI_MUX_BROKE);
    T_CHECK(read(p.accepted[1], room, sizeof room) == 0);
    hfsbi_close(&fd[0]), hfsbi_close(&fd[1]);
    finish(&p);
}

static void bye_reaches_the_server(void) {
    const hfsb_alloc none = HFSB_INIT;
    pair             p;
    T_CHECK(begin(&p, none) == HFSB_OK);
    hfsbi_mux_bye(p.client);
    turns(&p, 8);
    T_CHECK(p.server_end == HFSBI_MUX_SAID_BYE && !hfsbi_mux_runs(p.server));
    finish(&p);
}

static void broken_pipe_ends_all_streams(void) {
    const hfsb_alloc none = HFSB_INIT;
    pair             p;
    char             room[4];
    int              fd = -1, more = -1;
    T_CHECK(begin(&p, none) == HFSB_OK);
    T_CHECK(hfsbi_mux_connect(p.client, &fd, NULL) == HFSB_OK);
    turns(&p, 8);
    hfsbi_mux_close(p.server);
    p.server = NULL;
    turns(&p, 8);
    T_CHECK(p.client_end == HFSBI_MUX_BROKE);
    T_CHECK(read(fd, room, sizeof room) == 0);
    T_CHECK(hfsbi_mux_connect(p.client, &more, NULL) == HFSB_CONNECT);
    hfsbi_close(&fd);
    finish(&p);
}

/* Frames that are valid each, but make no sense together. */
static void hostile_frames_end_the_pipe(void) {
    static const struct {
        const char *bytes;
        size_t      len;
        bool        to_client;
    } cases[] = {
        {"O\0\0\0\0\0\0\1", 8, true},  /* a server opens nothing */
        {"D\0\0\1\0\0\0\5x", 9, true}, /* of no stream */
        {"E\0\0\0\0\0\0\5", 8, true},
        {"C\0\0\1\0\0\0\1", 8, true}, /* more credit than the window */
        {"E\0\0\0\0\0\0\1D\0\0\1\0\0\0\1x", 17, true}, /* after its end */
        {"O\0\0\0\0\0\0\1", 8, false}, /* a number that was used */
        {"O\0\0\0\0\0\0\3O\0\0\0\0\0\0\2", 16, false}, /* or a lower one */
        {"D\0\0\1\0\0\0\7x", 9, false},
        {"garbage", 7, false}};
    const hfsb_alloc none = HFSB_INIT;
    size_t           i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        pair p;
        int  fd = -1;
        T_CHECK(begin(&p, none) == HFSB_OK);
        T_CHECK(hfsbi_mux_connect(p.client, &fd, NULL) == HFSB_OK);
        turns(&p, 8);
        hfsbi_mux_feed(cases[i].to_client ? p.client : p.server,
                       hfsb_str_make(cases[i].bytes, cases[i].len));
        T_CHECK((cases[i].to_client ? p.client_end : p.server_end) ==
                HFSBI_MUX_BROKE);
        turns(&p, 8);
        hfsbi_close(&fd);
        finish(&p);
    }
}

static void data_beyond_the_window_ends_the_pipe(void) {
    const hfsb_alloc none = HFSB_INIT;
    pair             p;
    hfsb_buf         text = HFSB_INIT;
    char             head[HFSBI_MUX_HEAD];
    int              fd = -1;
    unsigned         n = 0;
    fill(&text, 65536, 1);
    T_CHECK(begin(&p, none) == HFSB_OK);
    T_CHECK(hfsbi_mux_connect(p.client, &fd, NULL) == HFSB_OK);
    turns(&p, 8);
    hfsbi_mux_write_head(HFSBI_MUX_DATA, 65536, 1, head);
    while (p.server_end == HFSBI_MUX_RUNS && n++ < 100) {
        hfsbi_mux_feed(p.server, hfsb_str_make(head, sizeof head));
        hfsbi_mux_feed(p.server, hfsb_buf_str(&text));
    }
    /* what the socket took counts until credit is given back for it */
    T_CHECK(n > HFSBI_MUX_WINDOW / 65536 && n < 20);
    hfsbi_close(&fd);
    finish(&p);
    hfsb_buf_free(&text);
}

static void use_pair(hfsb_alloc alloc, const t_heap *heap) {
    pair p;
    char room[8];
    int  fd = -1;
    if (begin_with(&p, alloc, true) == HFSB_OK &&
        hfsbi_mux_connect(p.client, &fd, NULL) == HFSB_OK) {
        T_CHECK(write(fd, "ping", 4) == 4 || heap->fail_at);
        turns(&p, 8);
        if (p.count) T_CHECK(write(p.accepted[0], "y", 1) == 1 || heap->fail_at);
        if (p.count) T_CHECK(write(p.accepted[0], "pong", 4) == 4 || heap->fail_at);
        turns(&p, 8);
        T_CHECK(read(fd, room, sizeof room) == 4 || heap->fail_at);
    } else {
        T_CHECK(heap->fail_at);
    }
    hfsbi_close(&fd);
    finish(&p);
}

static void pump_survives_without_memory(void) {
    t_each_allocation_fails(use_pair);
}

/* ---- commands ---- */

static char folder[64];

/* In place of hfsb-server: answers, and reads to the end. */
static hfsb_status give_script(void *user, const char *system,
                               const char *machine, hfsb_buf *out,
                               hfsb_err *err) {
    ++*(int *)user;
    (void)err;
    T_CHECK(*system && *machine);
    return hfsb_buf_append(out, HFSB_LIT("#!/bin/sh\necho hfsb-pipe mux 1\n"
                                         "cat > /dev/null\n"));
}

static hfsb_status refuse_server(void *user, const char *system,
                                 const char *machine, hfsb_buf *out,
                                 hfsb_err *err) {
    (void)user, (void)system, (void)machine, (void)out;
    return hfsbi_fail(err, HFSB_NOT_FOUND, 0, "none for that machine");
}

typedef struct command {
    const char     *argv[4];
    char            line[512];
    hfsb_pipe_opts  o;
    hfsb_pipe      *pipe;
    hfsb_err        err;
    int             asked;
} command;

/* A command whose home for data is the folder of the test. */
static void set_command(command *c, const char *shell) {
    memset(c, 0, sizeof *c);
    snprintf(c->line, sizeof c->line, "XDG_DATA_HOME=%s TMPDIR=%s/tmp; "
             "export XDG_DATA_HOME TMPDIR; cd %s; %s",
             folder, folder, folder, shell);
    c->argv[0] = "sh";
    c->argv[1] = "-c";
    c->argv[2] = c->line;
    c->o.argv = c->argv;
    c->o.server = give_script;
    c->o.user = &c->asked;
    c->o.close_ms = 500;
}

static hfsb_status open_command(command *c, const char *shell) {
    set_command(c, shell);
    return hfsb_pipe_open(&c->o, &c->pipe, &c->err);
}

static bool cached(void) {
    char path[256];
    snprintf(path, sizeof path, "ls %s/hfsb/hfsb-server-* > /dev/null 2>&1",
             folder);
    return system(path) == 0;
}

/* What is sent is checked over there by one of these, of which POSIX has
   none. */
static bool can_check_sums(void) {
    return system("{ sha256sum /dev/null || shasum -a 256 /dev/null || openssl "
                  "dgst -sha256 /dev/null; } > /dev/null 2>&1") == 0;
}

static void a_machine_without_sha256_is_reported(void) {
    command c;
    T_CHECK(open_command(&c, "exec sh") == HFSB_REMOTE);
    T_CHECK(!c.pipe && strstr(c.err.msg, "sha256sum is missing"));
}

static void server_is_sent_once(void) {
    command c;
    T_CHECK(!cached());
    T_CHECK(open_command(&c, "exec sh") == HFSB_OK);
    hfsb_pipe_close(c.pipe);
    T_CHECK(c.asked == 1 && cached());
    T_CHECK(open_command(&c, "tee log | sh") == HFSB_OK);
    hfsb_pipe_close(c.pipe);
    T_CHECK(cached());
    set_command(&c, "! grep -q '^cat' log");
    T_CHECK(system(c.line) == 0);
}

static void damaged_server_is_sent_again(void) {
    command c;
    set_command(&c, "for f in hfsb/hfsb-server-*; do echo x >> $f; done");
    T_CHECK(system(c.line) == 0);
    T_CHECK(open_command(&c, "tee log | sh") == HFSB_OK);
    hfsb_pipe_close(c.pipe);
    set_command(&c, "grep -q '^cat' log && ! grep -q x$ hfsb/hfsb-server-*");
    T_CHECK(system(c.line) == 0);
}

/* With "umask 0", and a chmod that first notes the mode of its file. */
static void nobody_else_can_write_an_upload(void) {
    command c;
    set_command(&c, "rm -rf hfsb bin && mkdir bin && printf '#!/bin/sh\\nls "
                    "-ld hfsb \"$2\" > modes\\nexec %s \"$@\"\\n' "
                    "\"$(command -v chmod)\" > bin/chmod && chmod 755 "
                    "bin/chmod");
    T_CHECK(system(c.line) == 0);
    T_CHECK(open_command(&c, "umask 0; PATH=$PWD/bin:$PATH exec sh") ==
            HFSB_OK);
    hfsb_pipe_close(c.pipe);
    set_command(&c, "[ $(grep -c '^[d-]rw.------' modes) = 2 ]");
    T_CHECK(system(c.line) == 0);
}

/* Others may upload at the same time; only what has lain there for long has
   no owner. */
static void only_old_uploads_are_removed(void) {
    command c;
    set_command(&c, "rm -f hfsb/*; touch hfsb/hfsb-server-1.new && "
                    "touch -t 202001010000 hfsb/hfsb-server-1.old "
                    "hfsb/hfsb-server-1");
    T_CHECK(system(c.line) == 0);
    T_CHECK(open_command(&c, "exec sh") == HFSB_OK);
    hfsb_pipe_close(c.pipe);
    set_command(&c, "[ -e hfsb/hfsb-server-1.new ] && "
                    "[ ! -e hfsb/hfsb-server-1.old ] && "
                    "[ -e hfsb/hfsb-server-1 ]");
    T_CHECK(system(c.line) == 0);
}

/* In a folder that others may write, or that is a symlink, nobody keeps
   programs; nor are files removed there. */
static void folders_of_others_are_not_used(void) {
    static const char *const plant[] = {
        "rm -rf hfsb tmp && mkdir -p tmp else && ln -s else hfsb",
        "rm -rf hfsb tmp && mkdir -p tmp hfsb && chmod 770 hfsb",
        "rm -rf hfsb tmp && mkdir -p tmp hfsb && chmod 702 hfsb"};
    static const char left[] = "[ -e hfsb/hfsb-server-1 ] && "
                               "[ $(ls hfsb | wc -l) = 1 ] && "
                               "ls tmp/hfsb-*/hfsb-server-* > tmp/list";
    command c;
    size_t  i;
    for (i = 0; i < sizeof plant / sizeof *plant; i++) {
        set_command(&c, plant[i]);
        T_CHECK(system(c.line) == 0);
        set_command(&c, "touch hfsb/hfsb-server-1");
        T_CHECK(system(c.line) == 0);
        T_CHECK(open_command(&c, "exec sh") == HFSB_OK);
        hfsb_pipe_close(c.pipe);
        set_command(&c, left);
        T_CHECK(system(c.line) == 0);
        set_command(&c, "exec sh");
        T_CHECK(hfsb_pipe_forget(&c.o, &c.err) == HFSB_OK);
        set_command(&c, "[ -e hfsb/hfsb-server-1 ] && [ ! -e tmp/hfsb-* ]");
        T_CHECK(system(c.line) == 0);
    }
    set_command(&c, "rm -rf tmp; ln -s else tmp");
    T_CHECK(system(c.line) == 0);
    set_command(&c, "chmod 500 else; TMPDIR=/dev/null exec sh");
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_REMOTE);
    T_CHECK(strstr(c.err.msg, "set XDG_DATA_HOME"));
    set_command(&c, "rm -rf hfsb tmp else");
    T_CHECK(system(c.line) == 0);
}

static void noise_of_a_login_shell_is_skipped(void) {
    command c;
    T_CHECK(open_command(&c, "echo Welcome; seq 1 3000; exec sh") == HFSB_OK);
    hfsb_pipe_close(c.pipe);
}

/* As of a .bashrc that sets the title of the terminal. */
static void noise_may_lack_the_end_of_its_line(void) {
    command c;
    set_command(&c, "printf '\\033]0;title\\007'; exec sh");
    c.o.start_ms = 20000;
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_OK);
    hfsb_pipe_close(c.pipe);
    set_command(&c, "printf '\\033]0;title\\007'; exec sh");
    c.o.start_ms = 20000;
    T_CHECK(hfsb_pipe_forget(&c.o, &c.err) == HFSB_OK);
}

static void failures_are_explained(void) {
    static const struct {
        const char *shell;
        hfsb_status status;
        const char *says;
    } cases[] = {
        {"echo one >&2; echo 'Host key expired' >&2; exit 255", HFSB_CONNECT,
         "sh ended before hfsb-server answered (exit status 255): Host key "
         "expired."},
        {"exit 0", HFSB_CONNECT,
         "sh ended before hfsb-server answered (exit status 0)."},
        {"kill -9 $$", HFSB_CONNECT, "sh ended before hfsb-server answered."},
        /* the status of one that had to be ended says nothing */
        {"exec >&-; trap 'exit 255' TERM; echo why >&2; sleep 30 & wait",
         HFSB_CONNECT, "sh ended before hfsb-server answered: why."},
        {"cat", HFSB_REMOTE, "neither a shell nor hfsb-server answers"},
        {"yes", HFSB_REMOTE, "neither a shell nor hfsb-server answers"},
        {"echo hfsb-pipe mux 2; sleep 5", HFSB_REMOTE, "another version"},
        {"echo hfsb-pipe fail no folder; sleep 5", HFSB_REMOTE,
         "The other side reports: no folder"},
        /* no answer is taken twice */
        {"yes 'hfsb-pipe have'", HFSB_REMOTE, "reports: have"},
        {"echo hfsb-pipe shell Linux x; read l; read l; yes 'hfsb-pipe need'",
         HFSB_REMOTE, "reports: need"},
        {"echo hfsb-pipe shell Linux x; yes 'hfsb-pipe have'", HFSB_REMOTE,
         "reports: have"},
        {"echo hfsb-pipe; sleep 5", HFSB_TIMEOUT, "did not answer"},
        {"sleep 5", HFSB_TIMEOUT, "did not answer through sh in time."}};
    size_t i;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        command c;
        set_command(&c, cases[i].shell);
        c.o.start_ms = cases[i].status == HFSB_TIMEOUT ? 400 : 20000;
        T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == cases[i].status);
        T_CHECK(!c.pipe && strstr(c.err.msg, cases[i].says));
        T_CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
    }
}

/* "Is the daemon running?." reads as if two had spoken. */
static void messages_of_a_command_keep_their_end(void) {
    static const char *const ends[] = {"(publickey).", "running?", "No!"};
    command                  c;
    size_t                   i;
    char                     line[64];
    for (i = 0; i < sizeof ends / sizeof *ends; i++) {
        snprintf(line, sizeof line, "echo 'is %s' >&2; exit 255", ends[i]);
        set_command(&c, line);
        T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_CONNECT);
        snprintf(line, sizeof line, "answered (exit status 255): is %s",
                 ends[i]);
        T_CHECK(hfsb_str_ends(hfsb_cstr(c.err.msg), hfsb_cstr(line)));
    }
}

static hfsb_status give_much(void *user, const char *system,
                             const char *machine, hfsb_buf *out,
                             hfsb_err *err) {
    size_t i;
    (void)user, (void)system, (void)machine, (void)err;
    for (i = 0; i < 250000; i++) hfsb_buf_append(out, HFSB_LIT("1234"));
    return out->status;
}

/* The report is read, though there is nobody to write to any more. */
static void full_disk_is_reported_with_its_folder(void) {
    command c;
    set_command(&c, "mkdir -p full && printf '#!/bin/sh\necho No space left "
                    "on device >&2\nexit 1\n' > full/head && chmod 755 "
                    "full/head");
    T_CHECK(system(c.line) == 0);
    set_command(&c, "PATH=$PWD/full:$PATH exec sh");
    c.o.server = give_much;
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_REMOTE);
    T_CHECK(strstr(c.err.msg, "cannot write hfsb-server, 1000 kB, to "));
    T_CHECK(strstr(c.err.msg, folder) && strstr(c.err.msg, "/hfsb: make room"));
    T_CHECK(strstr(c.err.msg, "set XDG_DATA_HOME there"));
    T_CHECK(strstr(c.err.msg, "(No space left on device)"));
    set_command(&c, "[ -z \"$(ls hfsb)\" ] && rmdir hfsb");
    T_CHECK(system(c.line) == 0);
}

static void missing_program_and_server_are_reported(void) {
    command c;
    set_command(&c, "exec sh");
    c.o.server = refuse_server;
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_NOT_FOUND);
    T_CHECK(strstr(c.err.msg, "none for that machine"));
    c.o.server = NULL;
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_REFUSED);
    c.argv[0] = "hfsb-no-such-program";
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_NOT_FOUND);
}

static hfsb_status give_late(void *user, const char *system,
                             const char *machine, hfsb_buf *out,
                             hfsb_err *err) {
    (void)user, (void)system, (void)machine, (void)out;
    return hfsbi_fail(err, HFSB_TIMEOUT, 0, "The mirror is slow.");
}

/* What the command prints is no part of it. */
static void message_about_a_server_stays_as_it_is(void) {
    command c;
    set_command(&c, "echo 'Last login: today' >&2; exec sh");
    c.o.server = give_late;
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_TIMEOUT);
    T_STR(hfsb_cstr(c.err.msg), "The mirror is slow.");
}

static hfsb_status name_machine(void *user, const char *system,
                                const char *machine, hfsb_buf *out,
                                hfsb_err *err) {
    (void)user, (void)out;
    return hfsbi_fail(err, HFSB_NOT_FOUND, 0, "<%s %s>", system, machine);
}

/* It reaches a person's terminal. */
static void name_of_a_machine_is_safe_to_show_and_in_a_path(void) {
    command c;
    set_command(&c, "printf 'hfsb-pipe shell A\\033[31m-1.2 x\\302\\233m\\n'; "
                    "sleep 5");
    c.o.server = name_machine;
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_NOT_FOUND);
    T_STR(hfsb_cstr(c.err.msg), "<A?\?31m-1.2 x?\?m>");
    set_command(&c, "echo hfsb-pipe shell Linux x86_64/../../secret; sleep 5");
    c.o.server = name_machine;
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_NOT_FOUND);
    T_STR(hfsb_cstr(c.err.msg), "<Linux x86_64?..?..?secret>");
}

/* Neither a dial nor the end waits for it. */
static void flood_on_stderr_holds_up_nothing(void) {
    command   c;
    hfsb_dial to = HFSB_INIT;
    int       fd = -1, i;
    T_CHECK(open_command(&c, "yes noise >&2 & echo hfsb-pipe mux 1; "
                             "exec cat > /dev/null") == HFSB_OK);
    for (i = 0; i < 10; i++) {
        to.deadline = hfsb_clock_ms() + 20000;
        T_CHECK(hfsb_pipe_dial(c.pipe, &to, &fd, &c.err) == HFSB_OK);
        hfsbi_close(&fd);
    }
    hfsb_pipe_close(c.pipe);
    T_CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static void *cancel_soon(void *user) {
    (void)hfsb_cancel_wait(NULL, 100);
    hfsb_cancel_set((hfsb_cancel *)user);
    return NULL;
}

static void start_can_be_cancelled(void) {
    command      c;
    hfsb_cancel *cancel;
    pthread_t    thread;
    T_CHECK(hfsb_cancel_open(NULL, &cancel, NULL) == HFSB_OK);
    set_command(&c, "sleep 30");
    c.o.cancel = cancel;
    T_CHECK(pthread_create(&thread, NULL, cancel_soon, cancel) == 0);
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_CANCELLED);
    pthread_join(thread, NULL);
    hfsb_cancel_close(cancel);
}

/* In place of hfsb-server: ends at the first frame. */
static hfsb_status give_short_life(void *user, const char *system,
                                   const char *machine, hfsb_buf *out,
                                   hfsb_err *err) {
    (void)system, (void)machine, (void)err;
    ++*(int *)user;
    return hfsb_buf_append(out, HFSB_LIT("#!/bin/sh\necho hfsb-pipe mux 1\n"
                                         "head -c 8 > /dev/null\n"));
}

/* As srun does, whose job is in a queue. */
static void command_may_clean_up_at_the_end(void) {
    command c;
    set_command(&c, "trap 'echo removed > queue; echo gone >&2; exit 1' TERM; "
                    "echo 'job 5 is queued' >&2; sleep 30 & wait");
    c.o.start_ms = 3000;
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_TIMEOUT);
    T_CHECK(strstr(c.err.msg, "through sh in time: job 5 is queued."));
    set_command(&c, "[ -s queue ]");
    T_CHECK(system(c.line) == 0);
    /* a shell that waits for it ends at once */
    set_command(&c, "(trap 'sleep 1; echo removed > later; exit 1' TERM; "
                    "sleep 30 & wait); :");
    c.o.start_ms = 1000;
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_TIMEOUT);
    set_command(&c, "[ -s later ]");
    T_CHECK(system(c.line) == 0);
}

static void command_that_dies_is_started_again(void) {
    command   c;
    hfsb_dial to = HFSB_INIT;
    int       fd = -1, i;
    short     ready;
    set_command(&c, "[ -e died ] || { : > died; exit 0; }; exec sh");
    c.o.server = give_short_life;
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_OK);
    for (i = 0; i < 3; i++) {
        to.deadline = hfsb_clock_ms() + 5000;
        T_CHECK(hfsb_pipe_dial(c.pipe, &to, &fd, &c.err) == HFSB_OK);
        T_CHECK(hfsbi_wait_fd(fd, POLLIN, to.deadline, NULL, &ready) ==
                HFSB_OK);
        hfsbi_close(&fd);
    }
    T_CHECK(c.asked == 3);
    hfsb_pipe_close(c.pipe);
    T_CHECK(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

static void *come_back_soon(void *user) {
    (void)hfsb_cancel_wait(NULL, 700);
    TN_MUST(unlink((const char *)user) == 0);
    return NULL;
}

/* A network that is away for a while: ssh exits with 255, and says why. */
static void command_that_fails_after_a_break_is_awaited(void) {
    command   c;
    hfsb_dial to = HFSB_INIT;
    char      down[96];
    int       fd = -1;
    short     ready;
    pthread_t thread;
    snprintf(down, sizeof down, "%s/down", folder);
    set_command(&c, "[ ! -e down ] || { echo no route >&2; exit 255; }; "
                    "read -r l; echo hfsb-pipe mux 1; head -c 8 > /dev/null");
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_OK);
    to.deadline = hfsb_clock_ms() + 20000;
    T_CHECK(hfsb_pipe_dial(c.pipe, &to, &fd, &c.err) == HFSB_OK);
    TN_MUST(close(open(down, O_CREAT | O_WRONLY, 0600)) == 0);
    T_CHECK(hfsbi_wait_fd(fd, POLLIN, to.deadline, NULL, &ready) == HFSB_OK);
    hfsbi_close(&fd); /* the pipe has broken */
    TN_MUST(pthread_create(&thread, NULL, come_back_soon, down) == 0);
    T_CHECK(hfsb_pipe_dial(c.pipe, &to, &fd, &c.err) == HFSB_OK);
    pthread_join(thread, NULL);
    hfsbi_close(&fd);
    hfsb_pipe_close(c.pipe);
}

/* ssh waits for packets that were lost while there was no network. */
static void start_that_hangs_after_a_break_is_repeated(void) {
    command   c;
    hfsb_dial to = HFSB_INIT;
    int       fd = -1;
    short     ready;
    set_command(&c, "[ ! -e broke ] || { rm broke; exec sleep 1000; }; "
                    "read -r l; echo hfsb-pipe mux 1; head -c 8 > /dev/null; "
                    "[ -e broken ] || : > broke; : > broken");
    c.o.linger_ms = 6000; /* a start gets a third of it */
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_OK);
    to.deadline = hfsb_clock_ms() + 20000;
    T_CHECK(hfsb_pipe_dial(c.pipe, &to, &fd, &c.err) == HFSB_OK);
    T_CHECK(hfsbi_wait_fd(fd, POLLIN, to.deadline, NULL, &ready) == HFSB_OK);
    hfsbi_close(&fd); /* the pipe has broken */
    T_CHECK(hfsb_pipe_dial(c.pipe, &to, &fd, &c.err) == HFSB_OK);
    hfsbi_close(&fd);
    hfsb_pipe_close(c.pipe);
    set_command(&c, "[ -e broken ] && [ ! -e broke ]");
    T_CHECK(system(c.line) == 0);
}

/* A command that ignores SIGTERM is ended later than a start may take. */
static void command_that_will_not_end_leaves_time_for_the_next(void) {
    command   c;
    hfsb_dial to = HFSB_INIT;
    int       fd = -1;
    short     ready;
    set_command(&c, "read -r l; echo hfsb-pipe mux 1; head -c 8 > /dev/null; "
                    "[ -e stays ] || { : > stays; trap '' TERM; exec <&- >&-; "
                    "sleep 1000; }");
    c.o.linger_ms = 3000;
    c.o.again_ms = 2000;
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_OK);
    to.deadline = hfsb_clock_ms() + 20000;
    T_CHECK(hfsb_pipe_dial(c.pipe, &to, &fd, &c.err) == HFSB_OK);
    T_CHECK(hfsbi_wait_fd(fd, POLLIN, to.deadline, NULL, &ready) == HFSB_OK);
    hfsbi_close(&fd); /* the pipe has broken */
    T_CHECK(hfsb_pipe_dial(c.pipe, &to, &fd, &c.err) == HFSB_OK);
    hfsbi_close(&fd);
    hfsb_pipe_close(c.pipe);
}

/* The command before it took all the time that the dial had. */
static void dial_whose_time_is_up_starts_nothing(void) {
    command   c;
    hfsb_dial to = HFSB_INIT;
    int       fd = -1;
    short     ready;
    set_command(&c, "echo one >> starts; read -r l; echo hfsb-pipe mux 1; "
                    "head -c 8 > /dev/null; trap '' TERM; exec <&- >&-; "
                    "sleep 1000");
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_OK);
    to.deadline = hfsb_clock_ms() + 20000;
    T_CHECK(hfsb_pipe_dial(c.pipe, &to, &fd, &c.err) == HFSB_OK);
    T_CHECK(hfsbi_wait_fd(fd, POLLIN, to.deadline, NULL, &ready) == HFSB_OK);
    hfsbi_close(&fd); /* the pipe has broken */
    to.deadline = hfsb_clock_ms() + 500;
    T_CHECK(hfsb_pipe_dial(c.pipe, &to, &fd, &c.err) == HFSB_TIMEOUT);
    T_STR(hfsb_cstr(c.err.msg), "Gave up waiting for the pipe.");
    hfsb_pipe_close(c.pipe);
    set_command(&c, "[ \"$(cat starts)\" = one ]");
    T_CHECK(system(c.line) == 0);
}

/* Once the server over there has given up, a dial fails as a first start. */
static void nobody_waits_longer_than_the_server(void) {
    command   c;
    hfsb_dial to = HFSB_INIT;
    char      down[96];
    int       fd = -1;
    short     ready;
    snprintf(down, sizeof down, "%s/down", folder);
    set_command(&c, "[ ! -e down ] || { echo no route >&2; exit 255; }; "
                    "read -r l; echo hfsb-pipe mux 1; head -c 8 > /dev/null");
    c.o.linger_ms = 300;
    T_CHECK(hfsb_pipe_open(&c.o, &c.pipe, &c.err) == HFSB_OK);
    to.deadline = hfsb_clock_ms() + 60000;
    T_CHECK(hfsb_pipe_dial(c.pipe, &to, &fd, &c.err) == HFSB_OK);
    TN_MUST(close(open(down, O_CREAT | O_WRONLY, 0600)) == 0);
    T_CHECK(hfsbi_wait_fd(fd, POLLIN, to.deadline, NULL, &ready) == HFSB_OK);
    hfsbi_close(&fd);
    T_CHECK(hfsb_pipe_dial(c.pipe, &to, &fd, &c.err) == HFSB_CONNECT);
    T_CHECK(strstr(c.err.msg, "no route"));
    T_CHECK(hfsb_clock_ms() < to.deadline - 30000);
    T_CHECK(unlink(down) == 0);
    hfsb_pipe_close(c.pipe);
}

static void forget_removes_the_server(void) {
    command c;
    T_CHECK(cached());
    set_command(&c, "exec sh");
    T_CHECK(hfsb_pipe_forget(&c.o, &c.err) == HFSB_OK);
    T_CHECK(!cached());
    T_CHECK(hfsb_pipe_forget(&c.o, &c.err) == HFSB_OK);
}

static void forget_fails_where_no_shell_answers(void) {
    command c;
    set_command(&c, "read -r l; echo hfsb-pipe mux 1; cat > said");
    T_CHECK(hfsb_pipe_forget(&c.o, &c.err) == HFSB_REFUSED);
    T_CHECK(strstr(c.err.msg, "hfsb-server itself answers through sh"));
    set_command(&c, "grep -q ^B said"); /* its server was told to end */
    T_CHECK(system(c.line) == 0);
}

/* ---- the other side ---- */

/* A bridge in a thread: what the client writes to pipe[1] goes to it, and
   what it answers comes from reply[0]. */
typedef struct bridge {
    int                  pipe[2], reply[2], server[2];
    hfsb_pipe_serve_opts o;
    hfsb_status          dialled, st;
    int                  dials;
    bool                 late; /* a dial without time */
    bool                 bye;
} bridge;

static hfsb_status dial_as_told(void *user, const hfsb_dial *to, int *fd,
                                hfsb_err *err) {
    bridge *b = (bridge *)user;
    int     fds[2];
    (void)err;
    if (to->deadline <= hfsb_clock_ms()) b->late = true;
    b->dials++;
    if (b->dialled != HFSB_OK) return b->dialled;
    TN_MUST(hfsbi_socket_pair(fds));
    *fd = fds[0];
    hfsbi_close(&fds[1]);
    return HFSB_OK;
}

static void *run_bridge(void *user) {
    bridge *b = (bridge *)user;
    b->st = hfsb_pipe_serve(b->pipe[0], b->reply[1], &b->o, &b->bye, NULL);
    return NULL;
}

static pthread_t start_bridge(bridge *b, hfsb_status dialled) {
    pthread_t thread;
    memset(b, 0, sizeof *b);
    b->dialled = dialled;
    TN_MUST(hfsbi_pipe(b->pipe) && hfsbi_pipe(b->reply) &&
            hfsbi_socket_pair(b->server));
    b->o.dial = dial_as_told;
    b->o.user = b;
    b->o.server = b->server[0];
    TN_MUST(pthread_create(&thread, NULL, run_bridge, b) == 0);
    return thread;
}

/* Its end closes the pipe, so the client starts the command again. */
static void end_bridge(bridge *b, pthread_t thread) {
    char room[64];
    while (read(b->reply[0], room, sizeof room) > 0) continue;
    pthread_join(thread, NULL);
    T_CHECK(b->st == HFSB_OK && !b->bye && !b->late);
    hfsbi_close(&b->pipe[1]);
    hfsbi_close(&b->reply[0]);
    hfsbi_close(&b->server[0]);
    hfsbi_close(&b->server[1]);
}

static void bridge_ends_with_its_server(void) {
    bridge    b;
    pthread_t thread = start_bridge(&b, HFSB_BUSY);
    char      room[8];
    /* a connection that fails ends alone; what the server sends is dropped */
    T_CHECK(write(b.server[1], "hello", 5) == 5);
    T_CHECK(write(b.pipe[1], "O\0\0\0\0\0\0\1", 8) == 8);
    T_CHECK(read(b.reply[0], room, sizeof room) == 8 && room[0] == 'E');
    hfsbi_close(&b.server[1]);
    end_bridge(&b, thread);
    T_CHECK(b.dials == 1);
}

static void bridge_ends_when_its_server_cannot_be_reached(void) {
    bridge    b;
    pthread_t thread = start_bridge(&b, HFSB_CONNECT);
    T_CHECK(write(b.pipe[1], "O\0\0\0\0\0\0\1O\0\0\0\0\0\0\2", 16) ==
            16);
    end_bridge(&b, thread); /* and dials no more */
    T_CHECK(b.dials == 1);
}

/* ---- the dial hook and Unix sockets ---- */

typedef struct unix_server {
    char path[128];
    int  fd, served;
} unix_server;

/* Answers one request on each of two connections. */
static void *serve_unix(void *user) {
    unix_server *s = (unix_server *)user;
    static const char reply[] = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n"
                                "Connection: close\r\n\r\nhi";
    char room[2048];
    int  fd;
    while ((fd = accept(s->fd, NULL, NULL)) >= 0) {
        if (read(fd, room, sizeof room) > 0 &&
            write(fd, reply, sizeof reply - 1) > 0)
            s->served++;
        close(fd);
    }
    return NULL;
}

static hfsb_status dial_unix(void *user, const hfsb_dial *to, int *fd,
                             hfsb_err *err) {
    const unix_server *s = (const unix_server *)user;
    T_STR(to->host, "somewhere");
    T_CHECK(to->port == 80 && to->deadline > hfsb_clock_ms());
    return hfsbi_socket_dial_unix(s->path, to->deadline, to->cancel, fd, err);
}

static hfsb_status dial_nothing(void *user, const hfsb_dial *to, int *fd,
                                hfsb_err *err) {
    (void)user, (void)to, (void)fd, (void)err;
    return HFSB_OK;
}

static hfsb_status get(const hfsb_net_opts *opts, hfsb_buf *body,
                       hfsb_err *err) {
    hfsb_transport  t;
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_status     st = hfsb_net_open(opts, &t, err);
    if (st != HFSB_OK) return st;
    call.method = HFSB_LIT("GET");
    call.url = HFSB_LIT("http://somewhere/x");
    st = hfsb_http_send(&t, &call, &reply, err);
    hfsb_buf_truncate(body, 0);
    if (st == HFSB_OK) st = hfsb_buf_append(body, hfsb_buf_str(&reply.body));
    hfsb_http_reply_free(&reply);
    hfsb_transport_close(&t);
    return st;
}

static void requests_go_where_dial_leads(void) {
    unix_server        s = HFSB_INIT;
    struct sockaddr_un a = HFSB_INIT;
    hfsb_net_opts      opts = HFSB_INIT;
    hfsb_buf           body = HFSB_INIT;
    hfsb_err           err;
    pthread_t          thread;
    snprintf(s.path, sizeof s.path, "%s/socket", folder);
    a.sun_family = AF_UNIX;
    snprintf(a.sun_path, sizeof a.sun_path, "%s", s.path);
    s.fd = socket(AF_UNIX, SOCK_STREAM, 0);
    TN_MUST(bind(s.fd, (struct sockaddr *)(void *)&a, sizeof a) == 0);
    TN_MUST(listen(s.fd, 8) == 0);
    TN_MUST(pthread_create(&thread, NULL, serve_unix, &s) == 0);
    opts.unix_path = s.path;
    setenv("http_proxy", "http://127.0.0.1:1", 1); /* does not count */
    T_CHECK(get(&opts, &body, &err) == HFSB_OK);
    T_STR(body, "hi");
    opts.unix_path = NULL;
    opts.dial = dial_unix;
    opts.user = &s;
    T_CHECK(get(&opts, &body, &err) == HFSB_OK);
    T_STR(body, "hi");
    unsetenv("http_proxy");
    (void)shutdown(s.fd, SHUT_RDWR);
    pthread_join(thread, NULL);
    close(s.fd);
    T_CHECK(s.served == 2);
    T_CHECK(get(&opts, &body, &err) == HFSB_CONNECT);
    opts.dial = dial_nothing;
    T_CHECK(get(&opts, &body, &err) == HFSB_ARG);
    opts.dial = NULL;
    opts.unix_path = "/no/such/socket";
    T_CHECK(get(&opts, &body, &err) == HFSB_CONNECT);
    hfsb_buf_free(&body);
}

/* The words of a name, each followed by "|"; a wrong name: empty. */
static void words_of(const char *name, hfsb_buf *out) {
    hfsbi_pipe_words w = HFSB_INIT;
    hfsb_err         err = HFSB_INIT;
    hfsb_status      st = hfsbi_pipe_name(hfsb_cstr(name), &w, &err);
    size_t           i;
    hfsb_buf_truncate(out, 0);
    T_CHECK(st == HFSB_OK || (st == HFSB_ARG && strstr(err.msg, "ssh:HOST")));
    for (i = 0; st == HFSB_OK && i < w.text.len; i++)
        hfsb_buf_append_byte(out, w.text.ptr[i] ? w.text.ptr[i] : '|');
    hfsb_buf_free(&w.text);
}

static void names_become_commands(void) {
    static const char *const list[][2] = {
        /* all else is as in ~/.ssh/config */
        {"ssh:me@host", "ssh|-T|-o|BatchMode=yes|me@host|exec sh|"},
        {"docker:a b", "docker|exec|-i|a b|sh|"},
        {"podman:web", "podman|exec|-i|web|sh|"},
        {"kubectl:pod", "kubectl|exec|-i|pod|--|sh|"},
        {"kubectl:space/pod", "kubectl|exec|-i|-n|space|pod|--|sh|"},
        {"kubectl:space/pod/one",
         "kubectl|exec|-i|-n|space|-c|one|pod|--|sh|"},
        {"slurm:", "sh|-c|exec srun -N1 -n1  sh|"},
        {"slurm:-p 'a b'", "sh|-c|exec srun -N1 -n1 -p 'a b' sh|"},
        {"exec:a | b", "sh|-c|a | b|"}};
    static const char *const wrong[] = {
        "",          "host",          "ssh",           "ssh:",
        "ssh:-oX=y", "docker:",       "docker:-v",     "podman:--x",
        "kubectl:",  "kubectl:-x",    "kubectl:a/",    "kubectl:/b",
        "exec:",     "kubectl:a/-b",  "kubectl:-a/b",  "kubectl:a/b/-c",
        "SSH:host",  "http://host/x", "kubectl:a/b//"};
    hfsb_buf words = HFSB_INIT;
    size_t   i;
    for (i = 0; i < sizeof list / sizeof *list; i++) {
        words_of(list[i][0], &words);
        T_CHECK(!strcmp(hfsb_buf_cstr(&words), list[i][1]));
    }
    for (i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        words_of(wrong[i], &words);
        T_CHECK(words.len == 0);
    }
    T_CHECK(hfsb_pipe_is_name(HFSB_LIT("ssh:")));
    T_CHECK(!hfsb_pipe_is_name(HFSB_LIT("alice/ssh:box")));
    hfsb_buf_free(&words);
}

static void name_once(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_pipe_opts opts = HFSB_INIT;
    hfsb_pipe     *pipe = NULL;
    hfsb_err       err = HFSB_INIT;
    hfsb_status    st;
    opts.name = "exec:exit 1";
    opts.start_ms = 50; /* no second try */
    opts.alloc = alloc;
    st = hfsb_pipe_open(&opts, &pipe, &err);
    T_CHECK(st != HFSB_OK && !pipe && err.msg[0]);
    T_CHECK(st == HFSB_CONNECT || st == HFSB_TIMEOUT || heap->fail_at);
}

static void names_survive_without_memory(void) {
    t_each_allocation_fails(name_once);
}

static void remove_folder(void) {
    char line[128];
    snprintf(line, sizeof line, "rm -rf %s", folder);
    T_CHECK(system(line) == 0);
}

int main(void) {
    snprintf(folder, sizeof folder, "/tmp/hfsb-test-pipe-%ld", (long)getpid());
    TN_MUST(mkdir(folder, 0700) == 0);
    signal(SIGPIPE, SIG_IGN); /* a pump leaves it to its owner */
    T_RUN(streams_carry_bytes_both_ways);
    T_RUN(stream_that_nobody_reads_holds_up_no_other);
    T_RUN(end_comes_after_the_last_byte);
    T_RUN(refused_stream_ends_alone);
    T_RUN(stream_without_proof_holds_up_no_other);
    T_RUN(stream_that_fails_its_proof_ends_alone);
    T_RUN(wrong_proof_ends_the_pipe);
    T_RUN(bye_reaches_the_server);
    T_RUN(broken_pipe_ends_all_streams);
    T_RUN(hostile_frames_end_the_pipe);
    T_RUN(data_beyond_the_window_ends_the_pipe);
    T_RUN(pump_survives_without_memory);
    T_RUN(names_become_commands);
    T_RUN(names_survive_without_memory);
    signal(SIGPIPE, SIG_DFL);
    if (can_check_sums()) {
        T_RUN(server_is_sent_once);
        T_RUN(damaged_server_is_sent_again);
        T_RUN(nobody_else_can_write_an_upload);
        T_RUN(only_old_uploads_are_removed);
        T_RUN(noise_of_a_login_shell_is_skipped);
        T_RUN(noise_may_lack_the_end_of_its_line);
        T_RUN(command_that_dies_is_started_again);
        T_RUN(forget_removes_the_server);
        T_RUN(folders_of_others_are_not_used);
    } else {
        T_RUN(a_machine_without_sha256_is_reported);
        t_skipped += 9;
    }
    T_RUN(failures_are_explained);
    T_RUN(command_may_clean_up_at_the_end);
    T_RUN(messages_of_a_command_keep_their_end);
    T_RUN(full_disk_is_reported_with_its_folder);
    T_RUN(missing_program_and_server_are_reported);
    T_RUN(message_about_a_server_stays_as_it_is);
    T_RUN(name_of_a_machine_is_safe_to_show_and_in_a_path);
    T_RUN(flood_on_stderr_holds_up_nothing);
    T_RUN(forget_fails_where_no_shell_answers);
    T_RUN(command_that_fails_after_a_break_is_awaited);
    T_RUN(start_that_hangs_after_a_break_is_repeated);
    T_RUN(command_that_will_not_end_leaves_time_for_the_next);
    T_RUN(dial_whose_time_is_up_starts_nothing);
    T_RUN(nobody_waits_longer_than_the_server);
    T_RUN(start_can_be_cancelled);
    T_RUN(bridge_ends_with_its_server);
    T_RUN(bridge_ends_when_its_server_cannot_be_reached);
    T_RUN(requests_go_where_dial_leads);
    remove_folder();
    return T_END();
}
