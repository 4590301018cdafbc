#!/usr/bin/env python3
"""Records commands on a terminal as a picture: docs/terminal.svg.

    record.py OUT.svg FOLDER < COMMANDS

Runs each line of COMMANDS with bash in FOLDER on a pseudo-terminal and draws
what the terminal showed, a line after the other as they came. A line that
begins with "#" is shown as a comment; "+ COMMAND" is run and not shown. Only
colours (SGR) and carriage returns are understood: it is no emulator.
"""
import os
import pty
import re
import select
import subprocess
import sys

WIDE, HIGH, LEFT, TOP = 100, 19, 16, 44  # columns, px of a line, margins
CHAR = 7.83  # px of a column at 13px of a monospace font
COLOURS = {30: "#6e7681", 31: "#ff7b72", 32: "#7ee787", 33: "#e3b341",
           34: "#79c0ff", 35: "#d2a8ff", 36: "#76e3ea", 37: "#c9d1d9"}


def run(command, folder):
    """What the terminal received, as text."""
    master, slave = pty.openpty()
    env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": str(WIDE)}
    process = subprocess.Popen(["bash", "-c", command], cwd=folder, env=env,
                               stdin=slave, stdout=slave, stderr=slave,
                               start_new_session=True)
    os.close(slave)
    out = b""
    while True:
        ready, _, _ = select.select([master], [], [], 0.1)
        try:
            piece = os.read(master, 65536) if ready else b""
        except OSError:  # the last process has closed it
            break
        out += piece
        if not piece and process.poll() is not None:
            break
    process.wait()
    os.close(master)
    return out.decode("utf-8", "replace")


def lines(text):
    """Lines as a terminal leaves them: the last state of rewritten ones, long
    ones wrapped at blanks (only those without colours are that long)."""
    for line in text.replace("\r\n", "\n").rstrip("\n").split("\n"):
        line = line.split("\r")[-1].replace("\x1b[K", "").expandtabs(8)
        while len(line) > WIDE and "\x1b" not in line:
            at = line.rfind(" ", 0, WIDE) + 1 or WIDE
            yield line[:at]
            line = line[at:]
        yield line


def spans(line):
    """(text, colour, bold) of a line."""
    colour, bold = None, False
    for piece in re.split(r"(\x1b\[[0-9;]*m)", line):
        if not piece.startswith("\x1b["):
            if piece:
                yield piece, colour, bold
            continue
        for code in [int(n or 0) for n in piece[2:-1].split(";")]:
            if code == 0:
                colour, bold = None, False
            elif code in (1, 2, 22):
                bold = code == 1
                colour = COLOURS[30] if code == 2 else colour
            elif code % 60 in COLOURS:
                colour = COLOURS[code % 60]
            elif code == 39:
                colour = None


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


def draw_line(line, row, at):
    out, column = [], 0
    for text, colour, bold in spans(line):
        text = text[:WIDE - column]
        style = f' fill="{colour}"' if colour else ""
        style += ' font-weight="700"' if bold else ""
        out.append(f'<tspan x="{LEFT + column * CHAR:.1f}"{style}>'
                   f"{escape(text)}</tspan>")
        column += len(text)
    return (f'<text xml:space="preserve" y="{TOP + HIGH * row}" '
            f'style="animation-delay:{at:.1f}s">{"".join(out)}</text>')


def main():
    path, folder = sys.argv[1:]
    shown, at = [], 0.3
    for command in sys.stdin.read().splitlines():
        if command.startswith("+ "):
            run(command[2:], folder)
        elif command.startswith("#"):
            shown.append((f"\x1b[2m{command}\x1b[0m", at))
        elif command:
            at += 0.9
            shown.append((f"\x1b[1;32m$\x1b[0m \x1b[1m{command}\x1b[0m", at))
            at += 0.7
            for line in lines(run(command, folder)):
                shown.append((line, at))
                at += 0.05
        else:
            shown.append(("", at))
    high = TOP + HIGH * len(shown) + 4
    wide = round(2 * LEFT + WIDE * CHAR)
    with open(path, "w", encoding="utf-8") as f:
        f.write(f"""<svg xmlns="http://www.w3.org/2000/svg" \
viewBox="0 0 {wide} {high}" role="img" aria-label="hfsb in a terminal">
<style>
text {{ font: 13px ui-monospace, SFMono-Regular, Menlo, "DejaVu Sans Mono", \
monospace; fill: #c9d1d9 }}
@media (prefers-reduced-motion: no-preference) {{
  text {{ opacity: 0; animation: show .01s forwards }}
}}
@keyframes show {{ to {{ opacity: 1 }} }}
</style>
<rect width="{wide}" height="{high}" rx="8" fill="#0d1117"/>
<circle cx="18" cy="18" r="5" fill="#ff5f57"/><circle cx="36" cy="18" r="5" \
fill="#febc2e"/><circle cx="54" cy="18" r="5" fill="#28c840"/>
""" + "\n".join(draw_line(line, row, when)
                for row, (line, when) in enumerate(shown)) + "\n</svg>\n")


if __name__ == "__main__":
    main()
