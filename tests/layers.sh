#!/bin/sh
# Fails when an include goes against the layers: a layer may include itself and those that its row names. An argument
# is another source tree to look at.
cd "${1:-$(dirname "$0")/..}" || exit 2
# shellcheck disable=SC2016  # the dollars are awk's
find include/normlab src -name '*.h' -o -name '*.cpp' | LC_ALL=C sort | xargs awk '
BEGIN {
  may["base"]    = ""
  may["formats"] = "base"
  may["config"]  = "base formats"
  may["kernels"] = "base"
  may["tensor"]  = "base kernels"
  may["ops"]     = "base kernels tensor"
  may["nn"]      = "base formats config kernels tensor ops"
  may["optim"]   = "base config kernels tensor"
  may["data"]    = "base formats config"
  may["train"]   = "base formats config kernels tensor ops nn optim data"
  may["lab"]     = may["train"] " train"
  may["cli"]     = may["lab"] " lab"
}
function bad(why) {
  printf "%s:%d: %s: %s\n", FILENAME, FNR, $0, why
  failures++
}
FNR == 1 {
  split(FILENAME, part, "/")
  layer = part[1] == "src" ? part[2] : part[3]
  if (!(layer in may)) bad("no layer is called " layer "; the table is in tests/layers.sh")
}
/^[ \t]*#[ \t]*include/ {
  target = $0
  sub(/^[^"<]*["<]/, "", target)
  sub(/[">].*/, "", target)
  if (target ~ /^normlab\//) {
    split(target, part, "/")
    if (part[2] != layer && index(" " may[layer] " ", " " part[2] " ") == 0)
      bad(layer " may include " (may[layer] == "" ? "no other layer" : may[layer]) ", not " part[2])
    if (target == "normlab/kernels/simd.h" && layer != "kernels") bad("vector code stays in kernels")
  } else if ($0 ~ /"/ && target ~ /\//) {
    bad("a header of another room is included as \"normlab/LAYER/NAME.h\"")
  } else if (target == "omp.h" && FILENAME != "include/normlab/base/parallel.h") {
    bad("threads are used through normlab/base/parallel.h")
  } else if (target ~ /intrin\.h$/) {
    bad("vector code is written with the extensions of normlab/kernels/simd.h")
  }
}
END { exit failures > 0 }'
