#!/usr/bin/env python3
"""Measures the server, in one run beside others on the same machine.

    server.py [PART...]      rates start idle latency large episodes many

rates    health and read (1 kB) with wrk, 16 and 256 connections; nginx (one
         worker) answers health by itself and sends a file of the same size,
         FastAPI does what our server does. Every server has the first
         processor for itself and wrk the others, where there are two or more;
         each figure is the best of its rounds, which take turns. In
         brackets: the server's processor time for one request, which a busy
         machine disturbs less, and how busy it was: below 80 % the rate is
         that of wrk or of the machine, and the processor time tells more.
start    from exec to the first reply of health, the best of 20; idle memory;
         size of the static binary
idle     memory with 10,000 connections that have had a reply and are silent
latency  health on a kept connection, every 2 ms, while ten commands run,
         1 GiB is uploaded, and open, read and fsync of one path take 5 s each
large    1 GiB up and down through /api/files, with the peak of memory
episodes 50 actions of an agent as one number, through every way in: episode.py
many     1,000 servers on this machine: many.py

Ends with a table. An aim that is missed is no failure here. BENCH_BRIEF=1: one
round on little data, which shows only that the benchmark works.
"""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "python"))
import episode  # noqa: E402
import many as many_servers  # noqa: E402
import server_limits  # noqa: E402  (its upload and download)
import t_server  # noqa: E402
from t_server import Server, TOKEN, request  # noqa: E402

STATIC = os.environ.get("HFSB_SERVER_STATIC") or None
BRIEF = bool(os.environ.get("BENCH_BRIEF"))
SECONDS = float(os.environ.get("BENCH_SECONDS", "1" if BRIEF else "3"))
LARGE = 16 << 20 if BRIEF else 1 << 30
CORES = sorted(os.sched_getaffinity(0))
MIB = 1024  # of KiB
rows = []


# ---- the table

def row(figure, ours, peer="", ratio="", aim="", met=None):
    rows.append((figure, ours, peer, ratio, aim,
                 "" if met is None else "met" if met else "MISSED"))
    print("  " + ", ".join(x for x in rows[-1] if x), flush=True)


def keep(figure, ours, peer, theirs, unit):
    """A figure and that of a peer, for page.py: bench_keep() of bench.h."""
    path = os.environ.get("BENCH_RESULTS")
    if path and theirs:
        with open(path, "a", encoding="utf-8") as f:
            f.write(f"{figure}\t{ours:.6g}\t{peer}\t{theirs:.6g}\t{unit}\n")


def table():
    head = ("figure", "hfsb-server", "peer", "ratio", "aim", "")
    wide = [max(len(r[i]) for r in rows + [head]) for i in range(6)]
    print()
    for r in [head, tuple("-" * w for w in wide)] + rows:
        print("  ".join(c.ljust(w) for c, w in zip(r, wide)).rstrip())


def skipped(what):
    print(f"skipped: {what}", flush=True)


# ---- the others

def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def on_first_core():
    if len(CORES) > 1:
        os.sched_setaffinity(0, {CORES[0]})


def answered(port, seconds=20):
    """A reply of health on that port; seconds it took, None without one."""
    begin = time.monotonic()
    bytes_out = request("GET", "/api/health", fields="")
    while time.monotonic() - begin < seconds:
        s = socket.socket()
        try:
            s.connect(("127.0.0.1", port))
            s.sendall(bytes_out)
            if s.recv(512).startswith(b"HTTP/1.1 200"):
                return time.monotonic() - begin
        except OSError:
            pass
        finally:
            s.close()
    return None


class Peer:
    """A process of someone else on a port of its own."""

    def __init__(self, name, command, port, env=None, quiet=True):
        self.name, self.port = name, port
        self.process = subprocess.Popen(
            command, preexec_fn=on_first_core,
            stdout=subprocess.DEVNULL if quiet else None,
            stderr=subprocess.DEVNULL if quiet else None,
            env={**os.environ, **(env or {})})
        if answered(port) is None:
            self.stop()
            raise RuntimeError(f"{name} does not answer")

    def pids(self):
        pid = self.process.pid
        try:
            with open(f"/proc/{pid}/task/{pid}/children",
                      encoding="ascii") as f:
                return [pid] + [int(p) for p in f.read().split()]
        except OSError:
            return [pid]

    def cpu(self):
        return sum(t_server.cpu_of(p) for p in self.pids())

    def memory(self):
        total = 0
        for pid in self.pids():
            with open(f"/proc/{pid}/status", encoding="ascii") as f:
                total += int(re.search(r"VmRSS:\s*(\d+)", f.read())[1])
        return total

    def stop(self):
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait()


