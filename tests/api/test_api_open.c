/* test_api_open.c - /proxy and /open: servers that commands have started. */
#include "../support/t_inner.h"
#ifdef HFSBI_SPLIT
#include "../../src/api/api_private.h"
#endif

static ts_server s;
static ti_server in;
static hfsb_str  nothing;
static char      logged[4096]; /* paths, by the thread of the server */

static void take_event(void *user, const hfsb_server_event *event) {
    size_t n = strlen(logged);
    (void)user;
    if (n + event->path.len + 2 < sizeof logged)
        (void)snprintf(logged + n, sizeof logged - n, "%.*s\n",
                       (int)event->path.len, event->path.ptr);
}

static void start(void) {
    hfsb_server_opts o = HFSB_INIT;
    o.on_event = take_event;
    logged[0] = '\0';
    ts_start(&s, &o, NULL);
}

static void finish(void) {
    ts_end(&s, false);
}

/* Sends a request without a token. */
static void bare(ts_reply *r, const char *method, const char *target,
                 const char *fields) {
    hfsb_buf out = HFSB_INIT;
    ts_conn  c = ts_connect(&s);
    if (hfsb_buf_printf(&out, "%s %s HTTP/1.1\r\n%s%s\r\n", method, target,
                        strstr(fields, "Host:") ? "" : "Host: 127.0.0.1\r\n",
                        fields) != HFSB_OK)
        abort();
    (void)ts_send(&c, hfsb_buf_str(&out));
    T_CHECK(ts_read(&c, r, !strcmp(method, "HEAD")));
    ts_hang_up(&c);
    hfsb_buf_free(&out);
}

static const char *proxied(const char *rest) {
    static char target[200];
    (void)snprintf(target, sizeof target, "/proxy/%u%s", in.port, rest);
    return target;
}

/* Makes an address for a port: "/open/KEY/". */
static void make(unsigned port, char path[64]) {
    ts_reply r = HFSB_INIT;
    char     body[40];
    (void)snprintf(body, sizeof body, "{\"port\":%u}", port);
    ts_post(&s, &r, "/api/open", body);
    TS_IS(&r, 200, "{\"path\":\"/open/");
    (void)snprintf(path, 64, "%.*s", (int)ts_text(&r, "path").len,
                   ts_text(&r, "path").ptr);
    ts_drop(&r);
}

static const char *at(const char *path, const char *rest) {
    static char target[200];
    (void)snprintf(target, sizeof target, "%s%s", path, rest);
    return target;
}

/* ---- guarded replies ---- */

#define SANDBOX                                                               \
    "sandbox allow-scripts allow-forms allow-popups allow-modals "            \
    "allow-downloads"

/* What a browser would keep for the whole origin. */
static const char *const kept[] = {
    "NEL",         "Report-To",         "Reporting-Endpoints",
    "Accept-CH",   "Critical-CH",       "Use-As-Dictionary",
    "Set-Login",   "Expect-CT",         "Public-Key-Pins",
    "Sec-Session-Registration",         "Secure-Session-Registration"};

/* Checks that a reply cannot touch our origin. */
static void is_guarded(const ts_reply *r) {
    size_t i;
    T_CHECK(strstr(r->head.ptr,
                   "Content-Security-Policy: " SANDBOX "\r\n") != NULL);
    T_STR(ts_field(r, "Referrer-Policy"), "no-referrer");
    T_CHECK(!strstr(r->head.ptr, "unsafe-url"));
    T_CHECK(!ts_field(r, "Service-Worker-Allowed").ptr);
    T_CHECK(!ts_field(r, "Clear-Site-Data").ptr);
    T_CHECK(!ts_field(r, "Strict-Transport-Security").ptr);
    T_CHECK(!ts_field(r, "Alt-Svc").ptr);
    T_CHECK(!ts_field(r, "Access-Control-Allow-Credentials").ptr);
    for (i = 0; i < TT_COUNT(kept); i++) T_CHECK(!ts_field(r, kept[i]).ptr);
}

