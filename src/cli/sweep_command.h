// What sweep and reproduce share.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "normlab/claims/sweep.h"

namespace normlab::cli {

// The overrides of a command, with run.dir apart: it is the directory of the sweep, not of its runs.
struct SweepWords {
  std::optional<std::string> directory;
  std::vector<std::string> overrides;
};
SweepWords sweep_words(const Words& words);

SweepResult run_in(SweepDirectory& directory, const Words& words, Terminal& terminal);

}  // namespace normlab::cli
