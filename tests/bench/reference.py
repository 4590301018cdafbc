"""What a sandbox server in Python does for read and edit, for bench_tools.c:
a JSON body in, the file, a JSON body out. Written for this comparison.

    reference.py read FILE ROUNDS       seconds of the best call
    reference.py edit FILE ROUNDS
    reference.py once BODY              one call, as a program
"""
import json
import os
import pathlib
import sys
import tempfile
import time


def read(request):
    lines = pathlib.Path(request["path"]).read_text().splitlines()
    start = (request.get("offset") or 1) - 1
    end = start + (request.get("limit", 2000) or len(lines))
    return "\n".join(f"{start + i + 1}\t{line}"
                     for i, line in enumerate(lines[start:end]))


def replace_file(path, text):
    fd, temporary = tempfile.mkstemp(dir=str(path.parent), suffix=".tmp")
    os.write(fd, text.encode("utf-8"))
    os.fsync(fd)
    os.close(fd)
    os.replace(temporary, str(path))


def edit(request):
    path = pathlib.Path(request["path"])
    text = path.read_text()
    old, new = request["old_str"], request["new_str"]
    if old not in text:
        raise ValueError("old_str not found in file.")
    count = text.count(old)
    if count > 1:
        raise ValueError(f"old_str appears {count} times.")
    replace_file(path, text.replace(old, new, 1))
    return f"Edited {path} (1 replacement)"


def call(body):
    request = json.loads(body)
    tool = read if "old_str" not in request else edit
    return json.dumps({"success": True, "output": tool(request), "error": ""})


def bodies(kind, path):
    if kind == "read":
        return [json.dumps({"path": path})] * 2
    return [json.dumps({"path": path, "old_str": f"value_10000 = {a}",
                        "new_str": f"value_10000 = {b}"})
            for a, b in (("old", "new"), ("new", "old"))]


def main():
    if sys.argv[1] == "once":
        print(call(sys.argv[2]))
        return
    kind, path, rounds = sys.argv[1], sys.argv[2], int(sys.argv[3])
    best = 1e9
    for i in range(rounds):
        body = bodies(kind, path)[i % 2]
        begin = time.perf_counter()
        call(body)
        best = min(best, time.perf_counter() - begin)
    print(best)


main()
