// One pair of functions for all norms that take a mean: two ways to walk through x, by where the reduced elements lie.
#include "normalize.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {

void normalize_forward(NormView v, NormRule rule, Mask mask, In x, In gain, In bias, Out y, Out mean, Out rstd) {
  (v.inner == 1 ? forward_rows : forward_columns)(v, rule, mask, x, gain, bias, y, mean, rstd);
}

void normalize_backward(NormView v, NormRule rule, Mask mask, In x, In gain, In mean, In rstd, In dy, Grad dx,
                        Grad dgain, Grad dbias) {
  const Backward b{rule, mask, x.data(), dy.data(), mean, rstd, dx, dgain, dbias};
  (v.inner == 1 ? backward_rows : backward_columns)(v, b, gain);
}

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
