// Memory for arrays of numbers. A step asks for the same sizes in the same order as the step before, so after the
// first steps nothing is asked of the system.
#pragma once

#include <cstddef>

namespace normlab {

// Uninitialised bytes, aligned to 64; throws SystemError where there are no more. Not to be called from several
// threads at once. What is released is handed out again, but not given back to the system.
void* allocate(std::size_t bytes);
void release(void* block, std::size_t bytes) noexcept;

// Gives back what many small blocks of the standard library left behind, where the system's allocator can.
void return_freed_memory();

// The largest resident memory of the process so far, in 2^20 bytes.
double peak_resident_mb();

}  // namespace normlab
