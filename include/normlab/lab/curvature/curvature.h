// How curved the loss is where a model stands: sharpness, and how far loss and gradient can be trusted along a step
// (Santurkar et al. 2018). All in double, on one batch, whatever precision trains.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "normlab/formats/json.h"
#include "normlab/lab/curvature/loss_surface.h"
#include "normlab/optim/optimizer_config.h"

namespace normlab {

struct CurvatureAt {
  ModelAt model;
  OptimizerConfig optimizer;
  double lr = 0;                             // of the next update
  std::int64_t updates = 0;                  // done so far
  std::vector<StoredTensor> second_moments;  // optimizer.v.<name>; empty: none (sgd, or no update yet)
};

// An eigenvalue with its error: |H v - value v| / |value|, with H v from half the difference step that found it, so
// that it counts both what Lanczos left and what the differences miss.
struct Eigenvalue {
  double value = 0, error = 0;
  int products = 0;  // Hessian-vector products, each the difference of two gradients
};

// What moving the layers below does to a layer's gradient.
struct CovariateShift {
  std::string layer;  // "blocks.3", "final_norm"
  double change = 0;  // |G - G'|, G' the layer's gradient after the layers below it made their step
  double cosine = 0;  // between the two
};

struct Curvature {
  double loss = 0, gradient_norm = 0, lr = 0;
  Eigenvalue sharpness;                      // the Hessian's largest eigenvalue
  std::optional<Eigenvalue> preconditioned;  // that of P^(-1/2) H P^(-1/2); adamw, from the first update on
  double stable_below =
      0;  // 2 / lr for sgd (on sharpness), (2 + 2 beta1) / ((1 - beta1) lr) for adamw (preconditioned)
  // Over steps of a = 1/2, 1, 2, 4 lr along -gradient; the change is |g(w - a g) - g(w)|, the effective smoothness the
  // largest change divided by |a g|.
  double loss_low = 0, loss_high = 0, change_low = 0, change_high = 0, effective_smoothness = 0;
  std::vector<CovariateShift> shifts;  // every layer that another lies below
};

Json json_of(const Curvature& curvature);
std::string text_of(const Curvature& curvature);

#ifdef NORMLAB_DOUBLE
inline
#endif
    namespace f64 {
// PowerNorm after its warm-up has a gradient that is not the derivative of its loss: its figures are those of the
// gradient's own slope.
Curvature measure_curvature(const CurvatureAt& at, const Batch& batch);
// The same; nothing where `stop` became true on the way.
std::optional<Curvature> measure_curvature(const CurvatureAt& at, const Batch& batch, std::function<bool()> stop);
}

}  // namespace normlab
