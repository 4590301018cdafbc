#!/usr/bin/env python3
"""Starts hfsb-server as systemd would: with sockets that are open already and
a socket for its state. For package.sh: service.py SERVER

Checks that the server serves on all of these sockets in their order, that it
reports READY=1 from the process that was started, and STOPPING=1 at its end,
and that commands see neither the variables nor the descriptors.
"""

import http.client
import json
import os
import signal
import socket
import struct
import sys
import tempfile

failed = 0
checks = 0


def check(what, good):
    """Counts a check, and prints it if it failed."""
    global checks, failed
    checks += 1
    if not good:
        failed += 1
        print("FAIL ", what)


def listener():
    """A listening socket on a port that the kernel picks."""
    s = socket.socket()
    s.bind(("127.0.0.1", 0))
    s.listen(8)
    return s


def start(server, sockets, notify, environment, options):
    """Runs the server with these sockets as descriptors from 3 on."""
    child = os.fork()
    if child:
        return child
    fds = [os.dup2(s.fileno(), 40 + i) for i, s in enumerate(sockets)]
    for i, fd in enumerate(fds):
        os.dup2(fd, 3 + i, inheritable=True)
        os.close(fd)
    env = dict(os.environ, NOTIFY_SOCKET=notify, LISTEN_FDS=str(len(fds)),
               LISTEN_FDNAMES="a:b", LISTEN_PID=str(os.getpid()))
    env.update(environment)
    env.pop("PORT", None)
    os.execve(server, [server, "--no-auth", "--quiet", *options], env)


def message(states):
    """The next state and the process that sent it."""
    size = socket.CMSG_SPACE(struct.calcsize("3i"))
    try:
        text, extra, _, _ = states.recvmsg(4096, size)
    except socket.timeout:
        return "nothing", 0
    pid = struct.unpack("3i", extra[0][2][:12])[0] if extra else 0
    return text.decode(), pid


def call(port, command):
    """The output of a command."""
    c = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    c.request("POST", "/api/bash", json.dumps({"command": command}),
              {"Content-Type": "application/json"})
    return json.loads(c.getresponse().read())["output"]


def run(server, name):
    """One life of the server; name: of the socket for its state."""
    states = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    states.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
    states.settimeout(30)
    states.bind(name)
    shown = "@" + name[1:] if name[0] == "\0" else name
    sockets = [listener(), listener()]
    ports = [s.getsockname()[1] for s in sockets]
    # a client may connect before the server runs
    early = socket.create_connection(("127.0.0.1", ports[1]))
    early.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n"
                  b"Connection: close\r\n\r\n")
    pid = start(server, sockets, shown, {}, [])
    for s in sockets:
        s.close()
    try:
        check(f"{shown}: ready", message(states) == ("READY=1", pid))
        early.settimeout(30)
        check("a client that was early", b" 200 " in early.recv(100))
        for port in ports:
            check("each socket", call(port, "echo hello") == "hello\n")
        seen = call(ports[0], "env | grep -E '^(LISTEN|NOTIFY)_'")
        check(f"variables: {seen}", seen == "")
        seen = call(ports[0], "ls -l /proc/self/fd | grep socket:")
        check(f"descriptors: {seen}", seen == "")
        # a command cannot speak for the server
        call(ports[0], f"kill -USR1 {pid}")
        os.kill(pid, signal.SIGTERM)
        check("stopping", message(states) == ("STOPPING=1", pid))
    finally:
        os.kill(pid, signal.SIGTERM)
        _, status = os.waitpid(pid, 0)
    check("exit code", status == 0)


def run_for_another(server):
    """Sockets that are meant for another process are left alone."""
    name = "hfsb-test-%d-other" % os.getpid()
    states = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    states.settimeout(30)
    states.bind("\0" + name)
    s = listener()
    client = socket.create_connection(s.getsockname())
    client.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
    pid = start(server, [s], "@" + name, {"LISTEN_PID": "1"}, ["--port", "0"])
    check("ready without them", message(states)[0] == "READY=1")
    client.settimeout(1)
    try:
        check("nobody answers there", client.recv(100) == b"")
    except socket.timeout:
        check("nobody answers there", True)
    os.kill(pid, signal.SIGTERM)
    os.waitpid(pid, 0)


def main():
    server = os.path.abspath(sys.argv[1])
    with tempfile.TemporaryDirectory() as top:
        run(server, os.path.join(top, "notify"))
        run(server, "\0hfsb-test-%d-abstract" % os.getpid())
    run_for_another(server)
    print(f"{checks} checks as a service, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main())
