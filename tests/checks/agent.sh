#!/bin/sh
# build/agent with a model that follows a script: tests/python/agent_model.py.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh
[ -x build/agent ] || { echo "build/agent is missing: run make"; exit 1; }
have python3 || { echo "skipped: no python3"; exit 77; }
PYTHONDONTWRITEBYTECODE=1 python3 tests/python/agent_model.py build/agent
