// Between tokens and vectors: the embedding, and the cross-entropy of logits, with the head that makes them or alone.
#include "normlab/base/parallel.h"
#include "normlab/ops/ops.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace ops {

Tensor embedding(Shape batch_time, std::span<const std::int32_t> tokens, Mask mask, const Tensor& table,
                 const Tensor& position, Index first) {
  const kernels::EmbeddingShape s{batch_time[0], batch_time[1], table.shape()[1], first};
  check(static_cast<Index>(tokens.size()) == s.batch * s.time, "embedding: ", tokens.size(), " tokens do not fill ",
        batch_time);
  check(!position || (position.shape()[0] >= first + s.time && position.shape()[1] == s.channels),
        "embedding: positions up to ", first + s.time, " are required");
  for (const std::int32_t token : tokens)
    check(token >= 0 && token < table.shape()[0], "embedding: token ", token, " is outside a vocabulary of ",
          table.shape()[0]);
  Tensor x(Shape{s.batch, s.time, s.channels});
  kernels::embedding_forward(s, tokens, mask, table.values(), values_or_none(position), x.values());
  return record("embedding", x, {table, position}, [=](const Tensor& x) {
    kernels::embedding_backward(s, tokens, mask, x.grad(), table.grad_sink(), position.grad_sink());
  });
}

namespace {

void check_targets(std::span<const std::int32_t> targets, Index rows, Index vocab) {
  check(static_cast<Index>(targets.size()) == rows, "cross_entropy: ", rows, " targets are required, got ",
        targets.size());
  for (const std::int32_t target : targets)
    check(target == kernels::kIgnore || (target >= 0 && target < vocab), "cross_entropy: target ", target,
          " is outside a vocabulary of ", vocab);
}

// The scaled sum of the rows' losses, added up in double; a copy of each where one is wanted.
Tensor total_loss(In each, Real scale, Out row_loss) {
  Tensor loss(Shape{});
  double total = 0;
  for (const Real row : each) total += static_cast<double>(row);
  loss.values()[0] = static_cast<Real>(total * static_cast<double>(scale));
  if (!row_loss.empty()) std::ranges::copy(each, row_loss.begin());
  return loss;
}

}  // namespace

Tensor cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets, Real scale, Out row_loss) {
  const Index vocab = logits.shape().last(), rows = logits.shape().rows();
  check_targets(targets, rows, vocab);
  Tensor losses(Shape{rows}), log_sum(Shape{rows});
  kernels::cross_entropy_forward(vocab, logits.values(), targets, losses.values(), log_sum.values());
  const Tensor loss = total_loss(losses.values(), scale, row_loss);
  return record("cross_entropy", loss, {logits}, [=](const Tensor& loss) {
    Tensor drow(Shape{rows});
    std::ranges::fill(drow.values(), loss.grad()[0] * scale);
    kernels::cross_entropy_backward(vocab, logits.values(), targets, log_sum.values(), drow.values(),
                                    logits.grad_sink());
  });
}

// The gradients are computed with the loss, slice by slice, so that no more logits are held than those of one slice of
// rows: as many as a product's block of depth, which leaves the sum over rows in dweight in its order.
Tensor linear_cross_entropy(const Tensor& x, const Tensor& weight, std::span<const std::int32_t> targets, Real scale,
                            Out row_loss) {
  constexpr Index kSlice = 384;
  const Index vocab = weight.shape()[0], channels = weight.shape()[1], rows = x.shape().rows();
  check(x.shape().last() == channels, "linear_cross_entropy: weight ", weight.shape(), " does not fit x ", x.shape());
  check_targets(targets, rows, vocab);
  const bool keeps = keeps_graph({x, weight});
  Tensor dx, dweight, losses(Shape{rows});
  if (keeps && x.needs_grad()) dx = Tensor(x.shape());
  if (keeps && weight.needs_grad()) dweight = Tensor(weight.shape());
  {
    const Index slice = std::min(rows, kSlice);
    const Tensor logits(Shape{slice, vocab}), log_sum(Shape{slice}), drow(Shape{slice});
    std::ranges::fill(drow.values(), scale);
    const auto part = [](auto whole, Index first, Index count) {
      return whole.subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(count));
    };
    for (Index first = 0; first < rows; first += kSlice) {
      const Index n = std::min(kSlice, rows - first);
      const kernels::LinearShape shape{n, channels, vocab};
      const Out some = part(logits.values(), 0, n * vocab), sums = part(log_sum.values(), 0, n);
      const In inputs = part(x.values(), first * channels, n * channels);
      kernels::linear_forward(shape, Activation::none, inputs, weight.values(), {}, {}, {}, some);
      kernels::cross_entropy_forward(vocab, some, part(targets, first, n), part(losses.values(), first, n), sums);
      if (!keeps) continue;
      kernels::cross_entropy_backward(vocab, some, part(targets, first, n), sums, part(drow.values(), 0, n), {some});
      if (dweight) kernels::linear_backward_weight(shape, some, inputs, {dweight.values(), first > 0}, {});
      if (dx)
        kernels::linear_backward_input(shape, some, weight.values(),
                                       {part(dx.values(), first * channels, n * channels)});
    }
  }
  return record("linear_cross_entropy", total_loss(losses.values(), scale, row_loss), {x, weight},
                [=](const Tensor& loss) {
                  if (dweight) kernels::accumulate(loss.grad()[0], dweight.values(), weight.grad_sink());
                  if (dx) kernels::accumulate(loss.grad()[0], dx.values(), x.grad_sink());
                });
}

}  // namespace ops
}  // namespace NORMLAB_REAL
}  // namespace normlab
