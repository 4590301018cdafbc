/* python.c - checks Python files in a helper process.

   Starting python3 takes longer than everything else about a write, so one
   helper process serves all checks of a checker:

       C: "{bytes}\n" content --> helper --> fork: parses, imports, inspects
       C: warnings, "." or "-" <-- helper <-- warnings, signatures

   The helper answers in the order of the requests, and forks for each, because
   inspecting a callable means importing its module, which may do anything:
   print, exit, fork, hang, close descriptors. "." ends a complete answer, "-"
   an incomplete one. The helper keeps the signatures that its children found,
   so a module is imported once, not once per write.

       none --needed soon--> runs --60 s idle, 1000 checks, or a fault--> none

   A check has a state of its own:

       ASKED --"."--> WHOLE        ASKED --"-", helper ended--> PARTIAL

   In a session and in a server the call waits 50 ms for the answer. A later
   answer goes with the next reply of the session. In a server without
   sessions, where the next reply may be for another client, it goes with the
   next one about the same file. It is dropped if the file has changed by then.
   The helper starts with the first call about a Python file, usually a read,
   so that answers are seldom late. Anywhere else, as in a program that ends
   after one call, nobody would get a late answer: the call waits until the
   check ends.

   The helper is an event of a loop that belongs to the checker and is turned
   by the threads that wait. Nobody turns it between calls, not even in a
   server, so the helper limits its idle time by itself. The loop's lock
   protects everything here. */
#include "check_private.h"

enum {
    HFSBI_PYTHON_OUTPUT = 64 * 1024, /* bytes of an answer */
    HFSBI_PYTHON_LATE = 64           /* checks whose answer may come late */
};

/* ---- the helper ---- */

/* The program for python3, 3.8 or later, in two parts because of the length of
   literals. Its arguments are the second part, the seconds that a check may
   take, "imports" or "syntax", and the directories of the fence.

   In the child that checks a file:
   - warnings are written at once to a private descriptor; 0, 1 and 2 are
     /dev/null;
   - functions needed later are bound before the first import;
   - a forked copy of the child exits at its first warning;
   - at the end the child kills its process group, so no process survives and
     no thread or exit handler is waited for.
   Only modules of names that are called with keywords are imported.

   No module inside the fence is imported. Python starts with -S, without the
   module `site`, which would run the .pth files and the sitecustomize of every
   package directory. The helper adds these directories itself, for the imports
   alone, and without .pth files. It checks each file that an import finds: a
   package directory outside the fence may contain a symlink into the fence, or
   the fence itself. */
static const char hfsbi_python_helper[] =
    "import os, sys\n"
    "server, limit, mode, *fence = sys.argv[1:]\n"
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
    "import ast, importlib, inspect, io, select, signal, site, time\n"
    "import tokenize\n"
    "from importlib.machinery import PathFinder\n"
    "\n"
    "requests = os.fdopen(os.dup(0), 'rb')\n"
    "answers = os.fdopen(os.dup(1), 'wb')\n"
    "null = os.open(os.devnull, os.O_RDWR)\n"
    "for fd in (0, 1, 2):\n"
    "    os.dup2(null, fd)\n"
    "try:\n" /* a crashing module leaves no core file in "/" */
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
    "def changed(path):\n"
    "    try:\n"
    "        return os.stat(path).st_mtime_ns\n"
    "    except (OSError, TypeError):\n"
    "        return None\n"
    "\n"
    /* (module, name): the names of the parameters, or None if any keyword may
       be valid; the module's file, and when that was modified. A reinstalled
       module is imported again. */
    "known = {}\n"
    "\n"
    "def parameters(module, name):\n"
    "    taken, path, when = known.get((module, name), (None, None, 0))\n"
    "    if when == changed(path):\n"
    "        return taken\n"
    "    taken = path = None\n"
    "    try:\n"
    "        found = importlib.import_module(module)\n"
    "        path = getattr(found, '__file__', None)\n"
    "        if name:\n"
    "            found = getattr(found, name)\n"
    "        taken = inspect.signature(found).parameters\n"
    "        taken = (None if any(p.kind == p.VAR_KEYWORD\n"
    "                             for p in taken.values()) else "
    "tuple(taken))\n"
    "        when = changed(path)\n"
    "        tell('=' + repr((module, name, (taken, path, when))))\n"
    "    except BaseException:\n"
    "        taken = None\n"
    "    known[module, name] = (taken, path, changed(path))\n"
    "    return taken\n"
    "\n"
    "exec(server)\n";

