// What is averaged over the steps of a run: how noisy its gradient is, and how often it is clipped.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "normlab/train/observer.h"

namespace normlab {

// Averages with decay 0.99 that start at 0, which ratios of two do not feel.
struct GradientAverages {
  double signal = 0;   // of the estimates of |G|^2, G the gradient of the loss on all data
  double noise = 0;    // of the estimates of tr S, S the covariance of the gradient of one target
  double clipped = 0;  // of 1 where a step's gradient was clipped, else 0
};

// The estimates from one step (McCandlish et al. 2018, appendix A), from the squared norm of its gradient over B
// targets and those of the gradients of its parts, over b targets each: E |g_b|^2 = |G|^2 + tr S / b. Parts may differ
// in size; the mean of 1 / b stands for 1 / b.
struct NoiseEstimate {
  double signal, noise;
};
struct GradientPart {
  double squared_norm;
  double targets;
};
NoiseEstimate estimate_noise(double squared_norm, double targets, const std::vector<GradientPart>& parts);

// Keeps `averages` while a run goes on. Comes before what reads them.
class GradientWatch : public Observer {
 public:
  // The noise is measured for two `parts` a step or more.
  GradientWatch(GradientAverages& averages, bool measures_noise)
      : averages_(averages), measures_noise_(measures_noise) {}
  void on_part(const ParameterStore& store, std::int64_t targets, std::int64_t all_targets) override;
  void on_step_end(const StepReport& step, const EvalReport*, RunControl&) override;

 private:
  GradientAverages& averages_;
  bool measures_noise_;
  std::vector<std::vector<Real>> sum_;  // the gradient of the step's parts so far
  std::vector<GradientPart> parts_;
};

// tr S / |G|^2 in targets: batches far below it waste steps, far above it waste samples. Nothing where it was not
// measured, or where the noise hides the signal.
std::optional<double> noise_scale(const GradientAverages& averages);
// The share of steps whose gradient was clipped, after `steps` of them.
double clip_rate(const GradientAverages& averages, std::int64_t steps);

}  // namespace normlab
