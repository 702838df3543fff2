// JSON: what is accepted is within the limits, and equal when it is written and read again, in both layouts.
#include "normlab/formats/json.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "fuzz.h"

namespace normlab::fuzz {
namespace {

// Visits every value, with each way to ask for it.
void look_at(const Json& json, int depth) {
  accepted([&] { return json.integer(); });
  if (const auto real = accepted([&] { return json.real(); })) promise(std::isfinite(*real), "numbers are finite");
  if (!json.is_array() && !json.is_object()) return;
  promise(depth < kMaxJsonDepth, "no deeper than kMaxJsonDepth");
  if (json.is_array())
    for (const Json& element : json.elements()) look_at(element, depth + 1);
  if (!json.is_object()) return;
  std::set<std::string_view> names;
  for (const Json::Member& member : json.members()) {
    promise(names.insert(member.name).second, "no name twice");
    look_at(member.value, depth + 1);
  }
}

}  // namespace

void json(std::string_view bytes) {
  const auto value = accepted([&] { return parse_json(bytes, "f.json"); });
  if (!value) return;
  promise(bytes.size() <= kMaxJsonBytes, "no longer than kMaxJsonBytes");
  look_at(*value, 0);
  promise(parse_json(value->line(), "line") == *value, "one line reads back equal");
  promise(parse_json(value->indented(), "indented") == *value, "indented text reads back equal");
}

}  // namespace normlab::fuzz
