// The settings of the model, as in the `model` section of a configuration.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "normlab/config/fields.h"

namespace normlab {

enum class NormKind { layer, rms, scale, group, instance, layer_seq, batch, batch_step, power, dyt, none, fixed };
enum class Placement { pre, post, sandwich, res_post, deepnorm, none };
enum class NormPadding { ignore, count };
enum class Position { learned, sinusoidal, rope };
enum class MlpActivation { gelu, gelu_tanh, relu, swiglu };
enum class Initialisation { gpt2, xavier };

struct ModelConfig : config::Fields {
  FIELD(std::optional<std::string>, from, std::nullopt, config::any_value,
        "weights to start from: a checkpoint of this program, a run directory, which means its last one, or a Hugging "
        "Face folder (GPT-2, Llama); norms and dropout may differ")
  FIELD(std::int64_t, n_layers, 4, config::between(1, 10000), "number of blocks, each attention and an MLP")
  FIELD(std::int64_t, n_heads, 4, config::between(1, 1000000), "attention heads; divides d_model")
  FIELD(std::int64_t, d_model, 128, config::between(1, 1000000), "channels of the residual stream")
  FIELD(std::optional<std::int64_t>, d_ff, std::nullopt, config::between(1, 1000000),
        "width of the MLP; 4 x d_model by default")
  FIELD(std::int64_t, context_length, 64, config::between(1, 1000000), "tokens that the model sees at once")
  FIELD(NormKind, norm, NormKind::layer, config::any_value,
        "the norm, wherever the placement has one; fixed: gain x / s + bias, s the mean deviation that model.from's "
        "tokens have there")
  FIELD(
      Placement, placement, Placement::pre, config::any_value,
      "where the norms n are: pre x + f(n(x)), post n(x + f(x)), sandwich x + n(f(n(x))), res_post x + n(f(x)), "
      "deepnorm n(a x + f(x)) with a = (2 n_layers)^(1/4), none x + f(x); pre, sandwich and res_post have a final norm")
  FIELD(double, norm_eps, 1e-5, config::between(1e-37, 1e30),
        "added to the variance, inside the root; scale: the least length to divide by")
  FIELD(double, norm_momentum, 0.1, config::between(0, 1),
        "batch, batch_step, power: running <- (1 - momentum) running + momentum batch, as PyTorch")
  FIELD(std::int64_t, norm_groups, 4, config::between(1, 1000000),
        "group: number of groups of channels of one token; divides d_model")
  FIELD(std::int64_t, norm_warmup_steps, 100, config::between(0, 1000000000),
        "power: training passes that use the batch's own mean square, before the running one takes over")
  FIELD(NormPadding, norm_padding, NormPadding::ignore, config::any_value,
        "whether padded positions enter the statistics of norms that look at other positions")
  FIELD(bool, norm_sync, false, config::any_value,
        "whether the shards of a micro-batch (train.shards) share batch statistics: SyncBN")
  FIELD(double, norm_gain, 1.0, config::between(-3e38, 3e38),
        "initial gain of the norms; scale begins at sqrt(d_model) times it")
  FIELD(MlpActivation, activation, MlpActivation::gelu, config::any_value,
        "of the MLP; gelu is the exact one, swiglu has a gate")
  FIELD(Position, position, Position::learned, config::any_value, "how the model knows where a token stands")
  FIELD(double, rope_base, 10000.0, config::between(1e-37, 1e30),
        "rope: pair i of a head turns by position x base^(-2 i / head size)")
  FIELD(bool, bias, true, config::any_value, "bias in linear layers and in the norms that have one, never in the head")
  FIELD(bool, tie_embeddings, true, config::any_value, "the head uses the token embedding's matrix")
  FIELD(double, dropout, 0.0, config::from_below(0, 1),
        "after the embedding sum, on attention weights, on both sublayer outputs")
  FIELD(Initialisation, init, Initialisation::gpt2, config::any_value,
        "gpt2: N(0, 0.02^2), residual outputs / sqrt(2 n_layers); xavier: N(0, 2 / (fan_in + fan_out))")
  FIELD(std::optional<double>, embed_std, std::nullopt, config::between(0, 1e30),
        "standard deviation of the embeddings; 0.02 for gpt2, 1 for xavier by default")

  // Fills in the defaults that depend on other keys; then refuses what does not fit together (ConfigError).
  void resolve();

  // DeepNorm (Wang et al. 2022, a decoder alone): x is multiplied by (2L)^(1/4) before f(x) is added, and the matrices
  // of the MLP and of attention's value and output begin (8L)^(1/4) times smaller. Both 1 for the other placements.
  double residual_scale() const;
  double branch_gain() const;
};

}  // namespace normlab
