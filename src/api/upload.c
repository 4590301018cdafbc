/* upload.c - the body of a request as a file, or as several.

   The body goes to the disk in blocks: the loop fills one while a pool thread
   writes the other. The thread opens the writer, writes and commits; the loop
   only collects bytes, and calls `done` at the end. Reading the body pauses
   while both blocks are full.

   A body of multipart/form-data is taken apart in the thread as well, which
   opens and commits a file for each part that `part` gives a path to. A file
   is replaced only after all its bytes have arrived; bytes of a range are
   written as they come.

   A thread never touches the request, and the loop never touches an upload
   that a thread works on, except for the block that the loop fills. */
#include "api_private.h"

/* Bytes; one more piece may exceed it. */
enum { HFSBI_UPLOAD_BLOCK = 192 * 1024 };

/* A thread works in every state but FILL. What the client does meanwhile is
   kept in `input`, and leads to the next state once the thread is done:

     OPEN --+    +--> FILL     to collect more of the body
     FILL --+--> +--> WRITE    the block is full
     WRITE -+    +--> COMMIT   the body has ended
                 +--> DROP     the client is lost

   COMMIT, DROP, and a failure in any state are the end: the thread closes the
   writer, the loop calls `done` and frees the upload. */
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

struct hfsbi_upload {
    hfsbi_upload_opts opts; /* its path is no longer valid */
    hfsbi_range_opts  range;
    bool              ranged; /* opts.range was given */
    hfsb_alloc        alloc;
    long long         began; /* hfsb_clock_ms() */
    /* used by the thread; by the loop once it is done */
    hfsbi_multipart     multipart;
    hfsb_buf            path;   /* of the file that is written */
    hfsb_file_writer   *writer; /* NULL: none is open */
    hfsbi_range_writer *patch;  /* instead of it, for a range */
    hfsb_sha256         sha;
    hfsbi_upload_file  *files; /* written; their paths are owned */
    size_t              file_count, file_room;
    int                 http; /* status of the reply; 0: not known yet */
    hfsb_err            err;
    /* set by the loop before the thread starts */
    hfsbi_upload_state state;
    unsigned           filling; /* index of the loop's block; the other one is
                                   the thread's */
    hfsb_buf           block[2];
    /* used by the loop */
    hfsbi_upload_input input;
};

/* ---- in a pool thread: a file ---- */

static bool hfsbi_upload_is_open(const hfsbi_upload *u) {
    return u->writer || u->patch;
}

/* Without a commit before it, the file is unchanged. */
static void hfsbi_upload_close(hfsbi_upload *u) {
    hfsb_file_writer_close(u->writer);
    hfsbi_range_writer_close(u->patch);
    u->writer = NULL;
    u->patch = NULL;
}

/* Checks the conditions and opens the writer for u->path. */
static hfsb_status hfsbi_upload_open(hfsbi_upload *u) {
    hfsb_file_write_opts write = u->opts.write;
    const hfsb_root     *root = u->opts.root;
    hfsb_status          st = HFSB_OK;
    if (u->opts.prepare)
        st =
            u->opts.prepare(u->opts.user, &u->path, &write, &u->http, &u->err);
    if (st != HFSB_OK) return st;
    hfsb_sha256_init(&u->sha);
    if (u->ranged)
        return hfsbi_range_writer_open(root, hfsb_buf_str(&u->path), &u->range,
                                       &u->patch, &u->err);
    return hfsb_file_writer_open(root, hfsb_buf_str(&u->path), &write,
                                 &u->writer, &u->err);
}

static hfsb_status hfsbi_upload_append(hfsbi_upload *u, hfsb_str bytes) {
    if (!u->opts.no_sha256) hfsb_sha256_write(&u->sha, bytes);
    return u->patch ? hfsbi_range_writer_append(u->patch, bytes, &u->err)
                    : hfsb_file_writer_append(u->writer, bytes, &u->err);
}

/* Makes room in the list of files before a commit, which must not run out of
   memory after it has changed the file. */
static bool hfsbi_upload_make_room(hfsbi_upload *u) {
    size_t             room = u->file_room ? u->file_room * 2 : 1;
    hfsbi_upload_file *files;
    if (u->file_count < u->file_room) return true;
    files = (hfsbi_upload_file *)hfsbi_array(&u->alloc, room, sizeof *files);
    if (!files) return false;
    if (u->file_count) memcpy(files, u->files, u->file_count * sizeof *files);
    hfsbi_array_free(&u->alloc, u->files, u->file_room, sizeof *files);
    u->files = files;
    u->file_room = room;
    return true;
}

