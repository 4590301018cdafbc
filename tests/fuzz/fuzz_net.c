/* fuzz_net.c - replies, redirects and event streams under libFuzzer: the whole
   client from hfsb_http_send() down to the socket, whose calls are replaced
   here. The first byte says with what method and whether the body is an event
   stream, the second how the bytes are cut. The rest is what the peer says to
   one request after the other, a NUL between them. Whatever the cut, the
   outcome, its message, the requests and the events must be the same; each
   request must be one that a strict server takes, and none to another host
   may carry the token. */
#ifdef HFSBI_SPLIT
#include "../../src/net/net_private.h"
#else
#define HFSB_IMPLEMENTATION
#include "../../hfsb.h"
#endif
#include "must.h"

/* ---- the peer ---- */

static struct {
    hfsb_str all;     /* what is to be said, in all */
    hfsb_str say[64]; /* ... to the request at hand, on each connection */
    size_t   next;    /* of all */
    size_t   cut, at; /* bytes at a time (0: all); how often */
    size_t   requests;
    hfsb_buf heard; /* the requests */
} peer;

static bool is_first(hfsb_str host) {
    hfsb_buf text = HFSB_INIT;
    hfsb_url url;
    bool     is;
    MUST(hfsb_buf_append(&text, HFSB_LIT("http://")) == HFSB_OK);
    MUST(hfsb_buf_append(&text, host) == HFSB_OK);
    MUST(hfsb_url_parse(hfsb_buf_str(&text), &url, NULL) == HFSB_OK);
    is = hfsb_http_same(url.host, HFSB_LIT("first.test")) && url.port == 80;
    hfsb_buf_free(&text);
    return is;
}

/* What a strict server makes of it. */
static void check_request(hfsb_str text) {
    hfsb_http_parser parser;
    hfsb_http_field  fields[16];
    hfsb_http_head   head;
    hfsb_str         piece;
    size_t           used;
    hfsb_http_event  event;
    hfsb_http_parser_init(&parser, NULL);
    event = hfsb_http_next(&parser, text, fields, 16, &head, &piece, &used,
                           NULL);
    MUST(event == HFSB_HTTP_HEAD);
    if (!is_first(head.host))
        MUST(!hfsb_http_field_count(&head, "X-Sandbox-Authorization"));
    do {
        text = hfsb_str_slice(text, used, text.len);
        event = hfsb_http_next(&parser, text, fields, 16, &head, &piece,
                               &used, NULL);
    } while (event == HFSB_HTTP_BODY);
    MUST(event == HFSB_HTTP_END && used == text.len);
}

ssize_t sendmsg(int fd, const struct msghdr *m, int flags) {
    size_t   from = peer.heard.len, i;
    hfsb_str say;
    (void)flags;
    for (i = 0; i < (size_t)m->msg_iovlen; i++) {
        const struct iovec *v = &m->msg_iov[i];
        MUST(hfsb_buf_append(&peer.heard,
                             hfsb_str_make((const char *)v->iov_base,
                                           v->iov_len)) == HFSB_OK);
    }
    check_request(hfsb_str_slice(hfsb_buf_str(&peer.heard), from,
                                 peer.heard.len));
    MUST(++peer.requests <= 2 * 11);
    say = hfsb_str_slice(peer.all, peer.next, peer.all.len);
    say = hfsb_str_slice(say, 0, hfsb_str_find_byte(say, '\0'));
    peer.next += say.len + 1;
    peer.say[fd % 64] = say;
    return (ssize_t)(peer.heard.len - from);
}

ssize_t recv(int fd, void *ptr, size_t room, int flags) {
    hfsb_str *say = &peer.say[fd % 64];
    size_t    n = room;
    MUST(room > 0);
    if (peer.cut) n = 1 + peer.cut * (++peer.at + 7) % 13 % peer.cut;
    if (n > room) n = room;
    if (n > say->len) n = say->len;
    if (flags & MSG_PEEK) {
        if (n) return 1;
        errno = EAGAIN;
        return -1;
    }
    if (n) memcpy(ptr, say->ptr, n);
    *say = hfsb_str_slice(*say, n, say->len);
    return (ssize_t)n;
}

int poll(struct pollfd *fds, nfds_t n, int ms) {
    (void)n, (void)ms;
    fds[0].revents = fds[0].events;
    return 1;
}

int connect(int fd, const struct sockaddr *a, socklen_t len) {
    (void)fd, (void)a, (void)len;
    return 0;
}

/* Every name has an address. */
int getaddrinfo(const char *host, const char *port,
                const struct addrinfo *hints, struct addrinfo **list) {
    static struct sockaddr_in a;
    static struct addrinfo    one;
    (void)hints;
    MUST(*host && strlen(host) < 256 && *port);
    one.ai_family = a.sin_family = AF_INET;
    one.ai_socktype = SOCK_STREAM;
    one.ai_addr = (struct sockaddr *)(void *)&a;
    one.ai_addrlen = sizeof a;
    *list = &one;
    return 0;
}

