// Arrays of numbers that are handed out again: a step allocates the same sizes as the step before, so after the
// first steps nothing is asked of the system.
#pragma once

#include <cstddef>

namespace normlab {

// Uninitialised bytes, aligned to 64; throws SystemError when the system has no more. Not to be called from
// several threads at once. release() keeps the block for the next allocate() of the same size.
void* allocate(std::size_t bytes);
void release(void* block, std::size_t bytes) noexcept;

// The largest resident memory of the process so far, in 2^20 bytes.
double peak_resident_mb();

}  // namespace normlab
