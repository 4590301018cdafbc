/* check_program.c - finds and runs the programs that checks need.

   A check runs after every write, also where no commands are offered, so it
   must not run a file that a write could have put there. The fence is the
   directory that the tools write to: the root, or without a root the working
   directory. A working directory beneath the root lies inside the fence
   anyway.

   A program is taken from the first directory of PATH that lies outside the
   fence, before and after resolving symlinks. The bin/python3 of a virtual
   environment is often a symlink to /usr/bin, but Python loads the packages
   next to the link, so the unresolved path counts as well. The directory is
   resolved before the program runs; the last component is not, since busybox
   and the shims of version managers are known by the name they are called by.
   The program's environment mentions nothing inside the fence either: a shim
   searches PATH again, the loader looks at LD_LIBRARY_PATH. */
#include "check.h"

#define HFSBI_CHECK_OUTPUT ((size_t)64 * 1024)

/* ---- the fence ---- */

HFSBI_FN bool hfsbi_fence_init(hfsbi_fence *fence, const hfsb_place *place) {
    hfsb_str none = HFSB_INIT;
    hfsb_str root = place ? hfsb_place_root(place) : none;
    hfsb_str dir = root.len || !place ? root : hfsb_place_work_dir(place);
    memset(fence, 0, sizeof *fence);
    if (dir.len >= sizeof fence->given) return false;
    if (dir.len) memcpy(fence->given, dir.ptr, dir.len);
    else if (!getcwd(fence->given, sizeof fence->given)) return false;
    if (!realpath(fence->given, fence->real)) return false;
    /* A server that starts in "/" has no project there, and without a root
       its tools write anywhere. */
    if (root.len == 0 && strcmp(fence->real, "/") == 0) return true;
    fence->dirs[0] = fence->given;
    fence->dirs[1] = fence->real;
    return true;
}

static bool hfsbi_fence_holds(const hfsbi_fence *fence, const char *path) {
    const char *const *dir;
    for (dir = fence->dirs; *dir; dir++) {
        size_t n = strlen(*dir);
        if (n > 0 && (*dir)[n - 1] == '/') n--;
        if (strncmp(path, *dir, n) == 0 && (!path[n] || path[n] == '/'))
            return true;
    }
    return false;
}

/* Whether the fence lies among the libraries of a program, in /usr/lib or
   /usr/lib64 for /usr/bin/python3: Python loads some of them before any code
   of ours can look at its path. */
static bool hfsbi_fence_in_libraries(const hfsbi_fence *fence,
                                     const char        *program) {
    const char *const *dir;
    const char        *end = strrchr(program, '/');
    size_t             n = end ? (size_t)(end - program) : 0;
    while (n > 0 && program[n - 1] != '/') n--; /* behind the prefix */
    for (dir = fence->dirs; *dir; dir++)
        if (strncmp(*dir, program, n) == 0 && strncmp(*dir + n, "lib", 3) == 0)
            return true;
    return false;
}

/* ---- finding a program ---- */

/* Resolves a directory of PATH; false when it lies inside the fence, is
   relative, or cannot be named in PATH. */
static bool hfsbi_fence_dir(const hfsbi_fence *fence, hfsb_str dir,
                            char real[PATH_MAX]) {
    char text[PATH_MAX];
    if (dir.len == 0 || dir.ptr[0] != '/' || dir.len >= sizeof text)
        return false;
    memcpy(text, dir.ptr, dir.len);
    text[dir.len] = '\0';
    return realpath(text, real) && !strchr(real, ':') &&
           !hfsbi_fence_holds(fence, text) && !hfsbi_fence_holds(fence, real);
}

static bool hfsbi_fence_program(const hfsbi_fence *fence, const char *dir,
                                const char *name, char program[PATH_MAX]) {
    char        real[PATH_MAX];
    struct stat st;
    int         n = snprintf(program, PATH_MAX, "%s/%s", dir, name);
    return n > 0 && n < PATH_MAX && realpath(program, real) &&
           stat(real, &st) == 0 && S_ISREG(st.st_mode) &&
           access(real, X_OK) == 0 && !hfsbi_fence_holds(fence, real) &&
           !hfsbi_fence_in_libraries(fence, real);
}

/* Finds the program called name, and appends to *path "PATH=" with the
   directories that lie outside the fence. */
