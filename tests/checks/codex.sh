#!/bin/sh
# The exec-server as Codex itself uses it: npm's @openai/codex with a scripted
# model ($HFSB_TEST_DATA/tools/wire/codex_model.py), over stdio (build/hfsb
# exec-server), over a WebSocket (build/hfsb-server --api codex) and from one to
# the other (exec-server --on, through a proxy that cuts the connection):
# commands, exit codes, long output, patches, and a Codex that is ended in the
# middle.
# Needs npm and either the network or a build/codex-npm that an earlier run has
# filled.
#   HFSB_SERVER=FILE, HFSB=FILE   other binaries
#   CODEX_NPM=DIR                 where the package is kept (build/codex-npm)
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

server=$PWD/build/hfsb-server cli=$PWD/build/hfsb
server=${HFSB_SERVER:-$server}
cli=${HFSB:-$cli}
npm=${CODEX_NPM:-$PWD/build/codex-npm}
model=${HFSB_TEST_DATA:-}/tools/wire/codex_model.py
for f in "$server" "$cli"; do
    [ -x "$f" ] || { echo "$f is missing: run make"; exit 1; }
done
have npm && have python3 || { echo "skipped: no npm or python3"; exit 77; }
[ -f "$model" ] ||
    { echo "skipped: HFSB_TEST_DATA has no tools/wire/codex_model.py"; exit 77; }
unset SANDBOX_API_TOKEN http_proxy https_proxy HTTP_PROXY HTTPS_PROXY \
    all_proxy ALL_PROXY CODEX_EXEC_SERVER_URL OPENAI_API_KEY

codex=$npm/node_modules/.bin/codex
if [ ! -x "$codex" ]; then
    mkdir -p "$npm"
    [ -f "$npm/package.json" ] ||
        echo '{"private":true}' > "$npm/package.json"
    limited 240 npm install --prefix "$npm" --no-audit --no-fund --no-save \
        --loglevel=error @openai/codex > "$npm/install.log" 2>&1 || {
        tail -n 5 "$npm/install.log"
        echo "skipped: npm could not install @openai/codex"
        exit 77
    }
fi
"$codex" --version 2>/dev/null ||
    { echo "skipped: @openai/codex does not run here"; exit 77; }

top=$(mktemp -d) || exit 1
pids='' checks=0 failed=0
end() {
    for p in $pids; do
        kill "$p" 2>/dev/null
        wait "$p" 2>/dev/null
    done
    rm -rf "$top"
}
trap end EXIT
trap 'exit 130' INT TERM

check() { # WHAT COMMAND...
    what=$1
    shift
    checks=$((checks + 1))
    "$@" > "$top/checked" 2>&1 && return
    failed=$((failed + 1))
    echo "FAIL  $what"
    tail -n 5 "$top/checked"
}

free_port() {
    python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# prepare NAME SCRIPT ENVIRONMENT: $home with a model that follows the script,
# and the environment that a function prints
prepare() {
    home=$top/$1
    mkdir -p "$home"
    "$3" > "$home/environments.toml"
    port=$(free_port)
    printf '%s' "$2" > "$home/script.json"
    python3 "$model" "$port" "$home/script.json" "$home/log" \
        > "$home/model" 2>&1 &
    model_pid=$!
    pids="$pids $model_pid"
    cat > "$home/config.toml" <<END
model = "fake"
model_provider = "fake"
[model_providers.fake]
name = "fake"
base_url = "http://127.0.0.1:$port/v1"
wire_api = "responses"
END
    tries=0
    until python3 -c "import socket
socket.create_connection(('127.0.0.1', $port), 1)" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] || { echo "FAIL  no model"; exit 1; }
        sleep 0.1
    done
}

run_codex() { # in $work, with $home
    # shellcheck disable=SC2034
    CODEX_HOME=$home limited 120 "$codex" exec --skip-git-repo-check \
        --sandbox danger-full-access -C "$work" go \
        < /dev/null > "$home/out" 2>&1
}

stdio_environment() {
    cat <<END
default = "hfsb"
[[environments]]
id = "hfsb"
program = "$cli"
args = ["exec-server", "--root", "$work"]
END
}

bridge_environment() {
    cat <<END
default = "hfsb"
[[environments]]
id = "hfsb"
program = "$cli"
args = ["exec-server", "--on", "$on"]
initialize_timeout_sec = 90
env = { SANDBOX_API_TOKEN = "a-token-for-tests" }
END
}

socket_environment() {
    cat <<END
default = "hfsb"
[[environments]]
id = "hfsb"
url = "$url"
auth_bearer_token = "a-token-for-tests"
END
}

# The n-th result that Codex gave to its model, in $top/result.
result() {
    python3 - "$home/log" "$1" > "$top/result" <<'END'
import json, sys
last = json.loads(open(sys.argv[1]).readlines()[-1])
said = [i for i in last["input"] if i["type"] == "function_call_output"]
out = said[int(sys.argv[2])]["output"]
print(out if isinstance(out, str) else json.dumps(out))
END
}
holds() { grep -q -e "$1" "$top/result" || { cat "$top/result"; false; }; }

script='[{"exec":"echo \"here=${HFSB_JOB:+yes}\"; pwd; echo grr >&2; exit 7"},
{"exec":"apply_patch <<'"'P'"'\n*** Begin Patch\n*** Add File: made.txt\n+one\n+two\n*** End Patch\nP"},
{"exec":"apply_patch <<'"'P'"'\n*** Begin Patch\n*** Update File: made.txt\n@@\n one\n-two\n+three\n*** End Patch\nP"},
{"exec":"cat made.txt"},
{"exec":"seq 1 400000 | tee many | tail -n 1; wc -c < many"},
{"exec":"seq 1 30000"},
{"exec":"no-such-command"},
{"say":"that was it"}]'

