// Vectors in the compilers' own extension: one source for SSE, AVX2, AVX-512 and NEON. Only kernels include this.
// The mathematics: in float, polynomials whose error bounds stand next to them (tests/simd_test.cpp walks their whole
// range); in double, where speed matters less, the standard library lane by lane. NaN in gives NaN out.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include "normlab/base/real.h"
#include "normlab/kernels/kernels.h"

namespace normlab {
inline namespace NORMLAB_REAL {

// As wide as the registers: g++ splits wider vectors, and keeps their sums in memory.
#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
#elif defined(__AVX__)
inline constexpr int kVectorBytes = 32;
#else
inline constexpr int kVectorBytes = 16;
#endif
#if defined(__AVX512F__) || defined(__aarch64__)
inline constexpr int kRegisters = 32;
#else
inline constexpr int kRegisters = 16;
#endif
inline constexpr Index kLanes = kVectorBytes / static_cast<int>(sizeof(Real));

using Lanes [[gnu::vector_size(kVectorBytes)]] = Real;
// An integer as wide as Real in each lane; what a comparison of Lanes gives (-1 where it holds, else 0).
using LaneInt = std::conditional_t<sizeof(Real) == 4, std::int32_t, std::int64_t>;
using LaneInts [[gnu::vector_size(kVectorBytes)]] = LaneInt;
// The bits of a Real, whose sums wrap around.
using LaneBit = std::make_unsigned_t<LaneInt>;
using LaneBits [[gnu::vector_size(kVectorBytes)]] = LaneBit;

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

// ---- Rows of any length --------------------------------------------------------------------------------------------
// How many elements a step of for_lanes covers: all lanes, known to the compiler, or the part at the end.
using AllLanes = std::integral_constant<Index, kLanes>;

inline Lanes load(const Real* p, AllLanes) { return load(p); }
inline Lanes load(const Real* p, Index n) { return load_part(p, n); }
inline void store(Real* p, Lanes v, AllLanes) { store(p, v); }
inline void store(Real* p, Lanes v, Index n) { store_part(p, v, n); }

// f(i, n) for i = begin, begin + kLanes, ... with n = AllLanes, and at last with n = the rest as an Index.
template <class F>
inline void for_lanes(Index begin, Index end, const F& f) {
  Index i = begin;
  for (; i + kLanes <= end; i += kLanes) f(i, AllLanes{});
  if (i < end) f(i, end - i);
}

// The n lanes at index i of a gradient: added to what is there, or written over it.
template <class Count>
inline void put(const Grad& grad, Index i, Lanes v, Count n) {
  Real* p = grad.values.data() + i;
  store(p, grad.add ? load(p, n) + v : v, n);
}

// ---- Across the lanes ----------------------------------------------------------------------------------------------
inline Lanes select(LaneInts where, Lanes a, Lanes b) { return where ? a : b; }
inline Lanes larger(Lanes a, Lanes b) { return a > b ? a : b; }

inline LaneInts lane_numbers() {
  LaneInts v{};
  for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) v[lane] = lane;
  return v;
}

// v without what lies in lanes n and beyond.
inline Lanes first_lanes(Lanes v, AllLanes) { return v; }
inline Lanes first_lanes(Lanes v, Index n) {
  return lane_numbers() < (LaneInts{} + static_cast<LaneInt>(n)) ? v : Lanes{};
}

// Folds the upper half of the lanes onto the lower one until one is left: a fixed tree, the same on every call.
template <int kBytes, class V, class F>
inline Real fold(V v, const F& f) {
  if constexpr (kBytes == static_cast<int>(sizeof(Real))) {
    return v[0];
  } else if constexpr (kBytes <= 16) {
    V upper = v;
    for (int lane = 0; lane < kBytes / 2 / static_cast<int>(sizeof(Real)); ++lane)
      upper[lane] = v[lane + kBytes / 2 / static_cast<int>(sizeof(Real))];
    return fold<kBytes / 2>(f(v, upper), f);
  } else {
    using Half [[gnu::vector_size(kBytes / 2)]] = Real;
    Half parts[2];
    std::memcpy(parts, &v, sizeof v);
    return fold<kBytes / 2>(f(parts[0], parts[1]), f);
  }
}
inline Real sum(Lanes v) {
  return fold<kVectorBytes>(v, [](auto a, auto b) { return a + b; });
}
inline Real max(Lanes v) {
  return fold<kVectorBytes>(v, [](auto a, auto b) { return a > b ? a : b; });
}

// Those lanes of a and b that are named, b's counted on from a's. g++ has clang's builtin since version 12.
template <int... kNamed, class V>
inline V lanes_of(V a, V b) {
#if defined(__clang__) || __GNUC__ >= 12
  return __builtin_shufflevector(a, b, kNamed...);
#else
  using Numbers [[gnu::vector_size(sizeof(V))]] = LaneInt;
  return __builtin_shuffle(a, b, Numbers{kNamed...});
#endif
}

// Of a square block of numbers, one vector a row: swaps the two off-diagonal quarters of each block of 2 kWidth rows.
template <int kWidth, int... kLane>
inline void swap_quarters(Lanes (&rows)[kLanes], std::integer_sequence<int, kLane...>) {
  constexpr int kCount = static_cast<int>(kLanes);
#pragma GCC unroll 16
  for (int i = 0; i < kCount; ++i) {
    if (i & kWidth) continue;
    const Lanes a = rows[i], b = rows[i + kWidth];
    rows[i] = lanes_of<(kLane & kWidth ? kCount + kLane - kWidth : kLane)...>(a, b);
    rows[i + kWidth] = lanes_of<(kLane & kWidth ? kCount + kLane : kLane + kWidth)...>(a, b);
  }
}
template <int kWidth = static_cast<int>(kLanes) / 2>
inline void transpose(Lanes (&rows)[kLanes]) {
  swap_quarters<kWidth>(rows, std::make_integer_sequence<int, static_cast<int>(kLanes)>{});
  if constexpr (kWidth > 1) transpose<kWidth / 2>(rows);
}

using Four [[gnu::vector_size(4 * sizeof(Real))]] = Real;

// Four vectors' sums, by the tree of sum().
template <int kWidth, int... kLane>
inline Lanes fold_two(Lanes a, Lanes b, std::integer_sequence<int, kLane...>) {
  constexpr int kCount = static_cast<int>(kLanes);
  return lanes_of<(kLane & kWidth ? kCount + kLane - kWidth : kLane)...>(a, b) +
         lanes_of<(kLane & kWidth ? kCount + kLane : kLane + kWidth)...>(a, b);
}
template <int kWidth>
inline Lanes fold_lanes(Lanes v) {
  if constexpr (kWidth == 0)
    return v;
  else
    return fold_lanes<kWidth / 2>(fold_two<kWidth>(v, v, std::make_integer_sequence<int, static_cast<int>(kLanes)>{}));
}
inline Four sum_four(const Lanes (&v)[4]) {
  if constexpr (kLanes < 4) return Four{sum(v[0]), sum(v[1]), sum(v[2]), sum(v[3])};
  constexpr int kQuarter = static_cast<int>(kLanes) / 4;
  constexpr std::make_integer_sequence<int, static_cast<int>(kLanes)> lanes{};
  const Lanes even = fold_two<2 * kQuarter>(v[0], v[2], lanes), odd = fold_two<2 * kQuarter>(v[1], v[3], lanes);
  const Lanes sums = fold_lanes<kQuarter / 2>(fold_two<kQuarter>(even, odd, lanes));  // sum i in all of quarter i
  return Four{sums[0], sums[kQuarter], sums[2 * kQuarter], sums[3 * kQuarter]};
}

// ---- Functions -----------------------------------------------------------------------------------------------------
template <class F>
inline Lanes lane_by_lane(Lanes x, const F& f) {
  Lanes y{};
  for (int lane = 0; lane < static_cast<int>(kLanes); ++lane) y[lane] = f(x[lane]);
  return y;
}

inline Lanes abs(Lanes x) { return x < 0 ? -x : x; }
inline Four sqrt_four(Four x) { return Four{std::sqrt(x[0]), std::sqrt(x[1]), std::sqrt(x[2]), std::sqrt(x[3])}; }
inline Lanes sqrt(Lanes x) {
  return lane_by_lane(x, [](Real value) { return std::sqrt(value); });
}

// c[0] + c[1] x + c[2] x^2 + ...
template <int kCount>
inline Lanes polynomial(Lanes x, const Real (&c)[kCount]) {
  Lanes y = broadcast(c[kCount - 1]);
  for (int k = kCount - 2; k >= 0; --k) y = y * x + c[k];
  return y;
}

// x = n ln 2 + r with |r| <= ln 2 / 2: 2^n goes into the exponent's bits, exp(r) - 1 is a polynomial (minimax of
// (exp(r) - 1 - r) / r^2, error 3e-9).
struct ExpParts {
  LaneBits n;
  Lanes expm1_r;
};
inline ExpParts exp_parts(Lanes x) {
  static_assert(sizeof(Real) == 4 || sizeof(Real) == 8);
  constexpr Real kShift = 12582912;  // 1.5 2^23: adding it rounds a float to an integer in its low bits
  constexpr Real kHigh = Real(0.693359375), kLow = Real(-2.12194440e-4);  // their sum is ln 2; kHigh n is exact
  constexpr Real c[] = {Real(0.5000000095704098), Real(0.1666651830614159), Real(0.04166620412790323),
                        Real(0.008368953502265238), Real(0.001395060297429973)};
  const Lanes shifted = x * Real(1.4426950408889634) + kShift;
  const Lanes n = shifted - kShift;
  const Lanes r = x - n * kHigh - n * kLow;
  LaneBits bits;
  std::memcpy(&bits, &shifted, sizeof bits);
  return {bits - LaneBit{0x4B400000}, r + r * r * polynomial(r, c)};
}
inline Lanes times_power_of_two(Lanes x, LaneBits n) {
  LaneBits bits;
  std::memcpy(&bits, &x, sizeof bits);
  bits += n << 23;
  std::memcpy(&x, &bits, sizeof x);
  return x;
}

// Float: relative error below 1.5e-7 where the result is a normal number; 0 below that, infinity above.
inline Lanes exp(Lanes x) {
  if constexpr (sizeof(Real) == 8) {
    return lane_by_lane(x, [](Real value) { return std::exp(value); });
  } else {
    constexpr Real kLowest = Real(-87.33654), kHighest = Real(88.72283);
    const ExpParts parts = exp_parts(x);
    const Lanes y = times_power_of_two(parts.expm1_r + 1, parts.n);
    const Lanes below = x < kLowest ? Lanes{} : x;  // NaN stays
    return x >= kLowest ? (x > kHighest ? broadcast(std::numeric_limits<Real>::infinity()) : y) : below;
  }
}

// 2^x for x <= 127. Float: relative error below 1.1e-7 where the result is a normal number, 0 below that. Cheaper than
// exp: x = n + r needs no product, and 2^r = 1 + r P(r) is a minimax polynomial (2e-9).
inline Lanes exp2(Lanes x) {
  if constexpr (sizeof(Real) == 8) {
    return lane_by_lane(x, [](Real value) { return std::exp2(value); });
  } else {
    constexpr Real kShift = 12582912;  // as in exp_parts
    constexpr Real c[] = {Real(0.6931472028550452),   Real(0.24022647913632114),   Real(0.055503324711592965),
                          Real(0.009618437357436397), Real(0.0013398874403576732), Real(0.00015353361947210455)};
    const Lanes shifted = x + kShift;
    const Lanes r = x - (shifted - kShift);
    LaneBits bits;
    std::memcpy(&bits, &shifted, sizeof bits);
    const Lanes y = times_power_of_two(r * polynomial(r, c) + 1, bits);  // the shift's own bits leave at the top
    return x < -126 ? Lanes{} : y;                                       // NaN stays
  }
}

// The natural logarithm of normal numbers above 0. Float: relative error below 1e-7. x = 2^n (1 + f) with 1 + f in
// [2/3, 4/3): ln(1 + f) = f - f^2 / 2 + f^3 P(f) (minimax, 5e-9).
inline Lanes log(Lanes x) {
  if constexpr (sizeof(Real) == 8) {
    return lane_by_lane(x, [](Real value) { return std::log(value); });
  } else {
    constexpr LaneInt kTwoThirds = 0x3F2AAAAB;
    constexpr Real kHigh = Real(0.693359375), kLow = Real(-2.12194440e-4);  // as in exp_parts
    constexpr Real c[] = {Real(0.333332159803375),    Real(-0.24999797684590103), Real(0.20010406042088957),
                          Real(-0.16680486746252007), Real(0.14005866948952628),  Real(-0.12184270349477924),
                          Real(0.1398444714366863),   Real(-0.12891640192901238)};
    LaneInts bits;
    std::memcpy(&bits, &x, sizeof bits);
    const LaneInts exponent = (bits - kTwoThirds) >> 23;
    bits -= exponent << 23;
    Lanes f;
    std::memcpy(&f, &bits, sizeof f);
    f -= 1;
    const Lanes n = __builtin_convertvector(exponent, Lanes);
    const Lanes y = n * kHigh + (f + (f * f * (f * polynomial(f, c) - Real(0.5)) + n * kLow));
    return x <= std::numeric_limits<Real>::infinity() ? y : x;  // NaN stays
  }
}

// Float: relative error below 3e-7. With e = exp(2x) - 1, which keeps its digits near 0: tanh x = e / (e + 2).
inline Lanes tanh(Lanes x) {
  if constexpr (sizeof(Real) == 8) {
    return lane_by_lane(x, [](Real value) { return std::tanh(value); });
  } else {
    Lanes twice = x + x;  // beyond +-20 the result is +-1 in float
    twice = twice > 20 ? broadcast(20) : twice;
    twice = twice < -20 ? broadcast(-20) : twice;
    const ExpParts parts = exp_parts(twice);
    const Lanes power = times_power_of_two(broadcast(1), parts.n);
    const Lanes e = power * parts.expm1_r + (power - 1);
    return e / (e + 2);
  }
}

// Float: relative error below 3e-7. x P(x^2) up to |x| = 1 (minimax, 1.3e-9), beyond it 1 - exp(Q(|x|)) with Q the
// logarithm of erfc (error in erf 1.1e-9).
inline Lanes erf(Lanes x) {
  if constexpr (sizeof(Real) == 8) {
    return lane_by_lane(x, [](Real value) { return std::erf(value); });
  } else {
    constexpr Real p[] = {Real(1.1283791657267128),   Real(-0.37612625824212953), Real(0.11283585148404807),
                          Real(-0.02685381192784346), Real(0.005188327673638822), Real(-0.0008010193533390573),
                          Real(7.853861087990986e-05)};
    constexpr Real q[] = {Real(-0.0003415260047234333), Real(-1.127089178186521),   Real(-0.6381448524165303),
                          Real(-0.10310673777631761),   Real(0.021838056086897328), Real(-0.0029476563530031344),
                          Real(0.0001863789961817518)};
    Lanes size = abs(x);
    size = size > 4 ? broadcast(4) : size;  // 1 - erf(4) < 2e-8
    const Lanes near_zero = x * polynomial(x * x, p);
    const Lanes tail = 1 - exp(polynomial(size, q));
    return size <= 1 ? near_zero : (x < 0 ? -tail : tail);
  }
}

}  // namespace NORMLAB_REAL
}  // namespace normlab
