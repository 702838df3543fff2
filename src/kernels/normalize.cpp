// One pair of loops for all norms. Where the reduced elements lie side by side (inner == 1: layer, rms, group,
// layer_seq) each group is walked along its channels; else (instance, batch, batch_step) neighbouring groups lie side
// by side and are reduced together over chunks of rows, whose partial sums are added from top to bottom.
// A little over 400 lines, since the two ways share what they do to one row.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <vector>

#include "normlab/base/parallel.h"
#include "normlab/kernels/simd.h"

namespace normlab::inline NORMLAB_REAL::kernels {
namespace {

constexpr Index kChunkRows = 32;  // rows that share one partial sum

std::vector<Real> zeros(Index n) { return std::vector<Real>(static_cast<std::size_t>(n)); }

struct Statistics {
  Real mean, rstd;
};

// ---- Groups side by side in memory: runs of channels ---------------------------------------------------------------
// A group is `runs` runs of `length` neighbouring channels, each within one row. An item is the constant number of
// groups that share a partial sum of dgain and dbias.
struct Runs {
  explicit Runs(NormView v)
      : view(v),
        length(std::min(v.reduced, v.channels)),
        runs(v.reduced / length),
        groups_an_item(runs > 1 ? 1 : kChunkRows * (v.channels / length)),
        items((v.outer + groups_an_item - 1) / groups_an_item) {
    assert(v.channels % length == 0 && v.reduced % length == 0);
  }

  // f(group) for the groups of an item.
  template <class F>
  void groups_of(Index item, const F& f) const {
    const Index end = std::min(view.outer, (item + 1) * groups_an_item);
    for (Index g = item * groups_an_item; g < end; ++g) f(g);
  }

  // f(first flat index, first channel, is it real) for each run of a group.
  template <class F>
  void runs_of(Index group, Mask mask, const F& f) const {
    for (Index run = 0; run < runs; ++run) {
      const Index at = group * view.reduced + run * length;
      f(at, at % view.channels, is_real(mask, at / view.channels));
    }
  }

  NormView view;
  Index length, runs, groups_an_item, items;
};

// The sum over a run: lanes within, then one number.
template <class F>
double sum_run(Index length, const F& term) {
  Lanes total{};
  for_lanes(0, length, [&](Index i, auto n) { total += first_lanes(term(i, n), n); });
  return static_cast<double>(sum(total));
}

Statistics group_statistics(const Runs& runs, Index group, NormRule rule, Mask mask, const Real* x) {
  Index count = 0;
  double total = 0, squares = 0;
  runs.runs_of(group, mask, [&](Index at, Index, bool real) {
    if (!real) return;
    count += runs.length;
    if (rule.centred) total += sum_run(runs.length, [&](Index i, auto n) { return load(x + at + i, n); });
  });
  const double inverse = count > 0 ? 1 / static_cast<double>(count) : 0;
  const Real mean = static_cast<Real>(total * inverse);
  double rest = 0;  // the sum of x - mean: what rounding left over; 0 if not centred
  runs.runs_of(group, mask, [&](Index at, Index, bool real) {
    if (!real) return;
    Lanes squared{}, plain{};
    for_lanes(0, runs.length, [&](Index i, auto n) {
      const Lanes d = first_lanes(load(x + at + i, n) - mean, n);
      squared += d * d;
      plain += d;
    });
    squares += static_cast<double>(sum(squared));
    if (rule.centred) rest += static_cast<double>(sum(plain));
  });
  const double variance = std::max(0.0, squares * inverse - (rest * inverse) * (rest * inverse));
  return {static_cast<Real>(mean + rest * inverse), static_cast<Real>(1 / std::sqrt(variance + rule.eps))};
}

// y = (x - mean) rstd gain + bias over `length` channels with one (mean, rstd).
void write_run(Index length, const Real* x, Statistics s, const Real* gain, const Real* bias, Real* y) {
  for_lanes(0, length, [&](Index i, auto n) {
    Lanes value = (load(x + i, n) - s.mean) * s.rstd;
    if (gain) value = value * load(gain + i, n);
    if (bias) value = value + load(bias + i, n);
    store(y + i, value, n);
  });
}

const Real* from(In values, Index i) { return values.empty() ? nullptr : values.data() + i; }

void forward_runs(NormView v, NormRule rule, Mask mask, In x, In gain, In bias, Out y, Out mean, Out rstd) {
  const Runs runs(v);
  parallel_for(runs.items, 4 * runs.groups_an_item * v.reduced, [&](Index item) {
    runs.groups_of(item, [&](Index g) {
      const Statistics s = group_statistics(runs, g, rule, mask, x.data());
      mean[static_cast<std::size_t>(g)] = s.mean;
      rstd[static_cast<std::size_t>(g)] = s.rstd;
      runs.runs_of(g, mask, [&](Index at, Index channel, bool) {
        write_run(runs.length, x.data() + at, s, from(gain, channel), from(bias, channel), y.data() + at);
      });
    });
  });
}

// grad (+)= the sum over `parts` rows of `stride` numbers, column by column, from top to bottom in double.
void add_up(const Real* partial, Index parts, Index stride, Grad grad) {
  if (!grad) return;
  parallel_for(static_cast<Index>(grad.values.size()), parts, [&](Index c) {
    double total = 0;
    for (Index part = 0; part < parts; ++part) total += static_cast<double>(partial[part * stride + c]);
    Real& value = grad.values[static_cast<std::size_t>(c)];
    value = static_cast<Real>(grad.add ? static_cast<double>(value) + total : total);
  });
}

// What the backward reads and writes.
struct Backward {
  NormRule rule;
  Mask mask;
  const Real *x, *dy, *gain;
  In mean, rstd;
  Grad dx;

