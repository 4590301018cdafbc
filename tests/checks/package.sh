#!/bin/sh
# What people install: `make install` and programs built against it by
# pkg-config, CMake and Meson; manuals, completions in real shells, the release
# archive, Debian packages, a static server for another machine, being a
# service of systemd, the examples for nginx and Docker, and the description of
# the API. A part whose tool is missing is skipped.
#   package.sh [PART...]    (all)
#   ZIG=FILE                another zig, which builds the server for aarch64
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

CFLAGS=-O0
export CFLAGS
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
here=$(pwd)
version=$(sh packaging/version.sh)
checks=0 failed=0 pids=
make -s build/hfsb build/hfsb-server CFLAGS=-O1 || exit 1
top=$(mktemp -d) || exit 1

end() {
    for p in $pids; do
        kill "$p" 2>/dev/null
        wait "$p" 2>/dev/null
    done
    rm -rf "$top"
}
trap end EXIT
trap 'exit 130' INT TERM

skip() { echo "skipped: $*"; }

step() { # WHAT COMMAND...: must exit with 0; its output is shown if not
    what=$1
    shift
    "$@" > "$top/log" 2>&1
    rc=$?
    same "$what" $rc 0
    [ $rc = 0 ] || tail -n 20 "$top/log"
    return $rc
}

serve() { # OPTION...: a server; its address in $url
    : > "$top/serve"
    build/hfsb-server --no-auth --port 0 "$@" > "$top/serve" 2>&1 &
    pids="$! $pids"
    url='' tries=0
    while [ -z "$url" ] && [ $tries -lt 600 ]; do
        url=$(sed -n 's|.*listens on \(http://[^ ,]*\).*|\1|p' "$top/serve")
        [ -n "$url" ] || sleep 0.1
        tries=$((tries + 1))
    done
}

# ---- a program of somebody else

user_program() {
    cat > "$1" <<'END'
#define HFSB_IMPLEMENTATION
#include "hfsb.h"
#include <stdio.h>
int main(void) {
    hfsb_tools      *tools;
    hfsb_tool_result result;
    if (hfsb_tools_open(NULL, &tools, NULL) != HFSB_OK) return 1;
    hfsb_tools_call_text(tools, HFSB_LIT("bash"),
                         HFSB_LIT("{\"command\":\"echo $((40+2))\"}"), NULL,
                         &result);
    printf("%s", result.output.len ? result.output.ptr : "");
    hfsb_tool_result_free(&result);
    hfsb_tools_close(tools);
    return 0;
}
END
}

runs() { # PROGRAM: the one above
    same "$1" "$("$1" 2>&1)" 42
}

# ---- make install

part_install() {
    # another machine's server, as `make static-all` leaves it; only the
    # header of the file counts
    mkdir -p build/static
    { head -c 18 /dev/zero; printf '\363\0'; } > build/static/hfsb-server-package
    chmod +x build/static/hfsb-server-package
    # as root would after `make`, and with a PREFIX that has a blank
    step "make install" make -s install DESTDIR="$top/stage dir" PREFIX=/usr \
        CFLAGS=-O1
    rm build/static/hfsb-server-package
    root="$top/stage dir/usr"
    for f in bin/hfsb bin/hfsb-server lib/hfsb/hfsb-server-riscv64 include/hfsb.h include/hfsb_server.h \
        include/hfsb_http_curl.h lib/pkgconfig/hfsb.pc \
        share/cmake/hfsb/hfsb-config.cmake \
        share/man/man1/hfsb-server.1 \
        share/bash-completion/completions/hfsb \
        share/zsh/site-functions/_hfsb-server \
        share/fish/vendor_completions.d/hfsb.fish; do
        same "$f is installed" "$([ -s "$root/$f" ] && echo yes)" yes
    done
    same "mode of a program" "$(stat -c %a "$root/bin/hfsb")" 755
    same "mode of a header" "$(stat -c %a "$root/include/hfsb.h")" 644
    if build/hfsb man > /dev/null 2>&1; then
        same "hfsb.1" "$([ -s "$root/share/man/man1/hfsb.1" ] && echo yes)" yes
    else
        skip "hfsb has no command man yet"
    fi
    if [ -x build/static/hfsb-server ]; then
        mkdir "$top/pipes"
        same "the installed hfsb sends its server" "$(HFSB_PIPE_DIR=$top/pipes \
            XDG_DATA_HOME=$top/data HFSB_LINGER=1 \
            "$root/bin/hfsb" bash --on exec:sh 'echo $((40+2))')" 42
    else
        skip "no static server: make static"
    fi
    same "version of hfsb.pc" \
        "$(sed -n 's/^Version: //p' "$root/lib/pkgconfig/hfsb.pc")" "$version"
    if have pkg-config; then
        user_program "$top/user.c"
        # shellcheck disable=SC2046,SC2086
        PKG_CONFIG_PATH="$root/lib/pkgconfig" \
            PKG_CONFIG_SYSROOT_DIR='' step "with pkg-config" \
            sh -c "eval cc -O0 -o '$top/by-pc' '$top/user.c' \
            \$(pkg-config --define-prefix --cflags --libs hfsb)" &&
            runs "$top/by-pc"
    else
        skip "no pkg-config"
    fi
    part_install_cmake
    part_install_meson
    step "make uninstall" make -s uninstall DESTDIR="$top/stage dir" PREFIX=/usr
    same "files after make uninstall" "$(find "$top/stage dir" -type f)" ''
}

