// CRC-32C (Castagnoli), the checksum of checkpoints and of TensorBoard's records: reflected polynomial 0x82F63B78,
// all bits set before and inverted after (RFC 3720, appendix B.4).
#pragma once

#include <cstdint>
#include <string_view>

namespace normlab {

// The checksum of `bytes`, or, with the checksum of what came before them, of both together.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t before = 0);

}  // namespace normlab
