// Element by element: residual addition, activations, SwiGLU, dropout.
#include "normlab/base/parallel.h"
#include "normlab/kernels/activation.h"
#include "normlab/kernels/dropout.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {
namespace {

// f(i, n) for the n elements from i on, over all of [0, size) in blocks that do not depend on the threads.
template <class F>
void for_elements(std::size_t size, Index cost, const F& f) {
  parallel_blocks(static_cast<Index>(size), cost, [&](Index begin, Index end) { for_lanes(begin, end, f); });
}

}  // namespace

void add_forward(Real scale, In x, In f, Out y) {
  for_elements(x.size(), 2,
               [&](Index i, auto n) { store(y.data() + i, scale * load(x.data() + i, n) + load(f.data() + i, n), n); });
}

void accumulate(Real scale, In dy, Grad dx) {
  if (!dx) return;
  for_elements(dy.size(), 2, [&](Index i, auto n) { put(dx, i, scale * load(dy.data() + i, n), n); });
}

void multiply(In factor, Out x) {
  for_elements(x.size(), 2,
               [&](Index i, auto n) { store(x.data() + i, load(factor.data() + i, n) * load(x.data() + i, n), n); });
}

void swiglu_forward(In gate, In up, Out y) {
  for_elements(gate.size(), 30, [&](Index i, auto n) {
    const Lanes g = load(gate.data() + i, n);
    store(y.data() + i, g * sigmoid(g).value * load(up.data() + i, n), n);
  });
}

// With s = sigmoid(gate): dgate = dy up (s + gate s'),  dup = dy gate s
void swiglu_backward(In gate, In up, In dy, Grad dgate, Grad dup) {
  for_elements(gate.size(), 30, [&](Index i, auto n) {
    const Lanes g = load(gate.data() + i, n), d = load(dy.data() + i, n);
    const Sigmoid s = sigmoid(g);
    if (dgate) put(dgate, i, d * load(up.data() + i, n) * (s.value + g * s.slope), n);
    if (dup) put(dup, i, d * (g * s.value), n);
  });
}

void dropout_forward(Dropout drop, In x, Out y) {
  const DropoutFactor factor(drop);
  for_elements(x.size(), 12, [&](Index i, auto n) { store(y.data() + i, load(x.data() + i, n) * factor(i), n); });
}

void dropout_backward(Dropout drop, In dy, Grad dx) {
  if (!dx) return;
  const DropoutFactor factor(drop);
  for_elements(dy.size(), 12, [&](Index i, auto n) { put(dx, i, load(dy.data() + i, n) * factor(i), n); });
}

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
