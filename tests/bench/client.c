/* client.c - the built-in transport beside libcurl, to the same hfsb-server,
   taking turns: a small call on a kept connection, and a large download
   beside the program curl. For tests/bench/client.sh.
     client URL FILE      FILE: a path on the server's machine
   libcurl is used as its own examples do: one handle, curl_easy_perform().
   The transport of hfsb_http_curl.h is shown too: it can be cancelled, which
   takes a little. */
#define HFSB_IMPLEMENTATION
#include "../../hfsb_http_curl.h"

#include "bench.h"
#include <curl/curl.h>

enum { WAYS = 3 };

#define ROUNDS    bench_rounds(9)
#define CALLS     bench_part(1000, 50)
#define DOWNLOADS bench_rounds(5)

static const char *const names[WAYS] = {"libcurl", "built in",
                                        "hfsb_http_curl.h"};
static const char        body[] = "{\"path\":\"/\"}";

typedef struct bench {
    const char    *url, *file;
    hfsb_transport net, curl;
    CURL          *easy;
    size_t         bytes; /* of bodies that came */
} bench;

static void fail(const char *what) {
    fprintf(stderr, "client: %s\n", what);
    exit(1);
}

/* ---- one request in each way ---- */

static bool on_head(void *user, int status, const hfsb_http_field *fields,
                    size_t n) {
    (void)user, (void)fields, (void)n;
    return status == 200;
}

static bool on_body(void *user, hfsb_str piece) {
    ((bench *)user)->bytes += piece.len;
    return true;
}

static void send_transport(bench *b, const hfsb_transport *t, const char *url,
                           bool post) {
    hfsb_http_field field;
    hfsb_http_call  call = HFSB_INIT;
    hfsb_err        err;
    bool            sent;
    field.name = HFSB_LIT("Content-Type");
    field.value = HFSB_LIT("application/json");
    call.method = hfsb_cstr(post ? "POST" : "GET");
    call.url = hfsb_cstr(url);
    if (post) {
        call.fields = &field;
        call.field_count = 1;
        call.body = hfsb_cstr(body);
    }
    call.on_head = on_head;
    call.on_body = on_body;
    call.user = b;
    if (t->perform(t->user, &call, &sent, &err) != HFSB_OK) fail(err.msg);
}

static size_t curl_body(char *ptr, size_t size, size_t n, void *user) {
    (void)ptr;
    ((bench *)user)->bytes += size * n;
    return size * n;
}

static void send_curl(bench *b, const char *url, bool post) {
    long status = 0;
    struct curl_slist *fields =
        curl_slist_append(NULL, "Content-Type: application/json");
    (void)curl_easy_setopt(b->easy, CURLOPT_URL, url);
    (void)curl_easy_setopt(b->easy, CURLOPT_WRITEFUNCTION, curl_body);
    (void)curl_easy_setopt(b->easy, CURLOPT_WRITEDATA, b);
    (void)curl_easy_setopt(b->easy, CURLOPT_NOSIGNAL, 1L);
    (void)curl_easy_setopt(b->easy, CURLOPT_PROXY, "");
    if (post) {
        (void)curl_easy_setopt(b->easy, CURLOPT_HTTPHEADER, fields);
        (void)curl_easy_setopt(b->easy, CURLOPT_POSTFIELDS, body);
    } else {
        (void)curl_easy_setopt(b->easy, CURLOPT_HTTPHEADER, NULL);
        (void)curl_easy_setopt(b->easy, CURLOPT_HTTPGET, 1L);
    }
    if (curl_easy_perform(b->easy)) fail("libcurl failed");
    (void)curl_easy_getinfo(b->easy, CURLINFO_RESPONSE_CODE, &status);
    if (status != 200) fail("libcurl got another status");
    curl_slist_free_all(fields);
}

static void send_one(bench *b, int way, const char *url, bool post) {
    if (way == 0) send_curl(b, url, post);
    else send_transport(b, way == 1 ? &b->net : &b->curl, url, post);
}

/* ---- what is measured ---- */

static void show(const char *what, const double best[WAYS], double scale,
                 const char *unit, const char *peer) {
    char figure[64];
    int  way;
    (void)snprintf(figure, sizeof figure, "client: %s", what);
    bench_keep(figure, best[1] * scale, peer, best[0] * scale, unit);
    printf("  %s\n", what);
    printf("    %-18s %9.1f %s\n", peer, best[0] * scale, unit);
    for (way = 1; way < WAYS; way++)
        printf("    %-18s %9.1f %s  ratio %.2f%s\n", names[way],
               best[way] * scale, unit, best[way] / best[0],
               way > 1                           ? ""
               : best[way] <= 1.1 * best[0] ? "  (aim 1.1: met)"
                                                 : "  (aim 1.1: MISSED)");
}

static void small_calls(bench *b) {
    double best[WAYS] = {1e9, 1e9, 1e9};
    char   url[256];
    int    round, way, i;
    (void)snprintf(url, sizeof url, "%s/api/exists", b->url);
    for (round = 0; round < ROUNDS; round++)
        for (way = 0; way < WAYS; way++) {
            double begin = bench_now(), took;
            for (i = 0; i < CALLS; i++) send_one(b, way, url, true);
            took = (bench_now() - begin) / CALLS;
            if (took < best[way]) best[way] = took;
        }
    show("a small call on a kept connection", best, 1e6, "us", names[0]);
}

static void downloads(bench *b) {
    double best[WAYS] = {1e9, 1e9, 1e9};
    char   url[1024], command[1200];
    size_t size = 0;
    int    round, way;
    (void)snprintf(url, sizeof url, "%s/api/files?path=%s", b->url, b->file);
    (void)snprintf(command, sizeof command,
                   "curl -sSf -x '' -o /dev/null '%s'", url);
    for (round = 0; round < DOWNLOADS; round++)
        for (way = 0; way < WAYS; way++) {
            double begin = bench_now(), took;
            b->bytes = 0;
            if (way == 0 && system(command)) fail("curl failed");
            if (way > 0) send_one(b, way, url, false);
            took = bench_now() - begin;
            if (took < best[way]) best[way] = took;
            if (way > 0 && size && b->bytes != size) fail("bytes are missing");
            if (way > 0) size = b->bytes;
        }
    printf("\n");
    (void)snprintf(command, sizeof command, "a download of %.1f GB",
                   (double)size * 1e-9);
    show(command, best, 1e3, "ms", "the program curl");
}

int main(int argc, char **argv) {
    bench          b = HFSB_INIT;
    hfsb_net_opts  net = HFSB_INIT;
    hfsb_curl_opts curl = HFSB_INIT;
    if (argc != 3) fail("usage: client URL FILE");
    b.url = argv[1];
    b.file = argv[2];
    net.no_proxy = curl.direct = true;
    if (hfsb_net_open(&net, &b.net, NULL) != HFSB_OK ||
        hfsb_curl_open(&curl, &b.curl, NULL) != HFSB_OK)
        fail("no transport");
    b.easy = curl_easy_init();
    if (!b.easy) fail("no libcurl");
    small_calls(&b);
    downloads(&b);
    curl_easy_cleanup(b.easy);
    hfsb_transport_close(&b.net);
    hfsb_transport_close(&b.curl);
    return 0;
}
