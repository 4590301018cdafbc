/* t_hf.h - shared by the tests of the sandbox API of Hugging Face: a server
   with the dialect on a port of its own, and a client that reads streams as
   strictly as the real ones. */
#ifndef T_HF_H
#define T_HF_H
#include "t_server.h"
#ifdef HFSBI_SPLIT
#include "../../src/dialect/dialect_private.h"
#endif

#define HF_TOKEN "X-Sandbox-Token: " TS_TOKEN "\r\n"
#define HF_JSON  HF_TOKEN TS_JSON

static ts_server srv; /* its port is that of the dialect */
static unsigned  main_port;
static hfsb_str  nothing; /* no body */

/* ---- the server ---- */

/* token: of the dialect alone; "": that of the server. */
static void start_at(const hfsb_server_opts *opts, const char *token,
                     const char *const     *settings,
                     const hfsb_tools_opts *tools) {
    hfsb_server_sandbox_opts box = HFSB_INIT;
    hfsb_dialect_opts        o = HFSB_INIT;
    hfsb_err                 err = HFSB_INIT;
    box.tools = tools;
    ts_open(&srv, opts);
    o.name = "hf";
    o.token = hfsb_cstr(token);
    o.own_port = true;
    o.settings = settings;
    main_port = srv.port;
    if (hfsb_server_add_sandbox(srv.server, &box, &err) != HFSB_OK ||
        hfsb_server_add_dialect(srv.server, &o, &srv.port, &err) != HFSB_OK) {
        printf("no dialect: %s\n", err.msg);
        abort();
    }
    ts_run(&srv);
}

HFSBI_UNUSED static void start_with(const char *const *settings,
                                    const hfsb_tools_opts *tools) {
    start_at(NULL, "", settings, tools);
}

HFSBI_UNUSED static void start(void) {
    start_with(NULL, NULL);
}

HFSBI_UNUSED static void finish(void) {
    ts_end(&srv, false);
}

/* ---- requests ---- */

HFSBI_UNUSED static void call(ts_reply *r, const char *method, const char *target,
                 const char *body) {
    ts_call(&srv, r, method, target, body ? HF_JSON : HF_TOKEN,
            body ? hfsb_cstr(body) : nothing);
}

/* The outcome of a command. */
typedef struct hf_run {
    ts_reply reply;
    hfsb_buf out, err;
    size_t   events, pings, starts, exits;
    long     pid;
    bool     has_code, timed_out, last_is_exit;
    int      code, signal;
} hf_run;

HFSBI_UNUSED static void drop_run(hf_run *x) {
    ts_drop(&x->reply);
    hfsb_buf_free(&x->out);
    hfsb_buf_free(&x->err);
    memset(x, 0, sizeof *x);
}

HFSBI_UNUSED static void take_exit(hf_run *x, const hfsb_json_value *e) {
    const hfsb_json_value *code = hfsb_json_get(e, "exit_code");
    x->exits++;
    x->has_code = hfsb_json_type_of(code) == HFSB_JSON_INT;
    x->code = (int)hfsb_json_int(code, -1);
    x->signal = (int)hfsb_json_int(hfsb_json_get(e, "signal"), 0);
    x->timed_out = hfsb_json_bool(hfsb_json_get(e, "timed_out"), false);
    T_CHECK(code != NULL && hfsb_json_get(e, "signal") != NULL);
    T_CHECK(hfsb_json_get(e, "duration_ms") != NULL);
}

/* Checks one line as a strict client does. */
HFSBI_UNUSED static void take_line(hf_run *x, hfsb_str line) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_str      name, data;
    T_CHECK(hfsb_json_parse(line, NULL, &doc, NULL) == HFSB_OK);
    name = hfsb_json_str(hfsb_json_get(doc.root, "event"), HFSB_LIT(""));
    data = hfsb_json_str(hfsb_json_get(doc.root, "data"), HFSB_LIT(""));
    x->last_is_exit = false;
    if (x->events++ == 0) T_CHECK(hfsb_str_equal(name, HFSB_LIT("start")));
    if (hfsb_str_equal(name, HFSB_LIT("start"))) {
        x->starts++;
        x->pid = (long)hfsb_json_int(hfsb_json_get(doc.root, "pid"), 0);
    } else if (hfsb_str_equal(name, HFSB_LIT("stdout"))) {
        T_CHECK(data.len && hfsb_buf_append(&x->out, data) == HFSB_OK);
    } else if (hfsb_str_equal(name, HFSB_LIT("stderr"))) {
        T_CHECK(data.len && hfsb_buf_append(&x->err, data) == HFSB_OK);
    } else if (hfsb_str_equal(name, HFSB_LIT("exit"))) {
        take_exit(x, doc.root);
        x->last_is_exit = true;
    } else {
        T_CHECK(hfsb_str_equal(name, HFSB_LIT("ping")));
        x->pings++;
    }
    hfsb_json_free(&doc);
}

HFSBI_UNUSED static void take_lines(hf_run *x) {
    hfsb_str rest = hfsb_buf_str(&x->reply.body);
    T_CHECK(hfsb_str_ends(rest, HFSB_LIT("\n")));
    while (rest.len) {
        size_t end = hfsb_str_find_byte(rest, '\n');
        if (end == HFSB_NPOS) break;
        take_line(x, hfsb_str_slice(rest, 0, end));
        rest = hfsb_str_slice(rest, end + 1, rest.len);
    }
    T_CHECK(x->starts == 1 && x->exits == 1 && x->last_is_exit);
    T_CHECK(x->pid > 0);
}

HFSBI_UNUSED static void run_at(hf_run *x, const char *target, const char *fields,
                   const char *body) {
    drop_run(x);
    ts_call(&srv, &x->reply, "POST", target, fields, hfsb_cstr(body));
    TS_IS(&x->reply, 200, NULL);
    T_STR(ts_field(&x->reply, "Content-Type"), "application/x-ndjson");
    T_CHECK(x->reply.chunked);
    take_lines(x);
}

HFSBI_UNUSED static void run(hf_run *x, const char *body) {
    run_at(x, "/v1/exec", HF_JSON, body);
}

/* ---- processes of tests ---- */

HFSBI_UNUSED static bool naps_end(void) {
    long long end = hfsb_clock_ms() + 20000;
    while (tt_running(tt_nap()) && hfsb_clock_ms() < end) tt_sleep_ms(20);
    return tt_running(tt_nap()) == 0;
}

HFSBI_UNUSED static bool naps_begin(size_t n) {
    long long end = hfsb_clock_ms() + 20000;
    while (tt_running(tt_nap()) < n && hfsb_clock_ms() < end) tt_sleep_ms(20);
    return tt_running(tt_nap()) >= n;
}

/* With a server of its own. */
#define EACH(test) (start(), TT_RUN(test), finish())
#endif
