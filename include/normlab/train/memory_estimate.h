// How much memory a training run will take, told before it does.
#pragma once

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
  double program = 0;      // code, buffers, the text and its tokens

  double total() const { return parameters + optimizer + activations + backward + program; }
};

// `config` must be resolved.
MemoryEstimate estimate_memory(const RunConfig& config, const DataFacts& data, const Gpt& model);

}  // namespace normlab
