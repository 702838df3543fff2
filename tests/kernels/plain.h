// What the main kernels compute, in the plainest loops and in double: to be read, and to test the fast ones against.
// Arrays are row-major, with their shapes next to the names; d means "gradient of the loss with respect to". A gradient
// is written over what is there.
#pragma once

#include <cstdint>

#include "normlab/base/real.h"

namespace normlab::plain {

// The matrix product with a bias: y [rows, out] = x [rows, in] weight^T + bias; weight [out, in], bias [out].
void linear_forward(Index rows, Index in, Index out, const double* x, const double* weight, const double* bias,
                    double* y);
void linear_backward(Index rows, Index in, Index out, const double* x, const double* weight, const double* dy,
                     double* dx, double* dweight, double* dbias);

// Ba et al. 2016. Each row of x [rows, C] by its own statistics: y = gain x_hat + bias, x_hat = (x - mean) rstd, with
// rstd = 1 / sqrt(variance + eps). mean and rstd [rows], gain and bias [C].
void layer_norm_forward(Index rows, Index C, double eps, const double* x, const double* gain, const double* bias,
                        double* y, double* mean, double* rstd);
void layer_norm_backward(Index rows, Index C, const double* x, const double* gain, const double* mean,
                         const double* rstd, const double* dy, double* dx, double* dgain, double* dbias);

// Zhang & Sennrich 2019. y = gain x rstd, rstd = 1 / sqrt(mean of x^2 + eps) of each row.
void rms_norm_forward(Index rows, Index C, double eps, const double* x, const double* gain, double* y, double* rstd);
void rms_norm_backward(Index rows, Index C, const double* x, const double* gain, const double* rstd, const double* dy,
                       double* dx, double* dgain);

// Ioffe & Szegedy 2015. Each channel by its statistics over the rows that are real, all of them where `real` is null;
// padded rows are normalised too. mean and rstd [C].
void batch_norm_forward(Index rows, Index C, double eps, const std::uint8_t* real, const double* x, const double* gain,
                        const double* bias, double* y, double* mean, double* rstd);
void batch_norm_backward(Index rows, Index C, const std::uint8_t* real, const double* x, const double* gain,
                         const double* mean, const double* rstd, const double* dy, double* dx, double* dgain,
                         double* dbias);

// Causal attention, Vaswani et al. 2017. qkv [B, T, 3 C] with C = H D: q, k and v of head h in columns h D .. of each
// third; y [B, T, C]; weights [B, H, T, T] are those of the softmax. `kept` [B, H, T, T] is what dropout multiplies
// them by; null: nothing.
void attention_forward(Index B, Index T, Index H, Index D, const double* qkv, const double* kept, double* weights,
                       double* y);
void attention_backward(Index B, Index T, Index H, Index D, const double* qkv, const double* kept,
                        const double* weights, const double* dy, double* dqkv);

// loss [rows] = ln (sum over v of exp(logits[v])) - logits[target]; 0 where the target is negative. logits [rows, V].
void cross_entropy_forward(Index rows, Index V, const double* logits, const std::int32_t* targets, double* loss);
void cross_entropy_backward(Index rows, Index V, const double* logits, const std::int32_t* targets, const double* dloss,
                            double* dlogits);

// Hendrycks & Gimpel 2016: y = x Phi(x), Phi the normal distribution function.
void gelu_forward(Index count, const double* x, double* y);
void gelu_backward(Index count, const double* x, const double* dy, double* dx);

}  // namespace normlab::plain
