#!/bin/sh
# hfsb_http_curl.h for real: tests/programs/tls_client.c talks through it to nginx,
# which has certificates of an authority made here and is the proxy of
# build/hfsb-server. A wrong host name, an expired certificate and an unknown
# authority are refused; what every transport promises is kept (the list of
# tests/t_transport_list.h). A WebSocket passes, too: build/hfsb exec-server --on
# https://... All of it once with libcurl linked, and once loaded at run time
# (HFSB_CURL_DLOPEN), as `make CURL=` builds it.
#   HFSB_SERVER=FILE, HFSB=FILE   other binaries
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

server=${HFSB_SERVER:-build/hfsb-server} cli=${HFSB:-build/hfsb}
for f in "$server" "$cli"; do
    [ -x "$f" ] || { echo "$f is missing: run make"; exit 1; }
done
have pkg-config && pkg-config --exists 'libcurl >= 7.80.0' ||
    { echo "skipped: libcurl 7.80 or newer is not installed"; exit 77; }
nginx=$(command -v nginx || ls /usr/sbin/nginx 2>/dev/null) ||
    { echo "skipped: nginx is not installed"; exit 77; }
have openssl || { echo "skipped: openssl is not installed"; exit 77; }
unset SANDBOX_API_TOKEN SSL_CERT_FILE SSL_CERT_DIR http_proxy https_proxy \
    HTTPS_PROXY all_proxy ALL_PROXY no_proxy NO_PROXY

top=$(mktemp -d) || exit 1
pids=
end() {
    for p in $pids; do
        kill "$p" 2>/dev/null
        wait "$p" 2>/dev/null
    done
    rm -rf "$top"
}
trap end EXIT
trap 'exit 130' INT TERM

client=$top/tls_client
# shellcheck disable=SC2046,SC2086
${CC:-cc} ${CFLAGS:--O0} -o "$client" tests/programs/tls_client.c \
    $(pkg-config --cflags --libs libcurl) -pthread || exit 1

# the same, and hfsb, with libcurl at run time; -ldl is for older libcs
loaded=$top/tls_loaded loads=$top/hfsb
dlopen='-DHFSB_WITH_CURL -DHFSB_CURL_DLOPEN'
make -s build/hfsb_space.h || exit 1
printf '#include "hfsb_http_curl.h"\n#include "hfsb_server.h"\n' \
    > "$top/all.c"
# shellcheck disable=SC2086
${CC:-cc} ${CFLAGS:--O0} $dlopen -o "$loaded" tests/programs/tls_client.c \
    -pthread -ldl &&
    ${CC:-cc} -O0 $dlopen -DHFSB_IMPLEMENTATION -DHFSB_HUB -I. \
        -c -o "$top/all.o" "$top/all.c" &&
    ${CC:-cc} -O0 $dlopen -DHFSB_IMPLEMENTATION_DONE \
        -DHFSB_SERVER_IMPLEMENTATION_DONE \
        -DHFSB_HTTP_CURL_IMPLEMENTATION_DONE -DHFSB_SPACE_H \
        -Dhfsb_space_files=NULL -Dhfsb_space_file_count=0 -I. -o "$loads" \
        examples/hfsb.c examples/hfsb/*.c "$top/all.o" -pthread -ldl ||
    { echo "FAIL  HFSB_CURL_DLOPEN does not build"; exit 1; }
! have ldd || ! ldd "$loaded" "$loads" | grep libcurl ||
    { echo "FAIL  HFSB_CURL_DLOPEN is linked with libcurl"; exit 1; }

# ---- certificates

key='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'

quietly() { "$@" > "$top/openssl.log" 2>&1; }

authority() { # NAME
    # shellcheck disable=SC2086
    quietly openssl req -x509 $key -keyout "$top/$1.key" -out "$top/$1.crt" \
        -subj "/CN=an authority for tests, $1" -days 2
}

certificate() { # NAME AUTHORITY NAMES DAYS...
    name=$1 by=$2
    echo "subjectAltName=$3" > "$top/$name.ext"
    shift 3
    # shellcheck disable=SC2086
    quietly openssl req -new $key -keyout "$top/$name.key" \
        -out "$top/$name.csr" -subj /CN=test &&
        quietly openssl x509 -req -in "$top/$name.csr" -CA "$top/$by.crt" \
            -CAkey "$top/$by.key" -CAcreateserial -extfile "$top/$name.ext" \
            "$@" -out "$top/$name.crt"
}

here=IP:127.0.0.1,DNS:localhost
authority ca && authority stranger &&
    certificate good ca $here -days 2 &&
    certificate other ca DNS:other.example -days 2 &&
    certificate unknown stranger $here -days 2 &&
    { certificate expired ca $here -days -1 ||
        certificate expired ca $here -not_before 20200101000000Z \
            -not_after 20200102000000Z; } ||
    { echo "FAIL  no certificates:"; cat "$top/openssl.log"; exit 1; }

# ---- the server, and nginx before it

TLS_TOKEN=a-token-for-tests TLS_CA=$top/ca.crt TLS_DIR=$top/work
export TLS_TOKEN TLS_CA TLS_DIR
mkdir "$TLS_DIR"
# shellcheck disable=SC2046
set -- $("$client" ports 7)
TLS_GOOD=$1 TLS_SHORT=$2 TLS_EXPIRED=$3 TLS_OTHER=$4 TLS_UNKNOWN=$5
TLS_PLAIN=$6 port=$7
export TLS_GOOD TLS_SHORT TLS_EXPIRED TLS_OTHER TLS_UNKNOWN TLS_PLAIN
SANDBOX_API_TOKEN=$TLS_TOKEN "$server" --host 127.0.0.1 --port "$port" \
    --work-dir "$TLS_DIR" --api codex > "$top/server.log" 2>&1 &
pids=$!

site() { # PORT CERTIFICATE [SETTING]
    echo "server { listen 127.0.0.1:$1 ssl http2; ${3:-}
        ssl_certificate $top/$2.crt; ssl_certificate_key $top/$2.key;
        location / { proxy_pass http://127.0.0.1:$port; }
        location /codex { proxy_pass http://127.0.0.1:$port;
            proxy_set_header Connection upgrade;
            proxy_set_header Upgrade websocket; } }"
}

{
    [ "$(id -u)" != 0 ] || echo 'user root;'
    echo "daemon off; master_process off; pid $top/nginx.pid;
        error_log $top/nginx.log; events { worker_connections 256; }
        http { access_log off; client_max_body_size 0; keepalive_timeout 20s;
        proxy_http_version 1.1; proxy_set_header Connection '';
        proxy_request_buffering off; proxy_buffering off;
        add_header X-Protocol \$server_protocol always;"
    for p in client_body proxy fastcgi uwsgi scgi; do
        echo "${p}_temp_path $top/$p;"
    done
    site "$TLS_GOOD" good
    site "$TLS_SHORT" good 'keepalive_timeout 200ms;'
    site "$TLS_EXPIRED" expired
    site "$TLS_OTHER" other
    site "$TLS_UNKNOWN" unknown
    echo "server { listen 127.0.0.1:$TLS_PLAIN; return 204; } }"
} > "$top/nginx.conf"
"$nginx" -c "$top/nginx.conf" -p "$top" -e "$top/nginx.log" \
    > "$top/nginx.out" 2>&1 &
pids="$! $pids" # ended before the server
"$client" ready "$TLS_PLAIN" && "$client" ready "$port" || {
    echo "FAIL  nginx or the server did not start:"
    cat "$top/nginx.out" "$top/nginx.log" "$top/server.log"
    exit 1
}

TLS_HTTP2=0
case $(pkg-config --variable=supported_features libcurl) in
*HTTP2*) TLS_HTTP2=1 ;;
esac
export TLS_HTTP2
for c in "$client" "$loaded"; do
    limited 60 "$c" test || {
        rc=$?
        echo "FAIL  ${c##*/}: exit status $rc"
        tail -n 5 "$top/nginx.log"
        exit 1
    }