def nginx_config(top, port, file):
    text = f"""
{'user root;' if os.getuid() == 0 else ''}
daemon off;
worker_processes 1;
worker_rlimit_nofile 12000;
pid {top}/nginx.pid;
error_log {top}/nginx.log crit;
events {{ worker_connections 11000; }}
http {{
    access_log off;
    keepalive_timeout 600;
    keepalive_requests 1000000000;
    sendfile on;
    client_body_temp_path {top}/body;
    proxy_temp_path {top}/proxy;
    fastcgi_temp_path {top}/fastcgi;
    uwsgi_temp_path {top}/uwsgi;
    scgi_temp_path {top}/scgi;
    server {{
        listen 127.0.0.1:{port} backlog=4096;
        location = /api/health {{
            default_type application/json;
            return 200 '{{"status":"ok"}}';
        }}
        location / {{ root {file}; }}
    }}
}}
"""
    path = os.path.join(top, "nginx.conf")
    with open(path, "w", encoding="ascii") as f:
        f.write(text)
    return path


def find_nginx():
    return shutil.which("nginx") or shutil.which("/usr/sbin/nginx")


def nginx_command(top, port):
    conf = nginx_config(top, port, top)
    return [find_nginx(), "-c", conf, "-p", top, "-e",
            os.path.join(top, "nginx.log")]


def nginx(top):
    if not find_nginx():
        skipped("nginx is not installed")
        return None
    port = free_port()
    return Peer("nginx", nginx_command(top, port), port)


def fastapi():
    for python in (sys.executable, "/usr/bin/python3"):
        if os.path.exists(python) and subprocess.run(
                [python, "-c", "import fastapi, uvicorn"], check=False,
                capture_output=True).returncode == 0:
            port = free_port()
            return Peer("FastAPI", [
                python, "-m", "uvicorn", "--app-dir", HERE, "--port",
                str(port), "--log-level", "warning", "--no-access-log",
                "fastapi_app:app"], port, {"SANDBOX_API_TOKEN": TOKEN})
    skipped("FastAPI and uvicorn are not installed")
    return None


# ---- rates

class Ours:
    def __init__(self, top, binary, name):
        core = CORES[0] if len(CORES) > 1 else None
        self.name = name
        self.server = Server(work_dir=top, binary=binary, cpu=core)
        self.port, self.stop = self.server.port, self.server.stop
        self.cpu = self.server.cpu


def wrk(port, connections, path, script=None):
    """Requests a second."""
    command = ["wrk", "-t", str(1 if len(CORES) < 4 else 2), "-c",
               str(connections), "-d", f"{SECONDS:g}s"]
    if script:
        command += ["-s", script]
    done = subprocess.run(
        command + [f"http://127.0.0.1:{port}{path}"], capture_output=True,
        text=True, check=True, preexec_fn=lambda: len(CORES) > 1 and
        os.sched_setaffinity(0, set(CORES[1:])))
    trouble = re.search(r"Non-2xx.*|Socket errors.*", done.stdout)
    if trouble:
        print(f"  wrk, port {port}{path}: {trouble[0]}")
        if "Non-2xx" in trouble[0]:
            raise RuntimeError("a reply was not 200")
    rate = float(re.search(r"Requests/sec:\s*([\d.]+)", done.stdout)[1])
    return rate


def measure(kind, connections, servers, script):
    """The best rate of each, and the part of its processor it used then."""
    best = {}
    for turn in range(1 if BRIEF else 3):
        for server in servers:
            if turn and server.name == "FastAPI":
                continue
            path, how = "/api/health", None
            if kind == "read" and server.name == "nginx":
                path = "/small.txt"
            elif kind == "read":
                path, how = "/api/read", script
            begin, cpu = time.monotonic(), server.cpu()
            rate = wrk(server.port, connections, path, how)
            busy = (server.cpu() - cpu) / (time.monotonic() - begin)
            if rate > best.get(server.name, (0, 0))[0]:
                best[server.name] = (rate, busy)
    return best


