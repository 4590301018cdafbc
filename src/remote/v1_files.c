/* v1_files.c - the files of a server that speaks HF's /v1.

   The routes of that server move bytes: stat, read, write, delete. Here they
   become what the tools expect of a root (hfsbi_far in the room os).

   A file is fetched before it is edited, and fetched again just before the
   new bytes are sent:

       GET --> edit engine --> GET --same bytes--> PUT
                                 \--others--> HFSB_STALE: nothing is written

   There is no lock between the last two, and the server writes in place. So a
   change by others during that request may be lost, and a file whose PUT
   breaks off may be incomplete: the error says so.

   A GET is retried when its connection is lost. Other requests are retried
   only if nothing of them was sent. */
#include "remote_private.h"

enum {
    HFSBI_V1_FILE = 256 << 20, /* bytes of a file that is fetched */
    HFSBI_V1_PART = 4 << 20,   /* of a file in one request */
    HFSBI_V1_REPLY = 1 << 20   /* of a reply that is not a file */
};

/* ---- which cancel applies in a thread ---- */

HFSBI_FN const hfsb_root *hfsbi_v1_begin(struct hfsbi_v1   *v1,
                                         hfsbi_v1_use      *use,
                                         const hfsb_cancel *cancel) {
    use->thread = pthread_self();
    use->cancel = cancel;
    pthread_mutex_lock(&v1->sandbox->lock);
    use->next = v1->uses;
    v1->uses = use;
    pthread_mutex_unlock(&v1->sandbox->lock);
    return v1->tools->place;
}

HFSBI_FN void hfsbi_v1_end(hfsbi_v1 *v1, hfsbi_v1_use *use) {
    hfsbi_v1_use **link = &v1->uses;
    pthread_mutex_lock(&v1->sandbox->lock);
    while (*link != use) link = &(*link)->next;
    *link = use->next;
    pthread_mutex_unlock(&v1->sandbox->lock);
}

static const hfsb_cancel *hfsbi_v1_cancel(hfsbi_v1 *v1) {
    const hfsb_cancel  *cancel = v1->sandbox->o.cancel;
    const hfsbi_v1_use *use;
    pthread_mutex_lock(&v1->sandbox->lock);
    for (use = v1->uses; use; use = use->next)
        if (pthread_equal(use->thread, pthread_self())) {
            cancel = use->cancel;
            break;
        }
    pthread_mutex_unlock(&v1->sandbox->lock);
    return cancel;
}

/* ---- requests ---- */

/* Appends "v1/{route}", and "?path=..." unless path.ptr is NULL. */
HFSBI_FN hfsb_status hfsbi_v1_path(const hfsbi_v1 *v1, const char *route,
                                   hfsb_str path, hfsb_buf *out) {
    hfsb_str work = hfsb_root_work_dir(v1->tools->place);
    hfsb_buf_append(out, hfsb_buf_str(&v1->prefix));
    hfsb_buf_append(out, hfsb_cstr(route));
    if (!path.ptr) return out->status;
    hfsb_buf_append(out, HFSB_LIT("?path="));
    if (work.len && path.len && path.ptr[0] != '/' && out->status == HFSB_OK) {
        out->status = hfsb_http_encode(work, false, out);
        hfsb_buf_append(out, HFSB_LIT("%2F"));
    }
    if (out->status == HFSB_OK)
        out->status = hfsb_http_encode(path, false, out);
    return out->status;
}

/* True when another try may help, and cannot do anything twice. */
static bool hfsbi_v1_may_repeat(const hfsb_http_call  *call,
                                const hfsb_http_reply *reply, hfsb_status st) {
    if (st == HFSB_CONNECT && !reply->sent) return true;
    return hfsb_str_equal(call->method, HFSB_LIT("GET")) &&
           (st == HFSB_CONNECT || st == HFSB_LOST || st == HFSB_TIMEOUT);
}

