// Putting the decoder together.
#include "normlab/nn/gpt.h"

#include <cmath>

namespace normlab {
inline namespace NORMLAB_REAL {
namespace {

// Vaswani et al. 2017, section 3.5: channel 2i is sin(t 10000^(-2i / C)), channel 2i + 1 the cosine.
Tensor sinusoidal_positions(Index time, Index channels) {
  Tensor table(Shape{time, channels});
  for (Index t = 0; t < time; ++t)
    for (Index c = 0; c < channels; ++c) {
      const double angle =
          static_cast<double>(t) * std::pow(10000.0, -static_cast<double>(c - c % 2) / static_cast<double>(channels));
      table.values()[static_cast<std::size_t>(t * channels + c)] =
          static_cast<Real>(c % 2 == 0 ? std::sin(angle) : std::cos(angle));
    }
  return table;
}

}  // namespace

Block::Block(const Scope& scope, const ModelConfig& config, Index index)
    : path_(scope.path()),
      index_(index),
      attention_(scope, "attn", config, Attention(scope / "attn", config, index)),
      mlp_(scope, "mlp", config, Mlp(scope / "mlp", config)) {}

Tensor Block::forward(const Tensor& x, Pass& pass) const {
  const Place place(path_);
  const Tensor between = attention_.forward(x, pass, Probe::Site::attn_output, index_);
  Tensor y = mlp_.forward(between, pass, Probe::Site::mlp_output, index_);
  if (pass.probe) pass.probe->see(Probe::Site::block_output, index_, y, pass.mask);
  return y;
}

Gpt::Gpt(const ModelConfig& config, Index vocab_size, std::uint64_t seed)
    : config_(config), vocab_size_(vocab_size), store_(seed) {
  const Scope root(store_);
  const InitialValues init(config_);
  const Index d = config_.d_model;
  tok_embed_ = (root / "tok_embed").parameter("weight", {vocab_size, d}, init.embedding());
  if (config_.position == Position::learned)
    positions_ = (root / "pos_embed").parameter("weight", {config_.context_length, d}, init.embedding());
  if (config_.position == Position::sinusoidal) positions_ = sinusoidal_positions(config_.context_length, d);
  for (Index i = 0; i < config_.n_layers; ++i) blocks_.emplace_back(root / text("blocks.", i), config_, i);
  final_norm_ = norm_in(slots_of(config_).before_head, root / "final_norm", config_);
  head_ = config_.tie_embeddings ? tok_embed_
                                 : (root / "head").parameter("weight", {vocab_size, d}, init.matrix(d, vocab_size));
}

Tensor Gpt::hidden(Shape batch_time, std::span<const std::int32_t> tokens, Pass& pass) const {
  const Index first = pass.cache ? pass.cache->filled : 0;
  check(first + batch_time[1] <= config_.context_length, "gpt: ", first + batch_time[1],
        " positions do not fit a context of ", config_.context_length);
  Tensor x;
  {
    static const std::string path = "embedding";
    const Place place(path);
    x = ops::embedding(batch_time, tokens, pass.mask, tok_embed_, positions_, first);
    x = ops::dropout(x, pass.next_dropout(config_.dropout));
  }
  for (const Block& block : blocks_) x = block.forward(x, pass);
  if (final_norm_) x = final_norm_->forward(x, pass);
  if (pass.cache) pass.cache->filled += batch_time[1];
  return x;
}

namespace {
const std::string kHeadPath = "head";
}

Tensor Gpt::head(const Tensor& hidden) const {
  const Place place(kHeadPath);
  return ops::linear(hidden, head_, {});
}

Tensor Gpt::hidden(const Batch& batch, Pass& pass) const {
  pass.mask = batch.valid;
  return hidden({batch.rows, batch.time}, batch.tokens, pass);
}

Tensor Gpt::loss(const Batch& batch, Pass& pass, std::optional<Index> targets, Out row_loss) const {
  const Tensor states = hidden(batch, pass);
  const Place place(kHeadPath);
  const double count = static_cast<double>(targets ? *targets : batch.target_count());
  return ops::linear_cross_entropy(states, head_, batch.targets, static_cast<Real>(1 / count), row_loss);
}

KeyValueCache Gpt::new_cache() const {
  KeyValueCache cache;
  for (Index i = 0; i < config_.n_layers; ++i)
    cache.qkv.emplace_back(Shape{1, config_.context_length, 3 * config_.d_model});
  return cache;
}

}  // namespace NORMLAB_REAL
}  // namespace normlab
