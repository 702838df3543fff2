// The settings of the update rule and of its learning rate.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "normlab/config/fields.h"

namespace normlab {

enum class OptimizerKind { adamw, sgd };
enum class Decay { constant, linear, cosine, inverse_sqrt };

struct OptimizerConfig : config::Fields {
  using Betas = std::array<double, 2>;
  FIELD(OptimizerKind, name, OptimizerKind::adamw, config::any_value, "adamw, or sgd with momentum")
  FIELD(double, lr, 1e-3, config::at_least(0), "learning rate after warmup")
  FIELD(Betas, betas, (Betas{0.9, 0.99}), config::from_below(0, 1), "adamw: decay of the two moving averages")
  FIELD(double, eps, 1e-8, config::between(1e-37, 1e30), "adamw: added to the root of the second average")
  FIELD(double, momentum, 0.9, config::from_below(0, 1), "sgd: share of the last update that goes on")
  FIELD(double, weight_decay, 0.1, config::between(0, 1e6),
        "decoupled, on tensors of rank 2, embeddings included; norms and biases are never decayed")
  FIELD(double, grad_clip, 1.0, config::at_least(0), "largest norm of all gradients together; 0 is off")
};

struct ScheduleConfig : config::Fields {
  FIELD(std::int64_t, warmup_steps, 100, config::at_least(0),
        "updates of linear warmup: update t has lr t / warmup_steps; 0 is none")
  FIELD(Decay, decay, Decay::cosine, config::any_value,
        "after warmup; inverse_sqrt is lr sqrt(max(warmup_steps, 1) / t)")
  FIELD(std::optional<double>, min_lr, std::nullopt, config::at_least(0),
        "learning rate at the last step, absolute; lr / 10 by default")
};

// The learning rate of update t (from 1) of `steps`. Warmup ends, and the decay begins, at update max(warmup_steps, 1),
// which has the full rate; linear and cosine reach min_lr at the last update. `schedule.min_lr` must be resolved.
double learning_rate(const ScheduleConfig& schedule, double lr, std::int64_t t, std::int64_t steps);

}  // namespace normlab
