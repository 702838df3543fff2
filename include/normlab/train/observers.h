// What watches a run on behalf of the person before it: progress, samples, divergence, interruption, checkpoints.
#pragma once

#include <functional>
#include <string>

#include "normlab/base/clock.h"
#include "normlab/base/files.h"
#include "normlab/data/dataset.h"
#include "normlab/train/checkpoint.h"
#include "normlab/train/observer.h"
#include "normlab/train/sampler.h"
#include "normlab/train/terminal.h"

namespace normlab {

// A live line with a bar on a terminal; elsewhere one plain line every `every` steps. Evaluations are lines that stay,
// each followed by a sample, which is also a `sample` line of the metrics.
class Progress : public Observer {
 public:
  Progress(Terminal& terminal, const RunConfig& config, const Dataset& data, const Gpt& model, std::int64_t first,
           LineWriter& metrics);
  ~Progress() override { terminal_.end(); }
  void on_step_end(const StepReport& step, const EvalReport* evaluation, RunControl&) override;
  void on_late_evaluation(const EvalReport& evaluation, RunControl& control) override;

 private:
  Terminal& terminal_;
  const RunConfig& config_;
  const Dataset& data_;
  const Gpt& model_;
  std::int64_t first_;
  LineWriter& metrics_;
  std::int64_t tokens_ = 0;
  Clock::time_point start_ = Clock::now(), shown_{};
};

// `diverged`: the training loss lay above 2 ln V + 2 on kPatience steps running.
class DivergenceWatch : public Observer {
 public:
  static constexpr std::int64_t kPatience = 20;
  DivergenceWatch(Index vocab_size, TrainingState& state, bool stops);
  void on_step_end(const StepReport& step, const EvalReport*, RunControl& control) override;

 private:
  double bound_;
  TrainingState& state_;
  bool stops_;
};

// Says once that an evaluation used running averages which have hardly moved, and once which parameters no gradient has
// reached on the first kSteps steps it saw, or on all of a shorter run.
class NeglectWatch : public Observer {
 public:
  static constexpr std::int64_t kSteps = 20;
  NeglectWatch(Terminal& terminal, const RunConfig& config) : terminal_(terminal), config_(config) {}
  void on_gradients(std::int64_t step, const ParameterStore& store) override;
  void on_step_end(const StepReport&, const EvalReport* evaluation, RunControl& control) override;
  void on_late_evaluation(const EvalReport& evaluation, RunControl&) override;
  void on_run_end(const RunReport&) override;

 private:
  void tell();  // what no gradient has reached

  Terminal& terminal_;
  const RunConfig& config_;
  std::int64_t steps_ = 0;
  std::size_t parameters_ = 0;
  std::vector<std::string> unreached_;
  bool averages_told_ = false;
};

// Asks to stop once a signal has come.
class InterruptWatch : public Observer {
 public:
  void on_step_end(const StepReport&, const EvalReport*, RunControl& control) override { control.heed_signal(); }
};

// Sends SIGALRM to the process when what is left of train.time_limit is what finishing the step at hand, saving and the
// report may take, by the longest so far. What can be cut, evaluations among it, then is. The first update is done
// first, so that a run that is started again and again comes to its end. `start`: of the time; `bytes`: of a
// checkpoint.
class TimeLimit : public Observer {
 public:
  TimeLimit(double minutes, Clock::time_point start, double bytes);
  ~TimeLimit() override;
  TimeLimit(const TimeLimit&) = delete;
  TimeLimit& operator=(const TimeLimit&) = delete;
  Probe* probe(std::int64_t step) override;
  void on_gradients(std::int64_t step, const ParameterStore& store) override;
  void on_step_end(const StepReport&, const EvalReport*, RunControl&) override { ended_ = Clock::now(); }

 private:
  double seconds_;
  Clock::time_point start_, begun_{}, ended_{};
  double step_ = 0, rest_;  // seconds from the start of a step to its gradients; from one step to the next
};

// Writes DIR/step-NNNNNN.safetensors every `checkpoint.every` steps, after step `last` and when the run stops, keeps
// the newest `checkpoint.keep` of them, and DIR/best.safetensors for the lowest validation loss. Comes last among the
// observers, since it saves what the others have noted in `state`. An evaluation that a signal has cut is noted as due.
class Checkpointer : public Observer {
 public:
  // save(path) writes the checkpoint of this moment, or returns the name of a tensor that is not finite, without having
  // written: then the run ends as `nonfinite`, and the last good checkpoint stays.
  Checkpointer(std::string directory, const CheckpointConfig& config, std::int64_t last, TrainingState& state,
               std::function<std::string(const std::string&)> save);
  void on_step_end(const StepReport& step, const EvalReport* evaluation, RunControl& control) override;
  void on_late_evaluation(const EvalReport& evaluation, RunControl& control) override;
  void on_run_end(const RunReport& report) override;

 private:
  std::string note(const EvalReport& evaluation);  // and saves it if it is the best
  std::string save_step(std::int64_t step);
  void remove_old() const;  // all but the newest `keep`

  std::string directory_;
  CheckpointConfig config_;
  std::int64_t last_;
  TrainingState& state_;
  std::function<std::string(const std::string&)> save_;
};

// Renews the report of a run after evaluations, but for those that come so fast that it would take a share of the run's
// time. A report that cannot be written is said once, and ends nothing.
class ReportRenewal : public Observer {
 public:
  ReportRenewal(Terminal& terminal, std::function<void()> write) : terminal_(terminal), write_(std::move(write)) {}
  void on_step_end(const StepReport&, const EvalReport* evaluation, RunControl&) override;
  void on_late_evaluation(const EvalReport&, RunControl&) override { renew(); }
  void renew();

 private:
  Terminal& terminal_;
  std::function<void()> write_;
  double cost_ = 0;  // seconds of the last one
  bool failed_ = false;
  Clock::time_point written_{};
};

// "step-000123.safetensors"
std::string checkpoint_name(std::int64_t step);
// The step of such a name; nothing of any other.
std::optional<std::int64_t> checkpoint_step(std::string_view name);
// The steps that a directory has checkpoints of, in rising order.
std::vector<std::int64_t> checkpoint_steps(const std::string& directory);

}  // namespace normlab
