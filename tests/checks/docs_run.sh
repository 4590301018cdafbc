#!/bin/sh
# Every command of the documentation runs: each ```sh block of README.md, docs/
# and the other *.md files, in the order of its page, in a copy of the project
# in a temporary folder. What is needed beside it is there as well:
#   - the fake Hub; free ports instead of those in the text; files and folders
#     such as /work and train.py; $HOME
#   - stand-ins for other programs: ssh, docker exec, kubectl and srun lead to
#     folders of this machine (tests/support/stand-ins), hosts of MCP start
#     what they are given (tests/python/mcp_host.py), llama-server is
#     tests/python/agent_model.py
#   - a server that a block starts goes on in the background, until the next
#     one or the end of the page
# Configurations (json, toml, yaml) are parsed, and the servers in them are
# started; js runs where node and what it imports are there. Other blocks are
# `text`, c (docs.sh compiles them), or indented: output and pictures. One that
# is indented and begins with a command fails, for nobody runs it; one that
# follows commands immediately is compared with what they print.
# docs/terminal.svg shows what the commands of docs/terminal.txt print.
#   docs_run.sh [PAGE...]     only these, such as docs/pipes.md
# A shell that was started with signals ignored cannot undo that itself.
if [ -z "${SIGNALS_SET:-}" ] && env --default-signal true 2>/dev/null; then
    SIGNALS_SET=1 exec env --default-signal sh "$0" "$@"
fi
set -u
cd "$(dirname "$0")/../.." || exit 1
. tests/checks/lib.sh

for f in hfsb hfsb-server agent; do
    [ -x build/$f ] || { echo "build/$f is missing: run make"; exit 1; }
done
have curl || { echo "skipped: no curl"; exit 77; }
python=$(python3 -c 'import sys; print(sys.executable)' 2>/dev/null) ||
    { echo "skipped: no python3"; exit 77; }
home=$PWD
top=$(mktemp -d) || exit 1
chmod 711 "$top" # as root, sandboxes of E2B are users of their own
failed=0 hub=''

ours() ( # processes that were started here, and not those that look for them
    unset DOCS_STAGE
    grep -lz "^DOCS_STAGE=$top\$" /proc/[0-9]*/environ 2>/dev/null |
        tr -dc '0-9\n'
)

end() {
    exec 9>&-
    [ -z "$hub" ] || { kill "$hub"; wait "$hub"; } 2>/dev/null
    # shellcheck disable=SC2046
    kill $(ours) 2>/dev/null
    rm -rf "$top"
}
trap end EXIT
trap 'exit 130' INT TERM

bad() {
    echo "FAIL  $*"
    failed=$((failed + 1))
}

# ---- the stage

copy_project() { # with what make has built, so that make has nothing to do
    mkdir -p "$top/hfsb/build"
    tar c --exclude=./build --exclude=./.git --exclude=./tests . |
        tar x -C "$top/hfsb"
    for f in hfsb hfsb-server agent edit_file embed_server mcp_tool \
        remote_edit run_command hfsb.o hfsb_all.c hfsb_page.h hfsb_space.h \
        with-curl https link harden; do
        [ ! -f "build/$f" ] || cp -p "build/$f" "$top/hfsb/build/$f"
    done
    if is_new build/static/hfsb-server; then
        mkdir "$top/hfsb/build/static"
        cp -p build/static/hfsb-server "$top/hfsb/build/static"
        : > "$top/static"
    fi
    ! is_new build/hfsb.wasm ||
        cp -p build/hfsb.wasm build/hfsb.mjs "$top/hfsb/build"
}

is_new() { # FILE: that another check has built, from these sources
    [ -f "$1" ] && [ -z "$(find ./*.h examples/hfsb-server* \
        examples/bindings examples/wasm -type f -newer "$1")" ]
}

stand_in() { # NAME: the script on standard input
    { echo '#!/bin/sh'; cat; } > "$top/bin/$1"
    chmod +x "$top/bin/$1"
}

