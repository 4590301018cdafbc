/* sandbox_files.c - files to and from a sandbox, byte for byte. */
#include "remote_private.h"

enum {
    HFSBI_COPY_PIECE = 18000, /* bytes a command prints as base64: what a
                                 reply shows without leaving some out */
    HFSBI_COPY_SMALL = 64 << 20,
    HFSBI_COPY_TAG = 128
};

/* ---- what both directions share ---- */

typedef struct hfsbi_copy {
    hfsb_sandbox      *sandbox;
    hfsb_copy_opts     opts;
    const hfsb_cancel *cancel;
    hfsb_buf           path; /* "files?path=..." */
    hfsb_str           remote;
} hfsbi_copy;

static hfsb_status hfsbi_copy_init(hfsbi_copy *c, hfsb_sandbox *sandbox,
                                   hfsb_str remote, const hfsb_copy_opts *opts,
                                   hfsb_err *err) {
    hfsb_status st;
    memset(c, 0, sizeof *c);
    c->sandbox = sandbox;
    if (opts) c->opts = *opts;
    c->cancel = c->opts.cancel ? c->opts.cancel : sandbox->o.cancel;
    c->remote = remote;
    c->path.alloc = sandbox->o.alloc;
    if (!remote.len || hfsb_str_find_byte(remote, '\0') != HFSB_NPOS)
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "The path in the sandbox must not be empty and have "
                          "no NUL.");
    st = hfsb_buf_append(&c->path, HFSB_LIT("files?path="));
    if (st == HFSB_OK) st = hfsb_http_encode(remote, false, &c->path);
    return st == HFSB_OK ? st : hfsbi_fail_status(err, st, "Path");
}

static void hfsbi_copy_progress(const hfsbi_copy *c, unsigned long long done,
                                unsigned long long total) {
    if (c->opts.progress) c->opts.progress(c->opts.user, done, total);
}

/* The status for a refusal of /api/files. */
static hfsb_status hfsbi_copy_status(int http) {
    if (http == 400 || http == 412) return HFSB_REFUSED;
    if (http == 403) return HFSB_DENIED;
    return hfsbi_remote_status(http);
}

/* Who answered a request for /api/files. */
typedef enum hfsbi_copy_who {
    HFSBI_COPY_OURS,    /* hfsb-server */
    HFSBI_COPY_FOREIGN, /* a server that has no such thing */
    HFSBI_COPY_PAGE     /* none yet: a page of something on the way */
} hfsbi_copy_who;

/* HFSB_OK for a success of ours; else *err says what the reply does. */
static hfsb_status hfsbi_copy_judge(const hfsbi_copy      *c,
                                    const hfsb_http_reply *reply,
                                    hfsbi_copy_who *who, hfsb_err *err) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_str      said;
    hfsb_status   st, parsed;
    *who = HFSBI_COPY_OURS;
    if (hfsb_http_reply_field(reply, "X-Hfsb", 0).ptr && reply->status < 300)
        return HFSB_OK;
    doc.alloc = c->sandbox->o.alloc;
    parsed = hfsb_json_parse(hfsb_buf_str(&reply->body), NULL, &doc, NULL);
    if (parsed == HFSB_NOMEM) return hfsbi_fail_status(err, parsed, "Reply");
    said = hfsb_json_str(hfsb_json_get(doc.root, "error"), HFSB_LIT(""));
    if (parsed != HFSB_OK) *who = HFSBI_COPY_PAGE;
    else if (!hfsb_http_reply_field(reply, "X-Hfsb", 0).ptr &&
             (reply->status < 300 || reply->status == 404 ||
              reply->status == 405))
        *who = HFSBI_COPY_FOREIGN;
    st = parsed == HFSB_OK ? hfsbi_copy_status(reply->status) : HFSB_BUSY;
    if (parsed != HFSB_OK)
        hfsbi_fail(err, st, 0, "Sandbox returned non-JSON response (HTTP %d)",
                   reply->status);
    else if (said.len) hfsbi_fail(err, st, 0, "%.*s", (int)said.len, said.ptr);
    else hfsbi_fail(err, st, 0, "HTTP %d", reply->status);
    if (err) hfsbi_sandbox_hide(c->sandbox, err->msg);
    hfsb_json_free(&doc);
    return st;
}

/* Whether another try may help. All that is done here may be done twice. */
static bool hfsbi_copy_may_repeat(hfsb_status st) {
    return st == HFSB_CONNECT || st == HFSB_LOST || st == HFSB_TIMEOUT ||
           st == HFSB_REMOTE;
}

