// The norms as modules: definitions, running averages, what they see.
#include "normlab/nn/norm.h"

#include <algorithm>
#include <cmath>

#include "support.h"

using namespace normlab;

namespace {

ModelConfig config_of(NormKind kind, Index channels) {
  ModelConfig config;
  config.norm = kind;
  config.d_model = channels;
  config.n_heads = 1;
  config.resolve();
  return config;
}

Tensor tensor_of(Shape shape, std::initializer_list<Real> values) {
  Tensor tensor(shape);
  std::ranges::copy(values, tensor.values().begin());
  return tensor;
}

Tensor training_forward(const Norm& norm, const Tensor& x, Mask mask = {}) {
  Pass pass;
  pass.training = true;
  pass.mask = mask;
  return norm.forward(x, pass);
}

Tensor evaluation_forward(const Norm& norm, const Tensor& x) {
  Pass pass;
  return norm.forward(x, pass);
}

bool same_bits(const Tensor& a, const Tensor& b) { return std::ranges::equal(a.values(), b.values()); }

}  // namespace

TEST_CASE("LayerNorm uses the biased variance with eps inside the root", "[nn]") {
  ParameterStore store(1);
  const Norm norm(Scope(store) / "n", config_of(NormKind::layer, 4));
  const Tensor y = training_forward(norm, tensor_of({1, 1, 4}, {1, 0, 0, 0}));
  CHECK(y.values()[0] == Approx(1.732005).epsilon(1e-6));
  CHECK(y.values()[1] == Approx(-0.577335).epsilon(1e-6));
}

TEST_CASE("RMSNorm is LLaMA's, and a row of zeros stays", "[nn]") {
  ParameterStore store(1);
  ModelConfig config = config_of(NormKind::rms, 2);
  config.norm_eps = 1e-6;
  const Norm norm(Scope(store) / "n", config);
  const Tensor y = training_forward(norm, tensor_of({1, 2, 2}, {3, 4, 0, 0}));
  CHECK(y.values()[0] == Approx(0.848528).epsilon(1e-6));
  CHECK(y.values()[1] == Approx(1.131371).epsilon(1e-6));
  CHECK(y.values()[2] == 0);
  CHECK(y.values()[3] == 0);
}

TEST_CASE("LayerNorm's rows have mean 0 and variance 1", "[nn]") {
  ParameterStore store(1);
  const Index channels = 16;
  const Norm norm(Scope(store) / "n", config_of(NormKind::layer, channels));
  const Tensor y = training_forward(norm, random_tensor({2, 3, channels}, 5, 3));
  for (std::size_t row = 0; row < 6; ++row) {
    double sum = 0, squares = 0;
    for (std::size_t c = 0; c < 16; ++c) {
      const double value = y.values()[row * 16 + c];
      sum += value;
      squares += value * value;
    }
    CHECK(std::fabs(sum / 16) < 1e-6);          // rounding of 16 floats of size 1
    CHECK(std::fabs(squares / 16 - 1) < 1e-3);  // eps takes 1e-5 / 9 of the variance
  }
}

TEST_CASE("LayerNorm and RMSNorm have no running averages and do the same in training and evaluation", "[nn]") {
  const NormKind kind = GENERATE(NormKind::layer, NormKind::rms);
  ParameterStore store(1);
  const Norm norm(Scope(store) / "n", config_of(kind, 9));
  CHECK(store.buffers().empty());
  const Tensor x = random_tensor({2, 3, 9}, 1);
  CHECK(same_bits(training_forward(norm, x), evaluation_forward(norm, x)));
}

TEST_CASE("batch norm: PyTorch's rule for the running variance", "[nn]") {
  ParameterStore store(1);
  const Norm norm(Scope(store) / "n", config_of(NormKind::batch, 1));
  training_forward(norm, tensor_of({4, 4, 1}, {1, 2, 3, 4, 2, 3, 4, 5, 3, 4, 5, 6, 4, 5, 6, 7}));
  // mean 4, unbiased variance 2.6667 (the biased one, 2.5, would give 1.15)
  CHECK(store.buffers()[0].tensor.values()[0] == Approx(0.4).epsilon(1e-6));
  CHECK(store.buffers()[1].tensor.values()[0] == Approx(1.1666667).epsilon(1e-5));
}

