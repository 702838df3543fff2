// Settings declared once: FIELD gives a struct a member with its default, valid range and help text, and makes it
// visible to visitors (the reader, the dump, the help, equality).
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace normlab::config {

// The numbers that a key takes, each element of a list included. Not for text, enums and true/false.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool low_open = false, high_open = false;

  bool contains(double x) const { return (low_open ? x > low : x >= low) && (high_open ? x < high : x <= high); }
  std::string describe() const;  // "at least 1", "above 0", "0 or more and below 1"; empty when everything goes
};
inline constexpr Range any_value{};
constexpr Range at_least(double low) { return {.low = low}; }
constexpr Range above(double low) { return {.low = low, .low_open = true}; }
constexpr Range between(double low, double high) { return {.low = low, .high = high}; }  // [low, high]
constexpr Range from_below(double low, double high) {
  return {.low = low, .high = high, .high_open = true};
}  // [low, high)

inline constexpr int kMaxFields = 48;
template <int N>
struct Rank : Rank<N - 1> {};
template <>
struct Rank<0> {};

struct Fields {
  static std::integral_constant<int, 0> field_count(Rank<0>);
};

// The index of a field is how many stand before it: the overload of field_count with the highest rank so far says so.
#define FIELD(Type, name, initial, range, help)                                                                \
  Type name = initial;                                                                                         \
  static constexpr int name##_index =                                                                          \
      decltype(field_count(::normlab::config::Rank<::normlab::config::kMaxFields>{}))::value;                  \
  static std::integral_constant<int, name##_index + 1> field_count(::normlab::config::Rank<name##_index + 1>); \
  template <class Self, class V>                                                                               \
  static void visit_field(std::integral_constant<int, name##_index>, Self& self, V& v) {                       \
    v(std::string_view{#name}, std::string_view{help}, ::normlab::config::Range{range}, self.name);            \
  }

template <int I = 0, class S, class V>
void visit_fields(S& section, V&& v) {
  using Struct = std::remove_const_t<S>;
  if constexpr (I < decltype(Struct::field_count(Rank<kMaxFields>{}))::value) {
    Struct::visit_field(std::integral_constant<int, I>{}, section, v);
    visit_fields<I + 1>(section, v);
  }
}

// Enumerators are spelt as in YAML; their names are read from the compiler. Enumerators count from 0 without gaps.
template <class E, E value>
constexpr std::string_view enumerator_name() {
  const std::string_view f =
      __PRETTY_FUNCTION__;  // GCC "... value = ns::E::name; ...]", Clang "... value = ns::E::name]"
  const std::size_t start = f.find("value = ") + 8;
  std::string_view name = f.substr(start, f.find_first_of(";]", start) - start);
  name.remove_prefix(name.rfind(':') + 1);
  return name;
}
template <class E, int I = 0>
constexpr int enumerator_count() {
  const std::string_view name = enumerator_name<E, static_cast<E>(I)>();
  if constexpr (I < 64) {
    // A value without an enumerator is printed as a cast: "(ns::E)7".
    if (name.find(')') != std::string_view::npos || name.find('(') != std::string_view::npos) return I;
    return enumerator_count<E, I + 1>();
  } else {
    return I;
  }
}
template <class E>
constexpr auto enumerator_names() {
  return []<std::size_t... I>(std::index_sequence<I...>) {
    return std::array<std::string_view, sizeof...(I)>{enumerator_name<E, static_cast<E>(I)>()...};
  }
  (std::make_index_sequence<static_cast<std::size_t>(enumerator_count<E>())>{});
}
template <class E>
requires std::is_enum_v<E> std::string_view to_string(E value) {
  static constexpr auto names = enumerator_names<E>();
  return names[static_cast<std::size_t>(value)];
}
template <class E>
std::optional<E> parse_enum(std::string_view text) {
  static constexpr auto names = enumerator_names<E>();
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i] == text) return static_cast<E>(i);
  return std::nullopt;
}

}  // namespace normlab::config
