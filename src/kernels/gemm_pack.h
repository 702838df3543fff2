// How the matrix product lays out its operands before it multiplies them.
#pragma once

#include <algorithm>
#include <cstring>

#include "normlab/kernels/simd.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {

inline Four load_four(const Real* p) {
  Four v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
inline void store_four(Real* p, Four v) { std::memcpy(p, &v, sizeof v); }

// How lines (rows of a, columns of b) lie in memory, and how they are packed: into panels of kPanel lines of which
// element (line l, depth k) goes to panel[k * width + l]; the last panel's width is its lines' number, rounded up.
struct Lines {
  const Real* data;
  Index across, along;  // element (l, k) at data[l * across + k * along]; one of the two is 1
  Index count, depth;
};

template <Index kPanel, Index kRound>
Index panel_width(Index lines) {
  return std::min(kPanel, (lines + kRound - 1) / kRound * kRound);
}

// Four lines that are contiguous along the depth, four elements of each.
[[gnu::always_inline]] inline void pack_square(const Real* from, Index across, Real* to, Index width) {
  const Four a = load_four(from), b = load_four(from + across), c = load_four(from + 2 * across),
             d = load_four(from + 3 * across);
  const Four ab_low = lanes_of<0, 4, 1, 5>(a, b), ab_high = lanes_of<2, 6, 3, 7>(a, b);
  const Four cd_low = lanes_of<0, 4, 1, 5>(c, d), cd_high = lanes_of<2, 6, 3, 7>(c, d);
  store_four(to, lanes_of<0, 1, 4, 5>(ab_low, cd_low));
  store_four(to + width, lanes_of<2, 3, 6, 7>(ab_low, cd_low));
  store_four(to + 2 * width, lanes_of<0, 1, 4, 5>(ab_high, cd_high));
  store_four(to + 3 * width, lanes_of<2, 3, 6, 7>(ab_high, cd_high));
}

// One panel of such lines.
inline void pack_transposed(const Lines& in, Index first, Index count, Index width, Real* panel) {
  Index l = 0;
  for (; l + 4 <= count; l += 4) {
    const Real* const from = in.data + (first + l) * in.across;
    Index k = 0;
    for (; k + 4 <= in.depth; k += 4) pack_square(from + k, in.across, panel + k * width + l, width);
    for (; k < in.depth; ++k)
      for (Index line = 0; line < 4; ++line) panel[k * width + l + line] = from[line * in.across + k];
  }
  for (; l < count; ++l) {
    const Real* from = in.data + (first + l) * in.across;
    Real* to = panel + l;
    for (Index k = 0; k < in.depth; ++k, to += width) *to = from[k];
  }
}

template <Index kPanel, Index kRound>
void pack(const Lines& in, Real* out) {
  const Index whole = in.count / kPanel * kPanel, rest = in.count - whole, width = panel_width<kPanel, kRound>(rest);
  Real* const last = out + whole * in.depth;
  if (rest < width) std::fill_n(last, in.depth * width, Real(0));
  if (in.along == 1) {
    for (Index l = 0; l < in.count; l += kPanel) {
      const Index lines = std::min(kPanel, in.count - l);
      pack_transposed(in, l, lines, panel_width<kPanel, kRound>(lines), out + l * in.depth);
    }
    return;
  }
  // A few rows at a time: panels are a power of two apart, and would drive one another out of the cache.
  constexpr Index kRows = 8;
  for (Index first = 0; first < in.depth; first += kRows) {
    const Index end = std::min(in.depth, first + kRows);
    for (Index l = 0; l < whole; l += kPanel)
      for (Index k = first; k < end; ++k)
        std::memcpy(out + l * in.depth + k * kPanel, in.data + k * in.along + l, kPanel * sizeof(Real));
    for (Index k = first; k < end; ++k) std::copy_n(in.data + k * in.along + whole, rest, last + k * width);
  }
}

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
