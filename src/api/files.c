/* files.c - /api/files: files of any size as bytes, by GET, PUT and DELETE.

   Each request is an operation (hfsbi_file_op), which alternates between the
   loop and a pool thread: disk work is done in the thread, replies are sent
   in the loop. An operation outlives its request when the client goes away.

     GET     thread: open, decide   -> loop: reply -> (thread: close) -> free
     DELETE  thread: check, remove  -> loop: reply -> free
     PUT     loop: fill a block     -> thread: write it -> ... -> commit
                                    -> loop: reply -> free

   A thread never touches the request, and the loop never touches an operation
   that a thread works on, except for the request and the block that the loop
   fills. A PUT replaces the file only after the whole body has arrived. */
#include "api_private.h"

/* The endpoint; one per server. */
typedef struct hfsbi_files {
    hfsbi_server_part part; /* first: the server has a pointer to it */
    hfsb_server      *server;
    hfsbi_loop       *loop;
    const hfsb_root  *root;
    hfsb_alloc        alloc;
    size_t            pending; /* operations that are not freed yet */
} hfsbi_files;

/* The work for one request; the first member of hfsbi_fetch and hfsbi_upload.
   request is for the loop only. */
typedef struct hfsbi_file_op {
    hfsbi_task    task;
    hfsbi_files  *files;
    hfsb_request *request; /* NULL: answered or gone */
    size_t        size;    /* of the whole struct, in bytes */
    hfsb_buf      path;
    hfsb_buf match, none_match; /* If-Match, If-None-Match; ptr NULL: none */
    int      http;              /* status of the reply; 0: not known yet */
    hfsb_err err;               /* the text of a reply from 400 on */
} hfsbi_file_op;

/* ---- errors ---- */

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

/* ---- operations ---- */

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
static bool hfsbi_file_op_read_request(hfsbi_file_op *op) {
    hfsb_request         *request = op->request;
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

static void hfsbi_file_op_free(hfsbi_file_op *op) {
    hfsbi_files *files = op->files;
    hfsb_buf_free(&op->path);
    hfsb_buf_free(&op->match);
    hfsb_buf_free(&op->none_match);
    hfsbi_array_free(&files->alloc, op, op->size, 1);
    files->pending--;
}

/* Returns a new operation of `size` bytes with the path and the conditions of
   the request; the bytes after its first member are zero. gone(op, request) is
   called if the client goes away. NULL after an error reply. */
static hfsbi_file_op *hfsbi_file_op_open(hfsbi_files  *files,
                                         hfsb_request *request, size_t size,
                                         hfsb_route_fn gone) {
    hfsbi_file_op *op = (hfsbi_file_op *)hfsbi_array(&files->alloc, size, 1);
    if (!op) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return NULL;
    }
    memset(op, 0, size);
    op->files = files;
    op->request = request;
    op->size = size;
    op->path.alloc = op->match.alloc = files->alloc;
    op->none_match.alloc = files->alloc;
    files->pending++;
    if (!hfsbi_file_op_read_request(op)) {
        hfsbi_file_op_free(op);
        return NULL;
    }
    hfsb_request_set(request, op);
    hfsb_request_on_gone(request, gone, op);
    return op;
}

/* Detaches the request from the operation and returns it for the reply. */
static hfsb_request *hfsbi_file_op_take_request(hfsbi_file_op *op) {
    hfsb_request *request = op->request;
    op->request = NULL;
    hfsb_request_set(request, NULL);
    hfsb_request_on_gone(request, NULL, NULL);
    return request;
}

static void hfsbi_file_op_reply_error(hfsbi_file_op *op) {
    hfsb_request *request = hfsbi_file_op_take_request(op);
    hfsb_reply_error(request, op->http, "%s",
                     op->err.msg[0] ? op->err.msg
                                    : hfsb_http_reason(op->http));
}

/* ---- conditions ---- */

/* A file that is replaced by a rename has another inode; one that is modified
   in place has another time of change. */
