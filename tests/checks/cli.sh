#!/bin/sh
# The command line: what build/hfsb prints, writes and exits with.
# A shell that was started with signals ignored cannot undo that itself.
if [ -z "${SIGNALS_SET:-}" ] && env --default-signal true 2>/dev/null; then
    SIGNALS_SET=1 exec env --default-signal sh "$0" "$@"
fi
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh
[ -x build/hfsb ] || { echo "build/hfsb is missing: run make"; exit 1; }
home=$PWD hfsb=$PWD/build/hfsb
top=$(mktemp -d) || exit 1
trap 'rm -rf "$top"' EXIT
cd "$top" || exit 1
own_settings "$top"
checks=0 failed=0

# run NAME WANTED-STATUS COMMAND...: stdout in $out, stderr in $err
run() {
    name=$1 want=$2
    shift 2
    "$@" > .out 2> .err
    same "$name: exit status" $? "$want"
    out=$(cat .out) err=$(cat .err)
}

missing() { # WHAT FILE
    if [ -e "$2" ]; then state=there; else state=missing; fi
    same "$1 ($2)" $state missing
}

# ---- edit
printf 'a\n\tb\nc\n' > f
run edit 0 "$hfsb" edit f --old '    b' --new '    x'
same 'edit: file' "$(cat f)" "$(printf 'a\n\tx\nc')"
has edit "$out" 'Edited f (1 replacement) (matched after trimming whitespace)'
has edit "$out" "$(printf '\n--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@')"
run 'edit --json' 0 "$hfsb" edit --json f --old a --new A
same 'edit --json' "$out" '{"success":true,"output":"Edited f (1 replacement)","error":"","count":1,"note":null,"lines":[[1,1]],"diff":"--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n-a\n+A\n \tx\n c\n","in_place":false,"sha256":"'"$(sha256sum < f | cut -d " " -f 1)"'"}'
printf '{"a": 1}\n' > f.json
run 'edit: checks' 0 "$hfsb" edit --json f.json --old '1}' --new '1'
has 'edit: checks' "$out" '\n\nValidation warnings:\n  ! '
printf 'a\0b\nc\n' > nul
run 'edit: a diff with NUL, coloured' 0 env CLICOLOR_FORCE=1 "$hfsb" edit nul --old c --new d
esc=$(printf '\033')
has 'edit: a diff with NUL, coloured' "$out" "$esc[31m-c$esc[0m"
has 'edit: a diff with NUL, coloured' "$out" "$esc[32m+d$esc[0m"
run 'edit: NO_COLOR' 0 env CLICOLOR_FORCE=1 NO_COLOR=1 "$hfsb" edit nul --old d --new c
has 'edit: NO_COLOR' "$out" '+c'
hasnt 'edit: NO_COLOR' "$out" "$esc"
printf 'x \377 = 1\n' > bytes; printf '\377' > old; printf '\376' > new
run 'edit: bytes' 0 "$hfsb" edit bytes --old-file old --new-file new
same 'edit: bytes' "$(od -An -c bytes | tr -d ' \n')" 'x376=1\n'
run 'edit: refused' 1 "$hfsb" edit f --old nowhere --new y
has 'edit: refused' "$err" '--old not found in file.'
run 'edit --json: refused' 1 "$hfsb" edit --json f --old nowhere --new y
has 'edit --json: refused' "$out" '{"success":false,"output":"","error":"--old not found'
has 'edit --json: refused' "$out" '"count":0,"note":null,"lines":[],"diff":""}'
run 'edit: dry run' 0 "$hfsb" edit --dry-run f --old A --new B
has 'edit: dry run' "$out" 'Would edit f'
same 'edit: dry run leaves the file' "$(cat f)" "$(printf 'A\n\tx\nc')"
printf 'x = 1\n' > abs
"$hfsb" edit --dry-run "$top/abs" --old 1 --new 2 > abs.diff
run 'edit: dry run, applied' 0 "$hfsb" patch abs.diff
same 'edit: dry run, applied' "$(cat abs)" 'x = 2'
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
run 'edit: no input' 1 sh -c "'$hfsb' edit f < /dev/null"
has 'edit: no input' "$err" 'give --old and --new, or JSON on standard input'
run 'edit: no FILE' 2 "$hfsb" edit --old a --new b
run 'edit: half' 2 "$hfsb" edit f --old a
printf 'a\nb\na\n' > lines
run 'edit: a line without a match' 1 "$hfsb" edit lines --old a --new x --line 2
has 'edit: a line without a match' "$err" 'Line 2 does not tell which: one must start there'
run 'edit: bad line' 2 "$hfsb" edit f --old a --new b --line -1
run 'edit: bad mode' 2 "$hfsb" edit f --old a --new b --mode nonsense
has 'edit: bad mode' "$err" 'Unknown mode: nonsense'
run 'edit: bad option' 2 "$hfsb" edit f --nonsense

mkfifo text
echo one > text &
run 'edit: the text is a pipe' 0 "$hfsb" edit f --old-file text --new 1
wait $!
if [ "$(id -u)" != 0 ]; then
    chmod 0444 f
    run 'edit: not writable' 1 "$hfsb" edit --json f --old 1 --new one
    has 'edit: not writable' "$out" '"count":0,"note":null,"lines":[],"diff":""}'
    chmod 0644 f
fi

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
chmod 0751 p/a
patch '*** Update File: p/a\n*** Move to: p/new/b\n@@\n-1\n+one\n'
run 'patch: move' 0 "$hfsb" patch .patch
same 'patch: move' "$(cat p/new/b)" "$(printf 'one\n2')"
same 'patch: move keeps the mode' "$(ls -l p/new/b | cut -c1-10)" -rwxr-x--x
missing 'patch: moved away' p/a
patch '*** Update File: p/new/b\n*** Move to: p/a\n@@\n-one\n+1\n*** Delete File: p/new/b/c\n'
run 'patch: refused, nothing moves' 1 "$hfsb" patch .patch
missing 'patch: refused, nothing moves' p/a
patch '*** Update File: p/new/b\n*** Move to: p/a\n@@\n-one\n+1\n'
run 'patch: move back' 0 "$hfsb" patch .patch
rmdir p/new
patch '*** Delete File: q/c\n*** Add File: q/c/d\n+x\n'
printf 'x\n' > q/c
run 'patch: a folder in place of a file' 0 "$hfsb" patch .patch
same 'patch: a folder in place of a file' "$(cat q/c/d)" x
patch "*** Update File: p/a\n@@\n-2\n+two \377\n"
run 'patch: any bytes' 0 "$hfsb" patch .patch
same 'patch: any bytes' "$(od -An -c p/a | tr -d ' \n')" '1\ntwo377\n'
patch '*** Update File: p/a\n@@\n-nowhere\n+1\n*** Delete File: q/b\n'
run 'patch: refused' 1 "$hfsb" patch .patch
same 'patch: all or none' "$(cat q/b)" new
patch '*** Delete File: q/b\n'
run 'patch: dry run' 0 "$hfsb" patch --dry-run .patch
same 'patch: dry run' "$(cat q/b)" new
# a patch of somebody else stays in the current directory
mkdir -p beyond/away near
for path in ../beyond/new "$top/beyond/new" ../beyond/away/../new; do
    patch "*** Add File: $path\n+x\n"
    run "patch: $path" 1 sh -c "cd near && '$hfsb' patch ../.patch"
    has "patch: $path" "$err" 'outside the root'
    missing "patch: $path" beyond/new
