// How much memory a training run will take, told before it does.
#pragma once

#include <algorithm>

#include "normlab/data/dataset.h"
#include "normlab/host/limits.h"
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

// What a model will hold, known before it is built.
struct ModelSize {
  double numbers = 0, parameters = 0, buffers = 0;  // numbers of all parameters; tensors
};
ModelSize model_size(const ModelConfig& model, Index vocab_size);

// `config` must be resolved. `checkpoint_bytes`: of the file that a run goes on from.
MemoryEstimate estimate_memory(const RunConfig& config, const DataFacts& data, Index vocab_size,
                               double checkpoint_bytes = 0);

// ConfigError where that is above the limit, with both figures and the keys that lower it most; train.memory_check off:
// nothing. Called before the model is built; before the data is there, with a vocabulary of 1, for what is too large
// with any.
void require_memory(const RunConfig& config, const DataFacts& data, Index vocab_size, double checkpoint_bytes = 0,
                    const std::optional<MemoryLimit>& limit = memory_limit());

}  // namespace normlab
