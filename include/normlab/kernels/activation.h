// Activation functions on vectors.
#pragma once

#include <cmath>

#include "normlab/kernels/kernels.h"
#include "normlab/kernels/simd.h"

namespace normlab::inline NORMLAB_REAL {

inline Lanes activate(Activation act, Lanes z) {
  for (Index i = 0; i < kLanes; ++i) {
    const Real x = z[i];
    switch (act) {
      case Activation::none:
        break;
      case Activation::gelu:
        z[i] = x / 2 * (1 + std::erf(x * Real(0.70710678118654752)));
        break;
      case Activation::gelu_tanh:
        z[i] = x / 2 * (1 + std::tanh(Real(0.79788456080286536) * (x + Real(0.044715) * x * x * x)));
        break;
      case Activation::relu:
        z[i] = x < 0 ? 0 : x;
        break;
    }
  }
  return z;
}

}  // namespace normlab::inline NORMLAB_REAL
