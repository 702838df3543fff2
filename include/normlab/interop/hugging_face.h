// Where each tensor of ours stands in the layouts of transformers, GPT-2 and Llama; and such a folder read as a model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "normlab/base/shape.h"
#include "normlab/nn/gpt.h"

namespace normlab {

// One tensor of theirs. Its element i (row-major) is element index(i) of ours.
struct Counterpart {
  std::string ours, theirs;
  Shape shape;              // of theirs
  std::int64_t begin = 0;   // theirs begins at this element of ours: rows of a matrix
  bool transposed = false;  // theirs is [in, out], ours [out, in]

  std::size_t index(std::size_t i) const {
    if (!transposed) return static_cast<std::size_t>(begin) + i;
    const auto in = static_cast<std::size_t>(shape[0]), out = static_cast<std::size_t>(shape[1]);
    return i % out * in + i / out;
  }
};

// Every tensor of the layout, also biases that a model of ours may lack: GPT-2 has one in every layer and norm.
std::vector<Counterpart> gpt2_counterparts(const ModelConfig& c, std::int64_t vocab_size);
std::vector<Counterpart> llama_counterparts(const ModelConfig& c, std::int64_t vocab_size);

// A folder with config.json and model.safetensors.
bool is_hugging_face(const std::string& directory);

// The model, with its weights. DataError for what is not GPT-2 or Llama, for what no model of ours does (grouped heads,
// scaled rope, ...), and for tensors that are missing, unknown, of another shape or type, or not finite.
Gpt hugging_face_model(const std::string& directory);

}  // namespace normlab
