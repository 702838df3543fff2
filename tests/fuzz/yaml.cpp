// YAML: what is accepted is within the limits, and equal when it is written as JSON and read again; a document that is
// JSON too has the value that the JSON reader gives it.
#include "normlab/config/yaml.h"

#include <cmath>
#include <set>

#include "../json_values.h"
#include "fuzz.h"

namespace normlab::fuzz {
namespace {

using config::Yaml;

void look_at(const Yaml& node, int depth) {
  if (node.kind == Yaml::Kind::scalar)
    promise(config::json_of(config::parse_yaml(config::yaml_text(node.text), "text")) == Json(node.text),
            "yaml_text reads back as the same text");
  if (node.kind != Yaml::Kind::sequence && node.kind != Yaml::Kind::mapping) return;
  promise(depth < config::kMaxYamlDepth, "no deeper than kMaxYamlDepth");
  std::set<std::string_view> keys;
  for (const Yaml& child : node.children) {
    promise(node.kind == Yaml::Kind::sequence || keys.insert(child.key).second, "no key twice");
    promise(child.key.size() <= config::kMaxYamlKey, "no key longer than kMaxYamlKey");
    look_at(child, depth + 1);
  }
}

// Whether doubles hold all numbers; YAML takes others for text.
bool all_numbers_fit(const Json& json) {
  if (json.is_number()) return accepted([&] { return json.real(); }).has_value();
  bool fit = true;
  if (json.is_array())
    for (const Json& element : json.elements()) fit = fit && all_numbers_fit(element);
  if (json.is_object())
    for (const Json::Member& member : json.members()) fit = fit && all_numbers_fit(member.value);
  return fit;
}

void look_at(const Yaml& tree) {
  look_at(tree, 0);
  const Json value = config::json_of(tree);
  const std::string line = value.line();
  promise(parse_json(line, "written") == value, "json_of gives JSON");
  if (line.size() <= config::kMaxYamlBytes)
    promise(same_value(config::json_of(config::parse_yaml(line, "again")), value), "JSON reads back as equal YAML");
}

}  // namespace

void yaml(std::string_view bytes) {
  const auto tree = accepted([&] { return config::parse_yaml(bytes, "f.yaml"); });
  const auto value = accepted([&] { return config::parse_yaml_value(bytes, "value"); });
  const auto json = accepted([&] { return parse_json(bytes, "f.json"); });
  if (tree) look_at(*tree);
  if (value) look_at(*value);
  if (tree) promise(bytes.size() <= config::kMaxYamlBytes, "no longer than kMaxYamlBytes");
  if (tree && json && all_numbers_fit(*json))
    promise(same_value(config::json_of(*tree), *json), "JSON means the same as YAML");
}

}  // namespace normlab::fuzz
