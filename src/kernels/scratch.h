// Memory for the length of a call.
#pragma once

#include <cassert>
#include <utility>
#include <vector>

#include "normlab/kernels/simd.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {

// Numbers with anything in them. They are the thread's own, and kept from call to call: a call like the one before
// finds the same ones in the thread's cache. The last to be made goes first.
class Scratch {
 public:
  explicit Scratch(Index numbers) {
    assert(kept().depth < kNested);
    std::vector<Vector>& mine = kept().vectors[kept().depth++];
    const auto count = static_cast<std::size_t>(numbers / kLanes + 1);
    if (mine.size() < count) mine.resize(count);
    data_ = next_ = mine.data()->lanes;
  }
  ~Scratch() { --kept().depth; }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  Real* data() const { return data_; }
  // The next `count` of them, aligned when all of those before were whole vectors.
  Real* take(Index count) { return std::exchange(next_, next_ + count); }

 private:
  static constexpr int kNested = 4;
  struct alignas(kVectorBytes) Vector {
    Real lanes[kLanes];
  };
  struct Kept {
    std::vector<Vector> vectors[kNested];
    int depth = 0;
  };
  static Kept& kept() {
    static thread_local Kept kept;
    return kept;
  }

  Real *data_, *next_;
};

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
