#!/bin/sh
# The server beside nginx and FastAPI, one run: tests/bench/server.py says
# what it measures. Part of `make bench`; alone, or only parts of it:
#   tests/bench/server.sh [PART...]
# Uses what is installed and says what is left out: wrk, nginx, and
# python3-fastapi with python3-uvicorn (Debian's packages).
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

have python3 || { echo "skipped: no python3"; exit 0; }
make -s all > /dev/null || exit 1
server=${HFSB_SERVER:-build/hfsb-server}
[ -x "$server" ] || { echo "$server is missing"; exit 1; }
if [ -z "${HFSB_SERVER_STATIC:-}" ]; then
    make -s static > build/static.log 2>&1
    for f in build/hfsb-server-static build/static/hfsb-server \
        build/hfsb-server.static; do
        [ ! -x $f ] || HFSB_SERVER_STATIC=$f
    done
fi
[ -n "${HFSB_SERVER_STATIC:-}" ] ||
    echo "skipped: no static binary (make static needs musl-gcc)"
export HFSB_SERVER_STATIC="${HFSB_SERVER_STATIC:-}"
if ${CC:-cc} -shared -fPIC -O1 tests/bench/slow_shim.c -o build/slow_shim.so \
    -ldl 2> build/slow_shim.log; then
    SLOW_SHIM=$PWD/build/slow_shim.so
    export SLOW_SHIM
fi
exec python3 tests/bench/server.py "$@"
