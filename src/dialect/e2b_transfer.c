/* e2b_transfer.c - E2B's envd: files as bodies of HTTP.

       GET  /files           a file, by fetch.c
       POST /files           a body, or the parts of one, by upload.c
       POST /files/compose   joins files, in a pool thread

   Bodies are sent and received without a content coding. */
#include "dialect_private.h"

enum { HFSBI_E2B_NAMES = 20 }; /* of written files in an error */

/* ---- GET /files ---- */

/* Appends the absolute path of the query; false after an error reply. */
static bool hfsbi_e2b_query_path(const hfsbi_e2b_box *box,
                                 hfsb_request *request, bool required,
                                 hfsb_buf *path) {
    hfsb_buf    given = HFSB_INIT;
    hfsb_err    err = HFSB_INIT;
    hfsb_status st;
    given.alloc = path->alloc = box->env.alloc;
    st = hfsb_request_query(request, "path", &given, &err);
    if (st == HFSB_NOT_FOUND && !required) st = HFSB_OK;
    else if (st == HFSB_NOT_FOUND || (st == HFSB_OK && !given.len && required))
        st =
            hfsbi_fail(&err, HFSB_ARG, 0, "path is required: /files?path=...");
    if (st == HFSB_OK && given.len &&
        !hfsbi_e2b_path(box, hfsb_buf_str(&given), path))
        st = hfsbi_fail_status(&err, HFSB_NOMEM, "Path");
    hfsb_buf_free(&given);
    if (st == HFSB_OK) return true;
    hfsb_reply_error(request, st == HFSB_NOMEM ? 503 : 400, "%s", err.msg);
    hfsb_buf_free(path);
    return false;
}

/* True for a weight such as "q=0" or "q=0.000" after the name of a coding. */
static bool hfsbi_e2b_is_refused(hfsb_str weight) {
    size_t i;
    weight = hfsbi_trim(weight);
    if (weight.len < 3 ||
        !hfsb_http_same(hfsb_str_slice(weight, 0, 2), HFSB_LIT("q=")))
        return false;
    for (i = 2; i < weight.len; i++)
        if (weight.ptr[i] != '0' && weight.ptr[i] != '.') return false;
    return true;
}

/* True if the client takes a body without a content coding: unless it refuses
   that by name, or all that it does not name. */
static bool hfsbi_e2b_takes_plain(const hfsb_http_head *head) {
    bool   named = false, plain = true, others = true;
    size_t i;
    for (i = 0; i < head->field_count; i++) {
        hfsb_str list = head->fields[i].value, item, name;
        if (!hfsb_http_same(head->fields[i].name, HFSB_LIT("accept-encoding")))
            continue;
        while (hfsbi_list_next(&list, ',', &item)) {
            if (!hfsbi_list_next(&item, ';', &name)) continue;
            name = hfsbi_trim(name);
            if (hfsb_http_same(name, HFSB_LIT("identity"))) {
                named = true;
                plain = !hfsbi_e2b_is_refused(item);
            } else if (hfsb_str_equal(name, HFSB_LIT("*")))
                others = !hfsbi_e2b_is_refused(item);
        }
    }
    return named ? plain : others;
}

static void hfsbi_e2b_box_release(void *user) {
    hfsbi_guest_release(&((hfsbi_e2b_box *)user)->guest);
}

static void hfsbi_e2b_files_get(void *user, hfsb_request *request) {
    hfsbi_e2b_box   *box = hfsbi_e2b_box_open((hfsbi_e2b *)user, request);
    hfsbi_fetch_opts opts = HFSB_INIT;
    hfsb_buf         path = HFSB_INIT;
    if (!box || !hfsbi_e2b_query_path(box, request, true, &path)) return;
    if (!hfsbi_e2b_takes_plain(hfsb_request_head(request))) {
        hfsb_buf_free(&path);
        hfsb_reply_error(request, 406,
                         "Files are sent without a content coding: allow "
                         "identity in Accept-Encoding.");
        return;
    }
    opts.tools = box->guest.tools;
    opts.path = hfsb_buf_str(&path);
    opts.release = hfsbi_e2b_box_release;
    opts.user = box;
    hfsbi_guest_hold(&box->guest);
    hfsbi_fetch_start(request, &opts);
    hfsb_buf_free(&path);
}

