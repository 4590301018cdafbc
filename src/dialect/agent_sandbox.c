/* agent_sandbox.c - the runtimes of Kubernetes' agent-sandbox.

   Two protocols, which clients of that project choose between:

     python-runtime  GET /, POST /execute, POST /upload, GET /download/PATH,
                     /list/PATH, /exists/PATH; errors are {"message":...}
     sandboxd        /v1/files/PATH, /v1/health, /v1/metadata; errors are
                     {"code":...,"message":...}

   All paths begin at the root, with or without a leading slash, and stay
   beneath it. Commands are in agent_sandbox_exec.c. A router between the
   clients and the server removes their tokens, so a dialect on a loopback port
   of its own needs none. Work on files is an operation (hfsbi_kube_op), which
   runs in a pool thread and replies in the loop. */
#include "dialect_private.h"

enum { HFSBI_KUBE_LIST = 8 << 20 }; /* bytes of a list; clients take no more */

/* ---- errors ---- */

static bool hfsbi_kube_is_v1(const hfsb_request *request) {
    return hfsb_str_starts(hfsb_request_head(request)->path, HFSB_LIT("/v1/"));
}

static const char *hfsbi_kube_code(int status) {
    switch (status) {
    case 404: return "NOT_FOUND";
    case 401:
    case 403: return "PERMISSION_DENIED";
    case 409:
    case 412: return "CONFLICT";
    case 503: return "UNAVAILABLE";
    default: return status < 500 ? "INVALID_ARGUMENT" : "INTERNAL";
    }
}

static void hfsbi_kube_refuse(hfsbi_face *face, hfsb_request *request,
                              int status, hfsb_str message) {
    hfsb_buf json = HFSB_INIT;
    json.alloc = hfsbi_dialect_of(face)->alloc;
    hfsb_buf_append_byte(&json, '{');
    if (hfsbi_kube_is_v1(request))
        hfsb_buf_printf(&json, "\"code\":\"%s\",", hfsbi_kube_code(status));
    hfsb_buf_append(&json, HFSB_LIT("\"message\":"));
    hfsbi_json_put_quoted(&json, message);
    hfsb_buf_append_byte(&json, '}');
    if (json.status == HFSB_OK)
        hfsbi_reply_take(request, status, "application/json", &json);
    else hfsb_reply(request, status, "", HFSB_LIT(""));
    hfsb_buf_free(&json);
}

/* Replies to a failure of a file, in the words of the runtime. */
static void hfsbi_kube_refuse_file(hfsb_request *request, int status,
                                   const hfsb_err *err) {
    bool denied = err->code == HFSB_OUTSIDE || err->code == HFSB_DENIED;
    if (denied)
        hfsb_reply_error(request, 403, "%s",
                         hfsbi_kube_is_v1(request) ? err->msg
                                                   : "Access denied");
    else if (status == 507) hfsb_reply_error(request, 500, "%s", err->msg);
    else hfsb_reply_error(request, status, "%s", err->msg);
}

/* ---- operations ---- */

typedef struct hfsbi_kube_op {
    hfsbi_kube *k;
    hfsb_buf    path;     /* absolute */
    hfsb_buf    given;    /* as the client wrote it */
    hfsb_buf    json;     /* of the reply */
    bool        v1;       /* of sandboxd */
    bool        tree;     /* DELETE: also a folder that is not empty */
    bool        has_file; /* a part of the body is the file */
    const char *tool;     /* name in the journal */
    long long   began;    /* hfsb_clock_ms() */
    hfsb_status st;
    hfsb_err    err;
} hfsbi_kube_op;

static void hfsbi_kube_op_free(hfsbi_kube_op *op) {
    hfsb_alloc alloc = op->k->d.alloc;
    hfsb_buf_free(&op->path);
    hfsb_buf_free(&op->given);
    hfsb_buf_free(&op->json);
    hfsbi_array_free(&alloc, op, 1, sizeof *op);
}

