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
  scale_ = Real(1) / static_cast<Real>(std::ranges::count_if(batch.targets, [](auto t) { return t != kIgnore; }));
  for (const Named& buffer : model_.store().buffers())
    buffers_.emplace_back(buffer.tensor.values().begin(), buffer.tensor.values().end());
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
  restore_buffers();  // PowerNorm's backward writes too
  gradient.assign(size_, 0.0);
  auto to = gradient.begin();
  for (const Named& parameter : model_.store().parameters()) {
    std::ranges::copy(parameter.tensor.grad(), to);
    to += parameter.tensor.shape().numel();
  }
  return static_cast<double>(loss.item());
}

Tensor LossSurface::forward() {
  Pass pass;
  pass.training = mode_ == Mode::training;
  pass.mask = batch_.valid;
  const Tensor logits = model_.logits({batch_.rows, batch_.time}, batch_.tokens, pass);
  Tensor loss = ops::cross_entropy(logits, batch_.targets, scale_);
  restore_buffers();
  return loss;
}

void LossSurface::restore_buffers() {
  for (std::size_t i = 0; i < buffers_.size(); ++i)
    std::ranges::copy(buffers_[i], model_.store().buffers()[i].tensor.values().begin());
}

}  // namespace NORMLAB_REAL
}  // namespace normlab