done
ln -s ../beyond near/link
patch '*** Add File: link/new\n+x\n'
run 'patch: through a link' 1 sh -c "cd near && '$hfsb' patch ../.patch"
missing 'patch: through a link' beyond/new
patch "*** Add File: $top/near/inside\n+x\n"
run 'patch: an absolute path inside' 0 sh -c "cd near && '$hfsb' patch ../.patch"
same 'patch: an absolute path inside' "$(cat near/inside)" x
patch "*** Add File: $top/beyond/new\n+x\n*** Add File: more\n+y\n"
run 'patch --root' 0 sh -c "cd near && '$hfsb' patch --root . --root ../beyond ../.patch"
same 'patch --root' "$(cat beyond/new near/more)" "$(printf 'x\ny')"
run 'patch --root --on' 2 "$hfsb" patch --root . --on http://127.0.0.1:1 .patch
for input in /dev/null blank; do
    echo > blank
    run "patch: $input" 1 "$hfsb" patch $input
    same "patch: $input" "$err" 'The patch is empty'
done
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

if have script; then
    printf '[1, 2]\n\004' | script -qec "'$hfsb' json" /dev/null > .tty
    has 'json: from a terminal' "$(cat .tty)" 'Ctrl-D ends it'
    has 'json: from a terminal' "$(cat .tty)" '[1,2]'
else
    echo "skipped: no script(1), so no terminal"
fi

# ---- strip, truncate, classify
run strip 0 sh -c "printf '\033[31mred\033[0m 10%%\r\033[Kok' | '$hfsb' strip"
same strip "$out" ok
run truncate 0 sh -c "printf 0123456789 | '$hfsb' truncate --limit 4"
same truncate "$out" "$(printf '0\n\n... (6 of 10 chars omitted, showing first 1 + last 3) ...\n789')"
run 'strip --json' 0 sh -c "printf '\033[31mred\033[0m 10%%\r\033[Kok\n' | '$hfsb' strip --json"
same 'strip --json' "$out" '{"success":true,"output":"ok\n","error":""}'
run 'truncate --json' 0 sh -c "printf 0123456789 | '$hfsb' truncate --limit 4 --json"
has 'truncate --json' "$out" '{"success":true,"output":"0\n\n... (6 of 10'
run 'json --json' 0 sh -c "printf ' [1, 2]' | '$hfsb' json --json"
same 'json --json' "$out" '{"success":true,"output":"[1,2]","error":""}'
run 'json --json: invalid' 1 sh -c "printf '[1,' | '$hfsb' json --json"
has 'json --json: invalid' "$out" '{"success":false,"output":"","error":"standard input: line 1'
run 'truncate: bad limit' 2 "$hfsb" truncate --limit -5
run classify 0 "$hfsb" classify --json -- train.py
same classify "$out" '{"success":true,"output":"path","error":"","kind":"path"}'
run classify 0 "$hfsb" classify -- 'print(1)'
same classify "$out" inline
run 'classify: nothing' 2 "$hfsb" classify

# ---- tool
printf '%s' '{"path":"t/a","content":"1\n2\n"}' > args
run tool 0 sh -c "'$hfsb' tool write < args"
same tool "$out" '{"success":true,"output":"Wrote 4 bytes to t/a","error":"","bytes":4,"created":true,"in_place":false}'
run 'tool --args' 0 "$hfsb" tool --args '{"path":"t/a"}' read
has 'tool --args' "$out" '{"success":true,"output":"1\t1\n2\t2","error":"","size":4,"total_lines":2,'
same 'tool: one line' "$(wc -l < .out | tr -d ' ')" 1
run 'tool: no session' 0 "$hfsb" tool edit --args '{"path":"t/a","old_str":"2","new_str":"two"}'
has 'tool: no session' "$out" '"output":"Edited t/a (1 replacement)"'
printf 'one\ntwo\n' > t/lines
run 'tool edit_lines' 0 "$hfsb" tool edit_lines --path t/lines \
    --tag "$(sha256sum t/lines | cut -c 1-8)" \
    --ops '[{"op":"replace","line":2,"text":"2"}]'
same 'tool edit_lines' "$(cat t/lines)" "$(printf 'one\n2')"
run 'tool edit_lines: stale' 1 "$hfsb" tool edit_lines --path t/lines \
    --tag 00000000 --ops '[{"op":"delete","line":1}]'
has 'tool edit_lines: stale' "$out" 'is not the file with the tag'
run 'tool --work-dir' 0 "$hfsb" tool exists --work-dir t --args='{"path":"a"}'
has 'tool --work-dir' "$out" '"output":"true"'
run 'tool: options before TOOL' 0 "$hfsb" tool --work-dir t --json exists --path a
has 'tool: options before TOOL' "$out" '"output":"true"'
run 'tool --root' 1 "$hfsb" tool read --root t --args '{"path":"../f"}'
has 'tool --root' "$out" '"error":"Path is outside the root'
run 'tool: unknown key' 0 "$hfsb" tool exists --args '{"path":"t/a","x":1}'
has 'tool: unknown key' "$out" 'unknown key ignored: x'
run 'tool --strict' 1 "$hfsb" tool exists --strict --args '{"path":"t/a","x":1}'
has 'tool --strict' "$out" '{"success":false,"output":"","error":"Unknown key: x.'
run 'tool: no success' 1 "$hfsb" tool bash --args '{"command":"echo x; exit 3"}'
has 'tool: no success' "$out" '{"success":false,"output":"x\n","error":"Exit code 3",'
run 'tool: wrong type' 1 "$hfsb" tool read --args '{"path":[]}'
has 'tool: wrong type' "$out" '"path\": expected a string, found an array"'
run 'tool: not JSON' 1 sh -c "echo nonsense | '$hfsb' tool read"
has 'tool: not JSON' "$out" '{"success":false,"output":"","error":"line 1, column 2:'
run 'tool: a key twice' 1 "$hfsb" tool read --args '{"path":"f","path":"g"}'
run 'tool: a key twice, inside' 1 "$hfsb" tool bash --args '{"command":"touch ran","env":{"A":"1","A":"2"}}'
run 'tool: unknown' 1 "$hfsb" tool nonsense --args '{}'
same 'tool: unknown' "$out" '{"success":false,"output":"","error":"Unknown tool: nonsense"}'
run 'tool: nearly one' 1 sh -c "echo nonsense | '$hfsb' tool raed"
has 'tool: nearly one' "$out" '"error":"Unknown tool: raed; did you mean read?"'
run 'tool: no input' 0 sh -c "'$hfsb' tool list --work-dir t < /dev/null"
has 'tool: no input' "$out" '"output":"a\n'
run 'tool: no work directory' 1 "$hfsb" tool kill --work-dir nowhere --args '{}'
has 'tool: no work directory' "$out" '"error":"Working directory not found: nowhere"'
run 'tool: background' 1 "$hfsb" tool bash --args '{"command":"touch ran","background":"true"}'
has 'tool: background' "$out" '"error":"background needs a session'
missing 'tool: background was not run' ran
run 'tool: no NAME' 2 "$hfsb" tool --args '{}'
run 'tool: two' 2 "$hfsb" tool read write
has 'tool: two' "$err" 'write is a word too many'
run 'tool: bad option' 2 "$hfsb" tool read --nonsense
run 'tool: half an option' 2 "$hfsb" tool read --args
has 'tool: half an option' "$err" '--args needs a value'

