// Batch against running statistics.
#include "normlab/train/batch_statistics.h"

#include <algorithm>

namespace normlab {
namespace {

class DistanceProbe : public Probe {
 public:
  explicit DistanceProbe(StatisticsReport& report) : report_(report) {}
  void see(Site, Index, const Tensor&, Mask) override {}
  void see_statistics(const std::string& norm, StatisticsDistance distance) override {
    report_.norms.push_back(norm);
    report_.distances.push_back(distance);
  }

 private:
  StatisticsReport& report_;
};

double mean_loss(const Gpt& model, const Batch& batch, Pass pass) {
  const auto targets = std::ranges::count_if(batch.targets, [](std::int32_t target) { return target != kIgnore; });
  pass.mask = batch.valid;
  const Tensor logits = model.logits({batch.rows, batch.time}, batch.tokens, pass);
  return static_cast<double>(
      ops::cross_entropy(logits, batch.targets, static_cast<Real>(1.0 / static_cast<double>(targets))).item());
}

}  // namespace

StatisticsReport compare_statistics(const Gpt& model, const Batch& batch) {
  const WithoutGraph without_graph;
  StatisticsReport report;
  DistanceProbe probe(report);
  Pass own;
  own.batch_statistics = true;
  own.probe = &probe;
  report.loss_on_batch = mean_loss(model, batch, own);
  report.loss_on_running = mean_loss(model, batch, {});
  return report;
}

}  // namespace normlab
