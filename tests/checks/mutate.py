#!/usr/bin/env python3
"""Mutation testing of one file of src/: do the tests notice small faults?

usage: tests/checks/mutate.py src/ROOM/FILE.c [TEST...] [--max N] [--lines A-B]
                              [--jobs N] [--seconds N] [--quick] [--no-simd]

Each mutant changes one operator, constant or statement of FILE.c. It is
killed when it does not compile, or when one of the tests (names as in
test_NAME.c; default: those of the room)
fails or runs too long. Survivors are printed: each is a behaviour no test
looks at, a check that cannot matter, or code that need not be there. Mutants
in code that this build leaves out survive too: try again with --no-simd.

Everything but FILE.c is compiled once, so a mutant costs one small compile,
one link a test and the tests' own time.
"""
import argparse
import concurrent.futures
import glob
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile

TOP = os.path.dirname(os.path.dirname(os.path.dirname(
    os.path.abspath(__file__))))
# -O1 with the cheap sanitiser: a mutant that reads out of bounds should die.
FLAGS = ["-O1", "-w", "-DHFSBI_SPLIT", "-fsanitize=address,undefined",
         "-fno-sanitize-recover=all"]

# (pattern, replacements); the text inside comments, strings and # lines is
# left alone.
MUTATIONS = [
    (r"==", ["!="]), (r"!=", ["=="]),
    (r"<=", ["<", ">"]), (r">=", [">", "<"]),
    (r"(?<![<\-])<(?![<=])", ["<=", ">="]),
    (r"(?<![>\-])>(?![>=])", [">=", "<="]),
    (r"&&", ["||"]), (r"\|\|", ["&&"]),
    (r"(?<=[\w\])] )\+(?= )", ["-"]), (r"(?<=[\w\])] )-(?= )", ["+"]),
    (r"\+=", ["-=", "="]), (r"-=", ["+=", "="]),
    (r"\+\+", ["--"]), (r"--", ["++"]),
    (r"(?<=[ (])\*(?= )", ["/"]), (r"(?<= )/(?= )", ["*"]),
    (r"(?<= )&(?= )", ["|"]), (r"(?<= )\|(?= )", ["&"]),
    (r"<<", [">>"]), (r">>", ["<<"]),
    (r"!(?!=)", [""]), (r"~", [""]),
    (r"\btrue\b", ["false"]), (r"\bfalse\b", ["true"]),
    (r"\b0\b", ["1"]), (r"\b1\b", ["0", "2"]),
    (r"\b(?!0\b|1\b)\d+\b", ["__MORE__", "__LESS__"]),
    (r"\bbreak;", [";"]), (r"\bcontinue;", [";"]),
    (r"(?<=[;{}]\n)( +)(?!return\b|const\b|static\b|if\b|for\b|while\b|"
     r"else\b|do\b|case\b|default\b|switch\b|\w+ [*\w]+( =|;|,|\[))"
     r"[^\n;{}]*;(?=\n)", [";"]),
]


def mutants(text, first, last):
    hidden = [False] * len(text)
    skip = (r"/\*.*?\*/|//[^\n]*|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])*'"
            r"|^[ \t]*#(?:[^\n]*\\\n)*[^\n]*")
    for m in re.finditer(skip, text, re.S | re.M):
        hidden[m.start():m.end()] = [True] * (m.end() - m.start())
    for pattern, replacements in MUTATIONS:
        for m in re.finditer(pattern, text):
            line = text.count("\n", 0, m.start()) + 1
            if hidden[m.start()] or not first <= line <= last:
                continue
            for r in replacements:
                if r == "__MORE__":
                    r = str(int(m.group(), 10) + 1)
                elif r == "__LESS__":
                    r = str(int(m.group(), 10) - 1)
                yield m.start(), m.end(), r, line


def compile_object(source, target, *more):
    run = subprocess.run(["cc", *FLAGS, *more, "-c", source, "-o", target],
                         cwd=TOP, capture_output=True, text=True)
    return run.returncode == 0, run.stderr


def default_tests(source):
    room = os.path.basename(os.path.dirname(source))
    found = glob.glob(os.path.join(TOP, "tests", room, "test_*.c"))
    return [os.path.basename(t)[5:-2] for t in sorted(found)]


