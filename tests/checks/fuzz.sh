#!/bin/sh
# Runs the fuzz targets, tests/fuzz/fuzz_NAME.c, under libFuzzer with ASan
# and UBSan.
#   tests/checks/fuzz.sh [SECONDS [NAME...]]    default: 60 seconds each, all
#   FUZZ_SEED=N    the same way each time (another one each time)
# Seeds are in tests/fuzz/corpus/NAME, the dictionary in tests/fuzz/NAME.dict.
# What a run finds goes to build/fuzz/NAME: inputs that reach new code to
# corpus/, and an input that breaks something to crash-*, to be replayed with
#   build/fuzz/NAME/fuzz_NAME build/fuzz/NAME/crash-...
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

time=${1:-60}
[ $# = 0 ] || shift
out=build/fuzz

flags="-g1 -O1 -fno-omit-frame-pointer -DHFSBI_SPLIT
       -fno-sanitize-recover=all"

# without the clients of a sandbox and of the Hub, which no target gets to
modules=$(./amalgamate.sh --sources core edit pattern http os proc check \
    history tools net server \
    api dialect mcp | grep -v mcp/remote.c)

module() { # the library, once for all targets
    # shellcheck disable=SC2086
    clang $flags -fsanitize=fuzzer-no-link,address,undefined -c "$1" \
        -o "$out/src/$(module_name "$1").o" >> "$out/src/log" 2>&1
}

target() { # $1: NAME
    dir=$out/$1
    mkdir -p "$dir/corpus"
    rm -f "$dir/passed"
    # shellcheck disable=SC2086
    if ! clang $flags -fsanitize=fuzzer,address,undefined \
        "tests/fuzz/fuzz_$1.c" "$out/src/library.a" -o "$dir/fuzz_$1" -pthread \
        > "$dir/log" 2>&1; then
        echo "FAIL  $1 does not compile:"
        head -n 15 "$dir/log"
        return
    fi
    set -- "$1" "-artifact_prefix=$dir/" "$dir/corpus"
    [ ! -f "tests/fuzz/$1.dict" ] || set -- "$@" "-dict=tests/fuzz/$1.dict"
    [ ! -d "tests/fuzz/corpus/$1" ] || set -- "$@" "tests/fuzz/corpus/$1"
    name=$1
    shift
    limited $((time + 120)) "$dir/fuzz_$name" "-max_total_time=$time" \
        "-seed=${FUZZ_SEED:-0}" -max_len=4096 -timeout=20 -rss_limit_mb=3000 \
        -print_final_stats=1 "$@" > "$dir/log" 2>&1
    rc=$?
    if [ $rc = 0 ]; then
        awk -v name="$name" '
            /stat::number_of_executed_units/ { runs = $2 }
            / cov: / { for (i = 1; i < NF; i++)
                           if ($i == "cov:") cov = $(i + 1) }
            END { printf "ok    %s: %s runs, %s edges, no finding\n",
                         name, runs, cov }' "$dir/log"
        : > "$dir/passed"
    else
        echo "FAIL  $name: exit status $rc; from $dir/log:"
        awk '/ERROR: |runtime error: / && !n { n = 15 }
             n > 0 { n--; print }
             /Test unit written to|^Base64/' "$dir/log"
    fi
}

works clang -fsanitize=fuzzer-no-link,address ||
    { echo "skipped: clang with libFuzzer not found"; exit 77; }
if [ $# = 0 ]; then
    for f in tests/fuzz/fuzz_*.c; do
        [ -f "$f" ] || { echo "skipped: no tests/fuzz/fuzz_*.c"; exit 77; }
        f=$(basename "$f" .c)
        set -- "$@" "${f#fuzz_}"
    done
fi
rm -rf "$out/src"
mkdir -p "$out/src"
# shellcheck disable=SC2086
parallel module $modules
ar rc "$out/src/library.a" "$out"/src/*.o
parallel target "$@"
bad=0
for name; do [ -f "$out/$name/passed" ] || bad=$((bad + 1)); done
echo "$(($# - bad)) fuzz targets passed, $bad failed"
[ $bad = 0 ]
