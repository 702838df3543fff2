// A trained model and its metrics in the files of other tools.
#pragma once

#include <string>
#include <string_view>

#include "normlab/train/checkpoint.h"

namespace normlab {

// Both write into a directory, which is made where it is missing: UserError, with nothing written, where one of the
// files exists.

// config.json, model.safetensors, tokenizer.json and tokenizer_config.json, as transformers' from_pretrained reads
// them: norm layer, placement pre, position learned and no gate as GPT-2; norm rms, placement pre, position rope,
// swiglu and no biases as Llama. Any other model is a ConfigError that names the keys in the way, before anything is
// written.
void export_hugging_face(const Checkpoint& checkpoint, const std::string& directory);

// model.py, which defines the network and loads the weights, model.safetensors and tokenizer.json. Every configuration.
void export_pytorch(const Checkpoint& checkpoint, const std::string& directory);

// The lines of a metrics.jsonl as CSV (RFC 4180): step,layer,part,measure,value, one number a row (train/tidy.h).
std::string metrics_csv(std::string_view jsonl, const std::string& path);

}  // namespace normlab
