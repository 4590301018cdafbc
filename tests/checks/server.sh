#!/bin/sh
# build/hfsb-server end to end, with curl: options, start, the endpoints,
# places to listen, how it ends, process 1, and that its token stays hidden.
# SERVER=FILE checks another binary, such as build/static/hfsb-server.
# A shell that was started with signals ignored cannot undo that itself.
if [ -z "${SIGNALS_SET:-}" ] && env --default-signal true 2>/dev/null; then
    SIGNALS_SET=1 exec env --default-signal sh "$0" "$@"
fi
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh
have curl || { echo "skipped: curl not found"; exit 77; }
server=${SERVER:-build/hfsb-server}
[ -x "$server" ] || { echo "$server is missing: run make"; exit 1; }
project=$PWD
case $server in /*) ;; *) server=$PWD/$server ;; esac
top=$(mktemp -d) || exit 1
"${CC:-cc}" -O1 -o "$top/scan" tests/programs/scan_memory.c || exit 1
unset SANDBOX_API_TOKEN PORT SPACE_HOST http_proxy https_proxy all_proxy
checks=0 failed=0 pid=
trap '[ -z "$pid" ] || kill -9 $pid 2>/dev/null; rm -rf "$top"' EXIT
cd "$top" || exit 1
mkdir work
# never whole in any text that a command or a log could show
half=canary-7f3a other=9e1c-token
token=$half$other

# run NAME WANTED-STATUS COMMAND...: stdout in $out, stderr in $err
run() {
    name=$1 want=$2
    shift 2
    limited 60 "$@" > .out 2> .err
    same "$name: exit status" $? "$want"
    out=$(cat .out) err=$(cat .err)
    cat .out .err >> all-output
}

now() { # milliseconds
    date +%s%3N
}

# start COMMAND...: in the background, until it says where it listens; sets
# pid, url and text
start() {
    : > .start
    "$@" > .start 2> .log &
    pid=$!
    tries=0
    until grep -q ' listens on ' .start || [ $tries -ge 400 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
    text=$(cat .start)
    url=$(sed -n '1s/.*\(http:[^ ,]*\).*/\1/p' .start)
}

# finish SIGNAL...: sends them, 0.3 s apart; sets ended (its exit status) and
# took (milliseconds)
finish() {
    begin=$(now)
    kill -"$1" "$pid"
    shift
    for s; do
        sleep 0.3
        kill -"$s" "$pid"
    done
    # one that does not end is a failure, not a hang
    (sleep 40; kill -9 "$pid") >/dev/null 2>&1 &
    guard=$!
    wait "$pid"
    ended=$?
    took=$(($(now) - begin))
    kill $guard 2>/dev/null
    pid=
    cat .start .log >> all-output
}

# call PATH [BODY [CURL-OPTION...]]: sets reply and status
call() {
    path=$1
    shift
    [ $# -eq 0 ] || {
        body=$1
        shift
        set -- -H 'Content-Type: application/json' --data-binary "$body" "$@"
    }
    curl -s -m 30 -w '\n%{http_code}' -K "${auth:-auth}" "$@" "$url$path" \
        > .reply
    status=$(tail -n 1 .reply)
    reply=$(sed '$d' .reply)
}

alive() { kill -0 "$1" 2>/dev/null && echo yes || echo no; }

