// How running statistics move, and how evaluation uses them.
#include "normlab/nn/running.h"

#include <algorithm>
#include <cmath>

namespace normlab {
inline namespace NORMLAB_REAL {
namespace {

Index real_rows(Mask mask, Index rows) { return mask.empty() ? rows : std::ranges::count(mask, std::uint8_t{1}); }

// The samples [B] that are real at position t of [B, T].
Index real_samples(Mask mask, const Shape& s, Index t) {
  Index count = 0;
  for (Index b = 0; b < s[0]; ++b) count += is_real(mask, b * s[1] + t);
  return count;
}

Tensor inverse_deviation(In variance, double eps) {
  Tensor rstd(Shape{static_cast<Index>(variance.size())});
  std::ranges::transform(variance, rstd.values().begin(),
                         [&](Real var) { return static_cast<Real>(1 / std::sqrt(static_cast<double>(var) + eps)); });
  return rstd;
}

// The variance, or mean square, of which rstd = 1 / sqrt(variance + eps) was made.
double variance_of(Real rstd, double eps) {
  const double r = static_cast<double>(rstd);
  return std::max(0.0, 1 / (r * r) - eps);
}

void move(Real& running, double momentum, double now) {
  running = static_cast<Real>((1 - momentum) * static_cast<double>(running) + momentum * now);
}

}  // namespace

RunningStatistics::RunningStatistics(const Scope& scope, const ModelConfig& config)
    : path_(scope.path()),
      running_(spec_of(config.norm).running),
      eps_(config.norm_eps),
      momentum_(config.norm_momentum),
      warmup_steps_(config.norm_warmup_steps) {
  const Index C = config.d_model;
  if (spec_of(config.norm).method == Method::power) {
    variance_ = scope.buffer("running_square", Shape{C}, 1);
    projection_ = scope.buffer("running_projection", Shape{C}, 0);
    updates_ = scope.buffer("updates", Shape{1}, 0);
    return;
  }
  const Shape shape = running_ == Running::per_position ? Shape{config.context_length, C} : Shape{C};
  mean_ = scope.buffer("running_mean", shape, 0);
  variance_ = scope.buffer("running_var", shape, 1);
}

Tensor RunningStatistics::normalize(const Tensor& x, ops::NormView view, ops::NormRule rule, Mask mask,
                                    const Tensor& gain, const Tensor& bias, Pass& pass) const {
  if (!pass.training && !pass.batch_statistics)
    return ops::normalize_by(x, view, from(pass.cache ? pass.cache->filled : 0, view), gain, bias);
  if (updates_ && pass.training) {
    Real& updates = updates_.values()[0];
    updates += 1;
    if (static_cast<double>(updates) > static_cast<double>(warmup_steps_))
      return ops::power(x, mask, eps_, momentum_, {variance_, projection_}, gain, bias);
  }
  ops::Statistics batch;
  Tensor y = ops::normalize(x, view, rule, mask, gain, bias, &batch);
  if (pass.probe) pass.probe->see_statistics(path_, distance_to(batch));
  if (pass.training) update(batch, x.shape(), mask);
  return y;
}

ops::Statistics RunningStatistics::from(Index first_position, ops::NormView view) const {
  const auto groups = static_cast<std::size_t>(view.groups());
  const std::size_t first =
      running_ == Running::per_position ? static_cast<std::size_t>(first_position * view.channels) : 0;
  Tensor mean(Shape{view.groups()});
  std::ranges::fill(mean.values(), Real(0));
  if (mean_) std::ranges::copy(mean_.values().subspan(first, groups), mean.values().begin());
  return {mean, inverse_deviation(variance_.values().subspan(first, groups), eps_)};
}

StatisticsDistance RunningStatistics::distance_to(const ops::Statistics& batch) const {
  const Index features =
      batch.rstd.shape().numel();  // of fewer positions than the context has, where a window is short
  double mean_squares = 0, variance_squares = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(features); ++i) {
    const double running = static_cast<double>(variance_.values()[i]) + eps_;
    const double by_variance = (variance_of(batch.rstd.values()[i], eps_) + eps_) / running - 1;
    variance_squares += by_variance * by_variance;
    if (!mean_) continue;
    const double difference = static_cast<double>(batch.mean.values()[i]) - static_cast<double>(mean_.values()[i]);
    mean_squares += difference * difference / running;
  }
  const double count = static_cast<double>(features);
  return {std::sqrt(mean_squares / count), std::sqrt(variance_squares / count)};
}

// running <- (1 - m) running + m batch. The variance is that of the sample, n / (n - 1) times the one that normalised,
// as PyTorch has it; from a single row it is taken as it is. What has no real row stays. PowerNorm's mean square
// becomes the mean of those so far.
void RunningStatistics::update(const ops::Statistics& batch, const Shape& s, Mask mask) const {
  const bool by_position = running_ == Running::per_position;
  const double m = updates_ ? 1 / static_cast<double>(updates_.values()[0]) : momentum_;
  const auto channels = static_cast<std::size_t>(s.last());
  for (Index t = 0; t < (by_position ? s[1] : 1); ++t) {
    const auto n = static_cast<double>(by_position ? real_samples(mask, s, t) : real_rows(mask, s.rows()));
    if (n == 0) continue;
    const double unbiased = mean_ && n > 1 ? n / (n - 1) : 1;
    for (std::size_t i = static_cast<std::size_t>(t) * channels; i < static_cast<std::size_t>(t + 1) * channels; ++i) {
      if (mean_) move(mean_.values()[i], m, static_cast<double>(batch.mean.values()[i]));
      move(variance_.values()[i], m, variance_of(batch.rstd.values()[i], eps_) * unbiased);
    }
  }
}

}  // namespace NORMLAB_REAL
}  // namespace normlab
