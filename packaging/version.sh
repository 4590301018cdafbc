#!/bin/sh
# Prints the version, which is that of the header next to this folder.
part() {
    sed -n "s/^#define HFSB_VERSION_$1 //p" "$(dirname "$0")/../hfsb.h" |
        head -n 1
}
echo "$(part MAJOR).$(part MINOR).$(part PATCH)"
