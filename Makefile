# The names people type; the work is done by tests/run and tests/checks/.
#   make          build/hfsb, build/hfsb-server, the programs of examples/
#   make serve    build and run the server, on 127.0.0.1:7860
#   make static   build/static/hfsb-server: small, needs no library (musl)
#   make test     build and run the tests: a compiler and make are enough
#   make check    the long set: compilers, sanitisers, growth, short fuzzing
#   make fuzz     every fuzz target for FUZZ_SECONDS (needs clang)
#   make bench    speed beside other libraries, as far as installed
#   make clean
# CC and CFLAGS are yours to set: make test CC=clang CFLAGS=-O0
# hfsb.h and hfsb_server.h are committed; after a change in src/ write them
# anew: ./amalgamate.sh

CC           ?= cc
CFLAGS       ?= -O2
FUZZ_SECONDS ?= 60

# An example is one file, x.c, or x.c and the folder x/. Those that can use
# libcurl (HFSB_WITH_CURL) are built with it where pkg-config finds it; those
# that make Spaces include build/hfsb_space.h. Two are compiled at a time.
all: build/hfsb_space.h
	@mkdir -p build; rm -f build/failed; n=0; \
	curl=$$(pkg-config --cflags --libs libcurl 2>/dev/null) && \
	    curl="-DHFSB_WITH_CURL $$curl"; \
	for f in examples/*.c; do \
	    ( out=build/$$(basename "$$f" .c); \
	    dir=$${f%.c}; [ -d "$$dir" ] || dir=; \
	    [ ! -f "$$out" ] || \
	    [ -n "$$(find "$$f" $$dir *.h build/*.h -newer "$$out")" ] || exit 0; \
	    grep -rq HFSB_WITH_CURL "$$f" $$dir || curl=; \
	    if $(CC) $(CFLAGS) -I. -o "$$out" "$$f" $${dir:+$$dir/*.c} \
	        $$curl -pthread; then \
	        echo "built $$out$${curl:+ with libcurl}"; \
	    else echo "$$f" >> build/failed; fi ) & \
	    n=$$((n + 1)); [ $$((n % 2)) = 1 ] || wait; \
	done; wait; [ ! -f build/failed ]

# The server's sources, for the Spaces that hfsb makes; quick when nothing
# has changed.
build/hfsb_space.h: hfsb.h hfsb_server.h Makefile amalgamate.sh \
                    examples/hfsb-server.c examples/space/Dockerfile
	@mkdir -p build && sh amalgamate.sh --space $@

serve: all
	@exec build/hfsb-server

# With musl where its compiler is installed; a program for a container.
STATIC_CC     ?= $$(command -v musl-gcc || echo $(CC))
STATIC_CFLAGS ?= -Os -ffunction-sections -fdata-sections \
                 -fno-asynchronous-unwind-tables -fno-unwind-tables \
                 -Wl,--gc-sections -Wl,-z,noseparate-code -s
static:
	@mkdir -p build/static
	@cc=$(STATIC_CC); \
	$$cc -static $(STATIC_CFLAGS) -I. -o build/static/hfsb-server \
	    examples/hfsb-server.c examples/hfsb-server/*.c -pthread && \
	echo "built build/static/hfsb-server with $$cc," \
	    "$$(wc -c < build/static/hfsb-server) bytes"

test: all
	@CC='$(CC)' CFLAGS='$(CFLAGS)' sh tests/run

check:
	@sh tests/checks/all.sh

fuzz:
	@sh tests/checks/fuzz.sh $(FUZZ_SECONDS)

bench:
	@CC='$(CC)' sh tests/checks/bench.sh

clean:
	rm -rf build

.PHONY: all serve static test check fuzz bench clean
