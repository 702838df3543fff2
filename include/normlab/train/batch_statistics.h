// Batch against running statistics: how far apart they are, and what that does to the loss.
#pragma once

#include "normlab/data/dataset.h"
#include "normlab/nn/gpt.h"
#include "normlab/train/observer.h"

namespace normlab {

// Two forward passes of evaluation over one batch, on either kind of statistics; nothing is updated. The batch has at
// least one target, and the model norms with running statistics.
StatisticsReport compare_statistics(const Gpt& model, const Batch& batch);

}  // namespace normlab
