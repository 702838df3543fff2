// The modules that a block is made of. Creating one registers its parameters under its scope's path.
#pragma once

#include "normlab/nn/model_config.h"
#include "normlab/nn/pass.h"
#include "normlab/ops/ops.h"
#include "normlab/tensor/parameters.h"

namespace normlab {
inline namespace NORMLAB_REAL {

// How the matrices of a model begin (nn/model_config.h, Initialisation).
class InitialValues {
 public:
  explicit InitialValues(const ModelConfig& config) : config_(config) {}
  Init embedding() const { return {0, *config_.embed_std}; }
  Init matrix(Index fan_in, Index fan_out) const;
  Init mlp_matrix(Index fan_in, Index fan_out) const;       // up and gate
  Init residual_output(Index fan_in, Index fan_out) const;  // the matrices whose result is added to the stream

 private:
  const ModelConfig& config_;
};

class Linear {
 public:
  Linear(const Scope& scope, Index in, Index out, Init init, bool has_bias);
  void scale_rows(Index first, double factor);                               // of the weight, from `first` on
  Tensor forward(const Tensor& x, Activation act = Activation::none) const;  // [..., in] -> [..., out]
  Tensor forward_onto(const Tensor& residual, const Tensor& x) const;        // residual + forward(x)

 private:
  std::string path_;
  Tensor weight_, bias_;
};

// Causal self-attention with q, k and v in one product.
class Attention {
 public:
  Attention(const Scope& scope, const ModelConfig& config, Index block);
  // [B, T, C] -> [B, T, C], added to the residual when there is one.
  Tensor forward(const Tensor& x, const Tensor& residual, Pass& pass) const;

 private:
  Tensor attend(const Tensor& qkv, Pass& pass) const;

  std::string path_;
  Index block_, heads_;
  double dropout_, rope_base_;
  bool rope_;
  Linear qkv_, out_;
};

// down(act(up(x))), or with swiglu down(silu(gate(x)) up(x)).
class Mlp {
 public:
  Mlp(const Scope& scope, const ModelConfig& config);
  Tensor forward(const Tensor& x, const Tensor& residual, Pass& pass) const;  // as Attention's

 private:
  std::string path_;
  double dropout_;
  MlpActivation activation_;
  Linear up_;
  std::optional<Linear> gate_;
  Linear down_;
};

}  // namespace NORMLAB_REAL
}  // namespace normlab
