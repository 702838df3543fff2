// Defaults of the model's settings that depend on one another, and what does not fit together.
#include "normlab/nn/model_config.h"

#include "normlab/base/check.h"

namespace normlab {

void ModelConfig::resolve() {
  if (!d_ff) d_ff = 4 * d_model;
  if (!embed_std) embed_std = init == Initialisation::xavier ? 1.0 : 0.02;
  check<ConfigError>(d_model % n_heads == 0, "model.n_heads: ", n_heads, " does not divide model.d_model, ", d_model,
                     "; each head has d_model / n_heads channels");
  check<ConfigError>(static_cast<float>(dropout) < 1, "model.dropout: ", dropout, " is 1 in float; give less");
  check<ConfigError>(position != Position::rope || d_model / n_heads % 2 == 0,
                     "model.position: rope needs an even number of channels a head; model.d_model / model.n_heads is ",
                     d_model / n_heads);
  check<ConfigError>(position != Position::sinusoidal || d_model % 2 == 0,
                     "model.position: sinusoidal needs an even model.d_model, got ", d_model);
}

}  // namespace normlab
