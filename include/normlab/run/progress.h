// What the person before a run sees of it: the live line, evaluations and samples.
#pragma once

#include "normlab/base/clock.h"
#include "normlab/data/dataset.h"
#include "normlab/nn/gpt.h"
#include "normlab/run/figures.h"
#include "normlab/run/terminal.h"
#include "normlab/train/observer.h"
#include "normlab/train/run_config.h"

namespace normlab {

// A live line with a bar on a terminal; elsewhere one plain line every `every` steps. Evaluations are lines that stay,
// each followed by a sample, which is also a `sample` line of the metrics.
class Progress : public Observer {
 public:
  Progress(Terminal& terminal, const RunConfig& config, const Dataset& data, const Gpt& model, std::int64_t first,
           LogWriter& metrics);
  ~Progress() override { terminal_.end(); }
  void on_step_end(const StepReport& step, const EvalReport* evaluation, RunControl&) override;
  void on_late_evaluation(const EvalReport& evaluation, RunControl& control) override;

 private:
  Terminal& terminal_;
  const RunConfig& config_;
  const Dataset& data_;
  const Gpt& model_;
  std::int64_t first_;
  LogWriter& metrics_;
  std::int64_t tokens_ = 0;
  Clock::time_point start_ = Clock::now(), shown_{};
};

}  // namespace normlab
