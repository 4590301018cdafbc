/* t_tools.h - what the tests of the tools share: a scratch directory that must
   be clean at the end, calls in one line, replies that are looked at from all
   sides, and what runs on this machine. */
#ifndef T_TOOLS_H
#define T_TOOLS_H
#include "t.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define TT_COUNT(list) (sizeof(list) / sizeof *(list))

/* ---- memory that several threads take from, and must all give back ---- */

typedef struct tt_heap {
    pthread_mutex_t lock;
    t_heap          heap;
} tt_heap;

static tt_heap tt_memory = {PTHREAD_MUTEX_INITIALIZER, HFSB_INIT};

static void *tt_heap_fn(void *user, void *ptr, size_t old_size,
                        size_t new_size) {
    tt_heap *h = (tt_heap *)user;
    pthread_mutex_lock(&h->lock);
    ptr = t_heap_fn(&h->heap, ptr, old_size, new_size);
    pthread_mutex_unlock(&h->lock);
    return ptr;
}

HFSBI_UNUSED static hfsb_alloc tt_alloc(void) {
    hfsb_alloc alloc;
    alloc.fn = tt_heap_fn;
    alloc.user = &tt_memory;
    return alloc;
}

/* Allocation number `at`, from 1 on, fails (0: none), or all from it on. */
HFSBI_UNUSED static void tt_faults(size_t at, bool forever) {
    pthread_mutex_lock(&tt_memory.lock);
    tt_memory.heap.calls = 0;
    tt_memory.heap.forever = forever;
    tt_memory.heap.fail_at = at;
    pthread_mutex_unlock(&tt_memory.lock);
}

/* How many there were since. */
HFSBI_UNUSED static size_t tt_allocations(void) {
    size_t n;
    pthread_mutex_lock(&tt_memory.lock);
    n = tt_memory.heap.calls;
    pthread_mutex_unlock(&tt_memory.lock);
    return n;
}

/* The bytes that are taken now. */
HFSBI_UNUSED static size_t tt_memory_held(void) {
    size_t n;
    pthread_mutex_lock(&tt_memory.lock);
    n = tt_memory.heap.live;
    pthread_mutex_unlock(&tt_memory.lock);
    return n;
}

/* ---- the scratch directory ---- */

static char   tt_dir[64]; /* DIR; DIR/work is the current directory, DIR/tmp
                             is $TMPDIR */
static size_t tt_fds;     /* descriptors open at the beginning */

static size_t tt_count_fds(void) {
    DIR   *d = opendir("/proc/self/fd");
    size_t n = 0;
    while (d && readdir(d)) n++;
    if (d) closedir(d);
    return n;
}

/* T_RUN, and the time it took when HFSB_TEST_TIMES is set. */
#define TT_RUN(fn) (T_RUN(fn), tt_lap(#fn))

HFSBI_UNUSED static void tt_lap(const char *name) {
    static long long last;
    long long        now = hfsb_clock_ms();
    if (getenv("HFSB_TEST_TIMES"))
        printf("%6lld ms %s\n", last ? now - last : 0, name);
    last = hfsb_clock_ms();
}

HFSBI_UNUSED static void tt_begin(void) {
    char tmp[80];
    setvbuf(stdout, NULL, _IONBF, 0); /* nothing is printed twice by forks */
    snprintf(tt_dir, sizeof tt_dir, "/tmp/hfsb-tools-XXXXXX");
    if (!mkdtemp(tt_dir)) abort();
    if (chmod(tt_dir, 0755)) abort();
    snprintf(tmp, sizeof tmp, "%s/tmp", tt_dir);
    if (mkdir(tmp, 0700) || setenv("TMPDIR", tmp, 1)) abort();
    snprintf(tmp, sizeof tmp, "%s/work", tt_dir);
    if (mkdir(tmp, 0755) || chdir(tmp)) abort();
    tt_fds = tt_count_fds();
    tt_lap("begin");
}

