/* codex_files.c - the files of a client of codex.c.

   Each function named hfsbi_codex_fs_ is the work of one method in a thread:
   it writes the result of the call, or fails with *call->err. All paths lie
   beneath the root of the tools. Results have bounds, since a message has.

   An open file (fs/open) belongs to the session:

       prepare, in the loop --> OPENING --opened--> READY --> closed once no
                                   +----failed------------->  thread uses it */
#include "dialect_private.h"

enum {
    HFSBI_CODEX_FILE = (HFSBI_CODEX_REPLY / 4) * 3, /* bytes of a file */
    HFSBI_CODEX_BLOCK = 8 << 20,                    /* bytes of a block */
    HFSBI_CODEX_HANDLES = 64,
    HFSBI_CODEX_HANDLE_ID = 256,
    HFSBI_CODEX_DEPTH = 64,
    HFSBI_CODEX_ERRORS = 256, /* of a walk */
    HFSBI_CODEX_WALK_MS = 30000
};

struct hfsbi_codex_handle {
    hfsbi_codex_handle *next;
    hfsb_buf            id;
    int                 fd;
    size_t              users; /* calls in threads */
    bool                ready, closed;
};

static const hfsb_root *hfsbi_codex_root(const hfsbi_codex_call *call) {
    return call->codex->dialect.tools->place;
}

static hfsb_status hfsbi_codex_done(hfsbi_codex_call *call, hfsb_status st) {
    if (st == HFSB_OK)
        hfsb_buf_append(hfsbi_codex_result(call), HFSB_LIT("{}"));
    return st;
}

static const char *hfsbi_codex_truth(bool value) {
    return value ? "true" : "false";
}

/* ---- one file ---- */

