#!/bin/sh
# The page at / of build/hfsb-server in headless Chromium, driven through its
# DevTools protocol by tests/node/page.mjs: the token, live output, diffs, undo,
# files, the terminal, hostile output, a restart, a phone.
#   HFSB_SERVER=FILE    another binary
#   HFSB_CHROMIUM=FILE  another browser
#   HFSB_SHOTS=DIR      where to leave screenshots
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

server=${HFSB_SERVER:-build/hfsb-server}
[ -x "$server" ] || { echo "$server is missing: run make"; exit 1; }
have node || { echo "skipped: no node"; exit 77; }
chromium=${HFSB_CHROMIUM:-$(command -v chromium || command -v chromium-browser)}
[ -n "$chromium" ] || { echo "skipped: no chromium"; exit 77; }

top=$(mktemp -d) || exit 1
mkdir "$top/work"
token=page-0123456789abcdef

end() {
    if [ -f "$top/pid" ]; then # not a child of this shell
        kill "$(cat "$top/pid")" 2>/dev/null
        while kill -0 "$(cat "$top/pid")" 2>/dev/null; do sleep 0.1; done
    fi
    rm -rf "$top"
}
trap end EXIT
trap 'exit 130' INT TERM

# start.sh PORT: ends the server that runs, starts another one and waits
cat > "$top/start.sh" <<START
if [ -f '$top/pid' ]; then
    kill "\$(cat '$top/pid')"
    while kill -0 "\$(cat '$top/pid')" 2>/dev/null; do sleep 0.1; done
fi
: > '$top/out'
SANDBOX_API_TOKEN=$token HOME='$top' XDG_STATE_HOME='$top/state' \\
    '$PWD/$server' --port "\$1" --work-dir '$top/work' --root '$top/work' \\
    --checkpoints on > '$top/out' 2>&1 &
echo \$! > '$top/pid'
tries=0
until grep -q listens '$top/out' || [ \$tries -gt 600 ]; do
    sleep 0.1
    tries=\$((tries + 1))
done
START
case $server in /*) sed -i.bak "s|'$PWD/$server'|'$server'|" "$top/start.sh" ;; esac

sh "$top/start.sh" 0
port=$(sed -n 's|.*listens on http://127.0.0.1:\([0-9]*\).*|\1|p' "$top/out")
[ -n "$port" ] || { echo "FAIL  no server:"; cat "$top/out"; exit 1; }
# the greeting, gzip, --no-page, hfsb open
failed=0
fail() { echo "FAIL  $*"; failed=1; }
base=http://127.0.0.1:$port
grep -qF "$base/ (it asks for the token)" "$top/out" ||
    fail "the greeting does not name the page, or has the token"
if have curl; then
    curl -s -H 'Accept: text/html' "$base/" > "$top/plain"
    [ "$(wc -c < "$top/plain")" -lt 40000 ] || fail "the page is too large"
    curl -s -H 'Accept: text/html' -H 'Accept-Encoding: gzip' "$base/" \
        > "$top/packed"
    if have gzip && gzip -t "$top/packed" 2>/dev/null; then
        gzip -dc < "$top/packed" | cmp - "$top/plain" ||
            fail "gzip has another page"
    else
        cmp "$top/packed" "$top/plain" || fail "neither gzip nor the page"
    fi
fi
if [ -x build/hfsb ]; then
    url=$(SANDBOX_API_TOKEN="$token" HOME="$top" build/hfsb open "$base")
    [ "$url" = "$base/#$token" ] || fail "hfsb open prints $url"
fi

HFSB_VIM=$(command -v vim.tiny || command -v vim || echo '')
HFSB_PORTS=$(have python3 && [ -r /proc/net/tcp ] && echo 1)
export HFSB_VIM HFSB_PORTS
mkdir "$top/tmp" # what a browser that is killed leaves
TMPDIR=$top/tmp HOME=$top limited 900 node tests/node/page.mjs "http://127.0.0.1:$port" "$token" \
    "$top/work" "$chromium" "sh '$top/start.sh' $port" \
    ${HFSB_SHOTS:+"$HFSB_SHOTS"} || failed=1
[ $failed = 0 ]
