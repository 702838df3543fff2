// What a model is trained and evaluated on: rows of tokens.
#pragma once

#include <cstdint>
#include <vector>

#include "normlab/base/real.h"

namespace normlab {

// The target of a position without one: padding.
inline constexpr std::int32_t kIgnore = -100;

// Rows of tokens and, for each, the token that follows. Row-major [rows, time].
struct Batch {
  Index rows = 0, time = 0;
  std::vector<std::int32_t> tokens;   // padding is id 0, on the right
  std::vector<std::int32_t> targets;  // kIgnore where padded
  std::vector<std::uint8_t> valid;    // 1 where a position is real, 0 where padded; empty when all are real
  std::vector<Index> starts;          // of each row: its first token's place in its part of the data

  Index target_count() const;  // without those that are kIgnore
};

// Rows begin .. begin + count.
Batch rows_of(const Batch& batch, Index begin, Index count);

}  // namespace normlab
