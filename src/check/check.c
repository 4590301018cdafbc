/* check.c - warnings about a file that was just written.

   A caller's check for the suffix replaces the built-in checks. Built in are
   JSON (parsed here), Python (python.c) and shell scripts (the shell of the
   shebang runs with -n):

       content --> remembered? --yes----------------------> warnings
                       | no
                       +--> fence --> program --> lines --> warnings
                                                    +-----> remember

   A checker remembers the warnings of the last contents by their digest, since
   programs are slow. Incomplete answers, of a program that was killed or when
   out of memory, are shown but not remembered.

   What always holds: a check never fails a write, and no check runs a program
   or module from the directory that the tools write to, the fence. The lock
   guards only the memory and is never held while a program runs. */
#include "check_private.h"

#define HFSBI_CHECK_TIMEOUT_MS 10000                      /* of one program */
#define HFSBI_CHECK_JSON       ((size_t)16 * 1024 * 1024) /* longest content */
#define HFSBI_CHECK_OUTPUT     ((size_t)64 * 1024)        /* of one program */
#define HFSBI_CHECK_LINE       400 /* characters of a warning */

HFSBI_FN bool hfsbi_check_warn(hfsb_buf *lines, hfsb_str text) {
    size_t   mark = lines->len;
    hfsb_err line;
    hfsbi_ok(&line);
    hfsbi_err_quote(&line, text, HFSBI_CHECK_LINE);
    hfsb_buf_append(lines, hfsb_cstr(line.msg));
    hfsb_buf_append_byte(lines, '\n');
    return hfsb_buf_finish(lines, mark) == HFSB_OK;
}

/* ---- the fence ----

   A check runs after every write, even where commands are not offered, so it
   must not run a file that a write could have created. The fence is the
   directories that the tools write to: the roots, or without a root the
   working directory. A working directory beneath the root is inside the fence
   anyway.

   A program is taken from the first directory of PATH that is outside the
   fence, before and after resolving symlinks. The bin/python3 of a virtual
   environment is often a symlink to /usr/bin, but Python loads the packages
   next to the link, so the unresolved path counts as well. The directory is
   resolved before the program runs; the last component is not, since busybox
   and the shims of version managers depend on the name they are called by.
   The program's environment mentions nothing inside the fence either: a shim
   searches PATH again, and the loader reads LD_LIBRARY_PATH. */

/* Sets the fence from a root (NULL: the current directory). False if the
   directory cannot be resolved. */
static bool hfsbi_fence_init(hfsbi_fence *fence, const hfsb_root *place) {
    hfsb_str work = hfsb_root_work_dir(place);
    size_t   n = 0;
    memset(fence, 0, sizeof *fence);
    for (; hfsb_root_path(place).len; place = hfsb_root_next(place)) {
        fence->dirs[n++] = place->root.ptr;
        fence->dirs[n++] = place->real_root.ptr;
    }
    if (n) return true;
    if (work.len >= sizeof fence->given) return false;
    if (work.len) memcpy(fence->given, work.ptr, work.len);
    else if (!getcwd(fence->given, sizeof fence->given)) return false;
    if (!realpath(fence->given, fence->real)) return false;
    /* "/" as working directory is no project: a fence there would forbid all
       programs. */
    if (strcmp(fence->real, "/") == 0) return true;
    fence->dirs[0] = fence->given;
    fence->dirs[1] = fence->real;
    return true;
}

/* True if path is the fence or beneath it. */
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

/* True if the fence is in the library directories of a program, /usr/lib or
   /usr/lib64 for /usr/bin/python3. Python loads modules from there before the
   helper can restrict sys.path. */
static bool hfsbi_fence_in_libraries(const hfsbi_fence *fence,
                                     const char        *program) {
    const char *const *dir;
    const char        *end = strrchr(program, '/');
    size_t             n = end ? (size_t)(end - program) : 0;
    while (n > 0 && program[n - 1] != '/') n--; /* keep "/usr/" */
    for (dir = fence->dirs; *dir; dir++)
        if (strncmp(*dir, program, n) == 0 && strncmp(*dir + n, "lib", 3) == 0)
            return true;
    return false;
}