/* Removes a directory and all in it; with `only` every name in it must begin
   so. True when that was so. */
static bool tt_remove_all(const char *path, const char *only) {
    DIR           *d = opendir(path);
    struct dirent *e;
    bool           ok = true;
    while (d && (e = readdir(d))) {
        char        name[1024];
        struct stat st;
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, "..")) continue;
        snprintf(name, sizeof name, "%s/%s", path, e->d_name);
        if (only && strncmp(e->d_name, only, strlen(only))) {
            printf("left over: %s\n", name);
            ok = false;
        }
        if (!lstat(name, &st) && S_ISDIR(st.st_mode)) {
            chmod(name, 0700);
            tt_remove_all(name, NULL);
        } else {
            unlink(name);
        }
    }
    if (d) closedir(d);
    return !rmdir(path) && ok;
}

/* How many entries of a directory begin so. */
HFSBI_UNUSED static size_t tt_entries(const char *path, const char *begin) {
    DIR           *d = opendir(path);
    struct dirent *e;
    size_t         n = 0;
    while (d && (e = readdir(d)))
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, "..") &&
            !strncmp(e->d_name, begin, strlen(begin)))
            n++;
    if (d) closedir(d);
    return n;
}

/* Nothing is left of what the program did: no child, no descriptor, no memory,
   no file but spills, which are for the caller to read and so outlive the
   tools. */
HFSBI_UNUSED static int tt_end(const char *file) {
    char tmp[80];
    t_name = "at the end";
    errno = 0;
    T_CHECK(waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD);
    T_CHECK(tt_count_fds() == tt_fds);
    T_CHECK(tt_memory.heap.live == 0 && !tt_memory.heap.wrong);
    snprintf(tmp, sizeof tmp, "%s/tmp", tt_dir);
    T_CHECK(tt_remove_all(tmp, "bash_output_"));
    if (chdir("/")) abort();
    tt_remove_all(tt_dir, NULL);
    return t_end(file);
}
#define TT_END() tt_end(__FILE__)

/* ---- files, by names relative to the scratch directory ---- */

HFSBI_UNUSED static void tt_put(const char *path, hfsb_str content) {
    FILE *f = fopen(path, "wb");
    if (!f ||
        fwrite(content.ptr ? content.ptr : "", 1, content.len, f) !=
            content.len ||
        fclose(f))
        abort();
}

