/* server_upload.c - PUT of /api/files: a body of any size becomes a file.
   Depends on: file, hash, server_files. */
#include "server_files.h"

/* The loop fills one block while a thread writes the other; when both are full
   the peer waits. A block holds this and one more piece at most. */
enum { HFSBI_UPLOAD_BLOCK = 192 * 1024 };

typedef struct hfsbi_upload {
    hfsbi_file_job job;
    /* the thread's while `working`, else the loop's */
    hfsb_file_writer *writer;
    hfsb_sha256       sha;
    hfsb_file_written written;
    unsigned          mode;
    bool              opened;
    hfsb_buf          block[2];
    /* set before the thread begins: what it shall do */
    unsigned writing; /* which block */
    bool     finish;  /* and it was the last one */
    bool     drop;    /* nothing but to leave no trace */
    /* the loop's */
    bool working, paused, ended;
} hfsbi_upload;

/* ---- in a thread ---- */

static bool hfsbi_any_tag(const hfsb_buf *list) {
    return hfsb_str_equal(hfsbi_trim(hfsb_buf_str(list)), HFSB_LIT("*"));
}

static hfsb_status hfsbi_upload_start(hfsbi_upload *u) {
    hfsbi_file_job      *job = &u->job;
    const hfsb_place    *place = job->files->place;
    hfsb_str             path = hfsb_buf_str(&job->path);
    hfsb_file_write_opts opts = HFSB_INIT;
    hfsb_file_info       info;
    hfsb_status          st;
    opts.mode = u->mode;
    if (job->match.ptr || job->none_match.ptr) {
        st = hfsb_file_stat(place, path, &info, &job->err);
        if (st != HFSB_OK && st != HFSB_NOT_FOUND) return st;
        if (!hfsbi_file_job_may(job, st == HFSB_OK ? &info : NULL, true))
            return HFSB_REFUSED;
        /* and so it must be at the end, too */
        if (job->match.ptr && !hfsbi_any_tag(&job->match))
            opts.if_same = &info;
        opts.create = hfsbi_any_tag(&job->none_match);
    }
    hfsb_sha256_init(&u->sha);
    return hfsb_file_writer_open(place, path, &opts, &u->writer, &job->err);
}

static void hfsbi_upload_run(hfsbi_task *task) {
    hfsbi_upload *u = (hfsbi_upload *)(void *)task;
    hfsb_err     *err = &u->job.err;
    hfsb_str      piece = hfsb_buf_str(&u->block[u->writing]);
    hfsb_status   st = HFSB_OK;
    if (!u->drop && !u->opened) st = hfsbi_upload_start(u);
    u->opened = true;
    if (!u->drop && st == HFSB_OK && piece.len) {
        hfsb_sha256_write(&u->sha, piece);
        st = hfsb_file_writer_append(u->writer, piece, err);
    }
    if (!u->drop && st == HFSB_OK && u->finish) {
        st = hfsb_file_writer_commit(u->writer, &u->written, err);
        if (st == HFSB_OK) u->job.http = u->written.created ? 201 : 200;
    }
    if (st != HFSB_OK && !u->job.http) hfsbi_file_job_failed(&u->job);
    if (u->drop || u->job.http) {
        hfsb_file_writer_close(u->writer);
        u->writer = NULL;
    }
}

/* ---- in the loop ---- */

static hfsb_status hfsbi_upload_text(hfsbi_upload *u, hfsb_buf *body) {
    char             hex[HFSB_SHA256_HEX];
    hfsb_buf         out = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_status      st;
    out.alloc = body->alloc;
    hfsbi_sha256_finish_hex(&u->sha, hex);
    st = hfsb_buf_printf(&out, "Wrote %llu bytes to %s", u->written.bytes,
                         u->job.path.ptr);
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
    if (u->job.http >= 300) {
        hfsbi_file_job_refuse(&u->job);
        return;
    }
    body.alloc = u->job.files->alloc;
    request = hfsbi_file_job_reply(&u->job);
    st = hfsbi_upload_text(u, &body);
    hfsbi_file_etag(&u->written.info, etag);
    if (st == HFSB_OK) st = hfsb_reply_field(request, "ETag", hfsb_cstr(etag));
    if (st == HFSB_OK)
        hfsbi_reply_take(request, u->job.http, "application/json", &body);
    else hfsb_reply_error(request, 503, "Out of memory. The file is written.");
    hfsb_buf_free(&body);
}

static void hfsbi_upload_work(hfsbi_upload *u, unsigned block) {
    u->writing = block;
    u->finish = u->ended;
    u->drop = !u->job.request;
    u->working = true;
    hfsbi_loop_work(u->job.files->loop, &u->job.task);
}