until_file() { # waits for a file that is not empty
    tries=0
    until [ -s "$1" ] || [ $tries -ge 400 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
}

until_gone() { # waits for the end of the process that the file names
    tries=0
    until [ "$(alive "$(cat "$1")")" = no ] || [ $tries -ge 400 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
}

# the token for curl, not in its arguments
printf 'header = "X-Sandbox-Authorization: Bearer %s"\n' "$token" > auth
: > noauth

# ---- options
run help 0 "$server" --help
for option in --host --port --unix --listen-fd --work-dir --root --deny --token-file \
    --token-fd --no-auth --public --allow-host --timeout --max-timeout \
    --max-running --max-connections --max-per-peer --max-body --max-idle --threads \
    --log --quiet --journal --journal-size --journal-sync \
    --kill-on-disconnect --confine --allow-write --allow-read --net \
    --max-memory --max-processes --max-file-size --max-cpu --version; do
    has help "$out" " $option"
done
has help "$out" 'does not confine'
same 'help is not too wide' "$(printf '%s\n' "$out" | awk 'length > 78')" ''
run version 0 "$server" --version
has version "$out" 'hfsb-server '
run 'unknown option' 2 "$server" --nonsense
has 'unknown option' "$err" 'unknown option --nonsense.'
run 'did you mean' 2 "$server" --prot=80
has 'did you mean' "$err" 'unknown option --prot; did you mean --port?'
run 'confine' 2 "$server" --confine all
has 'confine' "$err" '--confine needs none, write or strict'
run 'net' 2 "$server" --net off
has 'net' "$err" 'need --confine write or strict'
run 'allow-read' 2 "$server" --allow-read / --confine write
has 'allow-read' "$err" 'is for --confine strict'
run 'allow-write' 1 "$server" --no-auth --confine write --allow-write nowhere
has 'allow-write' "$err" 'Cannot allow commands to write nowhere'
run 'a word' 2 "$server" nonsense
run 'checkpoints' 2 "$server" --root . --checkpoints yes
has 'checkpoints' "$err" 'on, off or a folder with a "/" in it'
run 'no value' 2 "$server" --port
has 'no value' "$err" '--port needs a number from 0 to 65535'
for bad in --port=x --port=70000 --port=-1 --timeout=0 --timeout=-1 \
    --timeout=x --max-body=1Q --max-body=0 --max-connections=0 --host= \
    --no-auth=yes --listen-fd=x --token-fd=x --threads=-1 \
    --max-body=99999999999999999999; do
    run "$bad" 2 "$server" "$bad"
    has "$bad" "$err" "${bad%%=*}"
done
run 'bad PORT' 2 env PORT=eighty "$server"
has 'bad PORT' "$err" PORT
run 'bad SBX_PORT' 1 env SBX_PORT=abc SBX_TOKEN=x "$server" --port 0 --api hf
has 'bad SBX_PORT' "$err" 'SBX_PORT must be a port'
run 'empty token' 2 env SANDBOX_API_TOKEN= "$server" --port 0
has 'empty token' "$err" 'is empty'
run 'token with a blank' 2 env SANDBOX_API_TOKEN="$half $other" "$server" \
    --port 0
hasnt 'token with a blank' "$err" "$half"
: > empty
run 'empty token file' 2 "$server" --port 0 --token-file empty
run 'no token file' 1 "$server" --port 0 --token-file nowhere
has 'no token file' "$err" nowhere
run 'open to all without a token' 2 "$server" --no-auth --host 0.0.0.0 --port 0
has 'open to all without a token' "$err" --public
run 'public alone' 2 "$server" --public --port 0
has 'public alone' "$err" --no-auth
run 'token and none' 2 "$server" --no-auth --token-file empty
run 'token and none' 2 env SANDBOX_API_TOKEN="$token" "$server" --no-auth
run 'two tokens' 2 "$server" --token-fd 0 --token-file empty
run 'size of no journal' 2 "$server" --no-auth --journal-size 1M
run 'no journal' 1 "$server" --port 0 --no-auth --journal nowhere/j
has 'no journal' "$err" nowhere/j
run 'no work directory' 1 "$server" --port 0 --no-auth --work-dir nowhere
has 'no work directory' "$err" nowhere
run 'work directory outside' 1 "$server" --port 0 --no-auth --root work \
    --work-dir "$top"
has 'work directory outside' "$err" "--work-dir: Path is outside the root"
run 'work directory outside: .' 1 "$server" --port 0 --no-auth --root work \
    --work-dir .
has 'work directory outside: .' "$err" "--work-dir: Path is outside the root"
run 'no work directory in a root' 1 "$server" --port 0 --no-auth --root work \
    --work-dir nowhere
has 'no work directory in a root' "$err" '--work-dir nowhere: No such file'
mkdir work/inner
for dir in work work/inner; do # begins at the current directory
    start "$server" --port 0 --no-auth --root work --work-dir "$dir"
    has "work directory: $dir" "$text" "work directory $(pwd -P)/$dir"
    has "work directory: $dir" "$(curl -s -H 'Content-Type: application/json' \
        -d '{"command":"pwd"}' "$url/api/bash")" \
        "\"output\":\"$(pwd -P)/$dir\\n\""
    finish TERM
done
rmdir work/inner

# ---- the greeting says how commands are confined, also without /mcp
start "$server" --port 0 --no-auth --no-mcp --confine write --work-dir work
case $text in
*' listens on '*)
    has 'greeting without mcp' "$text" 'commands are confined (write): '
    finish TERM ;;
*) has 'greeting without mcp' "$(cat .log)" 'no Landlock' ;;
esac

