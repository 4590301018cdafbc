/* cp_tree.c - hfsb cp -r: directories.

   Files are copied one by one as cp.c does, with their modes. Directories and
   symlinks are made around them: links last, so that no file is ever written
   through one that came with the tree.

   Links are copied to a sandbox unchanged. What a sandbox sends is not
   trusted: every path is resolved beneath the destination, names that leave it
   are refused, and so are links whose target is absolute or leaves the tree.
   The list of a tree there comes from find(1) over /api/exec, names separated
   by NUL. */
#define _XOPEN_SOURCE 700 /* lstat, readlink, symlink; before any include */
#include "cp.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MAX_DEPTH = 200, MAX_LIST = 256 << 20, BATCH = 64 };

#ifndef PATH_MAX
#define PATH_MAX 4096
#endif

static void join(hfsb_buf *out, const char *dir, const char *name) {
    size_t len = strlen(dir);
    must(hfsb_buf_printf(out, "%s%s%s", dir,
                         len && dir[len - 1] != '/' ? "/" : "", name));
}

/* ---- commands in the sandbox ---- */

typedef struct answer {
    hfsb_buf out, err;
} answer;

static bool take_answer(void *user, hfsb_proc_stream stream, hfsb_str bytes) {
    answer   *a = (answer *)user;
    hfsb_buf *to = stream == HFSB_PROC_STDERR ? &a->err : &a->out;
    if (to->len + bytes.len > MAX_LIST) return false;
    must(hfsb_buf_append(to, bytes));
    return true;
}

/* Appends a word with its NUL. Bytes beyond ASCII, and backslashes, become
   escapes of printf(1). */
static void encode(hfsb_buf *out, const char *word) {
    for (; *word; word++) {
        unsigned char c = (unsigned char)*word;
        if (c < 0x80 && c != '\\') must(hfsb_buf_append_byte(out, *word));
        else must(hfsb_buf_printf(out, "\\0%03o", c));
    }
    must(hfsb_buf_append_byte(out, '\0'));
}

/* Runs argv, which begins with "sh -c SCRIPT sh". Words are sent as JSON,
   which must be UTF-8: names that are not are sent as escapes and decoded in
   the sandbox. */
static hfsb_status run_there(cp_call *c, const char **argv,
                             const hfsb_exec_opts *opts,
                             hfsb_exec_result *end, hfsb_err *err) {
    static const char decode[] =
        "for w; do w=$(printf '%b.' \"$w\"); set -- \"$@\" \"${w%.}\"; "
        "shift; done; ";
    hfsb_exec_opts how = *opts;
    hfsb_buf       script = HFSB_INIT, words = HFSB_INIT;
    bool           text = true;
    size_t         i, at = 0;
    hfsb_status    st;
    for (i = 4; argv[i]; i++) {
        hfsb_str word = hfsb_cstr(argv[i]);
        text = text && hfsb_utf8_validate(word) == word.len;
        encode(&words, argv[i]);
    }
    must(hfsb_buf_printf(&script, "%s%s", decode, argv[2]));
    if (!text) argv[2] = script.ptr;
    for (i = 4; !text && argv[i]; i++, at += strlen(words.ptr + at) + 1)
        argv[i] = words.ptr + at;
    how.argv = argv;
    st = hfsb_sandbox_exec(c->sandbox, &how, end, err);
    hfsb_buf_free(&script);
    hfsb_buf_free(&words);
    return st;
}

/* Runs a script with arguments; a failure has the text of its errors. */
static hfsb_status ask_shell(cp_call *c, const char **argv, answer *a,
                             hfsb_err *err) {
    hfsb_exec_opts   opts = HFSB_INIT;
    hfsb_exec_result end = HFSB_INIT;
    hfsb_status      st;
    opts.in = -1;
    opts.on_output = take_answer;
    opts.user = a;
    st = run_there(c, argv, &opts, &end, err);
    if (st != HFSB_OK || end.exit_code == 0) return st;
    return fail(err, HFSB_REMOTE, "%.400s",
                a->err.len ? a->err.ptr : "A command failed in the sandbox");
}

