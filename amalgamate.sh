#!/bin/sh
# Joins src/ into the committed single-file headers.
#   ./amalgamate.sh            rewrite the headers that changed
#   ./amalgamate.sh --check    exit 1 if a committed header is stale, or if a
#                              room uses a room below it (proved with nm)
#   ./amalgamate.sh --sources [ROOM...]   list the .c files of these rooms
#   ./amalgamate.sh --page FILE    write the page of the server, compressed,
#                              as a header for HFSB_PAGE_GZIP
#   ./amalgamate.sh --space FILE   write hfsb_space.h: the server's source and
#                              its Dockerfile as bytes, for creating a Space
# The same bytes everywhere: explicit lists, LC_ALL=C, LF only, no dates.
set -eu
LC_ALL=C; export LC_ALL
target=
if [ "${1:-}" = --space ] || [ "${1:-}" = --page ]; then
    case "${2:-}" in
    '') echo "amalgamate: $1 needs the name of a file" >&2; exit 2 ;;
    /*) target=$2 ;;
    *) target=$PWD/$2 ;;
    esac
fi
cd "$(dirname "$0")"

# The rooms of src/, in order: each uses only those above it. A file that is
# not listed is an error.
ROOMS="core edit pattern http os proc check history tools net remote hub server
       api mcp dialect"
PURE="core edit pattern http"          # touch no OS: all of HFSB_PURE
HUB="hub"                              # only with HFSB_HUB
SERVER="server api mcp dialect"        # in hfsb_server.h, not in hfsb.h

headers_of() { # the public headers of a room
    case $1 in
    core) echo base.h utf8.h json.h text.h hash.h path.h ;;
    edit) echo diff.h edit.h patch.h ;;
    pattern) echo regex.h ;;
    http) echo http.h url.h ;;
    os) echo cancel.h file.h ;;
    proc) echo confine.h proc.h ;;
    check) echo check.h ;;
    history) echo checkpoint.h ;;
    tools) echo journal.h tools.h ;;
    net) echo net.h ;;
    remote) echo sandbox.h ;;
    hub) echo hub.h space.h session.h ;;
    server) echo server.h ;;
    mcp) echo mcp.h ;;
    dialect) echo dialect.h ;;
    esac
}

sources_of() { # the sources of a room; its private header comes before them
    case $1 in
    core) echo base.c utf8.c number.c json_parse.c json_read.c json_write.c \
        json_build.c text.c hash.c date.c secret.c path.c ;;
    edit) echo diff.c fold.c match.c indent.c mend.c rewrite.c intent.c \
        strip.c reading.c closest.c explain.c edit.c patch_parse.c \
        patch_indent.c patch_update.c patch.c ;;
    pattern) echo regex_class.c regex_compile.c regex.c glob.c ;;
    http) echo url.c head.c parse.c write.c sse.c websocket.c multipart.c \
        connect.c mux.c ;;
    os) echo os.c loop.c pool.c root.c file.c temp.c file_write.c file_put.c \
        walk.c entry.c tree.c file_range.c watch.c ;;
    proc) echo landlock.c seccomp.c limits.c namespaces.c guard.c confine.c \
        wall.c tree.c terminal.c uids.c spawn.c proc.c orphans.c record.c feed.c ;;
    check) echo check.c python.c ;;
    history) echo store.c scan.c restore.c history.c ;;
    tools) echo args.c result.c journal.c job.c program.c far.c seen.c tools.c \
        call.c exit.c bash.c control.c read.c write.c edit_lines.c patch.c \
        search.c glob.c grep.c list.c plan.c undo.c table.c ;;
    net) echo socket.c proxy.c net.c fetch.c websocket.c mux.c \
        pipe_name.c pipe.c ;;
    remote) echo seen.c sandbox_call.c sandbox_files.c sandbox.c \
        exec.c v1_files.c v1.c ;;
    hub) echo request.c hub.c space.c commit.c jobs.c sandbox.c create.c \
        job_home.c job_create.c preload.c hf_jobs_run.c hf_jobs.c session.c ;;
    server) echo idle.c timer.c request.c reply.c conn.c websocket.c wire.c \
        relay_head.c relay.c server.c ;;
    api) echo fields.c call.c fetch.c upload.c files.c open.c init.c reset.c \
        events.c raw.c exec.c stats.c page_html.c page.c \
        openapi.c api.c ;;
    mcp) echo message.c show.c list.c call.c channel.c stdio.c http.c mcp.c \
        remote.c ;;
    dialect) echo codex.c codex_params.c codex_session.c codex_process.c \
        codex_files.c codex_calls.c codex_bridge.c agent_sandbox_exec.c agent_sandbox.c dialect.c \
        host.c hf_exec.c hf_files.c hf_host.c hf_create.c hf.c e2b.c \
        e2b_rest.c e2b_transfer.c e2b_process.c e2b_input.c e2b_files.c e2b_watch.c \
        e2b_control.c ;;
    esac
}

listed() { # headers_of or sources_of, ROOM...: the paths below src/
    what=$1
    shift
    for room; do
        for f in $($what $room); do echo "$room/$f"; done
    done
}

implementation() { # ROOM...: private header, then sources, of each
    for room; do
        echo "$room/${room}_private.h"
        listed sources_of $room
    done
}

rooms_but() { # the rooms that are not in the list $1
    for room in $ROOMS; do
        case " $1 " in *" $room "*) ;; *) echo $room ;; esac
    done
}

CONFIG="core/config.h"                 # before extern "C"
OS=$(rooms_but "$PURE $HUB $SERVER")   # what HFSB_PURE leaves out
# What hfsb_http_curl.h adds; only this part of src/ needs libcurl.
CURL_HEADERS="net/curl/http_curl.h"
CURL_SOURCES="net/curl/curl_private.h net/curl/libcurl.c net/curl/http_curl.c"
# only these may include <system> headers
SYSTEM="core/config.h core/core_private.h os/os_private.h net/net_private.h
        server/server_private.h net/curl/curl_private.h net/curl/libcurl.c"
ALL="hfsb.h hfsb_server.h hfsb_http_curl.h"

case "${1:-}" in
--sources) # the .c files of the rooms named (all), for scripts
    shift
    listed sources_of ${*:-$ROOMS} | sed 's|^|src/|'
    exit ;;
'' | --check | --space | --page) ;;
*) echo "amalgamate: unknown argument $1 (--check, --page, --space," \
       "--sources)" >&2
   exit 2 ;;
esac

die() { echo "amalgamate: $*" >&2; exit 1; }

lint() { # every source file is listed, LF-terminated and tab-free
    all=" $(echo $CONFIG $(listed headers_of $ROOMS) \
        $(implementation $ROOMS) $CURL_HEADERS $CURL_SOURCES) "
    for f in $(find src -name '*.[ch]' | sort); do
        case "$all" in *" ${f#src/} "*) ;; *) die "$f is not listed" ;; esac
        [ -z "$(tail -c1 "$f")" ] || die "$f: no newline at end of file"
        ! grep -q "$(printf '[\r\t]')" "$f" || die "$f: CR or TAB"
        case " $(echo $SYSTEM) " in *" ${f#src/} "*) ;; *)
            ! grep -nE '^[ ]*#[ ]*include[ ]*<' "$f" >&2 ||
                die "$f: system include" ;;
        esac
    done
}

body() { # the file without its local includes and #pragma once
    printf '\n/* ---- src/%s ---- */\n' "$1"
    awk '/^[ ]*#[ ]*include[ ]*"/ || /^#pragma once$/ { skip = 1; next }
         skip && /^$/ { next } { skip = 0; print }' "src/$1"
}

