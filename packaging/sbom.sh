#!/bin/sh
# Says what the static server is made of: a CycloneDX document of one line,
# with the checksum of the binary. `make sbom`
#   packaging/sbom.sh BINARY > BINARY.cdx.json
# hfsb has no code of others; a static binary also has the libc it was linked
# with. The same binary gives the same bytes: there is no date in it.
set -eu
binary=$1
cd "$(dirname "$0")/.."

part() { sed -n "s/^#define HFSB_VERSION_$1 //p" hfsb.h | head -n 1; }
version=$(part MAJOR).$(part MINOR).$(part PATCH)

checksum() { # FILE
    if command -v sha256sum > /dev/null; then sha256sum "$1"
    else shasum -a 256 "$1"; fi | cut -d ' ' -f 1
}

component() { # NAME VERSION LICENSE
    printf '{"type":"library","name":"%s",%s"licenses":[{"license":' \
        "$1" "${2:+\"version\":\"$2\",}"
    printf '{"id":"%s"}}]}' "$3"
}

libc() { # of musl, the loader prints the version
    if command -v musl-gcc > /dev/null || [ -e "/lib/ld-musl-$(uname -m).so.1" ]
    then
        component musl "$("/lib/ld-musl-$(uname -m).so.1" 2>&1 |
            sed -n 's/^Version //p')" MIT
    else
        component glibc "$(getconf GNU_LIBC_VERSION 2> /dev/null |
            sed 's/^glibc //')" LGPL-2.1-or-later
    fi
}

printf '{"bomFormat":"CycloneDX","specVersion":"1.5","version":1,'
printf '"metadata":{"component":{"type":"application","name":"hfsb-server",'
printf '"version":"%s","licenses":[{"license":{"id":"MIT"}}],' "$version"
printf '"hashes":[{"alg":"SHA-256","content":"%s"}]}},' "$(checksum "$binary")"
printf '"components":[%s]}\n' "$(libc)"
