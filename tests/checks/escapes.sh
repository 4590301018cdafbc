#!/bin/sh
# Escapes from confined commands: each attempt of a table, for the levels write
# and strict, with older versions of Landlock and without private mounts where
# that is emulated, as this user and as an ordinary one. An attempt is refused
# or not stopped, and the table says which; what is not stopped is listed in
# docs/security.md. tests/programs/escape.c makes the attempts; ESCAPE=FILE is
# that program, already compiled. With -v every row is printed; with --own only
# what this kernel has is tried, not what can be emulated.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

[ "$(uname)" = Linux ] || { echo "skipped: Linux only"; exit 77; }
verbose='' own=''
[ "${1:-}" = -v ] && verbose=1
[ "${1:-}" = --own ] && own=1
top=$(mktemp -d /tmp/hfsb-escapes-XXXXXX) || exit 1
chmod 755 "$top"
pids=
clean() {
    # shellcheck disable=SC2086
    [ -z "$pids" ] || kill $pids 2>/dev/null
    rm -rf "$top"
}
trap clean EXIT
mkdir "$top/bin"
escape=$top/bin/escape
if [ -n "${ESCAPE:-}" ]; then
    cp "$ESCAPE" "$escape" || exit 1
else
    # shellcheck disable=SC2086
    ${CC:-cc} ${CFLAGS:--O1} -w tests/programs/escape.c -o "$escape" \
        -lm -pthread || exit 1
fi
"$escape" text strict "$top" > "$top/text" 2>&1 ||
    { echo "skipped: $(cat "$top/text")"; exit 77; }

good=0 bad=0 open=0 missing=0
abi=$(sed -n 's/.*Landlock ABI \([0-9]*\).*/\1/p' "$top/text")
from_6=refused # what Landlock stops since its version 6
[ "$abi" -ge 6 ] || from_6=open

# ---- the place: $d/root may be written, $d/out not
make_place() { # DIR
    d=$1
    mkdir -p "$d/root/.git/hooks" "$d/root/.vscode" "$d/out/dir" "$d/tmp" \
        "$d/home/.cache" "$d/home/.ssh"
    for f in file victim dir/inner; do echo old > "$d/out/$f"; done
    echo secret > "$d/home/.ssh/id"
    echo mine > "$d/home/.bashrc"
    echo mine > "$d/root/.git/hooks/pre-commit"
    echo mine > "$d/root/.mcp.json"
    echo SECRET=1 > "$d/root/.env"
    cp "$escape" "$d/out/setuid"
    cp "$escape" "$d/root/escape"
    chmod -R a+rX "$d"
}

# run OPTIONS COMMAND: as $user
run() {
    # shellcheck disable=SC2086
    $user env -i PATH="$PATH" HOME="$d/home" TMPDIR="$d/tmp" \
        LANG=C "$escape" run $1 -- "$2"
}

# row NAME LEVEL MORE EXPECTED COMMAND: refused, open (not stopped) or works
# (must be possible). COMMAND fails when it is refused; 77: the system
# does not have it at all.
row() {
    name=$1 level=$2 more=$3 want=$4 command=$5
    run "$level $d/root $more" "$command" > "$top/out" 2>&1
    rc=$?
    case $rc in
    0) got=open ;;
    77) got=missing ;;
    99) got="no confinement: $(cat "$top/out")" ;;
    *) got=refused ;;
    esac
    [ "$want" != works ] || { [ "$got" = open ] && got=works; }
    if [ "$(cat "$d/out/file" 2>&1)" != old ] && [ "$want" = refused ]; then
        got="changed the file outside"
        echo old > "$d/out/file"
    fi
    case $got in
    missing) missing=$((missing + 1)) ;;
    "$want")
        good=$((good + 1))
        [ "$got" != open ] || open=$((open + 1)) ;;
    *)
        bad=$((bad + 1))
        echo "FAIL  $who, $level $more: $name: $got, expected $want"
        sed 's/^/      /' "$top/out" | head -n 5 ;;
    esac
    [ -z "$verbose" ] ||
        printf '%-7s %-7s %-15s %-28s %-8s %s\n' "$who" "$level" "$more" \
            "$name" "$got" "$(head -n 1 "$top/out" | cut -c1-60)"
}

both() { # NAME EXPECTED COMMAND
    row "$1" write '' "$2" "$3"
    row "$1" strict '' "$2" "$3"
}