bool is_dir_there(cp_call *c, const char *path) {
    const char *argv[6] = {"sh", "-c", "[ -d \"$1\" ]", "sh", NULL, NULL};
    answer      a = HFSB_INIT;
    hfsb_err    why = HFSB_INIT;
    bool        is;
    argv[4] = path;
    is = ask_shell(c, argv, &a, &why) == HFSB_OK;
    hfsb_buf_free(&a.out);
    hfsb_buf_free(&a.err);
    return is;
}

/* Words for one command, sent when there are enough of them. */
typedef struct batch {
    const char *script;
    hfsb_buf    words; /* each followed by NUL */
    size_t      count;
} batch;

static hfsb_status send_batch(cp_call *c, batch *b, hfsb_err *err) {
    const char *argv[BATCH + 8];
    const char *word = b->words.ptr;
    answer      a = HFSB_INIT;
    size_t      i;
    hfsb_status st;
    if (!b->count) return HFSB_OK;
    argv[0] = "sh";
    argv[1] = "-c";
    argv[2] = b->script;
    argv[3] = "sh";
    for (i = 0; i < b->count; i++, word += strlen(word) + 1) argv[4 + i] = word;
    argv[4 + i] = NULL;
    st = ask_shell(c, argv, &a, err);
    hfsb_buf_free(&a.out);
    hfsb_buf_free(&a.err);
    hfsb_buf_truncate(&b->words, 0);
    b->count = 0;
    return st;
}

static hfsb_status add_word(cp_call *c, batch *b, const char *word, bool last,
                            hfsb_err *err) {
    must(hfsb_buf_append(&b->words, hfsb_str_make(word, strlen(word) + 1)));
    b->count++;
    return last && b->count >= BATCH ? send_batch(c, b, err) : HFSB_OK;
}

/* ---- to the sandbox ---- */

typedef struct uploading {
    cp_call *c;
    batch    dirs, links;
    size_t   depth;
} uploading;

static hfsb_status upload_dir(uploading *u, const char *from, const char *to,
                              hfsb_err *err);

static hfsb_status upload_link(uploading *u, const char *from, const char *to,
                               hfsb_err *err) {
    char        points[PATH_MAX];
    ssize_t     n = readlink(from, points, sizeof points - 1);
    hfsb_status st;
    if (n < 0)
        return fail(err, HFSB_IO, "%s: %s", from, strerror(errno));
    points[n] = '\0';
    st = add_word(u->c, &u->links, points, false, err);
    if (st == HFSB_OK) st = add_word(u->c, &u->links, to, true, err);
    return st;
}

static hfsb_status upload_entry(uploading *u, const char *from, const char *to,
                                hfsb_err *err) {
    struct stat info;
    if (lstat(from, &info) != 0)
        return fail(err, HFSB_IO, "%s: %s", from, strerror(errno));
    if (S_ISLNK(info.st_mode)) return upload_link(u, from, to, err);
    if (S_ISDIR(info.st_mode)) return upload_dir(u, from, to, err);
    if (S_ISREG(info.st_mode))
        return copy_file(u->c, NULL, hfsb_cstr(from), hfsb_cstr(to), err);
    skip(u->c, hfsb_cstr(from), "it is neither a file, a folder nor a link");
    return HFSB_OK;
}

static hfsb_status upload_dir(uploading *u, const char *from, const char *to,
                              hfsb_err *err) {
    DIR           *dir = opendir(from);
    struct dirent *entry;
    hfsb_status    st;
    if (!dir) return fail(err, HFSB_IO, "%s: %s", from, strerror(errno));
    st = ++u->depth > MAX_DEPTH
             ? fail(err, HFSB_LIMIT, "%s is too deep", from)
             : add_word(u->c, &u->dirs, to, true, err);
    while (st == HFSB_OK && (entry = readdir(dir)) != NULL) {
        hfsb_buf here = HFSB_INIT, there = HFSB_INIT;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        join(&here, from, entry->d_name);
        join(&there, to, entry->d_name);
        st = upload_entry(u, here.ptr, there.ptr, err);
        hfsb_buf_free(&here);
        hfsb_buf_free(&there);
    }
    u->depth--;
    closedir(dir);
    return st;
}

