// The matrix product: blocks of b packed into panels, tiles of c held in registers (Goto and van de Geijn 2008).
#include "normlab/kernels/gemm.h"

#include <algorithm>
#include <array>
#include <memory>
#include <utility>

#include "gemm_pack.h"
#include "normlab/base/parallel.h"
#include "normlab/kernels/activation.h"
#include "normlab/kernels/simd.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {
namespace {

// A tile of c: 12 x 2 accumulators of the 32 registers of AVX-512, 8 x 2 of those of NEON, where elements of a need
// registers too; 6 x 2 of the 16 of SSE and AVX2.
constexpr int kTileRows = kVectorBytes == 64 ? 12 : kRegisters == 32 ? 8 : 6;
constexpr int kTileVectors = 2;
constexpr Index kTileColumns = kTileVectors * kLanes;

// The depth is summed in blocks of this length: part of what defines a result's bits.
constexpr Index kDepth = 1536 / static_cast<Index>(sizeof(Real));
// A tile's rows of a stay in the first-level cache, a block of b (0.6 MB at most) in the second.
constexpr Index kBlock = 384 * kDepth;
// Rows of a that are packed together: a tile's where they are contiguous along the depth; else several tiles', for the
// sake of whole cache lines.
constexpr int kTogether = 4;
constexpr Index rows_together(bool along_depth) { return along_depth ? kTileRows : kTogether * kTileRows; }

struct Workspace {
  // The rows that are multiplied, and the next; with room to read a vector from the last of them.
  alignas(kVectorBytes) Real a[2][rows_together(false) * kDepth + kVectorBytes];
  alignas(kVectorBytes) Real b[kBlock];
  alignas(kVectorBytes) Real c[kTileRows * kTileColumns];
};

Workspace& workspace() {
  static thread_local const std::unique_ptr<Workspace> buffers(new Workspace);  // uninitialised
  return *buffers;
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
  const Real* a;     // packed, [depth, kTileRows]
  const Real* b;     // [depth, vectors * kLanes]
  const Real* base;  // null: 0
  Index base_row;    // from one row to the next
  Real* c;
  Index c_row;
  // What is packed along the way (below): its first element, the step from line to line or from depth to depth, its
  // place.
  const Real* next = nullptr;
  Index next_step = 0;
  Real* next_packed = nullptr;
};

// What a tile does between its multiplications, which leave most of the processor idle but for the multipliers: the
// rows of a that come next are packed there at next to no cost.
struct Nothing {
  static constexpr int kDepths = 1;  // multiplied before each step
  explicit Nothing(const TileOperands&) {}
  void step() {}
};
// A panel of lines that are contiguous along the depth.
struct PackLines {
  [[maybe_unused]] static constexpr int kDepths = 4;
  explicit PackLines(const TileOperands& t) : from(t.next), across(t.next_step), to(t.next_packed) {}
  [[gnu::always_inline]] void step() {
    unroll<kTileRows / 4>([&](auto i) __attribute__((always_inline)) {
      pack_square(from + 4 * i * across, across, to + 4 * i, kTileRows);
    });
    from += 4, to += 4 * kTileRows;
  }
  const Real* from;
  Index across;
  Real* to;
};
// Part of the depth of kTogether panels of lines that lie side by side.
struct PackNeighbours {
  [[maybe_unused]] static constexpr int kDepths = kTogether;
  explicit PackNeighbours(const TileOperands& t)
      : from(t.next), along(t.next_step), to(t.next_packed), panel(t.depth * kTileRows) {}
  [[gnu::always_inline]] void step() {
    unroll<kTogether>([&](auto i) __attribute__((always_inline)) {
      std::memcpy(to + i * panel, from + i * kTileRows, kTileRows * sizeof(Real));
    });
    unroll<kTogether>([&](auto i)
                          __attribute__((always_inline)) { __builtin_prefetch(from + 8 * along + i * kTileRows); });
    from += along, to += kTileRows;
  }
  const Real* from;
  Index along;
  Real* to;
  Index panel;
};

// c = base + a b on rows x (vectors * kLanes). The sums must stay in registers: see the machine code after a change.
template <int rows, int vectors, class Beside = Nothing>
void multiply_tile(const TileOperands& t) {
  unroll<rows>([&](auto i) __attribute__((always_inline)) {
    unroll<vectors>([&](auto v)
                        __attribute__((always_inline)) { __builtin_prefetch(t.c + i * t.c_row + v * kLanes, 1); });
  });
  Lanes sum[rows][vectors] = {};
  const Real *a = t.a, *b = t.b;
  const auto multiply_depth = [&]() __attribute__((always_inline)) {
    Lanes row[vectors];
    unroll<vectors>([&](auto v) __attribute__((always_inline)) { row[v] = load(b + v * kLanes); });
    unroll<rows>([&](auto i) __attribute__((always_inline)) {
      unroll<vectors>([&](auto v) __attribute__((always_inline)) { sum[i][v] += a[i] * row[v]; });
    });
    a += kTileRows, b += vectors * kLanes;
  };
  Beside beside(t);
  for (Index k = 0; k < t.depth; k += Beside::kDepths) {
    unroll<Beside::kDepths>([&](auto) __attribute__((always_inline)) { multiply_depth(); });
    beside.step();
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

template <int vectors, int... i>
constexpr std::array<TileFunction, kTileRows> tile_functions(std::integer_sequence<int, i...>) {
  return {multiply_tile<i + 1, vectors>...};
}
// kTiles[vectors - 1][rows - 1]
constexpr auto kAllRows = std::make_integer_sequence<int, kTileRows>{};
constexpr std::array<TileFunction, kTileRows> kTiles[kTileVectors] = {tile_functions<1>(kAllRows),
                                                                      tile_functions<2>(kAllRows)};

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

// So few columns at the end (1 of a vocabulary of 65) are multiplied as columns: with the rows of packed a in the
// lanes, each costs a twelfth of what a whole vector of columns does. Sums are those of a tile, in the same order.
constexpr Index kFewColumns = 2;
void multiply_columns(const TileOperands& t, Index rows, Index columns) {
  constexpr int kVectors = (kTileRows + static_cast<int>(kLanes) - 1) / static_cast<int>(kLanes);
  Lanes sum[kFewColumns][kVectors] = {};
  const Real *a = t.a, *b = t.b;
  for (Index k = 0; k < t.depth; ++k, a += kTileRows, b += kLanes)
    unroll<kVectors>([&](auto v) __attribute__((always_inline)) {
      const Lanes line = load(a + v * kLanes);  // of the next depth's rows too, which are not used
      unroll<kFewColumns>([&](auto j) __attribute__((always_inline)) { sum[j][v] += b[j] * line; });
    });
  for (Index j = 0; j < columns; ++j) {
    Real all[kVectors * kLanes];
    std::memcpy(all, sum[j], sizeof all);
    for (Index i = 0; i < rows; ++i) t.c[i * t.c_row + j] = t.base ? all[i] + t.base[i * t.base_row + j] : all[i];
  }
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

// Rows of a that are packed while those before them are multiplied.
struct NextRows {
  Lines lines;
  Real* packed;
};

constexpr bool kPacksBeside = kVectorBytes == 64;  // elsewhere no registers are left for it

// Whether they can be packed beside the tiles of such rows, columns and depth.
bool packs_beside(const Lines& next, Index rows, Index columns, Index depth) {
  const bool along_depth = next.along == 1;
  return kPacksBeside && rows == rows_together(along_depth) && next.count == rows && next.depth == depth &&
         depth % (4 * kTogether) == 0 && columns >= kTileColumns;
}

// What falls to the first of the tiles at `row`: the function that does both.
TileFunction pack_beside(const NextRows& next, Index row, TileOperands& t) {
  const Lines& lines = next.lines;
  if constexpr (kPacksBeside) {
    if (lines.along == 1) {
      t.next = lines.data, t.next_step = lines.across, t.next_packed = next.packed;
      return multiply_tile<kTileRows, kTileVectors, PackLines>;
    }
    const Index first = row * (lines.depth / kTogether);
    t.next = lines.data + first * lines.along, t.next_step = lines.along;
    t.next_packed = next.packed + first * kTileRows;
    return multiply_tile<kTileRows, kTileVectors, PackNeighbours>;
  }
  return nullptr;
}

// Rows that are packed together, times a packed block of b: depth `ks`, columns `js`.
void multiply_rows(const Product& p, Range is, Range js, Range ks, const Real* a, const NextRows& next,
                   Workspace& work) {
  const bool beside = packs_beside(next.lines, is.size(), js.size(), ks.size());
  for (Index i = is.begin; i < is.end; i += kTileRows, a += kTileRows * ks.size()) {
    const Index rows = std::min(is.end - i, Index{kTileRows});
    const Real* b = work.b;
    for (Index j = js.begin; j < js.end; j += kTileColumns) {
      const Index columns = std::min(kTileColumns, js.end - j), width = panel_width<kTileColumns, kLanes>(columns);
      Real* const c = p.c + i * p.columns + j;
      TileOperands t{ks.size(), a, b, nullptr, 0, c, p.columns};
      if (ks.begin > 0 || p.add)
        t.base = c, t.base_row = p.columns;
      else if (p.bias)
        t.base = p.bias + j;
      TileFunction multiply = kTiles[width / kLanes - 1][static_cast<std::size_t>(rows - 1)];
      if (beside && j == js.begin) multiply = pack_beside(next, (i - is.begin) / kTileRows, t);
      if (columns == width)
        multiply(t);
      else if (columns <= kFewColumns)
        multiply_columns(t, rows, columns);
      else
        multiply_narrow_tile(multiply, t, rows, columns, work.c);
      b += ks.size() * width;
    }
    if ((p.act == Activation::none && !p.residual) || ks.end < p.depth) continue;
    for (Index at = i * p.columns + js.begin; at < (i + rows) * p.columns; at += p.columns)
      finish_row(p, at, js.size());
  }
  if (!beside && next.lines.depth > 0) pack<kTileRows, kTileRows>(next.lines, next.packed);
}

// One thread's part of c.
void multiply_part(const Product& p, Range is, Range js) {
  Workspace& work = workspace();
  const Index together = rows_together(p.a.column == 1);
  const Index block_columns = kBlock / std::clamp<Index>(p.depth, 1, kDepth) / kTileColumns * kTileColumns;
  const auto rows_from = [&](Index i) { return Range{i, std::min(is.end, i + together)}; };
  const auto depths_from = [&](Index k) { return Range{k, std::min(p.depth, k + kDepth)}; };
  const auto lines = [&](Range rows, Range ks) {
    return Lines{p.a.data + rows.begin * p.a.row + ks.begin * p.a.column, p.a.row, p.a.column, rows.size(), ks.size()};
  };
  for (Index j = js.begin; j < js.end; j += block_columns) {
    const Range columns{j, std::min(js.end, j + block_columns)};
    Real *packed = work.a[0], *other = work.a[1];
    pack<kTileRows, kTileRows>(lines(rows_from(is.begin), depths_from(0)), packed);
    Range ks{};
    do {  // a depth of 0 still writes the base
      ks = depths_from(ks.end);
      const Real* b = p.b.data + ks.begin * p.b.row + j * p.b.column;
      pack<kTileColumns, kLanes>({b, p.b.column, p.b.row, columns.size(), ks.size()}, work.b);
      for (Index i = is.begin; i < is.end; i += together) {
        const Range rows = rows_from(i);
        const bool last = rows.end == is.end;  // after which come the first rows again, of the next depths, or none
        const NextRows next{lines(rows_from(last ? is.begin : rows.end), last ? depths_from(ks.end) : ks), other};
        multiply_rows(p, rows, columns, ks, packed, next, work);
        std::swap(packed, other);
      }
    } while (ks.end < p.depth);
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

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