class Bench:
    """The objects that stay, and one folder for each mutant."""

    def __init__(self, source, tests, seconds, folder):
        self.source, self.tests, self.seconds = source, tests, seconds
        self.folder = folder
        self.text = open(os.path.join(TOP, source)).read()
        self.others = []
        for path in sorted(glob.glob(os.path.join(TOP, "src/*/*.c"))):
            if os.path.relpath(path, TOP) != os.path.normpath(source):
                self.others.append(self.keep(path))
        self.test_objects = {
            t: self.keep(glob.glob(os.path.join(
                TOP, "tests/*/test_%s.c" % t))[0])
            for t in tests}

    def keep(self, path):
        name = os.path.relpath(path, TOP).replace("/", "-")
        target = os.path.join(self.folder, name + ".o")
        ok, why = compile_object(path, target)
        if not ok:
            sys.exit("%s does not compile:\n%s" % (path, why))
        return target

    def survives(self, text):
        """None when killed by the compiler, else whether all tests pass."""
        d = tempfile.mkdtemp(dir=self.folder)
        try:
            source = os.path.join(d, os.path.basename(self.source))
            with open(source, "w") as f:
                f.write(text)
            if not compile_object(source, source + ".o", "-iquote",
                                  os.path.dirname(self.source))[0]:
                return None
            return all(self.passes(t, d, source + ".o") for t in self.tests)
        finally:
            shutil.rmtree(d, ignore_errors=True)

    def passes(self, test, d, mutant):
        program = os.path.join(d, test)
        link = ["cc", *FLAGS, self.test_objects[test], mutant, *self.others,
                "-lm", "-o", program]
        if subprocess.run(link, capture_output=True).returncode:
            return False
        try:
            return subprocess.run(
                [program], cwd=TOP, stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                timeout=self.seconds).returncode == 0
        except subprocess.TimeoutExpired:
            return False


def main():
    p = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    p.add_argument("source")
    p.add_argument("tests", nargs="*")
    p.add_argument("--max", type=int, default=200,
                   help="mutants, chosen at random but always the same (200)")
    p.add_argument("--lines", default="1-1000000")
    p.add_argument("--jobs", type=int, default=os.cpu_count() or 2)
    p.add_argument("--seconds", type=int, default=20,
                   help="a test that runs longer has noticed (20)")
    p.add_argument("--quick", action="store_true",
                   help="with HFSB_TEST_QUICK=1")
    p.add_argument("--no-simd", action="store_true",
                   help="with HFSB_NO_SIMD: the portable paths")
    a = p.parse_args()
    a.source = os.path.relpath(os.path.abspath(a.source), TOP)
    if a.no_simd:
        FLAGS.append("-DHFSB_NO_SIMD")
    if a.quick:
        os.environ["HFSB_TEST_QUICK"] = "1"
    first, last = map(int, a.lines.split("-"))
    with tempfile.TemporaryDirectory(prefix="mutate") as folder:
        bench = Bench(a.source, a.tests or default_tests(a.source),
                      a.seconds, folder)
        text = bench.text
        if not bench.survives(text):
            sys.exit("the tests fail without any mutation")
        todo = sorted(set(mutants(text, first, last)))
        random.Random(1).shuffle(todo)
        todo = todo[:a.max]
        print("%s: %d mutants, tests: %s" % (a.source, len(todo),
                                             " ".join(bench.tests)))
        with concurrent.futures.ThreadPoolExecutor(a.jobs) as pool:
            results = list(pool.map(
                lambda m: bench.survives(text[:m[0]] + m[2] + text[m[1]:]),
                todo))
    lines = text.split("\n")
    left = sorted((m[3], text[m[0]:m[1]].strip(), m[2])
                  for m, alive in zip(todo, results) if alive)
    for line, old, new in left:
        print("survived %s:%d: `%s` -> `%s`   %s" % (
            a.source, line, old, new, lines[line - 1].strip()))
    valid = sum(r is not None for r in results)
    print("%d mutants compiled, %d killed (%.1f %%), %d survived" % (
        valid, valid - len(left),
        100.0 * (valid - len(left)) / max(valid, 1), len(left)))


main()
