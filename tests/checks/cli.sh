#!/bin/sh
# The command line: what build/hfsb prints, writes and exits with.
set -u
cd "$(dirname "$0")/../.." || exit 1
[ -x build/hfsb ] || { echo "build/hfsb is missing: run make"; exit 1; }
hfsb=$PWD/build/hfsb
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
cd "$top" || exit 1
checks=0 failed=0

same() { # WHAT IS WANT
    checks=$((checks + 1))
    [ "$2" = "$3" ] && return
    failed=$((failed + 1))
    printf 'FAIL  %s\n  is   %s\n  want %s\n' "$1" "$2" "$3"
}

# run NAME WANTED-STATUS COMMAND...: stdout in $out, stderr in $err
run() {
    name=$1 want=$2
    shift 2
    "$@" > .out 2> .err
    same "$name: exit status" $? "$want"
    out=$(cat .out) err=$(cat .err)
}

has() { # WHAT TEXT PART
    case $2 in *"$3"*) part=yes ;; *) part=no ;; esac
    same "$1 says \"$3\" (in: $2)" $part yes
}

# ---- edit
printf 'a\n\tb\nc\n' > f
run edit 0 "$hfsb" edit f --old '    b' --new '    x'
same 'edit: file' "$(cat f)" "$(printf 'a\n\tx\nc')"
has edit "$out" 'Edited f (1 replacement) (matched after trimming whitespace)'
has edit "$out" '@@ -1,3 +1,3 @@'
run 'edit --json' 0 "$hfsb" edit --json f --old a --new A
same 'edit --json' "$out" '{"success":true,"output":"Edited f (1 replacement)","error":"","count":1,"note":null,"lines":[[1,1]],"diff":"--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n-a\n+A\n \tx\n c\n"}'
run 'edit: refused' 1 "$hfsb" edit f --old nowhere --new y
has 'edit: refused' "$err" 'old_str not found in file.'
run 'edit --json: refused' 1 "$hfsb" edit --json f --old nowhere --new y
has 'edit --json: refused' "$out" '{"success":false,"output":"","error":"old_str not found'
has 'edit --json: refused' "$out" '"count":0,"note":null,"lines":[],"diff":""}'
run 'edit: dry run' 0 "$hfsb" edit --dry-run f --old A --new B
has 'edit: dry run' "$out" 'Would edit f'
same 'edit: dry run leaves the file' "$(cat f)" "$(printf 'A\n\tx\nc')"
printf '{"old_str":"c","new_str":"C","mode":"append_after"}' > args
run 'edit: stdin' 0 sh -c "'$hfsb' edit f < args"
same 'edit: stdin' "$(cat f)" "$(printf 'A\n\tx\ncC')"
printf '{"edits":[{"old_str":"A","new_str":"1"},{"old_str":"cC","new_str":"3"}]}' > args
run 'edit: edits' 0 sh -c "'$hfsb' edit f < args"
same 'edit: edits' "$(cat f)" "$(printf '1\n\tx\n3')"
printf '{"old_str":"1","edits":[]}' > args
run 'edit: both' 1 sh -c "'$hfsb' edit f < args"
has 'edit: both' "$err" 'not both'
printf '{"old_str":"1","old_str":"2","new_str":"3"}' > args
run 'edit: a key twice' 1 sh -c "'$hfsb' edit f < args"
has 'edit: a key twice' "$err" 'old_str'
printf '{"old_str":"1","new_str":"one","extra":1}' > args
run 'edit: unknown key' 0 sh -c "'$hfsb' edit f < args"
has 'edit: unknown key' "$out" 'unknown key ignored: extra'
printf 'x' > old; printf 'y' > new
run 'edit: files' 0 "$hfsb" edit f --old-file old --new-file new
same 'edit: files' "$(cat f)" "$(printf 'one\n\ty\n3')"
run 'edit: no file' 1 "$hfsb" edit nofile --old a --new b
same 'edit: no file' "$err" 'File not found: nofile'
mkdir d
run 'edit: directory' 1 "$hfsb" edit d --old a --new b
same 'edit: directory' "$err" 'Is a directory: d'
run 'edit: no FILE' 2 "$hfsb" edit --old a --new b
run 'edit: half' 2 "$hfsb" edit f --old a
run 'edit: bad line' 2 "$hfsb" edit f --old a --new b --line -1
run 'edit: bad mode' 2 "$hfsb" edit f --old a --new b --mode nonsense
has 'edit: bad mode' "$err" 'Unknown mode: nonsense'
run 'edit: bad option' 2 "$hfsb" edit f --nonsense

