/* server_jobs.c - commands by their ids: /api/jobs. Depends on: server_call,
   job_list. */
#include "server_sandbox.h"

/* ---- looking ---- */

static void hfsbi_jobs_list(void *user, hfsb_request *request) {
    hfsbi_sandbox *box = (hfsbi_sandbox *)user;
    hfsb_buf       out = HFSB_INIT;
    out.alloc = box->alloc;
    if (hfsb_buf_append(&out, HFSB_LIT("{\"jobs\":")) == HFSB_OK &&
        hfsb_tools_jobs(box->tools, HFSB_LIT(""), &out, NULL) == HFSB_OK &&
        hfsb_buf_append_byte(&out, '}') == HFSB_OK)
        hfsbi_reply_take(request, 200, "application/json", &out);
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_buf_free(&out);
}

static void hfsbi_jobs_one(void *user, hfsb_request *request) {
    hfsbi_sandbox *box = (hfsbi_sandbox *)user;
    hfsb_buf       out = HFSB_INIT;
    hfsb_err       err = HFSB_INIT;
    hfsb_status    st;
    out.alloc = box->alloc;
    st =
        hfsb_tools_jobs(box->tools, hfsb_request_part(request, 0), &out, &err);
    if (st == HFSB_OK)
        hfsbi_reply_take(request, 200, "application/json", &out);
    else
        hfsb_reply_error(request, st == HFSB_NOT_FOUND ? 404 : 503, "%s",
                         err.msg);
    hfsb_buf_free(&out);
}

/* ---- calls of the tools that take an id ---- */

/* A call with the id of the path; NULL when it is answered: there is no such
   job. */
static hfsbi_api_call *
hfsbi_jobs_call(hfsbi_sandbox *box, hfsb_request *request, const char *tool) {
    hfsb_str        id = hfsb_request_part(request, 0);
    hfsb_err        err = HFSB_INIT;
    hfsbi_api_call *x;
    if (!hfsbi_job_exists(box->tools, id)) {
        hfsbi_fail(&err, HFSB_NOT_FOUND, 0, "No such job: ");
        hfsbi_err_quote(&err, id, 80);
        hfsb_reply_error(request, 404, "%s", err.msg);
        return NULL;
    }
    x = hfsbi_api_call_new(box, request, hfsbi_tool_find(hfsb_cstr(tool)));
    if (x && hfsb_buf_append(&x->id, id) != HFSB_OK)
        x->status = 503; /* hfsbi_api_call_start() answers */
    return x;
}

/* Appends ,"key":"value" when the query has it: the tools take numbers in
   strings. False when it cannot be decoded. */
static hfsb_status hfsbi_jobs_query(const hfsb_request *request,
                                    const char *key, hfsb_json_writer *w,
                                    const hfsb_alloc *alloc, hfsb_err *err) {
    hfsb_buf    value = HFSB_INIT;
    hfsb_status st;
    value.alloc = *alloc;
    st = hfsb_request_query(request, key, &value, err);
    if (st == HFSB_OK) hfsbi_put_member_str(w, key, hfsb_buf_str(&value));
    hfsb_buf_free(&value);
    return st == HFSB_NOT_FOUND ? HFSB_OK : st;
}

static void hfsbi_jobs_output(void *user, hfsb_request *request) {
    hfsbi_sandbox   *box = (hfsbi_sandbox *)user;
    hfsbi_api_call  *x = hfsbi_jobs_call(box, request, "bash_output");
    hfsb_err         err = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_status      st;
    if (!x) return;
    x->where = "query";
    hfsb_buf_truncate(&x->body, 0); /* a GET may have one, for no one */
    hfsb_json_writer_init(&w, &x->body, NULL);
    hfsb_json_put_object(&w);
    st = hfsbi_jobs_query(request, "offset", &w, &box->alloc, &err);
    if (st == HFSB_OK)
        st = hfsbi_jobs_query(request, "wait_ms", &w, &box->alloc, &err);
    hfsb_json_put_end(&w);
    if (st == HFSB_OK) st = hfsb_json_writer_finish(&w, &err);
    if (st == HFSB_SYNTAX)
        hfsbi_api_fail(x, 400, HFSB_LIT(""), hfsb_cstr(err.msg));
    else if (st != HFSB_OK) x->status = 503;
    hfsbi_api_call_start(x);
}

