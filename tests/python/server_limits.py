#!/usr/bin/env python3
"""A server under hostile or very many clients: slow, half-closed, reset,
never reading, too many, too large.

    server_limits.py [NAME...]

Nothing here asserts speed: the bounds only separate an answer from a hang. Needs
Linux and the standard library. HFSB_TEST_LONG=1: 1 GB instead of 256 MiB, the
slow disk takes 5 s a call. SLOW_SHIM is the path of bench/slow_shim.c's
library; without it the slow disk is left out. Prints "N checks, N failed".
"""
import hashlib
import json
import os
import resource
import selectors
import shutil
import signal
import socket
import sys
import tempfile
import threading
import time
import traceback

import t_server
from reference_client import Checks
from t_server import Server, files, replies, request, reset, wait_for

LONG = os.environ.get("HFSB_TEST_LONG") == "1"
ANSWER = 10  # seconds; longer is a hang
MEMORY = 16 * 1024  # KiB, for a body of any size
check = Checks()


class Prober:
    """Asks for health again and again, on new connections, from a thread;
    measures the longest wait."""

    def __init__(self, server):
        self.server, self.worst, self.count = server, 0.0, 0
        self.error, self.over = None, threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        while not self.over.is_set():
            try:
                self.worst = max(self.worst, self.server.health(ANSWER))
                self.count += 1
            except Exception as error:
                self.error = error
                return
            self.over.wait(0.05)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()

    def answered(self, name):
        check.ok(f"{name}: health is answered meanwhile",
                 not self.error and self.count > 0 and self.worst < ANSWER,
                 self.error or f"{self.count} times, {self.worst:.2f} s")
        print(f"  {name}: health {self.count} times, at most "
              f"{self.worst * 1000:.0f} ms")


def descriptors_return(name, server, before):
    if before is None:
        print(f"skipped: {name}: descriptors are not ours to count")
        return
    wait_for(lambda: server.descriptors() <= before)
    check.ok(f"{name}: descriptors are returned",
             server.descriptors() <= before,
             f"{server.descriptors()}, {before} before")


def ends(sockets, seconds, step=None):
    """Waits until the server has ended each of them, calling step each second;
    how many it did, and their first bytes."""
    poller, first = selectors.DefaultSelector(), {}
    for s in sockets:
        s.setblocking(False)
        poller.register(s, selectors.EVENT_READ)
    left, end = len(sockets), time.monotonic() + seconds
    tick = time.monotonic() + 1
    while left and time.monotonic() < end:
        for key, _ in poller.select(0.1):
            s = key.fileobj
            try:
                piece = s.recv(65536)
            except BlockingIOError:
                continue
            except OSError:
                piece = b""
            if piece:
                first[s] = (first.get(s, b"") + piece)[:64]
            else:
                poller.unregister(s)
                left -= 1
        if step and time.monotonic() >= tick:
            tick += 1
            step([key.fileobj for key in poller.get_map().values()])
    poller.close()
    return len(sockets) - left, list(first.values())


# ---- many

def idle_connections(top):
    room = t_server.more_descriptors(10300)
    count = min(10000, room - 300)
    if count < 10000:
        print(f"skipped: only {room} descriptors; {count} idle connections")
    with Server("--max-connections", "10200", "--head-timeout", "60",
                work_dir=top) as server:
        empty, before = server.status("VmRSS"), server.descriptors()
        held = []
        for i in range(count):
            held.append(server.connect())
            if i % 2:  # half of them have had a reply
                held[-1].sendall(request("GET", "/api/health", fields=""))
        good = sum(s.recv(512).startswith(b"HTTP/1.1 200")
                   for s in held[1::2])
        check.same("idle connections: those who asked were answered", good,
                   len(held[1::2]))
        wait_for(lambda: (server.descriptors() or count) >= count)
        took = server.health(ANSWER)
        print(f"  {count} idle connections: {server.status('VmRSS')} KiB "
              f"(before: {empty} KiB), a new one is answered in "
              f"{took * 1000:.1f} ms")
        held[0].sendall(request("GET", "/api/health", fields=""))
        check.same("idle connections: an old one is answered",
                   replies(held[0], 1)[0][0], 200)
        for s in held:
            reset(s)
        descriptors_return("idle connections", server, before)


