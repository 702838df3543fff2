// Causal softmax attention without a matrix of scores (Dao et al. 2022): a block of queries meets the keys block by
// block, with a running maximum and sum; the backward computes the weights again from the saved log-sums.
//
// A block of queries is one vector: lane l holds query first + l, so that the softmax needs nothing across lanes, and a
// query's numbers are the same in whichever lane, block or company it is computed. Scores lie as [key][lane].
#include <algorithm>
#include <cmath>
#include <vector>

#include "normlab/base/parallel.h"
#include "normlab/kernels/dropout.h"

namespace normlab::inline NORMLAB_REAL::kernels {
namespace {

constexpr Index kKeyBlock = 64;  // keys whose scores are held at once; blocks start at multiples of it

// Memory for vectors, aligned to them.
class Vectors {
 public:
  explicit Vectors(Index count) : memory_(static_cast<std::size_t>(count)) {}
  Real* data() { return memory_.empty() ? nullptr : memory_[0].lanes; }

 private:
  struct alignas(kVectorBytes) Vector {
    Real lanes[kLanes] = {};
  };
  std::vector<Vector> memory_;
};

// ---- c[m] (+)= sum over k of left(m, k) a[k], with vectors a[k] and c[m] -------------------------------------------
// left(m, k) = left[m row + k column]; neighbouring a lie a_step numbers apart, neighbouring c c_step.
struct Factor {
  const Real* at;
  Index row, column;
};
enum class Into { overwrite, add };

template <int kRows>
inline void tile_product(Into into, Index count, Factor left, const Real* a, Index a_step, Real* c, Index c_step) {
  Lanes total[kRows];
#pragma GCC unroll 8
  for (int m = 0; m < kRows; ++m) total[m] = into == Into::add ? load(c + m * c_step) : Lanes{};
  for (Index k = 0; k < count; ++k) {
    const Lanes right = load(a + k * a_step);
    const Real* factor = left.at + k * left.column;
#pragma GCC unroll 8
    for (int m = 0; m < kRows; ++m) total[m] += factor[m * left.row] * right;
  }
#pragma GCC unroll 8
  for (int m = 0; m < kRows; ++m) store(c + m * c_step, total[m]);
}

// Inlined so that constant steps are known inside.
[[gnu::always_inline]] inline void product(Into into, Index rows, Index count, Factor left, const Real* a, Index a_step,
                                           Real* c, Index c_step) {
  Index m = 0;
  const auto tile = [&]<int kRows>(std::integral_constant<int, kRows>) {
    tile_product<kRows>(into, count, {left.at + m * left.row, left.row, left.column}, a, a_step, c + m * c_step,
                        c_step);
    m += kRows;
  };
  while (m + 8 <= rows) tile(std::integral_constant<int, 8>{});
  if (m + 4 <= rows) tile(std::integral_constant<int, 4>{});
  if (m + 2 <= rows) tile(std::integral_constant<int, 2>{});
  if (m + 1 <= rows) tile(std::integral_constant<int, 1>{});
}

// ---- One head of one sample ----------------------------------------------------------------------------------------
struct Head {
  Head(AttentionShape s, In qkv, Index unit)
      : shape(s),
        index(unit),
        sample(unit / s.heads),
        column(unit % s.heads * s.head_dim),
        stride(3 * s.heads * s.head_dim),
        q(qkv.data() + sample * s.time * stride + column),
        k(q + s.heads * s.head_dim),
        v(k + s.heads * s.head_dim) {}

  // Where row t of this head lies in [batch, time, C].
  Index output(Index t) const { return (sample * shape.time + t) * shape.heads * shape.head_dim + column; }