refuses() { # LEVEL WORDS MORE: is not possible here, and the reason has WORDS
    if run "$1 $d/root $3" true > "$top/out" 2>&1; [ $? = 99 ] &&
        grep -q "$2" "$top/out"; then
        good=$((good + 1))
    else
        bad=$((bad + 1))
        echo "FAIL  $who, $1 $3: not refused: $(cat "$top/out")"
    fi
}

# ---- files
files() {
    o=$d/out
    both 'write by path' refused "echo new > $o/file"
    both 'append' refused "echo new >> $o/file"
    both 'create' refused "touch $o/created"
    both 'create a folder' refused "mkdir $o/made"
    both 'remove' refused "rm -f $o/victim"
    both 'remove a folder' refused "rm -rf $o/dir"
    both 'through a symlink' refused "ln -sf $o/file l && echo new > l"
    both 'through a linked folder' refused "ln -sfn $o ld && echo new > ld/file"
    both 'hard link into the root' refused "ln -f $o/file hard && echo new > hard"
    both 'rename from outside' refused "mv $o/victim stolen"
    both 'rename to outside' refused "echo new > n && mv n $o/file"
    both 'swap names' refused "echo new > n && $x swap $o/file"
    both '/proc/self/root' refused "echo new > /proc/self/root$o/file"
    both '/proc/self/cwd' refused "echo new > /proc/self/cwd/../out/file"
    both 'open descriptor of a folder' refused \
        "cd / && exec 9< . && echo new > /proc/self/fd/9$o/file"
    both 'truncate by name' refused "$x truncate $o/file"
    both 'truncate by open' refused "$x otrunc $o/file"
    both 'chmod' refused "$x chmod $o/file"
    both 'chown' refused "$x chown $o/file"
    both 'times' refused "$x times $o/file"
    both 'extended attributes' refused "$x xattr $o/file"
    both 'open by handle' refused "$x handle $o/file"
    both 'make a block device' refused "$x blockdev $d/root/dev"
    both 'make a FIFO outside' refused "mkfifo $o/fifo"
    both 'bind a socket outside' refused \
        "timeout 2 $x serve $o/planted; test -e $o/planted"
    both 'home start-up file' refused "echo evil >> $d/home/.bashrc"
    both 'home ssh keys' refused "echo evil > $d/home/.ssh/authorized_keys"
    both 'git hook that exists' refused "echo evil > .git/hooks/pre-commit"
    both 'new git hook' refused "echo evil > .git/hooks/post-merge"
    both 'replace the hooks folder' refused "mv .git/hooks h2"
    both 'settings of an agent' refused "echo evil > .mcp.json"
    both 'settings of an editor' refused "echo evil > .vscode/tasks.json"
    both '/etc' refused "echo evil > /etc/hfsb-escape"
    both 'cron' refused "mkdir -p /var/spool/cron && touch /var/spool/cron/x"
    both '/proc/sys' refused \
        "cat /proc/sys/vm/swappiness > n && cat n > /proc/sys/vm/swappiness"
    both '/sys' refused 'echo 1 > /sys/kernel/mm/ksm/run'
    both 'core pattern' refused \
        'cat /proc/sys/kernel/core_pattern > n && cat n > /proc/sys/kernel/core_pattern'
    both 'disk device' refused 'for f in /dev/sda /dev/vda /dev/nvme0n1 /dev/kmsg; do exec 3>> $f && exit 0; done; false'
    both 'cgroup' refused 'mkdir /sys/fs/cgroup/hfsb-escape /sys/fs/cgroup/*/hfsb-escape'
    row 'read outside' write '' open "cat $o/file"
    row 'read outside' strict '' refused "cat $o/file"
    row 'list outside' strict '' refused "ls $o"
    row 'read ssh keys' write '' open "cat $d/home/.ssh/id"
    row 'read ssh keys' strict '' refused "cat $d/home/.ssh/id"
    row 'read .env' write '' open 'grep SECRET .env'
    row 'read .env' strict '' refused 'grep SECRET .env'
    row 'read /etc/shadow' strict '' refused 'grep root /etc/shadow'
    row 'read /proc/1/environ' strict '' refused 'cat /proc/1/environ'
    row 'disk device' strict '' refused 'cat /dev/vda | head -c 1 | grep .'
    row 'run a program from outside' strict '' refused "$o/setuid"
    row 'names and sizes outside' strict '' open "stat $o/file"
    row 'command lines of processes' strict '' open "cat /proc/$server/cmdline"
    both 'planted hook' works "mkdir -p sub/.git/hooks && touch sub/.git/hooks/pre-push"
    both 'git config that runs a program' open "touch .git/config"
}

