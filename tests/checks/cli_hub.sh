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
make_fake_hub || exit 1
[ -x build/static/hfsb-server ] || make -s static || exit 1
static=$PWD/build/static/hfsb-server
home=$PWD
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
    until [ -s "$1" ] || [ $tries -ge 600 ]; do
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
own_settings "$top"
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
for command in logs open pause restart shell status; do
    run "$command: no default" 2 "$hfsb" $command
    has "$command: no default" "$err" 'hfsb use NAME'
done
# an empty name, of a variable that a failed command has left empty, is neither
# this machine nor the default sandbox
for command in 'bash --on= pwd' 'cp --on= f :f' 'each --on= -- pwd' 'edit --on= f' \
    'exec --on= -- pwd' 'exec-server --on=' 'forget --on=' 'glob --on= f' \
    'grep --on= f' 'job run --on= f.py' 'list --on=' 'mcp --on=' 'patch --on=' \
    'read --on= f' 'shell --on=' 'tool read --on=' 'write --on= f'; do
    # shellcheck disable=SC2086
    run "empty: $command" 2 "$hfsb" $command < /dev/null
    has "empty: $command" "$err" '--on needs a sandbox, not an empty name'
    same "empty: $command" "$out" ''
done
run 'empty: bash --on ""' 2 "$hfsb" bash --on '' pwd
for command in connect delete events forget logs open pause restart shell \
    status use; do
    run "empty: $command" 2 "$hfsb" $command ''
    has "empty: $command" "$err" 'SANDBOX is an empty name'
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
before=$(date +%s)
for wrong in hf_bad ''; do
    run 'bash on a Space: wrong token' 125 env "HF_TOKEN=$wrong" "$hfsb" bash \
        --on alice/foo true
    has "bash on a Space: token \"$wrong\"" "$err" 'HTTP 401'
    has "bash on a Space: token \"$wrong\"" "$err" /settings/tokens
    hasnt "bash on a Space: token \"$wrong\"" "$err" SANDBOX_API_TOKEN
done
same 'bash on a Space: at once' $(($(date +%s) - before < 30)) 1

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
run 'connect: the address of a page' 0 env SANDBOX_API_TOKEN=wrong-one \
    "$hfsb" connect "$url/#server%2Dtoken"
same 'connect: the address of a page' "$out" "$url"
run 'connect: a wrong token in it' 1 "$hfsb" connect "$url/#wrong-one"
has 'connect: a wrong token in it' "$err" 'taken from the address'
hasnt 'connect: a wrong token in it' "$err" wrong-one
run 'connect: half a byte in it' 1 "$hfsb" connect "$url/#a%2"
run 'connect: it is recorded' 0 "$hfsb" bash --on "$url" 'echo there'
run 'a token elsewhere' 125 "$hfsb" bash --on "$url/#server-token" pwd
has 'a token elsewhere' "$err" 'let `hfsb connect` record it'
hasnt 'a token elsewhere' "$err" server-token
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
run 'bash --on: timeout' 124 "$hfsb" bash --timeout 2.9 --on "$url" 'echo a; sleep 60'
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
seq 2100 > work/lines
run 'read here' 0 env HFSB_SANDBOX= "$hfsb" read --offset 5 work/lines
here=$out$err
run 'read there: as here' 0 "$hfsb" read --offset 5 lines
same 'read there: as here' "$out$err" "$here"
run 'read there: names of options' 1 "$hfsb" read --limit -3 a/f
has 'read there: names of options' "$err" '--limit must be '
run 'glob there: names of options' 0 "$hfsb" glob --limit 1 '*'
has 'glob there: names of options' "$err" 'read on with --offset 1]'
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
    while kill -0 "$2" 2>/dev/null && [ $tries -lt 200 ]; do
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
has 'cp: a directory' "$err" 'cp -r copies it'
run 'cp: no file' 1 "$hfsb" cp nofile :w
has 'cp: no file' "$err" 'File not found: nofile (on this machine)'
run 'cp: no file there' 1 "$hfsb" cp "$url:nofile" .
has 'cp: no file there' "$err" 'File not found: nofile (in the sandbox)'
run 'cp: no file there, to stdout' 1 "$hfsb" cp "$url:nofile" -
has 'cp: no file there, to stdout' "$err" 'File not found: nofile (in the sandbox)'
run 'cp: two files here' 2 "$hfsb" cp ./a ./b
run 'cp: two there' 2 "$hfsb" cp :a :b
run 'cp into a directory' 0 "$hfsb" cp :a/f .
same 'cp into a directory' "$(cat f)" "$(printf 'I\nII')"
printf x > 'co:lon'
run 'cp: a colon' 0 "$hfsb" cp ./co:lon :colon
same 'cp: a colon' "$(cat work/colon)" x
mkdir gone
run 'cp: no folder here' 1 sh -c \
    "cd gone && rmdir ../gone && exec '$hfsb' cp '$url:colon' ./colon"
has 'cp: no folder here' "$err" 'File not found: ./colon'
hasnt 'cp: no folder here' "$err" 'in the sandbox'
mkdir -p tree/sub/empty 'tree/with blank'
printf one > tree/one; printf '#!/bin/sh\n' > tree/sub/run; chmod 0755 tree/sub/run
printf 'n' > "tree/with blank/a
b"
ln -s ../one tree/sub/link; ln -s /etc/hosts tree/out
run 'cp -r up' 0 "$hfsb" cp -r tree :copies/
same 'cp -r up' "$out" 'Copied 3 files, 14 bytes to :copies/'
diff -r --no-dereference tree work/copies/tree > .diff 2>&1
same 'cp -r up: the same' "$(cat .diff)" ''
same 'cp -r up: mode' "$(ls -l work/copies/tree/sub/run | cut -c1-10)" -rwxr-xr-x
rm tree/out
ln -s ../../outside work/copies/tree/sub/escapes
run 'cp -r down' 0 "$hfsb" cp --json -r :copies/tree down
has 'cp -r down' "$out" '"files":3,"skipped":2,'
has 'cp -r down: links that leave it' "$err" 'not copied: ./sub/escapes'
diff -r --no-dereference tree down > .diff 2>&1
same 'cp -r down: the same' "$(cat .diff)" ''
# ".." after a link is not the folder that the text suggests
mkdir work/links; ln -s . work/links/dot; ln -s dot/../x work/links/out
run 'cp -r down: .. after a link' 0 "$hfsb" cp --json -r :links links
has 'cp -r down: .. after a link' "$out" '"skipped":1,'
same 'cp -r down: .. after a link' "$(ls links)" dot
mkdir outside_dir trap; ln -s ../outside_dir trap/sub # of our own, not followed
run 'cp -r down: through a link' 1 "$hfsb" cp -r :copies/tree/. trap
same 'cp -r down: nothing through a link' "$(ls outside_dir)" ''
run 'cp: several' 0 "$hfsb" cp f tree/one :several
same 'cp: several' "$(cat work/several/one)" one
run 'cp: several, of two sandboxes' 2 "$hfsb" cp :a http://127.0.0.1:9:b .
printf 'a\0b\377' > bytes
run 'cp: stdin' 0 sh -c "'$hfsb' cp - :in.bin < bytes"
cmp -s bytes work/in.bin
same 'cp: stdin' $? 0
run 'cp: stdout' 0 sh -c "'$hfsb' cp :in.bin - > out.bin"
cmp -s bytes out.bin
same 'cp: stdout' $? 0
head -c 200000 /dev/zero > work/zeros # more than a pipe holds
mkdir tmp_out
run 'cp: stdout that nobody reads' 0 sh -c "
    { TMPDIR='$top/tmp_out' '$hfsb' cp :zeros -; echo \$? > code_out; } | true"
