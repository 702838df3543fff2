// Text from numbers and back, independent of any locale.
#include "normlab/base/text.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>

#include "normlab/base/denormals.h"

namespace normlab {
namespace {

template <class T, class... Format>
std::string by_to_chars(T value, Format... format) {
  char buffer[512];
  const auto end = std::to_chars(buffer, buffer + sizeof buffer, value, format...).ptr;
  return std::string(buffer, end);
}

// By its bits: a comparison may count it as 0.
bool is_subnormal(double value) {
  constexpr std::uint64_t kExponent = std::uint64_t{0x7FF} << 52, kFraction = (std::uint64_t{1} << 52) - 1;
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return (bits & kExponent) == 0 && (bits & kFraction) != 0;
}

}  // namespace

std::string number(double value) {
  std::optional<WithSubnormals> exactly;  // a thread that counts it as 0 would write it as 0, and a setting is lost
  if (is_subnormal(value)) exactly.emplace();
  return std::isnan(value) ? "nan" : by_to_chars(value);
}
std::string number(float value) { return std::isnan(value) ? "nan" : by_to_chars(value); }
std::string number(std::int64_t value) { return by_to_chars(value); }
std::string fixed(double value, int digits) {
  return std::isnan(value) ? "nan" : by_to_chars(value, std::chars_format::fixed, digits);
}
std::string significant(double value, int digits) {
  return std::isnan(value) ? "nan" : by_to_chars(value, std::chars_format::general, digits);
}

std::optional<std::int64_t> parse_int(std::string_view s) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (error != std::errc{} || end != s.data() + s.size()) return std::nullopt;
  return value;
}

std::string_view trimmed(std::string_view s) {
  constexpr std::string_view kBlank = " \t\n";
  const std::size_t begin = std::min(s.find_first_not_of(kBlank), s.size());
  return s.substr(begin, s.find_last_not_of(kBlank) + 1 - begin);
}

std::string join(std::span<const std::string> parts, std::string_view between) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += between;
    out += part;
  }
  return out;
}

}  // namespace normlab
