// One character of UTF-8 (RFC 3629, section 4): no overlong form, no surrogate, nothing above U+10FFFF.
#pragma once

#include <cstddef>
#include <string_view>

namespace normlab {

// The bytes of the character that `s` begins with, 1 to 4; 0 when it begins with none.
inline std::size_t utf8_sequence(std::string_view s) {
  const auto byte = [&](std::size_t i) { return i < s.size() ? static_cast<unsigned char>(s[i]) : 0u; };
  const auto follows = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return s.empty() ? 0 : 1;
  if (first < 0xC2) return 0;
  if (first < 0xE0) return follows(1) ? 2 : 0;
  if (first < 0xF0) return follows(1, first == 0xE0 ? 0xA0 : 0x80, first == 0xED ? 0x9F : 0xBF) && follows(2) ? 3 : 0;
  if (first > 0xF4) return 0;
  return follows(1, first == 0xF0 ? 0x90 : 0x80, first == 0xF4 ? 0x8F : 0xBF) && follows(2) && follows(3) ? 4 : 0;
}

}  // namespace normlab