stand_ins() {
    cp tests/support/stand-ins/* "$top/bin/"
    { echo "#!$python"; cat tests/python/mcp_host.py; } > "$top/bin/mcp-host"
    chmod +x "$top"/bin/*
    for f in ssh docker podman kubectl srun; do ln -s far "$top/bin/$f"; done
    for f in claude codex gemini qwen copilot cline npx; do
        ln -s mcp-host "$top/bin/$f"
    done
    echo 'DESTDIR=$DOCS_STAGE/root exec "$@"' | stand_in sudo
    echo '[ "$*" = -L ] && echo "GPU 0: a GPU"' | stand_in nvidia-smi
    # package.sh builds the packages
    echo '[ "$*" = "-us -uc -b" ] && [ -x debian/rules ] &&
        [ -f debian/control ] && [ -f debian/changelog ]' |
        stand_in dpkg-buildpackage
    stand_in llama-server <<END
# -m FILE --jinja --port N
[ "\$1 \$3 \$4" = '-m --jinja --port' ] && [ -f "\$2" ] || exit 1
exec "$python" "$home/tests/python/agent_model.py" --port "\$5"
END
    echo "exec '$python' '$home/tests/python/cli_pty.py' yes \"\$@\"" |
        stand_in on-terminal
    # compiled once, and quickly rather than small; the program of the bundle
    # is compiled by mcpb.sh
    stand_in make <<END
for word; do
    shift
    [ "\$word" = static ] && [ -f "$top/static" ] && word=build/hfsb-server
    set -- "\$@" "\$word"
done
case " \$* " in *' static '*) : > "$top/static" ;; esac
exec "$(command -v make)" "\$@"
END
    if have musl-gcc; then
        stand_in musl-gcc <<END
case " \$* " in *' -o build/mcpb/bundle/server/hfsb '*)
    exec cp build/hfsb build/mcpb/bundle/server/hfsb ;;
*' -o build/mcpb/'*) exit 0 ;;
esac
exec "$(command -v musl-gcc)" "\$@" -O0
END
    fi
}

files() { # that the texts speak of
    for f in gpu1 node1 node2 host inner web worker-0 pod-0; do
        mkdir -p "$top/hosts/$f"
    done
    mkdir "$top/bin" "$top/work" "$top/workspace" "$top/app" "$top/data" \
        "$top/tmp" "$top/run" "$top/root" "$top/images" "$top/place" "$top/v1" \
        "$top/blocks" "$top/srv" "$top/srv/box" "$top/srv/boxes" \
        "$top/home" "$top/home/.config" "$top/home/.config/hfsb" \
        "$top/hfsb/data"
    chmod 755 "$top/srv" "$top/srv/boxes"
    echo fail > "$top/home/.curlrc" # a status of 400 or more is an error
    echo 'debug=True' > "$top/hosts/web/app.py"
    echo 'debug = True' > "$top/app/main.py"
    echo 'two words' > "$top/hosts/node1/log.txt"
    echo 'x = 1' > "$top/v1/app.py"
    echo 'a,b' | tee "$top/hfsb/data.csv" > "$top/hfsb/data/rows.csv"
    echo 'print("trained")' > "$top/hfsb/train.py"
    printf 'ssh:node1\nssh:node2\n' > "$top/hfsb/nodes"
    : > "$top/hfsb/model.gguf"
}

install_e2b() { # or takes the one of $HFSB_E2B, a folder with node_modules
    modules=${HFSB_E2B:-$top/npm}
    if [ -z "${HFSB_E2B:-}" ] && have npm && have node; then
        limited 120 npm install --silent --no-audit --no-fund \
            --prefix "$modules" e2b > "$top/npm.log" 2>&1
    fi
    ln -s "$modules/node_modules" "$top/hfsb/node_modules"
    : > "$top/npm.done"
}

free_ports() { # N: below those that the kernel gives away meanwhile
    "$python" -c 'import random, socket, sys
held = []
while len(held) < int(sys.argv[1]):
    s = socket.socket()
    try:
        s.bind(("127.0.0.1", random.randrange(10240, 32000)))
        held.append(s)
    except OSError:
        pass
print(*[s.getsockname()[1] for s in held])' "$1"
}

# What a reader replaces is replaced; servers and hosts get their callers, see
# prelude.
substitutions() {
    ports='7860 7870 8080 8000 8888 49983 3000'
    cat <<'END'
s#/tmp/#@/tmp/#g
s#/usr/local/bin/hfsb#hfsb#
s#/usr/bin/hfsb#hfsb#
s#\(^\|[ "'=:]\)\(/\(workspace\|work\|srv\|app\|data\)\)\([/" ']\|$\)#\1@\2\4#g
s#/home/me/project#@/work#
s#0\.0\.0\.0#127.0.0.1#g
s#https://box\.example\.org#http://127.0.0.1#
s#https://api\.openai\.com#http://127.0.0.1:8080#
s#https://JOB--49983\.hf\.jobs#http://127.0.0.1:49983#
s#http://HOST:#http://127.0.0.1:#g
s#hf_\.\.\.#hf_goodtoken#
s#Bearer \.\.\.#Bearer my-secret#
s#TOKEN=\.\.\.#TOKEN=my-secret#
s#"me/box"#"http://127.0.0.1:7860"#
s#alice/sandbox-1a2b3c4d#"$docs_space"#
s#jobs/alice/687f911eaea852de79c4a50a#"$docs_job"#
s#--root DIR#--root @/srv/box#
s#^hfsb shell #echo exit | &#
s#^\(\([A-Z_]*=[^ ]* \)*\)\(hfsb mcp \)#\1mcp-host mcp \3#
/--on "\$docs_/s#^mcp-host#env -u SANDBOX_API_TOKEN &#
s#^hfsb exec-server #mcp-host exec-server &#
s#^build/agent #on-terminal &#
s#^docker run #serve &#
s#^make serve#serve &#
s#^\(llama-server .*\) &$#start \1#
/hfsb-server --check/!{
/&$/!s#^\(\([A-Z_]*=[^ ]* \)*\(build/\)\{0,1\}hfsb-server \)#serve env \1#
}
END
    # shellcheck disable=SC2046
    set -- $(free_ports 7)
    for port in $ports; do
        for n in 1 2; do # 7860:7860
            printf 's#\\([^0-9]\\)%s\\([^0-9]\\)#\\1%s\\2#g\n' "$port" "$1"
        done
        printf 's#\\([^0-9]\\)%s$#\\1%s#\n' "$port" "$1"
        echo "$port $1" >> "$top/ports"
        shift
    done
    echo "s#@/#$top/#g"
}

port() { sed -n "s/^$1 //p" "$top/ports"; }

# Of every page; the functions that the blocks are called with.
prelude() {
    cat <<'END'
docs_servers='' docs_space='' docs_job=''
(set -o pipefail) 2> /dev/null && set -o pipefail
stop() {
    for p in $docs_servers; do
        kill "$p" 2> /dev/null || :
        wait "$p" 2> /dev/null || :
    done
    docs_servers=
}
trap 'kill ${server:-} 2> /dev/null || :; stop' EXIT
trap 'exit 130' INT TERM
start() { # COMMAND...: in the background, once it listens
    case "$* " in
    *' --host '* | 'make '* | 'docker '* | 'llama-server '*) ;;
    *) set -- "$@" --host 127.0.0.1 ;;
    esac
    : > "$DOCS_STAGE/serve.log" # the next lines must not read the old one
    "$@" > "$DOCS_STAGE/serve.log" 2>&1 &
    docs_servers="$docs_servers $!"
    docs_tries=0
    until grep -q 'listens on' "$DOCS_STAGE/serve.log"; do
        docs_tries=$((docs_tries + 1))
        [ $docs_tries -lt 600 ] && kill -0 $! || {
            echo "does not listen: $*"
            cat "$DOCS_STAGE/serve.log"
            exit 1
        }
        sleep 0.1
    done
}
serve() { # COMMAND...: instead of the server before
    stop
    start "$@"
}
at() { # BLOCK
    echo "$1" > "$DOCS_STAGE/at"
    echo "$1" >> "$DOCS_STAGE/ran"
    printf '\n==== %s\n' "$1"
}
skipped() { # BLOCK WHY
    echo "skipped: $*" >> "$DOCS_STAGE/skipped"
}
config() { # BLOCK FILE HOW
    at "$1"
    mcp-host "$3" "$2" || { [ $? = 77 ] && skipped "$1" "no parser"; }
}
END
}

# ---- blocks

# The blocks of PAGE as files NUMBER.LANGUAGE; NUMBER is the line.
extract() {
    rm -f "$top"/blocks/*
    awk -v into="$top/blocks/" '
        function name(lang) { return sprintf("%s%05d.%s", into, NR, lang) }
        fenced && /^```/ {
            close(file)
            fenced = blank = 0
            after = file ~ /\.sh$/
            next
        }
        fenced { print > file; next }
        /^```/ {
            fenced = 1
            file = name($0 == "```" ? "none" : substr($0, 4))
            printf "" > file
            next
        }
        /^    / && (blank || indented) {
            if (!indented) file = name(after ? "output" : "indented")
            indented = 1
            print substr($0, 5) > file
            next
        }
        { indented = 0; blank = $0 == ""; if (!blank) after = 0 }' "$1"
}

# A list of commands and what they do, two blanks apart, is no block to run;
# but what it names exists.
is_list() {
    ! grep -qv '^\(make\|tests/run\)\( [A-Za-z ]*[A-Za-z]\)\{0,1\}  ' "$1"
}

check_list() { # BLOCK FILE
    sed 's/  .*//' "$2" > "$2.names"
    while read -r program word; do
        if [ "$program" != make ]; then
            [ -f "$program" ] || bad "$1: no $program"
        elif [ -n "$word" ]; then
            grep -q "^$word:" Makefile || bad "$1: no $word in the Makefile"
        fi
    done < "$2.names"
    rm -f "$2.names"
}

