// The figures of a run for TensorBoard: what metrics.jsonl and timing.jsonl are told, and the configuration as text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "normlab/base/files.h"

namespace normlab {

class TensorBoardLog {
 public:
  // A new file events.out.tfevents.SECONDS.HOST in the run's directory. `first`: updates done before; the directory's
  // other files count up to there.
  TensorBoardLog(const std::string& directory, std::int64_t first, std::string_view config);

  // The figures of a line, as scalars GROUP/NAME: train/loss, timing/tokens_per_s, residual_rms/block.3,
  // grad_norm/blocks.3.attn.qkv.weight. The record reaches the system whole, so that a crash leaves a readable file.
  void add_line(std::string_view line);

 private:
  LineWriter file_;
};

}  // namespace normlab
