// A trained model in the files of other tools.
#pragma once

#include <string>

#include "normlab/data/tokenizer/tokenizer.h"
#include "normlab/nn/gpt.h"
#include "normlab/train/run_config.h"

namespace normlab {

struct TrainedModel {
  const RunConfig& config;
  const Tokenizer& tokenizer;
  const Gpt& model;
};

// Both write into a directory, which is made where it is missing: UserError, with nothing written, where one of the
// files exists.

// config.json, model.safetensors, tokenizer.json and tokenizer_config.json, as transformers' from_pretrained reads
// them: norm layer, placement pre, position learned and no gate as GPT-2; norm rms, placement pre, position rope,
// swiglu and no biases as Llama. Any other model is a ConfigError that names the keys in the way, before anything is
// written.
void export_hugging_face(const TrainedModel& trained, const std::string& directory);

// model.py, which defines the network and loads the weights, model.safetensors and tokenizer.json. Every configuration.
void export_pytorch(const TrainedModel& trained, const std::string& directory);

}  // namespace normlab
