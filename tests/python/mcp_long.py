"""Calls longer than a client's timeout, through `hfsb mcp` and with the clock
of a real client: no request may take longer than 60 s.
  mcp_long.py HFSB [SCALE]    SCALE divides all times (1: three minutes)
One command of three minutes; a build of 33 s in three calls; ten commands at
once of 65 s; one that is cancelled; the end of input while commands run: all
processes are gone within a second.
Prints each answer and its time; exit status 1 when a check fails."""
import glob
import json
import os
import re
import subprocess
import sys
import threading
import time

HFSB, SCALE = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 1.0
TIMEOUT, PATIENCE = 60 / SCALE, 50 / SCALE
SLACK = 8  # seconds for a busy machine
NAP = "%d.%d" % (9000, os.getpid())  # a sleep that no one else has
failed = 0
began = time.monotonic()


def say(text):
    print("%7.2f s  %s" % (time.monotonic() - began, text), flush=True)


def check(what, ok):
    global failed
    if not ok:
        failed += 1
        say("FAIL  " + what)


def naps():
    """How many processes have NAP in their arguments."""
    count = 0
    for path in glob.glob("/proc/[0-9]*/cmdline"):
        try:
            with open(path, "rb") as f:
                count += NAP.encode() in f.read().split(b"\0")
        except OSError:
            pass
    return count


