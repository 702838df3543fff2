// Text from numbers and back, independent of any locale.
#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

std::string number(double value);  // shortest text that reads back as the same double; nan, inf, -inf
std::string number(float value);   // likewise for float
std::string number(std::int64_t value);
std::string fixed(double value, int digits);        // always this many digits after the point
std::string significant(double value, int digits);  // at most this many digits that count: 0.0123, 1.5e+06

// The whole of `s` as a number, the nearest there is; nothing where it is none, or out of range. Decimal point '.', no
// leading '+', no white space; `inf` and `nan` are doubles.
std::optional<double> parse_double(std::string_view s);
std::optional<std::int64_t> parse_int(std::string_view s);

inline void append_text(std::string& out, std::string_view part) { out += part; }
inline void append_text(std::string& out, const char* part) { out += part; }
inline void append_text(std::string& out, char part) { out += part; }
inline void append_text(std::string& out, bool part) { out += part ? "true" : "false"; }
template <std::integral T>
void append_text(std::string& out, T part) {
  out += number(static_cast<std::int64_t>(part));
}
template <std::floating_point T>
void append_text(std::string& out, T part) {
  out += number(part);
}

// The parts one after another; a type joins in by an append_text of its own.
template <class... Parts>
std::string text(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

std::string_view trimmed(std::string_view s);  // without the blanks, tabs and line ends around it

std::string join(std::span<const std::string> parts, std::string_view between);

}  // namespace normlab