#define HOSTILE                                                               \
    "Content-Security-Policy: sandbox allow-same-origin allow-scripts\r\n"    \
    "Content-Security-Policy: default-src 'self'\r\n"                         \
    "service-worker-allowed: /\r\nReferrer-Policy: unsafe-url\r\n"            \
    "Clear-Site-Data: \"*\"\r\nStrict-Transport-Security: max-age=9\r\n"      \
    "Alt-Svc: h2=\":1\"\r\nSet-Cookie: t=1; Path=/\r\n"                       \
    "Access-Control-Allow-Origin: https://evil\r\n"                           \
    "Access-Control-Allow-Credentials: true\r\n"                              \
    "nel: {\"report_to\":\"x\",\"max_age\":9}\r\nReport-To: {}\r\n"           \
    "Reporting-Endpoints: x=\"https://evil\"\r\nAccept-CH: Sec-CH-UA\r\n"     \
    "Critical-CH: Sec-CH-UA\r\nUse-As-Dictionary: match=\"/*\"\r\n"           \
    "Set-Login: logged-out\r\nExpect-CT: max-age=9\r\n"                       \
    "Public-Key-Pins: x\r\nSec-Session-Registration: (ES256)\r\n"             \
    "Secure-Session-Registration: (ES256)\r\n"                                \
    "Cross-Origin-Resource-Policy: cross-origin\r\nLocation: /there\r\n"

static void replies_cannot_touch_our_origin(void) {
    ts_reply r = HFSB_INIT;
    char     path[64], want[200];
    start();
    make(in.port, path);
    ti_fields = HOSTILE;
    ts_get(&s, &r, proxied("/fields"));
    TS_IS(&r, 200, "fields");
    is_guarded(&r);
    T_CHECK(strstr(r.head.ptr, "default-src 'self'") != NULL);
    T_CHECK(!ts_field(&r, "Access-Control-Allow-Origin").ptr);
    T_STR(ts_field(&r, "Cross-Origin-Resource-Policy"), "same-origin");
    T_CHECK(hfsb_str_equal(ts_field(&r, "Location"),
                           hfsb_cstr(proxied("/there"))));
    bare(&r, "GET", at(path, "fields"), "");
    TS_IS(&r, 200, "fields");
    is_guarded(&r);
    T_STR(ts_field(&r, "Access-Control-Allow-Origin"), "*");
    T_STR(ts_field(&r, "Cross-Origin-Resource-Policy"), "cross-origin");
    T_CHECK(!strstr(r.head.ptr, "evil"));
    (void)snprintf(want, sizeof want, "Set-Cookie: hfsb-t=1; Path=%s\r\n",
                   path);
    T_CHECK(strstr(r.head.ptr, want) != NULL);
    bare(&r, "GET", at(path, "close"), "");
    TS_REFUSED(&r, 502, NULL);
    is_guarded(&r);
    ts_drop(&r);
    finish();
}

static void service_workers_are_refused(void) {
    ts_reply r = HFSB_INIT;
    char     path[64];
    start();
    make(in.port, path);
    bare(&r, "GET", at(path, "sw.js"), "Service-Worker: script\r\n");
    TS_REFUSED(&r, 403, "service worker");
    ts_call(&s, &r, "GET", proxied("/sw.js"), "Service-Worker: script\r\n",
            nothing);
    TS_REFUSED(&r, 403, "service worker");
    ts_drop(&r);
    finish();
}

/* ---- who may ---- */

