// The learning rate as a pure function of the update.
#include "normlab/optim/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace normlab {

double learning_rate(const ScheduleConfig& schedule, double lr, std::int64_t t, std::int64_t steps) {
  const double min_lr = schedule.min_lr.value();
  const std::int64_t full = std::max<std::int64_t>(schedule.warmup_steps, 1);
  if (t <= full) return lr * static_cast<double>(t) / static_cast<double>(full);
  const double progress =
      steps > full ? std::min(1.0, static_cast<double>(t - full) / static_cast<double>(steps - full)) : 1;
  switch (schedule.decay) {
    case Decay::constant:
      return lr;
    case Decay::linear:
      return lr + (min_lr - lr) * progress;
    case Decay::cosine:
      return min_lr + (lr - min_lr) * 0.5 * (1 + std::cos(std::numbers::pi * progress));
    case Decay::inverse_sqrt:
      return std::max(min_lr, lr * std::sqrt(static_cast<double>(full) / static_cast<double>(t)));
  }
  __builtin_unreachable();
}

}  // namespace normlab
