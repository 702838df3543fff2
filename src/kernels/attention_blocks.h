// What the forward and the backward of attention share: heads, blocks of queries and keys, and the product of small
// matrices that all of their arithmetic goes through.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <type_traits>

#include "normlab/base/parallel.h"
#include "normlab/kernels/dropout.h"
#include "scratch.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {

inline constexpr Index kKeys = 64;  // keys whose scores are held at once; blocks start at multiples of it

// f(D) with the head size as a constant where it is a usual one: loops over it are then written out.
template <class F>
void with_head_dim(Index head_dim, const F& f) {
  switch (head_dim) {
    case 16:
      return f(std::integral_constant<Index, 16>{});
    case 32:
      return f(std::integral_constant<Index, 32>{});
    case 64:
      return f(std::integral_constant<Index, 64>{});
    default:
      return f(head_dim);
  }
}

inline Index whole_vectors(Index count) { return (count + kLanes - 1) / kLanes * kLanes; }

// ---- c[m] (+)= sum over k of left(m, k) a[k], with vectors a[k] and c[m] -------------------------------------------
// A tile of c has kTileRows rows of two vectors: its sums are half of the registers. Rows may be queries, of which no
// more than one vector's see the same keys.
inline constexpr int kTileRows = std::min(kRegisters / 4, static_cast<int>(kLanes));

// left(m, k) = at[m row + k column]
struct Factor {
  const Real* at;
  Index row, column;
};
struct Rows {
  const Real* at;
  Index step;  // from one row to the next
};
struct Result {
  Real* at;
  Index step;
  bool add;  // to what is there
};
struct Span {
  Index begin, end;
};

template <int kRows, int kVectors>
[[gnu::always_inline]] inline void tile_product(Span ks, Factor left, Rows a, Result c) {
  Lanes total[kRows][kVectors] = {};
  if (c.add)
#pragma GCC unroll 8
    for (int m = 0; m < kRows; ++m)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) total[m][v] = load(c.at + m * c.step + v * kLanes);
  for (Index k = ks.begin; k < ks.end; ++k) {
    Lanes right[kVectors];
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) right[v] = load(a.at + k * a.step + v * kLanes);
    const Real* factor = left.at + k * left.column;
#pragma GCC unroll 8
    for (int m = 0; m < kRows; ++m)
#pragma GCC unroll 2
      for (int v = 0; v < kVectors; ++v) total[m][v] += factor[m * left.row] * right[v];
  }
#pragma GCC unroll 8
  for (int m = 0; m < kRows; ++m)
#pragma GCC unroll 2
    for (int v = 0; v < kVectors; ++v) store(c.at + m * c.step + v * kLanes, total[m][v]);
}

// kVectors vectors of `rows` rows. inner(m, n): the k that rows m .. m + n - 1 need. An element's sum is the same in
// whichever tile it lies. Inlined so that constant steps are known inside.
template <int kVectors, class Inner>
[[gnu::always_inline]] inline void product(Index rows, const Inner& inner, Factor left, Rows a, Result c) {
  Index m = 0;
  const auto tile = [&]<int kRows>(std::integral_constant<int, kRows>) __attribute__((always_inline)) {
    tile_product<kRows, kVectors>(inner(m, Index{kRows}), {left.at + m * left.row, left.row, left.column}, a,
                                  {c.at + m * c.step, c.step, c.add});
    m += kRows;
  };
  while (m + kTileRows <= rows) tile(std::integral_constant<int, kTileRows>{});
  if constexpr (kTileRows > 4)
    if (m + 4 <= rows) tile(std::integral_constant<int, 4>{});
  if (m + 2 <= rows) tile(std::integral_constant<int, 2>{});
  if (m + 1 <= rows) tile(std::integral_constant<int, 1>{});
}

