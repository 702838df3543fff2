// What ends a run early, warns of it, or renews its report: divergence, what does not learn, signals, time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "normlab/base/clock.h"
#include "normlab/run/checkpoint.h"
#include "normlab/run/terminal.h"
#include "normlab/train/observer.h"

namespace normlab {

// A model that knows nothing has a loss of ln V; an initialisation that is far above it starts by unlearning.
class InitialLossWatch : public Observer {
 public:
  InitialLossWatch(Terminal& terminal, const RunConfig& config, Index vocab_size)
      : terminal_(terminal), config_(config), vocab_size_(vocab_size) {}
  void on_step_end(const StepReport& step, const EvalReport*, RunControl&) override;

 private:
  Terminal& terminal_;
  const RunConfig& config_;
  Index vocab_size_;
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

}  // namespace normlab
