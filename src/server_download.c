/* server_download.c - GET and DELETE of /api/files. Depends on: file,
   server_files. */
#include "server_files.h"

/* Largest file without a size of its own (those of /proc), which is read into
   memory. */
enum { HFSBI_SIZELESS_MAX = 16 << 20 };

typedef struct hfsbi_fetch {
    hfsbi_file_job     job;
    bool               ranges;                 /* GET: a Range counts */
    hfsb_buf           range, if_range, since; /* ptr NULL: none */
    int                fd;
    hfsb_file_info     info;
    hfsb_buf           content; /* of a file without a size */
    unsigned long long first, length;
} hfsbi_fetch;

/* ---- in a thread ---- */

/* 304, as If-None-Match or, without one, If-Modified-Since says; a date must
   be the one we gave. */
static bool hfsbi_fetch_unchanged(const hfsbi_fetch *f, const char *etag) {
    char date[HFSB_HTTP_DATE];
    if (f->job.none_match.ptr)
        return hfsbi_etag_listed(hfsb_buf_str(&f->job.none_match), etag, true);
    if (!f->since.ptr) return false;
    hfsb_http_date(f->info.changed, date);
    return hfsb_str_equal(hfsb_buf_str(&f->since), hfsb_cstr(date));
}

/* What to answer about an open file: sets http, first and length. */
static void hfsbi_fetch_decide(hfsbi_fetch *f) {
    char etag[HFSBI_ETAG];
    hfsbi_file_etag(&f->info, etag);
    if (!hfsbi_file_job_may(&f->job, &f->info, false)) return;
    f->job.http = 200;
    f->first = 0;
    f->length = f->info.size;
    if (hfsbi_fetch_unchanged(f, etag)) {
        f->job.http = 304;
        return;
    }
    if (!f->ranges || !f->range.ptr) return;
    /* the part is wanted of that version only */
    if (f->if_range.ptr &&
        !hfsb_str_equal(hfsb_buf_str(&f->if_range), hfsb_cstr(etag)))
        return;
    switch (hfsbi_range_parse(hfsb_buf_str(&f->range), f->info.size, &f->first,
                              &f->length)) {
    case HFSBI_RANGE_PART: f->job.http = 206; break;
    case HFSBI_RANGE_BEYOND:
        f->job.http = 416;
        hfsbi_fail(&f->job.err, HFSB_ARG, 0,
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

static void hfsbi_fetch_run(hfsbi_task *task) {
    hfsbi_fetch    *f = (hfsbi_fetch *)(void *)task;
    hfsbi_file_job *job = &f->job;
    hfsb_str        path = hfsb_buf_str(&job->path);
    hfsb_status     st;
    if (job->http) { /* was done; no one wants the file any more */
        hfsbi_close(&f->fd);
        return;
    }
    st = hfsb_file_open(job->files->place, path, &f->fd, &f->info, &job->err);
    if (st == HFSB_OK && f->info.size == 0) { /* empty, or one of /proc */
        st = hfsb_file_read(job->files->place, path, HFSBI_SIZELESS_MAX,
                            &f->content, NULL, &job->err);
        /* some of /proc cannot be read at all, such as /proc/self/mem: that is
           no fault of the disk */
        if (st == HFSB_IO) job->http = 400;
    }
    if (st != HFSB_OK && !job->http) hfsbi_file_job_failed(job);
    else if (f->content.len) job->http = 200;
    else if (st == HFSB_OK) hfsbi_fetch_decide(f);
    if ((job->http != 200 && job->http != 206) || f->content.len)
        hfsbi_close(&f->fd);
}

static void hfsbi_remove_run(hfsbi_task *task) {
    hfsbi_file_job *job = (hfsbi_file_job *)(void *)task;
    hfsb_str        path = hfsb_buf_str(&job->path);
    hfsb_file_info  info;
    hfsb_status     st = HFSB_OK;
    if (job->match.ptr) {
        st = hfsb_file_stat(job->files->place, path, &info, &job->err);
        if (st == HFSB_NOT_FOUND) {
            (void)hfsbi_file_job_may(job, NULL, false);
            return;
        }
        if (st == HFSB_OK && !hfsbi_file_job_may(job, &info, false)) return;
    }
    if (st == HFSB_OK)
        st = hfsb_file_remove(job->files->place, path, &job->err);
    job->http = 200;
    if (st != HFSB_OK) hfsbi_file_job_failed(job);
}

/* ---- in the loop ---- */

static void hfsbi_fetch_free(hfsbi_fetch *f) {
    hfsb_buf_free(&f->range);
    hfsb_buf_free(&f->if_range);
    hfsb_buf_free(&f->since);
    hfsb_buf_free(&f->content);
    hfsbi_file_job_free(&f->job);
}

/* What tells of the file, in the head; false without memory. */
static bool hfsbi_fetch_fields(hfsbi_fetch *f, hfsb_request *request) {
    char text[HFSBI_ETAG];
    bool ok;
    (void)snprintf(text, sizeof text, "%04o", f->info.mode & 07777u);
    ok = hfsb_reply_field(request, "X-Hfsb-Mode", hfsb_cstr(text)) == HFSB_OK;
    /* of the whole file, for those who get it without Content-Length: a proxy
       may make chunks of it, and end them early */
    (void)snprintf(text, sizeof text, "%llu",
                   f->content.len ? (unsigned long long)f->content.len
                                  : f->info.size);
    ok = ok &&
         hfsb_reply_field(request, "X-Hfsb-Size", hfsb_cstr(text)) == HFSB_OK;
    if (f->content.len) return ok; /* says neither when nor how it changed */
    hfsbi_file_etag(&f->info, text);
    ok = ok && hfsb_reply_field(request, "ETag", hfsb_cstr(text)) == HFSB_OK;
    ok = ok && hfsb_reply_field(request, "Accept-Ranges", HFSB_LIT("bytes")) ==
                   HFSB_OK;
    hfsb_http_date(f->info.changed, text);
    ok = ok && hfsb_reply_field(request, "Last-Modified", hfsb_cstr(text)) ==
                   HFSB_OK;
    if (f->job.http == 206)
        (void)snprintf(text, sizeof text, "bytes %llu-%llu/%llu", f->first,
                       f->first + f->length - 1, f->info.size);
    if (f->job.http == 416)
        (void)snprintf(text, sizeof text, "bytes */%llu", f->info.size);
    if (f->job.http == 206 || f->job.http == 416)
        ok = ok && hfsb_reply_field(request, "Content-Range",
                                    hfsb_cstr(text)) == HFSB_OK;
    return ok;
}

static void hfsbi_fetch_reply(hfsbi_fetch *f) {
    const char   *type = "application/octet-stream";
    hfsb_request *request = f->job.request;
    int           http = f->job.http;
    if ((http < 300 || http == 304 || http == 416) &&
        !hfsbi_fetch_fields(f, request)) {
        f->job.http = http = 503;
        hfsbi_fail_status(&f->job.err, HFSB_NOMEM, "Reply");
    }
    if (http >= 400) {
        hfsbi_file_job_refuse(&f->job);
        return;
    }
    (void)hfsbi_file_job_reply(&f->job);
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
    if (f->job.request) hfsbi_fetch_reply(f);
    /* a close may wait for the disk when the file was removed meanwhile */
    if (f->fd >= 0) hfsbi_loop_work(f->job.files->loop, task);
    else hfsbi_fetch_free(f);
}

static void hfsbi_remove_done(hfsbi_task *task) {
    hfsbi_file_job  *job = (hfsbi_file_job *)(void *)task;
    hfsb_buf         out = HFSB_INIT, body = HFSB_INIT;
    hfsb_json_writer w;
    hfsb_request    *request;
    body.alloc = out.alloc = job->files->alloc;
    if (job->request && job->http != 200) {
        hfsbi_file_job_refuse(job);
    } else if (job->request) {
        hfsb_status st = hfsb_buf_printf(&out, "Removed %s", job->path.ptr);
        hfsb_json_writer_init(&w, &body, NULL);
        hfsb_json_put_object(&w);
        hfsbi_put_member_bool(&w, "success", true);
        hfsbi_put_member_str(&w, "output", hfsb_buf_str(&out));
        hfsbi_put_member_str(&w, "error", HFSB_LIT(""));
        hfsb_json_put_end(&w);
        if (hfsb_json_writer_finish(&w, NULL) != HFSB_OK) st = HFSB_NOMEM;
        request = hfsbi_file_job_reply(job);
        if (st == HFSB_OK)
            hfsbi_reply_take(request, 200, "application/json", &body);
        else
            hfsb_reply_error(request, 503,
                             "Out of memory. The file is removed.");
    }
    hfsb_buf_free(&out);
    hfsb_buf_free(&body);
    hfsbi_file_job_free(job);
}

/* The thread goes on with what it does; then no one is told. */
static void hfsbi_fetch_gone(void *user, hfsb_request *request) {
    (void)request;
    ((hfsbi_file_job *)user)->request = NULL;
}

/* A field that must come once to count; false without memory. */
static bool hfsbi_fetch_field(const hfsb_http_head *head, const char *name,
                              hfsb_buf *out) {
    if (hfsb_http_field_count(head, name) != 1) return true;
    return hfsb_buf_append(out, hfsb_http_field_find(head, name)) == HFSB_OK;
}

HFSBI_FN void hfsbi_download(void *user, hfsb_request *request) {
    hfsbi_files          *files = (hfsbi_files *)user;
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsbi_fetch          *f = (hfsbi_fetch *)(void *)hfsbi_file_job_open(
                 files, request, sizeof *f, hfsbi_fetch_gone);
    if (!f) return;
    f->fd = -1;
    f->ranges = hfsb_str_equal(head->method, HFSB_LIT("GET"));
    f->range.alloc = f->if_range.alloc = files->alloc;
    f->since.alloc = f->content.alloc = files->alloc;
    f->job.task.run = hfsbi_fetch_run;
    f->job.task.done = hfsbi_fetch_done;
    if (hfsbi_fetch_field(head, "Range", &f->range) &&
        hfsbi_fetch_field(head, "If-Range", &f->if_range) &&
        hfsbi_fetch_field(head, "If-Modified-Since", &f->since)) {
        hfsbi_loop_work(files->loop, &f->job.task);
        return;
    }
    hfsb_reply_error(hfsbi_file_job_reply(&f->job), 503, "Out of memory.");
    hfsbi_fetch_free(f);
}

HFSBI_FN void hfsbi_remove(void *user, hfsb_request *request) {
    hfsbi_files    *files = (hfsbi_files *)user;
    hfsbi_file_job *job =
        hfsbi_file_job_open(files, request, sizeof *job, hfsbi_fetch_gone);
    if (!job) return;
    job->task.run = hfsbi_remove_run;
    job->task.done = hfsbi_remove_done;
    hfsbi_loop_work(files->loop, &job->task);
}
