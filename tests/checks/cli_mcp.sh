#!/bin/sh
# `hfsb mcp`: messages on standard input and output, and nothing else there;
# its end, with nothing left running; with --on a server on loopback and one at
# the other end of a pipe; with --sandbox-tools against the fake Hub
# (tests/programs/fake_hub.c, built here): the Space is made, used, and deleted at each
# kind of end.
# A shell that was started with signals ignored cannot undo that itself.
if [ -z "${SIGNALS_SET:-}" ] && env --default-signal true 2>/dev/null; then
    SIGNALS_SET=1 exec env --default-signal sh "$0" "$@"
fi
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh
[ -x build/hfsb ] || { echo "build/hfsb is missing: run make"; exit 1; }
python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) ||
    { echo "skipped: no python3"; exit 77; }
make_fake_hub || exit 1
[ -x build/static/hfsb-server ] || make -s static || exit 1
static=$PWD/build/static/hfsb-server
hfsb=$PWD/build/hfsb fake=$PWD/build/fake_hub
top=$(mktemp -d) || exit 1
aside=$(mktemp -d) || exit 1 # for what must not lie in the working directory
pids='' checks=0 failed=0
end() {
    exec 8>&- 9>&-
    for p in $pids; do
        kill "$p" 2>/dev/null
        wait "$p" 2>/dev/null
    done
    rm -rf "$top" "$aside"
}
trap end EXIT
trap 'exit 130' INT TERM
cd "$top" || exit 1
own_settings "$top"
config=$top/config/hfsb/config.json

# below WHAT NUMBER MOST
below() {
    if [ "$2" -lt "$3" ]; then state=yes; else state="no: $2"; fi
    same "$1: less than $3" "$state" yes
}

value() { # TEXT PYTHON: of the JSON text as x
    printf %s "$1" | "$python" -ISc "import json, sys
x = json.load(sys.stdin)
print($2)"
}

until_true() { # COMMAND...: for half a minute at most
    tries=0
    until "$@" 2>/dev/null || [ $tries -ge 600 ]; do
        sleep 0.05
        tries=$((tries + 1))
    done
}

now_ms() {
    case $(date +%N) in
    *[!0-9]* | '') "$python" -ISc 'import time; print(int(time.time() * 1000))' ;;
    *) date +%s%3N ;;
    esac
}

# ---- messages

hello='{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}'

call() { # ID TOOL ARGUMENTS
    printf '{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s","arguments":%s}}\n' "$1" "$2" "$3"
}

list='{"jsonrpc":"2.0","id":1,"method":"tools/list"}'

# piped OPTIONS...: all of .in at once; $err, $status. Input that ends
# ends what has not been answered, so that it stays open until the answers are
# there: as many as there are lines with an id.
piped() {
    lines=$(grep -c '"id"' .in)
    : > .out
    (
        cat .in
        until_true sh -c "[ \$(grep -c . .out) -ge $lines ]"
    ) | "$hfsb" mcp "$@" > .out 2> .err
    status=$?
    err=$(cat .err)
}

of() { # ID PYTHON: of the answer with that id, as x; its result is r, and its
       # texts are t
    "$python" -ISc 'import json, sys
for line in open(".out"):
    x = json.loads(line)
    if x.get("id") == json.loads(sys.argv[1]) and "method" not in x:
        r = x.get("result", {})
        t = "".join(b.get("text", "") for b in r.get("content", []))
        print(eval(sys.argv[2]))' "$1" "$2"
}

not_messages() { # how many lines are none
    "$python" -ISc 'import json
n = 0
for line in open(".out"):
    try: n += json.loads(line).get("jsonrpc") != "2.0" or line[-1] != "\n"
    except ValueError: n += 1
print(n)'
}

default=
! env --default-signal=INT true 2>/dev/null || default='env --default-signal=INT'

# ---- a session that stays open: begin OPTIONS..., say, answered ID, finish
begin() {
    rm -f in
    mkfifo in
    : > .out
    # shellcheck disable=SC2086 # what a shell starts so ignores SIGINT
    $default "$hfsb" mcp "$@" < in > .out 2> .err 9>&- &
    server=$!
    pids="$server $pids"
    exec 8> in
    say "$hello"
}

say() { printf '%s\n' "$1" >&8; }

answered() { until_true grep -q "^{.*\"id\":$1[,}]" .out; }

# Waits for its end, whatever the input does: $status, and $took milliseconds.
gone() {
    (sleep 30 && kill -KILL "$server") 8>&- 9>&- > /dev/null 2>&1 &
    killer=$!
    wait "$server"
    status=$?
    took=$(($(now_ms) - began))
    kill $killer
    wait $killer 2>/dev/null
}

finish() { # the input ends
    began=$(now_ms)
    exec 8>&-
    gone
}

