// What theory expects, the fit over depths, and what a step costs.
#include <algorithm>
#include <cmath>

#include "normlab/lab/inspect/inspect.h"
#include "normlab/optim/optimizer.h"
#include "normlab/run/memory_estimate.h"

namespace normlab {
namespace {

// The stream runs unnormalised from the embedding to a norm before the head.
bool normalised_at_end(const ModelConfig& config) { return slots_of(config).before_head; }

// The slope of the least-squares line through (ln n_layers, ln value).
double exponent(const std::vector<DepthPoint>& points, double DepthPoint::*value) {
  double x = 0, y = 0, xx = 0, xy = 0;
  const double count = static_cast<double>(points.size());
  for (const DepthPoint& point : points) {
    const double ln_depth = std::log(static_cast<double>(point.n_layers)), ln_value = std::log(point.*value);
    x += ln_depth / count;
    y += ln_value / count;
    xx += ln_depth * ln_depth / count;
    xy += ln_depth * ln_value / count;
  }
  return (xy - x * y) / (xx - x * x);
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

DepthPoint point_of(const std::vector<Inspection>& seeds, Index n_layers) {
  DepthPoint point{.n_layers = n_layers};
  const std::string top = text("blocks.", n_layers - 1);
  const double count = static_cast<double>(seeds.size());
  std::vector<double> ratios;
  double squares = 0;
  for (const Inspection& seed : seeds) {
    const double last = seed.grad_norm(top + ".mlp.down.weight"), first = seed.grad_norm("blocks.0.mlp.down.weight");
    point.last += last / count;
    squares += last * last / count;
    point.first += first / count;
    point.attn_last += seed.grad_norm(top + ".attn.out.weight") / count;
    ratios.push_back(first / last);
  }
  // The deviation of the sample; 0 for one seed.
  const double unbiased = count > 1 ? count / (count - 1) : 0;
  point.last_deviation = std::sqrt(unbiased * std::max(0.0, squares - point.last * point.last));
  point.first_over_last = median(ratios);
  return point;
}

}  // namespace

std::vector<double> expected_shape(const ModelConfig& config, const std::vector<double>& stream) {
  std::vector<double> shape;
  shape.reserve(stream.size());
  for (const double rms : stream) shape.push_back(normalised_at_end(config) && rms > 0 ? stream.back() / rms : 1);
  return shape;
}

DepthFit fit_depths(const ModelConfig& config, Index vocab_size, std::uint64_t first_seed, std::int64_t seeds,
                    const std::vector<Index>& depths, const Batch& batch) {
  DepthFit fit;
  for (const Index n_layers : depths) {
    ModelConfig deep = config;
    deep.n_layers = n_layers;
    std::vector<Inspection> inspections;
    for (std::int64_t i = 0; i < seeds; ++i)
      inspections.push_back(inspect_model(Gpt(deep, vocab_size, first_seed + static_cast<std::uint64_t>(i)), batch));
    fit.points.push_back(point_of(inspections, n_layers));
  }
  fit.last = exponent(fit.points, &DepthPoint::last);
  fit.first = exponent(fit.points, &DepthPoint::first);
  fit.attn_last = exponent(fit.points, &DepthPoint::attn_last);
  fit.expected_last = normalised_at_end(config) ? -0.5 : 0;
  return fit;
}

Costs costs_of(const RunConfig& config, const DataFacts& data, const Gpt& model) {
  const ModelConfig& m = config.model;
  Costs costs;
  double products = 0;
  for (const Named& parameter : model.store().parameters()) {
    const double count = static_cast<double>(parameter.tensor.shape().numel());
    costs.parameters += count;
    if (is_decayed(parameter.tensor)) costs.decayed += count;
    const bool looked_up =
        parameter.name == "pos_embed.weight" || (parameter.name == "tok_embed.weight" && !m.tie_embeddings);
    if (parameter.tensor.shape().rank() == 2 && !looked_up) products += count;
  }
  costs.parameter_bytes = costs.gradient_bytes = costs.parameters * sizeof(Real);
  costs.optimizer_bytes = averages_of(config.optimizer) * costs.parameter_bytes;
  costs.peak_bytes = estimate_memory(config, data, model.vocab_size()).total();
  costs.flops_per_token = 6 * products + 12 * static_cast<double>(m.n_layers * m.d_model * m.context_length);
  const double micro_batches = static_cast<double>(config.train.grad_accumulation);
  costs.flops_per_step =
      costs.flops_per_token * micro_batches * static_cast<double>(config.train.batch_size * m.context_length);
  // Forward: sums of x, of (x - mean)^2 (power: of x^2 alone), and the count. Backward: the two sums of dx (power:
  // one).
  for (const Named& buffer : model.store().buffers()) {
    const double count = static_cast<double>(buffer.tensor.shape().numel());
    if (buffer.name.ends_with(".running_mean")) costs.synced_numbers += micro_batches * (4 * count + 1);
    if (buffer.name.ends_with(".running_square")) costs.synced_numbers += micro_batches * (2 * count + 1);
  }
  return costs;
}

}  // namespace normlab