/* Sets the path of the client: leading slashes do not count. */
static hfsb_status hfsbi_kube_op_set_path(hfsbi_kube_op *op, hfsb_str given) {
    size_t skip = 0;
    hfsb_buf_truncate(&op->path, 0);
    hfsb_buf_truncate(&op->given, 0);
    hfsb_buf_append(&op->given, given);
    while (skip < given.len && given.ptr[skip] == '/') skip++;
    given = hfsb_str_slice(given, skip, given.len);
    hfsb_buf_append(&op->path, hfsb_root_path(op->k->root));
    hfsb_buf_append_byte(&op->path, '/');
    hfsb_buf_append(&op->path, given);
    return op->path.status ? op->path.status : op->given.status;
}

/* Returns a new operation for the path of the request; NULL after a reply. */
static hfsbi_kube_op *hfsbi_kube_op_new(hfsbi_kube *k, hfsb_request *request,
                                        const char *tool) {
    hfsbi_kube_op *op =
        (hfsbi_kube_op *)hfsbi_array(&k->d.alloc, 1, sizeof *op);
    if (op) {
        memset(op, 0, sizeof *op);
        op->k = k;
        op->path.alloc = op->given.alloc = op->json.alloc = k->d.alloc;
        op->v1 = hfsbi_kube_is_v1(request);
        op->tool = tool;
        op->began = hfsb_clock_ms();
        if (hfsbi_kube_op_set_path(op, hfsb_request_part(request, 0)) ==
            HFSB_OK)
            return op;
        hfsbi_kube_op_free(op);
    }
    hfsb_reply_error(request, 503, "Out of memory.");
    return NULL;
}

static void hfsbi_kube_op_run(hfsbi_kube_op *op, hfsb_request *request,
                              void (*run)(void *user),
                              void (*done)(void *user, hfsb_request *r)) {
    hfsbi_request_work(request, &op->k->d.tools->rights, run, done, op);
}

/* Replies with the JSON of an operation, or with its error, and frees it. */
static void hfsbi_kube_op_reply(void *user, hfsb_request *request) {
    hfsbi_kube_op *op = (hfsbi_kube_op *)user;
    hfsb_status    st = op->st ? op->st : op->json.status;
    hfsbi_api_report(op->k->d.tools, op->tool, hfsb_buf_str(&op->given), "",
                     hfsb_cstr(st == HFSB_OK ? "" : op->err.msg), op->began,
                     0);
    if (st == HFSB_NOMEM) hfsb_reply_error(request, 503, "Out of memory.");
    else if (st != HFSB_OK)
        hfsbi_kube_refuse_file(
            request, st == HFSB_EXISTS ? 409 : hfsbi_file_http_status(st),
            &op->err);
    else if (op->json.len)
        hfsbi_reply_take(request, 200, "application/json", &op->json);
    else hfsb_reply(request, 204, "", HFSB_LIT(""));
    hfsbi_kube_op_free(op);
}

/* ---- lists ---- */

static void hfsbi_kube_put_time(const hfsb_file_info *info, bool v1,
                                hfsb_buf *json) {
    hfsbi_date d = hfsbi_date_of(info->changed);
    if (v1)
        hfsb_buf_printf(json,
                        "\"modified_at\":\"%04u-%02u-%02uT%02u:%02u:%02u.%09ld"
                        "Z\",\"mode\":\"%04o\"",
                        d.year, d.month, d.day, d.hour, d.minute, d.second,
                        info->changed_nanos, info->mode & 07777u);
    else
        hfsb_buf_printf(json, "\"mod_time\":%lld.%06ld", info->changed,
                        info->changed_nanos / 1000);
}

/* Follows a symlink; one that points outside the root, or nowhere, is left
   out. */
