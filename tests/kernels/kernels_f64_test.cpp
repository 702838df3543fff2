// Every backward kernel in double against central differences of its forward, over every input.
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "catch.h"
#include "kernels_support.h"

using namespace normlab;
using namespace normlab::kernels;

namespace {

using Inputs = std::vector<Numbers>;
// Writes the outputs' values, of which the loss is a weighted sum.
using Forward = std::function<Numbers(const Inputs&)>;
// The gradients of the inputs (empty: none wanted), given dy = the weights.
using Backward = std::function<void(const Inputs&, const Numbers& dy, std::vector<Grad>&)>;

// Differences of fourth order with a step of 3e-4: their own error is about 1e-14 times the fifth derivative, and 1e-11
// from rounding, so that 1e-8 + 1e-6 |numeric| leaves room even for a norm over three numbers.
void check_gradients(const std::string& name, Inputs inputs, const Forward& forward, const Backward& backward) {
  const Numbers weights = normals(static_cast<Index>(forward(inputs).size()), name);
  const auto loss = [&] {
    const Numbers y = forward(inputs);
    double total = 0;
    for (std::size_t i = 0; i < y.size(); ++i) total += weights[i] * y[i];
    return total;
  };
  Inputs analytic = inputs;
  for (Numbers& g : analytic) std::fill(g.begin(), g.end(), std::numeric_limits<Real>::quiet_NaN());
  std::vector<Grad> grads;
  for (Numbers& g : analytic) grads.push_back(Grad{g, false});
  backward(inputs, weights, grads);  // overwrites the NaN
  for (std::size_t part = 0; part < inputs.size(); ++part)
    for (std::size_t i = 0; i < inputs[part].size(); ++i) {
      const double at = inputs[part][i], step = 3e-4;
      const auto loss_at = [&](double value) {
        inputs[part][i] = value;
        return loss();
      };
      const double near = loss_at(at + step) - loss_at(at - step),
                   far = loss_at(at + 2 * step) - loss_at(at - 2 * step);
      inputs[part][i] = at;
      const double numeric = (8 * near - far) / (12 * step);
      INFO(name << ": input " << part << " element " << i);
      REQUIRE(std::fabs(numeric - analytic[part][i]) <= 1e-8 + 1e-6 * std::fabs(numeric));
    }
  const Inputs once = analytic;
  for (Grad& g : grads) g.add = true;
  backward(inputs, weights, grads);
  for (std::size_t part = 0; part < inputs.size(); ++part)
    for (std::size_t i = 0; i < inputs[part].size(); ++i)  // twice the gradient, but for a product fused into the sum
      REQUIRE(std::fabs(analytic[part][i] - 2 * once[part][i]) <= 1e-14 * (1 + std::fabs(once[part][i])));
  for (std::size_t part = 0; part < inputs.size(); ++part) {  // each gradient alone, the others not wanted
    std::vector<Grad> alone(inputs.size());
    Numbers result = zeros(static_cast<Index>(inputs[part].size()));
    alone[part] = Grad{result, false};
    backward(inputs, weights, alone);
    INFO(name << ": only input " << part);
    REQUIRE(same_bytes(result, once[part]));
  }
}

constexpr Index kSizes[] = {1, 7, 8, 9, 12, 33, 35};  // around the lane counts

}  // namespace

