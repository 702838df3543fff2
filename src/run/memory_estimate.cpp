// Counts the tensors that a step holds at once; nn/ and ops/ decide which they are.
#include "normlab/run/memory_estimate.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "normlab/base/check.h"
#include "normlab/nn/norm_spec.h"
#include "normlab/train/evaluate.h"

namespace normlab {
namespace {

constexpr double kMega = 1 << 20;

// Numbers kept for one position by one block, in units of d_model.
double kept_by_block(const ModelConfig& model) {
  const double hidden = static_cast<double>(*model.d_ff) / static_cast<double>(model.d_model);
  const NormSlots slots = slots_of(model);
  const NormSpec spec = spec_of(model.norm);
  const double by_norm = spec.method == Method::identity ? 0 : spec.reduce == Reduce::nothing ? 1 : 2;
  const double norms = by_norm * (slots.before_branch + slots.after_branch + slots.after_residual);
  const double attention = (model.position == Position::rope ? 6 : 3) + 1;          // q, k, v, turned ones, the result
  const double mlp = (model.activation == MlpActivation::swiglu ? 3 : 2) * hidden;  // up, gate, product; or slope
  // The sums, and the branches' results where they are not added at once, before and after dropout.
  const bool apart = slots.after_branch || model.residual_scale() != 1;
  const double sums = 2 + (model.dropout > 0 ? 4 : apart ? 2 : 0);
  return norms + attention + mlp + sums;
}

// A forward that keeps nothing holds the tensors of one sublayer, and of the head one slice of logits; a sample holds
// the keys and values of the positions that it has come to.
double evaluation_bytes(const RunConfig& config, const DataFacts& data, double vocab_size) {
  const ModelConfig& model = config.model;
  const double channels = static_cast<double>(model.d_model), time = static_cast<double>(model.context_length);
  double rows = static_cast<double>(std::min(own_rows(config).value_or(kEvaluationRows), config.eval.windows));
  if (config.data.documents == Documents::stream)
    rows = std::min(rows, std::ceil(static_cast<double>(data.validation_tokens) / time));
  const double positions = std::max(1.0, rows) * time;
  const double hidden = static_cast<double>(*model.d_ff) / channels;
  const NormSlots slots = slots_of(model);
  const double normed = slots.before_branch + slots.after_branch;
  const double in_attention = 6 + (model.position == Position::rope ? 1 : 0) + normed;
  const double in_mlp = (model.activation == MlpActivation::swiglu ? 2 + 3 * hidden : 3 + hidden) + normed;
  const double in_head = 2 * channels * positions + std::min(positions, 384.0) * vocab_size;
  const double pass = std::max(positions * channels * std::max(in_attention, in_mlp), in_head);
  const double sampled = std::min(time, static_cast<double>(config.log.sample_tokens));
  return sizeof(float) * std::max(pass, 3 * sampled * channels * static_cast<double>(model.n_layers));
}

// What the head's backward holds: one slice of logits, and the gradients of its matrix and of the states.
double head_numbers(double positions, double channels, double vocab_size) {
  return std::min(positions, 384.0) * vocab_size + channels * (vocab_size + positions);
}

// The pass in double over a whole micro-batch; and vectors as long as the parameters: those
// that Lanczos' method holds when it ends, about two dozen (lab/lanczos.h), and weights, gradients and their
// differences.
double curvature_bytes(const RunConfig& config, double parameter_count, double vocab_size) {
  constexpr double kVectors = 24 + 8;
  const ModelConfig& model = config.model;
  const double positions = static_cast<double>(config.train.batch_size * model.context_length);
  const double channels = static_cast<double>(model.d_model), layers = static_cast<double>(model.n_layers);
  const double in_block = static_cast<double>(*model.d_ff) + 3 * channels;
  const double kept = channels * (layers * kept_by_block(model) + 2);
  const double backward = std::max(positions * in_block, head_numbers(positions, channels, vocab_size));
  return sizeof(double) * (kVectors * parameter_count + positions * kept + backward);
}

// All parts of an update are drawn before the first: a token and a target a position, and some vectors a part.
double bytes_of_batches(const RunConfig& config) {
  constexpr double kPart = 250;
  const double parts = static_cast<double>(config.train.grad_accumulation) *
                       static_cast<double>(config.train.batch_size / config.statistics_rows());
  const double positions = static_cast<double>(config.statistics_rows() * config.model.context_length);
  return parts * (2 * sizeof(std::int32_t) * positions + kPart);
}

// Beside the numbers. Measured: of each tensor in a checkpoint its node, its names and its entry in the header while it
// is saved; of each in a `layers` line its three figures.
double bytes_by_tensor(const RunConfig& config, const ModelSize& size) {
  constexpr double kSaved = 1400, kLogged = 400;
  const double saved = size.parameters * (1 + averages_of(config.optimizer)) + size.buffers;
  return kSaved * saved + (config.log.layers_every > 0 ? kLogged * size.parameters : 0);
}

}  // namespace

ModelSize model_size(const ModelConfig& model, Index vocab_size) {
  const double d = static_cast<double>(model.d_model), d_ff = static_cast<double>(*model.d_ff);
  const double vocab = static_cast<double>(vocab_size), layers = static_cast<double>(model.n_layers);
  const NormSlots slots = slots_of(model);
  const NormSpec spec = spec_of(model.norm);
  const double norms =
      2 * layers * (slots.before_branch + slots.after_branch + slots.after_residual) + slots.before_head;
  const double norm_bias = spec.bias && model.bias ? 1 : 0, alpha = spec.method == Method::tanh ? 1 : 0;
  const double ins = model.activation == MlpActivation::swiglu ? 2 : 1, bias = model.bias ? 1 : 0;
  const double tables = model.tie_embeddings ? 1 : 2, learned = model.position == Position::learned ? 1 : 0;
  ModelSize size;
  size.numbers = d * (tables * vocab + learned * static_cast<double>(model.context_length)) +
                 layers * (4 * d * d + (ins + 1) * d * d_ff + bias * (5 * d + ins * d_ff)) +
                 norms * ((spec.gain == Gain::scalar ? 1 : d) + norm_bias * d + alpha);
  size.parameters = tables + learned + layers * (3 + ins) * (1 + bias) + norms * (1 + norm_bias + alpha);
  size.buffers = norms * (spec.method == Method::fixed    ? 1
                          : spec.method == Method::power  ? 3
                          : spec.running != Running::none ? 2
                                                          : 0);
  return size;
}

MemoryEstimate estimate_memory(const RunConfig& config, const DataFacts& data, Index vocabulary,
                               double checkpoint_bytes) {
  const ModelConfig& model = config.model;
  const ModelSize size = model_size(model, vocabulary);
  const double parameter_count = size.numbers, vocab_size = static_cast<double>(vocabulary);
  const double real = sizeof(float);
  const double channels = static_cast<double>(model.d_model), layers = static_cast<double>(model.n_layers);
  const double positions = static_cast<double>(config.statistics_rows() * model.context_length);  // of one pass
  // Where a probe looks, the branches' results stay apart, and some of their gradients.
  const double probed = config.log.layers_every > 0 ? 2.5 : 0;
  // The gradient noise scale compares each part's gradient with the sum before it.
  const bool compares = config.in_parts() && size.buffers == 0;
  const double copies = 2 + (compares ? 1 : 0) + (config.log.layers_every > 0 ? 1 : 0);  // LayersLog: before the update
  MemoryEstimate bytes;
  bytes.parameters = copies * real * parameter_count;
  bytes.optimizer = averages_of(config.optimizer) * real * parameter_count;
  bytes.activations = real * positions * channels * (layers * (kept_by_block(model) + probed) + 2);
  const double in_block = real * positions * (static_cast<double>(*model.d_ff) + 3 * channels);
  bytes.backward = std::max(in_block, real * head_numbers(positions, channels, vocab_size));
  if (config.log.curvature_every > 0) bytes.curvature = curvature_bytes(config, parameter_count, vocab_size);
  bytes.evaluation = evaluation_bytes(config, data, vocab_size);
  bytes.tokens =
      sizeof(std::int32_t) * static_cast<double>(data.train_tokens + data.validation_tokens) + bytes_of_batches(config);
  bytes.reading = data.peak_bytes;
  if (checkpoint_bytes > 0)
    bytes.reading = checkpoint_bytes + std::max(bytes.reading, bytes.tokens + real * parameter_count + bytes.optimizer);
  bytes.program = 9.5 * kMega + bytes_by_tensor(config, size);
  return bytes;
}

namespace {

// The keys that lower the estimate by a tenth or more when they are halved (the others of that size too), most first.
std::string keys_to_lower(const RunConfig& config, const DataFacts& data, Index vocab_size, double checkpoint_bytes) {
  const double total = estimate_memory(config, data, vocab_size, checkpoint_bytes).total();
  std::vector<std::pair<double, std::string>> keys;
  const auto add = [&](const char* key, const RunConfig& smaller, const DataFacts& less, Index vocabulary,
                       std::int64_t now) {
    const double saved = total - estimate_memory(smaller, less, vocabulary, checkpoint_bytes).total();
    if (now > 1) keys.emplace_back(-saved, text(key, " (", now, ")"));
  };
  const auto halved = [&](const char* key, auto section, auto member) {
    RunConfig smaller = config;
    std::int64_t& value = smaller.*section.*member;
    const std::int64_t now = value;
    value = std::max<std::int64_t>(1, value / 2);
    if (&value == &smaller.model.d_model && *smaller.model.d_ff == 4 * now) *smaller.model.d_ff = 4 * value;
    smaller.train.shards = std::min(smaller.train.shards, smaller.train.batch_size);
    add(key, smaller, data, vocab_size, now);
  };
  halved("model.d_model", &RunConfig::model, &ModelConfig::d_model);
  halved("model.n_layers", &RunConfig::model, &ModelConfig::n_layers);
  halved("model.context_length", &RunConfig::model, &ModelConfig::context_length);
  halved("train.batch_size", &RunConfig::train, &TrainConfig::batch_size);
  halved("train.grad_accumulation", &RunConfig::train, &TrainConfig::grad_accumulation);
  RunConfig narrow = config, flat = config;
  *narrow.model.d_ff = (*narrow.model.d_ff + 1) / 2;
  if (*config.model.d_ff != 4 * config.model.d_model) add("model.d_ff", narrow, data, vocab_size, *config.model.d_ff);
  flat.log.curvature_every = 0;
  add("log.curvature_every=0, now", flat, data, vocab_size, config.log.curvature_every + 1);
  DataFacts less = data;
  less.train_tokens /= 2;
  less.peak_bytes /= 2;
  add("data.size or the text, in tokens", config, less, vocab_size, data.train_tokens);
  if (config.data.tokenizer == "bpe")
    add("data.vocab_size", config, data, (vocab_size + 1) / 2, config.data.vocab_size);
  std::ranges::sort(keys);
  std::string out = keys[0].second;
  for (std::size_t i = 1; i < std::min<std::size_t>(4, keys.size()) && keys[i].first < -0.1 * total; ++i)
    out += ", " + keys[i].second;
  return out;
}

}  // namespace

void require_memory(const RunConfig& config, const DataFacts& data, Index vocab_size, double checkpoint_bytes,
                    const std::optional<MemoryLimit>& limit) {
  if (!config.train.memory_check || !limit) return;
  const double needed = estimate_memory(config, data, vocab_size, checkpoint_bytes).total();
  if (needed <= limit->bytes) return;
  throw ConfigError(text(
      "this needs about ", fixed(std::ceil(needed / kMega), 0), " MB of memory, and there are ",
      fixed(std::floor(limit->bytes / kMega), 0), " MB (", limit->source,
      "; not what is free now); lower what counts most: ", keys_to_lower(config, data, vocab_size, checkpoint_bytes),
      ". train.memory_check=false begins all the same"));
}

}  // namespace normlab