is_command() { # FILE: its first word is a program, or sets a variable
    word=$(sed -n '1s/^\$ *//; 1s/ .*//p; 1q' "$1")
    case $word in *'"'*) return 1 ;; export | *=*) return 0 ;; esac
    grep -q '^\$ ' "$1" ||
        { [ -n "$word" ] && PATH=$path:$top/hfsb/build have "$word"; }
}

# What is there before a block begins, known from its text; a line of why it
# cannot run, else.
before() { # FILE
    if grep -q 'v1+https' "$1"; then
        echo "cd \"\$DOCS_STAGE/v1\""
        echo "serve env SBX_TOKEN=my-secret SBX_PORT=$(port 49983) \\"
        echo "    hfsb-server --api hf"
        echo "cd \"\$DOCS_STAGE/hfsb\""
    elif grep -q 'POD_IP:8888/init' "$1"; then
        printf '%s\n' "$(sed -n '/command:$/,/ports:/s/^ *- //p' \
            examples/kubernetes/template-token.yaml | tr '\n' ' ' |
            sed 's/=/ /g' | sed -f "$top/substitutions")"
        echo 'POD_IP=127.0.0.1'
    elif grep -q 'build/agent' "$1"; then
        echo "export SANDBOX_API_TOKEN=my-secret"
        echo "export OPENAI_BASE_URL=http://127.0.0.1:$(port 8080)/v1"
        echo "serve hfsb-server --work-dir \"\$DOCS_STAGE/work\""
    elif grep -q 'hfsb-server --check' "$1"; then
        echo "serve hfsb-server --no-auth"
    elif grep -q 'hfsb-server --no-auth' "$1"; then
        echo 'unset SBX_TOKEN' # of a section before
    elif grep -q 'alice/sandbox-1a2b3c4d' "$1"; then
        echo 'export HF_TOKEN=hf_goodtoken'
        echo 'docs_space=$(hfsb create)'
        echo 'docs_job=$(hfsb create --image python:3.12)'
    fi
}