/* ---- POST /files ---- */

typedef struct hfsbi_e2b_put {
    hfsbi_e2b_box *box;
    hfsb_buf       base;     /* the base of the names of parts */
    hfsb_buf       path;     /* of the query; or empty */
    hfsb_buf       metadata; /* as of hfsbi_path_marks() */
    hfsb_buf       written;  /* paths, each ended by NUL */
    hfsb_status    st;       /* of setting the metadata */
    hfsb_err       err;
} hfsbi_e2b_put;

/* A part becomes the file that the query names, or else the part itself. In a
   thread. */
static hfsb_status hfsbi_e2b_put_part(void *user, const hfsbi_multipart *part,
                                      hfsb_buf *path, int *status,
                                      hfsb_err *err) {
    const hfsbi_e2b_put *put = (const hfsbi_e2b_put *)user;
    if (!hfsb_str_equal(part->name, HFSB_LIT("file"))) return HFSB_OK;
    if (put->path.len) return hfsb_buf_append(path, hfsb_buf_str(&put->path));
    if (!part->filename.len) {
        *status = 400;
        return hfsbi_fail(err, HFSB_ARG, 0,
                          "A part without a filename needs the path in the "
                          "query.");
    }
    return hfsbi_e2b_join(hfsb_buf_str(&put->base), part->filename, path)
               ? HFSB_OK
               : HFSB_NOMEM;
}

static void hfsbi_e2b_put_reply(const hfsbi_e2b_put *put,
                                hfsb_request        *request) {
    hfsb_json_writer w;
    hfsb_buf         out = HFSB_INIT;
    hfsb_str         rest = hfsb_buf_str(&put->written), path;
    out.alloc = put->base.alloc;
    hfsb_json_writer_init(&w, &out, NULL);
    hfsb_json_put_array(&w);
    while (hfsbi_list_next(&rest, '\0', &path) && path.len) {
        hfsb_json_put_object(&w);
        hfsb_json_put_member_str(&w, "path", path);
        hfsb_json_put_member_str(&w, "name", hfsb_path_base(path));
        hfsb_json_put_member_str(&w, "type", HFSB_LIT("file"));
        if (put->metadata.len)
            hfsbi_e2b_put_metadata(&w, hfsb_buf_str(&put->metadata));
        hfsb_json_put_end(&w);
    }
    hfsb_json_put_end(&w);
    if (put->written.status == HFSB_OK &&
        hfsb_json_writer_finish(&w, NULL) == HFSB_OK)
        hfsbi_reply_take(request, 200, "application/json", &out);
    else
        hfsb_reply_error(request, 503,
                         "Out of memory. The files are written.");
    hfsb_buf_free(&out);
}

static void hfsbi_e2b_put_free(hfsbi_e2b_put *put) {
    hfsb_alloc alloc = put->base.alloc;
    hfsbi_guest_release(&put->box->guest);
    hfsb_buf_free(&put->base);
    hfsb_buf_free(&put->path);
    hfsb_buf_free(&put->metadata);
    hfsb_buf_free(&put->written);
    hfsbi_array_free(&alloc, put, 1, sizeof *put);
}

/* Sets the metadata of all files, in a thread. */
static void hfsbi_e2b_put_mark(void *user) {
    hfsbi_e2b_put *put = (hfsbi_e2b_put *)user;
    hfsb_str       rest = hfsb_buf_str(&put->written), path;
    while (put->st == HFSB_OK && hfsbi_list_next(&rest, '\0', &path) &&
           path.len)
        put->st = hfsbi_path_set_marks(
            put->box->guest.tools->place, path, HFSBI_E2B_MARK,
            hfsb_buf_str(&put->metadata), &put->err);
}

static void hfsbi_e2b_put_marked(void *user, hfsb_request *request) {
    hfsbi_e2b_put *put = (hfsbi_e2b_put *)user;
    if (put->st == HFSB_OK) hfsbi_e2b_put_reply(put, request);
    else
        hfsb_reply_error(request, hfsbi_file_http_status(put->st),
                         "The files are written, but not their metadata. %s",
                         put->err.msg);
    hfsbi_e2b_put_free(put);
}

