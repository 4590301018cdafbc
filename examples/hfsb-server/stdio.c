/* stdio.c - a client at the other end of standard input and output.

   `hfsb --on ssh:HOST` starts this program there. Two processes serve it:

       pipe <--> bridge <--> Unix socket <--> server, in a session of its own

   The bridge passes connections on (hfsb_pipe_serve); it ends with its pipe,
   or with the server. The server continues, so that calls outlive a pipe that
   breaks; the next bridge with the same key finds it, and a repeated call
   joins the first. The server ends when the client says so, or `linger`
   seconds after its last bridge has gone.

   The key is the name of the server and its token. In /tmp/hfsb-NAME (or
   $HFSB_PIPE_DIR/hfsb-NAME), which only this user may enter, there is

       socket   where the server listens
       lock     locked as long as the server, or its keeper, is there

   A bridge that gets the lock starts the server and leaves the lock to it.
   Each bridge keeps a request to /pipe open, by which the server counts them.

   Commands run as the same user, so one of them may rename the socket and
   listen in its place. Hence a bridge sends the token, and what the client
   sends, only over a connection that has passed this test:

       bridge --> GET /pipe/proof/NONCE
              <-- SHA-256 of the nonce, the server's process id and a secret
                  that is made of the token

   The kernel reports to the bridge which process wrote it. A process in
   between can neither make the proof for its own id nor write with another.
   The bridge does not wait for a proof: a server that is full accepts the
   connection later, and the others go on meanwhile.

   The key comes in $HFSB_PIPE_KEY, or on the first line of the input: there a
   client sends a script, for the case that a shell reads it. */
#ifdef __linux__ /* others show flock() only without such macros */
#define _GNU_SOURCE 1 /* flock, lstat, struct ucred; before any include */
#endif
#include "program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    NAME_DIGITS = 16,
    KEY_DIGITS = 48,
    FIRST_LINE = 16384,
    LINGER_MS = 60000,
    START_MS = 20000,  /* to find or start a server; longer than the one before
                          takes to end */
    ANSWER_MS = 20000, /* for the server to answer its bridge */
    END_S = 20,        /* for the server to end */
    LONGEST_BASE = 70, /* bytes of the path of a folder for sockets */
    BRIDGES = 16
};

static struct {
    char         key[KEY_DIGITS + 1];
    char         proof_key[HFSB_SHA256_HEX]; /* a hash of the token */
    char         place[LONGEST_BASE + NAME_DIGITS + 8];
    char         socket[LONGEST_BASE + NAME_DIGITS + 16];
    char         lock[LONGEST_BASE + NAME_DIGITS + 16];
    int          lock_fd;
    hfsb_request *bridges[BRIDGES];
    size_t       count;
    long long    since; /* when the last one went, on hfsb_clock_ms() */
    bool         over;
} pipe_state = {"", "", "", "", "", -1, {NULL}, 0, 0, false};

/* ---- the key ---- */

/* The SHA-256 of a text, a number and what nobody else knows. */
static void hash(const char *text, long long number, const char *known,
                 char out[HFSB_SHA256_HEX]) {
    char   whole[256];
    int    n = snprintf(whole, sizeof whole, "%s %lld %s", text, number,
                        known);
    size_t len = n < 0 ? 0 : (size_t)n;
    if (len >= sizeof whole) len = sizeof whole - 1;
    hfsb_sha256_hex(hfsb_str_make(whole, len), out);
    wipe(whole, sizeof whole);
}

/* Copies the key; false if there is none at the start of the text. */
static bool copy_key(const char *text, size_t len) {
    static const char digits[] = "0123456789abcdef";
    size_t            i;
    for (i = 0; i < KEY_DIGITS; i++)
        if (i >= len || !text[i] || !strchr(digits, text[i])) return false;
    memcpy(pipe_state.key, text, KEY_DIGITS);
    pipe_state.key[KEY_DIGITS] = '\0';
    hash("proof", 0, pipe_state.key + NAME_DIGITS, pipe_state.proof_key);
    return true;
}

/* Reads the first line of standard input: "{ hfsb_key=...; hfsb_linger=60;". The
   client sends nothing after it before it gets an answer. */