# The same turn over each channel.
turn() { # NAME
    run_codex
    check "$1: Codex ends well" grep -q 'that was it' "$home/out"
    result 0
    check "$1: the command runs here" holds 'here=yes'
    check "$1: in its folder" holds "$work"
    check "$1: its errors are seen" holds grr
    check "$1: its exit code is seen" holds 'code 7'
    result 3
    check "$1: patches are applied" holds three
    printf 'one\nthree\n' > "$top/want"
    check "$1: to the file" cmp "$top/want" "$work/made.txt"
    result 4
    check "$1: a long stream passes" holds 2688895
    result 5
    check "$1: long output comes to its end" holds 30000
    result 6
    check "$1: a missing command is 127" holds 'code 127'
}

# ---- over stdio

work=$top/work-stdio
mkdir "$work"
prepare stdio "$script" stdio_environment
turn stdio
kill $model_pid

# ---- over a WebSocket

server_pid=''
serve() { # in $work; sets $on
    if [ -n "$server_pid" ]; then
        kill "$server_pid"
        wait "$server_pid"
    fi
    : > "$top/server"
    SANDBOX_API_TOKEN=a-token-for-tests "$server" --host 127.0.0.1 --port 0 \
        --work-dir "$work" --root "$work" --api codex >> "$top/server" 2>&1 &
    server_pid=$!
    pids="$server_pid $pids"
    on='' tries=0
    while [ -z "$on" ] && [ $tries -lt 600 ]; do
        on=$(sed -n 's|.*\(http://[^ /]*:[0-9]*\).*|\1|p' "$top/server" |
            head -n 1)
        [ -n "$on" ] || sleep 0.1
        tries=$((tries + 1))
    done
    [ -n "$on" ] || { echo "FAIL  no server:"; cat "$top/server"; exit 1; }
}

work=$top/work-socket
mkdir "$work"
serve
url=ws${on#http}/codex
prepare socket "$script" socket_environment
turn socket
kill $model_pid

# ---- from stdio to a WebSocket

work=$top/work-bridge
mkdir "$work"
serve
prepare bridge "$script" bridge_environment
turn bridge
kill $model_pid

# The same with connections that are cut while a command runs.
work=$top/work-cut
mkdir "$work"
serve
python3 tests/python/cut_proxy.py "${on##*:}" "$work/cut" > "$top/proxy" &
pids="$! $pids"
tries=0
until [ -s "$top/proxy" ] || [ $tries = 600 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
on=http://127.0.0.1:$(head -n 1 "$top/proxy")
prepare cut '[{"exec":"for i in 1 2 3 4 5 6; do echo line $i; touch cut; while [ -e cut ]; do sleep 0.1; done; sleep 0.3; done; exit 7"},
{"exec":"touch cut; while [ -e cut ]; do sleep 0.1; done; echo after"},
{"say":"that was it"}]' bridge_environment
run_codex
check "cut: Codex ends well" grep -q 'that was it' "$home/out"
result 0
for i in 1 2 3 4 5 6; do
    check "cut: line $i comes once" [ "$(grep -c "line $i" "$top/result")" = 1 ]
done
check "cut: the exit code is seen" holds 'code 7'
result 1
check "cut: it goes on" holds after
check "cut: there were seven" [ "$(grep -c cut "$top/proxy")" = 7 ]
kill $model_pid

# ---- a Codex that is ended leaves nothing behind

nap=271.$$
naps() { ps -eo pid=,args= | awk -v n="$nap" '$2 == "sleep" && $3 == n'; }
for way in stdio bridge; do
    work=$top/work-ended-$way
    mkdir "$work"
    serve
    prepare "ended-$way" "[{\"exec\":\"touch up; sleep $nap\"}]" ${way}_environment
    run_codex &
    runner=$!
    tries=0
    until [ -f "$work/up" ] || [ $tries = 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    check "ended, $way: the command has started" [ -f "$work/up" ]
    check "ended, $way: it runs" [ -n "$(naps)" ]
    for p in $(ps -eo pid=,args= | awk -v h="$work" \
        '/exec --skip-git-repo-check/ && index($0, h) { print $1 }'); do
        kill "$p" 2>/dev/null
    done
    wait $runner
    tries=0
    while [ -n "$(naps)" ] && [ $tries -lt 200 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    check "ended, $way: its command is gone" [ -z "$(naps)" ]
    kill $model_pid
done

echo "$checks checks, $failed failed"
[ $failed = 0 ]
