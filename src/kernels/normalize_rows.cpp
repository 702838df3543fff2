// Norms whose reduced elements lie side by side (layer, rms, group, layer_seq). Four rows are computed together: one
// vector takes the sums of all four across its lanes, their roots and divisions.
#include <cassert>
#include <cmath>

#include "normalize.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {
namespace {

constexpr Index kChunkRows = 64;  // rows that share one partial sum of dgain and dbias
constexpr Index kShortRow = 192;  // channels up to which the backward takes rows together

// x as rows of C channels, each cut into strips of `length` channels with statistics of their own. Groups of several
// rows (layer_seq) have one strip. An item is a constant number of rows, or one group of several.
struct Rows {
  explicit Rows(NormView v)
      : channels(v.channels),
        length(std::min(v.reduced, v.channels)),
        strips(v.channels / length),
        rows(v.size() / v.channels),
        rows_a_group(v.reduced / length),
        rows_an_item(rows_a_group > 1 ? rows_a_group : kChunkRows),
        items((rows + rows_an_item - 1) / rows_an_item) {
    assert(v.channels % length == 0 && v.reduced % length == 0);
  }
  bool joined() const { return rows_a_group > 1; }
  Index begin(Index item) const { return item * rows_an_item; }
  Index end(Index item) const { return std::min(rows, begin(item) + rows_an_item); }
  // f(RowCount, first row); one by one where some may be padding.
  template <int kCount = kTogether, class F>
  void rows_of(Index item, Mask mask, const F& f) const {
    if (mask.empty())
      rows_together<kCount>(end(item) - begin(item), [&](auto count, Index row) { f(count, begin(item) + row); });
    else
      for (Index row = begin(item); row < end(item); ++row) f(RowCount<1>{}, row);
  }
  Index group(Index row, Index strip) const { return joined() ? row / rows_a_group : row * strips + strip; }
  Index real_rows(Index item, Mask mask) const {
    Index count = 0;
    for (Index row = begin(item); row < end(item); ++row) count += is_real(mask, row);
    return count;
  }

  Index channels, length, strips, rows, rows_a_group, rows_an_item, items;
};

// Of each row: d = x - shift, the shift being its first element (0 if not centred), summed and squared. So the variance
// is right to C roundings at the worst whatever the mean: (shift - mean)^2 <= C variance.
template <int kRows>
struct RowSums {
  Lanes shift[kRows];  // in each lane
  Four plain, squared;
};

template <int kRows>
RowSums<kRows> row_sums(const Real* x, Index stride, Index length, bool centred) {
  RowSums<kRows> out;
  Lanes total[kTogether] = {}, squares[kTogether] = {};
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) out.shift[r] = broadcast(centred ? x[r * stride] : Real(0));
  for_lanes(0, length, [&](Index i, auto n) {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const Lanes d = first_lanes(load(x + r * stride + i, n) - out.shift[r], n);
      total[r] += d;
      squares[r] += d * d;
    }
  });
  out.plain = sum_four(total);
  out.squared = sum_four(squares);
  return out;
}

// A number a row, in each lane.
template <int kRows>
struct RowStatistics {
  Lanes mean[kRows], rstd[kRows];
};

template <int kRows>
RowStatistics<kRows> statistics_of(const RowSums<kRows>& sums, Index length, NormRule rule) {
  const Real inverse = Real(1) / static_cast<Real>(length), eps = static_cast<Real>(rule.eps);
  const Four middle = sums.plain * inverse, square = sums.squared * inverse, variance = square - middle * middle;
  const Four radicand = (rule.centred ? (variance < 0 ? Four{} : variance) : square) + eps;
  const Four size = sqrt_four(sums.squared), least = Four{} + eps;
  const Four rstd = 1 / (rule.divisor == Divisor::length ? (size < least ? least : size) : sqrt_four(radicand));
  RowStatistics<kRows> s;
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    s.mean[r] = rule.centred ? sums.shift[r] + broadcast(middle[r]) : Lanes{};
    s.rstd[r] = broadcast(rstd[r]);
  }
  return s;
}

template <int kRows>
RowStatistics<kRows> same_for_all(Real mean, Real rstd) {
  RowStatistics<kRows> s;
  std::fill(s.mean, s.mean + kRows, broadcast(mean));
  std::fill(s.rstd, s.rstd + kRows, broadcast(rstd));
  return s;
}

// The statistics of a group of several rows, joined from those of each in double (Chan, Golub, LeVeque 1979); squares
// alone if not centred.
class JoinedStatistics {
 public:
  explicit JoinedStatistics(bool centred) : centred_(centred) {}
  template <int kRows>
  void add(const RowSums<kRows>& sums, Mask mask, Index row, Index length) {
    for (int r = 0; r < kRows; ++r)
      if (is_real(mask, row + r))
        add_row(static_cast<double>(length), static_cast<double>(sums.shift[r][0]), static_cast<double>(sums.plain[r]),
                static_cast<double>(sums.squared[r]));
  }
  Real mean() const { return static_cast<Real>(mean_); }
  Real rstd(double eps) const { return static_cast<Real>(1 / std::sqrt((count_ > 0 ? squares_ / count_ : 0) + eps)); }