# ---- what an edit leaves alone
printf 'k\r\n' > m; chmod 0751 m; ln -s m link; ln m hard
run 'edit: link' 0 "$hfsb" edit link --old k --new 'l
n'
same 'edit: link stays' "$(ls -ld link | cut -c1)" l
same 'edit: mode stays' "$(ls -l m | cut -c1-10)" -rwxr-x--x
same 'edit: both names' "$(od -An -c hard | tr -d ' \n')" 'l\r\nn\r\n'
rm hard
run 'edit: alone' 0 "$hfsb" edit m --old n --new o
same 'edit: mode stays, renamed' "$(ls -l m | cut -c1-10)" -rwxr-x--x
same 'edit: no temporary' "$(ls -a | grep -c hfsb-)" 0

# ---- patch
mkdir p; printf 'x\ny\n' > p/a
patch() { printf '*** Begin Patch\n%b*** End Patch\n' "$1" > .patch; }
patch '*** Update File: p/a\n@@\n-x\n+X\n*** Add File: q/b\n+new\n'
run patch 0 "$hfsb" patch .patch
same 'patch: files' "$(cat p/a q/b)" "$(printf 'X\ny\nnew')"
has patch "$out" 'Updated p/a'
patch '*** Update File: p/a\n*** Move to: ./p/a\n@@\n-X\n+x\n'
run 'patch: onto itself' 0 "$hfsb" patch .patch
same 'patch: onto itself' "$(cat p/a)" "$(printf 'x\ny')"
patch '*** Update File: p/a\n@@\n-x\n+1\n*** Update File: p//a\n@@\n-y\n+2\n'
run 'patch: two spellings' 0 sh -c "'$hfsb' patch --json < .patch"
same 'patch: two spellings' "$(cat p/a)" "$(printf '1\n2')"
has 'patch: two spellings' "$out" '"count":2'
patch '*** Update File: p/a\n@@\n-nowhere\n+1\n*** Delete File: q/b\n'
run 'patch: refused' 1 "$hfsb" patch .patch
same 'patch: all or none' "$(cat q/b)" new
patch '*** Delete File: q/b\n'
run 'patch: dry run' 0 "$hfsb" patch --dry-run .patch
same 'patch: dry run' "$(cat q/b)" new
run 'patch: malformed' 1 sh -c "echo nonsense | '$hfsb' patch"
has 'patch: malformed' "$err" 'Malformed patch, line 1'

# ---- json
printf '{"b":[1, 2.50],"a":null}' > j
run json 0 "$hfsb" json j
same json "$out" '{"b":[1,2.5],"a":null}'
run 'json --pretty' 0 "$hfsb" json --pretty j
same 'json --pretty' "$out" "$(printf '{\n  "b": [\n    1,\n    2.5\n  ],\n  "a": null\n}')"
run 'json: invalid' 1 sh -c "printf '[1,\n]' | '$hfsb' json"
has 'json: invalid' "$err" 'line 2, column 1'
run 'json: two files' 2 "$hfsb" json j j

# ---- strip, truncate, classify
run strip 0 sh -c "printf '\033[31mred\033[0m 10%%\r\033[Kok' | '$hfsb' strip"
same strip "$out" ok
run truncate 0 sh -c "printf 0123456789 | '$hfsb' truncate --limit 4"
same truncate "$out" "$(printf '0\n\n... (6 of 10 chars omitted, showing first 1 + last 3) ...\n789')"
run 'truncate: bad limit' 2 "$hfsb" truncate --limit -5
run classify 0 "$hfsb" classify --json -- train.py
same classify "$out" '{"kind":"path"}'
run classify 0 "$hfsb" classify -- 'print(1)'
same classify "$out" inline
run 'classify: nothing' 2 "$hfsb" classify

# ---- the rest
run help 0 "$hfsb" --help
has help "$out" 'hfsb edit [OPTIONS] FILE'
run 'help of one' 0 "$hfsb" json --help
run version 0 "$hfsb" --version
run nothing 2 "$hfsb"
run nonsense 2 "$hfsb" nonsense
has nonsense "$err" 'unknown command nonsense'
if [ -w /dev/full ]; then
    run 'full disk' 1 sh -c "'$hfsb' json j > /dev/full"
    has 'full disk' "$err" 'cannot write to standard output'
fi

echo "$checks checks of the command line, $failed failed"
[ $failed = 0 ]
