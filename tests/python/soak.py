#!/usr/bin/env python3
"""Hours in the life of a server: a mixed load with faults, and now and then a
pause in which everything must be as it was.

    soak.py [SECONDS [SEED]]                        default: 40 seconds

Clients run commands (short, long, endless, in the background, deaf to TERM,
detached), change one tree with every file tool, speak MCP, upload, repeat
requests by their key, leave in the middle of a request or a reply, send
nonsense and wrong tokens. At each pause the server has no process
and no temporary file. Memory, descriptors (those of the output of finished
commands stay open) and spill files are printed, and compared only when there
were 20 pauses or more: the last quarter with the second. Needs Linux and the standard library. Ends with
"N checks, N failed".
"""
import json
import os
import random
import shutil
import statistics
import sys
import tempfile
import threading
import time

from reference_client import Checks
from t_server import Server, request, reset, wait_for

SECONDS = float(sys.argv[1]) if len(sys.argv) > 1 else 40
SEED = int(sys.argv[2]) if len(sys.argv) > 2 else int(time.time())
CLIENTS = 8
GROWTH = 1.10  # from the second quarter to the last
check = Checks()


class Client(threading.Thread):
    """One client: a random step after the other, with a pause on request."""

    def __init__(self, server, top, number, gate):
        super().__init__(daemon=True)
        self.server, self.top, self.gate = server, top, gate
        self.number = number
        self.rng = random.Random(SEED * 1000 + number)
        self.steps = dict.fromkeys((s.__name__ for s in STEPS), 0)
        self.errors = []

    def run(self):
        while self.gate.enter():
            step = self.rng.choice(STEPS)
            try:
                step(self)
                self.steps[step.__name__] += 1
            except Exception as error:
                self.errors.append(f"{step.__name__}: {error!r}")
            finally:
                self.gate.leave()

    def tool(self, name, **arguments):
        status, body = self.server.call("POST", "/api/" + name, arguments, 60)
        return {"status": status, **json.loads(body)}

    def name(self):
        return f"d{self.rng.randrange(4)}/f{self.rng.randrange(20)}.txt"

    def bytes_of(self, raw, then=reset, reads=0):
        s = self.server.connect()
        s.sendall(raw)
        if reads:
            s.recv(reads)
        then(s)


class Gate:
    """Lets clients in until it is closed, and knows when all are out."""

    def __init__(self):
        self.lock = threading.Condition()
        self.inside, self.open, self.over = 0, True, False

    def enter(self):
        with self.lock:
            self.lock.wait_for(lambda: self.open or self.over)
            if self.over:
                return False
            self.inside += 1
            return True

    def leave(self):
        with self.lock:
            self.inside -= 1
            self.lock.notify_all()

    def close(self):
        with self.lock:
            self.open = False
            return self.lock.wait_for(lambda: not self.inside, 90)

    def set(self, over):
        with self.lock:
            self.open, self.over = not over, over
            self.lock.notify_all()


# ---- steps: what a client does

def runs(c):
    r = c.tool("bash", command=f"echo {c.number}; exit {c.rng.randrange(3)}")
    assert r["output"].startswith(str(c.number)), r


def prints_much(c):
    r = c.tool("bash", command=f"seq {c.rng.randrange(200000)}")
    assert r["success"], r


def times_out(c):
    r = c.tool("bash", command=c.rng.choice((
        "sleep 60", "trap '' TERM; sleep 60", "setsid -w sleep 60",
        "(setsid env -i sleep 60 &); sleep 60", "yes > /dev/null",
        "for i in 1 2 3 4 5 6; do sleep 60 & done; wait")), timeout=0.3)
    assert not r["success"], r


def leaves_something_running(c):
    r = c.tool("bash", command="sleep 2 & echo started")
    assert r["output"].startswith("started"), r


def in_the_background(c):
    r = c.tool("bash", command="cat; sleep 60", background=True)
    job = r.get("job_id") or r.get("job") or r.get("id")
    c.tool("bash_input", id=job, text="hello\n")
    c.tool("bash_output", id=job, wait_ms=20)
    c.tool("kill", id=job)


