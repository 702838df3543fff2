// Which windows of the training part a batch takes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "normlab/base/real.h"
#include "normlab/data/data_config.h"

namespace normlab {

// `targets` tokens to predict, the first of them from the token at `start`: tokens start .. start + targets.
struct Window {
  Index start, targets;
};

// Tokens begin .. end of a part: the text, or its ROT13, which follows it.
struct Domain {
  Index begin = 0, end = 0;
  std::vector<Window>
      documents;            // for `lines`: their windows, the first of a document from the newline before its line
  Index in_long_lines = 0;  // of these windows: in documents of several
};

// ConfigError for settings of data.* that do not fit one another or the context, DataError for a text that is shorter
// than they need. `name` is what messages call the text.
void check_draws(const DataConfig& config, Index context_length, const Domain& text, std::string_view name);

// The windows of micro-batch m of step s, of one or two domains; row r is a function of (seed, s, m, r) alone.
struct BatchPlace {
  std::uint64_t seed;
  Index step, micro_batch;
};
std::vector<Window> draw_windows(const DataConfig& config, Index context_length, std::span<const Domain> domains,
                                 BatchPlace place, Index rows);

}  // namespace normlab
