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
# https comes from libcurl, where pkg-config finds it and it can be linked
# with (on Debian libcurl4-openssl-dev); make CURL= goes without.
# The headers at the top are committed; after a change in src/ write them
# anew: ./amalgamate.sh

CC           ?= cc
CFLAGS       ?= -O2
FUZZ_SECONDS ?= 60
CURL         ?= $$(pkg-config --cflags --libs 'libcurl >= 7.80' 2>/dev/null)
PROGRAMS     ?= examples/*.c

# An example is one file, x.c, or x.c and the folder x/. Those that can use
# libcurl (HFSB_WITH_CURL) are built with the flags in build/with-curl; those
# that make Spaces include build/hfsb_space.h. Two are compiled at a time.
all: build/hfsb_space.h build/with-curl
	@rm -f build/failed; n=0; \
	for f in $(PROGRAMS); do \
	    ( out=build/$$(basename "$$f" .c); \
	    dir=$${f%.c}; [ -d "$$dir" ] || dir=; \
	    tls=; ! grep -rq HFSB_WITH_CURL "$$f" $$dir || tls=build/with-curl; \
	    [ ! -f "$$out" ] || \
	    [ -n "$$(find "$$f" $$dir *.h build/*.h $$tls -newer "$$out")" ] || \
	    exit 0; \
	    curl=; [ -z "$$tls" ] || curl=$$(cat $$tls); \
	    if $(CC) $(CFLAGS) -I. -o "$$out" "$$f" $${dir:+$$dir/*.c} \
	        $$curl -pthread; then \
	        echo "built $$out$${curl:+ with libcurl}"; \
	    else echo "$$f" >> build/failed; fi ) & \
	    n=$$((n + 1)); [ $$((n % 2)) = 1 ] || wait; \
	done; wait; [ ! -f build/failed ]

# What it takes to use libcurl, tried out; nothing where that fails. Written
# only when it changes: then it is newer than what was built with it.
build/with-curl: always
	@mkdir -p build; flags="$(CURL)"; \
	printf '%s\n' '#include <curl/curl.h>' \
	    'int main(void) { return (int)curl_global_init(0L); }' > build/try.c; \
	if [ -n "$$flags" ] && \
	    $(CC) -o build/try build/try.c $$flags 2>/dev/null; then \
	    flags="-DHFSB_WITH_CURL $$flags"; else flags=; fi; \
	rm -f build/try build/try.c; \
	[ -f $@ ] && [ "$$(cat $@)" = "$$flags" ] || echo "$$flags" > $@

# The server's sources, for the Spaces that hfsb makes; quick when nothing
# has changed.
build/hfsb_space.h: hfsb.h hfsb_server.h Makefile amalgamate.sh \
                    examples/hfsb-server.c examples/hfsb-server/*.[ch] \
                    examples/space/Dockerfile
	@mkdir -p build && sh amalgamate.sh --space $@

serve:
	@$(MAKE) -s all PROGRAMS=examples/hfsb-server.c
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

.PHONY: all always serve static test check fuzz bench clean
