#!/bin/sh
# Installs what `make` has built: programs, headers, manual pages, completions,
# hfsb.pc, files for CMake, and the servers of `make static`. `make install`,
# `make uninstall`
#   packaging/install.sh [--uninstall]
#   PREFIX=DIR    (/usr/local), and the folders below it: BINDIR, INCLUDEDIR,
#                 DATADIR (share), MANDIR, PKGCONFIGDIR, CMAKEDIR, ZSHDIR
#   DESTDIR=DIR   put before all of them, for packages
#   RUN=PROGRAM   runs the programs to print their manuals (qemu-aarch64)
set -eu
cd "$(dirname "$0")/.."
umask 022

PREFIX=${PREFIX:-/usr/local}
BINDIR=${BINDIR:-$PREFIX/bin}
INCLUDEDIR=${INCLUDEDIR:-$PREFIX/include}
DATADIR=${DATADIR:-$PREFIX/share}
MANDIR=${MANDIR:-$DATADIR/man}
PKGCONFIGDIR=${PKGCONFIGDIR:-$PREFIX/lib/pkgconfig}
CMAKEDIR=${CMAKEDIR:-$DATADIR/cmake/hfsb}
ZSHDIR=${ZSHDIR:-$DATADIR/zsh/site-functions}
version=$(sh packaging/version.sh)
uninstall=
[ "${1:-}" != --uninstall ] || uninstall=yes

put() { # MODE PATH: what comes on stdin, or with --uninstall removes it
    to=${DESTDIR:-}$2
    if [ -n "$uninstall" ]; then
        rm -f "$to"
        return
    fi
    mkdir -p "$(dirname "$to")"
    # a new file: the old one may be a program that runs
    cat > "$to.new"
    chmod "$1" "$to.new"
    mv -f "$to.new" "$to"
}

print() { # PATH PROGRAM WORD...: what the program prints becomes a file
    to=$1
    shift
    if [ -n "$uninstall" ]; then
        put 644 "$to" < /dev/null
        return
    fi
    text=$(${RUN:-} "$@" 2> /dev/null) || text=
    if [ -z "$text" ]; then
        echo "not installed: $to (no $*)"
        return
    fi
    printf '%s\n' "$text" | put 644 "$to"
}

for f in hfsb.h hfsb_server.h hfsb_http_curl.h; do
    put 644 "$INCLUDEDIR/$f" < $f
done
# relative to its prefix, so that a package can be moved
case $INCLUDEDIR in
"$PREFIX"/*) include="\${prefix}/${INCLUDEDIR#"$PREFIX"/}" ;;
*) include=$INCLUDEDIR ;;
esac
sed -e "s|@prefix@|$PREFIX|" -e "s|@includedir@|$include|" \
    -e "s|@version@|$version|" packaging/hfsb.pc.in |
    put 644 "$PKGCONFIGDIR/hfsb.pc"
case $INCLUDEDIR:$CMAKEDIR in
"$PREFIX"/*:"$PREFIX"/*)
    up=$(printf '%s\n' "${CMAKEDIR#"$PREFIX"/}" | sed 's|[^/][^/]*|..|g')
    include="\${CMAKE_CURRENT_LIST_DIR}/$up/${INCLUDEDIR#"$PREFIX"/}" ;;
*) include=$INCLUDEDIR ;;
esac
for f in hfsb-config.cmake hfsb-config-version.cmake; do
    sed -e "s|@include@|$include|" -e "s|@version@|$version|" \
        packaging/$f.in | put 644 "$CMAKEDIR/$f"
done

for program in hfsb hfsb-server; do
    [ -n "$uninstall" ] || [ -x build/$program ] || {
        echo "build/$program is missing: run make first" >&2
        exit 1
    }
    put 755 "$BINDIR/$program" < "$([ -n "$uninstall" ] && echo /dev/null ||
        echo build/$program)"
done

# The servers that `hfsb --on ssh:HOST` sends, where `make static` built them.
machine() { # FILE: the machine of an ELF file, as uname -m names it
    case $(od -An -tu1 -j18 -N2 "$1" | tr -s ' ') in
    ' 62 0') echo x86_64 ;;
    ' 183 0') echo aarch64 ;;
    ' 243 0') echo riscv64 ;;
    ' 21 0') echo ppc64le ;;
    ' 2 1') echo loongarch64 ;;
    esac
}
servers=$PREFIX/lib/hfsb
for f in build/static/hfsb-server-* build/static/hfsb-server; do
    [ -z "$uninstall" ] && [ -x "$f" ] || continue
    arch=$(machine "$f")
    [ -z "$arch" ] || put 755 "$servers/hfsb-server-$arch" < "$f"
done
if [ -n "$uninstall" ]; then
    for arch in x86_64 aarch64 riscv64 ppc64le loongarch64; do
        put 755 "$servers/hfsb-server-$arch" < /dev/null
    done
    rmdir "${DESTDIR:-}$servers" 2> /dev/null || true
fi

print "$MANDIR/man1/hfsb.1" build/hfsb man
print "$MANDIR/man1/hfsb-server.1" build/hfsb-server --man

completions() { # PROGRAM WORD...: for all shells
    name=${1##*/}
    print "$DATADIR/bash-completion/completions/$name" "$@" bash
    print "$ZSHDIR/_$name" "$@" zsh
    print "$DATADIR/fish/vendor_completions.d/$name.fish" "$@" fish
}
completions build/hfsb completion
completions build/hfsb-server --completion
