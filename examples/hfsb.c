/* hfsb.c - the command line: what the library does, for people and scripts.

   Exit codes: 0 done, 1 refused or invalid (the reason is on stderr, or in
   "error" with --json), 2 the command was not understood. */
#define _XOPEN_SOURCE 700 /* realpath, fsync; before any include */
#define HFSB_IMPLEMENTATION
#include "../hfsb.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { DONE = 0, REFUSED = 1, USAGE = 2 };

/* ---- words of the command line ---- */

typedef struct args {
    int    count, next;
    char **list;
    bool   only_words; /* behind "--" */
} args;

/* The next word when it is an option (a lone "-" is none). */
static const char *next_option(args *a) {
    const char *word = a->next < a->count ? a->list[a->next] : NULL;
    if (!word || a->only_words || word[0] != '-' || !word[1]) return NULL;
    a->next++;
    if (strcmp(word, "--") == 0) {
        a->only_words = true;
        return NULL;
    }
    return word;
}

static const char *next_word(args *a) {
    return a->next < a->count ? a->list[a->next++] : NULL;
}

static int usage(const char *format, const char *word) {
    fprintf(stderr, "hfsb: ");
    fprintf(stderr, format, word ? word : "");
    fprintf(stderr, "\nTry: hfsb --help\n");
    return USAGE;
}

/* A number from 1 on. */
static bool read_number(const char *word, size_t *out) {
    size_t n = 0;
    if (!*word) return false;
    for (; *word; word++) {
        if (*word < '0' || *word > '9' || n > (size_t)-1 / 10 - 1)
            return false;
        n = n * 10 + (size_t)(*word - '0');
    }
    *out = n;
    return n > 0;
}

/* ---- files ---- */

static hfsb_status fail(hfsb_err *err, hfsb_status code, const char *format,
                        const char *name) {
    memset(err, 0, sizeof *err);
    err->code = code;
    snprintf(err->msg, sizeof err->msg, format, name, strerror(errno));
    return code;
}

static hfsb_status read_all(FILE *f, const char *name, hfsb_buf *out,
                            hfsb_err *err) {
    static char piece[65536];
    size_t      n;
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        if (hfsb_buf_append(out, hfsb_str_make(piece, n)) != HFSB_OK)
            return fail(err, HFSB_NOMEM, "%s: out of memory", name);
    return ferror(f) ? fail(err, HFSB_IO, "%s cannot be read: %s", name)
                     : HFSB_OK;
}

static hfsb_status read_stdin(hfsb_buf *out, hfsb_err *err) {
    return read_all(stdin, "standard input", out, err);
}

/* Reads path whole. What goes wrong is put into *err. */
static hfsb_status load(const char *path, hfsb_buf *out, hfsb_err *err) {
    struct stat info;
    FILE       *f;
    hfsb_status st;
    if (stat(path, &info) != 0)
        return errno == ENOENT
                   ? fail(err, HFSB_NOT_FOUND, "File not found: %s", path)
                   : fail(err, HFSB_IO, "%s: %s", path);
    if (S_ISDIR(info.st_mode))
        return fail(err, HFSB_IO, "Is a directory: %s", path);
    f = fopen(path, "rb");
    if (!f) return fail(err, HFSB_IO, "%s: %s", path);
    st = read_all(f, path, out, err);
    fclose(f);
    return st;
}

/* The same for a file that will be written again. */
static hfsb_status load_regular(const char *path, hfsb_buf *out,
                                hfsb_err *err) {
    struct stat info;
    if (stat(path, &info) == 0 && !S_ISREG(info.st_mode) &&
        !S_ISDIR(info.st_mode))
        return fail(err, HFSB_IO, "Not a regular file: %s", path);
    return load(path, out, err);
}

static bool write_descriptor(int fd, hfsb_str text) {
    while (text.len) {
        ssize_t n = write(fd, text.ptr, text.len);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        text = hfsb_str_slice(text, (size_t)n, text.len);
    }
    return fsync(fd) == 0;
}

