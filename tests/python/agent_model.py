#!/usr/bin/env python3
"""build/agent with a model that follows a script: it edits a file, runs a
test, finishes; is reminded of an open plan twice at most; survives what
models do wrong. The server here is the model; what it was sent is looked at.
    tests/python/agent_model.py [build/agent]
"""
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading

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

    def __init__(self, turns):
        super().__init__(("127.0.0.1", 0), Handler)
        self.turns, self.requests, self.fields = list(turns), [], []
        threading.Thread(target=self.serve_forever, daemon=True).start()


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
            {"choices": [{"index": 0, "message": message}]}).encode()])

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
            b"data: " + json.dumps({"choices": [{"delta": d}]}).encode() +
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


def run(turns, *options, env=None, files=()):
    model = Model(turns)
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files:
            with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
                f.write(text)
        done = subprocess.run(
            [AGENT, "--url", f"http://127.0.0.1:{model.server_port}/v1",
             *options, "the task"],
            cwd=folder, capture_output=True, text=True, timeout=60,
            check=False,
            env={**{k: v for k, v in os.environ.items()
                    if not k.endswith(("_proxy", "_PROXY")) and
                    k not in ("HF_TOKEN", "OPENAI_API_KEY")}, **(env or {})})
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
          all(t.startswith("ERROR: ") for t in texts))
    check("the tool is named", "Unknown tool: no_such_tool" in texts[0])
    check("the key is named", "path" in texts[1])


def says_what_is_wrong():
    done, _, _ = run([{"status": 404}])
    check("the endpoint's words are shown", done.returncode == 1 and
          "no such model" in done.stderr)
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
    done = subprocess.run([AGENT, "--url", "http://127.0.0.1:1/v1", "x"],
                          capture_output=True, text=True, timeout=60,
                          check=False)
    check("no endpoint", done.returncode == 1 and done.stderr)
    done = subprocess.run([AGENT], capture_output=True, timeout=60,
                          check=False)
    check("usage", done.returncode == 2)


for how in ((), ("--stream",)):
    edits_and_finishes(*how)
    is_reminded_twice(*how)
goes_on_after_a_reminder()
survives_a_models_mistakes()
says_what_is_wrong()
print(f"{checks} checks of the agent, {failed} failed")
sys.exit(failed > 0)
