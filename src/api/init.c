/* init.c - POST /init: configures a server after its start.

   A pool of warm servers starts before anyone knows who will use them. Such a
   server has no token, and all its other endpoints refuse:

       started --POST /init {"token","env","work_dir"}--> in use
                 the first caller wins            later ones need the token

   From then on the variables apply to all commands, the working directory to
   all relative paths. Everything is set, or nothing. A caller that lost the
   reply may repeat the request: anyone who knows the token may.

   A web page must not be the first caller. A server that listens for everyone
   cannot know its own names, so this route refuses every request that a
   browser makes for a page (hfsbi_request_is_direct()), and a body that is not
   declared as JSON, which a page could send without asking.

   Only the body contains the token: its buffer has its full length from the
   start, the JSON is parsed in place, and all of it is wiped. */
#include "api_private.h"

/* The body of a request. */
typedef struct hfsbi_init {
    hfsb_json_doc doc;
    hfsb_str      token, work_dir; /* ptr NULL: not given */
    hfsb_buf      env;
    bool          has_env;
} hfsbi_init;

static hfsb_status hfsbi_init_fail(hfsb_err *err, const char *what) {
    return hfsbi_fail(err, HFSB_ARG, 0,
                      "%s Send {\"token\":\"...\",\"env\":{\"NAME\":"
                      "\"value\"},\"work_dir\":\"...\"}.",
                      what);
}

static hfsb_status hfsbi_init_read_member(hfsbi_init           *x,
                                          const hfsb_json_iter *it,
                                          hfsb_err             *err) {
    hfsb_json_type type = hfsb_json_type_of(it->value);
    hfsb_str       text = hfsb_json_str(it->value, HFSB_LIT(""));
    bool           is_text = type == HFSB_JSON_STRING && text.len > 0;
    hfsb_status    st;
    if (hfsb_str_equal(it->key, HFSB_LIT("token")) && is_text) {
        x->token = text;
    } else if (hfsb_str_equal(it->key, HFSB_LIT("work_dir")) && is_text) {
        x->work_dir = text;
    } else if (hfsb_str_equal(it->key, HFSB_LIT("env")) &&
               type == HFSB_JSON_OBJECT) {
        x->has_env = true;
        st = hfsbi_env_read(it->value, &x->env, err);
        if (st != HFSB_OK || x->env.status == HFSB_OK) return st;
        return hfsbi_fail_status(err, x->env.status, "env");
    } else {
        return hfsbi_init_fail(err,
                               "A key or its value is not expected here.");
    }
    return HFSB_OK;
}

static hfsb_status hfsbi_init_read(hfsbi_init *x, hfsb_buf *body,
                                   hfsb_err *err) {
    hfsb_json_iter it;
    char           none[1] = "";
    hfsb_status    st = hfsb_json_parse_in_place(body->ptr ? body->ptr : none,
                                              body->len, NULL, &x->doc, err);
    if (st != HFSB_OK) return st;
    if (hfsb_json_type_of(x->doc.root) != HFSB_JSON_OBJECT)
        return hfsbi_init_fail(err, "The body must be a JSON object.");
    it = hfsb_json_begin(x->doc.root);
    while (st == HFSB_OK && hfsb_json_next(&it))
        st = hfsbi_init_read_member(x, &it, err);
    return st;
}

/* Sets all of it. The token comes last, except for what cannot fail: until
   then the server is closed. */
static hfsb_status hfsbi_init_set(hfsbi_api *api, hfsbi_init *x,
                                  hfsb_err *err) {
    hfsbi_tools_group *group = hfsbi_server_group(api->server);
    hfsb_status        st = HFSB_OK;
    /* a thread may be using the root; opening a folder in the loop is short */
    if (x->work_dir.ptr && hfsbi_loop_pending(api->loop))
        return hfsbi_fail(err, HFSB_BUSY, 0,
                          "Files are in use: the working directory cannot "
                          "change now.");
    if (x->token.ptr) st = hfsbi_server_check_token(x->token, err);
    if (st == HFSB_OK && x->work_dir.ptr)
        st = hfsbi_root_move(api->tools->place, x->work_dir, err);
    if (st != HFSB_OK) return st;
    if (x->has_env) {
        hfsb_buf_free(&group->env);
        group->env = x->env;
        memset(&x->env, 0, sizeof x->env);
        x->env.alloc = group->env.alloc;
    }
    if (!x->token.ptr) return HFSB_OK;
    if (!hfsbi_server_token_is(api->server, x->token)) hfsbi_open_forget(api);
    return hfsbi_server_set_token(api->server, x->token, err);
}

/* The first caller must bring a token; a later one must have it. */
static int hfsbi_init_status(hfsbi_api *api, hfsb_request *request,
                             const hfsbi_init *x) {
    if (!hfsbi_server_token(api->server)) return x->token.ptr ? 200 : 400;
    return hfsbi_request_is_trusted(request) ||
                   (x->token.ptr &&
                    hfsbi_server_token_is(api->server, x->token))
               ? 200
               : 401;
}

/* Does what the body asks for, and replies. */
static void hfsbi_init_answer(hfsbi_api *api, hfsb_request *request,
                              hfsb_buf *body) {
    hfsbi_init  x = HFSB_INIT;
    hfsb_err    err = HFSB_INIT;
    hfsb_status st;
    int         status;
    x.doc.alloc = x.env.alloc = api->alloc;
    st = hfsbi_init_read(&x, body, &err);
    status = hfsbi_init_status(api, request, &x);
    if (status == 401)
        hfsb_reply_error(request, 401,
                         "The server has a token already: send it.");
    else if (st == HFSB_OK && status == 400)
        hfsb_reply_error(request, 400, "token is required.");
    else {
        if (st == HFSB_OK) st = hfsbi_init_set(api, &x, &err);
        if (st == HFSB_OK)
            hfsb_reply(request, 200, "application/json",
                       HFSB_LIT("{\"status\":\"ok\"}"));
        else
            hfsb_reply_error(request,
                             st == HFSB_NOMEM || st == HFSB_BUSY ? 503 : 400,
                             "%s", err.msg);
    }
    hfsbi_api_report(
        api->tools, "init", HFSB_LIT(""), "",
        hfsb_cstr(status == 200 && st == HFSB_OK ? "" : "refused"),
        hfsb_clock_ms(), 0);
    hfsb_json_free(&x.doc);
    hfsb_buf_free(&x.env);
}

HFSBI_FN void hfsbi_init_post(void *user, hfsb_request *request) {
    hfsbi_api *api = (hfsbi_api *)user;
    hfsb_buf   body = HFSB_INIT; /* ours, to be wiped */
    body.alloc = api->alloc;
    hfsbi_request_take_body(request, &body);
    if (hfsbi_request_is_direct(request)) {
        if (hfsbi_request_is_json(request))
            hfsbi_init_answer(api, request, &body);
        else
            hfsb_reply_error(request, 415,
                             "The body must be JSON, with Content-Type: "
                             "application/json.");
    }
    if (body.ptr) hfsb_secret_wipe(body.ptr, body.cap);
    hfsb_buf_free(&body);
}
