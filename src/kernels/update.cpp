// The optimizers' inner loops, and the sum of squares behind clipping.
#include <cmath>

#include "normlab/base/parallel.h"
#include "normlab/kernels/kernels.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {
namespace {

// Of value(i) for i in [0, count), each asked for once.
template <class Value>
double sum_of_squares(Index count, const Value& value) {
  return ordered_sum(count, [&](Index begin, Index end) {
    // Eight sums side by side, so that the additions need not wait for one another.
    double sums[8] = {};
    Index i = begin;
    for (; i + 8 <= end; i += 8)
      for (Index lane = 0; lane < 8; ++lane) {
        const double x = value(static_cast<std::size_t>(i + lane));
        sums[lane] += x * x;
      }
    double total = 0;
    for (; i < end; ++i) {
      const double x = value(static_cast<std::size_t>(i));
      total += x * x;
    }
    for (const double sum : sums) total += sum;
    return total;
  });
}

}  // namespace

double squared_norm(In x) {
  return sum_of_squares(static_cast<Index>(x.size()), [x](std::size_t i) { return x[i]; });
}

double squared_growth(In now, Out before) {
  return sum_of_squares(static_cast<Index>(now.size()), [now, before](std::size_t i) {
    const Real growth = now[i] - before[i];
    before[i] = now[i];
    return growth;
  });
}

void adamw_update(const AdamwStep& s, In grad, Out m, Out v, Out parameter) {
  const Real decay = static_cast<Real>(1 - s.lr * s.weight_decay);
  const Real beta1 = static_cast<Real>(s.beta1), beta2 = static_cast<Real>(s.beta2);
  const Real rest1 = static_cast<Real>(1 - s.beta1), rest2 = static_cast<Real>(1 - s.beta2);
  const Real scale = static_cast<Real>(s.grad_scale), eps = static_cast<Real>(s.eps);
  const Real rate = static_cast<Real>(s.lr / s.correction1), root = static_cast<Real>(1 / std::sqrt(s.correction2));
  const Real* g = grad.data();
  Real *pm = m.data(), *pv = v.data(), *p = parameter.data();
  parallel_blocks(static_cast<Index>(grad.size()), 12, [=](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      const Real gradient = g[i] * scale;
      pm[i] = beta1 * pm[i] + rest1 * gradient;
      pv[i] = beta2 * pv[i] + rest2 * gradient * gradient;
      p[i] = p[i] * decay - rate * pm[i] / (std::sqrt(pv[i]) * root + eps);
    }
  });
}

void sgd_update(const SgdStep& s, In grad, Out m, Out parameter) {
  const Real decay = static_cast<Real>(1 - s.lr * s.weight_decay), momentum = static_cast<Real>(s.momentum);
  const Real scale = static_cast<Real>(s.grad_scale), lr = static_cast<Real>(s.lr);
  const Real* g = grad.data();
  Real *pm = m.data(), *p = parameter.data();
  parallel_blocks(static_cast<Index>(grad.size()), 6, [=](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) {
      pm[i] = momentum * pm[i] + scale * g[i];
      p[i] = p[i] * decay - lr * pm[i];
    }
  });
}

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
