// The norms: what each reduces over, whether it centres, and what it learns; and where a block has them.
#pragma once

#include <optional>

#include "normlab/nn/model_config.h"
#include "normlab/nn/pass.h"
#include "normlab/ops/ops.h"
#include "normlab/tensor/parameters.h"

namespace normlab {

enum class Reduce { nothing, channel, batch_and_time };
enum class Gain { none, per_channel };

struct NormSpec {
  Reduce reduce;  // the axes of [B, T, C] that one mean is taken over
  bool centred;   // subtracts the mean, and has a bias
  Gain gain;
  bool running;  // keeps running averages, which evaluation uses
};

// claims: layer Ba et al. 2016; rms Zhang & Sennrich 2019; batch Ioffe & Szegedy 2015.
constexpr NormSpec spec_of(NormKind kind) {
  switch (kind) {
    case NormKind::layer:
      return {Reduce::channel, true, Gain::per_channel, false};
    case NormKind::rms:
      return {Reduce::channel, false, Gain::per_channel, false};
    case NormKind::batch:
      return {Reduce::batch_and_time, true, Gain::per_channel, true};
    case NormKind::none:
      return {Reduce::nothing, false, Gain::none, false};
  }
  __builtin_unreachable();
}

// Which places around a sublayer, and before the head, have a norm.
struct NormSlots {
  bool before_branch = false, after_residual = false, before_head = false;
};
constexpr NormSlots slots_of(Placement placement) {
  switch (placement) {
    case Placement::pre:
      return {.before_branch = true, .before_head = true};
    case Placement::post:
      return {.after_residual = true};
    case Placement::none:
      return {};
  }
  __builtin_unreachable();
}

}  // namespace normlab

namespace normlab::inline NORMLAB_REAL {

class Norm {
 public:
  Norm(const Scope& scope, const ModelConfig& config);
  Tensor forward(const Tensor& x, Pass& pass) const;  // [B, T, C] -> [B, T, C]

 private:
  void update_running(const ops::Statistics& batch, Index real_rows) const;

  std::string path_;
  NormSpec spec_;
  double eps_, momentum_;
  Tensor gain_, bias_;
  Tensor running_mean_, running_var_;
};

// A norm where the slot has one and the kind is not `none`.
std::optional<Norm> norm_in(bool slot, const Scope& scope, const ModelConfig& config);

}  // namespace normlab::inline NORMLAB_REAL
