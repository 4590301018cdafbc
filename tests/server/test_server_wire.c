/* test_server_wire.c - messages over a pair of descriptors. What its owners
   make of it is tried with them: MCP over stdio, Codex. */
#include "../support/t_server.h"

static int lines, sent, ended;

static void take_line(void *user, hfsb_buf *line) {
    (void)user, (void)line;
    lines++;
}

static void take_refusal(void *user, const hfsb_err *err) {
    (void)user, (void)err;
    lines--;
}

static void take_end(void *user, bool lost) {
    (void)user, (void)lost;
    ended++;
}

static void take_sent(void *user) {
    (void)user;
    sent++;
}

static const hfsbi_wire_fn fn = {take_line, take_refusal, take_end, take_sent};

static void say(hfsbi_wire *wire, size_t n) {
    hfsb_buf text = HFSB_INIT;
    t_repeat(&text, "x", n);
    hfsbi_wire_send(wire, &text);
    hfsb_buf_free(&text);
}

/* Reads what is in the pipe. */
static size_t drain(int fd) {
    static char block[65536];
    size_t      all = 0;
    ssize_t     n;
    while ((n = read(fd, block, sizeof block)) > 0) all += (size_t)n;
    return all;
}

/* An owner that waits for `sent` hears of it, whatever is sent meanwhile. */
static void a_message_between_does_not_hide_that_bytes_were_sent(void) {
    hfsb_server_opts o = HFSB_INIT;
    hfsb_server     *server = NULL;
    hfsbi_wire      *wire = NULL;
    size_t           said = 0, got, i;
    int              in[2], out[2];
    if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC | O_NONBLOCK)) abort();
    o.no_auth = true;
    o.alloc = tt_alloc();
    T_CHECK(hfsb_server_open(&o, &server, NULL) == HFSB_OK);
    T_CHECK(hfsbi_wire_open(server, in[0], out[1], 1000, &fn, NULL, &wire,
                            NULL) == HFSB_OK);
    while (!hfsbi_wire_waiting(wire)) {
        say(wire, 4095);
        said += 4096;
    }
    got = drain(out[0]);
    say(wire, 1);
    said += 2;
    for (i = 0; i < 100 && !sent; i++) (void)hfsb_server_poll(server, 20);
    T_CHECK(sent > 0);
    for (i = 0; i < 100 && got < said; i++) {
        (void)hfsb_server_poll(server, 0);
        got += drain(out[0]);
    }
    T_CHECK(got == said && hfsbi_wire_waiting(wire) == 0);
    T_CHECK(lines == 0 && ended == 0);
    hfsbi_wire_free(wire);
    hfsb_server_close(server);
    close(in[0]);
    close(in[1]);
    close(out[0]);
    close(out[1]);
}

int main(void) {
    tt_begin();
    TT_RUN(a_message_between_does_not_hide_that_bytes_were_sent);
    return TT_END();
}
