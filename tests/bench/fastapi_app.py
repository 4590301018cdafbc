"""A server in Python that answers health, read, edit and bash as ours does, to
be measured beside it: FastAPI on uvicorn. Written for this comparison.

    uvicorn --app-dir tests/bench fastapi_app:app
"""
import hmac
import os
import pathlib
import subprocess
import tempfile
from typing import Optional

from fastapi import FastAPI, Header, HTTPException
from pydantic import BaseModel

app = FastAPI()
token = "Bearer " + os.environ.get("SANDBOX_API_TOKEN", "")


class Read(BaseModel):
    path: str
    offset: Optional[int] = None
    limit: Optional[int] = 2000


@app.get("/api/health")
def health():
    return {"status": "ok"}


@app.post("/api/read")
def read(request: Read, x_sandbox_authorization: str = Header("")):
    if not hmac.compare_digest(x_sandbox_authorization, token):
        raise HTTPException(401, "Invalid bearer token")
    path = pathlib.Path(request.path)
    if not path.exists():
        return {"success": False, "output": "",
                "error": f"File not found: {request.path}"}
    lines = path.read_text().splitlines()
    start = (request.offset or 1) - 1
    end = start + (request.limit or len(lines))
    return {"success": True, "error": "", "output": "\n".join(
        f"{start + i + 1}\t{line}"
        for i, line in enumerate(lines[start:end]))}


class Edit(BaseModel):
    path: str
    old_str: str
    new_str: str


@app.post("/api/edit")
def edit(request: Edit, x_sandbox_authorization: str = Header("")):
    if not hmac.compare_digest(x_sandbox_authorization, token):
        raise HTTPException(401, "Invalid bearer token")
    path = pathlib.Path(request.path)
    text = path.read_text()
    if text.count(request.old_str) != 1:
        return {"success": False, "output": "", "error": "not one match"}
    fd, temporary = tempfile.mkstemp(dir=str(path.parent), suffix=".tmp")
    os.write(fd, text.replace(request.old_str, request.new_str, 1).encode())
    os.fsync(fd)
    os.close(fd)
    os.replace(temporary, str(path))
    return {"success": True, "error": "",
            "output": f"Edited {path} (1 replacement)"}


class Bash(BaseModel):
    command: str
    work_dir: str = "."
    timeout: int = 120


@app.post("/api/bash")
def bash(request: Bash, x_sandbox_authorization: str = Header("")):
    if not hmac.compare_digest(x_sandbox_authorization, token):
        raise HTTPException(401, "Invalid bearer token")
    done = subprocess.run(request.command, shell=True, capture_output=True,
                          text=True, cwd=request.work_dir, check=False,
                          timeout=request.timeout)
    return {"success": done.returncode == 0,
            "output": done.stdout + done.stderr,
            "error": f"Exit code {done.returncode}" if done.returncode else ""}
