#!/usr/bin/env python3
"""build/agent with a model that follows a script: it edits a file, runs a
test, finishes; is reminded of an open plan twice at most; survives what
models do wrong; asks in a terminal before it acts, and takes it back. The server here is the model; what it was sent is looked at.
    tests/python/agent_model.py [build/agent]
    tests/python/agent_model.py --port N    only the model, for docs_run.sh:
                                            one command, then it is done
"""
import glob
import http.server
import json
import os
import pty
import re
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

AGENT = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "build/agent")
GUARD = "[SYSTEM: CONTINUATION GUARD]"
checks = failed = 0


def check(what, true):
    global checks, failed
    checks += 1
    if not true:
        failed += 1
        print("FAIL ", what)


def call(name, **arguments):
    return {"name": name, "arguments": json.dumps(arguments)}


def plan(*items):
    return call("plan_tool", todos=[
        {"id": str(n), "content": text, "status": status}
        for n, (text, status) in enumerate(items, 1)])


class Model(http.server.ThreadingHTTPServer):
    """Says the turns of a script, one a request; keeps what it was sent."""
    daemon_threads = True

    def __init__(self, turns, port=0):
        super().__init__(("127.0.0.1", port), Handler)
        self.turns, self.requests, self.fields = list(turns), [], []
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):  # the agent may end at any time
        pass


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        model = self.server
        model.requests.append(body)
        model.fields.append((self.path, dict(self.headers)))
        turn = model.turns.pop(0) if model.turns else {"status": 500}
        status = turn.get("status", 200)
        calls = [{"id": f"call_{len(model.requests)}_{n}", "index": n,
                  "type": "function", "function": f}
                 for n, f in enumerate(turn.get("calls", []))]
        if status != 200:
            return self.answer(status, "application/json",
                               [b'{"error":{"message":"no such model"}}'])
        if "broken" in turn:  # an error in the middle of a stream
            return self.answer(200, "text/event-stream",
                               [b'data: {"error":{"message":"too long"}}\n\n'])
        if body.get("stream"):
            return self.answer(200, "text/event-stream",
                               self.pieces(turn.get("text"), calls))
        message = {"role": "assistant", "content": turn.get("text")}
        if calls:
            message["tool_calls"] = calls
        return self.answer(200, "application/json", [json.dumps(
            {"choices": [{"index": 0, "message": message}],
             "error": None}).encode()])

    def pieces(self, text, calls):
        """Events, cut where a network might: anywhere."""
        deltas = [{"role": "assistant", "content": None}]
        deltas += [{"content": c} for c in text or ""]
        for one in calls:
            whole = one["function"]["arguments"]
            deltas.append({"tool_calls": [dict(one, function={
                "name": one["function"]["name"], "arguments": ""})]})
            deltas += [{"tool_calls": [{"index": one["index"], "function": {
                "arguments": whole[at:at + 5]}}]}
                for at in range(0, len(whole), 5)]
        stream = b": a comment\n\n" + b"".join(
            b"data: " + json.dumps({"choices": [{"delta": d}],
                                    "error": None}).encode() +
            b"\r\n\r\n" for d in deltas) + b"data: [DONE]\n\n"
        return [stream[at:at + 37] for at in range(0, len(stream), 37)]

    def answer(self, status, kind, pieces):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.write(b"0\r\n\r\n")


def serve(port):
    """The model by itself, until it is killed."""
    model = Model([], port)
    print(f"the model listens on port {port}", flush=True)
    while True:
        if len(model.turns) < 2:
            model.turns += [{"calls": [call("bash", command="echo > hello.txt")]},
                            {"text": "Done."}]
        time.sleep(0.01)


if sys.argv[1:2] == ["--port"]:
    serve(int(sys.argv[2]))

STATE = tempfile.TemporaryDirectory()  # of checkpoints