emit_hfsb_h() {
    printf '/* GENERATED by amalgamate.sh from src/: edit there, not here.\n\n'
    cat src/hfsb.doc.txt
    printf '*/\n#ifndef HFSB_H\n#define HFSB_H\n'
    for f in $CONFIG; do body "$f"; done
    printf '\n#ifdef __cplusplus\nextern "C" {\n#endif\n'
    for f in $(listed headers_of $PURE); do body "$f"; done
    printf '\n#ifndef HFSB_PURE\n'
    for f in $(listed headers_of $OS); do body "$f"; done
    printf '\n#endif /* HFSB_PURE */\n'
    printf '\n#ifdef __cplusplus\n}\n#endif\n#endif /* HFSB_H */\n'
    # a guard of its own: another header may have included the rest before
    printf '\n#if defined(HFSB_HUB) && !defined(HFSB_HUB_H)\n'
    printf '#define HFSB_HUB_H\n#ifdef HFSB_PURE\n#error "HFSB_HUB needs '
    printf 'the OS part: do not define HFSB_PURE"\n#endif\n'
    printf '\n#ifdef __cplusplus\nextern "C" {\n#endif\n'
    for f in $(listed headers_of $HUB); do body "$f"; done
    printf '\n#ifdef __cplusplus\n}\n#endif\n#endif /* HFSB_HUB_H */\n'
    # one error, and not the hundreds that the implementations would add
    printf '\n/* _FEATURES_H is of glibc and musl. */\n#if defined(_FEATURES_H) && '
    printf 'defined(HFSB_IMPLEMENTATION) && \\\n'
    printf '    !defined(HFSB_IMPLEMENTATION_DONE) && !defined(HFSB_PURE) && '
    printf '\\\n    defined(__linux__) && !defined(_GNU_SOURCE)\n'
    printf '#error "a libc header came before hfsb.h: in the file that '
    printf 'defines \\\nHFSB_IMPLEMENTATION include hfsb.h first, or compile '
    printf 'with -D_GNU_SOURCE"\n'
    for f in HFSB HFSB_SERVER HFSB_HTTP_CURL; do
        printf '#define %s_IMPLEMENTATION_DONE\n' "$f"
    done
    printf '#endif\n'
    printf '\n#if defined(HFSB_IMPLEMENTATION) && '
    printf '!defined(HFSB_IMPLEMENTATION_DONE)\n'
    printf '#define HFSB_IMPLEMENTATION_DONE\n'
    for f in $(implementation $PURE); do body "$f"; done
    printf '\n#ifndef HFSB_PURE\n'
    for f in $(implementation $OS); do body "$f"; done
    printf '\n#ifdef HFSB_HUB\n'
    for f in $(implementation $HUB); do body "$f"; done
    printf '\n#endif /* HFSB_HUB */\n'
    printf '\n#endif /* HFSB_PURE */\n'
    printf '\n#endif /* HFSB_IMPLEMENTATION */\n'
    license
}

