// Which elements a dropout keeps, a vector at a time.
#pragma once

#include <cmath>
#include <type_traits>

#include "normlab/base/rng.h"
#include "normlab/kernels/simd.h"

namespace normlab {
inline namespace NORMLAB_REAL {

class DropoutFactor {
  using Draw = LaneBit;
  using Draws [[gnu::vector_size(kVectorBytes)]] = Draw;

 public:
  explicit DropoutFactor(Dropout drop)
      : key_(drop.key),
        threshold_(static_cast<Draw>(std::ceil(static_cast<double>(drop.p) * 0x1p32))),
        scale_(1 / (1 - drop.p)) {}

  // 1 / (1 - p) in the lanes of elements first, first + step, ... that are kept, 0 in the others.
  Lanes operator()(Index first, Index step = 1) const {
    const std::uint64_t state = key_ + (static_cast<std::uint64_t>(first) + 1) * Random::kStep;
    const std::uint64_t stride = static_cast<std::uint64_t>(step) * Random::kStep;
    Draw draws[kLanes];  // filled by a plain loop, which compilers turn into vectors of 64-bit products
    for (Index lane = 0; lane < kLanes; ++lane)
      draws[lane] = static_cast<Draw>(mix(state + static_cast<std::uint64_t>(lane) * stride) >> 32);
    Draws v;
    std::memcpy(&v, draws, sizeof v);
    return v >= threshold_ ? broadcast(scale_) : Lanes{};
  }

 private:
  std::uint64_t key_;
  Draw threshold_;
  Real scale_;
};

}  // namespace NORMLAB_REAL
}  // namespace normlab
