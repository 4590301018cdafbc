/* fuzz_dialect.c - libFuzzer target for a whole dialect: a server, its tools,
   and clients that send what they like.

   The input: a byte for the dialect, one for the cuts, one for memory that
   fails (0: none does), then steps with 0x1E between. Each step is a
   connection: raw bytes of HTTP, where a head without a length gets that of
   its body, and JSON after "connect+json" an envelope; lines for Codex, each
   in a frame on a WebSocket, or as they are over descriptors. After 0x1F the
   rest is what an inner server replies to the proxy. $I, $T and $W are the id,
   the token and the watcher of earlier replies, $D is the root.
   Nothing runs: execve() is replaced, and connect() leads to our own server.
   Oracle: every reply is HTTP; a file outside the root, to which links lead,
   stays as it was and is not shown; the server lives; in the end no memory,
   descriptor, child or temporary is left. */
#include "../support/t_dialect_calls.h"
#include "must.h"

#include <ftw.h>
#include <sys/mman.h>
#include <sys/syscall.h>

static t_heap heap;
static char   root[100];
static char   kept[HFSB_SHA256_HEX]; /* the text outside the root: the hash of
                                        the input, which no input contains */
static unsigned allowed; /* the port of the inner server */

/* ---- what must not happen ---- */

enum { MOST = 4000 };
static struct started {
    volatile int count;
    pid_t        pids[MOST];
} *started; /* shared with the children */

/* In a child: shows its arguments and ends, or waits to be killed. */
__attribute__((no_sanitize("address", "undefined"))) int
execve(const char *path, char *const argv[], char *const envp[]) {
    size_t n = 0;
    (void)path;
    (void)envp;
    if (started->count < MOST) started->pids[started->count++] = getpid();
    while (argv[0] && argv[1] && argv[1][n] && n < 200) n++;
    if (n && write(1, argv[1], n) < 0) _exit(1);
    if (n % 16 == 15) pause();
    _exit((int)(n % 8));
    return -1;
}

int connect(int fd, const struct sockaddr *a, socklen_t n) {
    struct sockaddr_in in;
    if (a->sa_family == AF_UNIX) return (int)syscall(SYS_connect, fd, a, n);
    MUST(a->sa_family == AF_INET6 || n == sizeof in);
    memcpy(&in, a, sizeof in);
    if (a->sa_family == AF_INET6 || in.sin_port == htons(1)) {
        errno = ECONNREFUSED;
        return -1;
    }
    in.sin_port = htons((unsigned short)allowed);
    return (int)syscall(SYS_connect, fd, &in, sizeof in);
}

int kill(pid_t pid, int number) {
    MUST(pid > 1 || pid < -1);
    return (int)syscall(SYS_kill, pid, number);
}

/* ---- files ---- */

static int remove_entry(const char *path, const struct stat *st, int type,
                        struct FTW *where) {
    (void)st;
    (void)where;
    if (!strcmp(path, root)) return 0;
    return type == FTW_DP ? rmdir(path) : unlink(path);
}

static void remove_all(void) {
    char name[160];
    if (!tt_dir[0] || nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS))
        return;
    (void)rmdir(root);
    snprintf(name, sizeof name, "%s/outside", tt_dir);
    (void)unlink(name);
    (void)rmdir(tt_dir);
}

static void put(const char *name, const char *text) {
    char  path[256];
    FILE *f;
    snprintf(path, sizeof path, "%s/%s", root, name);
    f = fopen(path, "wb");
    MUST(f && fwrite(text, 1, strlen(text), f) == strlen(text));
    fclose(f);
}

static void make_files(hfsb_str input) {
    char name[256];
    if (!tt_dir[0]) {
        snprintf(tt_dir, sizeof tt_dir, "/tmp/hfsb-fuzz-XXXXXX");
        MUST(mkdtemp(tt_dir));
        snprintf(root, sizeof root, "%s/work", tt_dir);
        MUST(mkdir(root, 0700) == 0);
        atexit(remove_all);
    }
    MUST(nftw(root, remove_entry, 16, FTW_DEPTH | FTW_PHYS) == 0);
    hfsb_sha256_hex(input, kept);
    put("../outside", kept);
    snprintf(name, sizeof name, "%s/d", root);
    MUST(mkdir(name, 0700) == 0);
    put("d/x", "some bytes\n");
    snprintf(name, sizeof name, "%s/d/l", root);
    MUST(symlink("x", name) == 0);
    snprintf(name, sizeof name, "%s/out", root);
    MUST(symlink("../outside", name) == 0);
    snprintf(name, sizeof name, "%s/up", root);
    MUST(symlink("..", name) == 0);
}

