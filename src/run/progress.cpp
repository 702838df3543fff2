// Progress of a run on the terminal.
#include "normlab/run/progress.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "normlab/formats/json.h"
#include "normlab/run/figures.h"
#include "normlab/train/sampler.h"

namespace normlab {
namespace {

std::string three_significant(double value) {
  if (!std::isfinite(value)) return number(value);
  const int digits = value == 0 ? 1 : std::clamp(2 - static_cast<int>(std::floor(std::log10(std::fabs(value)))), 0, 8);
  return fixed(value, digits);
}

}  // namespace

Progress::Progress(Terminal& terminal, const RunConfig& config, const Dataset& data, const Gpt& model,
                   std::int64_t first, LogWriter& metrics)
    : terminal_(terminal), config_(config), data_(data), model_(model), first_(first), metrics_(metrics) {}

void Progress::on_step_end(const StepReport& step, const EvalReport* evaluation, RunControl& control) {
  tokens_ += step.tokens;
  const bool line_due = step.step % config_.log.every == 0 || step.step == config_.train.steps;
  // A live line is renewed ten times a second at most.
  if (terminal_.is_live() ? (line_due || seconds_since(shown_) > 0.1) : line_due) {
    shown_ = Clock::now();
    const double elapsed = seconds_since(start_), steps = static_cast<double>(config_.train.steps);
    const double left = elapsed / static_cast<double>(step.step - first_) * (steps - static_cast<double>(step.step));
    const std::string count = text(step.step, '/', config_.train.steps), loss = text("loss ", fixed(step.loss, 4)),
                      lr = text("lr ", three_significant(step.lr)),
                      grad = text("grad ", three_significant(step.grad_norm)),
                      speed = text(fixed(static_cast<double>(tokens_) / elapsed / 1000, 1), "k tokens/s"),
                      rest = text(clock_text(left), " left");
    if (terminal_.is_live())  // all of it fits 80 columns up to 99,999 steps
      terminal_.status({{bar(static_cast<double>(step.step) / steps), 3},
                        {count, 0},
                        {loss, 1},
                        {lr, 4},
                        {grad, 5},
                        {speed, 6},
                        {rest, 2}});
    else
      terminal_.line(text("step ", join(std::array{count, loss, lr, grad, speed, rest}, " ")));
  }
  if (evaluation) on_late_evaluation(*evaluation, control);
}

void Progress::on_late_evaluation(const EvalReport& evaluation, RunControl& control) {
  const auto floor = data_.facts().floor;
  terminal_.line(text("step ", evaluation.step, ": validation loss ", fixed(evaluation.loss, 4),
                      ", over the second half of each window ", fixed(evaluation.loss_second_half, 4),
                      floor ? text(" (floor ", fixed(*floor, 4), ")") : ""));
  if (config_.log.sample_tokens == 0) return;
  const SampleOptions options{.seed = static_cast<std::uint64_t>(config_.seed)};
  const std::optional<std::string> sample =
      sample_text(model_, data_.tokenizer(), config_.log.sample_tokens, options, [&] { return control.signalled(); });
  control.evaluation_cut = !sample;
  if (!sample) return;
  terminal_.line(indented(*sample), kKeptOfSamples);
  metrics_.write(Json::object({{"step", evaluation.step}, {"kind", "sample"}, {"text", *sample}}));
}

}  // namespace normlab
