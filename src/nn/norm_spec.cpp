// The equation of a sublayer, composed from its slots.
#include "normlab/nn/norm_spec.h"

#include "normlab/base/text.h"

namespace normlab {

std::string equation_of(const ModelConfig& model) {
  const NormSlots slots = slots_of(model);
  const auto normed = [&](bool slot, std::string x) {
    return slot ? text(config::to_string(model.norm), '(', x, ')') : x;
  };
  const std::string branch = normed(slots.after_branch, text("f(", normed(slots.before_branch, "x"), ')'));
  const std::string scale = model.residual_scale() == 1 ? "" : fixed(model.residual_scale(), 3) + ' ';
  return normed(slots.after_residual, text(scale, "x + ", branch));
}

}  // namespace normlab
