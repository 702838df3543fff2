// The strict reader of JSON: one function for each rule of the grammar of RFC 8259.
#include <algorithm>

#include "normlab/base/utf8.h"
#include "normlab/formats/foreign_format.h"
#include "normlab/formats/json.h"

namespace normlab {

class JsonReader {
 public:
  JsonReader(std::string_view text, std::string_view name) : text_(text), name_(name) {}

  Json document() {
    if (text_.size() > kMaxJsonBytes)
      fail(0, "longer than ", kMaxJsonBytes, " bytes, the most that a document may have");
    if (text_.starts_with("\xEF\xBB\xBF")) fail(0, "starts with a byte order mark; save the file as UTF-8 without one");
    refuse_foreign(text_, name_, "JSON");
    Json json = value(0);
    skip_space();
    if (at_ < text_.size()) fail(at_, "expected the end of the document, found ", found());
    return json;
  }

 private:
  template <class... Parts>
  [[noreturn]] void fail(std::size_t place, const Parts&... parts) const {
    const std::string_view before = text_.substr(0, place);
    const std::size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
    const auto characters = std::count_if(before.begin() + static_cast<std::ptrdiff_t>(line_start), before.end(),
                                          [](char c) { return (c & 0xC0) != 0x80; });
    throw DataError(normlab::text(name_, ":", std::count(before.begin(), before.end(), '\n') + 1, ":", characters + 1,
                                  ": ", parts...));
  }

  char peek() const { return at_ < text_.size() ? text_[at_] : '\0'; }

  // What stands at the present place, for a message.
  std::string found() const {
    if (at_ >= text_.size()) return "the end of the text";
    const std::size_t length = utf8_length(text_.substr(at_));
    if (length == 0) return "a byte that is not UTF-8";
    if (length == 1 && (peek() < 0x20 || peek() == 0x7F)) return normlab::text("control character ", int{peek()});
    return normlab::text("'", text_.substr(at_, length), "'");
  }

  void skip_space() { at_ = std::min(text_.find_first_not_of(" \t\n\r", at_), text_.size()); }

  bool take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }

  Json value(int depth) {
    skip_space();
    if (++values_ > kMaxJsonValues) fail(at_, "more than ", kMaxJsonValues, " values");
    if (depth == kMaxJsonDepth && (peek() == '[' || peek() == '{'))
      fail(at_, "more than ", kMaxJsonDepth, " levels of arrays and objects");
    switch (peek()) {
      case '{':
        return object(depth);
      case '[':
        return array(depth);
      case '"':
        return Json(string());
      case 't':
        return word("true", Json(true));
      case 'f':
        return word("false", Json(false));
      case 'n':
        return word("null", Json());
      default:
        return number();
    }
  }

  Json word(std::string_view expected, Json meaning) {
    if (!text_.substr(at_).starts_with(expected)) fail(at_, "expected a value, found ", found());
    at_ += expected.size();
    return meaning;
  }

  Json array(int depth) {
    ++at_;
    Json::Array elements;
    skip_space();
    if (take(']')) return Json(std::move(elements));
    do elements.push_back(value(depth + 1));
    while (another(']'));
    return Json(std::move(elements));
  }

  // After an element or a member: true at a comma, false at the closing bracket.
  bool another(char close) {
    skip_space();
    if (take(',')) return true;
    if (!take(close)) fail(at_, "expected ',' or '", close, "', found ", found());
    return false;
  }

  Json object(int depth) {
    ++at_;
    Json::Object members;
    std::vector<std::size_t> places;
    skip_space();
    if (take('}')) return Json::object();
    do {
      skip_space();
      places.push_back(at_);
      if (peek() != '"') fail(at_, "expected a name in double quotes, found ", found());
      std::string name = string();
      skip_space();
      if (!take(':')) fail(at_, "expected ':' after a name, found ", found());
      members.push_back({std::move(name), value(depth + 1)});
    } while (another('}'));
    refuse_repeated(members, places);
    return Json::object(std::move(members));
  }

  // Sorted, since a vocabulary has 50000 names.
  void refuse_repeated(const Json::Object& members, const std::vector<std::size_t>& places) const {
    std::vector<std::size_t> order(members.size());
    for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return members[a].name < members[b].name; });
    for (std::size_t i = 1; i < order.size(); ++i)
      if (members[order[i]].name == members[order[i - 1]].name)
        fail(places[order[i]], "the name \"", members[order[i]].name, "\" stands here a second time; remove one");
  }

  Json number() {
    const std::size_t start = at_;
    take('-');
    if (take('0')) {
      if (is_digit()) fail(start, "a number may not start with 0");
    } else {
      if (!is_digit()) fail(at_, at_ == start ? "expected a value, found " : "expected a digit, found ", found());
      digits();
    }
    if (take('.')) digits();
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      digits();
    }
    Json json;
    json.value_ = Json::Number{std::string(text_.substr(start, at_ - start))};
    return json;
  }

  bool is_digit() const { return peek() >= '0' && peek() <= '9'; }

  void digits() {
    if (!is_digit()) fail(at_, "expected a digit, found ", found());
    while (is_digit()) ++at_;
  }

  std::string string() {
    const std::size_t start = at_++;
    std::string out;
    while (!take('"')) {
      if (at_ >= text_.size()) fail(start, "this text has no closing '\"'");
      const std::size_t length = utf8_length(text_.substr(at_));
      if (length == 0) fail(at_, "a byte that is not UTF-8; save the file as UTF-8");
      if (length == 1 && static_cast<unsigned char>(peek()) < 0x20)
        fail(at_, found(), " in a text; write it as \\n or \\u00..");
      if (peek() == '\\') {
        escape(out);
        continue;
      }
      out += text_.substr(at_, length);
      at_ += length;
    }
    return out;
  }

  void escape(std::string& out) {
    constexpr std::string_view kLetters = "\"\\/bfnrt", kMeant = "\"\\/\b\f\n\r\t";
    const std::size_t start = at_++;
    if (const std::size_t i = kLetters.find(peek()); i != std::string_view::npos && at_ < text_.size()) {
      out += kMeant[i];
      ++at_;
      return;
    }
    if (!take('u')) fail(start, "unknown escape: '\\' followed by ", found());
    std::uint32_t code = hex4(start);
    if (code >= 0xD800 && code < 0xE000) {  // a pair of surrogates is one character above U+FFFF
      const bool paired = code < 0xDC00 && take('\\') && take('u');
      const std::uint32_t low = paired ? hex4(start) : 0;
      if (low < 0xDC00 || low >= 0xE000) fail(start, "half of a surrogate pair");
      code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
    }
    append_utf8(out, code);
  }

  std::uint32_t hex4(std::size_t escape_start) {
    std::uint32_t code = 0;
    for (int i = 0; i < 4; ++i, ++at_) {
      constexpr std::string_view kDigits = "0123456789abcdef0123456789ABCDEF";
      const std::size_t digit = at_ < text_.size() ? kDigits.find(text_[at_]) : std::string_view::npos;
      if (digit == std::string_view::npos) fail(escape_start, "\\u needs four hexadecimal digits");
      code = code * 16 + static_cast<std::uint32_t>(digit % 16);
    }
    return code;
  }

  std::string_view text_, name_;
  std::size_t at_ = 0, values_ = 0;
};

Json parse_json(std::string_view text, std::string_view name) { return JsonReader(text, name).document(); }

}  // namespace normlab
