#!/bin/sh
# Fails when two files define one name in one namespace: the linker would keep one of the two definitions for both, in
# silence. Definitions begin in the first column; those in unnamed namespaces may repeat. An argument is another source
# tree to look at.
cd "${1:-$(dirname "$0")/..}" || exit 2
# shellcheck disable=SC2016  # the dollars are awk's
find include/normlab src -name '*.h' -o -name '*.cpp' | LC_ALL=C sort | xargs awk '
FNR == 1 { space = ""; unnamed = 0 }
/^namespace +\{/ { unnamed = 1; next }
/^}  \/\/ namespace$/ { unnamed = 0; next }
/^namespace / { space = $0; next }
unnamed || space == "" { next }
{
  name = ""
  if (match($0, /^(class|struct|enum class|enum) +[A-Za-z_:]+/) && $0 !~ /^[^{]*;/) {
    name = substr($0, RSTART, RLENGTH)
    sub(/^(class|struct|enum class|enum) +/, "type ", name)
  } else if (match($0, /^inline constexpr [^=({]*[ =({]/)) {
    name = $0
    sub(/ *[=({].*/, "", name)
    sub(/.* /, "constant ", name)
  } else if ($0 ~ /^[A-Za-z_:<>\[].*\).*\{/ && $0 !~ /^(template|extern|using|static_assert)/) {
    name = $0  # overloads differ in their parameters
    sub(/ *\{.*/, "", name)
    sub(/^(\[\[[^]]*\]\] *)?(static |inline |constexpr )*/, "function ", name)
  }
  if (name == "") next
  key = space SUBSEP name
  if (key in place && place[key] != FILENAME) {
    printf "%s:%d: %s is also defined in %s, in the same namespace\n", FILENAME, FNR, name, place[key]
    failures++
  }
  place[key] = FILENAME
}
END { exit failures > 0 }'
