// Sharpness and the measures along a step against a Hessian made of second differences of the loss.
#include <cmath>

#include "catch.h"
#include "normlab/base/rng.h"
#include "normlab/lab/curvature/curvature.h"

using namespace normlab;

namespace {

// A model of 63 parameters.
struct Tiny {
  Tiny() {
    config.n_layers = 1;
    config.n_heads = 1;
    config.d_model = 2;
    config.d_ff = 2;
    config.context_length = 3;
    config.init = Initialisation::xavier;
    config.resolve();
    batch.rows = 2;
    batch.time = 3;
    batch.tokens = {0, 2, 1, 1, 0, 3};
    batch.targets = {2, 1, 3, 0, 3, 1};
  }
  CurvatureAt at(double lr) const {
    CurvatureAt at{{config, 4, 7, {}}, {}, lr, 0, {}};
    at.optimizer.name = OptimizerKind::sgd;
    return at;
  }

  ModelConfig config;
  Batch batch;
};

using Matrix = std::vector<std::vector<double>>;

Matrix hessian_of(LossSurface& surface) {
  const LossSurface::Vector place = surface.parameters();
  constexpr double h = 1e-4;  // truncation 1e-8, rounding 1e-16 / h^2 = 1e-8
  const auto loss_at = [&](std::size_t i, double a, std::size_t j, double b) {
    LossSurface::Vector there = place;
    there[i] += a;
    there[j] += b;
    surface.move_to(there);
    return surface.loss();
  };
  Matrix hessian(place.size(), std::vector<double>(place.size()));
  for (std::size_t i = 0; i < place.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j)
      hessian[i][j] = hessian[j][i] =
          (loss_at(i, h, j, h) - loss_at(i, h, j, -h) - loss_at(i, -h, j, h) + loss_at(i, -h, j, -h)) / (4 * h * h);
  surface.move_to(place);
  return hessian;
}

std::vector<double> times(const Matrix& matrix, const std::vector<double>& x) {
  std::vector<double> y(x.size(), 0.0);
  for (std::size_t i = 0; i < y.size(); ++i)
    for (std::size_t j = 0; j < x.size(); ++j) y[i] += matrix[i][j] * x[j];
  return y;
}

double length(const std::vector<double>& x) {
  double squares = 0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares);
}

// Power iteration on matrix + shift, which makes the largest eigenvalue the largest in magnitude.
double top_eigenvalue(const Matrix& matrix, double shift) {
  std::vector<double> x(matrix.size(), 1.0);
  double value = 0;
  for (int round = 0; round < 20000; ++round) {
    std::vector<double> y = times(matrix, x);
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += shift * x[i];
    value = length(y) / length(x);
    const double scale = 1 / length(y);
    for (std::size_t i = 0; i < y.size(); ++i) x[i] = y[i] * scale;
  }
  return value - shift;
}

}  // namespace

