#!/bin/sh
# Cuts the connections of calls at every byte, in each protocol that the
# server speaks: tests/python/cut.py.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

[ -x "${HFSB_SERVER:-build/hfsb-server}" ] || {
    echo "hfsb-server is missing: run make"
    exit 1
}
have python3 || { echo "skipped: no python3"; exit 77; }
exec python3 tests/python/cut.py "$@"