def environment(more=None):
    return {**{k: v for k, v in os.environ.items()
               if not k.endswith(("_proxy", "_PROXY")) and
               not k.startswith(("OPENAI_", "HF_"))},
            "XDG_STATE_HOME": STATE.name, **(more or {})}


def run(turns, *options, env=None, files=()):
    model = Model(turns)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        done = subprocess.run(
            [AGENT, "--url", f"http://127.0.0.1:{model.server_port}/v1",
             "--yes", *options, "the task"],
            cwd=folder, capture_output=True, text=True, timeout=60,
            check=False, env=environment(env))
        left = {n: open(os.path.join(folder, n), encoding="utf-8").read()
                for n in os.listdir(folder)}
    model.shutdown()
    model.server_close()
    return done, model, left


def tool_texts(request):
    return [m["content"] for m in request["messages"] if m["role"] == "tool"]


def reminders(request):
    return [m for m in request["messages"]
            if m["role"] == "user" and m["content"].startswith(GUARD)]


def edits_and_finishes(*options):
    """A file is read, edited, tested; the plan is finished."""
    where = " ".join(options) or "whole"
    code = "def add(a, b):\n    return a - b\n"
    done, model, left = run([
        {"text": "I look.", "calls": [
            plan(("fix add", "in_progress"), ("test it", "pending")),
            call("read", path="sums.py")]},
        {"calls": [call("edit", path="sums.py", old_str="a - b",
                        new_str="a + b")]},
        {"text": "Now the test.", "calls": [
            call("bash", command="grep -q 'a + b' sums.py && echo passed")]},
        {"calls": [plan(("fix add", "completed"), ("test it", "completed"))]},
        {"text": "Done: \u00e9."},
    ], *options, files=[("sums.py", code)])
    check(f"{where}: exit 0: {done.stderr}", done.returncode == 0)
    check(f"{where}: edited", left == {"sums.py": code.replace("-", "+")})
    check(f"{where}: five turns", len(model.requests) == 5)
    last = model.requests[-1]
    texts = tool_texts(last)
    check(f"{where}: a result for each call", len(texts) == 5)
    check(f"{where}: the file was shown", "return a - b" in texts[1])
    check(f"{where}: the edit was reported", "1 replacement" in texts[2])
    check(f"{where}: the test passed", texts[3].strip() == "passed")
    check(f"{where}: no reminder", not reminders(last))
    check(f"{where}: shown", "I look." in done.stdout and
          "Done: \u00e9." in done.stdout)
    names = [t["function"]["name"] for t in last["tools"]]
    check(f"{where}: its tools", {"bash", "read", "write", "edit",
                                  "plan_tool"} <= set(names) and
          "sandbox_create" not in names)
    ids = [c["id"] for m in last["messages"] for c in m.get("tool_calls", [])]
    check(f"{where}: results name their calls",
          ids == [m["tool_call_id"] for m in last["messages"]
                  if m["role"] == "tool"])
    check(f"{where}: roles", [m["role"] for m in last["messages"]][:4] ==
          ["system", "user", "assistant", "tool"])
    check(f"{where}: stream", last["stream"] == ("--stream" in options))


def is_reminded_twice(*options):
    where = " ".join(options) or "whole"
    done, model, _ = run([
        {"calls": [plan(("a", "in_progress"), ("b", "pending"))]},
        {"text": "I think I am done."},
        {"text": "Really."},
        {"text": "No more."},
        {"text": "never asked for"},
    ], *options)
    check(f"{where}: it ends: {done.stderr}", done.returncode == 0)
    check(f"{where}: after four turns", len(model.requests) == 4)
    check(f"{where}: two reminders", len(reminders(model.requests[-1])) == 2)
    tail = model.requests[2]["messages"][-2:]
    check(f"{where}: the model's own text comes first",
          tail[0]["role"] == "assistant" and
          tail[0]["content"] == "I think I am done." and
          tail[1]["content"].startswith(GUARD))
    check(f"{where}: the log hears of it", "[" in done.stderr)