/* The one place that decides how it goes on; u may be freed. */
static void hfsbi_upload_step(hfsbi_upload *u) {
    unsigned full = !u->writing;
    if (u->working) return;
    if (u->job.request && u->job.http) hfsbi_upload_reply(u);
    if (!u->job.request && !u->writer) {
        hfsb_buf_free(&u->block[0]);
        hfsb_buf_free(&u->block[1]);
        hfsbi_file_job_free(&u->job);
        return;
    }
    hfsb_buf_truncate(&u->block[u->writing], 0);
    if (!u->opened || !u->job.request || u->ended ||
        u->block[full].len >= HFSBI_UPLOAD_BLOCK)
        hfsbi_upload_work(u, full);
    if (!u->paused || !u->job.request) return;
    u->paused = false;
    hfsb_request_resume(u->job.request); /* may bring the next piece at once */
}

static void hfsbi_upload_done(hfsbi_task *task) {
    hfsbi_upload *u = (hfsbi_upload *)(void *)task;
    u->working = false;
    hfsbi_upload_step(u);
}

static void hfsbi_upload_gone(void *user, hfsb_request *request) {
    hfsbi_upload *u = (hfsbi_upload *)user;
    (void)request;
    u->job.request = NULL;
    hfsbi_upload_step(u);
}

/* Octal, 1 to 7777; 0 when it is not. */
static unsigned hfsbi_upload_mode(hfsb_str text) {
    unsigned mode = 0;
    size_t   i;
    if (text.len > 5) return 0;
    for (i = 0; i < text.len; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '7') return 0;
        mode = mode * 8 + (unsigned)(text.ptr[i] - '0');
    }
    return mode <= 07777u ? mode : 0;
}

/* False when it has replied. */
static bool hfsbi_upload_options(hfsb_request     *request,
                                 const hfsb_alloc *alloc, unsigned *mode) {
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsb_buf              text = HFSB_INIT;
    hfsb_err              err = HFSB_INIT;
    hfsb_status           st;
    bool                  good = false;
    text.alloc = *alloc;
    *mode = 0;
    st = hfsb_request_query(request, "mode", &text, &err);
    if (st == HFSB_OK) *mode = hfsbi_upload_mode(hfsb_buf_str(&text));
    if (st == HFSB_NOMEM) hfsb_reply_error(request, 503, "Out of memory.");
    else if (st == HFSB_SYNTAX) hfsb_reply_error(request, 400, "%s", err.msg);
    else if (st == HFSB_OK && *mode == 0)
        hfsbi_files_bad_key(request, "mode", "value_error",
                            hfsb_str_make(text.ptr ? text.ptr : "", text.len),
                            "mode must be an octal number from 1 to 7777, as "
                            "in mode=0755.");
    else if (hfsb_http_field_find(head, "Content-Range").ptr)
        hfsb_reply_error(request, 400,
                         "A file is written whole: Content-Range cannot be "
                         "used here.");
    else good = true;
    hfsb_buf_free(&text);
    return good;
}

/* The file is looked at before the body is there. A peer that asks first
   whether it may send (Expect) hears of a refusal in place of "100". */
HFSBI_FN void hfsbi_upload_begin(void *user, hfsb_request *request) {
    hfsbi_files  *files = (hfsbi_files *)user;
    hfsbi_upload *u;
    unsigned      mode;
    if (!hfsbi_upload_options(request, &files->alloc, &mode)) return;
    u = (hfsbi_upload *)(void *)hfsbi_file_job_open(files, request, sizeof *u,
                                                    hfsbi_upload_gone);
    if (!u) return;
    u->mode = mode;
    u->block[0].alloc = u->block[1].alloc = files->alloc;
    u->job.task.run = hfsbi_upload_run;
    u->job.task.done = hfsbi_upload_done;
    if (hfsb_request_head(request)->expect_continue) {
        u->paused = true;
        hfsb_request_pause(request);
    }
    hfsbi_upload_work(u, 0);
}

HFSBI_FN void hfsbi_upload_body(void *user, hfsb_request *request,
                                hfsb_str piece) {
    hfsbi_upload *u = (hfsbi_upload *)hfsb_request_get(request);
    hfsb_buf     *block;
    (void)user;
    if (!u) return;
    block = &u->block[!u->writing];
    if (hfsb_buf_append(block, piece) != HFSB_OK) {
        hfsb_reply_error(hfsbi_file_job_reply(&u->job), 503,
                         "Out of memory. The file is as it was.");
    } else if (u->working && block->len >= HFSBI_UPLOAD_BLOCK) {
        u->paused = true;
        hfsb_request_pause(request);
    }
    hfsbi_upload_step(u);
}

HFSBI_FN void hfsbi_upload_end(void *user, hfsb_request *request) {
    hfsbi_upload *u = (hfsbi_upload *)hfsb_request_get(request);
    (void)user;
    if (!u) return;
    u->ended = true;
    hfsbi_upload_step(u);
}
