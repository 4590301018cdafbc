#!/bin/sh
# Joins src/ into the committed single-file headers.
#   ./amalgamate.sh            rewrite the headers that changed
#   ./amalgamate.sh --check    exit 1 if a committed header is stale
#   ./amalgamate.sh --space FILE   write hfsb_space.h: the server's source and
#                              its Dockerfile as bytes, for creating a Space
# The same bytes everywhere: explicit lists, LC_ALL=C, LF only, no dates.
set -eu
LC_ALL=C; export LC_ALL
space=
if [ "${1:-}" = --space ]; then
    case "${2:-}" in
    '') echo "amalgamate: --space needs the name of a file" >&2; exit 2 ;;
    /*) space=$2 ;;
    *) space=$PWD/$2 ;;
    esac
fi
cd "$(dirname "$0")"

PUBLIC="config.h"                    # before extern "C"
HEADERS="base.h utf8.h json.h text.h hash.h path.h diff.h edit.h patch.h
         http.h url.h regex.h"
SOURCES="internal.h base.c find.c utf8.c number.h number.c number_write.c
         json_tree.h json_string.c json_error.c json_keys.c json_parse.c
         json_read.c json_write.c text.c text_filter.c text_window.c hash.c
         path.c match.h diff.c view.c lines.c match.c indent.c compose.c
         screen.c hint.c edit_plan.c edit.c patch_parse.c patch_update.c patch.c
         http_parts.h http_field.c http_target.c http_head.c http_chunk.c
         http_parse.c http_date.c http_write.c url.c regex_parts.h
         regex_class.c regex_program.c regex_parse.c regex_nfa.c regex_dfa.c
         regex.c glob.c ignore.h ignore.c image.h image.c"
# What touches the OS; HFSB_PURE leaves it out.
OS_HEADERS="file.h proc.h tools.h net.h hub.h sandbox.h session.h"
OS_SOURCES="os.h os.c file_place.h file_beneath.c file_place.c file_lock.c file.c
            file_temp.c file_rewrite.c file_write.c proc_parts.h proc_tree.c
            proc_spawn.c proc.c proc_run.c record.h record.c check.h
            check_program.c check_python.c check_shell.c check.c tool.h job.c
            job_sweep.c job_list.c
            tools.c call.c tool_bash.c tool_read.c tool_write.c tool_patch.c
            search.h search_rules.c search_walk.c search_show.c
            search_lines.h search_lines.c tool_search.c tool_grep.c
            tool_list.c tool_table.c plan.h plan.c net_os.h net_parts.h net_cancel.c net_proxy.c
            net_socket.c net_pool.c net.c fetch.c sse.c sha1.h sha1.c
            hub_parts.h hub_env.c hub_error.c hub_request.c hub.c hub_space.c
            hub_commit.c hub_logs.c hub_jobs.c sandbox_parts.h sandbox_call.h
            sandbox_request.c sandbox_arguments.c sandbox_seen.c
            sandbox_stream.c sandbox_try.c sandbox_call.c sandbox_files.c
            sandbox_handle.c sandbox_start.c sandbox_create.c sandbox_sweep.c
            session_parts.h session_script.c session_preload.c
            session_jobs_run.c session_jobs.c session_tools.c session.c"
# What hfsb_server.h adds to hfsb.h.
SERVER_HEADERS="server.h mcp.h"
SERVER_SOURCES="server_os.h server_loop.h server_loop_parts.h server_poller.c
                server_pool.c server_loop.c server_http.h server_conn.h
                server_guard.c server_request.c server_reply.c server_conn.c
                server_listen.c server.c server_sandbox.h server_fields.c
                server_arguments.c server_stream.c server_call.c server_jobs.c
                server_metrics.c server_files.h server_files.c
                server_download.c server_upload.c server_sandbox.c
                server_mcp.h server_mcp_message.c server_mcp_reply.c
                server_mcp_show.c server_mcp_list.c server_mcp_session.c
                server_mcp_call.c server_mcp_tool.c server_mcp.c
                server_mcp_stdio.c server_mcp_http.c server_mcp_remote.c"
# What hfsb_http_curl.h adds: in a folder of its own, since only this part of
# src/ needs libcurl to be compiled.
CURL_HEADERS="curl/http_curl.h"
CURL_SOURCES="curl/http_curl_parts.h curl/http_curl_error.c
              curl/http_curl_slot.c curl/http_curl_call.c curl/http_curl.c"
# only these may include <system> headers
SYSTEM="config.h internal.h os.h net_os.h server_os.h curl/http_curl_parts.h"
ALL="hfsb.h hfsb_server.h hfsb_http_curl.h"

case "${1:-}" in
'' | --check | --space) ;;
*) echo "amalgamate: unknown argument $1 (there are --check and --space)" >&2
   exit 2 ;;
esac

die() { echo "amalgamate: $*" >&2; exit 1; }

lint() { # every source file is listed, LF-terminated and tab-free
    listed=" $(echo $PUBLIC $HEADERS $SOURCES $OS_HEADERS $OS_SOURCES \
        $SERVER_HEADERS $SERVER_SOURCES $CURL_HEADERS $CURL_SOURCES) "
    for f in src/*.h src/*.c src/*/*.h src/*/*.c; do
        case "$listed" in *" ${f#src/} "*) ;; *) die "$f is not listed" ;; esac
        [ -z "$(tail -c1 "$f")" ] || die "$f: no newline at end of file"
        ! grep -q "$(printf '[\r\t]')" "$f" || die "$f: CR or TAB"
        case " $SYSTEM " in *" ${f#src/} "*) ;; *)
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
    for f in $PUBLIC; do body "$f"; done
    printf '\n#ifdef __cplusplus\nextern "C" {\n#endif\n'
    for f in $HEADERS; do body "$f"; done
    printf '\n#ifndef HFSB_PURE\n'
    for f in $OS_HEADERS; do body "$f"; done
    printf '\n#endif /* HFSB_PURE */\n'
    printf '\n#ifdef __cplusplus\n}\n#endif\n#endif /* HFSB_H */\n'
    printf '\n#if defined(HFSB_IMPLEMENTATION) && '
    printf '!defined(HFSB_IMPLEMENTATION_DONE)\n'
    printf '#define HFSB_IMPLEMENTATION_DONE\n'
    for f in $SOURCES; do body "$f"; done
    printf '\n#ifndef HFSB_PURE\n'
    for f in $OS_SOURCES; do body "$f"; done
    printf '\n#endif /* HFSB_PURE */\n'
    printf '\n#endif /* HFSB_IMPLEMENTATION */\n'
    license
}

