// Causal attention and rotary positions.
#include <algorithm>

#include "normlab/ops/ops.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace ops {
namespace {

kernels::AttentionShape shape_of(const char* op, const Tensor& qkv, Index heads) {
  const Shape& s = qkv.shape();
  check(s.rank() == 3 && s[2] % (3 * heads) == 0, op, ": qkv [B, T, 3 C] with C a multiple of ", heads,
        " heads is required, got ", s);
  return {s[0], s[1], heads, s[2] / (3 * heads)};
}

}  // namespace

Tensor attention(const Tensor& qkv, Index heads, Dropout drop) {
  const kernels::AttentionShape s = shape_of("attention", qkv, heads);
  Tensor y(Shape{s.batch, s.time, heads * s.head_dim});
  Tensor log_sum(Shape{s.batch, heads, s.time});
  kernels::attention_forward(s, drop, qkv.values(), y.values(), log_sum.values());
  return record("attention", y, {qkv}, [=](const Tensor& y) {
    kernels::attention_backward(s, drop, qkv.values(), y.values(), log_sum.values(), y.grad(), qkv.grad_sink());
  });
}

Tensor attention_tail(const Tensor& qkv, Index rows, Index heads, Index first) {
  kernels::AttentionShape s = shape_of("attention_tail", qkv, heads);
  const Index channels = heads * s.head_dim;
  check(s.batch == 1 && first < rows && rows <= s.time, "attention_tail: rows ", first, " to ", rows,
        " of one sample are required, got qkv ", qkv.shape());
  s.time = rows;
  s.first = first;
  Tensor all(Shape{1, rows, channels}), tail(Shape{1, rows - first, channels});
  kernels::attention_forward(s, {}, qkv.values().first(static_cast<std::size_t>(rows * 3 * channels)), all.values(),
                             {});
  std::ranges::copy(all.values().subspan(static_cast<std::size_t>(first * channels)), tail.values().begin());
  return record("attention", tail, {}, [](const Tensor&) {});
}

Tensor rope(const Tensor& qkv, Index heads, double base, Index first) {
  kernels::AttentionShape s = shape_of("rope", qkv, heads);
  check(s.head_dim % 2 == 0, "rope: the head size must be even, got ", s.head_dim);
  s.first = first;
  Tensor rotated(qkv.shape());
  kernels::rope_forward(s, base, qkv.values(), rotated.values());
  return record("rope", rotated, {qkv},
                [=](const Tensor& y) { kernels::rope_backward(s, base, y.grad(), qkv.grad_sink()); });
}

}  // namespace ops
}  // namespace NORMLAB_REAL
}  // namespace normlab