start "$server" --port 0 --no-auth --confine none
has 'greeting: not confined' "$text" \
    '; commands are not confined (--confine none)'
finish TERM
start "$server" --port 0 --no-auth --confine none --root work --checkpoints work/s
finish TERM
has 'greeting: checkpoints in the root' "$(cat .log)" \
    "commands can delete the checkpoints, which lie where they may write: $(pwd -P)/work/s/"
rm -rf work/s
start env container=test "$server" --port 0 --no-auth
has 'greeting: in a container' "$text" \
    '; commands are not confined (the default in a container)'
finish TERM

# ---- a start, and the endpoints
start env SANDBOX_API_TOKEN="$token" "$server" --port 0 --work-dir=work --log
has start "$text" 'listens on http://127.0.0.1:'
has start "$text" "work directory $top/work"
has start "$text" "$url/api/bash"
has start "$text" 'Bearer $SANDBOX_API_TOKEN'
call /api/health
has health "$status $reply" '200 {"status":"ok"'
same 'health without a token' "$(curl -s "$url/api/health")" '{"status":"ok"}'
json='Content-Type: application/json'
reply=$(curl -s -w ' %{http_code}' -H "$json" -d '{"path":"x"}' \
    "$url/api/exists")
has 'no token' "$reply" '"detail":"Missing bearer token"'
has 'no token' "$reply" ' 401'
reply=$(curl -s -w ' %{http_code}' -H 'X-Sandbox-Authorization: Bearer x' \
    -H "$json" -d '{"path":"x"}' "$url/api/exists")
has 'wrong token' "$reply" '"detail":"Invalid bearer token"'
has 'wrong token' "$reply" ' 401'
has 'a 401 names the header' "$reply" 'X-Sandbox-Authorization: Bearer'
# authorized NAME STATUS FIELD...: the status of a call with these fields
authorized() {
    name=$1 want=$2
    shift 2
    printf 'header = "%s"\n' "$@" > fields
    same "$name" "$(curl -s -o .out -w '%{http_code}' -K fields -H "$json" \
        -d '{"path":"x"}' "$url/api/exists")" "$want"
    rm fields
}
authorized 'Authorization' 200 "Authorization: Bearer $token"
authorized 'wrong Authorization' 401 'Authorization: Bearer x'
authorized 'own header decides' 200 'Authorization: Bearer of-the-hub' \
    "X-Sandbox-Authorization: Bearer $token"
authorized 'own header decides, wrong' 401 "Authorization: Bearer $token" \
    'X-Sandbox-Authorization: Bearer x'
call /api/bash '{"command":"pwd; echo err >&2; exit 3"}'
has bash "$status $reply" '200 {"success":false,'
has bash "$reply" "\"output\":\"$top/work\\nerr\\n\",\"error\":\"Exit code 3\""
call /api/write '{"path":"a/b","content":"one\ntwo\n"}'
has write "$reply" '"output":"Wrote 8 bytes to a/b"'
same write "$(cat work/a/b)" "$(printf 'one\ntwo')"
call /api/read '{"path":"a/b"}'
has read "$reply" '"output":"1\tone\n2\ttwo"'
call /api/edit '{"path":"a/b","old_str":"two","new_str":"2"}'
has edit "$reply" 'Edited a/b (1 replacement)'
same edit "$(cat work/a/b)" "$(printf 'one\n2')"
call /api/exists '{"path":"a/b"}'
has exists "$reply" '"output":"true"'
call /api/exists '{"path":"a/c"}'
has exists "$reply" '"output":"false"'
call /api/kill '{}'
has kill "$reply" '"output":"Killed 0 process(es): []"'
curl -s -m 20 -K auth -H "$json" -d '{"command":"echo $$ > pid; sleep 30"}' \
    "$url/api/bash" > killed &
