/* sandbox_files.c - files to and from a sandbox, byte for byte.

   hfsb-server has /api/files: PUT takes a whole file, GET sends one, from any
   offset on. All of it may be repeated: a PUT replaces the file at once, and a
   GET resumes with Range and If-Range where the last one broke, as long as the
   ETag says that it is the same file. A downloaded file appears under its
   name only when it is complete.

   Other servers have no /api/files. There a file is read in base64 pieces
   through bash; size, inode and time of each piece must agree. A server of
   HF's /v1 has file routes of its own, see v1.c. */
#include "remote_private.h"

enum {
    HFSBI_COPY_PIECE = 18000,    /* bytes that fit as base64 into a reply
                                    without being truncated */
    HFSBI_COPY_SMALL = 64 << 20, /* of a file held in memory */
    HFSBI_COPY_TAG = 128,        /* of an ETag */
    HFSBI_COPY_PATH = 1024       /* of a path in a message */
};

/* ---- both directions ---- */

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
                          "The path in the sandbox must not be empty or "
                          "contain a NUL.");
    st = hfsb_buf_append(&c->path, HFSB_LIT("files?path="));
    if (st == HFSB_OK) st = hfsb_http_encode(remote, false, &c->path);
    return st == HFSB_OK ? st : hfsbi_fail_status(err, st, "Path");
}

static void hfsbi_copy_progress(const hfsbi_copy *c, unsigned long long done,
                                unsigned long long total) {
    if (c->opts.progress) c->opts.progress(c->opts.user, done, total);
}

/* The status for a refusal by /api/files. */
static hfsb_status hfsbi_copy_status(int http) {
    if (http == 400 || http == 412) return HFSB_REFUSED;
    if (http == 403) return HFSB_DENIED;
    return hfsbi_remote_status(http);
}

/* Who answered a request for /api/files. */
typedef enum hfsbi_copy_who {
    HFSBI_COPY_OURS,    /* hfsb-server */
    HFSBI_COPY_FOREIGN, /* a server without /api/files */
    HFSBI_COPY_PAGE     /* a page of the edge or a proxy: try again */
} hfsbi_copy_who;

/* HFSB_OK for a success of hfsb-server; else *err is the reply's error. */
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
    if (err) hfsbi_sandbox_scrub(c->sandbox, err->msg);
    hfsb_json_free(&doc);
    return st;
}

/* True when another try may help. */
static bool hfsbi_copy_may_repeat(hfsb_status st) {
    return st == HFSB_CONNECT || st == HFSB_LOST || st == HFSB_TIMEOUT ||
           st == HFSB_REMOTE;
}

/* Waits for the next try; false when there is none. */
static bool hfsbi_copy_again(hfsbi_retry *retry, hfsb_status *st,
                             hfsb_err *err) {
    hfsb_status wait = hfsbi_retry_again(retry);
    if (wait == HFSB_CANCELLED) *st = hfsbi_fail_status(err, wait, "Copying");
    return wait == HFSB_OK;
}

/* ---- upload ---- */

typedef struct hfsbi_copy_up {
    hfsbi_copy         copy;
    int                fd;
    hfsb_file_info     info;
    hfsb_buf           content; /* of a file whose size is unknown */
    unsigned long long done;
} hfsbi_copy_up;

static hfsb_status hfsbi_copy_up_read(void *user, char *ptr, size_t room,
                                      size_t *got, hfsb_err *err) {
    hfsbi_copy_up     *f = (hfsbi_copy_up *)user;
    unsigned long long left = f->info.size - f->done;
    ssize_t            n;
    if (room > left) room = (size_t)left;
    n = hfsbi_read_file(f->fd, ptr, room);
    if (n < 0) return hfsbi_fail_os(err, errno, "The file cannot be read");
    if (n == 0)
        return hfsbi_fail(err, HFSB_IO, 0,
                          "The file shrank while it was sent; the one in the "
                          "sandbox is unchanged.");
    *got = (size_t)n;
    f->done += *got;
    hfsbi_copy_progress(&f->copy, f->done, f->info.size);
    return HFSB_OK;
}

static hfsb_status hfsbi_copy_up_try(hfsbi_copy_up *f, bool *again,
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
    call.idle_ms = f->copy.sandbox->o.times.margin_ms;
    call.cancel = f->copy.cancel;
    call.user = f;
    if (f->info.size) {
        call.body_read = hfsbi_copy_up_read;
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
                        "The server of this sandbox has no /api/files. Use "
                        "the tool write, or a sandbox that runs hfsb-server.");
    hfsb_http_reply_free(&reply);
    return st;
}

