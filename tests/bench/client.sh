#!/bin/sh
# The client's transports beside libcurl and the program curl, one run:
# tests/bench/client.c says what it measures. Part of `make bench`; alone:
#   tests/bench/client.sh
# CLIENT_MB=N is the size of the download (1024; 16 in a brief run). Needs libcurl and curl; says
# what is missing.
set -u
mb=1024
[ -z "${BENCH_BRIEF:-}" ] || mb=16
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

have pkg-config && pkg-config --exists 'libcurl >= 7.80.0' ||
    { echo "skipped: libcurl 7.80 or newer is not installed"; exit 0; }
have curl || { echo "skipped: no program curl"; exit 0; }
server=${HFSB_SERVER:-build/hfsb-server}
[ -x "$server" ] || make -s all > /dev/null || exit 1
mkdir -p build/bench
# shellcheck disable=SC2046,SC2086
link_program tests/bench/client.c build/bench/client -O2 -DNDEBUG \
    $(pkg-config --cflags --libs libcurl) || exit 1

top=$(mktemp -d) || exit 1
pid=
trap '[ -z "$pid" ] || kill $pid 2>/dev/null; rm -rf "$top"' EXIT
trap 'exit 130' INT TERM
# a hole: the disk has no part in this
dd if=/dev/zero of="$top/large" bs=1048576 count=0 \
    seek="${CLIENT_MB:-$mb}" 2>/dev/null || exit 1
"$server" --host 127.0.0.1 --port 0 --no-auth --work-dir "$top" \
    > "$top/log" 2>&1 &
pid=$!
url='' tries=0
while [ -z "$url" ] && [ $tries -lt 100 ]; do
    url=$(sed -n 's|.*\(http://[^ /]*:[0-9]*\).*|\1|p' "$top/log" |
        head -n 1)
    [ -n "$url" ] || sleep 0.1
    tries=$((tries + 1))
done
[ -n "$url" ] || { echo "the server did not start:"; cat "$top/log"; exit 1; }
build/bench/client "$url" "$top/large"
