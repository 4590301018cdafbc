#!/usr/bin/env python3
"""Makes bench.md and bench.svg of the results of one run of the benchmarks.

    page.py RESULTS FOLDER

RESULTS has a line for each figure that has a peer, as bench_keep() of bench.h
writes it: figure, ours, peer, theirs, unit, with tabs between them. A figure
is "GROUP: NAME". The picture shows the median of each group and peer as a bar
on a logarithmic scale: to the right hfsb is better, to the left the peer.
"""
import datetime
import math
import os
import platform
import statistics
import sys

GROUPS = {  # in this order: title of the group in the table and the picture
    "50 actions": "50 actions of an agent",
    "tool": "One call of a tool",
    "command": "Running a command",
    "grep": "Searching",
    "glob": "Finding files",
    "undo": "Checkpoints of 20,000 files",
    "json": "JSON",
    "server": "The server",
    "client": "The client",
    "servers": "1,000 servers on one machine",
}


class Figure:
    def __init__(self, line):
        name, ours, peer, theirs, unit = line.rstrip("\n").split("\t")
        self.ours, self.theirs = float(ours), float(theirs)
        self.peer, self.unit = peer, unit
        self.group, self.name = split_name(name)
        better = self.ours / self.theirs
        self.ratio = better if unit.endswith("/s") else 1 / better


def split_name(name):
    for mark in (": ", ", ", " "):
        head, found, rest = name.partition(mark)
        if found and head in GROUPS:
            return head, rest
        if found and head.endswith(" servers"):
            return "servers", rest
    raise SystemExit(f"page.py: {name!r} belongs to no group")


def read(path):
    with open(path, encoding="utf-8") as f:
        return [Figure(line) for line in f]


def number(value):
    """Three digits."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{value:,.{digits}f}"


def processor():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as f:
            names = [line.split(":")[1].strip() for line in f
                     if line.startswith("model name")]
    except OSError:
        names = []
    return names[0] if names else platform.machine()


def machine():
    return (f"{os.cpu_count()} x {processor()}, {platform.system()} "
            f"{platform.release().split('-')[0]}, {datetime.date.today()}")


# ---- the table

def table(figures):
    out = ["# Benchmarks", "",
           f"`make bench` wrote this page on {machine()}. hfsb and its peer "
           "are measured alternately in the same run. A ratio above 1 means "
           "that hfsb is better. On other machines the figures differ, the "
           "ratios less so.", "",
           "![Bars: how many times better hfsb is than each peer]"
           "(bench.svg)", ""]
    for group, title in GROUPS.items():
        rows = [f for f in figures if f.group == group]
        if not rows:
            continue
        out += [f"## {title}", "", "| figure | hfsb | peer | | ratio |",
                "|---|---:|---|---:|---:|"]
        out += [f"| {f.name} | {number(f.ours)} {f.unit} | {f.peer} | "
                f"{number(f.theirs)} {f.unit} | {f.ratio:.2f} |"
                for f in rows]
        out.append("")
    return "\n".join(out)


# ---- the picture

ROW, LEFT, WIDE, TOP = 24, 340, 380, 58
STYLE = """
text { font: 13px system-ui, sans-serif; fill: #1f2328 }
.title { font-size: 16px; font-weight: 600 } .dim { fill: #59636e }
.line { stroke: #d1d9e0 } .one { stroke: #59636e }
.good { fill: #1a7f37 } .bad { fill: #bf8700 }
@media (prefers-color-scheme: dark) {
  text { fill: #f0f6fc } .dim { fill: #9198a1 } .line { stroke: #3d444d }
  .one { stroke: #9198a1 } .good { fill: #3fb950 } .bad { fill: #d29922 }
}
"""


def escape(text):
    return text.replace("&", "&amp;").replace("<", "&lt;")


def bars(figures):
    """The median of each group and peer: (title, peer, ratio)."""
    for group, title in GROUPS.items():
        peers = {}
        for f in figures:
            if f.group == group:
                peers.setdefault(f.peer, []).append(f.ratio)
        if group == "undo":  # its peers are commands of git
            peers = {"git": sum(peers.values(), [])} if peers else {}
        for peer, ratios in peers.items():
            yield title, peer, statistics.median(ratios)


def picture(figures):
    rows = list(bars(figures))
    most = max([abs(math.log2(r)) for _, _, r in rows] + [1])
    low = min([math.log2(r) for _, _, r in rows] + [-1])
    scale = WIDE / (most - low)
    one = LEFT - low * scale
    height = TOP + ROW * len(rows) + 34
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 '
           f'{height}" role="img" aria-label="hfsb beside its peers">',
           f"<style>{STYLE}</style>",
           '<text x="12" y="24" class="title">hfsb beside its peers, in one '
           "run: how many times better</text>"]
    for power in range(math.ceil(low), math.floor(most) + 1):
        x = one + power * scale
        if power and power % max(1, round(most / 5)):
            continue
        label = f"{2 ** power:g}" if power >= 0 else f"1/{2 ** -power:g}"
        out.append(f'<line class="{"line" if power else "one"}" x1="{x:.1f}" '
                   f'x2="{x:.1f}" y1="{TOP - 8}" y2="{height - 28}"/>'
                   f'<text class="dim" x="{x:.1f}" y="{TOP - 13}" '
                   f'text-anchor="middle">{label}</text>')
    last = None
    for i, (title, peer, ratio) in enumerate(rows):
        y = TOP + ROW * i
        x = one + math.log2(ratio) * scale
        if title != last:
            out.append(f'<text x="12" y="{y + 15}">{escape(title)}</text>')
        last = title
        out.append(f'<text class="dim" x="{LEFT - 12}" y="{y + 15}" '
                   f'text-anchor="end">{escape(peer)}</text>'
                   f'<rect class="{"good" if ratio >= 1 else "bad"}" rx="2" '
                   f'x="{min(x, one):.1f}" y="{y + 4}" '
                   f'width="{max(abs(x - one), 1):.1f}" height="14"/>'
                   f'<text x="{max(x, one) + 6:.1f}" y="{y + 15}">'
                   f"{ratio:.{1 if ratio >= 10 else 2}f}</text>")
    out += [f'<text class="dim" x="12" y="{height - 10}">'
            f"{escape(machine())}; medians of the groups of bench.md; "
            "logarithmic</text>", "</svg>", ""]
    return "\n".join(out)


def main():
    path, folder = sys.argv[1:]
    figures = read(path)
    if not figures:
        print("no figure has a peer: no page is written")
        return
    for name, text in (("bench.md", table(figures)),
                       ("bench.svg", picture(figures))):
        with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
            f.write(text)
    print(f"{len(figures)} figures in {folder}/bench.md and bench.svg")


if __name__ == "__main__":
    main()
