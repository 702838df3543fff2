// The table of norms: what each reduces over, whether it centres, what it learns and what it carries along; what that
// lets a position see; and where a block has norms.
#pragma once

#include <string>

#include "normlab/nn/model_config.h"

namespace normlab {

// The elements of x [B, T, C] that one statistic is taken over.
enum class Reduce { nothing, channels, channel_group, time, time_and_channels, batch, batch_and_time };
// What becomes of x before gain and bias: nothing, (x - mean) / deviation, x / length, PowerNorm's own way,
// tanh, or x over a number that stays.
enum class Method { identity, deviation, length, power, tanh, fixed };
enum class Gain { none, scalar, per_channel };
// What training carries along for evaluation: one value a channel, or one a position and channel.
enum class Running { none, per_channel, per_position };

struct NormSpec {
  Reduce reduce;
  Method method;
  bool centred;  // subtracts the mean
  Gain gain;
  bool bias;
  Running running;
};

// Ba et al. 2016 (layer), Zhang & Sennrich 2019 (rms), Nguyen & Salazar 2019 (scale), Wu & He 2018 (group), Ulyanov et
// al. 2016 (instance), Ioffe & Szegedy 2015 (batch), Shen et al. 2020 (power), Zhu et al. 2025 (dyt). layer_seq is
// LayerNorm over [T, C], batch_step BatchNorm a position at a time. fixed: a norm taken out of a trained model
// (Heimersheim 2024).
constexpr NormSpec spec_of(NormKind kind) {
  using enum Reduce;
  using enum Method;
  switch (kind) {
    case NormKind::layer:
      return {channels, deviation, true, Gain::per_channel, true, Running::none};
    case NormKind::rms:
      return {channels, deviation, false, Gain::per_channel, false, Running::none};
    case NormKind::scale:
      return {channels, length, false, Gain::scalar, false, Running::none};
    case NormKind::group:
      return {channel_group, deviation, true, Gain::per_channel, true, Running::none};
    case NormKind::instance:
      return {time, deviation, true, Gain::per_channel, true, Running::none};
    case NormKind::layer_seq:
      return {time_and_channels, deviation, true, Gain::per_channel, true, Running::none};
    case NormKind::batch:
      return {batch_and_time, deviation, true, Gain::per_channel, true, Running::per_channel};
    case NormKind::batch_step:
      return {batch, deviation, true, Gain::per_channel, true, Running::per_position};
    case NormKind::power:
      return {batch_and_time, power, false, Gain::per_channel, true, Running::per_channel};
    case NormKind::dyt:
      return {nothing, tanh, false, Gain::per_channel, true, Running::none};
    case NormKind::fixed:
      return {nothing, Method::fixed, false, Gain::per_channel, true, Running::none};
    case NormKind::none:
      return {nothing, identity, false, Gain::none, false, Running::none};
  }
  __builtin_unreachable();
}

// What a position's normalised value depends on besides the position itself.
struct Sight {
  bool later_positions = false, other_samples = false;
  explicit operator bool() const { return later_positions || other_samples; }
};
constexpr Sight sight_in_training(NormSpec spec) {  // power: during its warm-up alone
  const bool over_time =
      spec.reduce == Reduce::time || spec.reduce == Reduce::time_and_channels || spec.reduce == Reduce::batch_and_time;
  return {over_time, spec.reduce == Reduce::batch || spec.reduce == Reduce::batch_and_time};
}
// Running statistics see nobody.
constexpr Sight sight_in_evaluation(NormSpec spec) {
  return spec.running == Running::none ? sight_in_training(spec) : Sight{};
}

// Which places around a sublayer, and before the head, have a norm.
struct NormSlots {
  bool before_branch = false, after_branch = false, after_residual = false, before_head = false;
};
// Ba et al. 2016 and Vaswani et al. 2017 (post), Radford et al. 2019 (pre), Ding et al. 2021 (sandwich), Liu et al.
// 2022 (res_post), Wang et al. 2022 (deepnorm).
constexpr NormSlots slots_of(Placement placement) {
  switch (placement) {
    case Placement::pre:
      return {.before_branch = true, .before_head = true};
    case Placement::post:
    case Placement::deepnorm:
      return {.after_residual = true};
    case Placement::sandwich:
      return {.before_branch = true, .after_branch = true, .before_head = true};
    case Placement::res_post:
      return {.after_branch = true, .before_head = true};
    case Placement::none:
      return {};
  }
  __builtin_unreachable();
}
// Those of the model: none without a norm to put there.
constexpr NormSlots slots_of(const ModelConfig& config) {
  return config.norm == NormKind::none ? NormSlots{} : slots_of(config.placement);
}

// The norm that the model really has: none where the placement has no place for it.
constexpr NormKind norm_of(const ModelConfig& config) {
  return config.placement == Placement::none ? NormKind::none : config.norm;
}

// What a sublayer f does to the stream x, as "x + f(layer(x))".
std::string equation_of(const ModelConfig& model);

}  // namespace normlab