license() {
    printf '\n/*\n'
    sed 's/^/   /; s/ *$//' LICENSE
    printf '*/\n'
}

# One that stands on hfsb.h: NAME GUARD HEADERS SOURCES. Its implementation
# uses what is private in that of hfsb.h: both are in one file, whichever of
# the two was included first.
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

tmp=$(mktemp -d); trap 'rm -rf "$tmp"' EXIT
if [ -n "$space" ]; then
    emit_space_h > "$tmp/hfsb_space.h"
    cmp -s "$tmp/hfsb_space.h" "$space" ||
        { cp "$tmp/hfsb_space.h" "$space.new" && mv "$space.new" "$space"; }
    exit
fi
lint
emit_hfsb_h > "$tmp/hfsb.h"
emit_on_top hfsb_server HFSB_SERVER "$SERVER_HEADERS" "$SERVER_SOURCES" \
    > "$tmp/hfsb_server.h"
emit_on_top hfsb_http_curl HFSB_HTTP_CURL "$CURL_HEADERS" "$CURL_SOURCES" \
    > "$tmp/hfsb_http_curl.h"
for f in $ALL; do
    ! grep -n '^[ ]*#[ ]*include "' "$tmp/$f" |
        grep -v '#include "hfsb[_a-z]*\.h"$' >&2 || die "local include left in $f"
done

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
