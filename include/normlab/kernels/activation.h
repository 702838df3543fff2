// The activations on vectors, for pointwise kernels and for the epilogue of linear layers.
#pragma once

#include "normlab/kernels/simd.h"

namespace normlab {
inline namespace NORMLAB_REAL {

inline constexpr Real kSqrtHalf = Real(0.70710678118654752);       // 1 / sqrt(2)
inline constexpr Real kGeluTanh = Real(0.79788456080286536);       // sqrt(2 / pi)
inline constexpr Real kGeluCubic = Real(0.044715);                 // Hendrycks and Gimpel 2016
inline constexpr Real kNormalDensity = Real(0.39894228040143268);  // 1 / sqrt(2 pi)

// s = 1 / (1 + e^-x) and its derivative s (1 - s) = e^-x s^2, which keeps its digits at both ends.
struct Sigmoid {
  Lanes value, slope;
};
inline Sigmoid sigmoid(Lanes x) {
  const Lanes e = exp(x < -80 ? broadcast(80) : -x);  // bounded, so that infinity does not meet zero
  const Lanes value = 1 / (1 + e);
  return {value, e * value * value};
}

// An activation and its derivative at z.
struct Activated {
  Lanes value, slope;
};
// gelu: z Phi(z) with Phi(z) = (1 + erf(z / sqrt 2)) / 2, and Phi(z) + z phi(z);
// gelu_tanh: z (1 + tanh u) / 2 = z s with s = sigmoid(2u), u = sqrt(2 / pi) (z + 0.044715 z^3), and s + z s' 2u';
// relu: its slope is 1 for z > 0, else 0
inline Activated activate_with_slope(Activation act, Lanes z) {
  switch (act) {
    case Activation::gelu: {
      const Lanes below = Real(0.5) * (1 + erf(z * kSqrtHalf));
      return {z * below, below + z * (kNormalDensity * exp(z * z * Real(-0.5)))};
    }
    case Activation::gelu_tanh: {
      const Lanes square = z * z;
      const Sigmoid s = sigmoid(2 * kGeluTanh * (z + kGeluCubic * z * square));
      return {z * s.value, s.value + z * s.slope * (2 * kGeluTanh * (1 + 3 * kGeluCubic * square))};
    }
    case Activation::relu:
      return {z < 0 ? Lanes{} : z, z > 0 ? broadcast(1) : Lanes{}};  // NaN stays
    case Activation::none:
      break;
  }
  return {z, broadcast(1)};
}
inline Lanes activate(Activation act, Lanes z) { return activate_with_slope(act, z).value; }

}  // namespace NORMLAB_REAL
}  // namespace normlab
