// The settings of the model, as in the `model` section of a configuration.
#pragma once

#include <cstdint>
#include <optional>

#include "normlab/config/fields.h"

namespace normlab {

enum class NormKind { layer, rms, batch, none };
enum class Placement { pre, post, none };
enum class Position { learned, sinusoidal, rope };
enum class MlpActivation { gelu, gelu_tanh, relu, swiglu };
enum class Initialisation { gpt2, xavier };

struct ModelConfig : config::Fields {
  FIELD(std::int64_t, n_layers, 4, config::between(1, 10000), "number of blocks, each attention and an MLP")
  FIELD(std::int64_t, n_heads, 4, config::between(1, 1000000), "attention heads; divides d_model")
  FIELD(std::int64_t, d_model, 128, config::between(1, 1000000), "channels of the residual stream")
  FIELD(std::optional<std::int64_t>, d_ff, std::nullopt, config::between(1, 1000000),
        "width of the MLP; 4 x d_model by default")
  FIELD(std::int64_t, context_length, 64, config::between(1, 1000000), "tokens that the model sees at once")
  FIELD(NormKind, norm, NormKind::layer, config::any_value, "the norm, wherever the placement has one")
  FIELD(Placement, placement, Placement::pre, config::any_value,
        "where the norms n are: pre x + f(n(x)), post n(x + f(x)), none x + f(x)")
  FIELD(double, norm_eps, 1e-5, config::above(0), "added to the variance, inside the root")
  FIELD(double, norm_momentum, 0.1, config::between(0, 1),
        "batch: running <- (1 - momentum) running + momentum batch, as PyTorch")
  FIELD(double, norm_gain, 1.0, config::any_value, "initial gain of the norms")
  FIELD(MlpActivation, activation, MlpActivation::gelu, config::any_value,
        "of the MLP; gelu is the exact one, swiglu has a gate")
  FIELD(Position, position, Position::learned, config::any_value, "how the model knows where a token stands")
  FIELD(double, rope_base, 10000.0, config::above(0),
        "rope: pair i of a head turns by position x base^(-2 i / head size)")
  FIELD(bool, bias, true, config::any_value, "bias in linear layers and in the norms that have one, never in the head")
  FIELD(bool, tie_embeddings, true, config::any_value, "the head uses the token embedding's matrix")
  FIELD(double, dropout, 0.0, config::from_below(0, 1),
        "after the embedding sum, on attention weights, on both sublayer outputs")
  FIELD(Initialisation, init, Initialisation::gpt2, config::any_value,
        "gpt2: N(0, 0.02^2), residual outputs / sqrt(2 n_layers); xavier: N(0, 2 / (fan_in + fan_out))")
  FIELD(std::optional<double>, embed_std, std::nullopt, config::at_least(0),
        "standard deviation of the embeddings; 0.02 for gpt2, 1 for xavier by default")

  // Fills in the defaults that depend on other keys; then refuses what does not fit together (ConfigError).
  void resolve();
};

}  // namespace normlab
