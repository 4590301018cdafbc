"""An agent's episode as one number: 50 actions (20 commands, 15 reads, 10
edits, 5 greps) on a small project, one after the other, through every way in,
beside the same episode through a FastAPI server as the reference has one.

A part of server.py. A way that has no edit fetches the file, changes it and
writes it back, as its clients do; one that has no grep runs grep.
"""
import base64
import http.client
import json
import os
import shutil
import subprocess
import time
import urllib.parse

import t_server
from t_server import Server, TOKEN

BRIEF = bool(os.environ.get("BENCH_BRIEF"))
HFSB = os.path.join(t_server.TOP, "build", "hfsb")


def make_project(top):
    """40 files of 200 lines; servers keep the folder itself open."""
    shutil.rmtree(os.path.join(top, "src"), ignore_errors=True)
    os.makedirs(os.path.join(top, "src"))
    for i in range(40):
        with open(os.path.join(top, "src", f"m{i}.txt"), "w",
                  encoding="ascii") as f:
            f.writelines(f"line {n} of module {i}\n" for n in range(200))


def actions():
    """The order is that of an agent: look, change, check."""
    for i in range(10):
        if i % 2 == 0:
            yield "grep", f"line 7 of module {i}"
        yield "read", f"src/m{i}.txt"
        if i < 5:
            yield "read", f"src/m{i + 20}.txt"
        yield "edit", (f"src/m{i}.txt", f"line 50 of module {i}\n",
                       f"line fifty of module {i}\n")
        yield "bash", f"wc -l src/m{i}.txt"
        yield "bash", "echo checked"


def play(way):
    """Seconds of one episode; every answer is looked at."""
    begin = time.monotonic()
    for kind, what in actions():
        if kind == "edit":
            way.edit(*what)
            continue
        text = getattr(way, kind)(what)
        wanted = {"grep": "module", "read": "module",
                  "bash": "checked" if "echo" in what else "200"}[kind]
        if wanted not in text:
            raise RuntimeError(f"{way.name}: {kind} {what}: {text[:200]}")
    took = time.monotonic() - begin
    with open(os.path.join(way.top, "src", "m9.txt"), encoding="ascii") as f:
        if "line fifty of module 9\n" not in f.read():
            raise RuntimeError(f"{way.name}: the edit is not in the file")
    return took


class Http:
    """Requests on one connection that is kept."""

    def __init__(self, name, top, port, fields):
        self.name, self.top = name, top
        self.fields = fields
        self.conn = http.client.HTTPConnection("127.0.0.1", port, timeout=60)

    def send(self, method, path, body=None, fields=None):
        self.conn.request(method, path, body, {**self.fields,
                                               **(fields or {})})
        reply = self.conn.getresponse()
        return reply.status, reply.headers, reply.read()

    def post(self, path, value):
        status, _, body = self.send("POST", path, json.dumps(value),
                                    {"Content-Type": "application/json"})
        if status >= 300:
            raise RuntimeError(f"{self.name}: {path}: {status} {body[:200]}")
        return json.loads(body)

    def grep(self, text):
        return self.bash(f"grep -rn '{text}' src")

    def close(self):
        self.conn.close()


class Api(Http):
    """/api, and the FastAPI server that speaks it."""

    def __init__(self, name, top, port, has_grep=True):
        super().__init__(name, top, port, {
            "X-Sandbox-Authorization": f"Bearer {TOKEN}"})
        self.has_grep = has_grep

    def tool(self, tool, **arguments):
        result = self.post("/api/" + tool, arguments)
        if not result["success"]:
            raise RuntimeError(f"{self.name}: {tool}: {result['error']}")
        return result["output"]

    def bash(self, command):
        return self.tool("bash", command=command, work_dir=self.top)

    def grep(self, text):
        if not self.has_grep:
            return super().grep(text)
        return self.tool("grep", pattern=text, path=self.top)

    def read(self, path):
        return self.tool("read", path=os.path.join(self.top, path))

    def edit(self, path, old, new):
        self.tool("edit", path=os.path.join(self.top, path), old_str=old,
                  new_str=new)


