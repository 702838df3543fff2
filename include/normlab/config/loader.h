// Any struct of FIELDs, read from YAML and key=value overrides, and written as YAML, help and a table.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "normlab/config/fields.h"
#include "normlab/config/value.h"
#include "normlab/config/yaml.h"

namespace normlab::config {

// Where the value of each key that was given came from: "configs/tiny.yaml:7", "command line". Others: the default.
using Origins = std::map<std::string, std::string, std::less<>>;

struct Difference {
  std::string path, left, right;  // values as YAML
};

// A key or a section of a struct, without its type.
struct Key {
  std::string path, help;  // "model.norm"
  Range range;
  std::string type;  // "an integer"; empty for a section
  std::vector<std::string_view> choices;
  void* member = nullptr;
  void (*read)(const Yaml& value, const Reading& reading, void* member) = nullptr;
  std::string (*write)(const void* member) = nullptr;

  bool is_section() const { return read == nullptr; }
  std::string_view name() const { return std::string_view(path).substr(path.rfind('.') + 1); }
  std::string value() const { return write(member); }
};

// In the order of declaration, a section before its keys. The keys read from and write to `config` itself.
using Keys = std::vector<Key>;

struct CollectKeys {
  Keys& keys;
  std::string prefix;

  template <class T>
  void operator()(std::string_view name, std::string_view help, const Range& range, T& member) const {
    Key key{prefix + std::string(name), std::string(help), range, {}, {}, &member};
    if constexpr (std::is_base_of_v<Fields, T>) {
      keys.push_back(key);
      visit_fields(member, CollectKeys{keys, key.path + "."});
    } else {
      key.type = Value<T>::type();
      key.choices = Value<T>::choices();
      key.read = [](const Yaml& value, const Reading& reading, void* to) {
        Value<T>::read(value, reading, *static_cast<T*>(to));
      };
      key.write = [](const void* from) { return Value<T>::write(*static_cast<const T*>(from)); };
      keys.push_back(std::move(key));
    }
  }
};
template <class C>
Keys keys_of(C& config) {
  Keys keys;
  visit_fields(config, CollectKeys{keys, {}});
  return keys;
}

// The work, on keys of any struct.
void load_keys(const Keys& keys, const Yaml& tree, std::string_view source, Origins* origins);
void override_keys(const Keys& keys, std::span<const std::string> overrides, Origins* origins);
std::string dump_keys(const Keys& keys, const Origins* origins);
std::string help_keys(const Keys& keys);
std::string table_keys(const Keys& keys);
// How an option --NAME VALUE is written as a setting; empty where no key, or more than one, has that name here or in
// other trainers.
std::string setting_hint(const Keys& keys, std::string_view name, std::string_view value);
std::string key_value(const Keys& keys, std::string_view path);
std::vector<Difference> key_differences(const Keys& left, const Keys& right);

// The values of a tree into `config`; keys that it does not name keep theirs. Throws ConfigError with file, line,
// column and key for an unknown key (naming the nearest), a value of another type, out of range, or not a choice.
template <class C>
void load(C& config, const Yaml& tree, std::string_view source, Origins* origins = nullptr) {
  load_keys(keys_of(config), tree, source, origins);
}
// Each "dotted.path=value", split at the first '='; the last one wins; null empties an optional key.
template <class C>
void apply_overrides(C& config, std::span<const std::string> overrides, Origins* origins = nullptr) {
  override_keys(keys_of(config), overrides, origins);
}

template <class C>
struct Resolved {
  C config{};
  Origins origins;
};
// Defaults, then the file, then the overrides.
template <class C>
Resolved<C> load_config(const std::string& path, std::span<const std::string> overrides = {}) {
  Resolved<C> resolved;
  load(resolved.config, read_yaml(path), path, &resolved.origins);
  apply_overrides(resolved.config, overrides, &resolved.origins);
  return resolved;
}

// Every key with its value, as YAML that reads back equal.
template <class C>
std::string dump(C config) {
  return dump_keys(keys_of(config), nullptr);
}
// The same, with the origin of each value as a comment after it.
template <class C>
std::string print_config(Resolved<C> resolved) {
  return dump_keys(keys_of(resolved.config), &resolved.origins);
}
// A configuration of all defaults, each key below its help, type and range as comments.
template <class C>
std::string help_config() {
  C config{};
  return help_keys(keys_of(config));
}
// The same as a Markdown table: key, default, range, meaning.
template <class C>
std::string help_table() {
  C config{};
  return table_keys(keys_of(config));
}
// The value at a dotted path as YAML; ConfigError for an unknown key.
template <class C>
std::string value_of(C config, std::string_view path) {
  return key_value(keys_of(config), path);
}
template <class C>
std::vector<Difference> differences(C left, C right) {
  return key_differences(keys_of(left), keys_of(right));
}

}  // namespace normlab::config
