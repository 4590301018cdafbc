/* test_server_http_data.c - requests with verdicts, distilled from the suites
   of others, over sockets: as many replies as there are requests, a refusal
   with the right status, an end where the connection has to end. Found below
   $HFSB_TEST_DATA; without it everything is skipped. */
#include "../support/t_conn.h"

static ts_server s;

static hfsb_str text_of(const hfsb_json_value *c, const char *key) {
    return hfsb_json_str(hfsb_json_get(c, key), HFSB_LIT(""));
}

static void fine(void *user, hfsb_request *r) {
    (void)user;
    hfsb_reply(r, 200, "text/plain", HFSB_LIT("fine"));
}

/* Adds a route for each request that our own parser finds in the stream. */
static void add_routes(hfsb_str stream) {
    static hfsb_http_field fields[2000];
    hfsb_http_limits       limits = HFSB_INIT;
    hfsb_http_parser       parser;
    limits.max_head = limits.max_target = 1 << 20;
    limits.max_fields = 2000;
    limits.max_chunk_line = 4096;
    hfsb_http_parser_init(&parser, &limits);
    for (;;) {
        hfsb_http_head  head;
        hfsb_str        piece;
        size_t          used;
        hfsb_http_event e = hfsb_http_next(&parser, stream, fields, 2000,
                                           &head, &piece, &used, NULL);
        if (e == HFSB_HTTP_MORE || e == HFSB_HTTP_BAD) return;
        if (e == HFSB_HTTP_HEAD && head.path.len < 20000) {
            static char method[32], path[20001];
            hfsb_route  route = HFSB_INIT;
            snprintf(method, sizeof method, "%.*s", (int)head.method.len,
                     head.method.ptr);
            snprintf(path, sizeof path, "%.*s", (int)head.path.len,
                     head.path.ptr);
            route.method = method;
            route.path = path;
            route.fn = fine;
            route.no_token = true;
            (void)hfsb_server_add(s.server, &route, NULL);
        }
        stream = hfsb_str_slice(stream, used, stream.len);
    }
}

typedef void case_fn(const hfsb_json_value *c, hfsb_str stream);

static size_t each_case(const hfsb_buf *file, case_fn *fn) {
    size_t at = 0, n = 0;
    while (at < file->len) {
        hfsb_str rest = hfsb_str_slice(hfsb_buf_str(file), at, file->len);
        hfsb_str line =
            hfsb_str_slice(rest, 0, hfsb_str_find_byte(rest, '\n'));
        hfsb_json_doc doc = HFSB_INIT;
        hfsb_buf      raw = HFSB_INIT;
        T_CHECK(hfsb_json_parse(line, NULL, &doc, NULL) == HFSB_OK);
        T_CHECK(hfsb_base64_decode(text_of(doc.root, "raw_b64"), &raw, NULL) ==
                HFSB_OK);
        fn(doc.root, hfsb_buf_str(&raw));
        hfsb_buf_free(&raw);
        hfsb_json_free(&doc);
        at += line.len + 1;
        n++;
    }
    return n;
}

static void route_case(const hfsb_json_value *c, hfsb_str stream) {
    (void)c;
    add_routes(stream);
}

/* What comes back: statuses below 400, 404 where no route could be, and 417
   are for requests that were read; the last other one is a refusal. */
typedef struct talk {
    hfsb_buf bytes;
    size_t   taken;
    int      refused;
} talk;

static void talk_of(talk *t, hfsb_str stream, const char *more, size_t cut) {
    ts_conn c = ts_connect(&s);
    size_t  at, from = 0;
    memset(t, 0, sizeof *t);
    if (cut) {
        (void)ts_send(&c, hfsb_str_slice(stream, 0, cut));
        usleep(1000);
    }
    (void)ts_send(&c, hfsb_str_slice(stream, cut, stream.len));
    (void)ts_send(&c, hfsb_cstr(more));
    (void)shutdown(c.fd, SHUT_WR);
    tc_rest(&c, &t->bytes);
    ts_hang_up(&c);
    while ((at = hfsb_str_find(hfsb_str_slice(hfsb_buf_str(&t->bytes), from,
                                              t->bytes.len),
                               HFSB_LIT("HTTP/1.1 "))) != HFSB_NPOS) {
        int status;
        from += at + 9;
        status = atoi(t->bytes.ptr + from);
        if (status <= 100) continue; /* 0: a sentence speaks of HTTP/1.1 */
        if (status < 400 || status == 404 || status == 417) t->taken++;
        else t->refused = status;
    }
}

static bool lists(const hfsb_json_value *c, int status) {
    hfsb_json_iter it = hfsb_json_begin(hfsb_json_get(c, "statuses"));
    while (hfsb_json_next(&it))
        if (hfsb_json_int(it.value, 0) == status) return true;
    return false;
}

static void request_case(const hfsb_json_value *c, hfsb_str stream) {
    static const char more[] = "GET /more HTTP/1.1\r\nHost: x\r\n\r\n";
    bool   accept = hfsb_str_equal(text_of(c, "strict"), HFSB_LIT("accept"));
    bool   incomplete =
        hfsb_str_equal(text_of(c, "rule"), HFSB_LIT("valid-then-incomplete"));
    bool   close = hfsb_json_bool(hfsb_json_get(c, "close"), false);
    size_t want = (size_t)hfsb_json_int(hfsb_json_get(c, "n_strict"), 99);
    talk   whole, cut, longer;
    bool   ok, same, ends = true;
    talk_of(&whole, stream, "", 0);
    talk_of(&cut, stream, "", stream.len / 2);
    ok = whole.taken == want;
    if (accept && !incomplete) ok = ok && !whole.refused;
    if (!accept)
        ok = ok && (!whole.refused || lists(c, whole.refused) ||
                    whole.refused == 400);
    if (!accept && stream.len) ok = ok && whole.refused;
    same = hfsb_str_equal(hfsb_buf_str(&whole.bytes),
                          hfsb_buf_str(&cut.bytes));
    if (accept && !incomplete) { /* what follows is answered, or not */
        talk_of(&longer, stream, more, 0);
        ends = longer.taken == want + (close ? 0 : 1);
        hfsb_buf_free(&longer.bytes);
    }
    T_CHECK(ok && same && ends);
    if (!ok || !same || !ends)
        printf("  %.*s: %zu taken of %zu, refused %d (%d %d %d)\n",
               (int)text_of(c, "id").len, text_of(c, "id").ptr, whole.taken,
               want, whole.refused, ok, same, ends);
    hfsb_buf_free(&whole.bytes);
    hfsb_buf_free(&cut.bytes);
}

static void requests_are_answered_as_decided(void) {
    static const char *const any[] = {"*", NULL};
    hfsb_server_opts         o = HFSB_INIT;
    hfsb_buf                 file = HFSB_INIT;
    if (!t_data_file("data/http/requests.jsonl", &file)) return;
    o.allow_hosts = any;
    o.max_head = 1 << 20;
    o.max_fields = 2000;
    ts_open(&s, &o);
    s.server->limits.http.max_chunk_line = 4096;
    T_CHECK(each_case(&file, route_case) == 839);
    ts_run(&s);
    T_CHECK(each_case(&file, request_case) == 839);
    ts_end(&s, false);
    hfsb_buf_free(&file);
}

int main(void) {
    tt_begin();
    TT_RUN(requests_are_answered_as_decided);
    return TT_END();
}
