#!/usr/bin/env python3
"""A client that speaks as the clients that exist already do, and its checks.

    reference_client.py URL [--token TOKEN] [--quick] [--compact]
    reference_client.py URL --silent SECONDS --timeout SECONDS

Sandbox (t_client.py) asks nothing else of a server than such a client does.
The checks hold what comes back against the texts that were promised; the
server must run on this machine, as this user.

--token    what the server asks for in X-Sandbox-Authorization; without it only
           Authorization is sent, as the oldest clients do
--quick    without the checks that take seconds
--compact  bodies as newer versions of httpx write them: no blanks, no \\u
--silent   only this: a command that prints nothing for so long, with that
           timeout; for a proxy in front of the server whose patience is less

Prints "N checks, N failed".
"""
import argparse
import json
import os
import re
import shutil
import sys
import tempfile
import threading
import time

from t_client import Sandbox, ToolResult


# ---- what came, beside what was promised ------------------------------------

class Checks:
    def __init__(self):
        self.count = self.failed = 0
        self.lock = threading.Lock()

    def ok(self, name, good, seen=""):
        with self.lock:
            self.count += 1
            if not good:
                self.failed += 1
                print(f"FAIL  {name}\n  is   {str(seen)[:600]}")
        return good

    def same(self, name, seen, want):
        return self.ok(name, seen == want,
                       f"{seen!r:.400}\n  want {want!r:.400}")

    def result(self, name, result, success, output="", error=""):
        self.same(name, (result.success, result.output, result.error),
                  (success, output, error))

    def refused(self, name, result, begins):
        """A failure whose known text is followed by advice."""
        self.ok(name, not result.success and result.output == "" and
                result.error.startswith(begins), result)

    def within(self, name, begin, low, high):
        took = time.time() - begin
        self.ok(f"{name}: took {took:.1f} s, not {low} to {high}",
                low <= took <= high, took)