static hfsb_status hfsbi_kube_list_entry(void                   *user,
                                         const hfsbi_list_entry *entry) {
    hfsbi_kube_op  *op = (hfsbi_kube_op *)user;
    hfsbi_path_info info = entry->info;
    size_t          mark = op->path.len;
    hfsb_status     st = HFSB_OK;
    if (info.type == HFSBI_ENTRY_LINK) {
        hfsb_buf_append_byte(&op->path, '/');
        st = hfsb_buf_append(&op->path, entry->path);
        if (st == HFSB_OK)
            st = hfsbi_path_stat(op->k->root, hfsb_buf_str(&op->path), true,
                                 &info, NULL, NULL);
        hfsb_buf_truncate(&op->path, mark);
        if (st != HFSB_OK) return st == HFSB_NOMEM ? st : HFSB_OK;
    }
    hfsb_buf_append(&op->json, op->has_file ? HFSB_LIT(",{\"name\":")
                                            : HFSB_LIT("{\"name\":"));
    op->has_file = true;
    hfsbi_json_put_quoted(&op->json, entry->name);
    hfsb_buf_printf(&op->json, ",\"size\":%llu,\"type\":\"%s\",",
                    info.file.size,
                    info.type == HFSBI_ENTRY_FOLDER ? "directory" : "file");
    hfsbi_kube_put_time(&info.file, op->v1, &op->json);
    hfsb_buf_append_byte(&op->json, '}');
    if (op->json.status == HFSB_LIMIT)
        hfsbi_fail(&op->err, HFSB_IO, 0,
                   "The list is longer than %d bytes: list the folders in it.",
                   HFSBI_KUBE_LIST);
    return op->json.status == HFSB_LIMIT ? HFSB_IO : op->json.status;
}

/* In a pool thread. */
static void hfsbi_kube_list_run(void *user) {
    hfsbi_kube_op  *op = (hfsbi_kube_op *)user;
    hfsbi_list_opts opts = HFSB_INIT;
    hfsbi_listed    listed = HFSB_INIT;
    hfsb_err        err = HFSB_INIT;
    opts.fn = hfsbi_kube_list_entry;
    opts.user = op;
    op->json.max = HFSBI_KUBE_LIST;
    if (op->v1) {
        hfsb_buf_append(&op->json, HFSB_LIT("{\"path\":"));
        hfsbi_json_put_quoted(&op->json,
                              hfsb_str_slice(hfsb_buf_str(&op->path),
                                             hfsb_root_path(op->k->root).len,
                                             op->path.len));
        hfsb_buf_append(&op->json, HFSB_LIT(",\"entries\":"));
    }
    hfsb_buf_append_byte(&op->json, '[');
    op->st = hfsbi_path_list(op->k->root, hfsb_buf_str(&op->path), &opts,
                             &listed, &err);
    if (op->st == HFSB_OK && listed.more)
        op->st = hfsbi_fail(&err, HFSB_IO, 0,
                            "The folder could not be listed in time.");
    if (!op->err.msg[0]) op->err = err;
    op->json.max = 0;
    hfsb_buf_append(&op->json, op->v1 ? HFSB_LIT("]}") : HFSB_LIT("]"));
}

static void hfsbi_kube_list_done(void *user, hfsb_request *request) {
    hfsbi_kube_op *op = (hfsbi_kube_op *)user;
    if (!op->v1 && (op->st == HFSB_NOT_FOUND || op->st == HFSB_ARG)) {
        op->st = HFSB_NOT_FOUND;
        hfsbi_fail(&op->err, HFSB_NOT_FOUND, 0, "Path is not a directory");
    }
    hfsbi_kube_op_reply(op, request);
}

static void hfsbi_kube_list(void *user, hfsb_request *request) {
    hfsbi_kube_op *op = hfsbi_kube_op_new((hfsbi_kube *)user, request, "list");
    if (op)
        hfsbi_kube_op_run(op, request, hfsbi_kube_list_run,
                          hfsbi_kube_list_done);
}

/* ---- exists, delete ---- */

