// Lines of curvature in metrics.jsonl.
#include "normlab/lab/curvature/curvature_log.h"

#include <algorithm>

#include "normlab/lab/curvature/curvature.h"
#include "normlab/nn/weights.h"
#include "normlab/run/figures.h"

namespace normlab {
namespace {

class CurvatureLog : public Observer {
 public:
  explicit CurvatureLog(const RunParts& run)
      : run_(run), batch_(run.data.train_batch(1, 0, run.config.train.batch_size)) {}

  // The moment between two updates, when parameters and running averages belong together.
  Probe* probe(std::int64_t step) override {
    if (step % run_.config.log.curvature_every == 0) measure(step);
    return nullptr;
  }

 private:
  void measure(std::int64_t step) {
    const RunConfig& config = run_.config;
    CurvatureAt at;
    at.model = {config.model, run_.model.vocab_size(), static_cast<std::uint64_t>(config.seed),
                stored_tensors(run_.model.store().parameters())};
    std::ranges::move(stored_tensors(run_.model.store().buffers()), std::back_inserter(at.model.weights));
    at.optimizer = config.optimizer;
    at.lr = learning_rate(config.schedule, config.optimizer.lr, step + 1, config.train.steps);
    at.updates = step;
    at.second_moments = stored_tensors(run_.optimizer.state());
    const auto stop = [this] { return run_.signal != nullptr && *run_.signal != 0; };
    const std::optional<Curvature> curvature = f64::measure_curvature(at, batch_, stop);
    if (!curvature) return;  // the run ends before this update, and measures again when it goes on
    const Json figures = json_of(*curvature);
    Json line = Json::object({{"step", step}, {"kind", "curvature"}});
    for (const Json::Member& member : figures.members()) line.set(member.name, member.value);
    run_.metrics.write(line);
  }

  RunParts run_;
  Batch batch_;
};

}  // namespace

std::unique_ptr<Observer> curvature_log(const RunParts& run) {
  if (run.config.log.curvature_every == 0) return nullptr;
  return std::make_unique<CurvatureLog>(run);
}

}  // namespace normlab
