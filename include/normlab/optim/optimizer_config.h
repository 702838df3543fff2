// The settings of the update rule.
#pragma once

#include <array>
#include <cstdint>

#include "normlab/config/fields.h"

namespace normlab {

enum class OptimizerKind { adamw, sgd };

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

// How many moving averages an optimizer keeps of each parameter.
constexpr int averages_of(const OptimizerConfig& config) { return config.name == OptimizerKind::adamw ? 2 : 1; }

}  // namespace normlab