HFSBI_FN hfsb_status hfsbi_v1_send(hfsbi_v1 *v1, const char *route,
                                   hfsb_str path, const char *more,
                                   hfsb_http_call  *call,
                                   hfsb_http_reply *reply, hfsb_err *err) {
    hfsb_buf    target = HFSB_INIT;
    hfsbi_retry retry;
    hfsb_status st, wait = HFSB_OK;
    target.alloc = v1->sandbox->o.alloc;
    (void)hfsbi_v1_path(v1, route, path, &target);
    if (hfsb_buf_append(&target, hfsb_cstr(more)) != HFSB_OK) {
        hfsb_buf_free(&target);
        return hfsbi_fail_status(err, HFSB_NOMEM, "Path");
    }
    call->cancel = hfsbi_v1_cancel(v1);
    retry = hfsbi_sandbox_retry(v1->sandbox, call->cancel);
    do {
        hfsb_http_reply_free(reply);
        reply->body.max = HFSBI_V1_REPLY;
        st = hfsbi_sandbox_send(v1->sandbox, hfsb_buf_str(&target), call,
                                reply, err);
        if (hfsbi_v1_may_repeat(call, reply, st))
            wait = hfsbi_retry_again(&retry);
        else break;
    } while (wait == HFSB_OK);
    hfsb_buf_free(&target);
    if (st == HFSB_NOMEM) return hfsbi_fail_status(err, st, "Request");
    return wait == HFSB_CANCELLED
               ? hfsbi_fail_status(err, HFSB_CANCELLED, "Request")
               : st;
}

/* The number N in "... (os error N)", as Rust's standard library writes it;
   0: there is none. */
static int hfsbi_v1_errno(hfsb_str text) {
    const hfsb_str     mark = HFSB_LIT("(os error ");
    size_t             at = hfsb_str_find(text, mark);
    unsigned long long n = 0;
    if (at != HFSB_NPOS)
        (void)hfsbi_read_decimal(hfsb_str_slice(text, at + mark.len, text.len),
                                 9999, &n);
    return (int)n;
}

/* Fails with the reason in a reply other than 200. */
HFSBI_FN hfsb_status hfsbi_v1_refuse(const hfsbi_v1        *v1,
                                     const hfsb_http_reply *reply,
                                     hfsb_str path, const char *verb,
                                     hfsb_err *err) {
    const hfsb_str none = HFSB_LIT("");
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_str       text;
    int            code, http = reply->status;
    hfsb_status    st;
    doc.alloc = v1->sandbox->o.alloc;
    st = hfsb_json_parse(hfsb_buf_str(&reply->body), NULL, &doc, NULL);
    if (st == HFSB_NOMEM) return hfsbi_fail_status(err, st, "Reply");
    text = hfsb_json_str(hfsb_json_get(doc.root, "error"), none);
    code = hfsbi_v1_errno(text);
    if (http == 401 || http == 403) {
        st = hfsbi_fail(err, HFSB_AUTH, 0,
                        "Sandbox API at %s does not accept this token",
                        v1->sandbox->page.ptr);
    } else if (!text.len) { /* not the server's: a page of a proxy */
        st = hfsbi_fail(
            err, http == 503 || http == 429 ? HFSB_BUSY : HFSB_REMOTE, 0,
            "Sandbox returned an unexpected reply (HTTP %d)", http);
    } else if (http == 404 || http == 409 || code) {
        st = hfsbi_file_fail_os(NULL, path,
                                code          ? code
                                : http == 404 ? ENOENT
                                              : EISDIR,
                                verb, err);
    } else {
        st = hfsbi_fail(err, http == 400 ? HFSB_IO : HFSB_REMOTE, 0,
                        "Sandbox API error (%d)", http);
        hfsbi_sandbox_quote(v1->sandbox, text, err);
    }
    hfsb_json_free(&doc);
    return st;
}

