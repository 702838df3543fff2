// The backward of attention: the weights are computed again, block by block, from the saved log-sums.
//
// With weights p = 2^(score / ln 2 - log_sum), dropped out by factors f, and delta = sum over d of dy y:
//   dv_j += sum_i f p dy_i    dp = f (dy_i . v_j)    ds = p (dp - delta_i)    dq_i = scale sum_j ds k_j
//   dk_j += scale sum_i ds q_i
// Sums run over rising j and i, whichever thread meets which blocks: one thread has a whole head where there are enough
// of them, and else one block, whose weights are then computed twice, for dq and for dk and dv.
#include "attention_blocks.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {
namespace {

constexpr int kVectors = static_cast<int>(kKeys / kLanes);  // as many queries as keys: one triangle at the diagonal
using Queries = QueryBlock<kVectors>;
constexpr Index kWidth = Queries::kWidth;
static_assert(kWidth == kKeys);

struct Gradients {
  bool q, kv;
};

struct BackwardScratch {
  BackwardScratch(Index rows, Index head_dim)
      : memory((2 * kKeys + 5 * kWidth + 2 * rows) * whole_vectors(head_dim) + (2 * kKeys + 2) * kWidth),
        weights(memory.take(kKeys * kWidth)),
        dscores(memory.take(kKeys * kWidth)),
        log_sum(memory.take(kWidth)),
        delta(memory.take(kWidth)),
        q_lanes(memory.take(head_dim * kWidth)),
        dy_lanes(memory.take(head_dim * kWidth)),
        q(memory.take(kWidth * whole_vectors(head_dim))),
        dy(memory.take(kWidth * whole_vectors(head_dim))),
        k(memory.take(kKeys * whole_vectors(head_dim))),
        dq(memory.take(kWidth * whole_vectors(head_dim))),
        dk(memory.take(rows * whole_vectors(head_dim))),
        dv(memory.take(rows * whole_vectors(head_dim))) {}
  Scratch memory;
  Real *weights, *dscores;   // [key][query]
  Real *log_sum, *delta;     // [query]
  Real *q_lanes, *dy_lanes;  // [D][query]
  Real *q, *dy, *k;          // [query or key][D in vectors], where D is not a whole number of vectors
  Real *dq, *dk, *dv;        // [query or key][D in vectors]
};

template <class Size>
class BackwardHead {
 public:
  BackwardHead(Size size, AttentionShape s, In qkv, Index unit, Dropout dropout, In all_y, In all_log_sum, In all_dy,
               BackwardScratch& memory)
      : head_dim(size), head(s, qkv, unit), drop(dropout), y(all_y), log_sum(all_log_sum), dy(all_dy), s(memory) {}

  // What the work on a block of queries needs of them.
  void take_queries(Index first) {
    const AttentionShape& shape = head.shape;
    queries = {first, std::min(kWidth, shape.time - first)};
    const Rows q{head.q + first * head.stride, head.stride};
    const Rows out{dy.data() + head.output(first), shape.heads * shape.head_dim};
    to_lanes(head_dim, q, queries.count, score_scale(shape), s.q_lanes, kWidth);
    to_lanes(head_dim, out, queries.count, 1, s.dy_lanes, kWidth);
    q_rows = in_vectors(head_dim, q, queries.count, s.q);
    dy_rows = in_vectors(head_dim, out, queries.count, s.dy);
    const Real* const sums = log_sum.data() + head.index * shape.time + first;
    for (Index i = 0; i < queries.count; i += kLanes) {
      Lanes dots[kLanes] = {};
      const Index lanes = std::min(kLanes, queries.count - i);
      for (Index lane = 0; lane < lanes; ++lane) {
        const Real *a = y.data() + head.output(first + i + lane), *b = out.at + (i + lane) * out.step;
        for_lanes(0, head_dim, [&](Index d, auto n) { dots[lane] += load(a + d, n) * load(b + d, n); });
      }
      transpose(dots);
      Lanes delta = dots[0];
      for (Index lane = 1; lane < kLanes; ++lane) delta += dots[lane];
      store(s.delta + i, delta);
      store(s.log_sum + i, lanes == kLanes ? load(sums + i) : load(sums + i, lanes));
    }
  }

  // Adds what the queries taken and the block of keys from j on give one another. dk and dv: of key j.
  void meet(Index j, Gradients wanted, Real* dk, Real* dv) {
    const Index keys = std::min(kKeys, head.shape.time - j), width = whole_vectors(head_dim);
    const Rows k{head.k + j * head.stride, head.stride}, v{head.v + j * head.stride, head.stride};
    products_with_keys(head_dim, queries, j, keys, k, s.q_lanes, s.weights);
    products_with_keys(head_dim, queries, j, keys, v, s.dy_lanes, s.dscores);
    for (Index vector = 0; vector < queries.vectors(); ++vector) score_gradients(vector, j, keys);
    if (wanted.q) {
      const auto visible = [&](Index i, Index rows) { return Span{0, std::min(queries.first + i + rows - j, keys)}; };
      wide_product(width, queries.count, visible, {s.dscores, 1, kWidth}, in_vectors(head_dim, k, keys, s.k),
                   {s.dq, width, j > 0});
    }
    if (!wanted.kv) return;
    // The first block of queries that sees these keys writes over what is there.
    const bool add = queries.first > j;
    const auto seeing = [&](Index key, Index) {
      return Span{std::max(j + key - queries.first, Index{0}), queries.count};
    };
    wide_product(width, keys, seeing, {s.dscores, kWidth, 1}, q_rows, {dk, width, add});
    wide_product(width, keys, seeing, {s.weights, kWidth, 1}, dy_rows, {dv, width, add});
  }