running() { # how many processes have it in their command line
    grep -l -a -e "$1" /proc/[0-9]*/cmdline 2>/dev/null | while read -r f; do
        pid=${f#/proc/} pid=${pid%/cmdline}
        case $(sed -n 's/^State:\t\(.\).*/\1/p' "/proc/$pid/status" 2>/dev/null) in
        Z | '') ;;
        *) echo "$pid" ;;
        esac
    done | grep -c .
}

news() { # stderr, without the line about confinement
    grep -v -e '^hfsb: commands are ' -e '^hfsb: commands can delete ' .err
}

# ---- the command line
"$hfsb" mcp --help > .out 2> .err
same 'help' $? 0
has help "$(cat .out)" 'hfsb mcp [OPTIONS]'
same 'help is not too wide' "$(awk 'length > 78' .out)" ''
for words in --nonsense word '--patience x' '--max-result x' \
    '--root . --sandbox-tools' '--deny x --sandbox-tools' '--root=' \
    '--confine all' '--allow-read .' '--confine none --net off' \
    '--max-memory 0' '--confine write --sandbox-tools' \
    '--on x/y --root .' '--on x/y --deny x' '--on x/y --sandbox-tools' \
    '--on x/y --confine none' '--on x/y --work-dir .' '--on=' \
    '--on x/y --net off' '--on x/y --max-cpu 1' \
    '--sandbox-tools --max-memory 1G' \
    '--on x/y --image y' '--on x/y --checkpoints on' \
    '--root . --checkpoints yes' '--root . --checkpoints=' \
    '--journal-size 5' '--tools ,'; do
    # shellcheck disable=SC2086
    "$hfsb" mcp $words < /dev/null > .out 2> .err
    same "mcp $words" $? 2
    has "mcp $words" "$(cat .err)" 'Try: hfsb mcp --help'
    same "mcp $words: stdout" "$(cat .out)" ''
done
for words in '--net nowhere' '--allow-write nowhere' '--root nowhere' \
    '--root . --root nowhere' '--work-dir nowhere' '--tools bash,nonsense' \
    '--journal nowhere/j'; do
    # shellcheck disable=SC2086
    "$hfsb" mcp $words < /dev/null > .out 2> .err
    same "mcp $words" $? 1
    has "mcp $words" "$(cat .err)" "hfsb: "
    has "mcp $words" "$(cat .err)" "${words##*[ ,]}"
    same "mcp $words: stdout" "$(cat .out)" ''
done

# ---- a whole session through a pipe
printf 'one\ntwo\n' > f
{
    echo "$hello"
    echo "$list"
    call 2 bash '{"command":"echo out; echo err >&2; pwd"}'
    call 3 read '{"path":"f"}'
    call '"a"' nonsense '{}'
} > .in
piped
same 'pipe: exit status' $status 0
same 'pipe: stderr' "$(news)" ''
same 'pipe: lines' "$(grep -c . .out)" 5
same 'pipe: not messages' "$(not_messages)" 0
same 'pipe: version' "$(of 0 'r["protocolVersion"]')" 2025-06-18
same 'pipe: bash' "$(of 2 't')" "out
$(pwd -P)
err"
same 'pipe: read' "$(of 3 't')" "$(printf '1\tone\n2\ttwo')"
same 'pipe: no such tool' "$(of '"a"' 'x["error"]["code"]')" -32602
names=$(of 1 '" ".join(d["name"] for d in r["tools"])')
for tool in bash bash_output bash_input kill read write edit multi_edit \
    apply_patch plan_tool glob grep list; do
    has tools " $names " " $tool "
done
for tool in exists sandbox_create hf_jobs; do
    hasnt tools " $names " " $tool "
done
"$hfsb" mcp < .in > .out 2> .err # from a file: its end ends what runs
same 'file: exit status' $? 0
same 'file: not messages' "$(not_messages)" 0
same 'file: version' "$(of 0 'r["protocolVersion"]')" 2025-06-18
"$hfsb" mcp < /dev/null > .out 2> .err
same 'no input: exit status' $? 0
same 'no input: stdout and stderr' "$(cat .out; news)" ''
"$hfsb" mcp <&- > .out 2> .err
same 'closed input: exit status' $? 0
"$hfsb" mcp < .in >&- 2> .err
same 'closed output: exit status' $? 0

# ---- which tools
{
    echo "$hello"
    echo "$list"
    call 2 bash '{"command":"touch made"}'
    call 3 write '{"path":"made","content":"x"}'
    call 4 read '{"path":"f"}'
} > .in
piped --read-only
names=$(of 1 '" ".join(d["name"] for d in r["tools"])')
for tool in bash write edit multi_edit apply_patch kill; do
    hasnt 'read-only' " $names " " $tool "
done
for tool in read glob grep list; do
    has 'read-only' " $names " " $tool "
