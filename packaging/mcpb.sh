#!/bin/sh
# Builds an MCP bundle, which hosts such as Claude Desktop install by a double
# click, and the entry for the MCP registry that points at it. `make mcpb`
#   packaging/mcpb.sh
# Writes build/mcpb/hfsb-VERSION-SYSTEM-MACHINE.mcpb and build/mcpb/server.json.
#   MCP_NAME=NAME     the name in the registry: a namespace that you own, as
#                     io.github.USER, a slash and hfsb
#   MCP_URL=URL       where the bundle will be published
# Needs zip, or python3. The program is static where musl-gcc is installed.
set -eu
cd "$(dirname "$0")/.."

out=build/mcpb
rm -rf "$out"
mkdir -p "$out/bundle/server"
part() { sed -n "s/^#define HFSB_VERSION_$1 //p" hfsb.h | head -n 1; }
version=$(part MAJOR).$(part MINOR).$(part PATCH)
system=$(uname -s | tr '[:upper:]' '[:lower:]')
bundle=hfsb-$version-$system-$(uname -m).mcpb

# ---- the program

cc=${CC:-cc} flags='-Os -ffunction-sections -fdata-sections -s'
[ "$system" != linux ] || flags="$flags -Wl,--gc-sections"
if command -v musl-gcc > /dev/null; then cc=musl-gcc flags="$flags -static"; fi
make -s build/hfsb_space.h
echo '#include "hfsb_server.h"' > "$out/hfsb_all.c"
# shellcheck disable=SC2086
$cc $flags -DHFSB_IMPLEMENTATION -DHFSB_HUB -I. -c -o "$out/hfsb.o" \
    "$out/hfsb_all.c"
# shellcheck disable=SC2086
$cc $flags -DHFSB_IMPLEMENTATION_DONE -DHFSB_SERVER_IMPLEMENTATION_DONE -I. \
    -o "$out/bundle/server/hfsb" examples/hfsb.c examples/hfsb/*.c \
    "$out/hfsb.o" -pthread

# ---- the bundle, a zip file

fill() { # TEMPLATE: with its @WORDS@ replaced
    sed -e "s|@VERSION@|$version|" -e "s|@PLATFORM@|$system|" \
        -e "s|@NAME@|${MCP_NAME:-io.github.hfsb/hfsb}|" \
        -e "s|@URL@|${MCP_URL:-https://example.com/$bundle}|" \
        -e "s|@SHA256@|${sha256:-}|" "packaging/$1"
}

fill manifest.json > "$out/bundle/manifest.json"
cp LICENSE "$out/bundle/LICENSE"
(
    cd "$out/bundle"
    set -- "../$bundle" manifest.json LICENSE server/hfsb
    if command -v zip > /dev/null; then
        zip -q -X "$@"
    else
        python3 -c 'import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w", zipfile.ZIP_DEFLATED) as z:
    for name in sys.argv[2:]:
        z.write(name)' "$@"
    fi
)

# ---- the registry's entry

sha256=$( (sha256sum "$out/$bundle" || shasum -a 256 "$out/$bundle") \
    2> /dev/null | cut -d ' ' -f 1)
fill server.json > "$out/server.json"
echo "built $out/$bundle, $(wc -c < "$out/$bundle") bytes, and $out/server.json"
