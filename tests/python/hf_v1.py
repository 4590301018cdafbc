"""A client of the sandbox API of Hugging Face (/v1), written from its
description and as strict as the real ones: keys that a dataclass takes, status
codes, NDJSON cut at line feeds only, Content-Length equal to the bytes that
come, times. Nothing but the standard library; with httpx also through that,
since the real client reads its lines with it.

  hf_v1.py SERVER   starts SERVER (hfsb-server) itself, in both modes
"""
import dataclasses
import hashlib
import hmac
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

CHECKS = FAILED = 0


def check(what, ok, shown=""):
    global CHECKS, FAILED
    CHECKS += 1
    if not ok:
        FAILED += 1
        print("FAIL  %s %s" % (what, shown), flush=True)
    return ok


def same(what, is_, want):
    check(what, is_ == want, "\n  is   %r\n  want %r" % (is_, want))


@dataclasses.dataclass
class FileEntry:
    """As in the real client: one key more or less is a TypeError."""
    name: str
    path: str
    type: str
    size: int
    mtime_ms: int
    mode: str


class Api(Exception):
    def __init__(self, status, text):
        Exception.__init__(self, "Sandbox API error (%d): %s" % (status, text))
        self.status = status


# ---- HTTP by hand: what is on the wire is what is checked ----

class Reply:
    def __init__(self, sock, method):
        self.sock = sock
        self.rest = b""
        head = self.until(b"\r\n\r\n")[:-4].decode("latin-1").split("\r\n")
        m = re.fullmatch(r"HTTP/1\.1 (\d{3}) ?(.*)", head[0])
        assert m, head[0]
        self.status = int(m.group(1))
        self.fields = {}
        for line in head[1:]:
            name, _, value = line.partition(":")
            assert name == name.strip() and name, line
            self.fields.setdefault(name.lower(), value.strip())
        self.chunked = self.fields.get("transfer-encoding") == "chunked"
        assert not (self.chunked and "content-length" in self.fields)
        self.left = int(self.fields.get("content-length", 0))
        self.bodiless = method == "HEAD"

    def more(self):
        got = self.sock.recv(65536)
        if not got:
            raise EOFError("the server closed the connection")
        self.rest += got

    def until(self, mark):
        while mark not in self.rest:
            self.more()
        end = self.rest.index(mark) + len(mark)
        got, self.rest = self.rest[:end], self.rest[end:]
        return got

    def exactly(self, n):
        while len(self.rest) < n:
            self.more()
        got, self.rest = self.rest[:n], self.rest[n:]
        return got

    def chunks(self):
        while True:
            size = int(self.until(b"\r\n")[:-2], 16)
            data = self.exactly(size)
            assert self.exactly(2) == b"\r\n"
            if not size:
                return
            yield data

    def body(self):
        if self.bodiless:
            return b""
        if self.chunked:
            return b"".join(self.chunks())
        return self.exactly(self.left)