done
same 'read-only: bash' "$(of 2 'x["error"]["code"]')" -32602
same 'read-only: write' "$(of 3 'x["error"]["code"]')" -32602
same 'read-only: nothing happened' "$(cat made 2>/dev/null && echo made)" ''
same 'read-only: read' "$(of 4 't')" "$(printf '1\tone\n2\ttwo')"
piped --tools read,bash
same 'tools' "$(of 1 'sorted(d["name"] for d in r["tools"])')" "['bash', 'read']"
same 'tools: another' "$(of 3 'x["error"]["code"]')" -32602
same 'tools: bash' "$(ls made)" made
piped --tools small,edit_lines
same 'tools: a set' "$(of 1 '" ".join(d["name"] for d in r["tools"])')" \
    'bash bash_output kill read write edit edit_lines'
has 'tools: the tag' "$(of 4 't')" '[tag '

# ---- checkpoints: the agent changes, a person takes back
mkdir -p kept
echo one > kept/f
{
    echo "$hello"
    echo "$list"
    call 2 bash '{"command":"echo two > f; echo new > g"}'
} > .in
piped --root kept
has 'checkpoints: offered' "$(of 1 '[d["name"] for d in r["tools"]]')" "'undo'"
out=$(cd kept && "$hfsb" changes)
has 'changes' "$out" '1 changed, 1 created, 0 deleted'
has 'changes: the diff' "$out" '+two'
has 'checkpoints' "$("$hfsb" checkpoints --root kept)" 'bash echo two > f'
out=$("$hfsb" undo --root kept)
same 'undo' $? 0
has 'undo: what it took back' "$out" 'Took back "bash echo two > f; echo new > g", restored checkpoint 1:'
has 'undo: how to take it back' "$out" 'To take this back: hfsb undo 2.'
same 'undo: nothing is left' "$("$hfsb" undo --root kept 2>&1)" \
    'Nothing to undo: no tool or command has changed files before checkpoint 1, the present one. `hfsb checkpoints` lists all.'
same 'undo: the files' "$(cat kept/f; ls kept)" "$(printf 'one\nf')"
echo theirs > kept/f
"$hfsb" undo --root kept 2 > .out 2> .err
same 'undo: a conflict' $? 1
has 'undo: names it' "$(cat .err)" 'has changed since then'
has 'undo: names options' "$(cat .err)" 'repeat it with --force; restore other files alone with --path.'
"$hfsb" undo --root kept --force 2 > .out
same 'undo: by force' "$(cat kept/f)" two
piped --root kept --checkpoints off
same 'checkpoints off' "$(of 1 '[d["name"] for d in r["tools"]].count("undo")')" 0
piped --checkpoints on
same 'checkpoints without a root' "$status" 2
piped --root kept --checkpoints ./elsewhere
same 'checkpoints: a folder' "$(ls elsewhere/*/state | grep -c state)" 1
piped --root kept --checkpoints kept/store --confine none
has 'checkpoints in the root' "$err" "hfsb: commands can delete the checkpoints, which lie where they may write: $(pwd -P)/kept/store/"
rm -rf kept elsewhere

# ---- a root
mkdir -p root/sub
echo inside > root/sub/g
{
    echo "$hello"
    call 1 read '{"path":"sub/g"}'
    call 2 read "{\"path\":\"$(pwd -P)/f\"}"
    call 3 read '{"path":"../f"}'
    call 4 bash '{"command":"pwd"}'
    call 5 write '{"path":"new","content":"x"}'
} > .in
piped --root root
same 'root: inside' "$(of 1 't')" "$(printf '1\tinside')"
same 'root: outside' "$(of 2 'r["isError"]')" True
same 'root: above' "$(of 3 'r["isError"]')" True
same 'root: commands begin there' "$(of 4 't')" "$(pwd -P)/root"
same 'root: written' "$(cat root/new)" x
piped --root root/sub --root root --deny new
same 'roots: relative to the first' "$(of 1 'r["isError"]')" True
same 'roots: in neither' "$(of 2 '"outside the roots" in t')" True
same 'roots: commands begin in the first' "$(of 4 't')" "$(pwd -P)/root/sub"
same 'deny: write' "$(of 5 't')" 'ERROR: Path is on the deny list: new'
"$hfsb" mcp --log --root root/sub --root root < /dev/null > .out 2> .err
has 'roots: all are named' "$(cat .err)" 'files beneath root/sub, root'
piped --root root --work-dir root/sub
same 'work-dir in a root: bash' "$(of 4 't')" "$(pwd -P)/root/sub"
"$hfsb" mcp --root root --work-dir . < /dev/null > .out 2> .err
same 'work-dir outside of the root: status' $? 1
has 'work-dir outside of the root' "$(cat .err)" 'Path is outside the root'
piped --work-dir root/sub
same 'work-dir: read' "$(of 3 'r["isError"]')" True
same 'work-dir: bash' "$(of 4 't')" "$(pwd -P)/root/sub"
same 'work-dir: written' "$(cat root/sub/new)" x

# ---- a line of the log for each call
{
    echo "$hello"
    call 1 bash '{"command":"echo a\nexit 3 # HF_TOKEN=hf_0123456789abcdefghij"}'
    call 2 write '{"path":"logged","content":"x"}'
    call 3 no_such '{}'
} > .in
piped --log --root root
same 'log: command and exit code' \
    "$(sed -n 's/, [0-9]* ms$//; /^hfsb: bash/p' .err)" \
    'hfsb: bash: echo a exit 3 # HF_TOKEN=***: exit code 3'
