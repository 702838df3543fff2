// Lines of a run's logs, taken apart.
#include "normlab/train/tidy.h"

#include <limits>
#include <string_view>

namespace normlab {
namespace {

// blocks.3.attn.qkv.weight -> 3 and attn.qkv.weight
void set_part(Figure& figure, std::string_view name) {
  constexpr std::string_view kPrefix = "blocks.";
  figure.part = name;
  figure.layer.reset();
  if (!name.starts_with(kPrefix)) return;
  name.remove_prefix(kPrefix.size());
  const std::size_t dot = name.find('.');
  const auto layer = parse_int(name.substr(0, dot));
  if (!layer || dot == std::string_view::npos) return;
  figure.layer = layer;
  figure.part = name.substr(dot + 1);
}

}  // namespace

std::vector<Figure> figures_of(const Json& line) {
  std::vector<Figure> figures;
  const Json* kind = line.find("kind");
  const bool is_finite = line.find("finite") == nullptr;
  const std::int64_t step = line.at("step").integer();
  const auto add = [&](Figure figure, const Json& value) {
    if (!value.is_number() && (!value.is_null() || is_finite)) return;
    figure.value = value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.real();
    figures.push_back(std::move(figure));
  };
  for (const Json::Member& member : line.members()) {
    if (member.name == "step" || member.name == "kind" || member.name == "finite") continue;
    Figure figure{step, std::nullopt, kind ? kind->string() : "timing", member.name};
    if (member.value.is_array()) {
      figure.part = "block";
      figure.layer = 0;
      for (const Json& value : member.value.elements()) add(figure, value), ++*figure.layer;
    } else if (member.value.is_object()) {
      for (const Json::Member& each : member.value.members()) set_part(figure, each.name), add(figure, each.value);
    } else {
      add(figure, member.value);
    }
  }
  return figures;
}

}  // namespace normlab
