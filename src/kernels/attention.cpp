// Causal softmax attention without a matrix of scores (Dao et al. 2022): a block of queries meets the keys block by
// block, with a running maximum and sum.
//
// A lane is a query until the weights are known, so that the softmax needs nothing across lanes, and a query's numbers
// are the same in whichever lane, block or company it is computed. Weights lie as [key][query]; y as [query][D].
#include "attention_blocks.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {
namespace {

using Queries = QueryBlock<2>;
constexpr Index kWidth = Queries::kWidth;

struct RunningSums {
  Lanes highest = broadcast(-std::numeric_limits<Real>::infinity());
  Lanes total{};  // the sum of 2^(score - highest)
};

// Scores of keys j .. j + keys - 1 of one vector of queries become 2^(score - highest), hidden ones 0, and enter the
// running softmax. Returns what earlier sums must be multiplied by.
Lanes exponentiate(LaneInts queries, Index j, Index keys, Real* scores, RunningSums& running) {
  const Lanes before = running.highest;
  Lanes highest = before, total{};
  Index k = 0;
  for (; k < keys && j + k <= queries[0]; ++k) highest = larger(load(scores + k * kWidth), highest);
  for (; k < keys; ++k) {
    const Lanes score = load(scores + k * kWidth);
    const Lanes seen =
        queries >= static_cast<LaneInt>(j + k) ? score : broadcast(-std::numeric_limits<Real>::infinity());
    store(scores + k * kWidth, seen);
    highest = larger(seen, highest);
  }
  const Lanes rescale = exp2(before - highest);
  total = running.total * rescale;
  for (k = 0; k < keys; ++k) {
    const Lanes weight = exp2(load(scores + k * kWidth) - highest);
    total += weight;
    store(scores + k * kWidth, weight);
  }
  running = {highest, total};
  return rescale;
}

void drop_weights(const Head& head, Index first, Index j, Index keys, Dropout drop, Real* weights) {
  const DropoutFactor dropout(drop);
  const Index element = first_weight(head, first) + j;
  for (Index k = 0; k < keys; ++k)
    store(weights + k * kWidth, load(weights + k * kWidth) * dropout(element + k, head.shape.time));
}

struct ForwardScratch {
  explicit ForwardScratch(Index head_dim)
      : memory((2 * kWidth + kKeys) * whole_vectors(head_dim) + kKeys * kWidth),
        scores(memory.take(kKeys * kWidth)),
        q(memory.take(head_dim * kWidth)),
        y(memory.take(kWidth * whole_vectors(head_dim))),
        v(memory.take(kKeys * whole_vectors(head_dim))) {}
  Scratch memory;
  Real *scores, *q, *y, *v;  // [key][query], [D][query], [query][D in vectors], [key][D in vectors]
};

// Asks for rows that the arithmetic will meet soon: the processor does not foresee a step from row to row.
template <class Size>
void prefetch(Size head_dim, Rows rows, Index count) {
  constexpr Index kLine = 64 / static_cast<Index>(sizeof(Real));
  for (Index i = 0; i < count; ++i)
    for (Index d = 0; d < head_dim; d += kLine) __builtin_prefetch(rows.at + i * rows.step + d, 0, 2);
}
// Rows first .. first + count - 1 of q, k and v of the head after this one.
template <class Size>
void prefetch_next(Size head_dim, const Head& head, In qkv, Index first, Index count) {
  if (head.index + 1 == head.shape.batch * head.shape.heads) return;
  const Head next(head.shape, qkv, head.index + 1);
  for (const Real* rows : {next.q, next.k, next.v})
    prefetch(head_dim, {rows + first * next.stride, next.stride}, count);
}

// A number for each query.
struct PerQuery {
  alignas(kVectorBytes) Real of[kWidth];
};

// y times factor, row by row.
template <class Width>
void scale_rows(Width width, Index rows, const PerQuery& factor, Real* y) {
  for (Index i = 0; i < rows; ++i)
    for (Index d = 0; d < width; d += kLanes) store(y + i * width + d, factor.of[i] * load(y + i * width + d));
}

template <class Size>
void forward_block(Size head_dim, In qkv, const Head& head, Queries queries, Dropout drop, ForwardScratch& s, Out y,
                   Out log_sum) {
  const auto width = whole_vectors(head_dim);
  to_lanes(head_dim, {head.q + queries.first * head.stride, head.stride}, queries.count, score_scale(head.shape), s.q,
           kWidth);
  prefetch_next(head_dim, head, qkv, queries.first, queries.count);
  RunningSums running[2];
  for (Index j = 0; j < queries.end(); j += kKeys) {
    const Index keys = std::min(kKeys, queries.end() - j);
    const Rows k{head.k + j * head.stride, head.stride}, v{head.v + j * head.stride, head.stride};
    products_with_keys(head_dim, queries, j, keys, k, s.q, s.scores);
    PerQuery rescale;
    for (Index vector = 0; vector < queries.vectors(); ++vector) {
      Real* const scores = s.scores + vector * kLanes;
      const Index seen = queries.visible(vector, j, keys);
      store(rescale.of + vector * kLanes, exponentiate(queries.positions(vector), j, seen, scores, running[vector]));
      if (drop.p > 0) drop_weights(head, queries.first + vector * kLanes, j, seen, drop, scores);
    }
    if (j > 0) scale_rows(width, queries.count, rescale, s.y);
    const auto visible = [&](Index i, Index rows) {
      return Span{0, std::clamp(queries.first + i + rows - j, Index{0}, keys)};
    };
    const Rows values = in_vectors(head_dim, v, keys, s.v);
    wide_product(width, queries.count, visible, {s.scores, 1, kWidth}, values, {s.y, width, j > 0});
  }
  PerQuery inverse;
  for (Index v = 0; v < queries.vectors(); ++v) store(inverse.of + v * kLanes, 1 / running[v].total);
  Real* const out = y.data() + head.output(queries.first);
  const Index step = head.shape.heads * head.shape.head_dim;
  for (Index i = 0; i < queries.count; ++i)
    for_lanes(0, head_dim,
              [&](Index d, auto n) { store(out + i * step + d, inverse.of[i] * load(s.y + i * width + d), n); });
  if (log_sum.empty()) return;
  Real* const sums = log_sum.data() + head.index * head.shape.time + queries.first;
  for_lanes(0, queries.count, [&](Index i, auto n) {
    const RunningSums& r = running[i / kLanes];
    store(sums + i, r.highest + static_cast<Real>(kLog2e) * log(r.total), n);
  });
}

}  // namespace

void attention_forward(AttentionShape s, Dropout drop, In qkv, Out y, Out log_sum) {
  const Index queries = s.time - s.first, blocks = (queries + kWidth - 1) / kWidth;
  const Index cost = kWidth * (s.first + s.time) / 2 * s.head_dim / 4;
  with_head_dim(s.head_dim, [&](auto head_dim) {
    parallel_ranges(s.batch * s.heads * blocks, cost, [&](Index begin, Index end) {
      ForwardScratch scratch(head_dim);
      for (Index item = begin; item < end; ++item) {
        // The last block sees the most keys, and is paired with the first, so that parts are alike.
        const Index place = item % blocks, block = place % 2 == 0 ? place / 2 : blocks - 1 - place / 2;
        const Index first = s.first + block * kWidth;
        forward_block(head_dim, qkv, Head(s, qkv, item / blocks), {first, std::min(kWidth, s.time - first)}, drop,
                      scratch, y, log_sum);
      }
    });
  });
}

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
