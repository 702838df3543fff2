// `normlab inspect`: what a batch does to a model, layer by layer, and what theory expects of its placement.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "normlab/data/dataset.h"
#include "normlab/formats/json.h"
#include "normlab/nn/gpt.h"
#include "normlab/train/block_probe.h"
#include "normlab/train/run_config.h"

namespace normlab {

struct ParameterFigures {
  std::string name;
  Shape shape;
  double grad_norm = 0, norm = 0;
};

// The statistics that a norm divides by: the deviation (without centring, the root mean square) of each group of
// elements that it takes one of, as each token's channels or each channel's tokens; of dyt, which has none, of each
// token.
struct NormFigures {
  std::string name;
  double deviation = 0;  // their mean
  double spread = 0;     // their standard deviation over their mean
};

struct InspectedBlock : BlockFigures {
  double attention_entropy = 0;  // nats, the mean over heads and queries that have a choice
  double entropy_share = 0;      // of the entropy of attention to all earlier positions alike: 1 is uniform
};

struct Inspection {
  double loss = 0;
  std::vector<ParameterFigures> parameters;
  std::vector<InspectedBlock> blocks;
  std::vector<NormFigures> norms;

  double grad_norm(std::string_view parameter) const;  // 0 when there is none of that name
  std::vector<std::string> matrices() const;           // of a block: attn.qkv attn.out mlp.up (mlp.gate) mlp.down
  double matrix_gradient(std::size_t block, std::string_view matrix) const;
  std::vector<double> stream() const;  // residual_rms of each block
};

// One forward and backward in training mode; running averages are left as they were.
Inspection inspect_model(const Gpt& model, const Batch& batch);
// The mean of each figure.
Inspection mean_of(const std::vector<Inspection>& inspections);

// The gradient norm of each block's mlp.down by theory, as a share of the last block's. A sublayer adds to the gradient
// in the share in which its output adds to the stream. With a norm after the residual both are taken out again: 1.
// Where the stream is normalised at its end only (pre, sandwich, res_post), it has grown from here to there by
// rms(end) / rms(here), and so has, backward, the gradient. `stream`: the rms after each block.
std::vector<double> expected_shape(const ModelConfig& config, const std::vector<double>& stream);

// Gradient norms of fresh models of several depths, and the exponents p of norm ~ n_layers^p.
struct DepthPoint {
  Index n_layers = 0;
  double last = 0, last_deviation = 0;  // mlp.down of the last block: mean and standard deviation over the seeds
  double first = 0;                     // mlp.down of the first block
  double attn_last = 0;                 // attn.out of the last block
  double first_over_last = 0;           // the median over the seeds
};
struct DepthFit {
  std::vector<DepthPoint> points;
  double last = 0, first = 0, attn_last = 0;  // exponents
  double expected_last = 0;  // Xiong et al. 2020, theorem 1: -1/2 where the stream is normalised at its end, else 0
};
DepthFit fit_depths(const ModelConfig& config, Index vocab_size, std::uint64_t first_seed, std::int64_t seeds,
                    const std::vector<Index>& depths, const Batch& batch);

// The gradient of a batch's mean loss when each shard of its rows goes through the model by itself: |difference| from
// the whole batch's over its norm. With dropout, its masks differ too. A number of shards that does not divide the rows
// is a UserError.
struct ShardPoint {
  Index shards = 0;
  double difference = 0;
};
std::vector<ShardPoint> shard_differences(const Gpt& model, const Batch& batch, const std::vector<Index>& shards);

// What a step costs. Bytes in float.
struct Costs {
  double parameters = 0, decayed = 0;  // numbers
  double parameter_bytes = 0, gradient_bytes = 0, optimizer_bytes = 0;
  double peak_bytes = 0;       // of a training run (train/memory_estimate.h)
  double flops_per_token = 0;  // 6 a weight of a matrix product, 12 L d T for attention (not counting the causal mask)
  double flops_per_step = 0;
  double synced_numbers = 0;  // that each device sends a step for its norms to have the statistics of all
};
Costs costs_of(const RunConfig& config, const DataFacts& data, const Gpt& model);

struct InspectReport {
  const RunConfig& config;
  std::string subject;  // "seed 1337, as initialised" or the checkpoint's path and step
  Inspection inspection;
  Costs costs;
  std::optional<DepthFit> depths;
  std::vector<ShardPoint> shards = {};
};
Json json_of(const InspectReport& report);
// Tables as wide as `columns`, what does not fit below; 0 is no limit.
std::string text_of(const InspectReport& report, std::size_t columns = 0);
std::string svg_of(const InspectReport& report);

}  // namespace normlab
