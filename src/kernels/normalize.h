// What the two ways of normalising share: absent gains and biases, the backward's inputs, sums over partial sums.
#pragma once

#include <algorithm>

#include "normlab/base/parallel.h"
#include "normlab/kernels/simd.h"
#include "scratch.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {

// gain and bias of C channels, or the ones and zeros that absent ones amount to.
class Affine {
 public:
  Affine(Index channels, In gain, In bias) : constants_(2 * channels) {
    Real *ones = constants_.data(), *nothing = constants_.data() + channels;
    if (gain.empty()) std::fill(ones, ones + channels, Real(1));
    std::fill(nothing, nothing + channels, Real(0));
    this->gain = gain.empty() ? ones : gain.data();
    this->bias = bias.empty() ? nothing : bias.data();
    zeros = nothing;
  }
  const Real *gain, *bias, *zeros;  // [C] each

 private:
  Scratch constants_;
};

// What a backward reads and writes.
struct Backward {
  NormRule rule;
  Mask mask;
  const Real *x, *dy;
  In mean, rstd;
  Grad dx, dgain, dbias;
};

// total[i] = the sum over `parts` rows of `stride` numbers of the number at i < width, in double.
inline void sum_parts(const Real* partial, Index parts, Index stride, Index width, double* total) {
  std::fill(total, total + width, 0.0);
  for (Index part = 0; part < parts; ++part)
    for (Index i = 0; i < width; ++i) total[i] += static_cast<double>(partial[part * stride + i]);
}

// grad (+)= the sum over `parts` rows of `stride` numbers, column by column, from top to bottom.
inline void add_up(const Real* partial, Index parts, Index stride, Grad grad) {
  if (!grad) return;
  constexpr Index kColumns = 64;
  const Index width = static_cast<Index>(grad.values.size());
  parallel_for((width + kColumns - 1) / kColumns, parts * kColumns, [&](Index block) {
    const Index first = block * kColumns, count = std::min(kColumns, width - first);
    double total[kColumns];
    sum_parts(partial + first, parts, stride, count, total);
    for (Index i = 0; i < count; ++i) {
      Real& value = grad.values[static_cast<std::size_t>(first + i)];
      value = static_cast<Real>(grad.add ? static_cast<double>(value) + total[i] : total[i]);
    }
  });
}

// So many rows are taken together: what is read for a channel serves all of them, and their sums wait for each other
// less. A row's own sums do not depend on whether it is in such a group or left over.
constexpr int kTogether = 4;
template <int kRows>
using RowCount = std::integral_constant<int, kRows>;

// f(RowCount, row) over rows [0, rows).
template <int kCount = kTogether, class F>
void rows_together(Index rows, const F& f) {
  Index row = 0;
  for (; row + kCount <= rows; row += kCount) f(RowCount<kCount>{}, row);
  for (; row < rows; ++row) f(RowCount<1>{}, row);
}

// normalize_rows.cpp: inner == 1, the reduced elements of a row lie side by side.
void forward_rows(NormView v, NormRule rule, Mask mask, In x, In gain, In bias, Out y, Out mean, Out rstd);
void backward_rows(NormView v, const Backward& b, In gain);
// normalize_columns.cpp: neighbouring groups lie side by side.
void forward_columns(NormView v, NormRule rule, Mask mask, In x, In gain, In bias, Out y, Out mean, Out rstd);
void backward_columns(NormView v, const Backward& b, In gain);

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
