#!/bin/sh
# hfsb_http_curl.h for real: tests/programs/tls_client.c talks through it to nginx,
# which has certificates of an authority made here and is the proxy of
# build/hfsb-server. A wrong host name, an expired certificate and an unknown
# authority are refused; what every transport promises is kept (the list of
# tests/t_transport_list.h).
#   HFSB_SERVER=FILE   another binary
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

server=${HFSB_SERVER:-build/hfsb-server}
[ -x "$server" ] || { echo "$server is missing: run make"; exit 1; }
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
    --work-dir "$TLS_DIR" > "$top/server.log" 2>&1 &
pids=$!

site() { # PORT CERTIFICATE [SETTING]
    echo "server { listen 127.0.0.1:$1 ssl http2; ${3:-}
        ssl_certificate $top/$2.crt; ssl_certificate_key $top/$2.key;
        location / { proxy_pass http://127.0.0.1:$port; } }"
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

limited 60 "$client" test || {
    rc=$?
    echo "FAIL  exit status $rc"
    tail -n 5 "$top/nginx.log"
    exit 1
}
