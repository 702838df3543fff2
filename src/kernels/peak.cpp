// What a core can do at best, to measure the other kernels against: multiply-adds, copying, reading.
#include "normlab/kernels/simd.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {
namespace {

// Chains enough to hide the latency of two multiply-add units (4 or 5 cycles each), and few enough for 16 registers.
constexpr int kChains = 12;

}  // namespace

PeakWork multiply_adds(Index rounds) {
  Lanes chain[kChains];
  // From 2 upwards: 1 would stay 1, and the compiler knows that.
  for (int i = 0; i < kChains; ++i) chain[i] = broadcast(static_cast<Real>(i + 2));
  const Lanes factor = broadcast(Real(0.9990234375)), term = broadcast(Real(0.0009765625));  // 1 - 2^-10, 2^-10
  for (Index round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) chain[i] = chain[i] * factor + term;
  }
  Lanes total{};
  for (int i = 0; i < kChains; ++i) total += chain[i];
  return {2.0 * static_cast<double>(rounds * kChains * kLanes), sum(total)};
}

void copy_scaled(Real factor, In x, Out y) {
  for_lanes(0, static_cast<Index>(x.size()),
            [&](Index i, auto n) { store(y.data() + i, load(x.data() + i, n) * factor, n); });
}

Real read_all(In x) {
  constexpr Index kStep = 4 * kLanes;
  Lanes part[4] = {};
  const Index n = static_cast<Index>(x.size());
  Index i = 0;
  for (; i + kStep <= n; i += kStep)
    for (int j = 0; j < 4; ++j) part[j] += load(x.data() + i + j * kLanes);
  for_lanes(i, n, [&](Index at, auto count) { part[0] += load(x.data() + at, count); });
  return sum((part[0] + part[1]) + (part[2] + part[3]));
}

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