# ---- the parameters of a tool are options
run 'tool: options' 0 "$hfsb" tool exists --path t/a
has 'tool: options' "$out" '"output":"true"'
run 'tool: options and --args' 2 "$hfsb" tool exists --path t/a --args '{}'
run 'tool: a number' 0 "$hfsb" tool read --path=t/a --limit=1
has 'tool: a number' "$out" '"output":"1\t1",'
run 'tool: not a number' 2 "$hfsb" tool read --path t/a --limit one
has 'tool: not a number' "$err" '--limit needs a number, not one'
run 'tool: JSON as an option' 0 "$hfsb" tool multi_edit --path t/a --edits '[{"old_str":"two","new_str":"2"}]'
same 'tool: JSON as an option' "$(cat t/a)" "$(printf '1\n2')"
run 'tool: pairs' 0 "$hfsb" tool bash --env A=1 --env B=x=y --command 'echo $A $B'
has 'tool: pairs' "$out" '"output":"1 x=y\n"'
run 'tool: no pair' 2 "$hfsb" tool bash --env A --command true
has 'tool: no pair' "$err" '--env needs NAME=VALUE, not A'
run 'tool: a parameter that is not UTF-8' 1 "$hfsb" tool exists --path "$(printf 'a\377')"
has 'tool: a parameter that is not UTF-8' "$err" 'path is not UTF-8, from byte 1 on'
run 'tool --help' 0 "$hfsb" tool grep --help
has 'tool --help' "$out" '--ignore-case'
has 'tool --help' "$out" 'Search lines of text files'
printf 'One\ntwo\n' > t/b
run 'grep' 0 "$hfsb" grep --ignore-case one t
has 'grep' "$out" 'b:1:One'
run 'grep: underscores' 0 "$hfsb" grep --ignore_case one t
has 'grep: underscores' "$out" 'b:1:One'
run 'grep: a flag turned off' 0 "$hfsb" grep --ignore-case --no-ignore-case one t
hasnt 'grep: a flag turned off' "$out" 'One'
run 'grep: more' 0 "$hfsb" grep --limit 1 . t
has 'grep: more' "$err" 'hfsb: [first 1 of '
has 'grep: more' "$err" 'read on with --offset 1]'
same 'grep: more: lines' "$(echo "$out" | wc -l)$(echo "$err" | wc -l)" 11
run 'grep: no match' 1 "$hfsb" grep zzzzz t
same 'grep: no match' "$out" ''
has 'grep: no match' "$err" '(no matches; '
run 'grep: options of grep' 0 "$hfsb" grep -n -r -E -i one t
has 'grep: options of grep' "$out" 'b:1:One'
run 'grep: options in one word' 0 "$hfsb" grep -rni one t
has 'grep: options in one word' "$out" 'b:1:One'
run 'grep: options in one word, one unknown' 2 "$hfsb" grep -rlz one t
has 'grep: options in one word, one unknown' "$err" 'unknown option -rlz'
for words in '-l --mode files' '-F --literal' '--glob --include'; do
    run "grep ${words%% *}" 2 "$hfsb" grep "${words%% *}" one t
    has "grep ${words%% *}" "$err" "did you mean ${words#* }?"
done
run 'grep: two paths' 2 "$hfsb" grep one t/a t/b
has 'grep: two paths' "$err" "t/b is a word too many; for many files give"
run 'grep --json: no match' 0 "$hfsb" grep --json zzzzz t
has 'grep --json: no match' "$out" '"output":"(no matches; '
run 'grep: no PATTERN' 2 "$hfsb" grep
has 'grep: no PATTERN' "$err" 'pattern is missing'
run 'grep: a flag has no value' 2 "$hfsb" grep --ignore-case=1 one
run 'glob' 0 "$hfsb" glob 'b' t
has 'glob' "$out" 't/b'
run 'glob: no match' 1 "$hfsb" glob '*.zz' t
same 'glob: no match' "$out" ''
has 'glob: no match' "$err" 'hfsb: (no files match *.zz; '
run 'glob --json: no match' 0 "$hfsb" glob --json '*.zz' t
has 'glob --json: no match' "$out" '"count":0,"truncated":false,"note_lines":1}'
mkdir many; (cd many && seq 300 | xargs touch)
run 'glob: more' 0 "$hfsb" glob 'many/*'
same 'glob: more: lines' "$(wc -l < .out | tr -d ' ')" 200
same 'glob: more' "$err" 'hfsb: [first 200 of 300; read on with --offset 200]'
run 'glob: a key is unknown' 0 "$hfsb" tool glob --args '{"pattern":"many/*","x":1}'
has 'glob: a key is unknown' "$out" '"note_lines":2}'
rm -r many
mkdir hollow
run 'list: empty' 0 "$hfsb" list hollow
same 'list: empty' "$out$err" 'hfsb: (the folder is empty)'
rmdir hollow
run 'list' 0 "$hfsb" list t
has 'list' "$out" 'b'
hasnt 'list' "$out" 'file '
run 'list --details' 0 "$hfsb" list --details t
has 'list --details' "$out" ' b'
has 'list --details' "$out" 'file '
run 'list --root' 1 "$hfsb" list --root t ..
has 'list --root' "$err" 'Path is outside the root'
run 'bash --env' 0 "$hfsb" bash --env A=1 --env B=2 'echo $A$B'
same 'bash --env' "$out" 12
run 'bash --merge-stderr' 0 "$hfsb" bash --merge-stderr 'echo 1; echo 2 >&2'
same 'bash --merge-stderr' "$out" "$(printf '1\n2')"
run 'edit --old-str' 0 "$hfsb" edit t/b --old_str One --new-str one
run 'edit --line' 0 "$hfsb" edit t/b --old two --new 2 --line 2 --exact
same 'edit --line' "$(cat t/b)" "$(printf 'one\n2')"

