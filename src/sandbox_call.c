/* sandbox_call.c - a tool on another machine: from its arguments to its
   result. Depends on: call, sandbox_arguments, sandbox_seen, sandbox_try. */
#include "sandbox_call.h"

/* ---- the result ---- */

HFSBI_FN hfsb_status hfsbi_remote_status(int http) {
    switch (http) {
    case 400:
    case 415:
    case 422: return HFSB_ARG;
    case 401:
    case 403: return HFSB_AUTH;
    case 404:
    case 405: return HFSB_NOT_FOUND;
    case 409: return HFSB_REFUSED;
    case 413:
    case 429: return HFSB_LIMIT;
    case 503: return HFSB_BUSY;
    case 507: return HFSB_FULL;
    default: return HFSB_REMOTE;
    }
}

/* A string, or the JSON text of what stands there instead. */
static hfsb_status hfsbi_remote_string(const hfsb_json_value *root,
                                       const char *key, hfsb_buf *out) {
    const hfsb_json_value *value = hfsb_json_get(root, key);
    hfsb_json_type         type = hfsb_json_type_of(value);
    if (type == HFSB_JSON_NULL) return HFSB_OK;
    if (type != HFSB_JSON_STRING)
        return hfsb_json_write(value, NULL, out, NULL);
    return hfsb_buf_append(out, hfsb_json_str(value, HFSB_LIT("")));
}

/* All keys but the three that every reply has. */
static hfsb_status hfsbi_remote_extra(const hfsb_json_value *root,
                                      hfsb_buf              *out) {
    hfsb_json_iter   it = hfsb_json_begin(root);
    hfsb_json_writer w;
    size_t           count = 0;
    hfsb_status      st;
    hfsb_json_writer_init(&w, out, NULL);
    hfsb_json_put_object(&w);
    while (hfsb_json_next(&it)) {
        if (hfsb_str_equal(it.key, HFSB_LIT("success")) ||
            hfsb_str_equal(it.key, HFSB_LIT("output")) ||
            hfsb_str_equal(it.key, HFSB_LIT("error")))
            continue;
        hfsb_json_put_key(&w, it.key);
        hfsb_json_put_value(&w, it.value);
        count++;
    }
    hfsb_json_put_end(&w);
    st = hfsb_json_writer_finish(&w, NULL);
    if (st == HFSB_OK && !count) hfsb_buf_truncate(out, 0);
    return st;
}

/* The server knows nothing of the tool: one that is not ours has only those of
   the reference. */
static bool hfsbi_remote_lacks(const hfsbi_remote *r) {
    static const char *const basic[] = {"bash", "read",   "write",
                                        "edit", "exists", "kill"};
    size_t                   i;
    if (r->status != 404 && r->status != 405) return false;
    for (i = 0; i < sizeof basic / sizeof *basic; i++)
        if (strcmp(basic[i], r->tool->name) == 0) return false;
    return true;
}

/* A reply that is not 200. */
static hfsb_status hfsbi_remote_failed(hfsbi_remote     *r,
                                       hfsb_tool_result *result) {
    hfsb_str error =
        hfsb_json_str(hfsb_json_get(r->doc.root, "error"), HFSB_LIT(""));
    hfsb_status st;
    if (hfsbi_remote_lacks(r) && (!error.len || r->trusted)) {
        st = hfsb_buf_printf(&result->error,
                             "This sandbox's server has no tool %s; use "
                             "bash.",
                             r->tool->name);
        return st == HFSB_OK ? HFSB_NOT_FOUND : st;
    }
    st = error.len ? hfsb_buf_append(&result->error, error)
                   : hfsb_buf_printf(&result->error, "HTTP %d", r->status);
    return st == HFSB_OK ? hfsbi_remote_status(r->status) : st;
}

HFSBI_FN hfsb_status hfsbi_remote_result(hfsbi_remote     *r,
                                         hfsb_tool_result *result,
                                         hfsb_err         *err) {
    const hfsb_json_value *root = r->doc.root;
    const hfsb_json_value *success = hfsb_json_get(root, "success");
    hfsb_status            st;
    if (r->status != 200) return hfsbi_remote_failed(r, result);
    if (hfsb_json_type_of(root) != HFSB_JSON_OBJECT)
        return hfsbi_fail(
            err, HFSB_REMOTE, 0,
            "Sandbox returned JSON that is no object (HTTP 200): "
            "%s.",
            hfsb_json_type_name(hfsb_json_type_of(root)));
    st = hfsbi_remote_string(root, "output", &result->output);
    if (st == HFSB_OK) st = hfsbi_remote_string(root, "error", &result->error);
    if (st == HFSB_OK) st = hfsbi_remote_extra(root, &result->extra);
    result->success =
        st == HFSB_OK && hfsb_json_bool(success, success == NULL);
    if (st == HFSB_OK && !result->success && !result->error.len)
        st = hfsb_buf_printf(&result->error, "Unknown error");
    return st;
}

