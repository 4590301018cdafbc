#!/bin/sh
# The command line with sandboxes and jobs: build/hfsb against the fake Hub
# (tests/programs/fake_hub.c, built here) and against build/hfsb-server at a URL.
# A shell that was started with signals ignored cannot undo that itself.
if [ -z "${SIGNALS_SET:-}" ] && env --default-signal true 2>/dev/null; then
    SIGNALS_SET=1 exec env --default-signal sh "$0" "$@"
fi
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh
for f in hfsb hfsb-server; do
    [ -x build/$f ] || { echo "build/$f is missing: run make"; exit 1; }
done
# the interpreter itself, which starts faster than a wrapper
python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) ||
    { echo "skipped: no python3"; exit 77; }
# shellcheck disable=SC2086
if [ -n "$(find tests/*/fake_hub* ./*.h -newer build/fake_hub 2>/dev/null)" ] ||
    [ ! -x build/fake_hub ]; then
    ${CC:-cc} -I. -o build/fake_hub tests/programs/fake_hub.c -pthread || exit 1
fi
[ -x build/static/hfsb-server ] || make -s static || exit 1
static=$PWD/build/static/hfsb-server
hfsb=$PWD/build/hfsb server=$PWD/build/hfsb-server fake=$PWD/build/fake_hub
top=$(mktemp -d) || exit 1
pids='' checks=0 failed=0
end() {
    exec 9>&-
    for p in $pids; do
        kill "$p" 2>/dev/null
        wait "$p" 2>/dev/null
    done
    rm -rf "$top"
}
trap end EXIT
trap 'exit 130' INT TERM
cd "$top" || exit 1

# run NAME WANTED-STATUS COMMAND...: stdout in $out, stderr in $err; all of it
# is kept, to be searched for secrets
run() {
    name=$1 want=$2
    shift 2
    "$@" > .out 2> .err
    same "$name: exit status ($(tail -n 1 .err))" $? "$want"
    out=$(cat .out) err=$(cat .err)
    cat .out .err >> all_output
}

value() { # TEXT PYTHON: of the JSON text as x
    printf %s "$1" | "$python" -ISc "import json, sys
x = json.load(sys.stdin)
print($2)"
}

fake() { # METHOD PATH [BODY]: the fake Hub's own door
    "$python" -ISc 'import socket, sys
at, method, path, body = sys.argv[1:]
s = socket.create_connection(at.rsplit("/", 1)[1].split(":"))
s.sendall(("%s /_fake/%s HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: "
    "application/json\r\nContent-Length: %d\r\n\r\n%s" % (method, path,
    len(body), body)).encode())
print(s.makefile("rb").read().split(b"\r\n\r\n", 1)[1].decode())' \
        "$HF_ENDPOINT" "$1" "$2" "${3-}"
}

