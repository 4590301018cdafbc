#!/bin/sh
# A mixed load with faults on build/hfsb-server: tests/python/soak.py.
#   tests/checks/soak.sh [SECONDS [SEED]]      default: 40 seconds
# An hour or more compares memory over time.
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
[ -r /proc/self/status ] || { echo "skipped: not Linux"; exit 77; }
exec python3 tests/python/soak.py "$@"