static int no_temporary(const char *path, const struct stat *st, int type,
                        struct FTW *where) {
    char mark[32];
    (void)st;
    (void)type;
    snprintf(mark, sizeof mark, ".hfsb-%ld-", (long)getpid());
    MUST(!strstr(path + where->base, mark));
    return 0;
}

/* ---- steps ---- */

/* Replaces the names of earlier replies. */
static void fill_in(const td *t, hfsb_str in, hfsb_buf *out) {
    while (in.len) {
        size_t      n = hfsb_str_find_byte(in, '$');
        const char *value = NULL;
        if (n == HFSB_NPOS) n = in.len;
        MUST(hfsb_buf_append(out, hfsb_str_slice(in, 0, n)) == HFSB_OK);
        in = hfsb_str_slice(in, n, in.len);
        if (in.len < 2) break;
        if (in.ptr[1] == 'I') value = t->id;
        if (in.ptr[1] == 'T') value = t->token;
        if (in.ptr[1] == 'W') value = t->watch;
        if (in.ptr[1] == 'D') value = root;
        MUST(hfsb_buf_append(out, value ? hfsb_cstr(value)
                                        : HFSB_LIT("$")) == HFSB_OK);
        in = hfsb_str_slice(in, value ? 2 : 1, in.len);
    }
}

/* A request: its length and envelope, where they are missing. */
static void complete(const hfsb_buf *text, hfsb_buf *out) {
    hfsb_str all = hfsb_buf_str(text), head, body;
    size_t   at = hfsb_str_find(all, HFSB_LIT("\r\n\r\n"));
    hfsb_buf wrapped = HFSB_INIT;
    if (at == HFSB_NPOS ||
        hfsb_str_find(hfsb_str_slice(all, 0, at), HFSB_LIT("ontent-L")) !=
            HFSB_NPOS ||
        hfsb_str_find(hfsb_str_slice(all, 0, at), HFSB_LIT("ransfer-")) !=
            HFSB_NPOS) {
        MUST(hfsb_buf_append(out, all) == HFSB_OK);
        return;
    }
    head = hfsb_str_slice(all, 0, at + 2);
    body = hfsb_str_slice(all, at + 4, all.len);
    if (body.len && body.ptr[0] == '{' &&
        hfsb_str_find(head, HFSB_LIT("connect+json")) != HFSB_NPOS) {
        td_envelope(&wrapped, body);
        body = hfsb_buf_str(&wrapped);
    }
    MUST(hfsb_buf_append(out, head) == HFSB_OK);
    if (body.len)
        MUST(hfsb_buf_printf(out, "Content-Length: %zu\r\n", body.len) ==
             HFSB_OK);
    MUST(hfsb_buf_append(out, HFSB_LIT("\r\n")) == HFSB_OK);
    MUST(hfsb_buf_append(out, body) == HFSB_OK);
    hfsb_buf_free(&wrapped);
}

static void frames(const hfsb_buf *text, hfsb_buf *out) {
    hfsb_str rest = hfsb_buf_str(text), line;
    while (hfsbi_list_next(&rest, '\n', &line)) td_frame(out, line);
}

