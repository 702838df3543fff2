// Tensors of a model to and from files of named tensors.
#include "normlab/nn/weights.h"

#include <algorithm>

namespace normlab {
inline namespace NORMLAB_REAL {

std::vector<StoredTensor> stored_tensors(const std::vector<Named>& tensors) {
  std::vector<StoredTensor> out;
  for (const Named& named : tensors) {
    const Shape& shape = named.tensor.shape();
    out.push_back(stored(named.name, {shape.begin(), shape.end()}, In(named.tensor.values())));
  }
  return out;
}

void load_tensors(const std::vector<Named>& tensors, const Safetensors& file, std::string_view prefix) {
  for (const Named& named : tensors) {
    const StoredTensor& from = file.at(text(prefix, named.name));
    const Shape& shape = named.tensor.shape();
    if (!std::ranges::equal(from.shape, shape)) {
      std::vector<std::string> axes;
      for (const std::int64_t axis : from.shape) axes.push_back(number(axis));
      throw DataError(text(file.path(), ": tensor '", from.name, "' has the shape [", join(axes, ", "),
                           "] where the configuration asks for ", shape,
                           "; the file belongs to another configuration"));
    }
    std::ranges::copy(from.values<Real>(), named.tensor.values().begin());
  }
}

}  // namespace NORMLAB_REAL
}  // namespace normlab