static const char hfsbi_python_server[] =
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
    "def run(end=os.killpg):\n"
    "    try:\n"
    "        tree = parse()\n"
    "        if tree and mode == 'imports':\n"
    "            check(tree)\n"
    "        tell('.')\n"
    "    finally:\n"
    "        end(0, 9)\n"
    "\n"
    /* What the child writes, until it ends or its time is over. */
    "def collect(pipe):\n"
    "    text, stop = b'\\n', time.monotonic() + float(limit)\n"
    "    while not text.endswith(b'\\n.\\n') and len(text) < 65536:\n"
    "        left = max(0, stop - time.monotonic())\n"
    "        if not select.select([pipe], [], [], left)[0]:\n"
    "            break\n"
    "        piece = os.read(pipe, 65536)\n"
    "        if not piece:\n"
    "            break\n"
    "        text += piece\n"
    "    return text.split(b'\\n')[1:-1]\n"
    "\n"
    "def attempt(function, *args):\n"
    "    try:\n"
    "        function(*args)\n"
    "    except OSError:\n"
    "        pass\n"
    "\n"
    "def learn(line):\n"
    "    try:\n"
    "        module, name, found = ast.literal_eval(line[1:].decode())\n"
    "        known[module, name] = found\n"
    "    except Exception:\n"
    "        pass\n"
    "\n"
    "if mode == 'imports':\n"
    "    add_packages()\n"
    "for i in range(1000):\n" /* then a new helper starts with fresh memory */
    "    signal.alarm(60)\n"  /* ends an idle helper */
    "    size = requests.readline()\n"
    "    signal.alarm(0)\n"
    "    if not size:\n"
    "        break\n"
    "    source = requests.read(int(size))\n"
    "    pipe, out = os.pipe()\n"
    "    child = os.fork()\n"
    "    if child == 0:\n"
    "        for fd in (pipe, requests.fileno(), answers.fileno()):\n"
    "            os.close(fd)\n"
    "        attempt(os.setpgid, 0, 0)\n"
    "        me = os.getpid()\n"
    "        run()\n"
    "    os.close(out)\n"
    "    attempt(os.setpgid, child, child)\n"
    "    lines = collect(pipe)\n"
    "    attempt(os.killpg, child, 9)\n"
    "    attempt(os.kill, child, 9)\n"
    "    os.waitpid(child, 0)\n"
    "    os.close(pipe)\n"
    "    whole = b'.' in lines\n"
    "    for line in lines[:lines.index(b'.')] if whole else lines:\n"
    "        if line.startswith(b'='):\n"
    "            learn(line)\n"
    "        else:\n"
    "            answers.write(line + b'\\n')\n"
    "    answers.write(b'.\\n' if whole else b'-\\n')\n"
    "    answers.flush()\n";

/* ---- checks ---- */

typedef enum hfsbi_py_state {
    HFSBI_PY_ASKED,
    HFSBI_PY_WHOLE,
    HFSBI_PY_PARTIAL
} hfsbi_py_state;

/* What happens to the answer. */
typedef enum hfsbi_py_reader {
    HFSBI_PY_WAITS, /* a thread waits for it and frees the check */
    HFSBI_PY_LATER, /* the next reply shows it */
    HFSBI_PY_NOBODY
} hfsbi_py_reader;

struct hfsbi_py_check {
    struct hfsbi_py_check *next;
    hfsbi_py_state         state;
    hfsbi_py_reader        reader;
    bool                   fresh; /* the helper was started for this check */
    bool                   lost;  /* a warning did not fit into memory */
    long long              until; /* the helper is stuck if ASKED by then */
    unsigned char          digest[HFSB_SHA256_SIZE]; /* for the cache */
    hfsb_buf               path, lines;
};