TEST_CASE("sharpness is the Hessian's largest eigenvalue, plain and preconditioned", "[curvature]") {
  const Tiny tiny;
  CurvatureAt at = tiny.at(0.1);
  LossSurface surface(at.model, tiny.batch);
  Matrix hessian = hessian_of(surface);
  const Curvature plain = measure_curvature(at, tiny.batch);
  // Lanczos stops at a residual of 1e-3; the eigenvalue's own error is its square over a gap.
  CHECK(plain.sharpness.value == Approx(top_eigenvalue(hessian, 5)).epsilon(1e-4));
  CHECK(plain.sharpness.error < 2e-3);
  CHECK(!plain.preconditioned);
  CHECK(plain.stable_below == Approx(20));  // 2 / lr

  at.optimizer.name = OptimizerKind::adamw;
  at.optimizer.betas = {0.9, 0.99};
  at.optimizer.eps = 1e-3;
  at.lr = 1e-3;
  at.updates = 3;
  std::vector<std::vector<double>> moments;
  Random random(1, "moments");
  for (const Named& parameter : surface.model().store().parameters()) {
    moments.emplace_back(parameter.tensor.values().size());
    for (double& value : moments.back()) value = random.uniform();
    at.second_moments.push_back(stored("optimizer.v." + parameter.name, {parameter.tensor.shape().numel()},
                                       std::span<const double>(moments.back())));
  }
  std::vector<double> scale;
  for (const auto& moment : moments)
    for (const double v : moment)
      scale.push_back(1 / std::sqrt((1 - 0.9 * 0.9 * 0.9) * (std::sqrt(v / (1 - 0.99 * 0.99 * 0.99)) + 1e-3)));
  for (std::size_t i = 0; i < scale.size(); ++i)
    for (std::size_t j = 0; j < scale.size(); ++j) hessian[i][j] *= scale[i] * scale[j];
  const Curvature adam = measure_curvature(at, tiny.batch);
  REQUIRE(adam.preconditioned);
  CHECK(adam.preconditioned->value == Approx(top_eigenvalue(hessian, 5)).epsilon(1e-4));
  CHECK(adam.stable_below == Approx(38000));  // 38 / lr for beta1 = 0.9
}

TEST_CASE("along a short step the gradient changes by the Hessian times the gradient", "[curvature]") {
  const Tiny tiny;
  const double lr = 1e-6;
  const CurvatureAt at = tiny.at(lr);
  LossSurface surface(at.model, tiny.batch);
  const Matrix hessian = hessian_of(surface);
  std::vector<double> gradient;
  surface.loss_and_gradient(gradient);
  const double slope = length(times(hessian, gradient)) / length(gradient);
  const Curvature measured = measure_curvature(at, tiny.batch);
  // The third derivative shows in the fourth digit at 4 lr.
  CHECK(measured.effective_smoothness == Approx(slope).epsilon(1e-3));
  CHECK(measured.change_low == Approx(0.5 * lr * slope * length(gradient)).epsilon(1e-3));
  CHECK(measured.change_high == Approx(4 * lr * slope * length(gradient)).epsilon(1e-3));
  CHECK(measured.loss - measured.loss_high == Approx(0.5 * lr * std::pow(length(gradient), 2)).epsilon(1e-3));

  // The head is tied, so two layers lie above the embedding; the first of them sees its step alone.
  REQUIRE(measured.shifts.size() == 2);
  CHECK(measured.shifts[0].layer == "blocks.0");
  CHECK(measured.shifts[1].layer == "final_norm");
  std::vector<double> below(gradient.size(), 0.0);
  std::size_t first = 0, end = 0;
  for (const Named& parameter : surface.model().store().parameters()) {
    const std::size_t count = parameter.tensor.values().size();
    if (parameter.name.ends_with("_embed.weight")) first += count;
    if (!parameter.name.starts_with("final_norm")) end += count;
  }
  for (std::size_t i = 0; i < first; ++i) below[i] = lr * gradient[i];
  const std::vector<double> change = times(hessian, below);
  CHECK(measured.shifts[0].change == Approx(length({change.begin() + static_cast<std::ptrdiff_t>(first),
                                                    change.begin() + static_cast<std::ptrdiff_t>(end)}))
                                         .epsilon(1e-3));
}

TEST_CASE("a surface leaves no trace, and its gradient is that of the parameters it was moved to", "[curvature]") {
  Tiny tiny;
  tiny.config.norm = NormKind::batch;
  LossSurface surface({tiny.config, 4, 7, {}}, tiny.batch);
  LossSurface::Vector gradient, again;
  const double loss = surface.loss();
  CHECK(surface.loss_and_gradient(gradient) == loss);
  CHECK(surface.loss() == loss);
  surface.loss_and_gradient(again);
  CHECK(gradient == again);
  for (const Named& buffer : surface.model().store().buffers())
    for (const double value : buffer.tensor.values()) CHECK(value == (buffer.name.ends_with("running_var") ? 1 : 0));
}
