#!/bin/sh
# Every system call of FILE fails in turn (tests/programs/faults.c), so does every
# one of an undo (undo_faults.c), and before every
# one of them a link to the outside is planted (tests/programs/swaps.c); with what Linux
# offers and with what it is replaced by elsewhere.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

CC=${CC:-cc}
[ "$(uname)" = Linux ] || { echo "skipped: only on Linux"; exit 77; }
mkdir -p build
for flags in -O1 '-O1 -DHFSBI_PORTABLE'; do
    for name in faults undo_faults swaps; do
        # shellcheck disable=SC2086
        $CC $flags -g tests/programs/$name.c -o build/$name -ldl || exit 1
        limited 300 build/$name > build/$name.log
        case $? in
        0) echo "$flags: $(tail -n 1 build/$name.log)" ;;
        77) tail -n 1 build/$name.log ;;
        *) head -n 20 build/$name.log; exit 1 ;;
        esac
    done
done