/* Waits before try n + 1; false when there is none. */
static bool hfsbi_copy_wait(const hfsbi_copy *c, size_t n, hfsb_status *st,
                            hfsb_err *err) {
    const hfsb_sandbox_opts *o = &c->sandbox->o;
    if (n >= o->tries) return false;
    if (hfsb_cancel_wait(c->cancel, o->delay_ms * (long long)n)) return true;
    *st = hfsbi_fail_status(err, HFSB_CANCELLED, "Copying");
    return false;
}

/* ---- up ---- */

typedef struct hfsbi_send_file {
    hfsbi_copy         copy;
    int                fd;
    hfsb_file_info     info;
    hfsb_buf           content; /* of a file without a size */
    unsigned long long done;
} hfsbi_send_file;

static hfsb_status hfsbi_send_read(void *user, char *ptr, size_t room,
                                   size_t *got, hfsb_err *err) {
    hfsbi_send_file   *f = (hfsbi_send_file *)user;
    unsigned long long left = f->info.size - f->done;
    ssize_t            n;
    if (room > left) room = (size_t)left;
    n = hfsbi_read_file(f->fd, ptr, room);
    if (n < 0) return hfsbi_fail_os(err, errno, "The file cannot be read");
    if (n == 0)
        return hfsbi_fail(err, HFSB_IO, 0,
                          "The file became shorter while it was sent; the one "
                          "in the sandbox is as it was.");
    *got = (size_t)n;
    f->done += *got;
    hfsbi_copy_progress(&f->copy, f->done, f->info.size);
    return HFSB_OK;
}

static hfsb_status hfsbi_send_try(hfsbi_send_file *f, bool *again,
                                  hfsb_err *err) {
    static const hfsb_http_field type = {{"Content-Type", 12},
                                         {"application/octet-stream", 24}};
    hfsb_http_call               call = HFSB_INIT;
    hfsb_http_reply              reply = HFSB_INIT;
    hfsbi_copy_who               who = HFSBI_COPY_OURS;
    hfsb_status                  st;
    *again = false;
    f->done = 0;
    if (f->fd >= 0 && lseek(f->fd, 0, SEEK_SET) != 0)
        return hfsbi_fail_os(err, errno, "The file cannot be read");
    call.method = HFSB_LIT("PUT");
    call.fields = &type;
    call.field_count = 1;
    call.idle_ms = f->copy.sandbox->o.margin_ms;
    call.cancel = f->copy.cancel;
    call.user = f;
    if (f->info.size) {
        call.body_read = hfsbi_send_read;
        call.body_length = f->info.size;
    } else {
        call.body = hfsb_str_make(f->content.ptr ? f->content.ptr : "",
                                  f->content.len);
    }
    st = hfsbi_sandbox_send(f->copy.sandbox, hfsb_buf_str(&f->copy.path),
                            &call, &reply, err);
    if (st != HFSB_OK) *again = hfsbi_copy_may_repeat(st);
    else st = hfsbi_copy_judge(&f->copy, &reply, &who, err);
    if (who == HFSBI_COPY_PAGE) *again = true;
    if (who == HFSBI_COPY_FOREIGN)
        st = hfsbi_fail(err, HFSB_REFUSED, 0,
                        "The server of this sandbox takes no files: it has no "
                        "/api/files. Use the tool write, or a sandbox that "
                        "runs hfsb-server.");
    hfsb_http_reply_free(&reply);
    return st;
}

static hfsb_status hfsbi_send_all(hfsbi_send_file *f, hfsb_err *err) {
    hfsb_status st;
    size_t      n = 0;
    bool        again;
    do {
        st = hfsbi_send_try(f, &again, err);
        n++;
    } while (st != HFSB_OK && again && hfsbi_copy_wait(&f->copy, n, &st, err));
    if (st == HFSB_OK) hfsbi_sandbox_saw(f->copy.sandbox, f->copy.remote);
    return st;
}