  AttentionShape shape;
  Index index, sample, column, stride;  // of neighbouring rows of q, k, v
  const Real *q, *k, *v;                // row 0
};

// The queries of one vector.
struct QueryBlock {
  Index first, count;
  Index keys() const { return first + count; }  // keys 0 .. keys() - 1 are visible to the last of them
};

// rows [count] of D numbers, `stride` apart, into [D][lane], times scale; lanes beyond count become 0.
void to_lanes(const Real* rows, Index stride, Index count, Index head_dim, Real scale, Real* out) {
  for_lanes(0, head_dim, [&](Index d, auto n) {
    Lanes block[kLanes] = {};
    for (Index lane = 0; lane < count; ++lane) block[lane] = scale * load(rows + lane * stride + d, n);
    transpose(block);
    for (Index i = 0; i < n; ++i) store(out + (d + i) * kLanes, block[i]);
  });
}

// The way back: [D][lane], times scale, into the first `count` rows.
void from_lanes(const Real* lanes, Lanes scale, Index count, Index head_dim, Grad rows, Index first, Index stride) {
  for_lanes(0, head_dim, [&](Index d, auto n) {
    Lanes block[kLanes] = {};
    for (Index i = 0; i < n; ++i) block[i] = scale * load(lanes + (d + i) * kLanes);
    transpose(block);
    for (Index lane = 0; lane < count; ++lane) put(rows, first + lane * stride + d, block[lane], n);
  });
}

LaneInts positions(QueryBlock block) { return lane_numbers() + static_cast<LaneInt>(block.first); }

// The element of the dropout that key 0 has for the first query of a block; a query further on is `time` elements away.
Index first_weight(const Head& head, QueryBlock block) {
  return (head.index * head.shape.time + block.first) * head.shape.time;
}

// f(first key, number of keys) for the blocks of keys that a block of queries sees.
template <class F>
void for_key_blocks(QueryBlock queries, const F& f) {
  for (Index j = 0; j < queries.keys(); j += kKeyBlock) f(j, std::min(kKeyBlock, queries.keys() - j));
}
// f(queries) for the blocks of queries.
template <class F>
void for_query_blocks(AttentionShape s, const F& f) {
  for (Index i = s.first; i < s.time; i += kLanes) f(QueryBlock{i, std::min(kLanes, s.time - i)});
}

Real softmax_scale(AttentionShape s) { return static_cast<Real>(1 / std::sqrt(static_cast<double>(s.head_dim))); }

// ---- Forward -------------------------------------------------------------------------------------------------------
struct Running {
  Lanes highest = broadcast(-std::numeric_limits<Real>::infinity());
  Lanes total{};  // the sum of exp(score - highest)
};

// Scores of keys j .. j + keys - 1 become exp(score - highest), hidden ones 0, and enter the running softmax.
// Returns what earlier sums must be multiplied by.
Lanes exponentiate(QueryBlock queries, Index j, Index keys, Real* scores, Running& running) {
  const LaneInts query = positions(queries);
  const Lanes before = running.highest;
  const bool all_visible = j + keys - 1 <= queries.first;
  for (Index k = 0; k < keys; ++k) {
    Lanes score = load(scores + k * kLanes);
    if (!all_visible) {
      score = query >= static_cast<LaneInt>(j + k) ? score : broadcast(-std::numeric_limits<Real>::infinity());
      store(scores + k * kLanes, score);
    }
    running.highest = larger(score, running.highest);
  }
  const Lanes rescale = exp(before - running.highest);
  running.total *= rescale;
  for (Index k = 0; k < keys; ++k) {
    const Lanes weight = exp(load(scores + k * kLanes) - running.highest);
    running.total += weight;
    store(scores + k * kLanes, weight);
  }
  return rescale;
}

struct ForwardScratch {
  explicit ForwardScratch(Index head_dim) : memory(2 * head_dim + kKeyBlock) {
    q = memory.data();
    y = q + head_dim * kLanes;
    scores = y + head_dim * kLanes;
  }
  Vectors memory;
  Real *q, *y, *scores;  // [D][lane], [D][lane], [key][lane]
};

void forward_block(const Head& head, QueryBlock queries, Dropout drop, ForwardScratch& s, Out y, Out log_sum) {
  const Index D = head.shape.head_dim;
  to_lanes(head.q + queries.first * head.stride, head.stride, queries.count, D, softmax_scale(head.shape), s.q);
  std::fill_n(s.y, D * kLanes, Real(0));
  const DropoutFactor dropout(drop);
  const Index weight = first_weight(head, queries);
  Running running;
  for_key_blocks(queries, [&](Index j, Index keys) {
    product(Into::overwrite, keys, D, {head.k + j * head.stride, head.stride, 1}, s.q, kLanes, s.scores, kLanes);
    const Lanes rescale = exponentiate(queries, j, keys, s.scores, running);
    if (j > 0)
      for (Index d = 0; d < D; ++d) store(s.y + d * kLanes, load(s.y + d * kLanes) * rescale);
    if (drop.p > 0)
      for (Index k = 0; k < keys; ++k)
        store(s.scores + k * kLanes, load(s.scores + k * kLanes) * dropout(weight + j + k, head.shape.time));
    product(Into::add, D, keys, {head.v + j * head.stride, 1, head.stride}, s.scores, kLanes, s.y, kLanes);
  });
  from_lanes(s.y, 1 / running.total, queries.count, D, Grad{y}, head.output(queries.first), head.shape.heads * D);
  if (log_sum.empty()) return;
  for (Index lane = 0; lane < queries.count; ++lane)
    log_sum[static_cast<std::size_t>(head.index * head.shape.time + queries.first + lane)] =
        running.highest[static_cast<int>(lane)] + std::log(running.total[static_cast<int>(lane)]);
}

// ---- Backward ------------------------------------------------------------------------------------------------------
// With weights p = exp(score - log_sum), dropped out by factors f, and delta = sum over d of dy y:
//   dv_j += sum_i f p dy_i    dp = f (dy_i . v_j)    ds = p (dp - delta_i)    dq_i = scale sum_j ds k_j
//   dk_j += scale sum_i ds q_i
struct BackwardScratch {
  BackwardScratch(Index time, Index head_dim)
      : width((head_dim + kLanes - 1) / kLanes * kLanes),
        memory(3 * head_dim + 2 * kKeyBlock + (2 * kLanes + 2 * time) * (width / kLanes)) {
    q_lanes = memory.data();
    dy_lanes = q_lanes + head_dim * kLanes;
    dq_lanes = dy_lanes + head_dim * kLanes;
    weights = dq_lanes + head_dim * kLanes;
    dscores = weights + kKeyBlock * kLanes;
    q_rows = dscores + kKeyBlock * kLanes;
    dy_rows = q_rows + kLanes * width;
    dk = dy_rows + kLanes * width;
    dv = dk + time * width;
  }
  Index width;  // D rounded up to whole vectors; the rest of a row is 0
  Vectors memory;
  Real *q_lanes, *dy_lanes, *dq_lanes;  // [D][lane]
  Real *weights, *dscores;              // [key][lane]
  Real *q_rows, *dy_rows;               // [lane][width]
  Real *dk, *dv;                        // [time][width]
};

void to_rows(const Real* rows, Index stride, Index count, Index head_dim, Real scale, Real* out, Index width) {
  for (Index lane = 0; lane < kLanes; ++lane)
    for_lanes(0, head_dim, [&](Index d, auto n) {
      store(out + lane * width + d, lane < count ? scale * load(rows + lane * stride + d, n) : Lanes{});
    });
}

// The weights (dropped out) and the gradients of the scores for one block of keys, over the scores and dp found there.
void score_gradients(const Head& head, QueryBlock queries, Index j, Index keys, Lanes log_sum, Lanes delta,
                     Dropout drop, BackwardScratch& s) {
  const DropoutFactor dropout(drop);
  const Index first = first_weight(head, queries) + j;
  const LaneInts query = positions(queries);
  const bool some_hidden = j + keys - 1 > queries.first || queries.count < kLanes;
  for (Index k = 0; k < keys; ++k) {
    Lanes weight = exp(load(s.weights + k * kLanes) - log_sum);
    if (some_hidden)
      weight = query >= static_cast<LaneInt>(j + k) && query < static_cast<LaneInt>(queries.keys()) ? weight : Lanes{};
    Lanes dweight = load(s.dscores + k * kLanes), kept = weight;
    if (drop.p > 0) {
      const Lanes factor = dropout(first + k, head.shape.time);
      dweight *= factor;
      kept *= factor;
    }
    store(s.dscores + k * kLanes, weight * (dweight - delta));
    store(s.weights + k * kLanes, kept);
  }
}

void backward_block(const Head& head, QueryBlock queries, Dropout drop, In y, In log_sum, In dy, BackwardScratch& s,
                    Grad dqkv) {
  const Index D = head.shape.head_dim, row = head.shape.heads * D;
  const Real scale = softmax_scale(head.shape);
  const Real *q = head.q + queries.first * head.stride, *dout = dy.data() + head.output(queries.first);
  to_lanes(q, head.stride, queries.count, D, scale, s.q_lanes);
  to_lanes(dout, row, queries.count, D, 1, s.dy_lanes);
  to_rows(q, head.stride, queries.count, D, scale, s.q_rows, s.width);
  to_rows(dout, row, queries.count, D, 1, s.dy_rows, s.width);
  std::fill_n(s.dq_lanes, D * kLanes, Real(0));
  Lanes saved{}, delta{};
  for (Index lane = 0; lane < queries.count; ++lane) {
    const Real* out = y.data() + head.output(queries.first + lane);
    Lanes dot{};
    for_lanes(0, D, [&](Index d, auto n) { dot += load(out + d, n) * load(s.dy_rows + lane * s.width + d); });
    delta[static_cast<int>(lane)] = sum(dot);
    saved[static_cast<int>(lane)] =
        log_sum[static_cast<std::size_t>(head.index * head.shape.time + queries.first + lane)];
  }
  for_key_blocks(queries, [&](Index j, Index keys) {
    product(Into::overwrite, keys, D, {head.k + j * head.stride, head.stride, 1}, s.q_lanes, kLanes, s.weights, kLanes);
    product(Into::overwrite, keys, D, {head.v + j * head.stride, head.stride, 1}, s.dy_lanes, kLanes, s.dscores,
            kLanes);
    score_gradients(head, queries, j, keys, saved, delta, drop, s);
    product(Into::add, D, keys, {head.k + j * head.stride, 1, head.stride}, s.dscores, kLanes, s.dq_lanes, kLanes);
    for (Index d = 0; d < s.width; d += kLanes) {
      product(Into::add, keys, kLanes, {s.dscores, kLanes, 1}, s.q_rows + d, s.width, s.dk + j * s.width + d, s.width);
      product(Into::add, keys, kLanes, {s.weights, kLanes, 1}, s.dy_rows + d, s.width, s.dv + j * s.width + d, s.width);
    }
  });
  const Index first = (head.sample * head.shape.time + queries.first) * head.stride + head.column;
  from_lanes(s.dq_lanes, broadcast(scale), queries.count, D, dqkv, first, head.stride);
}

void backward_head(const Head& head, Dropout drop, In y, In log_sum, In dy, BackwardScratch& s, Grad dqkv) {
  const AttentionShape& shape = head.shape;
  std::fill_n(s.dk, 2 * shape.time * s.width, Real(0));  // dv follows
  for_query_blocks(shape, [&](QueryBlock queries) { backward_block(head, queries, drop, y, log_sum, dy, s, dqkv); });
  const Index C = shape.heads * shape.head_dim;
  for (Index t = 0; t < shape.time; ++t) {
    const Index row = (head.sample * shape.time + t) * head.stride + head.column;
    for_lanes(0, shape.head_dim, [&](Index d, auto n) {
      if (t < shape.first && !dqkv.add) store(dqkv.values.data() + row + d, Lanes{}, n);
      put(dqkv, row + C + d, load(s.dk + t * s.width + d), n);
      put(dqkv, row + 2 * C + d, load(s.dv + t * s.width + d), n);
    });
  }
}

Index cost_of_head(AttentionShape s) { return (s.time - s.first) * s.time * s.head_dim / 4; }

}  // namespace

void attention_forward(AttentionShape s, Dropout drop, In qkv, Out y, Out log_sum) {
  parallel_ranges(s.batch * s.heads, cost_of_head(s), [&](Index begin, Index end) {
    ForwardScratch scratch(s.head_dim);
    for (Index unit = begin; unit < end; ++unit) {
      const Head head(s, qkv, unit);
      for_query_blocks(s, [&](QueryBlock queries) { forward_block(head, queries, drop, scratch, y, log_sum); });
    }
  });
}

void attention_backward(AttentionShape s, Dropout drop, In qkv, In y, In log_sum, In dy, Grad dqkv) {
  if (!dqkv) return;
  parallel_ranges(s.batch * s.heads, 3 * cost_of_head(s), [&](Index begin, Index end) {
    BackwardScratch scratch(s.time, s.head_dim);
    for (Index unit = begin; unit < end; ++unit) backward_head(Head(s, qkv, unit), drop, y, log_sum, dy, scratch, dqkv);
  });
}

}  // namespace normlab::inline NORMLAB_REAL::kernels