/* ---- finding a program ---- */

/* Resolves a directory of PATH. False if it is inside the fence, is relative,
   or contains a colon once resolved. */
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

/* Writes the path of the program `name` in dir; false if it cannot be run, or
   must not. */
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

/* Searches PATH for the program `name`, and appends "PATH=" to *path with the
   directories outside the fence. False if not found, or when out of memory. */
static bool hfsbi_fence_search(const hfsbi_fence *fence,
                               const char *const *env, const char *name,
                               hfsb_buf *path, char program[PATH_MAX]) {
    hfsb_str rest = HFSB_LIT("/bin:/usr/bin");
    size_t   mark = path->len;
    bool     found = false, more = true, any = false;
    char     real[PATH_MAX];
    while (env && *env && strncmp(*env, "PATH=", 5) != 0) env++;
    if (env && *env) rest = hfsb_cstr(*env + 5);
    hfsb_buf_append(path, HFSB_LIT("PATH="));
    while (more) {
        size_t   end = hfsb_str_find_byte(rest, ':');
        hfsb_str dir = hfsb_str_slice(rest, 0, end);
        more = end != HFSB_NPOS;
        if (more) rest = hfsb_str_slice(rest, end + 1, rest.len);
        if (!hfsbi_fence_dir(fence, dir, real)) continue;
        if (any) hfsb_buf_append_byte(path, ':');
        hfsb_buf_append(path, hfsb_cstr(real));
        any = true;
        found = found || hfsbi_fence_program(fence, real, name, program);
    }
    return hfsb_buf_finish(path, mark) == HFSB_OK && found;
}

/* ---- environment of a program ---- */

/* True if a variable contains a path inside the fence. */
static bool hfsbi_fence_in_text(const hfsbi_fence *fence, const char *text) {
    const char *const *dir;
    const char        *at;
    for (dir = fence->dirs; *dir; dir++)
        for (at = strstr(text, *dir); at; at = strstr(at + 1, *dir))
            if (strchr("/:", at[strlen(*dir)])) return true; /* or NUL */
    return false;
}

/* Fills list with path, which replaces PATH, and the variables of env that
   mention nothing inside the fence. Ends it with NULL. */
static void hfsbi_fence_env(const hfsbi_fence *fence, const char *const *env,
                            const char *path, const char **list) {
    *list++ = path;
    for (; env && *env; env++)
        if (strncmp(*env, "PATH=", 5) != 0 &&
            !hfsbi_fence_in_text(fence, *env))
            *list++ = *env;
    *list = NULL;
}

/* ---- a program to run ---- */

HFSBI_FN bool hfsbi_outer_find(const hfsbi_checker *checker, const char *name,
                               hfsbi_outer_program *program) {
    const char *const *env =
        checker->env ? checker->env : (const char *const *)hfsbi_environ();
    memset(program, 0, sizeof *program);
    program->alloc = program->search.alloc = checker->alloc;
    program->count = 2; /* PATH and the end */
    while (env && env[program->count - 2]) program->count++;
    program->env = (const char **)hfsbi_array(&checker->alloc, program->count,
                                              sizeof *program->env);
    if (program->env && hfsbi_fence_init(&program->fence, checker->place) &&
        hfsbi_fence_search(&program->fence, env, name, &program->search,
                           program->path)) {
        hfsbi_fence_env(&program->fence, env, program->search.ptr,
                        program->env);
        return true;
    }
    hfsbi_outer_free(program);
    return false;
}

HFSBI_FN const hfsb_confine *hfsbi_checker_confine(hfsbi_checker *checker) {
    hfsb_confine_opts opts = HFSB_INIT;
    hfsbi_confine_how how = HFSB_INIT;
    opts.level = HFSB_CONFINE_WRITE;
    opts.if_possible = true;
    opts.net = "off";
    opts.alloc = checker->alloc;
    how.bare = true;
    (void)pthread_mutex_lock(&checker->lock);
    if (!checker->confine)
        (void)hfsbi_confine_open(&opts, &how, &checker->confine, NULL);
    (void)pthread_mutex_unlock(&checker->lock);
    return checker->confine;
}

