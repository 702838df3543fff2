// The gradient against differences of the loss, in double.
#include <algorithm>
#include <cmath>

#include "check_parts.h"
#include "normlab/base/rng.h"
#include "normlab/nn/norm.h"

namespace normlab {
inline namespace f64 {
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

// Steps: at first entries move by their tensor's root mean square, then by a quarter of the step before. Large steps
// measure gradients near the loss's rounding; small ones a loss with kinks, or so crooked that large ones miss.
constexpr int kSteps = 20;
// Biases that are 0, or nearly, move as if they had this size.
constexpr double kLeastSize = 0.03;
// Of a tensor's gradient.
constexpr double kBound = 1e-5;

LossSurface::Vector random_numbers(std::size_t count, std::string_view stream) {
  Random random(1337, stream);
  LossSurface::Vector v(count);
  for (double& value : v) value = random.normal();
  return v;
}

// The loss at place + step v, v being entries from `begin` on.
double loss_at(LossSurface& surface, LossSurface::Vector place, const LossSurface::Vector& v, std::size_t begin,
               double step) {
  for (std::size_t i = 0; i < v.size(); ++i) place[begin + i] += step * v[i];
  surface.move_to(place);
  return surface.loss();
}

// The loss's rounding, from places so near that nothing else is left in third differences, whose variance is 20 times
// that of a value (More and Wild 2011).
double rounding_of_loss(LossSurface& surface, const LossSurface::Vector& place) {
  constexpr int kPlaces = 12;
  const LossSurface::Vector v = random_numbers(place.size(), "rounding");
  double y[kPlaces], squares = 0;
  for (int i = 0; i < kPlaces; ++i) y[i] = loss_at(surface, place, v, 0, 1e-12 * i);
  for (int i = 3; i < kPlaces; ++i) squares += std::pow(y[i] - 3 * (y[i - 1] - y[i - 2]) - y[i - 3], 2);
  return std::max(std::sqrt(squares / (20 * (kPlaces - 3))), 1e-16 * std::max(1.0, std::fabs(y[0])));
}

struct Slope {
  double value = 0, uncertainty = HUGE_VAL;
};

// Along v, by central differences of shrinking steps, extrapolated to 0 (Ridders 1982): the extrapolation that differs
// least from those it is made of, rounding included, and from what smaller steps give. Where the loss has kinks, or is
// crooked, two may agree by chance: the first that is certain to `enough` does only when it is as near to `expected`,
// else the last.
Slope slope(LossSurface& surface, const LossSurface::Vector& place, const LossSurface::Vector& v, std::size_t begin,
            double step, double rounding, double enough, double expected) {
  Slope best;
  double before[kSteps], now[kSteps];
  for (int k = 0; k < kSteps; ++k, step /= 4) {
    now[0] = (loss_at(surface, place, v, begin, step) - loss_at(surface, place, v, begin, -step)) / (2 * step);
    Slope here;
    for (int j = 1; j <= k; ++j) {
      now[j] = now[j - 1] + (now[j - 1] - before[j - 1]) / (std::pow(16.0, j) - 1);
      const double difference = std::max(std::fabs(now[j] - now[j - 1]), std::fabs(now[j] - before[j - 1]));
      const double uncertainty = 2 * difference + 4 * rounding / step;
      if (uncertainty < here.uncertainty) here = {now[j], uncertainty};
    }
    if (here.uncertainty < std::max(best.uncertainty, enough))
      best = here;
    else
      best.uncertainty = std::max(best.uncertainty, 2 * std::fabs(here.value - best.value));
    if (best.uncertainty <= enough && std::fabs(best.value - expected) <= enough) break;
    if (best.uncertainty <= 4 * rounding / step) break;  // smaller steps have more rounding
    std::copy_n(now, k + 1, before);
  }
  return best;
}

double root_mean_square(const double* values, std::size_t count) {
  double squares = 0;
  for (std::size_t i = 0; i < count; ++i) squares += values[i] * values[i];
  return std::sqrt(squares / static_cast<double>(count));
}

}  // namespace

LossSurface::Vector rounding_of_gradient(LossSurface& surface, LossSurface::Vector place) {
  constexpr int kPlaces = 3;
  const LossSurface::Vector v = random_numbers(place.size(), "rounding of the gradient");
  LossSurface::Vector out(place.size()), before, now;
  for (int k = 0; k <= kPlaces; ++k, before.swap(now)) {
    for (std::size_t i = 0; i < place.size(); ++i) place[i] *= 1 + 1e-14 * v[i];
    surface.move_to(place);
    surface.loss_and_gradient(now);
    for (std::size_t i = 0; k > 0 && i < place.size(); ++i) out[i] = std::max(out[i], std::fabs(now[i] - before[i]));
  }
  return out;
}

std::vector<GradientError> gradient_errors(LossSurface& surface, const LossSurface::Vector& gradient) {
  const LossSurface::Vector place = surface.parameters();
  const double rounding = rounding_of_loss(surface, place);
  const LossSurface::Vector noise = rounding_of_gradient(surface, place);
  std::vector<GradientError> errors;
  std::size_t begin = 0;
  for (const Named& parameter : surface.model().store().parameters()) {
    const std::size_t count = static_cast<std::size_t>(parameter.tensor.shape().numel());
    const double root = std::sqrt(static_cast<double>(count));
    const double own = root_mean_square(gradient.data() + begin, count) * root;
    LossSurface::Vector v = random_numbers(count, parameter.name);
    double analytic = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (own > 0) v[i] += 4 * gradient[begin + i] / own;  // for an error of length to show, too
      analytic += gradient[begin + i] * v[i];
    }
    const double step = std::max(root_mean_square(place.data() + begin, count), kLeastSize);
    const Slope numeric = slope(surface, place, v, begin, step, rounding, kBound * own, analytic);
    const double uncertainty = numeric.uncertainty + 30 * root_mean_square(noise.data() + begin, count) * root;
    const double error = std::fabs(numeric.value - analytic) / (own + uncertainty / kBound);
    errors.push_back({parameter.name, std::isfinite(numeric.uncertainty) ? error : std::nan("")});
    begin += count;
  }
  surface.move_to(place);
  return errors;
}