 private:
  void add_row(double n, double shift, double plain, double squared) {
    if (centred_) {
      const double step = shift + plain / n - mean_;
      squares_ += std::max(0.0, squared - plain * plain / n) + step * step * count_ * n / (count_ + n);
      mean_ += step * n / (count_ + n);
    } else {
      squares_ += squared;
    }
    count_ += n;
  }

  bool centred_;
  double count_ = 0, mean_ = 0, squares_ = 0;
};

template <int kRows>
void write_rows(const Real* x, Index stride, Index length, const RowStatistics<kRows>& s, const Real* gain,
                const Real* bias, Real* y) {
  for_lanes(0, length, [&](Index i, auto n) {
    const Lanes scale = load(gain + i, n), offset = load(bias + i, n);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r)
      store(y + r * stride + i, (load(x + r * stride + i, n) - s.mean[r]) * (scale * s.rstd[r]) + offset, n);
  });
}

// What the backward sums over each row: g and g (x - mean).
struct GradientSums {
  Four plain, times_x;
};

template <int kRows>
[[gnu::always_inline]] inline GradientSums gradient_sums(const Real* x, const Real* dy, Index stride, Index length,
                                                         const RowStatistics<kRows>& s, const Real* gain, Real* dgain,
                                                         Real* dbias) {
  Lanes total[kTogether] = {}, total_x[kTogether] = {};
  for_lanes(0, length, [&](Index i, auto n) {
    const Lanes scale = load(gain + i, n);
    Lanes for_gain = load(dgain + i, n), for_bias = load(dbias + i, n);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const Lanes grad = load(dy + r * stride + i, n), times_d = grad * (load(x + r * stride + i, n) - s.mean[r]);
      total[r] += grad * scale;
      total_x[r] += times_d * scale;
      for_gain += times_d * s.rstd[r];
      for_bias += grad;
    }
    store(dgain + i, for_gain, n);
    store(dbias + i, for_bias, n);
  });
  return {sum_four(total), sum_four(total_x)};
}

// dx = rstd g of a row that is padding, at which x may hold anything.
void write_padded_dx(const Rows& rows, Index at, const Backward& b, Real rstd, const Real* gain) {
  for_lanes(0, rows.length,
            [&](Index i, auto n) { put(b.dx, at + i, load(b.dy + at + i, n) * (load(gain + i, n) * rstd), n); });
}

// dx = rstd g - rstd mean(g) - (x - mean) rstd^2 mean(g x_hat), the means from sums over that many real elements; the
// sums themselves where the divisor is the length.
template <int kRows>
[[gnu::always_inline]] inline void write_dx(const Rows& rows, Index row, Index channel, const Backward& b,
                                            const RowStatistics<kRows>& s, const GradientSums& sums, Index elements,
                                            const Real* gain) {
  const bool by_length = b.rule.divisor == Divisor::length;
  const Real inverse = by_length ? 1 : elements > 0 ? Real(1) / static_cast<Real>(elements) : Real(0);
  const Real constant = by_length ? 1 / static_cast<Real>(b.rule.eps) : -1;  // rstd where it does not depend on x
  const Index stride = rows.channels, length = rows.length, at = row * stride + channel;
  if (!is_real(b.mask, row)) return write_padded_dx(rows, at, b, s.rstd[0][0], gain);
  const Real *x = b.x + at, *dy = b.dy + at;
  const Grad dx = b.dx;
  const Four mean_g = sums.plain * inverse, mean_gx = sums.times_x * inverse;
  Lanes slope[kRows], offset[kRows];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    slope[r] = -(broadcast(mean_gx[r]) * s.rstd[r]) * s.rstd[r] * s.rstd[r];
    if (s.rstd[r][0] == constant) slope[r] = Lanes{};
    offset[r] = b.rule.centred ? -s.rstd[r] * broadcast(mean_g[r]) : Lanes{};
  }
  for_lanes(0, length, [&](Index i, auto n) {
    const Lanes scale = load(gain + i, n);
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const Lanes d = load(x + r * stride + i, n) - s.mean[r];
      put(dx, at + r * stride + i, load(dy + r * stride + i, n) * (scale * s.rstd[r]) + (d * slope[r] + offset[r]), n);
    }
  });
}

