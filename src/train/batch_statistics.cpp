// Batch against running statistics.
#include "normlab/train/batch_statistics.h"

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

}  // namespace

StatisticsReport compare_statistics(const Gpt& model, const Batch& batch) {
  const WithoutGraph without_graph;
  StatisticsReport report;
  DistanceProbe probe(report);
  Pass own{.batch_statistics = true, .probe = &probe}, running;
  report.loss_on_batch = static_cast<double>(model.loss(batch, own).item());
  report.loss_on_running = static_cast<double>(model.loss(batch, running).item());
  return report;
}

}  // namespace normlab
