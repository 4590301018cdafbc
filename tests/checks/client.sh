#!/bin/sh
# The server as clients that exist already see it: tests/python/reference_client.py
# against build/hfsb-server with a token and without, and a silent command
# through nginx, which gives up on a server that says nothing for 3 s.
#   HFSB_TEST_LONG=1   also 90 silent seconds with an nginx timeout of 30 s
#   HFSB_SERVER=FILE   another binary
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

server=${HFSB_SERVER:-build/hfsb-server}
[ -x "$server" ] || { echo "$server is missing: run make"; exit 1; }
python=
for p in python3 /usr/bin/python3; do # the one that has httpx, if any has
    ! have "$p" || ! "$p" -c 'import httpx' 2>/dev/null || python=${python:-$p}
done
[ -n "$python" ] || ! have python3 || python=python3
[ -n "$python" ] || { echo "skipped: no python3"; exit 77; }
"$python" -c 'import httpx' 2>/dev/null ||
    echo "skipped: httpx is not installed; http.client takes its place"
nginx=$(command -v nginx || ls /usr/sbin/nginx 2>/dev/null) ||
    echo "skipped: nginx is not installed"
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE

top=$(mktemp -d) || exit 1
token=a-token-for-tests
pids='' checks=0 failed=0

end() {
    for p in $pids; do
        kill "$p" 2>/dev/null
        wait "$p" 2>/dev/null
    done
    rm -rf "$top"
}
trap end EXIT
trap 'exit 130' INT TERM

start() { # NAME OPTION...: a server; its address in $url, its id in $pid
    log=$top/$1.out
    shift
    : > "$log"
    "$server" --host 127.0.0.1 --port 0 --work-dir "$top" "$@" \
        > "$log" 2>&1 &
    pid=$!
    pids="$pids $pid"
    url='' tries=0
    while [ -z "$url" ] && [ $tries -lt 600 ]; do
        url=$(sed -n 's|.*\(http://[^ /]*:[0-9]*\).*|\1|p' "$log" |
            head -n 1)
        [ -n "$url" ] || sleep 0.1
        tries=$((tries + 1))
    done
    [ -n "$url" ] || { echo "FAIL  no address:"; cat "$log"; exit 1; }
}

client() { # NAME ARGUMENT...: its output goes to $top/NAME
    log=$top/$1
    shift
    limited 200 "$python" tests/python/reference_client.py "$@" > "$log" 2>&1
}

report() { # WHAT NAME: shows the output, adds its counts to ours
    echo "== $1"
    cat "$top/$2"
    # shellcheck disable=SC2046 # two words
    set -- $(sed -n 's/^\([0-9]*\) checks, \([0-9]*\) failed$/\1 \2/p' \
        "$top/$2")
    if [ $# != 2 ]; then
        echo "FAIL  it did not come to its end"
        set -- 1 1
    fi
    checks=$((checks + $1)) failed=$((failed + $2))
}

# ---- nginx in front: HTTP/1.0 towards the server, its default, and 1.1

free_port() {
    "$python" -c 'import socket
s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'
}

nginx_head() { # NAME PATIENCE
    [ "$(id -u)" != 0 ] || echo 'user root;'
    echo "daemon off; master_process off; pid $top/$1.pid;
        error_log $top/$1.log; events { worker_connections 64; }
        http { access_log off; proxy_read_timeout $2;"
    for p in client_body proxy fastcgi uwsgi scgi; do
        echo "${p}_temp_path $top/$1-$p;"
    done
}

nginx_start() { # NAME PATIENCE URL: ports in $port10 and $port11
    port10=$(free_port) port11=$(free_port)
    {
        nginx_head "$1" "$2"
        echo "server { listen 127.0.0.1:$port10;
            location / { proxy_pass $3; } }
        server { listen 127.0.0.1:$port11;
            location / { proxy_pass $3; proxy_http_version 1.1;
                proxy_set_header Connection ''; } } }"
    } > "$top/$1.conf"
    "$nginx" -c "$top/$1.conf" -p "$top" -e "$top/$1.log" \
        > "$top/$1.out" 2>&1 &
    pids="$! $pids" # ended before the servers
    tries=0
    until "$python" -c "import socket
socket.create_connection(('127.0.0.1', $port11), 1)" 2>/dev/null; do
        tries=$((tries + 1))
        if [ $tries = 200 ]; then
            echo "FAIL  nginx did not start:"
            cat "$top/$1.out" "$top/$1.log"
            exit 1
        fi
        sleep 0.1
    done
}

# silent NAME PATIENCE URL SECONDS TIMEOUT [ARGUMENT...]: in the background
silent() {
    [ -n "$nginx" ] || return 0
    name=$1 seconds=$4 timeout=$5
    nginx_start "$1" "$2" "$3"
    shift 5
    for port in 10:$port10 11:$port11; do
        client "$name-${port%:*}" "http://127.0.0.1:${port#*:}" "$@" \
            --silent "$seconds" --timeout "$timeout" &
        clients="${clients:-} $!"
    done
}

silent_report() { # NAME WHAT: waits for it
    [ -n "$nginx" ] || return 0
    # shellcheck disable=SC2086
    wait $clients
    clients=
    report "$2 through nginx, HTTP/1.0 to the server" "$1-10"
    report "$2 through nginx, HTTP/1.1 to the server" "$1-11"
}

# ---- two servers; what waits on one runs beside what works on the other

SANDBOX_API_TOKEN=$token
export SANDBOX_API_TOKEN
start token
with=$url with_pid=$pid
unset SANDBOX_API_TOKEN
start open --no-auth --beat 0.4
without=$url

silent beat 3s "$without" 8 60
client token "$with" --token $token
report "with a token" token
silent_report beat "8 s with a short beat"

# half of the timeout is when the reply says something: before the 3 s
silent half 3s "$with" 4.5 5 --token $token
client open "$without" --quick
report "without a token" open
silent_report half "4.5 s of 5 s"

if [ "${HFSB_TEST_LONG:-}" = 1 ]; then
    silent long 30s "$with" 90 120 --token $token
    silent_report long "90 s of nginx's 30 s"
fi

kill "$with_pid"
wait "$with_pid"
rc=$?
checks=$((checks + 1))
if [ $rc != 0 ]; then
    failed=$((failed + 1))
    echo "FAIL  TERM ends the server with status $rc, not 0:"
    tail -n 5 "$top/token.out"
fi

echo "$checks checks, $failed failed"
[ $failed = 0 ]
