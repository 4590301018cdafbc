"""A server for tests and measurements in Python: starts the binary on a port
that the kernel picks and stops it; raw sockets; memory and descriptors of the
process. Linux, and the standard library only.

The binary is build/hfsb-server, or $HFSB_SERVER.
"""
import http.client
import json
import os
import re
import resource
import select
import signal
import socket
import struct
import subprocess
import time
import urllib.parse

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
BINARY = os.environ.get("HFSB_SERVER") or os.path.join(TOP, "build",
                                                       "hfsb-server")
TOKEN = "a-token-for-tests"
FIELD = f"X-Sandbox-Authorization: Bearer {TOKEN}\r\n"


def help_text(binary=BINARY):
    done = subprocess.run([binary, "--help"], capture_output=True, text=True,
                          timeout=10, check=False)
    return done.stdout + done.stderr


class Server:
    """with Server("--head-ms", "1500", work_dir=DIR) as server: ..."""

    def __init__(self, *options, work_dir=None, nofile=None, env=None,
                 binary=BINARY, cpu=None):
        command = [binary, "--host", "127.0.0.1", "--port", "0", *options]
        if work_dir:
            command += ["--work-dir", work_dir]
        whole = {**os.environ, "SANDBOX_API_TOKEN": TOKEN, **(env or {})}

        def prepare():
            if nofile:
                resource.setrlimit(resource.RLIMIT_NOFILE, (nofile, nofile))
            if cpu is not None:
                os.sched_setaffinity(0, {cpu})
            # one that goes wrong does not fill the disk
            resource.setrlimit(resource.RLIMIT_FSIZE, (4 << 30, 4 << 30))

        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            env=whole, preexec_fn=prepare)
        self.host, self.port = "127.0.0.1", self.read_port()
        self.pid = self.serving()

    def serving(self):
        """The process that serves: a child of the one that was started."""
        pid = self.process.pid
        try:
            with open(f"/proc/{pid}/task/{pid}/children",
                      encoding="ascii") as f:
                return int((f.read().split() or [pid])[0])
        except OSError:
            return pid

    def read_port(self):
        text, end = b"", time.time() + 30
        while time.time() < end:
            ready, _, _ = select.select([self.process.stdout], [], [], 0.2)
            if not ready:
                continue
            piece = os.read(self.process.stdout.fileno(), 4096)
            text += piece
            found = re.search(rb"http://[^\s/]*:(\d+)", text)
            if found:
                self.said = text
                return int(found.group(1))
            if not piece:
                break
        self.stop()
        raise RuntimeError(f"the server did not say where it listens: {text}")

    def dialect_port(self, name):
        """The port of --api NAME:0."""
        found = re.search(rb"%s on port (\d+)" % name.encode(), self.said)
        return int(found.group(1))

    def stop(self):
        """Its exit status; killed when TERM does not end it in 30 s."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(30)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        self.process.stdout.close()
        return self.process.returncode

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    # ---- talking to it

    def connect(self, timeout=30, receive=None):
        s = socket.socket()
        if receive:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
        s.settimeout(timeout)
        s.connect((self.host, self.port))
        return s

    def http(self, timeout=30):
        return http.client.HTTPConnection(self.host, self.port,
                                          timeout=timeout)

    def call(self, method, path, body=None, timeout=30, token=TOKEN):
        """One request on a connection of its own: status, body."""
        c = self.http(timeout)
        fields = {"X-Sandbox-Authorization": f"Bearer {token}"} if token \
            else {}
        if isinstance(body, dict):
            body = json.dumps(body).encode()
            fields["Content-Type"] = "application/json"
        try:
            c.request(method, path, body, fields)
            reply = c.getresponse()
            return reply.status, reply.read()
        finally:
            c.close()

    def tool(self, name, timeout=30, **arguments):
        status, body = self.call("POST", "/api/" + name, arguments, timeout)
        return {"status": status, **json.loads(body)}

    def health(self, timeout=30):
        """Seconds until a new connection was answered."""
        begin = time.monotonic()
        status, body = self.call("GET", "/api/health", timeout=timeout,
                                 token=None)
        if status != 200 or json.loads(body).get("status") != "ok":
            raise RuntimeError(f"health: {status} {body!r}")
        return time.monotonic() - begin

    # ---- as the kernel reports it

    def status(self, key):
        """VmRSS and the like, in KiB."""
        with open(f"/proc/{self.pid}/status", encoding="ascii") as f:
            return int(re.search(rf"^{key}:\s*(\d+)", f.read(), re.M)[1])

    def cpu(self):
        return cpu_of(self.pid)

    def descriptors(self):
        """None where the kernel does not tell (only root may look)."""
        try:
            return len(os.listdir(f"/proc/{self.pid}/fd"))
        except PermissionError:
            return None


def cpu_of(pid):
    """Seconds of the processor that it has used."""
    with open(f"/proc/{pid}/stat", encoding="latin-1") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def request(method, path, body=b"", fields=FIELD):
    """The bytes of a request."""
    if isinstance(body, dict):
        body = json.dumps(body).encode()
        fields += "Content-Type: application/json\r\n"
    length = f"Content-Length: {len(body)}\r\n" if body or method != "GET" \
        else ""
    return (f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{fields}{length}"
            f"\r\n").encode() + body


def files(path):
    return "/api/files?path=" + urllib.parse.quote(path, safe="")


def reset(s):
    """Closes without a farewell: the peer gets a reset."""
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER,
                 struct.pack("ii", 1, 0))
    s.close()


def replies(s, count):
    """That many whole replies from one socket: [(status, body)]."""
    stream, out = s.makefile("rb"), []
    for _ in range(count):
        line = stream.readline()
        if not line:
            break
        status, fields = int(line.split()[1]), {}
        while (line := stream.readline().strip()):
            name, value = line.split(b":", 1)
            fields[name.lower()] = value.strip()
        if fields.get(b"transfer-encoding") == b"chunked":
            body = b""
            while (size := int(stream.readline(), 16)):
                body += stream.read(size)
                stream.readline()
            stream.readline()
        else:
            body = stream.read(int(fields.get(b"content-length", 0)))
        out.append((status, body))
    return out


def more_descriptors(wanted):
    """Lets this process and its children have that many; how many it got."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        try:
            resource.setrlimit(resource.RLIMIT_NOFILE,
                               (wanted, max(hard, wanted)))
        except (ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return resource.getrlimit(resource.RLIMIT_NOFILE)[0]


def wait_for(done, seconds=20, step=0.02):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if done():
            return True
        time.sleep(step)
    return bool(done())
