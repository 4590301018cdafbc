/* hf_files.c - files of the sandbox API of Hugging Face.

     GET    /files/read    bytes, whole or a part       fetch.c
     PUT    /files/write   the same the other way       upload.c
     GET    /files/list    entries of a folder, in pages
     GET    /files/stat    one entry
     POST   /files/mkdir   with all folders above it
     DELETE /files/delete  an entry, or a tree

   The last four run in a pool thread, which writes the reply. Clients build an
   object from an entry: it has exactly six keys.

   A path is resolved beneath the root of its place, from the working directory
   of its commands. In host mode every path begins at the home of the sandbox,
   even "/a" and "../a". */
#include "dialect_private.h"

enum { HFSBI_HF_PAGE = 10000, HFSBI_HF_PAGE_MAX = 50000 };

typedef struct hfsbi_hf_file hfsbi_hf_file;

/* What a route does, in a pool thread; it appends the reply to f->out. */
typedef hfsb_status (*hfsbi_hf_file_fn)(hfsbi_hf_file *f);

struct hfsbi_hf_file {
    hfsbi_hf_place  *place;
    const char      *tool; /* its name in the journal */
    hfsbi_hf_file_fn fn;
    long long        began;
    hfsb_buf         asked; /* the path as it was sent */
    hfsb_buf         path;  /* the same for the root */
    hfsb_buf         after; /* of a list: the last name of the page before */
    size_t           limit; /* of a list */
    bool             recursive;
    hfsb_buf         out;  /* the reply */
    hfsb_buf         last; /* of a list: the last name of this page */
    hfsb_err         err;
    hfsb_alloc       alloc;
};

/* The HTTP status for a failure. 403 would mean a wrong token. `makes`: the
   path need not exist, so 404 would mean nothing. */
static int hfsbi_hf_status(hfsb_status st, bool makes) {
    switch (st) {
    case HFSB_NOT_FOUND: return makes ? 400 : 404;
    case HFSB_FULL: return 507;
    case HFSB_BUSY:
    case HFSB_NOMEM: return 503;
    default: return 400;
    }
}

/* ---- paths and queries ---- */

/* Appends the path without "." and "..", as seen from the root. */
static void hfsbi_hf_clip(hfsb_str path, hfsb_buf *out) {
    size_t   from = out->len;
    hfsb_str part;
    while (hfsbi_list_next(&path, '/', &part)) {
        if (part.len == 0 || hfsb_str_equal(part, HFSB_LIT("."))) continue;
        if (hfsb_str_equal(part, HFSB_LIT(".."))) {
            while (out->len > from && out->ptr[out->len - 1] != '/')
                hfsb_buf_truncate(out, out->len - 1);
            if (out->len > from) hfsb_buf_truncate(out, out->len - 1);
            continue;
        }
        if (out->len > from) hfsb_buf_append_byte(out, '/');
        hfsb_buf_append(out, part);
    }
    if (out->len == from) hfsb_buf_append_byte(out, '.');
}

/* Appends the path of a client in the form that the root of the place needs.
   What commands see as the path of a sandbox's home is accepted as well. */
static void hfsbi_hf_put_path(const hfsbi_hf_place *place, hfsb_str path,
                              hfsb_buf *out) {
    hfsb_str home = hfsb_root_path(place->guest.tools->place);
    if (!place->guest.host) {
        hfsb_buf_append(out, path);
        return;
    }
    if (hfsb_str_starts(path, home) &&
        (path.len == home.len || path.ptr[home.len] == '/'))
        path = hfsb_str_slice(path, home.len, path.len);
    hfsbi_hf_clip(path, out);
}

/* Appends the value of a key of the query; false after an error reply. */
static bool hfsbi_hf_query(hfsb_request *request, const char *key,
                           hfsb_buf *out) {
    hfsb_err    err = HFSB_INIT;
    hfsb_status st = hfsb_request_query(request, key, out, &err);
    if (st == HFSB_OK || st == HFSB_NOT_FOUND) return true;
    hfsb_reply_error(request, st == HFSB_SYNTAX ? 400 : 503, "%s", err.msg);
    return false;
}

/* Reads a number of the query; one that is invalid counts as absent. False
   after an error reply. */
static bool hfsbi_hf_query_number(hfsb_request *request, const char *key,
                                  bool *given, unsigned long long *out) {
    hfsb_buf  text = HFSB_INIT;
    long long n = 0;
    bool      ok;
    text.alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    ok = hfsbi_hf_query(request, key, &text);
    *given = hfsbi_hf_number(hfsb_buf_str(&text), LLONG_MAX, &n);
    if (*given) *out = (unsigned long long)n;
    hfsb_buf_free(&text);
    return ok;
}

