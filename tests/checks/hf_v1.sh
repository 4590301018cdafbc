#!/bin/sh
# The sandbox API of Hugging Face as its clients see it: tests/python/hf_v1.py
# against build/hfsb-server --api hf, one sandbox and host mode.
#   HFSB_SERVER=FILE   another binary
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh
server=${HFSB_SERVER:-build/hfsb-server}
[ -x "$server" ] || { echo "$server is missing: run make"; exit 1; }
python=
for p in python3 /usr/bin/python3; do # the one that has httpx, if any has
    ! have "$p" || ! "$p" -c 'import httpx' 2>/dev/null || python=${python:-$p}
done
[ -n "$python" ] || ! have python3 || python=python3
[ -n "$python" ] || { echo "skipped: no python3"; exit 77; }
[ -d /proc/self ] || { echo "skipped: no /proc"; exit 77; }
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
limited 300 "$python" tests/python/hf_v1.py "$server"
