/* files.c - /api/files: files of any size as bytes, by GET, PUT and DELETE.

   A GET is a fetch (fetch.c), a PUT an upload (upload.c); this file has their
   options and the JSON of their replies. A DELETE checks its conditions and
   removes the file in a pool thread. */
#include "api_private.h"

/* ---- replies ---- */

/* Replies 422 for a key of the query. `text` is for the item of the detail,
   `sentence` for the whole reply. */
static void hfsbi_files_refuse_key(hfsb_request *request, const char *key,
                                   const char *type, const char *text,
                                   const hfsb_json_value *input,
                                   const char            *sentence) {
    hfsb_buf detail = HFSB_INIT;
    detail.alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    if (hfsbi_fields_detail_item("query", hfsb_cstr(key), type, text, input,
                                 &detail) == HFSB_OK)
        hfsbi_reply_detail(request, 422, hfsb_buf_str(&detail),
                           hfsb_cstr(sentence));
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_buf_free(&detail);
}

/* Replies with the result as JSON and frees it. st: HFSB_NOMEM if the result
   is incomplete; then the reply says what was done to the file. */
static void hfsbi_files_reply(hfsb_request *request, int status,
                              hfsb_tool_result *result, hfsb_status st,
                              const char *what) {
    hfsb_buf body = HFSB_INIT;
    body.alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    if (st == HFSB_OK) st = hfsb_tool_result_write(result, &body, NULL);
    if (st == HFSB_OK)
        hfsbi_reply_take(request, status, "application/json", &body);
    else
        hfsb_reply_error(request, 503, "Out of memory. The file is %s.", what);
    hfsb_buf_free(&body);
    hfsb_tool_result_free(result);
}

/* Reads the path of the query. False after an error reply. */
static bool hfsbi_files_read_path(hfsb_request *request, hfsb_buf *path) {
    hfsb_err    err = HFSB_INIT;
    hfsb_status st;
    path->alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    st = hfsb_request_query(request, "path", path, &err);
    if (st == HFSB_NOT_FOUND || (st == HFSB_OK && path->len == 0))
        hfsbi_files_refuse_key(request, "path", "missing", "Field required",
                               NULL, "path is required: /api/files?path=...");
    else if (st == HFSB_SYNTAX) hfsb_reply_error(request, 400, "%s", err.msg);
    else if (st != HFSB_OK) hfsb_reply_error(request, 503, "Out of memory.");
    else return true;
    hfsb_buf_free(path);
    return false;
}

/* ---- GET ---- */

static bool hfsbi_files_put_fields(void *user, hfsb_request *request,
                                   int status, const hfsb_file_info *info) {
    char text[32];
    (void)user, (void)status;
    (void)snprintf(text, sizeof text, "%04o", info->mode & 07777u);
    if (hfsb_reply_field(request, "X-Hfsb-Mode", hfsb_cstr(text)) != HFSB_OK)
        return false;
    /* the size of the whole file, for clients that receive no Content-Length:
       a proxy may send chunks instead, and end them early */
    (void)snprintf(text, sizeof text, "%llu", info->size);
    return hfsb_reply_field(request, "X-Hfsb-Size", hfsb_cstr(text)) ==
           HFSB_OK;
}

static void hfsbi_files_get(void *user, hfsb_request *request) {
    hfsbi_fetch_opts opts = HFSB_INIT;
    hfsb_buf         path = HFSB_INIT;
    if (!hfsbi_files_read_path(request, &path)) return;
    opts.tools = (const hfsb_tools *)user;
    opts.path = hfsb_buf_str(&path);
    opts.fields = hfsbi_files_put_fields;
    hfsbi_fetch_start(request, &opts);
    hfsb_buf_free(&path);
}

/* ---- PUT and DELETE: their conditions ---- */

/* What a PUT or a DELETE needs. */
typedef struct hfsbi_file_op {
    const hfsb_tools *tools; /* whose journal records it */
    long long         began; /* hfsb_clock_ms() */
    hfsb_buf          path;
    hfsbi_conditions  conditions;
    hfsb_file_info    info; /* of the file that they were checked with */
    int               http; /* status of the reply */
    hfsb_err          err;  /* the text of a reply from 400 on */
} hfsbi_file_op;

static void hfsbi_file_op_free(hfsbi_file_op *op) {
    hfsb_alloc alloc = op->path.alloc;
    hfsb_buf_free(&op->path);
    hfsbi_conditions_free(&op->conditions);
    hfsbi_array_free(&alloc, op, 1, sizeof *op);
}

/* Returns a new operation with the path and the conditions of the request.
   NULL after an error reply. */
