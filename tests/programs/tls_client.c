/* tls_client.c - hfsb_http_curl.h against nginx with TLS, in front of
   hfsb-server; for tests/checks/tls.sh, which starts both.
     tls_client ports N      N ports that are free, a line each
     tls_client ready PORT   waits until someone listens there
     tls_client test         the tests; where things are is in variables: */
#include "../support/t_transport_list.h"

#include "../../hfsb_http_curl.h"

static const char *tls_at(const char *name) {
    const char *value = getenv(name);
    if (!value || !*value) {
        printf("%s is not set\n", name);
        exit(1);
    }
    return value;
}

#define TLS_CA      tls_at("TLS_CA")      /* the authority's certificate */
#define TLS_DIR     tls_at("TLS_DIR")     /* the server's work directory */
#define TLS_TOKEN   tls_at("TLS_TOKEN")   /* of the server */
#define TLS_GOOD    tls_at("TLS_GOOD")    /* ports of nginx */
#define TLS_SHORT   tls_at("TLS_SHORT")   /* ... that closes soon */
#define TLS_EXPIRED tls_at("TLS_EXPIRED") /* ... with bad certificates */
#define TLS_OTHER   tls_at("TLS_OTHER")
#define TLS_UNKNOWN tls_at("TLS_UNKNOWN")
#define TLS_PLAIN   tls_at("TLS_PLAIN")   /* ... without TLS */

/* ---- one call to the server ---- */

enum { TLS_BIG = 24 * 1024 * 1024 };

typedef struct tls_reply {
    bool        sent, same; /* same: every byte is as tls_byte() has it */
    hfsb_status st;
    int         status;
    char        protocol[16]; /* that nginx was spoken to in */
    hfsb_buf    body;         /* unless it is big */
    size_t      length, given;
    bool        big;
    long long   took, first_at, last_at; /* pieces of the body */
    hfsb_err    err;
} tls_reply;

static char tls_byte(size_t at) {
    return (char)(unsigned char)((at * 2654435761u) >> 13);
}

static bool tls_on_head(void *user, int status, const hfsb_http_field *fields,
                        size_t n) {
    tls_reply *r = (tls_reply *)user;
    size_t     i;
    r->status = status;
    for (i = 0; i < n; i++)
        if (hfsb_http_same(fields[i].name, HFSB_LIT("X-Protocol")))
            (void)snprintf(r->protocol, sizeof r->protocol, "%.*s",
                           (int)fields[i].value.len, fields[i].value.ptr);
    return true;
}

static bool tls_on_body(void *user, hfsb_str piece) {
    tls_reply *r = (tls_reply *)user;
    size_t     i;
    r->last_at = hfsb_clock_ms();
    if (!r->length) r->first_at = r->last_at;
    if (!r->big) {
        r->length += piece.len;
        return hfsb_buf_append(&r->body, piece) == HFSB_OK;
    }
    for (i = 0; i < piece.len; i++)
        if (piece.ptr[i] != tls_byte(r->length++)) r->same = false;
    return true;
}

static hfsb_status tls_give(void *user, char *ptr, size_t room, size_t *got,
                            hfsb_err *err) {
    tls_reply *r = (tls_reply *)user;
    (void)err;
    for (*got = 0; *got < room; (*got)++) ptr[*got] = tls_byte(r->given++);
    return HFSB_OK;
}

/* Fills in what `call` leaves out; path may be a whole URL. */
static void tls_send(const hfsb_transport *t, const char *port,
                     const char *path, hfsb_http_call call, tls_reply *r) {
    hfsb_http_field fields[3];
    char            url[512], token[128];
    (void)snprintf(url, sizeof url, "https://127.0.0.1:%s%s", port, path);
    (void)snprintf(token, sizeof token, "Bearer %s", TLS_TOKEN);
    fields[0].name = HFSB_LIT("X-Sandbox-Authorization");
    fields[0].value = hfsb_cstr(token);
    fields[1].name = HFSB_LIT("Content-Type");
    fields[1].value = HFSB_LIT("application/json");
    fields[2].name = HFSB_LIT("Accept");
    fields[2].value = HFSB_LIT("text/event-stream");
    if (!call.method.len) call.method = HFSB_LIT("GET");
    call.url = hfsb_cstr(*path == '/' ? url : path);
    call.fields = fields;
    call.field_count = call.idle_ms ? 3 : call.body.ptr ? 2 : 1;
    call.on_head = tls_on_head;
    call.on_body = tls_on_body;
    call.user = r;
    if (!call.total_ms) call.total_ms = 20000;
    r->same = true;
    r->took = hfsb_clock_ms();
    r->st = t->perform(t->user, &call, &r->sent, &r->err);
    r->took = hfsb_clock_ms() - r->took;
    T_CHECK(!strstr(r->err.msg, TLS_TOKEN));
}

