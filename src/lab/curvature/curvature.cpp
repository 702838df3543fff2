// Sharpness and Santurkar's measures. Compiled in double alone.
#include "normlab/lab/curvature/curvature.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "normlab/lab/curvature/lanczos.h"

namespace normlab {
inline namespace f64 {
namespace {

using Vector = LossSurface::Vector;

double dot(const Vector& a, const Vector& b) { return std::inner_product(a.begin(), a.end(), b.begin(), 0.0); }
double length(const Vector& a) { return std::sqrt(dot(a, a)); }

Vector moved(const Vector& from, double factor, const Vector& direction) {
  Vector to = from;
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * direction[i];
  return to;
}

Vector gradient_at(LossSurface& surface, const Vector& place) {
  Vector gradient;
  surface.move_to(place);
  surface.loss_and_gradient(gradient);
  return gradient;
}

// The difference step along a direction of length 1: the cube root of a double's rounding, 1e-5, balances what rounding
// adds (1e-16 |g| / h) and what the third derivative does (h^2 / 6).
constexpr double kStep = 1e-5;

// H v = (g(w + h v) - g(w - h v)) / 2 h
Vector hessian_times(LossSurface& surface, const Vector& place, const Vector& v, double step) {
  const double size = length(v);
  if (size == 0) return v;
  const double h = step / size;
  Vector above = gradient_at(surface, moved(place, h, v));
  const Vector below = gradient_at(surface, moved(place, -h, v));
  for (std::size_t i = 0; i < above.size(); ++i) above[i] = (above[i] - below[i]) / (2 * h);
  return above;
}

// Of D H D with D the diagonal `scale`; an empty one is 1.
Eigenvalue sharpness_of(LossSurface& surface, const Vector& place, const Vector& scale) {
  const auto scaled = [&](Vector x) {
    for (std::size_t i = 0; i < scale.size(); ++i) x[i] *= scale[i];
    return x;
  };
  const auto product = [&](double step) {
    return [&, step](const Vector& v) { return scaled(hessian_times(surface, place, scaled(v), step)); };
  };
  const TopEigenvalue top = largest_eigenvalue(place.size(), product(kStep));
  const Vector rest = moved(product(kStep / 2)(top.vector), -top.value, top.vector);
  return {top.value, length(rest) / std::fabs(top.value), top.products};
}

// P^(-1/2) with P = (1 - beta1^t) (sqrt(v_hat) + eps), as Cohen et al. 2022 have it.
Vector adam_scale(const CurvatureAt& at, const LossSurface& surface) {
  const double t = static_cast<double>(at.updates);
  const double correction1 = 1 - std::pow(at.optimizer.betas[0], t),
               correction2 = 1 - std::pow(at.optimizer.betas[1], t);
  Vector scale;
  for (const Named& parameter : surface.model().store().parameters()) {
    const auto found = std::ranges::find(at.second_moments, "optimizer.v." + parameter.name, &StoredTensor::name);
    check(found != at.second_moments.end(), "curvature: there is no second moment of ", parameter.name);
    for (const double v : found->values<double>())
      scale.push_back(1 / std::sqrt(correction1 * (std::sqrt(v / correction2) + at.optimizer.eps)));
  }
  return scale;
}

void walk(LossSurface& surface, const Vector& place, const Vector& gradient, Curvature& out) {
  out.loss_low = out.change_low = HUGE_VAL;
  for (const double factor : {0.5, 1.0, 2.0, 4.0}) {
    const double a = factor * out.lr;
    Vector there;
    surface.move_to(moved(place, -a, gradient));
    const double loss = surface.loss_and_gradient(there);
    const double change = length(moved(there, -1, gradient));
    out.loss_low = std::min(out.loss_low, loss);
    out.loss_high = std::max(out.loss_high, loss);
    out.change_low = std::min(out.change_low, change);
    out.change_high = std::max(out.change_high, change);
    out.effective_smoothness = std::max(out.effective_smoothness, change / (a * out.gradient_norm));
  }
}

struct Layer {
  std::string name;
  std::size_t begin, end;  // in the long vector
};

// blocks.3.attn.qkv.weight -> blocks.3, tok_embed.weight and pos_embed.weight -> embedding
std::string layer_name(const std::string& parameter) {
  if (parameter.starts_with("tok_embed.") || parameter.starts_with("pos_embed.")) return "embedding";
  const std::size_t dot = parameter.find('.');
  return parameter.starts_with("blocks.") ? parameter.substr(0, parameter.find('.', dot + 1))
                                          : parameter.substr(0, dot);
}

std::vector<Layer> layers_of(const ParameterStore& store) {
  std::vector<Layer> layers;
  std::size_t next = 0;
  for (const Named& parameter : store.parameters()) {
    const std::string name = layer_name(parameter.name);
    if (layers.empty() || layers.back().name != name) layers.push_back({name, next, next});
    layers.back().end = next += static_cast<std::size_t>(parameter.tensor.shape().numel());
  }
  return layers;
}

// Santurkar et al. 2018, definition 2.1, with a plain gradient step of size lr.
std::vector<CovariateShift> shifts_of(LossSurface& surface, const Vector& place, const Vector& gradient, double lr) {
  std::vector<CovariateShift> shifts;
  for (const Layer& layer : layers_of(surface.model().store())) {
    if (layer.begin == 0) continue;
    Vector below = place;
    for (std::size_t i = 0; i < layer.begin; ++i) below[i] -= lr * gradient[i];
    const Vector there = gradient_at(surface, below);
    const auto part = [&](const Vector& all) {
      return Vector(all.begin() + static_cast<std::ptrdiff_t>(layer.begin),
                    all.begin() + static_cast<std::ptrdiff_t>(layer.end));
    };
    const Vector before = part(gradient), after = part(there);
    const double sizes = length(before) * length(after);
    shifts.push_back({layer.name, length(moved(after, -1, before)), sizes > 0 ? dot(before, after) / sizes : 0});
  }
  return shifts;
}

}  // namespace

namespace {

Curvature measured_on(LossSurface& surface, const CurvatureAt& at) {
  const Vector place = surface.parameters();
  Vector gradient;
  Curvature out;
  out.lr = at.lr;
  out.loss = surface.loss_and_gradient(gradient);
  out.gradient_norm = length(gradient);
  out.sharpness = sharpness_of(surface, place, {});
  const bool adam = at.optimizer.name == OptimizerKind::adamw;
  if (adam && at.updates > 0 && !at.second_moments.empty())
    out.preconditioned = sharpness_of(surface, place, adam_scale(at, surface));
  const double beta1 = at.optimizer.betas[0];
  out.stable_below = adam ? (2 + 2 * beta1) / ((1 - beta1) * at.lr) : 2 / at.lr;
  walk(surface, place, gradient, out);
  out.shifts = shifts_of(surface, place, gradient, at.lr);
  return out;
}

}  // namespace

Curvature measure_curvature(const CurvatureAt& at, const Batch& batch) {
  LossSurface surface(at.model, batch);
  return measured_on(surface, at);
}

std::optional<Curvature> measure_curvature(const CurvatureAt& at, const Batch& batch, std::function<bool()> stop) {
  LossSurface surface(at.model, batch, Mode::training, std::move(stop));
  try {
    return measured_on(surface, at);
  } catch (const Stopped&) {
    return std::nullopt;
  }
}

}  // namespace f64
}  // namespace normlab