/* To a server that speaks /v1. */
static hfsb_status hfsbi_copy_up_v1(hfsbi_copy_up *f, hfsb_err *err) {
    hfsbi_v1            *v1 = f->copy.sandbox->v1;
    hfsb_file_write_opts opts = HFSB_INIT;
    hfsb_file_writer    *w = NULL;
    hfsbi_v1_use         use;
    const hfsb_root     *there = hfsbi_v1_begin(v1, &use, f->copy.cancel);
    char                 block[16384];
    size_t               got;
    hfsb_status          st;
    opts.mode = f->info.mode & 07777u;
    st = hfsb_file_writer_open(there, f->copy.remote, &opts, &w, err);
    while (st == HFSB_OK && f->done < f->info.size) {
        st = hfsbi_copy_up_read(f, block, sizeof block, &got, err);
        if (st == HFSB_OK)
            st = hfsb_file_writer_append(w, hfsb_str_make(block, got), err);
    }
    if (st == HFSB_OK && f->content.len)
        st = hfsb_file_writer_append(w, hfsb_buf_str(&f->content), err);
    if (st == HFSB_OK) st = hfsb_file_writer_commit(w, NULL, err);
    hfsb_file_writer_close(w);
    hfsbi_v1_end(v1, &use);
    return st;
}

static hfsb_status hfsbi_copy_up_all(hfsbi_copy_up *f, hfsb_err *err) {
    const hfsbi_version unknown = HFSB_INIT;
    hfsbi_retry retry = hfsbi_sandbox_retry(f->copy.sandbox, f->copy.cancel);
    hfsb_status st;
    bool        again;
    if (f->copy.sandbox->v1) st = hfsbi_copy_up_v1(f, err);
    else
        do st = hfsbi_copy_up_try(f, &again, err);
        while (st != HFSB_OK && again && hfsbi_copy_again(&retry, &st, err));
    if (st == HFSB_OK)
        hfsbi_sandbox_saw(f->copy.sandbox, f->copy.remote, &unknown);
    return st;
}

hfsb_status hfsb_sandbox_upload(hfsb_sandbox *sandbox, const hfsb_root *place,
                                hfsb_str local, hfsb_str remote,
                                const hfsb_copy_opts *opts, hfsb_err *err) {
    hfsbi_copy_up f;
    hfsb_status   st;
    memset(&f, 0, sizeof f);
    f.fd = -1;
    f.content.alloc = sandbox->o.alloc;
    st = hfsbi_copy_init(&f.copy, sandbox, remote, opts, err);
    if (st == HFSB_OK) st = hfsb_file_open(place, local, &f.fd, &f.info, err);
    if (st == HFSB_OK && !f.info.size) /* empty, or in /proc */
        st = hfsb_file_read(place, local, HFSBI_COPY_SMALL, &f.content, NULL,
                            err);
    if (st == HFSB_OK && f.info.mode &&
        hfsb_buf_printf(&f.copy.path, "&mode=%04o", f.info.mode & 07777u) !=
            HFSB_OK)
        st = hfsbi_fail_status(err, HFSB_NOMEM, "Path");
    if (st == HFSB_OK) st = hfsbi_copy_up_all(&f, err);
    hfsbi_close(&f.fd);
    hfsb_buf_free(&f.content);
    hfsb_buf_free(&f.copy.path);
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}

/* ---- download ---- */

/* The bytes go into a buffer, or into a file that appears when it is complete.
   */
typedef struct hfsbi_copy_down {
    hfsbi_copy         copy;
    hfsb_buf          *out;       /* NULL: into a file */
    size_t             mark, max; /* of *out: where it begins, its limit */
    const hfsb_root   *place;
    hfsb_str           local;
    hfsb_file_writer  *writer;
    unsigned           mode;
    unsigned long long done, total;         /* total 0: unknown */
    char               tag[HFSBI_COPY_TAG]; /* of this version */
    hfsb_status        status;              /* of our side, */
    hfsb_err           own;                 /* and its message */
} hfsbi_copy_down;

/* For callbacks: keeps the status; false unless it is HFSB_OK. */
static bool hfsbi_copy_down_keep(hfsbi_copy_down *f, hfsb_status st) {
    f->status = st;
    return st == HFSB_OK;
}

