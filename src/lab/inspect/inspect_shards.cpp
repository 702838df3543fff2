// What a batch in shards does to the gradient.
#include <algorithm>
#include <cmath>

#include "normlab/base/check.h"
#include "normlab/lab/inspect/inspect.h"

namespace normlab {
namespace {

// Of the batch's mean loss, from passes of `rows` rows each; running averages are left as they were.
std::vector<Real> gradient_by(const Gpt& model, const Batch& batch, Index rows) {
  const KeptBuffers buffers(model.store());
  model.store().clear_gradients();
  for (Index begin = 0; begin < batch.rows; begin += rows) {
    const Batch shard = rows_of(batch, begin, rows);
    Pass pass{.training = true};
    backward(model.loss(shard, pass, batch.target_count()));
  }
  buffers.restore();
  std::vector<Real> gradient;
  for (const Named& parameter : model.store().parameters())
    gradient.insert(gradient.end(), parameter.tensor.grad().begin(), parameter.tensor.grad().end());
  return gradient;
}

}  // namespace

std::vector<ShardPoint> shard_differences(const Gpt& model, const Batch& batch, const std::vector<Index>& shards) {
  const std::vector<Real> whole = gradient_by(model, batch, batch.rows);
  const double size = std::sqrt(kernels::squared_norm(whole));
  std::vector<ShardPoint> points;
  for (const Index count : shards) {
    check<UserError>(batch.rows % count == 0, "inspect: --shards: ", count, " does not divide train.batch_size, ",
                     batch.rows);
    std::vector<Real> difference = gradient_by(model, batch, batch.rows / count);
    std::ranges::transform(difference, whole, difference.begin(), std::minus<>());
    points.push_back({count, std::sqrt(kernels::squared_norm(difference)) / size});
  }
  return points;
}

}  // namespace normlab
