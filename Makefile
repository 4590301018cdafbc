# The names people type; the work is done by tests/run and tests/checks/.
#   make          build/hfsb, build/hfsb-server, the programs of examples/
#   make serve    build and run the server, on 127.0.0.1:7860
#   make static   build/static/hfsb-server: small, needs no library (musl)
#   make sbom     the same, and what it is made of as CycloneDX
#   make mcpb     a bundle for Claude Desktop, and an entry for the MCP registry
#   make test     build and run the tests: a compiler and make are enough
#   make check    the long set: compilers, sanitisers, growth, short fuzzing
#   make fuzz     every fuzz target for FUZZ_SECONDS (needs clang)
#   make bench    speed beside other libraries, as far as installed
#   make clean
# CC and CFLAGS are yours to set: make test CC=clang CFLAGS=-O0
# https comes from libcurl, where pkg-config finds it and it can be linked
# with (on Debian libcurl4-openssl-dev); make CURL= goes without. HARDEN has
# flags that make attacks harder; those that the compiler lacks are left out.
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

build/hfsb.o: hfsb.h hfsb_server.h hfsb_http_curl.h build/with-curl
	@printf '%s\n' '#include "hfsb_server.h"' '#ifdef HFSB_WITH_CURL' \
	    '#include "hfsb_http_curl.h"' '#endif' > build/hfsb_all.c
	@$(CC) $(CFLAGS) $$(cat build/harden) $(SECTION) -DHFSB_IMPLEMENTATION -DHFSB_HUB -I. \
	    $$(sed 's/-l[^ ]*//g' build/with-curl) -c -o $@ build/hfsb_all.c
	@with=$$(cat build/with-curl); echo "built $@$${with:+ with libcurl}"

build/hfsb: examples/hfsb.c examples/hfsb/*.[ch] build/hfsb.o \
            build/hfsb_space.h
	@$(PROGRAM) examples/hfsb.c examples/hfsb/*.c $(LIBRARY) \
	    $$(cat build/with-curl)
	@echo "built $@"

build/hfsb-server: examples/hfsb-server.c examples/hfsb-server/*.[ch] \
                   build/hfsb.o
	@$(PROGRAM) examples/hfsb-server.c examples/hfsb-server/*.c $(LIBRARY)
	@echo "built $@"

build/agent: examples/agent.c build/hfsb.o
	@$(PROGRAM) examples/agent.c $(LIBRARY) $$(cat build/with-curl)
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

# Three probes. build/with-curl: what it takes to use libcurl, or nothing.
# build/link: how to leave unused functions out, or else libcurl for all, and
# how to resolve all symbols at the start: resolving one at its first call
# would leave registers, which may hold a token, on the stack.
# build/harden: as much of HARDEN as compiles without a warning.
# They are written only when they change, so that nothing is built again.
build/with-curl: always
	@mkdir -p build; flags="$(CURL)"; gc=-Wl,--gc-sections; \
	printf '%s\n' '#include <curl/curl.h>' \
	    'int main(void) { return (int)curl_global_init(0L); }' > build/try.c; \
	if [ -n "$$flags" ] && \
	    $(CC) -o build/try build/try.c $$flags 2>/dev/null; then \
	    flags="-DHFSB_WITH_CURL $$flags"; else flags=; fi; \
	printf '%s\n' '#include <stdio.h>' \
	    'int main(void) { return puts("") < 0; }' > build/try.c; \
	try() { $(CC) $(CFLAGS) -Werror -o build/try build/try.c "$$@" \
	    2>/dev/null; }; \
	try $(SECTION) $$gc || gc=$$flags; \
	if try -Wl,-z,relro,-z,now; then gc="$$gc -Wl,-z,relro,-z,now"; fi; \
	hard="$(HARDEN)"; \
	try $$hard || { hard=; for flag in $(HARDEN); do \
	    if try $$flag; then hard="$$hard $$flag"; fi; done; }; \
	rm -f build/try build/try.c; \
	put() { [ -f "$$2" ] && [ "$$(cat "$$2")" = "$$1" ] || \
	    echo "$$1" > "$$2"; }; \
	put "$$gc" build/link; put "$$hard" build/harden; put "$$flags" $@

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
STATIC_CC     ?= $$(command -v musl-gcc && echo -fno-pie || echo $(CC))
STATIC_CFLAGS ?= -ffunction-sections -fdata-sections \
                 -fno-asynchronous-unwind-tables -fno-unwind-tables \
                 -Wl,--gc-sections -Wl,-z,noseparate-code -s
static:
	@mkdir -p build/static
	@printf '#include "%s"\n' examples/hfsb-server.c \
	    examples/hfsb-server/*.c > build/static/all.c
	@cc=$(STATIC_CC); size=-Oz; \
	$$cc -Oz -E -x c /dev/null > /dev/null 2>&1 || size=-Os; \
	$$cc -static $$size $(STATIC_CFLAGS) $(STATIC_HARDEN) -DHFSB_STATIC -I. \
	    -o build/static/hfsb-server build/static/all.c -pthread && \
	echo "built build/static/hfsb-server with" $$cc $$size, \
	    "$$(wc -c < build/static/hfsb-server) bytes"

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

.PHONY: all always serve static sbom mcpb test check fuzz bench clean