# ---- processes
processes() {
    both 'signal the server' $from_6 "$x signal $server"
    both 'signal by descriptor' $from_6 "$x pidfdsignal $server"
    both 'signal 0 to the server' $from_6 "kill -0 $server"
    both 'ptrace the server' refused "$x ptrace $server"
    both '/proc/PID/mem' refused "$x mem $server"
    both 'process_vm_readv' refused "$x vmread $server"
    both 'pidfd_getfd' refused "$x pidfdgetfd $server"
    both '/proc/PID/environ' refused "cat /proc/$server/environ"
    both '/proc/PID/root' refused "echo new > /proc/$server/root$d/out/file"
    both '/proc/PID/cwd' refused "ls /proc/$server/cwd/"
    both '/proc/PID/fd' refused "readlink /proc/$server/fd/1"
    both 'join its namespaces' refused "$x setns $server"
    row 'setuid program' write '' refused "$d/out/setuid setuid"
    row 'setuid program' strict "read=$d/out" refused "$d/out/setuid setuid"
    both 'no new privileges, capabilities' refused \
        "grep 'NoNewPrivs:.0' /proc/self/status || grep -E 'CapBnd:.*(ffff|[2-9a-f]....f)' /proc/self/status"
    both 'user namespace' refused "$x userns"
    both 'user namespace by clone3' refused "$x clone3"
    both 'bind mount in a namespace' refused "$x usermount"
    both 'mount' refused "$x mount"
    both 'remount' refused "$x remount"
    both 'unmount' refused "$x umount $d/root/.git/hooks"
    both 'io_uring' refused "$x io_uring"
    both 'bpf' refused "$x bpf"
    both 'performance events' refused "$x perf"
    both 'kernel keys' refused "$x keys"
    both 'load a module' refused "$x module"
    both 'kexec' refused "$x kexec"
    both 'set the clock' refused "$x clock"
    both 'host name' refused "$x hostname"
    both 'userfaultfd' refused "$x userfault"
    both 'i386 system calls' refused "$x int80"
    both 'type into a terminal' refused "$x tiocsti"
    both 'core dumps again' refused "$x corelimit"
    both 'protect itself from OOM' refused "$x oom"
    both 'memfd and execve' open "$x memfd"
    both 'write what memfd may not' refused \
        "$x memfd && sh -c 'echo new > $d/out/file'"
    both 'a child of a child' refused "sh -c \"sh -c 'echo new > $d/out/file'\""
    both 'after setsid' refused \
        "test \"\$(setsid sh -c 'echo new > $d/out/file && echo did')\" = did"
}

# ---- network
network() {
    row 'TCP' write '' open "$x tcp $port"
    for net in off strict; do
        set -- write net=off
        [ $net = off ] || set -- strict ''
        row 'TCP' "$1" "$2" refused "$x tcp $port"
        row 'TCP listen' "$1" "$2" refused "$x bind 0"
        row 'UDP' "$1" "$2" refused "$x udp 53"
        row 'raw socket' "$1" "$2" refused "$x raw"
        row 'packet socket' "$1" "$2" refused "$x packet"
        row 'netlink' "$1" "$2" refused "$x netlink"
        row 'vsock' "$1" "$2" refused "$x vsock"
        row 'kernel crypto socket' "$1" "$2" refused "$x alg"
        row 'MPTCP' "$1" "$2" refused "$x mptcp $port"
        row 'SCTP' "$1" "$2" refused "$x sctp $port"
        row 'fast open' "$1" "$2" refused "$x tfo $port"
    done
    if [ "$abi" -ge 4 ]; then
        row 'TCP to an allowed port' write "net=$port" works "$x tcp $port"
        row 'TCP to another port' write net=1 refused "$x tcp $port"
        row 'MPTCP past the ports' write net=1 refused "$x mptcp $port"
        row 'SCTP past the ports' write net=1 refused "$x sctp $port"
        row 'fast open past the ports' write net=1 refused "$x tfo $port"
        row 'listen on another port' write net=1 refused "$x bind 4000"
        row 'UDP with ports' write net=1 refused "$x udp 53"
        row 'UDP to any port with 53' write net=53 open "$x udp 4000"
    else
        refuses write 'limited to ports' net=443
    fi
    row 'TCP to the host' write net=loopback refused "$x tcp $port"
    row 'loopback of its own' write net=loopback works "$x bind 4000"
    both 'abstract socket of the host' $from_6 "$x unix @$abstract"
    both 'socket file of the host' open "$x unix $d/out/socket"
}