HFSBI_FN void hfsbi_outer_free(hfsbi_outer_program *program) {
    hfsbi_array_free(&program->alloc, (void *)program->env, program->count,
                     sizeof *program->env);
    hfsb_buf_free(&program->search);
}

/* ---- shell scripts ---- */

static bool hfsbi_check_has(hfsb_str content, const char *word) {
    return hfsb_str_find(content, hfsb_cstr(word)) != HFSB_NPOS;
}

/* Removes the next word from *line and returns it; empty at the end. */
static hfsb_str hfsbi_shebang_word(hfsb_str *line) {
    hfsb_str rest = hfsbi_trim(*line), word;
    size_t   n = 0;
    while (n < rest.len && !hfsbi_is_blank(rest.ptr[n])) n++;
    word = hfsb_str_slice(rest, 0, n);
    *line = hfsb_str_slice(rest, n, rest.len);
    return word;
}

HFSBI_FN const char *hfsbi_check_shell_of(hfsb_str content) {
    static const char *const shells[] = {"sh", "bash", "dash"};
    hfsb_str                 line, word;
    size_t                   i;
    if (!hfsb_str_starts(content, HFSB_LIT("#!"))) return NULL;
    if (!hfsb_text_line(&content, &line, NULL)) return NULL;
    line = hfsb_str_slice(line, 2, line.len);
    word = hfsbi_shebang_word(&line);
    if (hfsb_str_equal(hfsb_path_base(word), HFSB_LIT("env"))) do
            word = hfsbi_shebang_word(&line); /* past options and variables */
        while (hfsb_str_starts(word, HFSB_LIT("-")) ||
               hfsb_str_find_byte(word, '=') != HFSB_NPOS);
    word = hfsb_path_base(word);
    for (i = 0; i < sizeof shells / sizeof *shells; i++)
        if (hfsb_str_equal(word, hfsb_cstr(shells[i]))) return shells[i];
    return NULL;
}

/* The script on standard input, as a file argument: without one, bash omits
   line numbers. */
#define HFSBI_SHELL_FILE "/dev/stdin"

/* s without a prefix, ignoring case; prefix is in lower case. */
static hfsb_str hfsbi_shell_strip(hfsb_str s, const char *prefix) {
    size_t i;
    for (i = 0; prefix[i]; i++)
        if (i >= s.len || hfsbi_lower(s.ptr[i]) != prefix[i]) return s;
    return hfsb_str_slice(s, i, s.len);
}

/* Parses a message of a shell, in any language; false if line is not one:
       /dev/stdin: line 3: ...   bash, busybox
       /dev/stdin: 3: ...        dash
       /dev/stdin[3]: ...        ksh                                      */
static bool hfsbi_shell_message(hfsb_str line, hfsb_str *number,
                                hfsb_str *message) {
    size_t from = sizeof HFSBI_SHELL_FILE - 1, to, colon;
    size_t limit = from + 24; /* room for the word "line" */
    if (!hfsb_str_starts(line, HFSB_LIT(HFSBI_SHELL_FILE))) return false;
    while (from < line.len && from < limit && !hfsbi_is_digit(line.ptr[from]))
        from++;
    to = from;
    while (to < line.len && hfsbi_is_digit(line.ptr[to])) to++;
    *number = hfsb_str_slice(line, from, to);
    *message = hfsb_str_slice(line, to, line.len);
    colon = hfsb_str_find_byte(*message, ':');
    if (number->len == 0 || colon > 1) return false;
    *message = hfsbi_trim(hfsb_str_slice(*message, colon + 1, message->len));
    return message->len > 0;
}

/* Appends the warning for one message of the shell. bash prints "warning" for
   a here-document without end. False when out of memory. */