hfsb_status hfsb_sandbox_upload(hfsb_sandbox *sandbox, const hfsb_place *place,
                                hfsb_str local, hfsb_str remote,
                                const hfsb_copy_opts *opts, hfsb_err *err) {
    hfsbi_send_file f;
    hfsb_status     st;
    memset(&f, 0, sizeof f);
    f.fd = -1;
    f.content.alloc = sandbox->o.alloc;
    st = hfsbi_copy_init(&f.copy, sandbox, remote, opts, err);
    if (st == HFSB_OK) st = hfsb_file_open(place, local, &f.fd, &f.info, err);
    if (st == HFSB_OK && !f.info.size) /* empty, or one of /proc */
        st = hfsb_file_read(place, local, HFSBI_COPY_SMALL, &f.content, NULL,
                            err);
    if (st == HFSB_OK && f.info.mode &&
        hfsb_buf_printf(&f.copy.path, "&mode=%04o", f.info.mode & 07777u) !=
            HFSB_OK)
        st = hfsbi_fail_status(err, HFSB_NOMEM, "Path");
    if (st == HFSB_OK) st = hfsbi_send_all(&f, err);
    hfsbi_close(&f.fd);
    hfsb_buf_free(&f.content);
    hfsb_buf_free(&f.copy.path);
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}

/* ---- down ---- */

/* Where the bytes go: into a buffer, or a file that appears when it is whole.
   */
typedef struct hfsbi_take_file {
    hfsbi_copy         copy;
    hfsb_buf          *out; /* or: */
    size_t             mark, max;
    const hfsb_place  *place;
    hfsb_str           local;
    hfsb_file_writer  *writer;
    unsigned           mode;
    unsigned long long done, total;         /* total 0: not known */
    char               tag[HFSBI_COPY_TAG]; /* of what is being copied */
    hfsb_status        status;              /* of our own part in it, */
    hfsb_err           own;                 /* and what went wrong there */
} hfsbi_take_file;

static bool hfsbi_take_failed(hfsbi_take_file *f, hfsb_status st) {
    f->status = st;
    return st == HFSB_OK;
}

/* From the beginning: what came until now is dropped. */
static bool hfsbi_take_begin(hfsbi_take_file *f) {
    hfsb_file_write_opts opts = HFSB_INIT;
    f->done = 0;
    if (f->out) {
        hfsb_buf_truncate(f->out, f->mark);
        return true;
    }
    hfsb_file_writer_close(f->writer);
    f->writer = NULL;
    opts.mode = f->mode;
    return hfsbi_take_failed(
        f,
        hfsb_file_writer_open(f->place, f->local, &opts, &f->writer, &f->own));
}

static bool hfsbi_take_piece(hfsbi_take_file *f, hfsb_str piece) {
    hfsb_status st;
    if (!f->out) st = hfsb_file_writer_append(f->writer, piece, &f->own);
    else if (f->max - (f->out->len - f->mark) < piece.len)
        st =
            hfsbi_fail(&f->own, HFSB_LIMIT, 0, "%.*s has more than %zu bytes.",
                       (int)f->copy.remote.len, f->copy.remote.ptr, f->max);
    else {
        st = hfsb_buf_append(f->out, piece);
        if (st != HFSB_OK) (void)hfsbi_fail_status(&f->own, st, "Content");
    }
    if (st == HFSB_OK) {
        f->done += piece.len;
        hfsbi_copy_progress(&f->copy, f->done, f->total);
    }
    return hfsbi_take_failed(f, st);
}

/* ---- GET /api/files ---- */

static hfsb_str hfsbi_take_field(const hfsb_http_field *fields, size_t count,
                                 const char *name) {
    hfsb_str none = HFSB_LIT("");
    size_t   i;
    for (i = 0; i < count; i++)
        if (hfsb_http_same(fields[i].name, hfsb_cstr(name)))
            return fields[i].value;
    return none;
}

/* The number at the beginning of s, in that base; *s is what follows. */
static unsigned long long hfsbi_take_number(hfsb_str *s, unsigned base) {
    unsigned long long n = 0;
    size_t             i = 0;
    for (; i < s->len && s->ptr[i] >= '0' &&
           (unsigned)(s->ptr[i] - '0') < base && n < (1ull << 59);
         i++)
        n = n * base + (unsigned)(s->ptr[i] - '0');
    *s = hfsb_str_slice(*s, i, s->len);
    return n;
}

/* 206 goes on where we are: "bytes 5-9/10". */
static bool hfsbi_take_goes_on(hfsbi_take_file *f, hfsb_str range) {
    if (!hfsb_str_starts(range, HFSB_LIT("bytes "))) return false;
    range = hfsb_str_slice(range, 6, range.len);
    return hfsbi_take_number(&range, 10) == f->done && range.len &&
           range.ptr[0] == '-';
}

