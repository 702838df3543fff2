// JSON that ends in its own checksum: the last member, "crc", is the CRC-32C of the bytes before it, in 8 hexadecimal
// digits, which tells any change of them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace normlab {

struct Seal {
  std::string_view member, close;  // what stands before the digits, and after them

  std::size_t size() const { return member.size() + 8 + close.size(); }
};
inline constexpr Seal kLineSeal{",\"crc\":\"", "\"}"};           // a line of a log
inline constexpr Seal kFileSeal{",\n  \"crc\": \"", "\"\n}\n"};  // run.json

std::string crc_digits(std::string_view bytes);
// `open`: an object without its last brace.
std::string sealed(std::string_view open, const Seal& seal);
std::string_view unsealed(std::string_view text, const Seal& seal);
// Half of the member's name is enough, so that no single change makes a text one of an earlier version, without a
// checksum.
bool claims_checksum(std::string_view text, const Seal& seal);

}  // namespace normlab
