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

// A tile of c: 12 x 2 accumulators of the 32 registers of AVX-512 (or 24 x 2 halves on NEON), 6 x 2 of AVX2's 16.
constexpr int kTileRows = kVectorBytes == 64 ? 12 : 6;
constexpr int kTileVectors = 2;
constexpr Index kTileColumns = kTileVectors * kLanes;

// The depth is summed in blocks of this length: part of what defines a result's bits. A tile's rows of a stay in the
// first-level cache, a block of b in the second.
constexpr Index kDepth = 1024 / static_cast<Index>(sizeof(Real));
constexpr Index kBlockColumns = 512;

struct Workspace {
  alignas(kVectorBytes) Real a[kTileRows * kDepth];
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

// Packs lines l < count, each contiguous along the depth k, so that element (l, k) goes to out[k * width + l].
void pack_transposed(const Real* lines, Index stride, Index count, Index depth, Index width, Real* out) {
  Index l = 0;
  for (; l + 4 <= count; l += 4) {
    const Real *p0 = lines + l * stride, *p1 = p0 + stride, *p2 = p1 + stride, *p3 = p2 + stride;
    Index k = 0;
    for (; k + 4 <= depth; k += 4) {
      const Four a = load_four(p0 + k), b = load_four(p1 + k), c = load_four(p2 + k), d = load_four(p3 + k);
      const Four ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                 ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
      const Four cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5),
                 cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      Real* to = out + k * width + l;
      store_four(to, __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5));
      store_four(to + width, __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7));
      store_four(to + 2 * width, __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5));
      store_four(to + 3 * width, __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7));
    }
    for (; k < depth; ++k) {
      Real* to = out + k * width + l;
      to[0] = p0[k], to[1] = p1[k], to[2] = p2[k], to[3] = p3[k];
    }
  }
  for (; l < count; ++l)
    for (Index k = 0; k < depth; ++k) out[k * width + l] = lines[l * stride + k];
}

// Packs lines l < count that lie side by side at each k, stride apart from one k to the next.
void pack_straight(const Real* lines, Index stride, Index count, Index depth, Index width, Real* out) {
  for (Index k = 0; k < depth; ++k) {
    const Real* from = lines + k * stride;
    Real* to = out + k * width;
    Index l = 0;
    for (; l + 4 <= count; l += 4) store_four(to + l, load_four(from + l));
    for (; l < count; ++l) to[l] = from[l];
  }
}

// Element (l, k) at lines[l * across + k * along], one of the two being 1.
void pack(const Real* lines, Index across, Index along, Index count, Index depth, Index width, Real* out) {
  if (along == 1)
    pack_transposed(lines, across, count, depth, width, out);
  else
    pack_straight(lines, along, count, depth, width, out);
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
  const Real* a;  // element (i, k) at a[i * a_row + k], or at a[k * kTileRows + i] when packed
  Index a_row;
  const Real* b;     // [depth, vectors * kLanes]
  const Real* base;  // null: 0
  Index base_row;
  Real* c;
  Index c_row;
};

// c = base + a b on rows x (vectors * kLanes).
template <int rows, int vectors, bool packed>
void multiply_tile(const TileOperands& t) {
  Lanes sum[rows][vectors] = {};
  const Real *a = t.a, *b = t.b;
  const Index a_row = t.a_row;
  for (Index k = 0; k < t.depth; ++k) {
    Lanes column[vectors];
    unroll<vectors>([&](auto v) __attribute__((always_inline)) { column[v] = load(b + v * kLanes); });
    unroll<rows>([&](auto i) __attribute__((always_inline)) {
      const Real factor = packed ? a[i] : a[i * a_row];
      unroll<vectors>([&](auto v) __attribute__((always_inline)) { sum[i][v] += factor * column[v]; });
    });
    a += packed ? kTileRows : 1;
    b += vectors * kLanes;
  }
  unroll<rows>([&](auto i) __attribute__((always_inline)) {
    unroll<vectors>([&](auto v) __attribute__((always_inline)) {
      if (t.base) sum[i][v] = load(t.base + i * t.base_row + v * kLanes) + sum[i][v];
      store(t.c + i * t.c_row + v * kLanes, sum[i][v]);
    });
  });
}

using TileFunction = void (*)(const TileOperands&);

// kTiles[packed][vectors - 1][rows - 1]
template <bool packed, int vectors, int... i>
constexpr std::array<TileFunction, kTileRows> tile_functions(std::integer_sequence<int, i...>) {
  return {multiply_tile<i + 1, vectors, packed>...};
}
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

void activate_row(Activation act, const Real* z, Index count, Real* y) {
  Index j = 0;
  for (; j + kLanes <= count; j += kLanes) store(y + j, activate(act, load(z + j)));
  if (j < count) store_part(y + j, activate(act, load_part(z + j, count - j)), count - j);
}

struct Range {
  Index begin, end;
  Index size() const { return end - begin; }
};

// The rows of a tile times a packed block of b: depth `ks`, columns `js`.
void multiply_rows(const Product& p, Range is, Range js, Range ks, bool pack_a, Workspace& work) {
  const Real* a = p.a.data + is.begin * p.a.row + ks.begin * p.a.column;
  if (pack_a) {
    pack(a, p.a.row, p.a.column, is.size(), ks.size(), kTileRows, work.a);
    a = work.a;
  }
  const Real* b = work.b;
  for (Index j = js.begin; j < js.end; j += kTileColumns) {
    const Index columns = std::min(kTileColumns, js.end - j), vectors = (columns + kLanes - 1) / kLanes;
    Real* c = p.c + is.begin * p.columns + j;
    TileOperands t{ks.size(), a, p.a.row, b, nullptr, 0, c, p.columns};
    if (ks.begin > 0 || p.add)
      t.base = c, t.base_row = p.columns;
    else if (p.bias)
      t.base = p.bias + j;
    const TileFunction multiply = kTiles[pack_a][vectors - 1][static_cast<std::size_t>(is.size() - 1)];
    if (columns == vectors * kLanes)
      multiply(t);
    else
      multiply_narrow_tile(multiply, t, is.size(), columns, work.c);
    b += ks.size() * vectors * kLanes;
  }
}

void pack_b(const Product& p, Range js, Range ks, Real* out) {
  for (Index j = js.begin; j < js.end; j += kTileColumns) {
    const Index columns = std::min(kTileColumns, js.end - j), width = (columns + kLanes - 1) / kLanes * kLanes;
    if (columns < width) std::fill_n(out, ks.size() * width, Real(0));
    pack(p.b.data + j * p.b.column + ks.begin * p.b.row, p.b.column, p.b.row, columns, ks.size(), width, out);
    out += ks.size() * width;
  }
}

// One thread's part of c.
void multiply_part(const Product& p, Range is, Range js) {
  Workspace& work = workspace();
  const bool pack_a = p.a.column != 1 || js.size() > 8 * kTileColumns;
  for (Index j = js.begin; j < js.end; j += kBlockColumns) {
    const Range block{j, std::min(js.end, j + kBlockColumns)};
    Index k = 0;
    do {
      const Range ks{k, std::min(p.depth, k + kDepth)};
      pack_b(p, block, ks, work.b);
      for (Index i = is.begin; i < is.end; i += kTileRows) {
        const Range rows{i, std::min(is.end, i + kTileRows)};
        multiply_rows(p, rows, block, ks, pack_a, work);
        if (p.act == Activation::none || ks.end < p.depth) continue;
        for (Index row = i; row < rows.end; ++row)
          activate_row(p.act, p.c + row * p.columns + j, block.size(), p.y + row * p.columns + j);
      }
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