static bool hfsbi_take_on_head(void *user, int status,
                               const hfsb_http_field *fields, size_t count) {
    hfsbi_take_file *f = (hfsbi_take_file *)user;
    hfsb_str         tag = hfsbi_take_field(fields, count, "ETag");
    hfsb_str         mode = hfsbi_take_field(fields, count, "X-Hfsb-Mode");
    hfsb_str         length = hfsbi_take_field(fields, count, "X-Hfsb-Size");
    if (status != 200 && status != 206) return true;
    if (!hfsbi_take_field(fields, count, "X-Hfsb").len)
        return hfsbi_take_failed(
            f, hfsbi_fail(&f->own, HFSB_BUSY, 0,
                          "Something else than the sandbox's server answered "
                          "(HTTP %d).",
                          status));
    if (status == 206) {
        /* only when a part was asked for is there something to go on with */
        if (f->done && f->tag[0] &&
            hfsbi_take_goes_on(
                f, hfsbi_take_field(fields, count, "Content-Range")))
            return true;
        f->tag[0] = '\0'; /* the next try begins anew */
        return hfsbi_take_failed(
            f, hfsbi_fail(&f->own, HFSB_REMOTE, 0,
                          "The server sent another part of the file than the "
                          "one it was asked for."));
    }
    if (tag.len >= sizeof f->tag) tag.len = 0;
    if (tag.len) memcpy(f->tag, tag.ptr, tag.len);
    f->tag[tag.len] = '\0';
    /* it comes from afar: no one else's to write, and no one runs as us */
    f->mode = (unsigned)hfsbi_take_number(&mode, 8) & 0755u;
    if (!length.len)
        length = hfsbi_take_field(fields, count, "Content-Length");
    f->total = hfsbi_take_number(&length, 10);
    return hfsbi_take_begin(f);
}

static bool hfsbi_take_on_body(void *user, hfsb_str piece) {
    return hfsbi_take_piece((hfsbi_take_file *)user, piece);
}

static hfsb_status hfsbi_take_try(hfsbi_take_file *f, bool *foreign,
                                  bool *again, hfsb_err *err) {
    char            range[48];
    hfsb_http_field field[2];
    hfsb_http_call  call = HFSB_INIT;
    hfsb_http_reply reply = HFSB_INIT;
    hfsbi_copy_who  who = HFSBI_COPY_OURS;
    hfsb_status     st;
    (void)snprintf(range, sizeof range, "bytes=%llu-", f->done);
    field[0].name = HFSB_LIT("Range");
    field[0].value = hfsb_cstr(range);
    field[1].name = HFSB_LIT("If-Range");
    field[1].value = hfsb_cstr(f->tag);
    call.method = HFSB_LIT("GET");
    call.fields = field;
    call.field_count = f->done && f->tag[0] ? 2 : 0;
    call.idle_ms = f->copy.sandbox->o.margin_ms;
    call.cancel = f->copy.cancel;
    call.on_head = hfsbi_take_on_head;
    call.on_body = hfsbi_take_on_body;
    call.user = f;
    f->status = HFSB_OK;
    st = hfsbi_sandbox_send(f->copy.sandbox, hfsb_buf_str(&f->copy.path),
                            &call, &reply, err);
    *again = st != HFSB_OK && hfsbi_copy_may_repeat(st);
    if (f->status != HFSB_OK) {
        st = f->status;
        if (err) *err = f->own;
        *again = st == HFSB_REMOTE || st == HFSB_BUSY;
    } else if (st == HFSB_OK) {
        st = hfsbi_copy_judge(&f->copy, &reply, &who, err);
        *again = who == HFSBI_COPY_PAGE;
        *foreign = who == HFSBI_COPY_FOREIGN;
        if (st == HFSB_OK && f->total && f->done != f->total) {
            st = hfsbi_fail(err, HFSB_LOST, 0,
                            "The reply ended after %llu bytes of a file that "
                            "has %llu.",
                            f->done, f->total);
            *again = true;
        }
    }
    hfsb_http_reply_free(&reply);
    return st;
}

/* A try that brought bytes, and kept them, does not count. */
static hfsb_status hfsbi_take_whole(hfsbi_take_file *f, bool *foreign,
                                    hfsb_err *err) {
    unsigned long long before;
    hfsb_status        st;
    size_t             n = 0;
    bool               again;
    do {
        before = f->done;
        st = hfsbi_take_try(f, foreign, &again, err);
        n = f->tag[0] && f->done > before ? 1 : n + 1;
        if (f->total && f->done == f->total && again) return HFSB_OK;
    } while (st != HFSB_OK && again && hfsbi_copy_wait(&f->copy, n, &st, err));
    return st;
}

