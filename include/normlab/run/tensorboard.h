// The figures of a run for TensorBoard: what metrics.jsonl and timing.jsonl are told, and the configuration as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "normlab/formats/json.h"
#include "normlab/host/files.h"

namespace normlab {

class TensorBoardLog {
 public:
  // A new file events.out.tfevents.SECONDS.HOST in the run's directory, whose name and times follow those of the files
  // that are there, even where the clock was set back: programs read the files in that order. `first`: updates done
  // before; what the other files have of this step and later ones is taken out.
  TensorBoardLog(const std::string& directory, std::int64_t first, std::string_view config);

  // The figures of a line, as scalars GROUP/NAME: train/loss, timing/tokens_per_s, residual_rms/block.3,
  // grad_norm/blocks.3.attn.qkv.weight. The record reaches the system whole, so that a crash leaves a readable file.
  void add_line(const Json& line);

 private:
  double wall_time();  // never less than the one before

  double latest_ = 0;
  LineWriter file_;
};

}  // namespace normlab
