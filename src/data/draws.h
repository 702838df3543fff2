// Which windows of the training part a batch takes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "normlab/data/dataset.h"

namespace normlab {

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
