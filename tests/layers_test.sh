#!/bin/sh
# The check of the layers: it passes on a tree that keeps them, and finds each way to break them.
here=$(cd "$(dirname "$0")" && pwd)
tree=$(mktemp -d) || exit 4
trap 'rm -rf "$tree"' EXIT
failed=0

# place FILE LINE...: a tree with one more file, of these lines, next to two that are right.
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
passes src/cli/train.cpp '#include "normlab/lab/check/check.h"'
fails 'src/kernels/gemm.cpp:2: ' src/kernels/gemm.cpp '#include <span>' '#include "normlab/tensor/tensor.h"'
fails 'kernels may include base, not tensor' src/kernels/gemm.cpp '  # include <normlab/tensor/tensor.h>'
fails 'base may include no other room, not config' include/normlab/base/x.h '#include "normlab/config/fields.h"'
fails 'not cli' src/claims/sweep.cpp '#include "normlab/cli/progress.h"'
fails 'not lab/check' src/train/trainer.cpp '#include "normlab/lab/check/check.h"'
fails 'not data' src/data/tokenizer/tokenizer.cpp '#include "normlab/data/dataset.h"'
fails 'not engine' src/nn/gpt.cpp '#include "normlab/engine/engine.h"'
fails 'no room is called helpers' src/helpers/x.cpp '#include <vector>'
fails 'vector code stays in kernels' src/ops/norm.cpp '#include "normlab/kernels/simd.h"'
fails 'another room' src/ops/norm.cpp '#include "../kernels/gemm.h"'
fails 'parallel.h' src/kernels/gemm.cpp '#include <omp.h>'
fails 'extensions' src/kernels/gemm.cpp '#include <immintrin.h>'

# circle PATTERN FILE TARGET [FILE TARGET]...: each file includes one target; the message names the circle.
circle() {
  pattern=$1
  shift
  place "$1" "#include \"$2\""
  shift 2
  while [ $# -gt 0 ]; do
    mkdir -p "$tree/$(dirname "$1")"
    echo "#include \"$2\"" > "$tree/$1"
    shift 2
  done
  message=$("$here/layers.sh" "$tree") && { echo "layers_test: a circle should fail: $pattern"; failed=1; }
  case $message in
    *"$pattern"*circle*) ;;
    *) echo "layers_test: expected the circle '$pattern', found '$message'"; failed=1 ;;
  esac
  case $message in
    *ops/linear*) echo "layers_test: a file beside the circle is blamed: '$message'"; failed=1 ;;
  esac
}
circle 'includes nn/gpt' include/normlab/nn/gpt.h normlab/nn/norm.h src/nn/norm.cpp normlab/nn/gpt.h
circle 'includes nn/pass' src/nn/gpt.cpp pass.h src/nn/pass.h normlab/nn/norm.h src/nn/norm.cpp normlab/nn/gpt.h
exit $failed
