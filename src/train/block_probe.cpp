// Sizes and cosines of a block's tensors.
#include "normlab/train/block_probe.h"

#include <cmath>

namespace normlab {

double BlockProbe::MeanSquare::root() const { return count > 0 ? std::sqrt(squares / count) : 0; }

// The cosines of all pairs of rows together, with u the rows scaled to length 1: |sum u|^2 - sum |u|^2, both ways
// round.
void BlockProbe::see(Site site, Index block, const Tensor& x, Mask mask) {
  Seen& seen = seen_[static_cast<std::size_t>(block)];
  MeanSquare& size = site == Site::attn_output  ? seen.attn_output
                     : site == Site::mlp_output ? seen.mlp_output
                                                : seen.residual;
  std::vector<double> sum(static_cast<std::size_t>(x.shape().last()), 0.0);
  double rows = 0;
  for_real_rows(x, mask, [&](In row) {
    const double squares = kernels::squared_norm(row);
    size.squares += squares;
    size.count += static_cast<double>(row.size());
    if (site != Site::block_output || squares == 0) return;
    const double inverse = 1 / std::sqrt(squares);
    for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += static_cast<double>(row[c]) * inverse;
    rows += 1;
  });
  if (site != Site::block_output) return;
  double all = 0;
  for (const double value : sum) all += value * value;
  seen.cosines += all - rows;
  seen.pairs += rows * (rows - 1);
  x.retain_grad();
  seen.block_output = x;
}

void BlockProbe::end_part() {
  for (Seen& seen : seen_) {
    if (seen.block_output) seen.grad_squares += kernels::squared_norm(seen.block_output.grad());
    seen.block_output = {};
  }
}

std::vector<BlockFigures> BlockProbe::take() {
  end_part();
  std::vector<BlockFigures> figures;
  for (Seen& seen : seen_) {
    figures.push_back({seen.residual.root(), MeanSquare{seen.grad_squares, seen.residual.count}.root(),
                       seen.attn_output.root(), seen.mlp_output.root(),
                       seen.pairs > 0 ? seen.cosines / seen.pairs : 0});
    seen = {};
  }
  return figures;
}

}  // namespace normlab
