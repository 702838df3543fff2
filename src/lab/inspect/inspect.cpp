// Measuring a model on one batch.
#include "normlab/lab/inspect/inspect.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/parallel.h"

namespace normlab {
namespace {

// Sums of values and of their squares.
struct Moments {
  double count = 0, sum = 0, squares = 0;
  void add(double value) {
    count += 1;
    sum += value;
    squares += value * value;
  }
  double mean() const { return count > 0 ? sum / count : 0; }
  double deviation() const { return count > 0 ? std::sqrt(std::max(0.0, squares / count - mean() * mean())) : 0; }
  double root_mean_square() const { return count > 0 ? std::sqrt(squares / count) : 0; }
};

struct Entropy {
  double sum = 0, share = 0, queries = 0;
};

// Of the attention of one head of one sample, q k v in `rows` [T, 3 C].
Entropy head_entropy(In rows, Mask mask, std::size_t time, std::size_t channels, std::size_t head, std::size_t size) {
  Entropy entropy;
  std::vector<double> weights(time);
  for (std::size_t t = 1; t < time; ++t) {
    if (!mask.empty() && !mask[t]) continue;
    const Real* query = &rows[t * 3 * channels + head * size];
    double largest = -HUGE_VAL;
    for (std::size_t s = 0; s <= t; ++s) {
      const Real* key = &rows[s * 3 * channels + channels + head * size];
      double score = 0;
      for (std::size_t c = 0; c < size; ++c) score += static_cast<double>(query[c]) * static_cast<double>(key[c]);
      weights[s] = score / std::sqrt(static_cast<double>(size));
      largest = std::max(largest, weights[s]);
    }
    // With p = e^w / Z, -sum p ln p = ln Z - sum p w.
    double total = 0, weighted = 0;
    for (std::size_t s = 0; s <= t; ++s) {
      const double e = std::exp(weights[s] - largest);
      total += e;
      weighted += e * (weights[s] - largest);
    }
    const double nats = std::log(total) - weighted / total;
    entropy.sum += nats;
    entropy.share += nats / std::log(static_cast<double>(t + 1));
    entropy.queries += 1;
  }
  return entropy;
}

class InspectProbe : public BlockProbe {
 public:
  explicit InspectProbe(const ModelConfig& config)
      : BlockProbe(config.n_layers), config_(config), entropies_(static_cast<std::size_t>(config.n_layers)) {}

  void see_qkv(Index block, const Tensor& qkv, Mask mask) override {
    const std::size_t time = static_cast<std::size_t>(qkv.shape()[1]);
    const std::size_t heads = static_cast<std::size_t>(config_.n_heads);
    const std::size_t channels = static_cast<std::size_t>(config_.d_model), size = channels / heads;
    std::vector<Entropy> parts(static_cast<std::size_t>(qkv.shape()[0]) * heads);
    parallel_for(static_cast<Index>(parts.size()), static_cast<Index>(time * time * size), [&](Index i) {
      const std::size_t sample = static_cast<std::size_t>(i) / heads, head = static_cast<std::size_t>(i) % heads;
      const In rows = qkv.values().subspan(sample * time * 3 * channels, time * 3 * channels);
      parts[static_cast<std::size_t>(i)] =
          head_entropy(rows, mask.empty() ? mask : mask.subspan(sample * time, time), time, channels, head, size);
    });
    Entropy& all = entropies_[static_cast<std::size_t>(block)];
    for (const Entropy& part : parts) {
      all.sum += part.sum;
      all.share += part.share;
      all.queries += part.queries;
    }
  }

  void see_norm(const std::string& name, const Tensor& x, Mask mask) override {
    const NormSpec spec = spec_of(config_.norm);
    // One that has no statistics (dyt) is looked at token by token.
    const ops::NormView view = view_of(spec.reduce, config_.norm_groups, x.shape());
    std::vector<Moments> of_group(static_cast<std::size_t>(view.groups()));
    for (Index i = 0; i < view.size(); ++i)
      if (is_real(mask, i / view.channels))
        of_group[static_cast<std::size_t>(view.group_of(i))].add(
            static_cast<double>(x.values()[static_cast<std::size_t>(i)]));
    Moments sizes;
    for (const Moments& group : of_group)
      if (group.count > 0) sizes.add(spec.centred ? group.deviation() : group.root_mean_square());
    norms.push_back({name, sizes.mean(), sizes.mean() > 0 ? sizes.deviation() / sizes.mean() : 0});
  }

