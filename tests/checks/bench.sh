#!/bin/sh
# Builds and runs the benchmarks, tests/bench/bench_NAME.c, then measures the
# client, the server and pipes (tests/bench/client.sh, server.sh and pipes.sh;
# their NAMEs are client, server and pipes) and says what the header costs: its size and the time to
# compile it. `make bench`
#   tests/checks/bench.sh [NAME...]
#   BENCH_BRIEF=1     one round each on little data, which shows that all of
#                     them build and run with their peers; what is printed
#                     says nothing of their speed
# Every figure that has a peer is kept in build/bench/results.tsv, of which
# tests/bench/page.py makes docs/bench.md and docs/bench.svg when all of them
# were measured; after a brief run the same in build/bench.
# Other libraries are measured beside it where they are installed (on Debian
# libcjson-dev, rapidjson-dev, libsimdjson-dev): bench_NAME_peers.cpp.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

CC=${CC:-cc} CXX=${CXX:-c++} out=build/bench bad=0
flags='-O2 -DNDEBUG'
mkdir -p "$out"
BENCH_RESULTS=$PWD/$out/results.tsv
export BENCH_RESULTS
: > "$BENCH_RESULTS"
page=$out
[ $# != 0 ] || [ -n "${BENCH_BRIEF:-}" ] || page=docs

libs='-lm'
for l in -lcjson -lsimdjson; do ! works "$CC" $l || libs="$libs $l"; done

# The implementation is the one that make has compiled.
build() { # NAME
    src=tests/bench/bench_$1
    set -- "$src.c" "$out/bench_$1" $flags
    if [ -f "${src}_peers.cpp" ] && works "$CXX" -x c++; then
        $CXX $flags -std=c++17 -c "${src}_peers.cpp" -o "$2_peers.o" || return
        set -- "$@" -DBENCH_PEERS "$2_peers.o" -lstdc++
    fi
    link_program "$@" $libs
}

compile_time() { # LABEL COMPILER...: the best of three
    label=$1
    shift
    if ! works "$@"; then return; fi
    best=
    for _ in 1 2 3; do
        # POSIX's own format; the seconds of the processor, not of the clock
        t=$( (time -p "$@" -c tests/compile/implementation.c \
            -o "$out/impl.o") 2>&1 | awk '/^user/ { print $2 }')
        best=$(printf '%s\n%s\n' "$t" "${best:-$t}" | sort -n | head -n 1)
    done
    printf '  %-24s %6s s, %8d bytes of code and constants\n' "$label" \
        "${best:-?}" "$(size "$out/impl.o" | awk 'NR == 2 { print $1 }')"
}

if [ $# = 0 ]; then
    for f in tests/bench/bench_*.c; do
        [ -f "$f" ] || continue
        f=$(basename "$f" .c)
        set -- "$@" "${f#bench_}"
    done
    set -- "$@" client server pipes
fi
for name; do
    echo "==== $name"
    if [ -f "tests/bench/$name.sh" ]; then
        sh "tests/bench/$name.sh" || bad=1
    elif build "$name" > "$out/$name.log" 2>&1; then
        "$out/bench_$name" || bad=1
    else
        echo "bench_$name does not build:"
        head -n 20 "$out/$name.log"
        bad=1
    fi
    echo
done

if have python3; then
    python3 tests/bench/page.py "$BENCH_RESULTS" "$page" || bad=1
fi
[ -z "${BENCH_BRIEF:-}" ] || exit $bad # others compile it in CI
echo "==== the header"
printf '  hfsb.h %s lines, %s bytes; to compile the implementation:\n' \
    "$(grep -c '' hfsb.h)" "$(wc -c < hfsb.h | tr -d ' ')"
compile_time "$CC -O0" "$CC" -O0
compile_time "$CC -O2" "$CC" -O2
compile_time "$CC -Os" "$CC" -Os
exit $bad