static void the_proxy_needs_the_token(void) {
    static const char *const none[] = {
        "", "Authorization: Bearer wrong\r\n", "Cookie: token=" TS_TOKEN "\r\n",
        "Authorization: Bearer " TS_TOKEN "\r\n"
        "X-Sandbox-Authorization: Bearer wrong\r\n"};
    ts_reply r = HFSB_INIT;
    size_t   i;
    start();
    for (i = 0; i < TT_COUNT(none); i++) {
        bare(&r, "GET", proxied("/x"), none[i]);
        TS_REFUSED(&r, 401, NULL);
        bare(&r, "PROPFIND", proxied("/x"), none[i]);
        TS_REFUSED(&r, 401, NULL);
    }
    bare(&r, "PROPFIND", proxied("/x?y"),
         "Authorization: Bearer " TS_TOKEN "\r\n");
    TS_IS(&r, 201, "PROPFIND /x?y HTTP/1.1\r\n");
    T_CHECK(!ts_contains(&r, TS_TOKEN) && !ts_contains(&r, "uthorization"));
    ts_call(&s, &r, "POST", proxied("/%00/"), "", HFSB_LIT("a body"));
    TS_IS(&r, 201, "POST /%00/ HTTP/1.1\r\n");
    T_CHECK(!ts_contains(&r, TS_TOKEN) && !ts_contains(&r, "uthorization"));
    ts_get(&s, &r, "/proxy/0/");
    TS_REFUSED(&r, 404, "port");
    ts_get(&s, &r, "/proxy/65536/");
    TS_REFUSED(&r, 404, "port");
    ts_get(&s, &r, "/proxy/8x/");
    TS_REFUSED(&r, 404, "port");
    ts_call(&s, &r, "GET", proxied("/x"), "Sec-Fetch-Site: cross-site\r\n",
            nothing);
    TS_REFUSED(&r, 403, NULL);
    ts_call(&s, &r, "GET", proxied("/x"), "Origin: null\r\n", nothing);
    TS_REFUSED(&r, 403, NULL);
    ts_drop(&r);
    finish();
}

static void addresses_are_made_with_the_token(void) {
    static const struct {
        const char *type, *body;
        int         status;
    } bad[] = {{"text/plain", "{\"port\":80}", 415},
               {"application/json", "", 400},
               {"application/json", "{", 400},
               {"application/json", "{}", 422},
               {"application/json", "[80]", 422},
               {"application/json", "{\"port\":0}", 422},
               {"application/json", "{\"port\":65536}", 422},
               {"application/json", "{\"port\":\"80\"}", 422}};
    ts_reply r = HFSB_INIT;
    char     path[64], other[64], field[80];
    size_t   i;
    start();
    bare(&r, "POST", "/api/open", TS_JSON "Content-Length: 0\r\n");
    TS_REFUSED(&r, 401, NULL);
    for (i = 0; i < TT_COUNT(bad); i++) {
        (void)snprintf(field, sizeof field, "Content-Type: %s\r\n",
                       bad[i].type);
        ts_call(&s, &r, "POST", "/api/open", field, hfsb_cstr(bad[i].body));
        TS_REFUSED(&r, bad[i].status, NULL);
    }
    make(in.port, path);
    make(in.port, other);
    T_CHECK(strlen(path) == 6 + 40 + 1 && strcmp(path, other) != 0);
    bare(&r, "GET", at(path, "a?b"), "");
    TS_IS(&r, 201, "GET /a?b HTTP/1.1\r\n");
    bare(&r, "GET", at(path, ""), "");
    TS_IS(&r, 201, "GET / HTTP/1.1\r\n");
    ts_get(&s, &r, at(path, "x")); /* the token does not get through */
    TS_IS(&r, 201, "GET /x HTTP/1.1\r\n");
    T_CHECK(!ts_contains(&r, TS_TOKEN));
    path[20] = path[20] == '0' ? '1' : '0';
    bare(&r, "GET", at(path, "a"), "");
    TS_REFUSED(&r, 404, "not valid");
    bare(&r, "GET", "/open//a", "");
    TS_REFUSED(&r, 404, NULL);
    ts_get(&s, &r, "/open/0/a");
    TS_REFUSED(&r, 404, NULL);
    ts_drop(&r);
    finish();
    T_CHECK(strstr(logged, "/open/*/**\n") && !strstr(logged, other));
}