  std::vector<InspectedBlock> blocks() {
    std::vector<InspectedBlock> out;
    for (const BlockFigures& figures : take()) {
      const Entropy& entropy = entropies_[out.size()];
      const double queries = std::max(1.0, entropy.queries);
      out.push_back({figures, entropy.sum / queries, entropy.share / queries});
    }
    return out;
  }

  std::vector<NormFigures> norms;

 private:
  const ModelConfig& config_;
  std::vector<Entropy> entropies_;
};

}  // namespace

double Inspection::grad_norm(std::string_view parameter) const {
  const auto found = std::ranges::find(parameters, parameter, &ParameterFigures::name);
  return found == parameters.end() ? 0 : found->grad_norm;
}

std::vector<std::string> Inspection::matrices() const {
  constexpr std::string_view kPrefix = "blocks.0.", kSuffix = ".weight";
  std::vector<std::string> names;
  for (const ParameterFigures& parameter : parameters)
    if (parameter.name.starts_with(kPrefix) && parameter.shape.rank() == 2)
      names.push_back(parameter.name.substr(kPrefix.size(), parameter.name.size() - kPrefix.size() - kSuffix.size()));
  return names;
}

double Inspection::matrix_gradient(std::size_t block, std::string_view matrix) const {
  return grad_norm(text("blocks.", block, '.', matrix, ".weight"));
}

std::vector<double> Inspection::stream() const {
  std::vector<double> stream;
  for (const InspectedBlock& block : blocks) stream.push_back(block.residual_rms);
  return stream;
}

Inspection inspect_model(const Gpt& model, const Batch& batch) {
  const KeptBuffers buffers(model.store());
  InspectProbe probe(model.config());
  Pass pass{.training = true, .probe = &probe};
  model.store().clear_gradients();
  const Tensor loss = model.loss(batch, pass);
  backward(loss);
  buffers.restore();

  Inspection out;
  out.loss = static_cast<double>(loss.item());
  for (const Named& parameter : model.store().parameters())
    out.parameters.push_back({parameter.name, parameter.tensor.shape(),
                              std::sqrt(kernels::squared_norm(parameter.tensor.grad())),
                              std::sqrt(kernels::squared_norm(parameter.tensor.values()))});
  out.blocks = probe.blocks();
  out.norms = std::move(probe.norms);
  return out;
}

Inspection mean_of(const std::vector<Inspection>& inspections) {
  Inspection mean = inspections.at(0);
  const double count = static_cast<double>(inspections.size());
  // f(inspection) names one figure.
  const auto average = [&](auto figure) {
    double sum = 0;
    for (const Inspection& one : inspections) sum += figure(one);
    return sum / count;
  };
  mean.loss = average([](const Inspection& one) { return one.loss; });
  for (std::size_t i = 0; i < mean.parameters.size(); ++i)
    for (double ParameterFigures::*figure : {&ParameterFigures::grad_norm, &ParameterFigures::norm})
      mean.parameters[i].*figure = average([&](const Inspection& one) { return one.parameters[i].*figure; });
  for (std::size_t i = 0; i < mean.norms.size(); ++i)
    for (double NormFigures::*figure : {&NormFigures::deviation, &NormFigures::spread})
      mean.norms[i].*figure = average([&](const Inspection& one) { return one.norms[i].*figure; });
  for (std::size_t i = 0; i < mean.blocks.size(); ++i) {
    const auto average_of = [&](auto figure) {
      mean.blocks[i].*figure = average([&](const Inspection& one) { return one.blocks[i].*figure; });
    };
    for (const BlockFigureName& figure : kBlockFigures) average_of(figure.value);
    average_of(&InspectedBlock::attention_entropy);
    average_of(&InspectedBlock::entropy_share);
  }
  return mean;
}

}  // namespace normlab
