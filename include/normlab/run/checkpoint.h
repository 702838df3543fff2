// A checkpoint: one safetensors file with everything that resuming, evaluating or sampling needs. Its bytes depend on
// build, configuration and seed alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/data/tokenizer/tokenizer.h"
#include "normlab/nn/gpt.h"
#include "normlab/nn/weights.h"
#include "normlab/optim/optimizer.h"
#include "normlab/train/gradient_noise.h"
#include "normlab/train/run_config.h"

namespace normlab {

// What a run carries from step to step besides the tensors.
struct TrainingState {
  std::int64_t step = 0;             // updates done
  std::optional<double> best_loss;   // lowest validation loss so far
  std::optional<double> last_loss;   // of the newest evaluation
  std::int64_t diverging_steps = 0;  // steps running with a loss above the bound of `diverged`
  bool diverged = false;             // the bound was passed for long enough
  GradientAverages gradient;
  std::int64_t best_step = 0;   // of best_loss; 0 in checkpoints from before it was kept
  bool evaluation_due = false;  // a signal cut the evaluation of this step
  std::string run_id;           // of the run; empty in checkpoints from before runs had one
};

// Keys that another value on resuming leaves the run itself: data.source and data.validation where the text is the
// same.
bool may_change_on_resume(std::string_view path);

// The id of a run, by which a checkpoint of another one is told: a hash of all that two runs may differ by, which is
// build, configuration (but for what may change on resuming), data and the weights of model.from. It is no random name,
// since equal runs write equal bytes; runs of equal ids do, so that exchanging their checkpoints changes nothing.
std::string run_id(const RunConfig& config, const std::string& data_hash, const Gpt& start);

void save_checkpoint(const std::string& path, const RunConfig& config, const Tokenizer& tokenizer,
                     const std::string& data_hash, const TrainingState& state, const Gpt& model,
                     const Optimizer& optimizer);

class Checkpoint {
 public:
  // DataError when the file is not a checkpoint of ours, is damaged, is named for another step, or is not there.
  explicit Checkpoint(const std::string& path);
  explicit Checkpoint(Safetensors file);

  // Resolved. run.*, train.threads, log.* and checkpoint.* are not in the file and have their defaults.
  const RunConfig& config() const { return config_; }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  const std::string& data_hash() const { return file_.metadata_at("data_hash"); }
  const TrainingState& state() const { return state_; }
  const std::string& path() const { return file_.path(); }

  // A model with the file's parameters and buffers; DataError when they are not those of its configuration.
  Gpt model() const;
  void restore(const Optimizer& optimizer) const { load_tensors(optimizer.state(), file_); }

 private:
  Safetensors file_;
  RunConfig config_;
  Tokenizer tokenizer_;
  TrainingState state_;
};

// CHECKPOINT on the command line: a file, or a run directory, which means its last checkpoint.
std::string checkpoint_path(const std::string& given);

// "step-000123.safetensors"
std::string checkpoint_name(std::int64_t step);
// The step of such a name; nothing of any other.
std::optional<std::int64_t> checkpoint_step(std::string_view name);
// The steps that a directory has checkpoints of, in rising order.
std::vector<std::int64_t> checkpoint_steps(const std::string& directory);

}  // namespace normlab
