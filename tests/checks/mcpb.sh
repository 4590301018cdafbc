#!/bin/sh
# `make mcpb`: the bundle unpacks, its program serves MCP, and the entry for the
# registry tells the truth about it. Where npm works, the bundle's own checker
# reads it too. Needs python3.
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

have python3 || { echo "skipped: no python3"; exit 77; }
checks=0 failed=0
make -s mcpb || exit 1
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
trap 'exit 130' INT TERM
export XDG_STATE_HOME="$top/state" # for checkpoints
bundle=$(ls build/mcpb/*.mcpb)
python3 -m zipfile -e "$bundle" "$top" || exit 1

value() { # FILE EXPRESSION of its object o
    python3 -c 'import json, sys
with open(sys.argv[1], encoding="utf-8") as f:
    o = json.load(f)
print(eval(sys.argv[2]))' "$1" "$2"
}

chmod +x "$top/server/hfsb" # zipfile does not restore it; hosts do
version=$("$top/server/hfsb" --version | sed 's/^hfsb //')
for file in "$top/manifest.json" build/mcpb/server.json; do
    same "version of $file" "$(value "$file" 'o["version"]')" "$version"
    hasnt "$file" "$(cat "$file")" '@'
done
entry=$(value "$top/manifest.json" 'o["server"]["entry_point"]')
same "the entry point" "$entry" server/hfsb
same "the command" \
    "$(value "$top/manifest.json" 'o["server"]["mcp_config"]["command"]')" \
    "\${__dirname}/$entry"
same "sha256" "$(value build/mcpb/server.json 'o["packages"][0]["fileSha256"]')" \
    "$(sha256sum "$bundle" | cut -d ' ' -f 1)"
# the registry takes no more
same "length of the description" "$(value build/mcpb/server.json \
    'len(o["description"]) <= 100')" True
mode=$(python3 -c 'import sys, zipfile
print(oct(zipfile.ZipFile(sys.argv[1]).getinfo("server/hfsb").external_attr >> 16)[-3:])' \
    "$bundle")
same "mode of the program" "$mode" 755

# with the arguments of the manifest, as a host runs it
mkdir "$top/root"
echo hello > "$top/root/a.txt"
reply=$(printf '%s\n' '{"jsonrpc":"2.0","id":1,"method":"tools/call",
"params":{"name":"read","arguments":{"path":"a.txt"}}}' | tr -d '\n' |
    sed 's/$/\n/' | "$top/$entry" $(value "$top/manifest.json" \
    '" ".join(o["server"]["mcp_config"]["args"])' |
    sed "s|\${user_config.root}|$top/root|"))
has "a call" "$reply" hello

if have npm && limited 120 npm install --prefix "$top/npm" --ignore-scripts \
    --no-audit --no-fund @anthropic-ai/mcpb > "$top/npm.log" 2>&1; then
    has "mcpb validate" "$("$top/npm/node_modules/.bin/mcpb" validate \
        "$top/manifest.json" 2>&1)" passes
else
    echo "skipped: npm could not install the bundle's checker"
fi
echo "$checks checks of the bundle, $failed failed"
[ $failed = 0 ]
