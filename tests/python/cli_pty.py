"""The command line on a real terminal: a PTY that this program drives.

    cli_pty.py complete SHELL HFSB      completion in bash, zsh or fish
    cli_pty.py shell HFSB SANDBOX       hfsb shell: keys, size, exit status
    cli_pty.py signals HFSB SANDBOX     hfsb shell: two signals at once
    cli_pty.py run WIDTH COMMAND...     all that a command writes, as it is
    cli_pty.py yes COMMAND...           the same; questions of build/agent are
                                        answered with y

Exit status 0 passed, 1 failed with the reason on stderr; `run` and `yes` exit
as the command.
"""
import fcntl
import os
import pty
import re
import select
import signal
import struct
import sys
import tempfile
import termios
import time

WAIT = 20  # seconds


class Terminal:
    """A child on a terminal of its own."""

    def __init__(self, words, env=None, cols=80, rows=24):
        self.text = b""
        self.status = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            try:
                os.environ.update(env or {})
                os.execvp(words[0], words)
            finally:
                os._exit(127)
        self.resize(cols, rows)

    def resize(self, cols, rows):
        size = struct.pack("HHHH", rows, cols, 0, 0)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, size)

    def send(self, text):
        os.write(self.fd, text.encode())

    def read(self, seconds):
        """Reads what comes within that time; False at the end."""
        if not select.select([self.fd], [], [], seconds)[0]:
            return True
        try:
            piece = os.read(self.fd, 65536)
        except OSError:
            piece = b""
        self.text += piece
        return bool(piece)

    def expect(self, pattern):
        """Waits for a pattern in what came since the last one."""
        until = time.monotonic() + WAIT
        while True:
            found = re.search(pattern.encode(), self.text, re.S)
            if found:
                self.text = self.text[found.end():]
                return found
            if time.monotonic() > until or not self.read(0.1):
                raise SystemExit("no %r in %r" % (pattern, self.text[-2000:]))

    def quiet(self, seconds=0.3):
        """Waits until nothing comes for a moment."""
        while True:
            before = len(self.text)
            if not self.read(seconds) or len(self.text) == before:
                return

    def end(self):
        """Reads to the end; returns the exit status."""
        until = time.monotonic() + WAIT
        while self.read(0.1):
            if time.monotonic() > until:
                os.kill(self.pid, signal.SIGKILL)
                raise SystemExit("it does not end: %r" % self.text[-2000:])
        status = os.waitpid(self.pid, 0)[1]
        return os.waitstatus_to_exitcode(status)


SHELLS = {
    "bash": (["bash", "--norc", "--noprofile", "-i"],
             "PS1='ready> '; source <(hfsb completion bash)"),
    "zsh": (["zsh", "-f", "-i"],
            "PS1='ready> '; autoload -Uz compinit; compinit -u -D; "
            "source <(hfsb completion zsh)"),
    "fish": (["fish", "--no-config"],
             "function fish_prompt; echo 'ready> '; end; "
             "hfsb completion fish | source"),
}


def complete(shell, hfsb):
    """What Tab makes of a few lines, in the real shell."""
    words, setup = SHELLS[shell]
    path = os.path.dirname(hfsb) + ":" + os.environ["PATH"]
    state = tempfile.TemporaryDirectory()
    os.mkdir(state.name + "/hfsb")
    with open(state.name + "/hfsb/sandboxes.json", "w", encoding="utf-8") as f:
        f.write('{"sandboxes":[{"url":"http://127.0.0.1:7860"}]}')
    t = Terminal(words, {"PATH": path, "TERM": "xterm", "HISTFILE": "",
                         "XDG_STATE_HOME": state.name,
                         "XDG_RUNTIME_DIR": state.name}, cols=120)
    t.quiet(1)
    t.send(setup + "\r")
    t.expect("ready> ")
    t.quiet()
    for typed, wanted in (("hfsb classi\t", "hfsb classify"),
                          ("hfsb hardw\t--jo\t", "hfsb hardware --jobs"),
                          ("hfsb read --off\t", "hfsb read --offset"),
                          ("hfsb edit --mode app\t",
                           "hfsb edit --mode append_after"),
                          ("hfsb job ins\t", "hfsb job inspect"),
                          ("hfsb help classi\t", "hfsb help classify"),
                          ("true; hfsb classi\t", "true; hfsb classify"),
                          ("hfsb bash --on http://127.0.0.1:7\t",
                           "hfsb bash --on http://127.0.0.1:7860"),
                          ("hfsb bash --on ss\tgpu1",
                           "hfsb bash --on ssh:gpu1")):
        t.text = b""
        t.send(typed)
        t.quiet(0.7)
        if "ssh: " in plain(t.text):
            raise SystemExit("a blank after ssh:")
        # shells redraw the line: what it shows in the end is on the screen
        if wanted.replace(" ", "") not in plain(t.text).replace(" ", ""):
            # Enter makes the shell print, with the word, what it has
            t.send("\x01echo '\x05'\r")
            t.expect(re.escape(wanted))
        else:
            t.send("\x15")
        t.quiet()
    t.send("\x15exit\r")
    t.end()