static hfsbi_file_op *hfsbi_file_op_open(const hfsb_tools *tools,
                                         hfsb_request     *request) {
    const hfsb_alloc *alloc = hfsbi_server_alloc(hfsb_request_server(request));
    hfsbi_file_op    *op = (hfsbi_file_op *)hfsbi_array(alloc, 1, sizeof *op);
    if (!op) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return NULL;
    }
    memset(op, 0, sizeof *op);
    op->tools = tools;
    op->began = hfsb_clock_ms();
    op->path.alloc = *alloc;
    if (!hfsbi_files_read_path(request, &op->path)) {
        hfsbi_file_op_free(op);
        return NULL;
    }
    if (hfsbi_conditions_read(hfsb_request_head(request), alloc,
                              &op->conditions))
        return op;
    hfsb_reply_error(request, 503, "Out of memory.");
    hfsbi_file_op_free(op);
    return NULL;
}

/* ---- DELETE ---- */

static void hfsbi_remove_run(void *user) {
    hfsbi_file_op   *op = (hfsbi_file_op *)user;
    const hfsb_root *root = op->tools->place;
    const hfsb_buf  *match = &op->conditions.match;
    hfsb_str         path = hfsb_buf_str(&op->path);
    hfsb_file_info  *same = NULL;
    hfsb_status      st = HFSB_OK;
    if (match->ptr) {
        st = hfsb_file_stat(root, path, &op->info, &op->err);
        op->http = 412;
        if ((st == HFSB_OK || st == HFSB_NOT_FOUND) &&
            !hfsbi_conditions_hold(&op->conditions,
                                   st == HFSB_OK ? &op->info : NULL, false,
                                   &op->err))
            return;
        /* do not remove a file that a PUT has replaced since the stat */
        if (!hfsbi_etag_is_any(match)) same = &op->info;
    }
    if (st == HFSB_OK)
        st = hfsbi_file_remove_if(root, path, NULL, same, &op->err);
    op->http = st == HFSB_OK ? 200 : hfsbi_file_http_status(st);
}

static void hfsbi_remove_done(void *user, hfsb_request *request) {
    hfsbi_file_op   *op = (hfsbi_file_op *)user;
    hfsb_tool_result result;
    hfsb_status      st;
    hfsbi_api_report_request(
        request, op->tools, "remove", hfsb_buf_str(&op->path), "",
        hfsb_cstr(op->http >= 400 ? op->err.msg : ""), op->began, 0);
    if (op->http == 200) {
        hfsbi_result_init(&result, &op->path.alloc);
        st = hfsbi_result_ok(&result, "Removed %s", op->path.ptr);
        hfsbi_files_reply(request, 200, &result, st, "removed");
    } else {
        hfsb_reply_error(request, op->http, "%s", op->err.msg);
    }
    hfsbi_file_op_free(op);
}

static void hfsbi_files_remove(void *user, hfsb_request *request) {
    const hfsb_tools *tools = (const hfsb_tools *)user;
    hfsbi_file_op    *op = hfsbi_file_op_open(tools, request);
    if (op)
        hfsbi_request_work(request, &tools->rights, hfsbi_remove_run,
                           hfsbi_remove_done, op);
}

/* ---- PUT ---- */

/* Parses an octal number from 1 to 7777; 0 if it is invalid. */
static unsigned hfsbi_files_parse_mode(hfsb_str text) {
    unsigned mode = 0;
    size_t   i;
    if (text.len > 5) return 0;
    for (i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '7') return 0;
        mode = mode * 8 + (unsigned)(text.ptr[i] - '0');
    }
    return mode <= 07777u ? mode : 0;
}

static void hfsbi_files_refuse_mode(hfsb_request *request, hfsb_str text) {
    const char   *sentence = "mode must be an octal number from 1 to 7777, as "
                             "in mode=0755.";
    hfsbi_build   input;
    hfsb_json_doc doc = HFSB_INIT;
    doc.alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    hfsbi_build_init(&input, &doc.alloc);
    hfsbi_build_str(&input, NULL, text);
    (void)hfsbi_build_finish(&input, &doc); /* without memory: null */
    hfsbi_files_refuse_key(request, "mode", "value_error", sentence, doc.root,
                           sentence);
    hfsb_json_free(&doc);
}

/* Reads the mode; 0 if it is not given. False after an error reply. */
static bool hfsbi_files_read_options(hfsb_request *request, unsigned *mode) {
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsb_buf              text = HFSB_INIT;
    hfsb_err              err = HFSB_INIT;
    hfsb_status           st;
    bool                  good = false;
    text.alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    *mode = 0;
    st = hfsb_request_query(request, "mode", &text, &err);
    if (st == HFSB_OK) *mode = hfsbi_files_parse_mode(hfsb_buf_str(&text));
    if (st == HFSB_NOMEM) hfsb_reply_error(request, 503, "Out of memory.");
    else if (st == HFSB_SYNTAX) hfsb_reply_error(request, 400, "%s", err.msg);
    else if (st == HFSB_OK && *mode == 0)
        hfsbi_files_refuse_mode(request, hfsb_buf_str(&text));
    else if (hfsb_http_field_find(head, "Content-Range").ptr)
        hfsb_reply_error(request, 400,
                         "A file is written whole: Content-Range cannot be "
                         "used here.");
    else good = true;
    hfsb_buf_free(&text);
    return good;
}