curl_pid=$!
until_file work/pid
call /api/kill '{}'
has kill "$reply" '"output":"Killed 1 process(es): ['
wait $curl_pid
has 'a killed command' "$(cat killed)" '"error":"Exit code -15"'
call /api/nowhere '{}'
has '404' "$status $reply" '404 {"detail":"Not Found"'
has '404: the tools' "$reply" '"error":"Not Found. There is POST /api/bash, '
call /api/bash
has '405' "$status $reply" '405 {"detail":"Method Not Allowed"'
has '405: what to send' "$reply" '"error":"Method Not Allowed: send POST."'
call /api/bash '{"comand":"true"}'
has '422' "$status $reply" '422 '
call /api/bash 'nonsense'
has '400' "$status $reply" '400 '
call /api/health '' -X GET -H 'Host: evil.example'
same '421' "$status" 421
call /api/health '' -X GET -H 'Origin: http://evil.example'
same '403' "$status" 403

# ---- what commands get
call /api/bash '{"command":"env; ulimit -n"}'
hasnt 'the environment of a command' "$reply" SANDBOX_API_TOKEN
hasnt 'the environment of a command' "$reply" "$half"
call /api/bash '{"command":"ls /proc/self/fd | sort -n | tail -n 1"}'
has 'descriptors of a command' "$reply" '"output":"3\n"' # ls itself has one
call /api/bash "{\"command\":\"$top/scan \$PPID $half $other\"}"
if [ "$(id -u)" = 0 ]; then
    has 'the token in memory' "$reply" 'found 0 times in all of it'
    # the scan does find what is there
    call /api/bash "{\"command\":\"$top/scan \$PPID liste 'ns on '\"}"
    hasnt 'the scan works' "$reply" 'found 0 times'
else
    has 'the token in memory' "$reply" 'found 0 times'
fi

# ---- the log
call /api/exists '{"path":"x"}' --request-target \
    "$(printf '/evil\033[31m\302\233')"
call '/api/nowhere%0aat%1b[all' '{}'
finish TERM
same 'TERM when idle: exit status' $ended 0
same 'TERM when idle: at once' "$([ $took -lt 9000 ] && echo yes)" yes
has log "$(cat .log)" '"path":"/api/bash"'
has log "$(cat .log)" '"status":401'
same 'a log has only printable ASCII' "$(tr -d '\n' < .log | LC_ALL=C tr -d \
    '\040-\176' | od -An -c)" ''
same 'a log has only objects' "$(grep -cv '^{"time":".*}$' .log)" 0

# ---- other ways to a token
start "$server" --port 0
has 'no token anywhere' "$text" 'listens on'
hasnt 'no token anywhere' "$text" Bearer
has 'no token anywhere' "$(cat .log)" 'Set SANDBOX_API_TOKEN'
call /api/bash '{"command":"true"}'
has '503' "$status $reply" '503 {"detail":"Sandbox API token not configured"'
has '503: what to do' "$reply" 'SANDBOX_API_TOKEN=TOKEN in its environment'
call /api/health
same 'health without a token set' "$status" 200
finish QUIT TERM # the shell starts background commands with QUIT ignored
same 'QUIT, ignored, and TERM: exit status' $ended 0

# the parent may ignore SIGCHLD: the exit code of a command is reported all
# the same
if env --ignore-signal=CHLD true 2>/dev/null; then
    start env --ignore-signal=CHLD SANDBOX_API_TOKEN="$token" "$server" --port 0
    call /api/bash '{"command":"exit 3"}'
    has 'SIGCHLD ignored at the start' "$reply" '"exit_code":3'
    finish TERM
fi
if env --default-signal true 2>/dev/null; then
    start env --default-signal "$server" --port 0
    finish INT
    same 'INT: exit status' $ended 0
fi

printf '%s\r\n' "$token" > token-file
start env SANDBOX_API_TOKEN=$other$half "$server" --port=0 --token-file=token-file
call /api/exists '{"path":"token-file"}'
has 'token file' "$reply" '"output":"true"'
call /api/bash "{\"command\":\"$top/scan \$PPID $half $other\"}"
has 'token file in memory' "$reply" 'found 0 times'
call /api/bash "{\"command\":\"$top/scan \$PPID $other $half\"}"
has 'a token that was not used' "$reply" 'found 0 times'
finish HUP
same 'HUP: exit status' $ended 0

start sh -c 'exec "$0" --port 0 --token-fd 7 7<token-file' "$server"
call /api/bash "{\"command\":\"$top/scan \$PPID $half $other; ls -l /proc/\$PPID/fd\"}"
has 'token descriptor in memory' "$reply" 'found 0 times'
[ "$(id -u)" != 0 ] || has 'token descriptor is closed' "$reply" ' -> '
hasnt 'token descriptor is closed' "$reply" token-file
finish TERM