static void hfsbi_kube_exists_run(void *user) {
    hfsbi_kube_op  *op = (hfsbi_kube_op *)user;
    hfsbi_path_info info;
    bool            found;
    op->st = hfsbi_path_stat(op->k->root, hfsb_buf_str(&op->path), true, &info,
                             NULL, &op->err);
    found = op->st == HFSB_OK;
    if (op->st != HFSB_OUTSIDE && op->st != HFSB_DENIED &&
        op->st != HFSB_NOMEM)
        op->st = HFSB_OK;
    hfsb_buf_append(&op->json, HFSB_LIT("{\"path\":"));
    hfsbi_json_put_quoted(&op->json, hfsb_buf_str(&op->given));
    hfsb_buf_printf(&op->json, ",\"exists\":%s}", found ? "true" : "false");
}

static void hfsbi_kube_exists(void *user, hfsb_request *request) {
    hfsbi_kube_op *op =
        hfsbi_kube_op_new((hfsbi_kube *)user, request, "exists");
    if (op)
        hfsbi_kube_op_run(op, request, hfsbi_kube_exists_run,
                          hfsbi_kube_op_reply);
}

static void hfsbi_kube_remove_run(void *user) {
    hfsbi_kube_op    *op = (hfsbi_kube_op *)user;
    hfsbi_remove_opts opts = HFSB_INIT;
    opts.tree = op->tree;
    op->st = hfsbi_path_remove_all(op->k->root, hfsb_buf_str(&op->path), &opts,
                                   NULL, &op->err);
}

static void hfsbi_kube_remove(void *user, hfsb_request *request) {
    hfsb_buf       text = HFSB_INIT;
    hfsbi_kube_op *op =
        hfsbi_kube_op_new((hfsbi_kube *)user, request, "remove");
    if (!op) return;
    text.alloc = op->k->d.alloc;
    op->tree =
        hfsb_request_query(request, "recursive", &text, NULL) == HFSB_OK &&
        hfsb_str_equal(hfsb_buf_str(&text), HFSB_LIT("true"));
    hfsb_buf_free(&text);
    hfsbi_kube_op_run(op, request, hfsbi_kube_remove_run, hfsbi_kube_op_reply);
}

/* ---- downloads ---- */

static bool hfsbi_kube_put_name(void *user, hfsb_request *request, int status,
                                const hfsb_file_info *info) {
    hfsbi_kube_op *op = (hfsbi_kube_op *)user;
    hfsb_str       name = hfsb_buf_str(&op->given);
    hfsb_buf       value = HFSB_INIT;
    size_t         i;
    bool           ok;
    (void)status, (void)info;
    if (op->v1) return true;
    for (i = name.len; i && name.ptr[i - 1] != '/';) i--;
    name = hfsb_str_slice(name, i, name.len);
    value.alloc = op->k->d.alloc;
    hfsb_buf_append(&value, HFSB_LIT("attachment; filename*=utf-8''"));
    for (i = 0; i < name.len; i++) {
        unsigned char c = (unsigned char)name.ptr[i];
        if (hfsbi_is_digit((char)c) || hfsbi_is_alpha((char)c) || c == '.' ||
            c == '-' || c == '_')
            hfsb_buf_append_byte(&value, (char)c);
        else hfsb_buf_printf(&value, "%%%02X", c);
    }
    ok = value.status == HFSB_OK &&
         hfsb_reply_field(request, "Content-Disposition",
                          hfsb_buf_str(&value)) == HFSB_OK;
    hfsb_buf_free(&value);
    return ok;
}

static void hfsbi_kube_no_file(void *user, hfsb_request *request, int status,
                               const hfsb_err *err) {
    hfsbi_kube_op *op = (hfsbi_kube_op *)user;
    if (op->v1 && err->code == HFSB_IS_DIR) {
        hfsbi_kube_list(op->k, request);
    } else if (!op->v1 &&
               (err->code == HFSB_IS_DIR || err->code == HFSB_NOT_FOUND ||
                err->code == HFSB_NOT_REGULAR)) {
        hfsb_reply_error(request, 404, "File not found");
    } else {
        hfsbi_kube_refuse_file(request, status, err);
    }
}

