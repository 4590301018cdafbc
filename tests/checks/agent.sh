#!/bin/sh
# build/agent with a model that follows a script: tests/python/agent_model.py.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh
[ -x build/agent ] || { echo "build/agent is missing: run make"; exit 1; }
[ -x build/static/hfsb-server ] || make -s static || exit 1

# a copy of two files and the header is enough to compile it
mkdir -p build/agent_alone/examples
cp hfsb.h build/agent_alone/
cp examples/agent.c examples/agent_remote.h build/agent_alone/examples/
${CC:-cc} -Wall -Wextra -Werror -DHFSB_IMPLEMENTATION_DONE -fsyntax-only \
    build/agent_alone/examples/agent.c ||
    { echo "FAIL  agent.c does not compile in a fresh clone"; exit 1; }
rm -r build/agent_alone

have python3 || { echo "skipped: no python3"; exit 77; }
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
trap 'exit 130' INT TERM
own_settings "$top" # checkpoints are kept there, too
PYTHONDONTWRITEBYTECODE=1 python3 tests/python/agent_model.py build/agent
