#!/bin/sh
# Every system call of FILE fails in turn (tests/programs/faults.c), so does every
# one of an undo (undo_faults.c) and of every route of the dialects
# (dialect_faults.c), and before every one of FILE a link to the outside is
# planted (tests/programs/swaps.c); with what Linux offers and with what it is
# replaced by elsewhere.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

CC=${CC:-cc}
[ "$(uname)" = Linux ] || { echo "skipped: only on Linux"; exit 77; }
mkdir -p build
run() { # NAME SECONDS ARGUMENT...
    name=$1 seconds=$2
    shift 2
    limited "$seconds" build/$name "$@" > build/$name.log
    case $? in
    0) echo "$flags: ${1:+$1: }$(tail -n 1 build/$name.log)" ;;
    77) tail -n 1 build/$name.log ;;
    *) head -n 20 build/$name.log; exit 1 ;;
    esac
}

# Among the other checks every fifth call of a dialect fails, and on Linux only;
# all of them take half an hour.
brief=${FAULTS_BRIEF:-}
for flags in -O1 '-O1 -DHFSBI_PORTABLE'; do
    for name in faults undo_faults swaps dialect_faults; do
        # shellcheck disable=SC2086
        $CC $flags -g tests/programs/$name.c -o build/$name -ldl -pthread ||
            exit 1
        [ $name = dialect_faults ] || run $name 300
    done
    [ -z "$brief" ] || [ "$flags" = -O1 ] || continue
    HFSB_TEST_QUICK=$brief
    [ "$flags" = -O1 ] || HFSB_TEST_QUICK=1
    export HFSB_TEST_QUICK
    for kind in hf 'hf host' agent-sandbox codex 'codex over descriptors' e2b ports; do
        run dialect_faults "$([ -n "$HFSB_TEST_QUICK" ] && echo 300 || echo 900)" \
            "$kind"
    done
    HFSB_TEST_QUICK=
done
