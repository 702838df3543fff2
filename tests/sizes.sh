#!/bin/sh
# Lines by room: of src and include together, and of its tests; then the sums.
cd "$(dirname "$0")/.." || exit 2
lines() { find "$@" -type f 2>/dev/null | xargs cat 2>/dev/null | wc -l; }
code() { find "$1" -name '*.h' -o -name '*.cpp' 2>/dev/null | xargs cat 2>/dev/null | wc -l; }
printf '%-10s %8s %8s\n' room source tests
for path in src/*/; do
  room=$(basename "$path")
  printf '%-10s %8d %8d\n' "$room" "$(lines "src/$room" "include/normlab/$room")" "$(code "tests/$room")"
done
printf '%-10s %8d %8d\n' all "$(lines src include)" "$(code tests)"