/* Replies with the failure, and the files of earlier parts. */
static void hfsbi_e2b_put_fail(const hfsbi_e2b_put *put, hfsb_request *request,
                               const hfsbi_upload_end *end) {
    hfsb_buf list = HFSB_INIT;
    size_t   i, n = end->file_count, most = HFSBI_E2B_NAMES;
    list.alloc = put->base.alloc;
    for (i = 0; i < n && i < most; i++) {
        hfsb_buf_append(&list, i ? HFSB_LIT(", ") : HFSB_LIT(""));
        hfsb_buf_append(&list, hfsb_buf_str(&end->files[i].path));
    }
    if (n > most) hfsb_buf_printf(&list, " and %zu more", n - most);
    if (!n) hfsb_reply_error(request, end->status, "%s", end->err->msg);
    else if (list.status == HFSB_OK)
        hfsb_reply_error(request, end->status,
                         "%s (files written before: %s)",
                         end->err->msg, list.ptr);
    else
        hfsb_reply_error(request, end->status,
                         "%s (%zu files were written before)",
                         end->err->msg, n);
    hfsb_buf_free(&list);
}

static void hfsbi_e2b_put_done(void *user, hfsb_request *request,
                               const hfsbi_upload_end *end) {
    hfsbi_e2b_put *put = (hfsbi_e2b_put *)user;
    size_t         i;
    for (i = 0; i < end->file_count; i++) {
        hfsb_buf_append(&put->written, hfsb_buf_str(&end->files[i].path));
        hfsb_buf_append_byte(&put->written, '\0');
    }
    if (end->status && end->status < 400 && put->metadata.len) {
        hfsb_request_on_gone(request, NULL, NULL);
        hfsbi_request_work(request, &put->box->guest.tools->rights,
                           hfsbi_e2b_put_mark, hfsbi_e2b_put_marked, put);
        return;
    }
    if (end->status >= 400) hfsbi_e2b_put_fail(put, request, end);
    else if (end->status) hfsbi_e2b_put_reply(put, request);
    hfsbi_e2b_put_free(put);
}

/* Collects the fields X-Metadata-NAME; false without memory. */
static bool hfsbi_e2b_put_fields(hfsbi_e2b_put        *put,
                                 const hfsb_http_head *head) {
    const hfsb_str prefix = HFSB_LIT("x-metadata-");
    size_t         i;
    for (i = 0; i < head->field_count; i++) {
        hfsb_str name = head->fields[i].name;
        if (name.len <= prefix.len ||
            !hfsb_http_same(hfsb_str_slice(name, 0, prefix.len), prefix))
            continue;
        for (name = hfsb_str_slice(name, prefix.len, name.len); name.len;
             name = hfsb_str_slice(name, 1, name.len))
            hfsb_buf_append_byte(&put->metadata, hfsbi_lower(name.ptr[0]));
        hfsb_buf_append_byte(&put->metadata, '\0');
        hfsb_buf_append(&put->metadata, head->fields[i].value);
        hfsb_buf_append_byte(&put->metadata, '\0');
    }
    return put->metadata.status == HFSB_OK;
}

/* Returns what a request to write contains; NULL after an error reply. */
static hfsbi_e2b_put *hfsbi_e2b_put_new(hfsbi_e2b_box *box,
                                        hfsb_request *request, bool parts) {
    hfsbi_e2b_put *put =
        (hfsbi_e2b_put *)hfsbi_array(&box->env.alloc, 1, sizeof *put);
    if (!put) {
        hfsb_reply_error(request, 503, "Out of memory.");
        return NULL;
    }
    memset(put, 0, sizeof *put);
    put->box = box;
    put->base.alloc = put->path.alloc = box->env.alloc;
    put->metadata.alloc = put->written.alloc = box->env.alloc;
    hfsbi_guest_hold(&box->guest);
    if (!hfsbi_e2b_path(box, HFSB_LIT(""), &put->base) ||
        !hfsbi_e2b_put_fields(put, hfsb_request_head(request)))
        hfsb_reply_error(request, 503, "Out of memory.");
    else if (hfsbi_e2b_query_path(box, request, !parts, &put->path))
        return put;
    hfsbi_e2b_put_free(put);
    return NULL;
}

