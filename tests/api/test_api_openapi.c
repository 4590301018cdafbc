/* test_api_openapi.c - GET /api/openapi.json: lists what the server answers,
   with the schemas of the tools. */
#include "../support/t_server.h"
#ifdef HFSBI_SPLIT
#include "../../src/api/api_private.h"
#endif

static ts_server srv;

static void start(bool late) {
    hfsb_server_opts opts = HFSB_INIT;
    opts.late_token = late;
    if (late) opts.token = HFSB_LIT(TS_TOKEN);
    ts_start(&srv, &opts, NULL);
}

static const hfsb_json_value *path_of(const ts_reply *r, const char *path) {
    return hfsb_json_get(hfsb_json_get(r->json.root, "paths"), path);
}

/* "/api/jobs/" "*" as in the document. */
static void named(const char *path, char *out) {
    for (; *path; path++) {
        if (*path == '*') out += sprintf(out, "{id}");
        else *out++ = *path;
    }
    *out = '\0';
}

static void lists_every_route(void) {
    const hfsb_route *route;
    ts_reply          r = HFSB_INIT;
    size_t            i, count = 0, any = 0;
    hfsb_json_iter    it, m;
    start(true);
    ts_get(&srv, &r, "/api/openapi.json");
    T_CHECK(r.status == 200);
    T_STR(ts_field(&r, "Content-Type"), "application/json");
    for (i = 0; (route = hfsbi_server_route(srv.server, i)) != NULL; i++) {
        const hfsb_json_value *item, *op;
        char                   path[100], method[20];
        size_t                 k;
        named(route->path, path);
        for (k = 0; route->method[k]; k++)
            method[k] = (char)(route->method[k] | 0x20);
        method[k] = '\0';
        item = path_of(&r, path);
        if (route->method[0] == '*') { /* which OpenAPI lacks */
            T_CHECK(item == NULL);
            any++;
            continue;
        }
        op = hfsb_json_get(item, method);
        if (!op) printf("not listed: %s %s\n", method, path);
        T_CHECK(op != NULL);
        /* ours have words, and a name for generated clients */
        T_CHECK(hfsb_json_get(op, "operationId") != NULL);
        T_CHECK(hfsb_json_str(hfsb_json_get(op, "summary"), HFSB_LIT("")).len >
                0);
        T_CHECK((hfsb_json_get(op, "security") != NULL) == route->no_token);
    }
    T_CHECK(i > 30);
    it = hfsb_json_begin(hfsb_json_get(r.json.root, "paths"));
    while (hfsb_json_next(&it)) {
        m = hfsb_json_begin(it.value);
        while (hfsb_json_next(&m)) count++;
    }
    T_CHECK(count + any == i); /* and nothing else */
    T_CHECK(path_of(&r, "/init") && path_of(&r, "/api/bash"));
    ts_drop(&r);
    ts_end(&srv, false);
}

/* Calls fn for every "$ref" beneath value. */
static void each_ref(const hfsb_json_value *value,
                     const hfsb_json_value *root, size_t *count) {
    hfsb_json_iter it = hfsb_json_begin(value);
    while (hfsb_json_next(&it)) {
        if (hfsb_str_equal(it.key, HFSB_LIT("$ref"))) {
            hfsb_str text = hfsb_json_str(it.value, HFSB_LIT(""));
            char     parts[4][40] = {"", "", "", ""};
            int      n = sscanf(text.ptr, "#/%39[^/]/%39[^/]/%39s", parts[0],
                                parts[1], parts[2]);
            T_CHECK(n == 3);
            T_CHECK(hfsb_json_get(
                hfsb_json_get(hfsb_json_get(root, parts[0]), parts[1]),
                parts[2]));
            ++*count;
        }
        each_ref(it.value, root, count);
    }
}

static void every_reference_resolves(void) {
    ts_reply r = HFSB_INIT;
    size_t   count = 0;
    start(false);
    ts_get(&srv, &r, "/api/openapi.json");
    each_ref(r.json.root, r.json.root, &count);
    T_CHECK(count > 40);
    T_CHECK(path_of(&r, "/init") == NULL);
    T_STR(ts_text(&r, "openapi"), "3.1.0");
    ts_drop(&r);
    ts_end(&srv, false);
}

static const hfsb_json_value *replies_of(const ts_reply *r,
                                         const char     *path) {
    return hfsb_json_get(hfsb_json_get(path_of(r, path), "get"), "responses");
}

