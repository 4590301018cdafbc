/* e2b_files.c - E2B's filesystem.Filesystem: stat, list, make, move, remove.

   Each call is one operation in a pool thread, which writes the reply:

       loop: message -> operation -> thread: files, JSON -> loop: reply -> freed

   Paths of clients are absolute, or begin at the work directory, which stands
   for the home of E2B's user; all of them lead beneath the root. */
#include "dialect_private.h"

enum { HFSBI_E2B_LIST_MAX = 32 << 20 }; /* bytes of a reply */

/* ---- entries ---- */

/* Writes the mode as ls does: "-rw-r--r--". */
static void hfsbi_e2b_mode_text(hfsbi_entry_type type, unsigned mode,
                                char out[11]) {
    static const char letters[] = "rwxrwxrwx";
    int               i;
    out[0] = type == HFSBI_ENTRY_FOLDER ? 'd'
             : type == HFSBI_ENTRY_LINK ? 'L'
                                        : '-';
    for (i = 0; i < 9; i++)
        out[1 + i] = mode >> (8 - i) & 1u ? letters[i] : '-';
    out[10] = '\0';
}

/* Writes the name of a user or group: the one we know, or its number. */
static void hfsbi_e2b_put_owner(hfsb_json_writer *w, const char *key,
                                unsigned long id, bool own, const char *user) {
    char text[24];
    (void)snprintf(text, sizeof text, "%lu", id);
    hfsb_json_put_member_str(w, key,
                         hfsb_cstr(own       ? user
                                   : id == 0 ? "root"
                                             : text));
}

static void hfsbi_e2b_put_time(hfsb_json_writer     *w,
                               const hfsb_file_info *file) {
    hfsbi_date d = hfsbi_date_of(file->changed);
    char       text[48];
    (void)snprintf(text, sizeof text, "%04u-%02u-%02uT%02u:%02u:%02u.%09ldZ",
                   d.year, d.month, d.day, d.hour, d.minute, d.second,
                   file->changed_nanos);
    hfsb_json_put_member_str(w, "modifiedTime", hfsb_cstr(text));
}

/* Finds the target of a symlink: the absolute path beneath the root, or its
   text; and what is there. HFSB_OK or HFSB_NOMEM. */
static hfsb_status hfsbi_e2b_follow(const hfsb_root *root, hfsb_str path,
                                    hfsb_str link, hfsb_buf *target,
                                    hfsbi_path_info *info) {
    hfsbi_path_info there;
    hfsb_status     st = hfsbi_path_stat(root, path, true, &there, NULL, NULL);
    hfsb_buf_truncate(target, 0);
    if (st == HFSB_OK) st = hfsbi_path_canonical(root, path, target, NULL);
    if (st == HFSB_NOMEM) return st;
    if (st != HFSB_OK) return hfsb_buf_append(target, link);
    info->type = there.type;
    info->file.mode = there.file.mode;
    return HFSB_OK;
}

HFSBI_FN void hfsbi_e2b_put_metadata(hfsb_json_writer *w, hfsb_str list) {
    hfsb_str name, value;
    hfsb_json_put_key(w, HFSB_LIT("metadata"));
    hfsb_json_put_object(w);
    while (hfsbi_list_next(&list, '\0', &name) && name.len &&
           hfsbi_list_next(&list, '\0', &value)) {
        hfsb_json_put_key(w, name);
        hfsb_json_put_str(w, value);
    }
    hfsb_json_put_end(w);
}

/* Writes the metadata of a file, if it has any. HFSB_OK or HFSB_NOMEM. */
static hfsb_status hfsbi_e2b_add_metadata(hfsb_json_writer *w,
                                          const hfsb_root  *root,
                                          hfsb_str          path) {
    hfsb_buf    list = HFSB_INIT;
    hfsb_status st;
    list.alloc = hfsbi_root_alloc(root);
    st = hfsbi_path_marks(root, path, HFSBI_E2B_MARK, &list, NULL);
    if (st == HFSB_OK && list.len)
        hfsbi_e2b_put_metadata(w, hfsb_buf_str(&list));
    hfsb_buf_free(&list);
    return st == HFSB_NOMEM ? st : HFSB_OK;
}

