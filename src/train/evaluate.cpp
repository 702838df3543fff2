// The loss on validation windows, and by position.
#include "normlab/train/evaluate.h"

#include <algorithm>

#include "normlab/base/parallel.h"

namespace normlab {

EvalReport evaluate(const Gpt& model, const Dataset& data, std::span<const Window> windows) {
  const Index time = model.config().context_length;
  std::vector<double> loss(static_cast<std::size_t>(time), 0.0);
  std::vector<std::int64_t> count(loss.size(), 0);
  const auto add_rows = [&](std::size_t first) {
    const Batch batch =
        data.validation_batch(windows.subspan(first, std::min<std::size_t>(kEvaluationRows, windows.size() - first)));
    const WithoutGraph without_graph;
    Pass pass;
    pass.mask = batch.valid;
    std::vector<Real> row_loss(batch.targets.size());
    model.loss({batch.rows, batch.time}, batch.tokens, batch.targets, pass, 1, row_loss);
    for (std::size_t row = 0; row < row_loss.size(); ++row) {
      if (batch.targets[row] == kIgnore) continue;
      loss[row % loss.size()] += static_cast<double>(row_loss[row]);
      ++count[row % loss.size()];
    }
  };
  with_team([&] {
    for (std::size_t first = 0; first < windows.size(); first += kEvaluationRows) add_rows(first);
  });
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
