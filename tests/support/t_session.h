/* t_session.h - what the tests of the session share: calls in one line, what
   the log heard. */
#ifndef T_SESSION_H
#define T_SESSION_H
#include "t_tools.h"
#ifdef HFSBI_SPLIT
#include "../../src/hub/hub_private.h"
#endif

/* ---- the log; it is called from several threads ---- */

static pthread_mutex_t sn_log_lock = PTHREAD_MUTEX_INITIALIZER;
static hfsb_buf        sn_lines; /* each followed by LF */

HFSBI_UNUSED static void sn_log(void *user, hfsb_str line) {
    (void)user;
    pthread_mutex_lock(&sn_log_lock);
    if (hfsb_buf_append(&sn_lines, line) != HFSB_OK ||
        hfsb_buf_append_byte(&sn_lines, '\n') != HFSB_OK)
        abort();
    pthread_mutex_unlock(&sn_log_lock);
}

/* How often the log said it. */
HFSBI_UNUSED static size_t sn_heard(const char *part) {
    hfsb_str rest, needle = hfsb_cstr(part);
    size_t   n = 0, at;
    pthread_mutex_lock(&sn_log_lock);
    rest = hfsb_buf_str(&sn_lines);
    while ((at = hfsb_str_find(rest, needle)) != HFSB_NPOS) {
        n++;
        rest = hfsb_str_slice(rest, at + needle.len, rest.len);
    }
    pthread_mutex_unlock(&sn_log_lock);
    return n;
}

HFSBI_UNUSED static void sn_forget(void) {
    pthread_mutex_lock(&sn_log_lock);
    hfsb_buf_free(&sn_lines);
    pthread_mutex_unlock(&sn_log_lock);
}

/* ---- sessions and calls ---- */

/* A session of the local runtime on the current directory. */
HFSBI_UNUSED static hfsb_session *sn_open_local(void) {
    hfsb_session_opts opts = HFSB_INIT;
    hfsb_session     *session = NULL;
    hfsb_err          err;
    opts.model = HFSB_LIT("ollama/tiny");
    opts.log = sn_log;
    opts.alloc = tt_alloc();
    T_CHECK(hfsb_session_open(&opts, &session, &err) == HFSB_OK);
    if (!session) {
        printf("%s\n", err.msg);
        abort();
    }
    return session;
}

HFSBI_UNUSED static void sn_close(hfsb_session *session) {
    hfsb_err err = HFSB_INIT;
    T_CHECK(hfsb_session_close(session, &err) == HFSB_OK);
    if (err.msg[0]) printf("close: %s\n", err.msg);
}

/* A call with arguments as JSON text; may run in any thread. */
HFSBI_UNUSED static void sn_do(tt_reply *r, hfsb_session *session,
                               const char *tool, hfsb_str json,
                               const hfsb_cancel *cancel) {
    hfsb_call_opts opts = HFSB_INIT;
    opts.cancel = cancel;
    tt_drop(r);
    r->st = hfsb_session_call_text(session, hfsb_cstr(tool), json, &opts,
                                   &r->res);
    tt_look(r);
}

HFSBI_UNUSED static void sn_call(tt_reply *r, hfsb_session *session,
                                 const char *tool, const char *keys, ...) {
    hfsb_buf json = HFSB_INIT;
    va_list  ap;
    va_start(ap, keys);
    tt_arguments(&json, keys, ap);
    va_end(ap);
    sn_do(r, session, tool, hfsb_buf_str(&json), NULL);
    T_CHECK(r->sane);
    hfsb_buf_free(&json);
}

/* Names of the defined tools, each followed by a blank, in *names; every
   schema of an object must be closed. */
HFSBI_UNUSED static void sn_definitions(const hfsb_session *session,
                                        hfsb_tools_format   format,
                                        hfsb_buf           *names) {
    static const char *const keys[] = {"parameters", "parameters",
                                       "input_schema", "inputSchema"};
    hfsb_buf                 out = HFSB_INIT;
    hfsb_json_doc            doc = HFSB_INIT;
    hfsb_json_iter           it;
    T_CHECK(hfsb_session_define(session, format, &out, NULL) == HFSB_OK);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&out), NULL, &doc, NULL) == HFSB_OK);
    for (it = hfsb_json_begin(doc.root); hfsb_json_next(&it);) {
        const hfsb_json_value *d = it.value, *schema, *items;
        hfsb_str               name;
        T_CHECK((hfsb_json_get(d, "function") != NULL) ==
                (format == HFSB_TOOLS_OPENAI));
        if (format == HFSB_TOOLS_OPENAI) d = hfsb_json_get(d, "function");
        name = hfsb_json_str(hfsb_json_get(d, "name"), HFSB_LIT("?"));
        schema = hfsb_json_get(d, keys[format]);
        T_CHECK(!hfsb_json_bool(
            hfsb_json_get(schema, "additionalProperties"), true));
        T_CHECK(hfsb_json_type_of(hfsb_json_get(schema, "required")) ==
                HFSB_JSON_ARRAY);
        T_CHECK(
            hfsb_json_str(hfsb_json_get(d, "description"), HFSB_LIT("")).len >
            20);
        T_CHECK((hfsb_json_get(d, "annotations") != NULL) ==
                (format == HFSB_TOOLS_MCP));
        items = hfsb_json_get(
            hfsb_json_get(hfsb_json_get(schema, "properties"), "todos"),
            "items");
        if (items)
            T_CHECK(!hfsb_json_bool(
                hfsb_json_get(items, "additionalProperties"), true));
        T_CHECK(hfsb_buf_printf(names, "%.*s ", (int)name.len, name.ptr) ==
                HFSB_OK);
    }
    hfsb_json_free(&doc);
    hfsb_buf_free(&out);
}
#endif