static void hfsbi_e2b_files_post(void *user, hfsb_request *request) {
    const hfsb_http_head *head = hfsb_request_head(request);
    hfsb_str              type = hfsb_http_field_find(head, "content-type");
    hfsb_str          coding = hfsb_http_field_find(head, "content-encoding");
    bool              parts = hfsb_str_starts(type, HFSB_LIT("multipart/"));
    hfsbi_upload_opts opts = HFSB_INIT;
    hfsbi_e2b_box    *box = hfsbi_e2b_box_open((hfsbi_e2b *)user, request);
    hfsbi_e2b_put    *put;
    if (!box) return;
    if (coding.len && !hfsb_http_same(coding, HFSB_LIT("identity"))) {
        hfsb_reply_error(request, 415,
                         "The body is compressed, which is not supported: "
                         "send it plain, without Content-Encoding (in E2B's "
                         "SDKs without gzip).");
        return;
    }
    put = hfsbi_e2b_put_new(box, request, parts);
    if (!put) return;
    opts.tools = box->guest.tools;
    opts.path = hfsb_buf_str(&put->path);
    opts.no_sha256 = true;
    if (parts) opts.part = hfsbi_e2b_put_part;
    opts.done = hfsbi_e2b_put_done;
    opts.user = put;
    hfsbi_upload_start(request, &opts);
}

/* ---- POST /files/compose ---- */

typedef struct hfsbi_e2b_compose {
    hfsbi_e2b_box     *box;
    hfsb_buf           sources; /* each ends in NUL */
    hfsb_buf           path;
    unsigned long long bytes;
    hfsb_status        st;
    hfsb_err           err;
    long long          began;
} hfsbi_e2b_compose;

static hfsb_status hfsbi_e2b_compose_add(hfsbi_e2b_compose *c,
                                         hfsb_file_writer *to, hfsb_str path) {
    hfsbi_file_range range = HFSB_INIT;
    char             block[32768];
    size_t           got = 0;
    hfsb_status st = hfsbi_file_range_open(c->box->guest.tools->place, path, 0,
                                           ~0ull, &range, &c->err);
    if (st != HFSB_OK) return st;
    do {
        st = hfsbi_file_range_read(&range, block, sizeof block, &got, &c->err);
        if (st == HFSB_OK && got)
            st = hfsb_file_writer_append(to, hfsb_str_make(block, got),
                                         &c->err);
    } while (st == HFSB_OK && got);
    hfsbi_file_range_close(&range);
    return st;
}

/* True for every path that leads to the result, and without memory. */
static bool hfsbi_e2b_compose_is_result(const hfsbi_e2b_compose *c,
                                        hfsb_str                 path) {
    const hfsb_root *root = c->box->guest.tools->place;
    hfsb_buf         a = HFSB_INIT, b = HFSB_INIT;
    bool             same;
    a.alloc = b.alloc = c->path.alloc;
    same = hfsb_file_key(root, path, &a, NULL) != HFSB_OK ||
           hfsb_file_key(root, hfsb_buf_str(&c->path), &b, NULL) != HFSB_OK ||
           hfsb_str_equal(hfsb_buf_str(&a), hfsb_buf_str(&b));
    hfsb_buf_free(&a);
    hfsb_buf_free(&b);
    return same;
}

static void hfsbi_e2b_compose_run(void *user) {
    hfsbi_e2b_compose *c = (hfsbi_e2b_compose *)user;
    const hfsb_root   *root = c->box->guest.tools->place;
    hfsb_str           rest = hfsb_buf_str(&c->sources), one;
    hfsb_file_writer  *to = NULL;
    hfsb_file_written  written = HFSB_INIT;
    c->st = hfsb_file_writer_open(root, hfsb_buf_str(&c->path), NULL, &to,
                                  &c->err);
    while (c->st == HFSB_OK && hfsbi_list_next(&rest, '\0', &one))
        if (one.len) c->st = hfsbi_e2b_compose_add(c, to, one);
    if (c->st == HFSB_OK)
        c->st = hfsb_file_writer_commit(to, &written, &c->err);
    if (to) hfsb_file_writer_close(to);
    c->bytes = written.bytes;
    rest = hfsb_buf_str(&c->sources);
    while (c->st == HFSB_OK && hfsbi_list_next(&rest, '\0', &one))
        if (one.len && !hfsbi_e2b_compose_is_result(c, one))
            (void)hfsb_file_remove(root, one, NULL); /* may be named twice */
}

