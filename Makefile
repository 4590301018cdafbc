# The names people type; the work is done by tests/run and tests/checks/.
#   make          build/hfsb, build/hfsb-server, the programs of examples/
#   make serve    build and run the server, on 127.0.0.1:7860
#   make static   build/static/hfsb-server: small, needs no library (musl)
#   make static-all   the same for x86_64 and aarch64, with a cross compiler
#   make install  programs, headers, manuals: PREFIX=/usr/local DESTDIR=
#   make uninstall
#   make dist     build/dist/hfsb-VERSION.tar.gz, SHA256SUMS
#   make sbom     the static server, and what it is made of as CycloneDX
#   make shared   build/libhfsb.so: the pure part, JSON in and out (docs/languages.md)
#   make wasm     build/hfsb.wasm: the same as WebAssembly (needs clang and lld)
#   make mcpb     a bundle for Claude Desktop, and an entry for the MCP registry
#   make test     build and run the tests: a compiler and make are enough
#   make check    the long set: compilers, sanitisers, growth, short fuzzing
#   make fuzz     every fuzz target for FUZZ_SECONDS (needs clang)
#   make bench    speed beside other libraries, as far as installed
#   make clean
#   make help     this list
# CC and CFLAGS are yours to set: make test CC=clang CFLAGS=-O0
# https comes from libcurl, where pkg-config finds it and it can be linked
# with (on Debian libcurl4-openssl-dev); else, and with make CURL=, it is
# loaded at run time (libcurl4); make CURL=no goes without. HARDEN has flags
# that make attacks harder; those that the compiler lacks are left out.
# The headers at the top are committed; after a change in src/ regenerate
# them: ./amalgamate.sh

CC           ?= cc
CFLAGS       ?= -O2
FUZZ_SECONDS ?= 60
HARDEN       ?= -fstack-protector-strong -D_FORTIFY_SOURCE=2
CURL         ?= $$(pkg-config --cflags --libs 'libcurl >= 7.80' 2>/dev/null)

PROGRAMS = build/hfsb build/hfsb-server build/agent build/edit_file \
           build/embed_server build/mcp_tool build/remote_edit \
           build/run_command

all: $(PROGRAMS)
	@if [ -f build/static/hfsb-server ]; then static='with a static server'; \
	else static='missing: the static server for --on ssh:HOST and jobs (make static)'; fi; \
	if grep -s HFSB_PAGE_GZIP build/hfsb_all.c > /dev/null; then page='page: gzip'; \
	else page='page: not compressed, no gzip'; fi; \
	echo "built with $(CC) $(CFLAGS); $$(cat build/https); $$page; $$static"

# The implementation is compiled once, into build/hfsb.o, and linked into
# every program. An example brings it along by itself (HFSB_IMPLEMENTATION),
# as a program of yours would; the guards of the headers turn that off here.
# Functions that a program does not use are left out of it, where the linker
# can: then only those that use libcurl need it.
DONE    = -DHFSB_IMPLEMENTATION_DONE -DHFSB_SERVER_IMPLEMENTATION_DONE \
          -DHFSB_HTTP_CURL_IMPLEMENTATION_DONE
SECTION = -ffunction-sections -fdata-sections
PROGRAM = $(CC) $(CFLAGS) $$(cat build/harden) $(DONE) -I. -o $@
LIBRARY = build/hfsb.o $$(cat build/link) -pthread

# The page of the server as gzip makes it, where there is gzip: a line for the
# file that is compiled. Without it the page is sent as it is.
PAGE = if [ -f src/api/page.html ] && command -v gzip >/dev/null && \
    sh amalgamate.sh --page build/hfsb_page.h; then \
    echo '\#define HFSB_PAGE_GZIP "build/hfsb_page.h"'; fi

build/hfsb.o: hfsb.h hfsb_server.h hfsb_http_curl.h build/with-curl
	@printf '%s\n' "$$($(PAGE))" '#include "hfsb_server.h"' '#ifdef HFSB_WITH_CURL' \
	    '#include "hfsb_http_curl.h"' '#endif' > build/hfsb_all.c
	@echo "compiling $@: about a minute"
	@$(CC) $(CFLAGS) $$(cat build/harden) $(SECTION) -DHFSB_IMPLEMENTATION -DHFSB_HUB -I. \
	    $$(sed 's/-l[^ ]*//g' build/with-curl) -c -o $@ build/hfsb_all.c
	@echo "built $@"

