#!/bin/sh
# Compiles everything without a warning, in every way a user may: compilers,
# languages, the joined headers in each of their uses (tests/compile/), the
# modules of src/ one by one, other machines and other libcs.
#   tests/checks/compile.sh [TOOL...]    default: all that are installed
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

out=build/compile
use=tests/compile
c_only=$WARN_C
# What the public part may include, and what these include themselves.
public='hfsb.h hfsb_server.h hfsb_http_curl.h headers.h declarations.c declarations.o: stddef.h stdbool.h stdarg.h
        stdc-predef.h __stddef_max_align_t.h'

tool() { # sets cc, link, run and warn for tool $1 and language $2
    run='' warn="$WARN $c_only"
    case $1 in
    g++ | clang++) cc="$1 -x c++" link=$1 warn=$WARN ;;
    m32) cc=$M32 link=$M32 ;;
    s390x) cc=s390x-linux-gnu-gcc link="$cc -static" run=qemu-s390x ;;
    musl) cc=musl-gcc link="$cc -static" ;;
    tcc) cc=tcc link=tcc warn="-Wall -Werror" ;;
    *) cc=$1 link=$1 ;;
    esac
    cc="$cc -std=$2"
}

program() { # compile $1.c, link with the objects after it, run
    name=$1
    shift
    $cc $warn -c "$use/$name.c" -o "$o/$name.o" &&
        $link "$o/$name.o" "$@" -o "$o/$name" || return 1
    [ -z "$run" ] || have "$run" || return 0
    $run "$o/$name" || { echo "$name: exit status $?"; return 1; }
}

whole() { # the implementation with all of it, and the flags given
    object $use/implementation.c -DHFSB_HUB "$@"
}

object() { # compile $1 with the flags after it
    name=$1
    shift
    $cc $warn $only "$@" -c "$name" -o "$o/$(basename "$name").o"
}

# Most warnings are those of the language, and need no code to be made: that is
# done once for each compiler. (What clang has to say of functions that no one
# uses is among them; gcc's comes with the code.)
only_for() { # WHAT TOOL LANGUAGE
    case $1:$2:$3 in
    *:clang:* | modules:* | headers:* | examples:* | *:c11 | *:c17 | *:c2x | *:c++20)
        echo -fsyntax-only ;;
    implementation:* | *:tcc:*) ;;
    pure:* | late:* | no_assert:* | no_hub:* | no_simd:* | portable:*)
        echo -fsyntax-only ;;
    esac
}

every() { # FILE...: .c or .h files, each by itself
    bad=0
    for f; do
        case $f in
        *.h) printf '#include "../../../%s"\n' "$f" > "$o/alone.c"
            object "$o/alone.c" -Wno-unused-function -DHFSBI_SPLIT -DHFSB_HUB ;;
        *) object "$f" -DHFSBI_SPLIT -DHFSB_HUB ;;
        esac || { echo "in $f"; bad=1; }
    done
    return $bad
}

only_three_headers() { # no <stdio.h>, no OS header in the public part
    $cc -M $use/declarations.c > "$o/deps" || return 1
    bad=0
    for f in $(tr -d '\\' < "$o/deps"); do
        case " $(echo $public) " in
        *" $(basename "$f") "*) ;;
        *) echo "the public part includes $f"; bad=1 ;;
        esac
    done
    return $bad
}

advice() { # a strict compiler, libc first: the error gives advice
    case $cc in *++*) return 0 ;; esac # these define _GNU_SOURCE themselves
    ! object $use/late.c > "$o/late" 2>&1 &&
        grep -q 'include hfsb.h first' "$o/late" &&
        [ "$(grep -c 'error:' "$o/late")" = 1 ]
}

