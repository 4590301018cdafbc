"""The Python module of examples/python; for bindings.sh.

    bindings.py FILE    the checks; FILE gets many calls and their replies, one
                        a line, for bindings.mjs to repeat in WebAssembly
"""
import json
import random
import sys
import threading

import hfsb

checks = failed = 0


def same(what, is_, want):
    global checks, failed
    checks += 1
    if is_ != want:
        failed += 1
        print(f"FAIL  {what}\n  is   {is_!r}\n  want {want!r}")


def refused(what, status, text, fn, *args, **named):
    try:
        same(what, fn(*args, **named), "an error")
    except hfsb.Error as e:
        same(what, (e.status, text in str(e)), (status, True))
        return e


def edits():
    r = hfsb.edit("a = 1\nb = 2\n", old_str="a = 1", new_str="a = \u20ac\U0001f600",
                  path="x.py")
    same("edit", r["content"], "a = \u20ac\U0001f600\nb = 2\n")
    same("edit: diff", r["diff"].split("\n")[0], "--- a/x.py")
    same("edit: lines", (r["count"], r["lines"], r["note"]), (1, [[1, 1]], ""))
    try:
        hfsb.edit("a", old="a", new="b")
        assert False, "an unknown keyword was taken"
    except TypeError:
        pass
    try:
        hfsb.edit(b"a", old_str="a", new_str="b")
        assert False, "bytes were taken"
    except TypeError as e:
        same("bytes", "not bytes: decode" in str(e), True)
    r = hfsb.edit("x\r\ny\r\n", old_str="x\ny", new_str="x\nz")
    same("edit keeps CRLF", r["content"], "x\r\nz\r\n")
    r = hfsb.edit("a\nb\n", [{"old_str": "a", "new_str": "A"},
                             {"old_str": "b", "new_str": "B"}])
    same("two edits", (r["content"], r["count"]), ("A\nB\n", 2))
    r = hfsb.edit("a\x00b\n", old_str="b", new_str="\x00")
    same("NUL is a character", r["content"], "a\x00\x00\n")
    refused("not found", "NOT_FOUND", "old_str not found", hfsb.edit, "x\n",
            old_str="no such line", new_str="z")
    refused("ambiguous", "AMBIGUOUS", "2", hfsb.edit, "a\na\n", old_str="a",
            new_str="b")
    e = refused("an argument is missing", "ARG", "new_str", hfsb.edit, "a\n",
                old_str="a")
    same("its key", e and e.key, "new_str")
    refused("no edits", "ARG", "edits is empty", hfsb.edit, "a\n", [])
    refused("next to edits", "ARG", "each of the edits", hfsb.edit, "a\na\n",
            [{"old_str": "a", "new_str": "b"}], replace_all=True)
    refused("half a character", "SYNTAX", "", hfsb.edit, "a\n", old_str="a",
            new_str="\ud800")
    refused("an unknown call", "ARG", "no such call", hfsb.call, "sing")


PATCH = """*** Begin Patch
*** Update File: a.txt
@@
-one
+two
*** Add File: new/b.txt
+b
*** Delete File: c.txt
*** End Patch
"""


def patches():
    files = {"a.txt": "one\n", "c.txt": "c\n"}
    changes = hfsb.patch(PATCH, files)
    same("patch", [(c["kind"], c["path"], c.get("content")) for c in changes],
         [("update", "a.txt", "two\n"), ("add", "new/b.txt", "b\n"),
          ("delete", "c.txt", None)])
    asked = []
    hfsb.patch(PATCH, lambda path: (asked.append(path), files.get(path))[1])
    same("patch asks for files once", sorted(asked),
         ["a.txt", "c.txt", "new/b.txt"])
    refused("patch: no file", "IO", "a.txt", hfsb.patch, PATCH, {})
    refused("patch: no text", "ARG", '"a.txt" must be a text', hfsb.patch,
            PATCH, {"a.txt": 5, "c.txt": "c\n"})
    refused("patch: a hunk", "NOT_FOUND", "", hfsb.patch, PATCH,
            {"a.txt": "three\n"})
    e = refused("not a patch", "SYNTAX", "", hfsb.patch,
                "*** Begin Patch\n*** Sing: a\n*** End Patch\n", {})
    same("its line", e and e.line, 2)


def texts():
    same("strip", hfsb.strip("\x1b[1mbold\x1b[0m\r\n10%\r20%\n"), "bold\n20%\n")
    same("truncate", hfsb.truncate("\u20ac" * 100, 10, 4),
         "\u20ac" * 4 + "\n\n... (90 of 100 chars omitted, showing first 4 + "
         "last 6) ...\n" + "\u20ac" * 6)
    same("truncate: short", hfsb.truncate("abc", 10), "abc")
    refused("truncate: negative", "ARG", "negative", hfsb.truncate, "a", -1)
    refused("truncate: to nothing", "ARG", "at least 1", hfsb.truncate, "a", 0)
    refused("truncate: no head", "ARG", "at least 1", hfsb.truncate, "a", 1, 0)
    same("truncate: null", hfsb.call("truncate", text="abc", chars=None),
         {"text": "abc", "truncated": False})
    refused("truncate: head", "ARG", "", hfsb.truncate, "a", 1, 2)
    same("version", hfsb.version().count("."), 2)


def threads():
    bad = []

    def work(n):
        for i in range(200):
            try:
                r = hfsb.edit(f"n{n}\n", old_str=f"n{n}", new_str=f"m{i}")
            except Exception as e:
                bad.append(e)
                return
            if r["content"] != f"m{i}\n":
                bad.append(r)
    all_ = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for t in all_:
        t.start()
    for t in all_:
        t.join()
    same("four threads", bad, [])


def random_calls(rng):
    """Calls of every kind, many of them refused: (name, arguments)"""
    words = ["a", "b = 1", "    if x:", "\treturn y", "", "\u00e4\u20ac", "foo(bar)",
             "end", "\U0001f600", "x" * 50]
    def text(n):
        return "".join(rng.choice(words) + rng.choice(["\n", "\n", "\r\n"])
                       for _ in range(n))
    content = text(rng.randrange(1, 30))
    lines = content.splitlines(keepends=True)
    at = rng.randrange(len(lines))
    old = "".join(lines[at:at + rng.randrange(1, 4)])
    if rng.random() < 0.4:
        old = old.replace("    ", "\t").replace(" = ", "=").replace("e", "3")
    yield "edit", {"content": content, "old_str": old, "new_str": text(2),
                   "replace_all": rng.random() < 0.3, "path": "f.py"}
    body = "".join("-" + x + "\n" for x in old.splitlines())
    yield "patch", {"patch": "*** Begin Patch\n*** Update File: f\n@@\n" + body
                    + "+new\n*** End Patch\n", "files": {"f": content}}
    yield "truncate", {"text": content, "chars": rng.randrange(1, 200)}
    yield "strip", {"text": content.replace("e", "\x1b[31m").replace("b", "\b")}


def record(path):
    rng = random.Random(7)
    with open(path, "w", encoding="utf-8") as f:
        for _ in range(500):
            for name, args in random_calls(rng):
                try:
                    reply = hfsb.call(name, **args)
                except hfsb.Error as e:
                    reply = {"status": e.status, "message": e.message}
                f.write(json.dumps([name, args, reply]) + "\n")


edits()
patches()
texts()
threads()
record(sys.argv[1])
print(f"python: {checks} checks, {failed} failed")
sys.exit(failed != 0)