static bool read_first_line(options *o) {
    static char line[FIRST_LINE];
    size_t      have = 0;
    ssize_t     n;
    const char *linger;
    long long   seconds = 0;
    while (have < sizeof line - 1 && !memchr(line, '\n', have)) {
        n = read(0, line + have, sizeof line - 1 - have);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        have += (size_t)n;
    }
    line[have] = '\0';
    if (strncmp(line, "{ hfsb_key=", 11) != 0 ||
        !copy_key(line + 11, have - 11))
        return false;
    linger = strstr(line, "hfsb_linger=");
    if (linger) seconds = strtoll(linger + 12, NULL, 10);
    if (!o->linger_ms && seconds > 0 && seconds < 1000000)
        o->linger_ms = seconds * 1000;
    wipe(line, sizeof line);
    return true;
}

static bool find_key(options *o) {
    static secret given;
    bool          found = false, ok;
    ok = take_environment_token("HFSB_PIPE_KEY", &given, &found);
    if (found) ok = ok && copy_key(given.bytes, given.len);
    else ok = read_first_line(o);
    wipe(&given, sizeof given);
    return ok;
}

/* ---- its place ---- */

/* Makes the folder, for this user alone. False with errno; ENOENT: it is being
   removed. */
static bool make_place(void) {
    struct stat st;
    if (mkdir(pipe_state.place, 0700) != 0 && errno != EEXIST) {
        if (errno == ENOENT) errno = ENOTDIR; /* the base is missing */
        return false;
    }
    if (lstat(pipe_state.place, &st) != 0) return false;
    errno = EACCES;
    return S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 077) == 0;
}

/* Makes the folder in `base`, and the names in it. */
static bool use_base(const char *base) {
    if (!base || !*base || strlen(base) > LONGEST_BASE) return false;
    snprintf(pipe_state.place, sizeof pipe_state.place, "%s/hfsb-%.*s", base,
             (int)NAME_DIGITS, pipe_state.key);
    snprintf(pipe_state.socket, sizeof pipe_state.socket, "%s/socket",
             pipe_state.place);
    snprintf(pipe_state.lock, sizeof pipe_state.lock, "%s/lock",
             pipe_state.place);
    return make_place();
}

/* Another user cannot guess the name, and so not take it. $XDG_RUNTIME_DIR is
   the last choice: it goes with the last login, the server does not. */
static bool find_place(void) {
    const char *own = getenv("HFSB_PIPE_DIR");
    if (own && *own) return use_base(own);
    return use_base("/tmp") || use_base(getenv("TMPDIR")) ||
           use_base(getenv("XDG_RUNTIME_DIR"));
}

/* True if the lock file is the one that was opened. */
static bool has_lock_file(void) {
    struct stat here, there;
    return fstat(pipe_state.lock_fd, &here) == 0 &&
           stat(pipe_state.lock, &there) == 0 &&
           here.st_ino == there.st_ino && here.st_dev == there.st_dev;
}

/* Opens the lock file. *held: locked by this process, now. False with errno.
   Whoever holds the lock may be removing the file and its folder: then there
   is another one. */
static bool open_lock(bool *held) {
    for (;;) {
        int fd = -1;
        if (make_place())
            fd = open(pipe_state.lock,
                      O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0 && errno == ENOENT) continue;
        if (fd < 0) return false;
        pipe_state.lock_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
        close(fd);
        if (pipe_state.lock_fd < 0) return false;
        *held = flock(pipe_state.lock_fd, LOCK_EX | LOCK_NB) == 0;
        if (!*held && errno != EWOULDBLOCK) return false;
        if (has_lock_file()) return true;
        close(pipe_state.lock_fd);
    }
}

/* ---- a connection to the server ---- */

/* Sends a request, with the token or without. */
static bool send_request(int fd, const char *request, const char *token) {
    char text[512];
    int  n = snprintf(text, sizeof text,
                      "%s HTTP/1.1\r\nHost: localhost\r\n"
                      "Content-Length: 0\r\n%s%s%s\r\n",
                      request, token ? "X-Sandbox-Authorization: Bearer " : "",
                      token ? token : "", token ? "\r\n" : "");
    bool ok = write_all(fd, text, (size_t)n);
    wipe(text, sizeof text);
    return ok;
}