lacks() { # FILE: what it needs and is not there
    case $1 in *.js | *.sh) ;; *) return ;; esac
    grep -q "import('e2b')\|from 'e2b'" "$1" && {
        while [ ! -f "$top/npm.done" ]; do sleep 0.1; done
        [ -d "$top/hfsb/node_modules/e2b" ] || echo "no node with e2b"
    }
    grep -q 'hfsb.mjs' "$1" && { have node && have clang && have wasm-ld ||
        echo "no node, clang and lld"; }
}

js() { # BLOCK FILE
    echo "at '$1'"
    case $(cat "$2") in
    *hfsb.mjs*)
        cp "$2" "$top/hfsb/build/block.mjs"
        [ -f "$top/hfsb/build/hfsb.wasm" ] || echo "make -s wasm"
        echo "node build/block.mjs" ;;
    *)
        cp "$2" "$top/hfsb/block.mjs"
        echo "E2B_DEBUG=true E2B_SANDBOX_URL=http://127.0.0.1:$(port 49983) \\"
        echo "    node block.mjs" ;;
    esac
}

dockerfile() { # BLOCK FILE: with the files that it copies
    mkdir -p "$top/context"
    cp "$top/hfsb/build/hfsb-server" "$top/context"
    cp "$2" "$top/context/Dockerfile"
    echo "at '$1'"
    echo "docker build -f $top/context/Dockerfile -t own $top/context"
    echo "serve docker run --rm -p 127.0.0.1:$(port 7860):$(port 7860) own"
}

