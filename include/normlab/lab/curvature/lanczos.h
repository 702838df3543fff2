// The largest eigenvalue of a symmetric matrix that is known only by its products with vectors.
#pragma once

#include <functional>
#include <vector>

namespace normlab {

using MatrixProduct = std::function<std::vector<double>(const std::vector<double>&)>;

struct TopEigenvalue {
  double value = 0;            // the largest algebraic one
  std::vector<double> vector;  // of length 1
  double residual = 0;         // |A v - value v|: an eigenvalue lies within this of `value`
  int products = 0;            // with the matrix
};

// Lanczos with full reorthogonalisation, from a seeded random vector, until the residual is below tolerance times the
// value's magnitude, or after `most` products.
TopEigenvalue largest_eigenvalue(std::size_t size, const MatrixProduct& product, int most = 60,
                                 double tolerance = 1e-3);

// All eigenvalues of the symmetric tridiagonal matrix with this diagonal and off-diagonal (one shorter), falling, and
// their vectors of length 1. Jacobi's rotations: good for a hundred rows.
struct SmallEigen {
  std::vector<double> values;
  std::vector<std::vector<double>> vectors;
};
SmallEigen tridiagonal_eigen(const std::vector<double>& diagonal, const std::vector<double>& off_diagonal);

}  // namespace normlab