static void tls_drop(tls_reply *r) {
    hfsb_buf_free(&r->body);
    memset(r, 0, sizeof *r);
}

static hfsb_transport tls_open(bool http1) {
    hfsb_curl_opts opts = HFSB_INIT;
    hfsb_transport t;
    hfsb_err       err;
    opts.ca_file = hfsb_cstr(TLS_CA);
    opts.direct = true;
    opts.http1 = http1;
    if (hfsb_curl_open(&opts, &t, &err) != HFSB_OK) {
        printf("%s\n", err.msg);
        exit(1);
    }
    return t;
}

static bool tls_says(const tls_reply *r, const char *part) {
    bool yes = strstr(r->err.msg, part) != NULL;
    if (!yes) printf("  not \"%s\" in: %s\n", part, r->err.msg);
    return yes;
}

/* ---- what works ---- */

static void curl_transport_conforms(void) {
    hfsb_curl_opts opts = HFSB_INIT;
    hfsb_transport t;
    opts.direct = true;
    T_CHECK(hfsb_curl_open(&opts, &t, NULL) == HFSB_OK);
    tt_conforms(&t);
    hfsb_transport_close(&t);
    T_CHECK(!t.perform && !t.user);
}

static bool tls_has_http2(void) {
#ifdef HFSB_CURL_DLOPEN
    return *tls_at("TLS_HTTP2") == '1';
#else
    return (curl_version_info(CURLVERSION_NOW)->features &
            CURL_VERSION_HTTP2) != 0;
#endif
}

static void calls_go_over_tls(void) {
    int http1;
    for (http1 = 0; http1 < 2; http1++) {
        hfsb_transport t = tls_open(http1 == 1);
        hfsb_http_call call = HFSB_INIT;
        tls_reply      r = HFSB_INIT;
        char           url[64];
        tls_send(&t, TLS_GOOD, "/api/health", call, &r);
        T_CHECK(r.st == HFSB_OK && r.sent && r.status == 200);
        T_CHECK(tt_has(&r.body, "{\"status\":\"ok\","));
        if (!http1 && !tls_has_http2()) t_skipped++;
        else
            T_CHECK(!strcmp(r.protocol, http1 ? "HTTP/1.1" : "HTTP/2.0"));
        tls_drop(&r);
        call.method = HFSB_LIT("POST");
        call.body = HFSB_LIT("{\"command\":\"echo $((6*7))\"}");
        tls_send(&t, TLS_GOOD, "/api/bash", call, &r);
        T_CHECK(r.st == HFSB_OK && r.status == 200);
        T_CHECK(tt_has(&r.body, "\"output\":\"42\\n\""));
        tls_drop(&r);
        /* the certificate is for this name too */
        (void)snprintf(url, sizeof url, "https://localhost:%s/api/health",
                       TLS_GOOD);
        memset(&call, 0, sizeof call);
        tls_send(&t, "", url, call, &r);
        T_CHECK(r.st == HFSB_OK && r.status == 200);
        tls_drop(&r);
        hfsb_transport_close(&t);
    }
}

