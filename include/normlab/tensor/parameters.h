// The parameters of a model by name: optimizer, checkpoint and per-layer figures all walk this list.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/tensor/tensor.h"

namespace normlab {
inline namespace NORMLAB_REAL {

struct Named {
  std::string name;
  Tensor tensor;
};

// The first of them with a value that is NaN or infinite; null when there is none.
const Named* find_nonfinite(const std::vector<Named>& tensors);

// Parameters train by gradient, buffers without one (running averages). Both are in the order of their creation.
class ParameterStore {
 public:
  explicit ParameterStore(std::uint64_t seed) : seed_(seed) {}

  const std::vector<Named>& parameters() const { return parameters_; }
  const std::vector<Named>& buffers() const { return buffers_; }
  std::uint64_t seed() const { return seed_; }

  Tensor add_parameter(const std::string& name, Shape shape);
  Tensor add_buffer(const std::string& name, Shape shape);
  Index parameter_count() const;  // numbers, not tensors
  void clear_gradients() const;

 private:
  std::uint64_t seed_;
  std::vector<Named> parameters_, buffers_;
};

// The values that a store's buffers had when it was made, to be put back after passes that must leave no trace.
class KeptBuffers {
 public:
  explicit KeptBuffers(const ParameterStore& store);
  void restore() const;

 private:
  const ParameterStore& store_;
  std::vector<std::vector<Real>> values_;
};

// What a new parameter holds: N(mean, deviation^2), drawn from a stream keyed by seed and name.
struct Init {
  double mean = 0, deviation = 0;
};

// A place in the tree of names: (root / "blocks.3" / "attn").parameter("weight", ...) is "blocks.3.attn.weight".
class Scope {
 public:
  explicit Scope(ParameterStore& store) : store_(&store) {}

  Scope operator/(std::string_view part) const;
  const std::string& path() const { return path_; }
  Tensor parameter(std::string_view name, Shape shape, Init init) const;
  Tensor buffer(std::string_view name, Shape shape, Real value) const;

 private:
  std::string path_of(std::string_view name) const;

  ParameterStore* store_;
  std::string path_;
};

}  // namespace NORMLAB_REAL
}  // namespace normlab
