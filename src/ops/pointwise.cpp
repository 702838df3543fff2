// Ops that act element by element. Both inputs may be one tensor, so their gradients are asked for in the order in
// which the kernels write them: the first writes, the second adds.
#include "normlab/ops/ops.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace ops {

Tensor add(const Tensor& x, const Tensor& f, Real scale) {
  check(x.shape() == f.shape(), "add: two tensors of one shape are required, got ", x.shape(), " and ", f.shape());
  Tensor y(x.shape());
  kernels::add_forward(scale, x.values(), f.values(), y.values());
  return record("add", y, {x, f}, [=](const Tensor& y) {
    kernels::accumulate(scale, y.grad(), x.grad_sink());
    y.hand_grad_to(f);
  });
}

Tensor swiglu(const Tensor& gate, const Tensor& up) {
  check(gate.shape() == up.shape(), "swiglu: two tensors of one shape are required, got ", gate.shape(), " and ",
        up.shape());
  Tensor y(gate.shape());
  kernels::swiglu_forward(gate.values(), up.values(), y.values());
  return record("swiglu", y, {gate, up}, [=](const Tensor& y) {
    const Grad dgate = gate.grad_sink();
    const Grad dup = up.grad_sink();
    kernels::swiglu_backward(gate.values(), up.values(), y.grad(), dgate, dup);
  });
}

Tensor dropout(const Tensor& x, Dropout drop) {
  if (drop.p == 0) return x;
  Tensor y(x.shape());
  kernels::dropout_forward(drop, x.values(), y.values());
  return record("dropout", y, {x}, [=](const Tensor& y) { kernels::dropout_backward(drop, y.grad(), x.grad_sink()); });
}

}  // namespace ops
}  // namespace NORMLAB_REAL
}  // namespace normlab