/* From now on, or no longer, receive() learns who writes. */
static bool ask_for_writers(int fd, int on) {
#ifdef __linux__
    return setsockopt(fd, SOL_SOCKET, SO_PASSCRED, &on, sizeof on) == 0;
#else
    (void)fd, (void)on; /* commands are not confined here anyway */
    return true;
#endif
}

/* Like read(); *writer is the process that wrote the bytes, 0 where the kernel
   does not say. There is no room for descriptors, so none are taken. */
static ssize_t receive(int fd, char *to, size_t room, long long *writer) {
    struct msghdr message = HFSB_INIT;
    struct iovec  part;
    ssize_t       n;
#ifdef __linux__
    struct ucred    peer;
    struct cmsghdr *head;
    long long       control[CMSG_SPACE(sizeof peer) / sizeof(long long) + 1];
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(sizeof peer);
#endif
    part.iov_base = to;
    part.iov_len = room;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    do n = recvmsg(fd, &message, 0);
    while (n < 0 && errno == EINTR);
    *writer = 0;
#ifdef __linux__
    head = n > 0 ? CMSG_FIRSTHDR(&message) : NULL;
    if (head && head->cmsg_level == SOL_SOCKET &&
        head->cmsg_type == SCM_CREDENTIALS) {
        memcpy(&peer, CMSG_DATA(head), sizeof peer);
        *writer = peer.pid;
    }
#endif
    return n;
}

/* A reply, as far as it has come. */
typedef struct partial_reply {
    char      text[2048];
    size_t    have;
    long long writer; /* the one process that wrote it */
} partial_reply;

/* The test of a connection. */
typedef struct test {
    char          nonce[HFSB_SHA256_HEX]; /* empty: not asked for yet */
    partial_reply reply;
} test;

/* Reads what there is of a reply. HFSB_OK: *body has at least `want` bytes;
   HFSB_BUSY: more must come; HFSB_LOST: none with status 200 will. */
static hfsb_status read_reply(int fd, partial_reply *r, size_t want,
                              const char **body) {
    while (r->have < sizeof r->text - 1) {
        long long writer;
        char     *end;
        ssize_t   n = receive(fd, r->text + r->have,
                              sizeof r->text - 1 - r->have, &writer);
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
            return HFSB_BUSY;
        if (n <= 0 || (r->have && writer != r->writer)) return HFSB_LOST;
        r->writer = writer;
        r->have += (size_t)n;
        r->text[r->have] = '\0';
        end = strstr(r->text, "\r\n\r\n");
        if (!end || r->have - (size_t)(end + 4 - r->text) < want) continue;
        *body = end + 4;
        return strncmp(r->text, "HTTP/1.1 200 ", 13) ? HFSB_LOST : HFSB_OK;
    }
    return HFSB_LOST;
}

static hfsb_status ask_for_proof(int fd, test *t) {
    static long long count;
    char             request[128];
    /* new for each connection of each bridge, and nobody else knows the key */
    snprintf(request, sizeof request, "nonce %ld %lld", (long)getpid(),
             count++);
    hash(request, hfsb_clock_ms(), pipe_state.key, t->nonce);
    snprintf(request, sizeof request, "GET /pipe/proof/%s", t->nonce);
    return ask_for_writers(fd, 1) && send_request(fd, request, NULL)
               ? HFSB_BUSY
               : HFSB_LOST;
}

/* For hfsb_pipe_serve_opts: is the server at the other end? See above. */
static hfsb_status prove_server(void *user, int fd, void *room) {
    test       *t = (test *)room;
    const char *body;
    char        want[HFSB_SHA256_HEX];
    hfsb_status st;
    (void)user;
    if (!t->nonce[0]) return ask_for_proof(fd, t);
    st = read_reply(fd, &t->reply, sizeof want - 1, &body);
    if (st != HFSB_OK) return st;
    if (!ask_for_writers(fd, 0)) return HFSB_LOST;
    hash(t->nonce, t->reply.writer, pipe_state.proof_key, want);
    return memcmp(body, want, sizeof want - 1) ? HFSB_CONNECT : HFSB_OK;
}

/* Connects to what has the server's socket, without waiting. -1 with errno;
   EAGAIN: too many wait for it. */