# Programs of others against the staged folders.
part_install_cmake() {
    have cmake || { skip "no cmake"; return; }
    cmake_project "$top/made" "find_package(hfsb ${version%.*} REQUIRED)" \
        hfsb impl
    step "cmake with what make has installed" cmake -S "$top/made" \
        -B "$top/made/b" -DCMAKE_C_FLAGS=-O0 -DCMAKE_PREFIX_PATH="$root" &&
        step "its build" cmake --build "$top/made/b" &&
        runs "$top/made/b/with-hfsb" && runs "$top/made/b/with-impl"
    # in C++ only, and with a version that does not fit
    mkdir "$top/made/cxx"
    cp "$top/made/main.c" "$top/made/cxx/main.cpp"
    cat > "$top/made/cxx/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.16)
project(user CXX)
find_package(hfsb 99.1 QUIET)
if(hfsb_FOUND)
  message(FATAL_ERROR "99.1 was found")
endif()
find_package(hfsb REQUIRED)
add_executable(with-impl main.cpp)
target_link_libraries(with-impl PRIVATE hfsb::impl)
END
    step "cmake without C" cmake -S "$top/made/cxx" -B "$top/made/cxx/b" \
        -DCMAKE_PREFIX_PATH="$root" -DCMAKE_CXX_FLAGS=-O0
    step "its build" cmake --build "$top/made/cxx/b" &&
        runs "$top/made/cxx/b/with-impl"
}

part_install_meson() {
    have meson && have ninja && have pkg-config || { skip "no meson"; return; }
    mkdir "$top/made-meson"
    user_program "$top/made-meson/main.c"
    printf '%s\n' "project('user', 'c')" "hfsb = dependency('hfsb'," \
        "  version: '$version', allow_fallback: false)" \
        "executable('user', 'main.c', dependencies: hfsb)" \
        > "$top/made-meson/meson.build"
    ln -s "${root%/usr}" "$top/stage" # pkg-config splits a sysroot at blanks
    PKG_CONFIG_PATH="$root/lib/pkgconfig" PKG_CONFIG_SYSROOT_DIR="$top/stage" \
        step "meson with what make has installed" \
        meson setup "$top/made-meson/b" "$top/made-meson" --buildtype=plain &&
        step "its build" ninja -C "$top/made-meson/b" &&
        runs "$top/made-meson/b/user"
}

part_man() {
    build/hfsb-server --man > "$top/hfsb-server.1"
    ! build/hfsb man > "$top/hfsb.1" 2>/dev/null || pages="$top/hfsb.1"
    have mandoc || { skip "no mandoc"; return; }
    for page in "$top/hfsb-server.1" ${pages:-}; do
        same "mandoc -Tlint ${page##*/}" "$(mandoc -Tlint "$page" 2>&1)" ''
    done
    # every option that the program takes is there
    mandoc -Tascii "$top/hfsb-server.1" | sed "s/.$(printf '\b')//g" \
        > "$top/plain"
    sed -n 's/^ *{"\(--[a-z-]*\)", OPTION_.*/\1/p' \
        examples/hfsb-server/options.c > "$top/options"
    same "there are options" "$([ -s "$top/options" ] && echo yes)" yes
    while read -r option; do
        grep -qe "$option" "$top/plain"
        same "$option is in the manual" $? 0
    done < "$top/options"
}

