#!/usr/bin/env python3
"""Stands in for the hosts of docs/mcp.md and docs/dialects.md: whatever a
documented command or file tells a host to start or to reach is started or
reached, and must answer as a server of MCP, or of Codex, does.

    claude|codex|copilot|cline|gemini|qwen mcp add ...   as the host is called
    claude|... mcp list                   what was added; fails if nothing was
    npx mcp-remote URL [OPTION...]
    mcp_host.py mcp COMMAND...            a server of MCP on pipes
    mcp_host.py exec-server COMMAND...    a server of Codex on pipes
    mcp_host.py config FILE               json, toml, yaml: every server in it
    mcp_host.py parse FILE                only that; json also line by line
    mcp_host.py manifests FILE...         of Kubernetes

The first form is by the name of the program: a link. An option that a host
does not have is an error. Exit status 0 passed, 1 failed, 77 no parser.
"""
import base64
import json
import os
import re
import select
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

WAIT = 60  # seconds
# options of `mcp add`, with the number of their values
OPTIONS = {
    "claude": {"--transport": 1, "--header": 1},
    "codex": {"--url": 1, "--bearer-token-env-var": 1},
    "copilot": {"--transport": 1, "--header": 1},
    "cline": {"--yes": 0, "--transport": 1, "--header": 1},
    "gemini": {"--transport": 1, "-H": 1},
    "qwen": {"--transport": 1, "-H": 1},
    "npx": {"--allow-http": 0, "--transport": 1, "--header": 1},
}
# these take what follows the name as the command, without "--"
COMMAND_FOLLOWS = ("gemini", "qwen")


def fail(*words):
    sys.exit(" ".join(["mcp_host:", *map(str, words)]))


class Lines:
    """A program that is sent and sends a line of JSON for each message."""

    def __init__(self, command, env=None):
        self.command = command
        self.child = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            env={**os.environ, **(env or {})})
        self.rest = b""

    def send(self, message):
        self.child.stdin.write(json.dumps(message).encode() + b"\n")
        self.child.stdin.flush()

    def answer(self, number):
        """The result of that call; other messages are passed over."""
        until = time.monotonic() + WAIT
        while True:
            while b"\n" in self.rest:
                line, self.rest = self.rest.split(b"\n", 1)
                message = json.loads(line)
                if message.get("id") == number and "method" not in message:
                    if "result" not in message:
                        fail(*self.command, "answers", message)
                    return message["result"]
            left = until - time.monotonic()
            out = self.child.stdout
            if left <= 0 or not select.select([out], [], [], left)[0]:
                fail(*self.command, "does not answer")
            piece = os.read(out.fileno(), 65536)
            if not piece:
                fail(*self.command, "ends without an answer")
            self.rest += piece

    def end(self):
        self.child.stdin.close()
        if self.child.wait(WAIT) != 0:
            fail(*self.command, "exits with", self.child.returncode)


def initialize():
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": "docs", "version": "1"}}}


def try_mcp(command, env=None):
    """Initializes it, and has it run a command if it offers to."""
    server = Lines(command, env)
    server.send(initialize())
    if "serverInfo" not in server.answer(1):
        fail(*command, "does not introduce itself")
    server.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    server.send({"jsonrpc": "2.0", "id": 2, "method": "tools/list"})
    names = [tool["name"] for tool in server.answer(2)["tools"]]
    if "read" not in names:
        fail(*command, "offers no tools to read with:", names)
    if "bash" in names:
        server.send({"jsonrpc": "2.0", "id": 3, "method": "tools/call",
                     "params": {"name": "bash", "arguments": {
                         "command": "echo $((40 + 2))"}}})
        result = server.answer(3)
        if result.get("isError") or "42" not in json.dumps(result["content"]):
            fail(*command, "runs no command:", result)
    server.end()


def try_exec_server(command, env=None):
    server = Lines(command, env)
    server.send({"id": 1, "method": "initialize",
                 "params": {"clientName": "docs"}})
    if "sessionId" not in server.answer(1):
        fail(*command, "has no session")
    server.end()


def try_url(url, headers):
    """MCP over HTTP, or for ws:// that a WebSocket is opened."""
    if url.startswith("ws://"):
        return try_websocket(url, headers)
    request = urllib.request.Request(
        url, json.dumps(initialize()).encode(),
        {"Content-Type": "application/json",
         "Accept": "application/json, text/event-stream", **headers})
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=WAIT) as reply:
            body = reply.read().decode()
    except OSError as e:
        return fail(url, "does not answer:", e)
    if "serverInfo" not in body:
        fail(url, "answers", body)


def try_websocket(url, headers):
    at = urllib.parse.urlsplit(url)
    with socket.create_connection((at.hostname, at.port), WAIT) as s:
        s.sendall("\r\n".join([
            f"GET {at.path or '/'} HTTP/1.1", f"Host: {at.netloc}",
            "Connection: Upgrade", "Upgrade: websocket",
            "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: " +
            base64.b64encode(bytes(16)).decode(),
            *(f"{k}: {v}" for k, v in headers.items()), "", ""]).encode())
        head = s.recv(4096).decode()
    if not head.startswith("HTTP/1.1 101 "):
        fail(url, "answers", head)