static void hfsbi_kube_release(void *user) {
    hfsbi_kube_op_free((hfsbi_kube_op *)user);
}

static void hfsbi_kube_get(void *user, hfsb_request *request) {
    hfsbi_fetch_opts opts = HFSB_INIT;
    hfsbi_kube_op   *op =
        hfsbi_kube_op_new((hfsbi_kube *)user, request, "download");
    if (!op) return;
    opts.tools = op->k->d.tools;
    opts.root = op->k->root;
    opts.path = hfsb_buf_str(&op->path);
    opts.fields = hfsbi_kube_put_name;
    opts.refuse = hfsbi_kube_no_file;
    opts.release = hfsbi_kube_release;
    opts.user = op;
    hfsbi_fetch_start(request, &opts);
}

/* ---- uploads ---- */

/* In a pool thread: the part "file" is the file, others are not. Its name is
   the path, unless that is known. */
static hfsb_status hfsbi_kube_part(void *user, const hfsbi_multipart *part,
                                   hfsb_buf *path, int *status,
                                   hfsb_err *err) {
    hfsbi_kube_op *op = (hfsbi_kube_op *)user;
    hfsb_status    st = HFSB_OK;
    if (!hfsb_str_equal(part->name, HFSB_LIT("file"))) return HFSB_OK;
    *status = 400;
    if (op->has_file)
        return hfsbi_fail(err, HFSB_ARG, 0, "The body has two files.");
    op->has_file = true;
    if (!op->v1 && !part->filename.len)
        return hfsbi_fail(err, HFSB_ARG, 0, "The file has no name.");
    *status = 0;
    if (!op->v1) st = hfsbi_kube_op_set_path(op, part->filename);
    if (st == HFSB_OK) st = hfsb_buf_append(path, hfsb_buf_str(&op->path));
    return st == HFSB_OK ? st : hfsbi_fail_status(err, st, "Upload");
}

static void hfsbi_kube_reply_uploaded(hfsbi_kube_op *op,
                                      hfsb_request  *request) {
    hfsb_buf text = HFSB_INIT;
    text.alloc = op->k->d.alloc;
    hfsb_buf_append(&text, HFSB_LIT("File '"));
    hfsb_buf_append(&text, hfsb_buf_str(&op->given));
    hfsb_buf_append(&text, HFSB_LIT("' uploaded successfully."));
    hfsb_buf_append(&op->json, HFSB_LIT("{\"message\":"));
    hfsbi_json_put_quoted(&op->json, hfsb_buf_str(&text));
    hfsb_buf_append_byte(&op->json, '}');
    if (op->json.status == HFSB_OK && text.status == HFSB_OK)
        hfsbi_reply_take(request, 200, "application/json", &op->json);
    else
        hfsb_reply(request, 200, "application/json",
                   HFSB_LIT("{\"message\":\"File uploaded successfully.\"}"));
    hfsb_buf_free(&text);
}

static void hfsbi_kube_uploaded(void *user, hfsb_request *request,
                                const hfsbi_upload_end *end) {
    hfsbi_kube_op *op = (hfsbi_kube_op *)user;
    if (end->status >= 400)
        hfsbi_kube_refuse_file(request, end->status, end->err);
    else if (end->status && end->file_count == 0)
        hfsb_reply_error(request, op->v1 ? 400 : 422,
                         "The body has no part \"file\".");
    else if (end->status && op->v1) hfsb_reply(request, 204, "", HFSB_LIT(""));
    else if (end->status) hfsbi_kube_reply_uploaded(op, request);
    hfsbi_kube_op_free(op);
}