/* Makes the directories above path. */
static bool make_parents(const char *path) {
    char  *copy = strdup(path);
    size_t i;
    bool   ok = copy != NULL;
    for (i = 1; ok && copy[i]; i++)
        if (copy[i] == '/') {
            copy[i] = '\0';
            ok = mkdir(copy, 0777) == 0 || errno == EEXIST;
            copy[i] = '/';
        }
    free(copy);
    return ok;
}

/* Rewrites a file where it is. The bytes go in before the old length goes, so
   that a full disk costs as little as possible. */
static bool save_in_place(const char *path, hfsb_str text) {
    int  fd = open(path, O_WRONLY);
    bool ok = fd >= 0 && write_descriptor(fd, text) &&
              ftruncate(fd, (off_t)text.len) == 0;
    if (fd >= 0 && close(fd) != 0) ok = false;
    return ok;
}

/* Writes name and renames it to target; info is what target was, or NULL. */
static bool save_beside(const char *name, const char *target, hfsb_str text,
                        const struct stat *info) {
    int  fd = open(name, O_WRONLY | O_CREAT | O_EXCL, info ? 0600 : 0666);
    bool ok = fd >= 0;
    int  keep;
    if (!ok) return false;
    if (info) {
        ok = fchown(fd, info->st_uid, info->st_gid) == 0 ||
             info->st_uid == geteuid();
        ok = ok && fchmod(fd, info->st_mode & 07777) == 0;
    }
    ok = ok && write_descriptor(fd, text);
    if (close(fd) != 0) ok = false;
    if (ok) ok = rename(name, target) == 0;
    keep = errno;
    if (!ok) unlink(name);
    errno = keep;
    return ok;
}

/* Replaces the file by a rename, so that a reader sees the old content or the
   new one; follows a symlink, keeps mode and owner. Where a rename would break
   something (several names, a directory or an owner we cannot write) the file
   is rewritten in place. */
static bool save(const char *path, hfsb_str text) {
    struct stat info;
    char       *real = realpath(path, NULL);
    const char *target = real ? real : path, *slash = strrchr(target, '/');
    hfsb_buf    name = HFSB_INIT;
    bool        there = stat(target, &info) == 0, ok;
    int         dir = slash ? (int)(slash - target) + 1 : 0;
    if (there && access(target, W_OK) != 0) {
        ok = false;
    } else if (there && info.st_nlink > 1) {
        ok = save_in_place(target, text);
    } else {
        ok = hfsb_buf_printf(&name, "%.*s.%.200s.hfsb-%ld", dir, target,
                             target + dir, (long)getpid()) == HFSB_OK &&
             save_beside(name.ptr, target, text, there ? &info : NULL);
        if (!ok && there && (errno == EACCES || errno == EPERM))
            ok = save_in_place(target, text);
    }
    free(real);
    hfsb_buf_free(&name);
    return ok;
}

static int put_out(hfsb_str text) {
    if (fwrite(text.ptr, 1, text.len, stdout) == text.len &&
        fflush(stdout) == 0)
        return DONE;
    fprintf(stderr, "hfsb: cannot write to standard output\n");
    return REFUSED;
}

/* ---- results ---- */

/* A tool's result: as JSON on stdout, or for people. */
typedef struct outcome {
    bool             success;
    hfsb_buf         output;
    hfsb_err         err;
    hfsb_edit_result edit;
    hfsb_buf         diff; /* of a patch */
} outcome;

static void put_lines(hfsb_json_writer *w, const hfsb_edit_result *r) {
    size_t i;
    hfsb_json_put_array(w);
    for (i = 0; r->spans && i < r->count; i++) {
        hfsb_json_put_array(w);
        hfsb_json_put_uint(w, r->spans[i].first_line);
        hfsb_json_put_uint(w, r->spans[i].last_line);
        hfsb_json_put_end(w);
    }
    hfsb_json_put_end(w);
}

static void put_field(hfsb_json_writer *w, const char *key, hfsb_str text) {
    hfsb_json_put_key(w, hfsb_cstr(key));
    hfsb_json_put_str(w, text);
}