/* Writes an entry; a symlink is shown as its target. */
static hfsb_status hfsbi_e2b_put_info(hfsb_json_writer    *w,
                                      const hfsbi_e2b_box *box, hfsb_str path,
                                      const hfsbi_path_info *found,
                                      hfsb_str               link) {
    const hfsb_root *root = box->guest.tools->place;
    unsigned long    uid = box->guest.tools->rights.uid;
    const char      *user = uid ? "user" : box->e2b->user;
    hfsbi_path_info  info = *found;
    hfsb_buf         target = HFSB_INIT;
    hfsb_status      st = HFSB_OK;
    char             mode[11], size[24];
    target.alloc = hfsbi_root_alloc(root);
    hfsbi_e2b_mode_text(info.type, info.file.mode, mode);
    if (info.type == HFSBI_ENTRY_LINK)
        st = hfsbi_e2b_follow(root, path, link, &target, &info);
    (void)snprintf(size, sizeof size, "%llu", info.file.size);
    hfsb_json_put_object(w);
    hfsb_json_put_member_str(w, "name", hfsb_path_base(path));
    hfsb_json_put_member_str(
        w, "type",
        hfsb_cstr(info.type == HFSBI_ENTRY_FILE     ? "FILE_TYPE_FILE"
                  : info.type == HFSBI_ENTRY_FOLDER ? "FILE_TYPE_DIRECTORY"
                  : info.type == HFSBI_ENTRY_LINK   ? "FILE_TYPE_SYMLINK"
                                                  : "FILE_TYPE_UNSPECIFIED"));
    hfsb_json_put_member_str(w, "path", path);
    hfsb_json_put_member_str(w, "size", hfsb_cstr(size));
    hfsb_json_put_member_int(w, "mode", (long long)(info.file.mode & 0777u));
    hfsb_json_put_member_str(w, "permissions", hfsb_cstr(mode));
    hfsbi_e2b_put_owner(w, "owner", info.uid,
                        info.uid == (uid ? uid : (unsigned long)geteuid()),
                        user);
    hfsbi_e2b_put_owner(w, "group", info.gid,
                        info.gid == (uid ? uid : (unsigned long)getegid()),
                        user);
    hfsbi_e2b_put_time(w, &info.file);
    if (found->type == HFSBI_ENTRY_LINK)
        hfsb_json_put_member_str(w, "symlinkTarget", hfsb_buf_str(&target));
    if (st == HFSB_OK && info.type == HFSBI_ENTRY_FILE)
        st = hfsbi_e2b_add_metadata(w, root, path);
    hfsb_json_put_end(w);
    hfsb_buf_free(&target);
    return st;
}

HFSBI_FN hfsb_status hfsbi_e2b_put_entry(hfsb_json_writer    *w,
                                         const hfsbi_e2b_box *box,
                                         hfsb_str path, hfsb_err *err) {
    const hfsb_root *root = box->guest.tools->place;
    hfsbi_path_info  info;
    hfsb_buf         link = HFSB_INIT;
    hfsb_status      st;
    link.alloc = hfsbi_root_alloc(root);
    st = hfsbi_path_stat(root, path, false, &info, &link, err);
    if (st == HFSB_OK)
        st = hfsbi_e2b_put_info(w, box, path, &info, hfsb_buf_str(&link));
    hfsb_buf_free(&link);
    return st;
}

/* ---- operations ---- */

typedef struct hfsbi_e2b_op hfsbi_e2b_op;

struct hfsbi_e2b_op {
    hfsbi_e2b_box *box;
    const char    *name; /* for the journal */
    hfsb_status (*run)(hfsbi_e2b_op *op);
    hfsb_buf           path, to;
    unsigned long long depth;
    hfsb_json_writer   w;
    hfsb_buf           out;
    hfsb_status        st;
    hfsb_err           err;
    long long          began;
};

static void hfsbi_e2b_op_free(hfsbi_e2b_op *op) {
    hfsb_alloc alloc = op->path.alloc;
    hfsbi_guest_release(&op->box->guest);
    hfsb_buf_free(&op->path);
    hfsb_buf_free(&op->to);
    hfsb_buf_free(&op->out);
    hfsbi_array_free(&alloc, op, 1, sizeof *op);
}

/* Writes {"entry":...} for the path that is the result. */
static hfsb_status hfsbi_e2b_op_entry(hfsbi_e2b_op *op, const hfsb_buf *path) {
    hfsb_json_put_key(&op->w, HFSB_LIT("entry"));
    return hfsbi_e2b_put_entry(&op->w, op->box, hfsb_buf_str(path), &op->err);
}

static hfsb_status hfsbi_e2b_run_stat(hfsbi_e2b_op *op) {
    return hfsbi_e2b_op_entry(op, &op->path);
}

