// The derivative of every op by every input, in double precision, against central differences.
#include <vector>

#include "normlab/ops/ops.h"
#include "support.h"

using namespace normlab;

namespace {

const std::vector<std::int32_t> kTokens{3, 0, 2, 2, 4, 1};
const std::vector<std::uint8_t> kMask{1, 1, 1, 1, 0, 0};

}  // namespace

TEST_CASE("gradient of linear, with each activation, with and without bias", "[ops]") {
  const Activation act = GENERATE(Activation::none, Activation::gelu, Activation::gelu_tanh, Activation::relu);
  const Tensor x = random_tensor({2, 3, 5}, 1), weight = random_tensor({7, 5}, 2), bias = random_tensor({7}, 3);
  check_gradients("linear", {x, weight, bias}, [&] { return ops::linear(x, weight, bias, act); });
  check_gradients("linear without bias", {x, weight}, [&] { return ops::linear(x, weight, {}, act); });
}

TEST_CASE("gradient of the pointwise ops", "[ops]") {
  const Tensor x = random_tensor({2, 3, 5}, 1), f = random_tensor({2, 3, 5}, 2);
  check_gradients("add", {x, f}, [&] { return ops::add(x, f); });
  check_gradients("add, scaled", {x, f}, [&] { return ops::add(x, f, 1.7); });
  check_gradients("swiglu", {x, f}, [&] { return ops::swiglu(x, f); });
  check_gradients("dropout", {x}, [&] { return ops::dropout(x, {0.3, 42}); });
}

TEST_CASE("a tensor used twice gets both gradients", "[ops]") {
  const Tensor x = random_tensor({2, 3, 5}, 1);
  check_gradients("x + x", {x}, [&] { return ops::add(x, x, 3); });
  check_gradients("x + swiglu(x, x)", {x}, [&] { return ops::add(x, ops::swiglu(x, x)); });
}

TEST_CASE("gradient of normalize in every view, centred or not, with and without a mask", "[ops]") {
  const Index channels = GENERATE(1, 4, 7, 8, 9, 33);
  const bool centred = GENERATE(true, false);
  const Index batch = 2, time = 3;
  const Tensor x = random_tensor({batch, time, channels}, 1), gain = random_tensor({channels}, 2),
               bias = random_tensor({channels}, 3);
  const std::vector<std::pair<const char*, ops::NormView>> views{
      {"channel", {batch * time, channels, 1, channels}},
      {"time", {batch, time, channels, channels}},
      {"time and channel", {batch, time * channels, 1, channels}},
      {"batch and time", {1, batch * time, channels, channels}},
      {"batch", {1, batch, time * channels, channels}},
  };
  for (const auto& named_view : views) {
    const char* name = named_view.first;
    const ops::NormView view = named_view.second;
    // One element in a group leaves nothing of a centred x: its derivative, 0, is tested by the norm's own formula.
    if (view.reduced == 1 && centred) continue;
    check_gradients(name, {x, gain, bias}, [&] { return ops::normalize(x, view, {centred, 1e-5}, {}, gain, bias); });
    check_gradients(name, {x}, [&] { return ops::normalize(x, view, {centred, 1e-5}, {}, {}, {}); });
  }
}

TEST_CASE("gradient of normalize under a mask, as far as the loss sees real rows only", "[ops]") {
  const Index channels = 5;
  const Tensor x = random_tensor({2, 3, channels}, 1), gain = random_tensor({channels}, 2),
               bias = random_tensor({channels}, 3), zero_padding = random_tensor({2, 3, channels}, 4);
  for (std::size_t i = 0; i < zero_padding.values().size(); ++i)
    if (!kMask[i / channels]) zero_padding.values()[i] = 0;
  // swiglu(y, z) is 0, with derivative 0 by y, where z is 0: padded rows reach neither loss nor gradient.
  const auto seen = [&](ops::NormView view) {
    return ops::swiglu(ops::normalize(x, view, {true, 1e-5}, kMask, gain, bias), zero_padding);
  };
  check_gradients("batch", {x, gain, bias}, [&] { return seen({1, 6, channels, channels}); });
  check_gradients("instance", {x, gain, bias}, [&] { return seen({2, 3, channels, channels}); });
  check_gradients("layer_seq", {x, gain, bias}, [&] { return seen({2, 3 * channels, 1, channels}); });
}

TEST_CASE("gradient of normalize_by", "[ops]") {
  const Tensor x = random_tensor({2, 3, 9}, 1), gain = random_tensor({9}, 2), bias = random_tensor({9}, 3);
  const ops::Statistics given{random_tensor({9}, 4), random_tensor({9}, 5)};
  check_gradients("normalize_by", {x, gain, bias}, [&] {
    return ops::normalize_by(x, {1, 6, 9, 9}, given, gain, bias);
  });
}

