#!/bin/sh
# The static server is reproducible: built in two folders at two times it is
# the same file, and so is its bill of materials. Neither has the path or the
# name of a folder in it.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

out=build/reproduce
rm -rf "$out"
checks=0 failed=0

build() { # FOLDER
    mkdir -p "$1/examples"
    cp -R Makefile hfsb.h hfsb_server.h packaging "$1"
    cp -R examples/hfsb-server.c examples/hfsb-server "$1/examples"
    (cd "$1" && CC="${CC:-cc}" make sbom) > "$out/log" 2>&1 && return
    cat "$out/log"
    echo "FAIL  make sbom"
    exit 1
}

mkdir -p "$out"
build "$out/one"
sleep 1 # another second: a time in the file would differ
build "$out/a-longer-name/two"
for f in hfsb-server hfsb-server.cdx.json; do
    cmp "$out/one/build/static/$f" "$out/a-longer-name/two/build/static/$f"
    same "$f from two folders differs" $? 0
done
server=$out/one/build/static/hfsb-server
same 'the binary has the path of a folder' \
    "$(grep -a -c "$out/one" "$server")" 0
has 'the bill of materials' "$(cat "$server.cdx.json")" '"bomFormat":"CycloneDX"'
if have sha256sum; then
    has 'the bill of materials' "$(cat "$server.cdx.json")" \
        "\"content\":\"$(sha256sum < "$server" | cut -d ' ' -f 1)\""
fi
if have python3; then
    python3 -m json.tool "$server.cdx.json" > /dev/null
    same 'the bill of materials is JSON' $? 0
fi
echo "$checks checks of the static server, $failed failed"
[ $failed = 0 ]