static void hfsbi_jobs_kill(void *user, hfsb_request *request) {
    hfsbi_api_call *x =
        hfsbi_jobs_call((hfsbi_sandbox *)user, request, "kill");
    if (!x) return;
    hfsb_buf_truncate(&x->body, 0);
    if (hfsb_buf_append(&x->body, HFSB_LIT("{}")) != HFSB_OK) x->status = 503;
    hfsbi_api_call_start(x);
}

/* ---- input ---- */

/* The body as it is: bytes that need not be UTF-8. */
static void hfsbi_jobs_bytes(hfsbi_sandbox *box, hfsb_request *request) {
    hfsb_tool_result result = HFSB_INIT;
    hfsb_buf         out = HFSB_INIT, eof = HFSB_INIT;
    hfsb_str         last;
    hfsb_status      st;
    out.alloc = eof.alloc = box->alloc;
    result.output.alloc = result.error.alloc = result.extra.alloc = box->alloc;
    st = hfsb_request_query(request, "eof", &eof, NULL);
    last = hfsb_buf_str(&eof);
    if (st == HFSB_OK || st == HFSB_NOT_FOUND)
        st = hfsbi_job_input(box->tools, hfsb_request_part(request, 0),
                             hfsb_request_body(request),
                             hfsb_str_equal(last, HFSB_LIT("1")) ||
                                 hfsb_str_equal(last, HFSB_LIT("true")),
                             &result);
    if (st == HFSB_OK) st = hfsb_tool_result_write(&result, &out, NULL);
    if (st == HFSB_OK)
        hfsbi_reply_take(request, 200, "application/json", &out);
    else if (st == HFSB_SYNTAX)
        hfsb_reply_error(request, 400, "The query cannot be decoded.");
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_tool_result_free(&result);
    hfsb_buf_free(&eof);
    hfsb_buf_free(&out);
}

static void hfsbi_jobs_input(void *user, hfsb_request *request) {
    hfsbi_sandbox        *box = (hfsbi_sandbox *)user;
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsbi_api_call       *x;
    bool raw = hfsb_http_field_lists(head, "Content-Type", "text/plain") ||
               hfsb_http_field_lists(head, "Content-Type",
                                     "application/octet-stream");
    if (!raw && hfsb_request_body(request).len &&
        !hfsbi_request_is_json(request)) {
        hfsb_reply_error(request, 415,
                         "The body must be JSON (application/json), or the "
                         "bytes themselves (text/plain or "
                         "application/octet-stream).");
        return;
    }
    if (raw && hfsbi_job_exists(box->tools, hfsb_request_part(request, 0))) {
        hfsbi_jobs_bytes(box, request);
        return;
    }
    x = hfsbi_jobs_call(box, request, "bash_input");
    if (x) hfsbi_api_call_start(x);
}

HFSBI_FN hfsb_status hfsbi_jobs_add(hfsbi_sandbox *box, hfsb_err *err) {
    hfsb_route  input = HFSB_INIT;
    hfsb_status st = hfsbi_sandbox_route(box, "GET", "/api/jobs",
                                         hfsbi_jobs_list, box, err);
    if (st == HFSB_OK)
        st = hfsbi_sandbox_route(box, "GET", "/api/jobs/*", hfsbi_jobs_one,
                                 box, err);
    if (st == HFSB_OK)
        st = hfsbi_sandbox_route(box, "DELETE", "/api/jobs/*", hfsbi_jobs_kill,
                                 box, err);
    if (st == HFSB_OK)
        st = hfsbi_sandbox_route(box, "GET",
                                 "/api/jobs/*"
                                 "/output",
                                 hfsbi_jobs_output, box, err);
    if (st != HFSB_OK) return st;
    input.method = "POST";
    input.path = "/api/jobs/*"
                 "/input";
    input.fn = hfsbi_jobs_input;
    input.user = box;
    input.max_body = HFSBI_API_INPUT;
    return hfsb_server_add(box->server, &input, err);
}
