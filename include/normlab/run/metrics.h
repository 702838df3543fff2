// metrics.jsonl and timing.jsonl: one JSON object a line. metrics.jsonl holds no clock, so equal runs have equal bytes.
#pragma once

#include <optional>
#include <string>

#include "normlab/base/clock.h"
#include "normlab/run/figures.h"
#include "normlab/train/block_probe.h"
#include "normlab/train/gradient_noise.h"
#include "normlab/train/observer.h"
#include "normlab/train/run_config.h"

namespace normlab {

// `train` lines, one a step, the one that was not finite among them, and `eval` lines.
class MetricsLog : public Observer {
 public:
  // bits per byte = loss / (ln 2 bytes_per_token)
  MetricsLog(LogWriter& lines, double bytes_per_token, std::optional<double> floor)
      : lines_(lines), bytes_per_token_(bytes_per_token), floor_(floor) {}
  void on_step_end(const StepReport& step, const EvalReport* evaluation, RunControl&) override;
  void on_nonfinite_step(const StepReport& step) override;
  void on_late_evaluation(const EvalReport& evaluation, RunControl&) override;

 private:
  LogWriter& lines_;
  double bytes_per_token_;
  std::optional<double> floor_;
};

// `layers` lines at step 0 and every `log.layers_every` steps: per parameter the norms of its gradient, of itself and
// of the update that follows; per block the norm of the gradient of all its parameters, that of their update over their
// own, and what BlockProbe sees; the share of clipped steps so far, with decay 0.99, null where nothing is clipped; and
// the gradient noise scale, null where it is not defined. With batch statistics also, by norm, their distance from the
// running ones, and the loss of one batch on either.
class LayersLog : public Observer {
 public:
  LayersLog(LogWriter& lines, const LogConfig& config, Index blocks, const GradientAverages& averages, bool clips);
  Probe* probe(std::int64_t step) override;
  void on_part(const ParameterStore&, std::int64_t, std::int64_t) override { probe_.end_part(); }
  void on_statistics(std::int64_t, const StatisticsReport& report) override { statistics_ = report; }
  void on_gradients(std::int64_t step, const ParameterStore& store) override;
  void on_step_end(const StepReport& step, const EvalReport*, RunControl&) override;

 private:
  bool is_due(std::int64_t step) const { return step % every_ == 0; }

  LogWriter& lines_;
  std::int64_t every_;
  BlockProbe probe_;
  const GradientAverages& averages_;
  bool clips_;
  std::optional<StatisticsReport> statistics_;
  bool waiting_ = false;  // for the update
  std::int64_t step_ = 0;
  const ParameterStore* store_ = nullptr;
  std::vector<std::vector<Real>> before_;  // the parameters before the update
};

// The clock's side: seconds since the start, tokens/s and resident memory, every `every` steps.
class TimingLog : public Observer {
 public:
  TimingLog(LogWriter& lines, std::int64_t every) : lines_(lines), every_(every) {}
  void on_step_end(const StepReport& step, const EvalReport*, RunControl&) override;

 private:
  LogWriter& lines_;
  std::int64_t every_;
  std::int64_t tokens_ = 0;
  Clock::time_point start_ = Clock::now(), last_ = start_;
};

// The lines at the start of a log that a run resumed from `step` keeps: what an unbroken run had written by then.
// `layers` and `curvature` lines of the step itself are written by the update that follows, so they go; so do `eval`
// and `sample` lines of the step where its evaluation is due again. DataError, with path and line, for a line that is
// no line of such a log, and for steps of one kind that do not rise.
struct KeptLines {
  std::int64_t bytes = 0;
  std::int64_t train_steps = 0;  // how many `train` lines are among them
};
KeptLines kept_lines(std::string_view jsonl, std::int64_t step, const std::string& path, bool evaluation_due = false);

}  // namespace normlab
