// Eigenvalues against matrices whose own are known.
#include "normlab/lab/curvature/lanczos.h"

#include <cmath>
#include <numbers>

#include "catch.h"
#include "normlab/base/rng.h"

using namespace normlab;

namespace {

MatrixProduct diagonal_product(const std::vector<double>& diagonal) {
  return [=](const std::vector<double>& x) {
    std::vector<double> y(x);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] *= diagonal[i];
    return y;
  };
}

}  // namespace

TEST_CASE("the matrix of second differences has the eigenvalues 2 - 2 cos(k pi / (n + 1))", "[curvature]") {
  const std::size_t n = 12;
  const SmallEigen eigen = tridiagonal_eigen(std::vector<double>(n, 2.0), std::vector<double>(n - 1, -1.0));
  for (std::size_t k = 1; k <= n; ++k) {
    const double expected = 2 - 2 * std::cos(static_cast<double>(k) * std::numbers::pi / static_cast<double>(n + 1));
    CHECK(std::fabs(eigen.values[n - k] - expected) < 1e-13);  // rounding of a few sweeps
  }
  // The top vector is sqrt(2 / (n + 1)) sin(n j pi / (n + 1)), up to its sign.
  const double scale = std::sqrt(2.0 / 13);
  for (std::size_t j = 1; j <= n; ++j)
    CHECK(std::fabs(std::fabs(eigen.vectors[0][j - 1]) -
                    scale * std::fabs(std::sin(12 * static_cast<double>(j) * std::numbers::pi / 13))) < 1e-10);
}

TEST_CASE("Lanczos finds the largest algebraic eigenvalue, not the largest magnitude", "[curvature]") {
  std::vector<double> diagonal(400);
  Random random(1, "spectrum");
  for (double& value : diagonal) value = random.uniform();
  diagonal[17] = 3;
  diagonal[230] = -50;
  const TopEigenvalue top = largest_eigenvalue(diagonal.size(), diagonal_product(diagonal));
  CHECK(top.value == Approx(3).epsilon(1e-5));  // the square of the residual's bound, 1e-3, over the gap
  CHECK(std::fabs(top.vector[17]) == Approx(1).epsilon(1e-4));
  CHECK(top.residual < 3e-3);
  CHECK(top.products <= 60);
}

TEST_CASE("the residual is what is left of A v - value v", "[curvature]") {
  std::vector<double> diagonal(50);
  for (std::size_t i = 0; i < diagonal.size(); ++i) diagonal[i] = std::sqrt(static_cast<double>(i));
  const TopEigenvalue top = largest_eigenvalue(diagonal.size(), diagonal_product(diagonal), 8, 0);
  double squares = 0;
  for (std::size_t i = 0; i < diagonal.size(); ++i) squares += std::pow((diagonal[i] - top.value) * top.vector[i], 2);
  CHECK(top.products == 8);
  CHECK(top.residual == Approx(std::sqrt(squares)).epsilon(1e-9));  // one is computed from the small matrix
  CHECK(top.value <= 7);
}

TEST_CASE("Lanczos of a multiple of the identity and of a matrix of one row is done after one product", "[curvature]") {
  const TopEigenvalue same = largest_eigenvalue(30, diagonal_product(std::vector<double>(30, -2.0)));
  CHECK(same.value == Approx(-2));
  CHECK(same.products == 1);
  CHECK(largest_eigenvalue(1, diagonal_product({5})).value == Approx(5));
}