/* Returns the check that the helper answers now, or NULL. */
static hfsbi_py_check *hfsbi_py_current(const hfsbi_python *py) {
    hfsbi_py_check *check = py->checks;
    while (check && check->state != HFSBI_PY_ASKED) check = check->next;
    return check;
}

static void hfsbi_py_free(hfsbi_checker *checker, hfsbi_py_check *check) {
    hfsbi_py_check **link = &checker->python.checks;
    while (*link && *link != check) link = &(*link)->next;
    if (*link) *link = check->next;
    hfsb_buf_free(&check->path);
    hfsb_buf_free(&check->lines);
    hfsbi_array_free(&checker->alloc, check, 1, sizeof *check);
}

static void hfsbi_py_answer(hfsbi_checker *checker, hfsbi_py_check *check,
                            bool whole) {
    whole = whole && !check->lost;
    checker->python.taken = 0;
    check->state = whole ? HFSBI_PY_WHOLE : HFSBI_PY_PARTIAL;
    if (whole)
        hfsbi_check_remember(checker, check->digest,
                             hfsb_buf_str(&check->lines));
    if (check->reader == HFSBI_PY_NOBODY ||
        (check->reader == HFSBI_PY_LATER && check->lines.len == 0))
        hfsbi_py_free(checker, check);
}

/* Takes one line of the helper. python3 may print others; they are ignored. */
static void hfsbi_py_take_line(hfsbi_checker *checker, hfsb_str line) {
    hfsbi_py_check *check = hfsbi_py_current(&checker->python);
    if (!check) return;
    if (hfsb_str_ends(line, HFSB_LIT("\r"))) line.len--;
    if (hfsb_str_equal(line, HFSB_LIT(".")))
        hfsbi_py_answer(checker, check, true);
    else if (hfsb_str_equal(line, HFSB_LIT("-")))
        hfsbi_py_answer(checker, check, false);
    else if (hfsb_str_starts(line, HFSB_LIT("Python syntax error at line ")) ||
             hfsb_str_starts(line, HFSB_LIT("Invalid kwarg: ")))
        check->lost = !hfsbi_check_warn(&check->lines, line) || check->lost;
}

/* ---- the helper's process ---- */

/* Ends the helper; checks without an answer keep the warnings so far. */
static void hfsbi_py_stop(hfsbi_checker *checker) {
    hfsbi_python   *py = &checker->python;
    hfsbi_py_check *check;
    hfsb_proc      *proc = py->proc;
    py->proc = NULL;
    if (proc) hfsbi_proc_detach(proc);
    hfsb_proc_close(proc);
    hfsb_buf_free(&py->piece);
    while ((check = hfsbi_py_current(py)) != NULL)
        hfsbi_py_answer(checker, check, false);
}

/* Splits the output into lines. After an answer that is too long, or when out
   of memory, hfsbi_py_on_change() stops the helper. */
static void hfsbi_py_on_output(void *user, hfsb_proc_stream stream,
                               hfsb_str bytes) {
    hfsbi_checker *checker = (hfsbi_checker *)user;
    hfsbi_python  *py = &checker->python;
    size_t         end;
    if (stream != HFSB_PROC_STDOUT) return;
    while (py->taken <= HFSBI_PYTHON_OUTPUT && bytes.len) {
        end = hfsb_str_find_byte(bytes, '\n');
        py->taken += end == HFSB_NPOS ? bytes.len : end + 1;
        hfsb_buf_append(&py->piece, hfsb_str_slice(bytes, 0, end));
        if (end == HFSB_NPOS || py->taken > HFSBI_PYTHON_OUTPUT) return;
        bytes = hfsb_str_slice(bytes, end + 1, bytes.len);
        if (hfsb_buf_finish(&py->piece, 0) == HFSB_OK)
            hfsbi_py_take_line(checker, hfsb_buf_str(&py->piece));
        else py->taken = HFSBI_PYTHON_OUTPUT + 1;
        hfsb_buf_truncate(&py->piece, 0);
    }
}

static void hfsbi_py_on_change(void *user, hfsb_proc *proc, bool done) {
    hfsbi_checker *checker = (hfsbi_checker *)user;
    (void)proc;
    if (done || checker->python.taken > HFSBI_PYTHON_OUTPUT)
        hfsbi_py_stop(checker);
}

