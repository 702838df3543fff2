// Pointwise kernels in float against the plain formulas in double.
#include <cmath>
#include <cstring>

#include "kernels_support.h"

using namespace normlab;
using namespace normlab::kernels;

namespace {

constexpr Index kSizes[] = {1, 7, 8, 9, 12, 33, 35, 5000};  // around the lane counts, and more than one block

// Inputs of size 1 to 4: a few roundings of 6e-8 each.
void check_near(Real value, double right) { REQUIRE(std::fabs(value - right) <= 1e-6 * (1 + std::fabs(right))); }

}  // namespace

TEST_CASE("residual addition, products and SwiGLU agree with their formulas", "[kernels]") {
  for (const Index n : kSizes) {
    CAPTURE(n);
    const Numbers x = normals(n, "x"), f = normals(n, "f");
    Numbers sum = zeros(n), product = f, gated = zeros(n);
    add_forward(Real(1.5), x, f, sum);
    multiply(x, product);
    swiglu_forward(x, f, gated);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double z = x[i];
      check_near(sum[i], 1.5 * z + f[i]);
      check_near(product[i], z * f[i]);
      check_near(gated[i], z / (1 + std::exp(-z)) * f[i]);
    }
  }
}

TEST_CASE("SwiGLU stays finite far from zero", "[kernels]") {
  const Numbers gate{-1e4f, -100, 100, 1e4f}, up{1, 2, 3, 4}, dy{1, 1, 1, 1};
  Numbers y = zeros(4), dgate = zeros(4), dup = zeros(4);
  swiglu_forward(gate, up, y);
  swiglu_backward(gate, up, dy, Grad{dgate}, Grad{dup});
  for (const int i : {0, 1}) {
    CHECK(std::fabs(y[static_cast<std::size_t>(i)]) < 1e-30f);
    CHECK(std::fabs(dgate[static_cast<std::size_t>(i)]) < 1e-30f);
  }
  CHECK(y[2] == 300);
  CHECK(y[3] == 40000);
  CHECK(dgate[3] == 4);
  CHECK(dup[3] == 1e4f);
}

TEST_CASE("dropout keeps the elements that its counter keeps, and scales them", "[kernels]") {
  const std::uint64_t key = Random(3, "dropout").key();
  for (const double p : {0.0, 0.1, 0.5, 0.9}) {
    const Index n = 5000;
    const Numbers x = normals(n, "x", 5);
    Numbers y = zeros(n);
    dropout_forward({static_cast<Real>(p), key}, x, y);
    Index kept = 0;
    for (Index i = 0; i < n; ++i) {
      const std::uint64_t draw = mix(key + (static_cast<std::uint64_t>(i) + 1) * Random::kStep) >> 32;
      const bool keeps = static_cast<double>(draw) >= static_cast<double>(static_cast<Real>(p)) * 0x1p32;
      kept += keeps;
      const std::size_t at = static_cast<std::size_t>(i);
      if (keeps)
        check_near(y[at], x[at] / (1 - p));
      else
        REQUIRE(y[at] == 0);
    }
    // 5000 draws: the share kept has a standard deviation of at most 0.0071; five of them.
    CHECK(std::fabs(static_cast<double>(kept) / n - (1 - p)) < 0.036);
  }
}

TEST_CASE("pointwise kernels give the same bytes for any number of threads", "[kernels]") {
  const Index n = 40003;
  const Numbers x = normals(n, "x"), dy = normals(n, "dy"), old = normals(n, "old");
  check_threads([&] {
    Numbers b = zeros(n), c = zeros(n), d = old, e = old;
    swiglu_forward(x, dy, b);
    dropout_forward({Real(0.2), 5}, x, c);
    multiply(x, d);
    accumulate(Real(0.3), dy, Grad{e, true});
    return joined({&b, &c, &d, &e});
  });
}
