"""A server in Python that answers health and read as ours does, to be measured
beside it: FastAPI on uvicorn. Written for this comparison.

    uvicorn --app-dir tests/bench fastapi_app:app
"""
import hmac
import os
import pathlib
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