static void big_bodies_go_both_ways(void) {
    int http1;
    for (http1 = 0; http1 < 2; http1++) {
        hfsb_transport t = tls_open(http1 == 1);
        hfsb_http_call call = HFSB_INIT;
        tls_reply      r = HFSB_INIT;
        char           path[512];
        (void)snprintf(path, sizeof path, "/api/files?path=%s/big%d", TLS_DIR,
                       http1);
        call.method = HFSB_LIT("PUT");
        call.body_read = tls_give;
        call.body_length = TLS_BIG;
        tls_send(&t, TLS_GOOD, path, call, &r);
        T_CHECK(r.st == HFSB_OK && r.status / 100 == 2);
        T_CHECK(r.given == TLS_BIG);
        tls_drop(&r);
        memset(&call, 0, sizeof call);
        r.big = true;
        tls_send(&t, TLS_GOOD, path, call, &r);
        T_CHECK(r.st == HFSB_OK && r.status == 200 && r.same &&
                r.length == TLS_BIG);
        tls_drop(&r);
        hfsb_transport_close(&t);
    }
}

static void pieces_come_as_they_are_made(void) {
    hfsb_transport t = tls_open(false);
    hfsb_http_call call = HFSB_INIT;
    tls_reply      r = HFSB_INIT;
    call.method = HFSB_LIT("POST");
    call.idle_ms = 20000;
    call.body =
        HFSB_LIT("{\"command\":\"echo one; sleep 0.5; echo two\"}");
    tls_send(&t, TLS_GOOD, "/api/bash", call, &r);
    T_CHECK(r.st == HFSB_OK && r.status == 200);
    T_CHECK(tt_has(&r.body, "one") && tt_has(&r.body, "two"));
    T_CHECK(r.last_at - r.first_at >= 150);
    tls_drop(&r);
    hfsb_transport_close(&t);
}

/* The server hears of it, and ends the command. */
static void cancel_reaches_the_server(void) {
    int http1;
    for (http1 = 0; http1 < 2; http1++) {
        hfsb_transport t = tls_open(http1 == 1);
        hfsb_http_call call = HFSB_INIT, ask = HFSB_INIT;
        tls_reply      r = HFSB_INIT;
        hfsb_cancel   *cancel = NULL;
        pthread_t      thread;
        long long      end;
        bool           over = false;
        T_CHECK(hfsb_cancel_open(NULL, &cancel, NULL) == HFSB_OK);
        if (pthread_create(&thread, NULL, tt_cancel_soon, cancel)) abort();
        call.method = HFSB_LIT("POST");
        call.idle_ms = 60000;
        call.cancel = cancel;
        call.body = HFSB_LIT("{\"command\":\"echo begun; exec sleep 5432\"}");
        tls_send(&t, TLS_GOOD, "/api/bash", call, &r);
        (void)pthread_join(thread, NULL);
        T_CHECK(r.st == HFSB_CANCELLED && r.sent && r.took < 15000);
        tls_drop(&r);
        end = hfsb_clock_ms() + 20000;
        while (!over && hfsb_clock_ms() < end) {
            tls_send(&t, TLS_GOOD, "/api/jobs", ask, &r);
            over = r.st == HFSB_OK && !tt_has(&r.body, "\"running\":true");
            T_CHECK(tt_has(&r.body, "sleep 5432"));
            tls_drop(&r);
            usleep(20000);
        }
        T_CHECK(over);
        hfsb_cancel_close(cancel);
        hfsb_transport_close(&t);
    }
}

/* nginx closes what is kept after a short time; nobody notices. */
static void a_kept_connection_may_end(void) {
    int http1;
    for (http1 = 0; http1 < 2; http1++) {
        hfsb_transport t = tls_open(http1 == 1);
        hfsb_http_call call = HFSB_INIT;
        tls_reply      r = HFSB_INIT;
        int            i;
        call.method = HFSB_LIT("POST");
        call.body = HFSB_LIT("{\"path\":\"/\"}");
        for (i = 0; i < 2; i++) {
            if (i) usleep(600000);
            tls_send(&t, TLS_SHORT, "/api/exists", call, &r);
            T_CHECK(r.st == HFSB_OK && r.status == 200);
            tls_drop(&r);
        }
        hfsb_transport_close(&t);
    }
}

