// The matrix product: blocks of b packed into panels, tiles of c held in registers (Goto and van de Geijn 2008).
#include "normlab/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "normlab/base/parallel.h"
#include "normlab/kernels/activation.h"
#include "normlab/kernels/simd.h"

namespace normlab::inline NORMLAB_REAL::kernels {
namespace {

// A tile of c: 12 x 2 accumulators of the 32 registers of AVX-512, 6 x 2 of the 16 of AVX2 (on NEON, 24 halves of 32).
constexpr int kTileRows = kVectorBytes == 64 ? 12 : 6;
constexpr int kTileVectors = 2;
constexpr Index kTileColumns = kTileVectors * kLanes;

// The depth is summed in blocks of this length: part of what defines a result's bits.
constexpr Index kDepth = 1536 / static_cast<Index>(sizeof(Real));
// A tile's rows of a stay in the first-level cache; a block of a and one of b share the second (0.7 MB).
constexpr Index kBlockRows = 96, kBlockColumns = 384;
static_assert(kBlockRows % kTileRows == 0 && kBlockColumns % kTileColumns == 0);
// Up to this width, a's rows are read where they are: packing them would cost more than it gains.
constexpr Index kDirectColumns = 3 * kTileColumns;

struct Workspace {
  alignas(kVectorBytes) Real a[kBlockRows * kDepth];
  alignas(kVectorBytes) Real b[kBlockColumns * kDepth];
  alignas(kVectorBytes) Real c[kTileRows * kTileColumns];
};

Workspace& workspace() {
  static thread_local const auto buffers = std::make_unique_for_overwrite<Workspace>();
  return *buffers;
}

using Four [[gnu::vector_size(4 * sizeof(Real))]] = Real;

Four load_four(const Real* p) {
  Four v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
void store_four(Real* p, Four v) { std::memcpy(p, &v, sizeof v); }

// How lines (rows of a, columns of b) lie in memory, and how they are packed: into panels of kPanel lines of which
// element (line l, depth k) goes to panel[k * width + l]; the last panel's width is its lines' number, rounded up.
struct Lines {
  const Real* data;
  Index across, along;  // element (l, k) at data[l * across + k * along]; one of the two is 1
  Index count, depth;
};

template <Index kPanel, Index kRound>
Index panel_width(Index lines) {
  return std::min(kPanel, (lines + kRound - 1) / kRound * kRound);
}

// One panel of lines that are contiguous along the depth.
void pack_transposed(const Lines& in, Index first, Index count, Index width, Real* panel) {
  Index l = 0;
  for (; l + 4 <= count; l += 4) {
    const Real *p0 = in.data + (first + l) * in.across, *p1 = p0 + in.across, *p2 = p1 + in.across,
               *p3 = p2 + in.across;
    Real* to = panel + l;
    Index k = 0;
    for (; k + 4 <= in.depth; k += 4, to += 4 * width) {
      const Four a = load_four(p0 + k), b = load_four(p1 + k), c = load_four(p2 + k), d = load_four(p3 + k);
      const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5),
                 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      store_four(to, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
      store_four(to + width, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
      store_four(to + 2 * width, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
      store_four(to + 3 * width, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
    }
    for (; k < in.depth; ++k, to += width) to[0] = p0[k], to[1] = p1[k], to[2] = p2[k], to[3] = p3[k];
  }
  for (; l < count; ++l) {
    const Real* from = in.data + (first + l) * in.across;
    Real* to = panel + l;
    for (Index k = 0; k < in.depth; ++k, to += width) *to = from[k];
  }
}

template <Index kPanel, Index kRound>
void pack(const Lines& in, Real* out) {
  const Index whole = in.count / kPanel * kPanel, rest = in.count - whole, width = panel_width<kPanel, kRound>(rest);
  Real* const last = out + whole * in.depth;
  if (rest < width) std::fill_n(last, in.depth * width, Real(0));
  if (in.along == 1) {
    for (Index l = 0; l < in.count; l += kPanel) {
      const Index lines = std::min(kPanel, in.count - l);
      pack_transposed(in, l, lines, panel_width<kPanel, kRound>(lines), out + l * in.depth);
    }
    return;
  }
  // A few rows at a time: panels are a power of two apart, and would drive one another out of the cache.
  constexpr Index kRows = 8;
  for (Index first = 0; first < in.depth; first += kRows) {
    const Index end = std::min(in.depth, first + kRows);
    for (Index l = 0; l < whole; l += kPanel)
      for (Index k = first; k < end; ++k)
        std::memcpy(out + l * in.depth + k * kPanel, in.data + k * in.along + l, kPanel * sizeof(Real));
    for (Index k = first; k < end; ++k) std::copy_n(in.data + k * in.along + whole, rest, last + k * width);
  }
}

// f(0), f(1), .. f(n - 1) written out one after the other, with constants as arguments.
template <int n, class F>
[[gnu::always_inline]] inline void unroll(F f) {
  [&]<int... i>(std::integer_sequence<int, i...>) __attribute__((always_inline)) {
    (f(std::integral_constant<int, i>{}), ...);
  }
  (std::make_integer_sequence<int, n>{});
}

struct TileOperands {
  Index depth;
  const Real* a;  // element (i, k) at a[k * kTileRows + i] when packed, else at a[i * a_row + k]
  Index a_row;
  const Real* b;     // [depth, vectors * kLanes]
  const Real* base;  // null: 0
  Index base_row;    // from one row to the next
  Real* c;
  Index c_row;
};

// c = base + a b on rows x (vectors * kLanes). The sums must stay in registers: see the machine code after a change.
template <bool packed, int rows, int vectors>
void multiply_tile(const TileOperands& t) {
  unroll<rows>([&](auto i) __attribute__((always_inline)) {
    unroll<vectors>([&](auto v)
                        __attribute__((always_inline)) { __builtin_prefetch(t.c + i * t.c_row + v * kLanes, 1); });
  });
  Lanes sum[rows][vectors] = {};
  const Real *a = t.a, *b = t.b;
  const Index a_row = packed ? 1 : t.a_row, a_column = packed ? kTileRows : 1;
  for (Index k = 0; k < t.depth; ++k, a += a_column, b += vectors * kLanes) {
    Lanes row[vectors];
    unroll<vectors>([&](auto v) __attribute__((always_inline)) { row[v] = load(b + v * kLanes); });
    unroll<rows>([&](auto i) __attribute__((always_inline)) {
      unroll<vectors>([&](auto v) __attribute__((always_inline)) { sum[i][v] += a[i * a_row] * row[v]; });
    });
  }
  if (const Real* base = t.base) {
    const Index base_row = t.base_row;
    unroll<rows>([&](auto i) __attribute__((always_inline)) {
      unroll<vectors>([&](auto v)
                          __attribute__((always_inline)) { sum[i][v] += load(base + i * base_row + v * kLanes); });
    });
  }
  Real* const c = t.c;
  const Index c_row = t.c_row;
  unroll<rows>([&](auto i) __attribute__((always_inline)) {
    unroll<vectors>([&](auto v) __attribute__((always_inline)) { store(c + i * c_row + v * kLanes, sum[i][v]); });
  });
}

using TileFunction = void (*)(const TileOperands&);

template <bool packed, int vectors, int... i>
constexpr std::array<TileFunction, kTileRows> tile_functions(std::integer_sequence<int, i...>) {
  return {multiply_tile<packed, i + 1, vectors>...};
}
// kTiles[packed][vectors - 1][rows - 1]
constexpr auto kAllRows = std::make_integer_sequence<int, kTileRows>{};
constexpr std::array<TileFunction, kTileRows> kTiles[2][kTileVectors] = {
    {tile_functions<false, 1>(kAllRows), tile_functions<false, 2>(kAllRows)},
    {tile_functions<true, 1>(kAllRows), tile_functions<true, 2>(kAllRows)}};

void copy_rows(const Real* from, Index from_row, Index rows, Index columns, Real* to, Index to_row) {
  for (Index i = 0; i < rows; ++i) std::copy_n(from + i * from_row, columns, to + i * to_row);
}

// A tile whose columns are not a whole number of vectors passes through a full one.
void multiply_narrow_tile(TileFunction multiply, TileOperands t, Index rows, Index columns, Real* full) {
  Real* const c = t.c;
  const Index c_row = t.c_row;
  if (t.base) {
    copy_rows(t.base, t.base_row, rows, columns, full, kTileColumns);
    t.base = full, t.base_row = kTileColumns;
  }
  t.c = full, t.c_row = kTileColumns;
  multiply(t);
  copy_rows(full, kTileColumns, rows, columns, c, c_row);
}

// What follows the product, on `count` neighbouring elements.
void finish_row(const Product& p, Index at, Index count) {
  for_lanes(at, at + count, [&](Index i, auto n) {
    Lanes value = load(p.c + i, n);
    if (p.slope) {
      const Activated both = activate_with_slope(p.act, value);
      store(p.slope + i, both.slope, n);
      value = both.value;
    } else if (p.act != Activation::none) {
      value = activate(p.act, value);
    }
    if (p.residual) value = load(p.residual + i, n) + value;
    store(p.c + i, value, n);
  });
}

struct Range {
  Index begin, end;
  Index size() const { return end - begin; }
};

// The rows of a tile times a packed block of b: depth `ks`, columns `js`. packed_a is null where a is read directly.
void multiply_rows(const Product& p, Range is, Range js, Range ks, const Real* packed_a, Workspace& work) {
  const Real* const a = packed_a ? packed_a : p.a.data + is.begin * p.a.row + ks.begin;
  const Real* b = work.b;
  for (Index j = js.begin; j < js.end; j += kTileColumns) {
    const Index columns = std::min(kTileColumns, js.end - j), width = panel_width<kTileColumns, kLanes>(columns);
    Real* const c = p.c + is.begin * p.columns + j;
    TileOperands t{ks.size(), a, p.a.row, b, nullptr, 0, c, p.columns};
    if (ks.begin > 0 || p.add)
      t.base = c, t.base_row = p.columns;
    else if (p.bias)
      t.base = p.bias + j;
    const auto& by_rows = kTiles[packed_a != nullptr][width / kLanes - 1];
    const TileFunction multiply = by_rows[static_cast<std::size_t>(is.size() - 1)];
    if (columns == width)
      multiply(t);
    else
      multiply_narrow_tile(multiply, t, is.size(), columns, work.c);
    b += ks.size() * width;
  }
}

// Rows `is` times a packed block of b.
void multiply_block(const Product& p, Range is, Range js, Range ks, Workspace& work) {
  const bool packs_a = p.a.column != 1 || js.size() > kDirectColumns;
  if (packs_a) {
    const Real* a = p.a.data + is.begin * p.a.row + ks.begin * p.a.column;
    pack<kTileRows, kTileRows>({a, p.a.row, p.a.column, is.size(), ks.size()}, work.a);
  }
  for (Index i = is.begin; i < is.end; i += kTileRows) {
    const Range rows{i, std::min(is.end, i + kTileRows)};
    multiply_rows(p, rows, js, ks, packs_a ? work.a + (i - is.begin) * ks.size() : nullptr, work);
    if ((p.act == Activation::none && !p.residual) || ks.end < p.depth) continue;
    for (Index at = i * p.columns + js.begin; at < rows.end * p.columns; at += p.columns) finish_row(p, at, js.size());
  }
}

// One thread's part of c.
void multiply_part(const Product& p, Range is, Range js) {
  Workspace& work = workspace();
  for (Index j = js.begin; j < js.end; j += kBlockColumns) {
    const Range columns{j, std::min(js.end, j + kBlockColumns)};
    Index k = 0;
    do {  // a depth of 0 still writes the base
      const Range ks{k, std::min(p.depth, k + kDepth)};
      const Real* b = p.b.data + ks.begin * p.b.row + j * p.b.column;
      pack<kTileColumns, kLanes>({b, p.b.column, p.b.row, columns.size(), ks.size()}, work.b);
      for (Index i = is.begin; i < is.end; i += kBlockRows)
        multiply_block(p, {i, std::min(is.end, i + kBlockRows)}, columns, ks, work);
      k += kDepth;
    } while (k < p.depth);
  }
}

}  // namespace

void gemm(const Product& p) {
  if (p.rows == 0 || p.columns == 0) return;
  // A grid of parts, one a thread, each of whole tiles, with the least work (multiplying and packing) in the largest.
  const Index row_tiles = (p.rows + kTileRows - 1) / kTileRows;
  const Index column_tiles = (p.columns + kTileColumns - 1) / kTileColumns;
  const Index team = threads();
  Index row_parts = 1, best = 0;
  for (Index parts = 1; parts <= team; ++parts) {
    if (team % parts != 0) continue;
    const Index rows = (row_tiles + parts - 1) / parts, columns = (column_tiles + team / parts - 1) / (team / parts);
    const Index work = 24 * rows * columns + 6 * rows + 16 * columns;
    if (best == 0 || work < best) best = work, row_parts = parts;
  }
  const Index column_parts = team / row_parts;
  parallel_for(team, p.rows * p.columns * p.depth / team, [&](Index part) {
    const auto share = [](Index tiles, Index parts, Index i, Index tile, Index size) {
      return Range{std::min(size, tiles * i / parts * tile), std::min(size, tiles * (i + 1) / parts * tile)};
    };
    const Range is = share(row_tiles, row_parts, part / column_parts, kTileRows, p.rows);
    const Range js = share(column_tiles, column_parts, part % column_parts, kTileColumns, p.columns);
    if (is.size() > 0 && js.size() > 0) multiply_part(p, is, js);
  });
}

}  // namespace normlab::inline NORMLAB_REAL::kernels
