#!/bin/sh
# The whole circle for real: hfsb_space.h is made, a sandbox is created on the
# fake Hub from it, which compiles what was committed as the Dockerfile says
# and runs it; the tools are called through the client; it is deleted, and no
# process or directory is left. tests/programs/circle.c does it.
#   CC, CFLAGS     for the client (cc, -O0)
#   CIRCLE_MAKE    what the fake Hub adds to its make (STATIC_CFLAGS=-O0: the
#                  quickest; "" is what a Space does)
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

CC=${CC:-cc} CFLAGS=${CFLAGS:--O0}
CIRCLE_MAKE=${CIRCLE_MAKE-STATIC_CFLAGS=-O0}
export CIRCLE_MAKE
out=build/circle
mkdir -p "$out"
sh amalgamate.sh --space "$out/hfsb_space.h" || exit 1
# the same bytes every time, and those of the files
cp "$out/hfsb_space.h" "$out/first.h"
(cd "$out" && sh ../../amalgamate.sh --space hfsb_space.h) || exit 1
cmp "$out/first.h" "$out/hfsb_space.h" || exit 1
rm -f "$out/first.h"
# what is not a file is not replaced
rm -f "$out/fifo" && mkfifo "$out/fifo" || exit 1
for what in --space --page; do
    if limited 60 sh amalgamate.sh $what "$out/fifo" 2> "$out/error" ||
        ! grep -q 'is not a regular file' "$out/error" || [ ! -p "$out/fifo" ]
    then
        echo "FAIL  amalgamate.sh $what replaces a FIFO"
        exit 1
    fi
done
rm -f "$out/fifo" "$out/error"
# shellcheck disable=SC2086
$CC $CFLAGS -I. -I"$out" tests/programs/circle.c -o "$out/circle" -lm -pthread || exit 1
limited 300 "$out/circle"