/* Starts the helper. False if there is no python3 outside the fence, or it
   cannot be started. */
static bool hfsbi_py_start(hfsbi_checker *checker) {
    hfsbi_python       *py = &checker->python;
    hfsbi_outer_program python;
    hfsb_proc_opts      opts = HFSB_INIT;
    const char         *argv[8 + HFSBI_FENCE_DIRS];
    char                limit[32];
    if (!hfsbi_outer_find(checker, "python3", &python)) return false;
    (void)snprintf(limit, sizeof limit, "%lld.%03lld",
                   checker->timeout_ms / 1250,
                   checker->timeout_ms * 4 / 5 % 1000);
    argv[0] = python.path;
    argv[1] = "-I"; /* no variable, no packages of the user, no "" in path */
    argv[2] = "-S";
    argv[3] = "-c";
    argv[4] = hfsbi_python_helper;
    argv[5] = hfsbi_python_server;
    argv[6] = limit;
    argv[7] = checker->no_imports ? "syntax" : "imports";
    memcpy(argv + 8, python.fence.dirs, sizeof python.fence.dirs);
    opts.argv = argv;
    opts.work_dir = "/"; /* not inside the fence */
    opts.env = python.env;
    opts.confine = hfsbi_checker_confine(checker);
    opts.keep_input = true;
    opts.grace_ms = -1;
    opts.no_keeper = true;
    opts.on_output = hfsbi_py_on_output;
    opts.user = checker;
    opts.alloc = checker->alloc;
    if (hfsb_proc_open(&opts, &py->proc, NULL) == HFSB_OK)
        hfsbi_proc_attach(py->proc, py->loop, hfsbi_py_on_change, checker);
    hfsbi_outer_free(&python);
    return py->proc != NULL;
}

/* Sends a request to the helper, which is started if none runs, or if the
   running one takes no more. *fresh: it was started. False if that fails. */
static bool hfsbi_py_send(hfsbi_checker *checker, hfsb_str content,
                          bool *fresh) {
    hfsbi_python *py = &checker->python;
    hfsb_status   st;
    char          head[32];
    (void)snprintf(head, sizeof head, "%zu\n", content.len);
    for (*fresh = !py->proc;; *fresh = true) {
        if (!py->proc && !hfsbi_py_start(checker)) return false;
        st = hfsb_proc_input(py->proc, hfsb_cstr(head), false, NULL);
        if (st == HFSB_LIMIT) return false; /* it has enough to do */
        if (st == HFSB_OK)
            st = hfsb_proc_input(py->proc, content, false, NULL);
        /* A new one that reads nothing may have printed something. */
        if (st == HFSB_OK || (st == HFSB_REFUSED && *fresh)) return true;
        hfsbi_py_stop(checker);
        if (*fresh) return false;
    }
}

/* Sends a request and returns its check, or NULL if that fails. */
static hfsbi_py_check *hfsbi_py_ask(hfsbi_checker *checker, hfsb_str path,
                                    hfsb_str             content,
                                    const unsigned char *digest) {
    hfsbi_py_check *check, **link = &checker->python.checks;
    check = (hfsbi_py_check *)hfsbi_array(&checker->alloc, 1, sizeof *check);
    if (!check) return NULL;
    memset(check, 0, sizeof *check);
    memcpy(check->digest, digest, sizeof check->digest);
    check->path.alloc = check->lines.alloc = checker->alloc;
    if (hfsb_buf_append(&check->path, path) != HFSB_OK ||
        !hfsbi_py_send(checker, content, &check->fresh)) {
        hfsbi_py_free(checker, check);
        return NULL;
    }
    check->until = hfsb_clock_ms();
    for (; *link; link = &(*link)->next)
        if ((*link)->state == HFSBI_PY_ASKED)
            check->until = (*link)->until; /* it is answered after that one */
    check->until += checker->timeout_ms;
    *link = check;
    return check;
}

/* ---- waiting ---- */

/* Handles answers, the end of the helper, and a helper that is stuck. */
static void hfsbi_py_look(hfsbi_checker *checker) {
    hfsbi_py_check *check;
    hfsbi_loop_turn(checker->python.loop, 0);
    check = hfsbi_py_current(&checker->python);
    if (check && hfsb_clock_ms() >= check->until) hfsbi_py_stop(checker);
}