static bool hfsbi_fence_search(const hfsbi_fence *fence,
                               const char *const *env, const char *name,
                               hfsb_buf *path, char program[PATH_MAX]) {
    hfsb_str   rest = HFSB_LIT("/bin:/usr/bin");
    hfsbi_sink sink = hfsbi_sink_begin(path);
    bool       found = false, more = true, any = false;
    char       real[PATH_MAX];
    while (env && *env && strncmp(*env, "PATH=", 5) != 0) env++;
    if (env && *env) rest = hfsb_cstr(*env + 5);
    hfsbi_put(&sink, HFSB_LIT("PATH="));
    while (more) {
        size_t   end = hfsb_str_find_byte(rest, ':');
        hfsb_str dir = hfsb_str_slice(rest, 0, end);
        more = end != HFSB_NPOS;
        if (more) rest = hfsb_str_slice(rest, end + 1, rest.len);
        if (!hfsbi_fence_dir(fence, dir, real)) continue;
        if (any) hfsbi_put_byte(&sink, ':');
        hfsbi_put(&sink, hfsb_cstr(real));
        any = true;
        found = found || hfsbi_fence_program(fence, real, name, program);
    }
    return hfsbi_sink_end(&sink) == HFSB_OK && found;
}

/* ---- its environment ---- */

/* Whether a variable mentions a path inside the fence. */
static bool hfsbi_fence_mentioned(const hfsbi_fence *fence, const char *text) {
    const char *const *dir;
    const char        *at;
    for (dir = fence->dirs; *dir; dir++)
        for (at = strstr(text, *dir); at; at = strstr(at + 1, *dir))
            if (strchr("/:", at[strlen(*dir)])) return true; /* or its end */
    return false;
}

/* Fills list with the variables of env, of which path takes the place of
   PATH. */
static void hfsbi_fence_env(const hfsbi_fence *fence, const char *const *env,
                            const char *path, const char **list) {
    *list++ = path;
    for (; env && *env; env++)
        if (strncmp(*env, "PATH=", 5) != 0 &&
            !hfsbi_fence_mentioned(fence, *env))
            *list++ = *env;
    *list = NULL;
}

/* ---- running it ---- */

/* The start of one stream of a program. */
typedef struct hfsbi_check_output {
    hfsb_buf        *buf;
    hfsb_proc_stream stream;
    bool             cut; /* what comes now does not follow what there is */
    const hfsb_call_opts *how;
} hfsbi_check_output;

static void hfsbi_check_take(void *user, hfsb_proc_stream stream,
                             hfsb_str bytes) {
    hfsbi_check_output *output = (hfsbi_check_output *)user;
    size_t              room = HFSBI_CHECK_OUTPUT - output->buf->len;
    if (stream != output->stream || output->cut) return;
    output->cut = bytes.len > room;
    if (hfsb_buf_append(output->buf, hfsb_str_slice(bytes, 0, room)) !=
        HFSB_OK)
        output->cut = true;
}

static bool hfsbi_check_cancelled(void *user) {
    const hfsb_call_opts *how = ((const hfsbi_check_output *)user)->how;
    return how && how->cancelled && how->cancelled(how->user);
}

static bool hfsbi_check_run(const hfsbi_checker  *checker,
                            const hfsb_call_opts *how, const char *const *argv,
                            const char *const *env, hfsb_str content,
                            hfsb_proc_stream stream, hfsb_buf *out) {
    hfsb_proc_opts     opts = HFSB_INIT;
    hfsb_proc_result   result;
    hfsbi_check_output output = HFSB_INIT;
    output.buf = out;
    output.stream = stream;
    output.how = how;
    opts.argv = argv;
    opts.work_dir = "/"; /* not where the files lie that are written */
    opts.env = env;
    opts.input = content;
    opts.timeout_ms = checker->timeout_ms;
    opts.grace_ms = -1;
    opts.no_keeper = true;
    opts.on_output = hfsbi_check_take;
    opts.cancelled = hfsbi_check_cancelled;
    opts.user = &output;
    opts.alloc = out->alloc;
    if (hfsbi_check_cancelled(&output)) return false;
    if (hfsb_proc_run(&opts, NULL, NULL, &result, NULL) != HFSB_OK)
        return false;
    return result.end == HFSB_PROC_EXITED && !result.timed_out && !output.cut;
}

HFSBI_FN bool hfsbi_check_program(const hfsbi_checker  *checker,
                                  const hfsbi_fence    *fence,
                                  const hfsb_call_opts *how, const char **argv,
                                  hfsb_str content, hfsb_proc_stream stream,
                                  hfsb_buf *out) {
    const char *const *env =
        checker->env ? checker->env : (const char *const *)environ;
    const char **list;
    hfsb_buf     path = HFSB_INIT;
    char         program[PATH_MAX];
    size_t       count = 2; /* PATH and the end */
    bool         whole = false;
    path.alloc = out->alloc;
    while (env && env[count - 2]) count++;
    list = (const char **)hfsbi_array(&out->alloc, count, sizeof *list);
    if (list && hfsbi_fence_search(fence, env, argv[0], &path, program)) {
        hfsbi_fence_env(fence, env, path.ptr, list);
        argv[0] = program;
        whole =
            hfsbi_check_run(checker, how, argv, list, content, stream, out);
        argv[0] = NULL;
    }
    hfsbi_array_free(&out->alloc, (void *)list, count, sizeof *list);
    hfsb_buf_free(&path);
    return whole;
}
