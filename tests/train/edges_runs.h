// Models of a few numbers and the trainer around them, for the tests of what is smallest, largest and not finite.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "normlab/train/trainer.h"

namespace normlab {

inline RunConfig smallest_config() {
  RunConfig config;
  config.data.source = "copy";
  config.data.size = 2000;
  config.model.n_layers = 1;
  config.model.n_heads = 1;
  config.model.d_model = 4;
  config.model.context_length = 4;
  config.model.norm_warmup_steps = 1;  // power: both of its rules
  config.train.batch_size = 2;
  config.train.steps = 3;
  config.eval.windows = 4;
  config.schedule.warmup_steps = 0;
  return config;
}

// A model, its data and its optimizer, without files or terminal.
struct Trial {
  RunConfig config;
  Dataset data;
  Gpt model;
  Optimizer optimizer;

  explicit Trial(RunConfig wanted)
      : config((wanted.resolve(), wanted)),
        data(Dataset::load(config.data, config.model.context_length, static_cast<std::uint64_t>(config.seed))),
        model(config.model, data.tokenizer().vocab_size(), static_cast<std::uint64_t>(config.seed)),
        optimizer(config.optimizer, model.store()) {}
  Trial(const Trial&) = delete;

  RunReport run(std::int64_t first, std::int64_t last, std::vector<Observer*> observers = {}) {
    return Trainer(config, data, model, optimizer).run(first, last, observers);
  }
};

inline std::vector<float> values_of(const std::vector<Named>& tensors) {
  std::vector<float> values;
  for (const Named& named : tensors)
    values.insert(values.end(), named.tensor.values().begin(), named.tensor.values().end());
  return values;
}

// Keeps the losses of a run.
class Losses : public Observer {
 public:
  void on_step_end(const StepReport& step, const EvalReport*, RunControl&) override { train.push_back(step.loss); }

  std::vector<double> train;
};

}  // namespace normlab
