#!/bin/sh
# MCP as others speak it: the official SDK clients, both majors and all eras,
# over stdio (build/hfsb mcp) and over HTTP (build/hfsb-server), and the
# official conformance suite, with the tools of build/hfsb-server and with those
# that tests/programs/mcp_fixtures.c adds. Needs node, npm, and either the network or a
# build/mcp-npm that an earlier run has filled; and the checker and the lists of
# what a server that offers tools only may fail, in $HFSB_TEST_DATA/tools.
#   HFSB_SERVER=FILE, HFSB=FILE   other binaries
#   MCP_NPM=DIR                   where the packages are kept (build/mcp-npm)
# What each part said is in build/mcp/.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

server=${HFSB_SERVER:-build/hfsb-server}
cli=${HFSB:-build/hfsb}
npm=${MCP_NPM:-build/mcp-npm}
data=${HFSB_TEST_DATA:-}/tools
for f in "$server" "$cli"; do
    [ -x "$f" ] || { echo "$f is missing: run make"; exit 1; }
done
have node && have npm || { echo "skipped: no node or npm"; exit 77; }
[ -f "$data/mcp_check.mjs" ] ||
    { echo "skipped: HFSB_TEST_DATA has no tools/mcp_check.mjs"; exit 77; }
unset SANDBOX_API_TOKEN http_proxy https_proxy HTTP_PROXY HTTPS_PROXY \
    all_proxy ALL_PROXY NODE_OPTIONS

# ---- packages: once, unless the list changes

packages="@modelcontextprotocol/sdk@1.32.2 @modelcontextprotocol/client@2.4.0
    @modelcontextprotocol/conformance@0.2.0-alpha.12 ajv@8 ajv-formats@3"
node=node
# the suite needs 22; the package node@22 would fetch this one by a script
if [ "$(node -p 'parseInt(process.versions.node)')" -lt 22 ]; then
    package=node-$(node -p 'process.platform + "-" + process.arch')
    packages="$packages $package@22"
    node=$npm/node_modules/$package/bin/node
fi
packages=$(echo "$packages" | tr -s ' \n' ' ')
mkdir -p "$npm"
if [ "$(cat "$npm/installed" 2>/dev/null)" != "$packages" ]; then
    [ -f "$npm/package.json" ] ||
        echo '{"private":true}' > "$npm/package.json"
    # shellcheck disable=SC2086
    limited 240 npm install --prefix "$npm" --ignore-scripts --no-audit \
        --no-fund --no-save --loglevel=error $packages \
        > "$npm/install.log" 2>&1 || {
        tail -n 5 "$npm/install.log"
        echo "skipped: npm could not install the clients"
        exit 77
    }
    echo "$packages" > "$npm/installed"
fi
suite=$npm/node_modules/@modelcontextprotocol/conformance/dist/index.js

# ---- servers

top=$(mktemp -d) || exit 1
out=$PWD/build/mcp
rm -rf "$out"
mkdir -p "$out" "$top/http" "$top/open"
pids=
end() {
    for p in $pids; do kill "$p" 2>/dev/null; done
    for p in $pids; do wait "$p" 2>/dev/null; done
    pids=
    rm -rf "$top"
}
trap end EXIT
trap 'exit 130' INT TERM
own_settings "$top" # checkpoints are kept there, too

link_program tests/programs/mcp_fixtures.c "$top/fixtures" &
compiler=$!

token=a-token-of-the-tests
SANDBOX_API_TOKEN=$token "$server" --port 0 --root "$top/http" \
    > "$out/server.log" 2>&1 &
pids=$!
"$server" --port 0 --no-auth --root "$top/open" > "$out/open.log" 2>&1 &
pids="$pids $!"