/* A request about a file, with a small reply, which is parsed. */
static hfsb_status hfsbi_v1_ask(hfsbi_v1 *v1, const char *method,
                                const char *route, hfsb_str path,
                                const char *verb, hfsb_json_doc *doc,
                                hfsb_err *err) {
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_status     st;
    doc->alloc = v1->sandbox->o.alloc;
    call.method = hfsb_cstr(method);
    call.total_ms = v1->sandbox->o.times.margin_ms;
    st = hfsbi_v1_send(v1, route, path, "", &call, &reply, err);
    if (st == HFSB_OK && reply.status != 200)
        st = hfsbi_v1_refuse(v1, &reply, path, verb, err);
    else if (st == HFSB_OK) {
        st = hfsb_json_parse(hfsb_buf_str(&reply.body), NULL, doc, NULL);
        if (st == HFSB_NOMEM) (void)hfsbi_fail_status(err, st, "Reply");
        else if (st != HFSB_OK)
            st = hfsbi_fail(err, HFSB_REMOTE, 0,
                            "Sandbox returned a reply that is not JSON (HTTP "
                            "200)");
    }
    hfsb_http_reply_free(&reply);
    return st;
}

/* ---- looking at files ---- */

/* True for a symlink, which the server does not follow here. */
static bool hfsbi_v1_read_entry(const hfsb_json_value *entry,
                                hfsb_file_info        *info) {
    hfsb_str  type = hfsb_json_str(hfsb_json_get(entry, "type"), HFSB_LIT(""));
    hfsb_str  mode = hfsb_json_str(hfsb_json_get(entry, "mode"), HFSB_LIT(""));
    long long ms = hfsb_json_int(hfsb_json_get(entry, "mtime_ms"), 0);
    size_t    i;
    memset(info, 0, sizeof *info);
    info->type = hfsb_str_equal(type, HFSB_LIT("dir")) ? HFSB_FILE_DIRECTORY
                                                       : HFSB_FILE_REGULAR;
    info->size = hfsb_json_uint(hfsb_json_get(entry, "size"), 0);
    info->links = 1;
    info->changed = info->touched = ms / 1000;
    info->changed_nanos = info->touched_nanos = (long)(ms % 1000) * 1000000;
    for (i = 0; i < mode.len && i < 5; i++)
        if (mode.ptr[i] >= '0' && mode.ptr[i] < '8')
            info->mode = info->mode * 8 + (unsigned)(mode.ptr[i] - '0');
    info->mode &= 07777u;
    return hfsb_str_equal(type, HFSB_LIT("symlink"));
}

/* Finds the target of a symlink: a read of no bytes shows it. */
static hfsb_status hfsbi_v1_follow(hfsbi_v1 *v1, hfsb_str path,
                                   const char *verb, hfsb_file_info *info,
                                   hfsb_err *err) {
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_status     st;
    call.method = HFSB_LIT("GET");
    call.total_ms = v1->sandbox->o.times.margin_ms;
    st = hfsbi_v1_send(v1, "files/read", path, "&offset=0&length=0", &call,
                       &reply, err);
    if (st == HFSB_OK && reply.status != 200)
        st = hfsbi_v1_refuse(v1, &reply, path, verb, err);
    info->type = HFSB_FILE_REGULAR;
    info->size = 0; /* those of the link mean nothing */
    info->mode = 0;
    if (st == HFSB_IS_DIR) {
        info->type = HFSB_FILE_DIRECTORY;
        st = hfsbi_ok(err);
    }
    hfsb_http_reply_free(&reply);
    return st;
}

static hfsb_status hfsbi_v1_look(hfsbi_v1 *v1, hfsb_str path, const char *verb,
                                 hfsb_file_info *info, hfsb_err *err) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_status   st =
        hfsbi_v1_ask(v1, "GET", "files/stat", path, verb, &doc, err);
    if (st == HFSB_OK && hfsbi_v1_read_entry(doc.root, info))
        st = hfsbi_v1_follow(v1, path, verb, info, err);
    hfsb_json_free(&doc);
    return st;
}

static hfsb_status hfsbi_v1_stat(void *user, hfsb_str path,
                                 hfsb_file_info *info, hfsb_err *err) {
    return hfsbi_v1_look((hfsbi_v1 *)user, path, "look at", info, err);
}

/* ---- fetching ---- */