hfsb_status upload_tree(cp_call *c, const char *from, const char *to,
                        hfsb_err *err) {
    uploading   u;
    hfsb_status st;
    memset(&u, 0, sizeof u);
    u.c = c;
    u.dirs.script = "mkdir -p -- \"$@\"";
    u.links.script = "while [ $# -gt 1 ]; do mkdir -p -- \"${2%/*}/\" || exit; "
                     "if [ -d \"$2\" ] && [ ! -L \"$2\" ]; then echo \"$2 is "
                     "there already, and a folder\" >&2; exit 1; fi; "
                     "ln -sfn -- \"$1\" \"$2\" || exit; shift 2; done";
    st = upload_dir(&u, from, to, err);
    if (st == HFSB_OK) st = send_batch(c, &u.dirs, err);
    if (st == HFSB_OK) st = send_batch(c, &u.links, err);
    hfsb_buf_free(&u.dirs.words);
    hfsb_buf_free(&u.links.words);
    return st;
}

/* ---- from the sandbox ---- */

/* Prints a letter, a path and a NUL for each entry; after a link its target
   and a NUL. Prints nothing for anything but a directory. */
static const char list_script[] =
    "[ -d \"$1\" ] || exit 0; cd -- \"$1\" && find . "
    "-type d -exec printf 'd%s\\000' {} + -o "
    "-type f -exec printf 'f%s\\000' {} + -o "
    "-type l -exec sh -c 'for f; do printf \"l%s\\000\" \"$f\"; "
    "printf \"%s\\000\" \"$(readlink \"$f\")\"; done' sh {} + -o "
    "-exec printf 'o%s\\000' {} +";

/* True for "./a/b": no part of it is "..", and no link could lead out. */
static bool is_inside(const char *path) {
    const char *p = path;
    if (*p == '/' || !*p) return false;
    while (*p) {
        size_t len = strcspn(p, "/");
        if (len == 2 && p[0] == '.' && p[1] == '.') return false;
        p += len + (p[len] == '/');
    }
    return true;
}

/* "" and "." in a path name nothing. */
static bool is_name(const char *part, size_t len) {
    return len && !(len == 1 && *part == '.');
}

/* True when the target, seen from the folder of the link, stays in the tree.
   Both have forms that is_inside() accepts, except for ".." at the start of
   the target: after a name, which may be another link, ".." leads anywhere. */
static bool link_stays(const char *path, const char *points) {
    long        depth = 0;
    bool        named = false;
    const char *p;
    size_t      len;
    if (*points == '/' || !*points) return false;
    for (p = path; len = strcspn(p, "/"), p[len]; p += len + 1)
        if (is_name(p, len)) depth++;
    for (p = points; *p; p += len + (p[len] == '/')) {
        bool up;
        len = strcspn(p, "/");
        up = len == 2 && p[0] == '.' && p[1] == '.';
        if (up && (named || --depth < 0)) return false;
        if (!up && is_name(p, len)) named = true;
    }
    return true;
}

/* Makes a directory beneath `to`; false when there is something else, such as
   a link. */
static bool make_dir(const char *to, const char *path) {
    hfsb_buf    whole = HFSB_INIT;
    struct stat info;
    bool        ok = true;
    size_t      at;
    join(&whole, to, path);
    at = whole.len - strlen(path);
    while (ok && at <= whole.len) {
        size_t len = strcspn(whole.ptr + at, "/");
        char   kept = whole.ptr[at + len];
        whole.ptr[at + len] = '\0';
        if (mkdir(whole.ptr, 0777) != 0)
            ok = errno == EEXIST && lstat(whole.ptr, &info) == 0 &&
                 S_ISDIR(info.st_mode);
        whole.ptr[at + len] = kept;
        at += len + 1;
    }
    hfsb_buf_free(&whole);
    return ok;
}

typedef struct downloading {
    cp_call         *c;
    const hfsb_root *root;
    const char      *from, *to;
} downloading;

