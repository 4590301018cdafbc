/* server_arguments.c - the body of a request becomes the arguments of a tool.
   Depends on: server_fields, json. */
#include "server_sandbox.h"

/* ---- refusals ---- */

HFSBI_FN void hfsbi_api_fail(hfsbi_api_call *x, int status, hfsb_str detail,
                             hfsb_str error) {
    hfsbi_sink       sink;
    hfsb_json_writer w;
    hfsb_buf_truncate(&x->reply, 0);
    x->status = status;
    sink = hfsbi_sink_begin(&x->reply);
    hfsb_json_writer_init(&w, &x->reply, NULL);
    hfsb_json_put_object(&w);
    hfsbi_put_member_bool(&w, "success", false);
    hfsbi_put_member_str(&w, "output", HFSB_LIT(""));
    hfsbi_put_member_str(&w, "error", error);
    if (!detail.len) hfsbi_put_member_str(&w, "detail", error);
    hfsb_json_put_end(&w);
    if (hfsb_json_writer_finish(&w, NULL) == HFSB_OK && detail.len) {
        hfsb_buf_truncate(&x->reply, x->reply.len - 1);
        hfsbi_put(&sink, HFSB_LIT(",\"detail\":"));
        hfsbi_put(&sink, detail);
        hfsbi_put_byte(&sink, '}');
    }
    if (hfsbi_sink_end(&sink) != HFSB_OK || !x->reply.len) {
        hfsb_buf_free(&x->reply); /* hfsbi_api_answer() has words for it */
        x->status = 503;
    }
}

/* 422 with one item. */
static void hfsbi_api_refuse(hfsbi_api_call *x, hfsb_str key, const char *type,
                             const char *text, const hfsb_json_value *input,
                             const char *error) {
    hfsb_buf detail = HFSB_INIT;
    detail.alloc = x->box->alloc;
    if (hfsbi_fields_item(x->where, key, type, text, input, &detail) ==
        HFSB_OK)
        hfsbi_api_fail(x, 422, hfsb_buf_str(&detail), hfsb_cstr(error));
    else x->status = 503;
    hfsb_buf_free(&detail);
}

/* ---- JSON ---- */

/* A key was given twice, and that is all that is wrong: true. */
static bool hfsbi_api_repeats(hfsbi_api_call *x, const hfsb_err *err) {
    hfsb_buf detail = HFSB_INIT;
    if (hfsb_json_parse_in_place(x->body.ptr, x->body.len, NULL, &x->doc,
                                 NULL) != HFSB_OK)
        return false;
    detail.alloc = x->box->alloc;
    if (hfsbi_fields_detail(x->tool, x->where, x->doc.root,
                            hfsb_cstr(err->msg), &detail) == HFSB_OK)
        hfsbi_api_fail(x, 422, hfsb_buf_str(&detail), hfsb_cstr(err->msg));
    else x->status = 503;
    hfsb_buf_free(&detail);
    return true;
}

static void hfsbi_api_parse(hfsbi_api_call *x) {
    hfsb_json_parse_opts how = HFSB_INIT;
    hfsb_err             err = HFSB_INIT, all = HFSB_INIT;
    hfsb_status          st;
    how.unique_keys = true;
    x->doc.alloc = x->box->alloc;
    st = hfsb_json_parse_in_place(x->body.ptr, x->body.len, &how, &x->doc,
                                  &err);
    if (st == HFSB_NOMEM) x->status = 503;
    if (st == HFSB_OK || st == HFSB_NOMEM) return;
    if (st == HFSB_SYNTAX && hfsbi_api_repeats(x, &err)) return;
    hfsbi_fail(&all, st, 0, "The body is not JSON: %s", err.msg);
    hfsbi_api_fail(x, 400, HFSB_LIT(""), hfsb_cstr(all.msg));
}

/* ---- keys that are for the server ---- */

static bool hfsbi_api_is_own(const hfsbi_api_call *x, hfsb_str key) {
    if (x->id.len && hfsb_str_equal(key, HFSB_LIT("id"))) return true;
    return hfsb_str_equal(key, HFSB_LIT("stream")) ||
           hfsb_str_equal(key, HFSB_LIT("on_disconnect"));
}