/* Starts from the first byte; drops what came so far. */
static bool hfsbi_copy_down_begin(hfsbi_copy_down *f) {
    hfsb_file_write_opts opts = HFSB_INIT;
    f->done = 0;
    if (f->out) {
        hfsb_buf_truncate(f->out, f->mark);
        return true;
    }
    hfsb_file_writer_close(f->writer);
    f->writer = NULL;
    opts.mode = f->mode;
    return hfsbi_copy_down_keep(
        f,
        hfsb_file_writer_open(f->place, f->local, &opts, &f->writer, &f->own));
}

static bool hfsbi_copy_down_piece(hfsbi_copy_down *f, hfsb_str piece) {
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
    return hfsbi_copy_down_keep(f, st);
}

/* ---- GET /api/files ---- */

static hfsb_str hfsbi_copy_down_field(const hfsb_http_field *fields,
                                      size_t count, const char *name) {
    hfsb_str none = HFSB_LIT("");
    size_t   i;
    for (i = 0; i < count; i++)
        if (hfsb_http_same(fields[i].name, hfsb_cstr(name)))
            return fields[i].value;
    return none;
}

/* Reads the number at the start of *s, in that base, and removes it. */
static unsigned long long hfsbi_copy_down_number(hfsb_str *s, unsigned base) {
    unsigned long long n = 0;
    size_t             i = 0;
    for (; i < s->len && s->ptr[i] >= '0' &&
           (unsigned)(s->ptr[i] - '0') < base && n < (1ull << 59);
         i++)
        n = n * base + (unsigned)(s->ptr[i] - '0');
    *s = hfsb_str_slice(*s, i, s->len);
    return n;
}

/* True when a 206 resumes at our offset: "bytes 5-9/10". */
static bool hfsbi_copy_down_resumes(hfsbi_copy_down *f, hfsb_str range) {
    if (!hfsb_str_starts(range, HFSB_LIT("bytes "))) return false;
    range = hfsb_str_slice(range, 6, range.len);
    return hfsbi_copy_down_number(&range, 10) == f->done && range.len &&
           range.ptr[0] == '-';
}

static bool hfsbi_copy_down_on_head(void *user, int status,
                                    const hfsb_http_field *fields,
                                    size_t                 count) {
    hfsbi_copy_down *f = (hfsbi_copy_down *)user;
    hfsb_str         tag = hfsbi_copy_down_field(fields, count, "ETag");
    hfsb_str mode = hfsbi_copy_down_field(fields, count, "X-Hfsb-Mode");
    hfsb_str length = hfsbi_copy_down_field(fields, count, "X-Hfsb-Size");
    if (status != 200 && status != 206) return true;
    if (!hfsbi_copy_down_field(fields, count, "X-Hfsb").len)
        return hfsbi_copy_down_keep(
            f, hfsbi_fail(&f->own, HFSB_BUSY, 0,
                          "The reply did not come from the sandbox's server "
                          "(HTTP %d).",
                          status));
    if (status == 206) {
        /* a part is of use only if it was asked for */
        if (f->done && f->tag[0] &&
            hfsbi_copy_down_resumes(
                f, hfsbi_copy_down_field(fields, count, "Content-Range")))
            return true;
        f->tag[0] = '\0'; /* the next try starts over */
        return hfsbi_copy_down_keep(
            f, hfsbi_fail(&f->own, HFSB_REMOTE, 0,
                          "The server sent a part of the file that was not "
                          "asked for."));
    }
    if (tag.len >= sizeof f->tag) tag.len = 0;
    if (tag.len) memcpy(f->tag, tag.ptr, tag.len);
    f->tag[tag.len] = '\0';
    /* a file from elsewhere is not writable by others, nor setuid */
    f->mode = (unsigned)hfsbi_copy_down_number(&mode, 8) & 0755u;
    if (!length.len)
        length = hfsbi_copy_down_field(fields, count, "Content-Length");
    f->total = hfsbi_copy_down_number(&length, 10);
    return hfsbi_copy_down_begin(f);
}

static bool hfsbi_copy_down_on_body(void *user, hfsb_str piece) {
    return hfsbi_copy_down_piece((hfsbi_copy_down *)user, piece);
}

