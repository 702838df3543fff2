#!/bin/sh
# A program built for another processor, or another level of this one: it agrees with every reference file, in float and
# in double, and trains the same bytes at 1 and 2 threads. Arguments: the build directory, and what runs the program,
# where this machine can't by itself (qemu-aarch64-static -L ...).
set -e
here=$(dirname "$0")
build=$1
shift
program="$build/normlab"
"$@" "$program" verify "$here"/reference/*.safetensors
"$@" "$program" verify --double "$here"/reference/*.safetensors
for threads in 1 2; do
  "$@" "$program" train "$here/../configs/tiny.yaml" data.size=20000 model.context_length=32 train.batch_size=8 \
    train.steps=8 eval.windows=8 log.layers_every=4 log.sample_tokens=4 train.threads=$threads \
    "run.dir=$build/threads-$threads" --force >"$build/threads-$threads.log" 2>&1 ||
    { cat "$build/threads-$threads.log" >&2; exit 1; }
done
for file in metrics.jsonl checkpoints/step-000008.safetensors; do
  cmp "$build/threads-1/$file" "$build/threads-2/$file"
done
echo "machine_test: $build: the references agree, and 1 and 2 threads write the same bytes"