if have script; then # a terminal: a token is made up and shown
    start script -qec "$server --port 0" /dev/null
    tr -d '\r' < .start > .text
    url=$(sed -n 's/.*listens on \(http:[^ ,]*\).*/\1/p' .text)
    made=$(sed -n 's/.*Bearer \([0-9a-f]*\)".*/\1/p' .text)
    same 'a token is made up in a terminal' ${#made} 40
    has 'the page, with the token' "$(cat .text)" \
        "Watch it in a browser: $url/#$made"
    front=${made%????????}
    auth=noauth
    call /api/bash "{\"command\":\"$top/scan \$PPID $front ${made#"$front"}\"}" \
        -H "X-Sandbox-Authorization: Bearer $made"
    auth=
    has 'a made-up token in memory' "$reply" 'found 0 times'
    finish TERM
else
    echo 'skipped: script not found (a terminal)'
fi

# ---- other places to listen
start env SANDBOX_API_TOKEN="$token" "$server" --unix "$top/s.sock" --quiet
until [ -S s.sock ]; do sleep 0.05; done
url=http://localhost
same 'quiet' "$text" ''
call /api/exists '{"path":"s.sock"}' --unix-socket s.sock
has 'Unix socket' "$reply" '"output":"true"'
same 'Unix socket: mode' "$(ls -l s.sock | cut -c1-10)" srw-------
run 'Unix socket: in use' 1 "$server" --unix "$top/s.sock" --no-auth
finish TERM
same 'Unix socket is removed' "$([ -e s.sock ] && echo there)" ''
start "$server" --no-auth --unix "$top/a b.sock" --port 0
has 'two places' "$text" " and unix:'$top/a b.sock'"
call /api/exists '{"path":"auth"}'
has 'no-auth' "$reply" '"output":"true"'
hasnt 'no-auth' "$text" Bearer
page() { # what a browser gets at /
    curl -s -m 30 -o /dev/null -w '%{http_code} %{content_type}' \
        -H 'Accept: text/html' "$url/"
}
same 'the page' "$(page)" '200 text/html; charset=utf-8'
has 'the page' "$text" "Watch it in a browser: $url/"
finish TERM
start "$server" --no-auth --no-page --port 0
same '--no-page' "$(page)" '404 application/json'
hasnt '--no-page' "$text" 'Watch it'
finish TERM
if have python3; then
    start python3 -c '
import os, socket, sys
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen()
os.set_inheritable(s.fileno(), True)
os.execv(sys.argv[1], [sys.argv[1], "--no-auth", "--listen-fd",
                       str(s.fileno())])' "$server"
    call /api/exists '{"path":"auth"}'
    has 'inherited descriptor' "$reply" '"output":"true"'
    finish TERM
    same 'inherited descriptor: exit status' $ended 0
else
    echo 'skipped: python3 not found (an inherited descriptor)'
fi
run 'not a socket' 1 sh -c 'exec "$0" --no-auth --listen-fd 5 5</dev/null' \
    "$server"

# ---- who may ask, beyond loopback
# asked WANT HOST [ORIGIN]: the status of health for that Host
asked() {
    want=$1 host=$2
    shift 2
    same "Host: $host${1:+, Origin: $1}" "$(curl -s -o /dev/null \
        -w '%{http_code}' -H "Host: $host" ${1:+-H "Origin: $1"} \
        "$url/api/health")" "$want"
}
start env SANDBOX_API_TOKEN="$token" "$server" --host 0.0.0.0 --port 0
asked 200 evil.example # the token is the guard
asked 200 evil.example https://evil.example
asked 403 evil.example null
auth=noauth
call /api/jobs
same 'without the token, beyond loopback' "$status" 401
auth=
finish TERM
start env SANDBOX_API_TOKEN="$token" SPACE_HOST=me-box.hf.space "$server" \
    --host 0.0.0.0 --port 0 --allow-host my.name
asked 200 my.name:443
asked 200 ME-box.hf.space https://my.name
asked 200 localhost http://127.0.0.1:3000
asked 421 evil.example
asked 421 my.name.evil.example
asked 403 my.name https://evil.example
finish TERM
start "$server" --host 0.0.0.0 --port 0 --no-auth --public \
    --kill-on-disconnect --max-running 1 --max-waiting 1 --work-dir work
asked 421 evil.example
asked 200 localhost
asked 200 localhost:1 http://localhost:1
asked 403 localhost:1 http://localhost:3000 # the page of another server
for type in text/plain application/x-www-form-urlencoded multipart/form-data; do
    same "a form of another site: $type" "$(curl -s -o /dev/null \
        -w '%{http_code}' -H "Content-Type: $type" -d '{"command":"touch ran"}' \
        "$url/api/bash")" 415
done
call /api/bash '{"command":"touch ran"}' -H 'Origin: null'
same 'a request of another site' "$status" 403
same 'nothing was run' "$([ -e work/ran ] && echo ran)" ''
rm -f work/pid
curl -s -m 20 -H "$json" -d '{"command":"echo $$ > pid; sleep 30"}' \
    "$url/api/bash" > .during &
first=$!
until_file work/pid
curl -s -m 20 -H "$json" -d '{"command":"true"}' "$url/api/bash" > .waits &
second=$!
tries=0
until [ $tries -ge 400 ]; do # the second waits for a place
    call /api/metrics
    case $reply in *'hfsb_commands_waiting 1'*) break ;; esac
    sleep 0.05
    tries=$((tries + 1))