def goes_on_after_a_reminder():
    done, model, _ = run([
        {"calls": [plan(("a", "pending"))]},
        {"text": "Done?"},
        {"calls": [call("bash", command="echo more")]},
        {"text": "Done?"},
        {"calls": [plan(("a", "completed"))]},
        {"text": "Done."},
    ])
    check(f"ends: {done.stderr}", done.returncode == 0)
    check("six turns", len(model.requests) == 6)
    check("reminded twice, with calls between",
          len(reminders(model.requests[-1])) == 2)


def survives_a_models_mistakes():
    done, model, _ = run([
        {"calls": [call("no_such_tool"), call("read"),
                   {"name": "bash", "arguments": "{not json"},
                   {"name": "bash", "arguments": ""}]},
        {"text": ""},
    ])
    check(f"ends: {done.stderr}", done.returncode == 0)
    texts = tool_texts(model.requests[-1])
    check("each mistake has its answer", len(texts) == 4 and
          all("ERROR: " in t for t in texts))
    check("the tool is named, and those there are",
          "Unknown tool: no_such_tool" in texts[0] and
          "bash, " in texts[0] and "plan_tool" in texts[0])
    check("the key is named", "path" in texts[1])


def waits_for_an_endpoint_that_starts():
    for how in ((), ("--stream",)):
        done, model, _ = run([{"status": 503}, {"status": 503},
                              {"text": "hi"}], *how)
        check(f"503 is waited for: {done.stderr}", done.returncode == 0 and
              "hi" in done.stdout and len(model.requests) == 3)
        check("with one word about it", done.stderr.count("503") == 1)
    done, model, _ = run([{"status": 503}], "--wait", "0")
    check("not for ever", done.returncode == 1 and "503" in done.stderr and
          len(model.requests) == 1)
    with socket.create_server(("127.0.0.1", 0)) as s:
        port = s.getsockname()[1]
    with tempfile.TemporaryDirectory() as folder:
        started = subprocess.Popen(
            [AGENT, "--url", f"http://127.0.0.1:{port}/v1", "x"], cwd=folder,
            env=environment(), text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE)
        for line in started.stderr:
            if "cannot be reached; waiting" in line:
                break
        model = Model([{"text": "hello"}], port)
        out, err = started.communicate(timeout=60)
        check(f"a late start is waited for: {err}",
              started.returncode == 0 and "hello" in out)
    model.shutdown()
    model.server_close()


def says_what_is_wrong():
    done, model, _ = run([{"status": 404}])
    check("the endpoint's words are shown", done.returncode == 1 and
          "no such model" in done.stderr and "{" not in done.stderr and
          "404" in done.stderr and "KEY" not in done.stderr)
    check("other errors are final", len(model.requests) == 1)
    for how in ((), ("--stream",)):
        done, _, _ = run([{"status": 401}], *how)
        check(f"the key is named: {done.stderr}", done.returncode == 1 and
              "401" in done.stderr and "OPENAI_API_KEY" in done.stderr)
    done, _, _ = run([{"broken": True}], "--stream")
    check("an error in the stream is shown", done.returncode == 1 and
          "too long" in done.stderr)
    done, _, _ = run([], "--turns", "0")
    check("no turns left", done.returncode == 1)
    done, model, _ = run([{"text": "hi"}], env={"OPENAI_API_KEY": "a-key"})
    path, fields = model.fields[0]
    check("the key is sent", fields.get("Authorization") == "Bearer a-key")
    check("and not shown", "a-key" not in done.stdout + done.stderr)
    check("to the right place", path == "/v1/chat/completions")
    done, _, _ = run([], "--sandbox-tools", env={"HF_HOME": "/nonexistent"})
    check("a sandbox needs a token", done.returncode == 1 and
          "HF_TOKEN" in done.stderr)
    done = subprocess.run([AGENT, "--url", "http://127.0.0.1:1/v1", "--wait", "0",
                           "x"], capture_output=True, text=True, timeout=60,
                          check=False)
    check(f"no endpoint: {done.stderr}", done.returncode == 1 and
          "--url" in done.stderr and "OPENAI_BASE_URL" in done.stderr)
    for arguments, said in (((), "one TASK"), (("a", "b"), "one TASK"),
                            (("--ys", "x"), "unknown option --ys"),
                            (("--url",), "--url needs a value"),
                            (("--confine", "all", "x"), "not all")):
        done = subprocess.run([AGENT, *arguments], capture_output=True,
                              text=True, timeout=60, check=False)
        check(f"usage of {arguments}: {done.stderr}", done.returncode == 2 and
              said in done.stderr and "--help" in done.stderr and
              done.stderr.count("\n") == 1 and not done.stdout)
    done = subprocess.run([AGENT, "--help"], capture_output=True, text=True,
                          timeout=60, check=False)
    check(f"help: {done.stderr}", done.returncode == 0 and not done.stderr and
          "http://127.0.0.1:8080/v1" in done.stdout and
          "strict (none)" in done.stdout and
          "this machine only" in done.stdout)


