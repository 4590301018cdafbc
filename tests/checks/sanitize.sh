#!/bin/sh
# The whole test suite, built and run in ways that show what a plain run
# hides: sanitisers, valgrind, other machines, other libcs.
#   tests/checks/sanitize.sh [WAY...]    default: all of --list
# Most ways link the modules of src/, compiled once, with each test: faster,
# and a second proof that the modules stand alone.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

ways="gcc-asan clang-asan no-simd msan tsan valgrind portable kqueue m32
      s390x aarch64 musl joined"
# and, when asked for by name: cxx split-O3; long: those that look for rare
# faults, for longer (with HFSB_TEST_LONG=1; what valgrind's suite compiled)

# Tests that start processes and write files take their time by the clock, and
# emulators do not know all system calls: some ways run the others only.
system=$(cd tests && ls os/test_*.c proc/test_*.c check/test_*.c \
    history/test_*.c tools/test_*.c server/test_*.c \
    api/test_*.c net/test_*.c mcp/test_mcp_[!mrs]*.c mcp/test_mcp_stdio.c \
    mcp/test_mcp_remote.c remote/test_*.c hub/test_*.c dialect/test_*.c |
    grep -v test_plan.c)
# the modules that touch no OS
pure=$(./amalgamate.sh --sources core edit pattern http)
# all but the clients of a sandbox and of the Hub
here=$(./amalgamate.sh --sources core edit pattern http os proc check \
    history tools net server \
    api mcp | grep -v mcp/remote.c)
names() { # all, pure, system (the others), or a list of names
    case $1 in all | pure | system) ;; *) echo "$1"; return ;; esac
    for t in $(cd tests && echo */test_*.c); do
        kind=pure
        case " $(echo $system) " in *" $t "*) kind=system ;; esac
        case $1:$kind in
        all:* | system:system | pure:pure) ;;
        *) continue ;;
        esac
        t=${t##*/}
        echo "${t%.c}"
    done
}

# Wrapping of unsigned numbers is meant in hashes and random numbers.
integer="-fsanitize=integer -fno-sanitize=unsigned-integer-overflow
         -fno-sanitize=unsigned-shift-base,implicit-integer-sign-change"
# -g1: lines and functions are all that a report shows
abort="-g1 -fno-omit-frame-pointer -fno-sanitize-recover=all"
gcc_asan="-O1 $abort -fsanitize=address,undefined,leak,bounds-strict
          -fsanitize=float-cast-overflow"

plain="-O1 -g1"

suite() { # COMPILER FLAGS: a way to build that works here, or skipped
    # shellcheck disable=SC2086
    works $1 $2 || { echo "skipped: '$1' cannot do this here"; return 77; }
    # a test that nobody calls would pass
    # shellcheck disable=SC2086
    CC=$1 CFLAGS=$(echo $2) TEST_FLAGS='-O0 -Wunused-function -Werror' \
        OUT=build/sanitize/$way sh tests/run $(names "$which")
}

# A test of one thread shows ThreadSanitizer nothing: those that have more, and
# a program that uses the library in four at once.
threads() {
    flags="-O1 -g1 -fsanitize=thread"
    suite gcc "$flags" || return $?
    set --
    for m in $(./amalgamate.sh --sources); do
        set -- "$@" "build/sanitize/tsan/src/$(module_name "$m").o"
    done
    # shellcheck disable=SC2086
    gcc $flags -DHFSBI_SPLIT tests/programs/threads.c "$@" \
        -pthread -o build/sanitize/tsan/threads &&
        build/sanitize/tsan/threads
}