# ---- completions

part_completion() {
    PATH=$here/build:$PATH
    export PATH
    mkdir "$top/comp"
    for shell in bash zsh fish; do
        hfsb-server --completion $shell > "$top/comp/server.$shell"
        hfsb completion $shell > "$top/comp/hfsb.$shell"
    done
    if have bash; then
        # shellcheck disable=SC2016
        words=$(bash --norc -c '. "$1"; . "$2"
            COMP_WORDS=(hfsb-server --max-b) COMP_CWORD=1; _hfsb_server
            echo "${COMPREPLY[@]}"
            COMP_WORDS=(hfsb gr) COMP_CWORD=1; _hfsb
            echo "${COMPREPLY[@]}"' - "$top/comp/server.bash" \
            "$top/comp/hfsb.bash")
        has "bash after hfsb-server --max-b" "$words" '--max-body --max-bodies'
        has "bash after hfsb gr" "$words" grep
    else
        skip "no bash"
    fi
    if have zsh; then part_completion_zsh; else skip "no zsh"; fi
    if have fish; then
        words=$(HOME=$top fish --no-config -c "source $top/comp/server.fish
            source $top/comp/hfsb.fish
            complete -C 'hfsb-server --max-b'; complete -C 'hfsb gr'" 2>&1)
        has "fish after hfsb-server --max-b" "$words" --max-bodies
        has "fish after hfsb gr" "$words" grep
    else
        skip "no fish"
    fi
}

part_completion_zsh() { # typed in a terminal of zsh's own
    mkdir "$top/comp/zsh"
    cp "$top/comp/server.zsh" "$top/comp/zsh/_hfsb-server"
    cp "$top/comp/hfsb.zsh" "$top/comp/zsh/_hfsb"
    cat > "$top/comp/try.zsh" <<'END'
zmodload zsh/zpty
zpty z zsh -f -i
look() { # reads what the terminal shows until a mark, or for a while
    local text all n=0
    while (( n < 600 )); do
        if zpty -r -t z text; then all+=$text; else sleep 0.1; (( ++n )); fi
        [[ $all != *$1* ]] || break
    done
    print -r -- $all
}
zpty -w z "PS1= RPS1= fpath=($1 \$fpath); autoload -U compinit;" \
    "compinit -u -d $1/dump; print REA''DY"
look READY > /dev/null
zpty -n -w z $'hfsb-server --max-bodi\t'
look bodies
zpty -n -w z $'\C-uhfsb checkp\t'
look checkpoints
zpty -d z
END
    words=$(HOME=$top TERM=xterm limited 240 zsh -f "$top/comp/try.zsh" \
        "$top/comp/zsh" 2>&1)
    has "zsh after hfsb-server --max-bodi" "$words" --max-bodies
    has "zsh after hfsb checkp" "$words" checkpoints
}

# ---- CMake and Meson

cmake_project() { # FOLDER HOW TARGET...: a program for each target
    folder=$1
    mkdir -p "$folder"
    user_program "$folder/main.c"
    {
        echo 'cmake_minimum_required(VERSION 3.16)'
        echo 'project(user C)'
        echo "$2"
        shift 2
        for target; do
            echo "add_executable(with-$target main.c)"
            echo "target_link_libraries(with-$target PRIVATE hfsb::$target)"
        done
    } > "$folder/CMakeLists.txt"
}

part_cmake() {
    have cmake || { skip "no cmake"; return; }
    set -- -DCMAKE_C_FLAGS=-O0
    cmake_project "$top/fetch" "include(FetchContent)
FetchContent_Declare(hfsb SOURCE_DIR \"$here\")
FetchContent_MakeAvailable(hfsb)" impl
    step "cmake with FetchContent" cmake -S "$top/fetch" -B "$top/fetch/b" \
        -DHFSB_INSTALL=ON -DCMAKE_INSTALL_PREFIX="$top/cmake" "$@" &&
        step "its build" cmake --build "$top/fetch/b" &&
        runs "$top/fetch/b/with-impl"
    same "a subproject builds no program of ours" \
        "$(find "$top/fetch/b" -name hfsb-server)" ''
    step "its install" cmake --install "$top/fetch/b" || return
    cmake_project "$top/find" "find_package(hfsb ${version%.*} REQUIRED)" \
        hfsb impl
    step "cmake with find_package" cmake -S "$top/find" -B "$top/find/b" "$@" \
        -DCMAKE_PREFIX_PATH="$top/cmake" &&
        step "its build" cmake --build "$top/find/b" &&
        runs "$top/find/b/with-hfsb" && runs "$top/find/b/with-impl"
    same "version of CMake" "$(sed -n 's/^set(PACKAGE_VERSION "\(.*\)")/\1/p' \
        "$top"/cmake/lib*/cmake/hfsb/hfsb-config-version.cmake)" "$version"
}

part_meson() {
    have meson && have ninja || { skip "no meson"; return; }
    mkdir -p "$top/meson/subprojects"
    ln -s "$here" "$top/meson/subprojects/hfsb"
    user_program "$top/meson/main.c"
    cat > "$top/meson/meson.build" <<'END'
project('user', 'c')
headers = dependency('hfsb', fallback: 'hfsb')
executable('with-impl', 'main.c',
  dependencies: dependency('hfsb-impl', fallback: 'hfsb'))
END
    step "meson with a subproject" \
        meson setup "$top/meson/b" "$top/meson" --buildtype=plain &&
        step "its build" ninja -C "$top/meson/b" &&
        runs "$top/meson/b/with-impl"
}

# ---- versions and recipes

part_recipes() {
    have python3 || { skip "no python3"; return; }
    for f in package.json packaging/vcpkg/hfsb/vcpkg.json; do
        same "version of $f" "$(python3 -c 'import json, sys
print(json.load(open(sys.argv[1]))["version"])' $f)" "$version"
    done
    for f in $(python3 -c 'import json
print(*json.load(open("package.json"))["src"])'); do
        same "$f of package.json" "$([ -f "$f" ] && echo yes)" yes
    done
    has "debian/changelog" "$(head -n 1 packaging/debian/changelog)" \
        "($version-"
    step "conanfile.py is Python" python3 -c 'import ast
ast.parse(open("packaging/conan/conanfile.py").read())'
    if have conan; then
        step "conan create" conan create packaging/conan
    else
        skip "no conan"
    fi
}

# ---- the archive, and what is built from it

part_dist() {
    tar --version 2>/dev/null | grep -q GNU || { skip "no GNU tar"; return; }
    step "make dist" make -s dist || return
    archive=build/dist/hfsb-$version.tar.gz
    (cd build/dist && sha256sum -c SHA256SUMS > /dev/null 2>&1)
    same "SHA256SUMS" $? 0
    first=$(sha256sum < "$archive")
    tar -tvzf "$archive" > "$top/list"
    same "owners in the archive" \
        "$(awk '{ print $2 }' "$top/list" | sort -u)" 0/0
    mkdir "$top/dist"
    tar -xzf "$archive" -C "$top/dist"
    unpacked=$top/dist/hfsb-$version
    # of an unpacked archive with other times and modes: the same bytes
    (
        cd "$unpacked" || exit 1
        umask 077
        SOURCE_DATE_EPOCH=$(stat -c %Y LICENSE)
        export SOURCE_DATE_EPOCH
        find . -type f -exec touch {} +
        chmod 600 README.md
        make -s dist
    ) > "$top/log" 2>&1
    same "make dist of the unpacked archive" \
        "$(sha256sum < "$unpacked/$archive")" "$first"
    rm -rf "$unpacked/build"
    step "a test of the unpacked archive" env JOBS=1 \
        MODULES="$(./amalgamate.sh --sources core)" sh "$unpacked/tests/run" \
        utf8
    if have dpkg-buildpackage && have dh; then
        part_debian "$unpacked"
    else
        skip "no debhelper: no Debian packages"
        step "make in the unpacked archive" \
            make -s -C "$unpacked" build/hfsb-server
    fi
}

part_debian() { # FOLDER
    cp "$archive" "$1/../hfsb_$version.orig.tar.gz"
    cp -R "$1/packaging/debian" "$1/debian"
    (
        cd "$1" || exit 1
        unset CFLAGS
        DEB_BUILD_OPTIONS='nocheck noautodbgsym' DEB_CFLAGS_APPEND='-O0 -g0' \
            dpkg-buildpackage -us -uc -nc
    ) > "$top/log" 2>&1
    same "dpkg-buildpackage" $? 0 || { tail -n 20 "$top/log"; return; }
    for deb in hfsb libhfsb-dev; do
        dpkg-deb -x "$1"/../${deb}_*.deb "$top/deb-$deb"
    done
    same "hfsb of the package" "$("$top/deb-hfsb/usr/bin/hfsb" --version)" \
        "hfsb $version"
    same "the header of the package" "$(cmp hfsb.h \
        "$top/deb-libhfsb-dev/usr/include/hfsb.h" && echo same)" same
    for f in "$top"/deb-libhfsb-dev/usr/share/doc/libhfsb-dev/examples/*.c; do
        step "the packaged example ${f##*/}" ${CC:-cc} -fsyntax-only \
            -DHFSB_IMPLEMENTATION_DONE -DHFSB_SERVER_IMPLEMENTATION_DONE \
            -I"$top/deb-libhfsb-dev/usr/include" "$f"
    done
    same "it was compiled" "$(basename "$f")" run_command.c
    have lintian || { skip "no lintian"; return; }
    lintian --allow-root --fail-on none "$1"/../hfsb_*.changes \
        > "$top/lintian" 2>/dev/null
    build/hfsb man > /dev/null 2>&1 ||
        sed -i '/no-manual-page.*usr.bin.hfsb\]/d' "$top/lintian"
    same "lintian" "$(grep '^[EW]:' "$top/lintian")" ''
}

# ---- static, for another machine

part_static() {
    have qemu-aarch64 || { skip "no qemu-aarch64"; return; }
    find_zig > "$top/log" || skip "no musl for aarch64"
    # quickly, not small: static.sh looks at the real one
    STATIC_CFLAGS=-O0 sh packaging/static.sh aarch64 > "$top/log" 2>&1 ||
        { skip "no compiler for aarch64"; return; }
    tail -n 1 "$top/log"
    server=build/static/hfsb-server-aarch64
    same "it is static" "$(qemu-aarch64 $server --version)" \
        "hfsb-server $version"
    : > "$top/serve"
    qemu-aarch64 $server --no-auth --port 0 --confine none > "$top/serve" 2>&1 &
    pids="$! $pids"
    tries=0
    while ! grep -q listens "$top/serve" && [ $tries -lt 600 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    url=$(sed -n 's|.*listens on \(http://[^ ,]*\).*|\1|p' "$top/serve")
    same "--check of it, by itself" \
        "$(qemu-aarch64 $server --check "$url")" "$url: /api/health answers 200."
    have curl || { skip "no curl"; return; }
    has "a command for aarch64" "$(curl -s "$url/api/bash" \
        -H 'Content-Type: application/json' -d '{"command":"echo $((6*7))"}')" \
        '"output":"42\n"'
}

# ---- a service

part_check() {
    serve --unix "$top/socket"
    build/hfsb-server --check "$url" > "$top/log" 2>&1
    same "--check of a server" "$?: $(cat "$top/log")" \
        "0: $url: /api/health answers 200."
    build/hfsb-server --check "unix:$top/socket" > /dev/null 2>&1
    same "--check of a Unix socket" $? 0
    build/hfsb-server --check "$url/api/nothing" > "$top/log" 2>&1
    same "--check of a wrong path" "$?" 1
    has "--check of a wrong path" "$(cat "$top/log")" 404
    build/hfsb-server --check http://127.0.0.1:1 > /dev/null 2>&1
    same "--check where nobody listens" $? 1
    build/hfsb-server --check http://name.invalid > /dev/null 2>&1
    same "--check of a name" $? 2
}

part_systemd() {
    if have python3; then
        step "as a service" python3 tests/python/service.py build/hfsb-server
    else
        skip "no python3"
    fi
    if have systemd-analyze; then
        for unit in service socket; do
            sed 's|/usr/local/bin/hfsb-server|/bin/true|' \
                examples/systemd/hfsb-server.$unit \
                > "$top/hfsb-server.$unit"
        done
        verified=$(systemd-analyze verify --man=no "$top/hfsb-server.service" \
            "$top/hfsb-server.socket" 2>&1 | grep hfsb-server)
        same "systemd-analyze verify" "$verified" ''
    fi
    activate=$(command -v systemd-socket-activate) ||
        { skip "no systemd-socket-activate"; return; }
    have curl && have python3 || { skip "no curl"; return; }
    port=$(free_port)
    "$activate" -l "127.0.0.1:$port" "$here/build/hfsb-server" --no-auth \
        > "$top/activate" 2>&1 &
    pids="$! $pids"
    has "systemd-socket-activate" \
        "$(curl -s --retry 20 --retry-connrefused --retry-delay 1 \
        "http://127.0.0.1:$port/api/health")" '"status":"ok"'
}

free_port() {
    python3 -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

# ---- nginx, Caddy

part_nginx() {
    nginx=$(command -v nginx || ls /usr/sbin/nginx 2>/dev/null)
    [ -n "$nginx" ] && have curl && have python3 ||
        { skip "no nginx, curl or python3"; return; }
    serve --api codex
    port=$(free_port)
    {
        [ "$(id -u)" != 0 ] || echo 'user root;'
        echo "daemon off; master_process off; pid $top/nginx.pid;
            error_log $top/nginx.log; events { worker_connections 64; }
            http { access_log off;"
        for p in client_body proxy fastcgi uwsgi scgi; do
            echo "${p}_temp_path $top/nginx-$p;"
        done
        # TLS is the business of tls.sh
        sed -e "s|127.0.0.1:7860|${url#http://}|" -e '/ssl_certificate/d' \
            -e "s|listen 443 ssl http2|listen 127.0.0.1:$port|" \
            -e 's|box.example.org|localhost|' examples/nginx/hfsb.conf
        echo '}'
    } > "$top/nginx.conf"
    "$nginx" -c "$top/nginx.conf" -p "$top" -e "$top/nginx.log" \
        > "$top/nginx.out" 2>&1 &
    pids="$! $pids"
    through_proxy nginx "http://localhost:$port"
}

part_caddy() {
    have caddy && have curl && have python3 ||
        { skip "no caddy, curl or python3"; return; }
    HOME=$top step "the Caddyfile" caddy validate --adapter caddyfile \
        --config examples/caddy/Caddyfile
    serve --api codex
    port=$(free_port)
    {
        printf '{\n\tadmin off\n\tauto_https off\n}\n'
        sed -e "s|127.0.0.1:7860|${url#http://}|" \
            -e "s|^box.example.org|http://localhost:$port|" \
            examples/caddy/Caddyfile
    } > "$top/Caddyfile"
    HOME=$top caddy run --adapter caddyfile --config "$top/Caddyfile" \
        > "$top/caddy.out" 2>&1 &
    pids="$! $pids"
    through_proxy caddy "http://localhost:$port"
}

through_proxy() { # NAME URL
    has "health through $1" "$(curl -s --retry 20 --retry-connrefused \
        --retry-delay 1 "$2/api/health")" '"status":"ok"'
    # more than nginx takes by default, and in pieces
    head -c 3000000 /dev/zero > "$top/zeros"
    has "an upload through $1" "$(curl -s -T - -H 'Expect:' \
        "$2/api/files?path=$top/copy" < "$top/zeros")" '"bytes":3000000'
    # the command ends only once its first output has come
    rm -f "$top/go" "$top/result"
    curl -sN "$2/api/bash" -H 'Content-Type: application/json' -d "{\"command\":
        \"echo first; until [ -e $top/go ]; do sleep 0.05; done\",
        \"stream\":true, \"timeout\":60}" |
        while read -r line; do
            case $line in
            *'"text":"first'*) : > "$top/go" ;;
            *'event: result'*) [ ! -e "$top/go" ] || echo seen > "$top/result" ;;
            esac
        done
    same "a stream through $1" "$(cat "$top/result" 2>/dev/null)" seen
    same "200 streams through $1" \
        "$(limited 400 python3 tests/python/streams.py "$2" 200)" 200
    for m in 2 20; do # seconds that it stays open: more on a busy machine
        upgraded=$(curl -s -i -m $m --http1.1 "$2/codex" \
            -H 'Connection: Upgrade' -H 'Upgrade: websocket' \
            -H 'Sec-WebSocket-Version: 13' \
            -H 'Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==' 2>/dev/null |
            head -n 1 | tr -d '\r')
        [ -z "$upgraded" ] || break
    done
    has "a WebSocket through $1" "$upgraded" 101
}

# ---- Docker: what its RUN lines do to the users of a base image

docker_run() { # DOCKERFILE: the RUN line that makes the user
    awk '/^RUN .*1000|^RUN if/ { on = 1; sub(/^RUN /, "") }
         on { line = $0; more = sub(/\\$/, "", line); print line
              if (!more) exit }' "$1"
}

part_docker() {
    ids=$(for f in examples/docker/Dockerfile examples/space/Dockerfile; do
        docker_run $f | sh -n 2>&1
        grep -c -- '--check' $f
    done)
    same "RUN lines parse, and both have a HEALTHCHECK" "$ids" "1
1"
    [ "$(id -u)" = 0 ] && busybox=$(command -v busybox) &&
        chroot=$(command -v chroot) && "$chroot" / true 2>/dev/null || { skip "no root or busybox"; return; }
    for base in empty taken bare; do
        root=$top/base-$base
        mkdir -p "$root/bin" "$root/etc" "$root/home"
        cp "$busybox" "$root/bin/busybox"
        for f in sh grep adduser mkdir chown id; do
            ln -s busybox "$root/bin/$f"
        done
        [ $base != bare ] || rm "$root/bin/adduser"
        echo 'root:x:0:0::/:/bin/sh' > "$root/etc/passwd"
        echo 'root:x:0:' > "$root/etc/group"
        [ $base != taken ] || {
            echo 'node:x:1000:1000::/home/node:/bin/sh' >> "$root/etc/passwd"
            echo 'node:x:1000:' >> "$root/etc/group"
        }
        docker_run examples/docker/Dockerfile > "$root/run"
        step "the RUN line with $base uid 1000" \
            env PATH=/bin "$chroot" "$root" /bin/sh -e /run
        same "users with uid 1000 ($base)" \
            "$(grep -c ':1000:' "$root/etc/passwd")" 1
        same "owner of /app ($base)" "$(stat -c %u "$root/app")" 1000
        same "owner of the home ($base)" "$(stat -c %u "$root/home/user")" 1000
    done
    # YAML that can be read
    if have python3 && python3 -c 'import yaml' 2>/dev/null; then
        for f in examples/docker/compose.yaml examples/kubernetes/*.yaml; do
            step "$f" python3 -c 'import sys, yaml
assert list(yaml.safe_load_all(open(sys.argv[1])))' "$f"
        done
    else
        skip "no python3-yaml"
    fi
    # it would start without a token, and answer 503
    # shellcheck disable=SC2016
    grep -q 'SANDBOX_API_TOKEN=${SANDBOX_API_TOKEN:?' \
        examples/docker/compose.yaml
    same "compose.yaml requires a token" $? 0
    # what .dockerignore lets through is what the Dockerfile copies
    for f in $(sed -n 's/^COPY \([^-].*\) [^ ]*$/\1/p' \
        examples/docker/Dockerfile); do
        grep -qxF "!$f" .dockerignore
        same "$f is in .dockerignore" $? 0
    done
}

# ---- OpenAPI

part_openapi() {
    have curl || { skip "no curl"; return; }
    serve
    curl -s "$url/api/openapi.json" > "$top/openapi.json"
    has "its version" "$(cat "$top/openapi.json")" \
        "\"title\":\"hfsb\",\"version\":\"$version\""
    # every endpoint of the documentation is described
    for path in $(sed -n 's/^| \(`.*`\) |.*/\1/p' docs/server.md |
        grep -o '/api/[a-z/A-Z.]*' | sed 's|ID|{id}|; s|^/api/TOOL|/api/bash|' |
        sort -u) /mcp /reset /healthz; do
        grep -qF "\"$path\":{" "$top/openapi.json"
        same "$path is described" $? 0
    done
    if have npm && limited 120 npm install --prefix "$top/npm" \
        --ignore-scripts --no-audit --no-fund \
        @seriousme/openapi-schema-validator > "$top/log" 2>&1; then
        has "the validator" "$("$top/npm/node_modules/.bin/validate-api" \
            "$top/openapi.json" 2>&1)" '"valid": true'
    else
        skip "npm could not install the validator of OpenAPI"
    fi
}

# shellcheck disable=SC2048
for one in ${*:-install man completion cmake meson recipes check systemd \
    nginx caddy docker openapi static dist}; do
    begin=$(seconds)
    "part_$one"
    echo "$one: $(($(seconds) - begin)) s"
done
echo "$checks checks of packages, $failed failed"
[ $failed = 0 ]
