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
  // All must outlive the trainer. `config` must be resolved. A signal ends an evaluation; what it does to the run is up
  // to the observers.
  Trainer(const RunConfig& config, const Dataset& data, const Gpt& model, Optimizer& optimizer,
          SignalFlag signal = nullptr)
      : config_(config),
        data_(data),
        model_(model),
        optimizer_(optimizer),
        signal_(signal),
        windows_(data.spread_windows(config.eval.windows)),
        compares_statistics_(spec_of(norm_of(config.model)).running != Running::none) {}

  // Updates first + 1 .. last (at most train.steps). A step whose loss or gradient norm is not finite ends the run with
  // parameters, optimizer state and buffers as before that step, and a reason that names the first such tensor.
  // `evaluation_due`: the evaluation of step `first` was cut by a signal, and comes now.
  RunReport run(std::int64_t first, std::int64_t last, std::span<Observer* const> observers,
                bool evaluation_due = false);

 private:
  // The loop: updates report.step + 1 .. last.
  void update(std::int64_t last, std::span<Observer* const> observers, RunReport& report, RunControl& control) const;
  // Of the weights after report.step updates, into report.last_eval; false where a signal cut it.
  bool evaluate_into(RunReport& report, const RunControl& control) const;
  // What an update is added up from, one pass each: its micro-batches, or their shards. And how many targets these have
  // together.
  struct Batches {
    std::vector<Batch> parts;
    std::int64_t targets = 0;
  };
  Batches draw(std::int64_t step) const;
  // Forward and backward of one of them, added to the gradients in the store; its share of the mean loss.
  double forward_backward(std::int64_t step, const Batches& batches, std::size_t part, Probe* probe) const;

  const RunConfig& config_;
  const Dataset& data_;
  const Gpt& model_;
  Optimizer& optimizer_;
  SignalFlag signal_;
  std::vector<Window> windows_;
  bool compares_statistics_;
};

}  // namespace normlab
