// Linear layers, attention and the MLP.
#include "normlab/nn/layers.h"

#include <algorithm>
#include <cmath>

namespace normlab {
inline namespace NORMLAB_REAL {
namespace {

constexpr double kGpt2Deviation = 0.02;

Activation kernel_activation(MlpActivation activation) {
  switch (activation) {
    case MlpActivation::gelu:
      return Activation::gelu;
    case MlpActivation::gelu_tanh:
      return Activation::gelu_tanh;
    case MlpActivation::relu:
      return Activation::relu;
    case MlpActivation::swiglu:
      return Activation::none;
  }
  __builtin_unreachable();
}

// The last product of a branch, dropout, and the residual.
Tensor branch_end(const Linear& last, const Tensor& x, const Tensor& residual, Dropout drop, const std::string& path) {
  if (drop.p == 0 && residual) return last.forward_onto(residual, x);
  const Tensor product = last.forward(x);
  const Place place(path);
  const Tensor y = ops::dropout(product, drop);
  return residual ? ops::add(residual, y) : y;
}

}  // namespace

Init InitialValues::matrix(Index fan_in, Index fan_out) const {
  if (config_.init == Initialisation::gpt2) return {0, kGpt2Deviation};
  return {0, std::sqrt(2.0 / static_cast<double>(fan_in + fan_out))};
}

Init InitialValues::mlp_matrix(Index fan_in, Index fan_out) const {
  Init init = matrix(fan_in, fan_out);
  init.deviation *= config_.branch_gain();
  return init;
}

Init InitialValues::residual_output(Index fan_in, Index fan_out) const {
  Init init = mlp_matrix(fan_in, fan_out);
  if (config_.init == Initialisation::gpt2 && config_.placement != Placement::deepnorm)
    init.deviation /= std::sqrt(2.0 * static_cast<double>(config_.n_layers));
  return init;
}

Linear::Linear(const Scope& scope, Index in, Index out, Init init, bool has_bias)
    : path_(scope.path()), weight_(scope.parameter("weight", {out, in}, init)) {
  if (has_bias) bias_ = scope.parameter("bias", {out}, {});
}

void Linear::scale_rows(Index first, double factor) {
  for (Real& value : weight_.values().subspan(static_cast<std::size_t>(first * weight_.shape().last())))
    value = static_cast<Real>(static_cast<double>(value) * factor);
}

Tensor Linear::forward(const Tensor& x, Activation act) const {
  const Place place(path_);
  return ops::linear(x, weight_, bias_, act);
}

Tensor Linear::forward_onto(const Tensor& residual, const Tensor& x) const {
  const Place place(path_);
  return ops::linear_onto(residual, x, weight_, bias_);
}

Attention::Attention(const Scope& scope, const ModelConfig& config, Index block)
    : path_(scope.path()),
      block_(block),
      heads_(config.n_heads),
      dropout_(config.dropout),
      rope_base_(config.rope_base),
      rope_(config.position == Position::rope),
      // Query, key and value are three d x d matrices as far as their initial spread goes.
      qkv_(scope / "qkv", config.d_model, 3 * config.d_model,
           InitialValues(config).matrix(config.d_model, config.d_model), config.bias),
      out_(scope / "out", config.d_model, config.d_model,
           InitialValues(config).residual_output(config.d_model, config.d_model), config.bias) {
  if (const double gain = config.branch_gain(); gain != 1) qkv_.scale_rows(2 * config.d_model, gain);  // the value's
}

Tensor Attention::forward(const Tensor& x, const Tensor& residual, Pass& pass) const {
  Tensor qkv = qkv_.forward(x);
  Tensor y;
  {
    const Place place(path_);
    if (rope_) qkv = ops::rope(qkv, heads_, rope_base_, pass.cache ? pass.cache->filled : 0);
    if (pass.probe) pass.probe->see_qkv(block_, qkv, pass.mask);
    y = attend(qkv, pass);
  }
  return branch_end(out_, y, residual, pass.next_dropout(dropout_), path_);
}

Tensor Attention::attend(const Tensor& qkv, Pass& pass) const {
  if (!pass.cache) return ops::attention(qkv, heads_, pass.next_dropout(dropout_));
  const Tensor& all = pass.cache->qkv[static_cast<std::size_t>(block_)];
  const Index first = pass.cache->filled, channels3 = qkv.shape().last();
  std::ranges::copy(qkv.values(), all.values().begin() + first * channels3);
  return ops::attention_tail(all, first + qkv.shape()[1], heads_, first);
}

Mlp::Mlp(const Scope& scope, const ModelConfig& config)
    : path_(scope.path()),
      dropout_(config.dropout),
      activation_(config.activation),
      up_(scope / "up", config.d_model, *config.d_ff, InitialValues(config).mlp_matrix(config.d_model, *config.d_ff),
          config.bias),
      gate_(config.activation == MlpActivation::swiglu
                ? std::optional<Linear>(std::in_place, scope / "gate", config.d_model, *config.d_ff,
                                        InitialValues(config).mlp_matrix(config.d_model, *config.d_ff), config.bias)
                : std::nullopt),
      down_(scope / "down", *config.d_ff, config.d_model,
            InitialValues(config).residual_output(*config.d_ff, config.d_model), config.bias) {}

Tensor Mlp::forward(const Tensor& x, const Tensor& residual, Pass& pass) const {
  Tensor hidden = up_.forward(x, kernel_activation(activation_));
  if (gate_) {
    const Tensor gate = gate_->forward(x);
    const Place place(path_);
    hidden = ops::swiglu(gate, hidden);
  }
  return branch_end(down_, hidden, residual, pass.next_dropout(dropout_), path_);
}

}  // namespace NORMLAB_REAL
}  // namespace normlab
