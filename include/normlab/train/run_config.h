// All settings of a run. Each section lies with what it configures; this only composes them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "normlab/config/loader.h"
#include "normlab/data/data_config.h"
#include "normlab/nn/model_config.h"
#include "normlab/optim/optimizer_config.h"
#include "normlab/optim/schedule.h"

namespace normlab {

struct RunSection : config::Fields {
  FIELD(std::optional<std::string>, dir, std::nullopt, config::any_value,
        "directory of the run; the first free of runs/NAME, runs/NAME-2, ... by default")
};

struct TrainConfig : config::Fields {
  FIELD(std::int64_t, steps, 2000, config::between(1, 1000000000), "updates of the parameters")
  FIELD(std::int64_t, batch_size, 12, config::between(1, 1000000), "rows of a micro-batch")
  FIELD(std::int64_t, grad_accumulation, 1, config::between(1, 1000000),
        "micro-batches of a step; the loss of a step is the mean over all its targets")
  FIELD(std::int64_t, shards, 1, config::between(1, 1000000),
        "equal parts of a micro-batch, as if each were on a device of its own: batch statistics belong to one of them, "
        "unless model.norm_sync; divides batch_size")
  FIELD(std::optional<std::int64_t>, threads, std::nullopt, config::between(1, 1024),
        "threads; by default what the process may use: the least of affinity, cgroup quota, OMP_NUM_THREADS and "
        "OMP_THREAD_LIMIT")
  FIELD(bool, flush_denormals, true, config::any_value, "numbers below 1.2e-38 count as 0, in every thread")
  FIELD(bool, memory_check, true, config::any_value,
        "refuse to begin where the estimate of memory is above the machine's, or its control group's")
  FIELD(bool, stop_on_divergence, true, config::any_value,
        "stop when the training loss was above twice ln V + 2 on 20 steps running")
  FIELD(
      std::optional<double>, time_limit, std::nullopt, (config::Range{.low = 0, .high = 1e7, .low_open = true}),
      "minutes after which the run has ended with a checkpoint and exit code 75, for --resume to go on from; each time "
      "at least one step is done. Points of sweeps have none")
};

enum class EvalStatistics { running, batch, prefix };

struct EvalConfig : config::Fields {
  FIELD(std::int64_t, every, 200, config::at_least(1), "steps between evaluations; the last step always has one")
  FIELD(std::int64_t, windows, 240, config::at_least(1), "windows spread evenly over the validation tokens")
  FIELD(EvalStatistics, statistics, EvalStatistics::running, config::any_value,
        "what batch, batch_step and power evaluate on: running statistics, or the batch's own, of as many rows as one "
        "shard of training has; prefix: each token is predicted on the statistics of those before it in its own row, "
        "as generating without running statistics would")
};

struct LogConfig : config::Fields {
  FIELD(std::int64_t, every, 10, config::at_least(1), "steps between lines on the terminal")
  FIELD(std::int64_t, layers_every, 50, config::at_least(0),
        "steps between per-layer figures, step 0 included; 0 is off")
  FIELD(std::int64_t, curvature_every, 0, config::at_least(0),
        "steps between measurements of sharpness, step 0 included, each of some hundred gradients in double; 0 is off")
  FIELD(std::int64_t, sample_tokens, 100, config::between(0, 1e6), "tokens of the sample printed at each evaluation")
  FIELD(bool, report, true, config::any_value, "report.html in the run's directory, rewritten at each evaluation")
};

struct CheckpointConfig : config::Fields {
  FIELD(std::int64_t, every, 500, config::at_least(1), "steps between checkpoints; the last step is always saved")
  FIELD(std::int64_t, keep, 2, config::at_least(1), "how many of them stay; best.safetensors is kept apart")
};

struct RunConfig : config::Fields {
  FIELD(std::int64_t, seed, 1337, config::at_least(0), "everything random follows from it")
  FIELD(RunSection, run, {}, config::any_value, "where the run is written")
  FIELD(DataConfig, data, {}, config::any_value, "what is trained on")
  FIELD(ModelConfig, model, {}, config::any_value, "the decoder")
  FIELD(OptimizerConfig, optimizer, {}, config::any_value, "the update rule")
  FIELD(ScheduleConfig, schedule, {}, config::any_value, "the learning rate over time")
  FIELD(TrainConfig, train, {}, config::any_value, "the run")
  FIELD(EvalConfig, eval, {}, config::any_value, "validation")
  FIELD(LogConfig, log, {}, config::any_value, "what is logged")
  FIELD(CheckpointConfig, checkpoint, {}, config::any_value, "what is kept")

  // Rows of training that share batch statistics: those of a shard, or, with norm_sync, of all shards.
  std::int64_t statistics_rows() const { return model.norm_sync ? train.batch_size : train.batch_size / train.shards; }
  // Whether the gradient of an update is a sum of several: of micro-batches, or of shards.
  bool in_parts() const { return train.grad_accumulation > 1 || statistics_rows() < train.batch_size; }

  // Fills in the defaults that depend on other keys; refuses what does not fit together (ConfigError).
  void resolve();
};

// The walk over all keys is compiled once, in run_config.cpp.
extern template config::Keys config::keys_of(RunConfig&);

}  // namespace normlab
