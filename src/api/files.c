/* files.c - /api/files: files of any size as bytes, by GET, PUT and DELETE.

   Each request is an operation (hfsbi_file_op), which alternates between the
   loop and a pool thread by hfsbi_request_work(): disk work is done in the
   thread, replies are sent in the loop.

     GET     thread: open, decide   -> loop: reply -> (thread: close) -> free
     DELETE  thread: check, remove  -> loop: reply -> free
     PUT     loop: fill a block     -> thread: write it -> ... -> commit
                                    -> loop: reply -> free

   A thread never touches the request, and the loop never touches an operation
   that a thread works on, except for the block that the loop fills. A PUT
   replaces the file only after the whole body has arrived. */
#include "api_private.h"

/* The work for one request; the first member of hfsbi_fetch and
   hfsbi_upload. */
typedef struct hfsbi_file_op {
    const hfsb_root  *root;
    const hfsb_tools *tools; /* whose journal records it */
    long long         began; /* hfsb_clock_ms() */
    size_t            size;  /* of the whole struct, in bytes */
    hfsb_buf          path;
    hfsb_buf          match, none_match; /* If-Match, If-None-Match; ptr NULL:
                                           none */
    int               http; /* status of the reply; 0: not known yet */
    hfsb_err          err;  /* the text of a reply from 400 on */
} hfsbi_file_op;

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

static void hfsbi_file_op_reply_error(const hfsbi_file_op *op,
                                      hfsb_request        *request) {
    hfsb_reply_error(request, op->http, "%s",
                     op->err.msg[0] ? op->err.msg
                                    : hfsb_http_reason(op->http));
}

/* Replies with the result as JSON and frees it. st: HFSB_NOMEM if the result
   is incomplete; then the reply says what was done to the file. */
static void hfsbi_file_op_reply_result(const hfsbi_file_op *op,
                                       hfsb_request        *request,
                                       hfsb_tool_result    *result,
                                       hfsb_status st, const char *what) {
    hfsb_buf body = HFSB_INIT;
    body.alloc = op->path.alloc;
    if (st == HFSB_OK) st = hfsb_tool_result_write(result, &body, NULL);
    if (st == HFSB_OK)
        hfsbi_reply_take(request, op->http, "application/json", &body);
    else
        hfsb_reply_error(request, 503, "Out of memory. The file is %s.", what);
    hfsb_buf_free(&body);
    hfsb_tool_result_free(result);
}

/* ---- operations ---- */

/* The HTTP status for the status of a failed file function. */
static int hfsbi_files_http_status(hfsb_status st) {
    switch (st) {
    case HFSB_NOT_FOUND: return 404;
    case HFSB_ARG:
    case HFSB_REFUSED:
    case HFSB_NOT_REGULAR:
    case HFSB_IS_DIR: return 400;
    case HFSB_EXISTS:
    case HFSB_STALE: return 412;
    case HFSB_OUTSIDE:
    case HFSB_DENIED:
    case HFSB_LIMIT: return 403;
    case HFSB_FULL: return 507;
    case HFSB_BUSY:
    case HFSB_NOMEM: return 503;
    default: return 500;
    }
}

static void hfsbi_file_op_set_status(hfsbi_file_op *op) {
    op->http = hfsbi_files_http_status(op->err.code);
}

/* Appends all fields of that name as one list. False without memory. */
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

/* Copies the path and the conditions. False after an error reply. */
static bool hfsbi_file_op_read_request(hfsbi_file_op *op,
                                       hfsb_request  *request) {
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsb_status st = hfsb_request_query(request, "path", &op->path, &op->err);
    if (st == HFSB_NOT_FOUND || (st == HFSB_OK && op->path.len == 0))
        hfsbi_files_refuse_key(request, "path", "missing", "Field required",
                               NULL, "path is required: /api/files?path=...");
    else if (st == HFSB_SYNTAX)
        hfsb_reply_error(request, 400, "%s", op->err.msg);
    else if (st != HFSB_OK ||
             !hfsbi_field_join(head, "If-Match", &op->match) ||
             !hfsbi_field_join(head, "If-None-Match", &op->none_match))
        hfsb_reply_error(request, 503, "Out of memory.");
    else return true;
    return false;
}