class Terminal:
    """build/agent in a terminal of its own, as a person sees it."""

    def __init__(self, model, folder, *options, env=None):
        self.shown = ""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execve(AGENT, [
                AGENT, "--url", f"http://127.0.0.1:{model.server_port}/v1",
                *options, "the task"], environment(env))

    def wait_for(self, text, times=1):
        """Reads until text was shown so often; False at the end."""
        end = time.monotonic() + 60
        while self.shown.count(text) < times and time.monotonic() < end:
            if not select.select([self.fd], [], [], 1)[0]:
                continue
            try:
                piece = os.read(self.fd, 65536)
            except OSError:  # the other side is closed
                break
            self.shown += piece.decode(errors="replace")
        return self.shown.count(text) >= times

    def answer(self, text):
        os.write(self.fd, text.encode() + b"\n")

    def end(self):
        self.wait_for("no such text")
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return code


QUESTION = "[y]es, [n]o, [a]lways"


def in_a_terminal(turns, answers, *options, env=None):
    """Answers one question after the other."""
    model = Model(turns)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "a.txt"), "w", encoding="utf-8") as f:
            f.write("one\ntwo\n")
        t = Terminal(model, folder, *options, env=env)
        for n, text in enumerate(answers, 1):
            check(f"question {n}: {t.shown}", t.wait_for(QUESTION, n))
            t.answer(text)
        code = t.end()
        left = {n: open(os.path.join(folder, n), encoding="utf-8").read()
                for n in sorted(os.listdir(folder))}
    model.shutdown()
    model.server_close()
    return code, t.shown, model, left


def asks_before_it_acts():
    code, shown, model, left = in_a_terminal([
        {"calls": [call("read", path="a.txt")]},
        {"calls": [call("bash", command="touch ran",
                        stdin="\u001b]0;hidden\u0007 words")]},
        {"calls": [call("edit", path="a.txt", old_str="two",
                        new_str="2")]},
        {"calls": [call("edit", path="a.txt", old_str="one", new_str="1"),
                   call("bash", command="touch other")]},
        {"text": "Done."},
    ], ["n", "a", "", "use make instead"])
    check(f"it ends: {shown}", code == 0)
    check("refused commands do not run", "ran" not in left and
          "other" not in left)
    check("edits that were allowed once and for all are made",
          left.get("a.txt") == "1\n2\n")
    check("reads are not asked about", shown.count(QUESTION) == 4)
    texts = tool_texts(model.requests[-1])
    check("the model learns of the refusal",
          texts[1] == "The user refused this call: n")
    check("the model gets the user's words",
          texts[4] == "The user refused this call: use make instead")
    check("the command is shown in bold", "\x1b[1m$ touch ran" in shown)
    check("and its input, which cannot control the terminal",
          "]0;hidden words" in shown and "\x1b]0" not in shown)
    check("old and new lines are shown in colour",
          "\x1b[31m-two" in shown and "\x1b[32m+2" in shown)
    check("an edit that was not asked about shows its diff",
          "\x1b[31m-one" in shown and "\x1b[32m+1" in shown)


