/* test_net_body.c - bodies of requests: in pieces, refused early, answered
   while they are sent. */
#include "../support/t_net.h"

/* ---- bodies in pieces ---- */

typedef struct source {
    size_t      at, step;
    hfsb_status fail; /* at fail_at */
    size_t      fail_at;
    useconds_t  pause; /* before each piece but the first */
    tn_peer    *until; /* before these it has replied (NULL: no matter) */
} source;

static source src;

static hfsb_status read_source(void *user, char *ptr, size_t room,
                               size_t *got, hfsb_err *err) {
    size_t i;
    (void)user;
    if (src.fail != HFSB_OK && src.at >= src.fail_at)
        return hfsbi_fail(err, src.fail, 0, "the source failed");
    if (src.pause && src.at) usleep(src.pause);
    if (src.until && src.at)
        T_CHECK(tn_becomes(src.until, &src.until->step, 1));
    *got = room < src.step ? room : src.step;
    for (i = 0; i < *got; i++) ptr[i] = (char)('a' + (src.at + i) % 26);
    src.at += *got;
    return HFSB_OK;
}

static void net_sends_a_body_in_pieces(void) {
    static const tn_step step = {TN_OK, TN_KEEP};
    static const size_t  lengths[] = {0, 1, 1000, 3000000};
    hfsb_transport       net = tn_net();
    tn_peer              peer;
    size_t               i, k;
    tn_play_open(&peer, &step, 1);
    for (i = 0; i < TN_COUNT(lengths); i++) {
        tn_call *t = tn_new("PUT", peer.url, "/");
        hfsb_str body;
        bool     same = true;
        memset(&src, 0, sizeof src);
        src.step = i < 3 ? 7 : 100000;
        hfsb_buf_truncate(&peer.log, 0);
        t->call.body_read = read_source;
        t->call.body_length = lengths[i];
        T_CHECK(tn_do(&net, t) == HFSB_OK && t->sent);
        body = hfsb_buf_str(&peer.log);
        k = hfsb_str_find(body, HFSB_LIT("\r\n\r\n"));
        body = hfsb_str_slice(body, k + 4, body.len);
        T_CHECK(body.len == lengths[i] && src.at == lengths[i]);
        for (k = 0; k < body.len; k++)
            same = same && body.ptr[k] == (char)('a' + k % 26);
        T_CHECK(same);
        tn_drop(t);
    }
    T_CHECK(peer.connections == 1);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

static hfsb_status read_nothing(void *user, char *ptr, size_t room,
                                size_t *got, hfsb_err *err) {
    (void)user, (void)ptr, (void)room, (void)err;
    *got = 0;
    return HFSB_OK;
}

static void net_returns_the_status_of_body_read(void) {
    static const tn_step step = {TN_OK, TN_KEEP};
    hfsb_transport       net = tn_net();
    tn_peer              peer;
    tn_call             *t;
    tn_play_open(&peer, &step, 1);
    t = tn_new("PUT", peer.url, "/");
    memset(&src, 0, sizeof src);
    src.step = 10;
    src.fail = HFSB_STALE;
    src.fail_at = 30;
    t->call.body_read = read_source;
    t->call.body_length = 100;
    T_CHECK(tn_do(&net, t) == HFSB_STALE && t->sent);
    T_CHECK(!strcmp(t->err.msg, "the source failed"));
    t->call.body_read = read_nothing;
    T_CHECK(tn_do(&net, t) == HFSB_ARG);
    t->call.body = HFSB_LIT("x");
    T_CHECK(tn_do(&net, t) == HFSB_ARG && !t->sent);
    tn_drop(t);
    T_CHECK(tn_becomes(&peer, &peer.connections, 2) && !peer.requests);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

/* Answers at the head, having read nothing of the body, and closes; or, with
   peer->user, reads on only when the client has its reply (peer->step). */
static void answer_early(tn_conn *c) {
    char head[512];
    bool hang = c->peer->user != NULL;
    (void)recv(c->fd, head, sizeof head, 0);
    (void)tn_say(c, HFSB_LIT("HTTP/1.1 413 No\r\nContent-Length: "
                             "5\r\n\r\nlarge"));
    if (hang) {
        (void)tn_becomes(c->peer, &c->peer->step, c->number + 1);
        tn_until_closed(c);
    }
    else if (c->number % 2) (void)shutdown(c->fd, SHUT_WR), usleep(20000);
}

static void net_sees_a_reply_before_the_body_is_sent(void) {
    hfsb_transport net = tn_net();
    tn_peer        peer = HFSB_INIT;
    hfsb_buf       big = HFSB_INIT;
    int            i;
    T_CHECK(hfsb_buf_reserve(&big, 30000000) == HFSB_OK);
    memset(big.ptr, 'x', 30000000);
    big.len = 30000000;
    peer.fn = answer_early;
    for (i = 0; i < 12; i++) {
        tn_call *t;
        memset(&src, 0, sizeof src);
        src.step = 50000;
        peer.user = i < 6 ? NULL : &peer;
        if (i == 0 || i == 6) tn_open(&peer);
        t = tn_new("POST", peer.url, "/");
        if (i % 3 < 2) t->call.body = hfsb_buf_str(&big);
        else {
            t->call.body_read = read_source;
            t->call.body_length = 30000000;
        }
        T_CHECK(tn_do(&net, t) == HFSB_OK && t->reply == 413);
        T_STR(t->body, "large");
        pthread_mutex_lock(&peer.lock);
        peer.step++;
        pthread_mutex_unlock(&peer.lock);
        if (i == 5 || i == 11) {
            T_CHECK(peer.connections == 6); /* none of them was kept */
            tn_close(&peer);
            memset(&peer, 0, sizeof peer);
            peer.fn = answer_early;
        }
        tn_drop(t);
    }
    hfsb_buf_free(&big);
    hfsb_transport_close(&net);
}

/* Refuses at the head; the rest of the reply comes later. It reads all that is
   sent meanwhile. */
static void refuse_slowly(tn_conn *c) {
    long long end = hfsb_clock_ms() + 50;
    char      piece[65536];
    (void)recv(c->fd, piece, 512, 0);
    (void)tn_say(c, HFSB_LIT("HTTP/1.1 403 No\r\nContent-Length: 2\r\n"
                             "\r\n"));
    pthread_mutex_lock(&c->peer->lock);
    c->peer->step = 1;
    pthread_mutex_unlock(&c->peer->lock);
    while (hfsb_clock_ms() < end)
        if (recv(c->fd, piece, sizeof piece, MSG_DONTWAIT) < 0) usleep(500);
    (void)tn_say(c, HFSB_LIT("no"));
    tn_until_closed(c);
}

static void net_stops_sending_a_refused_body(void) {
    hfsb_transport net = tn_net();
    tn_peer        peer = HFSB_INIT;
    tn_call       *t;
    peer.fn = refuse_slowly;
    tn_open(&peer);
    t = tn_new("POST", peer.url, "/");
    memset(&src, 0, sizeof src);
    src.step = 50000;
    src.until = &peer;
    t->call.body_read = read_source;
    t->call.body_length = 1ull << 40;
    T_CHECK(tn_do(&net, t) == HFSB_OK && t->reply == 403);
    T_STR(t->body, "no");
    T_CHECK(src.at < 1000000);
    tn_drop(t);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

/* The peer has answered and reset the connection before the next piece is
   sent: that fails, and the reply is there. */
static void net_reads_the_reply_when_sending_fails(void) {
    hfsb_transport net = tn_net();
    tn_peer        peer = HFSB_INIT;
    tn_call       *t;
    peer.fn = answer_early;
    tn_open(&peer);
    t = tn_new("POST", peer.url, "/");
    memset(&src, 0, sizeof src);
    src.step = 50000;
    src.pause = 40000;
    t->call.body_read = read_source;
    t->call.body_length = 1000000;
    T_CHECK(tn_do(&net, t) == HFSB_OK && t->reply == 413);
    T_STR(t->body, "large");
    tn_drop(t);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

/* Sends back what comes while it comes. */
static void echo_at_once(tn_conn *c) {
    char    piece[60000];
    ssize_t n;
    size_t  left = 3000000;
    while (hfsb_str_find(hfsb_buf_str(&c->in), HFSB_LIT("\r\n\r\n")) ==
           HFSB_NPOS)
        if (!tn_more(c)) return;
    n = (ssize_t)hfsb_str_find(hfsb_buf_str(&c->in), HFSB_LIT("\r\n\r\n")) + 4;
    (void)tn_say(c, HFSB_LIT("HTTP/1.1 200 OK\r\nContent-Length: "
                             "3000000\r\n\r\n"));
    (void)tn_say(c, hfsb_str_slice(hfsb_buf_str(&c->in), (size_t)n,
                                   c->in.len));
    left -= c->in.len - (size_t)n;
    while (left && (n = recv(c->fd, piece, sizeof piece, 0)) > 0) {
        if (!tn_say(c, hfsb_str_make(piece, (size_t)n))) return;
        left -= (size_t)n;
    }
}

static void net_reads_and_sends_at_once(void) {
    hfsb_transport net = tn_net();
    tn_peer        peer = HFSB_INIT;
    tn_call       *t;
    peer.fn = echo_at_once;
    tn_open(&peer);
    t = tn_new("POST", peer.url, "/");
    memset(&src, 0, sizeof src);
    src.step = 33333;
    t->call.body_read = read_source;
    t->call.body_length = 3000000;
    T_CHECK(tn_do(&net, t) == HFSB_OK && t->body.len == 3000000);
    T_CHECK(t->body.len == 3000000 && t->body.ptr[2999999] ==
                                          (char)('a' + 2999999 % 26));
    tn_drop(t);
    hfsb_transport_close(&net);
    tn_close(&peer);
}

int main(void) {
    T_RUN(net_sends_a_body_in_pieces);
    T_RUN(net_returns_the_status_of_body_read);
    T_RUN(net_sees_a_reply_before_the_body_is_sent);
    T_RUN(net_stops_sending_a_refused_body);
    T_RUN(net_reads_the_reply_when_sending_fails);
    T_RUN(net_reads_and_sends_at_once);
    return T_END();
}