static void hfsbi_e2b_compose_free(hfsbi_e2b_compose *c) {
    hfsb_alloc alloc = c->path.alloc;
    hfsbi_guest_release(&c->box->guest);
    hfsb_buf_free(&c->sources);
    hfsb_buf_free(&c->path);
    hfsbi_array_free(&alloc, c, 1, sizeof *c);
}

static void hfsbi_e2b_compose_done(void *user, hfsb_request *request) {
    hfsbi_e2b_compose *c = (hfsbi_e2b_compose *)user;
    hfsb_str           path = hfsb_buf_str(&c->path);
    hfsbi_build        b;
    hfsbi_api_report(c->box->guest.tools, "compose", path, "",
                     hfsb_cstr(c->st == HFSB_OK ? "" : c->err.msg), c->began,
                     c->bytes);
    if (c->st == HFSB_OK) {
        hfsbi_build_init(&b, &c->path.alloc);
        hfsbi_build_object(&b, NULL);
        hfsbi_build_str(&b, "path", path);
        hfsbi_build_str(&b, "name", hfsb_path_base(path));
        hfsbi_build_str(&b, "type", HFSB_LIT("file"));
        hfsbi_build_end(&b);
        hfsbi_dialect_reply(request, 200, &b);
    } else
        hfsb_reply_error(request, hfsbi_file_http_status(c->st), "%s",
                         c->err.msg);
    hfsbi_e2b_compose_free(c);
}

/* Reads the paths; false if one is missing or there is no memory. */
static bool hfsbi_e2b_compose_read(hfsbi_e2b_compose     *c,
                                   const hfsb_json_value *message) {
    hfsb_str       to = hfsbi_json_get_str(message, "destination");
    hfsb_json_iter it =
        hfsb_json_begin(hfsbi_e2b_get(message, "source_paths", "sourcePaths"));
    bool ok = to.len && hfsbi_e2b_path(c->box, to, &c->path);
    while (ok && hfsb_json_next(&it)) {
        hfsb_str path = hfsb_json_str(it.value, HFSB_LIT(""));
        ok = path.len && hfsb_str_find_byte(path, '\0') == HFSB_NPOS &&
             hfsbi_e2b_path(c->box, path, &c->sources) &&
             hfsb_buf_append_byte(&c->sources, '\0') == HFSB_OK;
    }
    return ok && c->sources.len;
}

static void hfsbi_e2b_files_compose(void *user, hfsb_request *request) {
    hfsbi_e2b_box     *box = hfsbi_e2b_box_open((hfsbi_e2b *)user, request);
    hfsb_json_doc      doc;
    hfsbi_e2b_compose *c;
    bool               ok;
    if (!box || !hfsbi_dialect_parse(request, &doc)) return;
    c = (hfsbi_e2b_compose *)hfsbi_array(&box->env.alloc, 1, sizeof *c);
    if (!c) {
        hfsb_json_free(&doc);
        hfsb_reply_error(request, 503, "Out of memory.");
        return;
    }
    memset(c, 0, sizeof *c);
    c->box = box;
    c->sources.alloc = c->path.alloc = box->env.alloc;
    c->began = hfsb_clock_ms();
    hfsbi_guest_hold(&box->guest);
    ok = hfsbi_e2b_compose_read(c, doc.root);
    hfsb_json_free(&doc);
    if (ok) {
        hfsbi_request_work(request, &box->guest.tools->rights,
                           hfsbi_e2b_compose_run, hfsbi_e2b_compose_done, c);
        return;
    }
    hfsbi_e2b_compose_free(c);
    hfsb_reply_error(request, 400,
                     "source_paths and destination must be paths.");
}

HFSBI_FN hfsb_status hfsbi_e2b_add_transfer(hfsbi_e2b *e2b, hfsb_err *err) {
    static const hfsbi_dialect_route routes[] = {
        {"GET", "/files", hfsbi_e2b_files_get, false, NULL, NULL},
        {"POST", "/files", hfsbi_upload_finish, false, hfsbi_e2b_files_post,
         hfsbi_upload_body},
        {"POST", "/files/compose", hfsbi_e2b_files_compose, false, NULL, NULL},
        {NULL, NULL, NULL, false, NULL, NULL}};
    return hfsbi_dialect_add(&e2b->dialect, routes, err);
}