/* Commits the file and adds it to the list. */
static hfsb_status hfsbi_upload_commit(hfsbi_upload *u) {
    hfsbi_upload_file *file;
    hfsb_status        st;
    if (!hfsbi_upload_make_room(u))
        return hfsbi_fail_status(&u->err, HFSB_NOMEM, "Upload");
    file = &u->files[u->file_count];
    memset(file, 0, sizeof *file);
    st = u->patch
             ? hfsbi_range_writer_commit(u->patch, &file->written, &u->err)
             : hfsb_file_writer_commit(u->writer, &file->written, &u->err);
    hfsbi_upload_close(u);
    if (st != HFSB_OK) return st;
    if (!u->opts.no_sha256) hfsbi_sha256_finish_hex(&u->sha, file->sha256);
    file->path = u->path; /* moved */
    memset(&u->path, 0, sizeof u->path);
    u->path.alloc = u->alloc;
    u->file_count++;
    return HFSB_OK;
}

/* ---- in a pool thread: parts ---- */

/* A part begins: asks for its path. Without one it is skipped. */
static hfsb_status hfsbi_upload_begin_part(hfsbi_upload *u) {
    hfsb_status st;
    hfsb_buf_truncate(&u->path, 0);
    st =
        u->opts.part(u->opts.user, &u->multipart, &u->path, &u->http, &u->err);
    if (st != HFSB_OK || u->path.len == 0) return st;
    return hfsbi_upload_open(u);
}

/* Takes the next bytes of a body in parts; `last`: it ends with them. */
static hfsb_status hfsbi_upload_split(hfsbi_upload *u, hfsb_str in,
                                      bool last) {
    hfsb_status st = HFSB_OK;
    while (st == HFSB_OK) {
        hfsb_str data;
        size_t   used = 0;
        switch (hfsbi_multipart_next(&u->multipart, in, last, &data, &used,
                                     &u->err)) {
        case HFSBI_MULTIPART_PART: st = hfsbi_upload_begin_part(u); break;
        case HFSBI_MULTIPART_DATA:
            if (hfsbi_upload_is_open(u)) st = hfsbi_upload_append(u, data);
            break;
        case HFSBI_MULTIPART_PART_END:
            if (hfsbi_upload_is_open(u)) st = hfsbi_upload_commit(u);
            break;
        case HFSBI_MULTIPART_BAD:
            u->http = u->err.code == HFSB_LIMIT ? 413 : 400;
            return u->err.code;
        case HFSBI_MULTIPART_MORE:
        case HFSBI_MULTIPART_END: return HFSB_OK;
        }
        in = hfsb_str_slice(in, used, in.len);
    }
    return st;
}

/* ---- in a pool thread: steps ---- */

/* Writes the thread's block, which is empty afterwards. */
static hfsb_status hfsbi_upload_write(hfsbi_upload *u, bool last) {
    hfsb_buf   *block = &u->block[!u->filling];
    hfsb_status st = HFSB_OK;
    if (u->opts.part) st = hfsbi_upload_split(u, hfsb_buf_str(block), last);
    else if (block->len) st = hfsbi_upload_append(u, hfsb_buf_str(block));
    hfsb_buf_truncate(block, 0);
    if (st != HFSB_OK || !last) return st;
    if (!u->opts.part) st = hfsbi_upload_commit(u);
    if (st == HFSB_OK)
        u->http = !u->opts.part && u->files[0].written.created ? 201 : 200;
    return st;
}

static void hfsbi_upload_run(void *user) {
    hfsbi_upload *u = (hfsbi_upload *)user;
    hfsb_status   st = HFSB_OK;
    if (u->state == HFSBI_UPLOAD_OPEN && !u->opts.part)
        st = hfsbi_upload_open(u);
    else if (u->state == HFSBI_UPLOAD_WRITE) st = hfsbi_upload_write(u, false);
    else if (u->state == HFSBI_UPLOAD_COMMIT) st = hfsbi_upload_write(u, true);
    if (st != HFSB_OK && !u->http) u->http = hfsbi_file_http_status(st);
    if (u->http || u->state == HFSBI_UPLOAD_DROP) hfsbi_upload_close(u);
}

/* ---- in the loop ---- */

static void hfsbi_upload_free(hfsbi_upload *u) {
    hfsb_alloc alloc = u->alloc;
    size_t     i;
    for (i = 0; i < u->file_count; i++) hfsb_buf_free(&u->files[i].path);
    hfsbi_array_free(&alloc, u->files, u->file_room, sizeof *u->files);
    hfsb_buf_free(&u->block[0]);
    hfsb_buf_free(&u->block[1]);
    hfsb_buf_free(&u->path);
    hfsbi_multipart_free(&u->multipart);
    hfsbi_array_free(&alloc, u, 1, sizeof *u);
}

/* Adds an event for each file, and for the one that failed. */
static void hfsbi_upload_report(const hfsbi_upload *u,
                                const hfsb_request *request) {
    size_t i;
    for (i = 0; i < u->file_count; i++)
        hfsbi_api_report_request(
            request, u->opts.tools, "upload", hfsb_buf_str(&u->files[i].path),
            "", HFSB_LIT(""), u->began, u->files[i].written.bytes);
    if (u->http >= 300)
        hfsbi_api_report_request(request, u->opts.tools, "upload",
                                 hfsb_buf_str(&u->path), "",
                                 hfsb_cstr(u->err.msg), u->began, 0);
}

