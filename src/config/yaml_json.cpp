// A YAML tree as JSON.
#include <cmath>

#include "normlab/config/yaml.h"
#include "normlab/formats/json.h"

namespace normlab::config {
namespace {

Json scalar_of(const Yaml& node) {
  if (node.quoted) return node.text;
  if (const auto truth = core_bool(node.text)) return *truth;
  if (const auto whole = core_int(node.text)) return *whole;
  if (is_integer_form(node.text)) {  // beyond 64 bits: every digit of it
    if (node.text.starts_with("0x") || node.text.starts_with("0o")) return node.text;
    const std::string digits = node.text.substr(node.text.find_first_of("123456789"));
    return parse_json(node.text[0] == '-' ? "-" + digits : digits, "integer");
  }
  const auto real = core_float(node.text);
  return real && std::isfinite(*real) ? Json(*real) : Json(node.text);
}

}  // namespace

Json json_of(const Yaml& node) {
  if (node.kind == Yaml::Kind::null) return nullptr;
  if (node.kind == Yaml::Kind::scalar) return scalar_of(node);
  Json::Array items;
  Json::Object members;
  for (const Yaml& child : node.children)
    if (node.kind == Yaml::Kind::sequence)
      items.push_back(json_of(child));
    else
      members.push_back({child.key, json_of(child)});
  return node.kind == Yaml::Kind::sequence ? Json::array(std::move(items)) : Json::object(std::move(members));
}

}  // namespace normlab::config