def rates(top):
    if not shutil.which("wrk"):
        skipped("wrk is not installed: no rates")
        return
    small, script = os.path.join(top, "small.txt"), os.path.join(top, "r.lua")
    with open(small, "w", encoding="ascii") as f:
        f.write("".join(f"line {i:04d} of a small file\n"
                        for i in range(40)))  # 1040 bytes
    body = json.dumps({"path": small})
    with open(script, "w", encoding="ascii") as f:
        f.write(f"wrk.method = 'POST'\nwrk.body = '{body}'\n"
                f"wrk.headers['Content-Type'] = 'application/json'\n"
                f"wrk.headers['X-Sandbox-Authorization'] = "
                f"'Bearer {TOKEN}'\n")
    servers = [Ours(top, t_server.BINARY, "ours")]
    try:
        if STATIC:
            servers.append(Ours(top, STATIC, "static"))
        servers += [p for p in (nginx(top), fastapi()) if p]
        for kind in ("health", "read"):
            for connections in (16, 256):
                show_rates(kind, connections,
                           measure(kind, connections, servers, script))
    finally:
        for server in servers:
            server.stop()


def show_rates(kind, connections, best):
    rate, busy = best["ours"]
    cost = busy / rate * 1e6
    aims = {"nginx": 1, "FastAPI": 25} if kind == "health" else {}
    for name in ("nginx", "FastAPI", "static"):
        if name not in best:
            continue
        theirs, their_busy = best[name]
        their_cost = their_busy / theirs * 1e6
        aim, cpu = aims.get(name), their_cost / cost
        if name != "static":
            keep(f"server: {kind}, {connections} connections", rate, name,
                 theirs, "/s")
        label = "static build" if name == "static" else name
        row(f"{kind}, {connections} connections",
            f"{rate:,.0f}/s ({cost:.1f} us, {busy:.0%})",
            f"{label} {theirs:,.0f}/s ({their_cost:.1f} us, "
            f"{their_busy:.0%})", f"{rate / theirs:.2f} (cpu {cpu:.2f})",
            f">= {aim}" if aim else "",
            rate >= aim * theirs if aim else None)


# ---- start, memory, size