class Mcp:
    """The tools over MCP; subclasses carry the messages."""

    serial = 0

    def open(self):
        self.request("initialize", {
            "protocolVersion": "2025-06-18", "capabilities": {},
            "clientInfo": {"name": "bench", "version": "1"}})

    def request(self, method, params):
        self.serial += 1
        return self.carry({"jsonrpc": "2.0", "id": self.serial,
                           "method": method, "params": params})

    def tool(self, tool, **arguments):
        result = self.request("tools/call", {"name": tool,
                                             "arguments": arguments})
        text = "".join(c.get("text", "") for c in result["content"])
        if result.get("isError"):
            raise RuntimeError(f"{self.name}: {tool}: {text}")
        return text

    def bash(self, command):
        return self.tool("bash", command=command)

    def grep(self, text):
        return self.tool("grep", pattern=text, path=self.top)

    def read(self, path):
        return self.tool("read", path=os.path.join(self.top, path))

    def edit(self, path, old, new):
        self.tool("edit", path=os.path.join(self.top, path), old_str=old,
                  new_str=new)


class McpHttp(Mcp):
    def __init__(self, top, port):
        self.name, self.top = "MCP over HTTP", top
        self.http = Http(self.name, top, port, {
            "Authorization": f"Bearer {TOKEN}",
            "Accept": "application/json, text/event-stream",
            "Content-Type": "application/json"})
        self.open()

    def carry(self, message):
        status, fields, body = self.http.send("POST", "/mcp",
                                              json.dumps(message))
        if status >= 300:
            raise RuntimeError(f"MCP: {status} {body[:200]}")
        if fields.get("Mcp-Session-Id"):
            self.http.fields["Mcp-Session-Id"] = fields["Mcp-Session-Id"]
        if fields.get("Content-Type", "").startswith("text/event-stream"):
            body = [line[5:] for line in body.splitlines()
                    if line.startswith(b"data:")][-1]
        return json.loads(body)["result"]

    def close(self):
        self.http.close()


