// Writing and removing checkpoints.
#include "normlab/run/checkpointer.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "normlab/base/check.h"

namespace normlab {

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
