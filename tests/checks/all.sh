#!/bin/sh
# Every check, each counted as passed, failed or skipped; what `make check`
# and .ci/run run. Ends with
#   N passed, N failed, N skipped
# The whole output of each is in build/checks/NAME.log. Its line says how many
# seconds it took and how many of a processor. Four go on at a time:
# of those that look at the clock, of those that mostly wait for it, and two of
# those that only compute, which get the time that the others leave (nice):
# what calls make, and the rest. Each is the same when it is run by itself, but
# here it fails after 25 minutes.
#   FUZZ_SECONDS=N    seconds for each fuzz target (6)
#   FUZZ_SEED=N       the way it takes (1: the same each time, so that a failure
#                     tells of a change; fuzz.sh by itself takes others)
#   GROWTH_MAX=N      largest input of the growth check, in bytes (512 KiB,
#                     with two doublings, for the time it takes; growth.sh by
#                     itself goes to 16 MiB with four)
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

logs=build/checks
mkdir -p "$logs"
rm -f "$logs"/*.log
: > "$logs/results"
all_begin=$(seconds)

show() { # the useful part of a log: the FAIL lines, what tests/run shows
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
    times > "$logs/$name.times"
    # one that hangs must not keep the results of the others
    # shellcheck disable=SC2086
    limited 1500 $gently "$@" > "$logs/$name.log" 2>&1
    rc=$?
    times >> "$logs/$name.times"
    took="$(printf '%4d s, %4d s' $(($(seconds) - begin)) "$(processor)")"
    # in one piece: others print, too
    line=$(describe)
    printf '%s\n' "$line"
}

processor() { # seconds that an item computed, by what `times` said of the
              # children before it and after it
    awk -F '[ms ]+' 'NR % 2 == 0 { last = sum
                                   sum = 60 * ($1 + $3) + $2 + $4 }
                     END { printf "%d", sum - last }' "$logs/$name.times"
}

describe() { # the outcome of an item
    last=$(tail -n 1 "$logs/$name.log")
    case $rc in
    0)
        echo passed >> "$logs/results"
        printf '%-24s passed %s  %s\n' "$name" "$took" "$last"
        grep '^skipped: ' "$logs/$name.log" | sed 's/^/    /' ;;
    77)
        echo skipped >> "$logs/results"
        printf '%-24s %s\n' "$name" "$last" ;;
    *)
        echo failed >> "$logs/results"
        printf '%-24s FAILED %s  exit status %s; from %s:\n' "$name" \
            "$took" "$rc" "$logs/$name.log"
        show "$logs/$name.log" | sed 's/^/    /' ;;
    esac
}

suites() { # WAY...
    for way; do item "suite-$way" sh tests/checks/sanitize.sh "$way"; done
}

# no test of these two has less than seconds for anything

making() {
    gently='nice -n 19'
    item docs sh tests/checks/docs.sh
    item static sh tests/checks/static.sh
    item cross sh tests/checks/cross.sh
    item package sh tests/checks/package.sh
    item bindings sh tests/checks/bindings.sh
}

computing() {
    gently='nice -n 19'
    item symbols sh tests/checks/symbols.sh
    item compile sh tests/checks/compile.sh
    suites no-simd msan s390x aarch64 joined m32 musl
    # the lane of those that wait is the last to end
    gently=
    item faults env FAULTS_BRIEF=1 sh tests/checks/faults.sh
}

waiting() {
    item cli sh tests/checks/cli.sh
    item cli-hub sh tests/checks/cli_hub.sh
    item docs-run sh tests/checks/docs_run.sh
    item cli-mcp sh tests/checks/cli_mcp.sh
    item agent sh tests/checks/agent.sh
    item circle sh tests/checks/circle.sh
    item tls sh tests/checks/tls.sh
    item server sh tests/checks/server.sh
    item client sh tests/checks/client.sh
    item cut sh tests/checks/cut.sh
    item pipes sh tests/checks/pipes.sh
    item agent-sandbox sh tests/checks/agent_sandbox.sh
    item hf-v1 sh tests/checks/hf_v1.sh
    item e2b sh tests/checks/e2b.sh
    item page sh tests/checks/page.sh
    item soak sh tests/checks/soak.sh 20
    item server-limits sh tests/checks/server_limits.sh
    item codex sh tests/checks/codex.sh
    item mcp sh tests/checks/mcp.sh
    item mcpb sh tests/checks/mcpb.sh
    item crash sh tests/checks/crash.sh
    item escapes sh tests/checks/escapes.sh
    item kernel sh tests/checks/kernel.sh
}

timed() {
    item make-test sh tests/checks/fresh.sh
    suites gcc-asan clang-asan tsan portable kqueue valgrind
    # with the modules that valgrind's suite has compiled
    item long-runs env HFSB_TEST_LONG=1 sh tests/checks/sanitize.sh long
    # this lane is the first to end; these only compute
    gently='nice -n 19'
    item growth env "GROWTH_MAX=${GROWTH_MAX:-524288}" GROWTH_DOUBLINGS=2 \
        sh tests/checks/growth.sh
    item fuzz env "FUZZ_SEED=${FUZZ_SEED:-1}" \
        sh tests/checks/fuzz.sh "${FUZZ_SECONDS:-6}"
    item bench env BENCH_BRIEF=1 sh tests/checks/bench.sh
}

gently=
item headers-up-to-date ./amalgamate.sh --check
# once for all: several of the checks use them at the same time
item make sh -c 'make static & static=$!; make CFLAGS=-O1 && wait $static'
computing &
computes=$!
making &
makes=$!
waiting &
waits=$!
# three minutes by the clock
item mcp-long env HFSB_TEST_LONG=1 sh tests/checks/mcp_long.sh &
sleeps=$!
timed &
wait $! $waits $sleeps $computes $makes
for way in $(sh tests/checks/sanitize.sh --list); do
    [ -f "$logs/suite-$way.log" ] || suites "$way" # not listed above
done

count() { grep -c "^$1" "$logs/results"; }
echo
echo "all of it took $(($(seconds) - all_begin)) s"
echo "$(count passed) passed, $(count failed) failed, $(count skipped) skipped"
[ "$(count failed)" = 0 ]
