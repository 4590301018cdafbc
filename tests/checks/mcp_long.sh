#!/bin/sh
# A call that runs for three minutes under a client with a 60 s timeout, a build
# in three calls, ten at once, one cancelled, and the end of input, by `hfsb mcp` and
# tests/python/mcp_long.py: with all times divided by 30, or, with HFSB_TEST_LONG=1,
# as they are (190 s, in which nearly nothing is computed).
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh
[ -x build/hfsb ] || { echo "build/hfsb is missing: run make"; exit 1; }
have python3 || { echo "skipped: no python3"; exit 77; }
scale=30
[ -z "${HFSB_TEST_LONG:-}" ] || scale=1
limited 400 python3 tests/python/mcp_long.py build/hfsb $scale