class Box:
    """A sandbox: base URL, token, and for host mode its prefix."""

    def __init__(self, port, token, prefix="/v1"):
        self.port, self.token, self.prefix = port, token, prefix

    def open(self, method, path, query=None, body=None, js=None, token=True,
             fields=None):
        target = path if path.startswith("/health") else self.prefix + path
        if query:
            target += "?" + urllib.parse.urlencode(query)
        head = {"Host": "6543--49983.hf.jobs", "Accept": "*/*",
                "Accept-Encoding": "gzip, deflate",
                "Connection": "keep-alive",
                "User-Agent": "python-httpx/0.28.1",
                "Authorization": "Bearer hf_secret"}
        if token:
            head["X-Sandbox-Token"] = token if token is not True \
                else self.token
        if js is not None:
            body = json.dumps(js).encode()
            head["Content-Type"] = "application/json"
        if body is not None:
            head["Content-Length"] = str(len(body))
        head.update(fields or {})
        sock = socket.create_connection(("127.0.0.1", self.port), 10)
        sock.settimeout(60)
        text = "%s %s HTTP/1.1\r\n" % (method, target)
        text += "".join("%s: %s\r\n" % f for f in head.items()) + "\r\n"
        sock.sendall(text.encode() + (body or b""))
        return Reply(sock, method)

    def raw(self, method, path, query=None, **more):
        reply = self.open(method, path, query, **more)
        body = reply.body()
        check("%s %s: nothing follows the body" % (method, path),
              reply.rest == b"", reply.rest[:80])
        reply.sock.close()
        if reply.status >= 400:
            check("%s %s: type of an error" % (method, path),
                  reply.fields.get("content-type") == "application/json")
            error = json.loads(body)
            check("%s %s: an error has one key" % (method, path),
                  list(error) == ["error"] and
                  isinstance(error["error"], str), body)
            raise Api(reply.status, error["error"])
        return reply, body

    def call(self, method, path, query=None, **more):
        reply, body = self.raw(method, path, query, **more)
        same("%s %s: 200" % (method, path), reply.status, 200)
        same("%s %s: type" % (method, path), reply.fields.get("content-type"),
             "application/json")
        return json.loads(body)

    def fails(self, status, method, path, query=None, **more):
        try:
            self.raw(method, path, query, **more)
        except Api as e:
            same("%s %s %s" % (method, path, query), e.status, status)
            return
        check("%s %s %s is refused" % (method, path, query), False)

    # what the real client does

    def events(self, cmd, **more):
        more = {k: v for k, v in more.items() if v is not None}
        reply = self.open("POST", "/exec", js=dict(more, cmd=cmd))
        if reply.status >= 400:
            raise Api(reply.status, json.loads(reply.body())["error"])
        same("type of a stream", reply.fields.get("content-type"),
             "application/x-ndjson")
        check("a stream is chunked", reply.chunked)
        rest = b""
        for data in reply.chunks():
            rest += data
            while b"\n" in rest:
                line, rest = rest.split(b"\n", 1)
                text = line.decode("utf-8")  # strict: no half characters
                check("one line", text.strip() == text and
                      len(text.splitlines()) == 1, repr(text[:100]))
                yield json.loads(text)
        check("a stream ends with a line", rest == b"", rest[:100])
        reply.sock.close()

    def run(self, cmd, **more):
        out, err, exit_, n = [], [], None, 0
        for e in self.events(cmd, **more):
            check("nothing follows the exit", exit_ is None, e)
            if n == 0:
                check("the start comes first", e["event"] == "start" and
                      isinstance(e["pid"], int), e)
            n += 1
            if e["event"] == "stdout":
                out.append(e["data"])
            elif e["event"] == "stderr":
                err.append(e["data"])
            elif e["event"] == "exit":
                exit_ = e
        if exit_ is None:
            raise AssertionError("connection lost while running command")
        check("keys of the exit", {"exit_code", "signal", "timed_out",
                                   "duration_ms"} <= set(exit_), exit_)
        return "".join(out), "".join(err), exit_

    def stat(self, path):
        return FileEntry(**self.call("GET", "/files/stat", {"path": path}))

    def exists(self, path):
        try:
            self.stat(path)
            return True
        except Api as e:
            if e.status == 404:
                return False
            raise

    def write(self, path, data, part=1 << 20, workers=8):
        """One PUT, or ranges in any order and in parallel."""
        if len(data) <= 2 << 20:
            r = self.call("PUT", "/files/write", {"path": path}, body=data)
            same("size of a write", r["size"], len(data))
            return r["path"]
        offsets = list(range(0, len(data), part))[::-1]
        lock = threading.Lock()

        def work():
            while True:
                with lock:
                    if not offsets:
                        return
                    at = offsets.pop()
                piece = data[at:at + part]
                query = {"path": path, "offset": at}
                if at + part >= len(data):
                    query["truncate_to"] = len(data)
                r = self.call("PUT", "/files/write", query, body=piece)
                same("size of a range", r["size"], len(piece))
        threads = [threading.Thread(target=work) for _ in range(workers)]
        [t.start() for t in threads]
        [t.join() for t in threads]
        return None

    def read(self, path, part=1 << 20):
        size = self.stat(path).size
        got = b""
        while True:
            query = {"path": path, "offset": len(got),
                     "length": min(part, max(size - len(got), 0))}
            reply, body = self.raw("GET", "/files/read", query)
            same("type of a file", reply.fields.get("content-type"),
                 "application/octet-stream")
            same("Content-Length", int(reply.fields["content-length"]),
                 query["length"])
            got += body
            if len(got) >= size:
                return got


