// The loss as a function of the parameters.
#include "normlab/lab/curvature/loss_surface.h"

#include <algorithm>

namespace normlab {
inline namespace NORMLAB_REAL {

void set_weights(const ParameterStore& store, const std::vector<StoredTensor>& from) {
  for (const auto* group : {&store.parameters(), &store.buffers()})
    for (const Named& named : *group)
      for (const StoredTensor& tensor : from)
        if (tensor.name == named.name) std::ranges::copy(tensor.values<Real>(), named.tensor.values().begin());
}

LossSurface::LossSurface(const ModelAt& at, const Batch& batch, Mode mode, std::function<bool()> stop)
    : model_(at.config, at.vocab_size, at.seed), batch_(batch), mode_(mode), stop_(std::move(stop)) {
  set_weights(model_.store(), at.weights);
  size_ = static_cast<std::size_t>(model_.store().parameter_count());
  buffers_.emplace(model_.store());
}

LossSurface::Vector LossSurface::parameters() const {
  Vector all;
  for (const Named& parameter : model_.store().parameters())
    all.insert(all.end(), parameter.tensor.values().begin(), parameter.tensor.values().end());
  return all;
}

void LossSurface::move_to(const Vector& parameters) {
  auto next = parameters.begin();
  for (const Named& parameter : model_.store().parameters())
    for (Real& value : parameter.tensor.values()) value = static_cast<Real>(*next++);
}

double LossSurface::loss() {
  const WithoutGraph without_graph;
  return static_cast<double>(forward().item());
}

double LossSurface::loss_and_gradient(Vector& gradient) {
  if (stop_ && stop_()) throw Stopped();
  model_.store().clear_gradients();
  const Tensor loss = forward();
  backward(loss);
  buffers_->restore();  // PowerNorm's backward writes too
  gradient.assign(size_, 0.0);
  auto to = gradient.begin();
  for (const Named& parameter : model_.store().parameters()) {
    std::ranges::copy(parameter.tensor.grad(), to);
    to += parameter.tensor.shape().numel();
  }
  return static_cast<double>(loss.item());
}

Tensor LossSurface::forward() {
  Pass pass{.training = mode_ == Mode::training};
  Tensor loss = model_.loss(batch_, pass);
  buffers_->restore();
  return loss;
}

}  // namespace NORMLAB_REAL
}  // namespace normlab