def plain(text):
    """Text without escape sequences."""
    text = re.sub(rb"\x1b(\[[0-9;?<>=]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)"
                  rb"|[()][0-9A-B]|.)", b"", text)
    return text.replace(b"\r", b"").replace(b"\x08", b"").decode(
        "utf-8", "replace")


def shell(hfsb, sandbox):
    """hfsb shell: what is typed arrives, the size follows, the end is that of
    the shell, and the terminal is as before."""
    t = Terminal(["sh", "-c", "'%s' shell --shell /bin/sh %s; echo status=$?; "
                  "stty -a" % (hfsb, sandbox)],
                 {"TERM": "xterm", "PS1": ""}, cols=91, rows=33)
    t.send("echo begun-$((40 + 2))\r")
    t.expect("begun-42")
    t.send("stty size; tty | cut -c 1-8\r")
    t.expect("33 91")
    t.expect("/dev/pts")
    t.resize(101, 41)
    t.send("until [ \"$(stty size)\" = '41 1'01 ]; do sleep 0.1; done; "
           "stty size\r")
    t.expect("41 101")
    t.send("trap 'echo caught-it' INT; echo now-$((1 + 1)); sleep 30\r")
    t.expect("now-2")
    time.sleep(0.2)
    t.send("\x03")  # goes to the program there
    t.expect("caught-it")
    t.send("exit 7\r")
    t.expect("status=7")
    t.expect(" icanon")
    t.end()


def signals(hfsb, sandbox):
    """A second signal ends hfsb at once, and leaves the terminal as before."""
    t = Terminal([hfsb, "shell", "--shell", "/bin/sh", sandbox],
                 {"TERM": "xterm", "PS1": ""})
    t.send("echo begun-$((40 + 2))\r")
    t.expect("begun-42")
    if termios.tcgetattr(t.fd)[3] & termios.ICANON:
        raise SystemExit("the terminal is not raw")
    # both are there when it goes on
    for number in ("STOP", "TERM", "HUP", "CONT"):
        os.kill(t.pid, getattr(signal, "SIG" + number))
    status = os.waitstatus_to_exitcode(os.waitpid(t.pid, 0)[1])
    if status not in (128 + signal.SIGTERM, 128 + signal.SIGHUP):
        raise SystemExit("exit status %d" % status)
    if not termios.tcgetattr(t.fd)[3] & termios.ICANON:
        raise SystemExit("the terminal is still raw")


def run(width, words):
    t = Terminal(words, cols=int(width))
    try:
        status = t.end()
    finally:
        sys.stdout.buffer.write(t.text)
    return status


def yes(words):
    t = Terminal(words)
    questions, until = 0, time.monotonic() + 6 * WAIT
    while time.monotonic() < until and t.read(0.1):
        if t.text.count(b"[y]es") > questions:
            questions += 1
            t.send("y\n")
    sys.stdout.buffer.write(t.text)
    return t.end()


def main(words):
    if words[0] == "complete":
        complete(words[1], os.path.abspath(words[2]))
    elif words[0] == "shell":
        shell(words[1], words[2])
    elif words[0] == "signals":
        signals(words[1], words[2])
    elif words[0] == "run":
        return run(words[1], words[2:])
    elif words[0] == "yes":
        return yes(words[1:])
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
