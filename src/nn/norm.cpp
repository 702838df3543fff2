// Norms as views of [B, T, C], and the statistics that some carry along.
#include "normlab/nn/norm.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/text.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace {

constexpr double kInitialAlpha = 0.5;  // DyT: Zhu et al. 2025, section 4

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

Norm::Norm(const Scope& scope, const ModelConfig& config)
    : path_(scope.path()),
      spec_(spec_of(config.norm)),
      eps_(config.norm_eps),
      momentum_(config.norm_momentum),
      groups_(config.norm_groups),
      warmup_steps_(config.norm_warmup_steps),
      counts_padding_(config.norm_padding == NormPadding::count) {
  const Index C = config.d_model;
  const bool scalar = spec_.gain == Gain::scalar;
  const double gain = scalar ? config.norm_gain * std::sqrt(static_cast<double>(C)) : config.norm_gain;
  gain_ = scope.parameter("weight", Shape{scalar ? 1 : C}, {gain});
  if (spec_.bias && config.bias) bias_ = scope.parameter("bias", Shape{C}, {});
  if (spec_.method == Method::tanh) alpha_ = scope.parameter("alpha", Shape{1}, {kInitialAlpha});
  if (spec_.method == Method::fixed) deviation_ = scope.buffer("deviation", Shape{1}, 1);
  if (spec_.method == Method::power) {
    running_square_ = scope.buffer("running_square", Shape{C}, 1);
    running_projection_ = scope.buffer("running_projection", Shape{C}, 0);
    updates_ = scope.buffer("updates", Shape{1}, 0);
  } else if (spec_.running != Running::none) {
    const Shape shape = spec_.running == Running::per_position ? Shape{config.context_length, C} : Shape{C};
    running_mean_ = scope.buffer("running_mean", shape, 0);
    running_var_ = scope.buffer("running_var", shape, 1);
  }
}

