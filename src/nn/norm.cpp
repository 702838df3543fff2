// Norms as views of [B, T, C].
#include "normlab/nn/norm.h"

#include <algorithm>
#include <cmath>

namespace normlab {
inline namespace NORMLAB_REAL {

ops::NormView view_of(Reduce reduce, Index groups, const Shape& x) {
  const Index B = x[0], T = x[1], C = x.last();
  switch (reduce) {
    case Reduce::channel_group:
      return {B * T * groups, C / groups, 1, C};
    case Reduce::time:
      return {B, T, C, C};
    case Reduce::time_and_channels:
      return {B, T * C, 1, C};
    case Reduce::batch:
      return {1, B, T * C, C};
    case Reduce::batch_and_time:
      return {1, B * T, C, C};
    case Reduce::channels:
    case Reduce::nothing:
      break;
  }
  return {B * T, C, 1, C};
}

Norm::Norm(const Scope& scope, const ModelConfig& config)
    : path_(scope.path()),
      spec_(spec_of(config.norm)),
      rule_{spec_.centred, config.norm_eps,
            spec_.method == Method::length ? kernels::Divisor::length : kernels::Divisor::deviation},
      groups_(config.norm_groups),
      counts_padding_(config.norm_padding == NormPadding::count) {
  constexpr double kInitialAlpha = 0.5;  // DyT: Zhu et al. 2025, section 4
  const Index C = config.d_model;
  const bool scalar = spec_.gain == Gain::scalar;
  const double gain = scalar ? config.norm_gain * std::sqrt(static_cast<double>(C)) : config.norm_gain;
  gain_ = scope.parameter("weight", Shape{scalar ? 1 : C}, {gain});
  if (spec_.bias && config.bias) bias_ = scope.parameter("bias", Shape{C}, {});
  if (spec_.method == Method::tanh) alpha_ = scope.parameter("alpha", Shape{1}, {kInitialAlpha});
  if (spec_.method == Method::fixed) deviation_ = scope.buffer("deviation", Shape{1}, 1);
  if (spec_.running != Running::none) running_.emplace(scope, config);
}

// gain (x - mean) / sqrt(variance + eps) + bias, with mean and variance of the group that an element belongs to.
Tensor Norm::forward(const Tensor& x, Pass& pass) const {
  const Place place(path_);
  if (pass.probe) pass.probe->see_norm(path_, x, pass.mask);
  if (spec_.method == Method::tanh) return ops::dyt(x, alpha_, gain_, bias_);
  if (spec_.method == Method::fixed) return by_constant(x);
  const ops::NormView view = view_of(spec_.reduce, groups_, x.shape());
  // A norm that stays within one row does not care which other rows are real.
  const Mask mask = sight_in_training(spec_) && !counts_padding_ ? pass.mask : Mask();
  if (running_) return running_->normalize(x, view, rule_, mask, gain_, bias_, pass);
  return ops::normalize(x, view, rule_, mask, gain_, bias_);
}

// gain x / s + bias
Tensor Norm::by_constant(const Tensor& x) const {
  const Index channels = x.shape().last();
  Tensor mean(Shape{channels}), inverse(Shape{channels});
  std::ranges::fill(mean.values(), Real(0));
  std::ranges::fill(inverse.values(), 1 / deviation_.values()[0]);
  return ops::normalize_by(x, {1, x.shape().rows(), channels, channels}, {mean, inverse}, gain_, bias_);
}

std::optional<Norm> norm_in(bool slot, const Scope& scope, const ModelConfig& config) {
  return slot ? std::optional<Norm>(std::in_place, scope, config) : std::nullopt;
}

}  // namespace NORMLAB_REAL
}  // namespace normlab