/* In a pool thread: checks the conditions; the commit checks them again. */
static hfsb_status hfsbi_files_prepare(void *user, hfsb_buf *path,
                                       hfsb_file_write_opts *write,
                                       int *status, hfsb_err *err) {
    hfsbi_file_op          *op = (hfsbi_file_op *)user;
    const hfsbi_conditions *c = &op->conditions;
    hfsb_status             st;
    if (!c->match.ptr && !c->none_match.ptr) return HFSB_OK;
    st = hfsb_file_stat(op->tools->place, hfsb_buf_str(path), &op->info, err);
    if (st != HFSB_OK && st != HFSB_NOT_FOUND) return st;
    if (!hfsbi_conditions_hold(c, st == HFSB_OK ? &op->info : NULL, true,
                               err)) {
        *status = 412;
        return HFSB_REFUSED;
    }
    if (c->match.ptr && !hfsbi_etag_is_any(&c->match))
        write->if_same = &op->info;
    write->create = hfsbi_etag_is_any(&c->none_match);
    return HFSB_OK;
}

static void hfsbi_files_reply_written(hfsb_request            *request,
                                      const hfsbi_upload_end  *end,
                                      const hfsbi_upload_file *file) {
    const hfsb_alloc *alloc = hfsbi_server_alloc(hfsb_request_server(request));
    char              etag[HFSBI_ETAG];
    hfsb_tool_result  result;
    hfsbi_build       fields;
    hfsb_status       st;
    hfsbi_file_etag(&file->written.info, etag);
    hfsbi_result_init(&result, alloc);
    hfsbi_build_init(&fields, alloc);
    hfsbi_build_object(&fields, NULL);
    hfsbi_build_int(&fields, "bytes", (long long)file->written.bytes);
    hfsbi_build_bool(&fields, "created", file->written.created);
    hfsbi_build_bool(&fields, "in_place", file->written.in_place);
    hfsbi_build_str(&fields, "sha256", hfsb_cstr(file->sha256));
    hfsbi_build_end(&fields);
    st = hfsbi_build_finish(&fields, &result.fields);
    if (st == HFSB_OK)
        st = hfsbi_result_ok(&result, "Wrote %llu bytes to %s",
                             file->written.bytes, file->path.ptr);
    if (st == HFSB_OK) st = hfsb_reply_field(request, "ETag", hfsb_cstr(etag));
    hfsbi_files_reply(request, end->status, &result, st, "written");
}

static void hfsbi_files_put_done(void *user, hfsb_request *request,
                                 const hfsbi_upload_end *end) {
    if (end->status >= 400)
        hfsb_reply_error(request, end->status, "%s", end->err->msg);
    else if (end->status)
        hfsbi_files_reply_written(request, end, &end->files[0]);
    hfsbi_file_op_free((hfsbi_file_op *)user);
}

static void hfsbi_files_put(void *user, hfsb_request *request) {
    hfsbi_upload_opts opts = HFSB_INIT;
    hfsbi_file_op    *op;
    if (!hfsbi_files_read_options(request, &opts.write.mode)) return;
    opts.tools = (const hfsb_tools *)user;
    op = hfsbi_file_op_open(opts.tools, request);
    if (!op) return;
    opts.path = hfsb_buf_str(&op->path);
    opts.prepare = hfsbi_files_prepare;
    opts.done = hfsbi_files_put_done;
    opts.user = op;
    hfsbi_upload_start(request, &opts);
}

/* ---- the endpoint ---- */

HFSBI_FN hfsb_status hfsbi_files_add(hfsb_server *server, hfsb_tools *tools,
                                     hfsb_err *err) {
    hfsb_route  route = HFSB_INIT;
    hfsb_status st;
    route.path = "/api/files";
    route.user = tools;
    route.max_body = 4096; /* bytes; such a body is ignored */
    route.method = "GET";
    route.fn = hfsbi_files_get;
    st = hfsb_server_add(server, &route, err);
    if (st != HFSB_OK) return st;
    route.method = "DELETE";
    route.fn = hfsbi_files_remove;
    st = hfsb_server_add(server, &route, err);
    if (st != HFSB_OK) return st;
    route.max_body = 0;
    route.method = "PUT";
    route.begin = hfsbi_files_put;
    route.body = hfsbi_upload_body;
    route.fn = hfsbi_upload_finish;
    return hfsb_server_add(server, &route, err);
}
