#!/bin/sh
# Many sandboxes at once through pipes: the time until all have answered, and
# the memory of all their processes on both sides, which are on this machine.
#   tests/bench/pipes.sh [N]       (200; 20 with BENCH_BRIEF)
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh
n=${1:-200}
[ -z "${BENCH_BRIEF:-}" ] || n=20
[ -x build/hfsb ] || make -s build/hfsb || exit 1
[ -x build/static/hfsb-server ] || make -s static || exit 1
have ps || { echo "skipped: no ps"; exit 0; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM
mkdir "$work/run"
export XDG_DATA_HOME="$work/data" HFSB_PIPE_DIR="$work/run" HFSB_LINGER=5
unset HFSB_SANDBOX
i=0
while [ $i -lt "$n" ]; do i=$((i + 1)); echo "exec:: $i; exec sh"; done \
    > "$work/list"
build/hfsb bash --on exec:sh true || exit 1 # sends the server
now() { date +%s%N; }
ms() { echo $((($(now) - $1) / 1000000)); }

t=$(now)
build/hfsb bash --on exec:sh true
echo "one sandbox, begin to end:        $(ms "$t") ms"
t=$(now)
ok=$(build/hfsb each --jobs "$n" --from "$work/list" -- echo ok | grep -c ok)
echo "$ok of $n at once, begin to end:  $(ms "$t") ms"

# the commands wait until all of them run, so that all are measured together
: > "$work/up"
build/hfsb each --jobs "$n" --from "$work/list" -- \
    "echo x >> $work/up; while [ ! -e $work/go ]; do sleep 0.2; done" &
pid=$!
t=$(now)
while [ "$(wc -l < "$work/up")" -lt "$n" ] && [ "$(ms "$t")" -lt 120000 ]; do
    sleep 0.1
done
echo "$n running:                       $(ms "$t") ms"
pss() { # PATTERN: kB of the processes whose command line matches
    total=0 count=0
    for p in $(ps -eo pid=,args= | grep "$1" | awk '{print $1}'); do
        kb=$(awk '/^Pss:/ {print $2}' "/proc/$p/smaps_rollup" 2> /dev/null)
        [ -n "$kb" ] || continue
        total=$((total + kb)) count=$((count + 1))
    done
    echo "$count processes, $((total / (n > 0 ? n : 1))) kB for each sandbox"
}
echo "memory here (hfsb bash):          $(pss '[e]xe bash --on exec:')"
echo "memory there (hfsb-server):       $(pss "$work/data/hfsb/[h]fsb-server")"
: > "$work/go"
wait $pid
