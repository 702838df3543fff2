// Progress, divergence, interruption and checkpoints.
#include "normlab/train/observers.h"

#include <sys/time.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <filesystem>

#include "normlab/formats/json.h"
#include "normlab/train/evaluate.h"
#include "normlab/train/tidy.h"

namespace normlab {
namespace {

std::string three_significant(double value) {
  if (!std::isfinite(value)) return number(value);
  const int digits = value == 0 ? 1 : std::clamp(2 - static_cast<int>(std::floor(std::log10(std::fabs(value)))), 0, 8);
  return fixed(value, digits);
}

}  // namespace

Progress::Progress(Terminal& terminal, const RunConfig& config, const Dataset& data, const Gpt& model,
                   std::int64_t first, LineWriter& metrics)
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
  metrics_.line(log_line(Json::object({{"step", evaluation.step}, {"kind", "sample"}, {"text", *sample}})));
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

std::string checkpoint_name(std::int64_t step) {
  const std::string digits = number(step);
  return text("step-", std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0'), digits, ".safetensors");
}

std::optional<std::int64_t> checkpoint_step(std::string_view name) {
  constexpr std::string_view kHead = "step-", kTail = ".safetensors";
  if (!name.starts_with(kHead) || !name.ends_with(kTail) || name.size() == kHead.size() + kTail.size())
    return std::nullopt;
  std::string_view digits = name.substr(kHead.size(), name.size() - kHead.size() - kTail.size());
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size() - 1));
  const auto step = parse_int(digits);
  return step && checkpoint_name(*step) == name ? step : std::nullopt;
}

std::vector<std::int64_t> checkpoint_steps(const std::string& directory) {
  std::vector<std::int64_t> steps;
  if (!file_exists(directory)) return steps;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (const auto step = checkpoint_step(entry.path().filename().string())) steps.push_back(*step);
  std::ranges::sort(steps);
  return steps;
}

Checkpointer::Checkpointer(std::string directory, const CheckpointConfig& config, std::int64_t last,
                           TrainingState& state, std::function<std::string(const std::string&)> save)
    : directory_(std::move(directory)), config_(config), last_(last), state_(state), save_(std::move(save)) {}

void Checkpointer::on_step_end(const StepReport& step, const EvalReport* evaluation, RunControl& control) {
  state_.step = step.step;
  state_.evaluation_due = control.evaluation_cut;
  std::string bad;
  if (evaluation && !control.evaluation_cut) bad = note(*evaluation);
  if (step.step % config_.every == 0 || step.step == last_ || control.stop) bad = save_step(step.step);
  if (!bad.empty())
    control.request(Outcome::nonfinite,
                    text("update ", step.step, " left parameters that are not finite, first in ", bad,
                         " (its gradient norm was ", step.grad_norm, ", its learning rate ", step.lr, ")"));
}

void Checkpointer::on_late_evaluation(const EvalReport& evaluation, RunControl& control) {
  if (control.evaluation_cut) return;  // again, in its sample
  state_.evaluation_due = false;
  note(evaluation);  // of parameters that were loaded, and so are finite
  save_step(evaluation.step);
}

std::string Checkpointer::note(const EvalReport& evaluation) {
  state_.last_loss = evaluation.loss;
  if (!std::isfinite(evaluation.loss) || (state_.best_loss && evaluation.loss >= *state_.best_loss)) return {};
  state_.best_loss = evaluation.loss;
  state_.best_step = evaluation.step;
  return save_(text(directory_, "/best.safetensors"));
}

// The state before a step that was not or could not be done is worth having, if no checkpoint has it yet.
void Checkpointer::on_run_end(const RunReport& report) {
  const bool between_steps =
      report.outcome == Outcome::nonfinite || (report.outcome == Outcome::interrupted && report.step > 0);
  if (between_steps && std::ranges::count(checkpoint_steps(directory_), report.step) == 0) save_step(report.step);
  remove_old();  // a run killed between saving and removing may have left one too many
}

std::string Checkpointer::save_step(std::int64_t step) {
  if (std::string bad = save_(text(directory_, '/', checkpoint_name(step))); !bad.empty()) return bad;
  remove_old();
  return {};
}

void Checkpointer::remove_old() const {
  const std::vector<std::int64_t> steps = checkpoint_steps(directory_);
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(steps.size()) - config_.keep; ++i) {
    const std::string path = text(directory_, '/', checkpoint_name(steps[static_cast<std::size_t>(i)]));
    std::error_code error;
    std::filesystem::remove(path, error);
    check<SystemError>(!error, "cannot remove ", path, ": ", error.message(),
                       "; change the permissions or choose another path");
  }
}

}  // namespace normlab
