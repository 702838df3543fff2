// The plain kernels: known values, and each backward against differences of its forward. Those of the norms stand
// beside PyTorch's in normalize_test.cpp.
#include <cmath>
#include <functional>

#include "kernels/plain.h"
#include "kernels_support.h"

using namespace normlab;

namespace {

// The gradient of sum dy forward() by each element of `input`, which forward() reads. The difference quotient is off by
// h^2 / 6 = 2e-11 of a third derivative of 100 at the most, and by 1e-10 from rounding.
void check_gradient(const char* name, Numbers& input, const Numbers& gradient, const Numbers& dy,
                    const std::function<const Numbers&()>& forward) {
  const auto loss = [&] {
    const Numbers& y = forward();
    double sum = 0;
    for (std::size_t i = 0; i < y.size(); ++i) sum += dy[i] * y[i];
    return sum;
  };
  for (std::size_t i = 0; i < input.size(); ++i) {
    constexpr double kStep = 1e-5;
    const double at = input[i];
    input[i] = at + kStep;
    const double above = loss();
    input[i] = at - kStep;
    const double numeric = (above - loss()) / (2 * kStep);
    input[i] = at;
    INFO(name << ", element " << i << ": " << gradient[i] << ", by difference " << numeric);
    REQUIRE(std::fabs(gradient[i] - numeric) <= 1e-8 + 1e-7 * std::fabs(numeric));
  }
}

}  // namespace

TEST_CASE("plain linear: known values, and gradients by difference", "[kernels]") {
  Numbers x{1, 2, 3, 4}, weight{1, 0, 1, 1, -1, 2}, bias{0, 10, 0}, y(6);
  const auto forward = [&]() -> const Numbers& {
    plain::linear_forward(2, 2, 3, x.data(), weight.data(), bias.data(), y.data());
    return y;
  };
  CHECK(forward() == Numbers{1, 13, 3, 3, 17, 5});
  const Numbers dy = normals(6, "dy");
  Numbers dx(4, 7), dweight(6, 7), dbias(3, 7);
  plain::linear_backward(2, 2, 3, x.data(), weight.data(), dy.data(), dx.data(), dweight.data(), dbias.data());
  check_gradient("x", x, dx, dy, forward);
  check_gradient("weight", weight, dweight, dy, forward);
  check_gradient("bias", bias, dbias, dy, forward);
}

TEST_CASE("plain norms: gradients by difference, with padding", "[kernels]") {
  constexpr Index kRows = 5, C = 3;
  Numbers x = normals(kRows * C, "x"), gain = normals(C, "gain"), bias = normals(C, "bias"), y(x.size());
  Numbers mean(kRows), rstd(kRows), dx(x.size(), 7), dgain(C, 7), dbias(C, 7);
  const Numbers dy = normals(kRows * C, "dy");
  const auto check = [&](const auto& forward) {
    check_gradient("x", x, dx, dy, forward);
    check_gradient("gain", gain, dgain, dy, forward);
    check_gradient("bias", bias, dbias, dy, forward);
  };
  const auto layer = [&]() -> const Numbers& {
    plain::layer_norm_forward(kRows, C, 1e-5, x.data(), gain.data(), bias.data(), y.data(), mean.data(), rstd.data());
    return y;
  };
  layer();
  plain::layer_norm_backward(kRows, C, x.data(), gain.data(), mean.data(), rstd.data(), dy.data(), dx.data(),
                             dgain.data(), dbias.data());
  check(layer);

  const auto rms = [&]() -> const Numbers& {
    plain::rms_norm_forward(kRows, C, 1e-5, x.data(), gain.data(), y.data(), rstd.data());
    return y;
  };
  rms();
  plain::rms_norm_backward(kRows, C, x.data(), gain.data(), rstd.data(), dy.data(), dx.data(), dgain.data());
  check_gradient("x", x, dx, dy, rms);
  check_gradient("gain", gain, dgain, dy, rms);

  const std::uint8_t padded[kRows] = {1, 0, 1, 1, 0};
  for (const std::uint8_t* real : {static_cast<const std::uint8_t*>(nullptr), padded}) {
    const auto batch = [&]() -> const Numbers& {
      plain::batch_norm_forward(kRows, C, 1e-5, real, x.data(), gain.data(), bias.data(), y.data(), mean.data(),
                                rstd.data());
      return y;
    };
    batch();
    plain::batch_norm_backward(kRows, C, real, x.data(), gain.data(), mean.data(), rstd.data(), dy.data(), dx.data(),
                               dgain.data(), dbias.data());
    check(batch);
  }
}

TEST_CASE("plain attention: known values, and gradients by difference, with dropout", "[kernels]") {
  // Two positions of one channel, q = 1, k = 0 and ln 3, v = 2 and 6: the second weighs them 1/4 and 3/4.
  Numbers two{1, 0, 2, 1, std::log(3.0), 6}, weights(4), y(2);
  plain::attention_forward(1, 2, 1, 1, two.data(), nullptr, weights.data(), y.data());
  CHECK(y[0] == 2);
  CHECK(y[1] == Approx(5).epsilon(1e-14));

  constexpr Index B = 2, T = 4, H = 2, D = 3;
  Numbers qkv = normals(B * T * 3 * H * D, "qkv"), kept(B * H * T * T), dqkv(qkv.size(), 7);
  for (std::size_t i = 0; i < kept.size(); ++i) kept[i] = i % 3 == 0 ? 0 : 1.5;
  const Numbers dy = normals(B * T * H * D, "dy");
  weights.resize(kept.size()), y.resize(dy.size());
  for (const double* factors : {static_cast<const double*>(nullptr), static_cast<const double*>(kept.data())}) {
    const auto forward = [&]() -> const Numbers& {
      plain::attention_forward(B, T, H, D, qkv.data(), factors, weights.data(), y.data());
      return y;
    };
    forward();
    plain::attention_backward(B, T, H, D, qkv.data(), factors, weights.data(), dy.data(), dqkv.data());
    check_gradient("qkv", qkv, dqkv, dy, forward);
  }
}

TEST_CASE("plain cross-entropy and GELU: known values, and gradients by difference", "[kernels]") {
  Numbers logits{0, std::log(3.0), 0, 0, 1, 2}, loss(3);
  const std::int32_t targets[] = {1, 0, -100};
  const auto cross_entropy = [&]() -> const Numbers& {
    plain::cross_entropy_forward(3, 2, logits.data(), targets, loss.data());
    return loss;
  };
  CHECK(cross_entropy()[0] == Approx(std::log(4.0 / 3)).epsilon(1e-14));
  CHECK(loss[1] == Approx(std::log(2.0)).epsilon(1e-14));
  CHECK(loss[2] == 0);
  const Numbers dloss{0.5, 2, 1};
  Numbers dlogits(6, 7);
  plain::cross_entropy_backward(3, 2, logits.data(), targets, dloss.data(), dlogits.data());
  check_gradient("logits", logits, dlogits, dloss, cross_entropy);

  Numbers x{-3, -1, 0, 1, 3}, y(5), dx(5, 7);
  const auto gelu = [&]() -> const Numbers& {
    plain::gelu_forward(5, x.data(), y.data());
    return y;
  };
  gelu();
  CHECK(y[1] == Approx(-0.158655253931457).epsilon(1e-14));  // -Phi(-1)
  CHECK(y[2] == 0);
  CHECK(y[3] == Approx(0.841344746068543).epsilon(1e-14));  // Phi(1)
  const Numbers dy = normals(5, "dy");
  plain::gelu_backward(5, x.data(), dy.data(), dx.data());
  check_gradient("gelu", x, dx, dy, gelu);
}