static int connect_server(void) {
    struct sockaddr_un a = HFSB_INIT;
    int                fd = socket(AF_UNIX, SOCK_STREAM, 0), why;
    if (fd < 0) return -1;
    a.sun_family = AF_UNIX;
    snprintf(a.sun_path, sizeof a.sun_path, "%s", pipe_state.socket);
    if (fcntl(fd, F_SETFL, O_NONBLOCK) == 0 &&
        connect(fd, (struct sockaddr *)(void *)&a, sizeof a) == 0)
        return fd;
    why = errno;
    close(fd);
    errno = why;
    return -1;
}

/* False when there is nothing to read until then. */
static bool wait_readable(int fd, long long until) {
    struct pollfd p = HFSB_INIT;
    long long     ms = until - hfsb_clock_ms();
    p.fd = fd;
    p.events = POLLIN;
    return ms > 0 && (poll(&p, 1, (int)ms) > 0 || errno == EINTR);
}

/* Sends a request to the server, and waits for the head of its reply. Returns
   the connection, or -1. */
static int ask_server(const char *request) {
    long long     until = hfsb_clock_ms() + ANSWER_MS;
    test          t = HFSB_INIT;
    partial_reply r = HFSB_INIT;
    const char   *body;
    int           fd = connect_server();
    hfsb_status   st;
    if (fd < 0) return -1;
    do st = prove_server(NULL, fd, &t);
    while (st == HFSB_BUSY && wait_readable(fd, until));
    if (st == HFSB_OK)
        st = send_request(fd, request, pipe_state.key + NAME_DIGITS)
                 ? HFSB_BUSY
                 : HFSB_LOST;
    while (st == HFSB_BUSY && wait_readable(fd, until))
        st = read_reply(fd, &r, 0, &body);
    if (st == HFSB_OK) return fd;
    close(fd);
    return -1;
}

/* ---- the bridge ---- */

static int refuse(const char *why) {
    printf("\nhfsb-pipe fail %s\n", why);
    fflush(stdout);
    return complain(FAILED, "%s", why);
}

/* Waits until the server and its keeper have ended; the keeper is a child of
   the bridge that started it, and process 1 of a container may not reap. A
   keeper that hangs ends the bridge by SIGALRM, which whoever started it may
   ignore or block. */
static void wait_for_end(pid_t child) {
    int      fd = open(pipe_state.lock, O_RDWR | O_CLOEXEC);
    sigset_t set;
    (void)signal(SIGALRM, SIG_DFL);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    (void)sigprocmask(SIG_UNBLOCK, &set, NULL);
    alarm(END_S);
    if (fd >= 0) (void)flock(fd, LOCK_EX);
    if (fd >= 0) close(fd);
    if (child > 0) (void)waitpid(child, NULL, 0);
}

/* A connection for one of the client. */
static hfsb_status dial_server(void *user, const hfsb_dial *to, int *fd,
                               hfsb_err *err) {
    (void)user, (void)to, (void)err;
    *fd = connect_server();
    if (*fd >= 0) return HFSB_OK;
    return errno == ECONNREFUSED || errno == ENOENT ? HFSB_CONNECT : HFSB_BUSY;
}

/* fd: its connection to the server, which is closed. child: the server, if
   this process started it; else -1. */
static int be_the_bridge(int fd, pid_t child) {
    static const char    ready[] = "\nhfsb-pipe mux 1\n"; /* after noise */
    hfsb_pipe_serve_opts opts = HFSB_INIT;
    hfsb_err             err = HFSB_INIT;
    hfsb_status          st = HFSB_OK;
    bool                 bye = false;
    opts.dial = dial_server;
    opts.prove = prove_server;
    opts.proof_room = sizeof(test);
    opts.server = fd;
    if (write_all(1, ready, sizeof ready - 1))
        st = hfsb_pipe_serve(dup(0), dup(1), &opts, &bye, &err);
    close(fd);
    if (st != HFSB_OK) return complain(FAILED, "%s", err.msg);
    if (!bye) return DONE;
    fd = ask_server("POST /pipe/end");
    if (fd >= 0) close(fd);
    wait_for_end(child);
    return DONE;
}

/* ---- starting the server ---- */

/* Waits for report_pipe(). The server may warn before; the last line that it
   writes is why it ended. */