/* Adds the event of an operation whose outcome is known. */
static void hfsbi_file_op_report(const hfsbi_file_op *op, const char *tool,
                                 unsigned long long bytes) {
    const char *error = "";
    if (op->http >= 400)
        error = op->err.msg[0] ? op->err.msg : hfsb_http_reason(op->http);
    hfsbi_api_report(op->tools, tool, hfsb_buf_str(&op->path), "",
                     hfsb_cstr(error), op->began, bytes);
}

static void hfsbi_file_op_free(hfsbi_file_op *op) {
    hfsb_alloc alloc = op->path.alloc;
    hfsb_buf_free(&op->path);
    hfsb_buf_free(&op->match);
    hfsb_buf_free(&op->none_match);
    hfsbi_array_free(&alloc, op, op->size, 1);
}

/* Returns a new operation of `size` bytes with the path and the conditions of
   the request; the bytes after its first member are zero. NULL after an error
   reply. */
static hfsbi_file_op *hfsbi_file_op_open(const hfsb_tools *tools,
                                         hfsb_request *request, size_t size) {
    const hfsb_alloc *alloc = hfsbi_server_alloc(hfsb_request_server(request));
    hfsbi_file_op    *op = (hfsbi_file_op *)hfsbi_array(alloc, size, 1);
    if (!op) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return NULL;
    }
    memset(op, 0, size);
    op->root = tools->place;
    op->tools = tools;
    op->began = hfsb_clock_ms();
    op->size = size;
    op->path.alloc = op->match.alloc = op->none_match.alloc = *alloc;
    if (hfsbi_file_op_read_request(op, request)) return op;
    hfsbi_file_op_free(op);
    return NULL;
}

/* ---- conditions ---- */

enum { HFSBI_ETAG = 96 }; /* bytes */

/* Writes the strong validator of a version of a file, with its quotes and NUL.
   A file that is replaced by a rename has another inode; one that is modified
   in place has another time of change. */
static void hfsbi_file_etag(const hfsb_file_info *info,
                            char                  etag[HFSBI_ETAG]) {
    (void)snprintf(etag, HFSBI_ETAG, "\"%llx-%llx-%llx-%llx.%lx\"",
                   info->device, info->inode, info->size,
                   (unsigned long long)info->changed,
                   (unsigned long)info->changed_nanos);
}

/* True if the list of If-Match or If-None-Match contains the tag, or is "*".
   weak: tags marked as weak match too. */