license() {
    printf '\n/*\n'
    sed 's/^/   /; s/ *$//' LICENSE
    printf '*/\n'
}

# A header on top of hfsb.h: NAME GUARD HEADERS SOURCES. Its implementation uses
# private functions of hfsb.h, so both implementations must be in one file;
# either header may be included first.
emit_on_top() {
    printf '/* GENERATED by amalgamate.sh from src/: edit there, not here.\n\n'
    cat "src/$1.doc.txt"
    printf '*/\n#ifdef HFSB_PURE\n#error "%s.h needs the OS part: ' "$1"
    printf 'do not define HFSB_PURE"\n#endif\n'
    printf '\n#include "hfsb.h"\n'
    printf '\n#ifndef %s_H\n#define %s_H\n' "$2" "$2"
    printf '\n#ifdef __cplusplus\nextern "C" {\n#endif\n'
    for f in $3; do body "$f"; done
    printf '\n#ifdef __cplusplus\n}\n#endif\n#endif /* %s_H */\n' "$2"
    printf '\n#if defined(HFSB_IMPLEMENTATION) && '
    printf '!defined(%s_IMPLEMENTATION_DONE)\n' "$2"
    printf '#define %s_IMPLEMENTATION_DONE\n' "$2"
    printf '#ifndef HFSB_IMPLEMENTATION_DONE\n'
    printf '#error "hfsb.h has not brought its implementation into this '
    printf 'file, which %s.h \\\nneeds: define HFSB_IMPLEMENTATION ' "$1"
    printf 'before both, and take both from the same version"\n#endif\n'
    for f in $4; do body "$f"; done
    printf '\n#endif /* HFSB_IMPLEMENTATION */\n'
    license
}

# What a Space is made of: "file here" or "path there=file here".
SPACE="Dockerfile=examples/space/Dockerfile Makefile hfsb.h hfsb_server.h
       examples/hfsb-server.c examples/hfsb-server/*"

# Numbers in place of a string: C promises no more than 4,095 characters of
# one, and C++ forbids what does not fit a char.
emit_space_h() {
    printf '/* GENERATED by amalgamate.sh --space: the files of a Space that '
    printf 'runs\n   hfsb-server, for hfsb_sandbox_spec. */\n'
    printf '#ifndef HFSB_SPACE_H\n#define HFSB_SPACE_H\n\n'
    printf '#include "hfsb.h"\n'
    printf '#ifndef HFSB_HUB_H\n#error "hfsb_space.h needs HFSB_HUB: '
    printf 'define it before hfsb.h"\n#endif\n'
    n=0
    : > "$tmp/list"
    for f in $SPACE; do
        [ -s "${f#*=}" ] || die "${f#*=} is missing or empty"
        printf '\n/* %s */\nstatic const unsigned char ' "${f%%=*}"
        printf 'hfsb_space_bytes_%d[] = {\n' $n
        od -An -v -tu1 "${f#*=}" |
            sed 's/^ *//; s/ *$//; s/  */,/g; s/$/,/'
        printf '};\n'
        printf '    {"%s",\n     {(const char *)hfsb_space_bytes_%d,\n' \
            "${f%%=*}" $n >> "$tmp/list"
        printf '      sizeof hfsb_space_bytes_%d}},\n' $n >> "$tmp/list"
        n=$((n + 1))
    done
    printf '\nHFSBI_UNUSED static const hfsb_commit_file '
    printf 'hfsb_space_files[] = {\n'
    cat "$tmp/list"
    printf '};\nHFSBI_UNUSED static const size_t hfsb_space_file_count = '
    printf '%d;\n\n#endif /* HFSB_SPACE_H */\n' $n
}