static hfsb_status download_entry(downloading *d, char kind, const char *path,
                                  hfsb_err *err) {
    hfsb_buf    there = HFSB_INIT;
    hfsb_status st = HFSB_OK;
    if (!is_inside(path))
        return fail(err, HFSB_REFUSED,
                    "The sandbox sent the path %.200s, which leaves the tree",
                    path);
    if (kind == 'd' && !make_dir(d->to, path))
        st = fail(err, HFSB_EXISTS, "%s/%s is there already, and no folder",
                  d->to, path);
    if (kind == 'o')
        skip(d->c, hfsb_cstr(path),
             "it is neither a file, a folder nor a link");
    if (kind != 'f') return st;
    join(&there, d->from, path + (strncmp(path, "./", 2) == 0 ? 2 : 0));
    st = copy_file(d->c, d->root, hfsb_buf_str(&there), hfsb_cstr(path), err);
    hfsb_buf_free(&there);
    return st;
}

/* Makes a link; replaces a link, and nothing else. */
static bool put_link(const char *points, const char *path) {
    struct stat info;
    if (symlink(points, path) == 0) return true;
    if (errno != EEXIST || lstat(path, &info) != 0) return false;
    if (!S_ISLNK(info.st_mode)) {
        errno = EEXIST;
        return false;
    }
    return unlink(path) == 0 && symlink(points, path) == 0;
}

static hfsb_status download_link(downloading *d, const char *path,
                                 const char *points, hfsb_err *err) {
    hfsb_buf    here = HFSB_INIT, parent = HFSB_INIT;
    hfsb_status st = HFSB_OK;
    if (!is_inside(path) || strncmp(path, "./", 2) != 0 ||
        !link_stays(path, points)) {
        skip(d->c, hfsb_cstr(path), "its target is outside of the tree");
        return HFSB_OK;
    }
    join(&here, d->to, path);
    must(hfsb_buf_append(&parent,
                         hfsb_str_make(path, (size_t)(strrchr(path, '/') -
                                                      path))));
    if (!make_dir(d->to, parent.ptr))
        st = fail(err, HFSB_EXISTS, "%s is no folder", parent.ptr);
    if (st == HFSB_OK && !put_link(points, here.ptr))
        skip(d->c, hfsb_cstr(path),
             errno == EEXIST ? "there is something else already"
                             : strerror(errno));
    hfsb_buf_free(&here);
    hfsb_buf_free(&parent);
    return st;
}

/* Directories, then files, then links. */
static hfsb_status download_list(downloading *d, hfsb_str list,
                                 hfsb_err *err) {
    static const char order[] = "dfol";
    hfsb_status       st = HFSB_OK;
    size_t            pass;
    for (pass = 0; order[pass] && st == HFSB_OK; pass++) {
        const char *p = list.ptr, *end = list.ptr + list.len;
        while (st == HFSB_OK && p < end) {
            const char *after = p + strlen(p) + 1;
            char        kind = *p;
            bool        is_link = kind == 'l' && after < end;
            if (kind == order[pass] && is_link)
                st = download_link(d, p + 1, after, err);
            else if (kind == order[pass])
                st = download_entry(d, kind, p + 1, err);
            p = is_link ? after + strlen(after) + 1 : after;
        }
    }
    return st;
}

hfsb_status download_tree(cp_call *c, const char *from, const char *to,
                          bool *is_tree, hfsb_err *err) {
    const char    *argv[6] = {"sh", "-c", NULL, "sh", NULL, NULL};
    answer         a = HFSB_INIT;
    hfsb_root_opts opts = HFSB_INIT;
    hfsb_root     *root = NULL;
    downloading    d;
    hfsb_status    st;
    argv[2] = list_script;
    argv[4] = from;
    st = ask_shell(c, argv, &a, err);
    *is_tree = a.out.len > 0;
    if (st == HFSB_OK && *is_tree && mkdir(to, 0777) != 0 && errno != EEXIST)
        st = fail(err, HFSB_IO, "Cannot create %s: %s", to, strerror(errno));
    opts.root = hfsb_cstr(to);
    if (st == HFSB_OK && *is_tree) st = hfsb_root_open(&opts, &root, err);
    d.c = c;
    d.root = root;
    d.from = from;
    d.to = to;
    if (st == HFSB_OK && *is_tree)
        st = download_list(&d, hfsb_buf_str(&a.out), err);
    hfsb_root_close(root);
    hfsb_buf_free(&a.out);
    hfsb_buf_free(&a.err);
    return st;
}
