/* check.c - warnings about a file that was just written.

   A caller's check for the suffix replaces the built-in checks. Built in are
   JSON (parsed here), Python (python3 runs a helper) and shell scripts (the
   shell of the shebang runs with -n):

       content --> remembered? --yes----------------------> warnings
                       | no
                       +--> fence --> program --> lines --> warnings
                                                    +-----> remember

   A checker remembers the warnings of the last contents by their digest, since
   programs are slow. Incomplete answers, of a program that was killed or
   without memory, are shown but not remembered.

   What always holds: a check never fails a write, and no check runs a program
   or module from the directory that the tools write to, the fence. The lock
   guards only the memory and is never held while a program runs. */
#include "tools_private.h"

#define HFSBI_CHECK_TIMEOUT_MS 10000                      /* of one program */
#define HFSBI_CHECK_PROGRAM    ((size_t)1024 * 1024)      /* longest content */
#define HFSBI_CHECK_JSON       ((size_t)16 * 1024 * 1024) /* longest content */
#define HFSBI_CHECK_OUTPUT     ((size_t)64 * 1024)        /* of one program */
#define HFSBI_CHECK_LINE       400 /* characters of a warning */

/* Appends text to *lines as one line of valid UTF-8, ended by LF; false
   without memory. */
static bool hfsbi_check_warn(hfsb_buf *lines, hfsb_str text) {
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
   directory that the tools write to: the root, or without a root the working
   directory. A working directory beneath the root is inside the fence anyway.

   A program is taken from the first directory of PATH that is outside the
   fence, before and after resolving symlinks. The bin/python3 of a virtual
   environment is often a symlink to /usr/bin, but Python loads the packages
   next to the link, so the unresolved path counts as well. The directory is
   resolved before the program runs; the last component is not, since busybox
   and the shims of version managers depend on the name they are called by.
   The program's environment mentions nothing inside the fence either: a shim
   searches PATH again, and the loader reads LD_LIBRARY_PATH. */

/* The directory that the tools write to. Points into itself: do not copy. */
typedef struct hfsbi_fence {
    char given[PATH_MAX], real[PATH_MAX]; /* before and after realpath */
    const char *dirs[3]; /* both, then NULL; only NULL: nothing is fenced */
} hfsbi_fence;

/* Sets the fence from a root (NULL: the current directory). False if the
   directory cannot be resolved. */
static bool hfsbi_fence_init(hfsbi_fence *fence, const hfsb_root *place) {
    hfsb_str none = HFSB_INIT;
    hfsb_str root = place ? hfsb_root_path(place) : none;
    hfsb_str dir = root.len || !place ? root : hfsb_root_work_dir(place);
    memset(fence, 0, sizeof *fence);
    if (dir.len >= sizeof fence->given) return false;
    if (dir.len) memcpy(fence->given, dir.ptr, dir.len);
    else if (!getcwd(fence->given, sizeof fence->given)) return false;
    if (!realpath(fence->given, fence->real)) return false;
    /* Without a root, "/" as working directory is no project: a fence there
       would forbid all programs. */
    if (root.len == 0 && strcmp(fence->real, "/") == 0) return true;
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
   directories outside the fence. False if not found, or without memory. */
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

/* ---- running a program ---- */

/* Collects the start of one output stream of a program. */
typedef struct hfsbi_check_output {
    hfsb_buf        *buf;
    hfsb_proc_stream stream;
    bool             cut; /* bytes were dropped: ignore the rest */
} hfsbi_check_output;

static void hfsbi_check_on_output(void *user, hfsb_proc_stream stream,
                                  hfsb_str bytes) {
    hfsbi_check_output *output = (hfsbi_check_output *)user;
    size_t              room = HFSBI_CHECK_OUTPUT - output->buf->len;
    if (stream != output->stream || output->cut) return;
    output->cut = bytes.len > room;
    if (hfsb_buf_append(output->buf, hfsb_str_slice(bytes, 0, room)) !=
        HFSB_OK)
        output->cut = true;
}

/* Runs argv[0], a path. Returns as hfsbi_check_program(). */
static bool hfsbi_check_run(const hfsbi_checker *checker,
                            const hfsb_cancel *cancel, const char *const *argv,
                            const char *const *env, hfsb_str content,
                            hfsb_proc_stream stream, hfsb_buf *out) {
    hfsb_proc_opts     opts = HFSB_INIT;
    hfsb_proc_result   result;
    hfsbi_check_output output = HFSB_INIT;
    output.buf = out;
    output.stream = stream;
    opts.argv = argv;
    opts.work_dir = "/"; /* not inside the fence */
    opts.env = env;
    opts.input = content;
    opts.timeout_ms = checker->timeout_ms;
    opts.grace_ms = -1;
    opts.no_keeper = true;
    opts.on_output = hfsbi_check_on_output;
    opts.user = &output;
    opts.cancel = cancel;
    opts.alloc = out->alloc;
    if (hfsb_proc_run(&opts, NULL, NULL, &result, NULL) != HFSB_OK)
        return false;
    return result.end == HFSB_PROC_EXITED && !result.timed_out && !output.cut;
}

/* Runs argv with content on standard input and appends one of its output
   streams, at most HFSBI_CHECK_OUTPUT bytes, to *out. argv[0] is a name,
   searched for in PATH outside the fence; it is NULL afterwards if found. True
   if the program exited by itself and its output is complete; otherwise *out
   contains the start. */
static bool hfsbi_check_program(const hfsbi_checker *checker,
                                const hfsbi_fence   *fence,
                                const hfsb_cancel *cancel, const char **argv,
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
            hfsbi_check_run(checker, cancel, argv, list, content, stream, out);
        argv[0] = NULL;
    }
    hfsbi_array_free(&out->alloc, (void *)list, count, sizeof *list);
    hfsb_buf_free(&path);
    return whole;
}

/* ---- Python ---- */

/* The helper that python3, 3.8 or later, runs. It reads the file on standard
   input, prints a line for each warning, and HFSBI_PYTHON_END when complete.

   Inspecting a callable means importing its module, which may do anything:
   print, exit, fork, hang, close descriptors. Therefore:
   - warnings are written at once to a private descriptor, and 0, 1 and 2 are
     /dev/null before the first import;
   - functions needed later are bound before the first import;
   - a forked copy of the helper exits at its first warning;
   - at the end the helper kills its process group, so no process survives and
     no thread or exit handler is waited for.
   Only modules of names that are called with keywords are imported.

   No module inside the fence is imported. Python starts with -S, without the
   module `site`, which would run the .pth files and the sitecustomize of every
   package directory. The helper adds these directories itself, for the imports
   alone, and without .pth files. It checks each file that an import finds: a
   package directory outside the fence may contain a symlink into the fence, or
   the fence itself. */
#define HFSBI_PYTHON_END "."

static const char hfsbi_python_helper[] =
    "import os, sys\n"
    "mode, *fence = sys.argv[1:]\n"
    "del sys.argv[1:]\n"
    "\n"
    "def fenced(path):\n"
    "    return any((p + '/').startswith(d + '/')\n"
    "               for p in (path, os.path.realpath(path)) for d in fence)\n"
    "\n"
    "def usable(paths):\n"
    "    return [p for p in paths if os.path.isabs(p) and not fenced(p)]\n"
    "\n"
    "sys.path[:] = usable(sys.path)\n"
    "import ast, functools, importlib, inspect, io, site, tokenize\n"
    "from importlib.machinery import PathFinder\n"
    "\n"
    "me, out, end = os.getpid(), os.dup(1), os.killpg\n"
    "source = sys.stdin.buffer.read()\n"
    "null = os.open(os.devnull, os.O_RDWR)\n"
    "for fd in (0, 1, 2):\n"
    "    os.dup2(null, fd)\n"
    "try:\n" /* a module that crashes leaves no core file in "/" */
    "    import resource\n"
    "    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))\n"
    "except Exception:\n"
    "    pass\n"
    "\n"
    "def tell(line, write=os.write, getpid=os.getpid, leave=os._exit):\n"
    "    if getpid() != me:\n"
    "        leave(1)\n"
    "    line = ' '.join(line.splitlines()) + '\\n'\n"
    "    write(out, line.encode('utf-8', 'backslashreplace'))\n"
    "\n"
    "def fault(line, message):\n"
    "    tell('Python syntax error at line %d: %s' % (line, message))\n"
    "\n"
    "def line_of(offset):\n"
    "    return source.count(b'\\n', 0, offset) + 1\n"
    "\n"
    /* The tree, or None if the file is not valid Python. Only compile()
       detects errors such as `return` outside a function. */
    "def parse():\n"
    "    null = source.find(b'\\0')\n"
    "    if null >= 0:\n"
    "        return fault(line_of(null),\n"
    "                     'source code string cannot contain null bytes')\n"
    "    lines = io.BytesIO(source).readline\n"
    "    try:\n"
    "        text = source.decode(tokenize.detect_encoding(lines)[0])\n"
    "        tree = ast.parse(text)\n"
    "        compile(tree, 'file', 'exec', 0, True)\n"
    "        return tree\n"
    "    except SyntaxError as e:\n"
    "        fault(e.lineno or 1, e.msg)\n"
    "    except UnicodeDecodeError as e:\n"
    "        fault(line_of(e.start), '(unicode error) %s' % e)\n"
    "\n"
    /* The origin of each imported name: (module, name in it), or None for
       relative imports, which are not checked. */
    "def imports(tree):\n"
    "    names = {}\n"
    "    for node in ast.walk(tree):\n"
    "        if isinstance(node, ast.Import):\n"
    "            for a in node.names:\n"
    "                names[a.asname or a.name] = (a.name, None)\n"
    "        elif isinstance(node, ast.ImportFrom):\n"
    "            for a in node.names:\n"
    "                names[a.asname or a.name] = (\n"
    "                    None if node.level else (node.module, a.name))\n"
    "    return names\n"
    "\n"
    /* Finds only modules whose files are outside the fence. */
    "class Finder(PathFinder):\n"
    "    @classmethod\n"
    "    def find_spec(cls, name, path=None, target=None):\n"
    "        spec = super().find_spec(name, path, target)\n"
    "        return None if spec and fenced(spec.origin or '') else spec\n"
    "\n"
    /* Does the work of `site` except for .pth files. Before 3.14 `site` also
       sets the prefix of a virtual environment. */
    "def add_packages():\n"
    "    home = os.path.dirname(os.path.dirname(sys.executable))\n"
    "    prefixes = [sys.base_prefix, sys.base_exec_prefix]\n"
    "    try:\n"
    "        with open(home + '/pyvenv.cfg', 'rb') as f:\n"
    "            config = b''.join(f.read().lower().split())\n"
    "        if b'include-system-site-packages=true' not in config:\n"
    "            prefixes = []\n"
    "        prefixes.insert(0, home)\n"
    "        sys.prefix = sys.exec_prefix = home\n"
    "    except OSError:\n"
    "        pass\n"
    "    sys.path += usable(site.getsitepackages(prefixes))\n"
    "    sys.meta_path.remove(PathFinder)\n"
    "    sys.meta_path.append(Finder)\n"
    "\n"
    /* The names of the parameters; None if any keyword may be valid. */
    "@functools.lru_cache(None)\n"
    "def parameters(module, name):\n"
    "    try:\n"
    "        found = importlib.import_module(module)\n"
    "        if name:\n"
    "            found = getattr(found, name)\n"
    "        taken = inspect.signature(found).parameters\n"
    "        if any(p.kind == p.VAR_KEYWORD for p in taken.values()):\n"
    "            return None\n"
    "        return frozenset(taken)\n"
    "    except BaseException:\n"
    "        return None\n"
    "\n"
    "def check(tree):\n"
    "    names = imports(tree)\n"
    "    for node in ast.walk(tree):\n"
    "        if not isinstance(node, ast.Call):\n"
    "            continue\n"
    "        f = node.func\n"
    "        called = getattr(f, 'id', None) or getattr(f, 'attr', None)\n"
    "        keywords = [k.arg for k in node.keywords]\n"
    "        if not keywords or None in keywords or not names.get(called):\n"
    "            continue\n"
    "        module, name = names[called]\n"
    "        taken = parameters(module, name)\n"
    "        for k in keywords:\n"
    "            if taken is not None and k not in taken:\n"
    "                tell('Invalid kwarg: %s(%s=...) at line %d -- not "
    "accept'\n"
    "                     'ed by %s.%s()' % (called, k, node.lineno, module,\n"
    "                                        name or called))\n"
    "\n"
    "try:\n"
    "    tree = parse()\n"
    "    if tree and mode == 'imports':\n"
    "        add_packages()\n"
    "        check(tree)\n"
    "    tell('" HFSBI_PYTHON_END "')\n"
    "finally:\n"
    "    end(0, 9)\n";

/* True for a warning of the helper; python3 may print other lines. */
static bool hfsbi_python_is_warning(hfsb_str line) {
    return hfsb_str_starts(line, HFSB_LIT("Python syntax error at line ")) ||
           hfsb_str_starts(line, HFSB_LIT("Invalid kwarg: "));
}

/* Appends the warnings of python3 about content to *lines. True if they are
   complete and can be remembered. */
static bool hfsbi_check_python(const hfsbi_checker *checker,
                               const hfsb_cancel *cancel, hfsb_str content,
                               hfsb_buf *lines) {
    const char *argv[9];
    hfsbi_fence fence;
    hfsb_buf    out = HFSB_INIT;
    hfsb_str    text, line;
    bool        whole = false, kept = true;
    if (!hfsbi_fence_init(&fence, checker->place)) return false;
    argv[0] = "python3";
    argv[1] = "-I"; /* no variable, no packages of the user, no "" in path */
    argv[2] = "-S";
    argv[3] = "-c";
    argv[4] = hfsbi_python_helper;
    argv[5] = checker->no_imports ? "syntax" : "imports";
    memcpy(argv + 6, fence.dirs, sizeof fence.dirs); /* with its NULL */
    out.alloc = lines->alloc;
    /* Warnings are valid however the program ended. */
    (void)hfsbi_check_program(checker, &fence, cancel, argv, content,
                              HFSB_PROC_STDOUT, &out);
    text = hfsb_buf_str(&out);
    while (!whole && hfsb_str_find_byte(text, '\n') != HFSB_NPOS &&
           hfsb_text_line(&text, &line, NULL)) {
        whole = hfsb_str_equal(line, HFSB_LIT(HFSBI_PYTHON_END));
        if (hfsbi_python_is_warning(line))
            kept = hfsbi_check_warn(lines, line) && kept;
    }
    hfsb_buf_free(&out);
    return whole && kept;
}

/* ---- shell scripts ---- */

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
   a here-document without end. False without memory. */
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

/* Appends the first syntax error that the shell `name` reports for content.
   Returns as hfsbi_check_python(). */
static bool hfsbi_check_shell(const hfsbi_checker *checker,
                              const hfsb_cancel *cancel, const char *name,
                              hfsb_str content, hfsb_buf *lines) {
    const char *argv[6];
    hfsbi_fence fence;
    hfsb_buf    out = HFSB_INIT;
    hfsb_str    text, line, number, message;
    size_t      n = 0;
    bool        ended, found = false;
    if (!hfsbi_fence_init(&fence, checker->place)) return false;
    argv[n++] = name;
    if (strcmp(name, "bash") == 0 &&
        hfsb_str_find(content, HFSB_LIT("extglob")) != HFSB_NPOS) {
        argv[n++] = "-O"; /* -n does not run the script's own shopt */
        argv[n++] = "extglob";
    }
    argv[n++] = "-n";
    argv[n++] = HFSBI_SHELL_FILE;
    argv[n] = NULL;
    out.alloc = lines->alloc;
    ended = hfsbi_check_program(checker, &fence, cancel, argv, content,
                                HFSB_PROC_STDERR, &out);
    text = hfsb_buf_str(&out);
    while (!found && hfsb_text_line(&text, &line, NULL))
        found = hfsbi_shell_message(line, &number, &message);
    if (found) ended = hfsbi_shell_warn(number, message, lines) && ended;
    hfsb_buf_free(&out);
    return ended;
}

/* ---- remembered warnings ---- */

/* The digest of a program's name and the content it checks. */
static void hfsbi_check_digest(const char *program, hfsb_str content,
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

/* Appends the remembered warnings to *lines; false if there is no entry. */
static bool hfsbi_check_recall(hfsbi_checker      *checker,
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

/* Replaces the least recently used entry. Without memory nothing changes.
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

/* Remembers the warnings for a digest. */
static void hfsbi_check_remember(hfsbi_checker      *checker,
                                 const unsigned char digest[HFSB_SHA256_SIZE],
                                 hfsb_str            text) {
    (void)pthread_mutex_lock(&checker->lock);
    if (!hfsbi_check_find(checker, digest)) /* no other thread was faster */
        hfsbi_check_store(checker, digest, text);
    (void)pthread_mutex_unlock(&checker->lock);
}

/* Appends the warnings of a program about content, remembered or new. */
static void hfsbi_check_with_program(hfsbi_checker     *checker,
                                     const hfsb_cancel *cancel,
                                     const char *program, hfsb_str content,
                                     hfsb_buf *lines) {
    unsigned char digest[HFSB_SHA256_SIZE];
    bool          whole;
    if (content.len > HFSBI_CHECK_PROGRAM) return;
    hfsbi_check_digest(program, content, digest);
    if (hfsbi_check_recall(checker, digest, lines)) return;
    if (strcmp(program, "python3") == 0)
        whole = hfsbi_check_python(checker, cancel, content, lines);
    else whole = hfsbi_check_shell(checker, cancel, program, content, lines);
    if (whole) hfsbi_check_remember(checker, digest, hfsb_buf_str(lines));
}

/* ---- built-in checks ---- */

static bool hfsbi_check_has(hfsb_str content, const char *word) {
    return hfsb_str_find(content, hfsb_cstr(word)) != HFSB_NPOS;
}

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

/* Checks a Python file; a syntax error makes other warnings pointless. */
static void hfsbi_check_py(hfsbi_checker *checker, const hfsb_cancel *cancel,
                           hfsb_str content, hfsb_buf *lines) {
    hfsbi_check_with_program(checker, cancel, "python3", content, lines);
    if (!hfsb_str_starts(hfsb_buf_str(lines), HFSB_LIT("Python syntax error")))
        hfsbi_check_training(content, lines);
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
    /* The message starts with line and column. Other failures, nesting too
       deep or no memory, are not errors of the file. */
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

/* Copies the caller's checks with their suffixes; false without memory. */
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
    for (i = 0; i < HFSBI_CHECK_MEMORY; i++)
        if (checker->seen[i].used)
            hfsbi_array_free(&alloc, checker->seen[i].text,
                             checker->seen[i].len + 1, 1);
    hfsbi_array_free(&alloc, checker->checks, checker->count,
                     sizeof *checker->checks);
    hfsb_buf_free(&checker->suffixes);
    (void)pthread_mutex_destroy(&checker->lock);
    hfsbi_array_free(&alloc, checker, 1, sizeof *checker);
}

/* Runs the built-in checks; *lines is empty before and after. */
static void hfsbi_check_built_in(hfsbi_checker     *checker,
                                 const hfsb_cancel *cancel, hfsb_str path,
                                 hfsb_str content, hfsb_buf *lines,
                                 hfsb_buf *warnings) {
    const char *shell = hfsbi_check_shell_of(content);
    if (hfsbi_check_has_suffix(path, HFSB_LIT(".py")))
        hfsbi_check_py(checker, cancel, content, lines);
    if (hfsbi_check_has_suffix(path, HFSB_LIT(".json")))
        hfsbi_check_json(path, content, lines);
    hfsbi_check_move(lines, warnings);
    if (shell)
        hfsbi_check_with_program(checker, cancel, shell, content, lines);
    hfsbi_check_move(lines, warnings);
}

HFSBI_FN void hfsbi_checker_run(hfsbi_checker     *checker,
                                const hfsb_cancel *cancel, hfsb_str path,
                                hfsb_str content, hfsb_buf *warnings) {
    const hfsb_tools_check *check = checker->checks;
    hfsb_buf                lines = HFSB_INIT;
    size_t                  left = checker->count;
    lines.alloc = warnings->alloc;
    while (left > 0 &&
           !hfsbi_check_has_suffix(path, hfsb_cstr(check->suffix))) {
        check++;
        left--;
    }
    if (left == 0) {
        hfsbi_check_built_in(checker, cancel, path, content, &lines, warnings);
    } else if (check->fn) {
        if (check->fn(check->user, path, content, &lines) != HFSB_OK)
            hfsb_buf_truncate(&lines, 0);
        hfsbi_check_move(&lines, warnings);
    }
    hfsb_buf_free(&lines);
}