# The page as it is served: src/api/page.html without indentation, lines of
# comment, and blanks and line ends that mean nothing in style and script; some
# words of the script are shorter. A script has a statement to a line, and no
# string or regular expression of several lines.
PAGE=src/api/page.html
MAX_PAGE=40000

page() {
    awk '
    BEGIN {
        short["const"] = "let"; short["undefined"] = "void 0"
        short["true"] = "!0"; short["false"] = "!1"
    }
    function word(c) { return c ~ /[A-Za-z0-9_$]/ }
    # a blank is needed between words, and between signs that would join
    function needed(a, b) {
        return (word(a) && word(b)) || ((a == "+" || a == "-") && a == b)
    }
    function script(s,   i, c, out, quote, list, last, name) {
        for (i = 1; i <= length(s); i++) {
            c = substr(s, i, 1)
            if (quote != "") {
                out = out c
                if (c == "\\") out = out substr(s, ++i, 1)
                else if (quote == "/" && c == "[") list = 1
                else if (quote == "/" && c == "]") list = 0
                else if (c == quote && !list) quote = ""
                continue
            }
            last = substr(out, length(out))
            if (c == " ") {
                if (needed(last, substr(s, i + 1, 1))) out = out c
                continue
            }
            if (word(c)) {
                match(substr(s, i), /^[A-Za-z0-9_$]+/)
                name = substr(s, i, RLENGTH)
                i += RLENGTH - 1
                out = out (last != "." && name in short ? short[name] : name)
                continue
            }
            if (c == "\"" || c == "\047" || c == "`" ||
                (c == "/" && index("(,=:[!&|?{};>", last))) quote = c
            out = out c
        }
        return out
    }
    function style(s) {
        gsub(/ *\{ */, "{", s); gsub(/ *\} */, "}", s); gsub(/; */, ";", s)
        gsub(/, */, ",", s); gsub(/: +/, ":", s); gsub(/;\}/, "}", s)
        gsub(/ > /, ">", s)
        return s
    }
    # puts a line, joined to the one before where nothing comes between them
    function put(s, always) {
        if (length(held) + length(s) < 500 &&
            (always || held ~ /[[{(,;:]$/ || s ~ /^[]})]/)) held = held s
        else { flush(); held = s }
    }
    function flush() { if (held != "") print held; held = "" }
    { sub(/^ +/, "") } /^\/\/ / || /^$/ { next }
    /^<\/?(style|script)>$/ { flush(); kind = $0; print; next }
    kind == "<script>" { put(script($0), 0); next }
    kind == "<style>" { put(style($0), 1); next }
    { print }' "$PAGE"
}

# The page as lines of C, in a source of its own.
emit_page_c() {
    printf '/* page_html.c - GENERATED by amalgamate.sh from page.html: edit '
    printf 'there.\n\n   The lines of the page at "/". */\n'
    printf '/* clang-format off */\n#include "api_private.h"\n\n'
    printf 'HFSBI_FN const char *const *hfsbi_webpage_lines(void) {\n'
    printf '    static const char *const lines[] = {\n'
    page | sed 's/[\\"]/\\&/g; s/??/?\\?/g; s/^/        "/; s/$/",/'
    printf '        NULL};\n    return lines;\n}\n'
}

emit_page_gzip() { # the same, by gzip, which is not the same everywhere
    printf '/* GENERATED by amalgamate.sh --page */\n'
    printf 'static const unsigned char hfsbi_webpage_gzip[] = {\n'
    page | gzip -9n | od -An -v -tu1 |
        sed 's/^ *//; s/ *$//; s/  */,/g; s/$/,/'
    printf '};\n'
}

