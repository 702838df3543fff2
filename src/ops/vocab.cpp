// Between tokens and vectors: the embedding, and the cross-entropy of logits.
#include "normlab/base/parallel.h"
#include "normlab/ops/ops.h"

namespace normlab::inline NORMLAB_REAL::ops {

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
  kernels::embedding_forward(s, tokens, mask, table.values(), position ? In(position.values()) : In(), x.values());
  return record("embedding", x, {table, position}, [=](const Tensor& x) {
    kernels::embedding_backward(s, tokens, mask, x.grad(), table.grad_sink(), position.grad_sink());
  });
}

Tensor cross_entropy(const Tensor& logits, std::span<const std::int32_t> targets, Real scale, Out row_loss) {
  const Index vocab = logits.shape().last(), rows = logits.shape().rows();
  check(static_cast<Index>(targets.size()) == rows, "cross_entropy: ", rows, " targets are required, got ",
        targets.size());
  for (const std::int32_t target : targets)
    check(target == kernels::kIgnore || (target >= 0 && target < vocab), "cross_entropy: target ", target,
          " is outside a vocabulary of ", vocab);
  Tensor losses(Shape{rows}), log_sum(Shape{rows}), loss(Shape{});
  kernels::cross_entropy_forward(vocab, logits.values(), targets, losses.values(), log_sum.values());
  const In each = losses.values();
  double total = 0;
  for (const Real row : each) total += static_cast<double>(row);
  loss.values()[0] = static_cast<Real>(total * static_cast<double>(scale));
  if (!row_loss.empty()) std::copy(each.begin(), each.end(), row_loss.begin());
  return record("cross_entropy", loss, {logits}, [=](const Tensor& loss) {
    Tensor drow(Shape{rows});
    std::ranges::fill(drow.values(), loss.grad()[0] * scale);
    kernels::cross_entropy_backward(vocab, logits.values(), targets, log_sum.values(), drow.values(),
                                    logits.grad_sink());
  });
}

}  // namespace normlab::inline NORMLAB_REAL::ops