same 'log: file' "$(sed -n 's/, [0-9]* ms$//; /^hfsb: write/p' .err)" \
    'hfsb: write: logged: ok'
same 'log: unknown tool' "$(grep -c '^hfsb: no_such: failed, ' .err)" 1
piped --root root
same 'no log' "$(grep -c '^hfsb: \(bash\|write\|no_such\)' .err)" 0

# ---- commands do not reach the messages
{
    echo "$hello"
    call 1 bash '{"command":"cat; echo end"}'
    call 2 bash '{"command":"echo noise; echo noise >&2; echo noise > /dev/tty; echo noise > /dev/stdout; echo noise > /proc/$PPID/fd/1"}'
    call 3 bash '{"command":"for i in 3 4 5 6 7 8 9; do echo noise >&$i; done; ls /proc/self/fd"}'
    call 4 bash '{"command":"python3 -c \"import sys; print(repr(sys.stdin.read()))\""}'
} > .in
piped
same 'noise: lines' "$(grep -c . .out)" 5
same 'noise: not messages' "$(not_messages)" 0
same 'noise: stdin is empty' "$(of 1 't')" end
same 'noise: stdin is empty for python' "$(of 4 't')" "''"
same 'noise: no descriptor of ours' "$(of 3 '[w for w in t.split() if w.isdigit() and int(w) > 3]')" '[]'

# ---- patience
begin --patience 2 # the time to print that
say "$(call 1 bash '{"command":"echo begun; sleep 4; echo ended"}')"
answered 1
same 'patience: begun' "$(of 1 '"begun" in t and "ended" not in t')" True
job=$(of 1 '__import__("re").search(r"job ([\w.-]+\w)", t).group(1)')
say "$(call 2 bash_output "{\"id\":\"$job\",\"wait_ms\":5000}")"
answered 2
say "$(call 3 bash_output "{\"id\":\"$job\",\"wait_ms\":5000}")"
answered 3
finish
same 'patience: exit status' $status 0
same 'patience: not messages' "$(not_messages)" 0

# ---- max-result
begin --max-result 5000
say "$(call 1 bash '{"command":"seq 9000; exit 3"}')"
answered 1
same 'max-result: length' "$(of 1 '2000 < len(t) < 5000')" True
same 'max-result: the file holds all' "$(of 1 'open(t.split()[-1][:-1]).read().split()[-1]')" 9000
finish
same 'max-result: exit status' $status 0

# ---- confinement, where the kernel has it
outside=$(mktemp -d /var/tmp/hfsb-XXXXXX) || exit 1
printf 'secret\n' > "$outside/f"
{
    echo "$hello"
    call 2 bash "{\"command\":\"echo x > '$outside/f'\"}"
    call 3 bash "{\"command\":\"echo x > inside && cat inside '$outside/f'\"}"
    call 4 bash '{"command":"echo ${HF_TOKEN:-hidden}"}'
} > .in
confined() { # WORDS...: a session with these options; the state of the file
    # shellcheck disable=SC2086
    HF_TOKEN=hf_x TMPDIR=$PWD "$hfsb" mcp "$@" < .in > .out 2> .err
    cat "$outside/f"
}
if [ "$("$hfsb" bash --confine write true 2>&1)" ]; then
    echo "skipped: no confinement here"
else
    same 'confined: the file' "$(confined)" secret
    has 'confined' "$(cat .err)" 'hfsb: commands are confined (write): '
    has 'confined' "$(of 0 'r["instructions"]')" 'Commands are confined'
    has 'confined' "$(of 2 't')" 'A person can allow more: --allow-write DIR'
    same 'confined: reads' "$(of 3 't')" 'x
secret'
    same 'confined: variable' "$(of 4 't')" hf_x
    same 'strict: the file' "$(confined --confine strict)" secret
    has 'strict' "$(cat .err)" 'hfsb: commands are confined (strict): '
    hasnt 'strict: reads' "$(of 3 't')" secret
    same 'strict: variable' "$(of 4 't')" hidden
    same 'allowed: the file' "$(confined --allow-write "$outside")" x
    printf 'secret\n' > "$outside/f"
    same 'not confined: the file' "$(confined --confine none)" x
    same 'not confined: stderr' "$(cat .err)" ''
fi
rm -rf "$outside" inside

# ---- the journal
begin --journal "$aside/journal"
say "$(call 1 bash '{"command":"exit 3"}')"
answered 1
finish
same 'journal: exit status' $status 0
has journal "$(cat "$aside/journal")" '"tool":"bash","state":"done","command":"exit 3",'
same 'journal: lines' "$(grep -c . "$aside/journal")" 2

