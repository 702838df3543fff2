// How much memory a training run will take, told before it does.
#pragma once

#include <algorithm>

#include "normlab/data/dataset.h"
#include "normlab/nn/gpt.h"
#include "normlab/train/run_config.h"

namespace normlab {

// In bytes, at the peak.
struct MemoryEstimate {
  double parameters = 0;   // with their gradients, and the copies that figures of the run take
  double optimizer = 0;    // moving averages
  double activations = 0;  // what the forward keeps for the backward, of one pass
  double backward = 0;     // gradients of activations, or the logits of a slice and the head's gradient
  double evaluation = 0;   // of a pass without a backward, or of a sample, in place of activations and their gradients
  double tokens = 0;       // of the data, and of an update's batches
  double curvature = 0;    // of log.curvature_every, likewise
  double program = 0;      // code, buffers, and names
  double reading = 0;      // text and what it becomes tokens with, or a checkpoint, before all others but the program

  double total() const {
    const double training = parameters + optimizer + tokens + std::max({activations + backward, evaluation, curvature});
    return program + std::max(training, reading);
  }
};

// `config` must be resolved. `checkpoint_bytes`: of the file that a run goes on from.
MemoryEstimate estimate_memory(const RunConfig& config, const DataFacts& data, const Gpt& model,
                               double checkpoint_bytes = 0);

}  // namespace normlab
