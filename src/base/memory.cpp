// The arena: one stretch of addresses, of which the system gives memory where it is first written to. Free blocks are
// joined with their neighbours, and the smallest that is large enough is taken, the lowest of several.
#include "normlab/base/memory.h"

#ifdef __GLIBC__
#include <malloc.h>
#endif
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "normlab/base/check.h"
#include "normlab/base/text.h"

#if defined(__SANITIZE_ADDRESS__)
#define NORMLAB_CHECKED_MEMORY 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define NORMLAB_CHECKED_MEMORY 1
#endif
#endif

namespace normlab {
namespace {

constexpr std::size_t kAlignment = 64;

std::size_t rounded(std::size_t bytes) {
  return std::max(kAlignment, (bytes + kAlignment - 1) / kAlignment * kAlignment);
}

[[noreturn]] void refuse(std::size_t size, std::size_t in_use) {
  throw SystemError(text("out of memory: ", size, " bytes were wanted besides ", in_use,
                         " in use; lower train.batch_size, model.context_length or the model's size"));
}

class Arena {
 public:
  Arena() {
    constexpr std::size_t kHugePage = 1 << 21;
    void* start = MAP_FAILED;
    size_ = static_cast<std::size_t>(sysconf(_SC_PHYS_PAGES)) * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    for (size_ = rounded(size_); size_ > kHugePage; size_ = rounded(size_ / 2)) {
      start = mmap(nullptr, size_ + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | kNoReserve, -1, 0);
      if (start != MAP_FAILED) break;
    }
    if (start == MAP_FAILED) return;
    const auto address = reinterpret_cast<std::uintptr_t>(start);
    start_ = static_cast<std::byte*>(start) + (kHugePage - address % kHugePage) % kHugePage;
#ifdef MADV_HUGEPAGE
    madvise(start_, size_, MADV_HUGEPAGE);  // where the system has none, nothing changes
#endif
    add_free(0, size_);
  }

  void* take(std::size_t size) {
    const auto found = by_size_.lower_bound({size, 0});
    if (found == by_size_.end()) refuse(size, in_use_);
    const auto [free_size, at] = *found;
    remove_free(by_place_.find(at));
    if (free_size > size) add_free(at + size, free_size - size);
    in_use_ += size;
    return start_ + at;
  }

  void give_back(void* block, std::size_t size) {
    in_use_ -= size;
    std::size_t at = static_cast<std::size_t>(static_cast<std::byte*>(block) - start_);
    auto next = by_place_.lower_bound(at);
    if (next != by_place_.end() && next->first == at + size) {
      size += next->second;
      next = remove_free(next);
    }
    if (next != by_place_.begin())
      if (const auto before = std::prev(next); before->first + before->second == at) {
        at = before->first;
        size += before->second;
        remove_free(before);
      }
    add_free(at, size);
  }

 private:
#ifdef MAP_NORESERVE
  static constexpr int kNoReserve = MAP_NORESERVE;
#else
  static constexpr int kNoReserve = 0;
#endif
  using ByPlace = std::map<std::size_t, std::size_t>;  // offset of a free block -> its size

  void add_free(std::size_t at, std::size_t size) {
    by_place_.emplace(at, size);
    by_size_.emplace(size, at);
  }
  ByPlace::iterator remove_free(ByPlace::iterator block) {
    by_size_.erase({block->second, block->first});
    return by_place_.erase(block);
  }

  std::byte* start_ = nullptr;
  std::size_t size_ = 0, in_use_ = 0;
  ByPlace by_place_;
  std::set<std::pair<std::size_t, std::size_t>> by_size_;
};

// Never destroyed: tensors of static storage may be released after it would be.
Arena& arena() {
  static Arena& the_arena = *new Arena;
  return the_arena;
}

}  // namespace

#ifdef NORMLAB_CHECKED_MEMORY  // each block is the system's own, so that the sanitizer sees its ends and its end

void* allocate(std::size_t bytes) {
  void* block = std::aligned_alloc(kAlignment, rounded(bytes));
  if (block == nullptr) refuse(rounded(bytes), 0);
  return block;
}
void release(void* block, std::size_t) noexcept { std::free(block); }

#else

void* allocate(std::size_t bytes) { return arena().take(rounded(bytes)); }
void release(void* block, std::size_t bytes) noexcept {
  if (block != nullptr) arena().give_back(block, rounded(bytes));
}

#endif

void return_freed_memory() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

double peak_resident_mb() {
  // Where there is one, the process's own figure: getrusage's begins with that of the process that started this one.
  if (std::FILE* status = std::fopen("/proc/self/status", "r")) {
    char line[256];
    double found = 0;
    while (found == 0 && std::fgets(line, sizeof line, status)) {
      std::string_view rest = line;
      if (!rest.starts_with("VmHWM:")) continue;
      rest.remove_prefix(rest.find_first_of("0123456789"));
      found = static_cast<double>(parse_int(rest.substr(0, rest.find(' '))).value_or(0));
    }
    std::fclose(status);
    if (found > 0) return found / (1 << 10);  // units of 1024 bytes
  }
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
#ifdef __APPLE__
  return static_cast<double>(usage.ru_maxrss) / (1 << 20);  // bytes there, units of 1024 bytes elsewhere
#else
  return static_cast<double>(usage.ru_maxrss) / (1 << 10);
#endif
}

}  // namespace normlab