done

# ---- libcurl is not installed, or too old: http works, https says what it
# needs

mkdir "$top/none" "$top/old"
echo 'int curl_easy_init(void) { return 0; }' > "$top/old.c"
${CC:-cc} -shared -fPIC -o "$top/old/libcurl.so.4" "$top/old.c" || exit 1
for f in libcurl.so.4 libcurl-gnutls.so.4 libcurl.so; do
    : > "$top/none/$f"
done
without() { # FOLDER SCHEME PORT: a command, by the hfsb that finds that libcurl
    SANDBOX_API_TOKEN=$TLS_TOKEN LD_LIBRARY_PATH=$top/$1 SSL_CERT_FILE=$TLS_CA \
        limited 30 "$loads" bash --on "$2://127.0.0.1:$3" 'echo works' 2>&1
}
for f in none old; do
    [ "$(without $f http "$port")" = works ] ||
        { echo "FAIL  http, libcurl: $f"; without $f http "$port"; exit 1; }
    ! without $f https "$TLS_GOOD" > "$top/without" &&
        grep -q 'Install libcurl 7.80 or newer (the package libcurl4' \
            "$top/without" ||
        { echo "FAIL  https, libcurl: $f"; cat "$top/without"; exit 1; }
done

# ---- a WebSocket

codex() { # PORT: two commands with much output, through exec-server --on
    : > "$top/codex"
    {
        printf '%s\n' '{"id":1,"method":"initialize","params":{}}'
        for n in 2 3; do
            printf '{"id":%s,"method":"process/start","params":{"processId":"p%s","argv":["/bin/sh","-c","seq 1 200000"],"cwd":"file://%s","env":{"PATH":"/bin:/usr/bin"}}}\n' \
                $n $n "$TLS_DIR"
        done
        tries=0
        until [ "$(grep -c process/closed "$top/codex")" = 2 ] ||
            [ $tries -ge 100 ]; do
            sleep 0.1
            tries=$((tries + 1))
        done
    } | SSL_CERT_FILE=$TLS_CA SANDBOX_API_TOKEN=$TLS_TOKEN limited 30 "$cli" \
        exec-server --on "https://127.0.0.1:$1" > "$top/codex" 2> "$top/err"
}
websocket() { # sets cli before: the commands' output comes, or a refusal
    codex "$TLS_GOOD" || { echo "FAIL  exec-server:"; cat "$top/err"; exit 1; }
    bytes=$(sed -n 's/.*"chunk":"\([^"]*\)".*/\1/p' "$top/codex" |
        while read -r chunk; do echo "$chunk" | base64 -d; done | wc -c)
    [ "$bytes" -eq $((2 * 1288895)) ] ||
        { echo "FAIL  exec-server: $bytes bytes came"; exit 1; }
    ! codex "$TLS_UNKNOWN" && grep -q 'unknown authority' "$top/err" ||
        { echo "FAIL  exec-server: an unknown authority"; cat "$top/err"; exit 1; }
}
if nm -D "$cli" 2>/dev/null | grep -q curl_easy; then websocket
else echo "exec-server is not tried with $cli, which is not linked with libcurl"
fi
cli=$loads
websocket
echo "exec-server over https: passed"