done
call /api/bash '{"command":"touch ran"}'
has 'too many commands' "$status $reply" '429 {"success":false'
kill -9 $first
wait $second
has 'a command ends with its client' "$(cat .waits)" '"success":true'
same 'a command ends with its client' "$(alive "$(cat work/pid)")" no
finish TERM

# ---- the journal: a SIGKILL, the next run, a disk that is full
start env SANDBOX_API_TOKEN="$token" "$server" --port 0 --work-dir work --log \
    --journal journal
call /api/bash '{"command":"export MY_TOKEN=not-for-logs; exit 7"}'
call /mcp '{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"write",
    "arguments":{"path":"j.txt","content":"x"}}}'
call '/api/events?since=1&limit=1'
has 'events' "$status $reply" '200 {"events":[{"seq":2,"call":1,'
has 'events' "$reply" '"next":2,"lost":0}'
kill -9 "$pid"
wait "$pid" 2>/dev/null
has 'the log names a call' "$(cat .log)" '"event":"call","who":"api","tool":"bash","command":"export MY_TOKEN=***; exit 7","success":false,"exit_code":7,'
has 'the log names a file' "$(cat .log)" '"who":"mcp","tool":"write","file":"j.txt",'
same 'a journal after SIGKILL' "$(grep -c '^{"seq":[1-3],.*}$' journal)" 3
same 'a journal is private' "$(ls -l journal | cut -c 1-10)" -rw-------
same 'a journal has no secrets' "$(grep -c not-for-logs journal .log)" "journal:0
.log:0"
printf '{"seq":4,"cut' >> journal
start sh -c 'ulimit -f 2; exec "$@"' - env \
    SANDBOX_API_TOKEN="$token" "$server" --port 0 --work-dir work \
    --journal journal
i=0
while [ $i -lt 12 ]; do
    call /api/exists '{"path":"none"}'
    has 'a call on a full disk' "$status $reply" '200 {"success":true'
    i=$((i + 1))
done
call /api/metrics
has 'lines that were lost are counted' "$(echo "$reply" |
    grep -c '^hfsb_journal_failures_total [1-9]')" 1
finish TERM
same 'a full disk is reported once' "$(grep -c '"event":"journal failed"' .log)" 1
same 'lines of a journal but cut ones are whole' \
    "$(sed '$d' journal | grep -cv '^{.*}$')" 1
rm -f journal work/j.txt

# ---- a log that no one reads
mkfifo unread
exec 9<>unread
start sh -c 'exec "$0" --port 0 --no-auth --log 2>unread 9>&-' "$server"
same 'a log that no one reads: still served' "$(limited 60 curl -s \
    -o /dev/null -w '%{http_code}\n' "$url/api/health?[1-1500]" |
    grep -c 200)" 1500
# a reader comes: the next line says what was lost
(exec cat <&9 > .read) &
reader=$!
tries=0
until grep -q '"lines_lost":[1-9]' .read 2>/dev/null || [ $tries -ge 400 ]; do
    curl -s -o /dev/null "$url/api/health"
    sleep 0.05
    tries=$((tries + 1))