same 'cp: stdout that nobody reads: status' "$(cat code_out)" 141
same 'cp: stdout that nobody reads: messages' "$err" ''
same 'cp: stdout that nobody reads: nothing is left' "$(ls -A tmp_out)" ''
rm work/zeros
run 'cp: stdin into a folder' 2 "$hfsb" cp - :sub/
# what waits in $TMPDIR is for its owner only, and goes with Ctrl-C
mkdir tmp_in; mkfifo slow
(
    exec 3<> slow
    printf part >&3
    tries=0
    until [ -n "$(find tmp_in -type f -size +0)" ] || [ $tries = 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    ls -ld tmp_in/* | cut -c 1-10 > mode_in
    tries=0
    until [ -e is_over ] || [ $tries = 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    [ $tries != 600 ] || echo 'it waits for more input' > late_in
) &
holder=$!
interrupt mode_in 130 env TMPDIR="$top/tmp_in" \
    sh -c "exec '$hfsb' cp - :slow < slow"
: > is_over
wait $holder
same 'cp: stdin, Ctrl-C ends it' "$(cat late_in 2>/dev/null)" ''
same 'cp: stdin, the temporary folder' "$(cat mode_in)" drwx------
same 'cp: stdin, nothing is left' "$(ls -A tmp_in)" ''
same 'cp: stdin, nothing came' "$(ls work/slow 2>/dev/null)" ''

# ---- exec, shell
dd if=/dev/urandom of=big bs=1048576 count=16 2>/dev/null
run 'exec there: bytes' 0 sh -c "'$hfsb' exec -- cat < big > big2"
cmp -s big big2
same 'exec there: bytes' $? 0
rm big big2
run 'exec there: tar' 0 sh -c "mkdir work/untar; tar cf - tree |
    '$hfsb' exec -w untar -- tar xf -"
diff -r --no-dereference tree work/untar/tree > .diff 2>&1
same 'exec there: tar' "$(cat .diff)" ''
run 'exec there: words' 3 "$hfsb" exec -e A='x y' -- sh -c 'printf "%s|" "$@" "$A"
    echo e >&2; exit 3' sh 'a  b' '' '*' '$HOME'
same 'exec there: words' "$out" 'a  b||*|$HOME|x y|'
same 'exec there: errors' "$err" e
run 'exec there: raw' 0 "$hfsb" exec -- printf '1%%\r2%%\r'
same 'exec there: raw' "$(od -An -tx1 .out | tr -d ' \n')" 31250d32250d
run 'exec there: no program' 127 "$hfsb" exec -- nosuchprogram
run 'exec there: not executable' 126 "$hfsb" exec -- ./in.bin
run 'exec there: a signal' 137 "$hfsb" exec -- sh -c 'kill -KILL $$'
run 'exec there: the timeout' 124 "$hfsb" exec --timeout 0.3 -- sleep 60
run 'exec there: no input' 0 sh -c "echo x | '$hfsb' exec --no-stdin -- cat"
same 'exec there: no input' "$out" ''
run 'exec there: a broken pipe' 0 sh -c "'$hfsb' exec -- yes | head -n 1"
same 'exec there: a broken pipe' "$out" y
run 'exec there: it does not read' 0 sh -c "yes | '$hfsb' exec -- true"
interrupt .out 130 "$hfsb" exec -- sh -c 'echo $$ > pid; echo begun; sleep 60'
tries=0 # the program is killed a moment after the connection is lost
while kill -0 "$(cat work/pid)" 2>/dev/null && [ $tries -lt 300 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
same 'exec there: Ctrl-C ends it' "$(kill -0 "$(cat work/pid)" 2>/dev/null && echo runs)" ''
run 'bash --raw there' 4 sh -c "printf 'a\\377' | '$hfsb' bash --raw 'cat; exit 4'"
same 'bash --raw there' "$(od -An -tx1 .out | tr -d ' \n')" 61ff
run 'bash --shell there' 0 "$hfsb" bash --shell /bin/sh 'echo $0'
same 'bash --shell there' "$out" /bin/sh
run 'bash -d there' 0 "$hfsb" bash -d 'echo later > late; sleep 60'
job=$out
has 'bash -d there' "$err" "hfsb tool bash_output --on '$url' --id $job"
there work/late
same 'bash -d there' "$(cat work/late)" later
run 'bash -d there: its id' 0 "$hfsb" tool kill --id "$job"
run 'exec: another server' 125 "$hfsb" exec --on v1+http://127.0.0.1:9 -- true
run 'edit there: names of options' 1 "$hfsb" edit untar/tree/one --old two --new 2
has 'edit there: names of options' "$err" '--old not found in file.'
run 'grep there: names of options' 1 "$hfsb" grep 'a(' untar/tree
has 'grep there: names of options' "$err" 'give --literal'
mkdir -p work/ignores/build
echo build > work/ignores/.gitignore
echo word > work/ignores/build/file
run 'grep there: what is left out' 1 "$hfsb" grep word ignores
has 'grep there: what is left out' "$err" '--all includes it'
run 'grep there: literal' 1 "$hfsb" grep --literal 'a(' untar/tree
has 'grep there: literal' "$err" '(no matches'
printf '{"old_str":"two","new_str":"2"}' > args
run 'edit there: names of keys' 1 sh -c "'$hfsb' edit untar/tree/one < args"
has 'edit there: names of keys' "$err" 'old_str not found in file.'
run 'events: a command' 0 "$hfsb" bash 'echo only-once'
run 'events: one that runs' 0 "$hfsb" bash -d 'sleep 61.5'
run events 0 "$hfsb" events
has 'events: a call' "$out" 'bash'
same 'events: a command is one line' "$(grep -c only-once .out)" 1
has 'events: it runs' "$(tail -n 1 .out)" 'sleep 61.5  running'
run 'events --json' 0 "$hfsb" events --json
has 'events --json' "$(tail -n 1 .out)" '"seq":'
run shell 0 "$python" "$home/tests/python/cli_pty.py" shell "$hfsb" "$url"
run 'bash: a bar moves' 0 env TERM=xterm "$python" "$home/tests/python/cli_pty.py" \
    run 80 "$hfsb" bash --on "$url" 'printf "25%%"; sleep 0.5; printf "\r100%%\n"'
has 'bash: a bar moves' "$out" '25%'
run 'shell: ended by two signals' 0 "$python" "$home/tests/python/cli_pty.py" \
    signals "$hfsb" "$url"
run 'shell: no input' 0 sh -c "'$hfsb' shell < /dev/null"
run 'shell: commands' 3 sh -c "echo 'echo \$((40 + 2)); exit 3' | '$hfsb' shell"
same 'shell: commands' "$out" 42

# ---- the default sandbox
unset HFSB_SANDBOX
run 'use: none' 1 "$hfsb" use
run 'status: none' 2 "$hfsb" status
run 'exec --on .: none' 125 "$hfsb" exec --on . -- true
has 'exec --on .: none' "$err" 'There is no default sandbox'
run use 0 "$hfsb" use "$url"
run 'use: which' 0 "$hfsb" use
same 'use: which' "$out" "$url"
# not by run: the URL has the token
same 'open: the default one' "$("$hfsb" open --print | sed 's/#.*//')" "$url/"
run 'status: the default one' 0 "$hfsb" status
has 'status: the default one' "$out" "$url  RUNNING"
run 'bash: never by itself' 0 "$hfsb" bash pwd
same 'bash: never by itself' "$out" "$top"
run 'bash --on .' 0 "$hfsb" bash --on . pwd
same 'bash --on .' "$out" "$top/work"
run 'cp :PATH: the default one' 0 "$hfsb" cp tree/one :by-default
same 'cp :PATH: the default one' "$(cat work/by-default)" one
run 'use: no such Space' 1 "$hfsb" use alice/nosuch
has 'use: no such Space' "$err" '`hfsb ls` lists your sandboxes'
run 'use: a URL that refuses us' 1 env SANDBOX_API_TOKEN=wrong "$hfsb" use \
    "http://localhost:${url##*:}"
has 'use: a URL that refuses us' "$err" 'does not accept this token'
run 'use: the default stays' 0 "$hfsb" use
same 'use: the default stays' "$out" "$url"
run 'use: a pipe is not started' 0 "$hfsb" use ssh:no.such.host.test
run 'use: back' 0 "$hfsb" use "$url"
run 'delete: never by itself' 2 "$hfsb" delete
run 'ls: the default one' 0 "$hfsb" ls --recorded
has 'ls: the default one' "$out" 'connected, default'
run 'use --none' 0 "$hfsb" use --none
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
run 'create: it is the default' 0 "$hfsb" use
same 'create: it is the default' "$out" "$id"
run 'status: without a name' 0 "$hfsb" status
has 'status: without a name' "$out" "$id  RUNNING"
has 'status: sleeps' "$out" 'sleeps after 1 hour'
run 'logs: nothing was printed' 0 "$hfsb" logs
same 'logs: nothing was printed' "$out" ''
has 'logs: nothing was printed' "$err" 'the log is empty'
run 'logs' 0 "$hfsb" logs --build --tail 3
run 'logs -f --json' 0 "$hfsb" logs --build --json
has 'logs -f --json' "$(tail -n 1 .out)" '{"success":true,'
run 'logs: of a URL' 1 "$hfsb" logs http://127.0.0.1:9
has 'logs: of a URL' "$err" 'hfsb events'
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
# a refusal for one says nothing about the others
run 'ls: create another' 0 "$hfsb" create --poll 0.05 --owner acme
other=$out
for answer in 403,DENIED 501,UNKNOWN; do
    fake POST fault '{"method":"GET","path":"/api/spaces/'"$other"'/runtime","status":'"${answer%,*}"',"times":-1}' > /dev/null
    run "ls: one answers ${answer%,*}" 0 "$hfsb" ls --json
    same "ls: one answers ${answer%,*}" "$(value "$out" "[s['stage'] for s in x['sandboxes'] if s['id'] in ('$id', '$other')]" | tr -d "[]',")" \
        "RUNNING ${answer#*,}"
    has "ls: one answers ${answer%,*}: why" "$err" "HTTP ${answer%,*}"
    fake DELETE fault > /dev/null
done
fake POST fault '{"method":"GET","path":"/api/spaces/'"$other"'/runtime","status":429,"times":-1,"fields":"Retry-After: 86400\\r\\n"}' > /dev/null
run 'ls: too many requests' 0 "$hfsb" ls
has 'ls: too many requests' "$out" "$id"
has 'ls: too many requests' "$out" "$other"
fake DELETE fault > /dev/null
run 'ls: delete another' 0 "$hfsb" delete "$other"
run 'ls: the Hub is away' 0 env HF_ENDPOINT=http://127.0.0.1:9 "$hfsb" ls
has 'ls: the Hub is away' "$out" "$id"
has 'ls: the Hub is away' "$err" 'only the recorded sandboxes are listed'
run 'ls: an expired token' 0 env HF_TOKEN=hf_expired "$hfsb" ls
has 'ls: an expired token' "$out" "$id"
hasnt 'ls: an expired token' "$out" NOT_FOUND
has 'ls: an expired token' "$err" 'HTTP 401'
has 'ls: an expired token' "$err" 'only the recorded sandboxes are listed'
run status 0 "$hfsb" status --json "$id"
same status "$(value "$out" 'x["id"], x["stage"], x["hardware"]')" "$id RUNNING cpu-basic"
run 'bash on a Space' 5 "$hfsb" bash --on "$id" 'pwd; exit 5'
same 'bash on a Space' "$out" "$top/place"
# relative paths begin where commands do
run 'relative paths: cp' 0 "$hfsb" cp f "$id:sub/rel"
run 'relative paths: bash' 0 "$hfsb" bash --on "$id" 'cat sub/rel'
same 'relative paths: bash' "$out" "$(printf 'I\nII')"
run 'relative paths: exec' 0 "$hfsb" exec --on "$id" -- cat sub/rel
same 'relative paths: exec' "$out" "$(printf 'I\nII')"
run 'relative paths: read' 0 "$hfsb" read --on "$id" sub/rel
run 'by its short name' 0 "$hfsb" bash --on "${id#*/}" 'echo short'
same 'by its short name' "$out" short
run 'connect again' 0 "$hfsb" connect "$id"
same 'connect again: still ours' "$(value "$(cat "$state")" "[s['created'] for s in x['sandboxes'] if s.get('id') == '$id']")" '[True]'
run 'cp to a Space' 0 "$hfsb" cp f "$id:$top/place/g"
same 'cp to a Space' "$(cat place/g)" "$(printf 'I\nII')"
run 'connect: SANDBOX_API_TOKEN wins' 1 env SANDBOX_API_TOKEN=wrong "$hfsb" connect --wait 0.5 "$id"
run 'bash: the recorded token wins' 0 env SANDBOX_API_TOKEN=wrong "$hfsb" bash --on "$id" true
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
run 'delete: again' 1 "$hfsb" delete "$id"
has 'delete: again' "$err" "The Hub shows no Space $id: check the name"
hasnt 'delete: again' "$err" --force
run 'delete: wrong token' 1 env HF_TOKEN=hf_bad "$hfsb" delete "$id"
has 'delete: wrong token' "$err" 'HTTP 401'
fake POST space '{"id":"alice/other"}' > /dev/null
run 'delete: not ours' 1 "$hfsb" delete alice/other
has 'delete: not ours' "$err" 'alice/other was not created from here. --force'
run 'delete: not ours, by force' 0 "$hfsb" delete --force alice/other
run 'delete --forget' 0 "$hfsb" delete --json --forget "$second"
same 'delete --forget' "$(value "$out" 'x["deleted"]')" False
run 'delete: the default is gone' 1 "$hfsb" use
has 'delete --forget: it is still there' "$(fake GET spaces)" "$second"
run 'delete: several' 1 "$hfsb" delete --force alice/nosuch "$second"
has 'delete: several, one fails' "$err" alice/nosuch
same 'delete: several, the other' "$out" "Deleted $second"
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
fake DELETE requests > /dev/null
run 'create: no such hardware' 1 "$hfsb" create --hardware t4-smal
has 'create: no such hardware' "$err" 'no hardware t4-smal, did you mean t4-small'
run 'create --image: no such hardware' 1 "$hfsb" create --image a \
    --server "$static" --flavor nosuch
has 'create --image: no such hardware' "$err" 'hfsb hardware --jobs'
same 'create: no such hardware, nothing is made' \
    "$(fake GET requests | grep -c '"POST"')" 0
interrupt .err 130 "$hfsb" create --poll 2
has 'interrupt create' "$err" 'Sandbox creation cancelled: alice/sandbox-'
has 'interrupt create: what became of it' "$(tail -n 1 .err)" 'was deleted.'
# a Space that runs but does not answer
HFSB_SPACE_URL=http://127.0.0.1:9 "$hfsb" create --poll 0.05 > /dev/null \
    2> silent.err &
silent=$! tries=0
until grep -qs 'Waiting for the server at http://127.0.0.1:9/api/' silent.err ||
    [ $tries = 300 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
kill -TERM $silent
wait $silent
same 'create: silence is explained' "$? $((tries < 300))" '143 1'
same 'interrupt create: no Space is left' "$(fake GET spaces)" '[]'
fake POST fault '{"method":"POST","path":"*/commit/main","status":403}' > /dev/null
run 'create: refused' 1 "$hfsb" create --json
has 'create: refused' "$out" 'HTTP 403'
same 'create: refused, no Space is left' "$(fake GET spaces)" '[]'
# its log is kept, and with --keep the Space
fake POST stages '{"stages":"BUILDING,BUILD_ERROR"}' > /dev/null
run 'create: the build fails' 1 "$hfsb" create --poll 0.05
has 'create: the build fails' "$err" 'was deleted. Its page is gone, too.'
has 'create: the build fails' "$err" "The Hub's message: Job failed"
has 'create: the build fails' "$err" 'the Hub has no log of it'
same 'create: the build fails, no Space is left' "$(fake GET spaces)" '[]'
run 'create --keep' 1 "$hfsb" create --poll 0.05 --keep
has 'create --keep' "$err" 'was kept, and may cost money'
kept_id=$(value "$(fake GET spaces)" 'x[0]')
has 'create --keep: the Space is there' "$kept_id" alice/sandbox-
run 'create --keep: ls' 0 "$hfsb" ls
same 'create --keep: it is recorded' "$(grep -c "^$kept_id .* created" .out)" 1
run 'create --keep: delete' 0 "$hfsb" rm "$kept_id"
same 'create --keep: it is gone' "$(fake GET spaces)" '[]'
fake POST stages '{"stages":"RUNNING"}' > /dev/null
# a template of one's own stays as it is
fake POST space '{"id":"alice/mine-too"}' > /dev/null
fake POST fault '{"method":"POST","path":"*/restart","status":403}' > /dev/null
fake DELETE requests > /dev/null
run 'create --template' 1 "$hfsb" create --poll 0.05 --template alice/mine-too
has 'create --template' "$err" '(from alice/mine-too)'
same 'create --template: no file is replaced' \
    "$(fake GET requests | grep -c '/commit/main')" 0
run 'create --template: delete' 0 "$hfsb" delete --force alice/mine-too
run hardware 0 "$hfsb" hardware
has hardware "$out" 't4-small        4 vCPU      15 GB'
has 'hardware: prices' "$out" '$0.40/hour'
hasnt 'hardware: no heads in a pipe' "$out" PRICE
run 'hardware --json' 0 "$hfsb" hardware --jobs --json
same 'hardware --json' "$(value "$out" 'x["hardware"][0]["name"]')" cpu-basic

# ---- on a terminal
on_terminal() { "$python" "$home/tests/python/cli_pty.py" run "$@"; }
TERM=xterm
export TERM
unset NO_COLOR CLICOLOR_FORCE
has 'terminal: heads' "$(on_terminal 120 "$hfsb" hardware)" ACCELERATOR
has 'terminal: bold heads' "$(on_terminal 120 "$hfsb" hardware)" "$(printf '\033[1mNAME')"
mkdir taken
env -u SANDBOX_API_TOKEN "$server" --port 0 --no-auth --root "$top/taken" \
    --checkpoints on > taken.out 2>&1 9>&- &
pids="$! $pids"
there taken.out
taken=$(sed -n '1s|.* \(http://[^ ,]*\),.*|\1|p' taken.out)
run 'undo there: a file' 0 sh -c "echo one | '$hfsb' write --on $taken f"
run 'undo there: an edit' 0 "$hfsb" edit --on "$taken" f --old one --new two
run 'checkpoints there' 0 env HFSB_SANDBOX="$taken" "$hfsb" checkpoints
has 'checkpoints there' "$out" 'edit f  (1 changed'
has 'terminal: checkpoints' "$(on_terminal 120 "$hfsb" checkpoints --on "$taken")" 'MADE BY'
mkdir -p listed/folder
: > listed/file
on_terminal 80 "$hfsb" bash 'printf a; kill -9 $$' | tr -d '\r' > .tty
has 'terminal: a message after an open line' "$(cat .tty)" \
    "$(printf 'a\nhfsb: ended by SIGKILL')"
same 'terminal: an open line stays open' \
    "$(on_terminal 80 "$hfsb" bash 'printf a' | wc -l | tr -d ' ')" 0
has 'terminal: list' "$(on_terminal 120 "$hfsb" list --details listed)" 'dir   -     20'
touch "listed/$(printf 'a\nfile  7     2026-01-01 00:00  fake')"
has 'terminal: a name stays on its line' \
    "$(on_terminal 120 "$hfsb" list --details listed)" 'a\nfile  7'
has 'terminal: events' "$(on_terminal 120 "$hfsb" events "$taken")" 'TIME      WHO'
has 'terminal: status' "$(on_terminal 120 "$hfsb" status "$taken")" HARDWARE
run 'changes there' 0 "$hfsb" changes --on "$taken" first
has 'changes there' "$out" '+two'
has 'terminal: a diff in colour' \
    "$(on_terminal 80 "$hfsb" changes --on "$taken" first)" "$(printf '\033[32m+two')"
run 'undo there' 0 "$hfsb" undo --on "$taken"
has 'undo there' "$out" 'To take this back: hfsb undo 3.'
same 'undo there' "$(cat taken/f)" one
run 'undo there: a root here' 2 "$hfsb" undo --on "$taken" --root taken
hasnt 'terminal: NO_COLOR' "$(NO_COLOR=1 on_terminal 120 "$hfsb" hardware)" "$(printf '\033')"
hasnt 'terminal: dumb' "$(TERM=dumb on_terminal 120 "$hfsb" hardware)" "$(printf '\033')"
# what a server sends does not control the terminal
cat > rude.py <<'END'
import http.server
class Rude(http.server.BaseHTTPRequestHandler):
    def do_GET(self, body=b'{"status":"ok"}'):
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
    def do_POST(self):
        asked = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if b"exit -300" in asked:
            return self.do_GET(b'{"success":false,"output":"",'
                               b'"error":"Exit code -300"}')
        self.do_GET(br'{"success":true,"output":"a\u001b]0;title\u0007z\n",'
                    br'"error":"","id":"$(touch pasted)"}')
    def log_message(self, *_):
        pass
s = http.server.HTTPServer(("127.0.0.1", 0), Rude)
print("http://127.0.0.1:%d" % s.server_port, flush=True)
s.serve_forever()
END
"$python" rude.py > rude.out 2> /dev/null 9>&- &
pids="$! $pids"
there rude.out
rude=$(cat rude.out)
on_terminal 80 "$hfsb" bash --on "$rude" true > .tty
has 'terminal: bash' "$(cat .tty)" 'a ]0;title z'
on_terminal 80 "$hfsb" each --on "$rude" -- true > .tty
has 'terminal: each' "$(cat .tty)" 'a ]0;title z'
run 'no terminal: bash' 0 "$hfsb" bash --on "$rude" true
has 'no terminal: bash' "$out" "$(printf 'a\033]0;title\007z')"
run 'bash -d: an id that a shell would run' 0 "$hfsb" bash -d --on "$rude" true
hasnt 'bash -d: an id that a shell would run' "$out$err" touch
run 'bash: a signal that no system has' 125 "$hfsb" bash --on "$rude" 'exit -300'
same 'bash: a signal that no system has' "$err" 'hfsb: Exit code -300'
fake POST space '{"id":"alice/logs-0000"}' > /dev/null
fake POST log '{"id":"alice/logs-0000","which":"run","line":"one\u001b]0;title\u0007 \u001b[31mtwo\u009b1mthree"}' > /dev/null
on_terminal 80 "$hfsb" logs alice/logs-0000 > .tty
has 'terminal: logs' "$(cat .tty)" 'one two'
hasnt 'terminal: logs' "$(cat .tty)" "$(printf '\033')"
run 'delete: the one with logs' 0 "$hfsb" delete --force alice/logs-0000
# the file that leads the browser to the page has a token
mkdir bin tmp_open
cat > bin/xdg-open <<'END'
#!/bin/sh
echo "$1" > opened
kill -INT "$PPID"
END
chmod +x bin/xdg-open
SANDBOX_API_TOKEN=t TMPDIR=$top/tmp_open PATH=$top/bin:$PATH \
    on_terminal 80 "$hfsb" open "$rude" > .tty
has 'open: the browser' "$(cat opened)" "$top/tmp_open/hfsb-open-"
same 'open: nothing is left' "$(ls -A tmp_open)" ''
(
    ulimit -f 0 # as on a full disk
    trap '' XFSZ
    SANDBOX_API_TOKEN=t TMPDIR=$top/tmp_open PATH=$top/bin:$PATH \
        on_terminal 80 "$hfsb" open "$rude"
) | cat > .tty
has 'open: it says the URL' "$(cat .tty)" '#t'
same 'open: nothing is left of a file that cannot be written' \
    "$(ls -A tmp_open)" ''
run 'open: a pipe' 1 "$hfsb" open ssh:somewhere
has 'open: a pipe' "$err" 'has no page'
run 'open: /v1' 1 "$hfsb" open v1+http://127.0.0.1:9
has 'open: /v1' "$err" "HF's /v1 has no page"
fake POST stages '{"stages":"BUILDING,BUILDING,BUILDING,RUNNING"}' > /dev/null
on_terminal 60 "$hfsb" create --poll 0.4 > .tty
has 'terminal: a line that is rewritten' "$(cat .tty)" "$(printf '\r| ')"
has 'terminal: its stage' "$(cat .tty)" 'BUILDING  '
hasnt 'terminal: its stage, once' "$(cat .tty)" 'BUILDING...'
same 'terminal: not a line each' "$([ "$(wc -l < .tty)" -le 3 ] && echo yes)" yes
same 'terminal: no line is too wide' "$(tr '\r' '\n' < .tty | sed 's/.\[[0-9;]*[mK]//g' |
    grep -v '^hfsb: ' | awk 'length > 60')" ''
run 'terminal: the sandbox' 0 "$hfsb" use
run 'terminal: delete' 0 "$hfsb" delete "$out"
# the log of a build: its last line while it goes on, all of it when it fails
fake DELETE requests > /dev/null
fake POST stages '{"stages":"BUILDING"}' > /dev/null
fake POST fault '{"method":"POST","path":"*/commit/main","delay_ms":2000}' > /dev/null
on_terminal 90 "$hfsb" create --poll 0.1 > .tty &
pid=$! tries=0 kept_id='[]'
while [ "$kept_id" = '[]' ] && [ $tries -lt 100 ]; do
    sleep 0.1
    kept_id=$(fake GET spaces)
    tries=$((tries + 1))
done
kept_id=$(value "$kept_id" 'x[0]')
for line in '#8 FROM python' '#9 RUN make'; do
    fake POST log '{"id":"'"$kept_id"'","which":"build","line":"'"$line"'"}' > /dev/null
done
until fake GET requests | grep -q logs/build || [ $tries -ge 200 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
sleep 0.5
fake POST stages '{"stages":"BUILD_ERROR"}' > /dev/null
wait $pid
has 'terminal: the last line of the log' "$(cat .tty)" ' s  #9 RUN make'
log=$(sed -n 's/.*hfsb: its log is in //p' .tty | tr -d '\r')
has 'create: where the log of the build is' "$log" "$top/state/hfsb/logs/alice-"
has 'create: the log of the build' "$(cat "$log")" '#8 FROM python'
has 'create: the log of the build' "$(cat "$log")" '#9 RUN make'
same 'create: its Space is gone' "$(fake GET spaces)" '[]'
fake POST stages '{"stages":"RUNNING"}' > /dev/null
# a copy that takes a while
cat > slow.py <<'END'
import os, subprocess, time
p = subprocess.Popen(["sh"], stdin=subprocess.PIPE)
while piece := os.read(0, 65536):
    p.stdin.write(piece)
    p.stdin.flush()
    time.sleep(len(piece) / 4e6)
p.stdin.close()
p.wait()
END
head -c 8000000 /dev/zero > slowly
on_terminal 90 "$hfsb" cp slowly "exec:'$python' '$top/slow.py':$top/slowly2" > .tty
cmp slowly slowly2
same 'terminal: a slow copy' $? 0
tr '\r' '\n' < .tty | grep -q '#\.*\] *[0-9]*%  .*MB/s  [0-9]* s left'
same 'terminal: the time that is left' $? 0
rm -f slowly slowly2
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
fake POST fault '{"method":"POST","path":"*/duplicate","delay_ms":3000}' > /dev/null
"$hfsb" create --poll 0.05 --secret MY_SECRET > created 2> /dev/null &
pid=$! tries=0
while [ $tries -lt 300 ]; do # until the shell has become it
    words=$(tr '\0' ' ' < "/proc/$pid/cmdline" 2>/dev/null || ps -o args= -p $pid)
    case $words in *'hfsb create'*) break ;; esac
    sleep 0.1
    tries=$((tries + 1))
done
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

# ---- the token of the Hub is for private Spaces, not for those of anyone
fake POST space '{"id":"mallory/tool-0000"}' > /dev/null
fake POST space '{"id":"acme/box-0000","hidden":true}' > /dev/null
sent() { # how many requests reached a Space, and how many with the token
    fake GET requests | "$python" -ISc 'import json, sys
edge = [r for r in json.load(sys.stdin) if r["edge"]]
print(len(edge) > 0, sum("Authorization" in r["fields"] for r in edge))'
}
for space in mallory/tool-0000 acme/box-0000; do
    fake DELETE requests > /dev/null
    run "bash --on $space" 125 env HFSB_SPACE_URL="$HFSB_SPACE_URL/$space" \
        SANDBOX_API_TOKEN=t "$hfsb" bash --on $space true
    case $space in
    mallory*) same 'Hub token: a public Space' "$(sent)" 'True 0' ;;
    *) same 'Hub token: a private Space' "$(sent | sed 's/ [1-9].*/ some/')" \
        'True some' ;;
    esac