HFSBI_FN hfsb_status hfsbi_codex_fs_stat(hfsbi_codex_call *call) {
    hfsbi_path_info info;
    hfsb_str        path = hfsb_buf_str(&call->path);
    bool            follow =
        hfsb_json_bool(hfsb_json_get(call->params, "followSymlinks"), true);
    bool        link;
    hfsb_status st = hfsbi_path_stat(hfsbi_codex_root(call), path, false,
                                     &info, NULL, &call->err);
    link = st == HFSB_OK && info.type == HFSBI_ENTRY_LINK;
    if (link && follow)
        st = hfsbi_path_stat(hfsbi_codex_root(call), path, true, &info, NULL,
                             &call->err);
    if (st != HFSB_OK) return st;
    hfsb_buf_printf(hfsbi_codex_result(call),
                    "{\"isDirectory\":%s,\"isFile\":%s,\"isSymlink\":%s,"
                    "\"size\":%llu,\"createdAtMs\":0,\"modifiedAtMs\":%lld}",
                    hfsbi_codex_truth(info.type == HFSBI_ENTRY_FOLDER),
                    hfsbi_codex_truth(info.type == HFSBI_ENTRY_FILE),
                    hfsbi_codex_truth(link), info.file.size,
                    info.file.changed * 1000 +
                        info.file.changed_nanos / 1000000);
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_codex_fs_read(hfsbi_codex_call *call) {
    hfsb_buf    content = HFSB_INIT, *out;
    hfsb_status st;
    content.alloc = call->path.alloc;
    st = hfsb_file_read(hfsbi_codex_root(call), hfsb_buf_str(&call->path),
                        HFSBI_CODEX_FILE, &content, NULL, &call->err);
    if (st == HFSB_OK) {
        call->bytes = content.len;
        out = hfsbi_codex_result(call);
        hfsb_buf_append(out, HFSB_LIT("{\"dataBase64\":"));
        hfsbi_codex_put_base64(out, hfsb_buf_str(&content));
        hfsb_buf_append_byte(out, '}');
    }
    hfsb_buf_free(&content);
    return st;
}

HFSBI_FN hfsb_status hfsbi_codex_fs_write(hfsbi_codex_call *call) {
    hfsb_file_write_opts opts = HFSB_INIT;
    hfsb_str             data;
    hfsb_status          st = HFSB_ARG;
    if (!hfsbi_codex_str(call, "dataBase64", &data)) return st;
    st = hfsb_base64_decode(data, &call->to, &call->err);
    if (st != HFSB_OK) return st;
    opts.no_parents = true;
    opts.no_sync = true;
    call->bytes = call->to.len;
    return hfsbi_codex_done(call, hfsb_file_write(hfsbi_codex_root(call),
                                                  hfsb_buf_str(&call->path),
                                                  hfsb_buf_str(&call->to),
                                                  &opts, NULL, &call->err));
}

HFSBI_FN hfsb_status hfsbi_codex_fs_make(hfsbi_codex_call *call) {
    bool recursive = true;
    if (!hfsbi_codex_bool(call, "recursive", &recursive)) return HFSB_ARG;
    return hfsbi_codex_done(
        call, hfsbi_path_make_folder(
                  hfsbi_codex_root(call), hfsb_buf_str(&call->path), 0,
                  recursive ? HFSBI_MAKE_PARENTS : HFSBI_MAKE_NEW, NULL,
                  &call->err));
}

HFSBI_FN hfsb_status hfsbi_codex_fs_remove(hfsbi_codex_call *call) {
    hfsbi_remove_opts opts = HFSB_INIT;
    bool              force = true;
    hfsb_status       st;
    opts.tree = true;
    if (!hfsbi_codex_bool(call, "recursive", &opts.tree) ||
        !hfsbi_codex_bool(call, "force", &force))
        return HFSB_ARG;
    st = hfsbi_path_remove_all(hfsbi_codex_root(call),
                               hfsb_buf_str(&call->path), &opts, NULL,
                               &call->err);
    if (st == HFSB_NOT_FOUND && force) st = hfsbi_ok(&call->err);
    return hfsbi_codex_done(call, st);
}

HFSBI_FN hfsb_status hfsbi_codex_fs_copy(hfsbi_codex_call *call) {
    hfsbi_copy_opts opts = HFSB_INIT;
    hfsbi_copied    copied = HFSB_INIT;
    hfsb_status     st;
    if (!hfsbi_codex_bool(call, "recursive", &opts.tree)) return HFSB_ARG;
    opts.no_parents = true;
    st = hfsbi_path_copy(hfsbi_codex_root(call), hfsb_buf_str(&call->path),
                         hfsb_buf_str(&call->to), &opts, &copied, &call->err);
    call->bytes = copied.bytes;
    return hfsbi_codex_done(call, st);
}

HFSBI_FN hfsb_status hfsbi_codex_fs_canonical(hfsbi_codex_call *call) {
    hfsb_buf   *out;
    hfsb_status st =
        hfsbi_path_canonical(hfsbi_codex_root(call), hfsb_buf_str(&call->path),
                             &call->to, &call->err);
    if (st != HFSB_OK) return st;
    out = hfsbi_codex_result(call);
    hfsb_buf_append(out, HFSB_LIT("{\"path\":"));
    hfsbi_codex_put_uri(out, hfsb_buf_str(&call->to));
    hfsb_buf_append_byte(out, '}');
    return HFSB_OK;
}

/* ---- folders ---- */

/* The type of an entry; of a symlink, that of its target. A lack of memory is
   in call->out.status. */
static hfsbi_entry_type hfsbi_codex_type(hfsbi_codex_call       *call,
                                         hfsb_str                folder,
                                         const hfsbi_list_entry *entry) {
    hfsbi_path_info info;
    hfsb_buf        path = HFSB_INIT;
    hfsb_status     st;
    if (entry->info.type != HFSBI_ENTRY_LINK) return entry->info.type;
    path.alloc = call->path.alloc;
    hfsb_buf_append(&path, folder);
    hfsb_buf_append_byte(&path, '/');
    hfsb_buf_append(&path, entry->path);
    st = path.status == HFSB_OK
             ? hfsbi_path_stat(hfsbi_codex_root(call), hfsb_buf_str(&path),
                               true, &info, NULL, NULL)
             : HFSB_NOMEM;
    hfsb_buf_free(&path);
    if (st == HFSB_NOMEM) call->out.status = st;
    return st == HFSB_OK ? info.type : HFSBI_ENTRY_LINK;
}

static hfsb_status hfsbi_codex_list_entry(void                   *user,
                                          const hfsbi_list_entry *entry) {
    hfsbi_codex_call *call = (hfsbi_codex_call *)user;
    hfsbi_entry_type  type =
        hfsbi_codex_type(call, hfsb_buf_str(&call->path), entry);
    hfsb_buf *out = &call->out;
    if (call->bytes++) hfsb_buf_append_byte(out, ',');
    hfsb_buf_append(out, HFSB_LIT("{\"fileName\":"));
    hfsbi_json_put_quoted(out, entry->name);
    hfsb_buf_printf(out, ",\"isDirectory\":%s,\"isFile\":%s}",
                    hfsbi_codex_truth(type == HFSBI_ENTRY_FOLDER),
                    hfsbi_codex_truth(type == HFSBI_ENTRY_FILE));
    return out->status;
}

HFSBI_FN hfsb_status hfsbi_codex_fs_list(hfsbi_codex_call *call) {
    hfsbi_list_opts opts = HFSB_INIT;
    hfsbi_listed    listed = HFSB_INIT;
    hfsb_status     st;
    opts.limit = HFSBI_CODEX_ENTRIES;
    opts.fn = hfsbi_codex_list_entry;
    opts.user = call;
    hfsb_buf_append(hfsbi_codex_result(call), HFSB_LIT("{\"entries\":["));
    st = hfsbi_path_list(hfsbi_codex_root(call), hfsb_buf_str(&call->path),
                         &opts, &listed, &call->err);
    if (st == HFSB_OK && listed.more)
        return hfsbi_fail(&call->err, HFSB_LIMIT, 0,
                          "The folder has more than %d entries: use fs/walk.",
                          HFSBI_CODEX_ENTRIES);
    hfsb_buf_append(&call->out, HFSB_LIT("]}"));
    return st;
}

/* ---- fs/walk: level by level, the names of a folder in order ---- */

typedef struct hfsbi_codex_walker {
    hfsbi_codex_call *call;
    size_t   max_depth, max_folders, max_entries; /* all above 0 but depth */
    bool     follow, prune;
    hfsb_buf queue;  /* paths of folders, each ends in NUL, */
    size_t   at;     /* and the first that was not listed yet */
    hfsb_buf depths; /* a byte for each of them */
    size_t   folder; /* number of the folder that is listed */
    size_t   folders, entries, written, error_count;
    hfsb_buf errors;
    bool     truncated;
} hfsbi_codex_walker;

/* Adds a folder to those that are listed later. */
static void hfsbi_codex_walk_add(hfsbi_codex_walker *w, hfsb_str path,
                                 size_t depth) {
    if (w->folders >= w->max_folders) {
        w->truncated = true;
        return;
    }
    w->folders++;
    hfsb_buf_append(&w->queue, path);
    hfsb_buf_append_byte(&w->queue, '\0');
    hfsb_buf_append_byte(&w->depths, (char)depth);
}

static hfsb_status hfsbi_codex_walk_entry(void                   *user,
                                          const hfsbi_list_entry *entry) {
    hfsbi_codex_walker *w = (hfsbi_codex_walker *)user;
    hfsb_buf           *out = &w->call->out, path = HFSB_INIT;
    hfsb_str            folder = hfsb_cstr(w->queue.ptr + w->at);
    size_t              depth = (unsigned char)w->depths.ptr[w->folder];
    bool                link = entry->info.type == HFSBI_ENTRY_LINK;
    hfsbi_entry_type    type = hfsbi_codex_type(w->call, folder, entry);
    if (out->status != HFSB_OK) return out->status;
    if (w->entries >= w->max_entries || out->len > HFSBI_CODEX_REPLY / 4) {
        w->truncated = true;
        return HFSB_CANCELLED;
    }
    w->entries++;
    if (type != HFSBI_ENTRY_FOLDER && type != HFSBI_ENTRY_FILE) return HFSB_OK;
    if (link && type == HFSBI_ENTRY_FOLDER && !w->follow) return HFSB_OK;
    path.alloc = w->call->path.alloc;
    hfsb_buf_append(&path, folder);
    if (!hfsb_str_equal(folder, HFSB_LIT("/")))
        hfsb_buf_append_byte(&path, '/');
    hfsb_buf_append(&path, entry->name);
    if (path.status != HFSB_OK) out->status = path.status;
    else {
        if (w->written++) hfsb_buf_append_byte(out, ',');
        hfsb_buf_append(out, HFSB_LIT("{\"path\":"));
        hfsbi_codex_put_uri(out, hfsb_buf_str(&path));
        hfsb_buf_printf(out, ",\"kind\":\"%s\"}",
                        type == HFSBI_ENTRY_FOLDER ? "directory" : "file");
    }
    if (type == HFSBI_ENTRY_FOLDER && path.status == HFSB_OK &&
        !(w->prune && entry->name.ptr[0] == '.')) {
        if (depth < w->max_depth)
            hfsbi_codex_walk_add(w, hfsb_buf_str(&path), depth + 1);
        else w->truncated = true;
    }
    hfsb_buf_free(&path);
    if (w->queue.status != HFSB_OK) return w->queue.status;
    return w->depths.status != HFSB_OK ? w->depths.status : out->status;
}

static void hfsbi_codex_walk_failed(hfsbi_codex_walker *w, const char *why) {
    if (w->error_count++ >= HFSBI_CODEX_ERRORS) return;
    if (w->errors.len) hfsb_buf_append_byte(&w->errors, ',');
    hfsb_buf_append(&w->errors, HFSB_LIT("{\"path\":"));
    hfsbi_codex_put_uri(&w->errors, hfsb_cstr(w->queue.ptr + w->at));
    hfsb_buf_append(&w->errors, HFSB_LIT(",\"message\":"));
    hfsbi_json_put_quoted(&w->errors, hfsb_cstr(why));
    hfsb_buf_append_byte(&w->errors, '}');
}

/* Lists one folder after the other. */
static hfsb_status hfsbi_codex_walk_run(hfsbi_codex_walker *w) {
    long long       until = hfsb_clock_ms() + HFSBI_CODEX_WALK_MS;
    hfsbi_list_opts opts = HFSB_INIT;
    opts.fn = hfsbi_codex_walk_entry;
    opts.user = w;
    opts.until = until;
    while (w->at < w->queue.len) {
        hfsbi_listed listed = HFSB_INIT;
        hfsb_err     err = HFSB_INIT;
        hfsb_status  st;
        if (hfsb_clock_ms() > until) w->truncated = true;
        if (hfsb_clock_ms() > until) break;
        st = hfsbi_path_list(hfsbi_codex_root(w->call),
                             hfsb_cstr(w->queue.ptr + w->at), &opts, &listed,
                             &err);
        if (st == HFSB_NOMEM ||
            (st != HFSB_OK && st != HFSB_CANCELLED && w->folder == 0)) {
            w->call->err = err;
            return st;
        }
        if (st == HFSB_CANCELLED) break;
        if (st != HFSB_OK) hfsbi_codex_walk_failed(w, err.msg);
        else if (listed.failed)
            hfsbi_codex_walk_failed(w, "Some entries cannot be read.");
        if (listed.more) w->truncated = true;
        w->at += strlen(w->queue.ptr + w->at) + 1;
        w->folder++;
    }
    return HFSB_OK;
}

static size_t hfsbi_codex_limit(const hfsb_json_value *options,
                                const char *key, size_t most) {
    long long n = hfsb_json_int(hfsb_json_get(options, key), (long long)most);
    if (n < 0) return 0;
    return (unsigned long long)n < most ? (size_t)n : most;
}

HFSBI_FN hfsb_status hfsbi_codex_fs_walk(hfsbi_codex_call *call) {
    const hfsb_json_value *o = hfsb_json_get(call->params, "options");
    hfsbi_codex_walker     w = HFSB_INIT;
    hfsb_status            st;
    w.call = call;
    w.queue.alloc = w.depths.alloc = w.errors.alloc = call->path.alloc;
    w.max_depth = hfsbi_codex_limit(o, "maxDepth", HFSBI_CODEX_DEPTH);
    w.max_folders =
        hfsbi_codex_limit(o, "maxDirectories", HFSBI_CODEX_ENTRIES);
    w.max_entries = hfsbi_codex_limit(o, "maxEntries", HFSBI_CODEX_ENTRIES);
    w.follow =
        hfsb_json_bool(hfsb_json_get(o, "followDirectorySymlinks"), false);
    w.prune =
        hfsb_json_bool(hfsb_json_get(o, "pruneHiddenDirectories"), false);
    hfsb_buf_append(hfsbi_codex_result(call), HFSB_LIT("{\"entries\":["));
    hfsbi_codex_walk_add(&w, hfsb_buf_str(&call->path), 0);
    st = w.queue.status == HFSB_OK && w.depths.status == HFSB_OK
             ? hfsbi_codex_walk_run(&w)
             : HFSB_NOMEM;
    hfsb_buf_append(&call->out, HFSB_LIT("],\"errors\":["));
    hfsb_buf_append(&call->out, hfsb_buf_str(&w.errors));
    hfsb_buf_printf(&call->out, "],\"truncated\":%s}",
                    hfsbi_codex_truth(w.truncated));
    if (w.errors.status != HFSB_OK) st = HFSB_NOMEM;
    hfsb_buf_free(&w.queue);
    hfsb_buf_free(&w.depths);
    hfsb_buf_free(&w.errors);
    return st;
}

/* ---- open files: in threads ---- */

HFSBI_FN hfsb_status hfsbi_codex_fs_open(hfsbi_codex_call *call) {
    hfsb_buf   *out;
    hfsb_status st =
        hfsb_file_open(hfsbi_codex_root(call), hfsb_buf_str(&call->path),
                       &call->handle->fd, NULL, &call->err);
    if (st != HFSB_OK) return st;
    out = hfsbi_codex_result(call);
    hfsb_buf_append(out, HFSB_LIT("{\"handleId\":"));
    hfsbi_json_put_quoted(out, hfsb_buf_str(&call->handle->id));
    hfsb_buf_append_byte(out, '}');
    return HFSB_OK;
}

HFSBI_FN hfsb_status hfsbi_codex_fs_block(hfsbi_codex_call *call) {
    long long at = hfsb_json_int(hfsb_json_get(call->params, "offset"), 0);
    long long n = hfsb_json_int(hfsb_json_get(call->params, "len"), -1);
    size_t    got = 0;
    ssize_t   part = 1;
    hfsb_buf *out;
    if (at < 0 || n < 0)
        return hfsbi_fail(&call->err, HFSB_ARG, 0,
                          "offset and len must be 0 or more.");
    if (n > HFSBI_CODEX_BLOCK) n = HFSBI_CODEX_BLOCK;
    if (hfsb_buf_reserve(&call->to, (size_t)n + 1) != HFSB_OK)
        return HFSB_NOMEM;
    while (got < (size_t)n && part > 0) {
        part = pread(call->handle->fd, call->to.ptr + got, (size_t)n - got,
                     (off_t)at + (off_t)got);
        if (part > 0) got += (size_t)part;
        else if (part < 0 && errno == EINTR) part = 1;
    }
    if (part < 0)
        return hfsbi_fail_os(&call->err, errno, "Cannot read the file");
    out = hfsbi_codex_result(call);
    hfsb_buf_append(out, HFSB_LIT("{\"chunk\":"));
    hfsbi_codex_put_base64(out, hfsb_str_make(call->to.ptr, got));
    hfsb_buf_printf(out, ",\"eof\":%s}", hfsbi_codex_truth(got < (size_t)n));
    return HFSB_OK;
}

/* ---- open files: in the loop ---- */

static void hfsbi_codex_handle_free(hfsbi_codex_session *s,
                                    hfsbi_codex_handle  *h) {
    hfsbi_close(&h->fd);
    hfsb_buf_free(&h->id);
    hfsbi_array_free(&s->codex->dialect.alloc, h, 1, sizeof *h);
}

/* Takes the handle out of the list; it is freed when no thread uses it. */
static void hfsbi_codex_handle_close(hfsbi_codex_session *s,
                                     hfsbi_codex_handle  *h) {
    hfsbi_codex_handle **link = &s->handles;
    while (*link != h) link = &(*link)->next;
    *link = h->next;
    s->handle_count--;
    h->closed = true;
    if (!h->users) hfsbi_codex_handle_free(s, h);
}

HFSBI_FN void hfsbi_codex_handles_end(hfsbi_codex_session *s) {
    while (s->handles) hfsbi_codex_handle_close(s, s->handles);
}

static hfsbi_codex_handle *hfsbi_codex_handle_find(hfsbi_codex_call *call) {
    hfsbi_codex_handle *h = call->session->handles;
    hfsb_str            id = hfsbi_json_get_str(call->params, "handleId");
    while (h && !hfsb_str_equal(hfsb_buf_str(&h->id), id)) h = h->next;
    return h;
}

static hfsbi_codex_handle *hfsbi_codex_handle_new(hfsbi_codex_call *call) {
    hfsbi_codex_session *s = call->session;
    hfsb_str             id = hfsbi_json_get_str(call->params, "handleId");
    hfsbi_codex_handle  *h;
    h = (hfsbi_codex_handle *)hfsbi_array(&s->codex->dialect.alloc, 1,
                                          sizeof *h);
    if (!h) return NULL;
    memset(h, 0, sizeof *h);
    h->fd = -1;
    h->id.alloc = s->codex->dialect.alloc;
    h->next = s->handles;
    s->handles = h;
    s->handle_count++;
    if (hfsb_buf_append(&h->id, id) == HFSB_OK) return h;
    hfsbi_codex_handle_close(s, h);
    return NULL;
}

static bool hfsbi_codex_handle_open(hfsbi_codex_call *call) {
    hfsbi_codex_handle *h = hfsbi_codex_handle_find(call);
    hfsb_str            id;
    if (!hfsbi_codex_str(call, "handleId", &id)) return false;
    if (h || !id.len || id.len > HFSBI_CODEX_HANDLE_ID ||
        call->session->handle_count >= HFSBI_CODEX_HANDLES) {
        hfsbi_codex_fail(call, HFSBI_CODEX_INVALID,
                         h ? "This file handle is open already."
                         : !id.len || id.len > HFSBI_CODEX_HANDLE_ID
                             ? "A handleId has 1 to 256 bytes."
                             : "Too many files are open: close some first.");
        return false;
    }
    call->handle = hfsbi_codex_handle_new(call);
    if (!call->handle)
        hfsbi_codex_fail(call, HFSBI_CODEX_INTERNAL, "Out of memory.");
    return call->handle != NULL;
}

static bool hfsbi_codex_handle_use(hfsbi_codex_call *call) {
    hfsbi_codex_handle *h = hfsbi_codex_handle_find(call);
    if (h && h->ready) call->handle = h;
    else hfsbi_codex_fail(call, HFSBI_CODEX_NOT_FOUND, "unknown file handle");
    return call->handle != NULL;
}

HFSBI_FN void hfsbi_codex_handle_done(hfsbi_codex_call *call) {
    hfsbi_codex_handle *h = call->handle;
    call->handle = NULL;
    h->users--;
    if (call->method->work == hfsbi_codex_fs_open) {
        h->ready = call->err.code == HFSB_OK;
        if (!h->ready && !h->closed) {
            hfsbi_codex_handle_close(call->session, h);
            return;
        }
    }
    if (h->closed && !h->users) hfsbi_codex_handle_free(call->session, h);
}

HFSBI_FN void hfsbi_codex_fs_close(hfsbi_codex_call *call) {
    hfsbi_codex_handle *h = hfsbi_codex_handle_find(call);
    if (h) hfsbi_codex_handle_close(call->session, h);
    hfsb_buf_append(hfsbi_codex_result(call), HFSB_LIT("{}"));
    hfsbi_codex_answer(call);
}

HFSBI_FN bool hfsbi_codex_fs_prepare(hfsbi_codex_call *call) {
    hfsb_status (*work)(hfsbi_codex_call *) = call->method->work;
    bool ok;
    if (work == hfsbi_codex_fs_copy)
        ok = hfsbi_codex_path(call, "sourcePath", &call->path) &&
             hfsbi_codex_path(call, "destinationPath", &call->to);
    else if (work == hfsbi_codex_fs_block) ok = hfsbi_codex_handle_use(call);
    else ok = hfsbi_codex_path(call, "path", &call->path);
    if (ok && work == hfsbi_codex_fs_open) ok = hfsbi_codex_handle_open(call);
    if (ok && call->handle) call->handle->users++;
    return ok;
}
