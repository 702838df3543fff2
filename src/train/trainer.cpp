// The loop: batch, loss, backward, clip, step, and the notifications.
#include "normlab/train/trainer.h"

#include <cmath>
#include <limits>

#include "normlab/base/parallel.h"
#include "normlab/train/batch_statistics.h"
#include "normlab/train/evaluate.h"
#include "normlab/train/nonfinite.h"

namespace normlab {

RunReport Trainer::run(std::int64_t first, std::int64_t last, std::span<Observer* const> observers,
                       bool evaluation_due) {
  RunReport report;
  report.step = first;
  RunControl control;
  control.signal = signal_;
  with_team([&] {
    if (evaluation_due) {
      if (evaluate_into(report, control))
        for (Observer* observer : observers) observer->on_late_evaluation(*report.last_eval, control);
      control.heed_signal();
    }
    update(last, observers, report, control);
  });
  if (last < config_.train.steps) control.request(Outcome::interrupted, "as asked by --stop-at");
  report.outcome = control.stop.value_or(Outcome::trained);
  report.reason = control.reason;
  for (Observer* observer : observers) observer->on_run_end(report);
  return report;
}

void Trainer::update(std::int64_t last, std::span<Observer* const> observers, RunReport& report,
                     RunControl& control) const {
  const ParameterStore& store = model_.store();
  std::optional<double> last_grad_norm;
  for (std::int64_t step = report.step + 1; step <= last && !control.stop; ++step) {
    Probe* probe = nullptr;
    for (Observer* observer : observers)
      if (Probe* wanted = observer->probe(step - 1)) probe = wanted;
    control.heed_signal();  // it may have come in a measurement between the updates, which takes long
    if (control.stop) return;
    const KeptBuffers buffers(store);
    const Batches batches = draw(step);
    if (probe && compares_statistics_) {
      const StatisticsReport statistics = compare_statistics(model_, batches.parts[0]);
      for (Observer* observer : observers) observer->on_statistics(step - 1, statistics);
    }

    store.clear_gradients();
    StepReport done{.step = step, .clip_coef = std::numeric_limits<double>::quiet_NaN(), .tokens = batches.targets};
    for (std::size_t part = 0; part < batches.parts.size(); ++part) {
      done.loss += forward_backward(step, batches, part, probe);
      for (Observer* observer : observers)
        observer->on_part(store, batches.parts[part].target_count(), batches.targets);
    }
    done.grad_norm = gradient_norm(store);
    done.lr = learning_rate(config_.schedule, config_.optimizer.lr, step, config_.train.steps);
    if (!std::isfinite(done.loss) || !std::isfinite(done.grad_norm)) {
      for (Observer* observer : observers) observer->on_nonfinite_step(done);
      buffers.restore();
      const FailedStep failed{step, batches.parts, config_.train.grad_accumulation, last_grad_norm};
      control.request(Outcome::nonfinite, first_nonfinite(failed, store, [&](std::size_t part) {
                        forward_backward(step, batches, part, nullptr);
                      }));
      buffers.restore();
      return;
    }
    last_grad_norm = done.grad_norm;
    for (Observer* observer : observers) observer->on_gradients(step - 1, store);

    done.clip_coef = clip_coefficient(config_.optimizer.grad_clip, done.grad_norm);
    optimizer_.step(step, done.lr, done.clip_coef);
    report.step = step;

    const bool due = step % config_.eval.every == 0 || step == config_.train.steps;
    const bool evaluated = due && evaluate_into(report, control);
    control.evaluation_cut = due && !evaluated;
    for (Observer* observer : observers) observer->on_step_end(done, evaluated ? &*report.last_eval : nullptr, control);
  }
}

bool Trainer::evaluate_into(RunReport& report, const RunControl& control) const {
  std::optional<EvalReport> made =
      evaluate(model_, data_, windows_, own_rows(config_), [&] { return control.signalled(); });
  if (!made) return false;
  made->step = report.step;
  report.last_eval = std::move(made);
  return true;
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
    batches.targets += batch.target_count();
    for (Index begin = 0; begin < batch.rows; begin += rows) batches.parts.push_back(rows_of(batch, begin, rows));
  }
  return batches;
}

double Trainer::forward_backward(std::int64_t step, const Batches& batches, std::size_t part, Probe* probe) const {
  const Random dropout(static_cast<std::uint64_t>(config_.seed), "dropout");
  Pass pass{.training = true, .dropout = dropout.sub(static_cast<std::uint64_t>(step)).sub(part), .probe = probe};
  const Tensor loss = model_.loss(batches.parts[part], pass, batches.targets);
  backward(loss);
  return static_cast<double>(loss.item());
}

}  // namespace normlab
