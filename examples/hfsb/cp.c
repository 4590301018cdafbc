/* cp.c - hfsb cp: copy files to a sandbox or from it, byte for byte.

   The last word is the destination, the others are the sources. One side is
   SANDBOX:PATH, the other a local path, or "-" for standard input or output.
   The library copies in blocks and resumes after a lost connection; this file
   finds out which side is remote, completes a path that is a directory, and
   draws a progress bar. cp_tree.c copies directories.

   A stream is copied through a temporary file: the copy appears whole or not at
   all, and can be resumed. */
#define _XOPEN_SOURCE 700 /* SIGPIPE, isatty, mkdtemp; before any include */
#define _DARWIN_C_SOURCE  /* mkdtemp, on macOS */
#include "cp.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- SANDBOX:PATH ---- */

static bool is_name_byte(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

/* The length of scheme://host[:port][/path] if a colon follows it, or 0. */
static size_t url_end(const char *word) {
    const char *p = strstr(word, "://");
    size_t      digits;
    if (!p) return 0;
    p += 3;
    if (*p == '[') p += strcspn(p, "]");
    p += strcspn(p, ":/");
    digits = *p == ':' ? strspn(p + 1, "0123456789") : 0;
    if (digits && (p[1 + digits] == ':' || p[1 + digits] == '/'))
        p += 1 + digits;
    p += strcspn(p, ":");
    return *p ? (size_t)(p - word) : 0;
}

/* True for SANDBOX:PATH, and :PATH for $HFSB_SANDBOX; *end is the offset of
   the colon. A local file with a colon in its name is written ./a:b. */
static bool is_remote(const char *word, size_t *end) {
    const char *last = strrchr(word, ':');
    size_t      i = 0, slashes = 0;
    if (is_pipe(word)) { /* the last colon, and not that of "ssh:" */
        *end = (size_t)(last - word);
        return *end != strcspn(word, ":");
    }
    if (strstr(word, "://")) return (*end = url_end(word)) > 0;
    if (word[0] == '.' || word[0] == '/') return false;
    for (; is_name_byte(word[i]) || word[i] == '/'; i++)
        if (word[i] == '/') slashes++;
    *end = i;
    return word[i] == ':' && slashes <= (strncmp(word, "jobs/", 5) ? 1 : 2);
}

/* ---- the progress bar ---- */

enum { BAR = 24, DRAW_MS = 100, MAX_SOURCES = 1024 };

/* "1:05" or "12 s". */
static void put_duration(hfsb_buf *out, long long seconds) {
    if (seconds >= 3600)
        must(hfsb_buf_printf(out, "%lld:%02lld:%02lld", seconds / 3600,
                             seconds / 60 % 60, seconds % 60));
    else if (seconds >= 60)
        must(hfsb_buf_printf(out, "%lld:%02lld", seconds / 60, seconds % 60));
    else must(hfsb_buf_printf(out, "%lld s", seconds));
}

/* Without a total only the number of bytes so far is shown. */
static void draw(bar *b, unsigned long long total) {
    char      hashes[BAR + 1];
    hfsb_buf  line = HFSB_INIT;
    long long ms = hfsb_clock_ms() - b->began;
    double    mb = (double)b->done / 1e6;
    double    part = total ? (double)b->done / (double)total : 0;
    size_t    i;
    for (i = 0; i < BAR; i++) hashes[i] = (double)i < part * BAR ? '#' : '.';
    hashes[BAR] = '\0';
    must(hfsb_buf_printf(&line, "%.*s ", (int)hfsb_utf8_offset(b->name, 30),
                         b->name.ptr));
    if (total)
        must(hfsb_buf_printf(&line, "[%s] %3.0f%%", hashes, part * 100));
    must(hfsb_buf_printf(&line, "  %.1f MB  %.1f MB/s", mb,
                         ms > 0 ? mb * 1000 / (double)ms : 0));
    if (total && b->done && b->done < total && ms > 500) {
        must(hfsb_buf_append(&line, HFSB_LIT("  ")));
        put_duration(&line,
                     (long long)((double)ms / 1000 * (1 - part) / part) + 1);
        must(hfsb_buf_append(&line, HFSB_LIT(" left")));
    }
    rewrite_line(hfsb_buf_str(&line));
    hfsb_buf_free(&line);
    b->drawn = true;
}

static void note_progress(void *user, unsigned long long done,
                          unsigned long long total) {
    bar      *b = (bar *)user;
    long long now = hfsb_clock_ms();
    b->done = done;
    if (!b->wanted || (now - b->last < DRAW_MS && done != total)) return;
    b->last = now;
    draw(b, total);
}

/* ---- one file ---- */

hfsb_status copy_file(cp_call *c, const hfsb_root *root, hfsb_str from,
                      hfsb_str to, hfsb_err *err) {
    hfsb_copy_opts how = HFSB_INIT;
    hfsb_status    st;
    how.progress = note_progress;
    how.user = &c->shown;
    c->shown.began = hfsb_clock_ms();
    c->shown.done = 0;
    c->shown.name = hfsb_path_base(from);
    c->shown.drawn = false;
    if (c->up)
        st = hfsb_sandbox_upload(c->sandbox, root, from, to, &how, err);
    else st = hfsb_sandbox_download(c->sandbox, from, root, to, &how, err);
    if (c->shown.drawn) fprintf(stderr, "\n");
    if (st != HFSB_OK) return st;
    c->files++;
    c->bytes += c->shown.done;
    return st;
}

void skip(cp_call *c, hfsb_str path, const char *why) {
    hfsb_buf line = HFSB_INIT;
    c->skipped++;
    must(hfsb_buf_printf(&line, "not copied: %.*s: %s", (int)path.len,
                         path.ptr, why));
    print_log(NULL, hfsb_buf_str(&line));
    hfsb_buf_free(&line);
}

/* ---- standard input and output ---- */

/* Makes a folder in $TMPDIR that only this user can enter, whatever the mode
   of the copy in it; *path becomes the name of a file there. */
static hfsb_status make_place(hfsb_buf *path, hfsb_err *err) {
    const char *dir = getenv("TMPDIR");
    must(hfsb_buf_printf(path, "%s/hfsb-cp-XXXXXX",
                         dir && *dir ? dir : "/tmp"));
    if (!mkdtemp(path->ptr))
        return fail(err, HFSB_IO, "%s: %s", path->ptr, strerror(errno));
    must(hfsb_buf_append(path, HFSB_LIT("/stream")));
    return HFSB_OK;
}

static void remove_place(hfsb_buf *path) {
    (void)unlink(path->ptr);
    *strrchr(path->ptr, '/') = '\0';
    (void)rmdir(path->ptr);
}

/* Waits until there is something to read; false when a signal came first. */
static bool await_input(int fd, const hfsb_cancel *cancel) {
    struct pollfd p[2];
    memset(p, 0, sizeof p);
    p[0].fd = fd;
    p[1].fd = hfsb_cancel_fd(cancel);
    p[0].events = p[1].events = POLLIN;
    while (!caught_signal() && poll(p, 2, -1) < 0 && errno == EINTR) continue;
    return !caught_signal();
}

/* Copies all bytes of one descriptor to another, until Ctrl-C. */
static hfsb_status pour(cp_call *c, int from, int to, hfsb_err *err) {
    static char bytes[65536];
    ssize_t     n;
    while (await_input(from, c->via.cancel)) {
        char *p = bytes;
        n = read(from, bytes, sizeof bytes);
        if (n < 0 && errno == EINTR) continue;
        if (n == 0) return HFSB_OK;
        if (n < 0) return fail(err, HFSB_IO, "read: %s", strerror(errno));
        while (n > 0 && !caught_signal()) {
            ssize_t w = write(to, p, (size_t)n);
            if (w < 0 && errno == EPIPE) c->unread = true;
            if (w < 0 && errno != EINTR)
                return fail(err, HFSB_IO, "write: %s", strerror(errno));
            if (w > 0) p += w;
            if (w > 0) n -= w;
        }
    }
    return fail(err, HFSB_CANCELLED, "Interrupted");
}

/* Copies standard input through the file at *path. */
static hfsb_status copy_in(cp_call *c, const hfsb_buf *path, hfsb_str there,
                           hfsb_err *err) {
    /* the copy gets its mode */
    int         fd = open(path->ptr, O_WRONLY | O_CREAT | O_EXCL, 0666);
    hfsb_status st;
    if (fd < 0)
        return fail(err, HFSB_IO, "%s: %s", path->ptr, strerror(errno));
    st = pour(c, STDIN_FILENO, fd, err);
    if (close(fd) != 0 && st == HFSB_OK)
        st = fail(err, HFSB_IO, "%s: %s", path->ptr, strerror(errno));
    if (st != HFSB_OK) return st;
    return copy_file(c, NULL, hfsb_buf_str(path), there, err);
}

static hfsb_status copy_out(cp_call *c, const hfsb_buf *path, hfsb_str there,
                            hfsb_err *err) {
    int         fd = -1;
    hfsb_status st = copy_file(c, NULL, there, hfsb_buf_str(path), err);
    if (st == HFSB_OK)
        st = hfsb_file_open(NULL, hfsb_buf_str(path), &fd, NULL, err);
    if (st == HFSB_OK) st = pour(c, fd, STDOUT_FILENO, err);
    if (fd >= 0) close(fd);
    return st;
}

static hfsb_status copy_stream(cp_call *c, const char *there, hfsb_err *err) {
    hfsb_buf    path = HFSB_INIT;
    hfsb_status st = make_place(&path, err);
    (void)signal(SIGPIPE, SIG_IGN); /* or the place would be left behind */
    if (st == HFSB_OK) {
        st = c->up ? copy_in(c, &path, hfsb_cstr(there), err)
                   : copy_out(c, &path, hfsb_cstr(there), err);
        remove_place(&path);
    }
    hfsb_buf_free(&path);
    return st;
}

/* ---- one source ---- */

/* The words of the command line, without SANDBOX. */
typedef struct cp_words {
    const char *from[MAX_SOURCES];
    size_t      count;
    const char *to;
    const char *to_shown; /* as it was written */
    hfsb_buf    sandbox;
    hfsb_buf    last; /* the completed destination of the last source */
} cp_words;

static bool is_dash(const char *word) {
    return strcmp(word, "-") == 0;
}

/* True when TO is a folder to copy into: it ends in "/", exists here, or there
   are several sources. put_file() looks for one in the sandbox. */
static bool is_folder(const cp_call *c, const cp_words *w) {
    hfsb_str       to = hfsb_cstr(w->to);
    hfsb_file_info info;
    if (!to.len || hfsb_str_ends(to, HFSB_LIT("/")) || w->count > 1)
        return true;
    return !c->up && hfsb_file_stat(NULL, to, &info, NULL) == HFSB_OK &&
           info.type == HFSB_FILE_DIRECTORY;
}

/* The destination of one source. "." and ".." have no name of their own. */
static void complete(const cp_call *c, cp_words *w, const char *from) {
    hfsb_str name = hfsb_cstr(from);
    while (name.len > 1 && hfsb_str_ends(name, HFSB_LIT("/"))) name.len--;
    name = hfsb_path_base(name);
    hfsb_buf_truncate(&w->last, 0);
    must(hfsb_buf_append(&w->last, hfsb_cstr(w->to)));
    if (!is_folder(c, w)) return;
    if (hfsb_str_equal(name, HFSB_LIT(".")) ||
        hfsb_str_equal(name, HFSB_LIT(".."))) {
        if (!w->last.len) must(hfsb_buf_append(&w->last, HFSB_LIT(".")));
        return;
    }
    if (w->last.len && !hfsb_str_ends(hfsb_buf_str(&w->last), HFSB_LIT("/")))
        must(hfsb_buf_append_byte(&w->last, '/'));
    must(hfsb_buf_append(&w->last, name));
}

/* True for a refusal whose reason may be a directory in the sandbox. */
static bool may_be_dir(hfsb_status st) {
    return st == HFSB_REFUSED || st == HFSB_IS_DIR;
}

static hfsb_status refuse_dir(const char *path, hfsb_err *err) {
    return fail(err, HFSB_REFUSED, "%s is a directory: cp -r copies it", path);
}

/* Copies a file to w->last, or into that directory. */
static hfsb_status put_file(cp_call *c, cp_words *w, const char *from,
                            hfsb_err *err) {
    hfsb_status st =
        copy_file(c, NULL, hfsb_cstr(from), hfsb_buf_str(&w->last), err);
    if (!may_be_dir(st) || !is_dir_there(c, w->last.ptr)) return st;
    must(hfsb_buf_append_byte(&w->last, '/'));
    must(hfsb_buf_append(&w->last, hfsb_path_base(hfsb_cstr(from))));
    return copy_file(c, NULL, hfsb_cstr(from), hfsb_buf_str(&w->last), err);
}

/* Adds the machine on which a file was not found: both may have that name. A
   message about the other side may end in it, as in "nodir/FROM". */
static hfsb_status name_side(hfsb_status st, const char *from,
                             const char *side, hfsb_err *err) {
    size_t n = strlen(err->msg), len = strlen(from);
    if (st == HFSB_NOT_FOUND && n > len && err->msg[n - len - 1] == ' ' &&
        strcmp(err->msg + n - len, from) == 0)
        snprintf(err->msg + n, sizeof err->msg - n, " %s", side);
    return st;
}

static hfsb_status copy_up(cp_call *c, cp_words *w, const char *from,
                           hfsb_err *err) {
    hfsb_file_info info;
    hfsb_status    st = hfsb_file_stat(NULL, hfsb_cstr(from), &info, err);
    if (st != HFSB_OK) return name_side(st, from, "(on this machine)", err);
    if (info.type != HFSB_FILE_DIRECTORY) return put_file(c, w, from, err);
    if (c->recursive) return upload_tree(c, from, w->last.ptr, err);
    return refuse_dir(from, err);
}

static hfsb_status copy_down(cp_call *c, const char *from, const char *to,
                             hfsb_err *err) {
    bool        is_tree = false;
    hfsb_status st = HFSB_OK;
    if (c->recursive) st = download_tree(c, from, to, &is_tree, err);
    if (st != HFSB_OK || is_tree) return st;
    if (!*from || from[strlen(from) - 1] == '/')
        return fail(err, HFSB_ARG,
                    "Which file? %s is a directory: cp -r copies it",
                    *from ? from : ":");
    st = copy_file(c, NULL, hfsb_cstr(from), hfsb_cstr(to), err);
    if (!may_be_dir(st) || !is_dir_there(c, from))
        return name_side(st, from, "(in the sandbox)", err);
    return refuse_dir(from, err);
}

static hfsb_status copy_all(cp_call *c, cp_words *w, hfsb_err *err) {
    hfsb_status st = HFSB_OK;
    size_t      i;
    for (i = 0; i < w->count && st == HFSB_OK; i++) {
        const char *from = w->from[i];
        complete(c, w, from);
        if (is_dash(from) && c->up) st = copy_stream(c, w->last.ptr, err);
        else if (!c->up && is_dash(w->to))
            st = name_side(copy_stream(c, from, err), from,
                           "(in the sandbox)", err);
        else if (c->up) st = copy_up(c, w, from, err);
        else st = copy_down(c, from, w->last.ptr, err);
    }
    return st;
}

/* ---- the command ---- */

static void describe(const cp_call *c, const cp_words *w, long long began,
                     hfsb_tool_result *result) {
    hfsb_json_writer w2;
    bool one = w->count == 1 && c->files == 1 && !c->recursive;
    if (!one)
        must(hfsb_buf_printf(&result->output, "Copied %zu files, ", c->files));
    else must(hfsb_buf_append(&result->output, HFSB_LIT("Copied ")));
    must(hfsb_buf_printf(&result->output, "%llu bytes to ", c->bytes));
    must(hfsb_buf_append(
        &result->output,
        hfsb_str_make(w->to_shown, strlen(w->to_shown) - strlen(w->to))));
    must(hfsb_buf_append(&result->output,
                         one ? hfsb_buf_str(&w->last) : hfsb_cstr(w->to)));
    begin_object(&w2, &result->fields);
    put_str(&w2, "from", hfsb_cstr(w->from[0]));
    put_str(&w2, "to", hfsb_buf_str(&w->last));
    put_int(&w2, "bytes", (long long)c->bytes);
    put_int(&w2, "files", (long long)c->files);
    put_int(&w2, "skipped", (long long)c->skipped);
    put_int(&w2, "duration_ms", hfsb_clock_ms() - began);
    end_object(&w2);
}

/* Removes SANDBOX: from a remote word. False, after a message, if its sandbox
   is not that of the others. */
static bool take_side(args *a, cp_words *w, const char **word, bool remote,
                      bool first) {
    size_t end = 0;
    bool   is = !is_dash(*word) && is_remote(*word, &end);
    if (is != remote)
        return usage(a, "one side, FROM... or TO, must be SANDBOX:PATH, the "
                        "other local files (./NAME if it has a colon)") ==
               DONE;
    if (!is) return true;
    if (first)
        must(hfsb_buf_append(&w->sandbox, hfsb_str_make(*word, end)));
    else if (!hfsb_str_equal(hfsb_buf_str(&w->sandbox),
                             hfsb_str_make(*word, end)))
        return usage(a, "all files must be of one sandbox") == DONE;
    *word += end + 1;
    return true;
}

/* Finds out which side is remote. */
static bool take_sides(args *a, cp_call *c, cp_words *w) {
    size_t i, end;
    c->up = !is_dash(w->to) && is_remote(w->to, &end);
    w->to_shown = w->to;
    if (!take_side(a, w, &w->to, c->up, true)) return false;
    for (i = 0; i < w->count; i++)
        if (!take_side(a, w, &w->from[i], !c->up, i == 0)) return false;
    if (c->up && w->count == 1 && is_dash(w->from[0]) &&
        (!*w->to || w->to[strlen(w->to) - 1] == '/'))
        return usage(a, "standard input needs the name of a file there") ==
               DONE;
    if (!c->up && is_dash(w->to) && (w->count > 1 || c->recursive || c->json))
        return usage(a, "standard output is for one file, without -r and "
                        "--json") == DONE;
    return true;
}

static int copy_named(cp_call *c, cp_words *w, const char *name) {
    hfsb_sandbox_opts opts = HFSB_INIT;
    hfsb_tool_result  result = HFSB_INIT;
    hfsb_err          err = HFSB_INIT;
    long long         began = hfsb_clock_ms();
    hfsb_status       st;
    c->shown.wanted = !c->json && can_rewrite(STDERR_FILENO);
    st = open_named(&c->via, name, &opts, &c->sandbox, &err);
    if (st == HFSB_OK) st = copy_all(c, w, &err);
    if (st == HFSB_OK && (c->up || !is_dash(w->to)))
        describe(c, w, began, &result);
    if (c->sandbox) (void)hfsb_sandbox_close(c->sandbox, false, NULL);
    close_client(&c->via);
    if (c->unread) return 128 + SIGPIPE;
    return show_outcome(&result, st, &err, c->json);
}

int run_cp(args *a) {
    static cp_words w; /* large */
    cp_call         c;
    const char     *words[MAX_SOURCES + 1], *on = NULL, *name;
    int             code;

    const option options[] = {
        {"--recursive", OPTION_FLAG, &c.recursive,
         "copy directories with all that is in them"},
        {"-r", OPTION_ALIAS, NULL, "--recursive"},
        {"--on SANDBOX", OPTION_TEXT, &on, "the sandbox of :PATH"},
        OPTION_JSON(&c.json, ", from, to, bytes, files, skipped, "
                             "duration_ms"),
        OPTIONS_END};
    memset(&c, 0, sizeof c);
    memset(&w, 0, sizeof w);
    if (!take_words(a, options, words, MAX_SOURCES + 1)) return a->status;
    while (w.count < MAX_SOURCES && words[w.count + 1] && words[w.count]) {
        w.from[w.count] = words[w.count];
        w.count++;
    }
    w.to = words[w.count];
    if (!w.count || !w.to) return usage(a, "FROM or TO is missing");
    if (!take_sides(a, &c, &w)) return a->status;
    name = w.sandbox.len ? w.sandbox.ptr : chosen_sandbox(on);
    if (name) code = copy_named(&c, &w, name);
    else
        code = usage(a, "which sandbox? Use SANDBOX:%s, or set HFSB_SANDBOX",
                     c.up ? w.to : w.from[0]);
    hfsb_buf_free(&w.sandbox);
    hfsb_buf_free(&w.last);
    return code;
}
