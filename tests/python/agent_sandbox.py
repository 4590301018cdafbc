#!/usr/bin/env python3
"""A strict client of the runtimes of Kubernetes' agent-sandbox, written from
the description of their wire format, with the standard library alone.

  agent_sandbox.py local URL ROOT       every route, without a token
  agent_sandbox.py warm URL ROOT PID    /init, then the token; PID is stopped
"""
import http.client
import json
import os
import shlex
import signal
import socket
import sys
import threading
import time
import urllib.parse
import uuid

checks = failed = 0


def check(what, got, want=True):
    global checks, failed
    checks += 1
    if got != want:
        failed += 1
        print(f"FAIL  {what}: {got!r}, want {want!r}")


class Reply:
    def __init__(self, raw):
        self.status = raw.status
        self.headers = raw.headers
        self.body = raw.read()
        length = raw.headers.get("Content-Length")
        if length is None and raw.status != 204: # the head was cut
            raise http.client.IncompleteRead(self.body)
        if length is not None and raw.status not in (204, 304) \
                and raw._method != "HEAD":
            check("Content-Length", len(self.body), int(length))

    def json(self):
        kind = self.headers.get("Content-Type", "")
        check("Content-Type", kind.split(";")[0], "application/json")
        return json.loads(self.body.decode("utf-8"))


class Sandbox:
    """As the SDKs: these headers, a retry of 500, 502, 503, 504 and of lost
    connections, no redirects."""

    def __init__(self, url, headers=None, tries=5):
        self.at = urllib.parse.urlsplit(url)
        self.headers = dict(headers or {})
        self.tries = tries
        self.sent = 0

    def once(self, method, target, body=None, headers=None):
        c = http.client.HTTPConnection(self.at.hostname, self.at.port,
                                       timeout=60)
        try:
            self.sent += 1
            all_headers = {"X-Sandbox-ID": "box", "X-Sandbox-Port": "8888",
                           "X-Sandbox-Namespace": "default",
                           **self.headers, **(headers or {})}
            c.request(method, target, body, all_headers)
            reply = Reply(c.getresponse())
            check("no redirect", 300 <= reply.status < 400, False)
            return reply
        finally:
            c.close()

    def ask(self, method, target, body=None, headers=None):
        wait = 0.05
        for left in range(self.tries, 0, -1):
            try:
                reply = self.once(method, target, body, headers)
                if reply.status not in (500, 502, 503, 504) or left == 1:
                    return reply
            except (OSError, http.client.HTTPException):
                if left == 1:
                    raise
            time.sleep(wait)
            wait *= 2

    def run(self, command, rid=None):
        headers = {"Content-Type": "application/json"}
        if rid:
            headers["X-Request-ID"] = rid
        r = self.ask("POST", "/execute", json.dumps({"command": command}),
                     headers)
        check("execute", r.status, 200)
        out = r.json()
        check("keys", sorted(out), ["exit_code", "stderr", "stdout"])
        return out

    def upload(self, name, content):
        cut = uuid.uuid4().hex
        body = (f'--{cut}\r\nContent-Disposition: form-data; name="file"; '
                f'filename="{name}"\r\n\r\n').encode() + content + \
            f"\r\n--{cut}--\r\n".encode()
        return self.ask("POST", "/upload", body, {
            "Content-Type": f"multipart/form-data; boundary={cut}"})

    def get(self, what, path):
        return self.ask("GET", f"/{what}/" + urllib.parse.quote(path, safe=""))


class Cutter(threading.Thread):
    """A proxy that passes requests on, and cuts the reply of the first ones
    after n bytes, or -n bytes before its end."""

    def __init__(self, url, cuts):
        super().__init__(daemon=True)
        at = urllib.parse.urlsplit(url)
        self.to = (at.hostname, at.port)
        self.cuts = list(cuts)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            try:
                peer, _ = self.listener.accept()
            except OSError:
                return
            with peer, socket.create_connection(self.to) as up:
                n = self.cuts.pop(0) if self.cuts else None
                request = b""
                while True:
                    request += peer.recv(65536)
                    head, _, body = request.partition(b"\r\n\r\n")
                    length = 0
                    for line in head.split(b"\r\n"):
                        if line.lower().startswith(b"content-length:"):
                            length = int(line.split(b":")[1])
                    if b"\r\n\r\n" in request and len(body) >= length:
                        break
                up.sendall(request)
                reply = b""
                while n is None or n < 0 or len(reply) < n:
                    piece = up.recv(65536)
                    if not piece:
                        break
                    reply += piece
                    if done(reply):
                        break
                try:
                    peer.sendall(reply if n is None else reply[:n])
                except OSError:
                    pass


