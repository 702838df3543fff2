// Rotary positions: the two halves of each head of q and k rotated against one another by an angle of the position.
#include <cmath>
#include <vector>

#include "normlab/base/parallel.h"
#include "normlab/kernels/simd.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {
namespace {

// cos and sin of the angle of each (position, i): [time, 2, D / 2], computed in double.
std::vector<Real> new_rotations(AttentionShape s, double base) {
  const Index half = s.head_dim / 2;
  std::vector<double> frequency(static_cast<std::size_t>(half));
  for (Index i = 0; i < half; ++i)
    frequency[static_cast<std::size_t>(i)] = std::pow(base, -static_cast<double>(i) / static_cast<double>(half));
  std::vector<Real> table(static_cast<std::size_t>(s.time * 2 * half));
  parallel_for(s.time, 40 * half, [&](Index t) {
    Real* cosines = table.data() + t * 2 * half;
    for (Index i = 0; i < half; ++i) {
      const double angle = static_cast<double>(s.first + t) * frequency[static_cast<std::size_t>(i)];
      cosines[i] = static_cast<Real>(std::cos(angle));
      cosines[half + i] = static_cast<Real>(std::sin(angle));
    }
  });
  return table;
}

// Kept from call to call: the layers of a model, and the steps of a training, ask for the same ones.
const std::vector<Real>& rotations(AttentionShape s, double base) {
  struct Kept {
    Index time = 0, first = 0, head_dim = 0;
    double base = 0;
    std::vector<Real> table;
  };
  static thread_local Kept kept;
  if (kept.time != s.time || kept.first != s.first || kept.head_dim != s.head_dim || kept.base != base)
    kept = {s.time, s.first, s.head_dim, base, new_rotations(s, base)};
  return kept.table;
}

// result (+)= the rows of `qkv` with q and k rotated by the angles' sign times the angle.
void rotate(AttentionShape s, double base, Real sign, In qkv, Grad result) {
  const Index half = s.head_dim / 2, channels = s.heads * s.head_dim;
  const std::vector<Real>& table = rotations(s, base);
  parallel_for(s.batch * s.time, 6 * channels, [&](Index row) {
    const Real* cosines = table.data() + row % s.time * 2 * half;
    const Index begin = row * 3 * channels;
    for (Index head = 0; head < 2 * s.heads; ++head) {  // those of q, then those of k
      const Index lower = begin + head * s.head_dim, upper = lower + half;
      for_lanes(0, half, [&](Index i, auto n) {
        const Lanes cosine = load(cosines + i, n), sine = sign * load(cosines + half + i, n);
        const Lanes u = load(qkv.data() + lower + i, n), w = load(qkv.data() + upper + i, n);
        put(result, lower + i, u * cosine - w * sine, n);
        put(result, upper + i, w * cosine + u * sine, n);
      });
    }
    for_lanes(begin + 2 * channels, begin + 3 * channels,
              [&](Index i, auto n) { put(result, i, load(qkv.data() + i, n), n); });
  });
}

}  // namespace

void rope_forward(AttentionShape s, double base, In qkv, Out rotated) { rotate(s, base, 1, qkv, Grad{rotated}); }

void rope_backward(AttentionShape s, double base, In drotated, Grad dqkv) {
  if (dqkv) rotate(s, base, -1, drotated, dqkv);
}

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
