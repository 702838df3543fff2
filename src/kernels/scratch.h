// Memory for the length of a call.
#pragma once

#include <utility>

#include "normlab/base/memory.h"
#include "normlab/base/real.h"

namespace normlab {
inline namespace NORMLAB_REAL {
namespace kernels {

// Uninitialised numbers, taken and given back by any thread: a call like the one before finds the same block again.
class Scratch {
 public:
  explicit Scratch(Index numbers)
      : bytes_(static_cast<std::size_t>(numbers) * sizeof(Real)),
        data_(static_cast<Real*>(allocate(bytes_))),
        next_(data_) {}
  ~Scratch() { release(data_, bytes_); }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  Real* data() const { return data_; }
  // The next `count` of them, aligned for vectors when all of those before were whole ones.
  Real* take(Index count) { return std::exchange(next_, next_ + count); }

 private:
  std::size_t bytes_;
  Real *data_, *next_;
};

}  // namespace kernels
}  // namespace NORMLAB_REAL
}  // namespace normlab
