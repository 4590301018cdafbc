#!/bin/sh
# The E2B SDK from npm against build/hfsb-server: tests/node/e2b.mjs with the
# server's own sandbox, and with the control plane.
#   HFSB_E2B=DIR       a folder with node_modules/e2b (default: npm installs it
#                      into a temporary folder)
#   HFSB_SERVER=FILE   another binary
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

server=${HFSB_SERVER:-build/hfsb-server}
[ -x "$server" ] || { echo "$server is missing: run make"; exit 1; }
have node || { echo "skipped: no node"; exit 77; }
have bash || { echo "skipped: no bash, which the SDK runs"; exit 77; }

top=$(mktemp -d) || exit 1
chmod 711 "$top" # as root, sandboxes are users of their own
key=e2b_0123456789012345678901234567890123456789
pid='' failed=0

end() {
    if [ -n "$pid" ]; then
        kill "$pid" 2>/dev/null
        wait "$pid" 2>/dev/null
    fi
    rm -rf "$top"
}
trap end EXIT
trap 'exit 130' INT TERM

modules=${HFSB_E2B:-}
if [ -z "$modules" ]; then
    have npm || { echo "skipped: no npm"; exit 77; }
    modules=$top/npm
    mkdir "$modules"
    limited 120 npm install --silent --no-audit --no-fund \
        --prefix "$modules" e2b > "$top/npm.out" 2>&1
fi
[ -f "$modules/node_modules/e2b/package.json" ] ||
    { echo "skipped: npm cannot install e2b"; exit 77; }
own_settings "$top" # a shell in a terminal keeps a history

run() { # MODE OPTION...: a server, and the SDK in that mode
    mode=$1
    shift
    work=$top/$mode
    mkdir "$work"
    "$server" --host 127.0.0.1 --port 0 --work-dir "$work" --root "$work" \
        --api e2b:0 "$@" > "$top/$mode.out" 2>&1 &
    pid=$!
    port='' tries=0
    while [ -z "$port" ] && [ $tries -lt 600 ]; do
        port=$(sed -n 's/.*e2b on port //p' "$top/$mode.out")
        [ -n "$port" ] || sleep 0.1
        tries=$((tries + 1))
    done
    [ -n "$port" ] || { echo "FAIL  no port:"; cat "$top/$mode.out"; exit 1; }
    echo "== $mode"
    limited 200 env WORK_DIR="$work" E2B_DEBUG=false \
        E2B_SANDBOX_URL="http://127.0.0.1:$port" \
        E2B_API_URL="http://127.0.0.1:$port" \
        node tests/node/e2b.mjs "$modules" "$mode" "$key" || failed=1
    kill "$pid"
    wait "$pid" || { echo "FAIL  the server ended with $?"; failed=1; }
    pid=
    ls -A "$work" | sed 's/^/FAIL  left over: /' | grep -v ': sandboxes$' &&
        failed=1
}

run debug --no-auth
SANDBOX_API_TOKEN=$key
export SANDBOX_API_TOKEN
run control
exit $failed
