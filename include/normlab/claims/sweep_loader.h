// A sweep read from its file.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "normlab/claims/sweep_file.h"

namespace normlab {

// The `id` of a sweep's file, or nothing.
std::string sweep_id(const std::string& path);

// Overrides change the base of every point; one of a key that a grid varies is refused. `seeds` replaces the file's by
// the first N of it, or goes on counting. ConfigError with file, line and column for whatever is wrong.
Sweep load_sweep(const std::string& path, std::span<const std::string> overrides,
                 std::optional<std::int64_t> seeds = std::nullopt);

}  // namespace normlab
