// The free blocks, by size.
#include "normlab/base/memory.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <vector>

#include "normlab/base/check.h"

namespace normlab {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t rounded(std::size_t bytes) {
  return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

struct FreeBlocks {
  std::map<std::size_t, std::vector<void*>> by_size;
  std::size_t in_use = 0;  // bytes handed out and not yet released
};

// Never destroyed: tensors of static storage may be released after it would be.
FreeBlocks& free_blocks() {
  static FreeBlocks& blocks = *new FreeBlocks;
  return blocks;
}

}  // namespace

void* allocate(std::size_t bytes) {
  FreeBlocks& blocks = free_blocks();
  const std::size_t size = rounded(bytes);
  blocks.in_use += size;
  std::vector<void*>& free = blocks.by_size[size];
  if (!free.empty()) {
    void* block = free.back();
    free.pop_back();
    return block;
  }
  void* block = std::aligned_alloc(kAlignment, size);
  check<SystemError>(block != nullptr, "out of memory: ", size, " bytes were wanted beside ", blocks.in_use - size,
                     " in use; lower train.batch_size, model.context_length or the model's size");
  return block;
}

void release(void* block, std::size_t bytes) noexcept {
  if (block == nullptr) return;
  FreeBlocks& blocks = free_blocks();
  const std::size_t size = rounded(bytes);
  blocks.in_use -= size;
  blocks.by_size[size].push_back(block);
}

double peak_resident_mb() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);  // bytes there, units of 1024 bytes elsewhere
#else
  return static_cast<double>(usage.ru_maxrss) / (1 << 10);
#endif
}

}  // namespace normlab
