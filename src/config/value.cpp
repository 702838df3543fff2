// The value of one key from YAML, by the type of the key.
#include "normlab/config/value.h"

#include <cmath>
#include <limits>

#include "normlab/base/check.h"
#include "normlab/base/did_you_mean.h"

namespace normlab::config {
namespace {

std::string found(const Yaml& value) {
  switch (value.kind) {
    case Yaml::Kind::null:
      return value.text.empty() ? "nothing" : text("'", value.text, "'");
    case Yaml::Kind::sequence:
      return text("a list of ", value.children.size());
    case Yaml::Kind::mapping:
      return "a mapping";
    case Yaml::Kind::scalar:
      break;
  }
  return value.quoted ? text("the quoted \"", excerpt(value.text), "\"") : text("'", excerpt(value.text), "'");
}

bool is_plain(const Yaml& value) { return value.kind == Yaml::Kind::scalar && !value.quoted; }

void check_range(const Yaml& value, const Reading& reading, double x) {
  if (!reading.range.contains(x))
    reading.fail(value, text(excerpt(value.text), " is out of range; it takes ", reading.range.describe()));
}

std::string lower(std::string_view s) {
  std::string out(s);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return out;
}

std::string_view true_or_false_hint(std::string_view given) {
  const std::string word = lower(given);
  if (word == "yes" || word == "on" || word == "y" || word == "1" || word == "true") return "write true";
  if (word == "no" || word == "off" || word == "n" || word == "0" || word == "none" || word == "false")
    return "write false";
  return "";
}

}  // namespace

std::string at_place(std::string_view source, Place place) {
  return source == kCommandLine ? text(source, ": ") : text(source, ':', place.line, ':', place.column, ": ");
}

void Reading::fail(const Yaml& at, std::string_view what) const {
  throw ConfigError(text(at_place(source, at.at), path, ": ", what));
}

void Reading::fail_type(const Yaml& value, std::string_view hint) const {
  fail(value, text("wants ", type, ", not ", found(value), hint.empty() ? "" : "; ", hint));
}

void read_value(const Yaml& value, const Reading& reading, bool& out) {
  const auto x = core_bool(value.text);
  if (value.kind == Yaml::Kind::scalar && value.quoted && x) reading.fail_type(value, "drop the quotes");
  if (!is_plain(value) || !x) reading.fail_type(value, true_or_false_hint(value.text));
  out = *x;
}

void read_value(const Yaml& value, const Reading& reading, std::int64_t& out) {
  const auto x = core_int(value.text);
  if (value.quoted && x) reading.fail_type(value, "drop the quotes");
  if (!is_plain(value)) reading.fail_type(value);
  if (!x) {
    const auto y = core_float(value.text);
    if (is_integer_form(value.text) || (y && std::abs(*y) >= 9e15))
      reading.fail(value, text(excerpt(value.text), kBeyond64Bits));
    const bool whole = y && std::floor(*y) == *y;
    reading.fail_type(value, whole ? text("write ", static_cast<std::int64_t>(*y)) : "");
  }
  check_range(value, reading, static_cast<double>(*x));
  out = *x;
}

void read_value(const Yaml& value, const Reading& reading, int& out) {
  std::int64_t x = 0;
  read_value(value, reading, x);
  constexpr std::int64_t kLow = std::numeric_limits<int>::min(), kHigh = std::numeric_limits<int>::max();
  if (x < kLow || x > kHigh)
    reading.fail(value, text(x, " is out of range; it takes at ", x < 0 ? "least " : "most ", x < 0 ? kLow : kHigh));
  out = static_cast<int>(x);
}

void read_value(const Yaml& value, const Reading& reading, double& out) {
  const auto x = core_float(value.text);
  if (value.quoted && x) reading.fail_type(value, "drop the quotes");
  if (is_plain(value) && !x && is_number_form(value.text))
    reading.fail(value, text(excerpt(value.text),
                             " is out of range; numbers other than 0 are from 4.9e-324 to 1.8e308 "
                             "in size"));
  if (!is_plain(value) || !x) reading.fail_type(value);
  if (!std::isfinite(*x)) reading.fail(value, text(value.text, " is not finite; it takes finite numbers"));
  check_range(value, reading, *x);
  out = *x;
}

void read_value(const Yaml& value, const Reading& reading, std::string& out) {
  const bool empty_override = value.kind == Yaml::Kind::null && value.text.empty() && reading.source == kCommandLine;
  if (value.kind == Yaml::Kind::null && !empty_override)
    reading.fail_type(value, text("write \"", value.text, "\" if that is the text"));
  if (value.kind != Yaml::Kind::scalar && !empty_override) reading.fail_type(value, "quote a text that looks so");
  if (value.text.find('\0') != std::string::npos)
    reading.fail(value, "holds a NUL character, where a text ends for the system; leave it out");
  out = value.text;
}

int read_choice(const Yaml& value, const Reading& reading, std::span<const std::string_view> choices) {
  if (value.kind != Yaml::Kind::scalar) reading.fail_type(value);
  std::vector<std::string> names;
  for (const std::string_view choice : choices) {
    if (choice == value.text) return static_cast<int>(names.size());
    names.emplace_back(choice);
  }
  reading.fail(value,
               text("'", excerpt(value.text), "' is not one of ", join(names, " "), did_you_mean(value.text, names)));
}

void check_list(const Yaml& value, const Reading& reading, int length) {
  const bool fits = length < 0 || value.children.size() == static_cast<std::size_t>(length);
  if (value.kind != Yaml::Kind::sequence || !fits)
    reading.fail_type(value, value.kind == Yaml::Kind::scalar ? "write it in [ ]" : "");
}

}  // namespace normlab::config
