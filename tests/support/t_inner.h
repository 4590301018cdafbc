/* t_inner.h - an inner server for the tests of what is relayed: it answers in
   the way that the path asks for, most often with what it has got. */
#ifndef T_INNER_H
#define T_INNER_H
#include "t_server.h"
#include <sys/ioctl.h>

typedef struct ti_server {
    int       fd;
    unsigned  port;
    pthread_t thread;
} ti_server;

static hfsb_str ti_find_length(hfsb_str head) {
    size_t at = hfsb_str_find(head, HFSB_LIT("Content-Length: "));
    return at == HFSB_NPOS ? hfsb_str_make("0", 1)
                           : hfsb_str_slice(head, at + 16, head.len);
}

static void ti_say(int fd, const char *text) {
    (void)!send(fd, text, strlen(text), MSG_NOSIGNAL);
}

/* Lines of the head of replies to GET /fields. */
HFSBI_UNUSED static const char *ti_fields = "";

/* A tunnel to "mute" stays open until this is set, whatever the peer does. */
static int ti_released; /* atomic */

/* Answers in one of the ways that need no body; false: the path asks for
   another one. */
static bool ti_answer_short(int fd, hfsb_str all) {
    if (hfsb_str_starts(all, HFSB_LIT("HEAD /length")))
        ti_say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 4711\r\n\r\n");
    else if (hfsb_str_starts(all, HFSB_LIT("HEAD /chunks")))
        ti_say(fd, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n");
    else if (hfsb_str_starts(all, HFSB_LIT("GET /bad")))
        ti_say(fd, "SSH-2.0-x\r\n\r\n");
    else if (hfsb_str_starts(all, HFSB_LIT("GET /half")))
        ti_say(fd, "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhal");
    else if (hfsb_str_starts(all, HFSB_LIT("GET /cut")))
        ti_say(fd, "HTTP/1.1 200 OK\r\n\r\nhal");
    else if (hfsb_str_starts(all, HFSB_LIT("GET /fields"))) {
        ti_say(fd, "HTTP/1.1 200 OK\r\n");
        ti_say(fd, ti_fields);
        ti_say(fd, "Content-Length: 6\r\n\r\nfields");
    } else if (hfsb_str_find(all, HFSB_LIT("Upgrade: mute\r\n")) !=
               HFSB_NPOS) {
        ti_say(fd, "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\n"
                   "Upgrade: mute\r\n\r\nhello");
        while (!__atomic_load_n(&ti_released, __ATOMIC_SEQ_CST))
            (void)poll(NULL, 0, 5);
    } else return hfsb_str_starts(all, HFSB_LIT("GET /close"));
    return true;
}

/* Waits until the peer sends nothing more, because nobody reads it. */
static void ti_await_stall(int fd) {
    int before = -1, now = 0, quiet = 0, bytes = 16384;
    (void)setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &bytes, sizeof bytes);
    while (quiet < 10 && ioctl(fd, FIONREAD, &now) == 0) {
        quiet = now == before ? quiet + 1 : 0;
        before = now;
        (void)poll(NULL, 0, 20);
    }
}

/* Answers with what it has got, in the way that the path asks for. False: the
   connection must end with a reset. */
static bool ti_answer(int fd) {
    static char bytes[1 << 20];
    size_t      n = 0, end, body, want;
    ssize_t     k;
    char        head[200], length[48];
    hfsb_str    all;
    do {
        k = recv(fd, bytes + n, sizeof bytes - n, 0);
        if (k > 0) n += (size_t)k;
        all = hfsb_str_make(bytes, n);
        end = hfsb_str_find(all, HFSB_LIT("\r\n\r\n"));
    } while (k > 0 && end == HFSB_NPOS);
    if (end == HFSB_NPOS) return true;
    body = n - end - 4;
    want = (size_t)strtoul(ti_find_length(all).ptr, NULL, 10);
    if (hfsb_str_starts(all, HFSB_LIT("POST /late"))) ti_await_stall(fd);
    if (hfsb_str_starts(all, HFSB_LIT("POST /refused"))) {
        ti_say(fd, "HTTP/1.1 413 Too Much\r\nConnection: close\r\n\r\nno");
        return false;
    }
    if (hfsb_str_starts(all, HFSB_LIT("POST /early")) ||
        hfsb_str_starts(all, HFSB_LIT("POST /late"))) {
        ti_say(fd, "HTTP/1.1 413 Too Much\r\nX-A: 1\r\n"
                        "Content-Length: 2\r\n\r\nno");
        return true;
    }
    while (body < want && (k = recv(fd, bytes + n, sizeof bytes - n, 0)) > 0) {
        n += (size_t)k;
        body += (size_t)k;
    }
    if (ti_answer_short(fd, all))
        return !hfsb_str_starts(all, HFSB_LIT("GET /cut"));
    if (hfsb_str_find(all, HFSB_LIT("Upgrade: odd\r\n")) != HFSB_NPOS) {
        ti_say(fd, "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\n"
                        "Upgrade: odd\r\nX-Odd: 1\r\n\r\nhello");
        while ((k = recv(fd, bytes, sizeof bytes, 0)) > 0)
            (void)!send(fd, bytes, (size_t)k, MSG_NOSIGNAL);
        ti_say(fd, "bye");
        return true;
    }
    (void)snprintf(length, sizeof length, "Content-Length: %zu\r\n", n);
    if (hfsb_str_starts(all, HFSB_LIT("GET /until"))) length[0] = '\0';
    (void)snprintf(head, sizeof head,
                   "HTTP/1.1 201 Made\r\nContent-Type: text/x\r\n"
                   "Set-Cookie: a=1\r\nSet-Cookie: b=2\r\n%s\r\n",
                   length);
    ti_say(fd, "HTTP/1.1 103 Hint\r\n\r\n");
    (void)!send(fd, head, strlen(head), MSG_NOSIGNAL);
    for (end = 0; end < n && (k = send(fd, bytes + end, n - end,
                                       MSG_NOSIGNAL)) > 0;)
        end += (size_t)k;
    return true;
}

static void *ti_run(void *user) {
    ti_server    *in = (ti_server *)user;
    struct linger reset = {1, 0};
    int           fd;
    while ((fd = accept(in->fd, NULL, NULL)) >= 0) {
        if (ti_answer(fd)) (void)shutdown(fd, SHUT_RDWR);
        else {
            (void)poll(NULL, 0, 200); /* what was said comes first */
            (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
        }
        close(fd);
    }
    return NULL;
}

static void ti_start(ti_server *in) {
    struct sockaddr_in a;
    socklen_t          n = sizeof a;
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    in->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (bind(in->fd, (struct sockaddr *)&a, sizeof a) ||
        listen(in->fd, 16) || getsockname(in->fd, (struct sockaddr *)&a, &n))
        abort();
    in->port = ntohs(a.sin_port);
    if (pthread_create(&in->thread, NULL, ti_run, in)) abort();
}

static void ti_end(ti_server *in) {
    (void)shutdown(in->fd, SHUT_RDWR);
    pthread_join(in->thread, NULL);
    close(in->fd);
}
#endif