static hfsb_status hfsbi_e2b_run_make(hfsbi_e2b_op *op) {
    hfsb_status st = hfsbi_path_make_folder(
        op->box->guest.tools->place, hfsb_buf_str(&op->path), 0,
        HFSBI_MAKE_PARENTS | HFSBI_MAKE_NEW, NULL, &op->err);
    return st == HFSB_OK ? hfsbi_e2b_op_entry(op, &op->path) : st;
}

static hfsb_status hfsbi_e2b_run_move(hfsbi_e2b_op *op) {
    hfsb_status st =
        hfsbi_path_move(op->box->guest.tools->place, hfsb_buf_str(&op->path),
                        hfsb_buf_str(&op->to),
                        HFSBI_MOVE_REPLACE | HFSBI_MOVE_PARENTS, &op->err);
    return st == HFSB_OK ? hfsbi_e2b_op_entry(op, &op->to) : st;
}

static hfsb_status hfsbi_e2b_run_remove(hfsbi_e2b_op *op) {
    hfsbi_remove_opts opts = HFSB_INIT;
    hfsb_status       st;
    opts.tree = opts.force = true;
    st = hfsbi_path_remove_all(op->box->guest.tools->place,
                               hfsb_buf_str(&op->path), &opts, NULL, &op->err);
    return st == HFSB_NOT_FOUND ? HFSB_OK : st;
}

static hfsb_status hfsbi_e2b_list_entry(void                   *user,
                                        const hfsbi_list_entry *entry) {
    hfsbi_e2b_op *op = (hfsbi_e2b_op *)user;
    hfsb_buf      path = HFSB_INIT;
    hfsb_status   st;
    path.alloc = op->path.alloc;
    st = hfsb_path_join(hfsb_buf_str(&op->path), entry->path, &path);
    if (st == HFSB_OK)
        st = hfsbi_e2b_put_info(&op->w, op->box, hfsb_buf_str(&path),
                                &entry->info, entry->link);
    hfsb_buf_free(&path);
    if (st == HFSB_OK && op->out.status != HFSB_OK)
        st = hfsbi_fail(&op->err, op->out.status, 0,
                        op->out.status == HFSB_LIMIT
                            ? "The list is too long: ask for less depth."
                            : "Out of memory.");
    return st;
}

static hfsb_status hfsbi_e2b_run_list(hfsbi_e2b_op *op) {
    hfsbi_list_opts opts = HFSB_INIT;
    hfsbi_listed    listed = HFSB_INIT;
    hfsb_status     st;
    opts.depth = op->depth > HFSBI_FINDER_DEPTH ? (size_t)HFSBI_FINDER_DEPTH
                                                : (size_t)op->depth;
    opts.fn = hfsbi_e2b_list_entry;
    opts.user = op;
    op->out.max = HFSBI_E2B_LIST_MAX;
    hfsb_json_put_key(&op->w, HFSB_LIT("entries"));
    hfsb_json_put_array(&op->w);
    st = hfsbi_path_list(op->box->guest.tools->place, hfsb_buf_str(&op->path),
                         &opts, &listed, &op->err);
    hfsb_json_put_end(&op->w);
    if (st == HFSB_OK && listed.more)
        st = hfsbi_fail(&op->err, HFSB_TIMEOUT, 0,
                        "The list takes too long: ask for less depth.");
    return st;
}

static void hfsbi_e2b_op_run(void *user) {
    hfsbi_e2b_op *op = (hfsbi_e2b_op *)user;
    hfsb_json_writer_init(&op->w, &op->out, NULL);
    hfsb_json_put_object(&op->w);
    op->st = op->run(op);
    hfsb_json_put_end(&op->w);
    if (op->st == HFSB_OK) op->st = hfsb_json_writer_finish(&op->w, &op->err);
}

static void hfsbi_e2b_op_done(void *user, hfsb_request *request) {
    hfsbi_e2b_op *op = (hfsbi_e2b_op *)user;
    const char   *words =
        op->err.msg[0] ? op->err.msg : hfsb_status_text(op->st);
    hfsbi_api_report(op->box->guest.tools, op->name, hfsb_buf_str(&op->path),
                     "", op->st == HFSB_OK ? HFSB_LIT("") : hfsb_cstr(words),
                     op->began, op->out.len);
    if (op->st == HFSB_OK)
        hfsbi_reply_take(request, 200, "application/json", &op->out);
    else hfsbi_e2b_fail(request, hfsbi_e2b_code(op->st), "%s", words);
    hfsbi_e2b_op_free(op);
}

