#!/bin/sh
# What `cmake --install` makes, moved elsewhere: the program finds its claims, and another project builds against the
# library without the options that it was built with. The argument is the build directory, where the program is built.
set -e
here=$(cd "$(dirname "$0")" && pwd)
build=$(cd "$1" && pwd)
work=$build/install-test
rm -rf "$work"
cmake --install "$build" --prefix "$work/first" >/dev/null
mkdir "$work/there" && mv "$work/first" "$work/there/moved"
prefix=$work/there/moved
cmake -S "$here/consumer" -B "$work/consumer" -DNORMLAB_INSTALLED=ON -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
cmake --build "$work/consumer"
"$work/consumer/consumer" | awk 'NR == 1 { first = $4 } { print } END { exit !(NR == 4 && $4 < first - 1) }' ||
  { echo "install_test: expected four losses, the last well below the first" >&2; exit 1; }
# From another folder, and a claim that only the installed folder has.
claims=$prefix/share/normlab/configs/claims
mv "$claims/warmup.yaml" "$claims/only-here.yaml"
(cd / && "$prefix/bin/normlab" reproduce --list) | grep -q only-here ||
  { echo "install_test: the claims in $claims were not found" >&2; exit 1; }
echo "install_test: passed"
