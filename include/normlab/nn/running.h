// BatchNorm's running statistics and PowerNorm's state: what training carries along for evaluation.
#pragma once

#include <string>

#include "normlab/nn/norm_spec.h"
#include "normlab/nn/pass.h"
#include "normlab/ops/ops.h"
#include "normlab/tensor/parameters.h"

namespace normlab {
inline namespace NORMLAB_REAL {

class RunningStatistics {
 public:
  RunningStatistics(const Scope& scope, const ModelConfig& config);
  // Training normalises by the batch's own statistics and moves the running ones; evaluation normalises by these.
  // PowerNorm, after its warm-up, always does.
  Tensor normalize(const Tensor& x, ops::NormView view, ops::NormRule rule, Mask mask, const Tensor& gain,
                   const Tensor& bias, Pass& pass) const;

 private:
  ops::Statistics from(Index first_position, ops::NormView view) const;
  StatisticsDistance distance_to(const ops::Statistics& batch) const;
  void update(const ops::Statistics& batch, const Shape& s, Mask mask) const;

  std::string path_;
  Running running_;
  double eps_, momentum_;
  Index warmup_steps_;
  Tensor mean_, variance_;       // [C], or [T, C] of the context; of power the mean square, and no mean
  Tensor projection_, updates_;  // of power: [C], [1]
};

}  // namespace NORMLAB_REAL
}  // namespace normlab
