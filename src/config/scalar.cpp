// Scalars of YAML: what plain text means by the core schema, and text and numbers in the other direction.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "normlab/base/text.h"
#include "normlab/base/utf8.h"
#include "normlab/config/yaml.h"

namespace normlab::config {
namespace {

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

bool digit(char c) { return c >= '0' && c <= '9'; }

std::size_t skip_digits(std::string_view s, std::size_t i) {
  while (i < s.size() && digit(s[i])) ++i;
  return i;
}

// [0-9]+
bool is_decimal(std::string_view s) { return !s.empty() && skip_digits(s, 0) == s.size(); }

// (\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool is_float(std::string_view s) {
  const std::size_t whole = skip_digits(s, 0);
  std::size_t i = whole;
  if (i < s.size() && s[i] == '.') {
    i = skip_digits(s, i + 1);
    if (whole == 0 && i < 2) return false;
  } else if (whole == 0) {
    return false;
  }
  if (i == s.size()) return true;
  if (s[i] != 'e' && s[i] != 'E') return false;
  ++i;
  if (i < s.size() && (s[i] == '-' || s[i] == '+')) ++i;
  return is_decimal(s.substr(i));
}

// 0o17 and 0x1F, which take no sign.
std::optional<std::int64_t> prefixed_int(std::string_view s) {
  const int base = s.starts_with("0o") ? 8 : s.starts_with("0x") ? 16 : 0;
  if (base == 0 || s.size() < 3) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : s.substr(2)) {
    const char lower = c >= 'A' && c <= 'F' ? static_cast<char>(c - 'A' + 'a') : c;
    const int x = digit(lower) ? lower - '0' : lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : base;
    if (x >= base || value > (std::numeric_limits<std::int64_t>::max() - x) / base) return std::nullopt;
    value = value * base + x;
  }
  return value;
}

// Words that YAML 1.1 takes for something other than text, beyond the core schema's.
bool special_in_yaml_1_1(std::string_view text) {
  std::string lower(text);
  for (char& c : lower)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  static constexpr std::array<std::string_view, 9> words{"y", "n", "yes", "no", "on", "off", "true", "false", "null"};
  return is_one_of(lower, words);
}

bool is_safe_plain(std::string_view text) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '/'; };
  if (text.empty() || special_in_yaml_1_1(text)) return false;
  const bool path = text.starts_with("./") || text.starts_with("../");
  return (letter(text[0]) || path) && std::all_of(text.begin(), text.end(), [&](char c) {
           return letter(c) || digit(c) || c == '.' || c == '-' || c == '+';
         });
}

}  // namespace

bool core_null(std::string_view text) {
  static constexpr std::array<std::string_view, 5> words{"", "~", "null", "Null", "NULL"};
  return is_one_of(text, words);
}

std::optional<bool> core_bool(std::string_view text) {
  static constexpr std::array<std::string_view, 3> yes{"true", "True", "TRUE"}, no{"false", "False", "FALSE"};
  if (is_one_of(text, yes)) return true;
  if (is_one_of(text, no)) return false;
  return std::nullopt;
}

std::optional<std::int64_t> core_int(std::string_view text) {
  const bool sign = text.starts_with('-') || text.starts_with('+');
  if (!is_decimal(text.substr(sign))) return prefixed_int(text);
  return parse_int(text.substr(text.starts_with('+')));
}

bool is_integer_form(std::string_view text) {
  const bool hex = text.starts_with("0x"), octal = text.starts_with("0o");
  if (hex || octal)
    return text.size() > 2 && text.find_first_not_of(hex ? "0123456789abcdefABCDEF" : "01234567", 2) == text.npos;
  return is_decimal(text.substr(text.starts_with('-') || text.starts_with('+')));
}

bool is_number_form(std::string_view text) {
  return is_integer_form(text) || is_float(text.substr(text.starts_with('-') || text.starts_with('+')));
}

std::optional<double> core_float(std::string_view text) {
  if (const auto whole = prefixed_int(text)) return static_cast<double>(*whole);
  static constexpr std::array<std::string_view, 3> nan{".nan", ".NaN", ".NAN"}, inf{".inf", ".Inf", ".INF"};
  if (is_one_of(text, nan)) return std::numeric_limits<double>::quiet_NaN();
  const bool sign = text.starts_with('-') || text.starts_with('+');
  const std::string_view magnitude = text.substr(sign);
  if (is_one_of(magnitude, inf)) return std::numeric_limits<double>::infinity() * (text[0] == '-' ? -1 : 1);
  if (!is_float(magnitude)) return std::nullopt;
  return parse_double(text.substr(text.starts_with('+')));
}

std::string yaml_text(std::string_view text) {
  if (is_safe_plain(text)) return std::string(text);
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return one_line(out) + '"';
}

std::string yaml_number(double value) {
  if (std::isnan(value)) return ".nan";
  if (std::isinf(value)) return value > 0 ? ".inf" : "-.inf";
  std::string out = number(value);
  const std::size_t exponent = out.find('e');
  if (exponent != std::string::npos && out.find('.') == std::string::npos) out.insert(exponent, ".0");
  return out;
}

bool is_printable(char32_t c) {
  return c == '\t' || c == '\n' || (c >= 0x20 && c != 0x7F && !(c >= 0x80 && c < 0xA0) && c != 0xFFFE && c != 0xFFFF);
}

std::string one_line(std::string_view text) {
  std::string out;
  for (std::size_t at = 0, size = 1; at < text.size(); at += size) {
    const Utf8Step step = utf8_step(text.substr(at));
    size = static_cast<std::size_t>(step.length);
    const char32_t c = step.code_point;
    const std::string name = code_point_name(c);
    if (c == '\n' || c == '\t')
      out += c == '\n' ? "\\n" : "\\t";
    else if (step.status != Utf8Step::valid || (is_printable(c) && c != 0x2028 && c != 0x2029))
      out += text.substr(at, size);
    else
      out += c < 0x100 ? "\\x" + name.substr(name.size() - 2) : "\\u" + name.substr(2);
  }
  return out;
}

std::string excerpt(std::string_view text) {
  std::size_t end = 0;
  for (int characters = 0; end < text.size() && characters < 60; ++characters)
    end += static_cast<std::size_t>(utf8_step(text.substr(end)).length);
  return one_line(text.substr(0, end)) + (end < text.size() ? "..." : "");
}

}  // namespace normlab::config