/* Writes the arguments anew, without those keys and with the id of the path:
   what a call is remembered by does not depend on how it is answered. */
static void hfsbi_api_rewrite(hfsbi_api_call *x) {
    hfsb_json_iter   it = hfsb_json_begin(x->doc.root);
    hfsb_buf         text = HFSB_INIT;
    hfsb_json_writer w;
    text.alloc = x->box->alloc;
    hfsb_json_writer_init(&w, &text, NULL);
    hfsb_json_put_object(&w);
    if (x->id.len) hfsbi_put_member_str(&w, "id", hfsb_buf_str(&x->id));
    while (hfsb_json_next(&it)) {
        if (hfsbi_api_is_own(x, it.key)) continue;
        hfsb_json_put_key(&w, it.key);
        hfsb_json_put_value(&w, it.value);
    }
    hfsb_json_put_end(&w);
    hfsb_json_free(&x->doc);
    hfsb_buf_free(&x->body);
    if (hfsb_json_writer_finish(&w, NULL) == HFSB_OK) {
        x->body = text;
        hfsbi_api_parse(x);
        return;
    }
    hfsb_buf_free(&text);
    x->status = 503;
}

/* `stream` and `on_disconnect` of bash. */
static void hfsbi_api_own_keys(hfsbi_api_call *x) {
    const hfsb_json_value *root = x->doc.root;
    const hfsb_json_value *leave = hfsb_json_get(root, "on_disconnect");
    hfsb_str               how = hfsb_json_str(leave, HFSB_LIT(""));
    hfsb_err               err = HFSB_INIT;
    if (hfsb_json_arg_bool(root, "stream", false, &x->stream, &err) != HFSB_OK)
        hfsbi_api_refuse(x, HFSB_LIT("stream"), "bool_parsing",
                         "Input should be a valid boolean, unable to "
                         "interpret input",
                         hfsb_json_get(root, "stream"), err.msg);
    else if (hfsb_json_type_of(leave) == HFSB_JSON_NULL) return;
    else if (hfsb_str_equal(how, HFSB_LIT("kill")))
        x->disconnect = HFSBI_DISCONNECT_KILL;
    else if (hfsb_str_equal(how, HFSB_LIT("continue")))
        x->disconnect = HFSBI_DISCONNECT_CONTINUE;
    else
        hfsbi_api_refuse(x, HFSB_LIT("on_disconnect"), "literal_error",
                         "Input should be 'kill' or 'continue'", leave,
                         "\"on_disconnect\": expected \"kill\" or "
                         "\"continue\".");
}

static void hfsbi_api_bash_keys(hfsbi_api_call *x) {
    double seconds = 0, most = x->box->tools->max_timeout;
    hfsbi_api_own_keys(x);
    if (hfsb_json_arg_double(x->doc.root, "timeout", false, &seconds, NULL) !=
            HFSB_OK ||
        seconds <= 0)
        seconds = x->box->tools->timeout;
    x->timeout = seconds > most ? most : seconds;
}

HFSBI_FN void hfsbi_api_arguments(hfsbi_api_call *x) {
    hfsb_str name = hfsb_cstr(x->tool->name);
    bool     bash = hfsb_str_equal(name, HFSB_LIT("bash"));
    if (!x->body.len && hfsb_str_equal(name, HFSB_LIT("kill"))) return;
    if (!x->body.len) {
        hfsbi_api_refuse(x, HFSB_LIT(""), "missing", "Field required", NULL,
                         "The body is empty: expected a JSON object with the "
                         "arguments.");
        return;
    }
    hfsbi_api_parse(x);
    if (x->status) return;
    if (hfsb_json_type_of(x->doc.root) != HFSB_JSON_OBJECT) {
        hfsbi_api_refuse(x, HFSB_LIT(""), "model_attributes_type",
                         "Input should be a valid dictionary or object to "
                         "extract fields from",
                         x->doc.root,
                         "The body must be a JSON object with the arguments.");
        return;
    }
    if (bash) hfsbi_api_bash_keys(x);
    if (!x->status &&
        (x->id.len || (bash && (hfsb_json_get(x->doc.root, "stream") ||
                                hfsb_json_get(x->doc.root, "on_disconnect")))))
        hfsbi_api_rewrite(x);
}