/* Reads a switch: "1" or "true", "0" or "false". False after an error
   reply. */
static bool hfsbi_hf_query_switch(hfsb_request *request, const char *key,
                                  bool *out) {
    hfsb_buf text = HFSB_INIT;
    hfsb_str s;
    bool     ok;
    text.alloc = *hfsbi_server_alloc(hfsb_request_server(request));
    ok = hfsbi_hf_query(request, key, &text);
    s = hfsb_buf_str(&text);
    if (hfsb_str_equal(s, HFSB_LIT("1")) ||
        hfsb_http_same(s, HFSB_LIT("true")))
        *out = true;
    else if (s.len) *out = false;
    hfsb_buf_free(&text);
    return ok;
}

/* ---- an operation ---- */

static void hfsbi_hf_file_free(hfsbi_hf_file *f) {
    hfsbi_hf_place *place = f->place;
    hfsb_alloc      alloc = f->alloc;
    hfsb_buf_free(&f->asked);
    hfsb_buf_free(&f->path);
    hfsb_buf_free(&f->after);
    hfsb_buf_free(&f->out);
    hfsb_buf_free(&f->last);
    hfsbi_array_free(&alloc, f, 1, sizeof *f);
    hfsbi_guest_release(&place->guest);
}

/* Opens an operation on the path of the query; NULL after an error reply. */
static hfsbi_hf_file *hfsbi_hf_file_open(hfsbi_hf *hf, hfsb_request *request) {
    hfsbi_hf_place *place = hfsbi_hf_place_of(hf, request);
    hfsbi_hf_file  *f;
    if (!place) return NULL;
    f = (hfsbi_hf_file *)hfsbi_array(&hf->base.alloc, 1, sizeof *f);
    if (!f) {
        hfsb_reply_error(request, 503, "Out of memory.");
        hfsbi_guest_release(&place->guest);
        return NULL;
    }
    memset(f, 0, sizeof *f);
    f->place = place;
    f->alloc = hf->base.alloc;
    f->began = hfsb_clock_ms();
    f->asked.alloc = f->path.alloc = f->after.alloc = f->alloc;
    f->out.alloc = f->last.alloc = f->alloc;
    if (hfsbi_hf_query(request, "path", &f->asked)) {
        hfsbi_hf_put_path(place, hfsb_buf_str(&f->asked), &f->path);
        if (f->asked.len == 0)
            hfsb_reply_error(request, 400, "missing 'path' query parameter");
        else if (f->path.status != HFSB_OK)
            hfsb_reply_error(request, 503, "Out of memory.");
        else return f;
    }
    hfsbi_hf_file_free(f);
    return NULL;
}

static void hfsbi_hf_file_run(void *user) {
    hfsbi_hf_file *f = (hfsbi_hf_file *)user;
    hfsb_status    st = f->fn(f);
    if (st == HFSB_OK && f->out.status != HFSB_OK)
        (void)hfsbi_fail_status(&f->err, f->out.status, "Reply");
    else f->err.code = st;
}

static hfsb_status hfsbi_hf_mkdir(hfsbi_hf_file *f);

static void hfsbi_hf_file_done(void *user, hfsb_request *request) {
    hfsbi_hf_file *f = (hfsbi_hf_file *)user;
    bool           failed = f->err.code != HFSB_OK;
    hfsbi_api_report(f->place->guest.tools, f->tool, hfsb_buf_str(&f->path),
                     "", hfsb_cstr(failed ? f->err.msg : ""), f->began, 0);
    if (failed)
        hfsb_reply_error(request,
                         hfsbi_hf_status(f->err.code, f->fn == hfsbi_hf_mkdir),
                         "%s", f->err.msg);
    else hfsbi_reply_take(request, 200, "application/json", &f->out);
    hfsbi_hf_file_free(f);
}

static void hfsbi_hf_file_start(hfsbi_hf_file *f, hfsb_request *request,
                                const char *tool, hfsbi_hf_file_fn fn) {
    f->tool = tool;
    f->fn = fn;
    hfsbi_request_work(request, &f->place->guest.tools->rights,
                       hfsbi_hf_file_run, hfsbi_hf_file_done, f);
}

/* ---- stat and list ---- */

