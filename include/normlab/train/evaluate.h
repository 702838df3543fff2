// The loss on validation windows.
#pragma once

#include "normlab/data/dataset.h"
#include "normlab/nn/gpt.h"
#include "normlab/train/observer.h"

namespace normlab {

// Rows of one forward pass in evaluation. A row's loss does not depend on its company, so this is only a matter of
// speed.
inline constexpr Index kEvaluationRows = 16;

// Over the given windows of the validation part; sums in double, in the order of the windows.
EvalReport evaluate(const Gpt& model, const Dataset& data, std::span<const Window> windows);

}  // namespace normlab
