#!/bin/sh
# A newcomer's first minutes: the project's files in an empty folder, `make`
# and `make test`, with nothing in PATH but a compiler, make, the plain POSIX
# utilities and base64, which every system brings: no git, clang, python, bash.
# Others' test data is used when HFSB_TEST_DATA says where it is.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

have git || { echo "skipped: git not found"; exit 77; }
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
chmod 755 "$top" # some tests become another user
mkdir "$top/bin" "$top/hfsb"
git ls-files -co --exclude-standard | tar -cf - -T - |
    (cd "$top/hfsb" && tar -xf -)

for t in sh cc gcc as ld make awk base64 basename cat chmod cksum cmp cp date \
    cut dd diff dirname echo env expr false find getconf grep head id kill ln \
    ls mkdir mktemp mv nohup od printf ps pwd readlink rm rmdir sed seq setsid \
    sleep sort split stat stty tail tee test touch tr true tty uname uniq wc yes; do
    path=$(command -v $t) || continue
    # the shell has some of them itself
    case $path in /*) ;; *) path=/usr/bin/$t ;; esac
    [ ! -x "$path" ] || ln -s "$path" "$top/bin/$t"
done

cd "$top/hfsb" || exit 1
# not `env -i`: a compiler may need its own variables
PATH=$top/bin
# -O2 takes twice as long to compile, and is used elsewhere
CFLAGS=-O1 TEST_FLAGS=-O0
export PATH CFLAGS TEST_FLAGS
make > "$top/log" 2>&1 &&
    grep 'https.*no gzip.*missing: the static server' "$top/log" > /dev/null &&
    make test >> "$top/log" 2>&1 && {
    tail -n 1 "$top/log"
    exit 0
}
echo "FAIL  make && make test in a fresh copy:"
tail -n 30 "$top/log"
exit 1
