#!/bin/sh
# The documentation tells the truth:
#   - every ```c block of README.md and docs/ and the quick starts at the top of
#     hfsb.h and the headers next to it compile, as C99 and as C++17, without
#     a warning;
#   - every field of a result is named in docs/c-api.md;
#   - `make help` prints every target that README.md lists;
#   - tests/README.md has a row for every check;
#   - no text there is the rest of a merge: no line begins with a conflict
#     marker, and every row of a table ends as one.
# docs_run.sh runs the commands.
# A block with its own #include "hfsb... is a whole file. One with a line that
# begins with "}" holds functions. Any other is the body of a function that
# has a text called `content`.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

out=build/docs
rm -rf "$out"
mkdir -p "$out"
bad=0 n=0

blocks() { # FILE INFO PREFIX SUFFIX: fenced blocks into numbered files
    awk -v info="$2" -v prefix="$3" -v suffix="$4" '
        inside && /^```/ { inside = 0; close(file); next }
        inside { print > file; next }
        /^```/ {
            skip = !skip
            if (skip && $0 == "```" info) {
                skip = 0; inside = 1
                file = prefix NR suffix
                printf "" > file
            }
        }' "$1"
}

quick_start() { # its paragraphs of code: a first line with a semicolon
    awk 'BEGIN { RS = "" }
         on && /^ ? ? ?[A-Z][A-Z]/ { exit }
         on && /^[^\n]*;/ { print }
         /QUICK START/ { on = 1 }' "$1"
}

compiles() { # FILE AS COMPILER...
    what=$1 as=$2
    shift 2
    # shellcheck disable=SC2086
    works "$@" || { echo "skipped: $1 not found ($as)"; return 0; }
    n=$((n + 1))
    if ! "$@" $flags -I. -c "$what" -o "$out/o" > "$out/log" 2>&1; then
        echo "FAIL  $what does not compile as $as:"
        head -n 15 "$out/log"
        bad=$((bad + 1))
    fi
}

wrap() { # a block without includes becomes a file
    ! grep -q 'include "hfsb' "$1" || return 0
    {
        printf '#include <stdio.h>\n#include <stdlib.h>\n'
        printf '#include <string.h>\n#define HFSB_HUB\n#include "hfsb_server.h"\n'
        printf '#include "hfsb_http_curl.h"\n'
        if grep -q '^}' "$1"; then
            cat "$1"
        else
            printf 'void block(const char *content);\n'
            printf 'void block(const char *content) {\n(void)content;\n{\n'
            cat "$1"
            printf '}\n}\n'
        fi
    } > "$1.tmp"
    mv "$1.tmp" "$1"
}

for f in *.md docs/*.md; do
    n=$((n + 1))
    grep -nE '^(<<<<<<<|>>>>>>>|=======$)|^\|.*[^|]$' "$f" > "$out/log" ||
        continue
    echo "FAIL  $f has a conflict marker or half a row of a table:"
    cat "$out/log"
    bad=$((bad + 1))
done
make -s help > "$out/help" 2>&1
for f in $(sed -n 's/^    make \([a-z]\{1,\}\)  .*/\1/p' README.md); do
    n=$((n + 1))
    grep -q "^make $f  " "$out/help" && continue
    echo "FAIL  make help does not print make $f"
    bad=$((bad + 1))
done
for f in tests/checks/*.sh; do
    f=$(basename "$f" .sh)
    [ "$f" != lib ] || continue
    n=$((n + 1))
    grep -q "^| $f |" tests/README.md && continue
    echo "FAIL  tests/README.md has no row for the check $f"
    bad=$((bad + 1))
done
[ -f hfsb.h ] || { echo "hfsb.h is missing: run ./amalgamate.sh"; exit 1; }
for f in README.md docs/*.md; do
    blocks "$f" c "$out/$(basename "$f"):" .c
done
for f in hfsb.h hfsb_server.h hfsb_http_curl.h; do
    quick_start "$f" > "$out/$f-quick-start.c"
    [ ! -s "$out/$f-quick-start.c" ] || continue
    echo "FAIL  no quick start found at the top of $f"
    rm -f "$out/$f-quick-start.c"
    bad=$((bad + 1))
done
# shellcheck disable=SC2013
for f in $(sed -n 's/.*hfsbi_build_[a-z]*([^,]*fields, "\([a-z0-9_]*\)".*/\1/p' \
    src/tools/*.c | sort -u); do
    n=$((n + 1))
    grep -q "^| .*\`$f\`" docs/c-api.md && continue
    echo "FAIL  docs/c-api.md does not name the field $f of a result"
    bad=$((bad + 1))
done
flags="-Wall -Wextra -Werror $WARN_JOINED"
for f in "$out"/*.c; do
    [ -f "$f" ] || continue
    if grep -q 'no_auth = true' "$f"; then
        echo "FAIL  $f serves everybody"
        bad=$((bad + 1))
    fi
    wrap "$f"
    compiles "$f" C99 "${CC:-cc}" -std=c99
    compiles "$f" C++17 "${CXX:-c++}" -x c++ -std=c++17
done
echo "$n checks of the documentation, $bad failed"
[ $bad = 0 ]
