// JSON that ends in its own checksum.
#include "normlab/run/checksum.h"

#include <algorithm>

#include "normlab/base/hash.h"
#include "normlab/base/text.h"
#include "normlab/formats/crc32c.h"

namespace normlab {

std::string crc_digits(std::string_view bytes) { return hexadecimal(std::uint64_t{crc32c(bytes)} << 32, 8); }

std::string sealed(std::string_view open, const Seal& seal) {
  return text(open, seal.member, crc_digits(open), seal.close);
}

std::string_view unsealed(std::string_view text, const Seal& seal) {
  return text.substr(0, text.size() - std::min(seal.size(), text.size()));
}

bool claims_checksum(std::string_view text, const Seal& seal) {
  const std::string_view end = text.substr(unsealed(text, seal).size(), seal.member.size());
  const std::size_t half = seal.member.size() / 2;
  return end.starts_with(seal.member.substr(0, half)) || end.ends_with(seal.member.substr(half));
}

}  // namespace normlab