# ---- the end, with nothing left running; the marks are in the command lines
mark=7$$
busy="sleep 1000.$mark & (trap '' TERM; sleep 1001.$mark; sleep 1002.$mark) & setsid sleep 1003.$mark & exec sleep 1004.$mark"
daemon="(setsid env -i sleep 1005.$mark > /dev/null 2>&1 &)"
least=9999 # milliseconds that an end took; others use the machine, too
left() { # WHAT: how it ended
    same "$1: exit status" $status 0
    below "$1: milliseconds" $took 25000
    [ $took -ge $least ] || least=$took
    same "$1: nothing is left" "$(running "100[0-9][.]$mark")" 0
    same "$1: not messages" "$(not_messages)" 0
    same "$1: stderr" "$(news)" ''
}
there() { # N: so many of the marked processes
    until_true sh -c "[ \$(grep -l -a -e '^sleep.100[0-9][.]$mark' /proc/[0-9]*/cmdline 2>/dev/null | grep -c .) -ge $1 ]"
}
begin_busy() { # WHAT
    begin
    say "$(call 1 bash "{\"command\":\"$busy\"}")"
    say "$(call 2 bash "{\"command\":\"sleep 1006.$mark\",\"background\":true}")"
    say "$(call 3 bash "{\"command\":\"$daemon\"}")"
    answered 2
    answered 3
    there 6
    same "$1: all run" "$(running "100[0-9][.]$mark" | sed 's/^[6-9]$/yes/')" yes
}
for how in EOF TERM HUP ${default:+INT}; do
    begin_busy "$how"
    if [ "$how" = EOF ]; then
        finish
    else
        began=$(now_ms)
        kill -"$how" "$server"
        gone
    fi
    left "$how"
done
tries=0 # each was slow on a busy machine
while [ $least -ge 1000 ] && [ $tries -lt 10 ]; do
    tries=$((tries + 1))
    begin_busy "again, $tries"
    finish
    left "again, $tries"
done
below 'the quickest end: milliseconds' $least 1000
# ... also when the parent or the child process is killed
child_of() { # PID
    grep -l "^PPid:[[:space:]]*$1\$" /proc/[0-9]*/status 2>/dev/null |
        tr -cd '0-9\n'
}
none_left() { [ "$(running "100[0-9][.]$mark")" = 0 ]; }
for whom in parent child; do
    begin_busy "killed, $whom"
    victim=$server
    [ $whom = parent ] || victim=$(child_of "$server")
    began=$(now_ms)
    kill -KILL "$victim"
    gone
    same "killed, $whom: exit status" $status 137
    until_true none_left
    same "killed, $whom: nothing is left" "$(running "100[0-9][.]$mark")" 0
    exec 8>&-
done
# ... also while a thread has much to do
i=0
while [ $i -lt 2000 ]; do
    echo 'some words, and more'
    i=$((i + 1))
done > huge.txt
if truncate -s 200G huge.txt 2>/dev/null; then
    begin
    say "$(call 1 bash "{\"command\":\"(setsid env -i sh -c 'trap : TERM; sleep 1007.$mark' > /dev/null 2>&1 &)\"}")"
    answered 1
    there 1
    for id in 2 3 4; do
        say "$(call $id grep '{"pattern":"none","path":"huge.txt"}')"
    done
    sleep 0.3
    finish
    left 'a search'
fi
rm -f huge.txt
# ... or while a slow python3, not one of the project's, checks a written file
cat > "$aside/python3" << EOF
#!/bin/sh
trap '' TERM
sleep 1008.$mark
EOF
chmod +x "$aside/python3"
path=$PATH PATH=$aside:$PATH
begin
say "$(call 1 write '{"path":"n.py","content":"import os\n"}')"
there 1
same 'a check: it runs' "$(running "100[0-9][.]$mark" | sed 's/^[1-9]$/yes/')" yes
finish
left 'a check'
PATH=$path
# quick answers are not lost by the end
{
    echo "$hello"
    call 1 bash '{"command":"echo quick"}'
} > .in
began=$(now_ms)
"$hfsb" mcp < .in > .out 2> .err
took=$(($(now_ms) - began))
below 'end after a call: milliseconds' $took 25000

# ---- --on: a server at a URL that goes on afterwards, and a pipe
mkdir there pipes
"$static" --host 127.0.0.1 --port 0 --work-dir "$top/there" --confine none \
    --no-auth > server.out 2> server.err &