# ---- limits
limits() {
    row 'memory' write mem=100000000 refused "$x memory 300000000"
    row 'huge file' write size=1000000 refused "$x huge $d/root/huge"
    row 'huge file without a limit' write '' open "$x huge $d/root/huge"
    row 'fill the disk in pieces' write size=1000000 open \
        "head -c 900000 /dev/zero > p1 && head -c 900000 /dev/zero > p2 && rm p1 p2"
    row 'CPU' write cpu=1 refused "$x burn"
    run "write $d/root procs=20 text" : > "$top/out"
    s=refused
    [ "$who" != root ] || grep -q cgroup "$top/out" || s=open
    row 'fork bomb' write procs=20 $s "$x forks 40"
}

# ---- older kernels
older() {
    o=$d/out
    for v in 1 2 3 4 5 6; do
        [ $v -le "$abi" ] || continue
        m="abi=$v nomounts"
        row 'write by path' write "$m" refused "echo new > $o/file"
        row 'hard link' write "$m" refused "ln -f $o/file hard"
        row 'rename from outside' write "$m" refused "mv $o/victim stolen"
        row 'read outside' strict "$m" refused "cat $o/file"
        row 'ptrace' write "$m" refused "$x ptrace $server"
        row 'mount' write "$m" refused "$x mount"
        row 'chmod' write "$m" open "$x chmod $o/victim"
        s=refused
        [ $v -ge 3 ] || s=open
        row 'truncate by name' write "$m" $s "$x truncate $o/victim"
        row 'truncate, with mounts' write "abi=$v" refused "$x truncate $o/file"
        s=refused
        [ $v -ge 6 ] || s=open
        row 'signal the server' write "$m" $s "$x signal $server"
        row 'abstract socket' write "$m" $s "$x unix @$abstract"
        row 'TCP without network' write "$m net=off" refused "$x tcp $port"
    done
    row 'git hook, without mounts' write nomounts works \
        'echo evil > .git/hooks/pre-commit'
    [ ! -e "$d/root/.git/hooks/pre-commit" ] || {
        echo "FAIL  $who: the planted hook stayed"
        bad=$((bad + 1))
    }
    refuses write 'no Landlock' nolandlock
    refuses strict 'no Landlock' nolandlock
    row 'write by path, no Landlock' write 'nolandlock try' refused \
        "echo new > $o/file"
}

everything() { # WHO PREFIX...
    who=$1
    shift
    user=$*
    make_place "$top/$who"
    x=$d/root/escape
    [ "$who" != nobody ] || chown -R 65534:65534 "$d"
    [ "$who" = user ] || chown 0:0 "$d/out/setuid"
    chmod 4755 "$d/out/setuid"
    abstract=hfsb-escape-$who-$$
    port=$((20000 + $$ % 10000))
    # the server that must not be reached; it ignores what does reach it
    $user sh -c "trap : USR1; cd $d; while :; do sleep 5; done" &
    server=$!
    $user "$x" serve "@$abstract" > /dev/null &
    s1=$!
    $user "$x" serve "$d/out/socket" > /dev/null &
    s2=$!
    $user "$x" servetcp $port > "$top/tcp" &
    s3=$!
    pids="$server $s1 $s2 $s3"
    i=0
    while [ ! -S "$d/out/socket" ] || ! grep -q ready "$top/tcp"; do
        i=$((i + 1))
        [ $i -lt 600 ] || { echo "FAIL  no servers"; exit 1; }
        sleep 0.1
    done
    files
    processes
    network
    limits
    [ -n "$own" ] || older
    # shellcheck disable=SC2086
    kill $pids 2>/dev/null
    # shellcheck disable=SC2086
    wait $pids 2>/dev/null
    pids=
}

if [ "$(id -u)" = 0 ]; then
    everything root
    if have setpriv; then
        everything nobody setpriv --reuid=65534 --regid=65534 --clear-groups
    else
        echo "skipped: setpriv not found"
    fi
else
    everything user
fi
echo "$good attempts as expected ($open of them not stopped), $bad not," \
    "$missing not possible here; $(sed 's/.*strict): //' "$top/text")"
[ $bad = 0 ]