typedef struct hfsbi_v1_copy {
    int                fd; /* a file without a name */
    unsigned long long size;
    int                code; /* an errno, EFBIG for too many bytes; 0 */
} hfsbi_v1_copy;

static bool hfsbi_v1_copy_head(void *user, int status,
                               const hfsb_http_field *fields, size_t count) {
    hfsbi_v1_copy *c = (hfsbi_v1_copy *)user;
    (void)fields;
    (void)count;
    c->size = 0;
    if (status == 200 &&
        (lseek(c->fd, 0, SEEK_SET) != 0 || ftruncate(c->fd, 0) != 0))
        c->code = errno;
    return c->code == 0;
}

static bool hfsbi_v1_copy_body(void *user, hfsb_str piece) {
    hfsbi_v1_copy *c = (hfsbi_v1_copy *)user;
    if (piece.len > HFSBI_V1_FILE - c->size) c->code = EFBIG;
    else if (!hfsbi_write_all(c->fd, piece)) c->code = errno;
    c->size += piece.len;
    return c->code == 0;
}

static hfsb_status hfsbi_v1_too_large(hfsb_str path, hfsb_err *err) {
    hfsbi_file_fail(err, HFSB_LIMIT, "File is too large to be fetched", path);
    hfsbi_err_add(err,
                  " (the limit is %d MiB). Use a command such as tail, head "
                  "or sed -n.",
                  (int)(HFSBI_V1_FILE >> 20));
    return HFSB_LIMIT;
}

/* Copies the file into c->fd. */
static hfsb_status hfsbi_v1_fetch(hfsbi_v1 *v1, hfsb_str path,
                                  hfsbi_v1_copy *c, hfsb_err *err) {
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_reply reply = HFSB_INIT;
    hfsb_status     st;
    call.method = HFSB_LIT("GET");
    call.idle_ms = v1->sandbox->o.times.margin_ms;
    call.on_head = hfsbi_v1_copy_head;
    call.on_body = hfsbi_v1_copy_body;
    call.user = c;
    st = hfsbi_v1_send(v1, "files/read", path, "", &call, &reply, err);
    if (c->code == EFBIG) st = hfsbi_v1_too_large(path, err);
    else if (c->code)
        st = hfsbi_fail_os(err, c->code, "The copy of a file cannot be kept");
    else if (st == HFSB_OK && reply.status != 200)
        st = hfsbi_v1_refuse(v1, &reply, path, "read", err);
    hfsb_http_reply_free(&reply);
    return st;
}

static hfsb_status hfsbi_v1_open_file(void *user, hfsb_str path, int *fd,
                                      hfsb_file_info *info, hfsb_err *err) {
    hfsbi_v1     *v1 = (hfsbi_v1 *)user;
    hfsbi_v1_copy c = HFSB_INIT;
    hfsb_status   st = hfsbi_v1_look(v1, path, "read", info, err);
    *fd = -1;
    if (st != HFSB_OK) return st;
    if (info->type == HFSB_FILE_DIRECTORY)
        return hfsbi_file_fail(err, HFSB_IS_DIR, "Is a directory", path);
    if (info->size > HFSBI_V1_FILE) return hfsbi_v1_too_large(path, err);
    c.fd = hfsbi_unnamed_file(NULL);
    if (c.fd < 0)
        return hfsbi_fail_os(err, errno, "The copy of a file cannot be kept");
    st = hfsbi_v1_fetch(v1, path, &c, err);
    if (st == HFSB_OK && lseek(c.fd, 0, SEEK_SET) != 0)
        st = hfsbi_fail_os(err, errno, "The copy of a file cannot be read");
    info->size = c.size;
    if (st == HFSB_OK) *fd = c.fd;
    else hfsbi_close(&c.fd);
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}

/* ---- writing ---- */

/* HFSB_OK if the file has that content, or that sha256 where content.ptr is
   NULL; HFSB_STALE. */
