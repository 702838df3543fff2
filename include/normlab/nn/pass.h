// What travels with one pass through the model: modules have no mode of their own.
#pragma once

#include <string>
#include <vector>

#include "normlab/base/rng.h"
#include "normlab/tensor/tensor.h"

namespace normlab {
inline namespace NORMLAB_REAL {

// The queries, keys and values of all positions so far, of one sample, a [1, context, 3 C] tensor a block.
struct KeyValueCache {
  std::vector<Tensor> qkv;
  Index filled = 0;  // positions that every block has
};

// Of batch to running statistics, root mean square over the features: of the difference of the means in units of the
// running deviation, and of the relative difference of the variances (of power: mean squares, and no means).
struct StatisticsDistance {
  double mean = 0, variance = 0;
};

// Looks at what flows through the model. The tensors are those of the graph: their gradients can be had after the
// backward by retain_grad().
class Probe {
 public:
  enum class Site { attn_output, mlp_output, block_output };
  virtual ~Probe() = default;
  // x [B, T, C], of which the rows that `mask` calls real count
  virtual void see(Site site, Index block, const Tensor& x, Mask mask) = 0;
  // The queries, keys and values [B, T, 3 C] that a block's attention works on.
  virtual void see_qkv(Index block, const Tensor& qkv, Mask mask) { (void)block, (void)qkv, (void)mask; }
  // What goes into the norm of that name, as "blocks.3.attn_norm".
  virtual void see_norm(const std::string& name, const Tensor& x, Mask mask) { (void)name, (void)x, (void)mask; }
  // In a pass with batch statistics: how far they lie from the running ones of the norm of that name.
  virtual void see_statistics(const std::string& norm, StatisticsDistance distance) { (void)norm, (void)distance; }
};

struct Pass {
  bool training = false;          // statistics of the batch, running averages updated, dropout
  bool batch_statistics = false;  // evaluation on statistics of the batch; nothing is updated
  Mask mask{};                    // which rows of [B, T] are real
  Random dropout{0, "dropout"};
  KeyValueCache* cache = nullptr;
  Probe* probe = nullptr;
  std::uint64_t dropout_sites = 0;  // met so far in this pass

  // Each site in the model, in the order of the forward, has its own stream.
  Dropout next_dropout(double p) {
    if (!training || p == 0) return {};
    return {static_cast<Real>(p), dropout.sub(dropout_sites++).key()};
  }
};

}  // namespace NORMLAB_REAL
}  // namespace normlab