static hfsb_status hfsbi_copy_down_try(hfsbi_copy_down *f, bool *foreign,
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
    call.idle_ms = f->copy.sandbox->o.times.margin_ms;
    call.cancel = f->copy.cancel;
    call.on_head = hfsbi_copy_down_on_head;
    call.on_body = hfsbi_copy_down_on_body;
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
                            "The reply ended after %llu of %llu bytes.",
                            f->done, f->total);
            *again = true;
        }
    }
    hfsb_http_reply_free(&reply);
    return st;
}

/* A try that brought new bytes does not count as failed. */
static hfsb_status hfsbi_copy_down_whole(hfsbi_copy_down *f, bool *foreign,
                                         hfsb_err *err) {
    hfsbi_retry retry = hfsbi_sandbox_retry(f->copy.sandbox, f->copy.cancel);
    unsigned long long before;
    hfsb_status        st;
    bool               again;
    do {
        before = f->done;
        st = hfsbi_copy_down_try(f, foreign, &again, err);
        if (f->tag[0] && f->done > before) hfsbi_retry_reset(&retry);
        if (f->total && f->done == f->total && again) return HFSB_OK;
    } while (st != HFSB_OK && again && hfsbi_copy_again(&retry, &st, err));
    return st;
}

/* ---- in pieces, through bash ---- */

/* Appends a command that prints "none", "dir" or "denied"; or size, inode and
   time of the file, and on the next line its n-th piece. */
static hfsb_status hfsbi_piece_command(const hfsbi_copy_down *f, size_t n,
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

/* Runs the command for the n-th piece; *reply is its result. */
static hfsb_status hfsbi_piece_run(hfsbi_copy_down *f, size_t n,
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
    hfsb_json_put_member_str(&w, "command", hfsb_buf_str(&command));
    if (s->o.work_dir.len) hfsb_json_put_member_str(&w, "work_dir", s->o.work_dir);
    hfsb_json_put_end(&w);
    if (st == HFSB_OK) st = hfsb_json_writer_finish(&w, err);
    if (st == HFSB_OK) st = hfsbi_remote_run(&r, reply, err);
    if (st == HFSB_OK && !reply->success) st = HFSB_REMOTE;
    if (st != HFSB_OK && reply->error.len)
        hfsbi_fail(err, st, 0, "%s", reply->error.ptr);
    else if (st == HFSB_NOMEM) hfsbi_fail_status(err, st, "Piece of a file");
    hfsbi_remote_free(&r);
    hfsb_buf_free(&command);
    return st;
}

/* Splits the output into the line about the file and the piece. */
static hfsb_status hfsbi_piece_read(hfsbi_copy_down *f, hfsb_str printed,
                                    hfsb_buf *piece, hfsb_err *err) {
    size_t   end = hfsb_str_find_byte(printed, '\n');
    hfsb_str line = hfsb_str_slice(printed, 0, end);
    hfsb_str rest = hfsb_str_slice(printed, end, printed.len);
    hfsb_str path = f->copy.remote, size = line;
    int length = path.len > HFSBI_COPY_PATH ? HFSBI_COPY_PATH : (int)path.len;
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
                          "%.*s changed while it was read.", length, path.ptr);
    if (line.len >= sizeof f->tag) line.len = 0;
    if (line.len) memcpy(f->tag, line.ptr, line.len);
    f->tag[line.len] = '\0';
    f->total = hfsbi_copy_down_number(&size, 10);
    st = hfsb_base64_decode(hfsbi_trim(hfsb_str_slice(rest, 1, rest.len)),
                            piece, NULL);
    if (st != HFSB_NOMEM && (st != HFSB_OK || !line.len))
        return hfsbi_fail(err, HFSB_REMOTE, 0,
                          "The sandbox did not print the file in base64: are "
                          "stat, dd, base64 and tr installed there?");
    return st == HFSB_OK ? st : hfsbi_fail_status(err, st, "Piece of a file");
}