script() { # PAGE: all of it, as one script
    prelude
    case $1 in
    docs/mcp.md | docs/page.md) echo 'export SANDBOX_API_TOKEN=my-secret' ;;
    esac
    [ "$1" != docs/mcp.md ] || echo 'serve hfsb-server --work-dir .'
    for f in "$top"/blocks/*; do
        [ -f "$f" ] || continue
        n=${f##*/}
        block=$1:$((1${n%%.*} - 100000))
        why=$(lacks "$f")
        if [ -n "$why" ]; then
            echo "skipped '$block' '$why'"
            continue
        fi
        before "$f"
        sed -f "$top/substitutions" "$f" > "$f.new"
        case $n in
        *.c | *.text | *.indented) ;;
        *.output) mv "$f.new" "$f"; echo "$last $block $f" >> "$top/outputs" ;;
        *.sh) last=$block; echo "at '$block'"; cat "$f.new" ;;
        *.json | *.toml | *.yaml)
            how=parse
            ! grep -q '"hfsb\|"mcp"\|hfsb:\|name: hfsb\|environments' "$f" ||
                how=config
            mv "$f.new" "$f"
            cp "$f" "$top/tmp/$n"
            echo "config '$block' '$top/tmp/$n' $how" ;;
        *.js) js "$block" "$f.new" ;;
        *.dockerfile) dockerfile "$block" "$f.new" ;;
        esac
        rm -f "$f.new"
    done
    echo 'echo whole > "$DOCS_STAGE/at"'
}

unknown() { # PAGE: blocks that nobody would run
    for f in "$top"/blocks/*; do
        [ -f "$f" ] || continue
        n=${f##*/}
        block=$1:$((1${n%%.*} - 100000))
        case $n in
        *.c | *.text | *.output | *.sh | *.js | *.dockerfile) ;;
        *.json | *.toml | *.yaml) ;;
        *.indented)
            if is_list "$f"; then check_list "$block" "$f"
            elif is_command "$f"; then
                bad "$block: commands that nobody runs: not a block of sh"
            fi ;;
        *) bad "$block: no such kind of block here: ${n#*.}" ;;
        esac
    done
}

# An indented block just after commands is what they print: its lines are in
# the output in this order, where "..." is any text and a number any number.
compare() {
    while read -r block shown file; do
        "$python" -c 'import re, sys
def plain(text):
    return re.sub(r"\b[0-9a-f]*[0-9][0-9a-f]*\b", "N", text)
log = open(sys.argv[2], encoding="utf-8", errors="replace").read()
log = log.split("\n==== " + sys.argv[1] + "\n")[-1].split("\n==== ")[0]
log = plain(log)
for line in open(sys.argv[3], encoding="utf-8"):
    for part in filter(None, map(str.strip, plain(line).split("..."))):
        before, found, log = log.partition(part)
        if not found:
            sys.exit("  not printed, or not in this place: %s\n%s" %
                     (part, before[-2000:]))' "$block" "$top/log" "$file" \
            2> "$top/why" && continue
        bad "$shown is not what $block prints:"
        cat "$top/why"
    done < "$top/outputs"
}

