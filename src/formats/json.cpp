// The value and its writer.
#include "normlab/formats/json.h"

#include <algorithm>
#include <cmath>

#include "normlab/base/utf8.h"

namespace normlab {

Json::Json(double value) {
  if (std::isfinite(value)) value_ = value;
}
Json::Json(float value) {
  if (std::isfinite(value)) value_ = Number{number(value)};
}
Json::Json(Array elements) : value_(std::move(elements)) {}

Json Json::array() { return Json(Array{}); }
Json Json::array(Array elements) { return Json(std::move(elements)); }
Json Json::object() { return object(Object{}); }
Json Json::object(Object members) {
  Json made;
  made.value_ = std::move(members);
  return made;
}

Json& Json::set(std::string_view name, Json value) {
  if (is_null()) value_ = Object{};
  check(is_object(), "json: cannot set \"", name, "\" in ", described());
  Object& all = std::get<Object>(value_);
  const auto found = std::find_if(all.begin(), all.end(), [&](const Member& member) { return member.name == name; });
  if (found != all.end())
    found->value = std::move(value);
  else
    all.push_back({std::string(name), std::move(value)});
  return *this;
}

void Json::push(Json element) {
  if (is_null()) value_ = Array{};
  check(is_array(), "json: cannot add an element to ", described());
  std::get<Array>(value_).push_back(std::move(element));
}

std::string Json::described() const {
  if (is_null()) return "null";
  if (is_array()) return "an array";
  if (is_object()) return "an object";
  return text(is_bool() ? "" : is_number() ? "the number " : "the text ", line());
}

bool Json::boolean() const {
  check<DataError>(is_bool(), "expected true or false, found ", described());
  return std::get<bool>(value_);
}

std::string Json::number_text() const {
  if (const auto* integer = std::get_if<std::int64_t>(&value_)) return number(*integer);
  if (const auto* real = std::get_if<double>(&value_)) return number(*real);
  return std::get<Number>(value_).text;
}

std::int64_t Json::integer() const {
  if (const auto* integer = std::get_if<std::int64_t>(&value_)) return *integer;
  const auto value = is_number() ? parse_int(number_text()) : std::nullopt;
  check<DataError>(value.has_value(),
                   "expected a whole number of 64 bits (-9223372036854775808 to 9223372036854775807), found ",
                   described());
  return *value;
}

double Json::real() const {
  if (const auto* integer = std::get_if<std::int64_t>(&value_)) return static_cast<double>(*integer);
  if (const auto* real = std::get_if<double>(&value_)) return *real;
  const auto value = is_number() ? parse_double(number_text()) : std::nullopt;
  check<DataError>(value.has_value(), "expected a number that a double can hold, found ", described());
  return *value;
}

const std::string& Json::string() const {
  check<DataError>(is_string(), "expected a text, found ", described());
  return std::get<std::string>(value_);
}

const Json::Array& Json::elements() const {
  check<DataError>(is_array(), "expected an array, found ", described());
  return std::get<Array>(value_);
}

const Json::Object& Json::members() const {
  check<DataError>(is_object(), "expected an object, found ", described());
  return std::get<Object>(value_);
}

const Json* Json::find(std::string_view name) const {
  for (const Member& member : members())
    if (member.name == name) return &member.value;
  return nullptr;
}

const Json& Json::at(std::string_view name) const {
  const Json* found = find(name);
  check<DataError>(found != nullptr, "expected a member \"", name, "\", found none");
  return *found;
}

bool operator==(const Json& a, const Json& b) {
  return a.is_number() && b.is_number() ? a.number_text() == b.number_text() : a.value_ == b.value_;
}

class JsonWriter {
 public:
  explicit JsonWriter(bool indent) : indent_(indent) {}

  void write(const Json& json, int level) {
    if (const auto* elements = std::get_if<Json::Array>(&json.value_))
      write_list(*elements, '[', ']', level);
    else if (const auto* members = std::get_if<Json::Object>(&json.value_))
      write_list(*members, '{', '}', level);
    else if (const auto* string = std::get_if<std::string>(&json.value_))
      write_string(*string);
    else if (json.is_number())
      out += json.number_text();
    else if (const auto* boolean = std::get_if<bool>(&json.value_))
      out += *boolean ? "true" : "false";
    else
      out += "null";
  }

  std::string out;

 private:
  static bool is_plain(const Json::Member&) { return false; }
  static bool is_plain(const Json& json) { return !json.is_array() && !json.is_object(); }

  void write_item(const Json& element, int level) { write(element, level); }
  void write_item(const Json::Member& member, int level) {
    write_string(member.name);
    out += indent_ ? ": " : ":";
    write(member.value, level);
  }

  template <class List>
  void write_list(const List& list, char open, char close, int level) {
    const bool broken = indent_ && !std::all_of(list.begin(), list.end(), [](const auto& i) { return is_plain(i); });
    out += open;
    for (const auto& item : list) {
      if (&item != &list.front()) out += indent_ && !broken ? ", " : ",";
      if (broken) break_line(level + 1);
      write_item(item, level + 1);
    }
    if (broken) break_line(level);
    out += close;
  }

  void break_line(int level) {
    out += '\n';
    out.append(2 * static_cast<std::size_t>(level), ' ');
  }

  // Bytes that are not UTF-8 become U+FFFD, so that what is written always is JSON.
  void write_string(std::string_view s) {
    out += '"';
    while (!s.empty()) {
      const std::size_t length = utf8_length(s);
      if (length == 0)
        out += "\xEF\xBF\xBD";
      else if (length == 1)
        write_ascii(s[0]);
      else
        out += s.substr(0, length);
      s.remove_prefix(std::max<std::size_t>(length, 1));
    }
    out += '"';
  }

  void write_ascii(char c) {
    constexpr std::string_view kHex = "0123456789abcdef", kNamed = "\"\\\b\f\n\r\t", kLetters = "\"\\bfnrt";
    if (const std::size_t named = kNamed.find(c); named != std::string_view::npos) {
      out += '\\';
      out += kLetters[named];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += "\\u00";
      const auto code = static_cast<unsigned char>(c);
      out += kHex[code / 16];
      out += kHex[code % 16];
    } else {
      out += c;
    }
  }

  bool indent_;
};

std::string Json::line() const {
  JsonWriter writer(false);
  writer.write(*this, 0);
  return std::move(writer.out);
}

std::string Json::indented() const {
  JsonWriter writer(true);
  writer.write(*this, 0);
  return std::move(writer.out);
}

}  // namespace normlab