pids="$pids $!"
until_true grep -q 'http://127' server.out server.err
url=$(cat server.out server.err | sed -n 's|.*\(http://127[.0-9]*:[0-9]*\).*|\1|p' | head -n 1)
HFSB_PIPE_DIR=$top/pipes HFSB_LINGER=2
export HFSB_PIPE_DIR HFSB_LINGER
pipe="exec:cd $top/there && exec $static --stdio"
far_running() { # N: so many of the marked processes run there
    [ "$(running "200[0-9][.]$mark")" = "$1" ]
}
for on in "$url" "$pipe"; do
    kind=${on%%:*}
    rm -rf "$top/there/"*
    printf 'one\ntwo\n' > there/old
    begin --on "$on"
    say "$list"
    say "$(call 2 bash '{"command":"pwd; echo made > made_there"}')"
    say "$(call 3 write '{"path":"g","content":"one\ntwo\n"}')"
    answered 3
    say "$(call 4 edit '{"path":"g","old_str":"two","new_str":"2"}')"
    say "$(call 5 edit '{"path":"old","old_str":"two","new_str":"2"}')"
    say "$(call 6 bash '{"command":"exit 3"}')"
    say "$(call 7 plan_tool '{"todos":[{"id":"1","content":"a","status":"pending"}]}')"
    for id in 1 2 4 5 6 7; do answered $id; done
    names=" $(of 1 '" ".join(d["name"] for d in r["tools"])') "
    for tool in bash bash_output kill read write edit grep plan_tool; do
        has "on $kind: tools" "$names" " $tool "
    done
    same "on $kind: not sandbox_create" "${names#* sandbox_create }" "$names"
    has "on $kind: instructions" "$(of 0 'r["instructions"]')" 'another machine'
    same "on $kind: bash" "$(of 2 't')" "$top/there"
    same "on $kind: it was there" "$(cat there/made_there)" made
    same "on $kind: write, edit" "$(cat there/g)" "$(printf 'one\n2')"
    same "on $kind: edit of what was not read" "$(of 5 'r["isError"]')" True
    same "on $kind: it is as before" "$(cat there/old)" "$(printf 'one\ntwo')"
    has "on $kind: exit code" "$(of 6 't')" 'Exit code 3'
    same "on $kind: plan" "$(of 7 'r.get("isError", False)')" False
    say "$(call 8 read '{"path":"old"}')"
    answered 8
    # others change it
    printf 'one\nthree\n' > there/old
    say "$(call 9 write '{"path":"old","content":"x\n"}')"
    answered 9
    same "on $kind: a file that others changed" "$(of 9 'r["isError"]')" True
    same "on $kind: it is theirs" "$(cat there/old)" "$(printf 'one\nthree')"
    # progress while it runs; a cancel kills it there
    say '{"jsonrpc":"2.0","id":20,"method":"tools/call","params":{"name":"bash","arguments":{"command":"echo so far; sleep 2001.'$mark'"},"_meta":{"progressToken":"p"}}}'
    until_true grep -q 'progressToken":"p".*so far' .out
    has "on $kind: progress" "$(grep progressToken .out)" 'so far'
    same "on $kind: it runs" "$(far_running 0 || echo yes)" yes
    say '{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":20}}'
    until_true far_running 0
    same "on $kind: cancelled" "$(running "200[0-9][.]$mark")" 0
    # the end, with a command under way and one in the background
    say "$(call 21 bash "{\"command\":\"sleep 2002.$mark\"}")"
    say "$(call 22 bash "{\"command\":\"sleep 2003.$mark\",\"background\":true}")"
    answered 22
    until_true sh -c "[ \$(grep -l -a -e '^sleep.200[0-9][.]$mark' /proc/[0-9]*/cmdline 2>/dev/null | grep -c .) -ge 2 ]"
    same "on $kind: both run" "$(running "^sleep.200[0-9][.]$mark")" 2
    finish
    same "on $kind, EOF: exit status" $status 0
    until_true far_running 0
    same "on $kind, EOF: nothing is left" "$(running "200[0-9][.]$mark")" 0
    same "on $kind: not messages" "$(not_messages)" 0
    same "on $kind: stderr" "$(cat .err)" ''
done
# what finished commands left runs on, except at the other end of a pipe
begin --on "$pipe"
say "$(call 1 bash "{\"command\":\"(setsid sleep 2004.$mark > /dev/null 2>&1 &)\"}")"
answered 1
until_true sh -c "grep -q -a -e '^sleep.2004[.]$mark' /proc/[0-9]*/cmdline 2>/dev/null"
same 'on exec: a daemon' "$(running "^sleep.2004[.]$mark")" 1
began=$(now_ms)
kill -TERM "$server"
gone
same 'on exec, TERM: exit status' $status 0
exec 8>&-
until_true far_running 0
same 'on exec, TERM: nothing is left' "$(running "200[0-9][.]$mark")" 0
no_server() { [ "$(running "$static.[-]-stdio")" = 0 ]; }
until_true no_server
same 'on exec: no server is left' "$(running "$static.[-]-stdio")" 0
# ... also when the process that serves is killed
begin --on "$pipe"
say "$(call 1 bash "{\"command\":\"sleep 2005.$mark\",\"background\":true}")"
answered 1
kill -KILL "$(child_of "$server")"
began=$(now_ms)
gone
exec 8>&-
until_true far_running 0
same 'on exec, killed: nothing is left' "$(running "200[0-9][.]$mark")" 0
# nobody there: on stderr, and for each call; then it comes back
begin --on "exec:[ -e $top/up ] || { echo no way there >&2; exit 1; }; exec $static --stdio"
until_true grep -q 'no way there' .err
has 'on, unreachable: stderr' "$(cat .err)" 'no way there'
say "$(call 1 bash '{"command":"true"}')"
answered 1
same 'on, unreachable: an error' "$(of 1 'r["isError"]')" True
has 'on, unreachable' "$(of 1 't')" 'no way there'
: > up
say "$(call 2 bash '{"command":"echo back"}')"
answered 2
same 'on: the next call tries again' "$(of 2 't')" back
finish
same 'on, unreachable, EOF: exit status' $status 0
# an end while it connects
begin --on "exec:exec sleep 2006.$mark"
say "$(call 1 bash '{"command":"true"}')"
until_true far_running 1
finish
same 'on, connecting, EOF: exit status' $status 0
below 'on, connecting, EOF: milliseconds' $took 25000
until_true far_running 0
same 'on, connecting: nothing is left' "$(running "200[0-9][.]$mark")" 0
"$hfsb" mcp --on nobody < /dev/null > .out 2> .err
same 'on: no such name' $? 1
has 'on: no such name' "$(cat .err)" 'No sandbox called nobody'
HFSB_SANDBOX=$url "$hfsb" mcp < /dev/null > .out 2> .err
same 'HFSB_SANDBOX: refused' $? 1
has 'HFSB_SANDBOX: refused' "$(cat .err)" "Give --on $url"