static void *tls_many(void *user) {
    static const char body[] = "{\"path\":\"/\"}";
    const hfsb_transport *t = (const hfsb_transport *)user;
    hfsb_http_call        call = HFSB_INIT;
    hfsb_http_field       fields[2];
    char                  url[64], value[128];
    size_t                bad = 0;
    int                   i;
    (void)snprintf(value, sizeof value, "Bearer %s", TLS_TOKEN);
    (void)snprintf(url, sizeof url, "https://127.0.0.1:%s/api/exists",
                   TLS_GOOD);
    fields[0].name = HFSB_LIT("X-Sandbox-Authorization");
    fields[0].value = hfsb_cstr(value);
    fields[1].name = HFSB_LIT("Content-Type");
    fields[1].value = HFSB_LIT("application/json");
    call.url = hfsb_cstr(url);
    call.method = HFSB_LIT("POST");
    call.body = hfsb_cstr(body);
    call.fields = fields;
    call.field_count = 2;
    for (i = 0; i < 40; i++) {
        tls_reply r = HFSB_INIT;
        call.on_head = tls_on_head;
        call.on_body = tls_on_body;
        call.user = &r;
        if (t->perform(t->user, &call, &r.sent, NULL) || !r.sent ||
            r.status != 200)
            bad++;
        hfsb_buf_free(&r.body);
    }
    return bad ? user : NULL;
}

static void several_threads_share_it(void) {
    hfsb_transport t = tls_open(false);
    pthread_t      threads[4];
    size_t         i;
    for (i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, tls_many, &t)) abort();
    for (i = 0; i < 4; i++) {
        void *bad = NULL;
        (void)pthread_join(threads[i], &bad);
        T_CHECK(!bad);
    }
    hfsb_transport_close(&t);
}

/* ---- what is refused ---- */

static void bad_certificates_are_refused(void) {
    hfsb_transport t = tls_open(false);
    hfsb_http_call call = HFSB_INIT;
    tls_reply      r = HFSB_INIT;
    const char    *ports[3], *says[3];
    size_t         i;
    ports[0] = TLS_EXPIRED, says[0] = "certificate has expired. Renew it";
    ports[1] = TLS_OTHER, says[1] = "certificate is for another host name";
    ports[2] = TLS_UNKNOWN, says[2] = "unknown authority. To trust "
                                      "it, set ca_file";
    call.method = HFSB_LIT("POST");
    for (i = 0; i < 3; i++) {
        tls_send(&t, ports[i], "/api/kill", call, &r);
        T_CHECK(r.st == HFSB_REFUSED && !r.sent && !r.status);
        T_CHECK(tls_says(&r, says[i]) && tls_says(&r, ports[i]));
        tls_drop(&r);
    }
    hfsb_transport_close(&t);
}

/* Without ca_file the system's authorities count, and ours is not one of them. */
static void trust_can_be_named(void) {
    hfsb_curl_opts opts = HFSB_INIT;
    hfsb_transport t;
    hfsb_err       err;
    hfsb_http_call call = HFSB_INIT;
    tls_reply      r = HFSB_INIT;
    opts.direct = true;
    T_CHECK(hfsb_curl_open(&opts, &t, &err) == HFSB_OK);
    tls_send(&t, TLS_GOOD, "/api/health", call, &r);
    T_CHECK(r.st == HFSB_REFUSED && !r.sent);
    tls_drop(&r);
    hfsb_transport_close(&t);
    (void)setenv("SSL_CERT_FILE", TLS_CA, 1);
    T_CHECK(hfsb_curl_open(&opts, &t, &err) == HFSB_OK);
    (void)unsetenv("SSL_CERT_FILE");
    tls_send(&t, TLS_GOOD, "/api/health", call, &r);
    T_CHECK(r.st == HFSB_OK && r.status == 200);
    tls_drop(&r);
    hfsb_transport_close(&t);
    opts.ca_file = HFSB_LIT("/nowhere/ca.crt");
    T_CHECK(hfsb_curl_open(&opts, &t, &err) == HFSB_NOT_FOUND);
    T_CHECK(strstr(err.msg, "/nowhere/ca.crt") && !t.perform);
    opts.ca_file = HFSB_LIT("a\0b");
    T_CHECK(hfsb_curl_open(&opts, &t, &err) == HFSB_ARG && !t.perform);
}