/* Appends an entry: six keys. */
static void hfsbi_hf_put_entry(hfsb_buf *out, hfsb_str name, hfsb_str folder,
                               const hfsbi_path_info *info) {
    hfsb_buf path = HFSB_INIT;
    path.alloc = out->alloc;
    hfsb_buf_append(&path, folder);
    if (folder.len && folder.ptr[folder.len - 1] != '/')
        hfsb_buf_append_byte(&path, '/');
    hfsb_buf_append(&path, name);
    if (path.status != HFSB_OK) out->status = path.status;
    hfsb_buf_append(out, HFSB_LIT("{\"name\":"));
    hfsbi_json_put_quoted(out, name);
    hfsb_buf_append(out, HFSB_LIT(",\"path\":"));
    hfsbi_json_put_quoted(out, hfsb_buf_str(&path));
    hfsb_buf_printf(
        out,
        ",\"type\":\"%s\",\"size\":%llu,\"mtime_ms\":%lld,\"mode\":\"%o\"}",
        info->type == HFSBI_ENTRY_FOLDER ? "dir"
        : info->type == HFSBI_ENTRY_LINK ? "symlink"
                                         : "file",
        info->file.size,
        info->file.changed * 1000 + info->file.changed_nanos / 1000000,
        info->file.mode & 07777u);
    hfsb_buf_free(&path);
}

static hfsb_status hfsbi_hf_stat(hfsbi_hf_file *f) {
    hfsb_str        asked = hfsbi_path_trim(hfsb_buf_str(&f->asked)), name;
    hfsbi_path_info info;
    size_t          at = asked.len;
    hfsb_status     st =
        hfsbi_path_stat(f->place->guest.tools->place, hfsb_buf_str(&f->path),
                        false, &info, NULL, &f->err);
    if (st != HFSB_OK) return st;
    while (at > 0 && asked.ptr[at - 1] != '/') at--;
    name = hfsb_str_slice(asked, at, asked.len);
    hfsbi_hf_put_entry(&f->out, name, hfsb_str_slice(asked, 0, at), &info);
    return HFSB_OK;
}

static hfsb_status hfsbi_hf_list_entry(void *user, const hfsbi_list_entry *e) {
    hfsbi_hf_file *f = (hfsbi_hf_file *)user;
    if (f->last.len) hfsb_buf_append_byte(&f->out, ',');
    hfsbi_hf_put_entry(&f->out, e->name, hfsb_buf_str(&f->asked), &e->info);
    hfsb_buf_truncate(&f->last, 0);
    hfsb_buf_append(&f->last, e->name);
    if (f->out.status == HFSB_OK && f->last.status == HFSB_OK) return HFSB_OK;
    return hfsbi_fail_status(&f->err, HFSB_NOMEM, "List");
}

/* A cursor is the last name. One that is not UTF-8, which JSON would change,
   is written in hexadecimal digits after a slash, which no name has. */
static void hfsbi_hf_put_cursor(hfsb_buf *out, hfsb_str name) {
    hfsb_buf text = HFSB_INIT;
    size_t   i;
    text.alloc = out->alloc;
    if (hfsb_utf8_validate(name) < name.len) {
        hfsb_buf_append_byte(&text, '/');
        for (i = 0; i < name.len; i++)
            hfsb_buf_printf(&text, "%02x",
                            (unsigned)(unsigned char)name.ptr[i]);
        name = hfsb_buf_str(&text);
    }
    if (text.status != HFSB_OK) out->status = text.status;
    hfsbi_json_put_quoted(out, name);
    hfsb_buf_free(&text);
}

/* Turns a cursor back into the name. */
static void hfsbi_hf_read_cursor(hfsb_buf *text) {
    size_t i, n = 0;
    if (!text->len || text->ptr[0] != '/') return;
    for (i = 1; i + 1 < text->len; i += 2) {
        int high = hfsbi_hex_digit(text->ptr[i]);
        int low = hfsbi_hex_digit(text->ptr[i + 1]);
        if (high < 0 || low < 0) break;
        text->ptr[n++] = (char)(high * 16 + low);
    }
    hfsb_buf_truncate(text, n);
}

static hfsb_status hfsbi_hf_list(hfsbi_hf_file *f) {
    hfsbi_list_opts opts = HFSB_INIT;
    hfsbi_listed    listed = HFSB_INIT;
    hfsb_status     st;
    opts.depth = 1;
    opts.limit = f->limit;
    opts.after = hfsb_buf_str(&f->after);
    opts.fn = hfsbi_hf_list_entry;
    opts.user = f;
    hfsb_buf_append(&f->out, HFSB_LIT("{\"entries\":["));
    st = hfsbi_path_list(f->place->guest.tools->place, hfsb_buf_str(&f->path),
                         &opts, &listed, &f->err);
    if (st != HFSB_OK) return st;
    hfsb_buf_printf(&f->out, "],\"truncated\":%s,\"next\":",
                    listed.more ? "true" : "false");
    if (listed.more && f->last.len)
        hfsbi_hf_put_cursor(&f->out, hfsb_buf_str(&f->last));
    else hfsb_buf_append(&f->out, HFSB_LIT("null"));
    hfsb_buf_append_byte(&f->out, '}');
    return HFSB_OK;
}

