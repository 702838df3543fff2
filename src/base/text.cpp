// Text from numbers and back, independent of any locale; the nearest of several names.
#include "normlab/base/text.h"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <numeric>
#include <utility>

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

char folded(char c) {
  if (c == '-') return '_';
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Levenshtein's distance where swapped neighbours are one change too (optimal string alignment), three rows at a time.
std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1), last, before;
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    before = std::exchange(last, row);
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const auto differ = [&](std::size_t m, std::size_t n) { return folded(a[i - m]) != folded(b[j - n]); };
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + differ(1, 1)});
      if (i > 1 && j > 1 && !differ(1, 2) && !differ(2, 1)) row[j] = std::min(row[j], before[j - 2] + 1);
    }
  }
  return row[b.size()];
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

std::string nearest(std::string_view name, std::span<const std::string> candidates) {
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(name.size() / 3, 1) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(name, candidate);
    if (distance < best_distance && distance < std::max(name.size(), candidate.size())) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace normlab
