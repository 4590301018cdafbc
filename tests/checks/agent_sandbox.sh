#!/bin/sh
# --api agent-sandbox as clients of Kubernetes' agent-sandbox see it:
# tests/python/agent_sandbox.py against build/hfsb-server on a port of its own,
# and as a pod of a warm pool, which gets its token by /init and is drained.
#   HFSB_SERVER=FILE   another binary
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

server=${HFSB_SERVER:-build/hfsb-server}
[ -x "$server" ] || { echo "$server is missing: run make"; exit 1; }
have python3 || { echo "skipped: no python3"; exit 77; }
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
unset SANDBOX_API_TOKEN

top=$(mktemp -d) || exit 1
pids='' rc=0

end() {
    for p in $pids; do
        kill "$p" 2>/dev/null
        wait "$p" 2>/dev/null
    done
    rm -rf "$top"
}
trap end EXIT
trap 'exit 130' INT TERM

start() { # NAME PATTERN OPTION...: a server; its port in $port, its id in $pid
    log=$top/$1.out pattern=$2
    mkdir "$top/$1"
    root=$top/$1
    shift 2
    "$server" --host 127.0.0.1 --port 0 --root "$root" "$@" \
        > "$log" 2>&1 &
    pid=$!
    pids="$pids $pid"
    port='' tries=0
    while [ -z "$port" ] && [ $tries -lt 600 ]; do
        port=$(sed -n "s|.*$pattern\([0-9][0-9]*\).*|\1|p" "$log" |
            head -n 1)
        [ -n "$port" ] || sleep 0.1
        tries=$((tries + 1))
    done
    [ -n "$port" ] || { echo "FAIL  no port:"; cat "$log"; exit 1; }
}

start local 'agent-sandbox on port ' --api agent-sandbox:0
echo "== a port of its own"
limited 120 python3 tests/python/agent_sandbox.py local \
    "http://127.0.0.1:$port" "$root" || rc=1

start warm 'http://127.0.0.1:' --init --drain 3 --api agent-sandbox
echo "== a warm pod"
limited 60 python3 tests/python/agent_sandbox.py warm \
    "http://127.0.0.1:$port" "$root" "$pid" || rc=1
wait "$pid" || { echo "FAIL  the drained server exits with $?"; rc=1; }
exit $rc