/* ---- the call ---- */

/* What needs no server to be told. */
static hfsb_status hfsbi_remote_check(const hfsbi_tool *tool, hfsb_str name,
                                      const hfsb_json_value *arguments,
                                      const hfsb_call_opts  *opts,
                                      const hfsb_alloc *alloc, hfsb_err *err) {
    hfsb_json_type type = hfsb_json_type_of(arguments);
    hfsb_call      call;
    hfsb_status    st;
    if (!tool) {
        hfsbi_fail(err, HFSB_NOT_FOUND, 0, "Unknown tool: ");
        hfsbi_err_quote(err, name, 80);
        return HFSB_NOT_FOUND;
    }
    if (arguments && type != HFSB_JSON_OBJECT)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The arguments must be a JSON object, not %s.",
                          hfsb_json_type_name(type));
    if (opts->key.len >= sizeof((hfsbi_remote *)0)->key ||
        hfsb_str_find_byte(opts->key, '\0') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The key of a call must have at most %d bytes and "
                          "no NUL.",
                          (int)sizeof((hfsbi_remote *)0)->key - 1);
    memset(&call, 0, sizeof call);
    call.opts = *opts;
    call.notes.alloc = *alloc;
    st = hfsbi_check_keys(&call, arguments, tool->keys, err);
    hfsb_buf_free(&call.notes); /* the server notes the same */
    return st;
}

static hfsb_status hfsbi_remote_run(hfsbi_remote          *r,
                                    const hfsb_json_value *arguments,
                                    hfsb_tool_result *result, hfsb_err *err) {
    hfsb_status st;
    if (!hfsbi_remote_may(r, arguments, result, &st, err)) return st;
    st = hfsbi_remote_arguments(r, arguments, err);
    if (st == HFSB_OK) st = hfsbi_remote_send(r, err);
    if (st == HFSB_OK) st = hfsbi_remote_result(r, result, err);
    if (st != HFSB_OK) return st;
    if (strcmp(r->tool->name, "bash") == 0)
        hfsbi_remote_show_rest(r, hfsb_buf_str(&result->output));
    if (result->success) hfsbi_remote_saw(r, arguments);
    return st;
}

static hfsb_status hfsbi_remote_call(hfsb_sandbox *sandbox, hfsb_str name,
                                     const hfsb_json_value *arguments,
                                     const hfsb_call_opts  *opts,
                                     const hfsb_cancel     *cancel,
                                     hfsb_tool_result      *result) {
    const hfsbi_tool *tool = hfsbi_tool_find(name);
    hfsb_call_opts    none = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    hfsbi_remote      r;
    hfsb_status       st;
    if (!opts) opts = &none;
    memset(result, 0, sizeof *result);
    result->output.alloc = result->error.alloc = sandbox->o.alloc;
    result->extra.alloc = sandbox->o.alloc;
    st = hfsbi_remote_check(tool, name, arguments, opts, &sandbox->o.alloc,
                            &err);
    if (st == HFSB_OK) {
        hfsbi_remote_init(&r, sandbox, tool, cancel);
        r.opts = *opts;
        if (r.key[0] && opts->key.len) {
            memcpy(r.key, opts->key.ptr, opts->key.len);
            r.key[opts->key.len] = '\0';
        }
        st = hfsbi_remote_run(&r, arguments, result, &err);
        hfsbi_remote_free(&r);
    }
    if (st != HFSB_OK) { /* words of the peer, perhaps */
        hfsbi_sandbox_hide(sandbox, err.msg);
        if (result->error.ptr) {
            hfsbi_sandbox_hide(sandbox, result->error.ptr);
            hfsb_buf_truncate(&result->error, strlen(result->error.ptr));
        }
        hfsbi_result_status(result, st, &err);
    }
    return st;
}

hfsb_status hfsb_sandbox_call(hfsb_sandbox *sandbox, hfsb_str name,
                              const hfsb_json_value *arguments,
                              const hfsb_call_opts  *opts,
                              const hfsb_cancel     *cancel,
                              hfsb_tool_result      *result) {
    if (!cancel) cancel = sandbox->o.cancel;
    return hfsbi_remote_call(sandbox, name, arguments, opts, cancel, result);
}

/* Not by the handle's cancel: this is what one does once it is set. */
hfsb_status hfsb_sandbox_kill_all(hfsb_sandbox     *sandbox,
                                  hfsb_tool_result *result) {
    return hfsbi_remote_call(sandbox, HFSB_LIT("kill"), NULL, NULL, NULL,
                             result);
}