/* Text, then a line without end, which takes minutes to read. */
HFSBI_UNUSED static void tt_put_huge(const char *path) {
    hfsb_buf text = HFSB_INIT;
    int      i;
    for (i = 0; i < 4000; i++)
        if (hfsb_buf_append(&text, HFSB_LIT("some words\n")) != HFSB_OK)
            abort();
    tt_put(path, hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    if (truncate(path, (off_t)1 << 38)) abort();
}

HFSBI_UNUSED static bool tt_file_is(const char *path, hfsb_str want) {
    hfsb_buf b = HFSB_INIT;
    bool ok = t_read_file(path, &b) && hfsb_str_equal(hfsb_buf_str(&b), want);
    if (!ok)
        printf("%s holds \"%.*s\"\n", path, (int)b.len, b.ptr ? b.ptr : "");
    hfsb_buf_free(&b);
    return ok;
}
#define TT_FILE(path, lit) T_CHECK(tt_file_is(path, HFSB_LIT(lit)))

/* How many lines a file has; -1: there is none. */
HFSBI_UNUSED static long tt_lines_in(const char *path) {
    hfsb_buf b = HFSB_INIT;
    long     n = -1;
    if (access(path, R_OK) == 0 && t_read_file(path, &b))
        n = (long)hfsb_str_count_byte(hfsb_buf_str(&b), '\n');
    hfsb_buf_free(&b);
    return n;
}

/* Appends part so many times; counts as no check. */
HFSBI_UNUSED static void tt_fill(hfsb_buf *out, const char *part,
                                 size_t times) {
    while (times-- > 0)
        if (hfsb_buf_append(out, hfsb_cstr(part)) != HFSB_OK) abort();
}

/* ---- calls and replies ---- */

typedef struct tt_reply {
    bool             sane; /* what holds for every reply */
    hfsb_status      st;
    hfsb_tool_result res;
    hfsb_json_doc    extra; /* shows the added keys of res */
} tt_reply;

HFSBI_UNUSED static void tt_drop(tt_reply *r) {
    hfsb_tool_result_free(&r->res);
    memset(r, 0, sizeof *r);
}

/* What hfsb_tool_result_write() gives says the same as the result itself. */
static bool tt_written_well(const tt_reply *r) {
    hfsb_buf       text = HFSB_INIT;
    hfsb_json_doc  doc = HFSB_INIT;
    hfsb_json_iter it;
    bool           ok =
        hfsb_tool_result_write(&r->res, &text, NULL) == HFSB_OK &&
        hfsb_json_parse(hfsb_buf_str(&text), NULL, &doc, NULL) == HFSB_OK &&
        hfsb_json_count(doc.root) == 3 + hfsb_json_count(r->extra.root);
    const hfsb_json_value *success = hfsb_json_get(doc.root, "success");
    ok = ok && hfsb_json_type_of(success) == HFSB_JSON_BOOL &&
         hfsb_json_bool(success, !r->res.success) == r->res.success &&
         hfsb_str_equal(
             hfsb_json_str(hfsb_json_get(doc.root, "output"), HFSB_LIT("?")),
             hfsb_buf_str(&r->res.output)) &&
         hfsb_str_equal(
             hfsb_json_str(hfsb_json_get(doc.root, "error"), HFSB_LIT("?")),
             hfsb_buf_str(&r->res.error));
    for (it = hfsb_json_begin(r->extra.root); ok && hfsb_json_next(&it);)
        ok = hfsb_json_get(doc.root, it.key.ptr) != NULL;
    hfsb_json_free(&doc);
    hfsb_buf_free(&text);
    return ok;
}

static bool tt_is_sane(tt_reply *r) {
    const hfsb_tool_result *res = &r->res;
    r->extra.root = res->fields.root;
    if (r->extra.root && hfsb_json_type_of(r->extra.root) != HFSB_JSON_OBJECT)
        return false;
    if (!res->success && !res->error.len) return false;
    if (res->success && res->error.len) return false;
    if (r->st != HFSB_OK && res->success) return false;
    return tt_written_well(r);
}

/* The added keys as JSON text are exactly these; "": there are none. */
HFSBI_UNUSED static bool tt_added_is(const tt_reply *r, const char *want) {
    hfsb_buf text = HFSB_INIT;
    bool     is;
    if (r->res.fields.root)
        (void)hfsb_json_write(r->res.fields.root, NULL, &text, NULL);
    is = hfsb_str_equal(hfsb_buf_str(&text), hfsb_cstr(want));
    hfsb_buf_free(&text);
    return is;
}

HFSBI_UNUSED static bool tt_same_added(const tt_reply *a, const tt_reply *b) {
    hfsb_buf text = HFSB_INIT;
    bool     same;
    (void)hfsb_json_write(b->res.fields.root, NULL, &text, NULL);
    same = tt_added_is(a, text.ptr);
    hfsb_buf_free(&text);
    return same;
}

/* Looks at a result that was taken; may run in any thread. */
static void tt_look(tt_reply *r) {
    r->sane = tt_is_sane(r);
}

/* A call with arguments as JSON text; may run in any thread. */
HFSBI_UNUSED static void tt_do(tt_reply *r, hfsb_tools *tools,
                               const char *tool, hfsb_str json,
                               const hfsb_call_opts *opts) {
    tt_drop(r);
    r->st = hfsb_tools_call_text(tools, hfsb_cstr(tool), json, opts, &r->res);
    tt_look(r);
}

/* Arguments as JSON from "path=s limit=j": s a string, j JSON as it is, v
   a view; NULL as a string leaves the key out. */
HFSBI_UNUSED static void tt_arguments(hfsb_buf *out, const char *keys,
                                      va_list ap) {
    hfsb_json_writer w;
    size_t           n;
    hfsb_json_writer_init(&w, out, NULL);
    hfsb_json_put_object(&w);
    for (; *keys; keys += n + 2, keys += *keys == ' ') {
        hfsb_json_doc doc = HFSB_INIT;
        const char   *text = NULL;
        hfsb_str      view = HFSB_INIT;
        n = strcspn(keys, "=");
        if (keys[n + 1] == 'v') view = va_arg(ap, hfsb_str);
        else text = va_arg(ap, const char *);
        if (!text && keys[n + 1] != 'v') continue;
        hfsb_json_put_key(&w, hfsb_str_make(keys, n));
        if (keys[n + 1] == 'j') {
            if (hfsb_json_parse(hfsb_cstr(text), NULL, &doc, NULL) != HFSB_OK)
                abort();
            hfsb_json_put_value(&w, doc.root);
            hfsb_json_free(&doc);
        } else {
            hfsb_json_put_str(&w, text ? hfsb_cstr(text) : view);
        }
    }
    hfsb_json_put_end(&w);
    if (hfsb_json_writer_finish(&w, NULL) != HFSB_OK) abort();
}

HFSBI_UNUSED static void tt_call(tt_reply *r, hfsb_tools *tools,
                                 const char *tool, const char *keys, ...) {
    hfsb_buf json = HFSB_INIT;
    va_list  ap;
    va_start(ap, keys);
    tt_arguments(&json, keys, ap);
    va_end(ap);
    tt_do(r, tools, tool, hfsb_buf_str(&json), NULL);
    T_CHECK(r->sane);
    hfsb_buf_free(&json);
}

/* The same without waiting. */
HFSBI_UNUSED static hfsb_call *tt_start(hfsb_tools *tools, const char *tool,
                                        const hfsb_call_opts *opts,
                                        const char           *keys, ...) {
    hfsb_buf      json = HFSB_INIT;
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_call    *call = NULL;
    va_list       ap;
    va_start(ap, keys);
    tt_arguments(&json, keys, ap);
    va_end(ap);
    T_CHECK(hfsb_json_parse(hfsb_buf_str(&json), NULL, &doc, NULL) == HFSB_OK);
    hfsb_call_open(tools, hfsb_cstr(tool), doc.root, opts, &call);
    T_CHECK(call != NULL);
    hfsb_json_free(&doc); /* only needed during open */
    hfsb_buf_free(&json);
    return call;
}

/* Polls until the call is done, and takes its result. */
HFSBI_UNUSED static void tt_finish(tt_reply *r, hfsb_tools *tools,
                                   hfsb_call *call) {
    long long end = hfsb_clock_ms() + 60000;
    tt_drop(r);
    while (!hfsb_call_done(call) && hfsb_clock_ms() < end)
        hfsb_tools_poll(tools, 1000);
    T_CHECK(hfsb_call_done(call));
    r->st = hfsb_call_take(call, &r->res);
    tt_look(r);
    T_CHECK(r->sane);
    hfsb_call_close(call);
}

HFSBI_UNUSED static long long tt_int(const tt_reply *r, const char *key) {
    return hfsb_json_int(hfsb_json_get(r->extra.root, key), -12345);
}
HFSBI_UNUSED static bool tt_flag(const tt_reply *r, const char *key) {
    return hfsb_json_bool(hfsb_json_get(r->extra.root, key), false);
}
HFSBI_UNUSED static hfsb_str tt_text(const tt_reply *r, const char *key) {
    return hfsb_json_str(hfsb_json_get(r->extra.root, key), HFSB_LIT(""));
}
HFSBI_UNUSED static bool tt_says(const hfsb_buf *text, const char *part) {
    return hfsb_str_find(hfsb_buf_str(text), hfsb_cstr(part)) != HFSB_NPOS;
}

/* A call that worked, or did not; with its output, or the beginning of its
   error. What came is printed when it is something else. */
HFSBI_UNUSED static void tt_expect(int line, const tt_reply *r, bool success,
                                   const char *output, const char *error) {
    const hfsb_tool_result *res = &r->res;
    bool                    ok = res->success == success;
    if (output)
        ok = ok &&
             hfsb_str_equal(hfsb_buf_str(&res->output), hfsb_cstr(output));
    if (error)
        ok =
            ok && hfsb_str_starts(hfsb_buf_str(&res->error), hfsb_cstr(error));
    t_checks++;
    if (ok) return;
    t_failed++;
    printf("line %d: %s: success %d, output \"%.*s\", error \"%.*s\"\n", line,
           t_name, res->success, (int)res->output.len,
           res->output.ptr ? res->output.ptr : "", (int)res->error.len,
           res->error.ptr ? res->error.ptr : "");
    if (output) printf("  want output \"%s\"\n", output);
    if (error) printf("  want error \"%s...\"\n", error);
}
#define TT_OK(r, output)          tt_expect(__LINE__, r, true, output, NULL)
#define TT_FAIL(r, error)         tt_expect(__LINE__, r, false, NULL, error)
#define TT_ENDS(r, output, error) tt_expect(__LINE__, r, false, output, error)

/* A copy of a text of the last reply, good until the next. */
HFSBI_UNUSED static const char *tt_keep(hfsb_str s) {
    static char text[4][200];
    static int  at;
    at = (at + 1) % 4;
    snprintf(text[at], sizeof text[at], "%.*s", (int)s.len, s.ptr);
    return text[at];
}

/* Asks until the job is over, or its output says so. */
HFSBI_UNUSED static void tt_await(tt_reply *r, hfsb_tools *tools,
                                  const char *id, const char *offset,
                                  const char *until) {
    long long end = hfsb_clock_ms() + 60000;
    do
        tt_call(r, tools, "bash_output", "id=s offset=j wait_ms=j", id, offset,
                "200");
    while (r->res.success && hfsb_clock_ms() < end &&
           (until ? !tt_says(&r->res.output, until) : tt_flag(r, "running")));
}

/* A tools object on the current directory, with counted memory. */
HFSBI_UNUSED static hfsb_tools *tt_open(hfsb_tools_opts *opts) {
    hfsb_tools_opts none = HFSB_INIT;
    hfsb_tools     *tools = NULL;
    hfsb_err        err;
    if (!opts) opts = &none;
    opts->alloc = tt_alloc();
    T_CHECK(hfsb_tools_open(opts, &tools, &err) == HFSB_OK);
    if (!tools) {
        printf("%s\n", err.msg);
        abort();
    }
    return tools;
}

/* ---- processes ---- */

/* True when it runs: a zombie that someone else has to bury does not. */
HFSBI_UNUSED static bool tt_alive(long pid) {
    char     path[64];
    hfsb_buf stat = HFSB_INIT;
    bool     alive = false;
    size_t   at;
    snprintf(path, sizeof path, "/proc/%ld/stat", pid);
    if (pid > 0 && t_read_file(path, &stat) && stat.len) {
        const char *end = strrchr(stat.ptr, ')');
        at = end ? (size_t)(end - stat.ptr) + 2 : stat.len;
        alive = at < stat.len && stat.ptr[at] != 'Z' && stat.ptr[at] != 'X';
    }
    hfsb_buf_free(&stat);
    return alive;
}

HFSBI_UNUSED static void tt_sleep_ms(long long ms) {
    struct timespec t;
    t.tv_sec = (time_t)(ms / 1000);
    t.tv_nsec = (long)(ms % 1000) * 1000000;
    while (nanosleep(&t, &t) && errno == EINTR) {
    }
}

/* True when the process is gone, or goes within 20 s. */
HFSBI_UNUSED static bool tt_gone(long pid) {
    int i;
    for (i = 0; i < 2000 && tt_alive(pid); i++) tt_sleep_ms(10);
    return !tt_alive(pid);
}

/* The number in a file, or in the n-th line of a text; -1: none. */
HFSBI_UNUSED static long tt_number(hfsb_str text, size_t n) {
    hfsb_str line = HFSB_INIT;
    long     value = -1;
    do {
        if (!hfsb_text_line(&text, &line, NULL)) return -1;
    } while (n-- > 0);
    if (line.len && line.ptr[0] >= '0' && line.ptr[0] <= '9')
        value = strtol(line.ptr, NULL, 10);
    return value;
}

/* The number that a command writes into a file, once it does. */
HFSBI_UNUSED static long tt_pid_in(const char *path) {
    int i;
    for (i = 0; i < 2000; i++) {
        hfsb_buf b = HFSB_INIT;
        long     pid = -1;
        if (access(path, R_OK) == 0 && t_read_file(path, &b) && b.len &&
            b.ptr[b.len - 1] == '\n')
            pid = tt_number(hfsb_buf_str(&b), 0);
        hfsb_buf_free(&b);
        if (pid > 0) return pid;
        tt_sleep_ms(10);
    }
    return -1;
}

/* How many processes have such an argument. */
HFSBI_UNUSED static size_t tt_running(const char *argument) {
    DIR           *d = opendir("/proc");
    struct dirent *e;
    size_t         n = 0, len = strlen(argument);
    while (d && (e = readdir(d))) {
        char     path[300];
        hfsb_buf line = HFSB_INIT;
        size_t   at;
        snprintf(path, sizeof path, "/proc/%s/cmdline", e->d_name);
        if (e->d_name[0] >= '1' && e->d_name[0] <= '9' &&
            t_read_file(path, &line))
            for (at = 0; at < line.len; at += strlen(line.ptr + at) + 1)
                if (strlen(line.ptr + at) == len &&
                    !strcmp(line.ptr + at, argument))
                    n++;
        hfsb_buf_free(&line);
    }
    if (d) closedir(d);
    return n;
}

/* A number of seconds that nobody else sleeps for, to find the sleep by. */
HFSBI_UNUSED static const char *tt_nap(void) {
    static char text[32];
    snprintf(text, sizeof text, "600.%ld", (long)getpid());
    return text;
}

/* text with each @ replaced by tt_nap(). */
HFSBI_UNUSED static void tt_with_nap(const char *text, hfsb_buf *out) {
    hfsb_buf_truncate(out, 0);
    for (; *text; text++)
        if ((*text == '@' ? hfsb_buf_append(out, hfsb_cstr(tt_nap()))
                          : hfsb_buf_append_byte(out, *text)) != HFSB_OK)
            abort();
}

/* Ends a process of ours that was left running on purpose. */
HFSBI_UNUSED static void tt_end_process(long pid) {
    if (pid > 1) kill((pid_t)pid, SIGKILL);
    T_CHECK(tt_gone(pid));
}

/* Bytes of memory that this process has at most had in RAM. */
HFSBI_UNUSED static long long tt_peak(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (long long)u.ru_maxrss * 1024;
}

/* Sanitisers keep memory for themselves, and slow everything down. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define TT_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define TT_SANITIZED 1
#endif
#endif
#ifndef TT_SANITIZED
#define TT_SANITIZED 0
#endif

/* Whether processes that left the group are found: that needs /proc. */
#if defined(__linux__) && !defined(HFSBI_PORTABLE)
#define TT_PROC 1
#else
#define TT_PROC 0
#endif
#endif
