// The loop: batch, loss, backward, clip, step, and the notifications.
#include "normlab/train/trainer.h"

#include <algorithm>
#include <cmath>

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

// Thrown out of a replayed step where the first value that is not finite shows up.
struct NonFiniteFound {
  std::string where;
};

void stop_at_nonfinite(const Seen& seen) {
  const auto bad = std::ranges::count_if(seen.values, [](Real value) { return !std::isfinite(value); });
  if (bad > 0)
    throw NonFiniteFound{text(seen.forward ? "forward: " : "backward: gradient of an input of ", "op ", seen.op, " in ",
                              seen.place.empty() ? "the loss" : seen.place, ", tensor ", seen.shape, ", ", bad, " of ",
                              seen.values.size(), " values")};
}

}  // namespace

RunReport Trainer::run(std::int64_t first, std::int64_t last, std::span<Observer* const> observers) {
  RunReport report;
  report.step = first;
  RunControl control;
  double last_grad_norm = 0;
  const auto finish = [&](Outcome outcome, std::string reason) {
    report.outcome = outcome;
    report.reason = std::move(reason);
    for (Observer* observer : observers) observer->on_run_end(report);
    return report;
  };
  for (std::int64_t step = first + 1; step <= last; ++step) {
    Probe* probe = nullptr;
    for (Observer* observer : observers)
      if (Probe* wanted = observer->probe(step - 1)) probe = wanted;
    const BufferValues buffers = copy_of_buffers(model_.store());
    const Loss loss = forward_backward(step, probe);
    const double grad_norm = gradient_norm(model_.store());
    if (!std::isfinite(loss.mean) || !std::isfinite(grad_norm)) {
      restore_buffers(model_.store(), buffers);
      std::string reason = first_nonfinite(step, last_grad_norm);
      restore_buffers(model_.store(), buffers);
      return finish(Outcome::nonfinite, std::move(reason));
    }
    last_grad_norm = grad_norm;
    for (Observer* observer : observers) observer->on_gradients(step - 1, model_.store());

    const double lr = learning_rate(config_.schedule, config_.optimizer.lr, step, config_.train.steps);
    const double clip_coef = clip_coefficient(config_.optimizer.grad_clip, grad_norm);
    optimizer_.step(step, lr, clip_coef);
    report.step = step;

    const bool evaluation_due = step % config_.eval.every == 0 || step == config_.train.steps;
    if (evaluation_due) {
      report.last_eval = evaluate(model_, data_, windows_);
      report.last_eval->step = step;
    }
    const StepReport done{step, loss.mean, lr, grad_norm, clip_coef, loss.targets};
    for (Observer* observer : observers)
      observer->on_step_end(done, evaluation_due ? &*report.last_eval : nullptr, control);
    if (control.stop) return finish(*control.stop, control.reason);
  }
  return last == config_.train.steps ? finish(Outcome::trained, "")
                                     : finish(Outcome::interrupted, text("stopped at step ", last, ", as asked"));
}

Trainer::Loss Trainer::forward_backward(std::int64_t step, Probe* probe) const {
  const std::uint64_t seed = static_cast<std::uint64_t>(config_.seed);
  std::vector<Batch> batches;
  Loss loss{0, 0};
  for (Index micro = 0; micro < config_.train.grad_accumulation; ++micro) {
    batches.push_back(data_.train_batch(step, micro, config_.train.batch_size));
    loss.targets +=
        std::ranges::count_if(batches.back().targets, [](std::int32_t target) { return target != kIgnore; });
  }
  model_.store().clear_gradients();
  for (std::size_t micro = 0; micro < batches.size(); ++micro) {
    const Batch& batch = batches[micro];
    Pass pass{.training = true, .mask = batch.valid};
    pass.dropout = Random(seed, "dropout").sub(static_cast<std::uint64_t>(step)).sub(micro);
    pass.probe = probe;
    const Tensor logits = model_.logits({batch.rows, batch.time}, batch.tokens, pass);
    const Tensor mean =
        ops::cross_entropy(logits, batch.targets, static_cast<Real>(1.0 / static_cast<double>(loss.targets)));
    loss.mean += static_cast<double>(mean.item());
    backward(mean);
  }
  return loss;
}

std::string Trainer::first_nonfinite(std::int64_t step, double last_grad_norm) const {
  std::string where = "the norm of all gradients together";
  try {
    const Watch watch(stop_at_nonfinite);
    forward_backward(step, nullptr);
  } catch (const NonFiniteFound& found) {
    where = found.where;
  }
  return text("step ", step, ": the first value that is not finite appeared in the ", where,
              "; the gradient norm of the step before was ", last_grad_norm,
              "; the rows of the step begin at the training tokens ", row_starts(step));
}

// Those of the first micro-batches, as many as a person reads.
std::string Trainer::row_starts(std::int64_t step) const {
  constexpr std::size_t kMost = 16;
  std::vector<std::string> starts;
  for (Index micro = 0; micro < config_.train.grad_accumulation && starts.size() <= kMost; ++micro)
    for (const Index start : data_.train_batch(step, micro, config_.train.batch_size).starts)
      starts.push_back(number(start));
  const bool all = starts.size() <= kMost;
  if (!all) starts.resize(kMost);
  return join(starts, ", ") + (all ? "" : ", ...");
}

}  // namespace normlab