/* A cancel that a loop watches. */
typedef struct hfsbi_py_cancel {
    hfsbi_io    io;
    hfsbi_loop *loop;
} hfsbi_py_cancel;

static void hfsbi_py_cancelled(hfsbi_io *io, unsigned events) {
    (void)events; /* it stays readable */
    hfsbi_loop_io_forget(((hfsbi_py_cancel *)(void *)io)->loop, io);
}

/* Waits for the answer, or until `until` on hfsb_clock_ms(). */
static void hfsbi_py_wait(hfsbi_checker *checker, const hfsb_cancel *cancel,
                          const hfsbi_py_check *check, long long until) {
    hfsbi_py_cancel watch = HFSB_INIT;
    int             fd = cancel ? hfsb_cancel_fd(cancel) : -1;
    long long       left;
    watch.loop = checker->python.loop;
    watch.io.fn = hfsbi_py_cancelled;
    watch.io.fd = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 3);
    if (watch.io.fd >= 0)
        (void)hfsbi_loop_io(watch.loop, &watch.io, HFSBI_IO_READ);
    while (check->state == HFSBI_PY_ASKED && !hfsb_cancel_is_set(cancel) &&
           (left = until - hfsb_clock_ms()) > 0)
        hfsbi_loop_turn(watch.loop, left);
    hfsbi_loop_io_forget(watch.loop, &watch.io);
    hfsbi_close(&watch.io.fd);
    hfsbi_py_look(checker);
}

/* Discards the answer. */
static void hfsbi_py_drop(hfsbi_checker *checker, hfsbi_py_check *check) {
    check->reader = HFSBI_PY_NOBODY;
    if (check->state != HFSBI_PY_ASKED) hfsbi_py_free(checker, check);
}

/* Forgets the late warnings about an earlier content of the file. */
static void hfsbi_py_forget(hfsbi_checker *checker, hfsb_str path) {
    hfsbi_py_check *check = checker->python.checks, *next;
    for (; check; check = next) {
        next = check->next;
        if (check->reader == HFSBI_PY_LATER &&
            hfsb_str_equal(hfsb_buf_str(&check->path), path))
            hfsbi_py_drop(checker, check);
    }
}

/* Leaves the answer to a later reply. Unclaimed answers are dropped, oldest
   first. */
static void hfsbi_py_postpone(hfsbi_checker *checker, hfsbi_py_check *check) {
    hfsbi_py_check *oldest = NULL, *c = checker->python.checks;
    size_t          count = 0;
    check->reader = HFSBI_PY_LATER;
    for (; c; c = c->next) {
        if (c->reader != HFSBI_PY_LATER) continue;
        if (!oldest) oldest = c;
        count++;
    }
    if (count > HFSBI_PYTHON_LATE) hfsbi_py_drop(checker, oldest);
}

/* Asks and waits. True if a helper that had answered before ended without an
   answer: it was idle for too long, or has answered enough. */
static bool hfsbi_py_run(hfsbi_checker *checker, const hfsb_cancel *cancel,
                         hfsb_str path, hfsb_str content,
                         const unsigned char *digest, hfsb_buf *lines) {
    long long       until = hfsb_clock_ms();
    hfsbi_py_check *check;
    bool            again;
    hfsbi_py_look(checker);
    check = hfsbi_py_ask(checker, path, content, digest);
    if (!check) return false;
    /* The time that a start takes counts. */
    until = checker->patience_ms ? until + checker->patience_ms : check->until;
    hfsbi_py_wait(checker, cancel, check, until);
    again = check->state == HFSBI_PY_PARTIAL && !check->fresh &&
            check->lines.len == 0;
    if (check->state == HFSBI_PY_ASKED && checker->patience_ms) {
        hfsbi_py_postpone(checker, check);
        return false;
    }
    hfsb_buf_append(lines, hfsb_buf_str(&check->lines));
    (void)!hfsb_buf_finish(lines, 0); /* no memory: no warnings */
    if (check->state == HFSBI_PY_ASKED) check->reader = HFSBI_PY_NOBODY;
    else hfsbi_py_free(checker, check);
    return again;
}