static void pages_of_an_opaque_origin_may_use_an_address(void) {
    ts_reply r = HFSB_INIT;
    char     path[64];
    start();
    make(in.port, path);
    bare(&r, "GET", at(path, "x"),
         "Origin: null\r\nSec-Fetch-Site: cross-site\r\n");
    TS_IS(&r, 201, "GET /x ");
    T_CHECK(!ts_contains(&r, "Origin") && !ts_contains(&r, "Sec-Fetch-Site"));
    bare(&r, "OPTIONS", at(path, "x"),
         "Origin: null\r\nAccess-Control-Request-Method: PUT\r\n"
         "Access-Control-Request-Headers: content-type,x-a\r\n");
    TS_IS(&r, 204, NULL);
    T_STR(ts_field(&r, "Access-Control-Allow-Origin"), "*");
    T_STR(ts_field(&r, "Access-Control-Allow-Methods"), "PUT");
    T_STR(ts_field(&r, "Access-Control-Allow-Headers"), "content-type,x-a");
    bare(&r, "OPTIONS", at(path, "x"), "");
    TS_IS(&r, 201, "OPTIONS /x ");
    bare(&r, "GET", at(path, "x"), "Origin: https://evil\r\n");
    TS_REFUSED(&r, 403, NULL);
    bare(&r, "GET", at(path, "x"), "Host: evil\r\n");
    TS_REFUSED(&r, 421, NULL);
    ts_drop(&r);
    finish();
}

/* ---- WebSocket and the like ---- */

static void upgrades_pass(void) {
    char    path[64], head[400];
    ts_conn c;
    size_t  i;
    start();
    make(in.port, path);
    for (i = 0; i < 2; i++) {
        c = ts_connect(&s);
        (void)snprintf(head, sizeof head,
                       "GET %s HTTP/1.1\r\nHost: localhost\r\n%s"
                       "Connection: Upgrade\r\nUpgrade: odd\r\n\r\n",
                       i ? at(path, "ws") : proxied("/ws"),
                       i ? "Origin: null\r\n"
                         : "Authorization: Bearer " TS_TOKEN "\r\n");
        T_CHECK(ts_send(&c, hfsb_cstr(head)));
        T_CHECK(ts_await(&c, "\r\n\r\nhello", 20000));
        T_CHECK(!strncmp(c.in.ptr, "HTTP/1.1 101 ", 13));
        T_CHECK(ts_send(&c, HFSB_LIT("ping")));
        T_CHECK(ts_await(&c, "helloping", 20000));
        (void)shutdown(c.fd, SHUT_WR);
        T_CHECK(ts_closes(&c, 20000));
        ts_hang_up(&c);
    }
    finish();
}

/* ---- how long an address is valid ---- */

static int       poked; /* atomic */
static long long older; /* by which all keys become, in ms */
static size_t    busy;  /* requests that all keys have */

static void poke_keys(void *user) {
    hfsbi_api *api = (hfsbi_api *)(void *)s.server->parts;
    size_t     i;
    (void)user;
    for (i = 0; i < HFSBI_OPEN_KEYS; i++) {
        api->open.keys[i].used -= older;
        api->open.keys[i].users = busy;
    }
    __atomic_store_n(&poked, 1, __ATOMIC_SEQ_CST);
}

static void poke(long long ms, size_t users) {
    older = ms;
    busy = users;
    __atomic_store_n(&poked, 0, __ATOMIC_SEQ_CST);
    if (hfsb_server_post(s.server, poke_keys, NULL) != HFSB_OK) abort();
    while (!__atomic_load_n(&poked, __ATOMIC_SEQ_CST)) tt_sleep_ms(2);
}

static void unused_addresses_end(void) {
    ts_reply r = HFSB_INIT;
    char     first[64], second[64], path[64];
    size_t   i;
    start();
    make(in.port, first);
    make(in.port, second);
    poke(HFSBI_OPEN_MS - 60000, 0);
    bare(&r, "GET", at(first, "x"), "");
    TS_IS(&r, 201, NULL);
    poke(120000, 0);
    bare(&r, "GET", at(first, "x"), "");
    TS_IS(&r, 201, NULL);
    bare(&r, "GET", at(second, "x"), "");
    TS_REFUSED(&r, 404, NULL);
    make(in.port, second);
    for (i = 2; i < HFSBI_OPEN_KEYS; i++) make(in.port, path);
    bare(&r, "GET", at(first, "x"), ""); /* now second is the oldest */
    TS_IS(&r, 201, NULL);
    make(in.port, path);
    bare(&r, "GET", at(first, "x"), "");
    TS_IS(&r, 201, NULL);
    bare(&r, "GET", at(second, "x"), "");
    TS_REFUSED(&r, 404, NULL);
    poke(2 * HFSBI_OPEN_MS, 1); /* a tunnel may be older */
    ts_post(&s, &r, "/api/open", "{\"port\":1}");
    TS_REFUSED(&r, 503, "in use");
    bare(&r, "GET", at(path, "x"), "");
    TS_IS(&r, 201, NULL);
    poke(0, 0);
    ts_drop(&r);
    finish();
}

