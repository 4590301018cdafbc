#!/bin/sh
# The limits of the server: tests/python/server_limits.py against build/hfsb-server.
#   tests/checks/server_limits.sh [NAME...]     only these parts of it
#   HFSB_TEST_LONG=1   1 GB up and down, a disk that takes 5 s a call
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

server=${HFSB_SERVER:-build/hfsb-server}
[ -x "$server" ] || { echo "$server is missing: run make"; exit 1; }
have python3 || { echo "skipped: no python3"; exit 77; }
[ -r /proc/self/status ] || { echo "skipped: not Linux"; exit 77; }

shim=build/slow_shim.so
mkdir -p build
if ${CC:-cc} -shared -fPIC -O1 tests/bench/slow_shim.c -o $shim -ldl \
    2> build/slow_shim.log; then
    SLOW_SHIM=$PWD/$shim
    export SLOW_SHIM
fi
limited 600 python3 tests/python/server_limits.py "$@"