static int wait_for_start(int fd) {
    char   text[512], last[512] = "the server ended at its start";
    size_t have = 0;
    for (;;) {
        ssize_t n = read(fd, text + have, sizeof text - 1 - have);
        char   *end;
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) break;
        have += (size_t)n;
        while ((end = (char *)memchr(text, '\n', have)) != NULL ||
               have == sizeof text - 1) {
            size_t len = end ? (size_t)(end - text) : have;
            snprintf(last, sizeof last, "%.*s", (int)len, text);
            have -= end ? len + 1 : len;
            if (end) memmove(text, end + 1, have);
            if (strcmp(last, "ready") == 0) break;
            (void)write_all(2, last, strlen(last));
            (void)write_all(2, "\n", 1);
        }
        if (strcmp(last, "ready") == 0) break;
    }
    close(fd);
    return strcmp(last, "ready") == 0 ? DONE : refuse(last);
}

/* In the server: it has nothing of the pipe, and reports on stderr, once, that
   it listens. */
static void become_server(options *o, int report) {
    int null = open("/dev/null", O_RDWR);
    (void)setsid();
    (void)signal(SIGPIPE, SIG_DFL);
    dup2(null, 0);
    dup2(null, 1);
    dup2(report, 2);
    close(report);
    if (null > 2) close(null);
    o->unix_paths.list[0] = pipe_state.socket;
    o->unix_paths.count = 1;
    o->quiet = true;
    if (o->apis.count == 0) o->apis.list[o->apis.count++] = "codex";
    if (!o->linger_ms) o->linger_ms = LINGER_MS;
}

/* Starts the server, which takes over the lock, and waits until it listens. A
   socket of that name is not the server's: it would have the lock. Returns its
   process; 0 in that process; -1 with *code. */
static pid_t start_server(options *o, int *code) {
    int   report[2];
    pid_t child;
    if (pipe(report) != 0) {
        *code = refuse("no descriptor is left");
        return -1;
    }
    unlink(pipe_state.socket);
    child = fork();
    if (child != 0) close(report[1]);
    if (child <= 0) close(report[0]);
    if (child == 0) become_server(o, report[1]);
    if (child < 0) *code = refuse("cannot fork");
    if (child > 0) *code = wait_for_start(report[0]);
    return child > 0 && *code != DONE ? -1 : child;
}

/* Joins the server, or starts it where none runs; one that is ending is
   waited for. Returns the connection; -1 with *code; -1 in the server, where
   *child is 0. */
static int find_server(options *o, pid_t *child, int *code) {
    long long until = hfsb_clock_ms() + START_MS;
    bool      held = false;
    int       fd;
    *child = -1;
    do {
        if (!open_lock(&held)) {
            *code = refuse("its folder for sockets has gone");
            return -1;
        }
        if (held) *child = start_server(o, code);
        if (held && *child <= 0) return -1;
        close(pipe_state.lock_fd);
        fd = ask_server("GET /pipe");
        if (fd < 0) usleep(20000);
    } while (fd < 0 && hfsb_clock_ms() < until);
    if (fd < 0) *code = refuse("the server does not answer its bridge");
    return fd;
}

bool serve_pipe(options *o, int *code) {
    pid_t child;
    int   fd;
    *code = FAILED;
    if (!find_key(o)) {
        complain(FAILED, "--stdio is for clients: hfsb --on "
                         "exec:'hfsb-server --stdio'.");
        return false;
    }
    if (!find_place()) {
        const char *own = getenv("HFSB_PIPE_DIR");
        refuse(own && *own
                   ? "HFSB_PIPE_DIR must be a folder that exists and can be "
                     "written, with a path of at most 70 bytes"
                   : "no folder for a socket: none of /tmp, TMPDIR and "
                     "XDG_RUNTIME_DIR can be written; set HFSB_PIPE_DIR");
        return false;
    }
    (void)signal(SIGPIPE, SIG_IGN);
    fd = find_server(o, &child, code);
    if (child == 0) return true;
    if (fd >= 0) *code = be_the_bridge(fd, child);
    wipe(pipe_state.key, sizeof pipe_state.key);
    wipe(pipe_state.proof_key, sizeof pipe_state.proof_key);
    return false;
}

/* ---- the server ---- */

void take_pipe_token(options *o, secret *out) {
    if (!o->stdio) return;
    out->len = KEY_DIGITS - NAME_DIGITS;
    memcpy(out->bytes, pipe_state.key + NAME_DIGITS, out->len);
    wipe(pipe_state.key, sizeof pipe_state.key);
    o->has_token = true;
}

