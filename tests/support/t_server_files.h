/* t_server_files.h - what the tests of /api/files share: a server with that
   endpoint alone, requests in one line. */
#ifndef T_SERVER_FILES_H
#define T_SERVER_FILES_H
#include "t_server.h"
#include "t_file.h"
#ifdef HFSBI_SPLIT
#include "../../src/api/api_private.h"
#endif

static const hfsb_str nothing = HFSB_INIT;

/* ---- a server with this endpoint alone ---- */

typedef struct box {
    hfsbi_server_part part; /* first */
    hfsb_tools       *tools;
} box;

static box       the_box;
static ts_server srv;

static void box_free(hfsbi_server_part *part) {
    hfsb_tools_close(((box *)(void *)part)->tools);
}

static void start_with(const char *root, const hfsb_server_opts *opts) {
    hfsb_tools_opts o = HFSB_INIT;
    hfsb_err        err = HFSB_INIT;
    memset(&the_box, 0, sizeof the_box);
    o.root = hfsb_cstr(root);
    o.alloc = tt_alloc();
    ts_open(&srv, opts);
    if (hfsb_tools_open(&o, &the_box.tools, &err) != HFSB_OK) abort();
    the_box.part.free = box_free;
    hfsbi_server_part_add(srv.server, &the_box.part);
    if (hfsbi_files_add(srv.server, the_box.tools, &err) != HFSB_OK) abort();
    ts_run(&srv);
}

HFSBI_UNUSED static void start(void) {
    start_with("", NULL);
}

static void stop(void) {
    ts_end(&srv, false);
    T_CHECK(tt_memory.heap.live == 0);
}

/* ---- requests in one line ---- */

HFSBI_UNUSED static void get(ts_reply *r, const char *query, const char *fields) {
    char target[512];
    snprintf(target, sizeof target, "/api/files?%s", query);
    ts_call(&srv, r, "GET", target, fields, nothing);
}

HFSBI_UNUSED static void put(ts_reply *r, const char *query, const char *fields,
                hfsb_str body) {
    char target[512];
    snprintf(target, sizeof target, "/api/files?%s", query);
    ts_call(&srv, r, "PUT", target, fields, body);
}

/* A field of the reply has this value. */
#define FIELD(r, name, lit) T_STR(ts_field(r, name), lit)

/* Bytes that are not the same anywhere near. */
HFSBI_UNUSED static void make_bytes(hfsb_buf *out, size_t n) {
    unsigned long long seed = n + 1;
    hfsb_buf_truncate(out, 0);
    while (out->len < n)
        if (hfsb_buf_append_byte(out, (char)(t_random(&seed) & 0xFF)) !=
            HFSB_OK)
            abort();
}

HFSBI_UNUSED static void field_line(char *out, size_t size, const char *name,
                       hfsb_str value) {
    snprintf(out, size, "%s: %.*s\r\n", name, (int)value.len, value.ptr);
}
#endif