def cold_start(command, port, rounds=2 if BRIEF else 20):
    """From exec to a reply: the best and the median, in milliseconds."""
    took = []
    env = {**os.environ, "SANDBOX_API_TOKEN": TOKEN}
    null = os.open(os.devnull, os.O_RDWR)
    for _ in range(rounds):
        begin = time.monotonic()
        pid = os.posix_spawn(command[0], command, env, file_actions=[
            (os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)])
        good = answered(port, 10)
        took.append((time.monotonic() - begin) * 1000)
        os.kill(pid, 15)
        os.waitpid(pid, 0)
        if good is None:
            raise RuntimeError(f"{command[0]} does not answer")
    os.close(null)
    return min(took), sorted(took)[len(took) // 2]


def idle_memory(binary):
    with Server(binary=binary) as server:
        time.sleep(0.3)
        fresh = server.status("VmRSS")
        server.health()
        return fresh, server.status("VmRSS")


def start(top):
    port = free_port()
    theirs = None
    if find_nginx():
        theirs = cold_start(nginx_command(top, port), port)
        peer = nginx(top)
        their_memory = peer.memory()
        peer.stop()
    for name, binary in (("static", STATIC), ("dynamic", t_server.BINARY)):
        if not binary:
            continue
        best, middle = cold_start([
            os.path.abspath(binary), "--host", "127.0.0.1", "--port",
            str(port)], port)
        row(f"cold start, {name}", f"{middle:.1f} ms (best {best:.1f})",
            f"nginx {theirs[1]:.1f} ms" if theirs else "",
            f"{theirs[1] / middle:.2f}" if theirs else "", "< 5 ms",
            middle < 5)
        keep(f"server: cold start, {name}", middle, "nginx",
             theirs and theirs[1], "ms")
    for name, binary in (("static", STATIC), ("dynamic", t_server.BINARY)):
        if not binary:
            continue
        fresh, used = idle_memory(binary)
        aim = name == "static" or not STATIC
        row(f"idle memory, {name}", f"{fresh} KiB, {used} after a request",
            f"nginx {their_memory} KiB" if theirs else "",
            f"{their_memory / fresh:.2f}" if theirs else "",
            "< 1024 KiB" if aim else "", fresh < MIB if aim else None)
        keep(f"server: idle memory, {name}", fresh, "nginx",
             theirs and their_memory, "KiB")
    if STATIC:
        size = os.path.getsize(STATIC)
        row("size of the static binary", f"{size:,} bytes", "", "",
            "< 340,000", size < 340000)


# ---- 10,000 connections

def hold(port, count):
    held, bytes_out = [], request("GET", "/api/health", fields="")
    for _ in range(count):
        s = socket.create_connection(("127.0.0.1", port), 10)
        s.sendall(bytes_out)
        held.append(s)
    for s in held:
        if not s.recv(512).startswith(b"HTTP/1.1 200"):
            raise RuntimeError("one of many connections was not answered")
    return held


def idle(top):
    wanted = 100 if BRIEF else 10000
    count = min(wanted, t_server.more_descriptors(12000) - 300)
    if count < wanted:
        print(f"  only {count} connections: the system allows no more")
    theirs = None
    peer = nginx(top)
    if peer:
        held = hold(peer.port, count)
        theirs = peer.memory()
        for s in held:
            t_server.reset(s)
        peer.stop()
    with Server("--max-connections", "10200", "--idle-timeout", "600",
                binary=STATIC or t_server.BINARY) as server:
        held = hold(server.port, count)
        ours = server.status("VmRSS")
        took = server.health() * 1000
        for s in held:
            t_server.reset(s)
    row(f"memory, {count:,} idle connections",
        f"{ours / MIB:.1f} MiB (a new one: {took:.1f} ms)",
        f"nginx {theirs / MIB:.1f} MiB" if theirs else "",
        f"{theirs / ours:.2f}" if theirs else "", "< 12 MiB",
        ours < 12 * MIB)
    keep(f"server: memory of {count:,} idle connections", ours / MIB, "nginx",
         theirs and theirs / MIB, "MiB")


# ---- latency while much goes on

def probe(port):
    """As a process of its own: health every 2 ms until stdin ends; times of
    begin and end of each on stdout."""
    s = socket.create_connection(("127.0.0.1", port), 30)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    bytes_out, seen, over = request("GET", "/api/health", fields=""), [], []
    threading.Thread(target=lambda: over.append(sys.stdin.read()),
                     daemon=True).start()
    while not over:
        begin = time.monotonic()
        s.sendall(bytes_out)
        s.recv(4096)
        seen.append((begin, time.monotonic() - begin))
        time.sleep(0.002)
    json.dump(seen, sys.stdout)


def start_probe(port):
    return subprocess.Popen([sys.executable, __file__, "--probe", str(port)],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                            text=True)


def percentiles(seen):
    times = sorted(t * 1000 for _, t in seen)
    return times[len(times) // 2], times[len(times) * 99 // 100], times[-1]


def slow_work(server, path):
    """What touches the slow path: read, write, edit, raw bytes."""
    calls = [lambda: server.tool("read", path=path, timeout=120),
             lambda: server.tool("write", path=path + "2", content="x",
                                 timeout=120),
             lambda: server.call("GET", t_server.files(path), timeout=120),
             lambda: server.call("PUT", t_server.files(path + "3"), b"x",
                                 timeout=120)]
    threads = [threading.Thread(target=call) for call in calls]
    for thread in threads:
        thread.start()
    return threads


def latency(top):
    shim, path = os.environ.get("SLOW_SHIM"), os.path.join(top, "slow-file")
    with open(path, "w", encoding="ascii") as f:
        f.write("slow\n")
    env = {"LD_PRELOAD": shim, "SLOW_NAME": "slow-file",
           "SLOW_MS": "500" if BRIEF else "5000"} if shim else {}
    if not shim:
        skipped("no library to preload: no slow disk")
    peer = nginx(top)
    with Server(work_dir=top, env=env) as server:
        quiet = start_probe(server.port)
        time.sleep(0.2 if BRIEF else 2)
        alone = json.loads(quiet.communicate("")[0])
        commands = [threading.Thread(target=server.tool, args=("bash",),
                                     kwargs={"command": c, "timeout": 90})
                    for c in ["sleep 60"] * 5 + [
                        "i=0; while [ $i -lt 600 ]; do echo line $i; "
                        "sleep 0.1; i=$((i + 1)); done"] * 5]
        for thread in commands:
            thread.start()
        time.sleep(0.5)
        probes = [start_probe(p.port) for p in (server, peer) if p]
        time.sleep(1)
        slow = slow_work(server, path)
        begin = time.monotonic()
        upload = subprocess.run([sys.executable, __file__, "--upload",
                                 str(server.port), os.path.join(top, "up")],
                                check=False)
        end = time.monotonic()
        for thread in slow:
            thread.join()
        time.sleep(max(0, begin + (1 if BRIEF else 10) - time.monotonic()))
        seen = [json.loads(p.communicate("")[0]) for p in probes]
        server.tool("kill")
        for thread in commands:
            thread.join()
    if peer:
        peer.stop()
    if upload.returncode:
        raise RuntimeError("the upload failed")
    row("health, nothing else goes on", "p50 {:.2f}, p99 {:.2f}, max {:.1f} "
        "ms".format(*percentiles(alone)))
    for name, pick in (("all of it", lambda t: True),
                       ("the upload alone", lambda t: begin <= t <= end)):
        ours = percentiles([x for x in seen[0] if pick(x[0])])
        theirs = percentiles([x for x in seen[1] if pick(x[0])]) \
            if len(seen) > 1 else None
        row(f"health while much goes on, {name}",
            "p50 {:.2f}, p99 {:.2f}, max {:.1f} ms".format(*ours),
            "nginx, same time: p99 {:.2f}, max {:.1f} ms".format(*theirs[1:])
            if theirs else "",
            f"{theirs[1] / ours[1]:.2f}" if theirs else "", "p99 < 5 ms",
            ours[1] < 5)


# ---- large

def large(top):
    size, path = LARGE, os.path.join(top, "large")
    if shutil.disk_usage(top).free < 3 * size:
        skipped(f"not enough room for {size >> 20} MiB")
        return
    their_down = None
    with Server(work_dir=top) as server:
        begin = time.monotonic()
        sent = server_limits.upload(server, path, size)
        up = time.monotonic() - begin
        begin = time.monotonic()
        status, got, count = server_limits.download(server, path)
        down = time.monotonic() - begin
        peak = server.status("VmHWM")
    peer = nginx(top)
    if peer:
        begin = time.monotonic()
        c = t_server.http.client.HTTPConnection("127.0.0.1", peer.port)
        c.request("GET", "/large")
        reply, digest = c.getresponse(), server_limits.hashlib.sha256()
        while (piece := reply.read(1 << 20)):
            digest.update(piece)
        c.close()
        peer.stop()
        their_down = time.monotonic() - begin
    keep(f"server: download of {size >> 20} MiB", down, "nginx", their_down,
         "s")
    same = status == 200 and count == size and got == sent
    row(f"{size >> 20} MiB up, with fsync", f"{up:.2f} s ({size / up / 1e6:,.0f} MB/s)")
    row(f"{size >> 20} MiB down", f"{down:.2f} s ({size / down / 1e6:,.0f} MB/s)",
        f"nginx {their_down:.2f} s" if their_down else "",
        f"{their_down / down:.2f}" if their_down else "")
    row("up and down: the same bytes", "yes" if same else "NO", "", "",
        "sha256", same)
    row("up and down: peak of memory", f"{peak / MIB:.1f} MiB", "", "",
        "< 16 MiB", peak < 16 * MIB)


# ---- in files of their own

def episodes(top):
    episode.episode(top, row, keep, fastapi)


def many(top):
    many_servers.many(top, row, keep, STATIC or t_server.BINARY)


PARTS = [rates, start, idle, latency, large, episodes, many]


class Elsewhere:
    """What upload() needs of a server that another process started."""

    def __init__(self, port):
        self.port = port

    def connect(self, timeout):
        return socket.create_connection(("127.0.0.1", self.port), timeout)


def main():
    if sys.argv[1:2] == ["--probe"]:
        return probe(int(sys.argv[2]))
    if sys.argv[1:2] == ["--upload"]:
        server_limits.upload(Elsewhere(int(sys.argv[2])), sys.argv[3],
                             LARGE)
        return server_limits.check.failed
    bad, wanted = 0, sys.argv[1:]
    # ended from outside: the servers are stopped all the same
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    print(f"  {len(CORES)} processors" + (
        ": the servers on the first, wrk on the rest" if len(CORES) > 1 else
        ", shared by all"))
    for part in PARTS:
        if wanted and part.__name__ not in wanted:
            continue
        top = os.path.realpath(tempfile.mkdtemp(prefix="hfsb-bench-"))
        try:
            part(top)
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            print(f"  {part.__name__}: it broke: {error}")
            bad = 1
        finally:
            shutil.rmtree(top, ignore_errors=True)
    if rows:
        table()
    return bad


if __name__ == "__main__":
    sys.exit(main())