static void the_next_user_has_no_old_addresses(void) {
    hfsb_server_opts         o = HFSB_INIT;
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_tools_opts          tools = HFSB_INIT;
    ts_reply                 r = HFSB_INIT;
    char                     path[64];
    tools.root = HFSB_LIT("box");
    box.tools = &tools;
    o.late_token = true;
    T_CHECK(mkdir("box", 0755) == 0);
    ts_start(&s, &o, &box);
    ts_post(&s, &r, "/init", "{\"token\":\"" TS_TOKEN "\"}");
    TS_IS(&r, 200, NULL);
    make(in.port, path);
    ts_post(&s, &r, "/init", "{\"token\":\"" TS_TOKEN "\"}");
    TS_IS(&r, 200, NULL);
    bare(&r, "GET", at(path, "x"), "");
    TS_IS(&r, 201, NULL);
    ts_post(&s, &r, "/reset", "{\"empty\":true}");
    TS_IS(&r, 200, NULL);
    bare(&r, "GET", at(path, "x"), "");
    TS_REFUSED(&r, 404, NULL);
    make(in.port, path);
    ts_post(&s, &r, "/init", "{\"token\":\"another\"}");
    TS_IS(&r, 200, NULL);
    bare(&r, "GET", at(path, "x"), "");
    TS_REFUSED(&r, 404, NULL);
    ts_drop(&r);
    finish();
    (void)rmdir("box");
}

/* ---- confined commands ---- */

static void a_relay_reaches_what_commands_reach(void) {
    hfsb_confine c;
    memset(&c, 0, sizeof c);
    T_CHECK(hfsbi_confine_reaches(NULL, 80));
    c.net.mode = HFSBI_REACH_ON;
    T_CHECK(hfsbi_confine_reaches(&c, 80));
    c.net.mode = HFSBI_REACH_PORTS;
    c.net.ports[0] = 443;
    c.net.ports[1] = 80;
    c.net.port_count = 2;
    T_CHECK(hfsbi_confine_reaches(&c, 80) && !hfsbi_confine_reaches(&c, 81));
    c.net.mode = HFSBI_REACH_OFF;
    T_CHECK(!hfsbi_confine_reaches(&c, 80));
    c.net.mode = HFSBI_REACH_LOOPBACK; /* a network of their own */
    T_CHECK(!hfsbi_confine_reaches(&c, 80));
}

static void without_network_nothing_is_relayed(void) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_tools_opts          tools = HFSB_INIT;
    ts_reply                 r = HFSB_INIT;
    hfsb_err                 err = HFSB_INIT;
    tools.confine.level = HFSB_CONFINE_WRITE;
    tools.confine.net = "off";
    box.tools = &tools;
    ts_open(&s, NULL);
    if (hfsb_server_add_sandbox(s.server, &box, &err) != HFSB_OK) {
        printf("%s: skipped: %s\n", t_name, err.msg);
        t_skipped++;
        ts_end(&s, false);
        return;
    }
    ts_run(&s);
    ts_get(&s, &r, proxied("/x"));
    TS_REFUSED(&r, 403, "--net");
    ts_post(&s, &r, "/api/open", "{\"port\":80}");
    TS_REFUSED(&r, 403, "--net");
    ts_drop(&r);
    finish();
}

int main(void) {
    tt_begin();
    ti_start(&in);
    TT_RUN(the_proxy_needs_the_token);
    TT_RUN(addresses_are_made_with_the_token);
    TT_RUN(replies_cannot_touch_our_origin);
    TT_RUN(service_workers_are_refused);
    TT_RUN(pages_of_an_opaque_origin_may_use_an_address);
    TT_RUN(upgrades_pass);
    TT_RUN(unused_addresses_end);
    TT_RUN(the_next_user_has_no_old_addresses);
    TT_RUN(a_relay_reaches_what_commands_reach);
    TT_RUN(without_network_nothing_is_relayed);
    ti_end(&in);
    return TT_END();
}
