// Figures of each block from one step: sizes of what flows through it, and how alike the tokens are.
#pragma once

#include <vector>

#include "normlab/nn/pass.h"

namespace normlab {

// Root mean squares over the real rows of all micro-batches; the cosine is the mean over pairs of two different real
// tokens of a micro-batch.
struct BlockFigures {
  double residual_rms = 0;       // of the residual stream after the block
  double residual_grad_rms = 0;  // of the loss's gradient there
  double attn_output_rms = 0, mlp_output_rms = 0;
  double token_cosine = 0;  // of the states after the block
};

// Their names in metrics.jsonl and in `inspect --json`; TensorBoard, CSV and reports take whatever is here.
struct BlockFigureName {
  const char* name;
  double BlockFigures::*value;
};
inline constexpr BlockFigureName kBlockFigures[] = {{"residual_rms", &BlockFigures::residual_rms},
                                                    {"residual_grad_rms", &BlockFigures::residual_grad_rms},
                                                    {"attn_output_rms", &BlockFigures::attn_output_rms},
                                                    {"mlp_output_rms", &BlockFigures::mlp_output_rms},
                                                    {"token_cosine", &BlockFigures::token_cosine}};

class BlockProbe : public Probe {
 public:
  explicit BlockProbe(Index blocks) : seen_(static_cast<std::size_t>(blocks)) {}
  void see(Site site, Index block, const Tensor& x, Mask mask) override;
  // After the backward of a micro-batch, where more follow: adds up its gradients, and lets its tensors go.
  void end_part();
  // What has been seen, to be asked for after the backward; then starts again.
  std::vector<BlockFigures> take();

 private:
  struct MeanSquare {
    double squares = 0, count = 0;
    double root() const;
  };
  struct Seen {
    MeanSquare attn_output, mlp_output, residual;
    double grad_squares = 0;
    double cosines = 0, pairs = 0;
    Tensor block_output;  // of the micro-batch at hand; its gradient comes with the backward
  };
  std::vector<Seen> seen_;
};

// f(row) for each row of x [B, T, C] that is real.
template <class F>
void for_real_rows(const Tensor& x, Mask mask, F f) {
  const std::size_t channels = static_cast<std::size_t>(x.shape().last());
  for (std::size_t row = 0; row * channels < x.values().size(); ++row)
    if (mask.empty() || mask[row]) f(In(x.values().subspan(row * channels, channels)));
}

}  // namespace normlab
