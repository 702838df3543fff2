// Tensors of a model to and from files of named tensors.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "normlab/formats/safetensors.h"
#include "normlab/tensor/parameters.h"

namespace normlab {
inline namespace NORMLAB_REAL {

// Views of the tensors' values, to be written; names as they are.
std::vector<StoredTensor> stored_tensors(const std::vector<Named>& tensors);

// Values of "PREFIX" + name into each tensor, rounded to Real. DataError when one is missing or has another shape.
void load_tensors(const std::vector<Named>& tensors, const Safetensors& file, std::string_view prefix = "");

}  // namespace NORMLAB_REAL
}  // namespace normlab