TEST_CASE("pointwise gradients agree with central differences", "[kernels]") {
  for (const Index n : kSizes) {
    check_gradients(
        "add", {normals(n, "x"), normals(n, "f")},
        [&](const Inputs& in) {
          Numbers y = zeros(n);
          kernels::add_forward(Real(1.7), in[0], in[1], y);
          return y;
        },
        [&](const Inputs&, const Numbers& dy, std::vector<Grad>& g) {
          kernels::accumulate(Real(1.7), dy, g[0]);
          kernels::accumulate(1, dy, g[1]);
        });
    const kernels::LinearShape one_column{n, 1, 1};
    const Numbers one{1};
    for (const Activation act : {Activation::gelu, Activation::gelu_tanh, Activation::relu})
      check_gradients(
          "activation", {normals(n, "z")},
          [&](const Inputs& in) {
            Numbers y = zeros(n);
            kernels::linear_forward(one_column, act, in[0], one, {}, {}, {}, y);
            return y;
          },
          [&](const Inputs& in, const Numbers& dy, std::vector<Grad>& g) {
            Numbers y = zeros(n), slope = zeros(n);
            kernels::linear_forward(one_column, act, in[0], one, {}, {}, slope, y);
            kernels::multiply(dy, slope);
            kernels::accumulate(1, slope, g[0]);
          });
    check_gradients(
        "swiglu", {normals(n, "gate"), normals(n, "up")},
        [&](const Inputs& in) {
          Numbers y = zeros(n);
          kernels::swiglu_forward(in[0], in[1], y);
          return y;
        },
        [&](const Inputs& in, const Numbers& dy, std::vector<Grad>& g) {
          kernels::swiglu_backward(in[0], in[1], dy, g[0], g[1]);
        });
    const Dropout drop{Real(0.3), 12345};
    check_gradients(
        "dropout", {normals(n, "x")},
        [&](const Inputs& in) {
          Numbers y = zeros(n);
          kernels::dropout_forward(drop, in[0], y);
          return y;
        },
        [&](const Inputs&, const Numbers& dy, std::vector<Grad>& g) { kernels::dropout_backward(drop, dy, g[0]); });
  }
}

namespace {

void check_norm(const std::string& name, NormView v, bool centred, std::span<const std::uint8_t> mask) {
  const NormRule rule{centred, 1e-5};
  const Index groups = v.groups();
  check_gradients(
      name, {normals(v.size(), "x"), normals(v.channels, "gain", 1, 0.2), normals(v.channels, "bias")},
      [&](const Inputs& in) {
        Numbers y = zeros(v.size()), mean = zeros(groups), rstd = zeros(groups);
        kernels::normalize_forward(v, rule, mask, in[0], in[1], in[2], y, mean, rstd);
        return y;
      },
      [&](const Inputs& in, const Numbers& dy, std::vector<Grad>& g) {
        Numbers y = zeros(v.size()), mean = zeros(groups), rstd = zeros(groups);
        kernels::normalize_forward(v, rule, mask, in[0], in[1], in[2], y, mean, rstd);
        kernels::normalize_backward(v, rule, mask, in[0], in[1], mean, rstd, dy, g[0], g[1], g[2]);
      });
}

}  // namespace

TEST_CASE("gradients of every norm agree with central differences, padding included", "[kernels]") {
  const Index B = 3, T = 5;
  const std::vector<std::uint8_t> mask{1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0};
  for (const Index C : {12, 9, 33})
    for (const bool padded : {false, true}) {
      const Mask m = padded ? Mask(mask) : Mask();
      check_norm("layer", {B * T, C, 1, C}, true, m);
      check_norm("rms", {B * T, C, 1, C}, false, m);
      check_norm("group", {B * T * 3, C / 3, 1, C}, true, m);
      check_norm("instance", {B, T, C, C}, true, m);
      check_norm("layer_seq", {B, T * C, 1, C}, true, m);
      check_norm("batch", {1, B * T, C, C}, true, m);
      check_norm("batch_step", {1, B, T * C, C}, true, m);
    }
  check_norm("batch over several chunks of rows", {1, 70, 3, 3}, true, {});
  check_norm("layer over several chunks of rows", {70, 3, 1, 3}, true, {});
}

