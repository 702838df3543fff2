// Counts the tensors that a step holds at once; nn/ and ops/ decide which they are.
#include "normlab/train/memory_estimate.h"

#include <algorithm>

#include "normlab/nn/norm.h"

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

}  // namespace

MemoryEstimate estimate_memory(const RunConfig& config, const DataFacts& data, const Gpt& gpt) {
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
  bytes.tokens = sizeof(std::int32_t) * static_cast<double>(data.train_tokens + data.validation_tokens);
  bytes.reading = data.peak_bytes;
  bytes.program = 9.5 * kMega;
  return bytes;
}

}  // namespace normlab