  Statistics of(Index group) const {
    return {mean[static_cast<std::size_t>(group)], rstd[static_cast<std::size_t>(group)]};
  }
};

// dx of one group, and dgain, dbias of its channels added to a partial sum (null: not wanted).
void backward_group(const Runs& runs, Index g, const Backward& b, Real* dgain, Real* dbias) {
  const Statistics s = b.of(g);
  Index count = 0;
  double sum_g = 0, sum_gx = 0;
  runs.runs_of(g, b.mask, [&](Index at, Index channel, bool real) {
    if (real) count += runs.length;
    Lanes plain{}, times_x{};
    for_lanes(0, runs.length, [&](Index i, auto n) {
      const Lanes d = load(b.dy + at + i, n), x_hat = (load(b.x + at + i, n) - s.mean) * s.rstd;
      const Lanes grad = b.gain ? d * load(b.gain + channel + i, n) : d;
      plain += grad;
      times_x += grad * x_hat;
      if (dgain) store(dgain + channel + i, load(dgain + channel + i, n) + d * x_hat, n);
      if (dbias) store(dbias + channel + i, load(dbias + channel + i, n) + d, n);
    });
    sum_g += static_cast<double>(sum(plain));
    sum_gx += static_cast<double>(sum(times_x));
  });
  if (!b.dx) return;
  const double inverse = count > 0 ? 1 / static_cast<double>(count) : 0;
  const Real mean_g = static_cast<Real>(b.rule.centred ? sum_g * inverse : 0),
             mean_gx = static_cast<Real>(sum_gx * inverse);
  runs.runs_of(g, b.mask, [&](Index at, Index channel, bool real) {
    for_lanes(0, runs.length, [&](Index i, auto n) {
      Lanes grad = load(b.dy + at + i, n);
      if (b.gain) grad *= load(b.gain + channel + i, n);
      if (real) grad = grad - mean_g - (load(b.x + at + i, n) - s.mean) * s.rstd * mean_gx;
      put(b.dx, at + i, grad * s.rstd, n);
    });
  });
}

void backward_runs(NormView v, const Backward& b, Grad dgain, Grad dbias) {
  const Runs runs(v);
  const Index C = v.channels;
  std::vector<Real> partial = zeros(runs.items * 2 * C);  // [items, 2, C]: dgain, dbias
  parallel_for(runs.items, 8 * runs.groups_an_item * v.reduced, [&](Index item) {
    Real* sums = partial.data() + item * 2 * C;
    runs.groups_of(item,
                   [&](Index g) { backward_group(runs, g, b, dgain ? sums : nullptr, dbias ? sums + C : nullptr); });
  });
  add_up(partial.data(), runs.items, 2 * C, dgain);
  add_up(partial.data() + C, runs.items, 2 * C, dbias);
}

// ---- Neighbouring groups side by side in memory: columns -----------------------------------------------------------
// x as [outer, reduced, inner / C, C]. A tile is one outer index, one chunk of rows and up to kTileColumns channels at
// one of the inner / C positions, so that each of its rows has one entry of the mask.
struct Tile {
  Index first, rows, width;  // flat index of the first element; rows are `inner` apart
  Index group, channel;      // of the first column
  Index chunk;
};
struct Columns {
  static constexpr Index kTileColumns = 512;

