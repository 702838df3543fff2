// The whole training step, and sampling.
#include "normlab/base/memory.h"
#include "normlab/base/parallel.h"
#include "normlab/bench/bench_parts.h"
#include "normlab/nn/gpt.h"
#include "normlab/optim/optimizer.h"
#include "normlab/run/metrics.h"
#include "normlab/train/batch_statistics.h"
#include "normlab/train/sampler.h"

namespace normlab {
namespace {

constexpr std::uint64_t kSeed = 1337;

// Rows of random tokens and their successors, drawn again for each step.
struct RandomBatch : Batch {
  explicit RandomBatch(const StepSize& size) : vocab_(static_cast<std::uint64_t>(size.vocab)) {
    rows = size.batch, time = size.context;
    tokens.resize(static_cast<std::size_t>(rows * time));
    targets.resize(tokens.size());
  }

  void draw() {
    const auto token = [&] { return static_cast<std::int32_t>(random_.below(vocab_)); };
    for (std::size_t i = 0; i < tokens.size(); ++i) {
      const bool begins_row = i % static_cast<std::size_t>(time) == 0;
      tokens[i] = begins_row ? token() : targets[i - 1];
      targets[i] = token();
    }
  }

  std::uint64_t vocab_;
  Random random_{kSeed, "bench tokens"};
};

void train_step(
    const Gpt& model, Optimizer& optimizer, const OptimizerConfig& config, RandomBatch& batch, std::int64_t step,
    Probe* probe = nullptr, const std::function<void()>& look = [] {}) {
  batch.draw();
  model.store().clear_gradients();
  Pass pass{.training = true, .probe = probe};
  backward(model.loss(batch, pass));
  const double norm = gradient_norm(model.store());
  look();
  optimizer.step(step, config.lr, clip_coefficient(config.grad_clip, norm));
}

}  // namespace

namespace {

// What the per-layer figures of a run cost at their default interval, as a share of a step of `seconds`: steps with
// them are timed, and their excess is spread over the interval. The figures go nowhere.
double instruments_share(Effort effort, const Gpt& model, Optimizer& optimizer, RandomBatch& batch, double seconds) {
  const LogConfig defaults;
  LogConfig always = defaults;
  always.layers_every = 1;
  GradientAverages averages;
  LogWriter nowhere("/dev/null", LineWriter::Start::append);
  GradientWatch watch(averages, false);
  LayersLog layers(nowhere, always, model.config().n_layers, averages, true);
  RunControl control;
  std::int64_t step = 0;
  const Timing timing = time_runs(effort, [&] {
    StepReport report{.step = ++step, .tokens = static_cast<std::int64_t>(batch.tokens.size())};
    train_step(model, optimizer, {}, batch, step, layers.probe(step),
               [&] { layers.on_gradients(step, model.store()); });
    watch.on_step_end(report, nullptr, control);
    layers.on_step_end(report, nullptr, control);
  });
  return std::max(0.0, timing.median - seconds) / static_cast<double>(defaults.layers_every) / seconds;
}

// With batch statistics a run also compares them with the running ones at each of these steps: what that adds.
double statistics_share(Effort effort, const StepSize& size, const Batch& batch, double seconds) {
  ModelConfig config = size.model();
  config.norm = NormKind::batch;
  const Gpt model(config, size.vocab, kSeed);
  const Timing timing = time_runs(effort, [&] { compare_statistics(model, batch); });
  return timing.median / static_cast<double>(LogConfig().layers_every) / seconds;
}

}  // namespace

ModelConfig StepSize::model() const {
  ModelConfig config;
  config.n_layers = layers;
  config.d_model = d_model;
  config.n_heads = heads;
  config.context_length = context;
  config.activation = MlpActivation::gelu_tanh;
  config.resolve();
  return config;
}

double flops_per_token(const StepSize& size, Index parameters) {
  return 6 * static_cast<double>(parameters - size.context * size.d_model) +
         12 * static_cast<double>(size.layers * size.d_model * size.context);
}

Json measure_step(Effort effort, const Json& peak, std::string_view name, const StepSize& size) {
  const Gpt model(size.model(), size.vocab, kSeed);
  const OptimizerConfig config;
  Optimizer optimizer(config, model.store());
  RandomBatch batch(size);
  std::int64_t step = 0;
  const Timing timing = time_runs(effort, [&] { train_step(model, optimizer, config, batch, ++step); });
  const double tokens = static_cast<double>(batch.tokens.size());
  const double gflops = flops_per_token(size, model.store().parameter_count()) * tokens / timing.median / 1e9;
  Json entry = Json::object({{"name", name}, {"threads", threads()}});
  set_times(entry, timing);
  entry.set("ms_per_step", timing.median * 1e3);
  entry.set("tokens_per_s", tokens / timing.median);
  entry.set("gflops", gflops);
  entry.set("share_of_peak", gflops / peak.at("gflops").real());
  entry.set("peak_rss_mb", peak_resident_mb());
  entry.set("instruments_share", instruments_share(effort, model, optimizer, batch, timing.median));
  entry.set("statistics_share", statistics_share(effort, size, batch, timing.median));
  return entry;
}

Json measure_sample(Effort effort, const Json& peak, const StepSize& size) {
  const Gpt model(size.model(), size.vocab, kSeed);
  const std::int32_t prompt[] = {0};
  const std::int64_t tokens = size.context;
  const Timing timing = time_runs(effort, [&] {
    Sampler sampler(model, prompt, {});
    for (std::int64_t i = 0; i < tokens; ++i) sampler.next();
  });
  const double bytes = static_cast<double>(model.store().parameter_count()) * sizeof(Real);
  Json entry = Json::object({{"name", "sample"}, {"threads", threads()}});
  set_times(entry, timing);
  entry.set("tokens_per_s", static_cast<double>(tokens) / timing.median);
  entry.set("parameter_mb", bytes / (1 << 20));
  entry.set("tokens_per_s_by_memory", peak.at("memory_read_gb_per_s").real() * 1e9 / bytes);
  return entry;
}

}  // namespace normlab
