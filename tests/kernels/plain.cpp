// The definitions, and their derivatives as found with the chain rule.
#include "kernels/plain.h"

#include <algorithm>
#include <cmath>

namespace normlab::plain {

void linear_forward(Index rows, Index in, Index out, const double* x, const double* weight, const double* bias,
                    double* y) {
  for (Index row = 0; row < rows; ++row)
    for (Index o = 0; o < out; ++o) {
      double sum = bias[o];
      for (Index i = 0; i < in; ++i) sum += x[row * in + i] * weight[o * in + i];
      y[row * out + o] = sum;
    }
}

void linear_backward(Index rows, Index in, Index out, const double* x, const double* weight, const double* dy,
                     double* dx, double* dweight, double* dbias) {
  std::fill_n(dx, rows * in, 0.0);
  std::fill_n(dweight, out * in, 0.0);
  std::fill_n(dbias, out, 0.0);
  for (Index row = 0; row < rows; ++row)
    for (Index o = 0; o < out; ++o) {
      const double d = dy[row * out + o];
      dbias[o] += d;
      for (Index i = 0; i < in; ++i) {
        dx[row * in + i] += d * weight[o * in + i];
        dweight[o * in + i] += d * x[row * in + i];
      }
    }
}

void layer_norm_forward(Index rows, Index C, double eps, const double* x, const double* gain, const double* bias,
                        double* y, double* mean, double* rstd) {
  for (Index row = 0; row < rows; ++row, x += C, y += C) {
    double sum = 0, squares = 0;
    for (Index c = 0; c < C; ++c) sum += x[c];
    mean[row] = sum / static_cast<double>(C);
    for (Index c = 0; c < C; ++c) squares += (x[c] - mean[row]) * (x[c] - mean[row]);
    rstd[row] = 1 / std::sqrt(squares / static_cast<double>(C) + eps);
    for (Index c = 0; c < C; ++c) y[c] = gain[c] * (x[c] - mean[row]) * rstd[row] + bias[c];
  }
}

// With g = gain dy: dx = rstd (g - mean of g - x_hat mean of g x_hat).
void layer_norm_backward(Index rows, Index C, const double* x, const double* gain, const double* mean,
                         const double* rstd, const double* dy, double* dx, double* dgain, double* dbias) {
  std::fill_n(dgain, C, 0.0);
  std::fill_n(dbias, C, 0.0);
  for (Index row = 0; row < rows; ++row, x += C, dy += C, dx += C) {
    double mean_g = 0, mean_gx = 0;
    for (Index c = 0; c < C; ++c) {
      const double x_hat = (x[c] - mean[row]) * rstd[row];
      dgain[c] += dy[c] * x_hat;
      dbias[c] += dy[c];
      mean_g += gain[c] * dy[c] / static_cast<double>(C);
      mean_gx += gain[c] * dy[c] * x_hat / static_cast<double>(C);
    }
    for (Index c = 0; c < C; ++c) {
      const double x_hat = (x[c] - mean[row]) * rstd[row];
      dx[c] = rstd[row] * (gain[c] * dy[c] - mean_g - x_hat * mean_gx);
    }
  }
}

void rms_norm_forward(Index rows, Index C, double eps, const double* x, const double* gain, double* y, double* rstd) {
  for (Index row = 0; row < rows; ++row, x += C, y += C) {
    double squares = 0;
    for (Index c = 0; c < C; ++c) squares += x[c] * x[c];
    rstd[row] = 1 / std::sqrt(squares / static_cast<double>(C) + eps);
    for (Index c = 0; c < C; ++c) y[c] = gain[c] * x[c] * rstd[row];
  }
}

// As LayerNorm's, without what the mean brings in: dx = rstd (g - x_hat mean of g x_hat).
void rms_norm_backward(Index rows, Index C, const double* x, const double* gain, const double* rstd, const double* dy,
                       double* dx, double* dgain) {
  std::fill_n(dgain, C, 0.0);
  for (Index row = 0; row < rows; ++row, x += C, dy += C, dx += C) {
    double mean_gx = 0;
    for (Index c = 0; c < C; ++c) {
      const double x_hat = x[c] * rstd[row];
      dgain[c] += dy[c] * x_hat;
      mean_gx += gain[c] * dy[c] * x_hat / static_cast<double>(C);
    }
    for (Index c = 0; c < C; ++c) dx[c] = rstd[row] * (gain[c] * dy[c] - x[c] * rstd[row] * mean_gx);
  }
}

void batch_norm_forward(Index rows, Index C, double eps, const std::uint8_t* real, const double* x, const double* gain,
                        const double* bias, double* y, double* mean, double* rstd) {
  for (Index c = 0; c < C; ++c) {
    double n = 0, sum = 0, squares = 0;
    for (Index row = 0; row < rows; ++row)
      if (!real || real[row]) n += 1, sum += x[row * C + c];
    mean[c] = n > 0 ? sum / n : 0;
    for (Index row = 0; row < rows; ++row)
      if (!real || real[row]) squares += (x[row * C + c] - mean[c]) * (x[row * C + c] - mean[c]);
    rstd[c] = 1 / std::sqrt((n > 0 ? squares / n : 0) + eps);
    for (Index row = 0; row < rows; ++row) y[row * C + c] = gain[c] * (x[row * C + c] - mean[c]) * rstd[c] + bias[c];
  }
}

// All rows use the statistics, so that all enter the sums of g and g x_hat; a padded row enters no statistics, so that
// its dx is rstd g.
void batch_norm_backward(Index rows, Index C, const std::uint8_t* real, const double* x, const double* gain,
                         const double* mean, const double* rstd, const double* dy, double* dx, double* dgain,
                         double* dbias) {
  for (Index c = 0; c < C; ++c) {
    double n = 0;
    dgain[c] = dbias[c] = 0;
    for (Index row = 0; row < rows; ++row) {
      if (!real || real[row]) n += 1;
      dgain[c] += dy[row * C + c] * (x[row * C + c] - mean[c]) * rstd[c];
      dbias[c] += dy[row * C + c];
    }
    for (Index row = 0; row < rows; ++row) {
      const double x_hat = (x[row * C + c] - mean[c]) * rstd[c];
      const double from_statistics = !real || real[row] ? (dbias[c] + x_hat * dgain[c]) / n : 0;
      dx[row * C + c] = gain[c] * rstd[c] * (dy[row * C + c] - from_statistics);
    }
  }
}

void attention_forward(Index B, Index T, Index H, Index D, const double* qkv, const double* kept, double* weights,
                       double* y) {
  const Index C = H * D;
  const double scale = 1 / std::sqrt(static_cast<double>(D));
  std::fill_n(y, B * T * C, 0.0);
  std::fill_n(weights, B * H * T * T, 0.0);
  for (Index b = 0; b < B; ++b)
    for (Index h = 0; h < H; ++h)
      for (Index i = 0; i < T; ++i) {
        const double* q = qkv + (b * T + i) * 3 * C + h * D;
        double* weight = weights + ((b * H + h) * T + i) * T;
        double highest = -HUGE_VAL, total = 0;
        for (Index j = 0; j <= i; ++j) {
          const double* k = qkv + (b * T + j) * 3 * C + C + h * D;
          for (Index d = 0; d < D; ++d) weight[j] += scale * q[d] * k[d];
          highest = std::max(highest, weight[j]);
        }
        for (Index j = 0; j <= i; ++j) total += weight[j] = std::exp(weight[j] - highest);
        for (Index j = 0; j <= i; ++j) {
          const double* v = qkv + (b * T + j) * 3 * C + 2 * C + h * D;
          weight[j] /= total;
          const double factor = kept ? kept[weight - weights + j] : 1;
          for (Index d = 0; d < D; ++d) y[(b * T + i) * C + h * D + d] += factor * weight[j] * v[d];
        }
      }
}

// With dp_j = factor_j dy . v_j: dscore_j = p_j (dp_j - sum over k of p_k dp_k).
void attention_backward(Index B, Index T, Index H, Index D, const double* qkv, const double* kept,
                        const double* weights, const double* dy, double* dqkv) {
  const Index C = H * D;
  const double scale = 1 / std::sqrt(static_cast<double>(D));
  std::fill_n(dqkv, B * T * 3 * C, 0.0);
  for (Index b = 0; b < B; ++b)
    for (Index h = 0; h < H; ++h)
      for (Index i = 0; i < T; ++i) {
        const Index query = (b * T + i) * 3 * C + h * D;
        const double* out = dy + (b * T + i) * C + h * D;
        const double* weight = weights + ((b * H + h) * T + i) * T;
        const auto factor = [&](Index j) { return kept ? kept[weight - weights + j] : 1; };
        const auto dweight = [&](Index j) {
          double sum = 0;
          for (Index d = 0; d < D; ++d) sum += factor(j) * out[d] * qkv[(b * T + j) * 3 * C + 2 * C + h * D + d];
          return sum;
        };
        double mean = 0;
        for (Index j = 0; j <= i; ++j) mean += weight[j] * dweight(j);
        for (Index j = 0; j <= i; ++j) {
          const Index key = (b * T + j) * 3 * C + C + h * D, value = key + C;
          const double dscore = weight[j] * (dweight(j) - mean);
          for (Index d = 0; d < D; ++d) {
            dqkv[query + d] += scale * dscore * qkv[key + d];
            dqkv[key + d] += scale * dscore * qkv[query + d];
            dqkv[value + d] += factor(j) * weight[j] * out[d];
          }
        }
      }
}

namespace {

double log_sum_exp(Index V, const double* logits) {
  const double highest = *std::max_element(logits, logits + V);
  double total = 0;
  for (Index v = 0; v < V; ++v) total += std::exp(logits[v] - highest);
  return highest + std::log(total);
}

}  // namespace

void cross_entropy_forward(Index rows, Index V, const double* logits, const std::int32_t* targets, double* loss) {
  for (Index row = 0; row < rows; ++row, logits += V)
    loss[row] = targets[row] < 0 ? 0 : log_sum_exp(V, logits) - logits[targets[row]];
}

// The probability of each token, less 1 for the target.
void cross_entropy_backward(Index rows, Index V, const double* logits, const std::int32_t* targets, const double* dloss,
                            double* dlogits) {
  for (Index row = 0; row < rows; ++row, logits += V, dlogits += V) {
    const double log_sum = log_sum_exp(V, logits), scale = targets[row] < 0 ? 0 : dloss[row];
    for (Index v = 0; v < V; ++v) dlogits[v] = scale * (std::exp(logits[v] - log_sum) - (v == targets[row] ? 1 : 0));
  }
}

void gelu_forward(Index count, const double* x, double* y) {
  for (Index i = 0; i < count; ++i) y[i] = x[i] * std::erfc(-x[i] / std::sqrt(2.0)) / 2;
}

// Phi(x) + x phi(x), phi the normal density.
void gelu_backward(Index count, const double* x, const double* dy, double* dx) {
  constexpr double kNormalDensity = 0.39894228040143268;  // 1 / sqrt(2 pi)
  for (Index i = 0; i < count; ++i)
    dx[i] = dy[i] * (std::erfc(-x[i] / std::sqrt(2.0)) / 2 + x[i] * kNormalDensity * std::exp(-x[i] * x[i] / 2));
}

}  // namespace normlab::plain
