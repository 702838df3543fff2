// libFuzzer's entry to one target, FUZZ_TARGET. An exception that leaves it is a crash.
#include <cstddef>
#include <cstdint>

#include "fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  normlab::fuzz::FUZZ_TARGET({reinterpret_cast<const char*>(data), size});
  return 0;
}