/* Sends bytes in cuts, and takes turns until the server has no more to say. */
static void talk(td *t, td_conn *c, hfsb_str bytes, unsigned cut) {
    unsigned long long seed = cut;
    size_t             had = 0;
    int                quiet = 0;
    while (quiet < 10 && !c->ended && t->alive) {
        size_t step = cut ? 1 + t_random(&seed) % (cut * 4u) : bytes.len;
        if (step > bytes.len) step = bytes.len;
        if (step) {
            ssize_t n = send(c->fd, bytes.ptr, step,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
            if (n > 0) bytes = hfsb_str_slice(bytes, (size_t)n, bytes.len);
            else if (n < 0 && errno != EAGAIN) bytes.len = 0;
        }
        td_turn(t, c, quiet > 7 ? 1 : 0);
        quiet = bytes.len || c->in.len > had ? 0 : quiet + 1;
        had = c->in.len;
    }
}

/* Each reply is one of HTTP. */
static void check_replies(const td_conn *c) {
    static hfsb_http_field fields[64];
    hfsb_http_parser       parser;
    hfsb_str               in = hfsb_buf_str(&c->in);
    hfsb_http_event        e = HFSB_HTTP_END;
    hfsb_http_parser_init_reply(&parser, NULL);
    while (in.len && e != HFSB_HTTP_MORE) {
        hfsb_http_head head;
        hfsb_str       piece;
        size_t         used;
        if (e == HFSB_HTTP_END)
            hfsb_http_parser_begin_reply(&parser, HFSB_LIT("GET"));
        e = hfsb_http_next(&parser, in, fields, 64, &head, &piece, &used,
                           NULL);
        MUST(e != HFSB_HTTP_BAD);
        in = hfsb_str_slice(in, used, in.len);
        if (e != HFSB_HTTP_HEAD) continue;
        MUST(head.status >= 100 && head.status < 600);
        if (head.status == 101) return;
    }
}

static void one_step(td *t, hfsb_str step, unsigned cut, bool heads) {
    hfsb_buf text = HFSB_INIT, out = HFSB_INIT;
    td_reply r = HFSB_INIT;
    td_conn  c = HFSB_INIT;
    bool     codex = !strcmp(t->kind->dialect, "codex");
    fill_in(t, step, &text);
    if (t->kind->on_fds) {
        c = t->line;
        (void)hfsb_buf_append(&text, HFSB_LIT("\n"));
        MUST(hfsb_buf_append(&out, hfsb_buf_str(&text)) == HFSB_OK);
    } else {
        c = td_connect(t);
        if (codex && td_upgrade(t, &c)) frames(&text, &out);
        else complete(&text, &out);
    }
    talk(t, &c, hfsb_buf_str(&out), cut);
    MUST(hfsb_str_find(hfsb_buf_str(&c.in), hfsb_cstr(kept)) == HFSB_NPOS);
    if (!codex && !heads && hfsb_str_find(hfsb_buf_str(&out),
                                          HFSB_LIT("HEAD")) == HFSB_NPOS)
        check_replies(&c);
    r.body = c.in;
    if (c.in.len && !memchr(c.in.ptr, 0, c.in.len)) td_take_names(t, &r);
    if (t->kind->on_fds) t->line = c;
    else td_hang_up(&c);
    hfsb_buf_free(&text);
    hfsb_buf_free(&out);
}

static size_t count_fds(void) {
    size_t n = 0;
    int    fd;
    for (fd = 0; fd < 64; fd++) n += fcntl(fd, F_GETFD) != -1;
    return n;
}

/* No process that was started is left. */
static void check_children(void) {
    int i, k;
    for (i = 0; i < started->count; i++) {
        for (k = 0; k < 1000 && !syscall(SYS_kill, started->pids[i], 0); k++)
            usleep(1000);
        MUST(k < 1000);
    }
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    static const td_kind *const kinds[16] = {
        &td_hf,    &td_hf,        &td_hf,        &td_kube, &td_kube, &td_kube,
        &td_codex, &td_codex,     &td_codex_fds, &td_e2b,  &td_e2b,  &td_e2b,
        &td_e2b,   &td_codex_fds, &td_kube,      &td_host};
    hfsb_alloc alloc;
    hfsb_err   err = HFSB_INIT;
    td         t;
    hfsb_str   rest, step, input = hfsb_str_make((const char *)data, size);
    size_t     fds = count_fds(), at;
    char       path[160];
    hfsb_buf   is = HFSB_INIT;
    if (size < 4) return 0;
    if (!started)
        started = (struct started *)mmap(NULL, sizeof *started,
                                         PROT_READ | PROT_WRITE,
                                         MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    MUST(started != MAP_FAILED);
    started->count = 0;
    td_no_keeper = true;
    make_files(input);
    memset(&heap, 0, sizeof heap);
    alloc.fn = t_heap_fn;
    alloc.user = &heap;
    MUST(td_open(&t, kinds[data[0] % 16], &alloc, &err));
    allowed = t.port;
    rest = hfsb_str_slice(input, 3, input.len);
    at = hfsb_str_find_byte(rest, 0x1F);
    td_inner_reply = HFSB_LIT(TD_INNER);
    if (at != HFSB_NPOS) {
        td_inner_reply = hfsb_str_slice(rest, at + 1, rest.len);
        rest = hfsb_str_slice(rest, 0, at);
    }
    heap.calls = 0;
    heap.fail_at = data[2];
    while (t.alive && hfsbi_list_next(&rest, 0x1E, &step))
        one_step(&t, step, data[1], at != HFSB_NPOS);
    heap.fail_at = 0;
    MUST(t.alive || t.kind->on_fds);
    td_close(&t);
    MUST(heap.live == 0 && !heap.wrong);
    check_children();
    MUST(count_fds() == fds);
    snprintf(path, sizeof path, "%s/outside", tt_dir);
    MUST(t_read_file(path, &is) &&
         hfsb_str_equal(hfsb_buf_str(&is), hfsb_cstr(kept)));
    hfsb_buf_free(&is);
    MUST(nftw(root, no_temporary, 16, FTW_PHYS) == 0);
    return 0;
}