class Client:
    def __init__(self):
        self.server = subprocess.Popen(
            [HFSB, "mcp", "--patience", "%g" % PATIENCE],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.last = 0
        self.answers, self.beats = {}, {}
        self.changed = threading.Condition()
        threading.Thread(target=self.read, daemon=True).start()
        self.request("initialize", {
            "protocolVersion": "2025-11-25", "capabilities": {},
            "clientInfo": {"name": "mcp_long", "version": "1"}})
        self.send({"method": "notifications/initialized"})

    def read(self):
        for line in self.server.stdout:
            message = json.loads(line)
            with self.changed:
                if "method" in message:
                    token = message["params"].get("progressToken")
                    self.beats[token] = self.beats.get(token, 0) + 1
                else:
                    self.answers[message["id"]] = message
                self.changed.notify_all()

    def send(self, message):
        message["jsonrpc"] = "2.0"
        text = json.dumps(message) + "\n"
        self.server.stdin.write(text.encode())
        self.server.stdin.flush()

    def begin(self, method, params):
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        return self.last

    def wait(self, number, begin):
        """The answer, within the client's timeout for a request."""
        end = begin + TIMEOUT + (SLACK if SCALE > 1 else 0)
        with self.changed:
            while number not in self.answers:
                left = end - time.monotonic()
                if left <= 0:
                    check("request %d is answered in time" % number, False)
                    return {"result": {"content": [{"text": ""}]}}
                self.changed.wait(left)
            return self.answers.pop(number)

    def request(self, method, params):
        now = time.monotonic()
        return self.wait(self.begin(method, params), now)

    def start(self, command):
        number = self.last + 1
        return self.begin("tools/call", {
            "name": "bash",
            "arguments": {"command": command, "timeout": 600},
            "_meta": {"progressToken": number}})

    def tool(self, name, arguments):
        return text_of(self.request("tools/call", {"name": name,
                                                   "arguments": arguments}))


def text_of(answer):
    return "\n".join(block.get("text", "")
                     for block in answer["result"]["content"])


def follow(client, name, text, last):
    """Asks for the rest of a job until it has ended; all of its output."""
    job = re.search(r"as job (\S+?)[.,:;]?\s", text)
    check(name + " is answered with a job: " + text[:200], job is not None)
    if not job:
        return text
    whole, offset, asked = "", 0, 0
    while True:
        part = client.tool("bash_output", {
            "id": job.group(1), "offset": offset,
            "wait_ms": int(40000 / SCALE)})
        asked += 1
        whole += part
        following = re.search(r"next_offset\D{0,4}(\d+)", part)
        offset = int(following.group(1)) if following else 0
        if last in part or asked > 60:
            break
    say("%s: ended, after %d looks" % (name, asked))
    return whole


def three_minutes(client):
    begin = time.monotonic()
    number = client.start(
        "i=0; while [ $i -lt 18 ]; do i=$((i + 1)); echo tick-$i; sleep %g; "
        "done; echo the-end" % (10 / SCALE))
    answer = client.wait(number, begin)
    took = time.monotonic() - begin
    say("three minutes: answered after %.2f s, %d progress messages" %
        (took, client.beats.get(number, 0)))
    check("it is answered at the deadline",  # in whole milliseconds
          PATIENCE - 0.01 <= took < PATIENCE + SLACK)
    if SCALE == 1:
        check("it shows that it lives", client.beats.get(number, 0) >= 8)
    text = text_of(answer)
    check("with its output so far", "tick-1" in text)
    print("| " + text.replace("\n", "\n| "))
    whole = follow(client, "three minutes", text, "the-end")
    took = time.monotonic() - begin
    check("it runs to its end", 180 / SCALE <= took < 180 / SCALE + 40)
    for i in range(6, 19):
        check("tick-%d is there" % i, "tick-%d\n" % i in whole)


def build(client):
    """151 lines in 33 s; a model pays for each call."""
    begin = time.monotonic()
    text = client.tool("bash", {
        "command": "i=0; while [ $i -lt 151 ]; do i=$((i + 1)); echo CC $i; "
        "sleep %g; done; exit 2" % (33 / 151 / SCALE), "background": True})
    job = re.search(r"as job (\S+?)[.,:;]?\s", text).group(1)
    whole, calls = "", 1
    while "exit code 2" not in whole and calls < 200:
        whole += client.tool("bash_output", {
            "id": job, "wait_ms": int(45000 / SCALE)})
        calls += 1
    took = time.monotonic() - begin
    say("build: %d calls in %.2f s" % (calls, took))
    check("a build takes few calls",  # more only if the machine is busy
          calls <= 2 + int(took / (45 / SCALE)))
    for i in range(1, 152):
        check("CC %d is there once" % i, whole.count("CC %d\n" % i) == 1)


def ten_at_once(client):
    begin = time.monotonic()
    numbers = [client.start("echo begin-%d; sleep %g; echo end-%d" %
                            (i, 65 / SCALE, i)) for i in range(10)]
    texts = [text_of(client.wait(n, begin)) for n in numbers]
    took = time.monotonic() - begin
    say("ten at once: all answered after %.2f s" % took)
    check("ten are answered when patience ends", took < PATIENCE + SLACK)
    for i, text in enumerate(texts):
        check("begin-%d is in its answer" % i, "begin-%d" % i in text)
        follow(client, "number %d of ten" % i, text, "end-%d" % i)
    check("ten ran side by side",
          time.monotonic() - begin < (65 + 40) / SCALE + 2 * SLACK)


def cancelled(client):
    number = client.start("sleep %s & setsid sleep %s & wait" % (NAP, NAP))
    time.sleep(max(10 / SCALE, 0.5))
    begin = time.monotonic()
    while naps() < 2 and time.monotonic() < begin + 20:
        time.sleep(0.02)
    check("two naps", naps() == 2)
    client.send({"method": "notifications/cancelled",
                 "params": {"requestId": number, "reason": "a test"}})
    begin = time.monotonic()
    while naps() and time.monotonic() < begin + 20:
        time.sleep(0.02)
    say("cancelled: the command was gone after %.2f s" %
        (time.monotonic() - begin))
    check("a cancelled command ends", naps() == 0)
    time.sleep(0.2)
    check("and is not answered", number not in client.answers)


def zombies(client):
    """The number of zombies among the children of the server and of its
    worker process, which is a child of the first."""
    states = {}
    for path in glob.glob("/proc/[0-9]*/stat"):
        try:
            with open(path, "rb") as f:
                state, parent = f.read().rsplit(b")", 1)[1].split()[:2]
            states[int(path.split("/")[2])] = (state, int(parent))
        except OSError:
            pass
    return sum(state == b"Z" and
               client.server.pid in (parent, states.get(parent, (0, 0))[1])
               for state, parent in states.values())


def leave_daemons(client):
    """Starts sixty short daemons that only the server can reap."""
    client.tool("bash", {"command": "i=0; while [ $i -lt 60 ]; do i=$((i + 1))"
                         "; setsid sleep 0.2 & done"})


def daemons_are_reaped(client):
    begin = time.monotonic()
    while zombies(client) and time.monotonic() < begin + 20:
        time.sleep(0.1)
    check("ended daemons are reaped: %d left" % zombies(client),
          zombies(client) == 0)


def end_of_input(client):
    client.tool("bash", {"command": "setsid nohup sleep %s >/dev/null 2>&1 &"
                         % NAP})
    client.start("sleep %s & sh -c 'trap \"\" TERM; sleep %s; :' & sleep %s"
                 % (NAP, NAP, NAP))
    begin = time.monotonic()
    while naps() < 4 and time.monotonic() < begin + 20:
        time.sleep(0.02)
    check("four naps", naps() >= 4)
    begin = time.monotonic()
    client.server.stdin.close()
    rc = client.server.wait(timeout=30)
    took = time.monotonic() - begin
    say("end of input: exit status %d after %.2f s, %d processes left" %
        (rc, took, naps()))
    check("exit status 0", rc == 0)
    check("nothing is left", naps() == 0)
    return took


def main():
    client = Client()
    leave_daemons(client)
    parts = [threading.Thread(target=three_minutes, args=(client,)),
             threading.Thread(target=build, args=(Client(),)),
             threading.Thread(target=ten_at_once, args=(Client(),)),
             threading.Thread(target=cancelled, args=(Client(),))]
    for part in parts:
        part.start()
    for part in parts:
        part.join()
    daemons_are_reaped(client)
    took = end_of_input(client)
    for _ in range(14):  # others use the machine, too
        if took >= 1:
            took = end_of_input(Client())
    check("gone within a second", took < 1)
    say("%d failed" % failed)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