static hfsb_status hfsbi_v1_compare(hfsbi_v1 *v1, hfsb_str path,
                                    hfsb_str content, hfsb_str sha256,
                                    hfsb_err *err) {
    char           hex[HFSB_SHA256_HEX], want[HFSB_SHA256_HEX] = "";
    hfsb_file_info info;
    int            fd;
    hfsb_status    st = hfsbi_v1_open_file(v1, path, &fd, &info, err);
    if (st != HFSB_OK) return st;
    if (content.ptr) hfsb_sha256_hex(content, want);
    else
        (void)snprintf(want, sizeof want, "%.*s", (int)sha256.len, sha256.ptr);
    if (!hfsbi_fd_sha256(fd, hex))
        st = hfsbi_fail_os(err, errno, "The copy of a file cannot be read");
    else if (strcmp(hex, want) != 0) st = hfsbi_fail_changed(path, err);
    hfsbi_close(&fd);
    return st;
}

/* Checks the conditions of a write; *exists: there is a file. */
static hfsb_status hfsbi_v1_check_write(hfsbi_v1 *v1, hfsb_str path,
                                        const hfsb_file_write_opts *opts,
                                        bool *exists, hfsb_err *err) {
    hfsb_file_info info;
    hfsb_status    st;
    *exists = true;
    if (opts->if_content.ptr || opts->if_sha256.len)
        return hfsbi_v1_compare(v1, path, opts->if_content, opts->if_sha256,
                                err);
    st = hfsbi_v1_look(v1, path, "write", &info, err);
    *exists = st == HFSB_OK;
    if (st == HFSB_NOT_FOUND && !opts->if_same) return hfsbi_ok(err);
    if (st != HFSB_OK) return st;
    if (info.type == HFSB_FILE_DIRECTORY)
        return hfsbi_file_fail(err, HFSB_IS_DIR, "Is a directory", path);
    if (opts->create)
        return hfsbi_file_fail(err, HFSB_EXISTS, "File exists already", path);
    if (opts->if_same && !hfsbi_same_info(&info, opts->if_same))
        return hfsbi_fail_changed(path, err);
    return HFSB_OK;
}

/* A part of a file that is being sent. */
typedef struct hfsbi_v1_part {
    int                fd;
    unsigned long long left;
} hfsbi_v1_part;

static hfsb_status hfsbi_v1_part_read(void *user, char *ptr, size_t room,
                                      size_t *got, hfsb_err *err) {
    hfsbi_v1_part *p = (hfsbi_v1_part *)user;
    ssize_t        n;
    if (room > p->left) room = (size_t)p->left;
    n = hfsbi_read_file(p->fd, ptr, room);
    if (n <= 0)
        return hfsbi_fail_os(err, n < 0 ? errno : EIO,
                             "The new content cannot be read");
    *got = (size_t)n;
    p->left -= *got;
    return HFSB_OK;
}

/* True when the reply confirms that many bytes. */
static bool hfsbi_v1_confirms(const hfsbi_v1 *v1, const hfsb_http_reply *reply,
                              unsigned long long bytes) {
    hfsb_json_doc doc = HFSB_INIT;
    bool          same;
    doc.alloc = v1->sandbox->o.alloc;
    same = hfsb_json_parse(hfsb_buf_str(&reply->body), NULL, &doc, NULL) ==
               HFSB_OK &&
           hfsb_json_uint(hfsb_json_get(doc.root, "size"), bytes + 1) == bytes;
    hfsb_json_free(&doc);
    return same;
}

/* Sends bytes of the file at fd, from offset on. The first part truncates the
   file. *sent: some of it may have been written. */