static void replies_are_what_is_sent(void) {
    ts_reply r = HFSB_INIT;
    hfsb_buf text = HFSB_INIT;
    start(false);
    ts_get(&srv, &r, "/api/openapi.json");
    T_CHECK(hfsb_json_get(replies_of(&r, "/api/exec"), "101") != NULL);
    T_CHECK(hfsb_json_get(replies_of(&r, "/api/exec"), "200") == NULL);
    T_CHECK(hfsb_json_write(replies_of(&r, "/api/plan"), NULL, &text, NULL) ==
            HFSB_OK);
    T_CHECK(strstr(text.ptr, "schemas/Plan") != NULL);
    T_STR(hfsb_json_str(
              hfsb_json_get(
                  hfsb_json_get(hfsb_json_get(hfsb_json_get(r.json.root,
                                                            "components"),
                                              "schemas"),
                                "Plan"),
                  "type"),
              HFSB_LIT("")),
          "array");
    hfsb_buf_free(&text);
    ts_drop(&r);
    ts_end(&srv, false);
}

static const hfsb_json_value *schema_of(const hfsb_json_value *op) {
    const hfsb_json_value *content =
        hfsb_json_get(hfsb_json_get(op, "requestBody"), "content");
    return hfsb_json_get(hfsb_json_get(content, "application/json"),
                         "schema");
}

static void schemas_are_those_of_the_tools(void) {
    ts_reply      r = HFSB_INIT;
    hfsb_buf      one = HFSB_INIT, here = HFSB_INIT, there = HFSB_INIT;
    hfsb_json_doc doc = HFSB_INIT;
    size_t        i;
    start(false);
    ts_get(&srv, &r, "/api/openapi.json");
    for (i = 0; i < HFSBI_TOOLS; i++) {
        const char *name = hfsbi_tool_at(i)->name;
        char        path[100];
        snprintf(path, sizeof path, "/api/%s", name);
        hfsb_buf_truncate(&one, 0);
        hfsb_buf_truncate(&here, 0);
        hfsb_buf_truncate(&there, 0);
        T_CHECK(hfsb_tools_define_one(hfsb_cstr(name), HFSB_TOOLS_FLAT, &one,
                                      NULL) == HFSB_OK);
        T_CHECK(hfsb_json_parse(hfsb_buf_str(&one), NULL, &doc, NULL) ==
                HFSB_OK);
        hfsb_json_write(hfsb_json_get(doc.root, "parameters"), NULL, &here,
                        NULL);
        hfsb_json_write(
            schema_of(hfsb_json_get(path_of(&r, path), "post")), NULL, &there,
            NULL);
        T_CHECK(here.len > 20);
        T_CHECK(
            hfsb_str_equal(hfsb_buf_str(&there), hfsb_buf_str(&here)));
        hfsb_json_free(&doc);
    }
    T_CHECK(schema_of(hfsb_json_get(path_of(&r, "/api/jobs/{id}/input"),
                                    "post")) != NULL);
    hfsb_buf_free(&one);
    hfsb_buf_free(&here);
    hfsb_buf_free(&there);
    ts_drop(&r);
    ts_end(&srv, false);
}

static void hello(void *user, hfsb_request *request) {
    (void)user;
    hfsb_reply(request, 200, "text/plain", HFSB_LIT("hello"));
}

static void a_route_of_the_host_is_listed(void) {
    hfsb_route route = HFSB_INIT;
    ts_reply   r = HFSB_INIT;
    ts_open(&srv, NULL);
    route.method = "GET";
    route.path = "/hello/*/and/**";
    route.fn = hello;
    T_CHECK(hfsb_server_add(srv.server, &route, NULL) == HFSB_OK);
    route.method = "PROPFIND"; /* which OpenAPI lacks */
    T_CHECK(hfsb_server_add(srv.server, &route, NULL) == HFSB_OK);
    route.path = "/\"odd\\";
    route.method = "GET";
    T_CHECK(hfsb_server_add(srv.server, &route, NULL) == HFSB_OK);
    T_CHECK(hfsb_server_add_sandbox(srv.server, NULL, NULL) == HFSB_OK);
    ts_run(&srv);
    ts_get(&srv, &r, "/api/openapi.json");
    T_CHECK(hfsb_json_count(path_of(&r, "/hello/{part1}/and/{part2}")) == 1);
    T_CHECK(path_of(&r, "/\"odd\\") != NULL);
    ts_drop(&r);
    ts_end(&srv, false);
}

static void needs_the_token(void) {
    ts_reply r = HFSB_INIT;
    ts_conn  c;
    start(false);
    c = ts_connect(&srv);
    ts_send(&c, HFSB_LIT("GET /api/openapi.json HTTP/1.1\r\n"
                         "Host: localhost\r\n\r\n"));
    T_CHECK(ts_read(&c, &r, false));
    T_CHECK(r.status == 401);
    ts_hang_up(&c);
    ts_drop(&r);
    ts_end(&srv, false);
}

int main(void) {
    tt_begin();
    TT_RUN(lists_every_route);
    TT_RUN(every_reference_resolves);
    TT_RUN(replies_are_what_is_sent);
    TT_RUN(schemas_are_those_of_the_tools);
    TT_RUN(a_route_of_the_host_is_listed);
    TT_RUN(needs_the_token);
    return TT_END();
}
