#!/bin/sh
# Every check, one after the other, each counted as passed, failed or
# skipped; what `make check` and .ci/run run. Ends with
#   N passed, N failed, N skipped
# The whole output of each is in build/checks/NAME.log.
#   FUZZ_SECONDS=N    seconds for each fuzz target (10)
#   GROWTH_MAX=N      largest input of the growth check, in bytes (512 KiB,
#                     with two doublings, for the time it takes; growth.sh by
#                     itself goes to 16 MiB with four)
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

logs=build/checks
mkdir -p "$logs"
: > "$logs/results"
all_begin=$(seconds)

show() { # the part of a log that tells: the FAIL lines, what tests/run shows
         # of the programs that failed, and the end
    grep -a -A 3 '^FAIL' "$1" | grep -av '^ok ' | head -n 40
    sed -n '/^====/,$p' "$1" | grep -av '^ok ' | head -n 60
    echo ...
    tail -n 20 "$1"
}

item() { # NAME COMMAND...
    name=$1
    shift
    begin=$(seconds)
    "$@" > "$logs/$name.log" 2>&1
    rc=$?
    took="$(($(seconds) - begin)) s"
    last=$(tail -n 1 "$logs/$name.log")
    case $rc in
    0)
        echo passed >> "$logs/results"
        printf '%-28s passed  %6s  %s\n' "$name" "$took" "$last"
        grep '^skipped: ' "$logs/$name.log" | sed 's/^/    /' ;;
    77)
        echo skipped >> "$logs/results"
        printf '%-28s %s\n' "$name" "$last" ;;
    *)
        echo failed >> "$logs/results"
        printf '%-28s FAILED  %6s  exit status %s; from %s:\n' "$name" \
            "$took" "$rc" "$logs/$name.log"
        show "$logs/$name.log" | sed 's/^/    /' ;;
    esac
}

item headers-up-to-date ./amalgamate.sh --check
item make make CFLAGS=-O1
item make-test sh tests/checks/fresh.sh
# these wait most of the time: others compile meanwhile
{
    item cli sh tests/checks/cli.sh
    item cli-hub sh tests/checks/cli_hub.sh
    item agent sh tests/checks/agent.sh
    item circle sh tests/checks/circle.sh
    item tls sh tests/checks/tls.sh
    item server sh tests/checks/server.sh
    item client sh tests/checks/client.sh
    item server-limits sh tests/checks/server_limits.sh
    item faults sh tests/checks/faults.sh
    item crash sh tests/checks/crash.sh
} &
waiting=$!
item symbols sh tests/checks/symbols.sh
item compile sh tests/checks/compile.sh
item docs sh tests/checks/docs.sh
wait $waiting
item long-runs env HFSB_TEST_LONG=1 OUT=build/long sh tests/run file_root \
    proc_host_limits tools_output
for way in $(sh tests/checks/sanitize.sh --list); do
    item "suite-$way" sh tests/checks/sanitize.sh "$way"
done
item growth env "GROWTH_MAX=${GROWTH_MAX:-524288}" GROWTH_DOUBLINGS=2 \
    sh tests/checks/growth.sh
item fuzz sh tests/checks/fuzz.sh "${FUZZ_SECONDS:-10}"

count() { grep -c "^$1" "$logs/results"; }
echo
echo "all of it took $(($(seconds) - all_begin)) s"
echo "$(count passed) passed, $(count failed) failed, $(count skipped) skipped"
[ "$(count failed)" = 0 ]