there() { # FILE: waits until it has something in it
    tries=0
    until [ -s "$1" ] || [ $tries -ge 100 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
}

# interrupt FILE STATUS COMMAND...: SIGINT once FILE has something in it
interrupt() {
    file=$1 want=$2
    shift 2
    rm -f "$file" hfsb_pid
    (
        there "$file"
        kill -INT "$(cat hfsb_pid)"
    ) &
    run "interrupt $*" "$want" sh -c 'echo $$ > hfsb_pid; exec "$@"' sh "$@"
    wait $!
}

# ---- where it all happens
mkdir work place
for v in HF_HOME HF_TOKEN_PATH HUGGING_FACE_HUB_TOKEN HF_HUB_OFFLINE \
    TRANSFORMERS_OFFLINE HUGGINGFACE_CO_STAGING HF_HUB_DISABLE_IMPLICIT_TOKEN \
    SANDBOX_API_TOKEN HFSB_SANDBOX HF_TOKEN XDG_CACHE_HOME http_proxy \
    all_proxy ALL_PROXY; do
    unset $v
done
HOME=$top XDG_STATE_HOME=$top/state XDG_CONFIG_HOME=$top/config
export HOME XDG_STATE_HOME XDG_CONFIG_HOME
state=$top/state/hfsb/sandboxes.json config=$top/config/hfsb/config.json

mkfifo keep
"$fake" --mode embed --work-dir "$top/place" \
    --job-stages RUNNING,COMPLETED --run-jobs < keep > fake.out 2> fake.err &
pids="$pids $!"
exec 9> keep
SANDBOX_API_TOKEN=server-token "$server" --port 0 --work-dir "$top/work" \
    > server.out 2>&1 9>&- &
pids="$! $pids"
there fake.out
there server.out
read -r HF_ENDPOINT HFSB_SPACE_URL < fake.out
export HF_ENDPOINT HFSB_SPACE_URL
url=$(sed -n '1s|.* \(http://[^ ,]*\),.*|\1|p' server.out)
[ -n "$HF_ENDPOINT" ] && [ -n "$url" ] || {
    echo "FAIL  no servers:"
    cat fake.out fake.err server.out
    exit 1
}
mkdir -p "${config%/*}"
printf '{"work_dir":"%s"}' "$top/place" > "$config"

# ---- help
for command in create connect ls status pause restart delete sweep cp job \
    'job run' 'job ls' 'job logs' 'job inspect' 'job cancel'; do
    # shellcheck disable=SC2086
    run "help of $command" 0 "$hfsb" $command --help
    has "help of $command" "$out" "hfsb $command"
    has "help of $command" "$out" "    "
    same "help of $command is not too wide" "$(awk 'length > 78' .out)" ''
done
for command in connect delete pause restart 'job logs' 'job inspect' \
    'job cancel' 'job run' job cp 'cp a' status; do
    # shellcheck disable=SC2086
    run "$command: without words" 2 "$hfsb" $command
    has "$command: without words" "$err" "Try: hfsb ${command%% a} --help"
done
run 'ls: a word' 2 "$hfsb" ls x
run 'job: nonsense' 2 "$hfsb" job nonsense
run 'create: bad number' 2 "$hfsb" create --wait x

# ---- without a token, and offline
for command in create sweep 'job ls' 'job run echo' 'status alice/box' \
    'pause alice/box' 'delete --force alice/box'; do
    # shellcheck disable=SC2086
    run "$command: no token" 1 "$hfsb" $command
    has "$command: no token" "$err" 'https://huggingface.co/settings/tokens'
    has "$command: no token" "$err" 'set HF_TOKEN'
done
run 'no token, --json' 1 "$hfsb" create --json
has 'no token, --json' "$out" '{"success":false,"output":"","error":"There is no Hugging Face token.'
run 'ls: no token' 0 "$hfsb" ls
has 'ls: no token' "$err" 'only the recorded sandboxes are listed'
HF_TOKEN=hf_goodtoken
export HF_TOKEN
run offline 1 env HF_HUB_OFFLINE=1 "$hfsb" create
has offline "$err" 'HF_HUB_OFFLINE is set'
run 'wrong token' 1 env HF_TOKEN=hf_bad "$hfsb" create
has 'wrong token' "$err" 'HTTP 401'
hasnt 'wrong token' "$err" hf_bad

# ---- a server at a URL
run 'connect: no token' 1 "$hfsb" connect "$url"
has 'connect: no token' "$err" 'set SANDBOX_API_TOKEN'
run connect 0 env SANDBOX_API_TOKEN=server-token "$hfsb" connect "$url/api/"
same connect "$out" "$url"
run 'connect --json' 0 "$hfsb" connect --json "$url"
same 'connect --json' "$out" "{\"success\":true,\"output\":\"$url\",\"error\":\"\",\"id\":null,\"url\":\"$url\",\"page\":null,\"created\":false}"
same 'state: mode' "$(ls -l "$state" | cut -c1-10)" -rw-------
same 'state: directory' "$(ls -ld "${state%/*}" | cut -c1-10)" drwx------
same 'state: content' "$("$hfsb" json "$state")" "{\"sandboxes\":[{\"url\":\"$url\",\"token\":\"server-token\",\"created\":false}]}"
run 'connect: wrong token' 1 env SANDBOX_API_TOKEN=wrong-one "$hfsb" connect "$url"
has 'connect: wrong token' "$err" 'does not accept this token'
has 'connect: wrong token' "$err" 'taken from SANDBOX_API_TOKEN'
hasnt 'connect: wrong token' "$err" wrong-one
run 'connect: nobody' 1 "$hfsb" connect --wait 0.2 http://127.0.0.1:1
has 'connect: nobody' "$err" 'not responding'
run 'connect: no name' 1 "$hfsb" connect nobody
has 'connect: no name' "$err" '`hfsb ls` lists yours'
run 'connect: no URL' 1 "$hfsb" connect ftp://x
run 'status of a URL' 0 "$hfsb" status "$url"
same 'status of a URL' "$out" "$url  RUNNING"
run 'pause: a URL' 1 "$hfsb" pause "$url"
has 'pause: a URL' "$err" 'only a Space'

# ---- bash, read, write, edit, tool on it
run 'bash --on' 3 "$hfsb" bash --on "$url" 'pwd; echo err >&2; exit 3'
same 'bash --on' "$out" "$top/work"
same 'bash --on' "$err" err
run 'bash --on: signal' 137 "$hfsb" bash --on "$url" 'kill -KILL $$'
run 'bash --on: timeout' 124 "$hfsb" bash --timeout 0.3 --on "$url" 'echo a; sleep 9'
same 'bash --on: timeout' "$out" a
run 'bash --on: directory' 0 "$hfsb" bash --work-dir / --on "$url" pwd
same 'bash --on: directory' "$out" /
run 'bash --on: nowhere' 125 "$hfsb" bash --on nobody ls
# a token file that cannot be read fails only what reads it
run 'bash --on URL reads no Hub token' 0 env HF_TOKEN= HF_TOKEN_PATH=/ \
    "$hfsb" bash --on "$url" true
run 'bash --on SPACE reads the Hub token' 125 env HF_TOKEN= HF_TOKEN_PATH=/ \
    "$hfsb" bash --on some/space true
has 'bash --on SPACE reads the Hub token' "$err" "The file with the Hub's token"
run 'status of a URL reads no Hub token' 0 env HF_TOKEN= HF_TOKEN_PATH=/ \
    "$hfsb" status "$url"
run 'bash --on --json' 3 "$hfsb" bash --json --on "$url" 'echo x; exit 3'
has 'bash --on --json' "$out" '{"success":false,"output":"x\n","error":"Exit code 3",'
HFSB_SANDBOX=$url
export HFSB_SANDBOX
run 'write there' 0 sh -c "printf 'one\ntwo\n' | '$hfsb' write a/f"
same 'write there' "$out" 'Wrote 8 bytes to a/f'
same 'write there' "$(cat work/a/f)" "$(printf 'one\ntwo')"
run 'write there: bytes' 1 sh -c "printf '\377' | '$hfsb' write a/g"
has 'write there: bytes' "$err" 'hfsb cp'
run 'read there' 0 "$hfsb" read --limit 1 a/f
same 'read there' "$out" "$(printf '1\tone')"
has 'read there' "$err" 'there is more: --offset 2'
run 'read there: --root' 2 "$hfsb" read --root / a/f
run 'edit there' 0 "$hfsb" edit a/f --old one --new 1
has 'edit there' "$out" 'Edited a/f (1 replacement)'
has 'edit there' "$out" '+1'
run 'edit there: dry run' 0 "$hfsb" edit --dry-run a/f --old two --new 2
has 'edit there: dry run' "$out" 'Would edit a/f'
same 'edit there: dry run' "$(cat work/a/f)" "$(printf '1\ntwo')"
printf '{"edits":[{"old_str":"1","new_str":"I"},{"old_str":"two","new_str":"II"}]}' > edits
run 'edit there: several' 0 sh -c "'$hfsb' edit --json a/f < edits"
has 'edit there: several' "$out" '"count":2'
same 'edit there: several' "$(cat work/a/f)" "$(printf 'I\nII')"
run 'edit there: refused' 1 "$hfsb" edit --json a/f --old no --new x
has 'edit there: refused' "$out" '"count":0'
run 'tool there' 0 "$hfsb" tool exists --args '{"path":"a/f"}'
has 'tool there' "$out" '"output":"true"'
run 'tool there: background' 0 "$hfsb" tool bash --args '{"command":"echo b; sleep 0.2","background":true,"id":"bg"}'
run 'tool there: its output' 0 "$hfsb" tool bash_output --args '{"id":"bg","wait_ms":900}'
has 'tool there: its output' "$out" '"output":"b\n'
printf '*** Begin Patch\n*** Update File: a/f\n@@\n-II\n+2\n*** Add File: a/new\n+n\n*** End Patch\n' > .patch
run 'patch there: dry run' 0 "$hfsb" patch --dry-run .patch
has 'patch there: dry run' "$out" 'Updated a/f'
has 'patch there: dry run' "$out" '+2'
same 'patch there: dry run' "$(cat work/a/f)" "$(printf 'I\nII')"
run 'patch there' 0 "$hfsb" patch .patch
same 'patch there' "$(cat work/a/f work/a/new)" "$(printf 'I\n2\nn')"
test ! -e a/new
same 'patch there: nothing here' $? 0
run 'patch there: refused' 1 sh -c "'$hfsb' patch --json < .patch"
has 'patch there: refused' "$out" '"success":false'
printf '*** Begin Patch\n*** Update File: a/f\n@@\n-2\n+II\n*** Delete File: a/new\n*** End Patch\n' > .patch
run 'patch --on' 0 env HFSB_SANDBOX= "$hfsb" patch --on "$url" .patch
same 'patch --on' "$(cat work/a/f)" "$(printf 'I\nII')"
run 'mcp there: refused' 1 "$hfsb" mcp
has 'mcp there: refused' "$err" "HFSB_SANDBOX names $url"
run 'HFSB_SANDBOX is empty: here' 0 env HFSB_SANDBOX= "$hfsb" bash pwd
same 'HFSB_SANDBOX is empty: here' "$out" "$top"

# as it comes, and ended by Ctrl-C or by who reads it no longer
mkfifo work/go
"$hfsb" bash 'echo first; read x < go; echo second' > .stream &
there .stream
same 'bash: the first line comes at once' "$(cat .stream)" first
echo x > work/go
wait $!
same 'bash: all came' "$(cat .stream)" "$(printf 'first\nsecond')"
gone() { # WHAT PID
    tries=0
    while kill -0 "$2" 2>/dev/null && [ $tries -lt 50 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    kill -0 "$2" 2>/dev/null
    same "$1: the command is gone" $? 1
}
for json in '' --json; do
    # shellcheck disable=SC2086
    interrupt work/pid 130 "$hfsb" bash $json 'echo $$ > pid; sleep 71'
    gone "interrupt $json" "$(cat work/pid)"
done
("$hfsb" bash 'echo $$ > pid; while echo y; do sleep 0.1; done'
    echo $? > status) 2>.err | head -n 1 > .first
same 'bash: closed pipe' "$(cat .first status .err)" "$(printf 'y\n141')"
gone 'bash: closed pipe' "$(cat work/pid)"

# ---- cp
dd if=/dev/urandom of=big bs=1048576 count=64 2>/dev/null
chmod 0741 big
run 'cp up' 0 "$hfsb" cp big :sub/
same 'cp up' "$out" 'Copied 67108864 bytes to :sub/big'
same 'cp up: no bar' "$err" ''
cmp big work/sub/big
same 'cp up: the same bytes' $? 0
same 'cp up: mode' "$(ls -l work/sub/big | cut -c1-10)" -rwxr----x
run 'cp down' 0 "$hfsb" cp --json "$url:$top/work/sub/big" back
has 'cp down' "$out" '"to":"back","bytes":67108864'
same 'cp down: the same sha256' "$(sha256sum < back)" "$(sha256sum < big)"
same 'cp down: mode' "$(ls -l back | cut -c1-10)" -rwxr----x
if have script; then
    script -qec "'$hfsb' cp big :big2" /dev/null > .tty
    has 'cp on a terminal' "$(tr '\r' '\n' < .tty)" '#] 100%'
    script -qec "'$hfsb' cp --json big :big2" /dev/null > .tty
    hasnt 'cp --json on a terminal' "$(cat .tty)" '#]'
    printf 'red \033[31m\302\2331m\n' > work/escape
    script -qec "'$hfsb' read escape" /dev/null > .tty
    has 'read on a terminal' "$(cat .tty)" 'red  [31m  1m'
    run 'read into a file' 0 "$hfsb" read escape
    has 'read into a file' "$out" "$(printf '\033')[31m"
else
    echo "skipped: no script(1), so no terminal"
fi
rm -f big back work/big2
run 'cp: a directory' 1 "$hfsb" cp work :w
has 'cp: a directory' "$err" 'tar -czf'
run 'cp: no file' 1 "$hfsb" cp nofile :w
has 'cp: no file' "$err" 'File not found: nofile'
run 'cp: no file there' 1 "$hfsb" cp "$url:nofile" .
has 'cp: no file there' "$err" 'File not found: nofile'
run 'cp: two files here' 2 "$hfsb" cp ./a ./b
run 'cp: two there' 2 "$hfsb" cp :a :b
run 'cp into a directory' 0 "$hfsb" cp :a/f .
same 'cp into a directory' "$(cat f)" "$(printf 'I\nII')"
printf x > 'co:lon'
run 'cp: a colon' 0 "$hfsb" cp ./co:lon :colon
same 'cp: a colon' "$(cat work/colon)" x
unset HFSB_SANDBOX
run 'cp: whose?' 2 "$hfsb" cp f :f

# ---- several at once lose nothing
number=1
if [ "$(uname)" = Linux ]; then # all of 127.0.0.0/8 is loopback
    number=10 list=''
    SANDBOX_API_TOKEN=server-token "$server" --port 0 --host 127.0.0.2 \
        --host 127.0.0.3 --host 127.0.0.4 --host 127.0.0.5 --host 127.0.0.6 \
        --host 127.0.0.7 --host 127.0.0.8 --host 127.0.0.9 --host 127.0.0.10 \
        > server2.out 2>&1 9>&- &
    pids="$! $pids"
    there server2.out
    port=$(sed -n 's|.* http://127.0.0.2:\([0-9]*\).*|\1|p' server2.out |
        head -n 1)
    for i in 2 3 4 5 6 7 8 9 10; do
        SANDBOX_API_TOKEN=server-token "$hfsb" connect \
            "http://127.0.0.$i:$port/" > /dev/null 2>&1 &
        list="$list $!"
    done
    "$hfsb" connect "$url" > /dev/null 2>&1
    # shellcheck disable=SC2086
    wait $list
fi
same 'ten at once: all are recorded' "$(value "$("$hfsb" ls --recorded --json)" 'len(x["sandboxes"])')" $number
same 'completion: recorded sandboxes' "$("$hfsb" completion words -- bash --on | grep -cF "$url	")" 1
has 'completion: SANDBOX' "$("$hfsb" completion words -- status)" "$url"
run 'delete: a URL' 0 "$hfsb" delete "$url"
same 'delete: a URL' "$out" "Forgot $url"
run 'delete: unknown URL' 1 "$hfsb" delete "$url"
same 'delete: one less' "$(value "$(cat "$state")" 'len(x["sandboxes"])')" $((number - 1))

# ---- create
MY_SECRET=value-of-my-secret
export MY_SECRET
printf 'value-in-a-file\n' > secret
fake DELETE requests > /dev/null
run create 0 "$hfsb" create --poll 0.05 --secret MY_SECRET \
    --secret-file FILED=secret --sleep-time 3600
id=$out
has create "$id" alice/sandbox-
has create "$err" "Creating sandbox: $id (from burtenshaw/sandbox)..."
has create "$err" "export HFSB_SANDBOX=$id"
space=$(fake GET "space/$id")
same 'create: secrets' "$(value "$space" 'sorted(x["secrets"].keys())')" "['FILED', 'MY_SECRET', 'SANDBOX_API_TOKEN']"
same 'create: a secret of the environment' "$(value "$space" 'x["secrets"]["MY_SECRET"]')" value-of-my-secret
same 'create: a secret of a file' "$(value "$space" 'x["secrets"]["FILED"]')" value-in-a-file
same 'create: hidden' "$(value "$space" 'x["hidden"], x["hardware"], x["sleep"]')" 'True cpu-basic 3600'
same 'create: files' "$(value "$space" '"Dockerfile" in x["files"], "hfsb_server.h" in x["files"]')" 'True True'
token=$(value "$space" 'x["secrets"]["SANDBOX_API_TOKEN"]')
same 'create: is recorded' "$(value "$(cat "$state")" "[(s['token'] == '$token', s['created']) for s in x['sandboxes'] if s.get('id') == '$id']")" '[(True, True)]'
run ls 0 "$hfsb" ls
has ls "$out" "$id"
has ls "$out" 'RUNNING     cpu-basic     created'
run 'ls --json' 0 "$hfsb" ls --json
same 'ls --json' "$(value "$out" "[(s['stage'], s['hardware'], s['recorded'], s['created']) for s in x['sandboxes'] if s['id'] == '$id']")" "[('RUNNING', 'cpu-basic', True, True)]"
run status 0 "$hfsb" status --json "$id"
same status "$(value "$out" 'x["id"], x["stage"], x["hardware"]')" "$id RUNNING cpu-basic"
run 'bash on a Space' 5 "$hfsb" bash --on "$id" 'pwd; exit 5'
same 'bash on a Space' "$out" "$top/place"
run 'by its short name' 0 "$hfsb" bash --on "${id#*/}" 'echo short'
same 'by its short name' "$out" short
run 'connect again' 0 "$hfsb" connect "$id"
same 'connect again: still ours' "$(value "$(cat "$state")" "[s['created'] for s in x['sandboxes'] if s.get('id') == '$id']")" '[True]'
run 'cp to a Space' 0 "$hfsb" cp f "$id:$top/place/g"
same 'cp to a Space' "$(cat place/g)" "$(printf 'I\nII')"
run 'SANDBOX_API_TOKEN wins' 1 env SANDBOX_API_TOKEN=wrong "$hfsb" connect --wait 0.5 "$id"
run pause 0 "$hfsb" pause "$id"
same pause "$out" "$id  PAUSED"
before=$(date +%s)
run 'connect: paused' 1 "$hfsb" connect "$id"
has 'connect: paused' "$err" "The Space $id is PAUSED: restart it (hfsb restart $id)"
run 'bash: paused' 125 "$hfsb" bash --on "$id" pwd
has 'bash: paused' "$err" 'is PAUSED'
run 'connect: no such Space' 1 "$hfsb" connect alice/misspelt
has 'connect: no such Space' "$err" 'The Hub shows no Space alice/misspelt: check the name'
same 'connect: at once' $(($(date +%s) - before < 30)) 1
run restart 0 "$hfsb" restart --poll 0.05 --json "$id"
same restart "$(value "$out" 'x["id"], x["stage"]')" "$id RUNNING"
# one that is not known is waited for, though its name is part of another's
fake POST stages '{"stages":"BUILD,BUILD,RUNNING"}' > /dev/null
run 'restart, unknown stage' 0 "$hfsb" restart --poll 0.05 --json "$id"
same 'restart, unknown stage' "$(value "$out" 'x["stage"]')" RUNNING
fake POST stages '{"stages":"BUILD_ERROR"}' > /dev/null
run 'restart that fails' 1 "$hfsb" restart --poll 0.05 --json "$id"
has 'restart that fails' "$out" "is BUILD_ERROR"
fake POST stages '{"stages":"RUNNING"}' > /dev/null
run 'restart --no-wait' 0 "$hfsb" restart --no-wait "$id"
run 'create --json' 0 "$hfsb" create --json --poll 0.05 --name box --owner acme
second=$(value "$out" 'x["id"]')
has 'create --json' "$second" acme/box-
same 'create --json: one line' "$(wc -l < .out | tr -d ' ')" 1
hasnt 'create --json' "$out" "$(value "$(fake GET "space/$second")" 'x["secrets"]["SANDBOX_API_TOKEN"]')"

for command in status pause restart; do
    run "$command: unknown" 1 "$hfsb" $command alice/nobody
    has "$command: unknown" "$err" '`hfsb ls` lists your sandboxes'
done

# ---- delete
run delete 0 "$hfsb" delete "$id"
same delete "$out" "Deleted $id"
hasnt 'delete: the record is gone' "$(cat "$state")" "$id"
hasnt 'delete: the Space is gone' "$(fake GET spaces)" "$id"
run 'delete: not ours' 1 "$hfsb" delete "$id"
has 'delete: not ours' "$err" "This Sandbox did not create $id."
run 'delete --forget' 0 "$hfsb" delete --json --forget "$second"
same 'delete --forget' "$(value "$out" 'x["deleted"]')" False
has 'delete --forget: it is still there' "$(fake GET spaces)" "$second"
run 'delete --force' 0 "$hfsb" delete --force "$second"
hasnt 'delete --force' "$(fake GET spaces)" "$second"

run 'create: to be lost' 0 "$hfsb" create --poll 0.05 --owner acme
lost=$out
fake POST fault '{"method":"DELETE","path":"/api/repos/delete","status":404,"code":"RepoNotFound"}' > /dev/null
run 'delete: 404 at what is not our own' 1 "$hfsb" delete "$lost"
has 'delete: 404 at what is not our own' "$err" '--forget removes it'
has 'delete: its record stays' "$(cat "$state")" "$lost"
run 'delete: again' 0 "$hfsb" delete "$lost"
fake POST fault '{"method":"GET","path":"/api/spaces/alice/esc/runtime","status":403,"message":"no \\u001b[31mway"}' > /dev/null
run 'status: refused' 1 "$hfsb" status alice/esc
same 'status: no escape sequences' "$(grep -c "$(printf '\033')" .err)" 0

# ---- create that fails, or is ended
run 'create: no variable' 1 "$hfsb" create --secret NO_SUCH_VARIABLE
has 'create: no variable' "$err" '--secret-file NO_SUCH_VARIABLE=FILE'
run 'create: a value' 1 "$hfsb" create --secret NAME=shown-by-mistake
hasnt 'create: a value' "$err" shown-by-mistake
run 'create: no file' 1 "$hfsb" create --secret-file A=nofile
run 'create: twice' 1 "$hfsb" create --secret MY_SECRET --secret MY_SECRET
interrupt .err 130 "$hfsb" create --poll 2
has 'interrupt create' "$err" 'Sandbox creation cancelled: alice/sandbox-'
same 'interrupt create: no Space is left' "$(fake GET spaces)" '[]'
fake POST fault '{"method":"POST","path":"*/commit/main","status":403}' > /dev/null
run 'create: refused' 1 "$hfsb" create --json
has 'create: refused' "$out" 'HTTP 403'
same 'create: refused, no Space is left' "$(fake GET spaces)" '[]'
if [ "$(id -u)" != 0 ]; then
    chmod 0500 "${state%/*}"
    run 'create: cannot record' 1 "$hfsb" create --poll 0.05
    same 'create: cannot record, no Space' "$(fake GET spaces)" '[]'
    chmod 0700 "${state%/*}"
fi
cp "$state" kept
echo nonsense > "$state"
run 'state: broken' 1 "$hfsb" create
has 'state: broken' "$err" "$state is not what hfsb writes"
mv kept "$state"

# ---- the command line of a process shows no secret
fake POST fault '{"method":"POST","path":"*/duplicate","delay_ms":700}' > /dev/null
"$hfsb" create --poll 0.05 --secret MY_SECRET > created 2> /dev/null &
pid=$!
sleep 0.3
words=$(tr '\0' ' ' < "/proc/$pid/cmdline" 2>/dev/null || ps -o args= -p $pid)
has 'ps' "$words" 'hfsb create'
hasnt 'ps' "$words" value-of-my-secret
wait $pid

# ---- sweep
fake POST space '{"id":"alice/sandbox-00000001","days":30}' > /dev/null
fake POST space '{"id":"alice/sandbox-00000002","days":8}' > /dev/null
fake POST space '{"id":"alice/sandbox-of-mine","days":30}' > /dev/null
run sweep 0 "$hfsb" sweep
has sweep "$out" 'alice/sandbox-00000001  30.0 days  would be deleted'
has sweep "$out" '2 found; --delete deletes them'
run 'sweep --days 0' 2 "$hfsb" sweep --days 0
has 'sweep --days 0' "$err" '--days needs a number of days above 0, such as 0.5, not 0'
run 'create --name' 0 "$hfsb" create --poll 0.05 --name mine
named=$out
run 'forget --name' 0 "$hfsb" delete --forget "$named"
run 'ls: a name of its own' 0 "$hfsb" ls
has 'ls: a name of its own' "$out" "$named"
run 'sweep: a name of its own' 0 "$hfsb" sweep --days 0.0000001 --json
has 'sweep: a name of its own' "$out" "$named"
run 'delete: a name of its own' 0 "$hfsb" delete --force "$named"
hasnt sweep "$out" of-mine
has 'sweep: dry run' "$(fake GET spaces)" 00000001
run 'ls: not recorded' 0 "$hfsb" ls
has 'ls: not recorded' "$out" 'not recorded here'
run 'sweep --delete' 0 "$hfsb" sweep --delete --days 20 --json
same 'sweep --delete' "$(value "$out" '[(s["id"], s["deleted"]) for s in x["spaces"]]')" "[('alice/sandbox-00000001', True)]"
hasnt 'sweep --delete' "$(fake GET spaces)" 00000001
has 'sweep --delete: the younger one stays' "$(fake GET spaces)" 00000002
fake POST fault '{"method":"DELETE","path":"/api/repos/delete","status":403}' > /dev/null
run 'sweep: refused' 1 "$hfsb" sweep --delete
has 'sweep: refused' "$out" 'not deleted: '
run 'sweep: its own is deleted' 0 "$hfsb" delete "$(cat created)"

# ---- jobs
printf 'print("x")\r\n\tend' > script.py
fake DELETE requests > /dev/null
run 'job run' 0 "$hfsb" job run ./script.py --epochs 3
same 'job run: its log' "$out" "$(printf 'hi\ndone')"
has 'job run' "$err" "$HF_ENDPOINT/jobs/alice/"
hasnt 'job run: a job that runs is no trouble' "$err" 'Could not read'
last_job() { # PYTHON: of the request that started the last job, as b
    fake GET requests | "$python" -ISc "import base64, json, sys
b = [json.loads(r['body']) for r in json.load(sys.stdin)
     if r['method'] == 'POST' and r['target'] == '/api/jobs/alice'][-1]
print($1)"
}
same 'job run: the script as it is' "$(last_job 'base64.b64decode(b["command"][2].split(chr(34))[1])')" "b'print(\"x\")\\r\\n\\tend'"
has 'job run: its arguments' "$(last_job 'b["command"][2]')" '--epochs'
run 'job run: inline' 0 "$hfsb" job run --detach --with trl 'print(1)'
job=$out
has 'job run: inline' "$(last_job 'b["command"][2]')" "$(printf 'print(1)' | base64)"
has 'job run: inline' "$(last_job 'b["command"][2]')" trl
run 'job run: URL' 0 "$hfsb" job run --json --hardware t4-small --timeout 2h \
    --env AB=1 --secret MY_SECRET https://example.com/x.py
same 'job run: URL' "$(value "$out" 'x["success"], x["stage"], x["job"]["secrets"]')" "True RUNNING ['MY_SECRET']"
same 'job run: URL' "$(last_job 'b["command"], b["flavor"], b["timeoutSeconds"], b["environment"], b["secrets"]')" "['uv', 'run', 'https://example.com/x.py'] t4-small 7200 {'AB': '1'} {'MY_SECRET': 'value-of-my-secret'}"
run 'job run: command' 0 "$hfsb" job run --detach --image alpine echo a b
same 'job run: command' "$(last_job 'b["command"], b["dockerImage"]')" "['echo', 'a', 'b'] alpine"
run 'job run: no file' 1 "$hfsb" job run ./nofile.py
has 'job run: no file' "$err" 'File not found: ./nofile.py'
head -c 100000 /dev/zero | tr '\0' '#' > long.py
run 'job run: too long' 1 "$hfsb" job run ./long.py
run 'job run: bad variable' 1 "$hfsb" job run --env AB echo
run 'job logs' 0 "$hfsb" job logs --follow "$job"
same 'job logs' "$out" "$(printf 'hi\ndone')"
run 'job logs --json' 0 "$hfsb" job logs --follow --json "alice/$job"
same 'job logs --json: lines' "$(head -n 1 .out | cut -c1-13)" '{"text":"hi",'
same 'job logs --json: end' "$(tail -n 1 .out)" '{"success":true,"output":"","error":"","stage":"COMPLETED"}'
run 'job ls' 0 "$hfsb" job ls
has 'job ls' "$out" "$job  COMPLETED"
run 'job ls --json' 0 "$hfsb" job ls --json
same 'job ls --json' "$(value "$out" 'len(x["jobs"])')" 4
run 'job inspect' 0 "$hfsb" job inspect "$job"
same 'job inspect' "$(value "$out" 'x["id"], x["status"]["stage"]')" "$job COMPLETED"
run 'job inspect --json' 0 "$hfsb" job inspect --json "$job"
same 'job inspect --json' "$(value "$out" 'x["id"], x["job"]["id"]')" "$job $job"
run 'job inspect: none' 1 "$hfsb" job inspect 0123456789abcdef01234567
fake POST fault '{"method":"POST","path":"*/cancel","status":409,"message":"Job is not running"}' > /dev/null
run 'job cancel: ended' 1 "$hfsb" job cancel "$job"
has 'job cancel: ended' "$err" "Job $job has ended already (COMPLETED): nothing to cancel"
hasnt 'job cancel: ended' "$err" 'another name'
run 'job cancel' 0 "$hfsb" job cancel "$job"
same 'job cancel' "$out" "$job  CANCELED"

fake DELETE requests > /dev/null
run 'job run: lists' 0 "$hfsb" job run --detach --name night --label a=b \
    --label c.d=e-f --volume dataset:acme/data@v1:/data:ro \
    --volume bucket:acme/out:/out --expose 8080 /bin/echo hi
labelled=$out
same 'job run: labels' "$(last_job 'b["labels"]')" "{'a': 'b', 'c.d': 'e-f', 'name': 'night'}"
same 'job run: volumes' "$(last_job 'b["volumes"]')" "[{'type': 'dataset', 'source': 'acme/data', 'mountPath': '/data', 'revision': 'v1', 'readOnly': True}, {'type': 'bucket', 'source': 'acme/out', 'mountPath': '/out'}]"
same 'job run: expose' "$(last_job 'b["expose"]')" "{'ports': [8080], 'portsPublic': []}"
run 'job run: bad volume' 1 "$hfsb" job run --volume acme/data:/data echo
has 'job run: bad volume' "$err" 'TYPE:OWNER/NAME'
run 'job run: bad port' 1 "$hfsb" job run --expose 0 echo
run 'job run: bad label' 1 "$hfsb" job run --label 'a=b c' echo
run 'job ls --label' 0 "$hfsb" job ls --label a=b --label c.d=e-f --json
same 'job ls --label' "$(value "$out" '[j["id"] for j in x["jobs"]]')" "['$labelled']"
run 'job ls --label: none' 0 "$hfsb" job ls --label a=c --json
same 'job ls --label: none' "$(value "$out" 'x["jobs"]')" '[]'
run 'job run --wait' 0 "$hfsb" job run --wait --json echo a
same 'job run --wait' "$(value "$out" 'x["stage"]')" COMPLETED
run 'job ls --stage' 0 "$hfsb" job ls --stage CANCELED --json
same 'job ls --stage' "$(value "$out" '[j["id"] for j in x["jobs"]]')" "['$job']"

# ---- sandboxes that are jobs: the boot script and the server are real
image() { # NAME STATUS OPTION...: creates one
    what=$1 want=$2
    shift 2
    run "$what" "$want" "$hfsb" create --image python:3.12 --poll 0.1 "$@"
}
fake DELETE requests > /dev/null
image 'create --image' 0 --flavor t4-small --idle-timeout 10m \
    --secret MY_SECRET --server "$static"
box=$out
has 'create --image' "$box" jobs/alice/
has 'create --image' "$err" "export HFSB_SANDBOX=$box"
same 'create --image: the job' "$(last_job 'b["flavor"], b["dockerImage"], b["environment"]["SBX_IDLE_TIMEOUT"], b["labels"]["hfsb-sandbox"]')" 't4-small python:3.12 600 1'
same 'create --image: the server' "$(value "$(fake GET models)" '[(m["id"], m["private"], len(m["files"])) for m in x]')" "[('alice/hfsb-server', True, 1)]"
run 'bash on a job' 5 "$hfsb" bash --on "$box" 'pwd; echo $MY_SECRET | wc -c
    env | grep -c -e HFSB_SERVER -e HFSB_WORK -e SANDBOX_API_TOKEN -e SBX_PORT
    exit 5'
same 'bash on a job' "$out" "$(printf '%s\n19\n0' "$top/place")"
run 'bash on a job, by its last part' 0 "$hfsb" bash --on "${box##*/}" 'echo short'
run 'ls: a job' 0 "$hfsb" ls
has 'ls: a job' "$out" "$box   RUNNING     t4-small      created"
run 'status of a job' 0 "$hfsb" status --json "$box"
same 'status of a job' "$(value "$out" 'x["id"], x["stage"], x["hardware"]')" "$box RUNNING t4-small"
run 'cp to a job' 0 "$hfsb" cp f "$box:h"
same 'cp to a job' "$(cat place/h)" "$(printf 'I\nII')"
run 'pause: a job' 1 "$hfsb" pause "$box"
has 'pause: a job' "$err" 'is a job, which cannot be paused'
box_token=$(value "$(cat "$state")" "[s['token'] for s in x['sandboxes'] if s.get('id') == '$box'][0]")
# another machine: nothing is recorded there
XDG_STATE_HOME=$top/elsewhere
run 'elsewhere: ls' 0 "$hfsb" ls
has 'elsewhere: ls' "$out" "$box   RUNNING     t4-small      not recorded here"
run 'elsewhere: bash' 0 "$hfsb" bash --on "$box" 'cat h'
same 'elsewhere: bash' "$out" "$(printf 'I\nII')"
run 'elsewhere: another token' 125 env SANDBOX_API_TOKEN=no "$hfsb" bash --on "$box" true
run 'elsewhere: connect' 0 "$hfsb" connect --json "$box"
same 'elsewhere: connect' "$(value "$out" 'x["id"], x["created"]')" "$box False"
run 'elsewhere: a job that is no sandbox' 1 "$hfsb" delete "jobs/alice/$job"
has 'elsewhere: a job that is no sandbox' "$err" 'no sandbox of hfsb'
run 'elsewhere: delete' 0 "$hfsb" delete "$box"
same 'elsewhere: delete' "$out" "Deleted $box"
XDG_STATE_HOME=$top/state
same 'delete: no job runs' "$(fake GET jobs)" '[]'
run 'bash on a job that has ended' 125 "$hfsb" bash --on "$box" true
has 'bash on a job that has ended' "$err" 'is CANCELED'
run 'ls: a job that has ended' 0 "$hfsb" ls
has 'ls: a job that has ended' "$out" "$box   CANCELED"
run 'delete: a job that has ended' 0 "$hfsb" delete "$box"
# the server is found next to hfsb, and committed only once
image 'create --image: again' 0
same 'create --image: one commit' "$(fake GET requests | grep -o '/api/models/alice/hfsb-server/commit' | wc -l | tr -d ' ')" 1
run 'sweep: a job' 0 "$hfsb" sweep --days 0.0000001 --delete --json
has 'sweep: a job' "$out" '"id":"jobs/alice/'
same 'sweep: no job runs' "$(fake GET jobs)" '[]'
if have curl; then
    image 'create --download' 0 --download
    same 'create --download' "$(last_job '"volumes" in b, "HFSB_DOWNLOAD_TOKEN" in b["secrets"]')" 'False True'
    run 'create --download: bash' 0 "$hfsb" bash --on "$out" 'env | grep -c hf_goodtoken; true'
    same 'create --download: the token is gone' "$out" 0
    run 'create --download: delete' 0 "$hfsb" sweep --days 0.0000001 --delete
fi
image 'create --image: not static' 1 --server "$server"
has 'create --image: not static' "$err" 'make static'
run 'create: --server alone' 2 "$hfsb" create --server "$static"
image 'create --image: an option of Spaces' 2 --public
image 'create --image: it ends at once' 1 --api nonsense
has 'create --image: it ends at once' "$err" 'is ERROR'
has 'create --image: its log' "$err" nonsense
same 'create --image: no job is left' "$(fake GET jobs)" '[]'
fake POST fault '{"path":"edge:/api/health","delay_ms":3000}' > /dev/null
interrupt .err 130 "$hfsb" create --image python:3.12
has 'interrupt create --image' "$err" 'Sandbox creation cancelled: jobs/alice/'
same 'interrupt create --image: no job is left' "$(fake GET jobs)" '[]'
fake DELETE fault > /dev/null

# ---- a session of the sandbox runtime, and what is configured
run 'tools --sandbox-tools' 0 env HF_TOKEN= "$hfsb" tools --sandbox-tools
has 'tools --sandbox-tools' "$out" '"name":"sandbox_create"'
run 'tools: local' 0 "$hfsb" tools
hasnt 'tools: local' "$out" sandbox_create
printf '{"work_dir":"%s","tool_runtime":"sandbox"}' "$top/place" > "$config"
run 'tools: configured' 0 "$hfsb" tools --format openai
has 'tools: configured' "$out" '"name":"sandbox_create"'
fake POST stages '{"stages":"RUNNING"}' > /dev/null
run 'tool --sandbox-tools' 0 "$hfsb" tool bash --args '{"command":"pwd"}'
has 'tool --sandbox-tools' "$out" "\"output\":\"$top/place\\n\""
has 'tool --sandbox-tools' "$err" 'HF sandbox'
same 'tool --sandbox-tools: no Space is left' "$(value "$(fake GET spaces)" '[i for i in x if "0000" not in i and "mine" not in i]')" '[]'
run 'tool: no token' 1 env HF_TOKEN= "$hfsb" tool bash --args '{"command":"pwd"}'
has 'tool: no token' "$out" 'https://huggingface.co/settings/tokens'
printf '{"tool_runtime":"cloud"}' > "$config"
run 'config: no such runtime' 1 "$hfsb" tool bash --args '{"command":"pwd"}'
has 'config: no such runtime' "$out" "$config: \\\"tool_runtime\\\": "
printf '{"sleep_time":"soon"}' > "$config"
run 'config: wrong type' 1 "$hfsb" create
has 'config: wrong type' "$err" "$config: "
has 'config: wrong type' "$err" sleep_time
printf '{"sleep_time":60,' > "$config"
run 'config: no JSON' 1 "$hfsb" create
has 'config: no JSON' "$err" "$config: line 1"
printf '{"colour":"red"}' > "$config"
run 'config: unknown key' 0 "$hfsb" ls --recorded
has 'config: unknown key' "$err" "$config: unknown key \"colour\""

# ---- nothing secret in all that was printed
for secret in value-of-my-secret value-in-a-file server-token "$token" \
    "$box_token" hf_goodtoken; do
    same "never printed: $secret" "$(grep -c -e "$secret" all_output)" 0
done

echo "$checks checks of sandboxes on the command line, $failed failed"
[ $failed = 0 ]
