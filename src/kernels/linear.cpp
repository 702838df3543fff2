// The linear layer: three matrix products and a sum over rows.
#include <algorithm>

#include "normlab/base/parallel.h"
#include "normlab/kernels/gemm.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {
namespace {

// dbias (+)= sum of dz over its rows, in chunks of constant length, each summed before it is added.
void sum_rows(Index rows, Index columns, const Real* dz, Grad dbias) {
  constexpr Index kBlock = 64, kChunk = 64;
  parallel_for((columns + kBlock - 1) / kBlock, rows * kBlock, [&](Index block) {
    const Index first = block * kBlock, count = std::min(kBlock, columns - first);
    Real total[kBlock] = {};
    for (Index row = 0; row < rows; row += kChunk) {
      Real sum[kBlock] = {};
      for (Index i = row; i < std::min(rows, row + kChunk); ++i) {
        const Real* x = dz + i * columns + first;
        if (count == kBlock)
          for (Index j = 0; j < kBlock; ++j) sum[j] += x[j];
        else
          for (Index j = 0; j < count; ++j) sum[j] += x[j];
      }
      for (Index j = 0; j < kBlock; ++j) total[j] += sum[j];
    }
    Real* out = dbias.values.data() + first;
    for (Index j = 0; j < count; ++j) out[j] = dbias.add ? out[j] + total[j] : total[j];
  });
}

}  // namespace

void linear_forward(LinearShape s, Activation act, In x, In weight, In bias, In residual, Out slope, Out y) {
  gemm({.rows = s.rows,
        .columns = s.out,
        .depth = s.in,
        .a = {x.data(), s.in, 1},
        .b = {weight.data(), 1, s.in},
        .c = y.data(),
        .bias = bias.empty() ? nullptr : bias.data(),
        .act = act,
        .slope = slope.empty() ? nullptr : slope.data(),
        .residual = residual.empty() ? nullptr : residual.data()});
}

void linear_backward_input(LinearShape s, In dz, In weight, Grad dx) {
  if (!dx) return;
  gemm({.rows = s.rows,
        .columns = s.in,
        .depth = s.out,
        .a = {dz.data(), s.out, 1},
        .b = {weight.data(), s.in, 1},
        .c = dx.values.data(),
        .add = dx.add});
}

void linear_backward_weight(LinearShape s, In dz, In x, Grad dweight, Grad dbias) {
  if (dweight)
    gemm({.rows = s.out,
          .columns = s.in,
          .depth = s.rows,
          .a = {dz.data(), 1, s.out},
          .b = {x.data(), s.in, 1},
          .c = dweight.values.data(),
          .add = dweight.add});
  if (dbias) sum_rows(s.rows, s.out, dz.data(), dbias);
}

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