/* Reads ?mode=0644; false after a reply. */
static bool hfsbi_kube_read_mode(hfsb_request *request, unsigned *mode) {
    hfsb_buf    text = HFSB_INIT;
    hfsb_status st;
    size_t      i;
    bool        good = true;
    text.alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    st = hfsb_request_query(request, "mode", &text, NULL);
    if (st == HFSB_OK) {
        good = text.len == 4 && text.ptr[0] == '0';
        for (i = 1; good && i < 4; i++) {
            good = text.ptr[i] >= '0' && text.ptr[i] <= '7';
            *mode = *mode * 8 + (unsigned)(text.ptr[i] - '0');
        }
        if (*mode == 0) good = false; /* nobody could read it */
    }
    hfsb_buf_free(&text);
    if (st == HFSB_NOMEM) hfsb_reply_error(request, 503, "Out of memory.");
    else if (!good || (st != HFSB_OK && st != HFSB_NOT_FOUND))
        hfsb_reply_error(request, 400,
                         "mode must be 4 octal digits that begin "
                         "with 0, as in 0644.");
    else return true;
    return false;
}

static void hfsbi_kube_put(void *user, hfsb_request *request) {
    hfsb_str type =
        hfsb_http_field_find(hfsb_request_head(request), "Content-Type");
    hfsbi_upload_opts opts = HFSB_INIT;
    hfsbi_kube_op    *op;
    if (!hfsbi_kube_read_mode(request, &opts.write.mode)) return;
    op = hfsbi_kube_op_new((hfsbi_kube *)user, request, "upload");
    if (!op) return;
    type = hfsb_str_slice(type, 0, sizeof "multipart/form-data" - 1);
    if (!op->v1 || hfsbi_http_is(type, "multipart/form-data"))
        opts.part = hfsbi_kube_part;
    opts.tools = op->k->d.tools;
    opts.root = op->k->root;
    opts.path = hfsb_buf_str(&op->path);
    opts.max_parts = 16;
    opts.no_sha256 = true;
    opts.done = hfsbi_kube_uploaded;
    opts.user = op;
    hfsbi_upload_start(request, &opts);
}

/* ---- health ---- */

static void hfsbi_kube_health(void *user, hfsb_request *request) {
    const hfsbi_kube *k = (const hfsbi_kube *)user;
    char              text[96];
    if (hfsbi_server_is_stopping(k->d.server)) {
        hfsb_reply_error(request, 503, "The server is stopping.");
        return;
    }
    (void)snprintf(text, sizeof text,
                   "{\"status\":\"ok\",\"uptime_seconds\":%lld}",
                   (hfsb_clock_ms() - k->began) / 1000);
    hfsb_reply(request, 200, "application/json",
               hfsbi_kube_is_v1(request)
                   ? hfsb_cstr(text)
                   : HFSB_LIT("{\"status\":\"ok\",\"message\":\"Sandbox "
                              "Runtime is active.\"}"));
}

/* ---- opening ---- */

static bool hfsbi_kube_trusts(hfsbi_face *face, hfsb_request *request) {
    return face->guard == HFSBI_FACE_NAMES ||
           hfsbi_request_is_trusted(request);
}

static const hfsbi_dialect_route hfsbi_kube_routes[] = {
    {"GET", "/", hfsbi_kube_health, true, NULL, NULL},
    {"POST", "/execute", hfsbi_kube_execute, false, NULL, NULL},
    {"POST", "/upload", hfsbi_upload_finish, false, hfsbi_kube_put,
     hfsbi_upload_body},
    {"GET", "/download/**", hfsbi_kube_get, false, NULL, NULL},
    {"GET", "/list/**", hfsbi_kube_list, false, NULL, NULL},
    {"GET", "/exists/**", hfsbi_kube_exists, false, NULL, NULL},
    {"GET", "/v1/files/**", hfsbi_kube_get, false, NULL, NULL},
    {"PUT", "/v1/files/**", hfsbi_upload_finish, false, hfsbi_kube_put,
     hfsbi_upload_body},
    {"DELETE", "/v1/files/**", hfsbi_kube_remove, false, NULL, NULL},
    {"GET", "/v1/health", hfsbi_kube_health, true, NULL, NULL},
    {"GET", "/v1/metadata", hfsbi_kube_metadata, false, NULL, NULL},
    {NULL, NULL, NULL, false, NULL, NULL}};