# ---- messages of tools name options and commands
for command in glob grep list; do
    has "$command: the default limit" "$("$hfsb" $command --help)" \
        'print at most N (0: 200, list 500)'
done
run 'grep: a bad limit' 1 "$hfsb" grep --limit -1 one t
has 'grep: a bad limit' "$err" '(0: 200)'
run 'grep: a bad pattern' 1 "$hfsb" grep '(' t
has 'grep: a bad pattern' "$err" 'To search for the text as it is, give --literal.'
run 'tool grep: a bad pattern' 1 "$hfsb" tool grep --args '{"pattern":"("}'
has 'tool grep: a bad pattern' "$out" 'set literal=true.'
mkdir h; echo one > h/f
run 'undo: before it' 0 "$hfsb" edit h/f --old one --new two
for words in undo changes checkpoints 'undo 99'; do
    # shellcheck disable=SC2086
    run "$words: none" 1 "$hfsb" $words --root h --checkpoints "$top/store"
    has "$words: none" "$err" 'There are no checkpoints of '
    has "$words: none" "$err" '/h. `hfsb edit` and `hfsb bash` take none; `hfsb mcp --root DIR` and'
done
run 'checkpoints: no folder' 2 "$hfsb" undo --root h --checkpoints store
has 'checkpoints: no folder' "$err" 'a folder with a "/" in it: ./store'
same 'looking for checkpoints writes nothing' "$(ls -d store 2>&1 | grep -c ': No such')" 1
rm -rf h

# ---- completion
complete() { "$hfsb" completion words -- "$@" | cut -f 1 | tr '\n' ' '; }
has 'completion: commands' " $(complete)" ' bash exec read write edit '
hasnt 'completion: commands' "$(complete)" 'job run'
same 'completion: subcommands' "$(complete job)" 'run ls logs inspect cancel schedule '
has 'completion: options' "$(complete read)" '--offset --limit --on '
has 'completion: options of a subcommand' "$(complete job logs)" '--follow --tail '
has 'completion: after other words' "$(complete edit f --old x)" '--new '
has 'completion: tools' "$(complete mcp --tools)" 'edit_lines claude gpt small '
same 'completion: choices' "$(complete grep --mode)" 'content files count '
hasnt 'completion: an alias of another tool' " $(complete list) " ' -i '
same 'completion: levels' "$(complete bash --confine)" 'none write strict '
has 'completion: any pipe' "$(complete bash --on)" 'ssh: docker: podman: '
has 'completion: shells' "$(complete completion)" 'bash zsh fish '
same 'completion: a value of any kind' "$(complete read --limit)" ''
has 'completion: tools' "$(complete tool)" 'multi_edit apply_patch '
has 'completion: options of a tool' "$(complete tool list)" '--depth --details --all '
same 'completion: after nonsense' "$(complete nonsense x)" ''
for shell in bash zsh fish; do
    run "completion $shell" 0 "$hfsb" completion $shell
    has "completion $shell" "$out" 'completion words --'
    ! command -v $shell > /dev/null || run "completion $shell: syntax" 0 $shell -n .out
done
run 'completion: another shell' 2 "$hfsb" completion csh
if command -v bash > /dev/null; then
    cat > .complete <<'END'
. /dev/stdin
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))
_hfsb
echo "${COMPREPLY[*]}"
END
    tab() { "$hfsb" completion bash | bash .complete "$hfsb" "$@"; }
    same 'tab: a command' "$(tab cl)" classify
    same 'tab: an option' "$(tab read --of)" --offset
    same 'tab: a value' "$(tab edit --mode app)" append_after
    same 'tab: a file is left to the shell' "$(tab read t/)" ''
fi
# in the real shells, on a terminal
if command -v python3 > /dev/null; then
    for shell in bash zsh fish; do
        if command -v $shell > /dev/null; then
            run "Tab in $shell" 0 python3 "$home/tests/python/cli_pty.py" \
                complete $shell "$hfsb"
        else
            echo "skipped: no $shell, so no completion in it"
        fi
    done
fi

# ---- man
run man 0 "$hfsb" man
if command -v mandoc > /dev/null; then
    "$hfsb" man > hfsb.1
    run 'man: lint' 0 mandoc -Tlint -W warning hfsb.1
    same 'man: lint' "$out" ''
    "$hfsb" man | mandoc -Tutf8 | sed 's/.\x08//g' > .man
    for word in 'hfsb job schedule run' '--max-cpu SECONDS' 'NO_COLOR' \
        '$XDG_STATE_HOME' 'EXIT STATUS' 'tar c . | hfsb exec --on . -- tar x'; do
        same "man has $word" "$(grep -c -e "$word" .man > .count; [ "$(cat .count)" -gt 0 ] && echo yes)" yes
    done
else
    echo "skipped: no mandoc, so the manual page is not checked"
fi
for command in $("$hfsb" completion words -- | cut -f 1); do
    has "man: $command" "$(cat .man 2>/dev/null || "$hfsb" man)" "hfsb $command"
done

# ---- did you mean
run 'did you mean: a command' 2 "$hfsb" gerp x
has 'did you mean: a command' "$err" 'Did you mean: hfsb grep
Try: hfsb --help'
run 'did you mean: a part of one' 2 "$hfsb" compl
has 'did you mean: a part of one' "$err" 'Did you mean: hfsb completion'
run 'did you mean: a subcommand' 2 "$hfsb" job cancle x
has 'did you mean: a subcommand' "$err" 'Did you mean: hfsb job cancel
Try: hfsb job --help'
for words in 'find glob' 'cat read' 'search grep' 'version --version' \
    'run exec' 'ssh shell' 'attach shell' 'stop pause' 'start restart' \
    'kill delete' 'upload cp' 'download cp'; do
    run "did you mean: ${words% *}" 2 "$hfsb" "${words% *}"
    has "did you mean: ${words% *}" "$err" "Did you mean: hfsb ${words#* }"
