// The gradient against differences of the loss, in double.
#include <algorithm>
#include <cmath>

#include "check_parts.h"
#include "normlab/base/rng.h"
#include "normlab/nn/norm.h"

namespace normlab::inline f64 {
namespace {

// Rows and positions that the differences are taken on: enough for every parameter to matter.
constexpr Index kRows = 4, kTime = 16;

Batch corner_of(const Batch& batch) {
  Batch corner;
  corner.rows = std::min(batch.rows, kRows);
  corner.time = std::min(batch.time, kTime);
  for (Index row = 0; row < corner.rows; ++row) {
    const auto copy = [&](const auto& from, auto& to) {
      if (from.empty()) return;
      const auto first = from.begin() + row * batch.time;
      to.insert(to.end(), first, first + corner.time);
    };
    copy(batch.tokens, corner.tokens);
    copy(batch.targets, corner.targets);
    copy(batch.valid, corner.valid);
  }
  return corner;
}

// How far entries move, as shares of their tensor's root mean square: the first that gives a small error counts. Where
// the loss is very crooked (nothing normalises, relu) the larger ones miss; a wrong formula is off at all of them.
constexpr double kShares[] = {1e-4, 1e-5, 1e-6, 1e-7};
// Biases that are 0, or nearly, move as if they had this size.
constexpr double kLeastSize = 0.03;
// Of a tensor's gradient. Rounding of the loss leaves some 1e-9 of it at the largest step, 1e-6 at the smallest.
constexpr double kBound = 1e-5;

// Along v by each entry of [begin, end) of the long vector.
double slope(LossSurface& surface, const LossSurface::Vector& place, const LossSurface::Vector& v, std::size_t begin,
             double h) {
  const auto loss_at = [&](double factor) {
    LossSurface::Vector there = place;
    for (std::size_t i = 0; i < v.size(); ++i) there[begin + i] += factor * h * v[i];
    surface.move_to(there);
    return surface.loss();
  };
  return (8 * (loss_at(1) - loss_at(-1)) - (loss_at(2) - loss_at(-2))) / (12 * h);
}

double root_mean_square(const double* values, std::size_t count) {
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) squares += values[i] * values[i];
  return std::sqrt(squares / static_cast<double>(count));
}

}  // namespace

CheckItem check_gradients(const CheckInput& input, Mode mode) {
  const Batch batch = corner_of(input.batch);
  LossSurface surface(input.model, batch, mode);
  const LossSurface::Vector place = surface.parameters();
  LossSurface::Vector gradient;
  surface.loss_and_gradient(gradient);
  const double all = root_mean_square(gradient.data(), gradient.size()) * std::sqrt(static_cast<double>(place.size()));
  double worst = 0;
  std::string where;
  std::size_t begin = 0;
  for (const Named& parameter : surface.model().store().parameters()) {
    const std::size_t count = static_cast<std::size_t>(parameter.tensor.shape().numel());
    Random random(1337, parameter.name);
    LossSurface::Vector v(count);
    for (double& value : v) value = random.normal();
    double analytic = 0;
    for (std::size_t i = 0; i < count; ++i) analytic += gradient[begin + i] * v[i];
    const double spread = root_mean_square(place.data() + begin, count);
    const double own = root_mean_square(gradient.data() + begin, count) * std::sqrt(static_cast<double>(count));
    double error = HUGE_VAL;
    for (const double share : kShares) {
      const double numeric = slope(surface, place, v, begin, share * std::max(spread, kLeastSize));
      error = std::min(error, std::fabs(numeric - analytic) / (own + 1e-4 * all));
      if (error <= kBound) break;
    }
    if (!(error <= worst)) worst = error, where = parameter.name;
    begin += count;
  }
  CheckItem item{mode == Mode::training ? "gradients, training" : "gradients, evaluation", CheckItem::Status::ok, ""};
  item.detail = text("backward against differences of the loss, ", surface.model().store().parameters().size(),
                     " tensors, each along a random direction: largest error ", significant(worst, 2),
                     " of a tensor's gradient (", where, "; up to ", significant(kBound, 2), " is rounding)");
  if (worst <= kBound) return item;
  const bool by_batch = mode == Mode::training || spec_of(norm_of(input.model.config)).running == Running::none;
  const std::string why = by_batch ? few_values(input.model.config, batch) : "";
  item.status = why.empty() ? CheckItem::Status::failed : CheckItem::Status::warning;
  if (!why.empty()) item.detail = text("not to be told: ", why, ", which differences do not follow. ", item.detail);
  return item;
}

}  // namespace normlab::inline f64