# ---- the server ----

class Server:
    def __init__(self, program, folder, token, **env):
        clean = {k: v for k, v in os.environ.items()
                 if not k.startswith("SBX_")}
        clean.update(SBX_TOKEN=token, SBX_PORT="0", **env)
        clean.pop("SANDBOX_API_TOKEN", None)
        self.process = subprocess.Popen(
            [program, "--host", "127.0.0.1", "--port", "0", "--work-dir",
             folder, "--api", "hf"], env=clean, stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE, text=True)
        self.log, self.port = [], None
        for line in self.process.stderr:
            self.log.append(line)
            m = re.search(r"hf on port (\d+)", line)
            if m:
                self.port = int(m.group(1))
                break
        assert self.port, self.log
        threading.Thread(target=self.process.stderr.read,
                         daemon=True).start()

    def end(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        return self.process.wait(20)


def alive(pattern):
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/cmdline" % name, "rb") as f:
                    if pattern.encode() in f.read():
                        return True
            except OSError:
                pass
    return False


def comes(pattern, seconds=30):
    end = time.time() + seconds
    while not alive(pattern) and time.time() < end:
        time.sleep(0.05)
    return alive(pattern)


def gone(pattern, seconds=30):
    end = time.time() + seconds
    while alive(pattern) and time.time() < end:
        time.sleep(0.05)
    return not alive(pattern)


# ---- what is checked in each mode ----

def health(box, mode):
    public = box.call("GET", "/health", token=None)
    same("public health", public, {"status": "ok", "protocol": 3})
    full = box.call("GET", "/health")
    same("mode", full["mode"], mode)
    check("keys of health", {"version", "uptime_ms", "sandboxes", "auth",
                             "landlock"} <= set(full), full)


def tokens(box):
    for method, path in (("POST", "/exec"), ("GET", "/processes"),
                         ("GET", "/files/list"), ("PUT", "/files/write"),
                         ("GET", "/proxy/1/")):
        for token in (None, "x", box.token.upper() + "1"):
            box.fails(403, method, path, token=token)
    big = b"x" * (3 << 20)
    box.fails(403, "PUT", "/files/write", {"path": "x"}, body=big, token="x")


def commands(box):
    out, err, e = box.run("echo hi; echo no >&2; exit 3")
    same("output", (out, err, e["exit_code"], e["signal"], e["timed_out"]),
         ("hi\n", "no\n", 3, None, False))
    same("array", box.run(["printf", "%s|", "a b", "$X"])[0], "a b|$X|")
    same("login shell", box.run(["/bin/sh", "-lc", "echo ok"],
                                shell=False)[0], "ok\n")
    same("stdin", box.run("cat", stdin="é\n☃")[0], "é\n☃")
    same("no stdin", box.run("cat; echo end")[0], "end\n")
    same("env", box.run("echo $A$B$C", env={"A": "x", "B": 5, "C": True})[0],
         "x5true\n")
    same("killed", box.run("kill -9 $$")[2]["signal"], 9)
    same("killed", box.run("kill -9 $$")[2]["exit_code"], None)
    same("token", box.run("echo ${SBX_TOKEN-none}")[0], "none\n")
    same("many", sum(box.run("printf hello")[0] == "hello"
                     for _ in range(40)), 40)
    text = "a\x85b\u2028c\u2029d\x0b\x0c\x1c\x1d\x1ee☃😀\r\n\t\"\\\x7f"
    same("separators", box.run("cat", stdin=text)[0], text)
    text = "☃" * 200000
    same("no half characters", box.run("cat", stdin=text)[0], text)
    same("invalid bytes", box.run(r"printf 'a\377b\342\202'")[0],
         "a\ufffdb\ufffd")
    began = time.time()
    same("grandchildren", box.run("sleep 60 & echo hi")[0], "hi\n")
    check("does not wait for them", time.time() - began < 15)
    same("long", box.run("printf %s " + "y" * 300000 + " | wc -c")[0].strip(),
         "300000")
    same("big", len(box.run("head -c 5000000 /dev/zero | tr '\\0' x")[0]),
         5000000)
    for js in ({"cmd": ["/no/such"]}, {"cmd": []}, {}, {"cmd": 5},
               {"cmd": "x", "shell": False}, {"cmd": ["x"], "shell": True},
               {"cmd": "ls", "cwd": "/no/such"}):
        box.fails(400, "POST", "/exec", js=js)
    for body in (b"null", b"[]", b"{", b""):
        box.fails(400, "POST", "/exec", body=body)


def times(box):
    nap = "61.%d" % os.getpid()
    for seconds in (1, 1, 1, 4, 16):  # a busy machine adds to each
        began = time.time()
        out, _, e = box.run("echo early; setsid sleep %s & sleep %s" %
                            (nap, nap), timeout=seconds)
        took = time.time() - began - seconds
        same("timeout", (e["exit_code"], e["timed_out"]), (None, True))
        if took < 5 and out:
            break
    same("what was printed", out, "early\n")
    check("exit within 5 s of the kill", -0.1 < took < 5, took)
    check("setsid does not escape", gone(nap, 20))
    for _ in range(6):
        began = time.time()
        e = box.run("trap '' TERM; while :; do sleep 1; done", timeout=0.5)[2]
        took = time.time() - began
        if took < 5.5:
            break
    check("not even by ignoring it", took < 5.5 and e["timed_out"], e)
    stream = box.open("POST", "/exec", js={"cmd": "sleep " + nap})
    next(stream.chunks())
    check("it runs", comes(nap))
    stream.sock.close()
    check("a client that goes ends it", gone(nap, 15))
    began = time.time()
    pings = [e for e in box.events("sleep 17") if e["event"] == "ping"]
    check("a ping after 15 s", len(pings) == 1, pings)


def slow_reader(box, server):
    def memory():
        best = 0
        for pid in [server.process.pid] + [
                int(p) for p in os.listdir("/proc") if p.isdigit()]:
            try:
                with open("/proc/%d/status" % pid) as f:
                    text = f.read()
            except OSError:
                continue
            if re.search(r"^Name:\s+hfsb-server$", text, re.M) and (
                    pid == server.process.pid or re.search(
                        r"^PPid:\s+%d$" % server.process.pid, text, re.M)):
                best += int(re.search(r"VmRSS:\s+(\d+)", text).group(1))
        return best
    before = memory()
    stream = box.open("POST", "/exec", js={"cmd": "yes 01234567890123456789"})
    check("it runs", comes("yes\00001234567890123456789"))
    time.sleep(2.5)
    after = memory()
    check("a slow reader is bounded", after - before < 8192,
          (before, after))
    stream.sock.close()
    check("and its command ends", gone("yes\00001234567890123456789", 15))


def processes(box):
    nap = "62.%d" % os.getpid()
    same("none", box.call("GET", "/processes"), [])
    p = box.call("POST", "/processes", js={"cmd": "sleep " + nap, "tag": "t"})
    same("keys", sorted(p), ["cmd", "id", "pid", "tag"])
    q = box.call("POST", "/exec", js={"cmd": ["sleep", nap],
                                      "background": True})
    check("keys", isinstance(q["pid"], int) and isinstance(q["id"], str) and
          q["tag"] is None, q)
    both = box.call("GET", "/processes")
    same("in order", [e["id"] for e in both], [p["id"], q["id"]])
    for e in both:
        same("keys of a process", sorted(e),
             ["cmd", "exit_code", "id", "pid", "running", "started_at_ms",
              "tag"])
        check("it runs", e["running"] is True and e["exit_code"] is None, e)
    same("verbatim", [e["cmd"] for e in both],
         ["sleep " + nap, ["sleep", nap]])
    check("they run", comes(nap))
    check("killed by id", box.call("DELETE", "/processes/" + p["id"])["killed"]
          is True)
    check("killed by pid",
          box.call("DELETE", "/processes/%d" % q["pid"])["killed"] is True)
    check("again", box.call("DELETE", "/processes/" + p["id"])["killed"]
          is False)
    box.fails(400, "DELETE", "/processes/what")
    same("forgotten", box.call("GET", "/processes"), [])
    check("ended", gone(nap))
    box.call("POST", "/processes", js={"cmd": "exit 4"})
    end = time.time() + 10
    while time.time() < end:
        e = box.call("GET", "/processes")[0]
        if not e["running"]:
            break
        time.sleep(0.05)
    same("its exit", (e["running"], e["exit_code"]), (False, 4))


def files(box):
    name = "dir/a b+c%&é?.txt"
    box.write(name, b"one\0two")
    same("read", box.read(name), b"one\0two")
    e = box.stat(name)
    same("entry", (e.name, e.path, e.type, e.size),
         ("a b+c%&é?.txt", name, "file", 7))
    check("mtime", abs(e.mtime_ms - time.time() * 1000) < 60000)
    data = os.urandom(5 << 20) + b"tail"
    box.write("big", b"x" * (6 << 20))
    box.write("big", data)
    same("ranges", box.stat("big").size, len(data))
    check("ranges", box.read("big") == data)
    got = box.raw("GET", "/files/read", {"path": "big"})[1]
    check("whole", got == data)
    box.call("PUT", "/files/write", {"path": "run", "mode": "755"},
             body=b"#!/bin/sh\necho ran\n")
    same("mode", box.stat("run").mode, "755")
    same("the same base as commands", box.run("./run")[0], "ran\n")
    same("past the end", box.raw("GET", "/files/read", {
        "path": "run", "offset": 100})[1], b"")
    box.call("POST", "/files/mkdir", {"path": "d/e/f"}, body=b"")
    box.run("cd d; ln -s nowhere link; mkfifo pipe; printf x > .h")
    r = box.call("GET", "/files/list", {"path": "d"})
    same("list", [(FileEntry(**e).name, e["type"]) for e in r["entries"]],
         [(".h", "file"), ("e", "dir"), ("link", "symlink"),
          ("pipe", "file")])
    same("done", (r["truncated"], r["next"]), (False, None))
    r = box.call("GET", "/files/list", {"path": "d", "limit": 3})
    same("page", (len(r["entries"]), r["next"]), (3, "link"))
    r = box.call("GET", "/files/list", {"path": "d", "limit": 3,
                                        "after": "link"})
    same("last page", ([e["name"] for e in r["entries"]], r["next"]),
         (["pipe"], None))
    check("exists", box.exists("d/link") and not box.exists("none") and
          not box.exists("run/below"))
    began = time.time()
    box.fails(400, "GET", "/files/read", {"path": "d/pipe"})
    check("a FIFO does not hang", time.time() - began < 15)
    box.fails(409, "GET", "/files/read", {"path": "d"})
    box.fails(404, "GET", "/files/read", {"path": "none"})
    box.fails(400, "GET", "/files/read")
    box.fails(400, "GET", "/files/list", {"path": "run"})
    box.fails(404, "GET", "/files/list", {"path": "none"})
    box.fails(400, "DELETE", "/files/delete", {"path": "d"})
    box.fails(400, "DELETE", "/files/delete", {"path": "d",
                                               "recursive": "false"})
    same("deleted", box.call("DELETE", "/files/delete", {"path": "d/link"}),
         {"deleted": "d/link"})
    box.call("DELETE", "/files/delete", {"path": "d", "recursive": "1"})
    box.fails(404, "DELETE", "/files/delete", {"path": "d"})


class Inner(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        body = json.dumps({"path": self.path,
                           "fields": dict(self.headers)}).encode()
        n = int(self.headers.get("Content-Length") or 0)
        body += self.rfile.read(n)
        self.send_response(200)
        self.send_header("Content-Type", "text/inner")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    do_POST = do_PUT = do_DELETE = do_PATCH = do_GET

    def log_message(self, *args):
        pass


def proxy(box, port):
    reply, body = box.raw("GET", "/proxy/%d/a%%20b" % port, {"q": "x y"})
    seen = json.loads(body)
    same("path", seen["path"], "/a%20b?q=x+y")
    same("type", reply.fields.get("content-type"), "text/inner")
    names = {n.lower() for n in seen["fields"]}
    check("no tokens", not names & {"authorization", "x-sandbox-token"}, names)
    same("bare", json.loads(box.raw("GET", "/proxy/%d" % port)[1])["path"],
         "/")
    data = os.urandom(300000)
    check("body", box.raw("POST", "/proxy/%d/p" % port,
                          body=data)[1].endswith(data))
    box.fails(502, "GET", "/proxy/1/")
    box.fails(404, "GET", "/proxy/99999/")
    first = box.open("GET", "/proxy/%d/one" % port)
    first.body()
    if first.fields.get("connection") != "close":
        target = "%s/proxy/%d/two" % (box.prefix, port)
        first.sock.sendall(("GET %s HTTP/1.1\r\nHost: x\r\n\r\n" %
                            target).encode())
        same("the second request is checked", Reply(first.sock, "GET").status,
             403)
    first.sock.close()


def hidden(box, server, token):
    """No process of the server shows the token."""
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open("/proc/%s/environ" % name, "rb") as f:
                text = f.read()
        except OSError:
            continue
        if int(name) != os.getpid():
            check("environ of %s" % name, token.encode() not in text)
    same("nor to commands", box.run(
        "cat /proc/[0-9]*/environ 2>/dev/null | grep -ac %s" % token[:20])[0]
        .strip(), "0")


def by_httpx(box):
    try:
        import httpx
    except ImportError:
        print("skipped: httpx is not installed")
        return
    client = httpx.Client(base_url="http://127.0.0.1:%d" % box.port,
                          headers={"X-Sandbox-Token": box.token})
    text = "a\x85b\u2028c\u2029d\ne"
    for _ in range(3):  # on one connection
        with client.stream("POST", box.prefix + "/exec",
                           json={"cmd": "cat", "stdin": text}) as r:
            events = [json.loads(line) for line in r.iter_lines() if line]
        same("httpx " + httpx.__version__,
             "".join(e["data"] for e in events if e["event"] == "stdout"),
             text)
    r = client.put(box.prefix + "/files/write", params={"path": "no/such/x",
                                                        "mkdir": "0"},
                   content=b"x" * (4 << 20))
    same("a refused body", r.status_code, 400)
    same("and on", client.get(box.prefix + "/processes").status_code, 200)
    client.close()


# ---- the modes ----

def dedicated(program, inner):
    nonce = "0123456789abcdef0123456789abcdef"
    token = hmac.new(b"hf_test", ("hf-sandbox:" + nonce).encode(),
                     hashlib.sha256).hexdigest()
    same("the vector", token[:16], "a7363b49bea4acc1")
    with tempfile.TemporaryDirectory() as folder:
        server = Server(program, folder, token)
        try:
            box = Box(server.port, token)
            health(box, "dedicated")
            tokens(box)
            commands(box)
            processes(box)
            files(box)
            proxy(box, inner)
            hidden(box, server, token)
            by_httpx(box)
            slow_reader(box, server)
            times(box)
            box.fails(404, "POST", "/sandboxes", js={})
            box.fails(404, "GET", "/none")
        finally:
            same("exit status", server.end(), 0)


def idle(program):
    with tempfile.TemporaryDirectory() as folder:
        server = Server(program, folder, "t" * 64, SBX_IDLE_TIMEOUT="2")
        box = Box(server.port, "t" * 64)
        same("longer than the timeout", box.run("sleep 3; echo on")[0],
             "on\n")
        try:
            same("idle: exit status", server.process.wait(30), 0)
        except subprocess.TimeoutExpired:
            check("an idle server stops", False)
            server.end()


def own_client(program, box):
    """hfsb, beside the server, through the same routes: what a command in the
    background prints can be read."""
    hfsb = os.path.join(os.path.dirname(program), "hfsb")
    if not os.access(hfsb, os.X_OK):
        print("skipped: no hfsb beside the server")
        return

    def tool(name, **args):
        out = subprocess.run(
            [hfsb, "tool", name, "--on", "v1+http://127.0.0.1:%d%s" %
             (box.port, box.prefix)], input=json.dumps(args).encode(),
            env={**os.environ, "SANDBOX_API_TOKEN": box.token},
            stdout=subprocess.PIPE, timeout=30, check=False).stdout
        return json.loads(out)
    r = tool("bash", command="echo printed", background=True)
    check("background", r["success"], r)
    until = time.monotonic() + 20
    while time.monotonic() < until:
        shown = tool("read", path=r["output_path"])
        if "printed" in shown["output"]:
            break
    check("its output", "printed" in shown["output"], shown)


def pool(program):
    token = "h" * 64
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)  # as root, sandboxes are users of their own
        server = Server(program, folder, token, SBX_HOST_MODE="1",
                        SBX_CAPACITY="2", SBX_ALLOW_UNCONFINED="1")
        try:
            host = Box(server.port, token)
            health(host, "host")
            host.fails(404, "GET", "/processes")
            boxes, uids = [], []
            for _ in range(2):
                r = host.call("POST", "/sandboxes", js={
                    "count": 1, "idle_timeout_secs": 600,
                    "env": {"OWN": "yes"}})
                same("rejected", r["rejected"], 0)
                s = r["sandboxes"][0]
                check("id", not set(s["id"]) & set("./"), s)
                check("token", re.fullmatch("[0-9a-f]{64}", s["token"]), s)
                boxes.append(Box(server.port, s["token"],
                                 "/v1/sandboxes/" + s["id"]))
                uids.append(s["uid"])
                same("uid", int(boxes[-1].run("id -u")[0]), s["uid"])
                same("owner", os.stat(s["home"]).st_uid, s["uid"])
                same("recovery", host.call("GET", "/sandboxes/%s/token" %
                                           s["id"]),
                     {"id": s["id"], "token": s["token"]})
            r = host.call("POST", "/sandboxes", js={"count": 1})
            same("full", (r["sandboxes"], r["rejected"]), ([], 1))
            same("listed", len(host.call("GET", "/sandboxes")), 2)
            a, b = boxes
            if os.getuid() == 0:
                check("uids", uids[0] != uids[1] and min(uids) >= 20000, uids)
            same("env", a.run("echo $OWN ${HOME##*/} $PWD")[0].split()[0],
                 "yes")
            for wrong in (token, b.token):
                a.fails(403, "POST", "/exec", js={"cmd": "id"}, token=wrong)
                a.fails(403, "DELETE", "", token=wrong)
            tokens(a)
            processes(a)
            files(a)
            own_client(program, b)
            a.write("/abs/x", b"1")
            same("rooted", a.read("../../abs/x"), b"1")
            check("apart", not b.exists("/abs/x"))
            same("removed", a.call("DELETE", "")["deleted"], True)
            a.fails(404, "GET", "/processes")
            same("all", host.call("DELETE", "/sandboxes"), {"deleted": 1})
            same("empty", host.call("GET", "/sandboxes"), [])
        finally:
            same("exit status", server.end(), 0)


def main():
    inner = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Inner)
    threading.Thread(target=inner.serve_forever, daemon=True).start()
    dedicated(sys.argv[1], inner.server_address[1])
    pool(sys.argv[1])
    idle(sys.argv[1])
    inner.shutdown()
    print("%d checks, %d failed" % (CHECKS, FAILED))
    return 1 if FAILED else 0


if __name__ == "__main__":
    sys.exit(main())