HFSBI_FN void hfsbi_file_etag(const hfsb_file_info *info,
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

/* Files of /proc report no size and are read into memory: at most this many
   bytes. */
enum { HFSBI_SIZELESS_MAX = 16 << 20 };

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
                   "The range begins behind the end of the file, which has "
                   "%llu bytes.",
                   f->info.size);
        break;
    case HFSBI_RANGE_NONE:
        f->first = 0;
        f->length = f->info.size;
        break;
    }
}

/* Opens the file the first time; closes it if it runs again after the
   reply. */
static void hfsbi_fetch_run(hfsbi_task *task) {
    hfsbi_fetch   *f = (hfsbi_fetch *)(void *)task;
    hfsbi_file_op *op = &f->op;
    hfsb_str       path = hfsb_buf_str(&op->path);
    hfsb_status    st;
    if (op->http) { /* after the reply */
        hfsbi_close(&f->fd);
        return;
    }
    st = hfsb_file_open(op->files->root, path, &f->fd, &f->info, &op->err);
    if (st == HFSB_OK && f->info.size == 0) { /* empty, or in /proc */
        st = hfsb_file_read(op->files->root, path, HFSBI_SIZELESS_MAX,
                            &f->content, NULL, &op->err);
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

static void hfsbi_remove_run(hfsbi_task *task) {
    hfsbi_file_op *op = (hfsbi_file_op *)(void *)task;
    hfsb_str       path = hfsb_buf_str(&op->path);
    hfsb_file_info info, *same = NULL;
    hfsb_status    st = HFSB_OK;
    if (op->match.ptr) {
        st = hfsb_file_stat(op->files->root, path, &info, &op->err);
        if (st == HFSB_NOT_FOUND) {
            (void)hfsbi_file_op_check(op, NULL, false);
            return;
        }
        if (st == HFSB_OK && !hfsbi_file_op_check(op, &info, false)) return;
        /* do not remove a file that a PUT has replaced since the stat */
        if (!hfsbi_etag_is_any(&op->match)) same = &info;
    }
    if (st == HFSB_OK)
        st = hfsbi_file_remove_if(op->files->root, path, NULL, same, &op->err);
    op->http = 200;
    if (st != HFSB_OK) hfsbi_file_op_set_status(op);
}

/* ---- GET and DELETE: in the loop ---- */

static void hfsbi_fetch_free(hfsbi_fetch *f) {
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

static void hfsbi_fetch_reply(hfsbi_fetch *f) {
    const char   *type = "application/octet-stream";
    hfsb_request *request = f->op.request;
    int           http = f->op.http;
    if ((http < 300 || http == 304 || http == 416) &&
        !hfsbi_fetch_put_fields(f, request)) {
        f->op.http = http = 503;
        hfsbi_fail_status(&f->op.err, HFSB_NOMEM, "Reply");
    }
    if (http >= 400) {
        hfsbi_file_op_reply_error(&f->op);
        return;
    }
    (void)hfsbi_file_op_take_request(&f->op);
    if (http == 304) {
        hfsb_reply(request, http, "", hfsb_str_make("", 0));
    } else if (f->content.len) {
        hfsbi_reply_take(request, http, type, &f->content);
    } else {
        hfsb_reply_file(request, http, type, f->fd, f->first, f->length);
        f->fd = -1;
    }
}

static void hfsbi_fetch_done(hfsbi_task *task) {
    hfsbi_fetch *f = (hfsbi_fetch *)(void *)task;
    if (f->op.request) hfsbi_fetch_reply(f);
    /* closing a removed file may wait for the disk: use a thread */
    if (f->fd >= 0) hfsbi_loop_work(f->op.files->loop, task);
    else hfsbi_fetch_free(f);
}

static void hfsbi_remove_done(hfsbi_task *task) {
    hfsbi_file_op   *op = (hfsbi_file_op *)(void *)task;
    hfsb_buf         out = HFSB_INIT, body = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_request    *request;
    body.alloc = out.alloc = op->files->alloc;
    if (op->request && op->http != 200) {
        hfsbi_file_op_reply_error(op);
    } else if (op->request) {
        hfsb_status st = hfsb_buf_printf(&out, "Removed %s", op->path.ptr);
        hfsb_json_writer_init(&w, &body, NULL);
        hfsb_json_put_object(&w);
        hfsbi_put_member_bool(&w, "success", true);
        hfsbi_put_member_str(&w, "output", hfsb_buf_str(&out));
        hfsbi_put_member_str(&w, "error", HFSB_LIT(""));
        hfsb_json_put_end(&w);
        if (hfsb_json_writer_finish(&w, NULL) != HFSB_OK) st = HFSB_NOMEM;
        request = hfsbi_file_op_take_request(op);
        if (st == HFSB_OK)
            hfsbi_reply_take(request, 200, "application/json", &body);
        else
            hfsb_reply_error(request, 503,
                             "Out of memory. The file is removed.");
    }
    hfsb_buf_free(&out);
    hfsb_buf_free(&body);
    hfsbi_file_op_free(op);
}

/* The thread finishes its work; no reply is sent. */
static void hfsbi_fetch_on_gone(void *user, hfsb_request *request) {
    (void)request;
    ((hfsbi_file_op *)user)->request = NULL;
}

/* Copies a field; one that is repeated is ignored. False without memory. */
static bool hfsbi_fetch_read_field(const hfsb_http_head *head,
                                   const char *name, hfsb_buf *out) {
    if (hfsb_http_field_count(head, name) != 1) return true;
    return hfsb_buf_append(out, hfsb_http_field_find(head, name)) == HFSB_OK;
}

static void hfsbi_download(void *user, hfsb_request *request) {
    hfsbi_files          *files = (hfsbi_files *)user;
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsbi_fetch          *f = (hfsbi_fetch *)(void *)hfsbi_file_op_open(
                 files, request, sizeof *f, hfsbi_fetch_on_gone);
    if (!f) return;
    f->fd = -1;
    f->ranges = hfsb_str_equal(head->method, HFSB_LIT("GET"));
    f->range.alloc = f->if_range.alloc = files->alloc;
    f->since.alloc = f->content.alloc = files->alloc;
    f->op.task.run = hfsbi_fetch_run;
    f->op.task.done = hfsbi_fetch_done;
    if (hfsbi_fetch_read_field(head, "Range", &f->range) &&
        hfsbi_fetch_read_field(head, "If-Range", &f->if_range) &&
        hfsbi_fetch_read_field(head, "If-Modified-Since", &f->since)) {
        hfsbi_loop_work(files->loop, &f->op.task);
        return;
    }
    hfsb_reply_error(hfsbi_file_op_take_request(&f->op), 503,
                     "Out of memory.");
    hfsbi_fetch_free(f);
}

static void hfsbi_remove(void *user, hfsb_request *request) {
    hfsbi_files   *files = (hfsbi_files *)user;
    hfsbi_file_op *op =
        hfsbi_file_op_open(files, request, sizeof *op, hfsbi_fetch_on_gone);
    if (!op) return;
    op->task.run = hfsbi_remove_run;
    op->task.done = hfsbi_remove_done;
    hfsbi_loop_work(files->loop, &op->task);
}

/* ---- PUT: in a pool thread ---- */

/* The loop fills one block while a thread writes the other. While both are
   full, reading the body is paused. Bytes; one more piece may exceed it. */
enum { HFSBI_UPLOAD_BLOCK = 192 * 1024 };

/* A PUT. */
typedef struct hfsbi_upload {
    hfsbi_file_op op;
    /* used by the thread while `working`, else by the loop */
    hfsb_file_writer *writer;
    hfsb_sha256       sha;
    hfsb_file_written written;
    unsigned          mode;
    bool              opened;
    hfsb_buf          block[2];
    /* what the thread does; set before it starts */
    unsigned writing; /* index of the block to write */
    bool     finish;  /* it is the last block: commit */
    bool     drop;    /* answered or gone: remove the temporary */
    /* used by the loop */
    bool working, paused, ended;
} hfsbi_upload;

/* Checks the conditions and opens the writer. */
static hfsb_status hfsbi_upload_open(hfsbi_upload *u) {
    hfsbi_file_op       *op = &u->op;
    const hfsb_root     *root = op->files->root;
    hfsb_str             path = hfsb_buf_str(&op->path);
    hfsb_file_write_opts opts = HFSB_INIT;
    hfsb_file_info       info;
    hfsb_status          st;
    opts.mode = u->mode;
    if (op->match.ptr || op->none_match.ptr) {
        st = hfsb_file_stat(root, path, &info, &op->err);
        if (st != HFSB_OK && st != HFSB_NOT_FOUND) return st;
        if (!hfsbi_file_op_check(op, st == HFSB_OK ? &info : NULL, true))
            return HFSB_REFUSED;
        /* the commit checks the conditions again */
        if (op->match.ptr && !hfsbi_etag_is_any(&op->match))
            opts.if_same = &info;
        opts.create = hfsbi_etag_is_any(&op->none_match);
    }
    hfsb_sha256_init(&u->sha);
    return hfsb_file_writer_open(root, path, &opts, &u->writer, &op->err);
}

static void hfsbi_upload_run(hfsbi_task *task) {
    hfsbi_upload *u = (hfsbi_upload *)(void *)task;
    hfsb_err     *err = &u->op.err;
    hfsb_str      piece = hfsb_buf_str(&u->block[u->writing]);
    hfsb_status   st = HFSB_OK;
    if (!u->drop && !u->opened) st = hfsbi_upload_open(u);
    u->opened = true;
    if (!u->drop && st == HFSB_OK && piece.len) {
        hfsb_sha256_write(&u->sha, piece);
        st = hfsb_file_writer_append(u->writer, piece, err);
    }
    if (!u->drop && st == HFSB_OK && u->finish) {
        st = hfsb_file_writer_commit(u->writer, &u->written, err);
        if (st == HFSB_OK) u->op.http = u->written.created ? 201 : 200;
    }
    if (st != HFSB_OK && !u->op.http) hfsbi_file_op_set_status(&u->op);
    if (u->drop || u->op.http) {
        hfsb_file_writer_close(u->writer);
        u->writer = NULL;
    }
}

/* ---- PUT: in the loop ---- */

/* Appends the body of the reply as JSON. HFSB_OK; HFSB_NOMEM. */
static hfsb_status hfsbi_upload_write_result(hfsbi_upload *u, hfsb_buf *body) {
    char             hex[HFSB_SHA256_HEX];
    hfsb_buf         out = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_status      st;
    out.alloc = body->alloc;
    hfsbi_sha256_finish_hex(&u->sha, hex);
    st = hfsb_buf_printf(&out, "Wrote %llu bytes to %s", u->written.bytes,
                         u->op.path.ptr);
    hfsb_json_writer_init(&w, body, NULL);
    hfsb_json_put_object(&w);
    hfsbi_put_member_bool(&w, "success", true);
    hfsbi_put_member_str(&w, "output", hfsb_buf_str(&out));
    hfsbi_put_member_str(&w, "error", HFSB_LIT(""));
    hfsbi_put_member_int(&w, "bytes", (long long)u->written.bytes);
    hfsbi_put_member_bool(&w, "created", u->written.created);
    hfsbi_put_member_bool(&w, "in_place", u->written.in_place);
    hfsbi_put_member_str(&w, "sha256", hfsb_cstr(hex));
    hfsb_json_put_end(&w);
    hfsb_buf_free(&out);
    if (hfsb_json_writer_finish(&w, NULL) != HFSB_OK) st = HFSB_NOMEM;
    return st;
}

static void hfsbi_upload_reply(hfsbi_upload *u) {
    char          etag[HFSBI_ETAG];
    hfsb_buf      body = HFSB_INIT;
    hfsb_request *request;
    hfsb_status   st;
    if (u->op.http >= 300) {
        hfsbi_file_op_reply_error(&u->op);
        return;
    }
    body.alloc = u->op.files->alloc;
    request = hfsbi_file_op_take_request(&u->op);
    st = hfsbi_upload_write_result(u, &body);
    hfsbi_file_etag(&u->written.info, etag);
    if (st == HFSB_OK) st = hfsb_reply_field(request, "ETag", hfsb_cstr(etag));
    if (st == HFSB_OK)
        hfsbi_reply_take(request, u->op.http, "application/json", &body);
    else hfsb_reply_error(request, 503, "Out of memory. The file is written.");
    hfsb_buf_free(&body);
}

/* Lets a thread write the block; the loop fills the other one. */
static void hfsbi_upload_work(hfsbi_upload *u, unsigned block) {
    u->writing = block;
    u->finish = u->ended;
    u->drop = !u->op.request;
    u->working = true;
    hfsbi_loop_work(u->op.files->loop, &u->op.task);
}

/* Decides the next step after every event: reply, write a block, resume, or
   free u. */
static void hfsbi_upload_step(hfsbi_upload *u) {
    unsigned full = !u->writing;
    if (u->working) return;
    if (u->op.request && u->op.http) hfsbi_upload_reply(u);
    if (!u->op.request && !u->writer) {
        hfsb_buf_free(&u->block[0]);
        hfsb_buf_free(&u->block[1]);
        hfsbi_file_op_free(&u->op);
        return;
    }
    hfsb_buf_truncate(&u->block[u->writing], 0);
    if (!u->opened || !u->op.request || u->ended ||
        u->block[full].len >= HFSBI_UPLOAD_BLOCK)
        hfsbi_upload_work(u, full);
    if (!u->paused || !u->op.request) return;
    u->paused = false;
    hfsb_request_resume(u->op.request); /* may deliver a piece at once */
}

static void hfsbi_upload_done(hfsbi_task *task) {
    hfsbi_upload *u = (hfsbi_upload *)(void *)task;
    u->working = false;
    hfsbi_upload_step(u);
}

static void hfsbi_upload_on_gone(void *user, hfsb_request *request) {
    hfsbi_upload *u = (hfsbi_upload *)user;
    (void)request;
    u->op.request = NULL;
    hfsbi_upload_step(u);
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
static bool hfsbi_upload_read_options(hfsb_request     *request,
                                      const hfsb_alloc *alloc,
                                      unsigned         *mode) {
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsb_buf              text = HFSB_INIT;
    hfsb_err              err = HFSB_INIT;
    hfsb_status           st;
    bool                  good = false;
    text.alloc = *alloc;
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
    hfsbi_files  *files = (hfsbi_files *)user;
    hfsbi_upload *u;
    unsigned      mode;
    if (!hfsbi_upload_read_options(request, &files->alloc, &mode)) return;
    u = (hfsbi_upload *)(void *)hfsbi_file_op_open(files, request, sizeof *u,
                                                   hfsbi_upload_on_gone);
    if (!u) return;
    u->mode = mode;
    u->block[0].alloc = u->block[1].alloc = files->alloc;
    u->op.task.run = hfsbi_upload_run;
    u->op.task.done = hfsbi_upload_done;
    if (hfsb_request_head(request)->expect_continue) {
        u->paused = true;
        hfsb_request_pause(request);
    }
    hfsbi_upload_work(u, 0);
}

static void hfsbi_upload_body(void *user, hfsb_request *request,
                              hfsb_str piece) {
    hfsbi_upload *u = (hfsbi_upload *)hfsb_request_get(request);
    hfsb_buf     *block;
    (void)user;
    if (!u) return;
    block = &u->block[!u->writing];
    if (hfsb_buf_append(block, piece) != HFSB_OK) {
        hfsb_reply_error(hfsbi_file_op_take_request(&u->op), 503,
                         "Out of memory. The file is as it was.");
    } else if (u->working && block->len >= HFSBI_UPLOAD_BLOCK) {
        u->paused = true;
        hfsb_request_pause(request);
    }
    hfsbi_upload_step(u);
}

static void hfsbi_upload_end(void *user, hfsb_request *request) {
    hfsbi_upload *u = (hfsbi_upload *)hfsb_request_get(request);
    (void)user;
    if (!u) return;
    u->ended = true;
    hfsbi_upload_step(u);
}

/* ---- the endpoint ---- */

static bool hfsbi_files_busy(hfsbi_server_part *part) {
    return ((hfsbi_files *)(void *)part)->pending > 0;
}

/* Called after the server has waited for the pool threads. */
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
    route.max_body = 4096; /* bytes; such a body is ignored */
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
    files->root = tools->place;
    files->alloc = *alloc;
    /* even if a route fails: those added before refer to it */
    hfsbi_server_part_add(server, &files->part);
    return hfsbi_files_routes(files, err);
}