def descriptor_exhaustion(top):
    """64 descriptors, 500 connections: no spinning, and it recovers."""
    with Server(work_dir=top, nofile=64) as server:
        early = server.connect()
        early.sendall(request("GET", "/api/health", fields=""))
        replies(early, 1)
        held = []
        for _ in range(500):
            s = socket.socket()
            s.setblocking(False)
            s.connect_ex((server.host, server.port))
            held.append(s)
        time.sleep(0.3)
        begin = server.cpu()
        time.sleep(2)
        used = server.cpu() - begin
        print(f"  no descriptors left: {used:.2f} s of the processor in 2 s")
        check.ok("no descriptors left: it does not spin", used < 0.3, used)
        early.sendall(request("GET", "/api/health", fields=""))
        check.same("no descriptors left: who is connected is served",
                   replies(early, 1)[0][0], 200)
        for s in held:
            reset(s)
        check.ok("no descriptors left: it recovers",
                 wait_for(lambda: answers(server), 20))
        result = server.tool("bash", command="echo on")
        check.same("no descriptors left: commands run again",
                   result.get("output"), "on\n")


def answers(server):
    try:
        return server.health(5) is not None
    except (OSError, RuntimeError, ValueError, t_server.http.client
            .HTTPException):
        return False


# ---- slow

class SlowPeers:
    """1000 heads at a byte a second, 200 bodies that stop, 50 uploads that
    stop, 50 who never read."""

    text = b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + \
        b"a" * 99

    def __init__(self, server, old, big):
        self.heads = [server.connect() for _ in range(1000)]
        self.bodies = [server.connect() for _ in range(200)]
        self.uploads = [server.connect() for _ in range(50)]
        self.deaf = [server.connect(receive=4096) for _ in range(50)]
        self.at, self.slow = 0, set(self.heads)
        for s in self.bodies:
            s.sendall(request("POST", "/api/read", b"{" * 1000)[:-900])
        for s in self.uploads:
            s.sendall(request("PUT", files(old), b"new" * 1000)[:-900])
        for s in self.deaf:
            s.sendall(request("GET", files(big)))
        self.step(self.heads)

    def step(self, sockets):
        """One more byte of each head that is not cut yet."""
        byte = self.text[self.at:self.at + 1]
        self.at += 1
        for s in sockets:
            try:
                if s in self.slow:
                    s.send(byte)
            except OSError:
                pass

    def cut(self):
        return self.heads + self.bodies + self.uploads


def slow_peers(top):
    """All at once, each cut at its own deadline."""
    old, big = os.path.join(top, "upload"), os.path.join(top, "big")
    with open(old, "wb") as f:
        f.write(b"old")
    with open(big, "wb") as f:
        f.truncate(64 << 20)
    with Server("--head-timeout", "2", "--body-timeout", "2",
                "--max-connections", "2000", work_dir=top) as server:
        before, begin = server.descriptors(), time.monotonic()
        peers = SlowPeers(server, old, big)
        with Prober(server) as prober:
            ended, first = ends(peers.cut(), 40, peers.step)
            took, held = time.monotonic() - begin, server.status("VmRSS")
        prober.answered("slow peers")
        print(f"  slow peers: {ended} of 1250 cut after {took:.1f} s, "
              f"{held} KiB")
        check.same("slow peers: all are cut", ended, 1250)
        check.ok("slow peers: not before their deadline", took > 1.9, took)
        check.ok("slow peers: they get 408",
                 first and all(b.startswith(b"HTTP/1.1 408") for b in first),
                 set(first))
        check.ok("slow peers: 50 who never read 64 MiB are not in memory",
                 held < 2 * MEMORY, f"{held} KiB")
        with open(old, "rb") as f:
            check.same("slow peers: an upload that stopped left the old file",
                       f.read(), b"old")
        if before is not None:
            wait_for(lambda: server.descriptors() <= before)
        got = [drained(s) for s in peers.deaf]
        check.ok("slow peers: who never reads is cut",
                 all(n < 64 << 20 for n in got), got)
        for s in peers.cut() + peers.deaf:
            s.close()
        descriptors_return("slow peers", server, before)
        check.same("slow peers: no temporary is left",
                   [n for n in os.listdir(top) if n.startswith(".")], [])