  explicit Columns(NormView v)
      : view(v),
        chunks((v.reduced + kChunkRows - 1) / kChunkRows),
        positions(v.inner / v.channels),
        blocks((v.channels + kTileColumns - 1) / kTileColumns) {
    assert(v.inner % v.channels == 0);
  }

  // f(tile) over threads; a tile is the same for any number of them.
  template <class F>
  void for_tiles(Index cost, const F& f) const {
    const Index across = positions * blocks;
    parallel_for(view.outer * chunks * across, cost * kChunkRows * std::min(view.channels, kTileColumns), [&](Index k) {
      const Index outer = k / (chunks * across), chunk = k / across % chunks, position = k % across / blocks;
      const Index channel = k % blocks * kTileColumns, row = chunk * kChunkRows;
      const Index column = position * view.channels + channel;
      f(Tile{(outer * view.reduced + row) * view.inner + column, std::min(kChunkRows, view.reduced - row),
             std::min(kTileColumns, view.channels - channel), outer * view.inner + column, channel, chunk});
    });
  }

  // f(flat index of a row's first element) for the rows of a tile that are real.
  template <class F>
  void real_rows(const Tile& tile, Mask mask, const F& f) const {
    for (Index r = 0; r < tile.rows; ++r)
      if (const Index at = tile.first + r * view.inner; is_real(mask, at / view.channels)) f(at);
  }

  NormView view;
  Index chunks, positions, blocks;
};

// The two partial sums of each chunk and group, [chunks, 2, groups], and the number of real rows [chunks, groups].
struct Partials {
  explicit Partials(const Columns& columns) : groups(columns.view.groups()), sums(zeros(columns.chunks * 2 * groups)) {}
  Real* first(const Tile& tile) { return sums.data() + tile.chunk * 2 * groups + tile.group; }
  Real* second(const Tile& tile) { return first(tile) + groups; }