void freeaddrinfo(struct addrinfo *list) {
    (void)list;
}

/* ---- one call ---- */

typedef struct outcome {
    hfsb_buf seen;
    hfsb_sse sse;
} outcome;

static bool tell_event(outcome *o) {
    hfsb_str event = hfsb_buf_str(&o->sse.event);
    hfsb_str data = hfsb_buf_str(&o->sse.data);
    MUST(hfsb_buf_append(&o->seen, event) == HFSB_OK);
    MUST(hfsb_buf_append(&o->seen, HFSB_LIT("<")) == HFSB_OK);
    MUST(hfsb_buf_append(&o->seen, data) == HFSB_OK);
    MUST(hfsb_buf_append(&o->seen, HFSB_LIT(">\n")) == HFSB_OK);
    MUST(event.len + data.len <= 100);
    return !hfsb_str_equal(data, HFSB_LIT("stop"));
}

static bool feed_events(void *user, hfsb_str piece) {
    outcome *o = (outcome *)user;
    MUST(piece.len > 0);
    while (hfsb_sse_next(&o->sse, &piece))
        if (!tell_event(o)) return false;
    return o->sse.status == HFSB_OK;
}

static void tell_reply(outcome *o, hfsb_status st, const hfsb_err *err,
                       const hfsb_http_reply *reply) {
    hfsb_url url;
    MUST(st == HFSB_OK || st == HFSB_LOST || st == HFSB_REMOTE ||
         st == HFSB_REFUSED || st == HFSB_CANCELLED || st == HFSB_LIMIT);
    MUST(err->code == st && (st == HFSB_OK) == !err->msg[0]);
    MUST(hfsb_url_parse(hfsb_buf_str(&reply->url), &url, NULL) == HFSB_OK);
    MUST(!url.user.ptr && (st != HFSB_OK || reply->status >= 100));
    MUST(reply->body.len <= 300);
    MUST(hfsb_buf_printf(&o->seen, "%d %s\n%d %d %s\n", (int)st, err->msg,
                         reply->status, reply->sent,
                         reply->url.ptr) == HFSB_OK);
    /* how much of what is too large was kept depends on the cut */
    if (st != HFSB_LIMIT)
        MUST(hfsb_buf_append(&o->seen, hfsb_buf_str(&reply->body)) ==
             HFSB_OK);
    MUST(hfsb_buf_append(&o->seen,
                         hfsb_http_reply_field(reply, "location", 0)) ==
         HFSB_OK);
}

static void call(outcome *o, hfsb_str all, unsigned how, size_t cut) {
    static const char *const methods[] = {"GET", "HEAD", "POST", "PUT"};
    hfsb_net_opts            opts = HFSB_INIT;
    hfsb_transport           net;
    hfsb_http_call           c = HFSB_INIT;
    hfsb_http_field          fields[2];
    hfsb_http_reply          reply = HFSB_INIT;
    hfsb_err                 err;
    hfsb_status              st;
    memset(&peer, 0, sizeof peer);
    peer.all = all;
    peer.cut = cut;
    opts.no_proxy = true;
    opts.max_head = how & 16 ? 200 : 0;
    MUST(hfsb_net_open(&opts, &net, NULL) == HFSB_OK);
    fields[0].name = HFSB_LIT("X-Sandbox-Authorization");
    fields[0].value = HFSB_LIT("Bearer token");
    fields[1].name = HFSB_LIT("Content-Type");
    fields[1].value = HFSB_LIT("text/plain");
    c.fields = fields;
    c.field_count = 2;
    c.method = hfsb_cstr(methods[how & 3]);
    c.url = HFSB_LIT("http://first.test/a/b?c");
    if (how & 2) c.body = HFSB_LIT("body");
    if (how & 4) c.on_body = feed_events;
    c.user = o;
    o->sse.max = 100;
    reply.body.max = 300;
    st = hfsb_http_send(&net, &c, &reply, &err);
    tell_reply(o, st, &err, &reply);
    MUST(hfsb_buf_append(&o->seen, hfsb_buf_str(&peer.heard)) == HFSB_OK);
    hfsb_http_reply_free(&reply);
    hfsb_transport_close(&net);
    hfsb_sse_free(&o->sse);
    hfsb_buf_free(&peer.heard);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size) {
    outcome  whole = HFSB_INIT, cut = HFSB_INIT;
    hfsb_str all;
    if (size < 2) return 0;
    all = hfsb_str_make((const char *)data + 2, size - 2);
    call(&whole, all, data[0], 0);
    call(&cut, all, data[0], 1 + data[1] % 16);
    if (!hfsb_str_equal(hfsb_buf_str(&whole.seen), hfsb_buf_str(&cut.seen)))
        fprintf(stderr, "whole:\n%s\ncut:\n%s\n", whole.seen.ptr,
                cut.seen.ptr);
    MUST(hfsb_str_equal(hfsb_buf_str(&whole.seen), hfsb_buf_str(&cut.seen)));
    hfsb_buf_free(&whole.seen);
    hfsb_buf_free(&cut.seen);
    return 0;
}