def done(reply):
    head, found, body = reply.partition(b"\r\n\r\n")
    for line in head.split(b"\r\n"):
        if line.lower().startswith(b"content-length:"):
            return bool(found) and len(body) >= int(line.split(b":")[1])
    return False


def runtime(box, root):
    r = box.ask("GET", "/")
    check("ready", (r.status, r.json()),
          (200, {"status": "ok", "message": "Sandbox Runtime is active."}))
    check("echo", box.run("echo 'a b'"),
          {"stdout": "a b\n", "stderr": "", "exit_code": 0})
    for text in ["'a' \"b c\" d\\ e", "a\\\\b '\"' \"'\"", "\"a\\nb\" 'x\\'",
                 "a  b\tc", "'' x \"\""]:
        words = shlex.split(text)
        check(text, box.run("printf %s\\\\n " + text)["stdout"],
              "".join(w + "\n" for w in words))
    out = box.run("sh -c 'echo o; echo e >&2; exit 3'")
    check("both", out, {"stdout": "o\n", "stderr": "e\n", "exit_code": 3})
    out = box.run("no-such-program")
    check("none", (out["exit_code"], out["stdout"],
                   out["stderr"].startswith("Failed to execute command: ")),
          (1, "", True))
    check("pwd", box.run("pwd")["stdout"].strip(), os.path.realpath(root))
    r = box.ask("POST", "/execute", "{}", {"Content-Type": "application/json"})
    check("no command", (r.status, list(r.json())), (422, ["detail"]))

    big = os.urandom(3_000_001)
    for name, content in [("x.txt", b"hi"), ("d/e/f.bin", big), ("e", b"")]:
        r = box.upload(name, content)
        check(name, (r.status, r.json()), (200, {
            "message": f"File '{name}' uploaded successfully."}))
        r = box.get("download", name)
        check("get " + name, (r.status, r.body == content), (200, True))
        check("disposition", r.headers["Content-Disposition"][:11],
              "attachment;")
    r = box.get("list", "d")
    entries = r.json()
    check("list", [(e["name"], e["type"]) for e in entries],
          [("e", "directory")])
    check("mod_time", isinstance(entries[0]["mod_time"], float))
    check("list /", sorted(e["name"] for e in box.get("list", "/").json()),
          ["d", "e", "x.txt"])
    for path, there in [("x.txt", True), ("d/e", True), ("no", False)]:
        check(path, box.get("exists", path).json(),
              {"path": path, "exists": there})
    for what, path in [("download", "../x"), ("list", ".."), ("exists", "../x"),
                       ("download", "d/../../x")]:
        r = box.get(what, path)
        check(what + path, (r.status, r.json()),
              (403, {"message": "Access denied"}))
    r = box.upload("../x", b"x")
    check("upload out", (r.status, r.json()),
          (403, {"message": "Access denied"}))
    check("no file", (lambda r: (r.status, r.json()))(box.get("download", "q")),
          (404, {"message": "File not found"}))
    check("no folder",
          (lambda r: (r.status, r.json()))(box.get("list", "x.txt")),
          (404, {"message": "Path is not a directory"}))


def run_once(box, root):
    """A reply that is lost at any byte does not run the command again."""
    for i, n in enumerate([0, 1, 17, 200, -1, -5]):
        cut = Cutter("http://%s:%d" % (box.at.hostname, box.at.port), [n, n])
        through = Sandbox(cut.url, box.headers)
        out = through.run(f"sh -c 'echo run >>once{i}; echo done'",
                          f"request-{i}")
        check("the reply came", out["stdout"], "done\n")
        check("after three tries", through.sent, 3)
        with open(os.path.join(root, f"once{i}")) as f:
            check("it ran once", f.read(), "run\n")
        cut.listener.close()
    r = box.ask("POST", "/execute", json.dumps({"command": "echo other"}),
                {"Content-Type": "application/json",
                 "X-Request-ID": "request-0"})
    check("another command", r.status, 409)


