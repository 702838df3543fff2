// Norms whose groups lie side by side (batch, batch_step, instance): many columns are reduced together, over chunks of
// rows whose partial sums are added from top to bottom.
#include <cassert>
#include <cmath>

#include "normalize.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {
namespace {

constexpr Index kChunkRows = 64;  // rows that share one partial sum
constexpr Index kTileColumns = 512;

// A tile is one outer index, one chunk of rows and up to kTileColumns channels at one of the inner / C positions, so
// that each of its rows has one entry of the mask. A panel is all chunks of such columns.
struct Tile {
  Index first, rows, width;  // flat index of the first element; rows are `inner` apart
  Index group, channel;      // of the first column
  Index chunk;
};

// x as [outer, reduced, inner / C, C].
struct Columns {
  explicit Columns(NormView v)
      : view(v),
        chunks((v.reduced + kChunkRows - 1) / kChunkRows),
        positions(v.inner / v.channels),
        blocks((v.channels + kTileColumns - 1) / kTileColumns),
        tile_width(std::min(v.channels, kTileColumns)) {
    assert(v.inner % v.channels == 0);
  }

  Tile tile(Index outer, Index chunk, Index across) const {
    const Index channel = across % blocks * kTileColumns, row = chunk * kChunkRows;
    const Index column = across / blocks * view.channels + channel;
    return {(outer * view.reduced + row) * view.inner + column,
            std::min(kChunkRows, view.reduced - row),
            std::min(kTileColumns, view.channels - channel),
            outer * view.inner + column,
            channel,
            chunk};
  }

  // f(tile) over threads; a tile is the same for any number of them.
  template <class F>
  void for_tiles(Index cost, const F& f) const {
    const Index across = positions * blocks;
    parallel_for(view.outer * chunks * across, cost * std::min(kChunkRows, view.reduced) * tile_width,
                 [&](Index k) { f(tile(k / (chunks * across), k / across % chunks, k % across)); });
  }

  // f(first tile) of each panel, over threads.
  template <class F>
  void for_panels(Index cost, const F& f) const {
    const Index across = positions * blocks;
    parallel_for(view.outer * across, cost * chunks * tile_width, [&](Index k) { f(tile(k / across, 0, k % across)); });
  }

  // The tile at the top of a tile's columns.
  Tile panel_of(Tile tile) const {
    tile.first -= tile.chunk * kChunkRows * view.inner;
    tile.chunk = 0;
    return tile;
  }

  Index mask_row(Index flat) const { return flat / view.channels; }

  // f(RowCount, flat index of the first of as many neighbouring rows) over the real rows of a tile.
  template <class F>
  void real_rows(const Tile& tile, Mask mask, const F& f) const {
    const auto real = [&](Index r) { return is_real(mask, mask_row(tile.first + r * view.inner)); };
    for (Index r = 0; r < tile.rows;) {
      Index end = mask.empty() ? tile.rows : r;
      while (end < tile.rows && real(end)) ++end;
      rows_together(end - r, [&](auto rows, Index row) { f(rows, tile.first + (r + row) * view.inner); });
      r = std::max(end, r + 1);
    }
  }

  // The real rows of a panel: how many, and the flat index of the first (-1: none).
  struct RealRows {
    Index count = 0, first = -1;
  };
  RealRows real_rows_of(const Tile& panel, Mask mask) const {
    if (mask.empty()) return {view.reduced, panel.first};
    RealRows real;
    for (Index r = view.reduced - 1; r >= 0; --r)
      if (const Index at = panel.first + r * view.inner; is_real(mask, mask_row(at))) ++real.count, real.first = at;
    return real;
  }

  NormView view;
  Index chunks, positions, blocks, tile_width;
};

// The two partial sums of each chunk and group, [chunks, 2, groups].
class Partials {
 public:
  explicit Partials(const Columns& columns)
      : groups_(columns.view.groups()), chunks_(columns.chunks), sums_(chunks_ * 2 * groups_) {}
  Real* first(const Tile& tile) const { return sums_.data() + tile.chunk * 2 * groups_ + tile.group; }
  Real* second(const Tile& tile) const { return first(tile) + groups_; }
  void clear(const Tile& tile) const {
    std::fill(first(tile), first(tile) + tile.width, Real(0));
    std::fill(second(tile), second(tile) + tile.width, Real(0));
  }
  // The sums over all chunks of a panel's columns.
  void sum_up(const Tile& panel, double* first_total, double* second_total) const {
    sum_parts(first(panel), chunks_, 2 * groups_, panel.width, first_total);
    sum_parts(second(panel), chunks_, 2 * groups_, panel.width, second_total);
  }

