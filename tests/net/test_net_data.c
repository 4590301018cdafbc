/* test_net_data.c - replies with verdicts, distilled from the suites of
   others, through the transport: whole and in two parts.
   Found below $HFSB_TEST_DATA; without it everything is skipped. */
#include "../support/t_net.h"

static struct {
    hfsb_str stream;
    size_t   cut; /* bytes of the first part (0: all at once) */
} now;

static void say_stream(tn_conn *c) {
    hfsb_str stream;
    size_t   cut;
    if (!tn_request(c)) return;
    pthread_mutex_lock(&c->peer->lock);
    cut = now.cut;
    stream = t_exact(now.stream.ptr, now.stream.len); /* it may go away */
    pthread_mutex_unlock(&c->peer->lock);
    (void)tn_say(c, hfsb_str_slice(stream, 0, cut));
    if (cut) usleep(300);
    (void)tn_say(c, hfsb_str_slice(stream, cut, stream.len));
    t_drop(stream);
    (void)shutdown(c->fd, SHUT_WR); /* no reset, however much is read */
    tn_until_closed(c);
}

static hfsb_str text_of(const hfsb_json_value *c, const char *key) {
    return hfsb_json_str(hfsb_json_get(c, key), HFSB_LIT(""));
}

/* No call of ours asks for another protocol, as the requests of these cases
   would: the reply is refused. */
static bool is_switch(const hfsb_json_value *c) {
    return hfsb_json_int(hfsb_json_get(c, "expect_status"), -1) == 101;
}

static void reply_case(tn_peer *peer, const hfsb_json_value *c) {
    hfsb_str    verdict = text_of(c, "verdict"), first_body = HFSB_INIT;
    hfsb_status first = HFSB_OK;
    hfsb_buf    keep = HFSB_INIT;
    size_t      part;
    for (part = 0; part < 3; part++) {
        hfsb_transport net = tn_net();
        tn_call       *t;
        char           method[16];
        bool           ok = true;
        snprintf(method, sizeof method, "%.*s", (int)text_of(c, "method").len,
                 text_of(c, "method").ptr);
        pthread_mutex_lock(&peer->lock);
        now.cut = now.stream.len * part / 3;
        pthread_mutex_unlock(&peer->lock);
        t = tn_new(method, peer->url, "/");
        (void)tn_do(&net, t);
        T_CHECK(t->status == HFSB_OK || t->status == HFSB_LOST ||
                t->status == HFSB_REMOTE);
        if (is_switch(c))
            ok = t->status == HFSB_REMOTE;
        else if (hfsb_str_equal(verdict, HFSB_LIT("accept")))
            ok = t->status == HFSB_OK &&
                 t->reply ==
                     hfsb_json_int(hfsb_json_get(c, "expect_status"), -1) &&
                 (long long)t->body.len ==
                     hfsb_json_int(hfsb_json_get(c, "expect_body_len"), -1);
        else if (hfsb_str_equal(verdict, HFSB_LIT("reject")))
            ok = t->status != HFSB_OK;
        if (!part) {
            first = t->status;
            T_CHECK(hfsb_buf_append(&keep, hfsb_buf_str(&t->body)) ==
                    HFSB_OK);
            first_body = hfsb_buf_str(&keep);
        } else { /* the same in every cut */
            ok = ok && t->status == first;
            if (first == HFSB_OK)
                ok = ok && hfsb_str_equal(first_body, hfsb_buf_str(&t->body));
        }
        T_CHECK(ok);
        if (!ok)
            printf("  %.*s, part %zu: %d %s\n", (int)text_of(c, "id").len,
                   text_of(c, "id").ptr, part, t->status, t->err.msg);
        tn_drop(t);
        hfsb_transport_close(&net);
    }
    hfsb_buf_free(&keep);
}

static void net_reads_recorded_replies(void) {
    hfsb_buf file = HFSB_INIT;
    size_t   at = 0, n = 0;
    tn_peer  peer = HFSB_INIT;
    if (!t_data_file("data/http/responses.jsonl", &file)) return;
    peer.fn = say_stream;
    tn_open(&peer);
    while (at < file.len) {
        hfsb_str      rest = hfsb_str_slice(hfsb_buf_str(&file), at, file.len);
        hfsb_str      line =
            hfsb_str_slice(rest, 0, hfsb_str_find_byte(rest, '\n'));
        hfsb_json_doc doc = HFSB_INIT;
        hfsb_buf      raw = HFSB_INIT;
        T_CHECK(hfsb_json_parse(line, NULL, &doc, NULL) == HFSB_OK);
        T_CHECK(hfsb_base64_decode(text_of(doc.root, "raw_b64"), &raw, NULL) ==
                HFSB_OK);
        now.stream = hfsb_buf_str(&raw);
        reply_case(&peer, doc.root);
        hfsb_buf_free(&raw);
        hfsb_json_free(&doc);
        at += line.len + 1;
        n++;
    }
    T_CHECK(n == 135);
    tn_close(&peer);
    hfsb_buf_free(&file);
}

int main(void) {
    T_RUN(net_reads_recorded_replies);
    return T_END();
}
