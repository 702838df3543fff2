// The model that a run starts with: fresh, or with the weights of another (model.from).
#pragma once

#include <optional>

#include "normlab/data/dataset.h"
#include "normlab/nn/gpt.h"
#include "normlab/train/run_config.h"

namespace normlab {

// What model.from names: a checkpoint of ours, or a Hugging Face folder (GPT-2 or Llama).
struct StartingPoint {
  Gpt model;
  std::optional<Tokenizer> tokenizer;  // of a checkpoint; that of a folder is read from data.tokenizer
};

// Nothing where the model is fresh. Where model.from has a tokenizer, data.tokenizer becomes it, so that the run's
// configuration tells the truth. ConfigError where that names another (its default names none), and where another
// setting of the model than those of norms and dropout differs.
std::optional<StartingPoint> read_starting_point(RunConfig& config);

// A fresh model, with every tensor of `start` that both have; norms may differ in kind, and what only the new ones have
// is as drawn. The norm `fixed` gets s, the mean over tokens of the deviation over channels (without centring, the root
// mean square) of what enters the norm in its place, over 8 training batches. ConfigError for another vocabulary.
Gpt starting_model(const RunConfig& config, const Dataset& data, std::optional<StartingPoint> start);

}  // namespace normlab
