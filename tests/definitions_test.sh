#!/bin/sh
# The check for names that are defined twice: it passes on what may repeat, and finds each kind that may not.
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d) || exit 4
trap 'rm -rf "$tree"' EXIT
mkdir -p "$tree/include/normlab/base" "$tree/src/base"
failed=0

# two NAMESPACE LINE: a header and a source file that both have the line, in the namespace.
two() {
  for file in include/normlab/base/one.h src/base/two.cpp; do
    printf '%s\n' '#include <vector>' "$1" "$2" > "$tree/$file"
  done
}
passes() {
  two "$@"
  "$here/definitions.sh" "$tree" || { echo "definitions_test: $2 should pass"; failed=1; }
}
fails() {
  two "$@"
  if "$here/definitions.sh" "$tree" >/dev/null; then
    echo "definitions_test: $2 should fail"
    failed=1
  fi
}

fails 'namespace normlab {' 'class Scratch {'
fails 'namespace normlab::inline NORMLAB_REAL::kernels {' 'struct Scratch : Base {'
fails 'namespace normlab {' 'enum class Form { below, above };'
fails 'namespace normlab {' 'inline constexpr int kMost = 8;'
fails 'namespace normlab {' 'inline Index whole(Index count) { return count; }'
fails 'namespace normlab {' 'Index whole(Index count) {'
passes 'namespace normlab {' 'class Scratch;'
passes 'namespace normlab {' 'struct Grammar::Reader;'
passes 'namespace normlab {
namespace {' 'class Scratch {'
two 'namespace normlab {' 'class Scratch {'
sed 's/normlab {/normlab::config {/' "$tree/src/base/two.cpp" > "$tree/src/base/three.cpp"
rm "$tree/src/base/two.cpp"
"$here/definitions.sh" "$tree" || { echo "definitions_test: another namespace should pass"; failed=1; }
exit $failed