/* Reports the end, which frees the upload. */
static void hfsbi_upload_finish_with(hfsbi_upload *u, hfsb_request *request) {
    hfsbi_upload_end end = HFSB_INIT;
    end.status = u->http;
    end.err = &u->err;
    end.path = hfsb_buf_str(&u->path);
    end.files = u->files;
    end.file_count = u->file_count;
    hfsbi_upload_report(u, request);
    u->opts.done(u->opts.user, request, &end);
    hfsbi_upload_free(u);
}

static void hfsbi_upload_worked(void *user, hfsb_request *request);

/* Gives the thread the block that the loop has filled. */
static void hfsbi_upload_work(hfsbi_upload *u, hfsb_request *request,
                              hfsbi_upload_state state) {
    u->state = state;
    u->filling = !u->filling;
    hfsbi_request_work(request, &u->opts.tools->rights, hfsbi_upload_run,
                       hfsbi_upload_worked, u);
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

static void hfsbi_upload_worked(void *user, hfsb_request *request) {
    hfsbi_upload *u = (hfsbi_upload *)user;
    if (u->http || u->state == HFSBI_UPLOAD_DROP) {
        hfsbi_upload_finish_with(u, request);
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

/* Copies the options; fails with the error of the upload. */
static hfsb_status hfsbi_upload_init(hfsbi_upload            *u,
                                     const hfsbi_upload_opts *opts,
                                     hfsb_request            *request) {
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsb_status           st;
    u->opts = *opts;
    if (!u->opts.root) u->opts.root = opts->tools->place;
    u->ranged = opts->range != NULL;
    if (u->ranged) u->range = *opts->range;
    u->began = hfsb_clock_ms();
    u->path.alloc = u->block[0].alloc = u->block[1].alloc = u->alloc;
    u->multipart.head.alloc = u->alloc;
    if (!opts->part) {
        st = hfsb_buf_append(&u->path, opts->path);
        if (st == HFSB_OK) return st;
        return hfsbi_fail_status(&u->err, st, "Upload");
    }
    u->multipart.max_parts = opts->max_parts;
    st = hfsbi_multipart_begin(
        &u->multipart, hfsb_http_field_find(head, "Content-Type"), &u->err);
    if (st == HFSB_ARG) u->http = 415;
    else if (st == HFSB_SYNTAX) u->http = 400;
    return st;
}

HFSBI_FN void hfsbi_upload_start(hfsb_request            *request,
                                 const hfsbi_upload_opts *opts) {
    const hfsb_alloc *alloc = hfsbi_server_alloc(hfsb_request_server(request));
    hfsbi_upload     *u = (hfsbi_upload *)hfsbi_array(alloc, 1, sizeof *u);
    hfsb_status       st;
    if (!u) {
        hfsbi_upload_end end = HFSB_INIT;
        hfsb_err         err = HFSB_INIT;
        hfsbi_fail_status(&err, HFSB_NOMEM, "Upload");
        end.status = 503;
        end.err = &err;
        opts->done(opts->user, request, &end);
        return;
    }
    memset(u, 0, sizeof *u);
    u->alloc = *alloc;
    st = hfsbi_upload_init(u, opts, request);
    if (st != HFSB_OK) {
        if (!u->http) u->http = hfsbi_file_http_status(st);
        hfsbi_upload_finish_with(u, request);
        return;
    }
    hfsb_request_set(request, u);
    hfsb_request_on_gone(request, hfsbi_upload_on_gone, u);
    if (hfsb_request_head(request)->expect_continue)
        hfsb_request_pause(request);
    hfsbi_upload_work(u, request, HFSBI_UPLOAD_OPEN);
}

HFSBI_FN void hfsbi_upload_body(void *user, hfsb_request *request,
                                hfsb_str piece) {
    hfsbi_upload *u = (hfsbi_upload *)hfsb_request_get(request);
    hfsb_buf     *block = &u->block[u->filling];
    (void)user;
    if (hfsb_buf_append(block, piece) != HFSB_OK) {
        hfsb_reply_error(request, 503, "Out of memory.%s",
                         u->opts.part ? " Earlier parts may be written."
                         : u->ranged  ? ""
                                      : " The file is as it was.");
        u->input = HFSBI_UPLOAD_LOST;
    } else if (u->state != HFSBI_UPLOAD_FILL &&
               block->len >= HFSBI_UPLOAD_BLOCK) {
        hfsb_request_pause(request);
    }
    hfsbi_upload_step(u, request);
}

HFSBI_FN void hfsbi_upload_finish(void *user, hfsb_request *request) {
    hfsbi_upload *u = (hfsbi_upload *)hfsb_request_get(request);
    (void)user;
    u->input = HFSBI_UPLOAD_ENDED;
    hfsbi_upload_step(u, request);
}
