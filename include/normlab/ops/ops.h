// The contents page of the ops: differentiable functions of tensors, forward and backward side by side in the .cpp.
// Spans of tokens, targets and masks must outlive the backward: they belong to the batch.
#pragma once

#include "normlab/tensor/tensor.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace ops {

// linear.cpp
// y = act(x weight^T + bias).  x [..., in], weight [out, in], bias [out] or empty -> [..., out]
Tensor linear(const Tensor& x, const Tensor& weight, const Tensor& bias, Activation act = Activation::none);
// residual + x weight^T + bias, in one pass; to the last bit what add(residual, linear(x, weight, bias)) gives.
Tensor linear_onto(const Tensor& residual, const Tensor& x, const Tensor& weight, const Tensor& bias);

// pointwise.cpp
Tensor add(const Tensor& x, const Tensor& f, Real scale = 1);  // scale x + f, of one shape
Tensor swiglu(const Tensor& gate, const Tensor& up);           // silu(gate) up
Tensor dropout(const Tensor& x, Dropout drop);                 // x itself when drop.p is 0

// normalize.cpp
using kernels::NormRule;
using kernels::NormView;
// What a norm measured: one value a group of the view.
struct Statistics {
  Tensor mean, rstd;
};
// y = gain (x - mean) rstd + bias over the groups of `view`; gain [C] or [1] and bias [C] may be empty. `measured` may
// be null.
Tensor normalize(const Tensor& x, NormView view, NormRule rule, Mask mask, const Tensor& gain, const Tensor& bias,
                 Statistics* measured = nullptr);
// The same with given statistics, one a group, that are constants.
Tensor normalize_by(const Tensor& x, NormView view, const Statistics& given, const Tensor& gain, const Tensor& bias);
// What PowerNorm carries from step to step, [C] each: P, the running mean square, and n, the running projection.
struct PowerState {
  Tensor square, projection;
};
// PowerNorm after its warm-up: y = gain z + bias, z = x / sqrt(P + eps) with P before this step. The forward moves P,
// and the backward, dx = (g - n z) / sqrt(P + eps), moves n, by their means over the real rows: P <- (1 - m) P + m mean
// x^2, n <- n + m mean (g - n z) z.
Tensor power(const Tensor& x, Mask mask, double eps, double momentum, const PowerState& state, const Tensor& gain,
             const Tensor& bias);
// gain tanh(alpha x) + bias, alpha [1].
Tensor dyt(const Tensor& x, const Tensor& alpha, const Tensor& gain, const Tensor& bias);

// attention.cpp
// qkv [B, T, 3 C] -> [B, T, C], causal. Dropout acts on the attention weights.
Tensor attention(const Tensor& qkv, Index heads, Dropout drop);
// The last rows only, without gradient: qkv [1, T, 3 C] has all rows so far, the result [1, T - first, C] theirs.
Tensor attention_tail(const Tensor& qkv, Index rows, Index heads, Index first);
// q and k turned by their positions, first + t for row t.
Tensor rope(const Tensor& qkv, Index heads, double base, Index first);

// vocab.cpp
// tokens [B T] -> [B, T, C]: table row plus position row; 0 where the mask says padding. `position` [>= first + T, C],
// may be empty, and takes a gradient if it needs one.
Tensor embedding(Shape batch_time, std::span<const std::int32_t> tokens, Mask mask, const Tensor& table,
                 const Tensor& position, Index first);
// The sum over rows of -ln softmax(logits)[target], times `scale`; rows with target kIgnore do not count.
// `row_loss` [rows], when given, takes each row's loss before scaling.
Tensor cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets, Real scale, Out row_loss = {});
// cross_entropy(linear(x, weight), ...) without ever holding the logits [rows, V] of all rows.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, std::span<const std::int32_t> targets, Real scale,
                            Out row_loss = {});

}  // namespace ops
}  // namespace NORMLAB_REAL
}  // namespace normlab
