#!/bin/sh
# Writes the release archive build/dist/hfsb-VERSION.tar.gz and SHA256SUMS.
# `make dist`
# It has the files that git knows, as they are in this folder, or in an unpacked
# archive all files. The same files give the same bytes: sorted, owned by 0,
# and as old as the last commit, or SOURCE_DATE_EPOCH. Needs GNU tar.
set -eu
LC_ALL=C TZ=UTC0
export LC_ALL TZ
cd "$(dirname "$0")/.."

name=hfsb-$(sh packaging/version.sh)
out=build/dist
rm -rf "$out"
mkdir -p "$out"

if [ -e .git ] && command -v git > /dev/null; then
    git ls-files > "$out/list"
    epoch=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct)}
else
    find . -path ./build -prune -o -path ./debian -prune -o ! -type d -print |
        sed 's|^\./||' > "$out/list"
    epoch=${SOURCE_DATE_EPOCH:-$(stat -c %Y LICENSE)}
fi
sort "$out/list" > "$out/sorted"
tar --create --format=ustar --no-recursion --owner=0 --group=0 \
    --numeric-owner --mode=u=rwX,go=rX --mtime="@$epoch" \
    --transform="s|^|$name/|" --files-from="$out/sorted" \
    --file="$out/$name.tar"
gzip -9n "$out/$name.tar"
rm "$out/list" "$out/sorted"
(cd "$out" && sha256sum "$name.tar.gz" > SHA256SUMS)
echo "built $out/$name.tar.gz, $(wc -c < "$out/$name.tar.gz") bytes"