def understands_whole_words():
    code, shown, _, left = in_a_terminal(
        [{"calls": [call("bash", command=f"touch ran{n}")]} for n in range(4)]
        + [{"text": "x"}], ["Yes", "no", "always"])
    check(f"yes, no, always: {shown}", code == 0 and
          list(left) == ["a.txt", "ran0", "ran2", "ran3"])


def asks_only_about_calls_that_can_be_made():
    """"always" is never the answer to a question about nothing."""
    code, shown, model, left = in_a_terminal([
        {"calls": [call("no_such_tool"), call("read glob"),
                   {"name": "bash", "arguments": "{not json"},
                   {"name": "bash", "arguments": "[]"}]},
        {"calls": [{"name": "undo", "arguments": ""},
                   call("bash", command="touch ran")]},
        {"text": "x"},
    ], ["n", "n"])
    check(f"it ends: {shown}", code == 0 and list(left) == ["a.txt"])
    check(f"two questions: {shown}", shown.count(QUESTION) == 2 and
          shown.index("no_such_tool") < shown.index(QUESTION))
    texts = tool_texts(model.requests[-1])
    check("the model has the reasons", len(texts) == 6 and
          all("ERROR: " in t for t in texts[:4]) and
          all("refused" in t for t in texts[4:]))


def shows_what_is_written():
    """What is asked about is decided by the tool, not by its arguments."""
    code, shown, _, left = in_a_terminal([
        {"calls": [call("write", path="hidden.txt", content="x",
                        command="ls")]},
        {"calls": [call("bash", command="touch ran", path="shown.txt")]},
        {"text": "x"},
    ], ["n", "n"])
    check(f"it ends: {shown}", code == 0 and list(left) == ["a.txt"])
    check("the tool and the path are shown", "write hidden.txt" in shown and
          "$ ls" not in shown)
    check("and what else there is", "shown.txt" in shown and
          "$ touch ran" in shown)


def ends_by_signals():
    """A second Ctrl-C does not cut off what ends the session."""
    model = Model([{"calls": [call("bash", command="trap '' TERM; "
                                   "echo begun-$((40 + 2)); sleep 60")]}])
    with tempfile.TemporaryDirectory() as folder:
        t = Terminal(model, folder, "--yes")
        check("a command runs", t.wait_for("begun-42"))
        for _ in range(3):  # it is killed some time after the first
            os.kill(t.pid, signal.SIGINT)
            time.sleep(0.2)
        check("signals end it with an exit code", t.end() == 1)
    model.shutdown()
    model.server_close()
    model = Model([{"calls": [call("bash", command="echo $$ > pid; echo "
                                   "begun-$((40 + 2)); sleep 60")]}])
    with tempfile.TemporaryDirectory() as folder:
        t = Terminal(model, folder, "--yes")
        check("a command runs", t.wait_for("begun-42"))
        os.kill(t.pid, signal.SIGHUP)
        check("SIGHUP ends it with an exit code", t.end() == 1)
        check("SIGHUP ends its command", ends(folder))
    model.shutdown()
    model.server_close()