static void hfsbi_hf_files_stat(void *user, hfsb_request *request) {
    hfsbi_hf_file *f = hfsbi_hf_file_open((hfsbi_hf *)user, request);
    if (f) hfsbi_hf_file_start(f, request, "stat", hfsbi_hf_stat);
}

static void hfsbi_hf_files_list(void *user, hfsb_request *request) {
    hfsbi_hf_file     *f = hfsbi_hf_file_open((hfsbi_hf *)user, request);
    unsigned long long limit = HFSBI_HF_PAGE;
    bool               given;
    if (!f) return;
    if (!hfsbi_hf_query_number(request, "limit", &given, &limit) ||
        !hfsbi_hf_query(request, "after", &f->after)) {
        hfsbi_hf_file_free(f);
        return;
    }
    hfsbi_hf_read_cursor(&f->after);
    if (limit == 0) limit = HFSBI_HF_PAGE;
    f->limit =
        limit < HFSBI_HF_PAGE_MAX ? (size_t)limit : (size_t)HFSBI_HF_PAGE_MAX;
    hfsbi_hf_file_start(f, request, "list", hfsbi_hf_list);
}

/* ---- mkdir and delete ---- */

/* Appends {"key":path}. */
static void hfsbi_hf_put_path_reply(hfsbi_hf_file *f, const char *key) {
    hfsb_buf_printf(&f->out, "{\"%s\":", key);
    hfsbi_json_put_quoted(&f->out, hfsb_buf_str(&f->asked));
    hfsb_buf_append_byte(&f->out, '}');
}

static hfsb_status hfsbi_hf_mkdir(hfsbi_hf_file *f) {
    hfsbi_hf_put_path_reply(f, "created");
    return hfsbi_path_make_folder(f->place->guest.tools->place,
                                  hfsb_buf_str(&f->path), 0,
                                  HFSBI_MAKE_PARENTS, NULL, &f->err);
}

static hfsb_status hfsbi_hf_delete(hfsbi_hf_file *f) {
    hfsbi_remove_opts opts = HFSB_INIT;
    opts.tree = opts.force = f->recursive;
    hfsbi_hf_put_path_reply(f, "deleted");
    return hfsbi_path_remove_all(f->place->guest.tools->place,
                                 hfsb_buf_str(&f->path), &opts, NULL, &f->err);
}

static void hfsbi_hf_files_mkdir(void *user, hfsb_request *request) {
    hfsbi_hf_file *f = hfsbi_hf_file_open((hfsbi_hf *)user, request);
    if (f) hfsbi_hf_file_start(f, request, "mkdir", hfsbi_hf_mkdir);
}

static void hfsbi_hf_files_delete(void *user, hfsb_request *request) {
    hfsbi_hf_file *f = hfsbi_hf_file_open((hfsbi_hf *)user, request);
    if (!f) return;
    if (hfsbi_hf_query_switch(request, "recursive", &f->recursive))
        hfsbi_hf_file_start(f, request, "remove", hfsbi_hf_delete);
    else hfsbi_hf_file_free(f);
}

/* ---- read ---- */

static void hfsbi_hf_read_refuse(void *user, hfsb_request *request, int status,
                                 const hfsb_err *err) {
    (void)user;
    (void)status;
    hfsb_reply_error(
        request,
        err->code == HFSB_IS_DIR ? 409 : hfsbi_hf_status(err->code, false),
        "%s", err->msg);
}

static void hfsbi_hf_read_release(void *user) {
    hfsbi_hf_file_free((hfsbi_hf_file *)user);
}

static void hfsbi_hf_files_read(void *user, hfsb_request *request) {
    hfsbi_hf_file   *f = hfsbi_hf_file_open((hfsbi_hf *)user, request);
    hfsbi_fetch_opts opts = HFSB_INIT;
    bool             given;
    if (!f) return;
    opts.length = ~0ull;
    if (!hfsbi_hf_query_number(request, "offset", &given, &opts.offset) ||
        !hfsbi_hf_query_number(request, "length", &given, &opts.length)) {
        hfsbi_hf_file_free(f);
        return;
    }
    opts.tools = f->place->guest.tools;
    opts.path = hfsb_buf_str(&f->path);
    opts.part = true;
    opts.refuse = hfsbi_hf_read_refuse;
    opts.release = hfsbi_hf_read_release;
    opts.user = f;
    hfsbi_fetch_start(request, &opts);
}

