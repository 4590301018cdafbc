#!/bin/sh
# Sandboxes at the other end of a command: hfsb --on exec:, ssh:, podman:,
# slurm: with the real programs, each started here and stopped again; what
# --on can do through a pipe, with exec, shell, cp and each, too; a pipe that is cut after N bytes, for many N:
# the call runs exactly once; a server that dies, is full, or whose socket is
# taken; many at once; nothing is left.
# sshd, podman and Slurm are tried as far as they are installed and can run
# here (as root, for podman and Slurm); what cannot is reported as skipped.
#   HFSB=FILE               another binary
#   HFSB_STATIC=FILE        another static hfsb-server (build/static)
#   HFSB_TEST_LONG=1        cuts after every N
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

cli=$PWD/build/hfsb
cli=${HFSB:-$cli}
static=${HFSB_STATIC:-$PWD/build/static/hfsb-server}
[ -x "$cli" ] || { echo "$cli is missing: run make"; exit 1; }
[ -x "$static" ] || make static > /dev/null ||
    { echo "$static is missing: run make static"; exit 1; }
unset SANDBOX_API_TOKEN HFSB_SANDBOX http_proxy HTTP_PROXY all_proxy ALL_PROXY

checks=0 failed=0
work=$(mktemp -d)
chmod 755 "$work" # munged and sshd look at it
started=
stop_all() {
    for p in $started; do kill "$p" 2> /dev/null; done
    [ -z "${keeper:-}" ] || kill -KILL "$keeper" 2> /dev/null
    [ -z "${box:-}" ] || podman rm -f -t 0 "$box" > /dev/null 2>&1
    for p in $started; do wait "$p" 2> /dev/null; done
    rm -rf "$work"
}
trap stop_all EXIT
trap 'exit 1' INT TERM
mkdir "$work/home" "$work/servers" "$work/bin" "$work/data" "$work/run"
export HOME="$work/home" XDG_DATA_HOME="$work/data" HFSB_LINGER=2
export XDG_STATE_HOME="$work/home" HFSB_PIPE_DIR="$work/run"
export HFSB_SERVERS="$work/servers"
cp "$static" "$work/servers/hfsb-server-$(uname -m)"
cp "$static" "$work/hfsb-server" # all that is started is found by its folder
static=$work/hfsb-server
PATH=$work/bin:$PATH

