// Embedding and cross-entropy: the two ends of the model, where tokens meet vectors.
#include <algorithm>
#include <cmath>

#include "normlab/base/parallel.h"
#include "normlab/kernels/simd.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {
namespace {

using Tokens = std::span<const std::int32_t>;

// For each channel range (a thread's own) and each real row in order: row_of(row) of the table += dx of that row.
template <class F>
void scatter_rows(EmbeddingShape s, Mask mask, In dx, Grad table, const F& row_of) {
  if (!table) return;
  const Index C = s.channels, rows = s.batch * s.time, table_rows = static_cast<Index>(table.values.size()) / C;
  const Index blocks = (C + kLanes - 1) / kLanes;
  parallel_ranges(blocks, (rows + table_rows) * kLanes, [&](Index first, Index last) {
    const Index begin = first * kLanes, end = std::min(C, last * kLanes);
    if (!table.add)
      for (Index row = 0; row < table_rows; ++row)
        std::fill_n(table.values.data() + row * C + begin, end - begin, Real(0));
    for (Index row = 0; row < rows; ++row) {
      if (!is_real(mask, row)) continue;
      Real* target = table.values.data() + row_of(row) * C;
      const Real* source = dx.data() + row * C;
      for_lanes(begin, end, [&](Index i, auto n) { store(target + i, load(target + i, n) + load(source + i, n), n); });
    }
  });
}

// The largest of a row, and ln of the sum of exp(x - largest): two walks while the row is in the cache.
struct LogSum {
  Real largest, rest;
};
LogSum log_sum_exp(Index vocab, const Real* x) {
  const Real lowest = -std::numeric_limits<Real>::infinity();
  Lanes highest = broadcast(lowest);
  for_lanes(0, vocab, [&](Index i, auto n) {
    const Lanes value = load(x + i, n);
    highest = larger(highest, lane_numbers() < static_cast<LaneInt>(n) ? value : broadcast(lowest));
  });
  const Real top = max(highest);
  Lanes total{};
  for_lanes(0, vocab, [&](Index i, auto n) { total += first_lanes(exp(load(x + i, n) - top), n); });
  return {top, std::log(sum(total))};
}

}  // namespace

void embedding_forward(EmbeddingShape s, Tokens tokens, Mask mask, In table, In position, Out x) {
  const Index C = s.channels;
  parallel_for(s.batch * s.time, C, [&](Index row) {
    Real* out = x.data() + row * C;
    if (!is_real(mask, row)) {
      std::fill_n(out, C, Real(0));
      return;
    }
    const Real* word = table.data() + tokens[static_cast<std::size_t>(row)] * C;
    if (position.empty()) {
      std::copy_n(word, C, out);
      return;
    }
    const Real* place = position.data() + (s.first + row % s.time) * C;
    for_lanes(0, C, [&](Index i, auto n) { store(out + i, load(word + i, n) + load(place + i, n), n); });
  });
}

void embedding_backward(EmbeddingShape s, Tokens tokens, Mask mask, In dx, Grad dtable, Grad dposition) {
  scatter_rows(s, mask, dx, dtable, [&](Index row) { return Index{tokens[static_cast<std::size_t>(row)]}; });
  scatter_rows(s, mask, dx, dposition, [&](Index row) { return s.first + row % s.time; });
}

void cross_entropy_forward(Index vocab, In logits, Tokens targets, Out row_loss, Out log_sum) {
  parallel_for(static_cast<Index>(targets.size()), 16 * vocab, [&](Index row) {
    const std::size_t at = static_cast<std::size_t>(row);
    const Real* x = logits.data() + row * vocab;
    const LogSum sum = log_sum_exp(vocab, x);
    log_sum[at] = sum.largest + sum.rest;
    row_loss[at] = targets[at] == kIgnore ? Real(0) : sum.largest - x[targets[at]] + sum.rest;
  });
}

void cross_entropy_backward(Index vocab, In logits, Tokens targets, In log_sum, In drow_loss, Grad dlogits) {
  if (!dlogits) return;
  parallel_for(static_cast<Index>(targets.size()), 16 * vocab, [&](Index row) {
    const std::size_t at = static_cast<std::size_t>(row);
    const Index begin = row * vocab;
    if (targets[at] == kIgnore) {
      if (!dlogits.add) std::fill_n(dlogits.values.data() + begin, vocab, Real(0));
      return;
    }
    for_lanes(begin, begin + vocab, [&](Index i, auto n) {
      put(dlogits, i, drow_loss[at] * exp(load(logits.data() + i, n) - log_sum[at]), n);
    });
    dlogits.values[static_cast<std::size_t>(begin + targets[at])] -= drow_loss[at];
  });
}

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