  Index groups;
  std::vector<Real> sums;
};

Index real_rows_of_group(NormView v, Mask mask, Index group, Index begin, Index end) {
  if (mask.empty()) return end - begin;
  Index count = 0;
  for (Index r = begin; r < end; ++r) {
    const Index flat = (group / v.inner * v.reduced + r) * v.inner + group % v.inner;
    count += is_real(mask, flat / v.channels);
  }
  return count;
}

// Sums of d = x - shift and of d^2 over each chunk, the shift being the chunk's first real element (0 if not centred):
// the variance does not suffer from a large mean.
void column_sums(const Columns& columns, NormRule rule, Mask mask, const Real* x, Partials& partials,
                 std::vector<Real>& shifts) {
  columns.for_tiles(4, [&](const Tile& tile) {
    Real *plain = partials.first(tile), *squared = partials.second(tile);
    Real* shift = shifts.data() + tile.chunk * partials.groups + tile.group;
    bool first = true;
    columns.real_rows(tile, mask, [&](Index at) {
      if (first && rule.centred) std::copy(x + at, x + at + tile.width, shift);
      first = false;
      for_lanes(0, tile.width, [&](Index i, auto n) {
        const Lanes d = load(x + at + i, n) - load(shift + i, n);
        store(plain + i, load(plain + i, n) + d, n);
        store(squared + i, load(squared + i, n) + d * d, n);
      });
    });
  });
}

// The chunks of one group joined in double (Chan, Golub, LeVeque 1979).
Statistics join_chunks(const Columns& columns, NormRule rule, Mask mask, Index group, const Partials& partials,
                       const std::vector<Real>& shifts) {
  double count = 0, mean = 0, squares = 0;
  for (Index chunk = 0; chunk < columns.chunks; ++chunk) {
    const Index begin = chunk * kChunkRows, end = std::min(columns.view.reduced, begin + kChunkRows);
    const double n = static_cast<double>(real_rows_of_group(columns.view, mask, group, begin, end));
    if (n == 0) continue;
    const std::size_t at = static_cast<std::size_t>(chunk * 2 * partials.groups + group);
    const double plain = static_cast<double>(partials.sums[at]);
    const double squared = static_cast<double>(partials.sums[at + static_cast<std::size_t>(partials.groups)]);
    if (rule.centred) {
      const double chunk_mean =
          static_cast<double>(shifts[static_cast<std::size_t>(chunk * partials.groups + group)]) + plain / n;
      const double step = chunk_mean - mean;
      squares += std::max(0.0, squared - plain * plain / n) + step * step * count * n / (count + n);
      mean += step * n / (count + n);
    } else {
      squares += squared;
    }
    count += n;
  }
  const double variance = count > 0 ? squares / count : 0;
  return {static_cast<Real>(mean), static_cast<Real>(1 / std::sqrt(variance + rule.eps))};
}

// y from one (mean, rstd) a column.
void write_columns(Index width, const Real* x, const Real* mean, const Real* rstd, const Real* gain, const Real* bias,
                   Real* y) {
  for_lanes(0, width, [&](Index i, auto n) {
    Lanes value = (load(x + i, n) - load(mean + i, n)) * load(rstd + i, n);
    if (gain) value = value * load(gain + i, n);
    if (bias) value = value + load(bias + i, n);
    store(y + i, value, n);
  });
}

void forward_columns(NormView v, NormRule rule, Mask mask, In x, In gain, In bias, Out y, Out mean, Out rstd) {
  const Columns columns(v);
  Partials partials(columns);
  std::vector<Real> shifts = zeros(columns.chunks * v.groups());
  column_sums(columns, rule, mask, x.data(), partials, shifts);
  parallel_for(v.groups(), 10 * columns.chunks, [&](Index g) {
    const Statistics s = join_chunks(columns, rule, mask, g, partials, shifts);
    mean[static_cast<std::size_t>(g)] = s.mean;
    rstd[static_cast<std::size_t>(g)] = s.rstd;
  });
  columns.for_tiles(2, [&](const Tile& tile) {
    for (Index r = 0; r < tile.rows; ++r) {
      const Index at = tile.first + r * v.inner;
      write_columns(tile.width, x.data() + at, mean.data() + tile.group, rstd.data() + tile.group,
                    from(gain, tile.channel), from(bias, tile.channel), y.data() + at);
    }
  });
}

// Sums of dy and dy x_hat over each chunk of all rows, padded ones too.
void column_gradient_sums(const Columns& columns, const Backward& b, Partials& partials) {
  columns.for_tiles(6, [&](const Tile& tile) {
    Real *plain = partials.first(tile), *times_x = partials.second(tile);
    const Real *mean = b.mean.data() + tile.group, *rstd = b.rstd.data() + tile.group;
    columns.real_rows(tile, Mask{}, [&](Index at) {
      for_lanes(0, tile.width, [&](Index i, auto n) {
        const Lanes d = load(b.dy + at + i, n);
        const Lanes x_hat = (load(b.x + at + i, n) - load(mean + i, n)) * load(rstd + i, n);
        store(plain + i, load(plain + i, n) + d, n);
        store(times_x + i, load(times_x + i, n) + d * x_hat, n);
      });
    });
  });
}

// dx of the rows of a tile from the means of g and g x_hat of each of its groups.
void column_dx(const Columns& columns, const Tile& tile, const Backward& b, const Real* mean_g, const Real* mean_gx) {
  const Real *mean = b.mean.data() + tile.group, *rstd = b.rstd.data() + tile.group;
  for (Index r = 0; r < tile.rows; ++r) {
    const Index at = tile.first + r * columns.view.inner;
    const bool real = is_real(b.mask, at / columns.view.channels);
    for_lanes(0, tile.width, [&](Index i, auto n) {
      Lanes grad = load(b.dy + at + i, n);
      const Lanes scale = load(rstd + i, n);
      if (b.gain) grad *= load(b.gain + tile.channel + i, n);
      if (real) {
        const Lanes x_hat = (load(b.x + at + i, n) - load(mean + i, n)) * scale;
        grad = grad - load(mean_g + tile.group + i, n) - x_hat * load(mean_gx + tile.group + i, n);
      }
      put(b.dx, at + i, grad * scale, n);
    });
  }
}

void backward_columns(NormView v, const Backward& b, Grad dgain, Grad dbias) {
  const Columns columns(v);
  Partials partials(columns);
  column_gradient_sums(columns, b, partials);
  std::vector<Real> sums = zeros(2 * v.groups());  // [2, groups]: of dy x_hat, of dy
  std::vector<Real> means = zeros(2 * v.groups());
  Real *sum_x = sums.data(), *sum_plain = sums.data() + v.groups();
  Real *mean_gx = means.data(), *mean_g = means.data() + v.groups();
  parallel_for(v.groups(), 10 * columns.chunks, [&](Index g) {
    double plain = 0, times_x = 0;
    for (Index chunk = 0; chunk < columns.chunks; ++chunk) {
      plain += static_cast<double>(partials.sums[static_cast<std::size_t>(chunk * 2 * v.groups() + g)]);
      times_x += static_cast<double>(partials.sums[static_cast<std::size_t>((chunk * 2 + 1) * v.groups() + g)]);
    }
    sum_x[g] = static_cast<Real>(times_x);
    sum_plain[g] = static_cast<Real>(plain);
    const Index count = real_rows_of_group(v, b.mask, g, 0, v.reduced);
    const double weight = b.gain ? static_cast<double>(b.gain[g % v.channels]) : 1;
    const double inverse = count > 0 ? weight / static_cast<double>(count) : 0;
    mean_gx[g] = static_cast<Real>(times_x * inverse);
    mean_g[g] = static_cast<Real>(b.rule.centred ? plain * inverse : 0);
  });
  if (b.dx) columns.for_tiles(6, [&](const Tile& tile) { column_dx(columns, tile, b, mean_g, mean_gx); });
  add_up(sum_x, v.groups() / v.channels, v.channels, dgain);
  add_up(sum_plain, v.groups() / v.channels, v.channels, dbias);
}

}  // namespace

void normalize_forward(NormView v, NormRule rule, Mask mask, In x, In gain, In bias, Out y, Out mean, Out rstd) {
  (v.inner == 1 ? forward_runs : forward_columns)(v, rule, mask, x, gain, bias, y, mean, rstd);
}

void normalize_backward(NormView v, NormRule rule, Mask mask, In x, In gain, In mean, In rstd, In dy, Grad dx,
                        Grad dgain, Grad dbias) {
  const Backward b{rule, mask, x.data(), dy.data(), from(gain, 0), mean, rstd, dx};
  (v.inner == 1 ? backward_runs : backward_columns)(v, b, dgain, dbias);
}

void normalize_by_forward(Index channels, In x, In gain, In bias, In mean, In rstd, Out y) {
  parallel_for(static_cast<Index>(x.size()) / channels, 2 * channels, [&](Index row) {
    const Index at = row * channels;
    write_columns(channels, x.data() + at, mean.data(), rstd.data(), from(gain, 0), from(bias, 0), y.data() + at);
  });
}

void normalize_by_backward(Index channels, In x, In gain, In mean, In rstd, In dy, Grad dx, Grad dgain, Grad dbias) {
  const NormView v{1, static_cast<Index>(x.size()) / channels, channels, channels};
  const Backward b{NormRule{}, Mask{}, x.data(), dy.data(), from(gain, 0), mean, rstd, dx};
  if (dx) {
    parallel_for(v.reduced, 3 * channels, [&](Index row) {
      for_lanes(0, channels, [&](Index i, auto n) {
        Lanes grad = load(dy.data() + row * channels + i, n) * load(rstd.data() + i, n);
        if (b.gain) grad *= load(b.gain + i, n);
        put(dx, row * channels + i, grad, n);
      });
    });
  }
  if (!dgain && !dbias) return;
  const Columns columns(v);
  Partials partials(columns);
  column_gradient_sums(columns, b, partials);
  add_up(partials.sums.data(), columns.chunks, 2 * channels, dbias);
  add_up(partials.sums.data() + channels, columns.chunks, 2 * channels, dgain);
}

}  // namespace normlab::inline NORMLAB_REAL::kernels