# ---- the command lines of hosts


def take_options(host, words, follows):
    """Splits them into options and the rest; with `follows` the second word
    that is no option begins the rest."""
    options, rest = {}, []
    while words:
        word = words.pop(0)
        if word == "--":
            return options, rest, words
        if not word.startswith("-"):
            rest.append(word)
            if follows and len(rest) == 2:
                return options, rest[:1], rest[1:] + words
        elif word not in OPTIONS[host]:
            fail(host, "has no option", word)
        elif OPTIONS[host][word]:
            if not words:
                fail(host, word, "needs a value")
            options[word] = words.pop(0)
        else:
            options[word] = ""
    return options, rest, []


def header_of(options):
    text = options.get("--header") or options.get("-H")
    variable = options.get("--bearer-token-env-var")
    if variable:
        text = "Authorization: Bearer " + os.environ[variable]
    return dict([re.split(r":\s*", text, maxsplit=1)]) if text else {}


def run_host(host, words):
    added = os.path.expanduser(f"~/.{host}-mcp")
    if host == "npx":
        if words.pop(0) != "mcp-remote":
            fail("npx: only mcp-remote")
    elif words[:1] != ["mcp"] or words[1:2] not in (["add"], ["list"]):
        fail(host, "has no command", *words[:2])
    elif words[1] == "list":
        with open(added, encoding="utf-8") as f:
            print(f.read())
        return
    else:
        words = words[2:]
    options, rest, command = take_options(
        host, words, host in COMMAND_FOLLOWS and "--transport" not in words)
    if host == "npx":
        rest.insert(0, "remote")
    url = options.get("--url") or (rest[1] if len(rest) > 1 else None)
    if not rest or bool(url) == bool(command) or len(rest) > 2:
        fail(host, "needs a name, and a command or a URL")
    if url:
        try_url(url, header_of(options))
    else:
        try_mcp(command)
    with open(added, "a", encoding="utf-8") as f:
        f.write(rest[0] + "\n")


# ---- their files


def parse(path):
    with open(path, encoding="utf-8") as f:
        text = f.read()
    if path.endswith(".json"):
        try:
            return [json.loads(text)]
        except ValueError:
            return [json.loads(line) for line in text.splitlines()]
    try:
        if path.endswith(".toml"):
            import tomllib
            return [tomllib.loads(text)]
        import yaml
        return list(yaml.safe_load_all(text))
    except ImportError as e:
        print(f"skipped: {e}")
        sys.exit(77)


def expand(text):
    """Variables as the hosts write them; the token is asked for in one."""
    text = text.replace("${workspaceFolder}", os.getcwd())
    text = text.replace("${input:token}", "${SANDBOX_API_TOKEN}")
    return re.sub(r"(?:\$\{|\{env:)(\w+)\}",
                  lambda m: os.environ[m.group(1)], text)


def try_server(entry):
    """Starts or reaches the server that this is the entry of, if it is one."""
    words = [entry.get("command") or entry.get("cmd") or entry.get("program")]
    url = entry.get("url") or entry.get("httpUrl") or entry.get("uri")
    if isinstance(words[0], dict) or not (words[0] or url):
        return False
    if words[0]:
        words = words[0] if isinstance(words[0], list) else words
        words = [expand(w) for w in words + entry.get("args", [])]
        way = try_exec_server if "program" in entry else try_mcp
        way(words, entry.get("env"))
        return True
    headers = {**entry.get("headers", {}),
               **entry.get("requestOptions", {}).get("headers", {})}
    token = entry.get("auth_bearer_token") or os.environ.get(
        entry.get("bearer_token_env_var", ""))
    if token:
        headers["Authorization"] = f"Bearer {token}"
    try_url(url, {k: expand(v) for k, v in headers.items()})
    return True


def try_all(x):
    """The number of servers in it."""
    if isinstance(x, list):
        return sum(map(try_all, x))
    if not isinstance(x, dict):
        return 0
    return 1 if try_server(x) else sum(map(try_all, x.values()))


def main():
    name, words = os.path.basename(sys.argv[0]), sys.argv[1:]
    if name in OPTIONS:
        run_host(name, words)
        return
    what = words.pop(0)
    if what == "mcp":
        try_mcp(words)
    elif what == "exec-server":
        try_exec_server(words)
    elif what == "parse":
        parse(words[0])
    elif what == "config":
        if not try_all(parse(words[0])):
            fail("no server in", words[0])
    elif what == "manifests":
        for x in [x for path in words for x in parse(path)]:
            if not x.get("apiVersion") or not x.get("kind"):
                fail("no manifest of Kubernetes in", *words)
    else:
        fail("unknown:", what)


if __name__ == "__main__":
    main()