static hfsb_status hfsbi_v1_put(hfsbi_v1 *v1, hfsb_str path,
                                hfsbi_v1_part *part, unsigned long long offset,
                                const hfsb_file_write_opts *opts, bool *sent,
                                hfsb_err *err) {
    static const hfsb_http_field type = {{"Content-Type", 12},
                                         {"application/octet-stream", 24}};
    unsigned long long           bytes = part->left;
    hfsb_http_call               call = HFSB_INIT;
    hfsb_http_reply              reply = HFSB_INIT;
    char                         more[96] = "", *end = more;
    hfsb_status                  st;
    call.method = HFSB_LIT("PUT");
    call.fields = &type;
    call.field_count = 1;
    call.idle_ms = v1->sandbox->o.times.margin_ms;
    call.body = HFSB_LIT("");
    if (bytes) {
        call.body.ptr = NULL;
        call.body_read = hfsbi_v1_part_read;
        call.body_length = bytes;
        call.user = part;
    }
    if (offset) end += snprintf(end, 40, "&offset=%llu", offset);
    if (opts->mode) end += snprintf(end, 20, "&mode=%o", opts->mode & 07777u);
    if (opts->no_parents) (void)snprintf(end, 20, "&mkdir=0");
    st = hfsbi_v1_send(v1, "files/write", path, more, &call, &reply, err);
    if (reply.sent && (st != HFSB_OK || reply.status == 200)) *sent = true;
    if (st == HFSB_OK && reply.status != 200)
        st = hfsbi_v1_refuse(v1, &reply, path, "write", err);
    else if (st == HFSB_OK && !hfsbi_v1_confirms(v1, &reply, bytes))
        st = hfsbi_fail(err, HFSB_REMOTE, 0,
                        "Sandbox did not confirm the size of what it wrote");
    hfsb_http_reply_free(&reply);
    return st;
}

static hfsb_status hfsbi_v1_write(void *user, hfsb_str path, int fd,
                                  unsigned long long          bytes,
                                  const hfsb_file_write_opts *opts,
                                  hfsb_file_written *written, hfsb_err *err) {
    struct hfsbi_v1   *v1 = (hfsbi_v1 *)user;
    unsigned long long done = 0;
    hfsbi_v1_part      part;
    bool               exists, sent = false;
    hfsb_err           why;
    hfsb_status        st = hfsbi_v1_check_write(v1, path, opts, &exists, err);
    if (st == HFSB_OK && lseek(fd, 0, SEEK_SET) != 0)
        st = hfsbi_fail_os(err, errno, "The new content cannot be read");
    part.fd = fd;
    while (st == HFSB_OK) {
        part.left = bytes - done;
        if (part.left > HFSBI_V1_PART) part.left = HFSBI_V1_PART;
        done += part.left;
        st = hfsbi_v1_put(v1, path, &part, done - part.left, opts, &sent, err);
        if (done == bytes) break;
    }
    if (st != HFSB_OK && sent) {
        why = *err;
        hfsbi_file_fail(err, st, "The writing of a file broke off", path);
        hfsbi_err_add(err,
                      " (%.200s). It may be incomplete: read it before you "
                      "change it again.",
                      why.msg);
    }
    if (st != HFSB_OK || !written) return st;
    memset(written, 0, sizeof *written);
    written->bytes = bytes;
    written->created = !exists;
    written->in_place = exists;
    return hfsbi_ok(err);
}

static hfsb_status hfsbi_v1_remove(void *user, hfsb_str path,
                                   const char *sha256, hfsb_err *err) {
    hfsbi_v1      *v1 = (hfsbi_v1 *)user;
    const hfsb_str none = HFSB_INIT;
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_file_info info;
    hfsb_status    st =
        sha256 ? hfsbi_v1_compare(v1, path, none, hfsb_cstr(sha256), err)
                  : hfsbi_v1_look(v1, path, "remove", &info, err);
    if (st == HFSB_OK && !sha256 && info.type == HFSB_FILE_DIRECTORY)
        st = hfsbi_file_fail(err, HFSB_IS_DIR, "Is a directory", path);
    if (st == HFSB_OK)
        st = hfsbi_v1_ask(v1, "DELETE", "files/delete", path, "remove", &doc,
                          err);
    hfsb_json_free(&doc);
    return st;
}

HFSBI_FN void hfsbi_v1_set_files(hfsbi_v1 *v1) {
    v1->far.files.user = v1;
    v1->far.files.stat = hfsbi_v1_stat;
    v1->far.files.open = hfsbi_v1_open_file;
    v1->far.files.write = hfsbi_v1_write;
    v1->far.files.remove = hfsbi_v1_remove;
}
