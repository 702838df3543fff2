// A line of metrics.jsonl or timing.jsonl in tidy form: one number at a time, with what it measures and of what.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/formats/json.h"

namespace normlab {

struct Figure {
  std::int64_t step = 0;
  std::optional<std::int64_t> layer;  // of what belongs to a block
  // Of what: the line's kind (train, eval, layers, ...; timing without one); `block` for a figure of each block; the
  // name of a parameter or norm, within its block: attn.qkv.weight.
  std::string part;
  std::string measure;    // loss, grad_norm, residual_rms, ...
  bool of_model = false;  // whether `part` is in the model, and no kind of line
  double value = 0;       // NaN where the line says that it is not finite
};

// A line of a log, of which `place` is the file and the line. DataError unless it is an object with a step, and a text
// where it has a kind.
Json parse_log_line(std::string_view line, const std::string& place);

// Figures that are unknown (null) are left out.
std::vector<Figure> figures_of(const Json& line);

}  // namespace normlab
