// Arrays of numbers that are handed out again: a step allocates the same sizes as the step before, so after the
// first steps nothing is asked of the system.
#pragma once

#include <cstddef>
#include <cstdint>

namespace normlab {

// Uninitialised bytes, aligned to 64; throws SystemError when the system has no more. Not to be called from
// several threads at once. release() keeps the block for the next allocate() of the same size.
void* allocate(std::size_t bytes);
void release(void* block, std::size_t bytes) noexcept;

// Bytes handed out and not yet released, and the largest number of them so far.
struct MemoryUse {
  std::int64_t now, peak;
};
MemoryUse memory_use();

// The largest resident memory of the process so far, in 2^20 bytes.
double peak_resident_mb();

}  // namespace normlab