# ---- in a sandbox
mkdir -p place "${config%/*}"
"$hfsb" mcp --sandbox-tools < /dev/null > .out 2> .err
same 'sandbox: no token' $? 1
has 'sandbox: no token' "$(cat .err)" 'set HF_TOKEN'
same 'sandbox: no token: stdout' "$(cat .out)" ''
mkfifo keep
"$fake" --mode embed --prompt --work-dir "$top/place" < keep > fake.out \
    2> fake.err &
pids="$pids $!"
exec 9> keep
until_true test -s fake.out
read -r HF_ENDPOINT HFSB_SPACE_URL < fake.out
HF_TOKEN=hf_goodtoken
export HF_ENDPOINT HFSB_SPACE_URL HF_TOKEN

hub() { # METHOD PATH [BODY]: the fake Hub's own door
    "$python" -ISc 'import socket, sys
at, method, path, body = sys.argv[1:]
s = socket.create_connection(at.rsplit("/", 1)[1].split(":"))
s.sendall(("%s /_fake/%s HTTP/1.0\r\nHost: 127.0.0.1\r\nContent-Type: "
    "application/json\r\nContent-Length: %d\r\n\r\n%s" % (method, path,
    len(body), body)).encode())
print(s.makefile("rb").read().split(b"\r\n\r\n", 1)[1].decode())' \
        "$HF_ENDPOINT" "$1" "$2" "${3-}"
}
spaces() { value "$(hub GET spaces)" 'len(x)'; }
spaces_are() { [ "$(spaces)" = "$1" ]; }

begin --sandbox-tools
until_true spaces_are 1
same 'sandbox: made at once' "$(spaces)" 1
say "$list"
say "$(call 2 bash '{"command":"pwd; echo x > made_there"}')"
say "$(call 3 write '{"path":"g","content":"one\ntwo\n"}')"
answered 3
say "$(call 4 edit '{"path":"g","old_str":"two","new_str":"2"}')"
answered 4
say "$(call 5 read '{"path":"g"}')"
say "$(call 6 plan_tool '{"todos":[{"id":"1","content":"a","status":"pending"}]}')"
say "$(call 7 bash '{"command":"sleep 30","background":true}')"
say "$(call 8 bash '{"command":"exit 3"}')"
say "$(call 11 grep '{"pattern":"^o.e"}')"
say "$(call 12 glob '{"pattern":"*"}')"
for id in 1 2 5 6 7 8 11 12; do answered $id; done
names=$(of 1 '" ".join(d["name"] for d in r["tools"])')
for tool in bash read write edit grep plan_tool sandbox_create hf_jobs; do
    has 'sandbox: tools' " $names " " $tool "
done
same 'sandbox: bash' "$(of 2 't')" "$top/place"
same 'sandbox: it was there' "$(cat place/made_there)" x
same 'sandbox: edit' "$(of 4 'r["isError"] if "isError" in r else False')" False
same 'sandbox: read' "$(of 5 't')" "$(printf '1\tone\n2\t2')"
same 'sandbox: it is there' "$(cat place/g)" "$(printf 'one\n2')"
same 'sandbox: a plan' "$(of 6 'r.get("isError", False)')" False
has 'sandbox: grep' "$(of 11 't')" one
has 'sandbox: glob' "$(of 12 't')" made_there
has 'sandbox: background' "$(of 7 't')" 'background'
has 'sandbox: exit status' "$(of 8 't')" 'Exit code 3'
# other hardware: the first one goes
say "$(call 9 sandbox_create '{"hardware":"cpu-upgrade"}')"
answered 9
has 'sandbox_create' "$(of 9 't')" 'cpu-upgrade'
until_true spaces_are 1
same 'sandbox_create: one Space' "$(spaces)" 1
say "$(call 10 bash '{"command":"echo again"}')"
answered 10
same 'sandbox_create: used' "$(of 10 't')" again
same 'sandbox: stderr' "$(cat .err)" ''
finish
same 'sandbox, EOF: exit status' $status 0
below 'sandbox, EOF: milliseconds' $took 25000
until_true spaces_are 0
same 'sandbox, EOF: no Space is left' "$(spaces)" 0
same 'sandbox: not messages' "$(not_messages)" 0

