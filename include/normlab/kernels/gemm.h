// The matrix product behind the linear layers.
#pragma once

#include "normlab/kernels/kernels.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {

// Element (i, j) lies at data[i * row + j * column]; row or column is 1. Swapping the two transposes.
struct MatrixView {
  const Real* data;
  Index row, column;
};

// c = base + a b  with a [rows, depth], b [depth, columns], and base the old c, a bias row [columns] or 0; then
//   with an activation, slope = act'(c), unless null, and c = act(c);
//   with a residual, c = residual + c.
// c, slope and residual are row-major, one row after the other.
// An element's bits depend on its row of a, its column of b and its base alone, not on the rest of the matrices
// nor on the number of threads: the depth is summed from 0 upwards in blocks of constant length.
struct Product {
  Index rows, columns, depth;
  MatrixView a, b;
  Real* c;
  bool add = false;            // base is the old c
  const Real* bias = nullptr;  // base is this row; not together with add
  Activation act = Activation::none;
  Real* slope = nullptr;
  const Real* residual = nullptr;
};
void gemm(const Product& p);

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
