#!/bin/sh
# The edit engine for other languages: build/libhfsb.so through the Python
# module, build/hfsb.wasm through the JavaScript one, with the same replies to
# 2,000 calls; and no memory is lost where there is too little of it.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

out=build/bindings
rm -rf "$out"
mkdir -p "$out"
bad=0 ran=0

fails() { echo "FAIL  $*"; bad=$((bad + 1)); }

# -fsanitize where the compiler has it
sanitize='-fsanitize=address,undefined -fno-sanitize-recover=all'
# shellcheck disable=SC2086
works "${CC:-cc}" $sanitize || sanitize=
# shellcheck disable=SC2086
${CC:-cc} -O0 -g1 -Wall -Wextra -Werror $sanitize -I. -o "$out/memory" \
    tests/programs/bindings.c && "$out/memory" || fails "with little memory"

# shellcheck disable=SC2086
${CC:-cc} -std=c99 $WARN $WARN_C -DHFSB_PURE -I. -c -o "$out/json.o" \
    examples/bindings/hfsb_json.c || fails "hfsb_json.c has warnings"
calls=
if have python3; then
    make -s shared CFLAGS=-O1 > /dev/null || fails "make shared"
    PYTHONPATH=examples/python PYTHONDONTWRITEBYTECODE=1 limited 600 \
        python3 tests/python/bindings.py "$out/calls" || fails "python"
    calls=$out/calls ran=$((ran + 1))
    ! HFSB_LIBRARY=$PWD/nowhere.so PYTHONPATH=examples/python \
        PYTHONDONTWRITEBYTECODE=1 python3 -c 'import hfsb' 2> "$out/import" &&
        grep -q nowhere.so "$out/import" ||
        fails "HFSB_LIBRARY that does not exist: another one was loaded"
else
    echo "skipped: python3 is not installed"
fi

if ! have node; then
    echo "skipped: node is not installed"
elif ! have clang || ! clang --print-targets 2>/dev/null | grep -q wasm32 ||
    ! { have wasm-ld || have wasm-ld-14; }; then
    echo "skipped: clang for WebAssembly, or lld, is not installed"
else
    make -s wasm > /dev/null || fails "make wasm"
    # shellcheck disable=SC2086
    limited 900 node tests/programs/bindings.mjs build $calls || fails "node"
    ran=$((ran + 1))
fi
[ $bad = 0 ] || exit 1
[ $ran -gt 0 ] ||
    { echo "skipped: neither python3, nor node and clang for wasm"; exit 77; }
echo "the edit engine in $ran other languages: passed"