// All `width` columns, a whole number of vectors.
template <class Width, class Inner>
[[gnu::always_inline]] inline void wide_product(Width width, Index rows, const Inner& inner, Factor left, Rows a,
                                                Result c) {
  Index d = 0;
  for (; d + 2 * kLanes <= width; d += 2 * kLanes)
    product<2>(rows, inner, left, {a.at + d, a.step}, {c.at + d, c.step, c.add});
  if (d < width) product<1>(rows, inner, left, {a.at + d, a.step}, {c.at + d, c.step, c.add});
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

// Queries first .. first + count - 1 in kVectors vectors, lane l of vector v holding query first + v kLanes + l; what
// belongs to them lies as [..][kWidth].
template <int kVectors>
struct QueryBlock {
  static constexpr Index kWidth = kVectors * kLanes;
  Index first, count;

  Index end() const { return first + count; }
  Index vectors() const { return (count + kLanes - 1) / kLanes; }
  // How many of the keys j .. j + keys - 1 the last query of vector v sees.
  Index visible(Index v, Index j, Index keys) const {
    return std::clamp(std::min(first + (v + 1) * kLanes, end()) - j, Index{0}, keys);
  }
  LaneInts positions(Index v) const { return lane_numbers() + static_cast<LaneInt>(first + v * kLanes); }
};

// rows [count] of D numbers into columns of out [D][width], times scale; what is left of the last vector repeats the
// last row.
template <class Size>
void to_lanes(Size head_dim, Rows rows, Index count, Real scale, Real* out, Index width) {
  for (Index first = 0; first < count; first += kLanes)
    for_lanes(0, head_dim, [&](Index d, auto n) {
      Lanes block[kLanes];
#pragma GCC unroll 16
      for (Index lane = 0; lane < kLanes; ++lane)
        block[lane] = scale * load(rows.at + std::min(first + lane, count - 1) * rows.step + d, n);
      transpose(block);
      for (Index i = 0; i < n; ++i) store(out + (d + i) * width + first, block[i]);
    });
}

// Rows of D numbers as whole vectors: where they are, or else copied to `padded`, with anything after them.
template <class Size>
Rows in_vectors(Size head_dim, Rows rows, Index count, Real* padded) {
  if (head_dim % kLanes == 0) return rows;
  const Index width = whole_vectors(head_dim);
  for (Index i = 0; i < count; ++i) std::copy_n(rows.at + i * rows.step, head_dim, padded + i * width);
  return {padded, width};
}

// out [key][query] = rows of k or v times what the queries have in lanes [D][query], for keys j .. j + keys - 1; a
// vector of queries gets those that its last query sees.
template <class Size, int kVectors>
void products_with_keys(Size head_dim, QueryBlock<kVectors> queries, Index j, Index keys, Rows rows, const Real* lanes,
                        Real* out) {
  constexpr Index kWidth = QueryBlock<kVectors>::kWidth;
  const auto all = [&](Index, Index) { return Span{0, head_dim}; };
  const auto from = [&](Index key, Index v) { return Result{out + key * kWidth + v * kLanes, kWidth, false}; };
  for (Index v = 0; v < queries.vectors(); v += 2) {
    const Rows a{lanes + v * kLanes, kWidth}, b{a.at + kLanes, kWidth};
    const Index seen = queries.visible(v, j, keys);
    if (v + 1 == queries.vectors()) {
      product<1>(seen, all, {rows.at, rows.step, 1}, a, from(0, v));
      break;
    }
    product<2>(seen, all, {rows.at, rows.step, 1}, a, from(0, v));
    const Index more = queries.visible(v + 1, j, keys) - seen;
    product<1>(more, all, {rows.at + seen * rows.step, rows.step, 1}, b, from(seen, v + 1));
  }
}

// The element of the dropout that key 0 has for query i; the next query's is `time` elements away.
inline Index first_weight(const Head& head, Index i) { return (head.index * head.shape.time + i) * head.shape.time; }

// Scores are in units of ln 2, so that weights are powers of two. The log-sum is kept in these units too: changed to
// others and back, that of scores of 1e9 would be off by hundreds.
inline constexpr double kLog2e = 1.4426950408889634;
inline Real softmax_scale(AttentionShape s) {
  return static_cast<Real>(1 / std::sqrt(static_cast<double>(s.head_dim)));
}
inline Real score_scale(AttentionShape s) {
  return static_cast<Real>(kLog2e / std::sqrt(static_cast<double>(s.head_dim)));
}

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
