// The cross-entropy at the edge in double: values by hand at logits of 1e4, alone and through the head in slices.
#include <cmath>

#include "normlab/ops/ops.h"
#include "support.h"

using namespace normlab;

namespace {

using Targets = std::vector<std::int32_t>;

Tensor of(Shape shape, const std::vector<Real>& values) {
  Tensor tensor = parameter_tensor(shape);
  std::ranges::copy(values, tensor.values().begin());
  return tensor;
}

std::vector<Real> copy_of(In values) { return {values.begin(), values.end()}; }

}  // namespace

TEST_CASE("edges: logits of +-1e4 have the loss and the gradients that hand computation gives", "[train]") {
  // x = 1 and -1 on the weights 1e4, -1e4, 0 make the logits. A probability is 0 or 1 to the last bit: exp(-1e4) is.
  const Tensor x = of({5, 1}, {1, 1, 1, -1, 1}), weight = of({3, 1}, {1e4, -1e4, 0});
  const Targets targets{0, 1, 2, 2, kernels::kIgnore};
  std::vector<Real> rows(5);
  const Tensor loss = ops::linear_cross_entropy(x, weight, targets, 0.25, rows);
  CHECK(rows == std::vector<Real>{0, 2e4, 1e4, 1e4, 0});
  CHECK(loss.item() == 1e4);
  backward(loss);
  // Each row's p - [v = target] is 0 0 0, 1 -1 0, 1 0 -1 and 0 1 -1, times 0.25.
  CHECK(copy_of(x.grad()) == std::vector<Real>{0, 0.25 * 2e4, 0.25 * 1e4, 0.25 * -1e4, 0});
  CHECK(copy_of(weight.grad()) == std::vector<Real>{0.25 * 2, 0.25 * (-1 - 1), 0.25 * (-1 + 1)});
}

TEST_CASE("edges: two logits near 1e4 that differ by 1 have the loss ln(1 + e^-1), and its gradient", "[train]") {
  const Tensor logits = of({2, 2}, {1e4, 1e4 + 1, -1e4, -1e4 - 1});
  const Targets targets{1, 1};
  std::vector<Real> rows(2);
  const Tensor loss = ops::cross_entropy(logits, targets, 1, rows);
  // 1e4 has a unit in the last place of 1.8e-12, and the loss is a difference of numbers of that size.
  CHECK(std::fabs(rows[0] - std::log1p(std::exp(-1.0))) < 4e-12);
  CHECK(std::fabs(rows[1] - std::log1p(std::exp(1.0))) < 4e-12);
  backward(loss);
  const double p = 1 / (1 + std::exp(-1.0));
  const std::vector<double> expected{1 - p, p - 1, p, -p};
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::fabs(logits.grad()[i] - expected[i]) < 4e-12);
}

TEST_CASE("edges: equal logits over a vocabulary of 1, 2 and 65,536 cost ln V, and pull at the target alone",
          "[train][slow]") {
  const Index V = GENERATE(1, 2, 65536), rows = 400;  // more rows than a slice of the head
  CAPTURE(V);
  const Tensor x = of({rows, 1}, std::vector<Real>(static_cast<std::size_t>(rows), 1));
  const Tensor weight = of({V, 1}, std::vector<Real>(static_cast<std::size_t>(V), 0.5));
  const Targets targets(static_cast<std::size_t>(rows), static_cast<std::int32_t>(V - 1));
  const Tensor loss = ops::linear_cross_entropy(x, weight, targets, 1 / static_cast<double>(rows));
  const double v = static_cast<double>(V);
  CHECK(std::fabs(loss.item() - std::log(v)) < 1e-12);  // sums of 65,536 ones are exact; 400 roundings of 11
  backward(loss);
  // dweight is p - [v = target] = 1/V, and 1/V - 1 for the target; dx its sum times 0.5, which is 0.
  const In dweight = weight.grad();
  for (const Real each : dweight.first(dweight.size() - 1)) REQUIRE(std::fabs(each - 1 / v) < 1e-13);
  CHECK(std::fabs(dweight.back() - (1 / v - 1)) < 1e-12);
  for (const Real each : x.grad()) REQUIRE(std::fabs(each) < 1e-12);
}

TEST_CASE("edges: where no target counts, loss and gradients are 0 and not NaN, whatever the logits", "[train]") {
  const Tensor x = of({2, 1}, {1e4, -1e4}), weight = of({3, 1}, {1e4, -1e4, 0});
  const Targets none(2, kernels::kIgnore);
  std::vector<Real> rows(2, 7);
  const Tensor loss = ops::linear_cross_entropy(x, weight, none, 1, rows);
  CHECK(loss.item() == 0);
  CHECK(rows == std::vector<Real>{0, 0});
  backward(loss);
  CHECK(copy_of(x.grad()) == std::vector<Real>(2, 0));
  CHECK(copy_of(weight.grad()) == std::vector<Real>(3, 0));
}