 private:
  Index groups_, chunks_;
  Scratch sums_;
};

// Sums of d = x - shift and of d^2 over each chunk, the shift being the column's first real element (0 if not
// centred): the variance is right to as many roundings as there are rows at the worst, whatever the mean.
void column_sums(const Columns& columns, const Tile& tile, Mask mask, const Real* x, const Real* shift,
                 const Partials& partials) {
  Real *plain = partials.first(tile), *squared = partials.second(tile);
  partials.clear(tile);
  const Index stride = columns.view.inner, width = tile.width;
  columns.real_rows(tile, mask, [&](auto rows, Index at) {
    constexpr int kRows = decltype(rows)::value;
    const Real* from_x = x + at;
    for_lanes(0, width, [&](Index i, auto n) {
      const Lanes from = load(shift + i, n);
      Lanes total{}, squares{};
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const Lanes d = load(from_x + r * stride + i, n) - from;
        total += d;
        squares += d * d;
      }
      store(plain + i, load(plain + i, n) + total, n);
      store(squared + i, load(squared + i, n) + squares, n);
    });
  });
}

// y = (x - mean) rstd gain + bias over the rows [0, count) of `stride`, one (mean, rstd) a column.
void write_columns(Index count, Index stride, Index width, const Real* x, const Real* mean, const Real* rstd,
                   const Real* gain, const Real* bias, Real* y) {
  rows_together(count, [&](auto rows, Index row) {
    constexpr int kRows = decltype(rows)::value;
    const Real* from = x + row * stride;
    Real* to = y + row * stride;
    for_lanes(0, width, [&](Index i, auto n) {
      const Lanes middle = load(mean + i, n), scale = load(gain + i, n) * load(rstd + i, n), offset = load(bias + i, n);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r)
        store(to + r * stride + i, (load(from + r * stride + i, n) - middle) * scale + offset, n);
    });
  });
}

// Sums of dy and dy (x - mean) over each chunk.
void column_gradient_sums(const Columns& columns, const Tile& tile, const Backward& b, Mask mask,
                          const Partials& partials) {
  Real *plain = partials.first(tile), *times_x = partials.second(tile);
  const Real* mean = b.mean.data() + tile.group;
  partials.clear(tile);
  const Index stride = columns.view.inner, width = tile.width;
  columns.real_rows(tile, mask, [&](auto rows, Index at) {
    constexpr int kRows = decltype(rows)::value;
    const Real *x = b.x + at, *dy = b.dy + at;
    for_lanes(0, width, [&](Index i, auto n) {
      const Lanes middle = load(mean + i, n);
      Lanes total{}, total_x{};
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r) {
        const Lanes grad = load(dy + r * stride + i, n);
        total += grad;
        total_x += grad * (load(x + r * stride + i, n) - middle);
      }
      store(plain + i, load(plain + i, n) + total, n);
      store(times_x + i, load(times_x + i, n) + total_x, n);
    });
  });
}

// f(group, its real rows, sum of dy, sum of dy (x - mean)) for every group, the sums over the rows real in `mask`.
template <class F>
void for_gradient_sums(const Columns& columns, const Backward& b, Mask mask, const F& f) {
  const Partials partials(columns);
  columns.for_tiles(6, [&](const Tile& tile) { column_gradient_sums(columns, tile, b, mask, partials); });
  columns.for_panels(4, [&](const Tile& panel) {
    double plain[kTileColumns], times_x[kTileColumns];
    partials.sum_up(panel, plain, times_x);
    const auto real = columns.real_rows_of(panel, b.mask);
    for (Index i = 0; i < panel.width; ++i) f(panel.group + i, real.count, plain[i], times_x[i]);
  });
}

