// Whether two JSON values mean the same: members in any order, and numbers by value.
#pragma once

#include <optional>

#include "normlab/base/check.h"
#include "normlab/formats/json.h"

namespace normlab {

// 64-bit integers exactly, what a double can hold by its value, the rest by its spelling.
inline bool same_number(const Json& a, const Json& b) {
  const auto whole = [](const Json& x) { return parse_int(x.line()); };
  const auto real = [](const Json& x) { return parse_double(x.line()); };
  if (whole(a) && whole(b)) return whole(a) == whole(b);
  return real(a) && real(b) ? *real(a) == *real(b) : a == b;
}

inline bool same_value(const Json& a, const Json& b) {
  if (a.is_number() && b.is_number()) return same_number(a, b);
  if (a.is_array() && b.is_array()) {
    bool same = a.elements().size() == b.elements().size();
    for (std::size_t i = 0; same && i < a.elements().size(); ++i) same = same_value(a.elements()[i], b.elements()[i]);
    return same;
  }
  if (!a.is_object() || !b.is_object()) return a == b;
  if (a.members().size() != b.members().size()) return false;
  for (std::size_t i = 0; i < a.members().size(); ++i) {
    const auto& [name, value] = a.members()[i];
    const Json* other = b.members()[i].name == name ? &b.members()[i].value : b.find(name);
    if (other == nullptr || !same_value(value, *other)) return false;
  }
  return true;
}

}  // namespace normlab