run_page() { # PAGE
    extract "$1"
    unknown "$1"
    : > "$top/outputs"
    script "$1" > "$top/page.sh"
    : > "$top/at"
    (
        cd "$top/hfsb" || exit 1
        $session $shell -eu "$top/page.sh" < /dev/null
    ) > "$top/log" 2>&1 && [ "$(cat "$top/at")" = whole ] &&
        { compare; return; }
    bad "$(cat "$top/at") does not run:"
    sed -n "\\#^==== $(cat "$top/at")\$#,\$p" "$top/log" | tail -n 30
}

drawn() { # SVG: its lines; any number is N
    sed 's/<[^>]*>//g; s/[0-9]\{1,\}/N/g' "$1"
}

# The recorded terminal. The command that it leaves running is ended.
check_picture() {
    mkdir "$top/record"
    "$python" tests/python/record.py "$top/terminal.svg" "$top/record" \
        < docs/terminal.txt > "$top/log" 2>&1 || bad "record.py: $(cat "$top/log")"
    for p in $(ours); do
        [ "$(tr '\0' ' ' < "/proc/$p/cmdline")" != 'sleep 60 ' ] || kill "$p"
    done
    drawn docs/terminal.svg > "$top/drawn"
    drawn "$top/terminal.svg" | diff "$top/drawn" - > "$top/log" ||
        bad "docs/terminal.svg is not what its commands print:
$(cat "$top/log")"
}

# ---- here we go

copy_project
files
substitutions > "$top/substitutions"
stand_ins
path=$top/bin:$top/root/usr/local/bin:$PATH
make_fake_hub || exit 1
mkfifo "$top/keep"
build/fake_hub --mode embed --prompt --work-dir "$top/place" --run-jobs \
    --job-stages RUNNING,COMPLETED < "$top/keep" > "$top/hub" 2>&1 &
hub=$!
exec 9> "$top/keep"
tries=0
until [ -s "$top/hub" ] || [ $tries -ge 600 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
read -r HF_ENDPOINT HFSB_SPACE_URL < "$top/hub"
[ -n "$HF_ENDPOINT" ] || { cat "$top/hub"; exit 1; }
for v in $(env | sed 's/=.*//'); do
    case $v in
    HF_ENDPOINT | HFSB_SPACE_URL | HFSB_E2B) ;;
    HF_* | HFSB_* | SBX_* | E2B_* | OPENAI_* | XDG_* | *_proxy | *_PROXY | \
        MAKE* | DESTDIR | PREFIX | SANDBOX_API_TOKEN | CURL_HOME) unset "$v" ;;
    esac
done
export HF_ENDPOINT HFSB_SPACE_URL DOCS_STAGE="$top" HOME="$top/home"
export TMPDIR="$top/tmp" HFSB_PIPE_DIR="$top/run" HFSB_LINGER=2
PORT=$(port 7860)
export PORT PYTHONDONTWRITEBYTECODE=1
shell=sh session=
! have bash || shell=bash
! have setsid || session='setsid -w' # no terminal to ask in
! have timeout || session="$session timeout 600"
: > "$top/ran"
: > "$top/skipped"
if [ $# -gt 0 ]; then
    (cd "$top/hfsb" && PATH=$path && sudo make -s static install) \
        > /dev/null || exit 1
else
    set -- README.md
    for f in *.md docs/*.md examples/*/README.md tests/README.md; do
        case $f in README.md | CHANGELOG.md) ;; *) set -- "$@" "$f" ;; esac
    done
fi
[ -z "$(grep -l "'e2b'" "$@")" ] || install_e2b &
PATH=$path
export PATH
for page; do run_page "$page"; done
check_picture

exec 9>&-
kill "$hub" 2>/dev/null
wait "$hub" 2>/dev/null
hub=''
tries=0
until [ -z "$(ours)" ] || [ $tries -ge 100 ]; do
    sleep 0.1
    tries=$((tries + 1))
done
for p in $(ours); do
    bad "still running: $(tr '\0' ' ' < "/proc/$p/cmdline")"
done
cat "$top/skipped"
echo "$(wc -l < "$top/ran") blocks of the documentation run," \
    "$(wc -l < "$top/skipped") skipped, $failed failures"
[ $failed = 0 ]
