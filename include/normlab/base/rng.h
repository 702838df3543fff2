// Counter-based randomness: a value is a function of (seed, stream name, counter), so it depends on
// neither the order of the draws nor the number of threads. SplitMix64 (Steele, Lea, Flood 2014).
#pragma once

#include <cstdint>
#include <string_view>

namespace normlab {

// The output function of SplitMix64: a bijection whose every output bit depends on every input bit.
constexpr std::uint64_t mix(std::uint64_t z) {
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
  return z ^ (z >> 31);
}

// One stream of 64-bit numbers, addressed by counter. Copies are independent readers of the same stream.
class Random {
 public:
  Random(std::uint64_t seed, std::string_view stream);

  Random sub(std::uint64_t number) const { return Random(mix(key_ ^ mix(number + kStep))); }

  std::uint64_t key() const { return key_; }
  std::uint64_t bits(std::uint64_t counter) const { return mix(key_ + (counter + 1) * kStep); }

  // The sequential side: the draw at the next counter.
  std::uint64_t next() { return bits(counter_++); }
  double uniform();                      // [0, 1), 53 bits
  double normal();                       // N(0, 1), Marsaglia's polar method
  std::uint64_t below(std::uint64_t n);  // 0 .. n-1 without bias (n > 0)

  static constexpr std::uint64_t kStep = 0x9E3779B97F4A7C15u;

 private:
  explicit Random(std::uint64_t key) : key_(key) {}

  std::uint64_t key_;
  std::uint64_t counter_ = 0;
  double spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace normlab
