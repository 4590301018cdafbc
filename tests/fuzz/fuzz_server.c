/* fuzz_server.c - libFuzzer target for a whole connection to a server.

   The input: a byte for the cuts, a byte for what goes wrong, then what a
   client sends. It is sent three times to a server in the same thread: at
   once, in cuts, and in cuts with memory that fails or a client that goes
   away. Routes reply at once, later, in pieces, after pauses.
   Oracle: our own parser reads the replies one after the other, as many as it
   finds requests (and one that refuses the rest); each has what every reply
   must have; another cut gives the same bytes; a client that ends its side
   sees the end; afterwards no connection and no memory is left, and the server
   serves on. */
#include "../support/t_conn.h"
#include "must.h"

static hfsb_server       *server;
static t_heap             heap;
static size_t             baseline;
static struct sockaddr_un address;
static socklen_t          address_len = sizeof address;

static void open_server(void) {
    hfsb_server_opts o = HFSB_INIT;
    int              fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    o.token = HFSB_LIT("t");
    o.alloc.fn = t_heap_fn;
    o.alloc.user = &heap;
    o.no_threads = true;
    o.max_head = 2048;
    o.max_fields = 20;
    o.max_body = 3000;
    tc_most = 20;
    snprintf(tc.file, sizeof tc.file, "/proc/self/cmdline"); /* seems empty */
    address.sun_family = AF_UNIX; /* a name that the kernel makes up */
    MUST(fd >= 0 &&
         !bind(fd, (struct sockaddr *)&address, sizeof address.sun_family) &&
         !listen(fd, 8) &&
         !getsockname(fd, (struct sockaddr *)&address, &address_len));
    MUST(hfsb_server_open(&o, &server, NULL) == HFSB_OK);
    MUST(hfsb_server_listen_fd(server, fd, NULL) == HFSB_OK);
    MUST(tc_try_routes(server));
    baseline = heap.live;
}

/* A turn of the server, and of what its routes put off. */
static void turn(void) {
    MUST(hfsb_server_poll(server, 0));
    if (tc.holding) tc_let_go(NULL);
}

static ts_conn reach(void) {
    ts_conn c = HFSB_INIT;
    c.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    MUST(c.fd >= 0 &&
         !connect(c.fd, (struct sockaddr *)&address, address_len));
    return c;
}

/* All connections are over, and nothing is left of them. */
static void check_clean(void) {
    int i;
    for (i = 0; i < 200 && server->stats.open; i++) turn();
    for (i = 0; i < 4; i++) turn();
    MUST(server->stats.open == 0 && server->stats.bodies == 0);
    MUST(tc.holding == 0);
    MUST(heap.live == baseline && !heap.wrong);
}

/* Sends bytes in pieces of a length that `cut` decides (0: one); all that
   comes back is in *all. limit: bytes after which the client goes away. */
static void talk(hfsb_str bytes, unsigned cut, size_t limit, hfsb_buf *all) {
    unsigned long long seed = cut;
    ts_conn            c = reach();
    size_t             at = 0, turns = 0;
    bool               shut = false;
    while (!c.ended && at < limit && turns++ < 20000) {
        size_t  step = cut ? 1 + t_random(&seed) % (cut < 128 ? 8 : 200)
                           : bytes.len;
        ssize_t n = 0;
        if (step > bytes.len - at) step = bytes.len - at;
        if (step) n = send(c.fd, bytes.ptr + at, step, MSG_NOSIGNAL);
        if (n > 0) at += (size_t)n;
        if (n < 0 && errno != EAGAIN) at = bytes.len; /* it is refused */
        if (at == bytes.len && !shut) shut = !shutdown(c.fd, SHUT_WR);
        turn();
        while (ts_more(&c, 0)) continue;
    }
    if (limit > bytes.len) MUST(c.ended);
    if (c.in.len)
        MUST(hfsb_buf_append(all, hfsb_buf_str(&c.in)) == HFSB_OK);
    ts_hang_up(&c);
    check_clean();
}

/* ---- what is expected ---- */

typedef struct methods {
    hfsb_str list[512];
    size_t   count;
    bool     whole; /* nothing is missing or wrong */
} methods;