TEST_CASE("gradient of attention, with dropout, and of rotary positions", "[ops]") {
  const auto sizes = GENERATE(table<Index, Index>({{1, 1}, {2, 4}, {3, 7}, {1, 17}}));
  const Index heads = std::get<0>(sizes), head_dim = std::get<1>(sizes);
  const Tensor qkv = random_tensor({2, 5, 3 * heads * head_dim}, 1);
  check_gradients("attention", {qkv}, [&] { return ops::attention(qkv, heads, {}); });
  check_gradients("attention with dropout", {qkv}, [&] { return ops::attention(qkv, heads, {0.4, 7}); });
  if (head_dim % 2 == 0) check_gradients("rope", {qkv}, [&] { return ops::rope(qkv, heads, 10000, 3); });
}

TEST_CASE("attention over more than one block of keys", "[ops]") {
  const Tensor qkv = random_tensor({1, 70, 3 * 4}, 1, 0.7);
  check_gradients("attention", {qkv}, [&] { return ops::attention(qkv, 2, {}); });
}

TEST_CASE("gradient of the embedding, with padding", "[ops]") {
  const Tensor table = random_tensor({5, 4}, 1), position = random_tensor({6, 4}, 2);
  for (const Mask mask : {Mask(), Mask(kMask)})
    for (const Index first : {0, 2}) {
      const auto f = [&] { return ops::embedding({2, 3}, kTokens, mask, table, position, first); };
      check_gradients("embedding", {table, position}, f);
    }
  check_gradients("embedding without positions", {table}, [&] {
    return ops::embedding({2, 3}, kTokens, {}, table, {}, 0);
  });
}

TEST_CASE("gradient of cross-entropy, with targets that do not count", "[ops]") {
  const Tensor logits = random_tensor({2, 3, 5}, 1);
  const std::vector<std::int32_t> targets{0, 4, kernels::kIgnore, 2, 2, kernels::kIgnore};
  check_gradients("cross_entropy", {logits}, [&] { return ops::cross_entropy(logits, targets, 0.25); });
}

TEST_CASE("gradient of the head with its cross-entropy, and the same as of the two, over more rows than a slice",
          "[ops]") {
  const Tensor weight = random_tensor({5, 3}, 2);
  const std::vector<std::int32_t> few{0, 4, kernels::kIgnore, 2, 2, kernels::kIgnore};
  const Tensor x = random_tensor({2, 3, 3}, 1);
  check_gradients("linear_cross_entropy", {x, weight}, [&] { return ops::linear_cross_entropy(x, weight, few, 0.25); });
  const Index rows = 1000;
  const Tensor many = random_tensor({rows, 3}, 3);
  std::vector<std::int32_t> targets;
  for (Index i = 0; i < rows; ++i) targets.push_back(static_cast<std::int32_t>(i % 5));
  std::vector<Real> row_loss(targets.size()), row_loss_of_two(targets.size());
  const auto gradients = [&](const Tensor& loss) {
    many.clear_grad(), weight.clear_grad();
    backward(loss);
    std::vector<Real> all{loss.item()};
    all.insert(all.end(), many.grad().begin(), many.grad().end());
    all.insert(all.end(), weight.grad().begin(), weight.grad().end());
    return all;
  };
  const std::vector<Real> one = gradients(ops::linear_cross_entropy(many, weight, targets, 0.5, row_loss));
  CHECK(one == gradients(ops::cross_entropy(ops::linear(many, weight, {}), targets, 0.5, row_loss_of_two)));
  CHECK(row_loss == row_loss_of_two);
}

TEST_CASE("gradient of a linear layer onto a residual, and the same bits as of a sum", "[ops]") {
  const Tensor x = random_tensor({2, 3, 5}, 1), weight = random_tensor({5, 5}, 2), bias = random_tensor({5}, 3);
  const Tensor residual = random_tensor({2, 3, 5}, 4);
  check_gradients("linear_onto", {residual, x, weight, bias},
                  [&] { return ops::linear_onto(residual, x, weight, bias); });
  check_gradients("linear_onto, onto itself", {x, weight, bias}, [&] { return ops::linear_onto(x, x, weight, bias); });
  const Tensor fused = ops::linear_onto(residual, x, weight, bias),
               sum = ops::add(residual, ops::linear(x, weight, bias));
  CHECK(std::ranges::equal(fused.values(), sum.values()));
}

TEST_CASE("no graph is kept when nothing needs a gradient", "[ops]") {
  const Tensor x(Shape{2, 3});
  CHECK(!ops::add(x, x).needs_grad());
}

TEST_CASE("a chain of 100,000 ops runs backward without recursion", "[ops]") {
  const Tensor x = random_tensor({1}, 1);
  Tensor y = x;
  for (int i = 0; i < 100000; ++i) y = ops::add(y, x);
  backward(y);
  CHECK(x.grad()[0] == 100001);
}