static bool hfsbi_etag_listed(hfsb_str list, const char *etag, bool weak) {
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

static bool hfsbi_etag_is_any(const hfsb_buf *list) {
    return hfsb_str_equal(hfsbi_trim(hfsb_buf_str(list)), HFSB_LIT("*"));
}

/* Checks If-Match, and for a change If-None-Match. info NULL: the file does
   not exist. False if a condition fails: op->http is 412, op->err has the
   reason. */
static bool hfsbi_file_op_check(hfsbi_file_op *op, const hfsb_file_info *info,
                                bool change) {
    char etag[HFSBI_ETAG];
    if (info) hfsbi_file_etag(info, etag);
    if (op->match.ptr &&
        (!info || !hfsbi_etag_listed(hfsb_buf_str(&op->match), etag, false)))
        hfsbi_fail(&op->err, HFSB_REFUSED, 0,
                   info ? "The file is not the one that If-Match names: it "
                          "has changed. Read it again."
                        : "There is no file, and If-Match asks for one.");
    else if (change && info && op->none_match.ptr &&
             hfsbi_etag_listed(hfsb_buf_str(&op->none_match), etag, true))
        hfsbi_fail(&op->err, HFSB_REFUSED, 0,
                   "The file exists already, and If-None-Match does not want "
                   "that.");
    else return true;
    op->http = 412;
    return false;
}

/* ---- ranges ---- */

/* Removes the digits at the start of *s and parses them; a number too large
   for the type becomes its maximum. False if there are no digits. */
static bool hfsbi_range_number(hfsb_str *s, unsigned long long *out) {
    const unsigned long long max = ~0ull;
    size_t                   i = 0;
    *out = 0;
    for (; i < s->len && hfsbi_is_digit(s->ptr[i]); i++) {
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
    if (!has_first) { /* a suffix: the last bytes */
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

/* ---- GET and DELETE: in a pool thread ---- */

/* A GET or HEAD. */
typedef struct hfsbi_fetch {
    hfsbi_file_op      op;
    bool               ranges; /* GET: Range applies; HEAD ignores it */
    hfsb_buf           range, if_range, since; /* ptr NULL: none */
    int                fd;
    hfsb_file_info     info;
    hfsb_buf           content; /* of a file without a size */
    unsigned long long first, length;
} hfsbi_fetch;

/* True for a 304: by If-None-Match, or without it by If-Modified-Since, whose
   date must equal our Last-Modified. */
static bool hfsbi_fetch_unchanged(const hfsbi_fetch *f, const char *etag) {
    char date[HFSB_HTTP_DATE];
    if (f->op.none_match.ptr)
        return hfsbi_etag_listed(hfsb_buf_str(&f->op.none_match), etag, true);
    if (!f->since.ptr) return false;
    hfsb_http_date(f->info.changed, date);
    return hfsb_str_equal(hfsb_buf_str(&f->since), hfsb_cstr(date));
}

/* Sets the status of the reply for an open file, and first and length. */
static void hfsbi_fetch_decide(hfsbi_fetch *f) {
    char etag[HFSBI_ETAG];
    hfsbi_file_etag(&f->info, etag);
    if (!hfsbi_file_op_check(&f->op, &f->info, false)) return;
    f->op.http = 200;
    f->first = 0;
    f->length = f->info.size;
    if (hfsbi_fetch_unchanged(f, etag)) {
        f->op.http = 304;
        return;
    }
    if (!f->ranges || !f->range.ptr) return;
    /* If-Range names another version: send the whole file */
    if (f->if_range.ptr &&
        !hfsb_str_equal(hfsb_buf_str(&f->if_range), hfsb_cstr(etag)))
        return;
    switch (hfsbi_range_parse(hfsb_buf_str(&f->range), f->info.size, &f->first,
                              &f->length)) {
    case HFSBI_RANGE_PART: f->op.http = 206; break;
    case HFSBI_RANGE_BEYOND:
        f->op.http = 416;
        hfsbi_fail(&f->op.err, HFSB_ARG, 0,
                   "The range begins after the end of the file, which has "
                   "%llu bytes.",
                   f->info.size);
        break;
    case HFSBI_RANGE_NONE:
        f->first = 0;
        f->length = f->info.size;
        break;
    }
}

static void hfsbi_fetch_run(void *user) {
    hfsbi_fetch   *f = (hfsbi_fetch *)user;
    hfsbi_file_op *op = &f->op;
    hfsb_str       path = hfsb_buf_str(&op->path);
    hfsb_status    st;
    st = hfsb_file_open(op->root, path, &f->fd, &f->info, &op->err);
    if (st == HFSB_OK && f->info.size == 0) { /* empty, or in /proc */
        st = hfsb_file_read(op->root, path, HFSBI_SIZELESS_MAX, &f->content,
                            NULL, &op->err);
        /* some files of /proc, such as /proc/self/mem, cannot be read: that
           is not an error of the disk */
        if (st == HFSB_IO) op->http = 400;
    }
    if (st != HFSB_OK && !op->http) hfsbi_file_op_set_status(op);
    else if (f->content.len) op->http = 200;
    else if (st == HFSB_OK) hfsbi_fetch_decide(f);
    if ((op->http != 200 && op->http != 206) || f->content.len)
        hfsbi_close(&f->fd);
}

static void hfsbi_fetch_close(void *user) {
    hfsbi_close(&((hfsbi_fetch *)user)->fd);
}

static void hfsbi_remove_run(void *user) {
    hfsbi_file_op *op = (hfsbi_file_op *)user;
    hfsb_str       path = hfsb_buf_str(&op->path);
    hfsb_file_info info, *same = NULL;
    hfsb_status    st = HFSB_OK;
    if (op->match.ptr) {
        st = hfsb_file_stat(op->root, path, &info, &op->err);
        if (st == HFSB_NOT_FOUND) {
            (void)hfsbi_file_op_check(op, NULL, false);
            return;
        }
        if (st == HFSB_OK && !hfsbi_file_op_check(op, &info, false)) return;
        /* do not remove a file that a PUT has replaced since the stat */
        if (!hfsbi_etag_is_any(&op->match)) same = &info;
    }
    if (st == HFSB_OK)
        st = hfsbi_file_remove_if(op->root, path, NULL, same, &op->err);
    op->http = 200;
    if (st != HFSB_OK) hfsbi_file_op_set_status(op);
}

/* ---- GET and DELETE: in the loop ---- */

static void hfsbi_fetch_free(void *user, hfsb_request *request) {
    hfsbi_fetch *f = (hfsbi_fetch *)user;
    (void)request;
    hfsb_buf_free(&f->range);
    hfsb_buf_free(&f->if_range);
    hfsb_buf_free(&f->since);
    hfsb_buf_free(&f->content);
    hfsbi_file_op_free(&f->op);
}

/* Adds the fields that describe the file. False without memory. */
static bool hfsbi_fetch_put_fields(hfsbi_fetch *f, hfsb_request *request) {
    char text[HFSBI_ETAG];
    bool ok;
    (void)snprintf(text, sizeof text, "%04o", f->info.mode & 07777u);
    ok = hfsb_reply_field(request, "X-Hfsb-Mode", hfsb_cstr(text)) == HFSB_OK;
    /* the size of the whole file, for clients that receive no Content-Length:
       a proxy may send chunks instead, and end them early */
    (void)snprintf(text, sizeof text, "%llu",
                   f->content.len ? (unsigned long long)f->content.len
                                  : f->info.size);
    ok = ok &&
         hfsb_reply_field(request, "X-Hfsb-Size", hfsb_cstr(text)) == HFSB_OK;
    if (f->content.len) return ok; /* /proc reports no times of change */
    hfsbi_file_etag(&f->info, text);
    ok = ok && hfsb_reply_field(request, "ETag", hfsb_cstr(text)) == HFSB_OK;
    ok = ok && hfsb_reply_field(request, "Accept-Ranges", HFSB_LIT("bytes")) ==
                   HFSB_OK;
    hfsb_http_date(f->info.changed, text);
    ok = ok && hfsb_reply_field(request, "Last-Modified", hfsb_cstr(text)) ==
                   HFSB_OK;
    if (f->op.http == 206)
        (void)snprintf(text, sizeof text, "bytes %llu-%llu/%llu", f->first,
                       f->first + f->length - 1, f->info.size);
    if (f->op.http == 416)
        (void)snprintf(text, sizeof text, "bytes */%llu", f->info.size);
    if (f->op.http == 206 || f->op.http == 416)
        ok = ok && hfsb_reply_field(request, "Content-Range",
                                    hfsb_cstr(text)) == HFSB_OK;
    return ok;
}

static void hfsbi_fetch_reply(hfsbi_fetch *f, hfsb_request *request) {
    const char *type = "application/octet-stream";
    int         http = f->op.http;
    if ((http < 300 || http == 304 || http == 416) &&
        !hfsbi_fetch_put_fields(f, request)) {
        f->op.http = http = 503;
        hfsbi_fail_status(&f->op.err, HFSB_NOMEM, "Reply");
    }
    if (http >= 400) {
        hfsbi_file_op_reply_error(&f->op, request);
    } else if (http == 304) {
        hfsb_reply(request, http, "", hfsb_str_make("", 0));
    } else if (f->content.len) {
        hfsbi_reply_take(request, http, type, &f->content);
    } else {
        hfsb_reply_file(request, http, type, f->fd, f->first, f->length);
        f->fd = -1;
    }
}

static void hfsbi_fetch_done(void *user, hfsb_request *request) {
    hfsbi_fetch *f = (hfsbi_fetch *)user;
    hfsbi_file_op_report(&f->op, "download", f->length);
    if (!hfsbi_request_is_gone(request)) hfsbi_fetch_reply(f, request);
    /* closing a removed file may wait for the disk: use a thread */
    if (f->fd >= 0)
        hfsbi_request_work(request, false, hfsbi_fetch_close, hfsbi_fetch_free,
                           f);
    else hfsbi_fetch_free(f, request);
}

static void hfsbi_remove_done(void *user, hfsb_request *request) {
    hfsbi_file_op   *op = (hfsbi_file_op *)user;
    hfsb_tool_result result;
    hfsb_status      st;
    hfsbi_file_op_report(op, "remove", 0);
    if (op->http == 200) {
        hfsbi_result_init(&result, &op->path.alloc);
        st = hfsbi_result_ok(&result, "Removed %s", op->path.ptr);
        hfsbi_file_op_reply_result(op, request, &result, st, "removed");
    } else {
        hfsbi_file_op_reply_error(op, request);
    }
    hfsbi_file_op_free(op);
}

/* Copies a field; one that is repeated is ignored. False without memory. */
static bool hfsbi_fetch_read_field(const hfsb_http_head *head,
                                   const char *name, hfsb_buf *out) {
    if (hfsb_http_field_count(head, name) != 1) return true;
    return hfsb_buf_append(out, hfsb_http_field_find(head, name)) == HFSB_OK;
}

static void hfsbi_download(void *user, hfsb_request *request) {
    const hfsb_tools     *tools = (const hfsb_tools *)user;
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsbi_fetch          *f =
        (hfsbi_fetch *)(void *)hfsbi_file_op_open(tools, request, sizeof *f);
    if (!f) return;
    f->fd = -1;
    f->ranges = hfsb_str_equal(head->method, HFSB_LIT("GET"));
    f->range.alloc = f->if_range.alloc = f->op.path.alloc;
    f->since.alloc = f->content.alloc = f->op.path.alloc;
    if (hfsbi_fetch_read_field(head, "Range", &f->range) &&
        hfsbi_fetch_read_field(head, "If-Range", &f->if_range) &&
        hfsbi_fetch_read_field(head, "If-Modified-Since", &f->since)) {
        hfsbi_request_work(request, tools->walled, hfsbi_fetch_run,
                           hfsbi_fetch_done, f);
        return;
    }
    hfsb_reply_error(request, 503, "Out of memory.");
    hfsbi_fetch_free(f, request);
}

static void hfsbi_remove(void *user, hfsb_request *request) {
    const hfsb_tools *tools = (const hfsb_tools *)user;
    hfsbi_file_op    *op = hfsbi_file_op_open(tools, request, sizeof *op);
    if (op)
        hfsbi_request_work(request, tools->walled, hfsbi_remove_run,
                           hfsbi_remove_done, op);
}

/* ---- PUT: in a pool thread ---- */

/* The loop fills one block while a thread writes the other. While both are
   full, reading the body is paused. Bytes; one more piece may exceed it. */
enum { HFSBI_UPLOAD_BLOCK = 192 * 1024 };

/* A thread works in every state but FILL. What the client does meanwhile is
   kept in `input`, and leads to the next state once the thread is done:

     OPEN --+    +--> FILL     to collect more of the body
     FILL --+--> +--> WRITE    the block is full
     WRITE -+    +--> COMMIT   the body has ended
                 +--> DROP     the client is lost

   COMMIT, DROP, and a failure in any state are the end: the thread closes the
   writer, the loop replies and frees the upload. */
typedef enum hfsbi_upload_state {
    HFSBI_UPLOAD_OPEN,   /* checks the conditions, opens the writer */
    HFSBI_UPLOAD_FILL,   /* waits for the client */
    HFSBI_UPLOAD_WRITE,  /* writes a block */
    HFSBI_UPLOAD_COMMIT, /* writes the last block, replaces the file */
    HFSBI_UPLOAD_DROP    /* removes the temporary file */
} hfsbi_upload_state;

typedef enum hfsbi_upload_input {
    HFSBI_UPLOAD_MORE, /* the body is arriving */
    HFSBI_UPLOAD_ENDED,
    HFSBI_UPLOAD_LOST /* the client is gone, or got an error */
} hfsbi_upload_input;

/* A PUT. */
typedef struct hfsbi_upload {
    hfsbi_file_op op;
    /* used by the thread; by the loop once it is done */
    hfsb_file_writer *writer;
    hfsb_sha256       sha;
    hfsb_file_written written;
    unsigned          mode;
    /* set by the loop before the thread starts */
    hfsbi_upload_state state;
    unsigned           filling; /* index of the loop's block; the other one is
                                   the thread's */
    hfsb_buf           block[2];
    /* used by the loop */
    hfsbi_upload_input input;
} hfsbi_upload;

/* Checks the conditions and opens the writer. */
static hfsb_status hfsbi_upload_open(hfsbi_upload *u) {
    hfsbi_file_op       *op = &u->op;
    hfsb_str             path = hfsb_buf_str(&op->path);
    hfsb_file_write_opts opts = HFSB_INIT;
    hfsb_file_info       info;
    hfsb_status          st;
    opts.mode = u->mode;
    if (op->match.ptr || op->none_match.ptr) {
        st = hfsb_file_stat(op->root, path, &info, &op->err);
        if (st != HFSB_OK && st != HFSB_NOT_FOUND) return st;
        if (!hfsbi_file_op_check(op, st == HFSB_OK ? &info : NULL, true))
            return HFSB_REFUSED;
        /* the commit checks the conditions again */
        if (op->match.ptr && !hfsbi_etag_is_any(&op->match))
            opts.if_same = &info;
        opts.create = hfsbi_etag_is_any(&op->none_match);
    }
    hfsb_sha256_init(&u->sha);
    return hfsb_file_writer_open(op->root, path, &opts, &u->writer, &op->err);
}

/* Writes the thread's block, which is empty afterwards. */
static hfsb_status hfsbi_upload_write(hfsbi_upload *u) {
    hfsb_buf   *block = &u->block[!u->filling];
    hfsb_status st;
    if (!block->len) return HFSB_OK;
    hfsb_sha256_write(&u->sha, hfsb_buf_str(block));
    st = hfsb_file_writer_append(u->writer, hfsb_buf_str(block), &u->op.err);
    hfsb_buf_truncate(block, 0);
    return st;
}

static hfsb_status hfsbi_upload_commit(hfsbi_upload *u) {
    hfsb_status st = hfsbi_upload_write(u);
    if (st == HFSB_OK)
        st = hfsb_file_writer_commit(u->writer, &u->written, &u->op.err);
    if (st == HFSB_OK) u->op.http = u->written.created ? 201 : 200;
    return st;
}

static void hfsbi_upload_run(void *user) {
    hfsbi_upload *u = (hfsbi_upload *)user;
    hfsb_status   st = HFSB_OK;
    if (u->state == HFSBI_UPLOAD_OPEN) st = hfsbi_upload_open(u);
    else if (u->state == HFSBI_UPLOAD_WRITE) st = hfsbi_upload_write(u);
    else if (u->state == HFSBI_UPLOAD_COMMIT) st = hfsbi_upload_commit(u);
    if (st != HFSB_OK && !u->op.http) hfsbi_file_op_set_status(&u->op);
    if (u->op.http || u->state == HFSBI_UPLOAD_DROP)
        hfsb_file_writer_close(u->writer);
}

/* ---- PUT: in the loop ---- */

static void hfsbi_upload_reply(hfsbi_upload *u, hfsb_request *request) {
    char             hex[HFSB_SHA256_HEX], etag[HFSBI_ETAG];
    hfsb_tool_result result;
    hfsbi_build      fields;
    hfsb_status      st;
    if (u->op.http >= 300) {
        hfsbi_file_op_reply_error(&u->op, request);
        return;
    }
    hfsbi_sha256_finish_hex(&u->sha, hex);
    hfsbi_file_etag(&u->written.info, etag);
    hfsbi_result_init(&result, &u->op.path.alloc);
    hfsbi_build_init(&fields, &u->op.path.alloc);
    hfsbi_build_object(&fields, NULL);
    hfsbi_build_int(&fields, "bytes", (long long)u->written.bytes);
    hfsbi_build_bool(&fields, "created", u->written.created);
    hfsbi_build_bool(&fields, "in_place", u->written.in_place);
    hfsbi_build_str(&fields, "sha256", hfsb_cstr(hex));
    hfsbi_build_end(&fields);
    st = hfsbi_build_finish(&fields, &result.fields);
    if (st == HFSB_OK)
        st = hfsbi_result_ok(&result, "Wrote %llu bytes to %s",
                             u->written.bytes, u->op.path.ptr);
    if (st == HFSB_OK) st = hfsb_reply_field(request, "ETag", hfsb_cstr(etag));
    hfsbi_file_op_reply_result(&u->op, request, &result, st, "written");
}

static void hfsbi_upload_done(void *user, hfsb_request *request);

/* Gives the thread the block that the loop has filled. */
static void hfsbi_upload_work(hfsbi_upload *u, hfsb_request *request,
                              hfsbi_upload_state state) {
    u->state = state;
    u->filling = !u->filling;
    hfsbi_request_work(request, u->op.tools->walled, hfsbi_upload_run,
                       hfsbi_upload_done, u);
}

/* Enters the next state, unless a thread works. */
static void hfsbi_upload_step(hfsbi_upload *u, hfsb_request *request) {
    if (u->state != HFSBI_UPLOAD_FILL) return;
    if (u->input == HFSBI_UPLOAD_LOST)
        hfsbi_upload_work(u, request, HFSBI_UPLOAD_DROP);
    else if (u->input == HFSBI_UPLOAD_ENDED)
        hfsbi_upload_work(u, request, HFSBI_UPLOAD_COMMIT);
    else if (u->block[u->filling].len >= HFSBI_UPLOAD_BLOCK)
        hfsbi_upload_work(u, request, HFSBI_UPLOAD_WRITE);
}

static void hfsbi_upload_done(void *user, hfsb_request *request) {
    hfsbi_upload *u = (hfsbi_upload *)user;
    if (u->op.http) {
        hfsbi_file_op_report(&u->op, "upload", u->written.bytes);
        hfsbi_upload_reply(u, request);
    }
    if (u->op.http || u->state == HFSBI_UPLOAD_DROP) {
        hfsb_buf_free(&u->block[0]);
        hfsb_buf_free(&u->block[1]);
        hfsbi_file_op_free(&u->op);
        return;
    }
    u->state = HFSBI_UPLOAD_FILL;
    hfsbi_upload_step(u, request);
    hfsb_request_resume(request);
}

static void hfsbi_upload_on_gone(void *user, hfsb_request *request) {
    hfsbi_upload *u = (hfsbi_upload *)user;
    u->input = HFSBI_UPLOAD_LOST;
    hfsbi_upload_step(u, request);
}

/* Parses an octal number from 1 to 7777; 0 if it is invalid. */
static unsigned hfsbi_upload_parse_mode(hfsb_str text) {
    unsigned mode = 0;
    size_t   i;
    if (text.len > 5) return 0;
    for (i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '7') return 0;
        mode = mode * 8 + (unsigned)(text.ptr[i] - '0');
    }
    return mode <= 07777u ? mode : 0;
}

static void hfsbi_upload_refuse_mode(hfsb_request *request, hfsb_str text) {
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
static bool hfsbi_upload_read_options(hfsb_request *request, unsigned *mode) {
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsb_buf              text = HFSB_INIT;
    hfsb_err              err = HFSB_INIT;
    hfsb_status           st;
    bool                  good = false;
    text.alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    *mode = 0;
    st = hfsb_request_query(request, "mode", &text, &err);
    if (st == HFSB_OK) *mode = hfsbi_upload_parse_mode(hfsb_buf_str(&text));
    if (st == HFSB_NOMEM) hfsb_reply_error(request, 503, "Out of memory.");
    else if (st == HFSB_SYNTAX) hfsb_reply_error(request, 400, "%s", err.msg);
    else if (st == HFSB_OK && *mode == 0)
        hfsbi_upload_refuse_mode(request, hfsb_buf_str(&text));
    else if (hfsb_http_field_find(head, "Content-Range").ptr)
        hfsb_reply_error(request, 400,
                         "A file is written whole: Content-Range cannot be "
                         "used here.");
    else good = true;
    hfsb_buf_free(&text);
    return good;
}

/* Opens the writer before the body arrives. A client that sent "Expect:
   100-continue" receives a refusal instead of 100. */
static void hfsbi_upload_begin(void *user, hfsb_request *request) {
    const hfsb_tools *tools = (const hfsb_tools *)user;
    hfsbi_upload     *u;
    unsigned          mode;
    if (!hfsbi_upload_read_options(request, &mode)) return;
    u = (hfsbi_upload *)(void *)hfsbi_file_op_open(tools, request, sizeof *u);
    if (!u) return;
    u->mode = mode;
    u->block[0].alloc = u->block[1].alloc = u->op.path.alloc;
    hfsb_request_set(request, u);
    hfsb_request_on_gone(request, hfsbi_upload_on_gone, u);
    if (hfsb_request_head(request)->expect_continue)
        hfsb_request_pause(request);
    hfsbi_upload_work(u, request, HFSBI_UPLOAD_OPEN);
}

static void hfsbi_upload_body(void *user, hfsb_request *request,
                              hfsb_str piece) {
    hfsbi_upload *u = (hfsbi_upload *)hfsb_request_get(request);
    hfsb_buf     *block = &u->block[u->filling];
    (void)user;
    if (hfsb_buf_append(block, piece) != HFSB_OK) {
        hfsb_reply_error(request, 503,
                         "Out of memory. The file is as it was.");
        u->input = HFSBI_UPLOAD_LOST;
    } else if (u->state != HFSBI_UPLOAD_FILL &&
               block->len >= HFSBI_UPLOAD_BLOCK) {
        hfsb_request_pause(request);
    }
    hfsbi_upload_step(u, request);
}

static void hfsbi_upload_end(void *user, hfsb_request *request) {
    hfsbi_upload *u = (hfsbi_upload *)hfsb_request_get(request);
    (void)user;
    u->input = HFSBI_UPLOAD_ENDED;
    hfsbi_upload_step(u, request);
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
    route.fn = hfsbi_download;
    st = hfsb_server_add(server, &route, err);
    if (st != HFSB_OK) return st;
    route.method = "DELETE";
    route.fn = hfsbi_remove;
    st = hfsb_server_add(server, &route, err);
    if (st != HFSB_OK) return st;
    route.max_body = 0;
    route.method = "PUT";
    route.begin = hfsbi_upload_begin;
    route.body = hfsbi_upload_body;
    route.fn = hfsbi_upload_end;
    return hfsb_server_add(server, &route, err);
}