/* The value of a variable of the commands; NULL: it is not set. */
static const char *hfsbi_kube_env(const hfsb_tools *tools, const char *name) {
    size_t i;
    for (i = 0; i < tools->env.count; i++) {
        hfsb_str is = hfsbi_env_name(tools->env.list[i]);
        if (hfsb_str_equal(is, hfsb_cstr(name)) && tools->env.list[i][is.len])
            return tools->env.list[i] + is.len + 1;
    }
    return NULL;
}

/* Without a root of the server the working directory is the root. */
static hfsb_status hfsbi_kube_open_root(hfsbi_kube *k, hfsb_err *err) {
    const hfsb_root *place = k->d.tools->place;
    hfsb_root_opts   opts = HFSB_INIT;
    hfsb_status      st;
    k->root = place;
    if (hfsb_root_path(place).len) return HFSB_OK;
    if (hfsbi_root_has_deny(place))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "agent-sandbox with a deny list needs a root.");
    opts.root = hfsb_root_work_dir(place);
    if (!opts.root.len) opts.root = HFSB_LIT(".");
    opts.alloc = k->d.alloc;
    st = hfsb_root_open(&opts, &k->own, err);
    k->root = k->own;
    return st;
}

static bool hfsbi_kube_is_loopback(const char *host) {
    return !host || !*host || strcmp(host, "localhost") == 0 ||
           strcmp(host, "::1") == 0 || strncmp(host, "127.", 4) == 0;
}

static hfsb_status hfsbi_kube_open(hfsbi_dialect           *d,
                                   const hfsb_dialect_opts *opts,
                                   hfsb_err                *err) {
    hfsbi_kube *k = (hfsbi_kube *)(void *)d;
    const char *timeout =
        hfsbi_kube_env(d->tools, "SANDBOX_EXEC_TIMEOUT_SECONDS");
    hfsb_status st;
    if (d->has_token)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "agent-sandbox has no token of its own: its clients "
                          "send that of the server, or none.");
    k->began = hfsb_clock_ms();
    for (; timeout && hfsbi_is_digit(*timeout) && k->timeout < 1e6; timeout++)
        k->timeout = k->timeout * 10 + (*timeout - '0');
    if (timeout && *timeout && !hfsbi_is_digit(*timeout))
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "SANDBOX_EXEC_TIMEOUT_SECONDS must be a number of "
                          "seconds.");
    if (!(k->timeout > 0)) k->timeout = 300;
    if (k->timeout > d->tools->limits.max_timeout)
        k->timeout = d->tools->limits.max_timeout;
    d->face.guard = opts->own_port && hfsbi_kube_is_loopback(opts->host) &&
                            !hfsbi_server_takes_token(d->server)
                        ? HFSBI_FACE_NAMES
                        : hfsbi_dialect_guard(d);
    d->face.trusts = hfsbi_kube_trusts;
    d->face.refuse = hfsbi_kube_refuse;
    st = hfsbi_kube_open_root(k, err);
    return st == HFSB_OK ? hfsbi_dialect_add(d, hfsbi_kube_routes, err) : st;
}

static void hfsbi_kube_close(hfsbi_dialect *d) {
    hfsb_root_close(((hfsbi_kube *)(void *)d)->own);
}

static const hfsbi_dialect_kind hfsbi_kube_kind = {
    "agent-sandbox", sizeof(hfsbi_kube), hfsbi_kube_open, hfsbi_kube_close};

HFSBI_FN const hfsbi_dialect_kind *hfsbi_dialect_agent_sandbox(void) {
    return &hfsbi_kube_kind;
}
