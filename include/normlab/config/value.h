// The types that a key can have: integer, number, true/false, text, enum, optional of one, list of some.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/base/text.h"
#include "normlab/config/fields.h"
#include "normlab/config/yaml.h"

namespace normlab::config {

inline constexpr std::string_view kCommandLine = "command line";

// What is being read: for messages.
struct Reading {
  std::string_view source;  // a file's name, or kCommandLine
  std::string path;         // of the key, such as "model.norm"
  std::string type;         // what it wants, such as "an integer"
  Range range;

  // Throws ConfigError "SOURCE:LINE:COLUMN: PATH: ...", without a position on the command line.
  [[noreturn]] void fail(const Yaml& at, std::string_view what) const;
  [[noreturn]] void fail_type(const Yaml& found, std::string_view hint = {}) const;
};
std::string at_place(std::string_view source, Place place);  // "SOURCE:LINE:COLUMN: "

// Each throws ConfigError where the value has another type or is out of range; numbers are finite.
void read_value(const Yaml& value, const Reading& reading, bool& out);
void read_value(const Yaml& value, const Reading& reading, int& out);
void read_value(const Yaml& value, const Reading& reading, std::int64_t& out);
void read_value(const Yaml& value, const Reading& reading, double& out);
void read_value(const Yaml& value, const Reading& reading, std::string& out);
int read_choice(const Yaml& value, const Reading& reading, std::span<const std::string_view> choices);
void check_list(const Yaml& value, const Reading& reading, int length);  // -1: any length

// As YAML, in one line.
inline std::string write_value(bool value) { return value ? "true" : "false"; }
inline std::string write_value(std::int64_t value) { return number(value); }
inline std::string write_value(int value) { return number(std::int64_t{value}); }
inline std::string write_value(double value) { return yaml_number(value); }
inline std::string write_value(const std::string& value) { return yaml_text(value); }

// What a key of type T takes, in words, and how it is read and written.
template <class T>
struct Value {
  static std::string type() {
    if constexpr (std::is_same_v<T, bool>)
      return "true or false";
    else if constexpr (std::is_same_v<T, std::string>)
      return "text";
    else
      return std::is_same_v<T, double> ? "a number" : "an integer";
  }
  static std::vector<std::string_view> choices() { return {}; }
  static void read(const Yaml& value, const Reading& reading, T& out) { read_value(value, reading, out); }
  static std::string write(const T& value) { return write_value(value); }
};

template <class T>
requires std::is_enum_v<T>
struct Value<T> {
  static constexpr auto names = enumerator_names<T>();
  static std::string type() {
    std::string out = "one of";
    for (const std::string_view name : names) (out += ' ') += name;
    return out;
  }
  static std::vector<std::string_view> choices() { return {names.begin(), names.end()}; }
  static void read(const Yaml& value, const Reading& reading, T& out) {
    out = static_cast<T>(read_choice(value, reading, names));
  }
  static std::string write(const T& value) { return yaml_text(to_string(value)); }
};

template <class T>
struct Value<std::optional<T>> {
  static std::string type() { return text(Value<T>::type(), " or null"); }
  static std::vector<std::string_view> choices() { return Value<T>::choices(); }
  static void read(const Yaml& value, const Reading& reading, std::optional<T>& out) {
    out.reset();
    if (value.kind != Yaml::Kind::null) Value<T>::read(value, reading, out.emplace());
  }
  static std::string write(const std::optional<T>& value) { return value ? Value<T>::write(*value) : "null"; }
};

// Of std::vector (length -1) and std::array.
template <class List, class T, int length>
struct ListValue {
  static std::string type() {
    return "a list" + (length < 0 ? "" : " of " + number(std::int64_t{length})) + ", each " + Value<T>::type();
  }
  static std::vector<std::string_view> choices() { return Value<T>::choices(); }
  static void read(const Yaml& value, const Reading& reading, List& out) {
    check_list(value, reading, length);
    if constexpr (length < 0) out.assign(value.children.size(), T{});
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::string path = reading.path + "[" + number(static_cast<std::int64_t>(i)) + "]";
      T item{};
      Value<T>::read(value.children[i], {reading.source, path, Value<T>::type(), reading.range}, item);
      out[i] = item;
    }
  }
  static std::string write(const List& list) {
    std::string out = "[";
    for (const T& item : list) out += (out.size() > 1 ? ", " : "") + Value<T>::write(item);
    return out + "]";
  }
};
template <class T>
struct Value<std::vector<T>> : ListValue<std::vector<T>, T, -1> {};
template <class T, std::size_t N>
struct Value<std::array<T, N>> : ListValue<std::array<T, N>, T, static_cast<int>(N)> {};

}  // namespace normlab::config
