"""Many servers on one machine, as a host of sandboxes has them: all started,
all healthy, a command on each, all stopped. Wall time of each step, PSS of a
server, time of a call. A part of server.py. Two peers: the same command run by
this program without a server, and as many processes of sleep that are stopped.
"""
import os
import re
import signal
import socket
import subprocess
import time

from t_server import TOKEN, request

BRIEF = bool(os.environ.get("BENCH_BRIEF"))


class One:
    """A server on a Unix socket: no ports to look for."""

    def __init__(self, binary, top, number):
        self.path = os.path.join(top, f"{number}.sock")
        self.process = subprocess.Popen(
            [binary, "--unix", self.path, "--quiet", "--confine", "none"],
            cwd=top, env={**os.environ, "SANDBOX_API_TOKEN": TOKEN})

    def ask(self, message):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(30)
        try:
            s.connect(self.path)
            s.sendall(message)
            return s.recv(4096)
        finally:
            s.close()

    def is_healthy(self):
        try:
            return b" 200 " in self.ask(request("GET", "/api/health",
                                                fields=""))[:20]
        except OSError:
            return False

    def pss(self):
        """Of both of its processes, in KiB."""
        pid, total = self.process.pid, 0
        with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as f:
            pids = [pid] + [int(p) for p in f.read().split()]
        for p in pids:
            with open(f"/proc/{p}/smaps_rollup", encoding="ascii") as f:
                total += int(re.search(r"^Pss:\s*(\d+)", f.read(), re.M)[1])
        return total


def command(one):
    reply = one.ask(request(
        "POST", "/api/bash", {"command": "echo here"}))
    if b"here" not in reply:
        raise RuntimeError(f"a command failed: {reply[:200]}")


def command_alone(top):
    out = subprocess.run(["/bin/bash", "-c", "echo here"], cwd=top,
                         stdin=subprocess.DEVNULL, capture_output=True,
                         check=True).stdout
    if out != b"here\n":
        raise RuntimeError(f"a command without a server failed: {out}")


def seconds(function, things):
    begin = time.monotonic()
    for thing in things:
        function(thing)
    return time.monotonic() - begin


def stop(processes):
    """All at once; returns the seconds it took."""
    begin = time.monotonic()
    for process in processes:
        process.send_signal(signal.SIGTERM)
    for process in processes:
        process.wait(30)
    return time.monotonic() - begin


def sleepers(count):
    return [subprocess.Popen(["/bin/sleep", "600"]) for _ in range(count)]


def many(top, row, keep, binary):
    count = 20 if BRIEF else 1000
    begin = time.monotonic()
    servers = []
    try:
        servers = [One(os.path.abspath(binary), top, i) for i in range(count)]
        waiting = list(servers)
        while waiting and time.monotonic() - begin < 120:
            waiting = [s for s in waiting if not s.is_healthy()]
        if waiting:
            raise RuntimeError(f"{len(waiting)} servers do not answer")
        row(f"{count} servers, until all are healthy",
            f"{time.monotonic() - begin:.2f} s")
        pss = sorted(s.pss() for s in servers[:100])
        row(f"{count} servers, PSS of one", f"{pss[len(pss) // 2]} KiB")
        ours = seconds(command, servers) / count * 1000
        peer = seconds(command_alone, [top] * count) / count * 1000
        row(f"{count} servers, a command on each", f"{ours:.2f} ms a call",
            f"bash alone {peer:.2f}", f"{ours / peer:.2f}")
        keep(f"{count} servers: a command on each", ours, "bash alone", peer,
             "ms")
    finally:
        ours = stop([s.process for s in servers])
    peer = stop(sleepers(2 * count))  # a server has two processes
    row(f"{count} servers, stopped", f"{ours:.2f} s",
        f"sleep {peer:.2f} s", f"{ours / peer:.2f}")
    keep(f"{count} servers: stopped", ours, "twice as many sleep", peer, "s")