/* Opens the loop at the first check, or returns the one that was opened. */
static hfsbi_loop *hfsbi_py_loop(hfsbi_checker *checker, bool open) {
    hfsbi_loop **loop = &checker->python.loop;
    (void)pthread_mutex_lock(&checker->lock);
    if (!*loop && open)
        (void)hfsbi_loop_open(&checker->alloc, 0, true, loop, NULL);
    (void)pthread_mutex_unlock(&checker->lock);
    return *loop;
}

HFSBI_FN void hfsbi_python_check(hfsbi_checker     *checker,
                                 const hfsb_cancel *cancel, hfsb_str path,
                                 hfsb_str content, hfsb_buf *lines) {
    unsigned char digest[HFSB_SHA256_SIZE];
    hfsbi_loop   *loop;
    if (content.len > HFSBI_CHECK_PROGRAM || hfsb_cancel_is_set(cancel))
        return;
    loop = hfsbi_py_loop(checker, true);
    if (!loop) return;
    hfsbi_check_digest("python3", content, digest);
    hfsbi_loop_lock(loop);
    hfsbi_py_forget(checker, path);
    if (!hfsbi_check_recall(checker, digest, lines) &&
        hfsbi_py_run(checker, cancel, path, content, digest, lines))
        (void)hfsbi_py_run(checker, cancel, path, content, digest, lines);
    hfsbi_loop_unlock(loop);
}

HFSBI_FN void hfsbi_python_expect(void *user) {
    hfsbi_checker *checker = (hfsbi_checker *)user;
    hfsbi_loop    *loop = hfsbi_py_loop(checker, true);
    if (!loop) return;
    hfsbi_loop_lock(loop);
    hfsbi_py_look(checker);
    if (!checker->python.proc) (void)hfsbi_py_start(checker);
    hfsbi_loop_unlock(loop);
}

/* ---- late warnings ---- */

/* True when a reply about the file at path shows the answer. */
static bool hfsbi_py_belongs(const hfsbi_checker  *checker,
                             const hfsbi_py_check *check, hfsb_str path) {
    return check->reader == HFSBI_PY_LATER && check->state != HFSBI_PY_ASKED &&
           (!checker->late_by_path ||
            hfsb_str_equal(hfsb_buf_str(&check->path), path));
}

/* True while the file still has the content that was checked. */
static bool hfsbi_py_is_current(const hfsbi_checker  *checker,
                                const hfsbi_py_check *check) {
    unsigned char digest[HFSB_SHA256_SIZE];
    hfsb_buf      content = HFSB_INIT;
    bool          same;
    content.alloc = checker->alloc;
    same =
        hfsb_file_read(checker->place, hfsb_buf_str(&check->path),
                       HFSBI_CHECK_PROGRAM, &content, NULL, NULL) == HFSB_OK;
    hfsbi_check_digest("python3", hfsb_buf_str(&content), digest);
    hfsb_buf_free(&content);
    return same && memcmp(digest, check->digest, sizeof digest) == 0;
}

HFSBI_FN void hfsbi_python_late(hfsbi_checker *checker, hfsb_str path,
                                hfsb_buf *out) {
    hfsbi_loop     *loop = hfsbi_py_loop(checker, false);
    hfsbi_py_check *check, *next;
    if (!loop || (checker->late_by_path && !path.len)) return;
    hfsbi_loop_lock(loop);
    if (checker->python.proc) hfsbi_loop_turn(loop, 0);
    for (check = checker->python.checks; check; check = next) {
        next = check->next;
        if (!hfsbi_py_belongs(checker, check, path)) continue;
        if (hfsbi_py_is_current(checker, check))
            hfsbi_check_put(out, hfsb_buf_str(&check->path),
                            hfsb_buf_str(&check->lines));
        hfsbi_py_free(checker, check);
    }
    hfsbi_loop_unlock(loop);
}

HFSBI_FN void hfsbi_python_close(hfsbi_checker *checker) {
    hfsbi_python *py = &checker->python;
    hfsbi_py_stop(checker);
    while (py->checks) hfsbi_py_free(checker, py->checks);
    hfsbi_loop_close(py->loop);
}