build/hfsb: examples/hfsb.c examples/hfsb/*.[ch] build/hfsb.o \
            examples/hfsb-server/suggest.[ch] build/hfsb_space.h
	@$(PROGRAM) examples/hfsb.c examples/hfsb/*.c $(LIBRARY) \
	    $$(cat build/with-curl)
	@echo "built $@"

build/hfsb-server: examples/hfsb-server.c examples/hfsb-server/*.[ch] \
                   build/hfsb.o
	@$(PROGRAM) examples/hfsb-server.c examples/hfsb-server/*.c $(LIBRARY)
	@echo "built $@"

build/agent: examples/agent.c examples/agent_remote.h build/hfsb.o \
             build/hfsb_space.h
	@$(PROGRAM) -DHFSB_WITH_SPACE examples/agent.c $(LIBRARY) \
	    $$(cat build/with-curl)
	@echo "built $@"

build/edit_file: examples/edit_file.c build/hfsb.o
	@$(PROGRAM) examples/edit_file.c $(LIBRARY)
	@echo "built $@"

build/embed_server: examples/embed_server.c build/hfsb.o
	@$(PROGRAM) examples/embed_server.c $(LIBRARY)
	@echo "built $@"

build/mcp_tool: examples/mcp_tool.c build/hfsb.o
	@$(PROGRAM) examples/mcp_tool.c $(LIBRARY)
	@echo "built $@"

build/remote_edit: examples/remote_edit.c build/hfsb.o
	@$(PROGRAM) examples/remote_edit.c $(LIBRARY) $$(cat build/with-curl)
	@echo "built $@"

build/run_command: examples/run_command.c build/hfsb.o
	@$(PROGRAM) examples/run_command.c $(LIBRARY)
	@echo "built $@"

# Probes. build/with-curl: what it takes to use libcurl, or nothing; linked, or
# loaded at run time. build/https: the same in words.
# build/link: how to leave unused functions out, or else libcurl for all, and
# how to resolve all symbols at the start: resolving one at its first call
# would leave registers, which may hold a token, on the stack.
# build/harden: as much of HARDEN as compiles without a warning.
# They are written only when they change, so that nothing is built again.
build/with-curl: always
	@mkdir -p build; flags="$(CURL)"; gc=-Wl,--gc-sections; \
	printf '%s\n' '#include <curl/curl.h>' \
	    'int main(void) { return (int)curl_global_init(0L); }' > build/try.c; \
	printf '%s\n' '#include <dlfcn.h>' 'int main(void) {' \
	    '    return !dlopen("libcurl.so.4", RTLD_LAZY) &&' \
	    '           !dlopen("libcurl-gnutls.so.4", RTLD_LAZY) &&' \
	    '           !dlopen("libcurl.4.dylib", RTLD_LAZY); }' > build/load.c; \
	https='without https: no libcurl'; \
	if [ "$$flags" = no ]; then flags=; \
	elif [ -n "$$flags" ] && \
	    $(CC) -o build/try build/try.c $$flags 2>/dev/null; then \
	    flags="-DHFSB_WITH_CURL $$flags"; https='https: libcurl, linked'; \
	else \
	    flags='-DHFSB_WITH_CURL -DHFSB_CURL_DLOPEN'; \
	    https='https: libcurl at run time'; \
	    if $(CC) -o build/try build/load.c 2>/dev/null; then :; \
	    elif $(CC) -o build/try build/load.c -ldl 2>/dev/null; then \
	        flags="$$flags -ldl"; \
	    else flags=; https='without https: no libcurl, no dlopen()'; fi; \
	    if [ -z "$$flags" ]; then :; \
	    elif build/try 2>/dev/null; then https="$$https (installed)"; \
	    else https="$$https (missing: install libcurl4 on Debian, libcurl on Alpine)"; fi; \
	fi; \
	printf '%s\n' '#include <stdio.h>' \
	    'int main(void) { return puts("") < 0; }' > build/try.c; \
	try() { $(CC) $(CFLAGS) -Werror -o build/try build/try.c "$$@" \
	    2>/dev/null; }; \
	try $(SECTION) $$gc || gc=$$flags; \
	if try -Wl,-z,relro,-z,now; then gc="$$gc -Wl,-z,relro,-z,now"; fi; \
	hard="$(HARDEN)"; \
	try $$hard || { hard=; for flag in $(HARDEN); do \
	    if try $$flag; then hard="$$hard $$flag"; fi; done; }; \
	rm -f build/try build/try.c build/load.c; \
	put() { [ -f "$$2" ] && [ "$$(cat "$$2")" = "$$1" ] || \
	    echo "$$1" > "$$2"; }; \
	put "$$https" build/https; put "$$gc" build/link; put "$$hard" build/harden; put "$$flags" $@

# The server's sources, for the Spaces that hfsb makes; quick when nothing
# has changed.
build/hfsb_space.h: hfsb.h hfsb_server.h Makefile amalgamate.sh \
                    examples/hfsb-server.c examples/hfsb-server/*.[ch] \
                    examples/space/Dockerfile
	@mkdir -p build && sh amalgamate.sh --space $@

serve: build/hfsb-server
	@exec build/hfsb-server

# With musl where its compiler is installed; a program for a container. One
# file includes all the others, with every function static: the compiler then
# drops what the server does not call, and the texts of it, which the linker
# cannot. musl-gcc links to a fixed address, so its code need not move.
# STATIC_HARDEN='-fstack-protector-strong -Wl,-z,relro,-z,now' costs some 6 %.
# The assertions stay: -DNDEBUG would save 2 kB.
STATIC_OUT    ?= build/static/hfsb-server
STATIC_CC     ?= $$(command -v musl-gcc && echo -fno-pie || echo $(CC))
STATIC_CFLAGS ?= -ffunction-sections -fdata-sections \
                 -fno-asynchronous-unwind-tables -fno-unwind-tables \
                 -fno-ident -Wl,--gc-sections -Wl,-z,noseparate-code \
                 -Wl,-z,norelro -Wl,--build-id=none -s
static:
	@mkdir -p build/static
	@{ $(PAGE); printf '#include "%s"\n' examples/hfsb-server.c \
	    examples/hfsb-server/*.c; } > $(STATIC_OUT).c
	@echo "compiling $(STATIC_OUT): about a minute"
	@cc="$(STATIC_CC)"; size=-Oz; \
	$$cc -Oz -E -x c /dev/null > /dev/null 2>&1 || size=-Os; \
	$$cc -static $$size $(STATIC_CFLAGS) $(STATIC_HARDEN) -DHFSB_STATIC -I. \
	    -o $(STATIC_OUT) $(STATIC_OUT).c -pthread && \
	echo "built $(STATIC_OUT) with" $$cc $$size, \
	    "$$(wc -c < $(STATIC_OUT)) bytes"

static-all:
	@CC='$(CC)' sh packaging/static.sh

# The folders below PREFIX have names of their own, see packaging/install.sh.
export PREFIX DESTDIR BINDIR INCLUDEDIR DATADIR MANDIR PKGCONFIGDIR CMAKEDIR \
       ZSHDIR
install: build/hfsb build/hfsb-server
	@sh packaging/install.sh

uninstall:
	@sh packaging/install.sh --uninstall

dist:
	@sh packaging/dist.sh

# For other languages: the calls of examples/bindings on the pure part;
# SHARED= adds everything of hfsb.h for those who call more than these.
SHARED ?= -DHFSB_PURE
shared:
	@mkdir -p build
	@$(CC) $(CFLAGS) -fPIC -shared $(SHARED) -I. -o build/libhfsb.so \
	    examples/bindings/hfsb_json.c -pthread
	@echo "built build/libhfsb.so"

# WebAssembly has no libc: examples/wasm/libc has as much of one as is needed.
WASM_CC ?= clang --target=wasm32 -fuse-ld=lld
wasm:
	@mkdir -p build
	@$(WASM_CC) -Oz -ffreestanding -nostdlib -mbulk-memory -DHFSB_PURE \
	    -DHFSB_STATIC -isystem examples/wasm/libc -I. \
	    -Wl,--no-entry -Wl,-z,stack-size=1048576 -Wl,--strip-all \
	    -o build/hfsb.wasm examples/bindings/hfsb_json.c examples/wasm/libc/libc.c
	@cp examples/wasm/hfsb.mjs build/hfsb.mjs
	@echo "built build/hfsb.wasm and its wrapper build/hfsb.mjs," \
	    "$$(wc -c < build/hfsb.wasm) bytes"

sbom: static
	@sh packaging/sbom.sh build/static/hfsb-server \
	    > build/static/hfsb-server.cdx.json && \
	echo "built build/static/hfsb-server.cdx.json"

mcpb:
	@CC='$(CC)' sh packaging/mcpb.sh

test:
	@CC='$(CC)' CFLAGS='$(CFLAGS)' sh tests/run

check:
	@sh tests/checks/all.sh

fuzz:
	@sh tests/checks/fuzz.sh $(FUZZ_SECONDS)

bench:
	@CC='$(CC)' sh tests/checks/bench.sh

clean:
	rm -rf build

help:
	@sed -n 's/^#   make/make/p' Makefile

.PHONY: all always serve static static-all shared wasm install uninstall dist sbom mcpb \
        test check fuzz bench clean help