TEST_CASE("batch norm: padding does not enter, and what stands there changes no real row", "[nn]") {
  ParameterStore store(1);
  const Norm norm(Scope(store) / "n", config_of(NormKind::batch, 1));
  const std::vector<std::uint8_t> mask{1, 1, 1, 1, 1, 0, 0, 0, 0, 0};
  Tensor x = tensor_of({2, 5, 1}, {1, 2, 3, 4, 5, 0, 0, 0, 0, 0});
  const Tensor y = training_forward(norm, x, mask);
  // mean 3, biased variance 2, unbiased 2.5
  CHECK(y.values()[0] == Approx(-2 / std::sqrt(2.0 + 1e-5)).epsilon(1e-6));
  CHECK(store.buffers()[0].tensor.values()[0] == Approx(0.3).epsilon(1e-6));
  CHECK(store.buffers()[1].tensor.values()[0] == Approx(0.9 + 0.25).epsilon(1e-5));
  std::fill(x.values().begin() + 5, x.values().end(), Real(1000));
  const Tensor changed = training_forward(norm, x, mask);
  CHECK(std::equal(y.values().begin(), y.values().begin() + 5, changed.values().begin()));
}

TEST_CASE("batch norm with one real row gives the bias, and its running variance stays finite", "[nn]") {
  ParameterStore store(1);
  const Norm norm(Scope(store) / "n", config_of(NormKind::batch, 3));
  const Tensor y = training_forward(norm, tensor_of({1, 1, 3}, {5, -7, 1e4f}));
  for (const Real value : y.values()) CHECK(value == 0);
  for (const Real var : store.buffers()[1].tensor.values()) CHECK(var == Approx(0.9).epsilon(1e-6));
}

TEST_CASE("batch norm in evaluation uses the running averages, changes none, and sees one row at a time", "[nn]") {
  ParameterStore store(1);
  const Norm norm(Scope(store) / "n", config_of(NormKind::batch, 2));
  const Out mean = store.buffers()[0].tensor.values(), var = store.buffers()[1].tensor.values();
  mean[0] = 1, mean[1] = -1, var[0] = 4, var[1] = 0.25;
  const Tensor both = evaluation_forward(norm, tensor_of({2, 1, 2}, {3, -1, 1, 0}));
  CHECK(both.values()[0] == Approx(1).epsilon(1e-5));  // (3 - 1) / sqrt(4 + 1e-5)
  CHECK(both.values()[3] == Approx(2).epsilon(1e-4));  // (0 + 1) / sqrt(0.25 + 1e-5)
  const Tensor alone = evaluation_forward(norm, tensor_of({1, 1, 2}, {1, 0}));
  CHECK(alone.values()[1] == both.values()[3]);
  CHECK(mean[0] == 1);
  CHECK(var[1] == Real(0.25));
}

TEST_CASE(
    "batch norm evaluated on the batch's own statistics: as in training, but nothing is updated, and the distance is "
    "told",
    "[nn]") {
  struct Distances : Probe {
    std::vector<StatisticsDistance> seen;
    void see(Site, Index, const Tensor&, Mask) override {}
    void see_statistics(const std::string& name, StatisticsDistance distance) override {
      CHECK(name == "n");
      seen.push_back(distance);
    }
  } probe;
  ParameterStore store(1);
  const Norm norm(Scope(store) / "n", config_of(NormKind::batch, 2));
  const Out mean = store.buffers()[0].tensor.values(), var = store.buffers()[1].tensor.values();
  mean[0] = 1, mean[1] = 2, var[0] = 4, var[1] = 1;
  Pass pass;
  pass.batch_statistics = true;
  pass.probe = &probe;
  const Tensor x = tensor_of({2, 1, 2}, {3, 0, 5, 2});  // means 4 and 1, variances 1 and 1
  const Tensor y = norm.forward(x, pass);
  CHECK(same_bits(y, training_forward(Norm(Scope(store) / "m", config_of(NormKind::batch, 2)), x)));
  CHECK((mean[0] == 1 && mean[1] == 2 && var[0] == 4 && var[1] == 1));
  REQUIRE(probe.seen.size() == 1);
  // Means: 3 of a deviation of 2, and -1 of 1. Variances: 1/4 - 1, and 0. The deviations have eps in them.
  CHECK(probe.seen[0].mean == Approx(std::sqrt((1.5 * 1.5 + 1) / 2)).epsilon(1e-4));
  CHECK(probe.seen[0].variance == Approx(std::sqrt(0.75 * 0.75 / 2)).epsilon(1e-4));
}