done
fake POST fault '{"method":"GET","path":"/api/spaces/acme/box-0000","status":501,"times":-1}' > /dev/null
run 'connect: the Hub does not say what is private' 1 \
    env HFSB_SPACE_URL="$HFSB_SPACE_URL/acme/box-0000" SANDBOX_API_TOKEN=t \
    "$hfsb" connect --wait 1 acme/box-0000
has 'connect: the Hub does not say what is private' "$err" \
    'did not answer whether this Space is private'
fake DELETE fault > /dev/null
run 'create: for another machine' 0 "$hfsb" create --poll 0.05 --name shared
shared=$out
shared_token=$(value "$(fake GET "space/$shared")" 'x["secrets"]["SANDBOX_API_TOKEN"]')
XDG_STATE_HOME=$top/other
run 'connect: a private Space' 0 env SANDBOX_API_TOKEN="$shared_token" \
    "$hfsb" connect "$shared"
fake DELETE requests > /dev/null
run 'bash: a private Space' 0 "$hfsb" bash --on "$shared" true
same 'bash: the record says that it is private' \
    "$(fake GET requests | grep -c expand)" 0
run 'job run --on .: no default' 1 "$hfsb" job run --on . ./script.py
has 'job run --on .: no default' "$err" 'There is no default sandbox'
run 'use: a private Space' 0 "$hfsb" use "$shared"
run 'connect: the default one' 0 "$hfsb" connect .
same 'connect: the default one' "$out" "$shared"
run 'job run --on .: the default one' 1 "$hfsb" job run --on . ./nofile.py
has 'job run --on .: the default one' "$err" 'File not found: ./nofile.py'
XDG_STATE_HOME=$top/state
run 'delete: the shared one' 0 "$hfsb" delete "$shared"
for at in nobody.hf.space nobody--49983.hf.jobs; do # no such proxy
    run "bash --on https://$at" 125 env https_proxy=http://127.0.0.1:1 \
        "$hfsb" bash --on https://$at true
    has "bash --on https://$at" "$err" 'token of the Hub was not sent'