// dx = scale dy + (x - mean) slope + offset, one of each a column; padded rows have scale dy alone.
struct ColumnLine {
  const Real *scale, *slope, *offset;
};
void write_column_dx(const Columns& columns, const Tile& tile, const Backward& b, ColumnLine line) {
  const Real* mean = b.mean.data() + tile.group;
  const Index stride = columns.view.inner, width = tile.width;
  const Grad dx = b.dx;
  columns.real_rows(tile, b.mask, [&](auto rows, Index at) {
    constexpr int kRows = decltype(rows)::value;
    const Real *x = b.x + at, *dy = b.dy + at;
    for_lanes(0, width, [&](Index i, auto n) {
      const Lanes middle = load(mean + i, n), scale = load(line.scale + i, n), slope = load(line.slope + i, n),
                  offset = load(line.offset + i, n);
#pragma GCC unroll 4
      for (int r = 0; r < kRows; ++r)
        put(dx, at + r * stride + i,
            load(dy + r * stride + i, n) * scale + ((load(x + r * stride + i, n) - middle) * slope + offset), n);
    });
  });
  if (b.mask.empty()) return;
  for (Index r = 0; r < tile.rows; ++r) {
    const Index at = tile.first + r * columns.view.inner;
    if (is_real(b.mask, columns.mask_row(at))) continue;
    for_lanes(0, tile.width,
              [&](Index i, auto n) { put(b.dx, at + i, load(b.dy + at + i, n) * load(line.scale + i, n), n); });
  }
}

}  // namespace

void forward_columns(NormView v, NormRule rule, Mask mask, In x, In gain, In bias, Out y, Out mean, Out rstd) {
  const Columns columns(v);
  const Affine affine(v.channels, gain, bias);
  const Partials partials(columns);
  const auto shift_of = [&](const Tile& tile, Index first_real) {
    return rule.centred && first_real >= 0 ? x.data() + first_real : affine.zeros + tile.channel;
  };
  columns.for_tiles(4, [&](const Tile& tile) {
    const Tile panel = columns.panel_of(tile);
    column_sums(columns, tile, mask, x.data(), shift_of(tile, columns.real_rows_of(panel, mask).first), partials);
  });
  columns.for_panels(4, [&](const Tile& panel) {
    double plain[kTileColumns], squared[kTileColumns];
    partials.sum_up(panel, plain, squared);
    const auto real = columns.real_rows_of(panel, mask);
    const double inverse = real.count > 0 ? 1 / static_cast<double>(real.count) : 0;
    const Real* shift = shift_of(panel, real.first);
    Real *means = mean.data() + panel.group, *rstds = rstd.data() + panel.group;
    for (Index i = 0; i < panel.width; ++i) {
      const double middle = rule.centred ? plain[i] * inverse : 0;
      const double variance = squared[i] * inverse - middle * middle;
      means[i] = static_cast<Real>(static_cast<double>(shift[i]) + middle);
      rstds[i] = static_cast<Real>(1 / std::sqrt((variance < 0 ? 0 : variance) + rule.eps));
    }
  });
  columns.for_tiles(2, [&](const Tile& tile) {
    write_columns(tile.rows, v.inner, tile.width, x.data() + tile.first, mean.data() + tile.group,
                  rstd.data() + tile.group, affine.gain + tile.channel, affine.bias + tile.channel,
                  y.data() + tile.first);
  });
}

void backward_columns(NormView v, const Backward& b, In gain) {
  const Columns columns(v);
  const Affine affine(v.channels, gain, {});
  // [5, groups]: what dgain and dbias sum, and the line of dx
  const Scratch results(5 * v.groups());
  Real *for_gain = results.data(), *for_bias = for_gain + v.groups(), *scale = for_bias + v.groups(),
       *slope = scale + v.groups(), *offset = slope + v.groups();
  // All rows, padded ones too: each was normalised and may have a gradient.
  for_gradient_sums(columns, b, Mask{}, [&](Index g, Index real, double plain, double times_x) {
    const double inverse = real > 0 ? 1 / static_cast<double>(real) : 0;
    const double r = static_cast<double>(b.rstd[static_cast<std::size_t>(g)]);
    const double factor = r * static_cast<double>(affine.gain[g % v.channels]);
    for_gain[g] = static_cast<Real>(times_x * r);
    for_bias[g] = static_cast<Real>(plain);
    scale[g] = static_cast<Real>(factor);
    slope[g] = static_cast<Real>(-factor * (times_x * r * inverse) * r);
    offset[g] = static_cast<Real>(b.rule.centred ? -factor * (plain * inverse) : 0);
  });
  if (b.dx)
    columns.for_tiles(6, [&](const Tile& tile) {
      write_column_dx(columns, tile, b, {scale + tile.group, slope + tile.group, offset + tile.group});
    });
  add_up(for_gain, v.groups() / v.channels, v.channels, b.dgain);
  add_up(for_bias, v.groups() / v.channels, v.channels, b.dbias);
}

