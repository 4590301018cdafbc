#!/bin/sh
# A write of a file, and an edit by the tool, is killed before each of its system calls: the file has
# then the old content or the new one, never a mix, and the next write takes
# away what the dead one left. The same check must find the mix that a plain
# rewrite leaves. Needs strace.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

CC=${CC:-cc} CFLAGS=${CFLAGS:--O1}
have strace || { echo "skipped: strace not found"; exit 77; }
mkdir -p build
# shellcheck disable=SC2086
$CC $CFLAGS tests/programs/crash.c -o build/crash || exit 1
crash=$PWD/build/crash
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
cd "$top" || exit 1
"$crash" write old o && "$crash" write new n || exit 1
strace -o trace "$crash" write probe p 2>/dev/null ||
    { echo "skipped: strace cannot trace here"; exit 77; }
bad=0

# ---- the order: the file is on disk before its name is, and the directory
# that has the name afterwards
order() { # the calls of the write to $1 that matter, one word each
    strace -y -o trace "$crash" write "$1" n || return 1
    awk '/^fsync\(.*\.hfsb-[0-9]+-[0-9]+>/ { print "file"; next }
         /^fsync\(/ { print "directory" }
         /^rename/ { print "rename" }' trace | tr '\n' ' '
}
cp old file
got=$(order file)
[ "$got" = "file rename directory " ] || {
    echo "FAIL  the order is: $got"
    bad=1
}

# ---- killed before each call
calls() { # NAME:N for each call of a command, N counted by name
    strace -qq -o trace "$@" > /dev/null 2>&1
    sed -n 's/^\([a-z0-9_]*\)(.*/\1/p' trace |
        awk '{ print $1 ":" ++n[$1] }' | grep -v '^exit'
}

state() { # of the file $1
    if cmp -s "$1" old; then echo old
    elif cmp -s "$1" new; then echo new
    else echo mix; fi
}

killed() { # HOW FILE: kills it everywhere; old, new and mix are counted
    old_n=0 new_n=0 mix_n=0 stale=0
    setup
    for point in $(calls "$crash" "$1" "$2" n); do
        setup
        name=${point%:*}
        strace -qq -o /dev/null -e "trace=$name" \
            -e "inject=$name:signal=KILL:when=${point#*:}" \
            "$crash" "$1" "$2" n > /dev/null 2>&1
        case $(state file) in
        old) old_n=$((old_n + 1)) ;;
        new) new_n=$((new_n + 1)) ;;
        *) mix_n=$((mix_n + 1)) mix_at=$point ;;
        esac
        [ "$(find . -name '.*.hfsb-*' | wc -l)" -eq 0 ] || stale=$((stale + 1))
        "$crash" write "$2" n || bad=1
        [ "$(find . -name '.*.hfsb-*' | wc -l)" -eq 0 ] || {
            echo "FAIL  $point: a temporary stays"
            bad=1
            rm -f .*.hfsb-*
        }
        [ "$(state file)" = new ] || { echo "FAIL  not written again"; bad=1; }
    done
    echo "$1 $2: old $old_n, new $new_n, mix $mix_n; $stale left a temporary"
}

setup() { cp old file; rm -f link; ln -s ./file link; }
for how in 'write file' 'write link' 'edit file' 'edit link'; do
    # shellcheck disable=SC2086
    killed $how
    [ $mix_n = 0 ] || { echo "FAIL  a mix, last at $mix_at"; bad=1; }
    [ $old_n -gt 0 ] && [ $new_n -gt 0 ] && [ $stale -gt 0 ] ||
        { echo "FAIL  the kills missed the write"; bad=1; }
    [ -L link ] || { echo "FAIL  the link is gone"; bad=1; }
done
killed tear file
[ $mix_n -gt 0 ] || { echo "FAIL  a torn write went unnoticed"; bad=1; }
[ $bad = 0 ] && echo "no write was torn"
