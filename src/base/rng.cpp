// Random numbers. Compiled without contraction of multiply-adds, and with a logarithm of its own, so
// that the same draws come from every compiler and C library.
#include "normlab/base/rng.h"

#include <bit>
#include <cmath>

#include "normlab/base/hash.h"

namespace normlab {
namespace {

// ln x for normal x > 0: x = 2^e m, m in [sqrt(1/2), sqrt(2)), ln m = 2 artanh((m - 1) / (m + 1)).
double natural_log(double x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  int exponent = static_cast<int>(bits >> 52) - 1023;
  double m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFFu) | 0x3FF0000000000000u);
  if (m > 1.4142135623730951) {
    m *= 0.5;
    ++exponent;
  }
  const double s = (m - 1) / (m + 1), s2 = s * s;  // |s| < 0.172: the term s^25 / 25 is below 1e-20
  double series = 0;
  for (int k = 23; k >= 1; k -= 2) series = series * s2 + 1.0 / k;
  return exponent * 0.6931471805599453 + 2 * s * series;
}

}  // namespace

Random::Random(std::uint64_t seed, std::string_view stream) : key_(mix(mix(seed + kStep) ^ fnv1a(stream))) {}

double Random::uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }

double Random::normal() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  double u, v, s;
  do {
    u = 2 * uniform() - 1;
    v = 2 * uniform() - 1;
    s = u * u + v * v;
  } while (s >= 1 || s < 1e-300);
  const double scale = std::sqrt(-2 * natural_log(s) / s);
  spare_ = v * scale;
  has_spare_ = true;
  return u * scale;
}

std::uint64_t Random::below(std::uint64_t n) {
  const std::uint64_t unfair = (0 - n) % n;  // 2^64 mod n: the draws below it would favour small results
  std::uint64_t draw;
  do draw = next();
  while (draw < unfair);
  return draw % n;
}

}  // namespace normlab