/* ---- write ---- */

/* Appends the absolute path of the file. */
static void hfsbi_hf_put_absolute(const hfsbi_hf_file *f, hfsb_buf *out) {
    hfsb_str base = hfsb_root_work_dir(f->place->guest.tools->place);
    char     here[PATH_MAX];
    if (f->path.ptr[0] != '/') {
        if (!base.len && getcwd(here, sizeof here)) base = hfsb_cstr(here);
        hfsb_buf_append(out, base);
        if (!hfsb_str_ends(base, HFSB_LIT("/")))
            hfsb_buf_append_byte(out, '/');
    }
    hfsb_buf_append(out, hfsb_buf_str(&f->path));
}

static void hfsbi_hf_write_done(void *user, hfsb_request *request,
                                const hfsbi_upload_end *end) {
    hfsbi_hf_file *f = (hfsbi_hf_file *)user;
    hfsb_buf       path = HFSB_INIT;
    hfsbi_build    b;
    path.alloc = f->alloc;
    if (end->status >= 400) {
        hfsb_reply_error(request, hfsbi_hf_status(end->err->code, true), "%s",
                         end->err->msg);
    } else if (end->status) {
        hfsbi_hf_put_absolute(f, &path);
        hfsbi_build_init(&b, &f->alloc);
        hfsbi_build_object(&b, NULL);
        hfsbi_build_str(&b, "path", hfsb_buf_str(path.len ? &path : &f->path));
        hfsbi_build_int(&b, "size", (long long)end->files[0].written.bytes);
        hfsbi_build_end(&b);
        hfsbi_dialect_reply(request, 200, &b);
    }
    hfsb_buf_free(&path);
    hfsbi_hf_file_free(f);
}

/* Parses an octal number; 0 if it is invalid, which then counts as absent. */
static unsigned hfsbi_hf_parse_mode(hfsb_str text) {
    unsigned mode = 0;
    size_t   i;
    for (i = 0; i < text.len && i < 6; i++) {
        if (text.ptr[i] < '0' || text.ptr[i] > '7') return 0;
        mode = mode * 8 + (unsigned)(text.ptr[i] - '0');
    }
    return text.len < 6 ? mode & 07777u : 0;
}

static void hfsbi_hf_files_write(void *user, hfsb_request *request) {
    hfsbi_hf_file    *f = hfsbi_hf_file_open((hfsbi_hf *)user, request);
    hfsbi_upload_opts opts = HFSB_INIT;
    hfsbi_range_opts  range = HFSB_INIT;
    bool              parents = true, part = false;
    if (!f) return;
    if (!hfsbi_hf_query_number(request, "offset", &part, &range.offset) ||
        !hfsbi_hf_query_number(request, "truncate_to", &range.truncate,
                               &range.truncate_to) ||
        !hfsbi_hf_query_switch(request, "mkdir", &parents) ||
        !hfsbi_hf_query(request, "mode", &f->after)) {
        hfsbi_hf_file_free(f);
        return;
    }
    range.mode = hfsbi_hf_parse_mode(hfsb_buf_str(&f->after));
    range.no_parents = !parents;
    opts.tools = f->place->guest.tools;
    opts.path = hfsb_buf_str(&f->path);
    opts.write.mode = range.mode;
    opts.write.no_parents = range.no_parents;
    opts.write.no_sync = true; /* like the protocol's own server */
    if (part || range.truncate) opts.range = &range;
    opts.no_sha256 = true;
    opts.done = hfsbi_hf_write_done;
    opts.user = f;
    hfsbi_upload_start(request, &opts);
}

/* ---- the routes ---- */

HFSBI_FN const hfsbi_dialect_route *hfsbi_hf_files(void) {
    static const hfsbi_dialect_route routes[] = {
        {"GET", "/files/read", hfsbi_hf_files_read, false, NULL, NULL},
        {"PUT", "/files/write", hfsbi_upload_finish, false,
         hfsbi_hf_files_write, hfsbi_upload_body},
        {"GET", "/files/list", hfsbi_hf_files_list, false, NULL, NULL},
        {"GET", "/files/stat", hfsbi_hf_files_stat, false, NULL, NULL},
        {"DELETE", "/files/delete", hfsbi_hf_files_delete, false, NULL, NULL},
        {"POST", "/files/mkdir", hfsbi_hf_files_mkdir, false, NULL, NULL},
        {NULL, NULL, NULL, false, NULL, NULL}};
    return routes;
}
