/* server_files.c - /api/files: what its directions share. Depends on: file,
   http, server_http. */
#include "server_files.h"

/* ---- refusals ---- */

/* {"type","loc","msg","input"} as FastAPI's clients know it. */
HFSBI_FN void hfsbi_files_bad_key(hfsb_request *request, const char *key,
                                  const char *type, hfsb_str input,
                                  const char *sentence) {
    hfsb_buf         detail = HFSB_INIT;
    hfsb_json_writer w;
    detail.alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    hfsb_json_writer_init(&w, &detail, NULL);
    hfsb_json_put_array(&w);
    hfsb_json_put_object(&w);
    hfsbi_put_member_str(&w, "type", hfsb_cstr(type));
    hfsb_json_put_key(&w, HFSB_LIT("loc"));
    hfsb_json_put_array(&w);
    hfsb_json_put_str(&w, HFSB_LIT("query"));
    hfsb_json_put_str(&w, hfsb_cstr(key));
    hfsb_json_put_end(&w);
    hfsbi_put_member_str(&w, "msg",
                         input.ptr ? hfsb_cstr(sentence)
                                   : HFSB_LIT("Field required"));
    hfsb_json_put_key(&w, HFSB_LIT("input"));
    if (input.ptr) hfsb_json_put_str(&w, input);
    else hfsb_json_put_null(&w);
    hfsb_json_put_end(&w);
    hfsb_json_put_end(&w);
    if (hfsb_json_writer_finish(&w, NULL) == HFSB_OK)
        hfsbi_reply_detail(request, 422, hfsb_buf_str(&detail),
                           hfsb_cstr(sentence));
    else hfsb_reply_error(request, 503, "Out of memory.");
    hfsb_buf_free(&detail);
}

static int hfsbi_files_http(hfsb_status st) {
    switch (st) {
    case HFSB_NOT_FOUND: return 404;
    case HFSB_ARG:
    case HFSB_REFUSED: return 400;
    case HFSB_STALE: return 412;
    case HFSB_DENIED:
    case HFSB_LIMIT: return 403;
    case HFSB_FULL: return 507;
    case HFSB_BUSY:
    case HFSB_NOMEM: return 503;
    default: return 500;
    }
}

/* FILE refuses what is outside the root (403), what is no regular file (400)
   and what is not as the conditions want it (412). */
HFSBI_FN void hfsbi_file_job_failed(hfsbi_file_job *job) {
    hfsb_file_info info;
    hfsb_status    st;
    job->http = hfsbi_files_http(job->err.code);
    if (job->err.code != HFSB_REFUSED) return;
    st = hfsb_file_stat(job->files->place, hfsb_buf_str(&job->path), &info,
                        NULL);
    if (st == HFSB_REFUSED) job->http = 403;
    else if ((job->match.ptr || job->none_match.ptr) &&
             (st != HFSB_OK || info.type == HFSB_FILE_REGULAR))
        job->http = 412;
}

/* ---- jobs ---- */

/* All fields of that name as one list; false without memory. */
static bool hfsbi_field_join(const hfsb_http_head *head, const char *name,
                             hfsb_buf *out) {
    size_t i;
    bool   ok = true;
    for (i = 0; ok && i < head->field_count; i++) {
        if (!hfsb_http_same(head->fields[i].name, hfsb_cstr(name))) continue;
        if (out->ptr) ok = hfsb_buf_append_byte(out, ',') == HFSB_OK;
        ok = ok && hfsb_buf_append(out, head->fields[i].value) == HFSB_OK;
    }
    return ok;
}

/* False when it has replied. */
static bool hfsbi_file_job_fill(hfsbi_file_job *job) {
    hfsb_request         *request = job->request;
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsb_str              none = HFSB_INIT;
    hfsb_status           st =
        hfsb_request_query(request, "path", &job->path, &job->err);
    if (st == HFSB_NOT_FOUND || (st == HFSB_OK && job->path.len == 0))
        hfsbi_files_bad_key(request, "path", "missing", none,
                            "path is required: /api/files?path=...");
    else if (st == HFSB_SYNTAX)
        hfsb_reply_error(request, 400, "%s", job->err.msg);
    else if (st != HFSB_OK ||
             !hfsbi_field_join(head, "If-Match", &job->match) ||
             !hfsbi_field_join(head, "If-None-Match", &job->none_match))
        hfsb_reply_error(request, 503, "Out of memory.");
    else return true;
    return false;
}