port() { # FILE: the port that a server says, once it does
    for _ in $(seq 240); do
        said=$(sed -n 's,.*http://127.0.0.1:\([0-9]*\).*,\1,p
            /^[0-9]*$/p' "$1" | head -n 1)
        [ -z "$said" ] || break
        sleep 0.25
    done
    echo "$said"
}

with_token=$(port "$out/server.log")
open=$(port "$out/open.log")
[ -n "$with_token" ] && [ -n "$open" ] ||
    { echo "FAIL  no server"; cat "$out/server.log" "$out/open.log"; exit 1; }

# ---- the SDK clients

mark=20.0$$ # a sleep of so many seconds is ours

plan() { # NAME DIR: what the client does
    cat << PLAN
{"calls":[
{"tool":"bash","args":{"command":"echo hi"},"expect":{"text":"^hi"}},
{"tool":"write","args":{"path":"$1.txt","content":"one\ntwo\n"}},
{"tool":"edit","args":{"path":"$1.txt","old_str":"two","new_str":"2"}},
{"tool":"read","args":{"path":"$1.txt"},"expect":{"text":"1\tone\n2\t2"}},
{"tool":"grep","args":{"pattern":"o.e","path":"$1.txt"},
 "expect":{"text":"one"}},
{"tool":"bash","args":{"command":"exit 3"},
 "expect":{"isError":true,"text":"3"}},
{"tool":"read","args":{"path":"none"},"expect":{"isError":true}},
{"tool":"edit","args":{"path":"../out","old_str":"a","new_str":"b"},
 "expect":{"isError":true}}],
"concurrent":10,
"progress":{"tool":"bash","args":{"command":"sleep 2.4"}},
"cancel":{"tool":"bash","args":{"command":"sleep $mark; sleep $mark"},
 "afterMs":400,"settleMs":400}}
PLAN
}

setting() { # TRANSPORT-SDK-ERA: leaves its line in build/mcp/NAME.result
    way=${1%%-*} era=${1##*-} sdk=${1#*-}
    sdk=${sdk%-*}
    plan "$1" > "$out/$1.plan"
    set -- "$1" --sdk "$sdk" --era "$era" --wire --plan "$out/$1.plan"
    name=$1
    shift
    if [ "$way" = http ]; then
        set -- "$@" --url "http://127.0.0.1:$with_token/mcp" --token $token
    else
        mkdir "$top/$name"
        set -- "$@" -- "$cli" mcp --root "$top/$name"
    fi
    MCP_MODULES=$npm limited 120 "$node" "$data/mcp_check.mjs" "$@" \
        > "$out/$name.json" 2> "$out/$name.log"
    echo "$name $? $(tail -n 1 "$out/$name.log")" > "$out/$name.result"
}

# ---- the suite

# The lists of what may fail are part of what is checked: something on them
# that passes is a failure, too.
revision() {
    limited 120 "$node" "$suite" server --url "http://127.0.0.1:$open/mcp" \
        --requirements "$1" -o "$out/suite-$1" \
        --expected-failures "$data/conformance-baseline-$1.yml" \
        > "$out/suite-$1.log" 2>&1
    echo "suite-$1 $? $(grep '^Total' "$out/suite-$1.log")" \
        > "$out/suite-$1.result"
}

# Of what the suite asks those scenarios that are about tools must pass with
# the fixtures, and what needs none passes here as well.
fixtures() {
    limited 120 "$node" "$suite" server --requirements "$1" \
        --url "http://127.0.0.1:$with_fixtures/mcp" \
        > "$out/fixtures-$1.log" 2>&1
    # shellcheck disable=SC2086 # a list
    set -- "$1" tools-list tools-call-simple-text tools-call-image \
        tools-call-audio tools-call-embedded-resource \
        tools-call-mixed-content tools-call-error tools-call-with-progress \
        json-schema-2020-12 server-sse-multiple-streams \
        dns-rebinding-protection $2
    name=fixtures-$1 rc=0
    shift
    for scenario; do
        grep -q "✓ $scenario: [1-9][0-9]* passed, 0 failed" "$out/$name.log" || {
            rc=1
            echo "FAIL  $scenario" >> "$out/$name.log"
        }
    done
    echo "$name $rc $# scenarios" > "$out/$name.result"
}

one() {
    case $1 in
    suite-*) revision "${1#suite-}" ;;
    fixtures-2025-11-25) fixtures 2025-11-25 \
        "server-initialize ping logging-set-level tools-call-with-logging" ;;
    fixtures-*) fixtures "${1#fixtures-}" http-header-validation ;;
    *) setting "$1" ;;
    esac
}

wait $compiler || { echo "FAIL  tests/programs/mcp_fixtures.c"; exit 1; }
"$top/fixtures" > "$out/fixtures.log" 2>&1 &
pids="$pids $!"
with_fixtures=$(port "$out/fixtures.log")

# those that wait most of the time beside those that compute
[ -n "$JOBS_GIVEN" ] || JOBS=5
export JOBS
parallel one stdio-v1-legacy http-v1-legacy suite-2026-07-28 stdio-v2-legacy \
    http-v2-legacy fixtures-2025-11-25 stdio-v2-auto http-v2-auto \
    suite-2025-11-25 stdio-v2-modern http-v2-modern fixtures-2026-07-28

# ---- what came of it

failed=0 warned=0 passed=0
for f in "$out"/*.result; do
    read -r name rc rest < "$f"
    printf '%-20s %s  %s\n' "$name" "$rc" "$rest"
    case $rc in
    0) passed=$((passed + 1)) ;;
    *)
        failed=$((failed + 1))
        case $name in
        suite-*) tail -n 20 "$out/$name.log" ;;
        *) grep -a '^fail\|^FAIL' "$out/$name.log" | head -n 20 ;;
        esac ;;
    esac
    n=$(grep -ac '^warn ' "$out/$name.log")
    warned=$((warned + n))
    [ "$n" = 0 ] || grep -a '^warn ' "$out/$name.log"
done
end
# shellcheck disable=SC2009 # pgrep is not everywhere
if ps -eo args | grep -q "^sleep $mark"; then
    echo "FAIL  commands were left running"
    failed=$((failed + 1))
fi
echo "$passed of 12 parts passed, $failed failed, $warned warnings"
[ $failed = 0 ]
