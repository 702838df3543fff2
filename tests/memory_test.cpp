// The arena, what a step asks of the system, and the estimate of a run's memory.
#include "normlab/base/memory.h"

#include <sys/resource.h>

#include <cstdint>

#include "catch.h"
#include "normlab/nn/gpt.h"
#include "normlab/optim/optimizer.h"
#include "program.h"

using namespace normlab;

#if defined(__SANITIZE_ADDRESS__)
constexpr bool kChecked = true;
#elif defined(__has_feature)
constexpr bool kChecked = __has_feature(address_sanitizer);
#else
constexpr bool kChecked = false;
#endif

TEST_CASE("the arena hands out aligned blocks that do not overlap, and joins what is released") {
  constexpr std::size_t kSize = 1000;
  std::uint8_t* blocks[8];
  for (auto& block : blocks) {
    block = static_cast<std::uint8_t*>(allocate(kSize));
    REQUIRE(reinterpret_cast<std::uintptr_t>(block) % 64 == 0);
    std::fill_n(block, kSize, static_cast<std::uint8_t>(&block - blocks));
  }
  for (const auto& block : blocks)
    for (std::size_t i = 0; i < kSize; ++i) REQUIRE(block[i] == static_cast<std::uint8_t>(&block - blocks));
  for (const int i : {1, 3, 2, 0, 7, 5, 6, 4}) release(blocks[i], kSize);
  if (kChecked) return;  // the sanitizer's own memory is not ours to plan
  void* all = allocate(8 * 1024);
  CHECK(all == *std::min_element(std::begin(blocks), std::end(blocks)));
  release(all, 8 * 1024);
}