class McpStdio(Mcp):
    def __init__(self, top):
        self.name, self.top = "MCP over stdio", top
        self.process = subprocess.Popen(
            [HFSB, "mcp", "--root", top, "--checkpoints", "off",
             "--confine", "none"], cwd=top, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        self.open()

    def carry(self, message):
        self.process.stdin.write(json.dumps(message).encode() + b"\n")
        self.process.stdin.flush()
        while True:
            reply = json.loads(self.process.stdout.readline())
            if reply.get("id") == message["id"]:
                return reply["result"]

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


class CommandLine:
    """A process for each action."""

    name = "command line"

    def __init__(self, top):
        self.top = top

    def run(self, *words):
        return subprocess.run([HFSB, *words], cwd=self.top, check=True,
                              capture_output=True, text=True).stdout

    def bash(self, command):
        return self.run("bash", command)

    def grep(self, text):
        return self.run("tool", "grep", "--args", json.dumps(
            {"pattern": text}))

    def read(self, path):
        return self.run("read", path)

    def edit(self, path, old, new):
        self.run("edit", path, "--old", old, "--new", new)

    def close(self):
        pass


class Fetches(Http):
    """A dialect without edits: the file is fetched and written back."""

    def edit(self, path, old, new):
        text = self.read(path)
        if text.count(old) != 1:
            raise RuntimeError(f"{self.name}: {path} has no such line")
        self.write(path, text.replace(old, new))

    def must(self, method, path, body=None, fields=None):
        status, _, reply = self.send(method, path, body, fields)
        if status >= 300:
            raise RuntimeError(f"{self.name}: {path}: {status} {reply[:200]}")
        return reply


class HuggingFace(Fetches):
    def __init__(self, top, port):
        super().__init__("--api hf", top, port, {"X-Sandbox-Token": TOKEN})

    def bash(self, command):
        lines = self.must("POST", "/v1/exec", json.dumps(
            {"cmd": command, "shell": True, "cwd": self.top}),
            {"Content-Type": "application/json"}).split(b"\n")
        return "".join(e["data"] for e in map(json.loads, filter(None, lines))
                       if e["event"] in ("stdout", "stderr"))

    def read(self, path):
        return self.must("GET", "/v1/files/read?path=" + urllib.parse.quote(
            os.path.join(self.top, path))).decode()

    def write(self, path, text):
        self.must("PUT", "/v1/files/write?path=" + urllib.parse.quote(
            os.path.join(self.top, path)), text.encode())


class Kubernetes(Fetches):
    def __init__(self, top, port):
        super().__init__("--api agent-sandbox", top, port, {})

    def bash(self, command):
        return self.post("/execute", {
            "command": f'sh -c "{command}"'})["stdout"]

    def read(self, path):
        return self.must("GET", "/v1/files/" + path).decode()

    def write(self, path, text):
        self.must("PUT", "/v1/files/" + path, text.encode(),
                  {"Content-Type": "application/octet-stream"})


class E2b(Fetches):
    def __init__(self, top, port):
        super().__init__("--api e2b", top, port, {"X-Access-Token": TOKEN})

    def bash(self, command):
        text = json.dumps({"process": {
            "cmd": "/bin/sh", "args": ["-c", command],
            "cwd": self.top}}).encode()
        stream = self.must(
            "POST", "/process.Process/Start",
            b"\0" + len(text).to_bytes(4, "big") + text,
            {"Content-Type": "application/connect+json",
             "Connect-Protocol-Version": "1"})
        out = b""
        while stream:
            length = int.from_bytes(stream[1:5], "big")
            event = json.loads(stream[5:5 + length]).get("event", {})
            out += base64.b64decode(event.get("data", {}).get("stdout", ""))
            stream = stream[5 + length:]
        return out.decode()

    def read(self, path):
        return self.must("GET", "/files?path=" + urllib.parse.quote(
            os.path.join(self.top, path))).decode()

    def write(self, path, text):
        self.must("POST", "/files?path=" + urllib.parse.quote(
            os.path.join(self.top, path)), text.encode(),
            {"Content-Type": "application/octet-stream"})


class Codex:
    """exec-server on a pipe, as Codex uses it."""

    name = "hfsb exec-server"

    def __init__(self, top):
        self.top, self.serial = top, 0
        self.process = subprocess.Popen(
            [HFSB, "exec-server", "--root", top, "--confine", "none"],
            cwd=top, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        self.request("initialize", {"clientName": "bench",
                                    "resumeSessionId": None})

    def request(self, method, params, until=None):
        self.serial += 1
        self.process.stdin.write(json.dumps(
            {"id": self.serial, "method": method,
             "params": params}).encode() + b"\n")
        self.process.stdin.flush()
        result, told = None, []
        while result is None or (until and until not in told[-1:]):
            line = json.loads(self.process.stdout.readline())
            if line.get("id") == self.serial:
                result = line["result"]
            elif "method" in line:
                told.append(line["method"])
                self.output += base64.b64decode(
                    line["params"].get("chunk", ""))
        return result

    def bash(self, command):
        self.output = b""
        self.request("process/start", {
            "processId": f"p{self.serial}", "argv": ["/bin/sh", "-c", command],
            "cwd": "file://" + self.top, "env": {"PATH": os.environ["PATH"]},
            "tty": False}, "process/closed")
        return self.output.decode()

    def grep(self, text):
        return self.bash(f"grep -rn '{text}' src")

    def uri(self, path):
        return "file://" + os.path.join(self.top, path)

    def read(self, path):
        return base64.b64decode(self.request(
            "fs/readFile", {"path": self.uri(path)})["dataBase64"]).decode()

    def edit(self, path, old, new):
        text = self.read(path).replace(old, new)
        self.request("fs/writeFile", {
            "path": self.uri(path),
            "dataBase64": base64.b64encode(text.encode()).decode()})

    def close(self):
        self.process.stdin.close()
        self.process.wait(20)
        self.process.stdout.close()


def measure(way):
    """The best of some episodes, each on a new project."""
    best = 1e9
    try:
        for _ in range(1 if BRIEF else 5):
            make_project(way.top)
            best = min(best, play(way))
    finally:
        way.close()
    return best


def ways(top, server):
    yield lambda: Api("/api", top, server.port)
    yield lambda: McpHttp(top, server.port)
    yield lambda: McpStdio(top)
    yield lambda: CommandLine(top)
    yield lambda: HuggingFace(top, server.dialect_port("hf"))
    yield lambda: Codex(top)
    yield lambda: Kubernetes(top, server.dialect_port("agent-sandbox"))
    yield lambda: E2b(top, server.dialect_port("e2b"))


def episode(top, row, keep, fastapi):
    project = os.path.join(top, "project")
    make_project(project)
    peer, theirs = fastapi(), None
    if peer:
        try:
            theirs = measure(Api("FastAPI", project, peer.port, False))
        finally:
            peer.stop()
    with Server("--confine", "none", "--api", "hf:0", "--api",
                "agent-sandbox:0", "--api", "e2b:0", "--root", project,
                work_dir=project) as server:
        for make in ways(project, server):
            way = make()
            ours = measure(way)
            row(f"episode of 50 actions, {way.name}", f"{ours * 1000:.0f} ms",
                f"FastAPI {theirs * 1000:.0f} ms" if theirs else "",
                f"{theirs / ours:.2f}" if theirs else "")
            keep(f"50 actions: {way.name}", ours * 1000, "FastAPI",
                 theirs and theirs * 1000, "ms")