done

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
run 'job run: -s' 0 "$hfsb" jobs run -d -s MY_SECRET --secrets HF_TOKEN \
    --image alpine true
same 'job run: -s' "$(last_job 'sorted(b["secrets"])')" "['HF_TOKEN', 'MY_SECRET']"
run 'job ls --stage' 0 "$hfsb" job ls --stage CANCELED --json
same 'job ls --stage' "$(value "$out" '[j["id"] for j in x["jobs"]]')" "['$job']"

printf 'print("train")\n' > train.py
run 'job run: a script' 0 "$hfsb" job run --detach --with trl train.py --epochs 3
same 'job run: a script has a name' "$(last_job 'b["labels"]')" "{'name': 'train.py'}"
run 'job ls: a script' 0 "$hfsb" job ls
has 'job ls: a script by its name' "$out" '  train.py | uv run --with trl - --epochs 3'
hasnt 'job ls: a script' "$out" base64
TERM=xterm on_terminal 80 "$hfsb" job ls | tr -d '\r' > .tty
has 'job ls on a terminal' "$(cat .tty)" 'train.py'
same 'job ls on a terminal: lines that do not fit' \
    "$(sed "s/$(printf '\033')\[[0-9;]*m//g" .tty | awk 'length > 80')" ''
has 'job ls: a script without a name' "$out" '  (a script) | uv run'

# ---- scheduled jobs
run 'job schedule ls: none' 0 "$hfsb" job schedule ls
same 'job schedule ls: none' "$out" ''
run 'job run --schedule' 0 "$hfsb" job run --schedule @daily --flavor t4-small \
    --image alpine echo a b
plan=$out
has 'job run --schedule' "$err" "hfsb job schedule delete $plan"
run 'job run --schedule: JSON' 0 "$hfsb" job run --schedule '0 9 * * 1' --suspend \
    --json 'print(1)'
same 'job run --schedule: JSON' "$(value "$out" 'x["output"] == x["id"], x["schedule"], x["suspended"]')" 'True 0 9 * * 1 True'
other=$(value "$out" 'x["id"]')
run 'job run: --suspend alone' 2 "$hfsb" job run --suspend echo
run 'job run: --wait and --schedule' 2 "$hfsb" job run --wait --schedule @daily echo
run 'job run: no schedule' 1 "$hfsb" job run --schedule often echo
has 'job run: no schedule' "$err" '@hourly, @daily'
run 'job schedule ls' 0 "$hfsb" job schedule ls
same 'job schedule ls' "$(printf '%s\n' "$out" | grep "$plan")" "$plan  @daily        active     t4-small     echo a b"
has 'job schedule ls' "$out" "$other  0 9 * * 1     suspended"
run 'job schedule ls --json' 0 "$hfsb" job schedule ls --json
same 'job schedule ls --json' "$(value "$out" 'len(x["jobs"]), x["output"]')" '2 '
run 'job schedule suspend' 0 "$hfsb" job schedule suspend "$plan"
same 'job schedule suspend' "$out" "$plan  @daily        suspended  t4-small     echo a b"
run 'job schedule resume' 0 "$hfsb" job schedule resume --json "alice/$plan"
same 'job schedule resume' "$(value "$out" 'x["id"], x["schedule"], x["suspended"], x["job"]["id"]')" "$plan @daily False $plan"
run 'job schedule inspect' 0 "$hfsb" job schedule inspect "$plan"
same 'job schedule inspect' "$(value "$out" 'x["id"], x["jobSpec"]["command"]')" "$plan ['echo', 'a', 'b']"
run 'job schedule run' 0 "$hfsb" job schedule run "$plan"
now=$out
hasnt 'job schedule run' "$now" "$plan"
run 'job schedule run: the job' 0 "$hfsb" job inspect "$now"
same 'job schedule run: the job' "$(value "$out" 'x["command"]')" "['echo', 'a', 'b']"
for id in "$plan" "$other"; do
    run 'job schedule delete' 0 "$hfsb" job schedule delete "$id"
    same 'job schedule delete' "$out" "Deleted $id"
done
run 'job schedule delete: again' 1 "$hfsb" job schedule delete "$plan"
run 'job schedule inspect: gone' 1 "$hfsb" job schedule inspect "$plan"
run 'job schedule: no id' 2 "$hfsb" job schedule suspend
has 'job schedule: no id' "$err" 'hfsb job schedule ls'
run 'job schedule: alone' 2 "$hfsb" job schedule
run 'job schedule: unknown' 2 "$hfsb" job schedule often
has 'job schedule: unknown' "$err" 'unknown subcommand often'
run 'job schedule --help' 0 "$hfsb" job schedule --help
has 'job schedule --help' "$out" 'hfsb job schedule resume [OPTIONS] ID'
run 'job --help' 0 "$hfsb" job --help
has 'job --help' "$out" 'hfsb job schedule SUBCOMMAND'
hasnt 'job --help' "$out" 'schedule resume'
same 'completion: job schedule' "$("$hfsb" completion words -- job schedule | cut -f 1 | tr '\n' ' ')" 'ls inspect suspend resume run delete '

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
    env | grep -c -e HFSB_SERVER -e HFSB_WORK -e SANDBOX_API_TOKEN -e SBX_
    exit 5'
same 'bash on a job' "$out" "$(printf '%s\n19\n0' "$top/place")"
run 'bash on a job, by its last part' 0 "$hfsb" bash --on "${box##*/}" 'echo short'
# Codex on it: two messages and the end of input
printf '%s\n' '{"id":1,"method":"initialize","params":{"clientName":"t"}}' \
    '{"id":2,"method":"environment/info"}' > codex.in
codex() { # NAME STATUS SANDBOX OPTION...
    what=$1 want=$2
    shift 2
    run "$what" "$want" sh -c 'exec "$@" < codex.in' sh "$hfsb" exec-server \
        --on "$@"
}
codex 'exec-server on a job' 0 "$box"
has 'exec-server on a job' "$out" '"sessionId":'
has 'exec-server on a job' "$out" "\"cwd\":\"file://$top/place\""
SANDBOX_API_TOKEN=server-token
export SANDBOX_API_TOKEN
codex 'exec-server: no --api codex' 1 "$url"
unset SANDBOX_API_TOKEN
has 'exec-server: no --api codex' "$err" 'hfsb-server there with --api codex'
codex 'exec-server: --root' 2 "$box" --root /
has 'exec-server: --root' "$err" 'is for this machine'
run 'exec-server: nobody' 1 "$hfsb" exec-server --on http://127.0.0.1:9
run 'ls: a job' 0 "$hfsb" ls
has 'ls: a job' "$out" "$box   RUNNING     t4-small      created"
run 'status of a job' 0 "$hfsb" status --json "$box"
same 'status of a job' "$(value "$out" 'x["id"], x["stage"], x["hardware"]')" "$box RUNNING t4-small"
run 'cp to a job' 0 "$hfsb" cp f "$box:h"
same 'cp to a job' "$(cat place/h)" "$(printf 'I\nII')"
run 'job inspect: as a sandbox' 0 "$hfsb" job inspect "$box"
has 'job inspect: as a sandbox' "$out" "${box##*/}"
run 'logs: a job has no build' 1 "$hfsb" logs --build "$box"
has 'logs: a job has no build' "$err" 'is a job, which has no build'
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
run 'use: no default' 0 "$hfsb" use --none
run 'delete: there is no default' 1 "$hfsb" delete .
has 'delete: there is no default' "$err" 'There is no default sandbox'
run 'use: a job that has ended' 0 "$hfsb" use "$box"
run 'delete: the default one, which has ended' 0 "$hfsb" delete .
has 'delete: the default one' "$out" "$box"
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
# a job that nobody uses ends by itself, whatever its server speaks
for api in '' '--api hf'; do
    # shellcheck disable=SC2086
    image "create --idle-timeout $api" 0 --idle-timeout 2 $api
    idle=${out##*/} tries=0
    until [ "$(fake GET jobs)" = '[]' ] || [ $tries = 300 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    run "idle $api" 0 "$hfsb" job inspect --json "$idle"
    same "idle $api: its end" "$(value "$out" 'x["stage"]')" COMPLETED
done
image 'create --idle-timeout: no time' 1 --idle-timeout soon
image 'create --image: not static' 1 --server "$server"
has 'create --image: not static' "$err" 'make static'
run 'create: --server alone' 2 "$hfsb" create --server "$static"
image 'create --image: an option of Spaces' 2 --public
image 'create --image: it ends at once' 1 --api nonsense
has 'create --image: it ends at once' "$err" 'is ERROR'
has 'create --image: its log' "$err" nonsense
log=$(sed -n 's/^hfsb: its log is in //p' .err)
has 'create --image: where its log is' "$log" "$top/state/hfsb/logs/jobs-alice-"
has 'create --image: its log is kept' "$(cat "$log")" nonsense
same 'create --image: only its owner reads it' "$(ls -l "$log" | cut -c1-10)" -rw-------
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
printf '{"tool_runtime":"sandbox"}' > "$config"
run 'tools: configured' 0 "$hfsb" tools --format openai
has 'tools: configured' "$out" '"name":"sandbox_create"'
fake POST stages '{"stages":"RUNNING"}' > /dev/null
run 'tool --sandbox-tools' 0 "$hfsb" tool bash --args '{"command":"pwd"}'
has 'tool --sandbox-tools' "$out" "\"output\":\"$top/place\\n\""
has 'tool --sandbox-tools' "$err" 'HF sandbox'
same 'tool --sandbox-tools: no Space is left' "$(value "$(fake GET spaces)" '[i for i in x if "0000" not in i and "mine" not in i]')" '[]'
run 'tool: no token' 1 env HF_TOKEN= "$hfsb" tool bash --args '{"command":"pwd"}'
has 'tool: no token' "$out" 'https://huggingface.co/settings/tokens'
rm "$config"
fake DELETE requests > /dev/null
run 'tool --image' 0 "$hfsb" tool bash --sandbox-tools --image python:3.12 \
    --flavor t4-small --args '{"command":"pwd"}'
has 'tool --image' "$out" "\"output\":\"$top/place\n\""
same 'tool --image: the job' "$(last_job 'b["flavor"], b["dockerImage"], b["environment"]["SBX_IDLE_TIMEOUT"]')" 't4-small python:3.12 2700'
same 'tool --image: no job is left' "$(fake GET jobs)" '[]'
run 'tool: --image alone' 2 "$hfsb" tool bash --image python:3.12 --args '{}'
has 'tool: --image alone' "$err" '--image needs --sandbox-tools'
run 'tool: --idle-timeout alone' 2 "$hfsb" tool bash --sandbox-tools --idle-timeout 5m --args '{}'
run 'mcp: --image alone' 2 "$hfsb" mcp --image python:3.12
run 'mcp: --flavor alone' 2 "$hfsb" mcp --sandbox-tools --flavor t4-small
run 'mcp: --server not static' 1 "$hfsb" mcp --sandbox-tools --image a --server "$server"
has 'mcp: --server not static' "$err" 'make static'
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
    "$box_token" "$shared_token" hf_goodtoken; do
    same "never printed: $secret" "$(grep -c -e "$secret" all_output)" 0
done

echo "$checks checks of sandboxes on the command line, $failed failed"
[ $failed = 0 ]
