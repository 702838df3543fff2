// The vector mathematics against the standard library in double, over the whole range of float.
#include "normlab/kernels/simd.h"

#include <bit>
#include <cmath>
#include <limits>

#include "catch.h"
#include "kernels/plain.h"
#include "normlab/kernels/activation.h"

using namespace normlab;

namespace {

struct Worst {
  double error = 0, at = 0;
};

// The largest |f(x) - exact(x)| / scale(exact(x)) over floats in [low, high], every `stride`-th of them.
template <class F, class Exact, class Scale>
Worst worst_error(float low, float high, std::int32_t stride, F f, Exact exact, Scale scale) {
  Worst worst;
  const auto walk = [&](float from, float to) {  // 0 <= from <= to or their mirror images
    const float sign = std::signbit(to) || std::signbit(from) ? -1.0f : 1.0f;
    auto bits = std::bit_cast<std::int32_t>(std::min(std::fabs(from), std::fabs(to)));
    const auto last = std::bit_cast<std::int32_t>(std::max(std::fabs(from), std::fabs(to)));
    while (bits <= last) {
      Real x[kLanes], y[kLanes];
      for (Index lane = 0; lane<kLanes; ++lane, bits = bits> last ? bits : bits + stride)
        x[lane] = sign * std::bit_cast<float>(std::min(bits, last));
      store(y, f(load(x)));
      for (Index lane = 0; lane < kLanes; ++lane) {
        const double right = exact(static_cast<double>(x[lane]));
        const double error = std::fabs(static_cast<double>(y[lane]) - right) / scale(right);
        if (!(error <= worst.error)) worst = {error, x[lane]};
      }
    }
  };
  if (low < 0) walk(-0.0f, low);
  if (high > 0) walk(0.0f, high);
  return worst;
}

double relative(double right) { return std::fabs(right) + 1e-300; }

Real first(Lanes v) { return v[0]; }

}  // namespace

TEST_CASE("exp of a vector is right to 1.5e-7 relative wherever the result is a normal float", "[kernels][slow]") {
  const Worst worst = worst_error(
      -87.3365f, 88.7228f, 97, [](Lanes x) { return exp(x); }, [](double x) { return std::exp(x); }, relative);
  INFO("worst " << worst.error << " at " << worst.at);
  CHECK(worst.error < 1.5e-7);
  CHECK(first(exp(broadcast(0))) == 1);
  CHECK(first(exp(broadcast(-88))) == 0);
  CHECK(first(exp(broadcast(-1e4f))) == 0);
  CHECK(first(exp(broadcast(-std::numeric_limits<float>::infinity()))) == 0);
  CHECK(std::isinf(first(exp(broadcast(89)))));
  CHECK(std::isinf(first(exp(broadcast(std::numeric_limits<float>::infinity())))));
  CHECK(std::isnan(first(exp(broadcast(std::numeric_limits<float>::quiet_NaN())))));
}

TEST_CASE("exp2 and log of a vector are right to 1.1e-7 and 1e-7 relative wherever they are normal floats",
          "[kernels][slow]") {
  const Worst power = worst_error(
      -126.0f, 127.0f, 97, [](Lanes x) { return exp2(x); }, [](double x) { return std::exp2(x); }, relative);
  INFO("exp2: worst " << power.error << " at " << power.at);
  CHECK(power.error < 1.1e-7);  // 1.004e-7 where the compiler does not fuse multiply and add
  CHECK(first(exp2(broadcast(0))) == 1);
  for (const float x : {-127.0f, -1e4f, -std::numeric_limits<float>::infinity()}) CHECK(first(exp2(broadcast(x))) == 0);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(std::isnan(first(exp2(broadcast(nan)))));

  const auto ln = [](double x) { return std::log(std::max(x, 1.1754944e-38)); };  // subnormal numbers are not asked for
  const Worst logarithm = worst_error(
      0.0f, std::numeric_limits<float>::max(), 97,
      [](Lanes x) { return log(larger(x, broadcast(std::numeric_limits<float>::min()))); }, ln, relative);
  INFO("log: worst " << logarithm.error << " at " << logarithm.at);
  CHECK(logarithm.error < 1e-7);
  CHECK(first(log(broadcast(1))) == 0);
  CHECK(std::isnan(first(log(broadcast(nan)))));
}