void normalize_by_forward(NormView v, In x, In gain, In bias, In mean, In rstd, Out y) {
  const Affine affine(v.channels, gain, bias);
  Columns(v).for_tiles(2, [&](const Tile& tile) {
    write_columns(tile.rows, v.inner, tile.width, x.data() + tile.first, mean.data() + tile.group,
                  rstd.data() + tile.group, affine.gain + tile.channel, affine.bias + tile.channel,
                  y.data() + tile.first);
  });
}

void normalize_by_backward(NormView v, In x, In gain, In mean, In rstd, In dy, Grad dx, Grad dgain, Grad dbias) {
  const Columns columns(v);
  const Affine affine(v.channels, gain, {});
  if (dx)
    columns.for_tiles(3, [&](const Tile& tile) {
      for (Index r = 0; r < tile.rows; ++r)
        for_lanes(0, tile.width, [&](Index i, auto n) {
          const Index at = tile.first + r * v.inner + i;
          const Lanes scale = load(affine.gain + tile.channel + i, n) * load(rstd.data() + tile.group + i, n);
          put(dx, at, load(dy.data() + at, n) * scale, n);
        });
    });
  if (!dgain && !dbias) return;
  const Backward b{NormRule{}, Mask{}, x.data(), dy.data(), mean, rstd, dx, dgain, dbias};
  const Scratch results(2 * v.groups());  // [2, groups]
  Real *for_gain = results.data(), *for_bias = for_gain + v.groups();
  for_gradient_sums(columns, b, Mask{}, [&](Index g, Index, double plain, double times_x) {
    for_gain[g] = static_cast<Real>(times_x * static_cast<double>(rstd[static_cast<std::size_t>(g)]));
    for_bias[g] = static_cast<Real>(plain);
  });
  add_up(for_gain, v.groups() / v.channels, v.channels, dgain);
  add_up(for_bias, v.groups() / v.channels, v.channels, dbias);
}

void mean_square(Index channels, Mask mask, In x, Out square) {
  const Columns columns({1, static_cast<Index>(x.size()) / channels, channels, channels});
  const Affine affine(channels, {}, {});
  const Partials partials(columns);
  columns.for_tiles(
      4, [&](const Tile& tile) { column_sums(columns, tile, mask, x.data(), affine.zeros + tile.channel, partials); });
  columns.for_panels(4, [&](const Tile& panel) {
    double plain[kTileColumns], squared[kTileColumns];
    partials.sum_up(panel, plain, squared);
    const double count = static_cast<double>(std::max<Index>(1, columns.real_rows_of(panel, mask).count));
    for (Index i = 0; i < panel.width; ++i)
      square[static_cast<std::size_t>(panel.group + i)] = static_cast<Real>(squared[i] / count);
  });
}

void power_backward(Index channels, Mask mask, In x, In gain, In rstd, In projection, In dy, Grad dx, Grad dgain,
                    Grad dbias, Out mean_gz) {
  const Columns columns({1, static_cast<Index>(x.size()) / channels, channels, channels});
  const Affine affine(channels, gain, {});
  const In no_mean(affine.zeros, static_cast<std::size_t>(channels));
  const Backward b{NormRule{}, mask, x.data(), dy.data(), no_mean, rstd, dx, dgain, dbias};
  const Scratch results(4 * channels);  // [4, C]: what dgain and dbias sum, and the line of dx
  Real *for_gain = results.data(), *for_bias = for_gain + channels, *scale = for_bias + channels,
       *slope = scale + channels;
  for_gradient_sums(columns, b, mask, [&](Index c, Index real, double, double times_x) {
    const auto at = static_cast<std::size_t>(c);
    const double r = static_cast<double>(rstd[at]), factor = r * static_cast<double>(affine.gain[c]);
    mean_gz[at] = static_cast<Real>(factor * times_x / static_cast<double>(std::max<Index>(1, real)));
    scale[c] = static_cast<Real>(factor);
    slope[c] = static_cast<Real>(-static_cast<double>(projection[at]) * r * r);
  });
  for_gradient_sums(columns, b, Mask{}, [&](Index c, Index, double plain, double times_x) {
    for_gain[c] = static_cast<Real>(times_x * static_cast<double>(rstd[static_cast<std::size_t>(c)]));
    for_bias[c] = static_cast<Real>(plain);
  });
  Backward all = b;
  all.mask = Mask{};
  if (dx)
    columns.for_tiles(6, [&](const Tile& tile) {
      write_column_dx(columns, tile, all, {scale + tile.group, slope + tile.group, affine.zeros + tile.group});
    });
  add_up(for_gain, 1, channels, dgain);
  add_up(for_bias, 1, channels, dbias);
}

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