/* ---- in pieces, through bash ---- */

/* Says "none", "dir" or "denied"; or size, inode and time of the file, and on
   the next line the n-th piece of it. */
static hfsb_status hfsbi_piece_command(const hfsbi_take_file *f, size_t n,
                                       hfsb_buf *out) {
    hfsb_str path = f->copy.remote;
    size_t   mark = out->len;
    size_t   i;
    hfsb_buf_append(out, HFSB_LIT("f='"));
    for (i = 0; i < path.len; i++)
        if (path.ptr[i] == '\'') hfsb_buf_append(out, HFSB_LIT("'\\''"));
        else hfsb_buf_append_byte(out, path.ptr[i]);
    hfsb_buf_printf(
        out,
        "'; if [ -d \"$f\" ]; then echo dir; elif [ ! -e \"$f\" ]; "
        "then echo none; elif [ ! -f \"$f\" ] || [ ! -r \"$f\" ]; then "
        "echo denied; else stat -L -c '%%s %%i %%y' -- \"$f\" && dd "
        "if=\"$f\" bs=%d skip=%zu count=1 2>/dev/null | base64 | "
        "tr -d '\\n'; fi",
        (int)HFSBI_COPY_PIECE, n);
    return hfsb_buf_finish(out, mark);
}

/* Runs it; *reply is what it printed. */
static hfsb_status hfsbi_piece_run(hfsbi_take_file *f, size_t n,
                                   hfsb_tool_result *reply, hfsb_err *err) {
    hfsb_sandbox    *s = f->copy.sandbox;
    hfsb_buf         command = HFSB_INIT;
    hfsbi_remote     r;
    hfsb_json_writer w;
    hfsb_status      st;
    command.alloc = s->o.alloc;
    hfsbi_remote_init(&r, s, hfsbi_tool_find(HFSB_LIT("bash")),
                      f->copy.cancel);
    st = hfsbi_piece_command(f, n, &command);
    hfsb_json_writer_init(&w, &r.body, NULL);
    hfsb_json_put_object(&w);
    hfsbi_put_member_str(&w, "command", hfsb_buf_str(&command));
    if (s->work_dir.len)
        hfsbi_put_member_str(&w, "work_dir", hfsb_buf_str(&s->work_dir));
    hfsb_json_put_end(&w);
    if (st == HFSB_OK) st = hfsb_json_writer_finish(&w, err);
    if (st == HFSB_OK) st = hfsbi_remote_send(&r, err);
    if (st == HFSB_OK) st = hfsbi_remote_result(&r, reply, err);
    if (st == HFSB_OK && !reply->success) st = HFSB_REMOTE;
    if (st != HFSB_OK && reply->error.len)
        hfsbi_fail(err, st, 0, "%s", reply->error.ptr);
    else if (st == HFSB_NOMEM) hfsbi_fail_status(err, st, "Piece of a file");
    hfsbi_remote_free(&r);
    hfsb_buf_free(&command);
    return st;
}

/* Takes what was printed apart: the line that tells of the file, the piece. */
static hfsb_status hfsbi_piece_read(hfsbi_take_file *f, hfsb_str printed,
                                    hfsb_buf *piece, hfsb_err *err) {
    size_t      end = hfsb_str_find_byte(printed, '\n');
    hfsb_str    line = hfsb_str_slice(printed, 0, end);
    hfsb_str    rest = hfsb_str_slice(printed, end, printed.len);
    hfsb_str    path = f->copy.remote, size = line;
    int         length = path.len > 1024 ? 1024 : (int)path.len;
    hfsb_status st;
    if (hfsb_str_equal(line, HFSB_LIT("none")))
        return hfsbi_fail(err, HFSB_NOT_FOUND, 0, "File not found: %.*s",
                          length, path.ptr);
    if (hfsb_str_equal(line, HFSB_LIT("dir")))
        return hfsbi_fail(err, HFSB_REFUSED, 0, "Is a directory: %.*s", length,
                          path.ptr);
    if (hfsb_str_equal(line, HFSB_LIT("denied")))
        return hfsbi_fail(err, HFSB_DENIED, 0, "Cannot be read: %.*s", length,
                          path.ptr);
    if (f->tag[0] && !hfsb_str_equal(line, hfsb_cstr(f->tag)))
        return hfsbi_fail(err, HFSB_STALE, 0,
                          "%.*s was changed while it was read.", length,
                          path.ptr);
    if (line.len >= sizeof f->tag) line.len = 0;
    if (line.len) memcpy(f->tag, line.ptr, line.len);
    f->tag[line.len] = '\0';
    f->total = hfsbi_take_number(&size, 10);
    st = hfsb_base64_decode(hfsbi_trim(hfsb_str_slice(rest, 1, rest.len)),
                            piece, NULL);
    if (st != HFSB_NOMEM && (st != HFSB_OK || !line.len))
        return hfsbi_fail(err, HFSB_REMOTE, 0,
                          "The sandbox printed something else than the file "
                          "in base64: are stat, dd, base64 and tr there?");
    return st == HFSB_OK ? st : hfsbi_fail_status(err, st, "Piece of a file");
}

