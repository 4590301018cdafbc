#!/bin/sh
# What the compiled implementation shows to the linker:
#   - every external name begins with hfsb_;
#   - nothing is writable: code, constants, and constant tables of pointers
#     (.data.rel.ro, made read-only once loaded) are all there is;
#   - of libc it needs only what a pure library may: no printing, no files,
#     no locale, no clock, no environment, no memory past the hook (glibc's
#     qsort takes some).
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

out=build/symbols
libc='realloc free memchr memcmp memcpy memmove memset strchr strcmp strlen
      strncmp snprintf vsnprintf __assert_fail'
# What optimisers and hardening make of these: realloc(NULL, n) is malloc.
made='malloc bcmp __memcpy_chk __memmove_chk __memset_chk __snprintf_chk
      __vsnprintf_chk __stack_chk_fail _GLOBAL_OFFSET_TABLE_'

audit() { # OBJECT ALLOWED: one line a fault
    # name | value | class | type | size | line | section
    nm -f sysv "$1" | awk -F'|' -v libc=" $(echo $2) " '
        NF < 7 || $1 ~ /^Name/ { next }
        {
            for (i = 1; i <= 7; i++) gsub(/^[ \t]+|[ \t]+$/, "", $i)
            name = $1; class = $3; section = $7
            seen++
        }
        class == "U" || class == "w" {
            if (index(libc, " " name " ") == 0)
                print name "() is used, which is not for a pure library"
            next
        }
        class ~ /^[A-Z]$/ && name !~ /^hfsb_/ {
            print "external name " name " does not begin with hfsb_"
        }
        section !~ /^\.(text|rodata|data\.rel\.ro)/ && section != "*ABS*" {
            sub(/\.[0-9]+$/, "", name) # a number for static locals
            print name " is writable"
        }
        END { if (!seen) print "no symbols at all" }'
}

have nm || { echo "skipped: nm not found"; exit 77; }
rm -rf "$out"
mkdir -p "$out"
n=0
for cc in gcc clang; do
    works $cc || { echo "skipped: $cc not found"; continue; }
    for flags in -O0 "-O1 -fno-pic -DHFSB_NO_SIMD" \
        "-O2 -fPIC -D_FORTIFY_SOURCE=2 -fstack-protector-strong"; do
        n=$((n + 1))
        allowed="$libc $made"
        [ "$flags" != -O0 ] || allowed="$libc _GLOBAL_OFFSET_TABLE_"
        $cc -std=c99 $flags -c tests/compile/implementation.c \
            -o "$out/$n.o" || exit 1
        audit "$out/$n.o" "$allowed" | sed "s/\$/ ($cc $flags)/" \
            >> "$out/faults"
    done
done
[ $n -gt 0 ] || exit 77
if [ -s "$out/faults" ]; then # each fault once
    awk '{ key = $0; sub(/ \(.*/, "", key) }
         !(key in seen) { seen[key]; print "FAIL  " $0 }' "$out/faults"
    exit 1
fi
count=$(nm -g --defined-only "$out/$n.o" | grep -c .)
echo "$n builds: $count public symbols, all hfsb_; nothing writable;" \
    "only allowed libc functions"