done
has 'a log that no one reads: what was lost' "$(grep -c lines_lost .read)" 1
same 'a log that no one reads: lines are whole' \
    "$(grep -cv '^{"time":".*}$' .read)" 0
kill $reader 2>/dev/null
finish TERM
exec 9>&-
same 'a log that no one reads: exit status' $ended 0

# ---- what odd requests leave in memory
if have python3 && [ "$(id -u)" = 0 ]; then
    start env SANDBOX_API_TOKEN="$token" "$server" --port 0 \
        --head-timeout 0.2 --body-timeout 0.2
    CANARY=$token python3 - "${url##*:}" <<'END'
import os, socket, sys, time
token = os.environ["CANARY"]
field = f"X-Sandbox-Authorization: Bearer {token}\r\n"
get = f"GET /api/jobs HTTP/1.1\r\nHost: localhost\r\n{field}"
post = f"POST /api/exists HTTP/1.1\r\nHost: localhost\r\n{field}" \
    "Content-Type: application/json\r\n"
whole = post + "Content-Length: 12\r\n\r\n" + '{"path":"x"}'
odd = [whole * 20, get + f"X: {'x' * 20000}\r\n\r\n",
       get.replace(field, "") + "A: b\r\n" * 99 + field + "\r\n",
       get + "no field\r\n\r\n", get.replace(token, token + "x") + "\r\n",
       get.replace("X-Sandbox-", "") + "\r\n", get.replace("GET", "FOO") +
       "\r\n", get.replace("1.1", "2.0") + "\r\n", get + field + "\r\n",
       get.replace("localhost", "evil") + "\r\n",
       post + "Content-Length: 99999999999\r\n\r\n",
       post + "Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
       post + "Content-Length: 12\r\n\r\n{", whole + get, get, field * 3,
       get.replace("Bearer ", "Bearer\r\n ") + "\r\n"]
for i, text in enumerate(odd + [whole, get + "\r\n"]):
    s = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
    s.settimeout(2)
    if i < len(odd):
        s.sendall(text.encode())
    else:  # in small pieces
        for at in range(0, len(text), 5):
            s.sendall(text[at:at + 5].encode())
            time.sleep(0.001)
    try:
        s.recv(65536)
    except OSError:
        pass
    s.close()
END
    call /api/bash "{\"command\":\"$top/scan \$PPID $half $other\"}"
    has 'the token in memory after odd requests' "$reply" \
        'found 0 times in all of it'
    finish TERM
else
    echo 'skipped: needs root and python3 (memory after odd requests)'
fi

# A symbol that is resolved late leaves registers, and what they hold, on the
# stack.
if grep -qs -e '-z,now' "$project/build/link" && have readelf &&
    readelf -d "$server" | grep -q NEEDED; then
    has 'symbols are resolved at the start' "$(readelf -d "$server")" BIND_NOW
else
    echo 'skipped: no readelf, or a linker or program without -z now'
fi

# ---- how it ends
# ends_during NAME COMMAND SIGNAL...: the reply is in .during
ends_during() {
    name=$1
    rm -f work/pid
    start "$server" --no-auth --port 0 --work-dir work
    curl -s -m 20 -H "$json" -d "{\"command\":\"echo begun; echo \$\$ > pid; $2\"}" \
        "$url/api/bash" > .during &
    curl_pid=$!
    until_file work/pid
    shift 2
    finish "$@"
    wait $curl_pid
    same "$name: exit status" $ended 0
    same "$name: no child left" "$(alive "$(cat work/pid)")" no
}
ends_during 'TERM during short work' 'sleep 0.3; echo done' TERM
has 'TERM during short work' "$(cat .during)" '"success":true,"output":"begun\ndone\n"'
ends_during 'TERM during a command' 'sleep 30; echo done' TERM
has 'TERM during a command' "$(cat .during)" '"success":false,"output":"begun\n"'
same "TERM during a command: in time ($took ms)" "$([ $took -lt 25000 ] && echo yes)" yes
ends_during 'TERM, ignored by the command' \
    'trap : TERM; while :; do sleep 0.1; done' TERM
has 'TERM, ignored by the command' "$(cat .during)" '"output":"begun\n'
same "TERM, ignored by the command: in time ($took ms)" \
    "$([ $took -lt 25000 ] && echo yes)" yes