for how in TERM HUP KILL ${default:+INT}; do
    begin --sandbox-tools
    say "$(call 1 bash '{"command":"echo ready"}')"
    answered 1
    same "sandbox, $how: ready" "$(of 1 't')" ready
    say "$(call 2 bash "{\"command\":\"sleep 900\"}")"
    began=$(now_ms)
    kill -"$how" "$server"
    gone
    case $how in
    KILL) same "sandbox, $how: exit status" $status 137 ;;
    *) same "sandbox, $how: exit status" $status 0 ;;
    esac
    below "sandbox, $how: milliseconds" $took 25000
    until_true spaces_are 0 # the input is open yet
    same "sandbox, $how: no Space is left" "$(spaces)" 0
    exec 8>&-
done

# the host does not wait for the Hub: two tries to delete fail, the third is
# three seconds later
for _ in 1 2 3 4 5 6 7 8 9 10; do # a busy machine adds to each
    hub POST fault '{"method":"DELETE","path":"/api/repos/delete","times":2,"status":500}' > /dev/null
    begin --sandbox-tools
    say "$(call 1 bash '{"command":"echo ready"}')"
    answered 1
    ended=$(now_ms)
    finish
    left=$(spaces)
    ended=$(($(now_ms) - ended))
    [ $took -ge 2500 ] || break
    until_true spaces_are 0
    hub DELETE fault > /dev/null
done
below 'slow delete: milliseconds' $took 2500
# a machine that took all of the three seconds for this shows nothing
[ $ended -ge 2500 ] || same 'slow delete: it is there yet' "$left" 1
until_true spaces_are 0
same 'slow delete: no Space is left' "$(spaces)" 0
hub DELETE fault > /dev/null

# a host shows stderr as a failure: what is tried again is no news for it
hub POST fault '{"path":"/api/jobs/alice","times":1,"status":500}' > /dev/null
begin --sandbox-tools
say "$(call 1 hf_jobs '{"operation":"ps"}')"
answered 1
same 'tried again' "$(of 1 't')" 'There are no jobs.'
finish
same 'tried again: stderr' "$(cat .err)" ''
until_true spaces_are 0

# a job instead of a Space
jobs_are() { [ "$(value "$(hub GET jobs)" 'len(x)')" = "$1" ]; }
begin --sandbox-tools --image python:3.12 --server "$static"
say "$(call 1 bash '{"command":"pwd"}')"
answered 1
same 'image: bash' "$(of 1 't')" "$top/place"
same 'image: no Space' "$(spaces)" 0
say "$(call 2 sandbox_create '{"hardware":"t4-small"}')"
answered 2
has 'image: sandbox_create' "$(of 2 't')" 'on t4-small'
until_true jobs_are 1
finish
same 'image, EOF: exit status' $status 0
until_true jobs_are 0
same 'image, EOF: no job is left' "$(hub GET jobs)" '[]'

# an end while it is being made; and patience while it starts
hub POST stages '{"stages":"BUILDING"}' > /dev/null
begin --sandbox-tools --patience 0.3
until_true spaces_are 1
say "$(call 1 bash '{"command":"echo early"}')"
answered 1
same 'starting: an error' "$(of 1 'r["isError"]')" True
has 'starting' "$(of 1 't')" 'still starting'
say "$(call 2 sandbox_create '{"hardware":"cpu-upgrade"}')"
answered 2
has 'starting: sandbox_create' "$(of 2 't')" 'still being made'
finish
same 'starting, EOF: exit status' $status 0
below 'starting, EOF: milliseconds' $took 25000
until_true spaces_are 0
same 'starting, EOF: no Space is left' "$(spaces)" 0
hub POST stages '{"stages":"RUNNING"}' > /dev/null

# what is configured
printf '{"tool_runtime":"sandbox"}' > "$config"
{
    echo "$hello"
    call 1 bash '{"command":"pwd"}'
} > .in
piped
same 'configured' "$(of 1 't')" "$top/place"
until_true spaces_are 0
same 'configured: no Space is left' "$(spaces)" 0
"$hfsb" mcp --root . < /dev/null > .out 2> .err
same 'configured, with a root' $? 2
same 'never printed: the token' "$(cat .out .err | grep -c hf_goodtoken)" 0

echo "$checks checks of hfsb mcp, $failed failed"
[ $failed = 0 ]