static hfsb_status hfsbi_copy_down_pieces(hfsbi_copy_down *f, hfsb_err *err) {
    hfsb_tool_result printed = HFSB_INIT;
    hfsb_buf         piece = HFSB_INIT;
    hfsb_status      st = HFSB_OK;
    size_t           n = 0;
    piece.alloc = f->copy.sandbox->o.alloc;
    hfsbi_result_init(&printed, &piece.alloc);
    f->tag[0] = '\0';
    if (!hfsbi_copy_down_begin(f)) st = f->status;
    do {
        hfsb_buf_truncate(&piece, 0);
        if (st == HFSB_OK) st = hfsbi_piece_run(f, n++, &printed, err);
        if (st == HFSB_OK)
            st = hfsbi_piece_read(f, hfsb_buf_str(&printed.output), &piece,
                                  err);
        if (st == HFSB_OK && !hfsbi_copy_down_piece(f, hfsb_buf_str(&piece)))
            st = f->status;
        hfsb_tool_result_free(&printed);
    } while (st == HFSB_OK && piece.len == HFSBI_COPY_PIECE &&
             (!f->total || f->done <= f->total));
    hfsb_buf_free(&piece);
    if (f->status != HFSB_OK && err) *err = f->own;
    if (st == HFSB_OK && f->total && f->done != f->total)
        st = hfsbi_fail(err, HFSB_STALE, 0,
                        "The file changed while it was read.");
    return st;
}

/* ---- from a server that speaks /v1 ---- */

static hfsb_status hfsbi_copy_down_v1(hfsbi_copy_down *f, hfsb_err *err) {
    hfsbi_v1        *v1 = f->copy.sandbox->v1;
    hfsbi_v1_use     use;
    const hfsb_root *there = hfsbi_v1_begin(v1, &use, f->copy.cancel);
    hfsb_file_info   info;
    char             block[16384];
    int              fd;
    ssize_t          n = 1;
    hfsb_status st = hfsb_file_open(there, f->copy.remote, &fd, &info, err);
    hfsbi_v1_end(v1, &use);
    if (st != HFSB_OK) return st;
    f->total = info.size;
    f->mode = info.mode & 0755u;
    if (!hfsbi_copy_down_begin(f)) st = f->status;
    while (st == HFSB_OK && n > 0) {
        n = hfsbi_read_file(fd, block, sizeof block);
        if (n < 0)
            st = hfsbi_fail_os(&f->own, errno, "The copy cannot be read");
        else if (n > 0 && !hfsbi_copy_down_piece(
                              f, hfsb_str_make(block, (size_t)n)))
            st = f->status;
    }
    hfsbi_close(&fd);
    if (st != HFSB_OK && err) *err = f->own;
    return st;
}

/* ---- any way ---- */

/* Downloads through /api/files, or if the server has none, through bash. */
static hfsb_status hfsbi_copy_down_run(hfsbi_copy_down *f, hfsb_err *err) {
    bool        foreign = false;
    hfsb_status st = f->copy.sandbox->v1
                         ? hfsbi_copy_down_v1(f, err)
                         : hfsbi_copy_down_whole(f, &foreign, err);
    if (foreign) st = hfsbi_copy_down_pieces(f, err);
    if (st == HFSB_OK && f->writer)
        st = hfsb_file_writer_commit(f->writer, NULL, err);
    hfsb_file_writer_close(f->writer);
    hfsb_buf_free(&f->copy.path);
    return st == HFSB_OK ? hfsbi_ok(err) : st;
}

hfsb_status hfsb_sandbox_download(hfsb_sandbox *sandbox, hfsb_str remote,
                                  const hfsb_root *place, hfsb_str local,
                                  const hfsb_copy_opts *opts, hfsb_err *err) {
    hfsbi_copy_down f;
    hfsb_status     st;
    memset(&f, 0, sizeof f);
    st = hfsbi_copy_init(&f.copy, sandbox, remote, opts, err);
    f.place = place;
    f.local = local;
    if (st == HFSB_OK) return hfsbi_copy_down_run(&f, err);
    hfsb_buf_free(&f.copy.path);
    return st;
}

hfsb_status hfsb_sandbox_get(hfsb_sandbox *sandbox, hfsb_str remote,
                             size_t max, const hfsb_cancel *cancel,
                             hfsb_buf *out, hfsb_err *err) {
    hfsbi_copy_down f;
    hfsb_copy_opts  opts = HFSB_INIT;
    hfsb_status     st;
    memset(&f, 0, sizeof f);
    opts.cancel = cancel;
    st = hfsbi_copy_init(&f.copy, sandbox, remote, &opts, err);
    f.out = out;
    f.mark = out->len;
    f.max = max ? max : (size_t)HFSBI_COPY_SMALL;
    if (st == HFSB_OK) st = hfsbi_copy_down_run(&f, err);
    else hfsb_buf_free(&f.copy.path);
    if (st != HFSB_OK) hfsb_buf_truncate(out, f.mark);
    return st;
}
