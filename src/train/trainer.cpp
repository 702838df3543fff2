// The loop: batch, loss, backward, clip, step, and the notifications.
#include "normlab/train/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "normlab/base/parallel.h"
#include "normlab/train/batch_statistics.h"
#include "normlab/train/evaluate.h"

namespace normlab {
namespace {

using BufferValues = std::vector<std::vector<Real>>;

BufferValues copy_of_buffers(const ParameterStore& store) {
  BufferValues copy;
  for (const Named& buffer : store.buffers())
    copy.emplace_back(buffer.tensor.values().begin(), buffer.tensor.values().end());
  return copy;
}

void restore_buffers(const ParameterStore& store, const BufferValues& copy) {
  for (std::size_t i = 0; i < copy.size(); ++i) std::ranges::copy(copy[i], store.buffers()[i].tensor.values().begin());
}

std::int64_t targets_of(const Batch& batch) {
  return std::ranges::count_if(batch.targets, [](std::int32_t target) { return target != kIgnore; });
}

// Thrown out of a replayed step where the first value that is not finite shows up.
struct NonFiniteFound {
  std::string where;
};

std::string nonfinite_of(In values) {
  const auto bad = std::ranges::count_if(values, [](Real value) { return !std::isfinite(value); });
  return bad == 0 ? "" : text(bad, " of ", values.size(), " values");
}

void stop_at_nonfinite(const Seen& seen, const ParameterStore& store) {
  const std::string bad = nonfinite_of(seen.values);
  if (bad.empty()) return;
  std::string of = "an input";
  for (const Named& parameter : store.parameters())
    if (!seen.forward && parameter.tensor.grad().data() == seen.values.data()) of = parameter.name;
  throw NonFiniteFound{text(seen.forward ? "forward: " : text("backward: gradient of ", of, " of "), "op ", seen.op,
                            " in ", seen.place.empty() ? "the loss" : seen.place, ", tensor ", seen.shape, ", ", bad)};
}

}  // namespace

RunReport Trainer::run(std::int64_t first, std::int64_t last, std::span<Observer* const> observers,
                       bool evaluation_due) {
  RunReport report;
  with_team([&] { report = run_with_team(first, last, observers, evaluation_due); });
  return report;
}

bool Trainer::evaluate_into(RunReport& report, const RunControl& control) const {
  std::optional<EvalReport> made =
      evaluate(model_, data_, windows_, own_rows(config_), [&] { return control.signalled(); });
  if (!made) return false;
  made->step = report.step;
  report.last_eval = std::move(made);
  return true;
}

RunReport Trainer::run_with_team(std::int64_t first, std::int64_t last, std::span<Observer* const> observers,
                                 bool evaluation_due) {
  RunReport report;
  report.step = first;
  RunControl control;
  control.signal = signal_;
  std::optional<double> last_grad_norm;
  const auto finish = [&](Outcome outcome, std::string reason) {
    report.outcome = outcome;
    report.reason = std::move(reason);
    for (Observer* observer : observers) observer->on_run_end(report);
    return report;
  };
  if (evaluation_due) {
    if (evaluate_into(report, control))
      for (Observer* observer : observers) observer->on_late_evaluation(*report.last_eval, control);
    control.heed_signal();
    if (control.stop) return finish(*control.stop, control.reason);
  }
  for (std::int64_t step = first + 1; step <= last; ++step) {
    Probe* probe = nullptr;
    for (Observer* observer : observers)
      if (Probe* wanted = observer->probe(step - 1)) probe = wanted;
    control.heed_signal();  // it may have come in a measurement between the updates, which takes long
    if (control.stop) return finish(*control.stop, control.reason);
    const BufferValues buffers = copy_of_buffers(model_.store());
    const Batches batches = draw(step);
    if (probe && compares_statistics_) {
      const StatisticsReport statistics = compare_statistics(model_, batches.parts[0]);
      for (Observer* observer : observers) observer->on_statistics(step - 1, statistics);
    }
    model_.store().clear_gradients();
    double loss = 0;
    for (std::size_t part = 0; part < batches.parts.size(); ++part) {
      loss += forward_backward(step, batches, part, probe);
      for (Observer* observer : observers)
        observer->on_part(model_.store(), targets_of(batches.parts[part]), batches.targets);
    }
    const double grad_norm = gradient_norm(model_.store());
    const double lr = learning_rate(config_.schedule, config_.optimizer.lr, step, config_.train.steps);
    if (!std::isfinite(loss) || !std::isfinite(grad_norm)) {
      const StepReport failed{step, loss, lr, grad_norm, std::numeric_limits<double>::quiet_NaN(), batches.targets};
      for (Observer* observer : observers) observer->on_nonfinite_step(failed);
      restore_buffers(model_.store(), buffers);
      std::string reason = first_nonfinite(step, batches, last_grad_norm);
      restore_buffers(model_.store(), buffers);
      return finish(Outcome::nonfinite, std::move(reason));
    }
    last_grad_norm = grad_norm;
    for (Observer* observer : observers) observer->on_gradients(step - 1, model_.store());

    const double clip_coef = clip_coefficient(config_.optimizer.grad_clip, grad_norm);
    optimizer_.step(step, lr, clip_coef);
    report.step = step;

    const bool due = step % config_.eval.every == 0 || step == config_.train.steps;
    const bool evaluated = due && evaluate_into(report, control);
    control.evaluation_cut = due && !evaluated;
    const StepReport done{step, loss, lr, grad_norm, clip_coef, batches.targets};
    for (Observer* observer : observers) observer->on_step_end(done, evaluated ? &*report.last_eval : nullptr, control);
    if (control.stop) return finish(*control.stop, control.reason);
  }
  return last == config_.train.steps ? finish(Outcome::trained, "")
                                     : finish(Outcome::interrupted, "as asked by --stop-at");
}

// A shard is what a device would have: its rows go through the model in a pass of their own, so that its batch
// statistics are its own and running ones are updated once for each shard in turn; gradients are added up, as devices
// would add theirs. With norm_sync, devices would exchange the sums behind each norm's mean and variance, and those of
// its backward, within the pass: each would then normalise its rows as one pass over all rows does. So that one pass is
// what is run: the same numbers up to the order of the sums.
Trainer::Batches Trainer::draw(std::int64_t step) const {
  Batches batches;
  const Index rows = config_.statistics_rows();
  for (Index micro = 0; micro < config_.train.grad_accumulation; ++micro) {
    const Batch batch = data_.train_batch(step, micro, config_.train.batch_size);
    batches.targets += targets_of(batch);
    for (Index begin = 0; begin < batch.rows; begin += rows) batches.parts.push_back(rows_of(batch, begin, rows));
  }
  return batches;
}

double Trainer::forward_backward(std::int64_t step, const Batches& batches, std::size_t part, Probe* probe) const {
  const Batch& batch = batches.parts[part];
  Pass pass;
  pass.training = true;
  pass.mask = batch.valid;
  pass.dropout =
      Random(static_cast<std::uint64_t>(config_.seed), "dropout").sub(static_cast<std::uint64_t>(step)).sub(part);
  pass.probe = probe;
  const Tensor loss = model_.loss({batch.rows, batch.time}, batch.tokens, batch.targets, pass,
                                  static_cast<Real>(1.0 / static_cast<double>(batches.targets)));
  backward(loss);
  return static_cast<double>(loss.item());
}

// Replays the step with a look at every op's result.
std::string Trainer::first_nonfinite(std::int64_t step, const Batches& batches,
                                     std::optional<double> last_grad_norm) const {
  const std::string first = text("step ", step, ": the first value that is not finite appeared in the ");
  std::string before;
  const auto add = [&](const char* what, const std::vector<Named>& tensors) {
    if (const Named* bad = find_nonfinite(tensors))
      before += text("; when the step began, ", nonfinite_of(bad->tensor.values()), " of the ", what, " ", bad->name,
                     " were not finite");
  };
  add("parameter", model_.store().parameters());
  add("running average", model_.store().buffers());
  if (last_grad_norm) before += text("; the gradient norm of the step before was ", *last_grad_norm);
  if (step == 1) before += "; no update came before it";
  model_.store().clear_gradients();
  const auto parts = static_cast<std::int64_t>(batches.parts.size()) / config_.train.grad_accumulation;
  for (std::size_t part = 0; part < batches.parts.size(); ++part) try {
      const Watch watch([&](const Seen& seen) { stop_at_nonfinite(seen, model_.store()); });
      forward_backward(step, batches, part, nullptr);
    } catch (const NonFiniteFound& found) {
      std::vector<std::string> starts;
      for (const Index start : batches.parts[part].starts) starts.push_back(number(start));
      const auto i = static_cast<std::int64_t>(part);
      return text(first, found.where, "; the rows of ", parts > 1 ? text("shard ", i % parts, " of ") : "",
                  "micro-batch ", i / parts, " begin at training tokens ", join(starts, " "), before);
    }
  return text(first, "norm of all gradients together", before);
}
}  // namespace normlab
