// The learning rate over time: warmup, then decay.
#pragma once

#include <cstdint>
#include <optional>

#include "normlab/config/fields.h"

namespace normlab {

enum class Decay { constant, linear, cosine, inverse_sqrt };

struct ScheduleConfig : config::Fields {
  FIELD(std::int64_t, warmup_steps, 100, config::at_least(0),
        "updates of linear warmup: update t has lr t / warmup_steps; 0 is none")
  FIELD(Decay, decay, Decay::cosine, config::any_value,
        "after warmup; inverse_sqrt is lr sqrt(max(warmup_steps, 1) / t)")
  FIELD(std::optional<double>, min_lr, std::nullopt, config::at_least(0),
        "learning rate at the last step, absolute; lr / 10 by default")
};

// The learning rate of update t (from 1) of `steps`. Warmup ends, and the decay begins, at update max(warmup_steps, 1),
// which has the full rate; linear and cosine reach min_lr at the last update. `schedule.min_lr` must be resolved.
double learning_rate(const ScheduleConfig& schedule, double lr, std::int64_t t, std::int64_t steps);

}  // namespace normlab
