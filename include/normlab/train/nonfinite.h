// The search for the first value of a step that is not finite.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "normlab/nn/batch.h"
#include "normlab/tensor/parameters.h"

namespace normlab {

struct FailedStep {
  std::int64_t number;
  std::span<const Batch> parts;  // one pass each
  std::int64_t micro_batches;
  std::optional<double> last_grad_norm;  // of the step before, where it is known
};

// Repeats the step with a look at every op's result: `pass(i)` is forward and backward of part i. Parameters and
// buffers must be as they were when the step began.
std::string first_nonfinite(const FailedStep& step, const ParameterStore& store,
                            const std::function<void(std::size_t)>& pass);

}  // namespace normlab
