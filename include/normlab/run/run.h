// A run on disk: its directory, what is written there, and going on from it.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "normlab/config/loader.h"
#include "normlab/data/dataset.h"
#include "normlab/nn/gpt.h"
#include "normlab/optim/optimizer.h"
#include "normlab/run/checkpoint.h"
#include "normlab/run/figures.h"
#include "normlab/run/terminal.h"
#include "normlab/train/observer.h"
#include "normlab/train/run_config.h"

namespace normlab {

// A run that has been put together, for what watches it from above.
struct RunParts {
  const RunConfig& config;
  const Dataset& data;
  const Gpt& model;
  const Optimizer& optimizer;
  LogWriter& metrics;
  SignalFlag signal;
};

struct RunOptions {
  std::optional<std::int64_t> stop_at;  // end after this many updates, with a checkpoint
  bool force = false;                   // replace an existing run
  std::string program = "normlab";      // what the summary's commands begin with
  // Called when the run begins to write. From then on a signal sets the flag, and the run ends after the step at hand.
  std::function<SignalFlag()> watch_signals = [] { return nullptr; };
  // Called with the run's directory after an evaluation, once its files tell of it, and at the end. What it throws is
  // said, and does not end the run.
  std::function<void(const std::string& directory)> report = {};
  std::function<std::unique_ptr<Observer>(const RunParts&)> watch = {};  // makes one more observer, or nothing
};

struct RunResult {
  RunReport report;
  std::string directory;
  std::string summary;  // for the person: outcome, losses next to entropies and floor, what to try next
};

// What the validation losses tell of a run that was trained to its end, into its report: the state's, since one that
// was resumed there has no evaluation of its own.
void judge(RunReport& report, const TrainingState& state, const DataFacts& data);

// A configuration file with overrides, resolved.
config::Resolved<RunConfig> load_run_config(const std::string& path, const std::vector<std::string>& overrides);

// The resolved configuration in the directory of a run.
RunConfig config_of_run(const std::string& directory);

// Trains from the start. `name` names the directory where run.dir does not.
RunResult start_run(RunConfig config, const std::string& name, const RunOptions& options, Terminal& terminal);

// Goes on from the last checkpoint of a run directory. Only train.steps, train.threads, log.*, eval.* and checkpoint.*
// may change (ConfigError).
RunResult resume_run(const std::string& directory, const std::vector<std::string>& overrides, const RunOptions& options,
                     Terminal& terminal);

}  // namespace normlab
