"""The client of a sandbox as it is known from elsewhere, for the tests: the
same paths, bodies, fields, waits and retries, read before write on the
client's side, the same texts. httpx carries it where that can be imported,
else http.client with the same fields."""
import dataclasses
import http.client
import json
import threading
import time
import urllib.parse

try:
    import httpx
except ImportError:
    httpx = None

DEFAULT_TIMEOUT = 240
MAX_TIMEOUT = 1200
DEFAULT_READ_LIMIT = 2000


class TimedOut(Exception):
    pass


class NotConnected(Exception):
    pass


@dataclasses.dataclass
class Reply:
    status: int
    body: bytes
    fields: dict
    port: int = 0  # of our end: the same port is the same connection

    @property
    def text(self):
        return self.body.decode("utf-8", "replace")


# ---- two ways to send a request ---------------------------------------------

class HttpxTransport:
    name = "httpx"

    def __init__(self, base, fields):
        self.client = httpx.Client(
            base_url=base, headers=fields, follow_redirects=True,
            timeout=httpx.Timeout(MAX_TIMEOUT, connect=30))

    def send(self, method, path, payload, timeout, compact=False):
        more = {}
        if payload is not None and compact:
            more["content"] = dump(payload, True)
            more["headers"] = {"Content-Type": "application/json"}
        elif payload is not None:
            more["json"] = payload
        try:
            reply = self.client.request(method, path, timeout=timeout, **more)
        except httpx.TimeoutException as error:
            raise TimedOut(str(error)) from error
        except httpx.ConnectError as error:
            raise NotConnected(str(error)) from error
        return Reply(reply.status_code, reply.content, reply.headers,
                     self.port(reply.extensions.get("network_stream")))

    @staticmethod
    def port(stream):
        try:
            return stream.get_extra_info("client_addr")[1]
        except (AttributeError, TypeError, OSError):
            return 0  # unknown, or closed already: the pool keeps only a few


class PlainTransport:
    name = "http.client"

    def __init__(self, base, fields):
        self.url = urllib.parse.urlsplit(base)
        self.fields = {"Accept": "*/*", "Accept-Encoding": "gzip, deflate",
                       "Connection": "keep-alive",
                       "User-Agent": "python-httpx/0.27.0", **fields}
        self.local = threading.local()

    def connection(self, timeout):
        kept = getattr(self.local, "kept", None)
        if kept and kept.sock:
            kept.sock.settimeout(timeout)
            return kept, True
        self.local.kept = http.client.HTTPConnection(
            self.url.hostname, self.url.port, timeout=min(timeout, 30))
        try:
            self.local.kept.connect()
        except OSError as error:
            raise NotConnected(str(error)) from error
        self.local.kept.sock.settimeout(timeout)
        return self.local.kept, False

    def once(self, method, path, payload, timeout, compact):
        kept, used = self.connection(timeout)
        here = kept.sock.getsockname()[1]
        fields, body = dict(self.fields), None
        if payload is not None:
            body = dump(payload, compact)
            fields["Content-Type"] = "application/json"
        try:
            kept.request(method, self.url.path + path, body, fields)
            reply = kept.getresponse()
            return Reply(reply.status, reply.read(), reply.headers, here), used
        except TimeoutError as error:
            kept.close()
            raise TimedOut(str(error)) from error
        except (OSError, http.client.HTTPException):
            kept.close()
            if used:
                return None, used
            raise

    def send(self, method, path, payload, timeout, compact=False):
        reply, _ = self.once(method, path, payload, timeout, compact)
        if reply is None:  # the server had closed the one that was kept
            reply, _ = self.once(method, path, payload, timeout, compact)
        return reply


def dump(payload, compact):
    if compact:
        return json.dumps(payload, ensure_ascii=False,
                          separators=(",", ":")).encode()
    return json.dumps(payload).encode()


# ---- the client -------------------------------------------------------------