HFSBI_FN hfsbi_file_job *hfsbi_file_job_open(hfsbi_files  *files,
                                             hfsb_request *request,
                                             size_t size, hfsb_route_fn gone) {
    hfsbi_file_job *job =
        (hfsbi_file_job *)hfsbi_array(&files->alloc, size, 1);
    if (!job) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return NULL;
    }
    memset(job, 0, size);
    job->files = files;
    job->request = request;
    job->size = size;
    job->path.alloc = job->match.alloc = files->alloc;
    job->none_match.alloc = files->alloc;
    files->pending++;
    if (!hfsbi_file_job_fill(job)) {
        hfsbi_file_job_free(job);
        return NULL;
    }
    hfsb_request_set(request, job);
    hfsb_request_on_gone(request, gone, job);
    return job;
}

HFSBI_FN void hfsbi_file_job_free(hfsbi_file_job *job) {
    hfsbi_files *files = job->files;
    hfsb_buf_free(&job->path);
    hfsb_buf_free(&job->match);
    hfsb_buf_free(&job->none_match);
    hfsbi_array_free(&files->alloc, job, job->size, 1);
    files->pending--;
}

HFSBI_FN hfsb_request *hfsbi_file_job_reply(hfsbi_file_job *job) {
    hfsb_request *request = job->request;
    job->request = NULL;
    hfsb_request_set(request, NULL);
    hfsb_request_on_gone(request, NULL, NULL);
    return request;
}

HFSBI_FN void hfsbi_file_job_refuse(hfsbi_file_job *job) {
    hfsb_request *request = hfsbi_file_job_reply(job);
    hfsb_reply_error(request, job->http, "%s",
                     job->err.msg[0] ? job->err.msg
                                     : hfsb_http_reason(job->http));
}

/* ---- conditions ---- */

/* What says that a file is another one, or another version of it. A rename
   into its place changes the inode, a change in place the time. */
HFSBI_FN void hfsbi_file_etag(const hfsb_file_info *info,
                              char                  etag[HFSBI_ETAG]) {
    (void)snprintf(etag, HFSBI_ETAG, "\"%llx-%llx-%llx-%llx.%lx\"",
                   info->device, info->inode, info->size,
                   (unsigned long long)info->changed,
                   (unsigned long)info->changed_nanos);
}

HFSBI_FN bool hfsbi_etag_listed(hfsb_str list, const char *etag, bool weak) {
    const hfsb_str tag = hfsb_cstr(etag);
    list = hfsbi_trim(list);
    if (hfsb_str_equal(list, HFSB_LIT("*"))) return true;
    while (list.len) {
        bool   is_weak = hfsb_str_starts(list, HFSB_LIT("W/"));
        size_t end;
        if (list.ptr[0] == ',' || list.ptr[0] == ' ' || list.ptr[0] == '\t') {
            list = hfsb_str_slice(list, 1, list.len);
            continue;
        }
        if (is_weak) list = hfsb_str_slice(list, 2, list.len);
        if (!list.len || list.ptr[0] != '"') return false;
        end = hfsb_str_find_byte(hfsb_str_slice(list, 1, list.len), '"');
        if (end == HFSB_NPOS) return false;
        if ((weak || !is_weak) &&
            hfsb_str_equal(hfsb_str_slice(list, 0, end + 2), tag))
            return true;
        list = hfsb_str_slice(list, end + 2, list.len);
    }
    return false;
}

HFSBI_FN bool hfsbi_file_job_may(hfsbi_file_job       *job,
                                 const hfsb_file_info *info, bool change) {
    char etag[HFSBI_ETAG];
    if (info) hfsbi_file_etag(info, etag);
    if (job->match.ptr &&
        (!info || !hfsbi_etag_listed(hfsb_buf_str(&job->match), etag, false)))
        hfsbi_fail(&job->err, HFSB_REFUSED, 0,
                   info ? "The file is not the one that If-Match names: it "
                          "has changed. Read it again."
                        : "There is no file, and If-Match asks for one.");
    else if (change && info && job->none_match.ptr &&
             hfsbi_etag_listed(hfsb_buf_str(&job->none_match), etag, true))
        hfsbi_fail(&job->err, HFSB_REFUSED, 0,
                   "The file exists already, and If-None-Match does not want "
                   "that.");
    else return true;
    job->http = 412;
    return false;
}