static void no_tls_is_no_connection(void) {
    static const tt_step silent[] = {TT_BEGIN, {TT_END, NULL, 0}};
    static const tt_step gone[] = {{TT_ACCEPT, NULL, 0}, TT_SHUT,
                                   {TT_END, NULL, 0}};
    hfsb_transport t = tls_open(false);
    hfsb_http_call call = HFSB_INIT;
    tls_reply      r = HFSB_INIT;
    tt_peer        peer;
    char           port[16];
    call.method = HFSB_LIT("POST");
    tls_send(&t, TLS_PLAIN, "/api/kill", call, &r);
    T_CHECK(r.st == HFSB_CONNECT && !r.sent);
    T_CHECK(tls_says(&r, "Does that port speak TLS?"));
    tls_drop(&r);
    tt_start(&peer, silent);
    (void)snprintf(port, sizeof port, "%u", peer.port);
    call.connect_ms = 150;
    tls_send(&t, port, "/", call, &r);
    T_CHECK(r.st == HFSB_TIMEOUT && !r.sent && r.took < 15000);
    tls_drop(&r);
    tt_stop(&peer);
    hfsb_buf_free(&peer.seen);
    tt_start(&peer, gone);
    (void)snprintf(port, sizeof port, "%u", peer.port);
    call.connect_ms = 0;
    tls_send(&t, port, "/", call, &r);
    T_CHECK(r.st == HFSB_CONNECT && !r.sent);
    tls_drop(&r);
    tt_stop(&peer);
    hfsb_transport_close(&t);
}

/* ---- proxies ---- */

/* One that is asked to connect to the peer hears nothing else of the call. */
static void a_proxy_is_used(void) {
    static const tt_step plain[] = {TT_BEGIN, TT_SAY(TT_HI),
                                    {TT_END, NULL, 0}};
    static const tt_step refuses[] = {
        TT_BEGIN,
        TT_SAY("HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n"),
        {TT_END, NULL, 0}};
    int from_environment;
    for (from_environment = 0; from_environment < 2; from_environment++) {
        hfsb_curl_opts opts = HFSB_INIT;
        hfsb_transport t;
        hfsb_http_call call = HFSB_INIT;
        tls_reply      r = HFSB_INIT;
        tt_peer        peer;
        char           at[64];
        int            secure;
        for (secure = 0; secure < 2; secure++) {
            tt_start(&peer, secure ? refuses : plain);
            (void)snprintf(at, sizeof at, "http://127.0.0.1:%u", peer.port);
            if (!from_environment) opts.proxy = hfsb_cstr(at);
            else (void)setenv(secure ? "HTTPS_PROXY" : "http_proxy", at, 1);
            T_CHECK(hfsb_curl_open(&opts, &t, NULL) == HFSB_OK);
            (void)unsetenv("http_proxy");
            (void)unsetenv("HTTPS_PROXY");
            tls_send(&t, "",
                     secure ? "https://far.invalid/x" : "http://far.invalid/x",
                     call, &r);
            tt_stop(&peer);
            T_CHECK(r.st == (secure ? HFSB_CONNECT : HFSB_OK));
            T_CHECK(r.sent == !secure);
            T_CHECK(hfsb_str_starts(
                hfsb_buf_str(&peer.seen),
                secure ? HFSB_LIT("CONNECT far.invalid:443 HTTP/1.1\r\n")
                       : HFSB_LIT("GET http://far.invalid/x HTTP/1.1\r\n")));
            T_CHECK(tt_has(&peer.seen, TLS_TOKEN) == !secure);
            tls_drop(&r);
            hfsb_buf_free(&peer.seen);
            hfsb_transport_close(&t);
        }
    }
}

static void a_proxy_may_be_gone_around(void) {
    int direct;
    for (direct = 0; direct < 2; direct++) {
        hfsb_curl_opts opts = HFSB_INIT;
        hfsb_transport t;
        hfsb_http_call call = HFSB_INIT;
        tls_reply      r = HFSB_INIT;
        (void)setenv("https_proxy", "http://127.0.0.1:1", 1);
        opts.ca_file = hfsb_cstr(TLS_CA);
        if (direct) opts.direct = true;
        else opts.no_proxy = HFSB_LIT("example.com,127.0.0.1");
        T_CHECK(hfsb_curl_open(&opts, &t, NULL) == HFSB_OK);
        tls_send(&t, TLS_GOOD, "/api/health", call, &r);
        T_CHECK(r.st == HFSB_OK && r.status == 200);
        tls_drop(&r);
        hfsb_transport_close(&t);
        (void)unsetenv("https_proxy");
    }
}

