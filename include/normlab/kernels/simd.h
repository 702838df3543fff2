// Vectors in the compilers' own extension: one source for SSE, AVX2, AVX-512 and NEON. Only kernels include this.
#pragma once

#include <cstring>

#include "normlab/base/real.h"

namespace normlab::inline NORMLAB_REAL {

#ifdef __AVX512F__
inline constexpr int kVectorBytes = 64;
#else
inline constexpr int kVectorBytes = 32;
#endif
inline constexpr Index kLanes = kVectorBytes / static_cast<int>(sizeof(Real));

using Lanes [[gnu::vector_size(kVectorBytes)]] = Real;

inline Lanes load(const Real* p) {
  Lanes v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store(Real* p, Lanes v) { std::memcpy(p, &v, sizeof v); }

// The first n < kLanes elements; the others are 0, and are not written.
inline Lanes load_part(const Real* p, Index n) {
  Lanes v{};
  std::memcpy(&v, p, static_cast<std::size_t>(n) * sizeof(Real));
  return v;
}
inline void store_part(Real* p, Lanes v, Index n) { std::memcpy(p, &v, static_cast<std::size_t>(n) * sizeof(Real)); }

inline Lanes broadcast(Real x) { return Lanes{} + x; }

}  // namespace normlab::inline NORMLAB_REAL
