#!/bin/sh
# Confinement on another kernel, under qemu: an older Landlock, cgroups that
# are delegated, a kernel without Landlock, one without user namespaces.
# tests/programs/kernel_init.sh says what is tried there. The kernel is
# KERNEL=FILE, or else that of Debian's package, which is downloaded once to
# build/kernel and not installed. With -v the console is printed.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

skip() { echo "skipped: $1"; exit 77; }
[ "$(uname -sm)" = 'Linux x86_64' ] || skip 'Linux on x86-64 only'
for p in qemu-system-x86_64 busybox cpio setpriv ldd; do
    have $p || skip "$p not found"
done
if ldd "$(command -v busybox)" > /dev/null 2>&1; then
    skip 'busybox is not static'
fi

fetch() { # downloads the kernel's package and unpacks it
    have dpkg-deb && have apt-get || return 1
    name=$(apt-cache depends linux-image-cloud-amd64 2>/dev/null |
        sed -n 's/.*Depends: \(linux-image-[0-9].*\)/\1/p' | head -n 1)
    [ -n "$name" ] || return 1
    (cd build/kernel && limited 60 apt-get download "$name" &&
        dpkg-deb -x "$name"_*.deb .) > build/kernel/log 2>&1
}
mkdir -p build/kernel
kernel=${KERNEL:-}
[ -n "$kernel" ] || kernel=$(ls build/kernel/boot/vmlinuz-* 2>/dev/null)
if [ -z "$kernel" ]; then
    fetch || skip 'no kernel image: linux-image-cloud-amd64 not available'
    kernel=$(ls build/kernel/boot/vmlinuz-*)
fi

# ---- the first file system: busybox, a shell, and the programs to try
make -s CFLAGS="${CFLAGS:--O1}" build/hfsb build/hfsb-server > /dev/null &&
    ${CC:-cc} -O1 -w tests/programs/escape.c -o build/kernel/escape -lm \
        -pthread || exit 1
top=$(mktemp -d build/kernel/root.XXXXXX) || exit 1
trap 'rm -rf "$top"' EXIT
chmod 755 "$top"
add() { # PROGRAM: with its libraries
    rm -f "$top/bin/${1##*/}"
    cp "$1" "$top/bin/"
    for lib in $(ldd "$1" | grep -o '/[^ ]*'); do
        mkdir -p "$top${lib%/*}" && cp -L "$lib" "$top$lib"
    done
}
for d in bin dev etc mnt proc root run sys tmp usr/bin var/spool tests; do
    mkdir -p "$top/$d"
done
cp "$(command -v busybox)" "$top/bin/busybox"
for a in $(busybox --list); do
    [ "$a" = busybox ] || ln -s busybox "$top/bin/$a"
done
add "$(command -v setpriv)"
add "$(readlink -f /bin/sh)" # busybox's own prefers what it has built in
ln -sf "$(basename "$(readlink -f /bin/sh)")" "$top/bin/sh"
add /bin/true
add build/hfsb
add build/hfsb-server
add build/kernel/escape
cp -R tests/checks "$top/tests"
echo 'root:x:0:0:root:/root:/bin/sh' > "$top/etc/passwd"
(umask 077 && echo 'root:secret:' > "$top/etc/shadow")
cp tests/programs/kernel_init.sh "$top/init" && chmod 755 "$top/init"
(cd "$top" && find . | cpio -o -H newc -R 0:0) > build/kernel/image 2>/dev/null

# boot NAME PARAMETERS: the console without the firmware's lines. Without cx16:
# qemu 7.2 emulates that instruction wrongly.
boot() {
    limited 400 qemu-system-x86_64 -nographic -nodefaults -no-reboot -m 512 \
        -cpu qemu64,-cx16 -serial stdio -net none -kernel "$kernel" \
        -initrd build/kernel/image \
        -append "console=ttyS0 quiet panic=-1 check=$1 $2" < /dev/null 2>&1 |
        tr -d '\r' > "build/kernel/$1.log"
    [ "${verbose:-}" = -v ] && cat "build/kernel/$1.log"
    grep -a '^FAIL' -A 5 "build/kernel/$1.log"
    done=$(grep -a '^done: ' "build/kernel/$1.log")
    if [ -z "$done" ]; then
        tail -n 20 "build/kernel/$1.log"
        echo "FAIL  $1 did not end"
        failed=$((failed + 1))
        return
    fi
    echo "${done#done: }"
    # shellcheck disable=SC2086 # done: KERNEL N checks, N failed
    set -- $done
    checks=$((checks + $3))
    failed=$((failed + $5))
}
verbose=${1:-}
checks=0 failed=0
for c in ${CHECKS:-kernel old}; do
    case $c in
    old) boot "$c" lsm=yama ;;
    *) boot "$c" '' ;;
    esac
done
echo "$checks checks on another kernel, $failed failed"
[ $failed = 0 ]
