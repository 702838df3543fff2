// Update rules, clipping and schedules.
#include <cmath>
#include <limits>

#include "normlab/optim/optimizer.h"
#include "normlab/optim/schedule.h"
#include "support.h"

using namespace normlab;

namespace {

Tensor with_gradient(ParameterStore& store, const char* name, Shape shape, Real value, Real gradient) {
  const Tensor tensor = Scope(store).parameter(name, shape, {static_cast<double>(value)});
  const Grad grad = tensor.grad_sink();
  for (Real& g : grad.values) g = gradient;
  return tensor;
}

ScheduleConfig schedule(std::int64_t warmup, Decay decay, double min_lr) {
  ScheduleConfig config;
  config.warmup_steps = warmup;
  config.decay = decay;
  config.min_lr = min_lr;
  return config;
}

}  // namespace

TEST_CASE("the gradient norm and clipping survive gradients of 1e20", "[optim]") {
  ParameterStore store(1);
  const Tensor p = with_gradient(store, "p", {100}, 0, 1e20f);
  const double norm = gradient_norm(store);
  CHECK(norm == Approx(1e21).epsilon(1e-6));
  // SGD without momentum moves by lr times the clipped gradient, which is 0.1.
  OptimizerConfig config;
  config.name = OptimizerKind::sgd;
  config.momentum = 0;
  Optimizer(config, store).step(1, 1, clip_coefficient(1, norm));
  CHECK(p.values()[7] == Approx(-0.1).epsilon(1e-6));
}

TEST_CASE("the gradient norm shows what is not finite", "[optim]") {
  ParameterStore store(1);
  with_gradient(store, "p", {3}, 0, std::numeric_limits<Real>::quiet_NaN());
  CHECK(std::isnan(gradient_norm(store)));
}

TEST_CASE("clipping is PyTorch's, and 0 is off", "[optim]") {
  CHECK(clip_coefficient(0, 1e9) == 1);
  CHECK(clip_coefficient(1, 0.5) == 1);
  CHECK(clip_coefficient(1, 4) == 1 / (4 + 1e-6));
}

TEST_CASE("decay falls on matrices alone, decided by rank", "[optim]") {
  ParameterStore store(1);
  const Tensor matrix = with_gradient(store, "norm.weight", {2, 3}, 2, 0),
               gain = with_gradient(store, "mlp.up", {3}, 2, 0);
  for (const OptimizerKind kind : {OptimizerKind::adamw, OptimizerKind::sgd}) {
    for (Real& value : matrix.values()) value = 2;
    OptimizerConfig config;
    config.name = kind;
    config.weight_decay = 0.1;
    Optimizer(config, store).step(1, 0.5, 1);
    CHECK(matrix.values()[4] == Approx(2 * (1 - 0.5 * 0.1)).epsilon(1e-7));
    CHECK(gain.values()[1] == 2);
  }
}

TEST_CASE("two AdamW steps by hand", "[optim]") {
  ParameterStore store(1);
  const Tensor p = with_gradient(store, "p", {1}, 1, 2);
  OptimizerConfig config;
  config.betas = {0.9, 0.99};
  config.eps = 0.5;
  Optimizer optimizer(config, store);
  // t = 1: m = 0.2, v = 0.04; corrected 2 and 4: 1 - 0.1 * 2 / (2 + 0.5)
  optimizer.step(1, 0.1, 1);
  CHECK(p.values()[0] == Approx(0.92).epsilon(1e-6));
  // t = 2, half the gradient: m = 0.18 + 0.1 = 0.28, v = 0.0396 + 0.01 = 0.0496; corrected by 0.19 and 0.0199
  optimizer.step(2, 0.1, 0.5);
  const double expected = 0.92 - 0.1 * (0.28 / 0.19) / (std::sqrt(0.0496 / 0.0199) + 0.5);
  CHECK(p.values()[0] == Approx(expected).epsilon(1e-6));
}

TEST_CASE("SGD's momentum by hand", "[optim]") {
  ParameterStore store(1);
  const Tensor p = with_gradient(store, "p", {1}, 1, 2);
  OptimizerConfig config;
  config.name = OptimizerKind::sgd;
  config.momentum = 0.5;
  Optimizer optimizer(config, store);
  optimizer.step(1, 0.1, 1);  // m = 2
  optimizer.step(2, 0.1, 1);  // m = 3
  CHECK(p.values()[0] == Approx(1 - 0.1 * 2 - 0.1 * 3).epsilon(1e-6));
}

TEST_CASE("the learning rate is above 0 at the first update and full at the end of warmup", "[optim]") {
  const ScheduleConfig config = schedule(10, Decay::cosine, 1e-4);
  CHECK(learning_rate(config, 1e-3, 1, 100) == Approx(1e-4));
  CHECK(learning_rate(config, 1e-3, 10, 100) == 1e-3);
  CHECK(learning_rate(config, 1e-3, 100, 100) == Approx(1e-4));
  CHECK(learning_rate(schedule(0, Decay::cosine, 1e-4), 1e-3, 1, 100) == 1e-3);
  CHECK(learning_rate(schedule(0, Decay::constant, 0), 1e-3, 100, 100) == 1e-3);
}

TEST_CASE("schedules are continuous", "[optim]") {
  const Decay decay = GENERATE(Decay::constant, Decay::linear, Decay::cosine, Decay::inverse_sqrt);
  const std::int64_t warmup = GENERATE(1, 20, 100), steps = 100;
  const ScheduleConfig config = schedule(warmup, decay, 1e-4);
  // The steepest piece: warmup, 1e-3 / warmup; or the cosine, pi / 2 times the mean slope of the decay; the inverse
  // root falls by half of its value in the first update after warmup of 1.
  const double slope =
      std::max({1e-3 / static_cast<double>(warmup), 1.6 * 9e-4 / std::max(1.0, 100.0 - static_cast<double>(warmup))});
  for (std::int64_t t = 1; t < steps; ++t)
    CHECK(std::fabs(learning_rate(config, 1e-3, t + 1, steps) - learning_rate(config, 1e-3, t, steps)) <=
          slope + 1e-15);
}

TEST_CASE("linear and inverse_sqrt by hand", "[optim]") {
  CHECK(learning_rate(schedule(10, Decay::linear, 0), 1e-3, 55, 100) == Approx(5e-4));
  CHECK(learning_rate(schedule(10, Decay::inverse_sqrt, 0), 1e-3, 40, 100) == Approx(5e-4));
  CHECK(learning_rate(schedule(10, Decay::inverse_sqrt, 8e-4), 1e-3, 40, 100) == 8e-4);
}
