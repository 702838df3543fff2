#!/bin/sh
# The check of the layers: it passes on a tree that keeps them, and finds each way to break them.
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d) || exit 4
trap 'rm -rf "$tree"' EXIT
failed=0

# place FILE LINE...: a tree with one more file, of these lines, beside two that are right.
place() {
  rm -rf "$tree/src" "$tree/include"
  mkdir -p "$tree/include/normlab/base" "$tree/src/ops" "$tree/$(dirname "$1")"
  echo '#include <omp.h>' > "$tree/include/normlab/base/parallel.h"
  printf '%s\n' '#include <vector>' '#include "normlab/ops/ops.h"' '#include "normlab/kernels/kernels.h"' \
    '#include "beside.h"' > "$tree/src/ops/linear.cpp"
  file=$1
  shift
  printf '%s\n' "$@" > "$tree/$file"
}
passes() {
  place "$@"
  "$here/layers.sh" "$tree" || { echo "layers_test: $1 should pass"; failed=1; }
}
# fails PATTERN FILE LINE...: the message has the pattern.
fails() {
  pattern=$1
  shift
  place "$@"
  message=$("$here/layers.sh" "$tree") && { echo "layers_test: $1 should fail"; failed=1; }
  case $message in
    *"$pattern"*) ;;
    *) echo "layers_test: expected '$pattern', found '$message'"; failed=1 ;;
  esac
}

passes src/train/trainer.cpp '#include "normlab/data/text.h"' '#include "normlab/train/trainer.h"'
passes src/cli/train.cpp '#include "normlab/lab/check.h"'
fails 'src/kernels/gemm.cpp:2: ' src/kernels/gemm.cpp '#include <span>' '#include "normlab/tensor/tensor.h"'
fails 'kernels may include base, not tensor' src/kernels/gemm.cpp '  # include <normlab/tensor/tensor.h>'
fails 'base may include no other layer, not config' include/normlab/base/x.h '#include "normlab/config/fields.h"'
fails 'not cli' src/lab/sweep.cpp '#include "normlab/cli/progress.h"'
fails 'not lab' src/train/trainer.cpp '#include "normlab/lab/check.h"'
fails 'not engine' src/nn/gpt.cpp '#include "normlab/engine/engine.h"'
fails 'no layer is called helpers' src/helpers/x.cpp '#include <vector>'
fails 'vector code stays in kernels' src/ops/norm.cpp '#include "normlab/kernels/simd.h"'
fails 'another room' src/ops/norm.cpp '#include "../kernels/gemm.h"'
fails 'parallel.h' src/kernels/gemm.cpp '#include <omp.h>'
fails 'extensions' src/kernels/gemm.cpp '#include <immintrin.h>'
exit $failed
