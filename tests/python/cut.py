#!/usr/bin/env python3
"""Cuts the connection of a call at every byte, in each protocol.

    cut.py [PROTOCOL...]

For every n a call is sent up to its n-th byte, and the connection is reset;
for the last bytes also while the reply arrives, at every byte of it. Where the
protocol has an id, the whole call follows with the same id: its command has
run exactly once. At the end nothing runs, no descriptor is left and the server
answers.
"""
import json
import os
import shutil
import socket
import sys
import tempfile
import time

import t_server
from t_server import Server, TOKEN

checks = failed = 0


def check(good, what):
    global checks, failed
    checks += 1
    if not good:
        failed += 1
        print(f"FAIL  {what}")


def message(method, path, fields, body=b""):
    lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1",
             "Connection: close", *fields]
    if body or method in ("POST", "PUT"):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines + ["", ""]).encode() + body


def whole(port, data, timeout=20):
    """The whole reply."""
    s = socket.create_connection(("127.0.0.1", port), timeout)
    s.sendall(data)
    reply = b""
    try:
        while (piece := s.recv(65536)):
            reply += piece
    finally:
        s.close()
    return reply


def cut_request(port, data, n):
    s = socket.create_connection(("127.0.0.1", port), 10)
    s.sendall(data[:n])
    if n == len(data):
        time.sleep(0.001)
    t_server.reset(s)


def cut_reply(port, data, n):
    """Resets after n bytes of the reply; returns how many came."""
    s = socket.create_connection(("127.0.0.1", port), 10)
    s.sendall(data)
    got = 0
    while got < n:
        piece = s.recv(n - got)
        if not piece:
            break
        got += len(piece)
    t_server.reset(s)
    return got


class Protocol:
    """A way to run a command; options of the server."""

    options = ()
    has_id = True
    port = None  # of its own

    def __init__(self, server):
        self.server = server
        self.port = server.port

    def call(self, command, key):
        raise NotImplementedError


class Api(Protocol):
    def call(self, command, key):
        return message("POST", "/api/bash", [
            f"X-Sandbox-Authorization: Bearer {TOKEN}",
            "Content-Type: application/json", f"Idempotency-Key: {key}"],
            json.dumps({"command": command}).encode())


class OwnPort(Protocol):
    """A dialect on a port of its own, which the server prints."""

    name = None

    def __init__(self, server):
        super().__init__(server)
        self.port = server.dialect_port(self.name)


class Kubernetes(OwnPort):
    name = "agent-sandbox"
    options = ("--api", "agent-sandbox:0")

    def call(self, command, key):
        return message("POST", "/execute", [
            "Content-Type: application/json", f"X-Request-ID: {key}"],
            json.dumps({"command": f"sh -c '{command}'"}).encode())


class HuggingFace(OwnPort):
    name = "hf"
    options = ("--api", "hf:0")
    has_id = False

    def call(self, command, key):
        return message("POST", "/v1/exec", [
            f"X-Sandbox-Token: {TOKEN}", "Content-Type: application/json"],
            json.dumps({"cmd": command, "shell": True}).encode())


class E2b(OwnPort):
    name = "e2b"
    options = ("--api", "e2b:0")
    has_id = False

    def call(self, command, key):
        text = json.dumps({"process": {"cmd": "/bin/sh",
                                       "args": ["-c", command]}}).encode()
        return message("POST", "/process.Process/Start", [
            f"X-Access-Token: {TOKEN}", "Connect-Protocol-Version: 1",
            "Content-Type: application/connect+json"],
            b"\0" + len(text).to_bytes(4, "big") + text)


PROTOCOLS = {"api": Api, "agent-sandbox": Kubernetes, "hf": HuggingFace,
             "e2b": E2b}


def lines(path):
    try:
        with open(path, encoding="ascii") as f:
            return f.read().split()
    except FileNotFoundError:
        return []


def settle(server):
    """Waits until nothing runs."""
    end = time.time() + 20
    while time.time() < end:
        status, body = server.call("GET", "/api/jobs")
        if status == 200 and not [j for j in json.loads(body)["jobs"]
                                  if j["state"] != "done"]:
            return True
        time.sleep(0.05)
    return False


def count_once(protocol, name, top):
    """Every cut of a request; then the whole call with the same id."""
    path = os.path.join(top, name)
    port, length = protocol.port, len(protocol.call(f"echo 0000 >> {path}",
                                                    "cut-0000"))
    for n in range(0, length + 1):
        data = protocol.call(f"echo {n:04d} >> {path}", f"cut-{n:04d}")
        cut_request(port, data, n)
        if protocol.has_id:
            reply = whole(port, data)
            check(b" 200 " in reply[:20], f"{name}: again after {n} of "
                  f"{length} bytes: {reply[:100]}")
    check(settle(protocol.server), f"{name}: commands end")
    ran = lines(path)
    many = sorted({r for r in ran if ran.count(r) > 1})
    check(not many, f"{name}: ran twice: {many[:5]}")
    if protocol.has_id:
        check(len(ran) == length + 1, f"{name}: {len(ran)} of {length + 1} "
              "ran")


def cut_replies(protocol, name, top):
    path = os.path.join(top, name + "-reply")
    n = 0
    while True:
        data = protocol.call(f"echo {n:04d} >> {path}; echo {n:04d}",
                             f"reply-{n:04d}")
        got = cut_reply(protocol.port, data, n)
        if got < n or n > 2000:
            break
        if protocol.has_id:
            whole(protocol.port, data)
        n += 1
    check(settle(protocol.server), f"{name}: commands end after replies")
    ran = lines(path)
    check(len(ran) == len(set(ran)), f"{name}: ran twice after a cut reply")


def try_protocol(name, kind):
    top = os.path.realpath(tempfile.mkdtemp(prefix="hfsb-cut-"))
    try:
        with Server("--confine", "none", *kind.options,
                    work_dir=top) as server:
            protocol = kind(server)
            reply = whole(protocol.port, protocol.call(f"touch {top}/here",
                                                       "first"))
            check(b" 200 " in reply[:20] and os.path.exists(top + "/here"),
                  f"{name}: a whole call: {reply[:200]}")
            settle(server)
            before = server.descriptors()
            count_once(protocol, name, top)
            cut_replies(protocol, name, top)
            end = time.time() + 10
            while server.descriptors() > before and time.time() < end:
                time.sleep(0.05)
            check(server.descriptors() <= before,
                  f"{name}: descriptors {before} -> {server.descriptors()}")
            check(server.health() < 10, f"{name}: healthy")
    finally:
        shutil.rmtree(top, ignore_errors=True)


def main():
    for name in sys.argv[1:] or PROTOCOLS:
        try_protocol(name, PROTOCOLS[name])
    print(f"{checks} checks of cut connections, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
