#!/bin/sh
# Other systems, as far as a compiler can show it: the library and every
# program of make compile without a warning and link for macOS, FreeBSD,
# NetBSD and OpenBSD; the library for a Linux with musl on another processor,
# and HFSB_PURE for Windows, which refuses the rest with an advice. Nothing is
# run.
# The compiler is zig, which brings the headers and libraries of all of them.
#   ZIG=FILE   another zig, with its libraries next to it
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

out=build/cross
systems="aarch64-macos x86_64-freebsd x86_64-netbsd x86_64-openbsd
         aarch64-linux-musl"
# the files of the Space, 6 MB of numbers, take a compiler longer than all the
# rest
no_space='-DHFSB_SPACE_H -Dhfsb_space_files=NULL -Dhfsb_space_file_count=0'
implemented='-DHFSB_IMPLEMENTATION_DONE -DHFSB_SERVER_IMPLEMENTATION_DONE
             -DHFSB_HTTP_CURL_IMPLEMENTATION_DONE'

# https as `make` builds it without libcurl's header
dlopen='-DHFSB_WITH_CURL -DHFSB_CURL_DLOPEN'

compiler() { # TARGET FLAG...: zig adds sanitisers of its own, which are slow,
             # and flags for the linker when it only compiles
    target=$1
    shift
    "$ZIG" cc -target "$target" -fno-sanitize=all -O0 -I. "$@" \
        -Wno-unused-command-line-argument
}

program() { # NAME: of examples/, in one command
    sources=examples/$1.c
    [ ! -d "examples/$1" ] || sources="$sources $(echo examples/"$1"/*.c)"
    # shellcheck disable=SC2086
    compiler "$t" -Wall -Wextra -Werror $implemented $no_space $dlopen \
        -o "$out/$t-$1" $sources "$out/$t.o" -pthread
}

system() { # TARGET
    t=$1
    # shellcheck disable=SC2086
    compiler "$t" -std=c99 $strict $WARN_C -DHFSB_HUB -DTEST_WITH_CURL \
        $dlopen -c -o "$out/$t.o" tests/compile/implementation.c || return 1
    # zig would compile all of musl to link with it; others link with musl
    case $t in *musl) return 0 ;; esac
    for p in $programs; do
        program "$p" || { echo "FAIL  $p for $t"; return 1; }
        rm -f "$out/$t-$p" "$out/$t-$p".*
    done
}

# a library of macOS cannot link with environ, which a program can
shared() {
    compiler aarch64-macos -Wall -Wextra -Werror -shared \
        -o "$out/libhfsb.dylib" examples/bindings/hfsb_json.c
}

windows() { # the pure part, and what is said about the rest
    t=x86_64-windows
    # shellcheck disable=SC2086
    compiler $t -std=c99 $WARN $WARN_C -DHFSB_PURE -c -o "$out/$t.o" \
        tests/compile/implementation.c || return 1
    ! compiler $t -c -o "$out/$t.o" tests/compile/implementation.c \
        2> "$out/windows.log" && grep -q 'error:.*HFSB_PURE.*' \
        "$out/windows.log" && grep -q WSL "$out/windows.log" && return
    echo "FAIL  all of hfsb.h for Windows: no advice; from $out/windows.log:"
    head -n 5 "$out/windows.log"
    return 1
}

# not all of lib.sh's: macros of the systems' headers do not pass the others
strict='-Wall -Wextra -Wpedantic -Wshadow -Wundef -Wvla -Werror'
find_zig || exit $?
rm -rf "$out" build/zig/cache/tmp
mkdir -p "$out"
make -s build/hfsb_space.h || exit 1
programs=$(cd examples && echo *.c | sed 's/\.c//g')
bad=0
tried() { # TARGET
    system "$1" || { echo "FAIL  $1"; echo "$1" >> "$out/failed"; }
}
# shellcheck disable=SC2086
parallel tried $systems
[ ! -f "$out/failed" ] || bad=$(wc -l < "$out/failed")
shared || { echo "FAIL  a shared library for macOS"; bad=$((bad + 1)); }
windows || bad=$((bad + 1))
# shellcheck disable=SC2086
[ $bad = 0 ] && echo "$(echo $systems | wc -w) systems," \
    "$(echo $programs | wc -w) programs for each but musl;" \
    "the pure part for Windows"