way() { # in a subshell of its own
    JOINED='' RUN='' LIMIT=600 MODULES=''
    case $1 in
    no-simd | msan | s390x | aarch64) MODULES=$pure ;;
    m32 | valgrind | long | portable | kqueue) MODULES=$here ;;
    esac
    export JOINED RUN LIMIT MODULES
    which=all
    case $1 in
    cxx | split-O3) which=pure ;;
    no-simd) which="base utf8 json json_string json_args text text_window
             hash test_edit edit_refusals diff test_http" ;;
    msan) which="utf8 json json_string json_args json_write number text
             text_window hash test_edit edit_refusals edit_calls patch
             patch_random diff path test_http http_reply http_write regex glob
             ignore" ;;
    m32) which="json json_string json_args number hash text test_edit
             edit_refusals patch patch_random file_write record tools_read
             test_http test_api" ;;
    s390x | aarch64) which="base utf8 json json_string json_args number
             hash text text_window test_edit edit_refusals diff test_http" ;;
    joined) which="json_write file_write session api_jobs" ;;
    tsan) which="test_check file_root entry tree file_range watch proc_host
             proc_host_limits proc_signal tools_host tools_wake tools_jobs
             tools_once loop pool
             test_api api_stream api_files_end net_faults test_pipe test_pump
             sandbox_call sandbox_lost session_sandbox mcp_calls mcp_own
             program agent_sandbox test_hf hf_files hf_host test_codex
             test_e2b v1" ;;
    valgrind) which="json json_string json_args file file_write record
             test_check test_proc tools_args tools_files tools_read test_http test_api" ;;
    long) which="file_root proc_host_limits tools_output" ;;
    portable) which="file file_write file_root file_faults entry tree
             file_range watch test_proc proc_end
             proc_host proc_torture tools_jobs tools_tree loop
             poller test_api api_files" ;;
    kqueue) which="loop poller pool test_proc proc_host tools_jobs
             tools_host tools_wake server test_api api_stream api_files
             mcp_http mcp_stdio" ;;
    gcc-asan) which=system ;; # the pure ones: clang-asan
    clang-asan) # most of the others: gcc-asan
        which="$(names pure) file file_write tools_files test_api test_net fetch
               hub_requests hub_logs sandbox_call session" ;;
    musl) which="utf8 json json_string json_args text test_edit edit_refusals
             file file_write record tools_files test_http test_net sandbox_call
             test_api" ;;
    esac
    case $1 in
    msan | tsan | valgrind | s390x | aarch64) HFSB_TEST_QUICK=1 && export HFSB_TEST_QUICK ;;
    esac
    case $1 in
    gcc-asan) suite gcc "$gcc_asan" ;;
    no-simd) suite gcc "-O1 -DHFSB_NO_SIMD" ;;
    clang-asan)
        suite clang "-O1 $abort -fsanitize=address,undefined $integer" ;;
    msan)
        suite clang "-O1 $abort -fsanitize=memory
                     -fsanitize-memory-track-origins" ;;
    tsan) threads ;;
    valgrind)
        have valgrind || { echo "skipped: valgrind not found"; return 77; }
        RUN="valgrind -q --error-exitcode=9 --leak-check=full"
        suite gcc "$plain" ;;
    long) way=valgrind && suite gcc "$plain" ;;
    portable) # what replaces the features of Linux
        suite gcc "-O1 -g1 -DHFSBI_PORTABLE -fsanitize=address,undefined
                   -fno-sanitize-recover=all" ;;
    kqueue) # what the BSDs and macOS have for epoll, on a stand-in
        suite gcc "-O1 -g1 -DHFSBI_KQUEUE -Itests/support/kqueue
                   -fsanitize=address,undefined -fno-sanitize-recover=all" ;;
    m32) suite "$M32" "-O1 -g1 -fsanitize=undefined
                       -fno-sanitize-recover=all" ;;
    s390x)
        have qemu-s390x || { echo "skipped: qemu-s390x not found"; return 77; }
        RUN=qemu-s390x
        suite "s390x-linux-gnu-gcc -static" "-O1" ;;
    aarch64) # for NEON
        have qemu-aarch64 ||
            { echo "skipped: qemu-aarch64 not found"; return 77; }
        RUN=qemu-aarch64
        suite "aarch64-linux-gnu-gcc -static" "-O1" ;;
    musl) suite "musl-gcc -static" "-O1" ;;
    cxx) suite g++ "-std=c++17 -O1 -Wall -Wextra" ;;
    joined) JOINED=1 && suite clang "-O0 -Wall -Wextra" ;;
    split-O3) suite gcc "-O3 -flto=auto -D_FORTIFY_SOURCE=2
                         -fstack-protector-strong" ;;
    *) echo "no such way: $1; there are: $(echo $ways)"; return 2 ;;
    esac
}

if [ "${1:-}" = --list ]; then
    printf '%s\n' $ways
    exit 0
fi
[ $# -gt 0 ] || set -- $ways
bad=0 none=1
for way; do
    [ $# = 1 ] || echo "---- $way"
    (way "$way")
    case $? in
    0) none=0 ;;
    77) ;;
    *) none=0 bad=$((bad + 1)) ;;
    esac
done
[ $none = 0 ] || exit 77
[ $bad = 0 ]