  void write_dq(Grad dqkv) const { write(s.dq, softmax_scale(head.shape), queries.first, queries.count, 0, dqkv); }
  void write_dkv(Index j, Index keys, const Real* dk, const Real* dv, Grad dqkv) const {
    const Index channels = head.shape.heads * head.shape.head_dim;
    write(dk, softmax_scale(head.shape), j, keys, channels, dqkv);
    write(dv, 1, j, keys, 2 * channels, dqkv);
  }

 private:
  // The weights (dropped out) and the gradients of the scores, over the scores and dp found there.
  void score_gradients(Index v, Index j, Index keys) const {
    const DropoutFactor dropout(drop);
    const Index element = first_weight(head, queries.first + v * kLanes) + j, seen = queries.visible(v, j, keys);
    const LaneInts query = queries.positions(v);
    const Lanes log_sums = load(s.log_sum + v * kLanes), delta = load(s.delta + v * kLanes);
    Real *const weights = s.weights + v * kLanes, *const dscores = s.dscores + v * kLanes;
    for (Index key = 0; key < seen; ++key) {
      Lanes weight = exp2(load(weights + key * kWidth) - log_sums);
      if (j + key > query[0]) weight = query >= static_cast<LaneInt>(j + key) ? weight : Lanes{};
      Lanes dweight = load(dscores + key * kWidth), kept = weight;
      if (drop.p > 0) {
        const Lanes factor = dropout(element + key, head.shape.time);
        dweight *= factor;
        kept *= factor;
      }
      store(dscores + key * kWidth, weight * (dweight - delta));
      store(weights + key * kWidth, kept);
    }
  }

  void write(const Real* rows, Real scale, Index first, Index count, Index part, Grad dqkv) const {
    const Index width = whole_vectors(head_dim);
    for (Index i = 0; i < count; ++i) {
      const Index to = (head.sample * head.shape.time + first + i) * head.stride + head.column + part;
      for_lanes(0, head_dim, [&](Index d, auto n) { put(dqkv, to + d, scale * load(rows + i * width + d), n); });
    }
  }

  Size head_dim;
  Head head;
  Dropout drop;
  In y, log_sum, dy;
  BackwardScratch& s;
  Queries queries{};
  Rows q_rows{}, dy_rows{};
};

}  // namespace

void attention_backward(AttentionShape s, Dropout drop, In qkv, In y, In log_sum, In dy, Grad dqkv) {
  if (!dqkv) return;
  const Index heads = s.batch * s.heads, blocks = (s.time + kKeys - 1) / kKeys, width = whole_vectors(s.head_dim);
  const bool by_head = heads % threads() == 0 || heads >= 4 * threads();
  with_head_dim(s.head_dim, [&](auto head_dim) {
    const auto whole_head = [&](Index begin, Index end) {
      BackwardScratch scratch(s.time, head_dim);
      for (Index unit = begin; unit < end; ++unit) {
        BackwardHead work(head_dim, s, qkv, unit, drop, y, log_sum, dy, scratch);
        for (Index i = 0; i < s.time; i += kWidth) {
          work.take_queries(i);
          for (Index j = 0; j <= i; j += kKeys)
            work.meet(j, {true, true}, scratch.dk + j * width, scratch.dv + j * width);
          work.write_dq(dqkv);
        }
        work.write_dkv(0, s.time, scratch.dk, scratch.dv, dqkv);
      }
    };
    // dq of a block of queries, and dk and dv of the block of keys at the same place: early blocks are seen by many
    // queries, late ones see many keys, so that all take about as long.
    const auto one_block = [&](Index begin, Index end) {
      BackwardScratch scratch(kKeys, head_dim);
      for (Index item = begin; item < end; ++item) {
        BackwardHead work(head_dim, s, qkv, item / blocks, drop, y, log_sum, dy, scratch);
        const Index at = item % blocks * kKeys;
        work.take_queries(at);
        for (Index j = 0; j < at; j += kKeys) work.meet(j, {true, false}, nullptr, nullptr);
        work.meet(at, {true, true}, scratch.dk, scratch.dv);
        work.write_dq(dqkv);
        for (Index i = at + kWidth; i < s.time; i += kWidth) {
          work.take_queries(i);
          work.meet(at, {false, true}, scratch.dk, scratch.dv);
        }
        work.write_dkv(at, std::min(kKeys, s.time - at), scratch.dk, scratch.dv, dqkv);
      }
    };
    const Index cost = s.time * kKeys * s.head_dim;
    if (by_head)
      parallel_ranges(heads, cost * blocks, whole_head);
    else
      parallel_ranges(heads * blocks, cost, one_block);
  });
}

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
