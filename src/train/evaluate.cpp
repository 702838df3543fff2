// The loss on validation windows, and by position.
#include "normlab/train/evaluate.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/parallel.h"

namespace normlab {

std::optional<Index> own_rows(const RunConfig& config) {
  if (config.eval.statistics == EvalStatistics::running || spec_of(norm_of(config.model)).running == Running::none)
    return std::nullopt;
  return config.eval.statistics == EvalStatistics::prefix ? kOwnPrefix : config.statistics_rows();
}

std::string young_averages(const RunConfig& config, std::int64_t steps) {
  const NormSpec spec = spec_of(norm_of(config.model));  // power's average is the mean so far, at first
  if (own_rows(config) || config.model.from || spec.running == Running::none || spec.method == Method::power) return {};
  const std::int64_t updates =
      steps * config.train.grad_accumulation * (config.train.batch_size / config.statistics_rows());
  const double m = config.model.norm_momentum, left = std::pow(1 - m, static_cast<double>(updates));
  if (static_cast<double>(updates) * m >= 3) return {};  // 5 % are left
  return text("warning: the running averages of model.norm ", config::to_string(config.model.norm),
              ", which evaluation uses, have had ", updates, updates == 1 ? " update" : " updates", ", fewer than 3 / ",
              m, " (model.norm_momentum): ", fixed(100 * left, 0),
              " % of them is still what they began with; eval.statistics=batch uses the batch's own");
}

namespace {

// The loss of each of the rows' targets, 0 where there is none.
std::vector<Real> losses_of(const Gpt& model, const Batch& batch, bool batch_statistics) {
  const WithoutGraph without_graph;
  Pass pass{.batch_statistics = batch_statistics};
  std::vector<Real> row_loss(batch.targets.size());
  model.loss(batch, pass, 1, row_loss);
  return row_loss;
}

// A pass for each target of one row, over the tokens up to its own; unfinished where `stop` became true.
std::vector<Real> losses_on_prefixes(const Gpt& model, const Batch& row, const std::function<bool()>& stop) {
  std::vector<Real> losses(row.targets.size());
  Batch prefix{1, 0, {}, {}, {}, row.starts};
  for (std::size_t t = 0; t < losses.size() && !stop(); ++t) {
    ++prefix.time;
    prefix.tokens.push_back(row.tokens[t]);
    prefix.targets.assign(t + 1, kIgnore);
    prefix.targets[t] = row.targets[t];
    if (row.targets[t] != kIgnore) losses[t] = losses_of(model, prefix, true)[t];
  }
  return losses;
}

}  // namespace

EvalReport evaluate(const Gpt& model, const Dataset& data, std::span<const Window> windows,
                    std::optional<Index> own_rows) {
  return *evaluate(model, data, windows, own_rows, [] { return false; });
}

std::optional<EvalReport> evaluate(const Gpt& model, const Dataset& data, std::span<const Window> windows,
                                   std::optional<Index> own_rows, const std::function<bool()>& stop) {
  const Index time = model.config().context_length;
  std::vector<double> loss(static_cast<std::size_t>(time), 0.0);
  std::vector<std::int64_t> count(loss.size(), 0);
  const auto add_rows = [&](std::span<const Window> together) {
    const Batch batch = data.validation_batch(together);
    const std::vector<Real> row_loss =
        own_rows == kOwnPrefix ? losses_on_prefixes(model, batch, stop) : losses_of(model, batch, own_rows.has_value());
    for (std::size_t row = 0; row < row_loss.size(); ++row) {
      if (batch.targets[row] == kIgnore) continue;
      loss[row % loss.size()] += static_cast<double>(row_loss[row]);
      ++count[row % loss.size()];
    }
  };
  bool stopped = false;
  with_team([&] {
    for (std::span<const Window> rest = windows; !rest.empty();) {
      stopped = stop();
      if (stopped) return;
      const std::span<const Window> together =
          data.first_batch(rest, own_rows == kOwnPrefix ? 1 : own_rows.value_or(kEvaluationRows));
      add_rows(together);
      rest = rest.subspan(together.size());
    }
    stopped = stop();
  });
  if (stopped) return std::nullopt;
  EvalReport report;
  double sum = 0, sum_second_half = 0;
  std::int64_t second_half = 0;
  for (std::size_t t = 0; t < loss.size(); ++t) {
    sum += loss[t];
    report.targets += count[t];
    if (t >= loss.size() / 2) sum_second_half += loss[t], second_half += count[t];
    if (count[t] > 0) report.loss_by_position.push_back(loss[t] / static_cast<double>(count[t]));
  }
  report.loss = sum / static_cast<double>(report.targets);
  report.loss_second_half = second_half > 0 ? sum_second_half / static_cast<double>(second_half) : report.loss;
  return report;
}

}  // namespace normlab