CheckItem check_gradients(const CheckInput& input, Mode mode) {
  const Batch batch = corner_of(input.batch);
  LossSurface surface(input.model, batch, mode);
  LossSurface::Vector gradient;
  surface.loss_and_gradient(gradient);
  const std::vector<GradientError> errors = gradient_errors(surface, gradient);
  GradientError worst = errors.front();
  for (const GradientError& each : errors)
    if (std::isnan(each.error) || each.error > worst.error) worst = each;
  CheckItem item{mode == Mode::training ? "gradients, training" : "gradients, evaluation", CheckItem::Status::ok, ""};
  item.detail = text("backward against differences of the loss, ", errors.size(),
                     " tensors, each along a random direction: largest error ", significant(worst.error, 2),
                     " of a tensor's gradient (", worst.tensor, "; up to ", significant(kBound, 2), " is rounding)");
  if (worst.error <= kBound) return item;
  if (std::isnan(worst.error)) {
    const bool is_finite = std::ranges::all_of(gradient, [](double value) { return std::isfinite(value); });
    item.status = is_finite ? CheckItem::Status::warning : CheckItem::Status::failed;
    item.detail = is_finite ? "not to be told: the loss is not finite near these weights, along " + worst.tensor
                            : "the gradient is not finite where the loss is";
    return item;
  }
  const bool by_batch = mode == Mode::training || spec_of(norm_of(input.model.config)).running == Running::none;
  const std::string why = by_batch ? few_values(input.model.config, batch) : "";
  item.status = why.empty() ? CheckItem::Status::failed : CheckItem::Status::warning;
  if (!why.empty()) item.detail = text("not to be told: ", why, ", which differences do not follow. ", item.detail);
  return item;
}

}  // namespace f64
}  // namespace normlab
