// Norms as views of [B, T, C] and, for batch norm, running averages.
#include "normlab/nn/norm.h"

#include <algorithm>
#include <cmath>

namespace normlab::inline NORMLAB_REAL {
namespace {

ops::NormView view_of(Reduce reduce, const Shape& s) {
  if (reduce == Reduce::batch_and_time) return {1, s.rows(), s.last(), s.last()};
  return {s.rows(), s.last(), 1, s.last()};
}

}  // namespace

Norm::Norm(const Scope& scope, const ModelConfig& config)
    : path_(scope.path()), spec_(spec_of(config.norm)), eps_(config.norm_eps), momentum_(config.norm_momentum) {
  const Shape channels{config.d_model};
  gain_ = scope.parameter("weight", channels, {config.norm_gain});
  if (spec_.centred && config.bias) bias_ = scope.parameter("bias", channels, {});
  if (spec_.running) {
    running_mean_ = scope.buffer("running_mean", channels, 0);
    running_var_ = scope.buffer("running_var", channels, 1);
  }
}

Tensor Norm::forward(const Tensor& x, Pass& pass) const {
  const Place place(path_);
  if (pass.probe) pass.probe->see_norm(path_, x, pass.mask);
  if (spec_.running && !pass.training) {
    Tensor rstd(running_var_.shape());
    std::ranges::transform(running_var_.values(), rstd.values().begin(),
                           [&](Real var) { return static_cast<Real>(1 / std::sqrt(static_cast<double>(var) + eps_)); });
    return ops::normalize_by(x, {running_mean_, rstd}, gain_, bias_);
  }
  // A norm that stays within one row does not care which other rows are real.
  const Mask mask = spec_.reduce == Reduce::channel ? Mask() : pass.mask;
  ops::Statistics batch;
  Tensor y = ops::normalize(x, view_of(spec_.reduce, x.shape()), {spec_.centred, eps_}, mask, gain_, bias_, &batch);
  if (spec_.running) update_running(batch, mask.empty() ? x.shape().rows() : std::ranges::count(mask, std::uint8_t{1}));
  return y;
}

// running <- (1 - m) running + m batch. The variance is that of the sample, n / (n - 1) times the one that normalised,
// as PyTorch has it; from a single row it is taken as it is.
void Norm::update_running(const ops::Statistics& batch, Index real_rows) const {
  if (real_rows == 0) return;
  const double n = static_cast<double>(real_rows), unbiased = n > 1 ? n / (n - 1) : 1;
  const Out mean = running_mean_.values(), var = running_var_.values();
  for (std::size_t c = 0; c < mean.size(); ++c) {
    const double rstd = static_cast<double>(batch.rstd.values()[c]);
    const double batch_var = std::max(0.0, 1 / (rstd * rstd) - eps_);
    mean[c] = static_cast<Real>((1 - momentum_) * static_cast<double>(mean[c]) +
                                momentum_ * static_cast<double>(batch.mean.values()[c]));
    var[c] = static_cast<Real>((1 - momentum_) * static_cast<double>(var[c]) + momentum_ * batch_var * unbiased);
  }
}

std::optional<Norm> norm_in(bool slot, const Scope& scope, const ModelConfig& config) {
  if (!slot || spec_of(config.norm).reduce == Reduce::nothing) return std::nullopt;
  return Norm(scope, config);
}

}  // namespace normlab::inline NORMLAB_REAL
