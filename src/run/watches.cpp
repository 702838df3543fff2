// Divergence, neglect, time and the report.
#include "normlab/run/watches.h"

#include <sys/time.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "normlab/base/text.h"
#include "normlab/train/evaluate.h"

namespace normlab {

void InitialLossWatch::on_step_end(const StepReport& step, const EvalReport*, RunControl&) {
  const double expected = std::log(static_cast<double>(vocab_size_));
  if (step.step != 1 || step.loss <= 1.05 * expected) return;
  terminal_.line(text("warning: the loss before the first update is ", fixed(step.loss, 2), ", ln V is ",
                      fixed(expected, 2), ": the initial logits are not near 0",
                      config_.model.init == Initialisation::xavier ? ", as usual for model.init xavier" : "",
                      config_.model.tie_embeddings ? " (the head is the embedding)" : ""));
}

DivergenceWatch::DivergenceWatch(Index vocab_size, TrainingState& state, bool stops)
    : bound_(2 * std::log(static_cast<double>(vocab_size)) + 2), state_(state), stops_(stops) {}

void DivergenceWatch::on_step_end(const StepReport& step, const EvalReport*, RunControl& control) {
  state_.diverging_steps = step.loss > bound_ ? state_.diverging_steps + 1 : 0;
  if (state_.diverging_steps < kPatience) return;
  state_.diverged = true;
  if (stops_)
    control.request(Outcome::diverged, text("the training loss lay above 2 ln V + 2 = ", fixed(bound_, 2), " on ",
                                            kPatience, " steps running, the last of them step ", step.step));
}

namespace {

// 0: never.
void set_alarm(double seconds) {
  const double whole = std::floor(seconds);
  itimerval timer{};
  timer.it_value.tv_sec = static_cast<decltype(timer.it_value.tv_sec)>(whole);
  timer.it_value.tv_usec = static_cast<decltype(timer.it_value.tv_usec)>((seconds - whole) * 1e6);
  setitimer(ITIMER_REAL, &timer, nullptr);
}

constexpr double kSlowDisk = 50e6;  // bytes a second, until a checkpoint has been written

}  // namespace

TimeLimit::TimeLimit(double minutes, Clock::time_point start, double bytes)
    : seconds_(60 * minutes), start_(start), rest_(bytes / kSlowDisk) {}

TimeLimit::~TimeLimit() { set_alarm(0); }

Probe* TimeLimit::probe(std::int64_t) {
  if (ended_ != Clock::time_point{}) rest_ = std::max(rest_, seconds_since(ended_));
  begun_ = Clock::now();
  return nullptr;
}

void TimeLimit::on_gradients(std::int64_t, const ParameterStore&) {
  step_ = std::max(step_, seconds_since(begun_));
  const double left = seconds_ - seconds_since(start_) - 2 * step_ - rest_;  // twice: the update, and a slower step
  if (left < 1e-6)
    std::raise(SIGALRM);
  else
    set_alarm(left);
}

void NeglectWatch::on_gradients(std::int64_t, const ParameterStore& store) {
  if (steps_ == kSteps) return;
  if (steps_ == 0)
    for (const Named& parameter : store.parameters()) unreached_.push_back(parameter.name);
  parameters_ = store.parameters().size();
  for (const Named& parameter : store.parameters())
    if (std::ranges::any_of(parameter.tensor.grad(), [](Real value) { return value != 0; }))
      std::erase(unreached_, parameter.name);
  if (++steps_ == kSteps) tell();
}

void NeglectWatch::on_step_end(const StepReport&, const EvalReport* evaluation, RunControl& control) {
  if (evaluation) on_late_evaluation(*evaluation, control);
}

void NeglectWatch::on_late_evaluation(const EvalReport& evaluation, RunControl&) {
  if (averages_told_) return;
  const std::string warning = young_averages(config_, evaluation.step);
  averages_told_ = !warning.empty();
  if (averages_told_) terminal_.line(warning);
}

void NeglectWatch::on_run_end(const RunReport&) {
  if (steps_ < kSteps) tell();
}

void NeglectWatch::tell() {
  constexpr std::size_t kNames = 4;
  const std::size_t count = unreached_.size();
  if (count == 0) return;
  unreached_.resize(std::min(count, kNames));
  terminal_.line(text("warning: on none of the ", steps_, steps_ == 1 ? " step" : " steps",
                      " so far did a gradient reach ", count, " of the ", parameters_,
                      " parameter tensors, which do not learn: ", join(unreached_, ", "),
                      count > kNames ? text(" and ", count - kNames, " more") : ""));
}

void ReportRenewal::on_step_end(const StepReport&, const EvalReport* evaluation, RunControl& control) {
  constexpr double kShare = 0.02;  // of the run's time, at most
  if (control.stop) return;        // the end renews it
  if (evaluation && cost_ <= kShare * seconds_since(written_)) renew();
}

void ReportRenewal::renew() {
  const Clock::time_point start = Clock::now();
  try {
    write_();
  } catch (const std::exception& error) {
    if (!failed_) terminal_.line(text("warning: the report could not be written: ", error.what()));
    failed_ = true;
  }
  cost_ = seconds_since(start);
  written_ = Clock::now();
}

}  // namespace normlab