static void bridge_gone(void *user, hfsb_request *request) {
    size_t i;
    (void)user;
    for (i = 0; i < pipe_state.count; i++)
        if (pipe_state.bridges[i] == request)
            pipe_state.bridges[i] = pipe_state.bridges[--pipe_state.count];
    pipe_state.since = hfsb_clock_ms();
}

/* The reply lasts until the bridge goes away, or the server ends. */
static void take_bridge(void *user, hfsb_request *request) {
    (void)user;
    if (pipe_state.count == BRIDGES || pipe_state.over) {
        hfsb_reply_error(request, 503, "No more bridges.");
        return;
    }
    pipe_state.bridges[pipe_state.count++] = request;
    hfsb_request_on_gone(request, bridge_gone, NULL);
    hfsb_reply_begin(request, 200, "text/plain");
    (void)hfsb_reply_write(request, HFSB_LIT("bridge\n"));
}

/* Anyone may ask: a process that cannot write under this id gains nothing. */
static void take_nonce(void *user, hfsb_request *request) {
    hfsb_str  given = hfsb_request_part(request, 0);
    char      nonce[HFSB_SHA256_HEX], proof[HFSB_SHA256_HEX];
    long long writer = 0;
    (void)user;
    if (given.len != sizeof nonce - 1) {
        hfsb_reply_error(request, 400, "Not a nonce.");
        return;
    }
    memcpy(nonce, given.ptr, given.len);
    nonce[given.len] = '\0';
#ifdef __linux__
    writer = getpid();
#endif
    hash(nonce, writer, pipe_state.proof_key, proof);
    hfsb_reply(request, 200, "text/plain",
               hfsb_str_make(proof, sizeof proof - 1));
}

static void end_all(hfsb_server *server) {
    if (pipe_state.over) return;
    pipe_state.over = true;
    while (pipe_state.count)
        hfsb_reply_end(pipe_state.bridges[--pipe_state.count]);
    hfsb_server_stop(server);
}

static void take_end(void *user, hfsb_request *request) {
    hfsb_reply(request, 200, "text/plain", HFSB_LIT("bye\n"));
    end_all((hfsb_server *)user);
}

hfsb_status add_pipe(const options *o, hfsb_server *server, hfsb_err *err) {
    hfsb_route  route = HFSB_INIT;
    hfsb_status st;
    if (!o->stdio) return HFSB_OK;
    route.method = "GET";
    route.path = "/pipe/proof/*";
    route.fn = take_nonce;
    route.no_token = true;
    st = hfsb_server_add(server, &route, err);
    route.path = "/pipe";
    route.fn = take_bridge;
    route.no_token = false;
    if (st == HFSB_OK) st = hfsb_server_add(server, &route, err);
    route.method = "POST";
    route.path = "/pipe/end";
    route.fn = take_end;
    route.user = server;
    return st == HFSB_OK ? hfsb_server_add(server, &route, err) : st;
}

void report_pipe(const options *o) {
    int null;
    if (!o->stdio) return;
    (void)write_all(2, "ready\n", 6);
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) dup2(null, 2);
    if (null > 2) close(null);
}

void run_pipe(const options *o, hfsb_server *server) {
    long long wait;
    pipe_state.since = hfsb_clock_ms();
    do {
        wait = -1;
        if (!pipe_state.count && !pipe_state.over)
            wait = pipe_state.since + o->linger_ms - hfsb_clock_ms();
        if (!pipe_state.count && !pipe_state.over && wait <= 0) {
            end_all(server);
            wait = -1;
        }
    } while (hfsb_server_poll(server, wait));
}

/* ---- its keeper ---- */

int keep_pipe(void) {
    wipe(pipe_state.key, sizeof pipe_state.key);
    wipe(pipe_state.proof_key, sizeof pipe_state.proof_key);
    return pipe_state.lock_fd;
}

/* The lock file last: a bridge may make another one from then on. */
void end_pipe(void) {
    if (pipe_state.lock_fd < 0 || !has_lock_file()) return;
    unlink(pipe_state.socket);
    unlink(pipe_state.lock);
    rmdir(pipe_state.place);
}