ops::NormView Norm::view_of(const Shape& s) const {
  const Index B = s[0], T = s[1], C = s.last();
  switch (spec_.reduce) {
    case Reduce::channel_group:
      return {B * T * groups_, C / groups_, 1, C};
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

Tensor Norm::forward(const Tensor& x, Pass& pass) const {
  const Place place(path_);
  if (pass.probe) pass.probe->see_norm(path_, x, pass.mask);
  if (spec_.method == Method::tanh) return ops::dyt(x, alpha_, gain_, bias_);
  if (spec_.method == Method::fixed) return by_constant(x);
  const bool keeps_running = spec_.running != Running::none;
  if (keeps_running && !pass.training && !pass.batch_statistics)
    return by_running(x, pass.cache ? pass.cache->filled : 0);
  // A norm that stays within one row does not care which other rows are real.
  const Mask mask = sight_in_training(spec_) && !counts_padding_ ? pass.mask : Mask();
  if (spec_.method == Method::power && pass.training) return power_in_training(x, mask);
  ops::Statistics batch;
  Tensor y = by_batch(x, mask, &batch);
  if (keeps_running && pass.probe) pass.probe->see_statistics(path_, distance_to_running(batch));
  if (keeps_running && pass.training) update_running(batch, x.shape(), mask);
  return y;
}

StatisticsDistance Norm::distance_to_running(const ops::Statistics& batch) const {
  const bool power = spec_.method == Method::power;
  const In variance = power ? running_square_.values() : running_var_.values();
  const Index features =
      batch.rstd.shape().numel();  // of fewer positions than the context has, where a window is short
  double mean_squares = 0, variance_squares = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(features); ++i) {
    const double running = static_cast<double>(variance[i]) + eps_;
    const double by_variance = (variance_of(batch.rstd.values()[i], eps_) + eps_) / running - 1;
    variance_squares += by_variance * by_variance;
    if (power) continue;
    const double difference =
        static_cast<double>(batch.mean.values()[i]) - static_cast<double>(running_mean_.values()[i]);
    mean_squares += difference * difference / running;
  }
  const double count = static_cast<double>(features);
  return {std::sqrt(mean_squares / count), std::sqrt(variance_squares / count)};
}

Tensor Norm::by_batch(const Tensor& x, Mask mask, ops::Statistics* measured) const {
  const auto divisor = spec_.method == Method::length ? kernels::Divisor::length : kernels::Divisor::deviation;
  return ops::normalize(x, view_of(x.shape()), {spec_.centred, eps_, divisor}, mask, gain_, bias_, measured);
}

Tensor Norm::by_running(const Tensor& x, Index first_position) const {
  const ops::NormView view = view_of(x.shape());
  const auto groups = static_cast<std::size_t>(view.groups());
  const std::size_t first =
      spec_.running == Running::per_position ? static_cast<std::size_t>(first_position * view.channels) : 0;
  Tensor mean(Shape{view.groups()});
  if (spec_.method == Method::power)
    std::ranges::fill(mean.values(), Real(0));
  else
    std::ranges::copy(running_mean_.values().subspan(first, groups), mean.values().begin());
  const In variance = spec_.method == Method::power ? running_square_.values() : running_var_.values();
  return ops::normalize_by(x, view, {mean, inverse_deviation(variance.subspan(first, groups), eps_)}, gain_, bias_);
}

// gain x / s + bias
Tensor Norm::by_constant(const Tensor& x) const {
  const Index channels = x.shape().last();
  Tensor mean(Shape{channels}), inverse(Shape{channels});
  std::ranges::fill(mean.values(), Real(0));
  std::ranges::fill(inverse.values(), 1 / deviation_.values()[0]);
  return ops::normalize_by(x, {1, x.shape().rows(), channels, channels}, {mean, inverse}, gain_, bias_);
}

// The first passes use the batch's own mean square, of which P becomes the mean so far.
Tensor Norm::power_in_training(const Tensor& x, Mask mask) const {
  Real& updates = updates_.values()[0];
  const auto so_far = static_cast<double>(updates);
  updates += 1;
  if (so_far >= static_cast<double>(warmup_steps_))
    return ops::power(x, mask, eps_, momentum_, {running_square_, running_projection_}, gain_, bias_);
  ops::Statistics batch;
  Tensor y = by_batch(x, mask, &batch);
  if (real_rows(mask, x.shape().rows()) == 0) return y;
  const Out P = running_square_.values();
  for (std::size_t c = 0; c < P.size(); ++c) move(P[c], 1 / (so_far + 1), variance_of(batch.rstd.values()[c], eps_));
  return y;
}

// running <- (1 - m) running + m batch. The variance is that of the sample, n / (n - 1) times the one that normalised,
// as PyTorch has it; from a single row it is taken as it is. What has no real row stays.
void Norm::update_running(const ops::Statistics& batch, const Shape& s, Mask mask) const {
  const bool by_position = spec_.running == Running::per_position;
  const auto channels = static_cast<std::size_t>(s.last());
  const Out mean = running_mean_.values(), var = running_var_.values();
  for (Index t = 0; t < (by_position ? s[1] : 1); ++t) {
    const auto n = static_cast<double>(by_position ? real_samples(mask, s, t) : real_rows(mask, s.rows()));
    if (n == 0) continue;
    const double unbiased = n > 1 ? n / (n - 1) : 1;
    for (std::size_t i = static_cast<std::size_t>(t) * channels; i < static_cast<std::size_t>(t + 1) * channels; ++i) {
      move(mean[i], momentum_, static_cast<double>(batch.mean.values()[i]));
      move(var[i], momentum_, variance_of(batch.rstd.values()[i], eps_) * unbiased);
    }
  }
}

std::optional<Norm> norm_in(bool slot, const Scope& scope, const ModelConfig& config) {
  if (!slot || config.norm == NormKind::none) return std::nullopt;
  return Norm(scope, config);
}

std::string equation_of(const ModelConfig& model) {
  const std::string norm(config::to_string(model.norm));
  switch (norm_of(model) == NormKind::none ? Placement::none : model.placement) {
    case Placement::pre:
      return text("x + f(", norm, "(x))");
    case Placement::post:
      return text(norm, "(x + f(x))");
    case Placement::sandwich:
      return text("x + ", norm, "(f(", norm, "(x)))");
    case Placement::res_post:
      return text("x + ", norm, "(f(x))");
    case Placement::deepnorm:
      return text(norm, "(", fixed(model.residual_scale(), 3), " x + f(x))");
    case Placement::none:
      return "x + f(x)";
  }
  __builtin_unreachable();
}

}  // namespace NORMLAB_REAL
}  // namespace normlab