class Suite:
    def __init__(self, options, top):
        self.options, self.top, self.check = options, top, Checks()

    def sandbox(self, **more):
        more.setdefault("token", self.options.token)
        more.setdefault("work_dir", self.top)
        return Sandbox(self.options.url, compact=self.options.compact, **more)

    def path(self, name):
        return os.path.join(self.top, name)

    def put(self, name, text, mode=0o644):
        data = text if isinstance(text, bytes) else text.encode()
        with open(self.path(name), "wb") as f:
            f.write(data)
        os.chmod(self.path(name), mode)
        return self.path(name)

    def get(self, name):
        with open(self.path(name), "rb") as f:
            return f.read()

    # ---- bash

    def commands(self):
        check, sb = self.check, self.sandbox()
        for name, command, want in [
                ("output", "echo hello", (True, "hello\n", "")),
                ("no output", "true", (True, "", "")),
                ("no newline", "printf x", (True, "x", "")),
                ("stdout, then stderr", "echo e >&2; echo o",
                 (True, "o\ne\n", "")),
                ("exit code", "echo out; exit 3", (False, "out\n",
                                                   "Exit code 3")),
                ("command not found", "exec 2>/dev/null; hfsb-no-such",
                 (False, "", "Exit code 127")),
                ("signal", "kill -9 $$", (False, "", "Exit code -9")),
                ("unicode", "printf 'gr\\303\\274\\303\\237 \\342\\202\\254 "
                 "\\360\\237\\230\\200\\n'", (True, "grüß € 😀\n", "")),
                ("unicode in the command", "printf %s 'ü€😀'",
                 (True, "ü€😀", "")),
                ("not UTF-8", "printf 'a\\377b\\n'", (True, "a\ufffdb\n",
                                                      "")),
                ("colours", "printf '\\033[1;31mred\\033[0m\\n'",
                 (True, "red\n", "")),
                ("progress bar", "printf '10%%\\r99%%\\n'", (True, "99%\n",
                                                             "")),
                ("no input", "cat", (True, "", "")),
                ("two lines", "echo a\necho b", (True, "a\nb\n", "")),
                ("quotes", "printf '%s' \"it's \\\"q\\\" \\\\ \"",
                 (True, "it's \"q\" \\ ", "")),
                ("work directory", "pwd", (True, self.top + "\n", "")),
                ("token in the environment",
                 "echo \"[${SANDBOX_API_TOKEN-unset}]\"",
                 (True, "[unset]\n", ""))]:
            result = sb.bash(command)
            check.result(f"bash: {name}", result, *want)
        check.result("bash: no such directory",
                     sb.bash("pwd", work_dir="/nonexistent/dir"), False, "",
                     "Working directory not found: /nonexistent/dir")
        check.same("to a model: nothing printed", str(sb.bash("true")),
                   "(no output)")
        check.same("to a model: failed", str(sb.bash("exit 2")),
                   "ERROR: Exit code 2")

    def long_command(self):
        sb = self.sandbox()
        fill = "x" * 200000
        self.check.result("bash: a command of 200 kB", sb.bash(
            f": {fill}\necho done"), True, "done\n")

    def left_running(self):
        begin, sb = time.time(), self.sandbox()
        result = sb.bash("sleep 60 & echo x $!", timeout=30)
        self.check.ok("bash: a child left running does not delay the reply",
                      result.success and
                      re.fullmatch(r"x \d+\n", result.output), result)
        self.check.within("a child left running", begin, 0, 10)
        pid = result.output.split()[-1:]
        if pid:
            self.check.result("bash: ... and lives on", sb.bash(
                f"kill -0 {pid[0]} && kill {pid[0]} && echo was"), True,
                "was\n")

    def truncation(self):
        check, sb = self.check, self.sandbox()
        whole = "".join(f"{i}\n" for i in range(1, 10001))
        result = sb.bash("seq 1 10000")
        spill = re.search(r"Full output saved to (\S+) ", result.output)
        saved = spill.group(1) if spill else "?"
        marker = (f"\n\n... ({len(whole) - 25000:,} of {len(whole):,} chars "
                  f"omitted, showing first 6,250 + last 18,750) ...\n"
                  f"Full output saved to {saved} — use the read tool with "
                  f"offset/limit to inspect specific sections.\n")
        check.result("bash: too much output", result, True,
                     whole[:6250] + marker + whole[-18750:])
        check.ok("bash: name of the spill",
                 re.search(r"/bash_output_[^/]*\.txt$", saved), saved)
        check.result("read: the omitted part of the spill",
                     sb.read(saved, offset=3000, limit=2), True,
                     "3000\t3000\n3001\t3001")
        euro = "€" * 25001
        result = sb.bash("i=0; while [ $i -lt 25001 ]; do printf €; "
                         "i=$((i+1)); done")
        check.ok("bash: characters are counted, not bytes",
                 result.output.startswith(
                     euro[:6250] + "\n\n... (1 of 25,001 chars omitted") and
                 result.output.endswith("\n" + euro[:18750]), result)
        check.result("bash: 25,000 characters are not too many", sb.bash(
            "head -c 25000 /dev/zero | tr '\\0' a"), True, "a" * 25000)

    def timeout(self):
        sb, begin = self.sandbox(), time.time()
        self.check.result("bash: timeout keeps what was printed", sb.bash(
            "echo partial; sleep 60; echo never", timeout=1), False,
            "partial\n", "Timeout after 1s")
        self.check.within("a timeout of 1 s", begin, 0.9, 20)

    def client_with_the_same_timeout(self):
        """The client gives up after 5 s without a byte: the server says
        something before."""
        begin = time.time()
        self.check.result("bash: a timeout of 5 s, a client that waits 5 s",
                          self.sandbox().bash("echo partial; sleep 60",
                                              timeout=5),
                          False, "partial\n", "Timeout after 5s")
        self.check.within("a timeout of 5 s", begin, 4.9, 25)

    def grace_with_the_same_timeout(self):
        begin = time.time()
        self.check.result(
            "bash: ... also for a command that ignores TERM",
            self.sandbox().bash("trap '' TERM; echo partial; sleep 60",
                                timeout=5),
            False, "partial\n", "Timeout after 5s")
        self.check.within("a timeout of 5 s and the grace", begin, 4.9, 30)

    def kill(self):
        check, sb, seen = self.check, self.sandbox(), {}
        check.result("kill: nothing runs", sb.kill_all(), True,
                     "Killed 0 process(es): []")
        mark = self.path("running")
        thread = threading.Thread(target=lambda: seen.update(
            result=sb.bash(f"echo begun; sleep 61 & echo $! > {mark}; wait")))
        thread.start()
        wait_for(lambda: os.path.exists(mark) and self.get("running"))
        begin, killed = time.time(), sb.kill_all()
        check.ok("kill: a running command", killed.success and re.fullmatch(
            r"Killed 1 process\(es\): \[\d+\]", killed.output), killed)
        thread.join(20)
        check.within("kill", begin, 0, 8)
        result = seen.get("result", ToolResult(True, "no reply came"))
        check.ok("kill: the command's own reply", not result.success and
                 result.output == "begun\n" and
                 result.error == "Exit code -15", result)
        check.ok("kill: its children are gone",
                 gone(int(self.get("running"))), self.get("running"))
        check.result("kill: the next command runs", sb.bash("echo on"), True,
                     "on\n")

    # ---- files

    def reading(self):
        check, sb = self.check, self.sandbox()
        self.put("lines", "one\ntwo\r\nthree")
        self.put("many", "".join(f"line {i}\n" for i in range(1, 3001)))
        self.put("empty", "")
        self.put("latin", b"a\xe4b\n")
        self.put("binary", b"\0\1\2")
        p = self.path
        check.result("read", sb.read(p("lines")), True,
                     "1\tone\n2\ttwo\n3\tthree")
        check.result("read: offset", sb.read(p("lines"), offset=2), True,
                     "2\ttwo\n3\tthree")
        check.result("read: limit", sb.read(p("lines"), limit=1), True,
                     "1\tone")
        check.result("read: past the end", sb.read(p("lines"), offset=9),
                     True, "")
        check.result("read: an empty file", sb.read(p("empty")), True, "")
        check.result("read: 2,000 lines by default", sb.read(p("many")), True,
                     "\n".join(f"{i}\tline {i}" for i in range(1, 2001)))
        check.result("read: relative to the work directory of the server",
                     sb.read("/nonexistent/file"), False, "",
                     "File not found: /nonexistent/file")
        check.result("read: a directory", sb.read(self.top), False, "",
                     f"Is a directory: {self.top}")
        result = sb.read(p("latin"))
        check.ok("read: not UTF-8", result.success and
                 result.output.startswith("1\ta\ufffdb"), result)
        result = sb.read(p("binary"))
        check.ok("read: binary", not result.success and result.error, result)

    def writing(self):
        check, sb, p = self.check, self.sandbox(), self.path
        text = "grüß €\r\nlast"
        check.result("write", sb.write(p("new/dir/file"), text), True,
                     f"Wrote {len(text.encode())} bytes to "
                     f"{p('new/dir/file')}")
        check.same("write: the bytes", self.get("new/dir/file"),
                   text.encode())
        check.result("write: again, its own file", sb.write(
            p("new/dir/file"), ""), True,
            f"Wrote 0 bytes to {p('new/dir/file')}")
        self.put("script", "#!/bin/sh\n", 0o755)
        check.result("write: not read", sb.write(p("script"), "x"), False, "",
                     f"File {p('script')} exists but has not been read this "
                     f"session. Read it first, or use sandbox_edit for "
                     f"targeted changes.")
        sb.read(p("script"))
        check.ok("write: once read", sb.write(p("script"), "y").success)
        check.same("write: mode is kept", oct(os.stat(p("script")).st_mode &
                                              0o777), oct(0o755))
        check.ok("write: onto a directory", not sb.call(
            "write", {"path": self.top, "content": ""}).success)
        big = "0123456789abcde\n" * 65536 * 2
        check.result("write: 2 MiB", sb.write(p("big"), big), True,
                     f"Wrote {len(big)} bytes to {p('big')}")
        check.ok("write: 2 MiB are there", self.get("big") == big.encode())
        warned = (f"Wrote 6 bytes to {p('bad.py')}\n\nValidation "
                  f"warnings:\n  ! Python syntax error at line 1: ")
        for _ in range(50):  # no reply waits for a python3 that has to start
            result = sb.write(p("bad.py"), "x = (\n")
            if not result.success or result.output.startswith(warned):
                break
            time.sleep(0.1)
        check.ok("write: warnings", result.output.startswith(warned), result)
        check.result("exists", sb.call("exists", {"path": p("big")}), True,
                     "true")
        check.result("exists: not", sb.call("exists", {"path": p("no")}),
                     True, "false")

    def editing(self):
        check, sb, p = self.check, self.sandbox(), self.path("edit.txt")
        self.put("edit.txt", "def f():\n    a = 1   \n    b = “x”\n"
                 "    a = 1\nend\n")
        check.result("edit: not read", sb.edit(p, "end", "END"), False, "",
                     f"File {p} has not been read this session. Read it "
                     f"first.")
        sb.read(p)
        check.result("edit: identical", sb.edit(p, "end", "end"), False, "",
                     "old_str and new_str are identical.")
        check.result("edit", sb.edit(p, "end", "END"), True,
                     f"Edited {p} (1 replacement)")
        check.refused("edit: not found", sb.edit(p, "zebra", "x"),
                      "old_str not found in file.")
        check.refused("edit: several", sb.edit(p, "a = 1", "a = 2"),
                      "old_str appears 2 times. Use replace_all=true or "
                      "provide more context.")
        check.result("edit: all", sb.edit(p, "a = 1", "a = 2",
                                          replace_all=True), True,
                     f"Edited {p} (2 replacements)")
        check.refused("edit: mode", sb.edit(p, "END", "e", mode="upside"),
                      "Unknown mode: upside")
        check.refused("edit: equal at the server", sb.call(
            "edit", {"path": p, "old_str": "END", "new_str": "END"}),
            "old_str and new_str must differ.")
        check.result("edit: after", sb.edit(p, "END", "\nmore",
                                            mode="append_after"), True,
                     f"Edited {p} (1 replacement)")
        check.result("edit: before", sb.edit(p, "END", "# ",
                                             mode="prepend_before"), True,
                     f"Edited {p} (1 replacement)")
        for name, old, new, note in [
                ("trailing blanks", "a = 2\n    b", "a = 3\n    b",
                 "(matched after trimming trailing whitespace)"),
                ("look-alikes", 'b = "x"', 'b = "y"',
                 "(matched after unicode normalization)")]:
            result = sb.edit(p, old, new)  # and the diff
            check.ok(f"edit: {name}", result.success and
                     result.output.startswith(
                         f"Edited {p} (1 replacement) {note}\n@@ -"), result)
        result = sb.edit(p, "# END\n  more", "# End\n  more")
        check.ok("edit: indentation", result.success and
                 result.output.startswith(
                     f"Edited {p} (1 replacement) (matched after trimming "
                     f"whitespace)"), result)
        check.same("edit: the bytes", self.get("edit.txt").decode(),
                   "def f():\n    a = 3\n    b = “y”\n    a = 2\n"
                   "# End\nmore\n")
        gone_file = self.path("gone")
        sb.read(gone_file)
        check.refused("edit: no file", sb.edit(gone_file, "a", "b"),
                      f"File not found: {gone_file}")

    # ---- the connection

    def thirty_threads(self):
        sb, n = self.sandbox(), 30
        wrong, begin = [], time.time()

        def one(i):
            path = self.path(f"thread-{i}")
            seen = [sb.write(path, f"number {i}\n").success,
                    sb.bash(f"sleep 0.5; cat {path}").output,
                    sb.edit(path, "number", "Number").success,
                    sb.read(path).output]
            if seen != [True, f"number {i}\n", True, f"1\tNumber {i}"]:
                wrong.append((i, seen))

        run_all([lambda i=i: one(i) for i in range(n)])
        self.check.same("30 threads: each got its own replies", wrong, [])
        self.check.within("30 threads", begin, 0.5, 12)

    def keep_alive(self):
        for plain in (False, True):
            sb = self.sandbox(plain=plain)
            for command in ("echo 1", "exit 1", "echo 3"):
                sb.bash(command)
            sb.read("/nonexistent/file")
            self.check.ok(f"keep-alive with {sb.transport.name}",
                          len(sb.ports) == 4 and len(set(sb.ports)) == 1,
                          sb.ports)

    def both_transports(self):
        for plain in (False, True):
            sb = self.sandbox(plain=plain)
            self.check.result(f"a call with {sb.transport.name}",
                              sb.bash("echo ü"), True, "ü\n")
        sb = self.sandbox()
        sb.compact = not sb.compact
        self.check.result("the body in the other way of writing JSON",
                          sb.bash("echo ü€😀"), True, "ü€😀\n")

    def health(self):
        reply = self.sandbox().wait_for_api(10)
        self.check.ok("health", json.loads(reply.body).get("status") == "ok",
                      reply.body)
        anyone = Sandbox(self.options.url).wait_for_api(10)
        self.check.same("health without a token", json.loads(anyone.body),
                        {"status": "ok"} if self.options.token else
                        json.loads(anyone.body))

    def bad_requests(self):
        check, sb = self.check, self.sandbox()

        def post(path, payload):
            reply = sb.transport.send("POST", path, payload, 10)
            return reply.status, json.loads(reply.body)

        status, body = post("bash", {"work_dir": "/"})
        check.ok("422: a missing key", status == 422 and
                 body["detail"][0]["loc"] == ["body", "command"] and
                 body["error"], body)
        check.ok("422: as the client tells it", sb.call("bash", {}).error)
        status, body = post("nothing", {})
        check.same("404", (status, body.get("detail")), (404, "Not Found"))
        reply = sb.transport.send("GET", "bash", None, 10)
        check.same("405", (reply.status, json.loads(reply.body)["detail"],
                           reply.fields.get("Allow")),
                   (405, "Method Not Allowed", "POST"))
        check.same("null is absent", post("bash", {
            "command": "echo n", "work_dir": None, "timeout": None})[1][
                "output"], "n\n")
        check.same("numbers as strings", post("bash", {
            "command": "echo s", "timeout": "30"})[1]["output"], "s\n")

    def tokens(self):
        if not self.options.token:
            return
        # without its own header the Hub's token, in Authorization, is looked at
        for name, token, detail in [
                ("none", None, "Invalid bearer token"),
                ("another", "x" + self.options.token, "Invalid bearer token")]:
            sb = self.sandbox(token=token)
            reply = sb.transport.send("POST", "bash", {"command": "true"}, 10)
            body = json.loads(reply.body)
            self.check.same(f"token: {name}", (reply.status, body["detail"]),
                            (401, detail))
            result = sb.bash("true")
            self.check.ok(f"token: {name}, as the client tells it",
                          not result.success and result.error, result)
        for name, hub_token, token, status in [
                ("in Authorization", self.options.token, None, 200),
                ("beside the Hub's", "hub", self.options.token, 200),
                ("in Authorization, another in its own header",
                 self.options.token, "x", 401)]:
            sb = Sandbox(self.options.url, token=token, hub_token=hub_token)
            reply = sb.transport.send("POST", "bash", {"command": "true"}, 10)
            self.check.same(f"token: {name}", reply.status, status)

    # ---- through a proxy

    def silent(self):
        seconds = self.options.silent
        sb = self.sandbox(work_dir="/")
        begin = time.time()
        self.check.result(f"{seconds} silent seconds through a proxy", sb.bash(
            f"sleep {seconds}; echo done", timeout=self.options.timeout),
            True, "done\n")
        self.check.within("the silent command", begin, seconds, seconds + 5)

    def run(self):
        if self.options.silent:
            return self.silent()
        self.health()
        slow = [self.timeout, self.left_running]
        if not self.options.quick:
            slow += [self.client_with_the_same_timeout,
                     self.grace_with_the_same_timeout]
        threads = start_all(slow)
        for part in (self.commands, self.long_command, self.truncation,
                     self.reading, self.writing, self.editing,
                     self.thirty_threads, self.keep_alive,
                     self.both_transports, self.bad_requests, self.tokens):
            part()
        for thread in threads:
            thread.join()
        self.kill()  # last: it ends whatever runs