def drip(count):
    """For ends(): that many bytes of each body a second."""
    def step(sockets):
        for s in sockets:
            try:
                s.send(b"x" * count)
            except OSError:
                pass
    return step


def strangers(top):
    """Without a token: bodies at a byte a second on every connection that the
    server has. New connections are served, and all are cut."""
    with Server("--max-connections", "64", "--head-timeout", "3",
                work_dir=top) as server:
        before, held = server.descriptors(), []
        for i in range(64):
            held.append(server.connect())
            held[-1].sendall(
                f"POST /api/{('bash', 'health', 'no')[i % 3]} HTTP/1.1\r\n"
                f"Host: 127.0.0.1\r\nContent-Length: 65000\r\n\r\nx".encode())
        begin = time.monotonic()
        took = server.health(ANSWER)
        print(f"  strangers: a new connection is answered in {took:.2f} s")
        with Prober(server) as prober:
            ended, _ = ends(held, 40, drip(1))
        took = time.monotonic() - begin
        prober.answered("strangers")
        check.same("strangers: all are cut", ended, 64)
        check.ok("strangers: in little time", took < 20, took)
        for s in held:
            s.close()
        descriptors_return("strangers", server, before)


def slow_bodies(top):
    """With the token: 100 bytes a second are too few, 5000 are not."""
    old = os.path.join(top, "upload")
    with Server("--head-timeout", "1", "--body-timeout", "4",
                work_dir=top) as server:
        slow = [server.connect() for _ in range(20)]
        for i, s in enumerate(slow):
            s.sendall(request("PUT", files(old), b"new" * 9000)[:-27000]
                      if i % 2 else
                      request("POST", "/api/read", b"{" * 27000)[:-27000])
        good = server.connect()
        good.sendall(request("PUT", files(old), b"x" * 25000)[:-25000])
        sent = 0

        def step(sockets):
            nonlocal sent
            drip(100)(sockets)
            if sent < 25000:
                good.sendall(b"x" * 5000)
                sent += 5000

        begin = time.monotonic()
        ended, first = ends(slow, 40, step)
        check.same("slow bodies: all are cut", ended, 20)
        check.ok("slow bodies: not before their time",
                 time.monotonic() - begin > 3.9)
        check.ok("slow bodies: they get 408", len(first) == 20 and
                 all(b.startswith(b"HTTP/1.1 408") for b in first),
                 set(first))
        while sent < 25000:
            time.sleep(0.9)
            step([])
        check.same("slow bodies: a quicker one takes longer than their time",
                   replies(good, 1)[0][0], 201)
        for s in [*slow, good]:
            s.close()


def drained(s):
    """Bytes until the end, or the reset."""
    total = 0
    s.settimeout(20)
    try:
        while (piece := s.recv(1 << 20)):
            total += len(piece)
    except ConnectionResetError:
        pass
    except OSError as error:
        return 1 << 40 if isinstance(error, TimeoutError) else total
    return total