TEST_CASE("tanh and erf of a vector are right to 3e-7 relative over all floats", "[kernels][slow]") {
  const float large = std::numeric_limits<float>::max(), nan = std::numeric_limits<float>::quiet_NaN();
  const float tiny = 1e-37f;  // below it 2x or x / sqrt(pi) may lose digits as a subnormal number
  for (const float sign : {-1.0f, 1.0f}) {
    const auto from_tiny = [&](double right) { return std::fabs(right) + tiny; };
    const Worst t = worst_error(
        std::min(0.0f, sign * large), std::max(0.0f, sign * large), 997, [](Lanes x) { return tanh(x); },
        [](double x) { return std::tanh(x); }, from_tiny);
    INFO("tanh: worst " << t.error << " at " << t.at);
    CHECK(t.error < 3e-7);
    const Worst e = worst_error(
        std::min(0.0f, sign * large), std::max(0.0f, sign * large), 997, [](Lanes x) { return erf(x); },
        [](double x) { return std::erf(x); }, from_tiny);
    INFO("erf: worst " << e.error << " at " << e.at);
    CHECK(e.error < 3e-7);
    CHECK(first(tanh(broadcast(sign * std::numeric_limits<float>::infinity()))) == sign);
    CHECK(first(erf(broadcast(sign * std::numeric_limits<float>::infinity()))) == sign);
  }
  CHECK(std::isnan(first(tanh(broadcast(nan)))));
  CHECK(std::isnan(first(erf(broadcast(nan)))));
}

TEST_CASE("activations and their derivatives keep float's precision relative to the size of z", "[kernels][slow]") {
  const auto gelu = [](double z) {
    double y = 0;
    plain::gelu_forward(1, &z, &y);
    return y;
  };
  const auto gelu_slope = [](double z) {
    const double one = 1;
    double slope = 0;
    plain::gelu_backward(1, &z, &one, &slope);
    return slope;
  };
  const auto tanh_of = [](double z) { return std::tanh(std::sqrt(2 / M_PI) * (z + 0.044715 * z * z * z)); };
  const auto tanh_slope = [&](double z) {
    const double t = tanh_of(z);
    return 0.5 * (1 + t) + 0.5 * z * (1 - t * t) * std::sqrt(2 / M_PI) * (1 + 3 * 0.044715 * z * z);
  };
  // 1 + erf cancels for z < 0: the error is absolute, about half a unit of 1 times z, and z is below 6 there.
  const auto check = [&](Activation act, bool derivative, auto exact) {
    const Worst worst = worst_error(
        -20.0f, 20.0f, 997, [&](Lanes z) { return derivative ? activate_with_slope(act, z).slope : activate(act, z); },
        exact, [](double right) { return std::fabs(right) + 1; });
    INFO("worst " << worst.error << " at " << worst.at);
    CHECK(worst.error < 6e-7);
  };
  check(Activation::gelu, false, gelu);
  check(Activation::gelu, true, gelu_slope);
  check(Activation::gelu_tanh, false, [&](double z) { return 0.5 * z * (1 + tanh_of(z)); });
  check(Activation::gelu_tanh, true, tanh_slope);
  check(Activation::relu, false, [](double z) { return z > 0 ? z : 0; });
  CHECK(first(activate_with_slope(Activation::relu, broadcast(0)).slope) == 0);
  CHECK(first(activate_with_slope(Activation::relu, broadcast(2)).slope) == 1);
  CHECK(first(activate_with_slope(Activation::none, broadcast(2)).slope) == 1);
  CHECK(std::isnan(first(activate(Activation::relu, broadcast(std::numeric_limits<float>::quiet_NaN())))));
}

TEST_CASE("sums, maxima and parts of a vector", "[kernels]") {
  Real x[kLanes];
  Real total = 0;
  for (Index i = 0; i < kLanes; ++i) total += x[i] = static_cast<Real>((i * 7) % kLanes) - 3;
  CHECK(sum(load(x)) == total);  // small integers: exact in any order
  CHECK(max(load(x)) == static_cast<Real>(kLanes - 1) - 3);
  for (Index n = 1; n < kLanes; ++n) {
    Real y[kLanes] = {}, expected = 0;
    store(y, load(x, n), n);
    for (Index i = 0; i < n; ++i) expected += x[i];
    CHECK(sum(load(y)) == expected);
    CHECK(sum(first_lanes(load(x), n)) == expected);
  }
}

TEST_CASE("four sums at once are those of one after the other", "[kernels]") {
  Lanes v[4] = {};
  for (int row = 0; row < 4; ++row)
    for (int lane = 0; lane < static_cast<int>(kLanes); ++lane)
      v[row][lane] = Real(1) / static_cast<Real>(3 + 5 * lane + row);
  const Four sums = sum_four(v), roots = sqrt_four(sums);
  for (int row = 0; row < 4; ++row) {
    CHECK(sums[row] == sum(v[row]));
    CHECK(roots[row] == std::sqrt(sum(v[row])));
  }
}

TEST_CASE("a square block of vectors is transposed", "[kernels]") {
  Lanes block[kLanes];
  for (Index row = 0; row < kLanes; ++row)
    for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) block[row][lane] = static_cast<Real>(100 * row + lane);
  transpose(block);
  for (Index row = 0; row < kLanes; ++row)
    for (int lane = 0; lane < static_cast<int>(kLanes); ++lane)
      CHECK(block[row][lane] == static_cast<Real>(100 * lane + row));
}
