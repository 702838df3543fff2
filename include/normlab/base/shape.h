// The sizes of a tensor's axes, slowest first; rank 0 is a single number.
#pragma once

#include <algorithm>
#include <array>
#include <cassert>
#include <initializer_list>
#include <string>

#include "normlab/base/real.h"
#include "normlab/base/text.h"

namespace normlab {

class Shape {
 public:
  static constexpr int kMaxRank = 4;

  Shape() = default;
  Shape(std::initializer_list<Index> axes) : rank_(static_cast<int>(axes.size())) {
    assert(axes.size() <= kMaxRank);
    std::copy(axes.begin(), axes.end(), axes_.begin());
  }

  int rank() const { return rank_; }
  Index operator[](int axis) const { return axes_[static_cast<std::size_t>(axis < 0 ? axis + rank_ : axis)]; }
  Index numel() const {
    Index n = 1;
    for (int axis = 0; axis < rank_; ++axis) n *= (*this)[axis];
    return n;
  }
  Index last() const { return (*this)[-1]; }       // size of the fastest axis
  Index rows() const { return numel() / last(); }  // all other axes together
  const Index* begin() const { return axes_.data(); }
  const Index* end() const { return axes_.data() + rank_; }

  friend bool operator==(const Shape&, const Shape&) = default;

 private:
  std::array<Index, kMaxRank> axes_{};
  int rank_ = 0;
};

inline void append_text(std::string& out, const Shape& shape) {
  out += '[';
  for (const Index& axis : shape) {
    if (&axis != shape.begin()) out += ", ";
    out += number(axis);
  }
  out += ']';
}

}  // namespace normlab
