// A line of metrics.jsonl or timing.jsonl in tidy form: one number at a time, with what it measures and of what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "normlab/formats/json.h"

namespace normlab {

struct Figure {
  std::int64_t step = 0;
  std::optional<std::int64_t> layer;  // of what belongs to a block
  // Of what: the line's kind (train, eval, layers, ...; timing without one); `block` for a figure of each block; the
  // name of a parameter or norm, within its block: attn.qkv.weight.
  std::string part;
  std::string measure;  // loss, grad_norm, residual_rms, ...
  double value = 0;     // NaN where the line says that it is not finite
};

// Figures that are unknown (null), and what lies deeper than in a list or under names, are left out.
std::vector<Figure> figures_of(const Json& line);

}  // namespace normlab