static bool hfsbi_shell_warn(hfsb_str number, hfsb_str message,
                             hfsb_buf *lines) {
    hfsb_buf text = HFSB_INIT;
    hfsb_str plain = hfsbi_shell_strip(message, "warning: ");
    bool     kept;
    text.alloc = lines->alloc;
    kept = hfsb_buf_printf(&text, "Shell syntax %s at line %.*s: ",
                           plain.len < message.len ? "warning" : "error",
                           (int)number.len, number.ptr) == HFSB_OK;
    plain = hfsbi_shell_strip(plain, "syntax error");
    plain = hfsbi_trim(hfsbi_shell_strip(plain, ":"));
    kept = kept && hfsb_buf_append(&text, plain) == HFSB_OK &&
           hfsbi_check_warn(lines, hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    return kept;
}

/* Runs the shell `name` with -n on content, and appends what it prints to
   *out. True if it exited by itself and *out is complete; otherwise *out
   contains the start. */
static bool hfsbi_shell_run(hfsbi_checker *checker, const hfsb_cancel *cancel,
                            const char *name, hfsb_str content,
                            hfsb_buf *out) {
    hfsbi_outer_program shell;
    hfsb_proc_opts      opts = HFSB_INIT;
    hfsb_proc_result    result = HFSB_INIT;
    const char         *argv[6];
    size_t              n = 0;
    bool                ended;
    if (!hfsbi_outer_find(checker, name, &shell)) return false;
    argv[n++] = shell.path;
    if (strcmp(name, "bash") == 0 && hfsbi_check_has(content, "extglob")) {
        argv[n++] = "-O"; /* -n does not run the script's own shopt */
        argv[n++] = "extglob";
    }
    argv[n++] = "-n";
    argv[n++] = HFSBI_SHELL_FILE;
    argv[n] = NULL;
    opts.argv = argv;
    opts.work_dir = "/"; /* not inside the fence */
    opts.env = shell.env;
    opts.confine = hfsbi_checker_confine(checker);
    opts.input = content;
    opts.timeout_ms = checker->timeout_ms;
    opts.grace_ms = -1;
    opts.no_keeper = true;
    opts.cancel = cancel;
    opts.alloc = out->alloc;
    ended = hfsb_proc_run(&opts, NULL, out, &result, NULL) == HFSB_OK &&
            result.end == HFSB_PROC_EXITED && !result.timed_out &&
            !result.incomplete && result.stderr_bytes == out->len;
    hfsbi_outer_free(&shell);
    return ended;
}

/* Appends the first syntax error that the shell `name` reports for content.
   True if the answer is complete and can be cached. */
static bool hfsbi_check_shell(hfsbi_checker     *checker,
                              const hfsb_cancel *cancel, const char *name,
                              hfsb_str content, hfsb_buf *lines) {
    hfsb_buf out = HFSB_INIT;
    hfsb_str text, line, number, message;
    bool     ended, found = false;
    out.alloc = lines->alloc;
    out.max = HFSBI_CHECK_OUTPUT;
    ended = hfsbi_shell_run(checker, cancel, name, content, &out);
    text = hfsb_buf_str(&out);
    while (!found && hfsb_text_line(&text, &line, NULL))
        found = hfsbi_shell_message(line, &number, &message);
    if (found) ended = hfsbi_shell_warn(number, message, lines) && ended;
    hfsb_buf_free(&out);
    return ended;
}

/* ---- cached warnings ---- */

HFSBI_FN void hfsbi_check_digest(const char *program, hfsb_str content,
                                 unsigned char digest[HFSB_SHA256_SIZE]) {
    hfsb_sha256 sha;
    hfsb_sha256_init(&sha);
    hfsb_sha256_write(&sha, hfsb_str_make(program, strlen(program) + 1));
    hfsb_sha256_write(&sha, content);
    hfsb_sha256_finish(&sha, digest);
}

/* The entry for digest, or NULL. Call with the lock held. */
static hfsbi_check_seen *
hfsbi_check_find(hfsbi_checker      *checker,
                 const unsigned char digest[HFSB_SHA256_SIZE]) {
    size_t i;
    for (i = 0; i < HFSBI_CHECK_MEMORY; i++) {
        hfsbi_check_seen *seen = &checker->seen[i];
        if (seen->used &&
            memcmp(seen->digest, digest, sizeof seen->digest) == 0)
            return seen;
    }
    return NULL;
}

HFSBI_FN bool hfsbi_check_recall(hfsbi_checker      *checker,
                                 const unsigned char digest[HFSB_SHA256_SIZE],
                                 hfsb_buf           *lines) {
    hfsbi_check_seen *seen;
    hfsb_str          text;
    (void)pthread_mutex_lock(&checker->lock);
    seen = hfsbi_check_find(checker, digest);
    if (seen) {
        seen->used = ++checker->clock;
        text = hfsb_str_make(seen->text, seen->len);
        (void)!hfsb_buf_append(lines, text); /* no memory: no warning */
    }
    (void)pthread_mutex_unlock(&checker->lock);
    return seen != NULL;
}

/* Replaces the least recently used entry. When out of memory, nothing changes.
   Call with the lock held. */
static void hfsbi_check_store(hfsbi_checker      *checker,
                              const unsigned char digest[HFSB_SHA256_SIZE],
                              hfsb_str            text) {
    hfsbi_check_seen *oldest = checker->seen;
    char             *copy = hfsbi_cstr_copy(&checker->alloc, text);
    size_t            i;
    if (!copy) return;
    for (i = 1; i < HFSBI_CHECK_MEMORY; i++)
        if (checker->seen[i].used < oldest->used) oldest = &checker->seen[i];
    if (oldest->used)
        hfsbi_array_free(&checker->alloc, oldest->text, oldest->len + 1, 1);
    memcpy(oldest->digest, digest, sizeof oldest->digest);
    oldest->text = copy;
    oldest->len = text.len;
    oldest->used = ++checker->clock;
}

HFSBI_FN void
hfsbi_check_remember(hfsbi_checker      *checker,
                     const unsigned char digest[HFSB_SHA256_SIZE],
                     hfsb_str            text) {
    (void)pthread_mutex_lock(&checker->lock);
    if (!hfsbi_check_find(checker, digest)) /* no other thread was faster */
        hfsbi_check_store(checker, digest, text);
    (void)pthread_mutex_unlock(&checker->lock);
}

/* Appends the warnings of a shell about content, cached or new. */
static void hfsbi_check_script(hfsbi_checker     *checker,
                               const hfsb_cancel *cancel, const char *shell,
                               hfsb_str content, hfsb_buf *lines) {
    unsigned char digest[HFSB_SHA256_SIZE];
    if (content.len > HFSBI_CHECK_PROGRAM) return;
    hfsbi_check_digest(shell, content, digest);
    if (hfsbi_check_recall(checker, digest, lines)) return;
    if (hfsbi_check_shell(checker, cancel, shell, content, lines))
        hfsbi_check_remember(checker, digest, hfsb_buf_str(lines));
}

/* ---- built-in checks ---- */

/* Warns about a training script that does not push its model to the Hub: the
   model is lost with the machine. */
static void hfsbi_check_training(hfsb_str content, hfsb_buf *lines) {
    if (!hfsbi_check_has(content, "TrainingArguments") &&
        !hfsbi_check_has(content, "SFTConfig") &&
        !hfsbi_check_has(content, "DPOConfig") &&
        !hfsbi_check_has(content, "GRPOConfig"))
        return;
    if (!hfsbi_check_has(content, "push_to_hub"))
        (void)hfsbi_check_warn(lines, HFSB_LIT("Training script warning: no "
                                               "'push_to_hub' found"));
    if (!hfsbi_check_has(content, "hub_model_id"))
        (void)hfsbi_check_warn(lines, HFSB_LIT("Training script warning: no "
                                               "'hub_model_id' found"));
}

/* True for files whose programs allow comments in JSON. */
static bool hfsbi_check_allows_comments(hfsb_str path) {
    static const char *const starts[] = {"tsconfig.", "jsconfig.",
                                         "devcontainer.", ".eslintrc."};
    hfsb_str                 base = hfsb_path_base(path), dir;
    size_t                   i;
    for (i = 0; i < sizeof starts / sizeof *starts; i++)
        if (hfsb_str_starts(base, hfsb_cstr(starts[i]))) return true;
    if (base.len == path.len) return false;
    dir = hfsb_path_base(hfsb_str_slice(path, 0, path.len - base.len - 1));
    return hfsb_str_equal(dir, HFSB_LIT(".vscode"));
}

static void hfsbi_check_json(hfsb_str path, hfsb_str content,
                             hfsb_buf *lines) {
    hfsb_json_doc doc = HFSB_INIT;
    hfsb_buf      text = HFSB_INIT;
    hfsb_err      err;
    if (content.len > HFSBI_CHECK_JSON || hfsbi_check_allows_comments(path))
        return;
    doc.alloc = text.alloc = lines->alloc;
    /* The message starts with line and column. Other failures, too deep
       nesting or running out of memory, are not errors in the file. */
    if (hfsb_json_parse(content, NULL, &doc, &err) == HFSB_SYNTAX &&
        hfsb_buf_printf(&text, "JSON error at %s", err.msg) == HFSB_OK)
        (void)hfsbi_check_warn(lines, hfsb_buf_str(&text));
    hfsb_buf_free(&text);
    hfsb_json_free(&doc);
}

/* ---- the checker ---- */

static bool hfsbi_check_has_suffix(hfsb_str path, hfsb_str suffix) {
    hfsb_str base = hfsb_path_base(path);
    return base.len > suffix.len && hfsb_str_ends(base, suffix);
}

/* Moves lines to *warnings until one does not fit, and empties *lines. */
static void hfsbi_check_move(hfsb_buf *lines, hfsb_buf *warnings) {
    hfsb_str text = hfsb_buf_str(lines), line;
    while (hfsb_text_line(&text, &line, NULL)) {
        size_t mark = warnings->len;
        if (line.len == 0) continue;
        hfsb_buf_append(warnings, line);
        hfsb_buf_append_byte(warnings, '\n');
        if (hfsb_buf_finish(warnings, mark) != HFSB_OK) break;
    }
    hfsb_buf_truncate(lines, 0);
}

/* Copies the caller's checks with their suffixes; false when out of memory. */
static bool hfsbi_checker_copy(hfsbi_checker          *checker,
                               const hfsb_tools_check *checks, size_t count) {
    const char *suffix;
    size_t      i;
    checker->checks = (hfsb_tools_check *)hfsbi_array(&checker->alloc, count,
                                                      sizeof *checker->checks);
    if (!checker->checks) return false;
    checker->count = count;
    for (i = 0; i < count; i++) {
        suffix = checks[i].suffix ? checks[i].suffix : "";
        if (hfsb_buf_append(&checker->suffixes,
                            hfsb_str_make(suffix, strlen(suffix) + 1)) !=
            HFSB_OK)
            return false;
    }
    suffix = checker->suffixes.ptr; /* no longer grows */
    for (i = 0; i < count; i++) {
        checker->checks[i] = checks[i];
        checker->checks[i].suffix = suffix;
        suffix += strlen(suffix) + 1;
    }
    return true;
}

HFSBI_FN hfsbi_checker *hfsbi_checker_open(const hfsb_tools_check *checks,
                                           size_t                  count,
                                           const hfsb_alloc       *alloc) {
    hfsb_alloc     none = HFSB_INIT;
    hfsbi_checker *checker;
    if (!alloc) alloc = &none;
    checker = (hfsbi_checker *)hfsbi_array(alloc, 1, sizeof *checker);
    if (!checker) return NULL;
    memset(checker, 0, sizeof *checker);
    checker->alloc = checker->suffixes.alloc = *alloc;
    checker->python.piece.alloc = *alloc;
    checker->timeout_ms = HFSBI_CHECK_TIMEOUT_MS;
    if (pthread_mutex_init(&checker->lock, NULL) != 0) {
        hfsbi_array_free(alloc, checker, 1, sizeof *checker);
        return NULL;
    }
    if (count == 0 || hfsbi_checker_copy(checker, checks, count))
        return checker;
    hfsbi_checker_close(checker);
    return NULL;
}

HFSBI_FN void hfsbi_checker_close(hfsbi_checker *checker) {
    hfsb_alloc alloc;
    size_t     i;
    if (!checker) return;
    alloc = checker->alloc;
    hfsbi_python_close(checker);
    for (i = 0; i < HFSBI_CHECK_MEMORY; i++)
        if (checker->seen[i].used)
            hfsbi_array_free(&alloc, checker->seen[i].text,
                             checker->seen[i].len + 1, 1);
    hfsbi_array_free(&alloc, checker->checks, checker->count,
                     sizeof *checker->checks);
    hfsb_buf_free(&checker->suffixes);
    hfsb_confine_close(checker->confine);
    (void)pthread_mutex_destroy(&checker->lock);
    hfsbi_array_free(&alloc, checker, 1, sizeof *checker);
}

/* Runs the built-in checks; *lines is empty before and after. */
static void hfsbi_check_built_in(hfsbi_checker     *checker,
                                 const hfsb_cancel *cancel, hfsb_str path,
                                 hfsb_str content, hfsb_buf *lines,
                                 hfsb_buf *warnings) {
    const char *shell = hfsbi_check_shell_of(content);
    if (hfsbi_check_has_suffix(path, HFSB_LIT(".py"))) {
        hfsbi_python_check(checker, cancel, path, content, lines);
        if (!hfsb_str_starts(hfsb_buf_str(lines),
                             HFSB_LIT("Python syntax error")))
            hfsbi_check_training(content, lines);
    }
    if (hfsbi_check_has_suffix(path, HFSB_LIT(".json")))
        hfsbi_check_json(path, content, lines);
    hfsbi_check_move(lines, warnings);
    if (shell) hfsbi_check_script(checker, cancel, shell, content, lines);
    hfsbi_check_move(lines, warnings);
}

/* Returns the caller's check for the file, or NULL: the built-in ones run. */
static const hfsb_tools_check *hfsbi_checker_find(const hfsbi_checker *checker,
                                                  hfsb_str             path) {
    size_t i;
    for (i = 0; i < checker->count; i++)
        if (hfsbi_check_has_suffix(path, hfsb_cstr(checker->checks[i].suffix)))
            return &checker->checks[i];
    return NULL;
}

HFSBI_FN bool hfsbi_checker_expects(const hfsbi_checker *checker,
                                    hfsb_str             path) {
    return checker->patience_ms &&
           hfsbi_check_has_suffix(path, HFSB_LIT(".py")) &&
           !hfsbi_checker_find(checker, path);
}

HFSBI_FN bool hfsbi_checker_runs_code(const hfsbi_checker *checker,
                                      hfsb_str path, hfsb_str content) {
    const hfsb_tools_check *check = hfsbi_checker_find(checker, path);
    if (check) return check->fn != NULL;
    return hfsbi_check_has_suffix(path, HFSB_LIT(".py")) ||
           hfsbi_check_shell_of(content) != NULL;
}

HFSBI_FN void hfsbi_checker_run(hfsbi_checker     *checker,
                                const hfsb_cancel *cancel, hfsb_str path,
                                hfsb_str content, hfsb_buf *warnings) {
    const hfsb_tools_check *check = hfsbi_checker_find(checker, path);
    hfsb_buf                lines = HFSB_INIT;
    lines.alloc = warnings->alloc;
    if (!check) {
        hfsbi_check_built_in(checker, cancel, path, content, &lines, warnings);
    } else if (check->fn) {
        if (check->fn(check->user, path, content, &lines) != HFSB_OK)
            hfsb_buf_truncate(&lines, 0);
        hfsbi_check_move(&lines, warnings);
    }
    hfsb_buf_free(&lines);
}

HFSBI_FN void hfsbi_check_put(hfsb_buf *out, hfsb_str path, hfsb_str lines) {
    size_t   mark = out->len;
    hfsb_str line;
    if (lines.len == 0) return;
    hfsb_buf_append(out, HFSB_LIT("\n\nValidation warnings"));
    if (path.len)
        hfsb_buf_printf(out, " for %.*s, written before", (int)path.len,
                        path.ptr);
    hfsb_buf_append_byte(out, ':');
    while (hfsb_text_line(&lines, &line, NULL)) {
        hfsb_buf_append(out, HFSB_LIT("\n  ! "));
        hfsb_buf_append(out, line);
    }
    (void)!hfsb_buf_finish(out, mark);
}
