#!/bin/sh
# Line and branch coverage of every file of src/ by the tests (gcc, gcov).
# A table, not a gate. The lines that were not reached are marked ##### in
# build/coverage/FILE.c.gcov, the branches "never executed" or "taken 0".
#   tests/checks/coverage.sh [NAME...]    of test_NAME.c only
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

for t in gcc gcov; do
    have $t || { echo "skipped: $t not found"; exit 77; }
done
out=build/coverage
rm -rf "$out"
CC=gcc CFLAGS='-O0 -g --coverage -DNDEBUG' OUT=$out \
    sh tests/run "$@" || exit 1
printf '\n%-20s %7s %9s %9s %9s\n' file lines 'lines %' branches 'taken %'
for f in $(./amalgamate.sh --sources); do
    name=${f#src/}
    gcov -b -c -o "$out/src/$(module_name "$f").o" "$f" 2>/dev/null |
        awk -v name="$name" '
        /^File / { mine = index($0, "src/" name "\x27") > 0 }
        !mine { next }
        /^Lines executed/ { split($2, a, /[:%]/); line = a[2]; lines = $4 }
        /^Branches executed/ { branches = $4 }
        /^Taken at least once/ { split($4, a, /[:%]/); taken = a[2] }
        END { printf "%-20s %7d %8.1f%% %9d %8.1f%%\n",
                     name, lines, line, branches, taken }'
    mv "$(basename "$f").gcov" "$out/$(module_name "$f").c.gcov" 2>/dev/null
    rm -f ./*.gcov
done | tee "$out/table"
awk '{ l += $2; cl += $2 * $3; b += $4; cb += $4 * $5 }
     END { printf "%-20s %7d %8.1f%% %9d %8.1f%%\n", "all", l,
                  l ? cl / l : 0, b, b ? cb / b : 0 }' "$out/table"
