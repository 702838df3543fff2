// Parts of a batch.
#include "normlab/nn/batch.h"

#include <type_traits>

namespace normlab {

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
