#!/bin/sh
# A write of a file, and an edit or an undo by the tool, is killed before each of its system calls: the file has
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

# ---- an undo that is killed before each call that changes something: every
# path is as it was or as it shall be, and the next undo does the rest
mkdir root && cd root || exit 1
seq 20000 > changed; echo x > deleted; mkdir -p folder/empty; echo 1 > folder/f
chmod 4711 changed; ln -s changed link; echo 1 > one; ln one two
cd ..
CRASH_COMMAND='seq 30000 > changed; chmod 600 changed; rm deleted; mkdir new
    rm -r folder; echo 2 > folder; ln -sf one link; echo 2 > new/file
    rm two; cp one two; echo 3 >> two'
export CRASH_COMMAND

list() { # what is in the root: kinds, modes, links, sums
    (cd root && find . -mindepth 1 ! -name '.*.hfsb-*' \
        \( -type d -printf "%P d ${1:-}\n" -o -type l -printf '%P l %l\n' \
        -o -type f -printf "%P f %m ${1:+%n }" -exec sh -c \
        'sha256sum < "$1"' _ {} \; \) | sort)
}
list %m > old.list; list > old.loose
"$crash" bash root store > out || { cat out; exit 1; }
list > new.loose
cp -a root root.new && cp -a store store.new
changing='openat|write|rename|renameat|renameat2|unlink|unlinkat|mkdir|mkdirat|symlinkat|linkat|fchmod|fchmodat|fchmodat2|fchown|ftruncate|chmod'
points=0 mixed=0
rm -rf root store; cp -a root.new root; cp -a store.new store
for point in $(calls "$crash" undo root store | grep -E "^($changing):"); do
    rm -rf root store; cp -a root.new root; cp -a store.new store
    name=${point%:*} points=$((points + 1))
    strace -qq -o /dev/null -e "trace=$name" \
        -e "inject=$name:signal=KILL:when=${point#*:}" \
        "$crash" undo root store > /dev/null 2>&1
    list > is.loose
    if sort -u old.loose new.loose | comm -13 - is.loose | grep -q . ||
        comm -12 old.loose new.loose | comm -23 - is.loose | grep -q .; then
        echo "FAIL  undo killed at $point: a path is neither old nor new"
        comm -13 old.loose is.loose | comm -23 - new.loose
        bad=1
    fi
    cmp -s is.loose old.loose || cmp -s is.loose new.loose ||
        mixed=$((mixed + 1))
    "$crash" undo root store > out 2>&1 || grep -q 'Nothing to undo' out ||
        { echo "FAIL  the next undo after $point: $(cat out)"; bad=1; }
    list %m | diff old.list - || { echo "FAIL  not restored: $point"; bad=1; }
    find root -name '.*.hfsb-*' | grep . && { echo "FAIL  $point"; bad=1; }
done
echo "undo: killed $points times, $mixed times between two paths"
[ "$mixed" -gt 5 ] || { echo "FAIL  the kills missed the undo"; bad=1; }
[ $bad = 0 ] && echo "no write was torn, no undo was lost"