def ends_when_nobody_reads():
    model = Model([{"calls": [call("bash", command="echo $$ > pid; while :; "
                                   "do echo more; sleep 0.1; done")]}])
    with tempfile.TemporaryDirectory() as folder:
        with subprocess.Popen(
                [AGENT, "--url", f"http://127.0.0.1:{model.server_port}/v1",
                 "--yes", "the task"], cwd=folder, env=environment(),
                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as agent:
            for line in agent.stdout:
                if line.startswith(b"more"):
                    break
            agent.stdout.close()
            try:
                code = agent.wait(30)
            except subprocess.TimeoutExpired:
                agent.kill()
                code = None
        check(f"it ends when nobody reads: {code}", code == 1)
        check("and so does its command", ends(folder))
    model.shutdown()
    model.server_close()


def ends(folder):
    """The process whose id is in the file pid of that folder is gone."""
    with open(os.path.join(folder, "pid"), encoding="utf-8") as f:
        pid = f.read().strip()
    end = time.monotonic() + 30
    while os.path.exists(f"/proc/{pid}") and time.monotonic() < end:
        time.sleep(0.1)
    return not os.path.exists(f"/proc/{pid}")


def knows_no_colours_and_no_answers():
    code, shown, _, _ = in_a_terminal(
        [{"calls": [call("bash", command="echo hello")]}, {"text": "x"}],
        ["y"], env={"NO_COLOR": "1"})
    check("NO_COLOR", code == 0 and "\x1b[" not in shown and
          "hello" in shown)
    code, _, _, left = in_a_terminal(
        [{"calls": [call("bash", command="touch ran")]}], ["\x04"])
    check("the end of the input is no answer", code == 1 and
          "ran" not in left)
    model = Model([{"calls": [call("bash", command="touch ran")]}])
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run(
            [AGENT, "--url", f"http://127.0.0.1:{model.server_port}/v1", "x"],
            cwd=folder, capture_output=True, text=True, timeout=60,
            check=False, env=environment(), start_new_session=True)
        check("nothing runs where nobody can be asked",
              done.returncode == 1 and "--yes" in done.stderr and
              not os.listdir(folder))
        both = Model([{"calls": [call("bash", command="touch ran")]}])
        done = subprocess.run(
            [AGENT, "--url", f"http://127.0.0.1:{both.server_port}/v1", "x"],
            cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, timeout=60, check=False, env=environment(),
            start_new_session=True)
        both.shutdown()
        both.server_close()
        check(f"the reason comes after the call: {done.stdout}",
              "$ touch ran\nagent: no terminal" in done.stdout)
        check("no colours in a pipe", "\x1b[" not in done.stdout)
    model.shutdown()
    model.server_close()


def takes_a_run_back():
    with tempfile.TemporaryDirectory() as folder:
        def step(*arguments, turns=()):
            model = Model(turns)
            done = subprocess.run(
                [AGENT, "--url", f"http://127.0.0.1:{model.server_port}/v1",
                 *arguments], cwd=folder, capture_output=True, text=True,
                timeout=60, check=False, env=environment())
            model.shutdown()
            model.server_close()
            return done
        done = step("--undo")
        check(f"nothing to undo: {done.stdout} {done.stderr}",
              done.returncode == 1 and "nothing to undo" in done.stderr and
              "checkpoint" not in done.stdout + done.stderr)
        for n in (1, 2):
            done = step("--yes", "x", turns=[
                {"calls": [call("bash", command=f"echo {n} > f; mkdir -p d; "
                                                f"touch d/{n}")]},
                {"calls": [call("write", path=f"w{n}", content="x")]},
                {"text": "done"}])
            check(f"run {n}: {done.stderr}", done.returncode == 0)
        done = step("--undo")
        check(f"undo: {done.stdout} {done.stderr}", done.returncode == 0)
        check(f"undo: words for a person: {done.stdout}",
              "hfsb undo" in done.stdout and "to=" not in done.stdout)
        with open(os.path.join(folder, "f"), encoding="utf-8") as f:
            check("the last run is undone", f.read() == "1\n")
        check("all of it", sorted(os.listdir(folder)) == ["d", "f", "w1"] and
              os.listdir(os.path.join(folder, "d")) == ["1"])
        check("undo takes no task", step("--undo", "x").returncode == 2)
        done = step("--yes", "--root", "d", "x", turns=[
            {"calls": [call("read", path="../f")]}, {"text": "x"}])
        check("a root confines", done.returncode == 0 and
              "outside" in done.stdout)
        check("an unknown level", step("--confine", "much", "x").returncode
              == 2)
        for option in (("--root", "d"), ("--confine", "strict")):
            for elsewhere in (("--on", "exec:sh"), ("--sandbox-tools",)):
                done = step(*option, *elsewhere, "x")
                check(f"{option} with {elsewhere}: {done.stderr}",
                      done.returncode == 1 and "this machine" in done.stderr)
        for elsewhere in (("--on", "exec:touch ran"), ("--sandbox-tools",)):
            done = step("--undo", *elsewhere)
            check(f"undo with {elsewhere}: {done.stderr}",
                  done.returncode == 2 and not done.stdout and
                  "--undo works on this machine only" in done.stderr and
                  not os.path.exists(os.path.join(folder, "ran")))
        check("two kinds of sandbox", step("--on", "exec:sh", "--sandbox-tools",
                                           "x").returncode == 2)


def confines_commands():
    with tempfile.TemporaryDirectory() as top:
        folder, own = os.path.join(top, "work"), os.path.join(top, "tmp")
        os.mkdir(folder)
        os.mkdir(own)
        model = Model([{"calls": [call("bash", command="echo x > inside; "
                                       "echo x > ../outside")]},
                       {"text": "x"}])
        done = subprocess.run(
            [AGENT, "--url", f"http://127.0.0.1:{model.server_port}/v1",
             "--yes", "--confine", "write", "x"], cwd=folder,
            capture_output=True, text=True, timeout=60, check=False,
            env=environment({"TMPDIR": own}))
        model.shutdown()
        model.server_close()
        if done.returncode and "onfine" in done.stderr:
            print("commands cannot be confined here:", done.stderr)
            return
        check(f"--confine write: {done.stdout} {done.stderr}",
              done.returncode == 0 and os.listdir(folder) == ["inside"] and
              not os.path.exists(os.path.join(top, "outside")))


def works_on_a_server():
    server = os.path.join(os.path.dirname(AGENT), "hfsb-server")
    if not os.path.exists(server):
        print("no build/hfsb-server: --on is not tried")
        return
    with tempfile.TemporaryDirectory() as folder:
        started = subprocess.Popen(
            [server, "--port", "0", "--root", folder], text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=environment({"SANDBOX_API_TOKEN": "the-token"}))
        url = None
        for line in started.stdout:
            found = re.search(r"http://127\.0\.0\.1:\d+", line)
            if found:
                url = found.group()
                break
        check("the server listens", url)
        done, model, left = run(
            [{"calls": [call("write", path="there.txt", content="hi\n"),
                        call("bash", command="cat there.txt")]},
             {"text": "x"}], "--on", url or "http://127.0.0.1:1",
            env={"SANDBOX_API_TOKEN": "the-token"})
        check(f"on a server: {done.stderr}", done.returncode == 0)
        check("nothing happens here", left == {})
        check("it is written there", os.listdir(folder) == ["there.txt"])
        check("the command ran there",
              tool_texts(model.requests[-1])[1].strip() == "hi")
        done, _, _ = run([], "--on", url or "http://127.0.0.1:1",
                         env={"SANDBOX_API_TOKEN": "wrong"})
        check("a wrong token", done.returncode == 1)
        started.terminate()
        started.wait(30)


def has_ended(folder):
    """True when no program of the folder runs, which may take a moment."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        left = 0
        for name in glob.glob("/proc/[0-9]*/exe"):
            try:
                left += os.readlink(name).startswith(folder)
            except OSError:  # it is somebody else's, or gone
                pass
        if not left:
            return True
        time.sleep(0.1)
    return False


def works_through_a_pipe():
    """--on exec:sh: the static server is sent to the shell."""
    static = os.path.join(os.path.dirname(AGENT), "static", "hfsb-server")
    with tempfile.TemporaryDirectory() as top:
        servers, cache, there = (os.path.join(top, n)
                                 for n in ("servers", "cache", "there"))
        for name in (servers, cache, there):
            os.mkdir(name)
        env = {"HOME": there, "XDG_CACHE_HOME": cache, "HFSB_PIPE_DIR": top,
               "HFSB_SERVERS": ""}
        for given in ("", servers):
            name = "from_a_folder" if given else "next_to_it"
            if given:
                shutil.copy(static, os.path.join(
                    given, "hfsb-server-" + os.uname().machine))
            done, model, left = run(
                [{"calls": [call("write", path=os.path.join(there, name),
                                 content="hi\n"),
                            call("bash", command=f"cat '{there}/{name}'; "
                                                 "sleep 1000 &")]},
                 {"text": "x"}], "--on", "exec:sh",
                env={**env, "HFSB_SERVERS": given})
            check(f"through a pipe, {name}: {done.stderr}",
                  done.returncode == 0)
            check("nothing happens here", left == {})
            check("it is written there", name in os.listdir(there))
            texts = tool_texts(model.requests[-1])
            check(f"the command ran there: {texts}", "hi" in texts[-1])
            check("its server has ended", has_ended(cache))
            shutil.rmtree(cache)
            os.mkdir(cache)
        done, _, _ = run([], "--on", "exec:sh",
                         env={**env, "HFSB_SERVERS": there})
        check("no server to send", done.returncode == 1 and
              "HFSB_SERVERS=FOLDER" in done.stderr and
              f" in {there}:" in done.stderr)
        done, _, _ = run([], "--on", "exec:exit 3", env=env)
        check("no shell there", done.returncode == 1)
        # found in PATH it takes no server of the working directory
        programs, work = os.path.join(top, "programs"), os.path.join(top, "work")
        os.makedirs(os.path.join(work, "static"))
        os.mkdir(programs)
        shutil.copy(AGENT, os.path.join(programs, "agent"))
        shutil.copy(static, os.path.join(work, "static", "hfsb-server"))
        done = subprocess.run(
            ["agent", "--url", "http://127.0.0.1:1/v1", "--wait", "0", "--on",
             "exec:sh", "x"], cwd=work, capture_output=True, text=True,
            timeout=60, check=False, env=environment(
                {**env, "PATH": programs + ":" + os.environ["PATH"]}))
        check(f"no server of the working directory: {done.stderr}",
              done.returncode == 1 and "no static hfsb-server" in done.stderr)
        check(f"once, with the folders: {done.stderr}",
              done.stderr.count("no static hfsb-server") == 1 and
              f" in {programs}/static or {programs}/build/static:"
              in done.stderr)
        # `cc -o agent` at the top of the project, `make static`
        os.makedirs(os.path.join(programs, "build", "static"))
        shutil.copy(static, os.path.join(programs, "build", "static"))
        done = subprocess.run(
            ["agent", "--url", "http://127.0.0.1:1/v1", "--wait", "0", "--on",
             "exec:sh", "x"], cwd=work, capture_output=True, text=True,
            timeout=60, check=False, env=environment(
                {**env, "PATH": programs + ":" + os.environ["PATH"]}))
        check(f"the server of build/static: {done.stderr}",
              "Is --url" in done.stderr and "no static" not in done.stderr)
        check("its server has ended", has_ended(cache))


for how in ((), ("--stream",)):
    edits_and_finishes(*how)
    is_reminded_twice(*how)
goes_on_after_a_reminder()
survives_a_models_mistakes()
waits_for_an_endpoint_that_starts()
says_what_is_wrong()
asks_before_it_acts()
understands_whole_words()
asks_only_about_calls_that_can_be_made()
knows_no_colours_and_no_answers()
takes_a_run_back()
confines_commands()
shows_what_is_written()
ends_by_signals()
ends_when_nobody_reads()
works_on_a_server()
works_through_a_pipe()
print(f"{checks} checks of the agent, {failed} failed")
sys.exit(failed > 0)