def never_reading_json(top):
    """A reply of 8 MiB that is made in memory, for someone who does not take
    it; the memory is given back."""
    path = os.path.join(top, "long.txt")
    with open(path, "wb") as f:
        f.write(b"0123456789abcdef" * 8 * 65536)
        f.write((b"x" * 99 + b"\n") * 100000)
    with Server("--body-timeout", "1", work_dir=top) as server:
        before = server.descriptors()
        deaf = [server.connect(receive=4096) for _ in range(4)]
        for s in deaf:
            s.sendall(request("POST", "/api/read",
                              {"path": path, "limit": 0}))
        with Prober(server) as prober:
            time.sleep(2.5)
        prober.answered("never reading")
        for s in deaf:
            s.close()
        descriptors_return("never reading", server, before)
        print(f"  never reading: {server.status('VmHWM')} KiB at most, "
              f"{server.status('VmRSS')} KiB afterwards")
    os.unlink(path)


# ---- broken off

def half_closed(top):
    with Server("--head-timeout", "2", "--body-timeout", "2",
                work_dir=top) as server:
        before = server.descriptors()
        s = server.connect()
        s.sendall(request("POST", "/api/bash",
                          {"command": "sleep 0.5; echo half"}))
        s.shutdown(socket.SHUT_WR)
        got = replies(s, 1)
        check.ok("half-closed: the reply still comes", got and
                 got[0][0] == 200 and b"half" in got[0][1], got)
        check.same("half-closed: then it is closed", s.recv(1), b"")
        s.close()
        cut = []
        for piece in (b"GET /api/health HT", request(
                "POST", "/api/read", b"{" * 100)[:-50], b""):
            s = server.connect()
            s.sendall(piece)
            s.shutdown(socket.SHUT_WR)
            cut.append(drained(s) < 4096)
            s.close()
        check.same("half-closed in the middle of a request: closed", cut,
                   [True] * 3)
        descriptors_return("half-closed", server, before)


