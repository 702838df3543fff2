// A norm in the model.
#pragma once

#include <optional>

#include "normlab/nn/norm_spec.h"
#include "normlab/nn/running.h"

namespace normlab {
inline namespace NORMLAB_REAL {

// x [B, T, C] as groups of elements that share a statistic; `groups`: of the channels, for Reduce::channel_group.
ops::NormView view_of(Reduce reduce, Index groups, const Shape& x);

class Norm {
 public:
  Norm(const Scope& scope, const ModelConfig& config);
  Tensor forward(const Tensor& x, Pass& pass) const;  // [B, T, C] -> [B, T, C]

 private:
  Tensor by_constant(const Tensor& x) const;

  std::string path_;
  NormSpec spec_;
  ops::NormRule rule_;
  Index groups_;
  bool counts_padding_;
  Tensor gain_, bias_;
  Tensor alpha_;      // [1], of dyt
  Tensor deviation_;  // [1], of fixed
  std::optional<RunningStatistics> running_;
};

// A norm where there is a slot for one.
std::optional<Norm> norm_in(bool slot, const Scope& scope, const ModelConfig& config);

}  // namespace NORMLAB_REAL
}  // namespace normlab