static void read_requests(hfsb_str in, methods *m) {
    static hfsb_http_field fields[20];
    hfsb_http_parser       parser;
    memset(m, 0, sizeof *m);
    hfsb_http_parser_init(&parser, &server->limits.http);
    for (;;) {
        hfsb_http_head  head;
        hfsb_str        piece;
        size_t          used;
        hfsb_http_event e = hfsb_http_next(&parser, in, fields, 20, &head,
                                           &piece, &used, NULL);
        if (e == HFSB_HTTP_MORE || e == HFSB_HTTP_BAD) break;
        if (e == HFSB_HTTP_HEAD && m->count < 512)
            m->list[m->count++] = head.method;
        in = hfsb_str_slice(in, used, in.len);
    }
    m->whole = hfsb_http_parser_end(&parser);
}

static void check_reply(const hfsb_http_head *head) {
    MUST(head->status >= 200 && head->status < 600);
    MUST(hfsb_http_field_count(head, "date") == 1);
    MUST(hfsb_http_field_count(head, "x-hfsb") == 1);
    MUST(hfsb_http_field_count(head, "x-evil") == 0);
    MUST(hfsb_http_field_count(head, "content-length") +
             hfsb_http_field_count(head, "transfer-encoding") <= 1);
}

/* Replies, in order; how many. */
static size_t read_replies(hfsb_str in, const methods *m) {
    static hfsb_http_field fields[64];
    hfsb_http_parser       parser;
    size_t                 n = 0;
    bool                   interim = false, last = false;
    hfsb_http_parser_init_reply(&parser, NULL);
    while (in.len) {
        hfsb_str method = n < m->count ? m->list[n] : HFSB_LIT("GET");
        hfsb_http_event e;
        MUST(!last); /* nothing follows a reply that says it is the last */
        hfsb_http_parser_begin_reply(&parser, method);
        do {
            hfsb_http_head head;
            hfsb_str       piece;
            size_t         used;
            e = hfsb_http_next(&parser, in, fields, 64, &head, &piece, &used,
                               NULL);
            MUST(e != HFSB_HTTP_BAD);
            if (e == HFSB_HTTP_HEAD) {
                interim = head.status == 100;
                if (!interim) check_reply(&head);
                last = !interim && !head.keep_alive;
            }
            in = hfsb_str_slice(in, used, in.len);
            if (e == HFSB_HTTP_MORE) { /* its end is that of the connection */
                MUST(in.len == 0 && hfsb_http_parser_end(&parser));
                break;
            }
        } while (e != HFSB_HTTP_END);
        if (!interim) n++;
    }
    return n;
}

/* What differs from run to run. */
static void blot(hfsb_buf *all) {
    static const char *const names[] = {"\r\nDate: ", "instance="};
    size_t                   i, k, n;
    for (i = 0; i < 2; i++)
        for (n = strlen(names[i]), k = 0; k + n < all->len; k++)
            if (!memcmp(all->ptr + k, names[i], n))
                for (k += n; k < all->len && all->ptr[k] != '\r'; k++)
                    all->ptr[k] = '#';
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    static methods m;
    hfsb_buf       whole = HFSB_INIT, cut = HFSB_INIT;
    hfsb_str       bytes;
    size_t         replies;
    if (!server) open_server();
    if (size < 3) return 0;
    bytes = t_exact(data + 2, size - 2);
    if (hfsb_str_find(bytes, HFSB_LIT("/abort")) != HFSB_NPOS) {
        t_drop(bytes); /* is there to be cut off */
        return 0;
    }
    talk(bytes, 0, (size_t)-1, &whole);
    talk(bytes, 1 + data[0] % 255u, (size_t)-1, &cut);
    read_requests(bytes, &m);
    replies = read_replies(hfsb_buf_str(&whole), &m);
    MUST(replies <= m.count + 1);
    MUST(replies > 0 || m.count == 0);
    blot(&whole);
    blot(&cut);
    MUST(hfsb_str_equal(hfsb_buf_str(&whole), hfsb_buf_str(&cut)));
    if (data[1] < 128) {
        memset(&heap.calls, 0, sizeof heap.calls);
        heap.fail_at = 1u + data[1];
        heap.forever = data[0] % 2 != 0;
        talk(bytes, 1 + data[0] % 255u, (size_t)-1, &cut);
        heap.fail_at = 0;
    } else {
        talk(bytes, 1 + data[0] % 255u, data[1] - 127u, &cut);
    }
    hfsb_buf_truncate(&cut, 0);
    talk(HFSB_LIT(TC_LAST("/hello")), 0, (size_t)-1, &cut);
    MUST(hfsb_str_ends(hfsb_buf_str(&cut), HFSB_LIT("\r\n\r\nhello")));
    hfsb_buf_free(&whole);
    hfsb_buf_free(&cut);
    t_drop(bytes);
    return 0;
}