def resets(top, count=10000):
    """Resets in mid-reply, in mid-body, right after the request."""
    path = os.path.join(top, "megabyte")
    with open(path, "wb") as f:
        f.truncate(1 << 20)
    long_read = os.path.join(top, "read")
    with open(long_read, "wb") as f:
        f.write(b"0123456789\n" * 20000)
    ways = [(request("GET", files(path)), 1),
            (request("POST", "/api/read", {"path": long_read,
                                           "limit": 0}), 1),
            (request("GET", "/api/health"), 1),
            (request("GET", files(path)), 0),
            (request("POST", "/api/read", b"{" * 5000)[:-1000], 0)]
    with Server(work_dir=top) as server:
        for bytes_out, _ in ways[:3]:  # its threads are there before we count
            s = server.connect()
            s.sendall(bytes_out)
            replies(s, 1)
            s.close()
        server.health()
        time.sleep(0.2)
        before, memory = server.descriptors(), server.status("VmRSS")
        for i in range(count):
            # three of four get the file: the longest way to break
            bytes_out, wait = ways[0] if i % 4 else ways[i // 4 % len(ways)]
            s = server.connect()
            try:
                s.sendall(bytes_out)
                if wait:
                    s.recv(100)
            except OSError:
                pass
            reset(s)
        check.ok("resets: it serves on", wait_for(lambda: answers(server), 20))
        descriptors_return("resets", server, before)
        after = server.status("VmRSS")
        print(f"  {count} resets: {memory} KiB before, {after} KiB after")
        check.ok("resets: memory is returned", after < memory + MEMORY,
                 f"{memory}, then {after} KiB")


def interrupted_upload(top):
    path = os.path.join(top, "kept")
    with open(path, "wb") as f:
        f.write(b"the old bytes")
    with Server(work_dir=top) as server:
        for way in (socket.socket.close, reset):
            s = server.connect()
            s.sendall(request("PUT", files(path), b"x" * 3000000)[:-1000000])
            time.sleep(0.2)
            way(s)
        check.ok("interrupted upload: no temporary is left", wait_for(
            lambda: not [n for n in os.listdir(top) if n.startswith(".")]),
            os.listdir(top))
        with open(path, "rb") as f:
            check.same("interrupted upload: the old file", f.read(),
                       b"the old bytes")


# ---- too much at once

def send_until(s, seconds, enough):
    """Sends and reads until the peer closes, enough(received) is true, or
    the time is over. Returns bytes sent, bytes received, and whether the
    peer closed."""
    block, sent, seen, end = b"x" * 65536, 0, b"", time.monotonic() + seconds
    s.setblocking(False)
    while time.monotonic() < end and not enough(seen):
        try:
            sent += s.send(block)
        except BlockingIOError:
            time.sleep(0.01)
        except OSError:
            return sent, seen, True
        try:
            piece = s.recv(65536)
            if not piece:
                return sent, seen, True
            seen += piece
        except BlockingIOError:
            pass
        except OSError:
            return sent, seen, True
    return sent, seen, False


def huge_body_without_token(top):
    with Server("--head-timeout", "1", work_dir=top) as server:
        for name, fields in (("none", ""), (
                "another", "X-Sandbox-Authorization: Bearer no\r\n")):
            s = server.connect()
            s.sendall(f"PUT /api/files?path=x HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                      f"{fields}Content-Length: 100000000000\r\n\r\n".encode())
            sent, seen, _ = send_until(s, 20, lambda seen: b"}" in seen)
            check.ok(f"a huge body, token {name}: 401 before it is read",
                     seen.startswith(b"HTTP/1.1 401") and sent < 16 << 20,
                     (sent, seen))
            more, _, ended = send_until(s, 20, lambda seen: False)
            s.close()
            print(f"  a huge body, token {name}: 401 after {sent} bytes, "
                  f"the end after {more} more")
            check.ok(f"a huge body, token {name}: then it is ended", ended)
        check.ok("a huge body: in memory", server.status("VmHWM") < MEMORY,
                 f"{server.status('VmHWM')} KiB")
        check.ok("a huge body: nothing was written",
                 not os.path.exists(os.path.join(top, "x")))


def in_memory(pid, text):
    """How often the process has the text in memory that can be written;
    None where only root may look."""
    count = 0
    try:
        with open(f"/proc/{pid}/maps", encoding="utf-8") as maps, \
                open(f"/proc/{pid}/mem", "rb", 0) as memory:
            for line in maps:
                if line.split()[1][:2] != "rw":
                    continue
                begin, end = (int(n, 16) for n in line.split()[0].split("-"))
                try:
                    memory.seek(begin)
                    count += memory.read(end - begin).count(text)
                except OSError:
                    pass
    except PermissionError:
        return None
    return count


def pipelined_token(top):
    """The token of a request that waits for a command to end is not in the
    server's memory, where the command could find it."""
    with Server(work_dir=top) as server:
        if in_memory(server.pid, t_server.TOKEN.encode()) is None:
            print("skipped: memory is not ours to read")
            return
        go = os.path.join(top, "go")
        wait = request("POST", "/api/bash", {
            "command": f"until [ -e '{go}' ]; do sleep 0.05; done"})
        then = request("GET", "/api/health")
        ways = {"with it": [wait + then], "later": [wait, then],
                "in pieces": [wait[:40], wait[40:] + then],
                "in part": [wait + then[:-2]]}
        for name, pieces in ways.items():
            s = server.connect()
            for piece in pieces:
                s.sendall(piece)
                time.sleep(0.2)
            check.same(f"a token pipelined {name}: in memory",
                       in_memory(server.pid, t_server.TOKEN.encode()), 0)
            open(go, "w").close()
            if name == "in part":
                s.sendall(then[-2:])
            check.same(f"a token pipelined {name}: all replies",
                       [status for status, _ in replies(s, 2)], [200, 200])
            os.remove(go)
            s.close()


def pipelined(top):
    with Server(work_dir=top) as server:
        s = server.connect(timeout=20)
        s.sendall(request("POST", "/api/bash",
                          {"command": "sleep 1; echo first"}) +
                  request("GET", "/api/health") * 20 +
                  request("POST", "/api/bash", {"command": "echo second"}) +
                  request("GET", "/api/nothing") +
                  request("GET", "/api/health"))
        begin = time.monotonic()
        with Prober(server) as prober:
            got = replies(s, 24)
        prober.answered("pipelined")
        check.same("pipelined: all replies, in order",
                   [status for status, _ in got],
                   [200] * 22 + [404, 200])
        check.ok("pipelined: none before the command has ended",
                 time.monotonic() - begin > 0.9)
        check.ok("pipelined: each its own", got and b"first" in got[0][1] and
                 b"second" in got[21][1], got[:1])
        s.close()
        # more than it may hold while the command runs: it stops reading
        s = server.connect()
        s.sendall(request("POST", "/api/bash", {"command": "sleep 2"}))
        s.setblocking(False)
        block, sent = request("GET", "/api/health") * 1000, 0
        end = time.monotonic() + 1.5
        while time.monotonic() < end:
            try:
                sent += s.send(block)
            except BlockingIOError:
                time.sleep(0.05)
        held = server.status("VmHWM")
        print(f"  pipelined without end: {sent} bytes sent, {held} KiB")
        check.ok("pipelined without end: it is not kept in memory",
                 held < MEMORY, f"{held} KiB")
        reset(s)


# ---- nothing blocks the loop

def slow_disk(top):
    shim = os.environ.get("SLOW_SHIM")
    if not shim:
        print("skipped: slow disk: no library to preload")
        return
    # a machine that is busy itself gets a disk that is slower yet
    for ms in (5000,) if LONG else (1000, 5000):
        worst = on_slow_disk(top, shim, ms)
        if worst < ms / 1000 * 0.8:
            break
    check.ok("slow disk: ... and not in the loop",
             worst < ms / 1000 * 0.8, f"{worst:.2f} s")


def on_slow_disk(top, shim, ms):
    """Calls, each of which waits for the disk that long; how long others
    waited for an answer."""
    log, path = os.path.join(top, "log"), os.path.join(top, "slow-file")
    with open(path, "wb") as f:
        f.write(b"slow\n")
    env = {"LD_PRELOAD": shim, "SLOW_NAME": "slow-file", "SLOW_LOG": log,
           "SLOW_MS": str(ms)}
    with Server(work_dir=top, env=env) as server:
        seen = {}

        def keep(name, function, *a, **k):
            seen[name] = function(*a, timeout=120, **k)

        work = [("read", server.tool, ("read",), {"path": path}),
                ("write", server.tool, ("write",), {"path": path + "2",
                                                    "content": "x"}),
                ("edit", server.tool, ("edit",), {
                    "path": path, "old_str": "slow", "new_str": "Slow"}),
                ("exists", server.tool, ("exists",), {"path": path}),
                ("get", server.call, ("GET", files(path)), {}),
                ("put", server.call, ("PUT", files(path + "3"), b"new"), {})]
        threads = [threading.Thread(target=keep, args=(n, f, *a), kwargs=k)
                   for n, f, a, k in work]
        with Prober(server) as prober:
            for thread in threads:
                thread.start()
            quick = server.tool("bash", command="echo quick")
            for thread in threads:
                thread.join()
        prober.answered("slow disk")
        check.same("slow disk: a command runs meanwhile",
                   quick.get("output"), "quick\n")
        for name in ("read", "write", "edit", "exists"):
            check.ok(f"slow disk: {name}", seen.get(name, {}).get("success"),
                     seen.get(name))
        for name in ("get", "put"):
            check.ok(f"slow disk: {name}",
                     seen.get(name, (0,))[0] in (200, 201, 204),
                     seen.get(name))
        with open(log, encoding="ascii") as f:
            calls = set(f.read().split())
        check.ok("slow disk: opens, reads and syncs were slow",
                 any("open" in c for c in calls) and
                 any("read" in c for c in calls) and
                 any("sync" in c for c in calls), calls)
        return prober.worst


# ---- large

def up_and_down(top):
    size = 1 << 30 if LONG else 256 << 20
    path = os.path.join(top, "large")
    with Server(work_dir=top) as server:
        with Prober(server) as prober:
            sent = upload(server, path, size)
            up = server.status("VmHWM")
            status, got, count = download(server, path)
            down = server.status("VmHWM")
        prober.answered("large")
        print(f"  {size >> 20} MiB up: {up} KiB, and down: {down} KiB")
        check.ok("large: received", status == 200 and count == size,
                 (status, count))
        check.same("large: the same bytes", got, sent)
        check.ok(f"large: memory under {MEMORY} KiB", down < MEMORY,
                 f"{up} KiB up, {down} KiB down")
    os.unlink(path)


def upload(server, path, size):
    """PUTs that many bytes, no two blocks alike; their digest."""
    digest, block, s = hashlib.sha256(), os.urandom(1 << 20), \
        server.connect(timeout=60)
    s.sendall(f"PUT {files(path)} HTTP/1.1\r\nHost: 127.0.0.1\r\n"
              f"{t_server.FIELD}Content-Length: {size}\r\n\r\n".encode())
    for i in range(size >> 20):
        piece = i.to_bytes(8, "big") + block[8:]
        digest.update(piece)
        s.sendall(piece)
    status = replies(s, 1)[0]
    s.close()
    check.ok("large: sent", status[0] in (200, 201, 204), status)
    return digest.hexdigest()


def download(server, path):
    digest, count, c = hashlib.sha256(), 0, server.http(60)
    c.request("GET", files(path), headers={
        "X-Sandbox-Authorization": f"Bearer {t_server.TOKEN}"})
    reply = c.getresponse()
    while (piece := reply.read(1 << 20)):
        digest.update(piece)
        count += len(piece)
    c.close()
    return reply.status, digest.hexdigest(), count


# ---- many processes to kill

def trees_killed_together(top, commands=64, processes=60):
    """All time out at once, and no process heeds TERM."""
    room = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    if room != resource.RLIM_INFINITY and room < 2 * commands * processes:
        print("skipped: trees_killed_together: too few processes allowed")
        return
    command = ("trap '' TERM; i=0; while [ $i -lt %d ]; do sleep 300 & "
               "i=$((i + 1)); done; wait" % processes)
    answered = []

    def run():
        begin = time.monotonic()
        _, body = server.call("POST", "/api/bash",
                              {"command": command, "timeout": 6}, 120)
        answered.append((json.loads(body)["error"],
                         time.monotonic() - begin))
    with Server(work_dir=top) as server:
        threads = [threading.Thread(target=run) for _ in range(commands)]
        with Prober(server) as prober:
            for t in threads:
                t.start()
            for t in threads:
                t.join()
        prober.answered("trees killed together")
        check.ok("trees killed together: all are answered",
                 len(answered) == commands and
                 all(a[0] == "Timeout after 6s" for a in answered),
                 answered)
        print(f"  trees killed together: the last reply after "
              f"{max(a[1] for a in answered):.1f} s, 8 are due")


ALL = [idle_connections, descriptor_exhaustion, slow_peers,
       strangers, slow_bodies, never_reading_json, half_closed, resets,
       interrupted_upload, huge_body_without_token, pipelined,
       pipelined_token, slow_disk, up_and_down, trees_killed_together]


def main():
    wanted = sys.argv[1:]
    # ended from outside: the servers are stopped all the same
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    for part in ALL:
        if wanted and part.__name__ not in wanted:
            continue
        begin, failed = time.monotonic(), check.failed
        top = os.path.realpath(tempfile.mkdtemp(prefix="hfsb-limits-"))
        try:
            part(top)
        except Exception as error:
            check.ok(f"{part.__name__}: no exception", False, repr(error))
            traceback.print_exc()
        finally:
            shutil.rmtree(top, ignore_errors=True)
        print(f"{part.__name__}: {time.monotonic() - begin:.1f} s"
              f"{'' if failed == check.failed else ', FAILED'}", flush=True)
    print(f"{check.count} checks, {check.failed} failed")
    return check.failed != 0


if __name__ == "__main__":
    sys.exit(main())
