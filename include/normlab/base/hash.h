// A quick hash of bytes, for names and for telling changes; not against malice.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace normlab {

inline constexpr std::uint64_t kNoBytes = 0xCBF29CE484222325u;  // the hash of nothing

// FNV-1a, 64 bits (Fowler, Noll and Vo); `before` is the hash of the bytes before these.
inline std::uint64_t fnv1a(std::string_view bytes, std::uint64_t before = kNoBytes) {
  for (const char c : bytes) before = (before ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return before;
}

// The highest `digits` of 16 hexadecimal ones, in lower case.
inline std::string hexadecimal(std::uint64_t value, int digits = 16) {
  std::string out;
  for (int shift = 60; shift > 60 - 4 * digits; shift -= 4) out += "0123456789abcdef"[value >> shift & 15];
  return out;
}

}  // namespace normlab
