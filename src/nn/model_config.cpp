// Defaults of the model's settings that depend on one another, and what does not fit together.
#include "normlab/nn/model_config.h"

#include <cmath>

#include "normlab/base/check.h"

namespace normlab {
namespace {

// Pairs of norm and placement that mean nothing, and why.
void check_placement(const ModelConfig& config) {
  const auto norm = config::to_string(config.norm), placement = config::to_string(config.placement);
  if (config.norm == NormKind::none && config.placement == Placement::deepnorm)
    throw ConfigError(
        "model.norm: none does not go with model.placement deepnorm, which multiplies the residual stream by "
        "(2 n_layers)^(1/4) at each sublayer and needs a norm to undo it; choose a norm, or the placement none");
  if (config.norm == NormKind::none &&
      (config.placement == Placement::sandwich || config.placement == Placement::res_post))
    throw ConfigError(text("model.norm: none leaves nothing of model.placement ", placement,
                           ", which is about where the norms of a sublayer's output are; choose the placement none"));
  // layer is the default, which who asks for no placement may have left alone.
  if (config.placement == Placement::none && config.norm != NormKind::none && config.norm != NormKind::layer)
    throw ConfigError(
        text("model.placement: none has no place for model.norm ", norm, "; choose a placement, or the norm none"));
}

}  // namespace

void ModelConfig::resolve() {
  if (!d_ff) d_ff = 4 * d_model;
  if (!embed_std) embed_std = init == Initialisation::xavier ? 1.0 : 0.02;
  check<ConfigError>(d_model % n_heads == 0, "model.n_heads: ", n_heads, " does not divide model.d_model, ", d_model,
                     "; each head has d_model / n_heads channels");
  check<ConfigError>(static_cast<float>(dropout) < 1, "model.dropout: ", dropout, " is 1 in float; give less");
  check<ConfigError>(position != Position::rope || d_model / n_heads % 2 == 0,
                     "model.position: rope needs an even number of channels a head; model.d_model / model.n_heads is ",
                     d_model / n_heads, "; change one of them, or take model.position=learned");
  check<ConfigError>(norm != NormKind::group || d_model % norm_groups == 0, "model.norm_groups: ", norm_groups,
                     " does not divide model.d_model, ", d_model, "; each group has d_model / norm_groups channels");
  check<ConfigError>(norm != NormKind::fixed || from,
                     "model.norm: fixed divides by the deviation that a trained model has; name one by model.from");
  check_placement(*this);
  check<ConfigError>(position != Position::sinusoidal || d_model % 2 == 0,
                     "model.position: sinusoidal needs an even model.d_model, got ", d_model,
                     "; change it, or take model.position=learned");
}

double ModelConfig::residual_scale() const {
  return placement == Placement::deepnorm ? std::pow(2.0 * static_cast<double>(n_layers), 0.25) : 1;
}

double ModelConfig::branch_gain() const {
  return placement == Placement::deepnorm ? std::pow(8.0 * static_cast<double>(n_layers), -0.25) : 1;
}

}  // namespace normlab