done
run 'did you mean: list' 2 "$hfsb" ls .
has 'did you mean: list' "$err" '. is a word too many; hfsb ls lists sandboxes, hfsb list files'
mkdir py; touch py/x.py py/y.py
run 'glob: not quoted' 1 sh -c "cd py && '$hfsb' glob *.py"
has 'glob: not quoted' "$err" "hfsb: quote a pattern, or the shell replaces it: hfsb glob '*.py'"
touch py/z.py
run 'glob: not quoted, three' 2 sh -c "cd py && '$hfsb' glob *.py"
has 'glob: not quoted, three' "$err" "z.py is a word too many; quote the pattern"
rm -r py
run 'did you mean: an option' 2 "$hfsb" bash --timeot=3 x
has 'did you mean: an option' "$err" 'unknown option --timeot; did you mean --timeout?'
run 'did you mean: an option of a tool' 2 "$hfsb" grep x --ingore-case
has 'did you mean: an option of a tool' "$err" 'did you mean --ignore-case?'
run 'did you mean: nothing' 2 "$hfsb" zzzzzzzz
hasnt 'did you mean: nothing' "$err" 'Did you mean'
run 'words of others: rm' 2 "$hfsb" rm
has 'words of others: rm' "$err" 'hfsb delete: SANDBOX is missing'
run 'words of others: jobs ps' 0 "$hfsb" jobs ps --help
has 'words of others: jobs ps' "$out" 'hfsb job ls'
run 'words of others: ps' 0 "$hfsb" ps --help
has 'words of others: ps' "$out" 'hfsb ls'
run 'words of others: ps -a' 0 "$hfsb" ps -a --recorded
run 'words of others: jobs ps -a' 0 "$hfsb" jobs ps -a --help
run 'words of others: jobs kill' 0 "$hfsb" jobs kill --help
has 'words of others: jobs kill' "$out" 'hfsb job cancel'
run 'words of others: jobs scheduled ps' 0 "$hfsb" jobs scheduled ps --help
has 'words of others: jobs scheduled ps' "$out" 'hfsb job schedule ls'
run 'words of others: only where they are commands' 0 "$hfsb" exec -- echo job ps
same 'words of others: only where they are commands' "$out" 'job ps'
run 'words of others: jobs hardware' 2 "$hfsb" jobs hardware
has 'words of others: jobs hardware' "$err" 'Did you mean: hfsb hardware --jobs'
for words in '-a --all' '-l --details' '-la --details --all'; do
    run "list ${words%% *}" 2 "$hfsb" list "${words%% *}"
    has "list ${words%% *}" "$err" "did you mean ${words#* }?"
done

run 'did you mean: a kind of sandbox' 1 "$hfsb" read --on shh:host f
has 'did you mean: a kind of sandbox' "$err" 'a URL, ssh:HOST, docker:CONTAINER, podman:CONTAINER, kubectl:NAMESPACE/POD, slurm:OPTIONS or exec:COMMAND.'

run 'connect: a pipe' 1 "$hfsb" connect exec:sh
has 'connect: a pipe' "$err" 'exec:sh needs no record'
run 'pause: a pipe' 1 "$hfsb" pause exec:sh
has 'pause: a pipe' "$err" 'exec:sh is at the end of a pipe'
mkdir -p broken/hfsb; echo '{' > broken/hfsb/sandboxes.json
run 'a broken record' 125 env XDG_STATE_HOME="$top/broken" "$hfsb" bash --on . true
has 'a broken record' "$err" "$top/broken/hfsb/sandboxes.json is not what hfsb writes"
hasnt 'a broken record' "$err" 'no default sandbox'
for command in use status logs 'cp :x y' 'tool exists --on . --path x'; do
    run "a broken record: $command" 1 env XDG_STATE_HOME="$top/broken" \
        "$hfsb" $command
    has "a broken record: $command" "$out$err" 'is not what hfsb writes'
    same "a broken record: $command: lines" "$(cat .out .err | wc -l | tr -d ' ')" 1
done
long=exec:$(printf '%0600d' 0)
run 'use: a long name' 0 env XDG_STATE_HOME="$top/named" "$hfsb" use "$long"
run 'use: a long name' 0 env XDG_STATE_HOME="$top/named" "$hfsb" use
same 'use: a long name' "$out" "$long"

# ---- exec
run exec 3 "$hfsb" exec -e A='x y' -- sh -c 'printf "%s|" "$@" "$A"; exit 3' sh 'a  b' '' '*'
same exec "$out" 'a  b||*|x y|'
run 'exec: without --' 0 "$hfsb" exec echo -n --json
same 'exec: without --' "$out" '--json'
head -c 3000000 /dev/urandom > random
run 'exec: bytes' 0 sh -c "'$hfsb' exec -- cat < random > random2"
cmp -s random random2
same 'exec: bytes' $? 0
rm random random2
head -c 2162688 /dev/zero > zeros # its end may find the queue full
run 'exec: the end of input' 0 sh -c "'$hfsb' exec --timeout 20 -- sh -c 'sleep 0.5; wc -c' < zeros"
same 'exec: the end of input' "$(echo $out)" 2162688
run 'exec: streams' 0 "$hfsb" exec -- sh -c 'echo o; echo e >&2'
same 'exec: streams' "$out$err" oe
run 'exec --merge-stderr' 0 "$hfsb" exec --merge-stderr -- sh -c 'echo o; echo e >&2'
same 'exec --merge-stderr' "$out" "$(printf 'o\ne')"
run 'exec: no program' 127 "$hfsb" exec -- nosuchprogram
: > plain_file
run 'exec: not executable' 126 "$hfsb" exec -- ./plain_file
run 'exec: a signal' 143 "$hfsb" exec -- sh -c 'kill $$'
run 'exec --timeout' 124 "$hfsb" exec --timeout 0.3 -- sleep 60
run 'exec --work-dir' 0 "$hfsb" exec -w p -- ls
same 'exec --work-dir' "$out" a
run 'exec --no-stdin' 0 sh -c "echo x | '$hfsb' exec --no-stdin -- cat"
same 'exec --no-stdin' "$out" ''
run 'exec: it does not read' 0 sh -c "yes | '$hfsb' exec -- true"
run 'exec: a broken pipe' 0 sh -c "'$hfsb' exec -- yes | head -n 1"
run 'exec: no COMMAND' 2 "$hfsb" exec --
run 'exec: no work directory' 125 "$hfsb" exec -w nowhere -- ls
has 'exec: no work directory' "$err" 'Working directory not found: nowhere'
# limits hold without --confine, and are never accepted and dropped
for words in 'exec --max-cpu 5 -- sh -c' 'bash --raw --max-cpu 5' \
    'bash --max-cpu 5' 'exec --confine none --max-cpu 5 -- sh -c'; do
    # shellcheck disable=SC2086
    run "limits: $words" 0 "$hfsb" $words 'ulimit -t'
    same "limits: $words" "$out" 5
done
run 'exec --max-file-size' 153 "$hfsb" exec --max-file-size 1000 -- \
    sh -c 'exec head -c 5000 /dev/zero > .big'
rm -f .big
for option in '--confine none' '--net off' '--allow-write .' \
    '--allow-read .' '--max-memory 1G' '--max-processes 9' \
    '--max-file-size 1G' '--max-cpu 5'; do
    for command in 'bash true' 'bash --raw true' 'exec true' \
        'tool bash --args {}'; do
        # shellcheck disable=SC2086
        run "${command%% *} --on, $option" 2 "$hfsb" ${command%% *} $option \
            --on http://127.0.0.1:1 ${command#* }
        has "${command%% *} --on, $option" "$err" \
            "${option% *} is for commands of this machine"
    done
    # shellcheck disable=SC2086
    run "exec-server --on, $option" 2 "$hfsb" exec-server $option \
        --on http://127.0.0.1:1
    has "exec-server --on, $option" "$err" "${option% *} is for this machine"
