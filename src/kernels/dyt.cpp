// DyT: a gain, tanh and a bias in the place of a norm, with no statistics at all.
#include "normalize.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {
namespace {

constexpr Index kChunkRows = 32;  // rows that share one partial sum

// The partial sums of a chunk of rows, [C] each.
struct Sums {
  Real *gain, *bias, *alpha;
};

void backward_row(Index channels, Index at, Real alpha, const Real* x, const Real* gain, const Real* dy, Grad dx,
                  Sums sums) {
  for_lanes(0, channels, [&](Index i, auto n) {
    const Lanes value = load(x + at + i, n), d = load(dy + at + i, n), t = tanh(value * alpha);
    const Lanes slope = d * load(gain + i, n) * (1 - t * t);
    if (dx) put(dx, at + i, slope * alpha, n);
    store(sums.gain + i, load(sums.gain + i, n) + d * t, n);
    store(sums.bias + i, load(sums.bias + i, n) + d, n);
    store(sums.alpha + i, load(sums.alpha + i, n) + slope * value, n);
  });
}

}  // namespace

void dyt_forward(Index channels, Real alpha, In x, In gain, In bias, Out y) {
  const Affine affine(channels, gain, bias);
  parallel_for(static_cast<Index>(x.size()) / channels, 20 * channels, [&](Index row) {
    const Index at = row * channels;
    for_lanes(0, channels, [&](Index i, auto n) {
      const Lanes t = tanh(load(x.data() + at + i, n) * alpha);
      store(y.data() + at + i, load(affine.gain + i, n) * t + load(affine.bias + i, n), n);
    });
  });
}

void dyt_backward(Index channels, Real alpha, In x, In gain, In dy, Grad dx, Grad dalpha, Grad dgain, Grad dbias) {
  const Affine affine(channels, gain, {});
  const Index rows = static_cast<Index>(x.size()) / channels, chunks = (rows + kChunkRows - 1) / kChunkRows;
  const Scratch partial(chunks * 3 * channels), by_channel(channels);  // [chunks, 3, C], [C]
  parallel_for(chunks, 25 * kChunkRows * channels, [&](Index chunk) {
    Real* sums = partial.data() + chunk * 3 * channels;
    std::fill(sums, sums + 3 * channels, Real(0));
    for (Index row = chunk * kChunkRows; row < std::min(rows, (chunk + 1) * kChunkRows); ++row)
      backward_row(channels, row * channels, alpha, x.data(), affine.gain, dy.data(), dx,
                   {sums, sums + channels, sums + 2 * channels});
  });
  add_up(partial.data(), chunks, 3 * channels, dgain);
  add_up(partial.data() + channels, chunks, 3 * channels, dbias);
  if (!dalpha) return;
  add_up(partial.data() + 2 * channels, chunks, 3 * channels,
         {Out(by_channel.data(), static_cast<std::size_t>(channels)), false});
  add_up(by_channel.data(), channels, 1, dalpha);
}

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
