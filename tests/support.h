// What several tests need: random tensors by seed, and derivatives by finite differences.
#pragma once

#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "catch.h"
#include "normlab/base/rng.h"
#include "normlab/tensor/tensor.h"

namespace normlab {
inline namespace NORMLAB_REAL {

// A tensor that needs a gradient, with values N(0, 1) times `scale`.
inline Tensor random_tensor(Shape shape, std::uint64_t seed, Real scale = 1) {
  Tensor tensor = parameter_tensor(shape);
  Random random(seed, "test");
  for (Real& value : tensor.values()) value = scale * static_cast<Real>(random.normal());
  return tensor;
}

// The weighted sum of all elements, with seeded weights: a plain sum would hide the gradient of a norm, which is 0 for
// it.
inline Tensor weighted_sum(const Tensor& x) {
  Tensor weights(x.shape()), sum(Shape{});
  Random random(99, "weights");
  double total = 0;
  for (std::size_t i = 0; i < x.values().size(); ++i) {
    weights.values()[i] = static_cast<Real>(random.normal());
    total += static_cast<double>(weights.values()[i]) * static_cast<double>(x.values()[i]);
  }
  sum.values()[0] = static_cast<Real>(total);
  return record("weighted_sum", sum, {x}, [=](const Tensor& sum) {
    const Grad dx = x.grad_sink();
    for (std::size_t i = 0; i < dx.values.size(); ++i)
      dx.values[i] = (dx.add ? dx.values[i] : 0) + sum.grad()[0] * weights.values()[i];
  });
}

// Compares the gradient of the weighted sum of f() by each element of each input with central differences. In double,
// with h = 1e-6 |x| + 1e-6 the difference quotient is good to about 1e-9; a wrong formula is off by far more.
inline void check_gradients(const std::string& what, const std::vector<Tensor>& inputs,
                            const std::function<Tensor()>& f) {
  for (const Tensor& input : inputs) input.clear_grad();
  backward(weighted_sum(f()));
  for (std::size_t which = 0; which < inputs.size(); ++which) {
    const Tensor& input = inputs[which];
    REQUIRE(input.grad().size() == input.values().size());
    for (std::size_t i = 0; i < input.values().size(); ++i) {
      Real& value = input.values()[i];
      const Real kept = value, h = Real(1e-6) * std::fabs(kept) + Real(1e-6);
      value = kept + h;
      const double above = weighted_sum(f()).item();
      value = kept - h;
      const double below = weighted_sum(f()).item();
      value = kept;
      const double numeric = (above - below) / (2 * static_cast<double>(h)), analytic = input.grad()[i];
      if (std::fabs(numeric - analytic) <= 1e-8 + 1e-6 * std::fabs(numeric)) continue;
      INFO(what << ": input " << which << ", element " << i << ": analytic " << analytic << ", numeric " << numeric);
      CHECK(std::fabs(numeric - analytic) <= 1e-8 + 1e-6 * std::fabs(numeric));
    }
  }
}

}  // namespace NORMLAB_REAL
}  // namespace normlab
