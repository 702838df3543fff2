// JSON (RFC 8259): a value, a strict reader, a writer of one line or of indented text. Objects keep their order.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "normlab/base/check.h"

namespace normlab {

// What a document may have at most: a value takes some 50 bytes of memory, so a small file cannot ask for much more.
inline constexpr int kMaxJsonDepth = 128;                            // arrays and objects within one another
inline constexpr std::size_t kMaxJsonBytes = std::size_t{1} << 27;   // of text
inline constexpr std::size_t kMaxJsonValues = std::size_t{1} << 23;  // counted wherever they stand

// A name and its value. A template, because Json is incomplete where it is first named.
template <class Value>
struct JsonMember {
  std::string name;
  Value value;
  friend bool operator==(const JsonMember&, const JsonMember&) = default;
};

// Build:  Json line = Json::object({{"step", 12}, {"kind", "train"}});  line.set("loss", 2.5f);  line.line()
// Read:   parse_json(text, "config.json").at("n_layer").integer()
class Json {
 public:
  using Member = JsonMember<Json>;
  using Array = std::vector<Json>;
  using Object = std::vector<Member>;

  Json() = default;  // null
  Json(std::nullptr_t) {}
  template <std::same_as<bool> T>
  Json(T value) : value_(value) {}
  template <std::integral T>
  requires(!std::same_as<T, bool> && !std::same_as<T, char>) Json(T value) : value_(integer_of(value)) {}
  Json(double value);  // null where not finite: JSON has no such numbers; the caller adds the flag that says so
  Json(float value);
  Json(const char* value) : value_(std::string(value)) {}
  Json(std::string_view value) : value_(std::string(value)) {}
  Json(std::string value) : value_(std::move(value)) {}
  Json(Array elements);
  template <class T>
  Json(const std::vector<T>& elements) : value_(Array(elements.begin(), elements.end())) {}
  template <class T>
  Json(const std::optional<T>& value) : Json(value ? Json(*value) : Json()) {}

  static Json array();
  static Json array(Array elements);
  static Json object();
  static Json object(Object members);  // the names are different from one another

  // An object's member, replaced or put at the end; null becomes an object first. Takes time linear in the members.
  Json& set(std::string_view name, Json value);
  // Puts an element at the end; null becomes an array first.
  void push(Json element);

  bool is_null() const { return std::holds_alternative<std::monostate>(value_); }
  bool is_bool() const { return std::holds_alternative<bool>(value_); }
  bool is_number() const {
    return std::holds_alternative<std::int64_t>(value_) || std::holds_alternative<double>(value_) ||
           std::holds_alternative<Number>(value_);
  }
  bool is_string() const { return std::holds_alternative<std::string>(value_); }
  bool is_array() const { return std::holds_alternative<Array>(value_); }
  bool is_object() const { return std::holds_alternative<Object>(value_); }

  // Each throws DataError when the value is of another kind, or a number does not fit.
  bool boolean() const;
  std::int64_t integer() const;  // written without point and exponent
  double real() const;           // any number: the double nearest to what was written
  const std::string& string() const;
  const Array& elements() const;
  const Object& members() const;

  // An object's member; `find` gives nullptr and `at` throws DataError when there is none. Linear in the members.
  const Json* find(std::string_view name) const;
  const Json& at(std::string_view name) const;

  std::string line() const;      // without spaces and line breaks
  std::string indented() const;  // two spaces a level; an array of plain values stays on one line

  friend bool operator==(const Json&, const Json&);  // numbers by their text

 private:
  // What was read, or is a float, is kept as it is written: integers of 64 bits, floats and doubles all are exact.
  struct Number {
    std::string text;
    friend bool operator==(const Number&, const Number&) = default;
  };

  friend class JsonReader;
  friend class JsonWriter;

  template <std::integral T>
  static std::int64_t integer_of(T value) {
    check(std::in_range<std::int64_t>(value), "json: a number above 2^63 - 1 is written as text");
    return static_cast<std::int64_t>(value);
  }
  std::string number_text() const;
  std::string described() const;

  std::variant<std::monostate, bool, std::int64_t, double, Number, std::string, Array, Object> value_;
};

// Reads one document. DataError "NAME:LINE:COLUMN: ..." (columns in characters) for anything that RFC 8259 does not
// allow, a repeated name, text that is not UTF-8, a lone surrogate, and whatever is over a limit above.
Json parse_json(std::string_view text, std::string_view name);

}  // namespace normlab
