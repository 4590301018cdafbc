/* check_python.c - what python3 says of a Python file. Depends on: base, proc,
   check. */
#include "check.h"

/* The program that python3 runs. The file comes on standard input. It prints
   a line for each thing to tell, and END when it got through. From 3.8 on.

   Looking at a callable means importing its module, which may do anything:
   print, exit, fork, hang, close descriptors. So what is printed goes to a
   descriptor of our own, at once, and 0, 1 and 2 are /dev/null before the
   first import; the functions needed later are taken before as well; a copy
   of this process does not go on; and at the end all of its group is killed,
   so that nothing which was started stays, and no thread or exit handler is
   waited for. Only modules of names that are called with keywords are
   imported.

   No module that lies inside the fence is imported (see check_program.c).
   Python starts with -S, without the module `site`, which would run the .pth
   files and the sitecustomize of every package directory. The helper adds
   those directories by itself, for the imports alone, and without .pth files.
   Each file is looked at again when it is found: a package directory outside
   the fence may hold a symlink into it, or the fence itself. */
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
    /* The tree, or None when the file is not Python. Only compile() sees a
       `return` outside of a function and the like. */
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
    /* Where each name comes from: (module, name in it), or None for what is
       imported from the file's own package, which is not looked at. */
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
    /* Finds no module whose file lies inside the fence. */
    "class Finder(PathFinder):\n"
    "    @classmethod\n"
    "    def find_spec(cls, name, path=None, target=None):\n"
    "        spec = super().find_spec(name, path, target)\n"
    "        return None if spec and fenced(spec.origin or '') else spec\n"
    "\n"
    /* What `site` would do, but for .pth files. Below 3.14 it is `site` that
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
    /* The names of the parameters; None when any keyword may be right. */
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

/* Whatever else a python3 prints is not for us. */
static bool hfsbi_python_tells(hfsb_str line) {
    return hfsb_str_starts(line, HFSB_LIT("Python syntax error at line ")) ||
           hfsb_str_starts(line, HFSB_LIT("Invalid kwarg: "));
}

HFSBI_FN bool hfsbi_check_python(const hfsbi_checker  *checker,
                                 const hfsb_call_opts *how, hfsb_str content,
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
    /* However it ended, what was told before is true. */
    (void)hfsbi_check_program(checker, &fence, how, argv, content,
                              HFSB_PROC_STDOUT, &out);
    text = hfsb_buf_str(&out);
    while (!whole && hfsb_str_find_byte(text, '\n') != HFSB_NPOS &&
           hfsb_text_line(&text, &line, NULL)) {
        whole = hfsb_str_equal(line, HFSB_LIT(HFSBI_PYTHON_END));
        if (hfsbi_python_tells(line))
            kept = hfsbi_check_tell(lines, line) && kept;
    }
    hfsb_buf_free(&out);
    return whole && kept;
}