for _ in 1 2 3 4 5; do # a busy machine adds to each
    ends_during 'TERM twice' 'trap : TERM; while :; do sleep 0.1; done' \
        TERM TERM
    [ $took -ge 3500 ] || break
done
same "TERM twice: sooner ($took ms)" "$([ $took -lt 3500 ] && echo yes)" yes

# ---- nothing outlives it
# outlives NAME SIGNAL WHO: neither a daemon that a command left, nor a command
# that runs, when the process that was started or the one that serves is killed
outlives() {
    rm -f work/pid work/daemon
    start "$server" --no-auth --port 0 --work-dir work
    inner=$(cat /proc/$pid/task/$pid/children 2>/dev/null | tr -d ' ')
    curl -s -m 20 -H "$json" -d '{"command":"(setsid env -i sh -c \"echo \\$\\$ > daemon; exec sleep 61\" > /dev/null 2>&1 &) ; until [ -s daemon ]; do sleep 0.01; done"}' \
        "$url/api/bash" > .daemon
    curl -s -m 20 -H "$json" -d '{"background":true,"command":"(setsid env -i sleep 61 &) ; echo $$ > pid; sleep 61"}' \
        "$url/api/bash" > .background
    until_file work/pid
    same "$1: the daemon lives" "$(alive "$(cat work/daemon)")" yes
    case $3 in
    started) kill -"$2" "$pid" ;;
    serving) kill -"$2" "${inner:-$pid}" ;;
    esac
    wait "$pid" 2>/dev/null
    until_gone work/pid
    [ "$2 $3" = 'KILL started' ] || until_gone work/daemon
    same "$1: its command is gone" "$(alive "$(cat work/pid)")" no
    # a daemon that nobody knows belongs to the keeper
    [ "$2 $3" = 'KILL started' ] ||
        same "$1: the daemon is gone" "$(alive "$(cat work/daemon)")" no
    [ "$(alive "$(cat work/daemon)")" = no ] || kill "$(cat work/daemon)"
    pid=
}
if [ -r /proc/self/task/self/children ] || [ -r /proc/$$/task/$$/children ]; then
    outlives 'TERM' TERM started
    outlives 'KILL of the process started' KILL started
    outlives 'KILL of the process that serves' KILL serving
else
    echo 'skipped: needs /proc (nothing outlives the server)'
fi

# ---- process 1
if [ "$(id -u)" = 0 ] && unshare -pf --mount-proc true 2>/dev/null; then
    as_init() { # sets init, the number of process 1 as seen from here
        start env SANDBOX_API_TOKEN="$token" unshare -pf --mount-proc \
            "$server" --port 0
        init=$(cat /proc/$pid/task/$pid/children | tr -d ' ')
        inner=$(cat "/proc/$init/task/$init/children" | tr -d ' ')
    }
    as_init
    call /api/bash '{"command":"for i in 1 2 3 4 5; do (setsid sleep 0.1 &) ; done"}'
    call /api/bash '{"command":"i=0; while cat /proc/[0-9]*/stat 2>/dev/null | grep -q \"(sleep)\" && [ $i -lt 200 ]; do sleep 0.1; i=$((i + 1)); done; for f in /proc/[0-9]*/stat; do cut -d\" \" -f2-4 < $f; done"}'
    has 'process 1' "$reply" ') S 0'
    same 'process 1 has a child that serves' "${inner:+yes}" yes
    hasnt 'process 1 reaps orphans' "$reply" ') Z '
    hasnt 'process 1 reaps orphans' "$reply" '(sleep)'
    call /api/bash "{\"command\":\"$top/scan 1 $half $other; $top/scan \$PPID $half $other\"}"
    has 'process 1: the token in memory' "$reply" 'found 0 times in all of it\nfound 0 times in all of it\n'
    kill -TERM "$init"
    wait "$pid"
    same 'process 1: TERM' $? 0
    as_init
    kill -KILL "${inner:-$init}"
    wait "$pid"
    same 'process 1 ends as its child ends' $? 137
    pid=
    cat .start .log >> all-output
else
    echo 'skipped: needs root and unshare (process 1)'
fi

same 'the token is in no output' "$(grep -c "$token" all-output)" 0

echo "$checks checks of the server, $failed failed"
[ $failed = 0 ]
