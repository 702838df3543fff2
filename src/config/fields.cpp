// A key's range in words.
#include "normlab/config/fields.h"

#include <cmath>
#include <cstdint>

#include "normlab/base/text.h"

namespace normlab::config {
namespace {

// Whole numbers as such: 1000000, not 1e+06.
std::string bound(double x) {
  const bool whole = std::abs(x) < 1e15 && std::floor(x) == x;
  return whole ? number(static_cast<std::int64_t>(x)) : number(x);
}

}  // namespace

std::string Range::describe() const {
  const bool below = std::isfinite(low), above = std::isfinite(high);
  const std::string most = text(high_open ? "below " : "at most ", bound(high));
  if (!below) return above ? most : "";
  if (!above) return text(low_open ? "above " : "at least ", bound(low));
  if (low_open) return text("above ", bound(low), " and ", most);
  if (high_open) return text(bound(low), " or more and ", most);
  return text("from ", bound(low), " to ", bound(high));
}

}  // namespace normlab::config
