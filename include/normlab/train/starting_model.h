// The model that a run starts with: fresh, or with the weights of another (model.from).
#pragma once

#include <optional>

#include "normlab/data/dataset.h"
#include "normlab/nn/gpt.h"
#include "normlab/train/run_config.h"

namespace normlab {

// Of model.from; nothing where the model is fresh, or model.from a Hugging Face folder without a tokenizer.json.
std::optional<Tokenizer> starting_tokenizer(const RunConfig& config);

// Where model.from has a tokenizer, data.tokenizer becomes it, so that the run's configuration tells the truth.
// ConfigError where it names another; its default names none.
void adopt_starting_tokenizer(RunConfig& config);

// With model.from, a checkpoint of ours or a Hugging Face folder (GPT-2 or Llama), every tensor that both models have
// is taken over; norms may differ in kind, and what only the new ones have is as drawn. The norm `fixed` gets s, the
// mean over tokens of the deviation over channels (without centring, the root mean square) of what enters the norm in
// its place, over 8 training batches. ConfigError where another setting of the model than those of norms and dropout
// differs.
Gpt starting_model(const RunConfig& config, const Dataset& data);

}  // namespace normlab
