r"""hfsb's edit engine as a Python module over libhfsb.so (ctypes, no build).

    import hfsb
    result = hfsb.edit("a = 1\n", old_str="a = 1", new_str="a = 2")
    print(result["content"], result["diff"])

Arguments and results are those of examples/bindings/hfsb_json.c. A refusal is
an hfsb.Error, whose text is written for the model. `make shared` builds the
library: $HFSB_LIBRARY, or else the first that is found next to this file, in
build/ of the project, or where the system keeps libraries. Threads may call at
once.
"""
import ctypes
import ctypes.util
import json
import os
from pathlib import Path

__all__ = ["Error", "call", "edit", "patch", "truncate", "strip", "version"]


class Error(Exception):
    """A call that was refused; status is "NOT_FOUND", "AMBIGUOUS" ..."""

    def __init__(self, status, message, line=None, column=None, key=None):
        super().__init__(message)
        self.status, self.message = status, message
        self.line, self.column, self.key = line, column, key


def _load():
    here = Path(__file__).resolve().parent
    near = [here / "libhfsb.so", here.parent.parent / "build" / "libhfsb.so"]
    name = (os.environ.get("HFSB_LIBRARY") or
            next((path for path in near if path.exists()), None) or
            ctypes.util.find_library("hfsb"))
    if not name:
        raise ImportError("libhfsb.so was not found: run make shared, or set "
                          "HFSB_LIBRARY to its path")
    lib = ctypes.CDLL(str(name))
    # void *: as char * ctypes would copy the text and lose its address
    lib.hfsb_bind_call.restype = ctypes.c_void_p
    lib.hfsb_bind_call.argtypes = [ctypes.c_char_p, ctypes.c_char_p,
                                   ctypes.c_size_t]
    lib.hfsb_bind_free.restype = None
    lib.hfsb_bind_free.argtypes = [ctypes.c_void_p]
    return lib


_lib = _load()


def _refuse(value):
    raise TypeError(f"hfsb takes texts, not {type(value).__name__}: decode "
                    "the bytes of a file first")


def call(name, **args):
    """Any call by its name. None means that an argument is absent."""
    args = {k: v for k, v in args.items() if v is not None}
    text = json.dumps(args, default=_refuse).encode()
    reply = _lib.hfsb_bind_call(name.encode(), text, len(text))
    if not reply:
        raise MemoryError("hfsb: out of memory")
    try:
        result = json.loads(ctypes.string_at(reply))
    finally:
        _lib.hfsb_bind_free(reply)
    if "error" in result:
        raise Error(**result["error"])
    return result


def edit(content, edits=None, *, path=None, old_str=None, new_str=None,
         mode=None, replace_all=None, exact=None, line=None):
    """Applies one edit, given by keywords, or a list of them as dicts. Returns
    a dict with content, count, note, diff, diff_cut and lines."""
    return call("edit", content=content, path=path, edits=edits,
                old_str=old_str, new_str=new_str, mode=mode,
                replace_all=replace_all, exact=exact, line=line)


def patch(patch, read):
    """Applies a patch in any of three formats. read(path) returns a file's
    text, or None where it does not exist; a dict of texts will do as well.
    Returns the changes, which are yours to write."""
    files, read = {}, getattr(read, "get", read)
    while True:
        result = call("patch", patch=patch, files=files)
        if "changes" in result:
            return result["changes"]
        files[result["needs"]] = read(result["needs"])


def truncate(text, chars=None, head=None, path=None):
    """Head and tail of a long text; chars and head count characters, path is
    where the full text is."""
    return call("truncate", text=text, chars=chars, head=head,
                path=path)["text"]


def strip(text):
    """The output of a command without escape sequences, lines as a terminal
    would show them."""
    return call("strip", text=text)["text"]


def version():
    return call("version")["version"]
