#!/bin/sh
# Every check, one after the other, each counted as passed, failed or
# skipped; what `make check` and .ci/run run. Ends with
#   N passed, N failed, N skipped
# The whole output of each is in build/checks/NAME.log.
#   FUZZ_SECONDS=N    seconds for each fuzz target (15)
#   GROWTH_MAX=N      largest input of the growth check, in bytes (512 KiB,
#                     with two doublings, for the time it takes; growth.sh by
#                     itself goes to 16 MiB with four)
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

logs=build/checks
mkdir -p "$logs"
passed=0 failed=0 skipped=0 all_begin=$(seconds)

show() { # the part of a log that tells: what follows a FAIL, and the end
    grep -A 8 '^FAIL' "$1" | head -n 60
    echo ...
    tail -n 30 "$1"
}

item() { # NAME COMMAND...
    name=$1
    shift
    printf '%-28s ' "$name"
    begin=$(seconds)
    "$@" > "$logs/$name.log" 2>&1
    rc=$?
    took="$(($(seconds) - begin)) s"
    case $rc in
    0)
        passed=$((passed + 1))
        printf 'passed  %6s  %s\n' "$took" "$(tail -n 1 "$logs/$name.log")"
        grep '^skipped: ' "$logs/$name.log" | sed 's/^/    /' ;;
    77)
        skipped=$((skipped + 1))
        printf '%s\n' "$(tail -n 1 "$logs/$name.log")" ;;
    *)
        failed=$((failed + 1))
        printf 'FAILED  %6s  exit status %s; from %s:\n' "$took" \
            "$rc" "$logs/$name.log"
        show "$logs/$name.log" | sed 's/^/    /' ;;
    esac
}

item headers-up-to-date ./amalgamate.sh --check
item make make
item make-test sh tests/checks/fresh.sh
item cli sh tests/checks/cli.sh
item server sh tests/checks/server.sh
item client sh tests/checks/client.sh
item server-limits sh tests/checks/server_limits.sh
item long-runs env HFSB_TEST_LONG=1 OUT=build/long sh tests/run file_root \
    proc_host_limits tools_output
item faults sh tests/checks/faults.sh
item crash sh tests/checks/crash.sh
item symbols sh tests/checks/symbols.sh
item docs sh tests/checks/docs.sh
item compile sh tests/checks/compile.sh
for way in $(sh tests/checks/sanitize.sh --list); do
    item "suite-$way" sh tests/checks/sanitize.sh "$way"
done
item growth env "GROWTH_MAX=${GROWTH_MAX:-524288}" GROWTH_DOUBLINGS=2 \
    sh tests/checks/growth.sh
item fuzz sh tests/checks/fuzz.sh "${FUZZ_SECONDS:-15}"

echo
echo "all of it took $(($(seconds) - all_begin)) s"
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed = 0 ]
