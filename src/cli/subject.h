// What inspect and check look at: a configuration's fresh model, or a checkpoint's trained one, and its data.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "command.h"
#include "normlab/data/dataset.h"
#include "normlab/lab/curvature/loss_surface.h"
#include "normlab/run/checkpoint.h"

namespace normlab::cli {

struct Subject {
  std::string path;  // as given
  RunConfig config;  // resolved
  Dataset data;
  std::optional<Checkpoint> checkpoint;
  Gpt model;

  std::string description() const;
  std::int64_t updates() const { return checkpoint ? checkpoint->state().step : 0; }
  // The model's settings and, of a checkpoint or with model.from, its tensors, which this subject owns.
  ModelAt at() const;
};

// A directory or a .safetensors file is a checkpoint, anything else a configuration. Of a checkpoint the model and its
// tokenizer cannot be overridden (ConfigError). Sets the threads.
Subject load_subject(const Words& words);

}  // namespace normlab::cli
