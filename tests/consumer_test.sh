#!/bin/sh
# The library in another CMake project: it configures, builds without a warning and runs there. The argument is the
# directory to build in; by CXX=clang++, with what CMAKE_FLAGS says.
set -e
here=$(dirname "$0")
# shellcheck disable=SC2086
cmake -S "$here/consumer" -B "$1" -DCMAKE_BUILD_TYPE=Debug -DNORMLAB_WERROR=ON $CMAKE_FLAGS
cmake --build "$1" -j "$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)"
"$1/consumer" | awk 'NR == 1 { first = $4 } { print } END { exit !(NR == 4 && $4 < first - 1) }' ||
  { echo "consumer_test: expected four losses, the last well below the first" >&2; exit 1; }
[ ! -e "$1/normlab/normlab" ] || { echo "consumer_test: the program was built, too" >&2; exit 1; }