free_port() { # programs that cannot ask the kernel for one
    python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

left() { # processes, without zombies that process 1 has not reaped yet
    ps -eo stat=,args= | grep "$work/[^ ]*[h]fsb-server[^ ]* --stdio" |
        grep -vc '^Z'
}

wait_until() { # COMMAND...: succeeds; at most a minute
    tries=0
    until "$@" || [ $tries = 600 ]; do
        tries=$((tries + 1))
        sleep 0.1
    done
}

is_clean() {
    [ "$(left) $(ls "$work/run" | wc -l)" = "0 0" ]
}

nothing_left() { # WHAT: now, or after the seconds of HFSB_LINGER and a stop
    wait_until is_clean
    same "$1: processes" "$(left)" 0
    same "$1: sockets" "$(ls "$work/run")" ""
}

# ---- what --on can do

on=exec:sh
same "first call" "$("$cli" bash --on $on 'echo hello' 2>&1)" hello
same "the server is there" "$(ls "$work"/data/hfsb | wc -l)" 1
same "its mode" "$(stat -c %a "$work"/data/hfsb/*)" 700
"$cli" bash --on $on 'exit 7'
same "exit code" $? 7
nothing_left "after two calls"
same "no stray files" "$(ls -A "$HOME")" ""
has "left running" "$("$cli" bash --on $on 'sleep 1000 & echo x' 2>&1)" \
    "ended with the sandbox: "
has "background" "$("$cli" bash --background --on $on 'sleep 1' 2>&1)" \
    "needs a sandbox that stays"
out=$("$cli" bash --on $on 'sleep 1000 & echo x' 2> /dev/null)
same "background child" "$out" x
same "is ended with its sandbox" "$(left)" 0
echo 'input text' > "$work/in"
same "stdin" "$("$cli" bash --stdin --on $on cat < "$work/in")" "input text"
same "long output" "$("$cli" bash --on $on 'seq 1 100000' | cksum)" \
    "$(seq 1 100000 | cksum)"
head -c 5000000 /dev/urandom > "$work/big"
"$cli" cp "$work/big" "$on:$work/big2" > /dev/null
"$cli" cp "$on:$work/big2" "$work/big3" > /dev/null
same "cp there and back" "$(cksum < "$work/big3")" "$(cksum < "$work/big")"
printf 'a\nb\n' > "$work/f"
"$cli" edit --on $on "$work/f" --old b --new c > /dev/null
same "edit" "$(cat "$work/f")" "$(printf 'a\nc')"
echo new | "$cli" write --on $on "$work/g" > /dev/null
same "write" "$(cat "$work/g")" new
has "read" "$("$cli" read --on $on "$work/f")" "$(printf '2\tc')"
has "grep" "$("$cli" grep --on $on c "$work/f")" c
has "tool" "$("$cli" tool exists --on $on --path "$work/f")" true
has "status" "$("$cli" status $on)" "$on  REACHABLE  commands are "
same "status: not confined" "$("$cli" status \
    "exec:$static --stdio --confine none")" \
    "exec:$static --stdio --confine none  REACHABLE  commands are not confined"
has "logs" "$("$cli" logs $on 2>&1)" "$on has no log"
out=$("$cli" events $on 2>&1)
same "events" $? 1
has "events" "$out" "$on has no journal"
has "--confine" "$("$cli" bash --confine strict --on $on x 2>&1)" \
    "--on exec:'ssh HOST hfsb-server --stdio --confine ...'"
mkdir "$work/only"
cp "$cli" "$work/only/hfsb"
out=$(HFSB_SERVERS=/nowhere "$work/only/hfsb" bash --on $on x 2>&1)
has "no server here" "$out" "One that was sent before may be over there"
rm -r "$work/only"
same "HFSB_SANDBOX" "$(HFSB_SANDBOX=$on "$cli" bash 'echo e')" e
same "hfsb-server itself" "$("$cli" bash --on "exec:$static --stdio" \
    'echo direct')" direct
same "noise without the end of its line" \
    "$("$cli" bash --on "exec:printf title; exec $static --stdio" 'echo d')" d
answer() { # ID: waits for it
    n=0
    until grep -q "\"id\":$1" "$work/codex" || [ $n = 200 ]; do
        n=$((n + 1))
        sleep 0.1
    done
}
: > "$work/codex"
( sleep 0.7; printf '%s\n' '{"id":1,"method":"initialize","params":{"clientName":"c"}}'
  answer 1 ) | limited 60 "$cli" exec-server --on $on > "$work/codex" 2>&1
has "exec-server" "$(cat "$work/codex")" '"id":1'
start=$(date +%s)
limited 60 "$cli" bash --timeout 1 --on $on 'sleep 100' > /dev/null 2>&1
same "timeout" "$? $(($(date +%s) - start < 20))" "124 1"
"$cli" bash --on $on 'sleep 100' > /dev/null 2>&1 & pid=$!
sleep 1
kill $pid
wait $pid
same "a signal" $? 143
nothing_left "after a signal"

# ---- programs and shells

same "exec: its words" \
    "$("$cli" exec --on $on -- printf '%s|' 'a b' "c'd" '$HOME' '')" \
    "a b|c'd|\$HOME||"
same "exec: any bytes, both ways" \
    "$("$cli" exec --on $on -- cat < "$work/big" | cksum)" \
    "$(cksum < "$work/big")"
"$cli" exec --on $on -- sh -c 'exit 9'
same "exec: exit code" $? 9
"$cli" exec --on $on -- no_such_program 2> /dev/null
same "exec: no such program" $? 127
"$cli" exec --on $on -- sleep 1000 > /dev/null 2>&1 & pid=$!
sleep 1
kill $pid
wait $pid
same "exec: a signal" $? 143
nothing_left "after exec"
for where in --on=$on --merge-stderr; do # there and here
    rm -f "$work/pipe"
    mkfifo "$work/pipe"
    "$cli" exec $where -- yes > "$work/pipe" 2> /dev/null & pid=$!
    exec 7< "$work/pipe" # and reads nothing
    sleep 1
    kill $pid
    wait_until sh -c '! ps -o stat= -p "$1" | grep -q "^[^Z]"' sh $pid
    same "exec $where: a signal while nobody reads" \
        "$(ps -o stat= -p $pid | grep "^[^Z]")" ""
    exec 7<&-
    wait $pid
    same "exec $where: a signal while nobody reads" $? 143
done
nothing_left "after exec to nobody"
out=$(printf 'echo in the $((40 + 2))nd shell\nexit 4\n' |
    limited 60 "$cli" shell --on $on --shell /bin/sh 2>&1)
same "shell: exit code" $? 4
has "shell" "$out" "in the 42nd shell"
out=$(printf 'exit 5\n' | limited 60 "$cli" shell $on --shell /bin/sh 2>&1)
same "shell SANDBOX" $? 5
nothing_left "after a shell"

# ---- trees

mkdir -p "$work/tree/sub/empty"
echo a > "$work/tree/a"
chmod 750 "$work/tree/a"
echo b > "$work/tree/sub/b c"
ln -s a "$work/tree/link"
"$cli" cp -r "$work/tree" "$on:$work/tree2" > /dev/null
same "cp -r there" "$? $(diff -r "$work/tree" "$work/tree2")" "0 "
"$cli" cp -r ":$work/tree2" "$work/tree3" --on $on > /dev/null
same "cp -r back" "$? $(diff -r "$work/tree" "$work/tree3")" "0 "
same "cp -r: modes and links" \
    "$(stat -c '%a' "$work/tree3/a") $(readlink "$work/tree3/link")" "750 a"
odd=$(printf 'q\\u \377')
mkdir -p "$work/odd/$odd/$odd"
ln -s "$odd" "$work/odd/$odd/link"
echo c > "$work/odd/$odd/$odd.c"
"$cli" cp -r "$work/odd" "$on:$work/odd2" > /dev/null
same "cp -r there: names that are no text" \
    "$? $(diff -r "$work/odd" "$work/odd2") $(readlink "$work/odd2/$odd/link")" \
    "0  $odd"
"$cli" cp -r "$on:$work/odd2/$odd" "$work/odd3" > /dev/null
same "cp -r back: names that are no text" \
    "$? $(diff -r "$work/odd/$odd" "$work/odd3")" "0 "
mkdir -p "$work/tree5/link"
out=$("$cli" cp -r "$work/tree" "$on:$work/tree5" 2>&1)
same "cp -r: a link in place of a folder" "$? $(ls "$work/tree5/link")" "1 "
has "cp -r: a link in place of a folder" "$out" \
    "tree5/link is there already, and a folder"
mkdir "$work/folder"
out=$("$cli" cp "$work/tree/a" "$on:$work/folder")
same "cp into a folder there" "$? $out $(cat "$work/folder/a")" \
    "0 Copied 2 bytes to $on:$work/folder/a a"
has "cp: a folder there" "$("$cli" cp "$on:$work/tree2" "$work/t4" 2>&1)" \
    "$work/tree2 is a directory: cp -r copies it"
has "cp: a folder here" "$("$cli" cp "$work/tree" "$on:$work/t4" 2>&1)" \
    "$work/tree is a directory: cp -r copies it"
has "cp: not found" "$("$cli" cp "$on:$work/none" "$work/t4" 2>&1)" \
    "File not found"
same "cp to standard output" "$("$cli" cp "$on:$work/tree2/a" -)" a
echo new | "$cli" cp - "$on:$work/tree2/n" > /dev/null
same "cp from standard input" "$(cat "$work/tree2/n")" new
# a sandbox that lies about its tree
mkdir "$work/liar"
cat > "$work/liar/find" <<'END'
#!/bin/sh
printf 'd.\000l././././a\000../../../x\000l.////b\000../x\000l./c\000./../x\000'
END
chmod 755 "$work/liar/find"
out=$("$cli" cp -r "exec:PATH=$work/liar:\$PATH exec sh:$work/tree" \
    "$work/tree4" 2>&1)
same "cp -r of a liar" "$? $(ls "$work/tree4")" "0 "
same "cp -r of a liar: reported" "$(echo "$out" | grep -c '^hfsb: not copied')" 3
nothing_left "after cp"

# ---- commands that carry nothing

out=$("$cli" bash --on "exec:echo 'no route to host' >&2; exit 255" x 2>&1)
has "the message of the command" "$out" "no route to host"
same "a command that ends" "$("$cli" bash --on exec:false x 2>&1)" \
    "hfsb: exec:false ended before hfsb-server answered (exit status 1)."
start=$(date +%s)
has "a start that takes too long" "$(HFSB_START=1 limited 50 "$cli" bash --on \
    "exec:echo 'job 5 is queued' >&2; exec sleep 100" x 2>&1)" "in time"
same "a start that takes too long: HFSB_START" $(($(date +%s) - start < 40)) 1
has "answers without end" \
    "$(limited 60 "$cli" bash --on "exec:yes 'hfsb-pipe have'" x 2>&1)" \
    "reports: have"
has "no name" "$("$cli" bash --on ssh: x 2>&1)" "Not the name of a sandbox"
has "an option as a name" "$("$cli" bash --on ssh:-oProxyCommand=x x 2>&1)" \
    "Not the name of a sandbox"
out=$(HFSB_SERVERS=/nowhere XDG_DATA_HOME=$work/other \
    "$cli" bash --on exec:'uname() { case $1 in -m) echo sparc;; *) echo Linux;; esac; }; . /dev/stdin' x 2>&1)
has "another machine" "$out" "sparc"

# ---- each

printf 'exec:sh\nexec: sh\n' > "$work/list"
out=$("$cli" each --from "$work/list" --on 'exec:sh ' -- 'echo $((1+1))' | sort)
same "each" "$out" "$(printf 'exec: sh: 2\nexec:sh : 2\nexec:sh: 2' | sort)"
printf '# nodes\n\n \texec:sh \r\n  # more\nexec:sh\nnode1\n' > "$work/list"
out=$("$cli" each --from "$work/list" --on exec:sh -- 'echo once' 2> "$work/err")
same "each: comments and repeated names" "$? $out" "125 exec:sh: once"
has "each: a bare word" "$(cat "$work/err")" "a host that ssh reaches is ssh:node1"
same "each: errors" "$(grep -vc '^node1: ' "$work/err")" 0
same "each: several words stay apart" \
    "$("$cli" each --on exec:sh -- printf '%s|' 'a  b' "c'd" '$HOME' '' ';x')" \
    "exec:sh: a  b|c'd|\$HOME||;x|"
same "each: one word is for the shell" \
    "$(printf 'exec:sh\n' | "$cli" each --from - -- 'printf "%s|" a b; echo')" \
    "exec:sh: a|b|"
out=$("$cli" each --json --on exec:sh --on exec:false -- 'echo hi; exit 3')
same "each: the worst" $? 125
has "each --json" "$out" '{"on":"exec:sh","exit_code":3,'
has "each --json" "$out" '{"on":"exec:false","exit_code":125,"success":false'
out=$("$cli" each --on exec:sh --on 'exec:sh ' -- 'exit 3' 2>&1 > /dev/null | sort)
same "each: who failed" "$out" "$(printf 'exec:sh : exit code 3\nexec:sh: exit code 3' | sort)"
mkdir "$work/slots"
out=$(for i in 1 2 3 4 5 6; do echo "exec:: $i; exec sh"; done |
    "$cli" each --jobs 2 --from - -- "d=\$(mktemp -d $work/slots/X.XXXXXX)
        sleep 0.5; ls $work/slots | wc -l; sleep 0.5; rmdir \$d" 2>&1)
same "each --jobs" "$(echo "$out" | awk '{ if ($NF > n) n = $NF }
    END { print NR, n }')" "6 2"
rm -f "$work/up"
"$cli" each --on exec:sh -- "echo x > $work/up; sleep 60" 2> "$work/err" &
pid=$!
tries=0
until [ -s "$work/up" ] || [ $tries -ge 200 ]; do sleep 0.1; tries=$((tries + 1)); done
kill -TERM $pid
wait $pid
same "each: a signal" $? 143
hasnt "each: a signal" "$(cat "$work/err")" 'may still run'
if [ "$(uname -s)" = Linux ]; then
    rm -f "$work/up"
    HFSB_LINGER=600 "$cli" each --on exec:sh -- \
        "echo \$\$ > $work/up; sleep 60" 2> "$work/err" &
    pid=$!
    wait_until [ -s "$work/up" ]
    kill -KILL $pid
    wait $pid 2> /dev/null
    nothing_left "each: SIGKILL"
    same "each: SIGKILL: the command" \
        "$(kill -0 "$(cat "$work/up")" 2> /dev/null && echo runs)" ""
fi

"$cli" each --on exec:sh -- 'echo x' > /dev/full 2> "$work/err"
same "each: a full disk" "$? $(cat "$work/err")" \
    "125 hfsb: cannot write to standard output: No space left on device"
mkfifo "$work/reader"
rm -f "$work/up"
"$cli" each --on exec:sh --on 'exec: sh' -- "until [ -e $work/up ]; do sleep 0.1
    done; echo a; sleep 1000" > "$work/reader" 2> /dev/null &
pid=$!
: < "$work/reader" # and leaves
: > "$work/up"
wait $pid
same "each: a reader that leaves" $? 141
nothing_left "after a reader that left"
out=$(
    ulimit -n 40
    i=0
    while [ $i -lt 16 ]; do i=$((i + 1)); echo "exec:: $i; exec sh"; done |
        "$cli" each --jobs 16 --from - -- 'echo ok' 2>&1 | grep -c ': ok$'
)
same "each: more than there are descriptors for" "$out" 16

# ---- on a terminal

if have python3; then
    printf '#!/bin/sh\nuntil [ -e "%s" ]; do sleep 0.1; done\nexec sh\n' \
        "$work/go" > "$work/bin/slow"
    chmod 755 "$work/bin/slow"
    waiting() { # TEXT ARGUMENT...: exec:slow starts once they say TEXT
        wanted=$1
        shift
        rm -f "$work/go"
        : > "$work/out" # not what the call before has said
        TERM=xterm limited 60 python3 -c \
            'import pty, sys; sys.exit(pty.spawn(sys.argv[1:]) >> 8)' \
            "$cli" "$@" < /dev/null >> "$work/out" &
        pid=$!
        n=0
        until grep -qF "$wanted" "$work/out" || [ $n = 300 ]; do
            n=$((n + 1))
            sleep 0.1
        done
        : > "$work/go"
        wait $pid
        out=$(cat "$work/out")
    }
    waiting '| waiting for exec:slow  ' bash --on exec:slow 'echo then'
    has "waiting" "$out" "| waiting for exec:slow  "
    has "waiting, then" "$out" "then"
    waiting 'waiting for 1 of 2: exec:slow' \
        each --on exec:slow --on exec:sh -- 'echo then'
    has "each: waiting" "$out" "waiting for 1 of 2: exec:slow"
    has "each: waiting, then" "$out" "exec:slow: then"
fi

# ---- a pipe that is cut

${CC:-cc} -O1 -o "$work/cut_pipe" tests/programs/cut_pipe.c ||
    { echo "cut_pipe.c does not compile"; exit 1; }
step=97
# what a busy machine may need to come back; a client that ends says so
HFSB_LINGER=20
[ -z "${HFSB_TEST_LONG:-}" ] || step=1
n=1 wrong=0 cuts=0
while [ $n -lt 20000 ]; do
    rm -f "$work/mark"
    : > "$work/count"
    out=$(limited 30 "$cli" bash --on "exec:$work/cut_pipe $work/mark $n sh" \
        "echo x >> $work/count; echo done" 2>&1)
    out="$? $(wc -l < "$work/count" | tr -d ' ') $out"
    if [ "$out" != "0 1 done" ]; then
        wrong=$((wrong + 1))
        echo "cut after $n bytes: exit status, runs, output: $out"
    fi
    grep -q whole "$work/mark" && break
    cuts=$((cuts + 1))
    n=$((n + step))
done
same "cuts that the call did not survive, of $cuts" $wrong 0
same "the last one was after the call" $((n < 20000 && n > 2000)) 1
nothing_left "after the cuts"
HFSB_LINGER=2
# the server over there dies, too: the call is not repeated
: > "$work/count"
limited 60 "$cli" bash --on "exec:sh" "echo x >> $work/count; sleep 60" \
    > "$work/out" 2>&1 &
pid=$!
wait_until [ -s "$work/count" ]
for p in $(ps -eo pid=,args= | grep "$work/data/hfsb/[h]fsb-server-" |
    awk '{print $1}'); do
    kill -9 "$p"
done
wait $pid
same "after the end of the server" $? 125
same "runs" "$(wc -l < "$work/count" | tr -d ' ')" 1
has "it is reported" "$(cat "$work/out")" "may have run"
rm -rf "$work"/run/hfsb-*
# the network is away for a while: the command fails then, as ssh does
: > "$work/count"
limited 60 env HFSB_LINGER=20 "$cli" bash --on "exec:[ ! -e $work/down ] ||
    { echo no route >&2; exit 255; }; echo \$\$ > $work/pid; exec sh" \
    "echo x >> $work/count; sleep 3; echo end" > "$work/out" 2>&1 &
pid=$!
wait_until [ -s "$work/count" ]
: > "$work/down"
kill -9 "$(cat "$work/pid")"
sleep 2
rm "$work/down"
wait $pid
same "a network that was away" "$? $(cat "$work/out")" "0 end"
same "runs" "$(wc -l < "$work/count" | tr -d ' ')" 1
nothing_left "after a network that was away"

# ---- a server that is not what it was

mcp_call() { # ID COMMAND
    printf '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"bash","arguments":{"command":"%s"}}}\n' "$1" "$2"
}
answered() { # ID...: in the output
    for id in "$@"; do
        wait_until grep -q "\"id\":${id}[,}]" "$work/out"
    done
}
reply() { # ID
    grep "\"id\":${1}[,}]" "$work/out"
}
mcp() { # [OPTION...]: the calls come from standard input, after the first
        # message; each start of the server adds a line to `starts`
    {
        echo '{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}'
        echo '{"jsonrpc":"2.0","method":"notifications/initialized"}'
        cat
    } | limited 120 "$cli" mcp --on "exec:echo x >> $work/starts
        exec $static --stdio --confine none $*" > "$work/out" 2> "$work/err"
}

# only the server dies: the client gets another one
: > "$work/out"
{
    mcp_call 1 'kill -9 $PPID'
    answered 1
    mcp_call 2 'echo again'
    answered 2
} | mcp
has "a call that kills its server" "$(reply 1)" "may have run"
has "the call after it" "$(reply 2)" '"again\n'
nothing_left "after a server was killed"

# a server that is full: who is inside goes on, the others wait; a call that is
# cancelled makes room, so the bridge must hear of that meanwhile
: > "$work/out"
rm -f "$work/starts"
full() {
    [ "$(cat "$work/inside" 2> /dev/null)" = xxx ]
}
{
    for id in 1 2 3; do # with the bridge's own connection that is all
        mcp_call $id "printf x >> $work/inside; until [ -e $work/go ]; do sleep 0.1; done; echo done $id"
    done
    wait_until full
    mcp_call 4 'echo waited'
    mcp_call 5 'echo waited'
    sleep 0.5 # until they wait
    echo '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}'
    answered 4 5
    : > "$work/go"
    answered 2 3
} | mcp --max-connections 4
for id in 2 3; do has "call $id of a full server" "$(reply $id)" "done $id"; done
for id in 4 5; do has "call $id of a full server" "$(reply $id)" waited; done
same "the pipe of a full server" "$(wc -l < "$work/starts" | tr -d ' ')" 1
nothing_left "after a full server"

# a command listens in place of the server: it does not get the token
if have python3; then
    : > "$work/out"
    {
        mcp_call 1 "python3 $PWD/tests/python/pipe_thief.py $work/run $work/thief > $work/thief.err 2>&1 &"
        answered 1
        wait_until [ -e "$work/thief.ready" ]
        mcp_call 2 'sleep 1; echo two'
        mcp_call 3 'echo three'
        answered 2 3
    } | mcp
    same "a thief" "$(cat "$work/thief.err")" ""
    has "a thief hears of the bridge" "$(cat "$work/thief")" "GET /pipe/proof/"
    same "a thief does not hear the token" \
        "$(grep -ci -e bearer -e /api/ "$work/thief")" 0
    has "a call past the thief" "$(reply 2)" '"two\n'
    has "another one" "$(reply 3)" '"three\n'
    nothing_left "after a thief"
fi

# bridges without a client: they get a key, and end with their input
key=0123456789abcdef00000000000000000000000000000001
bridge() {
    : | HFSB_PIPE_KEY=$key limited 30 "$static" --stdio --linger 1 "$@" 2>&1 |
        grep . # it begins with the end of a line
}
same "a bridge" "$(bridge)" "hfsb-pipe mux 1"
nothing_left "after a bridge"
# its server is killed: the bridge ends, though its input does not, and the
# keeper cleans up
keeper_and_server() { # PROGRAM LINGER: their processes
    ps -eo pid=,ppid=,args= | awk -v line="$1 --stdio --linger $2" '
    { pid = $1; parent[pid] = $2; $1 = $2 = ""; sub(/^ */, "") }
    $0 == line { ours[pid] = 1 }
    END {
        for (p in ours)
            if (parent[p] in ours && parent[parent[p]] in ours)
                print parent[p], p
    }'
}
mkfifo "$work/fifo"
{
    HFSB_PIPE_KEY=$key limited 30 "$static" --stdio --linger 7 2>&1
    echo "exit status $?"
} < "$work/fifo" | cat > "$work/out" &
pid=$!
exec 9> "$work/fifo"
wait_until grep -q mux "$work/out"
server=$(keeper_and_server "$static" 7)
kill -9 "${server#* }"
wait $pid
same "a bridge without a server" "$(cat "$work/out")" \
    "$(printf '\nhfsb-pipe mux 1\nexit status 0')"
exec 9>&-
nothing_left "after a bridge without a server"
# its keeper hangs, and SIGALRM is ignored: it ends nevertheless, see below
mkdir "$work/stuck"
mkfifo "$work/fifo2"
cp "$static" "$work/stuck_server" # left() does not count it
{
    (
        trap '' ALRM
        HFSB_PIPE_KEY=$key HFSB_PIPE_DIR=$work/stuck exec \
            "$work/stuck_server" --stdio --linger 1
    )
    echo "exit status $?"
} < "$work/fifo2" 2>&1 | cat > "$work/stuck.out" &
exec 8> "$work/fifo2"
wait_until grep -q mux "$work/stuck.out"
keeper=$(keeper_and_server "$work/stuck_server" 1)
keeper=${keeper% *}
kill -STOP "$keeper"
printf 'B\000\000\000\000\000\000\000' >&8
exec 8>&-
# the server before it still has the lock
if have flock; then
    mkdir -m 700 "$work/run/hfsb-0123456789abcdef"
    lock=$work/run/hfsb-0123456789abcdef/lock
    flock "$lock" sleep 1 &
    pid=$!
    wait_until sh -c '! flock -n "$1" true' sh "$lock"
    same "a bridge while a server ends" "$(bridge)" "hfsb-pipe mux 1"
    wait $pid
    nothing_left "after a server that ended"
fi
# it warns at its start, as when the keeper cannot fork
cat > "$work/noise.c" <<'END'
#include <sys/syscall.h>
#include <unistd.h>
int setsid(void) {
    (void)!write(2, "noise\n", 6);
    return (int)syscall(SYS_setsid);
}
END
if [ -x build/hfsb-server ] && ${CC:-cc} -shared -fPIC -D_GNU_SOURCE \
    -o "$work/noise.so" "$work/noise.c" 2> /dev/null; then
    cp build/hfsb-server "$work/linked_hfsb-server"
    has "a bridge of a server that warns" "$(: | HFSB_PIPE_KEY=$key \
        LD_PRELOAD=$work/noise.so limited 30 "$work/linked_hfsb-server" \
        --stdio --linger 1 2>&1)" "$(printf 'noise\n\nhfsb-pipe mux 1')"
    nothing_left "after a server that warns"
fi
long=$work/$(printf '%071d' 0)
mkdir "$long"
has "a long HFSB_PIPE_DIR" "$(HFSB_PIPE_DIR=$long bridge)" \
    "hfsb-pipe fail HFSB_PIPE_DIR must be"
has "no HFSB_PIPE_DIR" "$(HFSB_PIPE_DIR=$work/none bridge)" \
    "hfsb-pipe fail HFSB_PIPE_DIR must be"
has "a server that cannot start" "$(bridge --root /nowhere)" \
    "hfsb-pipe fail hfsb-server: "
nothing_left "after servers that cannot start"

# ---- many at once

i=0
while [ $i -lt 40 ]; do i=$((i + 1)); echo "exec:: $i; exec sh"; done > "$work/list"
start=$(date +%s)
out=$("$cli" each --jobs 40 --from "$work/list" -- 'echo ok' | grep -c ': ok$')
same "40 at once" "$out" 40
echo "40 sandboxes at once: $(($(date +%s) - start)) s"
nothing_left "after many"

# ---- ssh

sshd=$(command -v sshd || echo /usr/sbin/sshd)
if [ -x "$sshd" ] && have ssh && have ssh-keygen && have python3; then
    s=$work/ssh
    mkdir -m 700 "$s"
    ssh-keygen -q -t ed25519 -N '' -f "$s/host"
    ssh-keygen -q -t ed25519 -N '' -f "$s/id"
    cp "$s/id.pub" "$s/authorized"
    port=$(free_port)
    cat > "$s/sshd_config" <<END
Port $port
ListenAddress 127.0.0.1
HostKey $s/host
AuthorizedKeysFile $s/authorized
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
PermitRootLogin yes
SetEnv HOME=$work/home XDG_DATA_HOME=$work/data HFSB_PIPE_DIR=$work/run
END
    cat > "$s/config" <<END
Host box
  HostName 127.0.0.1
  Port $port
  User $(id -un)
  IdentityFile $s/id
  UserKnownHostsFile $s/known
  StrictHostKeyChecking accept-new
Host slow
  HostName 127.0.0.1
  ConnectTimeout 1
END
    printf '#!/bin/sh\nexec %s -F %s "$@"\n' "$(command -v ssh)" "$s/config" \
        > "$work/bin/ssh"
    chmod 755 "$work/bin/ssh"
    hash -r
    [ "$(id -u)" != 0 ] || mkdir -p /run/sshd
    "$sshd" -D -e -f "$s/sshd_config" 2> "$s/log" &
    sshd_pid=$!
    started="$started $sshd_pid"
    for i in $(seq 40); do
        ssh box true 2> /dev/null && break
        sleep 0.3
    done
    if ssh box true 2> /dev/null; then
        same "ssh" "$("$cli" bash --on ssh:box 'echo over ssh' 2>&1)" \
            "over ssh"
        "$cli" cp "$work/big" "ssh:box:$work/big4" > /dev/null
        same "cp over ssh" "$(cksum < "$work/big4")" "$(cksum < "$work/big")"
        has "ssh: no host" "$("$cli" bash --on ssh:nobody@box x 2>&1)" \
            "Permission denied"
        # a host that takes connections, and says nothing
        python3 -c 'import socket, sys, time
s = socket.socket()
s.bind(("127.0.0.1", 0))
s.listen(5)
print("  Port", s.getsockname()[1], flush=True)
time.sleep(60)' >> "$s/config" &
        started="$started $!"
        n=0
        until [ "$(grep -c Port "$s/config")" = 2 ] || [ $n = 300 ]; do
            n=$((n + 1))
            sleep 0.1
        done
        start=$(date +%s)
        has "ssh: the ConnectTimeout of its config" \
            "$(limited 50 "$cli" bash --on ssh:slow x 2>&1)" "timed out"
        same "ssh: soon" $(($(date +%s) - start < 25)) 1
        # the connection is lost while the command runs
        : > "$work/count"
        "$cli" bash --on ssh:box "echo x >> $work/count; sleep 2; echo end" \
            > "$work/out" 2>&1 &
        pid=$!
        sleep 1
        for p in $(ps -o pid= --ppid "$sshd_pid"); do kill -9 "$p"; done
        wait $pid
        same "a lost ssh connection" "$? $(cat "$work/out")" "0 end"
        same "runs" "$(wc -l < "$work/count" | tr -d ' ')" 1
        same "forget: what it says" "$("$cli" forget ssh:box)" \
            "No hfsb-server is left on ssh:box"
        same "forget" "$(ls -A "$work/data")" ""
        nothing_left "after ssh"
    else
        cat "$s/log"
        same "sshd answers" no yes
    fi
else
    echo "skipped: ssh: no sshd, ssh or python3"
fi

# ---- podman: in a mount namespace, where cgroups are as it expects them

cat > "$work/podman.sh" <<'END'
mount -t cgroup2 none /sys/fs/cgroup 2> /dev/null
podman run -d --name "$box" --network none --cgroups=disabled \
    --ulimit nofile=1024:1024 --ulimit nproc=1024:1024 \
    --rootfs "$work/root" /bin/sleep 600 > "$work/podman.out" 2>&1 ||
    exit 77
"$cli" bash --on "podman:$box" 'echo in podman; cat /etc/mark'
"$cli" bash --on "podman:$box" 'exit 9'
echo "exit $?"
podman exec "$box" /bin/busybox ps -o args | grep -c '[h]fsb-server'
"$cli" forget "podman:$box" > /dev/null
podman exec "$box" /bin/busybox find / -xdev -name 'hfsb*' | wc -l
podman rm -f -t 0 "$box" > /dev/null 2>&1
END
busybox=$(command -v busybox)
if have podman && have unshare && [ -n "$busybox" ] && [ "$(id -u)" = 0 ]; then
    box=hfsb-check-$$
    mkdir -p "$work/root/bin" "$work/root/etc" "$work/root/proc" \
        "$work/root/dev" "$work/root/tmp"
    cp "$busybox" "$work/root/bin/busybox"
    for a in sh sleep uname id mkdir head mv rm chmod sha256sum cat rmdir ls; do
        ln -s busybox "$work/root/bin/$a"
    done
    echo container > "$work/root/etc/mark"
    export box work cli
    out=$(limited 60 unshare -m sh "$work/podman.sh" 2>&1)
    if [ -s "$work/podman.out" ] && grep -q '^[0-9a-f]\{64\}$' "$work/podman.out"
    then
        same "podman" "$out" "$(printf 'in podman\ncontainer\nexit 9\n0\n0')"
    else
        echo "skipped: podman cannot run here: $(tail -n 1 "$work/podman.out")"
    fi
else
    echo "skipped: podman: no podman, busybox or root"
fi

# ---- Slurm

if have python3 && have munged && have slurmctld && have slurmd && have srun &&
    [ "$(id -u)" = 0 ]; then
    d=$work/slurm
    mkdir -p "$d/spool" "$d/state" "$d/munge"
    head -c 1024 /dev/urandom > "$d/munge/key"
    chmod 600 "$d/munge/key"
    munged --force --foreground --key-file "$d/munge/key" \
        --socket "$d/munge/s" --pid-file "$d/munge/pid" \
        --log-file "$d/munge/log" --seed-file "$d/munge/seed" \
        --num-threads 1 > "$d/munge/out" 2>&1 &
    started="$started $!"
    host=$(hostname -s)
    cat > "$d/slurm.conf" <<END
ClusterName=check
SlurmctldHost=$host(127.0.0.1)
SlurmUser=root
AuthInfo=socket=$d/munge/s
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
SlurmctldPidFile=$d/ctld.pid
SlurmdPidFile=$d/slurmd.pid
SlurmdSpoolDir=$d/spool
StateSaveLocation=$d/state
SlurmctldLogFile=$d/ctld.log
SlurmdLogFile=$d/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
AccountingStorageType=accounting_storage/none
JobAcctGatherType=jobacct_gather/none
KillWait=1
NodeName=$host NodeAddr=127.0.0.1 CPUs=$(nproc) State=UNKNOWN
PartitionName=p Nodes=$host Default=YES State=UP OverSubscribe=FORCE:64
END
    export SLURM_CONF="$d/slurm.conf"
    sleep 0.5
    slurmctld -D > "$d/out" 2>&1 &
    started="$started $!"
    slurmd -D > "$d/out2" 2>&1 &
    started="$started $!"
    for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; do
        limited 5 srun --immediate=2 true > /dev/null 2>&1 && break
        sleep 0.5
    done
    if limited 60 srun true > "$d/srun" 2>&1; then
        out=$(limited 30 "$cli" bash --on slurm:"--job-name=hf" \
            'echo $SLURM_JOB_NAME; seq 1 20000 | tail -n 1' 2>&1)
        same "slurm" "$out" "$(printf 'hf\n20000')"
        limited 30 "$cli" cp "$work/big" "slurm::$work/big5" > /dev/null
        same "cp through srun" "$(cksum < "$work/big5")" \
            "$(cksum < "$work/big")"
        i=0
        while [ -n "$(squeue -h)" ] && [ $i -lt 100 ]; do
            i=$((i + 1))
            sleep 0.2
        done
        same "no job is left" "$(squeue -h)" ""
        "$cli" bash --on slurm:"--begin=now+300" x > /dev/null 2>&1 &
        pid=$!
        wait_until sh -c 'squeue -h | grep -q .'
        kill $pid
        wait $pid
        same "slurm: a signal while the job waits" $? 143
        wait_until sh -c '! squeue -h | grep -q .'
        same "slurm: no job is left in the queue" "$(squeue -h)" ""
        nothing_left "after slurm"
    else
        echo "skipped: Slurm does not run here: $(tail -n 1 "$d/srun")"
    fi
else
    echo "skipped: Slurm: no slurmctld, slurmd, munged or root"
fi

# ---- the bridge whose keeper hangs, as long as that takes

wait_until grep -q exit "$work/stuck.out"
has "a bridge whose keeper hangs" "$(cat "$work/stuck.out")" "exit status 142"
kill -CONT "$keeper"
wait_until [ ! -e "$work/stuck/hfsb-0123456789abcdef" ]
same "after a keeper that hung" "$(ls "$work/stuck")" ""
keeper=

echo "$checks checks of pipes, $failed failed"
[ $failed = 0 ]
