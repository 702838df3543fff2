// The linear layer with its activation.
#include "normlab/ops/ops.h"

namespace normlab::inline NORMLAB_REAL::ops {

Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation act) {
  const Index in = x.shape().last(), out = weight.shape()[0], rows = x.shape().rows();
  check(weight.shape().rank() == 2 && weight.shape()[1] == in, "linear: weight ", weight.shape(), " does not fit x ",
        x.shape(), "; its last axis must be ", in);
  check(!bias || bias.shape() == Shape{out}, "linear: a bias of [", out, "] is required");
  const kernels::LinearShape shape{rows, in, out};
  const Shape y_shape = x.shape().rank() == 3 ? Shape{x.shape()[0], x.shape()[1], out} : Shape{rows, out};
  Tensor y(y_shape), z;
  const bool keeps_z = act != Activation::none && keeps_graph({x, weight});
  if (keeps_z) z = Tensor(y_shape);
  kernels::linear_forward(shape, act, x.values(), weight.values(), bias ? In(bias.values()) : In(),
                          z ? z.values() : Out(), y.values());
  return record("linear", y, {x, weight, bias}, [=](const Tensor& y) {
    Tensor dz;
    if (act != Activation::none) {
      dz = Tensor(z.shape());
      kernels::activation_backward(act, z.values(), y.grad(), {dz.values(), false});
    }
    const In from = dz ? In(dz.values()) : y.grad();
    kernels::linear_backward_weight(shape, from, x.values(), weight.grad_sink(), bias.grad_sink());
    if (const Grad dx = x.grad_sink()) kernels::linear_backward_input(shape, from, weight.values(), dx);
  });
}

}  // namespace normlab::inline NORMLAB_REAL::ops