done
run 'exec --tty: here' 2 "$hfsb" exec -it -- sh
run 'shell: which?' 2 env XDG_STATE_HOME="$top/none" "$hfsb" shell
if "$hfsb" bash --confine write true > /dev/null 2>&1; then
    mkdir -p walled outer own_tmp
    run 'exec --confine' 9 env TMPDIR="$top/own_tmp" "$hfsb" exec \
        --confine write -w "$top/walled" -- \
        sh -c 'echo in > inside; (echo out > ../outer/f) 2>/dev/null || exit 9'
    same 'exec --confine: where it begins' "$(cat walled/inside)" in
    missing 'exec --confine: elsewhere' outer/f
fi

# ---- events of a file
HFSB_JOURNAL=$top/journal "$hfsb" bash 'echo x; exit 3' > /dev/null
run 'events of a file' 0 "$hfsb" events --journal journal
has 'events of a file' "$out" 'command line'
has 'events of a file' "$out" 'Exit code 3'
run 'events of a file: JSON' 0 env HFSB_JOURNAL="$top/journal" "$hfsb" events --json
has 'events of a file: JSON' "$out" '"exit_code":3'
run 'events: no file' 1 "$hfsb" events --journal nofile

# ---- tools
for format in flat:parameters openai:function anthropic:input_schema \
    mcp:inputSchema; do
    run "tools: $format" 0 "$hfsb" tools --format "${format%:*}"
    has "tools: $format" "$out" "\"${format#*:}\":{"
    has "tools: $format" "$out" '"name":"apply_patch"'
    same "tools: $format is JSON" "$(printf %s "$out" | "$hfsb" json)" "$out"
    # every request pays for them
    [ ${#out} -lt 8000 ]
    same "tools: $format has ${#out} bytes" $? 0
done
run tools 0 "$hfsb" tools
same 'tools: flat unless asked' "$out" "$("$hfsb" tools --format flat)"
run 'tools --pretty' 0 "$hfsb" tools --pretty
same 'tools --pretty' "$("$hfsb" json .out)" "$("$hfsb" tools)"
run 'tools: bad format' 2 "$hfsb" tools --format nonsense
run 'tools: a flag has no value' 2 "$hfsb" tools --pretty=1

# ---- read
printf 'one\ntwo\nthree' > r
run read 0 "$hfsb" read r
same read "$(od -An -c .out | tr -d ' \n')" '1\tone\n2\ttwo\n3\tthree\n'
run 'read: part' 0 "$hfsb" read --offset 2 --limit 1 r
same 'read: part' "$out" "$(printf '2\ttwo')"
same 'read: part' "$err" 'hfsb: there is more: --offset 3'
run 'read: end' 0 "$hfsb" read r --offset=-1
same 'read: end' "$out" "$(printf '3\tthree')"
run 'read --json' 0 "$hfsb" read --json --limit 1 r
has 'read --json' "$out" '{"success":true,"output":"1\tone","error":"","size":13,'
run 'read --json: no file' 1 "$hfsb" read --json nofile
same 'read --json: no file' "$out" '{"success":false,"output":"","error":"File not found: nofile"}'
run 'read: no file' 1 "$hfsb" read nofile
same 'read: no file' "$err" 'File not found: nofile'
run 'read --root' 1 "$hfsb" read --root t ../r
has 'read --root' "$err" 'Path is outside the root'
run 'read: bad limit' 1 "$hfsb" read --limit -1 r
has 'read: bad limit' "$err" '--limit must be '
run 'read: past the end' 0 "$hfsb" read --offset 9 r
has 'read: past the end' "$err" 'hfsb: past the end: the file has '
run 'read: no number' 2 "$hfsb" read --limit x r
has 'read: no number' "$err" '--limit needs a number, not x'
run 'read: no FILE' 2 "$hfsb" read
has 'read: no FILE' "$err" 'path is missing'
bad_name=$(printf 'r\377')
run 'read: a name that is no text' 1 "$hfsb" read "$bad_name"
has 'read: a name that is no text' "$err" 'path is not UTF-8, from byte 1 on'

# ---- write
run write 0 sh -c "printf 'a\377\000b' | '$hfsb' write w/x/y"
same write "$out" 'Wrote 4 bytes to w/x/y'
same 'write: bytes' "$(od -An -c w/x/y | tr -d ' \n')" 'a377\0b'
chmod 0751 w/x/y; ln -s x/y w/link
run 'write --json' 0 sh -c "printf abc | '$hfsb' write --json w/link"
same 'write --json' "$out" '{"success":true,"output":"Wrote 3 bytes to w/link","error":"","bytes":3,"created":false,"in_place":false}'
same 'write: mode stays' "$(ls -l w/x/y | cut -c1-10)" -rwxr-x--x
same 'write: link stays' "$(ls -ld w/link | cut -c1)" l
run 'write: nothing' 0 "$hfsb" write w/empty < /dev/null
same 'write: nothing' "$(wc -c < w/empty | tr -d ' ')" 0
run 'write: onto itself' 0 sh -c "'$hfsb' read r | '$hfsb' write r"
same 'write: onto itself' "$(cat r)" "$(printf '1\tone\n2\ttwo\n3\tthree')"
run 'write: directory' 1 "$hfsb" write w < /dev/null
same 'write: directory' "$err" 'Is a directory: w'
run 'write --root' 1 "$hfsb" write --json --root w ../x < /dev/null
has 'write --root' "$out" '{"success":false,"output":"","error":"Path is outside the root'
run 'write: no root' 1 "$hfsb" write --root nowhere x < /dev/null
run 'write: no FILE' 2 "$hfsb" write < /dev/null
run 'write: no input' 1 sh -c "'$hfsb' write w/none <&-"
has 'write: no input' "$err" 'Standard input cannot be read'
same 'write: no trace' "$(ls -A w | tr '\n' ' ')" 'empty link x '

# ---- bash
run bash 0 "$hfsb" bash 'echo a  b'
same bash "$out" 'a b'
run 'bash: several words' 2 "$hfsb" bash echo a  b
has 'bash: several words' "$err" "hfsb bash 'echo a ...'; or keep the words apart: hfsb exec -- echo a ..."
run 'bash: two words' 2 "$hfsb" bash ls -l
has 'bash: two words' "$err" "hfsb bash 'ls -l'; or keep the words apart: hfsb exec -- ls -l. Options"
run 'bash: options at the end' 2 "$hfsb" bash 'sleep 5' --timeout 1
has 'bash: options at the end' "$err" "options come before COMMAND: hfsb bash --timeout ... 'sleep 5'"
run 'bash: streams' 3 "$hfsb" bash 'echo out; echo err >&2; exit 3'
same 'bash: stdout' "$out" out
same 'bash: stderr' "$err" err
run 'bash --merge' 0 "$hfsb" bash --merge 'echo 1; echo 2 >&2; echo 3'
same 'bash --merge' "$out" "$(printf '1\n2\n3')"
run 'bash: clean' 0 "$hfsb" bash "printf '\\033[31mred\\033[0m 10%%\\rok \\377'"
same 'bash: clean' "$(od -An -tx1 .out | tr -d ' \n')" 6f6b20efbfbd313025
run 'bash: options of the command' 0 "$hfsb" bash --merge 'echo --json -h'
same 'bash: options of the command' "$out" '--json -h'
run 'bash --shell' 0 "$hfsb" bash --shell /bin/sh 'echo "$0"'
same 'bash --shell' "$out" /bin/sh
run 'bash -e' 0 "$hfsb" bash -e A='b c' --env D=e 'echo "$A$D"'
same 'bash -e' "$out" 'b ce'
run 'bash --raw' 3 sh -c "printf 'a\\377' | '$hfsb' bash --raw 'cat; exit 3'"
same 'bash --raw' "$(od -An -tx1 .out | tr -d ' \n')" 61ff
run 'bash --raw: and JSON' 2 "$hfsb" bash --raw --json true
run 'bash -d: here' 1 "$hfsb" bash -d true
has 'bash -d: here' "$err" '--background needs a session'
run 'bash: signal' 137 "$hfsb" bash 'kill -KILL $$'
same 'bash: signal' "$out$err" 'hfsb: ended by SIGKILL'
run 'bash: no such program' 127 "$hfsb" bash nosuchprogram
run 'bash --timeout' 124 "$hfsb" bash --timeout 2.9 'echo begun; sleep 60'
same 'bash --timeout' "$out" begun
same 'bash --timeout' "$err" 'hfsb: Timeout after 2.9s'
run 'bash --work-dir' 0 "$hfsb" bash --work-dir p ls
same 'bash --work-dir' "$out" a
run 'bash: no work directory' 125 "$hfsb" bash --work-dir nowhere ls
same 'bash: no work directory' "$err" 'hfsb: Working directory not found: nowhere'
run 'bash: no stdin' 0 sh -c "echo x | '$hfsb' bash cat"
same 'bash: no stdin' "$out" ''
run 'bash --stdin' 0 sh -c "echo x | '$hfsb' bash --stdin cat"
same 'bash --stdin' "$out" x
run 'bash --stdin: bytes' 125 sh -c "printf 'x\377' | '$hfsb' bash --stdin 'touch ran'"
has 'bash --stdin: bytes' "$err" 'Standard input is not UTF-8, from byte 1 on'
run 'bash: bytes' 125 "$hfsb" bash "touch ran $bad_name"
missing 'bash: neither was run' ran
run 'bash --json' 3 "$hfsb" bash --json 'echo x; exit 3'
has 'bash --json' "$out" '{"success":false,"output":"x\n","error":"Exit code 3",'
has 'bash --json' "$out" '"exit_code":3,"signal":null,"timed_out":false,'
run 'bash --json: timeout' 124 "$hfsb" bash --json --timeout 0.3 'sleep 60'
has 'bash --json: timeout' "$out" '"error":"Timeout after 0.3s"'
run 'bash: no COMMAND' 2 "$hfsb" bash --merge
run 'bash: bad timeout' 2 "$hfsb" bash --timeout -1 ls
has 'bash: bad timeout' "$err" '--timeout needs a number of seconds above 0, not -1'
run 'bash: bad option' 2 "$hfsb" bash -c ls

# ---- bash: what it starts and leaves
alive() { # PID; a dead one that nobody has waited for is not
    kill -0 "$1" 2> /dev/null || return 1
    [ "$(sed 's/.*) //; s/ .*//' "/proc/$1/stat" 2> /dev/null)" != Z ]
}

ends() { # WHAT PID: gone within twenty seconds
    tries=0
    while alive "$2" && [ $tries -lt 200 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    if alive "$2"; then state=alive; else state=gone; fi
    same "$1 (process $2)" $state gone
}

lives() { # WHAT PID
    if alive "$2"; then state=alive; else state=gone; fi
    same "$1 (process $2)" $state alive
}

there() { # FILE: waits until it has something in it
    tries=0
    until [ -s "$1" ] || [ $tries -ge 200 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
}

# The first line is there while the command still runs.
mkfifo go
"$hfsb" bash 'echo first; read x < go; echo second' > .stream &
there .stream
same 'bash: the first line comes at once' "$(cat .stream)" first
echo x > go
wait $!
same 'bash: all came' "$(cat .stream)" "$(printf 'first\nsecond')"

# A program that ignores the signal is waited for without computing.
rm -f .stream
computed=$(
    "$hfsb" exec -- sh -c 'trap "" TERM; echo up; while :; do sleep 0.1; done' \
        > .stream &
    there .stream
    kill -TERM $!
    wait $!
    times > .times # in a pipe it would be that of another process
    awk -F '[ms ]+' 'END { print 60 * ($1 + $3) + $2 + $4 }' .times
)
same "exec: a signal that is ignored: computes less than 0.5 s ($computed)" \
    "$(echo "$computed" | awk '{ print ($1 < 0.5) }')" 1

# A survivor that holds no pipe is named and lives. It has its name once the
# shell's child has become it.
run 'bash: survivor' 0 "$hfsb" bash 'sleep 61 > /dev/null 2>&1 & echo $! > pid
    until ! [ -d /proc/self ] || grep -qa "^sleep" /proc/$!/cmdline; do :; done'
pid=$(cat pid)
lives 'bash: survivor lives' "$pid"
[ ! -d /proc/self ] ||
    same 'bash: survivor is named' "$err" "hfsb: still running: $pid sleep 61"
kill "$pid"

# What the result says after the output is printed after it.
run 'bash: limits' 153 "$hfsb" bash --max-file-size 1000 \
    'head -c 5000 /dev/zero > .big'
has 'bash: limits' "$err" 'hfsb: (commands are limited: '
has 'bash: limits' "$err" '--max-file-size SIZE)'
rm -f .big
if "$hfsb" bash --confine write true 2>/dev/null; then
    mkdir plant
    run 'bash: planted' 0 "$hfsb" bash --work-dir plant --confine write \
        'echo evil > .envrc'
    has 'bash: planted' "$err" .envrc
    same 'bash: planted: lines' "$(echo "$err" | grep -vc '^hfsb: ')" 0
    rm -rf plant
fi

# One that goes on printing to our pipe is not ended by SIGPIPE: a keeper
# reads on, and goes when there is nothing to read any more.
run 'bash: printing survivor' 0 "$hfsb" bash "echo x
    (while sleep 0.2; do echo tick && echo tick >> '$top/ticks'; done) &
    echo \$! > pid"
same 'bash: printing survivor' "$out" x
pid=$(cat pid)
rm -f ticks
there ticks
same 'bash: it goes on printing' "$(head -n 1 ticks)" tick
lives 'bash: it lives' "$pid"
kill "$pid"
ends 'bash: it was ended' "$pid"
if [ -r /proc/self/cmdline ]; then
    tries=0
    # in brackets, so that grep does not find itself
    while grep -qs "$top/[t]icks" /proc/[0-9]*/cmdline && [ $tries -lt 200 ]; do
        sleep 0.1
        tries=$((tries + 1))
    done
    same 'bash: the keeper is gone' "$(grep -ls "$top/[t]icks" /proc/[0-9]*/cmdline)" ''
fi

# A timeout ends the whole tree, also what left its session.
run 'bash --timeout: tree' 124 "$hfsb" bash --timeout 3 '
    sleep 62 & echo $! > child
    if command -v setsid > /dev/null; then setsid sleep 63 & fi
    echo $! > far
    wait'
ends 'bash --timeout: child' "$(cat child)"
ends 'bash --timeout: far child' "$(cat far)"

# interrupt SIGNALS STATUS COMMAND...: sends signals, half a second between, to
# a command that has written its pid to `shell`. Not by running it in the
# background: then it would ignore SIGINT.
interrupt() {
    signals=$1 want=$2
    shift 2
    rm -f shell hfsb_pid
    (
        there shell
        for s in $signals; do
            kill -"$s" "$(cat hfsb_pid)"
            sleep 0.5
        done
    ) &
    run "interrupt $signals" "$want" sh -c 'echo $$ > hfsb_pid; exec "$@"' \
        sh "$@"
    wait $!
}
loop='sleep 64 & echo $! > child; echo begun; echo $$ > shell; wait'
for s in INT:130 TERM:143 HUP:129; do
    interrupt ${s%:*} ${s#*:} "$hfsb" bash "$loop"
    same "interrupt $s: what was printed" "$out" begun
    ends "interrupt $s: shell" "$(cat shell)"
    ends "interrupt $s: child" "$(cat child)"
done
interrupt TERM 143 "$hfsb" tool bash --args "{\"command\":\"$loop\"}"
has 'interrupt tool' "$out" '{"success":false,"output":"begun\n","error":"Exit code -15",'
ends 'interrupt tool: child' "$(cat child)"
# killed after the grace; a second signal does not wait for that
stubborn="trap '' TERM; echo \$\$ > shell; exec sleep 67"
interrupt INT 130 "$hfsb" bash "$stubborn"
ends 'interrupt: stubborn' "$(cat shell)"
interrupt 'INT INT' 130 "$hfsb" bash "$stubborn"
lives 'interrupt twice: hfsb did not wait' "$(cat shell)"
kill -KILL "$(cat shell)"
# a write that is interrupted leaves nothing
mkfifo endless
(exec 3<> endless; echo part >&3; there .over) &
run 'interrupt write' 130 sh -c "(sleep 0.5; kill -INT \$\$) & exec '$hfsb' write w/part < endless"
echo x > .over
wait $!
same 'interrupt write: no trace' "$(ls -A w | tr '\n' ' ')" 'empty link x '

# Nobody reads what it prints: the tree ends, as in any pipeline.
("$hfsb" bash 'echo $$ > shell; echo y; sleep 0.5; echo y; sleep 2; echo y; exec sleep 65'
    echo $? > status) | head -n 1 > .first
same 'bash: closed pipe' "$(cat .first status)" "$(printf 'y\n141')"
ends 'bash: closed pipe' "$(cat shell)"
if [ -w /dev/full ]; then
    run 'bash: full disk' 125 sh -c "'$hfsb' bash 'echo \$\$ > shell; echo x; sleep 66' > /dev/full"
    has 'bash: full disk' "$err" 'cannot write to standard output'
    ends 'bash: full disk' "$(cat shell)"
fi

# 100 MB come through as they are, and leave no spill file.
mkdir spills
big='awk "BEGIN { for (i = 0; i < 1600000; i++) printf \"%063d\\n\", i }"'
same 'bash: 100 MB' "$(TMPDIR=$top/spills "$hfsb" bash "$big" | cksum)" "$(sh -c "$big" | cksum)"
same 'bash: no spill file' "$(ls -A spills)" ''
run 'bash --json: spill file' 0 env TMPDIR="$top/spills" "$hfsb" bash --json 'yes | head -n 20000'
has 'bash --json: spill file' "$out" "\"spill_path\":\"$top/spills/bash_output_"

# ---- the rest
run help 0 "$hfsb" --help
has help "$out" 'hfsb edit [OPTIONS] FILE'
for command in bash read write edit patch tool tools json strip truncate \
    classify create connect ls status pause restart delete sweep cp job \
    grep glob list undo changes checkpoints completion; do
    has 'help' "$out" "    hfsb $command"
    first=$("$hfsb" $command --help | head -n 1)
    has "help of $command" "$first" "hfsb $command"
    same "help $command" "$("$hfsb" help $command)" "$("$hfsb" $command --help)"
    same "help of $command is not too wide" "$("$hfsb" $command --help | awk 'length > 78')" ''
done
count=$("$hfsb" completion words -- | wc -l) # a line for each, and a few more
same 'help is short' "$([ "$("$hfsb" --help | wc -l)" -le $((count + 12)) ] && echo yes)" yes
same 'help is not too wide' "$("$hfsb" --help | awk 'length > 80')" ''
run 'help of one' 0 "$hfsb" json --help
run 'help of one, after other options' 0 "$hfsb" edit f --old x --help
has 'help of one, after other options' "$out" 'hfsb edit [OPTIONS] FILE'
run 'help of nonsense' 2 "$hfsb" help nonsense
run 'help of a subcommand' 0 "$hfsb" help job run
same 'help of a subcommand' "$out" "$("$hfsb" job run --help)"
has 'help lists subcommands' "$("$hfsb" job --help)" 'hfsb job cancel [OPTIONS] JOB'
run 'unknown subcommand' 2 "$hfsb" job nonsense
has 'unknown subcommand' "$err" 'unknown subcommand nonsense'
run 'journal' 3 env HFSB_JOURNAL="$top/journal" \
    "$hfsb" bash 'exit 3'
has 'journal: who' "$(cat "$top/journal")" '"who":"command line","tool":"bash"'
has 'journal: code' "$(cat "$top/journal")" '"exit_code":3'
run 'journal: a folder' 1 env HFSB_JOURNAL="$top" "$hfsb" list .
has 'journal: a folder' "$err" "Cannot open the journal $top"
run version 0 "$hfsb" --version
run nothing 2 "$hfsb"
run nonsense 2 "$hfsb" nonsense
has nonsense "$err" 'unknown command nonsense'
if [ -w /dev/full ]; then
    for command in 'json j' man --help --version 'bash --help' 'job --help'; do
        run "full disk: $command" 1 sh -c "'$hfsb' $command > /dev/full"
        has "full disk: $command" "$err" 'cannot write to standard output'
    done
fi

echo "$checks checks of the command line, $failed failed"
[ $failed = 0 ]
