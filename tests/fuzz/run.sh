#!/bin/sh
# Runs the fuzz targets of a build directory for that many seconds each, and sums up: a line of counts a target, exit code 1
# when one of them found a crash. Inputs that reach new code are kept in BUILD/corpus, those that crash in BUILD/crashes.
# usage: run.sh BUILD SECONDS [NAME...]
build=$1 seconds=$2
shift 2
here=$(dirname "$0")
if [ $# -eq 0 ]; then
  for corpus in "$here"/corpus/*; do set -- "$@" "$(basename "$corpus")"; done
fi
failed=0
for target in "$@"; do
  mkdir -p "$build/corpus/$target" "$build/crashes"
  log=$build/$target.log
  # A broken promise, a sanitizer's report, 10 seconds on one input, or 1 GiB of memory: all are crashes.
  "$build/tests/fuzz/fuzz_$target" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 -max_len=65536 \
    -print_final_stats=1 -verbosity=1 -artifact_prefix="$build/crashes/$target-" \
    "$build/corpus/$target" "$here/corpus/$target" > "$log" 2>&1
  status=$?
  executions=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)
  crashes=0
  if [ $status -ne 0 ]; then
    crashes=1
    failed=$((failed + 1))
    grep -E -m 3 'ERROR: |runtime error|terminate|what\(\)|Test unit written' "$log"
  fi
  printf '%-15s %9d executions, %d seconds, %d crashes, %d seeds\n' "$target" "${executions:-0}" "$seconds" "$crashes" \
    "$(find "$here/corpus/$target" -type f | wc -l)"
  [ "${executions:-0}" -gt 0 ] || { failed=$((failed + 1)); tail -5 "$log"; }
done
echo "$# targets, $failed failed"
[ $failed -eq 0 ]
