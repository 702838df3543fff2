// The gradient noise scale by hand, and as a run keeps it.
#include "normlab/train/gradient_noise.h"

#include <cmath>

#include "catch.h"

using namespace normlab;

namespace {

void add_gradient(const Tensor& parameter, std::initializer_list<Real> values) {
  const Grad sink = parameter.grad_sink();
  std::size_t i = 0;
  for (const Real value : values) sink.values[i] = (sink.add ? sink.values[i] : 0) + value, ++i;
}

}  // namespace

TEST_CASE("the estimates of McCandlish et al. 2018, appendix A.1", "[train]") {
  // b = 1, B = 2: gradients (3, 1) and (1, -1), mean (2, 0)
  // G2 = (2 4 - 1 6) / (2 - 1) = 2;  S = (6 - 4) / (1 - 1 / 2) = 4
  const NoiseEstimate estimate = estimate_noise(4, 2, {{10, 1}, {2, 1}});
  CHECK(estimate.signal == Approx(2));
  CHECK(estimate.noise == Approx(4));
  // Parts of 1 and 3 targets: 1 / b is (1 + 1 / 3) / 2 = 2 / 3 on average
  const NoiseEstimate uneven = estimate_noise(4, 4, {{10, 1}, {4, 3}});
  CHECK(uneven.noise == Approx((7.0 - 4.0) / (2.0 / 3 - 0.25)));
  CHECK(uneven.signal == Approx(4 - uneven.noise / 4));
}

TEST_CASE("a run's parts are what the sum of gradients grew by", "[train]") {
  ParameterStore store(1);
  const Tensor a = store.add_parameter("a", {1}), b = store.add_parameter("b", {1});
  GradientAverages averages;
  GradientWatch watch(averages, true);
  RunControl control;
  double power = 1;
  for (std::int64_t step = 1; step <= 3; ++step) {
    store.clear_gradients();
    // The gradients (3, 1) and (1, -1), each of one of two targets
    add_gradient(a, {1.5}), add_gradient(b, {0.5});
    watch.on_part(store, 1, 2);
    add_gradient(a, {0.5}), add_gradient(b, {-0.5});
    watch.on_part(store, 1, 2);
    watch.on_step_end({.step = step, .grad_norm = 2, .clip_coef = step == 2 ? 0.5 : 1, .tokens = 2}, nullptr, control);
    power *= 0.99;
  }
  CHECK(noise_scale(averages) == Approx(2));
  CHECK(averages.signal == Approx(2 * (1 - power)));
  CHECK(clip_rate(averages, 3) == Approx(0.01 * 0.99 / (1 - power)));
}

TEST_CASE("no noise scale from one part, nor where it is not asked for", "[train]") {
  ParameterStore store(1);
  const Tensor a = store.add_parameter("a", {1});
  RunControl control;
  for (const bool measures : {true, false}) {
    GradientAverages averages;
    GradientWatch watch(averages, measures);
    for (int part = 0; part < (measures ? 1 : 2); ++part) {
      add_gradient(a, {1});
      watch.on_part(store, 1, 1);
    }
    watch.on_step_end({.step = 1, .grad_norm = 1, .tokens = 1}, nullptr, control);
    CHECK(!noise_scale(averages));
  }
}
