// AdamW and SGD over a parameter store.
#include "normlab/optim/optimizer.h"

#include <algorithm>
#include <cmath>

namespace normlab::inline NORMLAB_REAL {

double gradient_norm(const ParameterStore& store) {
  double total = 0;
  for (const Named& parameter : store.parameters()) total += kernels::squared_norm(parameter.tensor.grad());
  return std::sqrt(total);
}

double clip_coefficient(double grad_clip, double norm) {
  return grad_clip == 0 ? 1.0 : std::min(1.0, grad_clip / (norm + 1e-6));
}

bool is_decayed(const Tensor& parameter) { return parameter.shape().rank() == 2; }

Optimizer::Optimizer(const OptimizerConfig& config, const ParameterStore& store) : config_(config), store_(store) {
  std::vector<const char*> averages{"m"};
  if (config.name == OptimizerKind::adamw) averages.push_back("v");
  for (const char* average : averages)
    for (const Named& parameter : store.parameters()) {
      Tensor tensor(parameter.tensor.shape());
      std::ranges::fill(tensor.values(), Real(0));
      state_.push_back({text("optimizer.", average, '.', parameter.name), tensor});
    }
}

void Optimizer::step(std::int64_t t, double lr, double grad_scale) {
  const double updates = static_cast<double>(t);
  const double correction1 = 1 - std::pow(config_.betas[0], updates),
               correction2 = 1 - std::pow(config_.betas[1], updates);
  const std::size_t count = store_.parameters().size();
  for (std::size_t i = 0; i < count; ++i) {
    const Tensor& parameter = store_.parameters()[i].tensor;
    if (parameter.grad().empty()) std::ranges::fill(parameter.grad_sink().values, Real(0));
    const double decay = is_decayed(parameter) ? config_.weight_decay : 0;
    const Out m = state_[i].tensor.values();
    if (config_.name == OptimizerKind::sgd)
      kernels::sgd_update({lr, config_.momentum, decay, grad_scale}, parameter.grad(), m, parameter.values());
    else
      kernels::adamw_update(
          {lr, config_.betas[0], config_.betas[1], config_.eps, decay, grad_scale, correction1, correction2},
          parameter.grad(), m, state_[count + i].tensor.values(), parameter.values());
  }
}

}  // namespace normlab::inline NORMLAB_REAL
