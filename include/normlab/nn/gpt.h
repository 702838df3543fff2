// The decoder: embedding, blocks, final norm, head.
#pragma once

#include <vector>

#include "normlab/nn/batch.h"
#include "normlab/nn/layers.h"
#include "normlab/nn/norm.h"

namespace normlab {
inline namespace NORMLAB_REAL {

// One sublayer with its norms and the residual: y = after_residual(a x + after_branch(branch(before_branch(x)))); an
// absent norm is the identity. Which are present is the placement (slots_of).
template <class Branch>
class Residual {
 public:
  // `name` is attn or mlp: its norm is NAME_norm; where there are two, that of the branch's output is NAME_out_norm.
  Residual(const Scope& block, const std::string& name, const ModelConfig& config, Branch branch)
      : slots_(slots_of(config)),
        scale_(static_cast<Real>(config.residual_scale())),
        before_branch_(norm_in(slots_.before_branch, block / (name + "_norm"), config)),
        branch_(std::move(branch)),
        after_branch_(
            norm_in(slots_.after_branch, block / (name + (slots_.before_branch ? "_out_norm" : "_norm")), config)),
        after_residual_(norm_in(slots_.after_residual, block / (name + "_norm"), config)) {}

  Tensor forward(const Tensor& x, Pass& pass, Probe::Site site, Index block) const {
    const auto normed = [&](const std::optional<Norm>& norm, const Tensor& t) {
      return norm ? norm->forward(t, pass) : t;
    };
    // Where nothing stands between, the last product of the branch adds the residual, unless somebody wants to see what
    // is added.
    if (!pass.probe && !after_branch_ && scale_ == 1)
      return normed(after_residual_, branch_.forward(normed(before_branch_, x), x, pass));
    const Tensor output = branch_.forward(normed(before_branch_, x), {}, pass);
    if (pass.probe) pass.probe->see(site, block, output, pass.mask);
    return normed(after_residual_, ops::add(x, normed(after_branch_, output), scale_));
  }

 private:
  NormSlots slots_;
  Real scale_;
  std::optional<Norm> before_branch_;
  Branch branch_;
  std::optional<Norm> after_branch_, after_residual_;
};

class Block {
 public:
  Block(const Scope& scope, const ModelConfig& config, Index index);
  Tensor forward(const Tensor& x, Pass& pass) const;

 private:
  std::string path_;
  Index index_;
  Residual<Attention> attention_;
  Residual<Mlp> mlp_;
};

class Gpt {
 public:
  // `config` must be resolved (ModelConfig::resolve).
  Gpt(const ModelConfig& config, Index vocab_size, std::uint64_t seed);

  // tokens [B T] -> the states before the head [B, T, C]
  Tensor hidden(Shape batch_time, std::span<const std::int32_t> tokens, Pass& pass) const;
  Tensor head(const Tensor& hidden) const;  // [B, T, C] -> logits [B, T, V]
  Tensor logits(Shape batch_time, std::span<const std::int32_t> tokens, Pass& pass) const {
    return head(hidden(batch_time, tokens, pass));
  }
  // The same of a batch, whose padding becomes the pass's mask. The batch must outlive the backward.
  Tensor hidden(const Batch& batch, Pass& pass) const;
  Tensor logits(const Batch& batch, Pass& pass) const { return head(hidden(batch, pass)); }
  // The sum of the losses of its targets, over their number, or over the `targets` of what the batch is a part of. Each
  // row's own loss goes to `row_loss`, where given.
  Tensor loss(const Batch& batch, Pass& pass, std::optional<Index> targets = std::nullopt, Out row_loss = {}) const;
  KeyValueCache new_cache() const;

  const ParameterStore& store() const { return store_; }
  const ModelConfig& config() const { return config_; }
  Index vocab_size() const { return vocab_size_; }

 private:
  ModelConfig config_;
  Index vocab_size_;
  ParameterStore store_;
  Tensor tok_embed_, positions_;  // positions_: learned or sinusoidal, or empty
  std::vector<Block> blocks_;
  std::optional<Norm> final_norm_;
  Tensor head_;  // the token embedding's matrix when tied
};

}  // namespace NORMLAB_REAL
}  // namespace normlab