do_job() { # sets cc, link, run, warn, o before
    case $1 in
    static | twice | hooks | url) program "$1" ;;
    implementation) whole ;;
    two_files)
        whole &&
            program caller "$o/implementation.c.o" ;;
    cxx_caller) # the implementation in C
        "${link%++}" -c $use/implementation.c -o "$o/c.o" 2> "$o/err" ||
            gcc -c $use/implementation.c -o "$o/c.o" || return 1
        program caller "$o/c.o" ;;
    alone) object $use/implementation.c -DTEST_WITHOUT_SERVER ;;
    no_hub) object $use/implementation.c ;;
    no_simd) whole -DHFSB_NO_SIMD ;;
    pure) object $use/implementation.c -DHFSB_PURE ;;
    portable) whole -DHFSBI_PORTABLE ;;
    late) # the whole needs what only comes before; the pure core does not
        object $use/late.c -DHFSB_PURE && object $use/late.c -D_GNU_SOURCE &&
            advice ;;
    no_assert) whole -DNDEBUG ;;
    O2) # what a program leaves out shows other paths to the optimiser
        object examples/run_command.c -I. -O2 -DHFSB_STATIC ;;
    examples) # an example is x.c, or x.c and the folder x/
        for f in examples/*.c examples/*/*.c; do
            object "$f" -I. || return 1
        done ;;
    modules) every src/*/*.c ;;
    headers) every src/*/*.h ;;
    curl) # with hfsb_server.h beside it, and alone; its modules
        whole -DTEST_WITH_CURL &&
            object $use/static.c -DTEST_WITH_CURL -DTEST_WITHOUT_SERVER &&
            every src/net/curl/*.[ch] ;;
    dlopen) # without libcurl's header
        object $use/implementation.c -DTEST_WITH_CURL -DHFSB_CURL_DLOPEN \
            -DTEST_WITHOUT_SERVER ;;
    public_part) only_three_headers ;;
    *) object "$use/$1.c" ;;
    esac
}

job() { # WHAT:TOOL:LANGUAGE
    o=$out/$1
    IFS=: read -r what tool std <<END
$1
END
    tool "$tool" "$std"
    case $what:$tool:$std in # once for each module is enough, and once for all
    modules:* | headers:* | *:c2x) ;;
    *:gcc:* | *:m32:* | *:s390x:* | *:musl:*) warn="$warn $WARN_JOINED" ;;
    esac
    only=$(only_for "$what" "$tool" "$std")
    mkdir -p "$o"
    if ! do_job "$what" > "$o/log" 2>&1; then
        echo "FAIL  $tool -std=$std: $what"
        head -n 15 "$o/log"
        echo "$1" >> "$out/failed"
    fi
    find "$o" -type f ! -name log -exec rm -f {} +
}

has_curl() { # libcurl's header is there for tool $1
    echo '#include <curl/curl.h>' > "$out/curl.c"
    "$1" -fsyntax-only "$out/curl.c" 2>/dev/null
}

jobs_for() { # $1: tool
    uses="declarations implementation static twice hooks late no_simd pure
          portable"
    case $1 in
    gcc) # two_files compiles the same implementation, and uses it
        for u in $uses no_assert two_files modules examples alone no_hub \
            O2 url headers public_part; do
            [ $u = implementation ] || echo "$u:$1:c99"
        done
        # -O2, fortified, is compiled by symbols.sh, with the same warnings
        for std in c11 c17 c2x; do echo "implementation:$1:$std"; done ;;
    clang)
        # all that clang has to say needs no code: suites make it
        for u in declarations implementation static pure portable modules \
            examples headers public_part; do
            echo "$u:$1:c99"
        done
        for std in c17 c2x; do echo "implementation:$1:$std"; done ;;
    g++)
        for u in declarations implementation static late pure portable \
            no_hub cxx_caller modules; do
            echo "$u:$1:c++17"
        done
        echo "implementation:$1:c++20" ;;
    clang++)
        for u in declarations implementation static pure; do
            echo "$u:$1:c++17"
        done
        echo "implementation:$1:c++20" ;;
    *) # m32, s390x, musl, tcc
        for u in two_files pure; do
            echo "$u:$1:c99"
        done ;;
    esac
    case $1 in
    gcc | clang)
        echo "dlopen:$1:c99"
        ! has_curl "$1" || echo "curl:$1:c99" ;;
    g++ | clang++)
        echo "dlopen:$1:c++17"
        ! has_curl "$1" || echo "curl:$1:c++17" ;;
    esac
}

[ -f hfsb.h ] || { echo "hfsb.h is missing: run ./amalgamate.sh"; exit 1; }
rm -rf "$out"
mkdir -p "$out"
[ $# -gt 0 ] || set -- gcc clang g++ clang++ m32 s390x musl tcc
list=
for t; do
    tool "$t" c99
    # shellcheck disable=SC2086
    if works $link; then
        list="$list $(jobs_for "$t")"
    else
        echo "skipped: $t not found"
    fi
done
[ -n "$list" ] || exit 77
# shellcheck disable=SC2086
parallel job $list

set -- $list
failed=0
[ ! -f "$out/failed" ] || failed=$(wc -l < "$out/failed" | tr -d ' ')
echo "$(($# - failed)) ways to compile passed, $failed failed"
[ "$failed" = 0 ]
