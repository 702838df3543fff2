// What a sweep needs of its points, and how they are called.
#include "normlab/claims/sweep_file.h"

#include <algorithm>

#include "normlab/base/text.h"
#include "normlab/run/run_reader.h"

namespace normlab {

const std::string& Sweep::source_of(const Claim& claim) const {
  return claim.source.empty() ? head.source : claim.source;
}

std::vector<std::string> Sweep::fields() const {
  std::vector<std::string> out;
  const auto add = [&](const std::string& field) {
    if (std::ranges::find(out, field) == out.end()) out.push_back(field);
  };
  for (const Claim& claim : claims)
    for (const std::string& field : fields_of(claim)) add(field);
  for (const MapView& map : maps) add(map.value);
  for (const CurveView& curve : curves) add(curve.value);
  return out;
}

std::vector<std::string> Sweep::columns() const {
  std::vector<std::string> out = fields();
  if (head.measure == Measure::train && std::ranges::find(out, "val_loss") == out.end())
    out.insert(out.begin(), "val_loss");
  return out;
}

std::vector<std::string> differing_keys(const Sweep& sweep) {
  std::vector<std::string> out;
  for (const Point& point : sweep.points)
    for (const std::string& key : point.varied) {
      const bool differs = std::ranges::any_of(
          sweep.points, [&](const Point& other) { return other.settings.at(key) != sweep.points[0].settings.at(key); });
      if (key != "seed" && differs && std::ranges::find(out, key) == out.end()) out.push_back(key);
    }
  return out;
}

std::string point_name(const Sweep& sweep, const Point& point) {
  std::string out;
  for (const std::string& key : differing_keys(sweep))
    out += text(out.empty() ? "" : ", ", key.substr(key.rfind('.') + 1), ' ', shown(point.settings.at(key)));
  return out.empty() ? sweep.name : out;
}

Json varied_settings(const Point& point) {
  Json out = Json::object();
  for (const std::string& key : point.varied) {
    const std::string& value = point.settings.at(key);
    const auto whole = parse_int(value);
    const auto real = parse_double(value);
    if (key != "seed") out.set(key, value == "null" ? Json() : whole ? Json(*whole) : real ? Json(*real) : Json(value));
  }
  return out;
}

}  // namespace normlab
