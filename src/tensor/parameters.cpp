// Names, and initial values: compiled without contraction of multiply-adds, so that they are the same everywhere.
#include "normlab/tensor/parameters.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/rng.h"

namespace normlab {
inline namespace NORMLAB_REAL {

const Named* find_nonfinite(const std::vector<Named>& tensors) {
  // Squares of floats do not overflow a double; in double, no parameter worth keeping is above 1e154.
  const auto found = std::ranges::find_if(
      tensors, [](const Named& named) { return !std::isfinite(kernels::squared_norm(named.tensor.values())); });
  return found == tensors.end() ? nullptr : &*found;
}

Tensor ParameterStore::add_parameter(const std::string& name, Shape shape) {
  parameters_.push_back({name, parameter_tensor(shape)});
  return parameters_.back().tensor;
}
Tensor ParameterStore::add_buffer(const std::string& name, Shape shape) {
  buffers_.push_back({name, Tensor(shape)});
  return buffers_.back().tensor;
}
Index ParameterStore::parameter_count() const {
  Index count = 0;
  for (const Named& parameter : parameters_) count += parameter.tensor.shape().numel();
  return count;
}
void ParameterStore::clear_gradients() const {
  for (const Named& parameter : parameters_) {
    // Its memory is taken here, not in the backward: it stays, and would lie between what passes come and go with.
    parameter.tensor.grad_sink();
    parameter.tensor.clear_grad();
  }
}

KeptBuffers::KeptBuffers(const ParameterStore& store) : store_(store) {
  for (const Named& buffer : store.buffers())
    values_.emplace_back(buffer.tensor.values().begin(), buffer.tensor.values().end());
}
void KeptBuffers::restore() const {
  for (std::size_t i = 0; i < values_.size(); ++i)
    std::ranges::copy(values_[i], store_.buffers()[i].tensor.values().begin());
}

std::string Scope::path_of(std::string_view name) const { return path_.empty() ? text(name) : text(path_, '.', name); }

Scope Scope::operator/(std::string_view part) const {
  Scope scope = *this;
  scope.path_ = path_of(part);
  return scope;
}

Tensor Scope::parameter(std::string_view name, Shape shape, Init init) const {
  const std::string path = path_of(name);
  Tensor tensor = store_->add_parameter(path, shape);
  Random random(store_->seed(), path);
  for (Real& value : tensor.values())
    value = static_cast<Real>(init.deviation == 0 ? init.mean : init.mean + init.deviation * random.normal());
  return tensor;
}

Tensor Scope::buffer(std::string_view name, Shape shape, Real value) const {
  Tensor tensor = store_->add_buffer(path_of(name), shape);
  std::ranges::fill(tensor.values(), value);
  return tensor;
}

}  // namespace NORMLAB_REAL
}  // namespace normlab
