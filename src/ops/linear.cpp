// The linear layer with what follows it: its activation, or the residual that its result is added to.
#include "normlab/ops/ops.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace ops {
namespace {

kernels::LinearShape shape_of(const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const Index in = x.shape().last(), out = weight.shape()[0];
  check(weight.shape().rank() == 2 && weight.shape()[1] == in, "linear: weight ", weight.shape(), " does not fit x ",
        x.shape(), "; its last axis must be ", in);
  check(!bias || bias.shape() == Shape{out}, "linear: a bias of [", out, "] is required");
  return {x.shape().rows(), in, out};
}

Shape result_shape(const Tensor& x, Index out) {
  return x.shape().rank() == 3 ? Shape{x.shape()[0], x.shape()[1], out} : Shape{x.shape().rows(), out};
}

void linear_backward(kernels::LinearShape shape, In dz, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  kernels::linear_backward_weight(shape, dz, x.values(), weight.grad_sink(), bias.grad_sink());
  if (const Grad dx = x.grad_sink()) kernels::linear_backward_input(shape, dz, weight.values(), dx);
}

}  // namespace

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation act) {
  const kernels::LinearShape shape = shape_of(x, weight, bias);
  Tensor y(result_shape(x, shape.out)), slope;
  if (act != Activation::none && keeps_graph({x, weight, bias})) slope = Tensor(y.shape());
  kernels::linear_forward(shape, act, x.values(), weight.values(), values_or_none(bias), {},
                          slope ? slope.values() : Out(), y.values());
  return record("linear", y, {x, weight, bias}, [=](const Tensor& y) {
    if (slope) kernels::multiply(y.grad(), slope.values());
    linear_backward(shape, slope ? In(slope.values()) : y.grad(), x, weight, bias);
  });
}

Tensor linear_onto(const Tensor& residual, const Tensor& x, const Tensor& weight, const Tensor& bias) {
  const kernels::LinearShape shape = shape_of(x, weight, bias);
  Tensor y(result_shape(x, shape.out));
  check(residual.shape() == y.shape(), "linear_onto: a residual of ", y.shape(), " is required, got ",
        residual.shape());
  kernels::linear_forward(shape, Activation::none, x.values(), weight.values(), values_or_none(bias), residual.values(),
                          {}, y.values());
  return record("linear", y, {residual, x, weight, bias}, [=](const Tensor& y) {
    linear_backward(shape, y.grad(), x, weight, bias);
    y.hand_grad_to(residual);
  });
}

}  // namespace ops
}  // namespace NORMLAB_REAL
}  // namespace normlab