@dataclasses.dataclass
class ToolResult:
    success: bool
    output: str = ""
    error: str = ""

    def __str__(self):
        if self.success:
            return self.output or "(no output)"
        return f"ERROR: {self.error}"


class Sandbox:
    def __init__(self, url, token=None, hub_token="hf_not_a_token",
                 work_dir="/app", timeout=DEFAULT_TIMEOUT, plain=False,
                 compact=False):
        fields = {"Authorization": f"Bearer {hub_token}"}
        if token:
            fields["X-Sandbox-Authorization"] = f"Bearer {token}"
        self.url, self.work_dir, self.timeout = url, work_dir, timeout
        self.compact, self.files_read, self.ports = compact, set(), []
        way = HttpxTransport if httpx and not plain else PlainTransport
        self.transport = way(url.rstrip("/") + "/api/", fields)

    def wait_for_api(self, timeout=60):
        deadline = time.time() + timeout
        status = error = None
        while time.time() < deadline:
            try:
                reply = self.transport.send("GET", "health", None, 10)
                status = reply.status
                if status == 200:
                    return reply
            except Exception as e:
                error = e
            time.sleep(3)
        raise TimeoutError(
            f"Sandbox API at {self.url}/api/ not responding after {timeout}s. "
            f"Last status: {status}, last error: {error}")

    def call(self, endpoint, payload, timeout=None):
        limit = timeout or self.timeout
        for attempt in range(3):
            again = attempt < 2
            try:
                reply = self.transport.send("POST", endpoint, payload, limit,
                                            self.compact)
            except TimedOut:
                return ToolResult(False, error=f"Timeout after {limit}s")
            except NotConnected:
                result = ToolResult(False, error=(
                    f"Cannot connect to sandbox. Is {self.url} running? "
                    f"Status: RUNNING"))
                if not again:
                    return result
                time.sleep(3 * (attempt + 1))
                continue
            except Exception as error:
                return ToolResult(False, error=str(error))
            self.ports.append(reply.port)
            try:
                data = json.loads(reply.body)
            except ValueError:
                result = ToolResult(False, error=(
                    f"Sandbox returned non-JSON response (HTTP {reply.status})"
                    f": {reply.text[:200] or '(empty)'}"))
                if not again:
                    return result
                time.sleep(3 * (attempt + 1))
                continue
            if reply.status != 200:
                return ToolResult(False, error=data.get(
                    "error", f"HTTP {reply.status}"))
            return ToolResult(data.get("success", True),
                              data.get("output", ""), data.get("error", ""))
        return ToolResult(False, error="Unknown error")

    def bash(self, command, work_dir=None, timeout=None):
        return self.call("bash", {
            "command": command, "work_dir": work_dir or self.work_dir,
            "timeout": min(timeout or self.timeout, MAX_TIMEOUT)}, timeout)

    def read(self, path, offset=None, limit=None):
        self.files_read.add(path)
        return self.call("read", {
            "path": path, "offset": offset,
            "limit": limit or (DEFAULT_READ_LIMIT if offset is None
                               else None)})

    def write(self, path, content):
        if path not in self.files_read:
            there = self.call("exists", {"path": path})
            if there.success and there.output == "true":
                return ToolResult(False, error=(
                    f"File {path} exists but has not been read this session. "
                    f"Read it first, or use sandbox_edit for targeted "
                    f"changes."))
        result = self.call("write", {"path": path, "content": content})
        if result.success:
            self.files_read.add(path)
        return result

    def edit(self, path, old_str, new_str, replace_all=False, mode="replace"):
        if old_str == new_str:
            return ToolResult(False,
                              error="old_str and new_str are identical.")
        if path not in self.files_read:
            return ToolResult(False, error=(
                f"File {path} has not been read this session. "
                f"Read it first."))
        return self.call("edit", {
            "path": path, "old_str": old_str, "new_str": new_str,
            "replace_all": replace_all, "mode": mode})

    def kill_all(self):
        return self.call("kill", {})