/* ---- without memory, without descriptors ---- */

static void tls_with(hfsb_alloc alloc, const t_heap *heap) {
    hfsb_curl_opts opts = HFSB_INIT;
    hfsb_transport t;
    hfsb_http_call call = HFSB_INIT;
    tls_reply      r = HFSB_INIT;
    opts.ca_file = hfsb_cstr(TLS_CA);
    opts.direct = true;
    opts.alloc = alloc;
    r.st = hfsb_curl_open(&opts, &t, &r.err);
    if (r.st == HFSB_OK) {
        tls_send(&t, TLS_GOOD, "/api/health", call, &r);
        hfsb_transport_close(&t);
    }
    T_CHECK(r.st == (heap->fail_at ? HFSB_NOMEM : HFSB_OK));
    tls_drop(&r);
}

static void each_allocation_may_fail(void) {
    t_each_allocation_fails(tls_with);
}

static void send_reports_lack_of_descriptors(void) {
    hfsb_transport t = tls_open(true);
    hfsb_http_call call = HFSB_INIT;
    tls_reply      r = HFSB_INIT;
    int            fds[2048];
    size_t         n = 0;
    struct rlimit  was, small;
    tls_send(&t, TLS_GOOD, "/api/health", call, &r); /* all is loaded */
    tls_drop(&r);
    T_CHECK(!getrlimit(RLIMIT_NOFILE, &was));
    small = was;
    small.rlim_cur = 256;
    T_CHECK(!setrlimit(RLIMIT_NOFILE, &small));
    while (n < 2048 && (fds[n] = dup(0)) >= 0) n++;
    tls_send(&t, TLS_OTHER, "/api/health", call, &r);
    T_CHECK(r.st == HFSB_BUSY && !r.sent);
    if (r.st != HFSB_BUSY) printf("  %s\n", r.err.msg);
    while (n) hfsbi_close(&fds[--n]);
    T_CHECK(!setrlimit(RLIMIT_NOFILE, &was));
    tls_drop(&r);
    hfsb_transport_close(&t);
}

/* ---- */

static int tls_ports(int n) {
    unsigned port;
    int      i;
    for (i = 0; i < n; i++) { /* open until the end, so all differ */
        (void)tt_listen(&port, 1);
        printf("%u\n", port);
    }
    return 0;
}

static int tls_ready(int port) {
    struct sockaddr_in at = HFSB_INIT;
    long long          end = hfsb_clock_ms() + 20000;
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    at.sin_port = htons((unsigned short)port);
    while (hfsb_clock_ms() < end) {
        int  fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
        bool ok = !connect(fd, (struct sockaddr *)&at, sizeof at);
        hfsbi_close(&fd);
        if (ok) return 0;
        usleep(20000);
    }
    return 1;
}

int main(int argc, char **argv) {
    if (argc == 3 && !strcmp(argv[1], "ports"))
        return tls_ports(atoi(argv[2]));
    if (argc == 3 && !strcmp(argv[1], "ready"))
        return tls_ready(atoi(argv[2]));
    T_RUN(curl_transport_conforms);
    T_RUN(calls_go_over_tls);
    T_RUN(big_bodies_go_both_ways);
    T_RUN(pieces_come_as_they_are_made);
    T_RUN(cancel_reaches_the_server);
    T_RUN(a_kept_connection_may_end);
    T_RUN(several_threads_share_it);
    T_RUN(bad_certificates_are_refused);
    T_RUN(trust_can_be_named);
    T_RUN(no_tls_is_no_connection);
    T_RUN(a_proxy_is_used);
    T_RUN(a_proxy_may_be_gone_around);
    T_RUN(each_allocation_may_fail);
    T_RUN(send_reports_lack_of_descriptors);
    return T_END();
}