/* ---- ranges ---- */

/* Takes digits off *s; what is too large for the type is its largest value.
   False when there are none. */
static bool hfsbi_range_number(hfsb_str *s, unsigned long long *out) {
    const unsigned long long max = ~0ull;
    size_t                   i = 0;
    *out = 0;
    for (; i < s->len && s->ptr[i] >= '0' && s->ptr[i] <= '9'; i++) {
        unsigned digit = (unsigned)(s->ptr[i] - '0');
        *out = *out > (max - digit) / 10 ? max : *out * 10 + digit;
    }
    *s = hfsb_str_slice(*s, i, s->len);
    return i > 0;
}

HFSBI_FN hfsbi_range hfsbi_range_parse(hfsb_str text, unsigned long long size,
                                       unsigned long long *first,
                                       unsigned long long *length) {
    unsigned long long last;
    bool               has_first, has_last;
    if (text.len < 6 ||
        !hfsb_http_same(hfsb_str_slice(text, 0, 6), HFSB_LIT("bytes=")))
        return HFSBI_RANGE_NONE;
    text = hfsbi_trim(hfsb_str_slice(text, 6, text.len));
    has_first = hfsbi_range_number(&text, first);
    if (!text.len || text.ptr[0] != '-') return HFSBI_RANGE_NONE;
    text = hfsb_str_slice(text, 1, text.len);
    has_last = hfsbi_range_number(&text, &last);
    if (text.len || (!has_first && !has_last)) return HFSBI_RANGE_NONE;
    if (!has_first) { /* the last so many */
        if (last == 0 || size == 0) return HFSBI_RANGE_BEYOND;
        *length = last < size ? last : size;
        *first = size - *length;
        return HFSBI_RANGE_PART;
    }
    if (has_last && last < *first) return HFSBI_RANGE_NONE;
    if (*first >= size) return HFSBI_RANGE_BEYOND;
    if (!has_last || last >= size) last = size - 1;
    *length = last - *first + 1;
    return HFSBI_RANGE_PART;
}

/* ---- the endpoint ---- */

static bool hfsbi_files_busy(hfsbi_server_part *part) {
    return ((hfsbi_files *)(void *)part)->pending > 0;
}

/* The server has waited for all work in threads. */
static void hfsbi_files_free(hfsbi_server_part *part) {
    hfsbi_files *files = (hfsbi_files *)(void *)part;
    hfsb_alloc   alloc = files->alloc;
    HFSB_ASSERT(files->pending == 0);
    hfsbi_array_free(&alloc, files, 1, sizeof *files);
}

static hfsb_status hfsbi_files_routes(hfsbi_files *files, hfsb_err *err) {
    hfsb_route  route = HFSB_INIT;
    hfsb_status st;
    route.path = "/api/files";
    route.user = files;
    route.max_body = 4096; /* that no one looks at */
    route.method = "GET";
    route.fn = hfsbi_download;
    st = hfsb_server_add(files->server, &route, err);
    if (st != HFSB_OK) return st;
    route.method = "DELETE";
    route.fn = hfsbi_remove;
    st = hfsb_server_add(files->server, &route, err);
    if (st != HFSB_OK) return st;
    route.max_body = 0;
    route.method = "PUT";
    route.begin = hfsbi_upload_begin;
    route.body = hfsbi_upload_body;
    route.fn = hfsbi_upload_end;
    return hfsb_server_add(files->server, &route, err);
}

HFSBI_FN hfsb_status hfsbi_files_add(hfsb_server *server, hfsb_tools *tools,
                                     hfsb_err *err) {
    const hfsb_alloc *alloc = hfsbi_server_alloc(server);
    hfsbi_files *files = (hfsbi_files *)hfsbi_array(alloc, 1, sizeof *files);
    if (!files) return hfsbi_fail_status(err, HFSB_NOMEM, "Endpoint of files");
    memset(files, 0, sizeof *files);
    files->part.busy = hfsbi_files_busy;
    files->part.free = hfsbi_files_free;
    files->server = server;
    files->loop = hfsbi_server_loop(server);
    files->place = tools->place;
    files->alloc = *alloc;
    /* routes that were added before one failed need it too */
    hfsbi_server_part_add(server, &files->part);
    return hfsbi_files_routes(files, err);
}
