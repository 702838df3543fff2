// Normalisation by statistics of the batch at hand, and by given ones.
#include "normlab/ops/ops.h"

namespace normlab::inline NORMLAB_REAL::ops {
namespace {

In values_or_none(const Tensor& tensor) { return tensor ? In(tensor.values()) : In(); }

void check_affine(const char* op, const Tensor& x, const Tensor& gain, const Tensor& bias) {
  const Shape channels{x.shape().last()};
  check(!gain || gain.shape() == channels, op, ": a gain of ", channels, " is required for x ", x.shape());
  check(!bias || bias.shape() == channels, op, ": a bias of ", channels, " is required for x ", x.shape());
}

}  // namespace

Tensor normalize(const Tensor& x, NormView view, NormRule rule, Mask mask, const Tensor& gain, const Tensor& bias,
                 Statistics* measured) {
  check(view.size() == x.shape().numel() && view.channels == x.shape().last(), "normalize: x ", x.shape(),
        " cannot be seen as [", view.outer, ", ", view.reduced, ", ", view.inner, "]");
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

Tensor normalize_by(const Tensor& x, const Statistics& given, const Tensor& gain, const Tensor& bias) {
  const Index channels = x.shape().last();
  check(given.mean.shape() == Shape{channels} && given.rstd.shape() == Shape{channels}, "normalize_by: statistics of [",
        channels, "] are required for x ", x.shape());
  check_affine("normalize_by", x, gain, bias);
  Tensor y(x.shape());
  kernels::normalize_by_forward(channels, x.values(), values_or_none(gain), values_or_none(bias), given.mean.values(),
                                given.rstd.values(), y.values());
  return record("normalize_by", y, {x, gain, bias}, [=](const Tensor& y) {
    kernels::normalize_by_backward(channels, x.values(), values_or_none(gain), given.mean.values(), given.rstd.values(),
                                   y.grad(), x.grad_sink(), gain.grad_sink(), bias.grad_sink());
  });
}

}  // namespace normlab::inline NORMLAB_REAL::ops
