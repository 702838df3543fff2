// Counting targets, and parts of a batch.
#include "normlab/nn/batch.h"

#include <algorithm>
#include <type_traits>

namespace normlab {

Index Batch::target_count() const {
  return std::ranges::count_if(targets, [](std::int32_t target) { return target != kIgnore; });
}

Batch rows_of(const Batch& batch, Index begin, Index count) {
  const auto part = [&](const auto& values) {
    if (values.empty()) return values;
    const auto from = values.begin() + begin * batch.time;
    return std::remove_cvref_t<decltype(values)>(from, from + count * batch.time);
  };
  return {count,
          batch.time,
          part(batch.tokens),
          part(batch.targets),
          part(batch.valid),
          std::vector<Index>(batch.starts.begin() + begin, batch.starts.begin() + begin + count)};
}

}  // namespace normlab
