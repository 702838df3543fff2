// The loop. It knows neither files nor terminal: what watches is passed in.
#pragma once

#include <optional>
#include <span>

#include "normlab/data/dataset.h"
#include "normlab/nn/gpt.h"
#include "normlab/optim/optimizer.h"
#include "normlab/train/observer.h"
#include "normlab/train/run_config.h"

namespace normlab {

class Trainer {
 public:
  // All must outlive the trainer. `config` must be resolved.
  Trainer(const RunConfig& config, const Dataset& data, const Gpt& model, Optimizer& optimizer)
      : config_(config),
        data_(data),
        model_(model),
        optimizer_(optimizer),
        windows_(data.spread_windows(config.eval.windows)),
        compares_statistics_(spec_of(norm_of(config.model)).running != Running::none) {}

  // Updates first + 1 .. last (at most train.steps). A step whose loss or gradient norm is not finite ends the run with
  // parameters, optimizer state and buffers as before that step, and a reason that names the first such tensor.
  RunReport run(std::int64_t first, std::int64_t last, std::span<Observer* const> observers);

 private:
  RunReport run_with_team(std::int64_t first, std::int64_t last, std::span<Observer* const> observers);
  // What an update is added up from, one pass each: its micro-batches, or their shards. And how many targets these have
  // together.
  struct Batches {
    std::vector<Batch> parts;
    std::int64_t targets = 0;
  };
  Batches draw(std::int64_t step) const;
  // Forward and backward of one of them, added to the gradients in the store; its share of the mean loss.
  double forward_backward(std::int64_t step, const Batches& batches, std::size_t part, Probe* probe) const;
  std::string first_nonfinite(std::int64_t step, const Batches& batches, std::optional<double> last_grad_norm) const;

  const RunConfig& config_;
  const Dataset& data_;
  const Gpt& model_;
  Optimizer& optimizer_;
  std::vector<Window> windows_;
  bool compares_statistics_;
};

}  // namespace normlab