template <int kRows>
RowStatistics<kRows> saved_statistics(const Rows& rows, Index row, Index strip, const Backward& b) {
  RowStatistics<kRows> s;
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const auto g = static_cast<std::size_t>(rows.group(row + r, strip));
    s.mean[r] = broadcast(b.mean[g]);
    s.rstd[r] = broadcast(b.rstd[g]);
  }
  return s;
}

void backward_item(const Rows& rows, Index item, const Backward& b, const Real* gain, Real* dgain, Real* dbias) {
  const Index length = rows.length;
  for (Index strip = 0; strip < rows.strips; ++strip) {
    const Index channel = strip * length;
    double plain = 0, times_x = 0;
    const auto pass = [&](auto together, Index row) {
      constexpr int kRows = decltype(together)::value;
      const Index at = row * rows.channels + channel;
      const auto s = saved_statistics<kRows>(rows, row, strip, b);
      const GradientSums sums = gradient_sums<kRows>(b.x + at, b.dy + at, rows.channels, length, s, gain + channel,
                                                     dgain + channel, dbias + channel);
      if (rows.joined())
        for (int r = 0; r < kRows; ++r)
          plain += static_cast<double>(sums.plain[r]), times_x += static_cast<double>(sums.times_x[r]);
      else if (b.dx)
        write_dx<kRows>(rows, row, channel, b, s, sums, length, gain + channel);
    };
    // Long rows one by one: this many streams at once would drive one another out of the caches.
    if (length > kShortRow)
      rows.rows_of<1>(item, b.mask, pass);
    else
      rows.rows_of(item, b.mask, pass);
    if (!rows.joined() || !b.dx) continue;
    const GradientSums all{Four{} + static_cast<Real>(plain), Four{} + static_cast<Real>(times_x)};
    const Index elements = rows.real_rows(item, b.mask) * length;
    rows.rows_of(item, b.mask, [&](auto together, Index row) {
      constexpr int kRows = decltype(together)::value;
      write_dx<kRows>(rows, row, channel, b, saved_statistics<kRows>(rows, row, strip, b), all, elements,
                      gain + channel);
    });
  }
}

}  // namespace

void forward_rows(NormView v, NormRule rule, Mask mask, In x, In gain, In bias, Out y, Out mean, Out rstd) {
  const Rows rows(v);
  const Affine affine(v.channels, gain, bias);
  const Index stride = v.channels, length = rows.length;
  const Real empty_rstd = static_cast<Real>(1 / std::sqrt(rule.eps));
  parallel_for(rows.items, 4 * rows.rows_an_item * stride, [&](Index item) {
    JoinedStatistics joined(rule.centred);
    for (Index strip = 0; strip < rows.strips; ++strip)
      rows.rows_of(item, mask, [&](auto together, Index row) {
        constexpr int kRows = decltype(together)::value;
        const Index channel = strip * length, at = row * stride + channel;
        const auto sums = row_sums<kRows>(x.data() + at, stride, length, rule.centred);
        if (rows.joined()) return joined.add(sums, mask, row, length);
        auto s = statistics_of(sums, length, rule);
        Real *means = mean.data() + rows.group(row, strip), *rstds = rstd.data() + rows.group(row, strip);
#pragma GCC unroll 4
        for (int r = 0; r < kRows; ++r) {
          if (!is_real(mask, row + r)) {
            s.mean[r] = Lanes{};
            s.rstd[r] = broadcast(empty_rstd);
          }
          means[r * rows.strips] = s.mean[r][0];
          rstds[r * rows.strips] = s.rstd[r][0];
        }
        write_rows(x.data() + at, stride, length, s, affine.gain + channel, affine.bias + channel, y.data() + at);
      });
    if (!rows.joined()) return;
    const Real joined_mean = mean[static_cast<std::size_t>(item)] = joined.mean();
    const Real joined_rstd = rstd[static_cast<std::size_t>(item)] = joined.rstd(rule.eps);
    rows.rows_of(item, mask, [&](auto together, Index row) {
      const auto s = same_for_all<decltype(together)::value>(joined_mean, joined_rstd);
      write_rows(x.data() + row * stride, stride, length, s, affine.gain, affine.bias, y.data() + row * stride);
    });
  });
}

void backward_rows(NormView v, const Backward& b, In gain) {
  const Rows rows(v);
  const Affine affine(v.channels, gain, {});
  const Index C = v.channels;
  const Scratch partial(rows.items * 2 * C);  // [items, 2, C]: dgain, dbias
  parallel_for(rows.items, 8 * rows.rows_an_item * C, [&](Index item) {
    Real* sums = partial.data() + item * 2 * C;
    std::fill(sums, sums + 2 * C, Real(0));
    backward_item(rows, item, b, affine.gain, sums, sums + C);
  });
  add_up(partial.data(), rows.items, 2 * C, b.dgain);
  add_up(partial.data() + C, rows.items, 2 * C, b.dbias);
}

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
