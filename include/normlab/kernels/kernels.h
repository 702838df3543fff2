// The contents page of the kernels: pure loops over spans, no Tensor, no allocation that outlives a call.
// Sizes come in a small struct; shapes are given with the names; d means "gradient of the loss with respect to".
// Every kernel gives the same bytes for any number of threads, and computes a row independently of how many
// rows there are: a sample's result is the same alone and in company.
#pragma once

#include <cstdint>
#include <span>

#include "normlab/base/real.h"

namespace normlab {

// An activation that a linear layer can apply: gelu is the exact one (erf), gelu_tanh its approximation.
enum class Activation { none, gelu, gelu_tanh, relu };

}  // namespace normlab

namespace normlab {
inline namespace NORMLAB_REAL {

using In = std::span<const Real>;
using Out = std::span<Real>;
using Mask = std::span<const std::uint8_t>;  // one byte a row of [B, T]: 1 is real, 0 padding; empty: all are real
inline bool is_real(Mask mask, Index row) { return mask.empty() || mask[static_cast<std::size_t>(row)] != 0; }

// Where a gradient goes: added to what is there, or, for the first contribution, written over it.
// An empty one (nobody wants the gradient) is skipped.
struct Grad {
  Out values{};
  bool add = false;
  explicit operator bool() const { return !values.empty(); }
};

// Zeroes with probability p < 1, else scales by 1 / (1 - p). Element i is kept when the upper 32 bits of the random
// number at counter i of the stream `key` (base/rng.h: mix(key + (i + 1) * Random::kStep)) are at least p 2^32.
struct Dropout {
  Real p = 0;
  std::uint64_t key = 0;
};

namespace kernels {

// ---- gemm.cpp, linear.cpp: y = residual + act(z), z = x weight^T + bias --------------------------------------------
struct LinearShape {
  Index rows, in, out;  // x [rows, in], weight [out, in], bias [out], z, slope, residual and y [rows, out]
};
// slope takes act'(z), which the backward multiplies dy by. bias, slope and residual may be empty; slope must be with
// Activation::none, and residual with any other.
void linear_forward(LinearShape s, Activation act, In x, In weight, In bias, In residual, Out slope, Out y);
// dx (+)= dz weight
void linear_backward_input(LinearShape s, In dz, In weight, Grad dx);
// dweight (+)= dz^T x;  dbias (+)= sum of dz over its rows
void linear_backward_weight(LinearShape s, In dz, In x, Grad dweight, Grad dbias);

// ---- pointwise.cpp -------------------------------------------------------------------------------------------------
void add_forward(Real scale, In x, In f, Out y);  // y = scale x + f
void accumulate(Real scale, In dy, Grad dx);      // dx (+)= scale dy
void multiply(In factor, Out x);                  // x = factor x
void swiglu_forward(In gate, In up, Out y);       // y = gate sigmoid(gate) up
void swiglu_backward(In gate, In up, In dy, Grad dgate, Grad dup);
void dropout_forward(Dropout drop, In x, Out y);
void dropout_backward(Dropout drop, In dy, Grad dx);

// ---- normalize.cpp: x [B, T, C] seen as [outer, reduced, inner] ----------------------------------------------------
// One (mean, rstd) for each group g = outer index * inner + inner index. The flat index of an element gives its row
// (flat / channels) for the mask and its channel (flat % channels) for gain and bias.
//   layer, rms {B T, C, 1}   group {B T groups, C / groups, 1}   instance {B, T, C}   layer_seq {B, T C, 1}
//   batch {1, B T, C}        batch_step {1, B, T C}
struct NormView {
  Index outer, reduced, inner, channels;
  Index groups() const { return outer * inner; }
  Index size() const { return outer * reduced * inner; }
  Index group_of(Index flat) const { return flat / (reduced * inner) * inner + flat % inner; }
};
// What x - mean is divided by: the deviation, sqrt(mean of (x - mean)^2 + eps), or max(length of x, eps) (ScaleNorm;
// for inner == 1, not centred and without a mask).
enum class Divisor { deviation, length };
struct NormRule {
  bool centred;  // else the mean is taken as 0 (RMS)
  double eps;
  Divisor divisor = Divisor::deviation;
};
// x_hat = (x - mean) rstd, y = gain x_hat + bias, rstd = 1 / sqrt(mean of (x - mean)^2 + eps), means over the real
// elements of each group (a row of 1e4 + noise keeps its variance). Rows that are padding are normalised
// with the same statistics but do not enter them; a group without a real element has mean 0 and variance 0.
// gain and bias [C], each may be empty; mean (written as 0 when not centred) and rstd [groups].
void normalize_forward(NormView v, NormRule rule, Mask mask, In x, In gain, In bias, Out y, Out mean, Out rstd);
// dx (+)= rstd (g - [centred] sum(g) / n - x_hat sum(g x_hat) / n), g = gain dy; the sums run over all elements of the
// group, n is the number of real ones; an element of a padded row, which enters no statistics, has dx (+)= rstd g.
// dgain (+)= sum of dy x_hat, dbias (+)= sum of dy, per channel over all rows.
void normalize_backward(NormView v, NormRule rule, Mask mask, In x, In gain, In mean, In rstd, In dy, Grad dx,
                        Grad dgain, Grad dbias);
// With Divisor::length, u = x / length: dx (+)= rstd (g - u (u . g)), without the second term below eps.
// The same y with given statistics, one (mean, rstd) a group, which are constants: dx (+)= gain rstd dy.
void normalize_by_forward(NormView v, In x, In gain, In bias, In mean, In rstd, Out y);
void normalize_by_backward(NormView v, In x, In gain, In mean, In rstd, In dy, Grad dx, Grad dgain, Grad dbias);
// square [C] = the mean of x^2 over the real rows of x [rows, C]; 0 without one.
void mean_square(Index channels, Mask mask, In x, Out square);
// PowerNorm after its warm-up (Shen et al. 2020, Algorithm 2), z = x rstd, y = gain z + bias, with its own backward:
// dx (+)= rstd (g - projection z), g = gain dy; mean_gz [C] = the mean of g z over the real rows.
void power_backward(Index channels, Mask mask, In x, In gain, In rstd, In projection, In dy, Grad dx, Grad dgain,
                    Grad dbias, Out mean_gz);

// ---- dyt.cpp: y = gain tanh(alpha x) + bias (Zhu et al. 2025), alpha one number, gain and bias [C] ------------------
void dyt_forward(Index channels, Real alpha, In x, In gain, In bias, Out y);
// With t = tanh(alpha x), g = gain dy: dx (+)= g (1 - t^2) alpha, dalpha [1] (+)= sum of g (1 - t^2) x.
void dyt_backward(Index channels, Real alpha, In x, In gain, In dy, Grad dx, Grad dalpha, Grad dgain, Grad dbias);

// ---- attention.cpp, attention_backward.cpp: causal softmax attention ------------------------------------------------
// qkv [batch, time, 3 C] with C = heads * head_dim: q in columns [0, C), k in [C, 2C), v in [2C, 3C), head h in
// columns [h D, (h + 1) D) of each. y [batch, time, C]; scale 1 / sqrt(D).
struct AttentionShape {
  Index batch, time, heads, head_dim;
  Index first = 0;  // queries at positions first .. time - 1 are computed; keys from 0 (a key/value cache has the rest)
};
// log_sum [batch, heads, time]: log2 of the sum of exp(scores) of each query, for the backward; may be empty.
// Dropout acts on the weights: element ((b H + h) time + i) time + j. Rows before `first` of y are not touched.
// A query's result does not depend on `first` nor on how many queries follow: cached and uncached agree bit for bit.
// No [T, T] matrix is stored beyond a block of queries by a block of keys. The backward is of all queries (first = 0).
void attention_forward(AttentionShape s, Dropout drop, In qkv, Out y, Out log_sum);
void attention_backward(AttentionShape s, Dropout drop, In qkv, In y, In log_sum, In dy, Grad dqkv);
// Rotary positions (Su et al. 2021), halves of a head rotated against one another: for i < D / 2, at position p and
// angle a = p base^(-i / (D / 2)):
//   (u_i, u_{i + D/2}) -> (u_i cos a - u_{i + D/2} sin a, u_{i + D/2} cos a + u_i sin a)
// D is even. Acts on q and k of qkv [batch, time, 3 C]; v is copied. Row t has position first + t. The backward
// rotates by -a.
void rope_forward(AttentionShape s, double base, In qkv, Out rotated);
void rope_backward(AttentionShape s, double base, In drotated, Grad dqkv);

// ---- vocab.cpp: embedding and cross-entropy ------------------------------------------------------------------------
struct EmbeddingShape {
  Index batch, time, channels, first = 0;  // row t of a sample has position first + t
};
inline constexpr std::int32_t kIgnore = -100;  // a target that does not count: padding
// x[b, t] = table[token] + position[first + t], or 0 at padded rows. position [>= first + time, C] may be empty.
void embedding_forward(EmbeddingShape s, std::span<const std::int32_t> tokens, Mask mask, In table, In position, Out x);
// dtable [V, C] and dposition, over the real rows, in the order of the rows
void embedding_backward(EmbeddingShape s, std::span<const std::int32_t> tokens, Mask mask, In dx, Grad dtable,
                        Grad dposition);
// row_loss[i] = ln sum_v exp(logits[i, v]) - logits[i, target_i], 0 where the target is kIgnore; log_sum [rows] is the
// first term, kept for the backward. Right at logits of +-1e4.
void cross_entropy_forward(Index vocab, In logits, std::span<const std::int32_t> targets, Out row_loss, Out log_sum);
// dlogits[i, v] (+)= drow_loss[i] (exp(logits[i, v] - log_sum[i]) - [v = target_i]); 0 where the target is kIgnore
void cross_entropy_backward(Index vocab, In logits, std::span<const std::int32_t> targets, In log_sum, In drow_loss,
                            Grad dlogits);

// ---- update.cpp: optimizers' inner loops ---------------------------------------------------------------------------
// Sum of squares, accumulated in double.
double squared_norm(In x);
// Sum of (now - before)^2, likewise; then before = now.
double squared_growth(In now, Out before);
struct AdamwStep {
  double lr, beta1, beta2, eps, weight_decay;
  double grad_scale;                // multiplies the gradient first (clipping)
  double correction1, correction2;  // 1 - beta1^t, 1 - beta2^t
};
// p *= 1 - lr wd;  m = b1 m + (1 - b1) g;  v = b2 v + (1 - b2) g^2;  p -= lr (m / c1) / (sqrt(v / c2) + eps)
void adamw_update(const AdamwStep& s, In grad, Out m, Out v, Out parameter);
struct SgdStep {
  double lr, momentum, weight_decay, grad_scale;
};
// p *= 1 - lr wd;  m = momentum m + g;  p -= lr m      (as PyTorch's SGD, with decoupled decay)
void sgd_update(const SgdStep& s, In grad, Out m, Out parameter);

// ---- peak.cpp: what a core can do at best, measured in the calling thread alone ------------------------------------
struct PeakWork {
  double operations;  // a multiply-add is two
  Real value;         // depends on all of them
};
// Multiply-adds that touch nothing but registers.
PeakWork multiply_adds(Index rounds);
// y = factor x, by loads and stores through the caches, which a memcpy of large blocks may pass by.
void copy_scaled(Real factor, In x, Out y);
// The sum of x, as fast as it can be read.
Real read_all(In x);

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