/* Reads the paths of a message; false after an error reply. */
static bool hfsbi_e2b_op_read(hfsbi_e2b_op *op, hfsb_request *request,
                              const hfsb_json_value *message, bool moves,
                              bool needs_path) {
    hfsb_str path = hfsbi_json_get_str(message, moves ? "source" : "path");
    hfsb_str to = hfsbi_json_get_str(message, "destination");
    if (hfsb_str_find_byte(path, '\0') != HFSB_NPOS ||
        (needs_path && !path.len) ||
        (moves && (!to.len || hfsb_str_find_byte(to, '\0') != HFSB_NPOS)))
        hfsbi_e2b_fail(request, HFSBI_CONNECT_INVALID_ARGUMENT,
                       "A path is missing or contains a NUL.");
    else if (!hfsbi_e2b_path(op->box, path, &op->path) ||
             (moves && !hfsbi_e2b_path(op->box, to, &op->to)))
        hfsbi_e2b_fail(request, HFSBI_CONNECT_UNAVAILABLE, "Out of memory.");
    else return true;
    return false;
}

static void hfsbi_e2b_op_start(void *user, hfsb_request *request,
                               const char *name,
                               hfsb_status (*run)(hfsbi_e2b_op *op)) {
    hfsbi_e2b_ask ask;
    hfsbi_e2b_op *op;
    bool          ok;
    if (!hfsbi_e2b_ask_open((hfsbi_e2b *)user, request, false, &ask)) return;
    op = (hfsbi_e2b_op *)hfsbi_array(&ask.doc.alloc, 1, sizeof *op);
    if (!op) {
        hfsb_json_free(&ask.doc);
        hfsbi_e2b_fail(request, HFSBI_CONNECT_UNAVAILABLE, "Out of memory.");
        return;
    }
    memset(op, 0, sizeof *op);
    op->box = ask.box;
    hfsbi_guest_hold(&op->box->guest);
    op->name = name;
    op->run = run;
    op->path.alloc = op->to.alloc = op->out.alloc = ask.doc.alloc;
    op->began = hfsb_clock_ms();
    op->depth = hfsb_json_uint(hfsb_json_get(ask.doc.root, "depth"), 1);
    ok = hfsbi_e2b_op_read(
        op, request, ask.doc.root, run == hfsbi_e2b_run_move,
        run != hfsbi_e2b_run_stat && run != hfsbi_e2b_run_list);
    hfsb_json_free(&ask.doc);
    if (ok)
        hfsbi_request_work(request, &op->box->guest.tools->rights,
                           hfsbi_e2b_op_run, hfsbi_e2b_op_done, op);
    else hfsbi_e2b_op_free(op);
}

static void hfsbi_e2b_stat(void *user, hfsb_request *request) {
    hfsbi_e2b_op_start(user, request, "stat", hfsbi_e2b_run_stat);
}

static void hfsbi_e2b_make_dir(void *user, hfsb_request *request) {
    hfsbi_e2b_op_start(user, request, "mkdir", hfsbi_e2b_run_make);
}

static void hfsbi_e2b_move(void *user, hfsb_request *request) {
    hfsbi_e2b_op_start(user, request, "move", hfsbi_e2b_run_move);
}

static void hfsbi_e2b_list_dir(void *user, hfsb_request *request) {
    hfsbi_e2b_op_start(user, request, "list", hfsbi_e2b_run_list);
}

static void hfsbi_e2b_remove(void *user, hfsb_request *request) {
    hfsbi_e2b_op_start(user, request, "remove", hfsbi_e2b_run_remove);
}

HFSBI_FN hfsb_status hfsbi_e2b_add_files(hfsbi_e2b *e2b, hfsb_err *err) {
#define HFSBI_E2B_ROUTE(name, fn) \
    { "POST", "/filesystem.Filesystem/" name, fn, false, NULL, NULL }
    static const hfsbi_dialect_route routes[] = {
        HFSBI_E2B_ROUTE("Stat", hfsbi_e2b_stat),
        HFSBI_E2B_ROUTE("MakeDir", hfsbi_e2b_make_dir),
        HFSBI_E2B_ROUTE("Move", hfsbi_e2b_move),
        HFSBI_E2B_ROUTE("ListDir", hfsbi_e2b_list_dir),
        HFSBI_E2B_ROUTE("Remove", hfsbi_e2b_remove),
        {NULL, NULL, NULL, false, NULL, NULL}};
#undef HFSBI_E2B_ROUTE
    return hfsbi_dialect_add(&e2b->dialect, routes, err);
}
