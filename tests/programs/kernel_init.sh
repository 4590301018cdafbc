#!/bin/sh
# The first process of the machine that tests/checks/kernel.sh starts. Ends
# with "done: KERNEL N checks, N failed".
export PATH=/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts pts /dev/pts
for d in /tmp /dev/shm /run; do mount -t tmpfs tmp $d; done
chmod 1777 /tmp /dev/shm
mount -t cgroup2 none /sys/fs/cgroup
ip link set lo up
cd /
. tests/checks/lib.sh
checks=0 failed=0
cg=/sys/fs/cgroup
nobody='setpriv --reuid=65534 --regid=65534 --clear-groups env HOME=/tmp/w'
mkdir -m 777 /tmp/w
read -r line < /proc/cmdline
check=${line##*check=}
check=${check%% *}

bash() { # COMMAND OPTIONS...: the result as JSON
    command=$1
    shift
    $user hfsb tool bash --work-dir /tmp/w "$@" \
        --args "{\"command\":\"$command\"${with:-}}" 2>&1
}

did() { # WHAT OUTPUT
    same "$1: success" "${out%%,*}" '{"success":true'
    has "$1" "$out" "\"output\":\"$2\""
}

cgroups() { ls -d $cg/hfsb-* $cg/*/hfsb-* $cg/*/*/hfsb-* 2>/dev/null; }
# cgroups of commands: those with processes, and those that are not kept
leaves() {
    find $cg -name cgroup.events \( -path '*/slot-*' -o -path '*/command-*' \) \
        -exec grep -l 'populated 1' {} + | wc -l
}
unkept() { find $cg -type d -name 'command-*' | wc -l; }
count() { pidof "$1" | wc -w; }

# ---- a cgroup for commands: $1 says where
limits() {
    where=$1
    # shellcheck disable=SC2016 # for the command
    own='c=/sys/fs/cgroup$(sed -n s/^0:://p /proc/self/cgroup); c=${c%/*}'
    for level in none write strict; do
        out=$(bash "$own; cat \$c/memory.max \$c/pids.max" --max-memory 50M \
            --max-processes 30 --confine $level)
        did "$where, $level: limits" '52428800\n30\n'
    done
    # each of them is below the limit of a process
    out=$(bash \
        'for i in 1 2 3 4; do escape fill 30000000 & done; wait; exit 5' \
        --max-memory 50M)
    has "$where: memory" "$out" '(commands are limited: the kernel killed'
    has "$where: memory" "$out" 'allow more: --max-memory SIZE)'
    has "$where: memory" "$out" '"error":"Exit code 5"'
    out=$(bash 'head -c 80000000 /dev/zero > /dev/shm/big' --max-memory 50M)
    has "$where: files in memory" "$out" '(commands are limited: the kernel'
    rm -f /dev/shm/big
    out=$(bash 'escape memory 90000000' --max-memory 50M)
    has "$where: one process" "$out" '(commands are limited: memory is used'
    out=$(bash 'escape fill 30000000' --max-memory 50M)
    did "$where: enough memory" ''
    out=$(bash 'escape forks 60 2>&1; test $? = 0' --max-processes 20)
    has "$where: forks" "$out" '(commands are limited: there are too many'
    out=$(bash 'escape forks 10' --max-processes 20)
    did "$where: a few processes" ''
    out=$(bash 'f() { f | f & }; f; sleep 1; echo alive' --max-processes 20)
    has "$where: fork bomb" "$out" '"success":'
    out=$(bash 'escape burn' --max-cpu 1)
    has "$where: CPU" "$out" '(commands are limited: a process used too much'
    same "$where: nothing is left" "$(cgroups)" ''
}

# ---- KILL reaches all that a command started; what it left lives on
kills() {
    where=$1
    shift
    has "$where: a cgroup for each command" \
        "$(bash 'cat /proc/self/cgroup' "$@")" '/slot-0'
    with=',"timeout":1'
    out=$(bash 'env -i escape flee /tmp/w/hops' "$@")
    with=
    has "$where: timeout" "$out" 'Timeout after 1s'
    hops=$(wc -c < /tmp/w/hops)
    sleep 1
    same "$where: nobody fled" "$(wc -c < /tmp/w/hops)" "$hops"
    rm -f /tmp/w/hops
    same "$where: nothing is left" "$(cgroups)" ''
    bash 'setsid sleep 500 > /dev/null 2>&1 &' "$@" > /dev/null
    same "$where: a survivor" "$(count sleep)" 1
    same "$where: its cgroup" "$(leaves)" 1
    bash true "$@" > /dev/null
    same "$where: the survivor lives on" "$(count sleep) $(leaves)" '1 1'
    kill "$(pidof sleep)"
    bash true "$@" > /dev/null
    same "$where: the survivor's cgroup is gone" "$(cgroups)" ''
}

# ---- a storm: many commands with many processes, killed at once
storm() {
    # shellcheck disable=SC2016 # for the command
    many='for i in $(seq 15); do setsid env -i /bin/sleep 400 & done; wait'
    serve
    i=0
    while [ $i -lt 10 ]; do # two more than there are slots
        call "$many" > /dev/null 2>&1 &
        i=$((i + 1))
    done
    i=0
    until [ "$(count sleep)" -ge 150 ] || [ $i = 100 ]; do
        i=$((i + 1))
        usleep 200000
    done
    same 'a storm' "$(count sleep) $(leaves) $(unkept)" '150 10 2'
    wget -q -O - --header 'Content-Type: application/json' --post-data '{}' \
        http://127.0.0.1:7860/api/kill > /dev/null
    same 'after the storm' "$(count sleep)" 0
    call true > /dev/null
    same 'cgroups after the storm' "$(leaves) $(unkept)" '0 0'
    call 'setsid sleep 400 > /dev/null 2>&1 &' > /dev/null
    call true > /dev/null
    same 'a survivor of a server' "$(count sleep) $(leaves)" '1 1'
    has 'a slot with a survivor' "$(call 'cat /proc/self/cgroup')" '/slot-1'
    kill "$(pidof sleep)"
    call true > /dev/null
    has 'a slot again' "$(call 'cat /proc/self/cgroup')" '/slot-0'
    same 'its cgroup is gone' "$(leaves)" 0
    kill $server
    wait $server
    same 'nothing is left after the storm' "$(cgroups)" ''
}

# ---- a server that is killed leaves a cgroup, and the next removes it
call() { # COMMAND
    wget -q -O - --header 'Content-Type: application/json' \
        --post-data "{\"command\":\"$1\"}" http://127.0.0.1:7860/api/bash
}

serve() {
    $user hfsb-server --no-auth --work-dir /tmp/w --max-memory 50M \
        > /tmp/greeting 2>&1 &
    server=$!
    i=0
    until wget -q -O - http://127.0.0.1:7860/healthz > /dev/null 2>&1; do
        i=$((i + 1))
        [ $i -lt 50 ] || break
        sleep 0.2
    done
}

restart() {
    serve
    has 'the greeting' "$(cat /tmp/greeting)" \
        "commands are confined (write): Landlock ABI"
    has 'the greeting' "$(cat /tmp/greeting)" ', cgroup; network on'
    has 'a call' "$(call 'cat /proc/self/cgroup')" '/hfsb-'
    big=/dev/shm/big
    has 'a call over the limit' \
        "$(call "head -c 80000000 /dev/zero > $big; rm $big")" \
        'the kernel killed a process'
    # shellcheck disable=SC2046 # it is two processes
    kill -KILL $(pidof hfsb-server)
    wait $server 2>/dev/null
    left=$(cgroups | wc -l)
    same 'a killed server leaves its cgroup' "$left" 1
    serve
    same 'the next server has its own alone' "$(cgroups | wc -l)" 1
    call 'sleep 1000 > /dev/null 2>&1 &' > /dev/null
    kill $server
    wait $server
    has 'what it left running is gone' "$(pidof sleep || echo none)" none
    serve # removes what the other could not
    kill $server
    wait $server
    same 'a server that is stopped leaves none' "$(cgroups)" ''
}

# ---- cgroups
controllers() {
    echo '+memory +pids' > $cg/cgroup.subtree_control
    mkdir -p $cg/service/main
    chown 65534 $cg/service $cg/service/cgroup.procs \
        $cg/service/cgroup.subtree_control $cg/service/main \
        $cg/service/main/cgroup.procs
}

with_cgroups() {
    user=
    limits 'root, first cgroup'
    kills 'root, first cgroup'
    controllers
    echo $$ > $cg/service/main/cgroup.procs
    user=$nobody
    limits 'nobody, delegated'
    kills 'nobody, delegated'
    restart
    storm
    # what systemd does not mark as delegated is not divided without limits
    mkdir -p /run/systemd/system
    out=$(bash 'cat /proc/self/cgroup')
    did 'not marked' '0::/service/main\n'
    escape mark $cg/service
    has 'marked' "$(bash 'cat /proc/self/cgroup')" '/slot-0'
    rmdir /run/systemd/system
    # as root in a service of systemd that it does not delegate
    user=
    mkdir -p /run/systemd/system
    out=$(bash 'cat /proc/self/cgroup' --max-processes 20)
    did 'not delegated' '0::/service/main\n'
    rmdir /run/systemd/system
    # processes in the delegated cgroup itself
    echo $$ > $cg/cgroup.procs
    rmdir $cg/service/main
    echo -memory -pids > $cg/service/cgroup.subtree_control
    echo $$ > $cg/service/cgroup.procs
    user=$nobody
    for m in '--max-processes 20' '--max-memory 50M'; do
        # shellcheck disable=SC2086
        out=$(bash 'echo ran' --confine write $m)
        did "nobody, not divisible, $m" 'ran\n'
    done
    out=$(bash 'escape forks 60 2>&1; test $? = 0' --max-processes 20)
    has 'forks without a cgroup' "$out" '(commands are limited: there are too'
    # next to a cgroup beneath the first of all, as in some containers
    user=
    mkdir $cg/init
    echo $$ > $cg/init/cgroup.procs
    has 'beneath the first cgroup' \
        "$(bash 'cat /proc/self/cgroup' --max-memory 50M)" '0::/hfsb-'
    echo $$ > $cg/cgroup.procs
    same 'nothing is left' "$(cgroups)" ''
}

# ---- what is said
words() {
    for user in '' "$nobody"; do
        out=$($user hfsb mcp --root /tmp/w < /dev/null 2>&1)
        has 'hfsb mcp' "$out" \
            'hfsb: commands are confined (write): Landlock ABI '
        own=
        [ -n "$user" ] || own=', cgroup' # root in the first one
        has 'hfsb mcp' "$out" ", seccomp, private mounts$own; network on"
    done
    echo 0 > /proc/sys/kernel/unprivileged_userns_clone # of Debian
    out=$($user hfsb mcp --root /tmp/w < /dev/null 2>&1)
    has 'user namespaces for root only' "$out" 'no private mounts (git hooks'
    echo 1 > /proc/sys/kernel/unprivileged_userns_clone
    echo 0 > /proc/sys/user/max_user_namespaces
    user=$nobody
    out=$($user hfsb mcp --root /tmp/w < /dev/null 2>&1)
    has 'without user namespaces' "$out" 'no private mounts (git hooks'
    out=$(bash 'cat /etc/passwd > /dev/null; touch /etc/x' --confine strict)
    has 'strict without user namespaces' "$out" 'Permission denied'
    out=$(bash true --confine write --net loopback)
    has 'loopback without namespaces' "$out" 'the system refuses namespaces'
    echo 1000 > /proc/sys/user/max_user_namespaces
}

without_landlock() {
    for user in '' "$nobody"; do
        out=$($user hfsb-server --confine strict --no-auth 2>&1)
        same 'strict without Landlock: exit code' $? 1
        has 'strict' "$out" 'cannot be confined strictly: this system has no'
        out=$($user hfsb-server --confine write --no-auth 2>&1)
        same 'write without Landlock: exit code' $? 1
        has 'write' "$out" 'cannot be confined: this system has no Landlock'
        out=$($user hfsb mcp --root /tmp/w < /dev/null 2>&1)
        has 'the default' "$out" 'confined (write): no Landlock, seccomp, '
        out=$($user hfsb mcp --confine strict --root /tmp/w < /dev/null 2>&1)
        same 'hfsb mcp: exit code' $? 1
        has 'hfsb mcp' "$out" 'cannot be confined strictly'
    done
}

table() {
    ESCAPE=/bin/escape sh tests/checks/escapes.sh --own > /tmp/table 2>&1
    same 'the table of escapes' $? 0
    cat /tmp/table
}

case $check in
old) without_landlock ;;
cgroups) with_cgroups ;;
*)
    with_cgroups
    words
    table ;;
esac
echo # after what the firmware has printed
echo "done: $(uname -r) $checks checks, $failed failed"
poweroff -f
