// The update rules over all parameters of a model, and clipping.
#pragma once

#include <string>
#include <vector>

#include "normlab/optim/optimizer_config.h"
#include "normlab/tensor/parameters.h"

namespace normlab {
inline namespace NORMLAB_REAL {

// The L2 norm of all gradients together, accumulated in double; not finite when one of them is not.
double gradient_norm(const ParameterStore& store);

// min(1, grad_clip / (norm + 1e-6)), as PyTorch; 1 when grad_clip is 0.
double clip_coefficient(double grad_clip, double norm);

// Decoupled weight decay falls on tensors of rank 2 alone: matrices and embeddings, not gains and biases.
bool is_decayed(const Tensor& parameter);

// AdamW (Loshchilov & Hutter 2019) with PyTorch's bias correction and epsilon, or SGD with momentum.
class Optimizer {
 public:
  Optimizer(const OptimizerConfig& config, const ParameterStore& store);

  // Update number t (from 1), with the gradients multiplied by `grad_scale`.
  void step(std::int64_t t, double lr, double grad_scale);

  // The moving averages as optimizer.m.<name> and optimizer.v.<name> (adamw), optimizer.m.<name> (sgd).
  const std::vector<Named>& state() const { return state_; }

 private:
  OptimizerConfig config_;
  const ParameterStore& store_;
  std::vector<Named> state_;  // all m, then all v, in the order of the parameters
};

}  // namespace NORMLAB_REAL
}  // namespace normlab