lint_page() {
    [ "$(page | wc -c)" -lt $MAX_PAGE ] ||
        die "$PAGE: the page has $(page | wc -c) bytes, at most $MAX_PAGE"
    ! grep -n '[^ -~]' "$PAGE" >&2 || die "$PAGE: not plain ASCII"
}

# renew FILE: replaces it by the one of that name in $tmp, if they differ
renew() {
    cmp -s "$tmp/${1##*/}" "$1" && return
    cp "$tmp/${1##*/}" "$1.new" && mv "$1.new" "$1"
}

tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
if [ -n "$target" ]; then
    [ ! -e "$target" ] || [ -f "$target" ] ||
        die "$target is not a regular file: it would be replaced"
    case $1 in
    --space) emit_space_h > "$tmp/${target##*/}" ;;
    *) emit_page_gzip > "$tmp/${target##*/}" ;;
    esac
    renew "$target"
    exit
fi
lint_page
emit_page_c > "$tmp/page_html.c"
if [ "${1:-}" = --check ]; then
    cmp -s "$tmp/page_html.c" src/api/page_html.c ||
        die "src/api/page_html.c is stale: run ./amalgamate.sh and commit it"
else
    renew src/api/page_html.c
fi
lint
emit_hfsb_h > "$tmp/hfsb.h"
emit_on_top hfsb_server HFSB_SERVER "$(listed headers_of $SERVER)" \
    "$(implementation $SERVER)" > "$tmp/hfsb_server.h"
emit_on_top hfsb_http_curl HFSB_HTTP_CURL "$CURL_HEADERS" "$CURL_SOURCES" \
    > "$tmp/hfsb_http_curl.h"
for f in $ALL; do
    ! grep -n '^[ ]*#[ ]*include "' "$tmp/$f" |
        grep -v '#include "hfsb[_a-z]*\.h"$' >&2 || die "local include left in $f"
done

# Compiles each source by itself (again only after a change) and compares the
# symbols it needs with the rooms that define them.
object_of() { echo "build/rooms/$(echo "${1#src/}" | tr / -).o"; }

compile_stale() { # every source whose object is missing or older
    for f in $(listed sources_of $ROOMS | sed 's|^|src/|'); do
        o=$(object_of "$f")
        [ ! -f "$o" ] || [ -n "$(find "$f" $newest -newer "$o")" ] || continue
        n=$((n + 1))
        ${CC:-cc} -O0 -w -DHFSBI_SPLIT -DHFSB_HUB -c "$f" -o "$o" &
        [ $((n % 4)) != 0 ] || wait
    done
    wait
}

prove_rooms() {
    command -v nm >/dev/null && command -v "${CC:-cc}" >/dev/null ||
        { echo "amalgamate: no nm or cc, the order of rooms is not proved" >&2
          return; }
    mkdir -p build/rooms
    n=0 newest=$(find src -name '*.h')
    compile_stale
    for f in $(listed sources_of $ROOMS | sed 's|^|src/|'); do
        [ -f "$(object_of "$f")" ] || die "$f does not compile"
        room=${f#src/}
        nm -P "$(object_of "$f")" | sed "s|^|$f ${room%%/*} |"
    done > "$tmp/symbols"
    awk -v rooms="$ROOMS" '
        BEGIN { n = split(rooms, r, " "); for (i = 1; i <= n; i++) at[r[i]] = i }
        $3 !~ /^hfsbi?_/ { next }
        $4 == "U" { file[++uses] = $1; room[uses] = $2; name[uses] = $3; next }
        $4 ~ /^[A-Z]$/ { home[$3] = $2 }
        END {
            for (i = 1; i <= uses; i++) {
                h = home[name[i]]
                if (h == "" || at[h] <= at[room[i]]) continue
                printf "%s uses %s of %s\n", file[i], name[i], h
                bad = 1
            }
            exit bad
        }' "$tmp/symbols" >&2 || die "a room uses one below it"
}

stale=0
for f in $ALL; do
    cmp -s "$tmp/$f" "$f" && continue
    stale=1
    if [ "${1:-}" = --check ]; then
        diff -u "$f" "$tmp/$f" 2>&1 | head -n 40 >&2 || :
    else
        cp "$tmp/$f" "$f.new" && mv "$f.new" "$f" && echo "wrote $f"
    fi
done
[ "${1:-}" != --check ] || [ $stale = 0 ] ||
    die "a header at the top is stale: run ./amalgamate.sh and commit it"
[ "${1:-}" != --check ] || prove_rooms