def sandboxd(box, root):
    r = box.ask("GET", "/v1/health")
    check("health", (r.status, r.json()["status"]), (200, "ok"))
    check("uptime", isinstance(r.json()["uptime_seconds"], int))
    check("metadata", list(box.ask("GET", "/v1/metadata").json()), ["env"])
    r = box.ask("PUT", "/v1/files/v/a.sh?mode=0750", b"#!/bin/sh\n")
    check("put", (r.status, r.body), (204, b""))
    check("mode", os.stat(os.path.join(root, "v/a.sh")).st_mode & 0o777, 0o750)
    r = box.ask("GET", "/v1/files/v/a.sh", None, {"Range": "bytes=0-1"})
    check("range", (r.status, r.body), (206, b"#!"))
    d = box.ask("GET", "/v1/files/v").json()
    check("folder", (d["path"], d["entries"][0]["name"],
                     d["entries"][0]["mode"]), ("/v", "a.sh", "0750"))
    for method, target, status, code in [
            ("GET", "/v1/files/none", 404, "NOT_FOUND"),
            ("GET", "/v1/files/..%2Fx", 403, "PERMISSION_DENIED"),
            ("PUT", "/v1/files/x?mode=9", 400, "INVALID_ARGUMENT"),
            ("DELETE", "/v1/files/v", 409, "CONFLICT"),
            ("DELETE", "/v1/files/none", 404, "NOT_FOUND")]:
        r = box.ask(method, target, b"" if method == "PUT" else None)
        e = r.json()
        check(target, (r.status, e["code"], sorted(e)),
              (status, code, ["code", "message"]))
    check("head", box.ask("HEAD", "/v1/files/v/a.sh").status, 200)
    check("head none", box.ask("HEAD", "/v1/files/none").status, 404)
    r = box.ask("DELETE", "/v1/files/v?recursive=true")
    check("delete", (r.status, os.path.exists(os.path.join(root, "v"))),
          (204, False))


def warm(url, root, pid):
    """A pod of a warm pool: ready, then claimed, then drained."""
    os.mkdir(os.path.join(root, "work"))
    box = Sandbox(url, tries=1)
    check("ready before", box.ask("GET", "/").status, 200)
    check("closed before", box.ask("GET", "/list/").status, 401)
    init = json.dumps({"token": "claimed", "env": {"SANDBOX_USER": "me"},
                       "work_dir": "work"})
    as_json = {"Content-Type": "application/json"}
    check("init", box.ask("POST", "/init", init, as_json).status, 200)
    check("again", box.ask("POST", "/init", init, as_json).status, 200)
    thief = json.dumps({"token": "thief"})
    check("thief", box.ask("POST", "/init", thief, as_json).status, 401)
    check("closed", box.ask("GET", "/list/").status, 401)
    mine = Sandbox(url, {"X-Sandbox-Authorization": "Bearer claimed"}, 1)
    check("env", mine.run("printenv SANDBOX_USER")["stdout"], "me\n")
    check("metadata", mine.ask("GET", "/v1/metadata").json(),
          {"env": {"SANDBOX_USER": "me"}})
    r = mine.ask("POST", "/api/bash", json.dumps({"command": "pwd"}), as_json)
    check("work_dir", "/work" in r.json()["output"])
    os.kill(pid, signal.SIGTERM)
    end = time.monotonic() + 20
    while box.ask("GET", "/v1/health").status == 200 and \
            time.monotonic() < end:
        time.sleep(0.01)
    check("not ready", box.ask("GET", "/").status, 503)
    check("still runs", mine.run("echo x")["stdout"], "x\n")


mode, address, top = sys.argv[1:4]
if mode == "local":
    local = Sandbox(address)
    runtime(local, top)
    run_once(local, top)
    sandboxd(local, top)
else:
    warm(address, top, int(sys.argv[4]))
print(f"{checks} checks, {failed} failed")
sys.exit(failed != 0)