def writes(c):
    size = c.rng.choice((0, 10, 5000, 300000))
    text = "".join(f"line {i} of {c.number}\n" for i in range(size // 12 + 1))
    c.tool("write", path=c.name(), content=text)


def edits(c):
    i = c.rng.randrange(300)
    c.tool("edit", path=c.name(), old_str=f"line {i} of {c.number}\n",
           new_str=f"line {i} of {c.number}\nline {i}\n")


def patches(c):
    name = c.name()
    c.tool("apply_patch", patch=f"*** Begin Patch\n*** Add File: {name}.new\n"
           f"+one\n*** Delete File: {name}\n*** End Patch")


def searches(c):
    c.tool("grep", pattern=f"line [0-9]*7 of {c.number}")
    c.tool("glob", pattern="**/*.txt")
    c.tool("read", path=c.name())
    c.tool("list", path=".")


def speaks_mcp(c):
    def post(method, params, session=None):
        h = c.server.http(60)
        fields = {"Authorization": "Bearer a-token-for-tests",
                  "Content-Type": "application/json",
                  "Accept": "application/json, text/event-stream"}
        if session:
            fields["Mcp-Session-Id"] = session
        body = {"jsonrpc": "2.0", "method": method, "params": params}
        if not method.startswith("notifications"):
            body["id"] = 1
        h.request("POST", "/mcp", json.dumps(body), fields)
        reply = h.getresponse()
        reply.read()
        got = reply.getheader("Mcp-Session-Id")
        h.close()
        return got
    session = post("initialize", {
        "protocolVersion": "2025-06-18", "capabilities": {},
        "clientInfo": {"name": f"c{c.number}", "version": "1"}})
    post("notifications/initialized", {}, session)
    post("tools/list", {}, session)
    post("tools/call", {"name": "bash", "arguments": {"command": "echo x"}},
         session)
    if c.rng.random() < 0.5: # the others are forgotten
        h = c.server.http(60)
        h.request("DELETE", "/mcp", headers={
            "Authorization": "Bearer a-token-for-tests",
            "Mcp-Session-Id": session})
        h.getresponse().read()
        h.close()


def uploads(c):
    status, _ = c.server.call("PUT", f"/api/files?path=up{c.number}.bin",
                              os.urandom(c.rng.randrange(200000)), 60)
    assert status in (200, 201, 204), status
    c.server.call("GET", f"/api/files?path=up{c.number}.bin", timeout=60)


def repeats(c):
    key = f"Idempotency-Key: {c.number}-{c.rng.random()}\r\n"
    raw = request("POST", "/api/bash", {"command": "echo once"},
                  "Authorization: Bearer a-token-for-tests\r\n" + key)
    c.bytes_of(raw)
    c.bytes_of(raw, lambda s: s.close(), 100)


def leaves_early(c):
    raw = request("POST", "/api/bash", {
        "command": "sleep 0.2; seq 100000", "stream": True})
    c.bytes_of(raw[:c.rng.randrange(1, len(raw))])
    c.bytes_of(raw, reset, 50)
    raw = request("PUT", f"/api/files?path=cut{c.number}", b"x" * 100000)
    c.bytes_of(raw[:c.rng.randrange(len(raw))],
               c.rng.choice((reset, lambda s: s.close())))


def talks_nonsense(c):
    c.bytes_of(os.urandom(c.rng.randrange(1, 500)))
    c.bytes_of(request("POST", "/api/bash", b"{" * 2000), reset, 10)
    status, _ = c.server.call("POST", "/api/bash", {"command": "id"},
                              token="wrong")
    assert status == 401, status


STEPS = (runs, runs, prints_much, times_out, leaves_something_running,
         in_the_background, writes, edits, patches, searches, speaks_mcp,
         uploads, repeats, leaves_early, talks_nonsense)


# ---- pauses

def temporaries(*folders):
    return [os.path.join(where, n) for top in folders
            for where, _, names in os.walk(top) for n in names
            if ".hfsb-" in n and not n.startswith("hfsb-")]


def strays(top):
    """Processes that work in a folder, whoever their parent is."""
    found = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            where = os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            continue
        if where.startswith(top + "/"):
            found.add(pid)
    return found


def settle(server):
    """Ends the commands of clients that left."""
    server.tool("kill", timeout=30)
    wait_for(lambda: json.loads(server.call("GET", "/api/health")[1]).get(
        "running", 0) == 0, 20)


def sample(server, top, spills):
    return {"rss": server.status("VmRSS"), "descriptors": server.descriptors(),
            "processes": len(strays(os.path.dirname(top)) - server.own),
            "temporaries": len(temporaries(top)),
            "spills": len(os.listdir(spills))}


def pause(server, gate, top, spills, samples):
    check.ok("every step ends", gate.close(), f"{gate.inside} go on")
    settle(server)

    def quiet():
        now = sample(server, top, spills)
        return not now["processes"] and not now["temporaries"]
    wait_for(quiet, 20, 0.2)
    samples.append(sample(server, top, spills))
    check.ok("a pause: no command and no temporary is left", quiet(),
             samples[-1])


def flat(samples, what, slack):
    n = len(samples)
    if n < 4:
        return
    second = statistics.median(s[what] for s in samples[n // 4:n // 2])
    last = statistics.median(s[what] for s in samples[n - n // 4:])
    print(f"  {what}: {second} in the second quarter, {last} in the last")
    if n >= 20:
        check.ok(f"{what}: flat", last <= second * GROWTH + slack,
                 f"{second} -> {last}")


def main():
    top = tempfile.mkdtemp(prefix="soak.")
    spills = os.path.join(top, "spills")
    work = os.path.join(top, "work")
    os.mkdir(spills)
    os.mkdir(work)
    gate, samples = Gate(), []
    every = max(4.0, min(60.0, SECONDS / 8))
    print(f"  {SECONDS:.0f} s, seed {SEED}, a pause every {every:.0f} s")
    try:
        with Server(work_dir=work, env={"TMPDIR": spills}) as server:
            server.own = strays(top)
            clients = [Client(server, work, i, gate) for i in range(CLIENTS)]
            for c in clients:
                c.start()
            end = time.monotonic() + SECONDS
            while time.monotonic() < end:
                time.sleep(every)
                pause(server, gate, work, spills, samples)
                print(f"  {len(samples):4}  {samples[-1]}", flush=True)
                gate.set(over=False)
            gate.close()
            gate.set(over=True)
            for c in clients:
                c.join(60)
            errors = [e for c in clients for e in c.errors]
            check.ok("every step does as it should", not errors,
                     f"{len(errors)} errors: {errors[:5]}")
            print("  steps:", {s.__name__: sum(c.steps[s.__name__]
                                               for c in clients)
                               for s in STEPS})
            flat(samples, "rss", 512)
            flat(samples, "descriptors", 8)
            flat(samples, "spills", 0)
            check.ok("the server ends well", server.stop() == 0)
    finally:
        shutil.rmtree(top, ignore_errors=True)
    print(f"{check.count} checks, {check.failed} failed")
    return check.failed != 0


if __name__ == "__main__":
    sys.exit(main())