namespace normlab {
namespace {

Json json_of(const Eigenvalue& eigenvalue) {
  return Json::object(
      {{"value", eigenvalue.value}, {"error", eigenvalue.error}, {"products", std::int64_t{eigenvalue.products}}});
}

}  // namespace

Json json_of(const Curvature& c) {
  Json shifts = Json::array();
  for (const CovariateShift& shift : c.shifts)
    shifts.push(Json::object({{"layer", shift.layer}, {"change", shift.change}, {"cosine", shift.cosine}}));
  return Json::object({{"loss", c.loss},
                       {"grad_norm", c.gradient_norm},
                       {"lr", c.lr},
                       {"sharpness", json_of(c.sharpness)},
                       {"preconditioned", c.preconditioned ? json_of(*c.preconditioned) : Json()},
                       {"stable_below", c.stable_below},
                       {"loss_range", Json::array({c.loss_low, c.loss_high})},
                       {"gradient_change_range", Json::array({c.change_low, c.change_high})},
                       {"effective_smoothness", c.effective_smoothness},
                       {"covariate_shift", std::move(shifts)}});
}

std::string text_of(const Curvature& c) {
  const auto shown = [](const Eigenvalue& e) {
    return text(significant(e.value, 3), " (error ", significant(100 * e.error, 3), "%, ", e.products, " products)");
  };
  std::string out = text("curvature (one batch, double precision; the next update's lr is ", significant(c.lr, 3),
                         ")\n  sharpness, the Hessian's largest eigenvalue   ", shown(c.sharpness), '\n');
  if (c.preconditioned) out += text("  preconditioned by Adam's second moment        ", shown(*c.preconditioned), '\n');
  out += text("  training is stable where the ", c.preconditioned ? "latter" : "former", " is below      ",
              significant(c.stable_below, 3), "\n  along -gradient, 1/2 to 4 lr: loss ", significant(c.loss_low, 5),
              " to ", significant(c.loss_high, 5), " (now ", significant(c.loss, 5), "), gradient moves by ",
              significant(c.change_low, 3), " to ", significant(c.change_high, 3), " (its norm is ",
              significant(c.gradient_norm, 3), "),\n  effective smoothness ", significant(c.effective_smoothness, 3),
              "\n  how the layers below move a layer's gradient (cosine of before and after):");
  for (const CovariateShift& shift : c.shifts) out += text(' ', shift.layer, ' ', fixed(shift.cosine, 4));
  return out + "\n";
}

}  // namespace normlab
