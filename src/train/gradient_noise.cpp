// Gradient noise scale and clip rate.
#include "normlab/train/gradient_noise.h"

#include <algorithm>
#include <cmath>

namespace normlab {
namespace {

constexpr double kDecay = 0.99;

void average(double& value, double next) { value = kDecay * value + (1 - kDecay) * next; }

}  // namespace

NoiseEstimate estimate_noise(double squared_norm, double targets, const std::vector<GradientPart>& parts) {
  double mean_norm = 0, mean_inverse = 0;
  const double count = static_cast<double>(parts.size());
  for (const GradientPart& part : parts) {
    mean_norm += part.squared_norm / count;
    mean_inverse += 1 / part.targets / count;
  }
  const double noise = (mean_norm - squared_norm) / (mean_inverse - 1 / targets);
  return {squared_norm - noise / targets, noise};
}

// The part's own gradient is what the sum in the store grew by, times its share of the targets turned round.
void GradientWatch::on_part(const ParameterStore& store, std::int64_t targets, std::int64_t all_targets) {
  if (!measures_noise_ || targets == 0) return;
  const bool first = parts_.empty();
  sum_.resize(store.parameters().size());
  double squares = 0;
  for (std::size_t i = 0; i < sum_.size(); ++i) {
    const In now = store.parameters()[i].tensor.grad();
    if (now.empty()) continue;
    std::vector<Real>& before = sum_[i];
    if (first || before.empty()) before.assign(now.size(), Real(0));
    squares += kernels::squared_growth(now, before);
  }
  const double turned = static_cast<double>(all_targets) / static_cast<double>(targets);
  parts_.push_back({squares * turned * turned, static_cast<double>(targets)});
}

void GradientWatch::on_step_end(const StepReport& step, const EvalReport*, RunControl&) {
  average(averages_.clipped, step.clip_coef < 1 ? 1 : 0);
  if (parts_.size() > 1) {
    const NoiseEstimate estimate =
        estimate_noise(step.grad_norm * step.grad_norm, static_cast<double>(step.tokens), parts_);
    average(averages_.signal, estimate.signal);
    average(averages_.noise, estimate.noise);
  }
  parts_.clear();
}

std::optional<double> noise_scale(const GradientAverages& averages) {
  if (averages.signal <= 0 || averages.noise <= 0) return std::nullopt;
  return averages.noise / averages.signal;
}

double clip_rate(const GradientAverages& averages, std::int64_t steps) {
  return averages.clipped / (1 - std::pow(kDecay, static_cast<double>(steps)));
}

}  // namespace normlab