def start_all(parts):
    threads = [threading.Thread(target=part) for part in parts]
    for thread in threads:
        thread.start()
    return threads


def run_all(parts):
    for thread in start_all(parts):
        thread.join()


def wait_for(done, seconds=10):
    end = time.time() + seconds
    while not done() and time.time() < end:
        time.sleep(0.02)


def gone(pid):
    """Ended, or at least a zombie that only waits to be collected."""
    try:
        with open(f"/proc/{pid}/stat", encoding="latin-1") as f:
            return f.read().rsplit(")", 1)[1].split()[0] in "ZX"
    except OSError:
        return True


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("url")
    parser.add_argument("--token")
    parser.add_argument("--silent", type=float)
    parser.add_argument("--timeout", type=float)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--compact", action="store_true")
    options = parser.parse_args()
    top = os.path.realpath(tempfile.mkdtemp(prefix="hfsb-client-"))
    suite = Suite(options, top)

    def crashed(args):  # an exception is a failed check, in any thread
        suite.check.ok(f"no exception: {args.exc_type.__name__}: "
                       f"{args.exc_value}", False, "see above")
        threading.__excepthook__(args)

    threading.excepthook = crashed
    try:
        suite.run()
    except Exception as error:
        suite.check.ok("no exception", False, repr(error))
        raise
    finally:
        shutil.rmtree(top, ignore_errors=True)
        print(f"{suite.check.count} checks, {suite.check.failed} failed")
    return suite.check.failed != 0


if __name__ == "__main__":
    sys.exit(main())