static hfsb_status hfsbi_take_pieces(hfsbi_take_file *f, hfsb_err *err) {
    hfsb_tool_result printed;
    hfsb_buf         piece = HFSB_INIT;
    hfsb_status      st = HFSB_OK;
    size_t           n = 0;
    piece.alloc = f->copy.sandbox->o.alloc;
    hfsbi_result_init(&printed, &piece.alloc);
    f->tag[0] = '\0';
    if (!hfsbi_take_begin(f)) st = f->status;
    do {
        hfsb_buf_truncate(&piece, 0);
        if (st == HFSB_OK) st = hfsbi_piece_run(f, n++, &printed, err);
        if (st == HFSB_OK)
            st = hfsbi_piece_read(f, hfsb_buf_str(&printed.output), &piece,
                                  err);
        if (st == HFSB_OK && !hfsbi_take_piece(f, hfsb_buf_str(&piece)))
            st = f->status;
        hfsb_tool_result_free(&printed);
    } while (st == HFSB_OK && piece.len == HFSBI_COPY_PIECE &&
             (!f->total || f->done <= f->total));
    hfsb_buf_free(&piece);
    if (f->status != HFSB_OK && err) *err = f->own;
    if (st == HFSB_OK && f->total && f->done != f->total)
        st = hfsbi_fail(err, HFSB_STALE, 0,
                        "The file was changed while it was read.");
    return st;
}

/* ---- to the caller ---- */

/* Through /api/files, or where that is not, through bash. */
static hfsb_status hfsbi_take_run(hfsbi_take_file *f, hfsb_err *err) {
    bool        foreign = false;
    hfsb_status st = hfsbi_take_whole(f, &foreign, err);
    if (foreign) st = hfsbi_take_pieces(f, err);
    if (st == HFSB_OK && f->writer)
        st = hfsb_file_writer_commit(f->writer, NULL, err);
    hfsb_file_writer_close(f->writer);
    hfsb_buf_free(&f->copy.path);
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}

hfsb_status hfsb_sandbox_download(hfsb_sandbox *sandbox, hfsb_str remote,
                                  const hfsb_place *place, hfsb_str local,
                                  const hfsb_copy_opts *opts, hfsb_err *err) {
    hfsbi_take_file f;
    hfsb_status     st;
    memset(&f, 0, sizeof f);
    st = hfsbi_copy_init(&f.copy, sandbox, remote, opts, err);
    f.place = place;
    f.local = local;
    if (st == HFSB_OK) return hfsbi_take_run(&f, err);
    hfsb_buf_free(&f.copy.path);
    return st;
}

hfsb_status hfsb_sandbox_get(hfsb_sandbox *sandbox, hfsb_str remote,
                             size_t max, const hfsb_cancel *cancel,
                             hfsb_buf *out, hfsb_err *err) {
    hfsbi_take_file f;
    hfsb_copy_opts  opts = HFSB_INIT;
    hfsb_status     st;
    memset(&f, 0, sizeof f);
    opts.cancel = cancel;
    st = hfsbi_copy_init(&f.copy, sandbox, remote, &opts, err);
    f.out = out;
    f.mark = out->len;
    f.max = max ? max : (size_t)HFSBI_COPY_SMALL;
    if (st == HFSB_OK) st = hfsbi_take_run(&f, err);
    else hfsb_buf_free(&f.copy.path);
    if (st != HFSB_OK) hfsb_buf_truncate(out, f.mark);
    return st;
}
