// Normalisation by statistics of the batch at hand, and by given ones; PowerNorm; DyT.
#include <algorithm>
#include <cmath>

#include "normlab/ops/ops.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace ops {
namespace {

void check_affine(const char* op, const Tensor& x, const Tensor& gain, const Tensor& bias) {
  const Shape channels{x.shape().last()};
  check(!gain || gain.shape() == channels, op, ": a gain of ", channels, " is required for x ", x.shape());
  check(!bias || bias.shape() == channels, op, ": a bias of ", channels, " is required for x ", x.shape());
}

void check_view(const char* op, const Tensor& x, NormView view) {
  check(view.size() == x.shape().numel() && view.channels == x.shape().last(), op, ": x ", x.shape(),
        " cannot be seen as [", view.outer, ", ", view.reduced, ", ", view.inner, "]");
}

// A gain of one number, as one of each channel.
Tensor of_each_channel(const Tensor& gain, Index channels) {
  if (!gain || gain.shape() != Shape{1} || channels == 1) return gain;
  Tensor all(Shape{channels});
  std::ranges::fill(all.values(), gain.values()[0]);
  return record("of_each_channel", all, {gain}, [=](const Tensor& all) {
    const Grad dgain = gain.grad_sink();
    double total = 0;
    for (const Real value : all.grad()) total += static_cast<double>(value);
    if (dgain) dgain.values[0] = static_cast<Real>(dgain.add ? static_cast<double>(dgain.values[0]) + total : total);
  });
}

}  // namespace

Tensor normalize(const Tensor& x, NormView view, NormRule rule, Mask mask, const Tensor& given_gain, const Tensor& bias,
                 Statistics* measured) {
  check_view("normalize", x, view);
  const Tensor gain = of_each_channel(given_gain, view.channels);
  check_affine("normalize", x, gain, bias);
  Tensor y(x.shape()), mean(Shape{view.groups()}), rstd(Shape{view.groups()});
  kernels::normalize_forward(view, rule, mask, x.values(), values_or_none(gain), values_or_none(bias), y.values(),
                             mean.values(), rstd.values());
  if (measured) *measured = {mean, rstd};
  return record("normalize", y, {x, gain, bias}, [=](const Tensor& y) {
    kernels::normalize_backward(view, rule, mask, x.values(), values_or_none(gain), mean.values(), rstd.values(),
                                y.grad(), x.grad_sink(), gain.grad_sink(), bias.grad_sink());
  });
}

Tensor normalize_by(const Tensor& x, NormView view, const Statistics& given, const Tensor& gain, const Tensor& bias) {
  check_view("normalize_by", x, view);
  const Shape groups{view.groups()};
  check(given.mean.shape() == groups && given.rstd.shape() == groups, "normalize_by: statistics of ", groups,
        " are required for x ", x.shape());
  check_affine("normalize_by", x, gain, bias);
  Tensor y(x.shape());
  kernels::normalize_by_forward(view, x.values(), values_or_none(gain), values_or_none(bias), given.mean.values(),
                                given.rstd.values(), y.values());
  return record("normalize_by", y, {x, gain, bias}, [=](const Tensor& y) {
    kernels::normalize_by_backward(view, x.values(), values_or_none(gain), given.mean.values(), given.rstd.values(),
                                   y.grad(), x.grad_sink(), gain.grad_sink(), bias.grad_sink());
  });
}

Tensor power(const Tensor& x, Mask mask, double eps, double momentum, const PowerState& state, const Tensor& gain,
             const Tensor& bias) {
  check_affine("power", x, gain, bias);
  const Index channels = x.shape().last();
  const Shape one_each{channels};
  check(state.square.shape() == one_each && state.projection.shape() == one_each, "power: a state of ", one_each,
        " is required for x ", x.shape());
  const bool any_real = mask.empty() || std::ranges::count(mask, std::uint8_t{1}) > 0;
  Tensor y(x.shape()), mean(one_each), rstd(one_each), square(one_each);
  std::ranges::fill(mean.values(), Real(0));
  std::ranges::transform(state.square.values(), rstd.values().begin(),
                         [&](Real P) { return static_cast<Real>(1 / std::sqrt(static_cast<double>(P) + eps)); });
  kernels::normalize_by_forward({1, x.shape().rows(), channels, channels}, x.values(), values_or_none(gain),
                                values_or_none(bias), mean.values(), rstd.values(), y.values());
  kernels::mean_square(channels, mask, x.values(), square.values());
  const Real m = any_real ? static_cast<Real>(momentum) : 0;
  std::ranges::transform(state.square.values(), square.values(), state.square.values().begin(),
                         [&](Real P, Real now) { return (1 - m) * P + m * now; });
  return record("power", y, {x, gain, bias}, [=](const Tensor& y) {
    Tensor mean_gz(Shape{channels});
    const Out n = state.projection.values();
    kernels::power_backward(channels, mask, x.values(), values_or_none(gain), rstd.values(), n, y.grad(), x.grad_sink(),
                            gain.grad_sink(), bias.grad_sink(), mean_gz.values());
    for (std::size_t c = 0; c < n.size(); ++c) {
      const Real mean_zz = square.values()[c] * rstd.values()[c] * rstd.values()[c];
      n[c] += m * (mean_gz.values()[c] - n[c] * mean_zz);
    }
  });
}

Tensor dyt(const Tensor& x, const Tensor& alpha, const Tensor& gain, const Tensor& bias) {
  check_affine("dyt", x, gain, bias);
  check(alpha.shape() == Shape{1}, "dyt: an alpha of [1] is required, got ", alpha.shape());
  const Index channels = x.shape().last();
  Tensor y(x.shape());
  kernels::dyt_forward(channels, alpha.values()[0], x.values(), values_or_none(gain), values_or_none(bias), y.values());
  return record("dyt", y, {x, alpha, gain, bias}, [=](const Tensor& y) {
    kernels::dyt_backward(channels, alpha.values()[0], x.values(), values_or_none(gain), y.grad(), x.grad_sink(),
                          alpha.grad_sink(), gain.grad_sink(), bias.grad_sink());
  });
}

}  // namespace ops
}  // namespace NORMLAB_REAL
}  // namespace normlab
