// Lanczos' method (Lanczos 1950; Golub & Van Loan, Matrix Computations, chapter 10).
#include "normlab/lab/curvature/lanczos.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "normlab/base/rng.h"

namespace normlab {
namespace {

using Vector = std::vector<double>;

double dot(const Vector& a, const Vector& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }

// y += factor x
void add_scaled(double factor, const Vector& x, Vector& y) {
  for (std::size_t i = 0; i < y.size(); ++i) y[i] += factor * x[i];
}

// Scales to length 1; gives the length it had.
double normalize(Vector& x) {
  const double length = std::sqrt(dot(x, x));
  for (double& value : x) value /= length;
  return length;
}

Vector random_direction(std::size_t size) {
  Random random(1337, "lanczos");
  Vector x(size);
  for (double& value : x) value = random.normal();
  normalize(x);
  return x;
}

Vector combined(const std::vector<Vector>& basis, const Vector& weights) {
  Vector sum(basis[0].size(), 0.0);
  for (std::size_t i = 0; i < weights.size(); ++i) add_scaled(weights[i], basis[i], sum);
  return sum;
}

}  // namespace

SmallEigen tridiagonal_eigen(const Vector& diagonal, const Vector& off_diagonal) {
  const std::size_t n = diagonal.size();
  std::vector<Vector> a(n, Vector(n, 0.0)), v(n, Vector(n, 0.0));  // v: rows are the vectors
  for (std::size_t i = 0; i < n; ++i) {
    a[i][i] = diagonal[i];
    v[i][i] = 1;
    if (i + 1 < n) a[i][i + 1] = a[i + 1][i] = off_diagonal[i];
  }
  for (int sweep = 0; sweep < 60; ++sweep) {
    double off = 0, all = 0;
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) (i == j ? all : off) += a[i][j] * a[i][j];
    if (off <= 1e-28 * (all + off)) break;
    for (std::size_t p = 0; p < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        if (a[p][q] == 0) continue;
        const double theta = (a[q][q] - a[p][p]) / (2 * a[p][q]);
        const double t = (theta < 0 ? -1 : 1) / (std::fabs(theta) + std::sqrt(theta * theta + 1));
        const double c = 1 / std::sqrt(t * t + 1), s = t * c;
        const auto rotate = [&](double& x, double& y) {
          const double old = x;
          x = c * old - s * y;
          y = s * old + c * y;
        };
        for (std::size_t k = 0; k < n; ++k) rotate(a[k][p], a[k][q]);
        for (std::size_t k = 0; k < n; ++k) rotate(a[p][k], a[q][k]);
        for (std::size_t k = 0; k < n; ++k) rotate(v[p][k], v[q][k]);
      }
  }
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, [&](std::size_t i, std::size_t j) { return a[i][i] > a[j][j]; });
  SmallEigen eigen;
  for (const std::size_t i : order) {
    eigen.values.push_back(a[i][i]);
    eigen.vectors.push_back(v[i]);
  }
  return eigen;
}

TopEigenvalue largest_eigenvalue(std::size_t size, const MatrixProduct& product, int most, double tolerance) {
  std::vector<Vector> basis{random_direction(size)};
  Vector alpha, beta;
  TopEigenvalue top;
  const int limit = static_cast<int>(std::min<std::size_t>(size, static_cast<std::size_t>(most)));
  for (;;) {
    Vector next = product(basis.back());
    ++top.products;
    alpha.push_back(dot(next, basis.back()));
    for (int twice = 0; twice < 2; ++twice)
      for (const Vector& earlier : basis) add_scaled(-dot(next, earlier), earlier, next);
    const double length = normalize(next);
    const SmallEigen eigen = tridiagonal_eigen(alpha, beta);
    const double size_of_all = std::max(std::fabs(eigen.values.front()), std::fabs(eigen.values.back()));
    top.value = eigen.values.front();
    top.residual = std::fabs(length * eigen.vectors.front().back());
    const bool is_invariant = length <= 1e-12 * size_of_all;  // the basis spans all that the start can reach
    if (top.residual <= tolerance * std::fabs(top.value) || is_invariant || top.products == limit) {
      top.vector = combined(basis, eigen.vectors.front());
      return top;
    }
    beta.push_back(length);
    basis.push_back(std::move(next));
  }
}

}  // namespace normlab