static int show_json(const outcome *o, const hfsb_buf *diff) {
    hfsb_json_writer w;
    hfsb_buf         text = HFSB_INIT;
    int              code = REFUSED;
    hfsb_json_writer_init(&w, &text, NULL);
    hfsb_json_put_object(&w);
    hfsb_json_put_key(&w, HFSB_LIT("success"));
    hfsb_json_put_bool(&w, o->success);
    put_field(&w, "output", hfsb_buf_str(&o->output));
    put_field(&w, "error", hfsb_cstr(o->success ? "" : o->err.msg));
    hfsb_json_put_key(&w, HFSB_LIT("count"));
    hfsb_json_put_uint(&w, o->edit.count);
    hfsb_json_put_key(&w, HFSB_LIT("note"));
    if (o->edit.note[0]) hfsb_json_put_str(&w, hfsb_cstr(o->edit.note));
    else hfsb_json_put_null(&w);
    hfsb_json_put_key(&w, HFSB_LIT("lines"));
    put_lines(&w, &o->edit);
    put_field(&w, "diff", hfsb_buf_str(diff));
    hfsb_json_put_end(&w);
    if (hfsb_json_writer_finish(&w, NULL) == HFSB_OK &&
        hfsb_buf_append_byte(&text, '\n') == HFSB_OK)
        code = put_out(hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    return code == DONE && !o->success ? REFUSED : code;
}

static int show(const outcome *o, const hfsb_buf *diff, bool json) {
    int code;
    if (json) return show_json(o, diff);
    if (!o->success) {
        fprintf(stderr, "%s\n", o->err.msg);
        return REFUSED;
    }
    code = put_out(hfsb_buf_str(&o->output));
    if (code == DONE) code = put_out(HFSB_LIT("\n"));
    return code == DONE ? put_out(hfsb_buf_str(diff)) : code;
}

static void free_outcome(outcome *o) {
    hfsb_buf_free(&o->output);
    hfsb_buf_free(&o->diff);
    hfsb_edit_result_free(&o->edit);
}

static void fail_outcome(outcome *o, hfsb_status code, const char *format,
                         const char *path) {
    o->success = false;
    fail(&o->err, code, format, path);
}

/* ---- hfsb edit ---- */

typedef struct edit_call {
    const char *file;
    const char *old_text, *new_text, *old_file, *new_file;
    hfsb_edit   base; /* mode, replace_all, exact, line of the options */
    bool        dry_run, json;
    hfsb_buf    old_buf, new_buf, input, ignored;
    hfsb_json_doc doc;
    hfsb_edit    *edits;
    size_t        count;
} edit_call;

static const char *const edit_keys[] = {"old_str", "new_str", "mode",
                                        "replace_all", "line", "exact"};

/* Says which keys were not looked at. Beside `edits` no other counts. */
static hfsb_status note_unknown(edit_call *c, const hfsb_json_value *object,
                                bool top) {
    bool           many = top && hfsb_json_get(object, "edits");
    hfsb_json_iter it = hfsb_json_begin(object);
    hfsb_status    st = HFSB_OK;
    while (st == HFSB_OK && hfsb_json_next(&it)) {
        size_t i, n = sizeof edit_keys / sizeof *edit_keys;
        for (i = 0; i < n; i++)
            if (hfsb_str_equal(it.key, hfsb_cstr(edit_keys[i]))) break;
        if ((i < n && !many) || (top && hfsb_str_equal(it.key, HFSB_LIT("path"))) ||
            (top && hfsb_str_equal(it.key, HFSB_LIT("edits"))))
            continue;
        st = hfsb_buf_printf(&c->ignored, "\n(unknown key ignored: %.*s)",
                             (int)hfsb_utf8_offset(it.key, 80), it.key.ptr);
    }
    return st;
}

static hfsb_status read_edit(edit_call *c, const hfsb_json_value *object,
                             hfsb_edit *edit, bool top, hfsb_err *err) {
    hfsb_status st;
    *edit = c->base;
    st = hfsb_edit_from_json(object, edit, err);
    return st == HFSB_OK ? note_unknown(c, object, top) : st;
}

/* The edits of a JSON object on stdin. */
static hfsb_status read_input(edit_call *c, hfsb_err *err) {
    hfsb_json_parse_opts   opts = HFSB_INIT;
    const hfsb_json_value *list = NULL;
    hfsb_json_iter         it;
    hfsb_status            st;
    opts.unique_keys = true;
    st = read_stdin(&c->input, err);
    if (st != HFSB_OK) return st;
    st = hfsb_json_parse_in_place(c->input.ptr, c->input.len, &opts, &c->doc,
                                  err);
    if (st != HFSB_OK) return st;
    st = hfsb_json_arg_value(c->doc.root, "edits", false, HFSB_JSON_ARRAY,
                             &list, err);
    if (st != HFSB_OK) return st;
    if (list && (hfsb_json_get(c->doc.root, "old_str") ||
                 hfsb_json_get(c->doc.root, "new_str")))
        return fail(err, HFSB_ARG, "Give old_str and new_str, or %s, not both",
                    "edits");
    c->count = list ? hfsb_json_count(list) : 1;
    c->edits = (hfsb_edit *)calloc(c->count ? c->count : 1, sizeof *c->edits);
    if (!c->edits) return HFSB_NOMEM;
    if (!list) return read_edit(c, c->doc.root, c->edits, true, err);
    it = hfsb_json_begin(list);
    for (c->count = 0; st == HFSB_OK && hfsb_json_next(&it); c->count++)
        st = read_edit(c, it.value, c->edits + c->count, false, err);
    return st == HFSB_OK ? note_unknown(c, c->doc.root, true) : st;
}

/* The edit of the options. */
static hfsb_status read_options(edit_call *c, hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    c->edits = (hfsb_edit *)calloc(1, sizeof *c->edits);
    if (!c->edits) return HFSB_NOMEM;
    c->count = 1;
    *c->edits = c->base;
    c->edits->old_str = hfsb_cstr(c->old_text);
    c->edits->new_str = hfsb_cstr(c->new_text);
    if (c->old_file) {
        st = load(c->old_file, &c->old_buf, err);
        c->edits->old_str = hfsb_buf_str(&c->old_buf);
    }
    if (st == HFSB_OK && c->new_file) {
        st = load(c->new_file, &c->new_buf, err);
        c->edits->new_str = hfsb_buf_str(&c->new_buf);
    }
    return st;
}

static hfsb_status say_edited(const edit_call *c, outcome *o) {
    hfsb_status st = hfsb_buf_printf(
        &o->output, "%s %s (%zu replacement%s)%s%s",
        c->dry_run ? "Would edit" : "Edited", c->file, o->edit.count,
        o->edit.count > 1 ? "s" : "", o->edit.note[0] ? " " : "",
        o->edit.note);
    return st == HFSB_OK
               ? hfsb_buf_append(&o->output, hfsb_buf_str(&c->ignored))
               : st;
}

static void run_edit(edit_call *c, outcome *o) {
    hfsb_buf       before = HFSB_INIT, after = HFSB_INIT;
    hfsb_edit_opts opts = HFSB_INIT;
    bool           options = c->old_text || c->old_file;
    hfsb_status    st;
    opts.path = hfsb_cstr(c->file);
    st = options ? read_options(c, &o->err) : read_input(c, &o->err);
    if (st == HFSB_OK) st = load_regular(c->file, &before, &o->err);
    if (st == HFSB_OK)
        st = hfsb_edit_apply(hfsb_buf_str(&before), c->edits, c->count, &opts,
                             &after, &o->edit, &o->err);
    o->success = st == HFSB_OK;
    if (o->success && !c->dry_run && !save(c->file, hfsb_buf_str(&after))) {
        hfsb_edit_result_free(&o->edit);
        fail_outcome(o, HFSB_IO, "%s was not written: %s", c->file);
    }
    if (o->success && say_edited(c, o) != HFSB_OK)
        fail_outcome(o, HFSB_NOMEM, "%s: out of memory", c->file);
    if (!o->success && !o->err.msg[0])
        snprintf(o->err.msg, sizeof o->err.msg, "%s", hfsb_status_text(st));
    hfsb_buf_free(&before);
    hfsb_buf_free(&after);
}

/* One option of `hfsb edit`; USAGE when it is not understood. */
static int edit_option(edit_call *c, args *a, const char *option) {
    static const struct {
        const char *name;
        size_t      field;
    } texts[] = {{"--old", offsetof(edit_call, old_text)},
                 {"--new", offsetof(edit_call, new_text)},
                 {"--old-file", offsetof(edit_call, old_file)},
                 {"--new-file", offsetof(edit_call, new_file)}};
    size_t      i;
    const char *value;
    if (strcmp(option, "--help") == 0)
        return usage("edit: %s comes before anything else", option);
    if (strcmp(option, "--replace-all") == 0) c->base.replace_all = true;
    else if (strcmp(option, "--exact") == 0) c->base.exact = true;
    else if (strcmp(option, "--dry-run") == 0) c->dry_run = true;
    else if (strcmp(option, "--json") == 0) c->json = true;
    else {
        value = next_word(a);
        if (!value) return usage("edit: %s needs a value, or is unknown",
                                 option);
        for (i = 0; i < sizeof texts / sizeof *texts; i++)
            if (strcmp(option, texts[i].name) == 0) {
                memcpy((char *)c + texts[i].field, &value, sizeof value);
                return DONE;
            }
        if (strcmp(option, "--mode") == 0) {
            hfsb_err err;
            if (hfsb_edit_set_mode(&c->base, hfsb_cstr(value), &err) !=
                HFSB_OK)
                return usage("%s", err.msg);
        } else if (strcmp(option, "--line") == 0) {
            if (!read_number(value, &c->base.line))
                return usage("edit: --line needs a line number, not %s",
                             value);
        } else {
            return usage("edit: unknown option %s", option);
        }
    }
    return DONE;
}

static int command_edit(args *a) {
    edit_call   c;
    outcome     o;
    const char *option;
    int         code = DONE;
    memset(&c, 0, sizeof c);
    memset(&o, 0, sizeof o);
    while (code == DONE) {
        if ((option = next_option(a)) != NULL) code = edit_option(&c, a, option);
        else if (a->next >= a->count) break;
        else if (c.file) code = usage("edit: one FILE only, not %s too",
                                      a->list[a->next]);
        else c.file = next_word(a);
    }
    if (code != DONE) return code;
    if (!c.file) return usage("edit: which FILE?", NULL);
    if ((c.old_text || c.old_file) != (c.new_text || c.new_file))
        return usage("edit: give both the old and the new text", NULL);
    if ((c.old_text && c.old_file) || (c.new_text && c.new_file))
        return usage("edit: give a text or a file with it, not both", NULL);
    run_edit(&c, &o);
    code = show(&o, &o.edit.diff, c.json);
    free_outcome(&o);
    hfsb_json_free(&c.doc);
    hfsb_buf_free(&c.input);
    hfsb_buf_free(&c.ignored);
    hfsb_buf_free(&c.old_buf);
    hfsb_buf_free(&c.new_buf);
    free(c.edits);
    return code;
}

/* ---- hfsb patch ---- */

static char *terminated(hfsb_str s) {
    char *copy = (char *)malloc(s.len + 1);
    if (copy) {
        memcpy(copy, s.ptr, s.len);
        copy[s.len] = '\0';
    }
    return copy;
}

static hfsb_status read_for_patch(void *user, hfsb_str path, hfsb_buf *out,
                                  hfsb_err *err) {
    char       *name = terminated(path);
    hfsb_status st = name ? load_regular(name, out, err) : HFSB_NOMEM;
    (void)user;
    free(name);
    return st;
}

static bool same_file(const char *a, const char *b) {
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev &&
           x.st_ino == y.st_ino;
}

/* Carries one change out; `done` were before it. */
static bool carry_out(const hfsb_patch_change *c, size_t done,
                      hfsb_err *err) {
    char       *path = terminated(c->path), *to = terminated(c->new_path);
    const char *name = to && *to ? to : path;
    bool        ok = path && to;
    if (ok && c->kind == HFSB_PATCH_DELETE) {
        ok = unlink(path) == 0;
    } else if (ok) {
        ok = make_parents(name) && save(name, hfsb_buf_str(&c->content));
        if (ok && name != path && !same_file(name, path))
            ok = unlink(path) == 0;
    }
    if (!ok) {
        size_t n;
        fail(err, HFSB_IO, "%s was not written: %s", name ? name : "?");
        n = strlen(err->msg);
        snprintf(err->msg + n, sizeof err->msg - n,
                 ". Changes carried out before it: %zu", done);
    }
    free(path);
    free(to);
    return ok;
}

static hfsb_status say_change(const hfsb_patch_change *c, outcome *o) {
    static const char *const word[] = {"Added", "Deleted", "Updated"};
    hfsb_status st = hfsb_buf_printf(
        &o->output, "%s%s %.*s", o->output.len ? "\n" : "", word[c->kind],
        (int)c->path.len, c->path.ptr);
    if (st == HFSB_OK && c->new_path.len)
        st = hfsb_buf_printf(&o->output, ", moved to %.*s",
                             (int)c->new_path.len, c->new_path.ptr);
    if (st == HFSB_OK)
        st = hfsb_buf_append(&o->diff, hfsb_buf_str(&c->diff));
    return st;
}

static void run_patch(hfsb_str text, bool dry_run, outcome *o) {
    hfsb_patch_files  files = HFSB_INIT;
    hfsb_patch_result r = HFSB_INIT;
    size_t            i;
    files.read = read_for_patch;
    o->success = hfsb_patch_apply(text, &files, &r, &o->err) == HFSB_OK;
    for (i = 0; o->success && i < r.count; i++) {
        if (!dry_run) o->success = carry_out(r.changes + i, i, &o->err);
        if (o->success && say_change(r.changes + i, o) != HFSB_OK)
            fail_outcome(o, HFSB_NOMEM, "%sout of memory", "");
    }
    if (o->success) o->edit.count = r.count;
    if (o->success && r.fuzzy)
        snprintf(o->edit.note, sizeof o->edit.note,
                 "(context matched after trimming)");
    hfsb_patch_free(&r);
}

static int command_patch(args *a) {
    outcome     o;
    hfsb_buf    text = HFSB_INIT;
    const char *option, *file = NULL;
    bool        dry_run = false, json = false, loaded;
    int         code;
    memset(&o, 0, sizeof o);
    for (;;) {
        if ((option = next_option(a)) != NULL) {
            if (strcmp(option, "--dry-run") == 0) dry_run = true;
            else if (strcmp(option, "--json") == 0) json = true;
            else return usage("patch: unknown option %s", option);
        } else if (a->next >= a->count) {
            break;
        } else if (file) {
            return usage("patch: one FILE only, not %s too",
                         a->list[a->next]);
        } else {
            file = next_word(a);
        }
    }
    loaded = file && strcmp(file, "-") != 0
                 ? load(file, &text, &o.err) == HFSB_OK
                 : read_stdin(&text, &o.err) == HFSB_OK;
    if (loaded) run_patch(hfsb_buf_str(&text), dry_run, &o);
    code = show(&o, &o.diff, json);
    free_outcome(&o);
    hfsb_buf_free(&text);
    return code;
}

/* ---- hfsb json ---- */

static int command_json(args *a) {
    hfsb_json_write_opts opts = HFSB_INIT;
    hfsb_json_doc        doc = HFSB_INIT;
    hfsb_buf             text = HFSB_INIT, out = HFSB_INIT;
    hfsb_err             err;
    const char          *option, *file = NULL, *name;
    int                  code = REFUSED;
    for (;;) {
        if ((option = next_option(a)) != NULL) {
            if (strcmp(option, "--pretty") != 0)
                return usage("json: unknown option %s", option);
            opts.pretty = true;
        } else if (a->next >= a->count) {
            break;
        } else if (file) {
            return usage("json: one FILE only, not %s too", a->list[a->next]);
        } else {
            file = next_word(a);
        }
    }
    if (file && strcmp(file, "-") == 0) file = NULL;
    name = file ? file : "standard input";
    memset(&err, 0, sizeof err);
    if ((file ? load(file, &text, &err) : read_stdin(&text, &err)) != HFSB_OK)
        fprintf(stderr, "hfsb: %s\n", err.msg);
    else if (hfsb_json_parse(hfsb_buf_str(&text), NULL, &doc, &err) != HFSB_OK)
        fprintf(stderr, "hfsb: %s: %s\n", name, err.msg);
    else if (hfsb_json_write(doc.root, &opts, &out, &err) != HFSB_OK ||
             hfsb_buf_append_byte(&out, '\n') != HFSB_OK)
        fprintf(stderr, "hfsb: %s: out of memory\n", name);
    else
        code = put_out(hfsb_buf_str(&out));
    hfsb_json_free(&doc);
    hfsb_buf_free(&text);
    hfsb_buf_free(&out);
    return code;
}

/* ---- hfsb strip, truncate ---- */

static int fail_stream(const char *command) {
    fprintf(stderr, "hfsb: %s: %s\n", command,
            ferror(stdin) ? "standard input cannot be read" : "out of memory");
    return REFUSED;
}

static int command_strip(args *a) {
    static char       piece[65536];
    hfsb_text_filter *filter;
    hfsb_buf          out = HFSB_INIT;
    size_t            n;
    int               code = DONE;
    if (a->next < a->count)
        return usage("strip: reads standard input only, not %s",
                     a->list[a->next]);
    filter = hfsb_text_filter_open(NULL);
    if (!filter) return fail_stream("strip");
    while (code == DONE && (n = fread(piece, 1, sizeof piece, stdin)) > 0) {
        hfsb_buf_truncate(&out, 0);
        code = hfsb_text_filter_write(filter, hfsb_str_make(piece, n),
                                      &out) == HFSB_OK
                   ? put_out(hfsb_buf_str(&out))
                   : fail_stream("strip");
    }
    hfsb_buf_truncate(&out, 0);
    if (code == DONE)
        code = !ferror(stdin) &&
                       hfsb_text_filter_finish(filter, &out) == HFSB_OK
                   ? put_out(hfsb_buf_str(&out))
                   : fail_stream("strip");
    hfsb_text_filter_close(filter);
    hfsb_buf_free(&out);
    return code;
}

static int truncate_input(hfsb_text_window *window) {
    static char      piece[65536];
    hfsb_utf8_stream stream = HFSB_INIT;
    hfsb_buf         text = HFSB_INIT;
    size_t           n;
    bool             last;
    hfsb_status      st = HFSB_OK;
    int              code;
    do {
        n = fread(piece, 1, sizeof piece, stdin);
        last = n < sizeof piece;
        hfsb_buf_truncate(&text, 0);
        st = hfsb_utf8_stream_write(&stream, hfsb_str_make(piece, n), last,
                                    &text);
        if (st == HFSB_OK)
            st = hfsb_text_window_write(window, hfsb_buf_str(&text));
    } while (st == HFSB_OK && !last);
    hfsb_buf_truncate(&text, 0);
    if (st == HFSB_OK && !ferror(stdin) &&
        hfsb_text_window_show(window, HFSB_LIT(""), &text) == HFSB_OK)
        code = put_out(hfsb_buf_str(&text));
    else
        code = fail_stream("truncate");
    hfsb_buf_free(&text);
    return code;
}

static int command_truncate(args *a) {
    hfsb_text_limit   limit = HFSB_INIT;
    hfsb_text_window *window;
    const char       *option = next_option(a), *value;
    int               code;
    if (option && strcmp(option, "--limit") == 0) {
        value = next_word(a);
        if (!value || !read_number(value, &limit.chars))
            return usage("truncate: --limit needs a number of characters",
                         NULL);
        option = NULL;
    }
    if (option || a->next < a->count)
        return usage("truncate: unknown argument %s",
                     option ? option : a->list[a->next]);
    window = hfsb_text_window_open(&limit, NULL);
    if (!window) return fail_stream("truncate");
    code = truncate_input(window);
    hfsb_text_window_close(window);
    return code;
}

/* ---- hfsb classify ---- */

static int command_classify(args *a) {
    const char *option, *word = NULL, *kind;
    bool        json = false;
    for (;;) {
        if ((option = next_option(a)) != NULL) {
            if (strcmp(option, "--json") != 0)
                return usage("classify: unknown option %s", option);
            json = true;
        } else if (a->next >= a->count) {
            break;
        } else if (word) {
            return usage("classify: one STRING only, not %s too",
                         a->list[a->next]);
        } else {
            word = next_word(a);
        }
    }
    if (!word) return usage("classify: which STRING?", NULL);
    kind = hfsb_script_kind_name(hfsb_script_classify(hfsb_cstr(word)));
    if (json) printf("{\"kind\":\"%s\"}\n", kind);
    else printf("%s\n", kind);
    return fflush(stdout) == 0 ? DONE : REFUSED;
}

/* ---- the commands ---- */

typedef struct command {
    const char *name;
    int (*run)(args *a);
    const char *help;
} command;

static const command commands[] = {
    {"edit", command_edit,
     "hfsb edit [OPTIONS] FILE\n"
     "    Replace text in FILE and show what changed. The text need not be\n"
     "    exact in blanks, indentation and quotes, but it must mean one place.\n"
     "    --old TEXT, --old-file F    the text to find\n"
     "    --new TEXT, --new-file F    the text to put in its place\n"
     "    without these: a JSON object on standard input with old_str, new_str\n"
     "    and, if wanted, mode, replace_all, line, exact; or edits, an array of\n"
     "    such objects, which are made all or not at all\n"
     "    --mode M         replace, append_after or prepend_before\n"
     "    --replace-all    every place\n"
     "    --line N         of several exact places, the one at line N\n"
     "    --exact          to the letter, line endings aside\n"
     "    --dry-run        show the change, do not write\n"
     "    --json           print success, output, error, count, note, lines, "
     "diff\n"},
    {"patch", command_patch,
     "hfsb patch [--dry-run] [--json] [FILE]\n"
     "    Apply a patch in the *** Begin Patch format, from FILE or standard\n"
     "    input. All changes are worked out before the first file is "
     "written;\n"
     "    paths are taken from the current directory.\n"},
    {"json", command_json,
     "hfsb json [--pretty] [FILE]\n"
     "    Check a JSON text and print it again; exit 1 with the position when\n"
     "    it is invalid.\n"},
    {"strip", command_strip,
     "hfsb strip\n"
     "    Standard input to standard output without escape sequences, with\n"
     "    rewritten lines (progress bars) as a terminal leaves them.\n"},
    {"truncate", command_truncate,
     "hfsb truncate [--limit N]\n"
     "    Standard input to standard output; of more than N characters\n"
     "    (25,000) only the first quarter and the last three.\n"},
    {"classify", command_classify,
     "hfsb classify [--json] -- STRING\n"
     "    What a job's script is: path, url, inline or command.\n"},
};

static int help(void) {
    size_t i;
    printf("hfsb %s - edit files, patches, JSON and command output the way an "
           "agent needs it\n\n",
           HFSB_VERSION);
    for (i = 0; i < sizeof commands / sizeof *commands; i++)
        printf("%s\n", commands[i].help);
    printf("Exit codes: 0 done, 1 refused or invalid, 2 not understood.\n");
    return fflush(stdout) == 0 ? DONE : REFUSED;
}

int main(int argc, char **argv) {
    args   a = HFSB_INIT;
    size_t i;
    a.count = argc;
    a.list = argv;
    a.next = 2;
    if (argc < 2) {
        fprintf(stderr, "hfsb: which command?\nTry: hfsb --help\n");
        return USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0 ||
        strcmp(argv[1], "help") == 0)
        return help();
    if (strcmp(argv[1], "--version") == 0) {
        printf("hfsb %s\n", HFSB_VERSION);
        return DONE;
    }
    for (i = 0; i < sizeof commands / sizeof *commands; i++) {
        if (strcmp(argv[1], commands[i].name) != 0) continue;
        if (argc > 2 && (strcmp(argv[2], "--help") == 0 ||
                         strcmp(argv[2], "-h") == 0)) {
            printf("%s", commands[i].help);
            return fflush(stdout) == 0 ? DONE : REFUSED;
        }
        return commands[i].run(&a);
    }
    return usage("unknown command %s", argv[1]);
}
