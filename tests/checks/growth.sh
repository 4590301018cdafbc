#!/bin/sh
# Time grows with the input and not faster: counts the instructions of the
# cases of tests/programs/growth.c with valgrind, and fails when doubling the input
# makes them more than 2.2 times as many, in any of the last doublings.
# (cachegrind without its cache counts the same as callgrind in a third of
# the time; what making the input costs is counted and subtracted.)
#   tests/checks/growth.sh [CASE...]
#   GROWTH_MAX=N          largest input in bytes (default 16777216)
#   GROWTH_DOUBLINGS=N    how many doublings lead to it (default 4)
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

max=${GROWTH_MAX:-16777216}
first=$((max >> ${GROWTH_DOUBLINGS:-4}))
out=build/growth
have valgrind || { echo "skipped: valgrind not found"; exit 77; }
mkdir -p "$out"
# static where that can be linked: valgrind starts in a third of the time
${CC:-cc} -O2 -s -static tests/programs/growth.c -o "$out/growth" 2>/dev/null ||
    ${CC:-cc} -O2 tests/programs/growth.c -o "$out/growth" || exit 1

run() { # CASE BYTES [-]: instructions of the whole program
    limited 900 valgrind --tool=cachegrind --cache-sim=no \
        --cachegrind-out-file=/dev/null "$out/growth" "$@" \
        > "$out/$1.log" 2>&1 || return 1
    sed -n 's/.*I *refs: *\([0-9,]*\).*/\1/p' "$out/$1.log" | tr -d ,
}

count() { # CASE BYTES: instructions of the call
    all=$(run "$1" "$2") && made=$(run "$1" "$2" -) || return 1
    echo $((all - made))
}

grow() { # CASE
    size=$first last='' line='' bad=''
    while [ "$size" -le "$max" ]; do
        n=$(count "$1" "$size")
        if [ -z "$n" ]; then
            echo "FAIL  $1: broke at $size bytes; the end of its log:"
            tail -n 12 "$out/$1.log"
            echo "$1" >> "$out/failed"
            return
        fi
        if [ -n "$last" ]; then
            ratio=$(awk -v a="$last" -v b="$n" \
                'BEGIN { printf "%.2f", a ? b / a : 99 }')
            line="$line $ratio"
            awk -v r="$ratio" 'BEGIN { exit !(r > 2.2) }' && bad=1
        fi
        last=$n
        size=$((size * 2))
    done
    each=$(awk -v n="$last" -v max="$max" 'BEGIN { printf "%.1f", n / max }')
    if [ -n "$bad" ]; then
        word=FAIL
        echo "$1" >> "$out/failed"
    else
        word='ok  '
    fi
    printf '%s  %-22s x2:%s  (%s instructions a byte)\n' "$word" "$1" \
        "$line" "$each"
}

rm -f "$out/failed"
# shellcheck disable=SC2046
[ $# -gt 0 ] || set -- $("$out/growth")
parallel grow "$@"
failed=0
[ ! -f "$out/failed" ] || failed=$(wc -l < "$out/failed" | tr -d ' ')
echo "$(($# - failed)) cases grow linearly up to $max bytes, $failed do not"
[ "$failed" = 0 ]
