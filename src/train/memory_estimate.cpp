// Counts the tensors that a step holds at once; nn/ and ops/ decide which they are.
#include "normlab/train/memory_estimate.h"

#include <algorithm>
#include <cmath>

#include "normlab/nn/norm.h"
#include "normlab/train/evaluate.h"

namespace normlab {
namespace {

constexpr double kMega = 1 << 20;

// Numbers kept for one position by one block, in units of d_model.
double kept_by_block(const ModelConfig& model) {
  const double hidden = static_cast<double>(*model.d_ff) / static_cast<double>(model.d_model);
  const NormSlots slots = slots_of(model.placement);
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
  const NormSlots slots = slots_of(model.placement);
  const double normed = slots.before_branch + slots.after_branch;
  const double in_attention = 6 + (model.position == Position::rope ? 1 : 0) + normed;
  const double in_mlp = (model.activation == MlpActivation::swiglu ? 2 + 3 * hidden : 3 + hidden) + normed;
  const double in_head = 2 * channels * positions + std::min(positions, 384.0) * vocab_size;
  const double pass = std::max(positions * channels * std::max(in_attention, in_mlp), in_head);
  const double sampled = std::min(time, static_cast<double>(config.log.sample_tokens));
  return sizeof(float) * std::max(pass, 3 * sampled * channels * static_cast<double>(model.n_layers));
}

// The pass in double over a whole micro-batch, with all of its logits; and vectors as long as the parameters: those
// that Lanczos' method holds when it ends, about two dozen (lab/lanczos.h), and weights, gradients and their
// differences.
double curvature_bytes(const RunConfig& config, double parameter_count, double vocab_size) {
  constexpr double kVectors = 24 + 8;
  const ModelConfig& model = config.model;
  const double positions = static_cast<double>(config.train.batch_size * model.context_length);
  const double channels = static_cast<double>(model.d_model), layers = static_cast<double>(model.n_layers);
  const double in_block = static_cast<double>(*model.d_ff) + 3 * channels;
  const double kept = channels * (layers * kept_by_block(model) + 2);
  return sizeof(double) * (kVectors * parameter_count + positions * (kept + std::max(in_block, 2 * vocab_size)));
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
double bytes_by_tensor(const RunConfig& config, const ParameterStore& store) {
  constexpr double kSaved = 1400, kLogged = 400;
  const double parameters = static_cast<double>(store.parameters().size());
  const double saved = parameters * (config.optimizer.name == OptimizerKind::adamw ? 3 : 2) +
                       static_cast<double>(store.buffers().size());
  return kSaved * saved + (config.log.layers_every > 0 ? kLogged * parameters : 0);
}

}  // namespace

MemoryEstimate estimate_memory(const RunConfig& config, const DataFacts& data, const Gpt& gpt,
                               double checkpoint_bytes) {
  const ModelConfig& model = config.model;
  const double parameter_count = static_cast<double>(gpt.store().parameter_count());
  const double vocab_size = static_cast<double>(gpt.vocab_size());
  const double real = sizeof(float);
  const double channels = static_cast<double>(model.d_model), layers = static_cast<double>(model.n_layers);
  const double positions = static_cast<double>(config.statistics_rows() * model.context_length);  // of one pass
  // Where a probe looks, the branches' results stay apart, and some of their gradients.
  const double probed = config.log.layers_every > 0 ? 2.5 : 0;
  // The gradient noise scale compares each part's gradient with the sum before it.
  const bool compares = config.in_parts() && gpt.store().buffers().empty();
  const double copies = 2 + (compares ? 1 : 0) + (config.log.layers_every > 0 ? 1 : 0);  // LayersLog: before the update
  MemoryEstimate bytes;
  bytes.parameters = copies * real * parameter_count;
  bytes.optimizer = (config.optimizer.name == OptimizerKind::adamw ? 2 : 1) * real * parameter_count;
  bytes.activations = real * positions * channels * (layers * (kept_by_block(model) + probed) + 2);
  const double in_block = real * positions * (static_cast<double>(*model.d_ff) + 3 * channels);
  const double in_head = real * (std::min(positions, 384.0) * vocab_size + channels * (vocab_size + positions));
  bytes.backward = std::max(in_block, in_head);
  if (config.log.curvature_every > 0) bytes.curvature = curvature_bytes(config, parameter_count, vocab_size);
  bytes.evaluation = evaluation_bytes(config, data, vocab_size);
  bytes.tokens =
      sizeof(std::int32_t) * static_cast<double>(data.train_tokens + data.validation_tokens) + bytes_of_batches(config);
  bytes.reading = data.peak_bytes;
  if (checkpoint_bytes > 0)
    bytes.reading = checkpoint_bytes + std::max(bytes.reading, bytes.tokens + real * parameter_count + bytes.optimizer);
  bytes.program = 9.5 * kMega + bytes_by_tensor(config, gpt.store());
  return bytes;
}

}  // namespace normlab