TEST_CASE("gradients of a norm with given statistics agree with central differences", "[kernels]") {
  for (const Index C : kSizes) {
    const Index rows = 4;
    const Numbers mean = normals(C, "mean"), rstd = normals(C, "rstd", 2, 0.1);
    check_gradients(
        "normalize_by", {normals(rows * C, "x"), normals(C, "gain"), normals(C, "bias")},
        [&](const Inputs& in) {
          Numbers y = zeros(rows * C);
          kernels::normalize_by_forward({1, rows, C, C}, in[0], in[1], in[2], mean, rstd, y);
          return y;
        },
        [&](const Inputs& in, const Numbers& dy, std::vector<Grad>& g) {
          kernels::normalize_by_backward({1, rows, C, C}, in[0], in[1], mean, rstd, dy, g[0], g[1], g[2]);
        });
  }
}

TEST_CASE("gradients of attention agree with central differences, dropout included", "[kernels]") {
  const auto check = [](AttentionShape s, Dropout drop) {
    const Index C = s.heads * s.head_dim, rows = s.batch * s.time;
    check_gradients(
        "attention", {normals(rows * 3 * C, "qkv")},
        [&](const Inputs& in) {
          Numbers y = zeros(rows * C);
          kernels::attention_forward(s, drop, in[0], y, {});
          return y;
        },
        [&](const Inputs& in, const Numbers& dy, std::vector<Grad>& g) {
          Numbers y = zeros(rows * C), log_sum = zeros(s.batch * s.heads * s.time);
          kernels::attention_forward(s, drop, in[0], y, log_sum);
          kernels::attention_backward(s, drop, in[0], y, log_sum, dy, g[0]);
        });
  };
  for (const Index time : {1, 7, 8, 9, 19}) check({2, time, 2, 3}, {});
  for (const Index D : {1, 7, 8, 9, 16}) check({1, 5, 2, D}, {});
  check({1, 9, 1, 4}, {Real(0.4), 99});
  check({1, 70, 1, 2}, {});  // two blocks of keys
}

TEST_CASE("gradients of rotary positions agree with central differences", "[kernels]") {
  for (const Index D : {2, 6, 16, 18}) {
    const AttentionShape s{2, 4, 2, D, 3};
    const Index size = s.batch * s.time * 3 * s.heads * D;
    check_gradients(
        "rope", {normals(size, "qkv")},
        [&](const Inputs& in) {
          Numbers y = zeros(size);
          kernels::rope_forward(s, 10000, in[0], y);
          return y;
        },
        [&](const Inputs&, const Numbers& dy, std::vector<Grad>& g) { kernels::rope_backward(s, 10000, dy, g[0]); });
  }
}

TEST_CASE("gradients of embedding and cross-entropy agree with central differences", "[kernels]") {
  const std::vector<std::int32_t> tokens{0, 3, 3, 1, 0, 2};
  const std::vector<std::uint8_t> mask{1, 1, 1, 1, 0, 0};
  for (const Index C : kSizes) {
    const EmbeddingShape s{2, 3, C, 1};
    check_gradients(
        "embedding", {normals(5 * C, "table"), normals(6 * C, "position")},
        [&](const Inputs& in) {
          Numbers x = zeros(6 * C);
          kernels::embedding_forward(s, tokens, mask, in[0], in[1], x);
          return x;
        },
        [&](const Inputs&, const Numbers& dx, std::vector<Grad>& g) {
          kernels::embedding_backward(s, tokens, mask, dx, g[0], g[1]);
        });
  }
  for (const Index V : kSizes) {
    std::vector<std::int32_t> targets{0, kIgnore, static_cast<std::int32_t>(V - 1), static_cast<std::int32_t>(V / 2)};
    check_gradients(
        "cross_entropy", {normals(4 * V, "logits")},
        [&](const Inputs& in) {
          Numbers loss = zeros(4), log_sum = zeros(4);
          kernels::cross_entropy_forward(V, in[0], targets, loss, log_sum);
          return loss;
        },
        [&](const Inputs& in, const Numbers& dloss, std::vector<Grad>& g) {
          Numbers loss = zeros(4), log_sum = zeros(4);
          kernels::cross_entropy_forward(V, in[0], targets, loss, log_sum);
          kernels::cross_entropy_backward(V, in[0], targets, log_sum, dloss, g[0]);
        });
  }
}
