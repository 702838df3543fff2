// What watches a run. The trainer tells; an observer reads. Only RunControl lets one act.
#pragma once

#include <csignal>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "normlab/nn/pass.h"
#include "normlab/tensor/parameters.h"

namespace normlab {

// A difference between losses or entropies, in nats per token, that says something.
inline constexpr double kTelling = 0.05;

// How a run ended. stuck: trained to the end, but the best validation loss lies above (H1 + H2) / 2, the mean of the
// unigram and bigram entropies of the validation tokens, and not within kTelling of a known floor; never where H1 and
// H2 are closer than kTelling.
enum class Outcome { trained, nonfinite, diverged, stuck, interrupted };

// Losses in nats per token. The second half: targets at positions T/2 .. T-1 of each window, which have some history.
struct EvalReport {
  std::int64_t step = 0;  // updates done
  double loss = 0, loss_second_half = 0;
  std::int64_t targets = 0;
  std::vector<double> loss_by_position;
};

// Batch and running statistics of a model that has both, on the first part of a step, before its update.
struct StatisticsReport {
  double loss_on_batch = 0, loss_on_running = 0;  // of evaluation: no dropout
  std::vector<std::string> norms;                 // in the order of the forward
  std::vector<StatisticsDistance> distances;      // one a norm
};

struct StepReport {
  std::int64_t step = 0;  // this update, from 1
  double loss = 0;        // before the update
  double lr = 0;
  double grad_norm = 0;  // before clipping
  double clip_coef = 1;
  std::int64_t tokens = 0;  // targets of the step
};

struct RunReport {
  std::int64_t step = 0;  // updates done
  Outcome outcome = Outcome::trained;
  std::string reason;                   // of an early end, or what the losses tell of one that was not early
  bool overfitted = false;              // to the end, with a last validation loss more than kTelling above the best
  std::optional<EvalReport> last_eval;  // of this process
};

// The signals that end a run, its state saved, and the reason that is given: those of a person, those by which a
// terminal or a job scheduler warns, and that of TimeLimit.
struct RunSignal {
  int number;
  const char* reason;
};
inline constexpr RunSignal kRunSignals[] = {
    {SIGINT, "by SIGINT"},   {SIGTERM, "by SIGTERM"}, {SIGHUP, "by SIGHUP"},           {SIGUSR1, "by SIGUSR1"},
    {SIGUSR2, "by SIGUSR2"}, {SIGXCPU, "by SIGXCPU"}, {SIGALRM, "by train.time_limit"}};

// What a signal handler sets to the signal's number; null where nobody watches for signals.
using SignalFlag = const volatile std::sig_atomic_t*;

// Lets an observer end the run after the step at hand; the first to ask gives the outcome.
struct RunControl {
  SignalFlag signal = nullptr;
  std::optional<Outcome> stop;
  std::string reason;
  bool evaluation_cut = false;  // a signal came in the evaluation of this step, or in its sample: it counts as not made

  void request(Outcome outcome, std::string why) {
    if (stop) return;
    stop = outcome;
    reason = std::move(why);
  }
  bool signalled() const { return signal != nullptr && *signal != 0; }
  void heed_signal() {
    for (const RunSignal& each : kRunSignals)
      if (signalled() && *signal == each.number) request(Outcome::interrupted, each.reason);
  }
};

class Observer {
 public:
  virtual ~Observer() = default;
  // Before the forward of the update that follows `step` updates: a probe to look into the model with, or nothing.
  virtual Probe* probe(std::int64_t step) { return (void)step, nullptr; }
  // After the backward of one of the parts (micro-batches) that a step's gradient is added up from; `targets` of the
  // step's `all_targets` were its own.
  virtual void on_part(const ParameterStore& store, std::int64_t targets, std::int64_t all_targets) {
    (void)store, (void)targets, (void)all_targets;
  }
  // Where a probe was wanted and the model has batch statistics; `step` updates have been done.
  virtual void on_statistics(std::int64_t step, const StatisticsReport& report) { (void)step, (void)report; }
  // After the backward, before clipping and update; `step` updates have been done.
  virtual void on_gradients(std::int64_t step, const ParameterStore& store) { (void)step, (void)store; }
  // After the update and, where one was due, the evaluation of its result.
  virtual void on_step_end(const StepReport&, const EvalReport* /*null: none was due*/, RunControl&) {}
  // A step whose loss or gradient norm is not finite, and which is not done.
  virtual void on_nonfinite_step(const StepReport&) {}
  // The evaluation of the step that a resumed run begins at, which a signal had cut.
  virtual void on_late_evaluation(const EvalReport&, RunControl&) {}
  virtual void on_run_end(const RunReport&) {}
};

}  // namespace normlab
