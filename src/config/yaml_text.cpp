// The characters of a YAML document: position, white space, and the scalars in their four spellings.
#include "yaml_text.h"

#include <algorithm>
#include <cstdint>

#include "normlab/base/utf8.h"

namespace normlab::config {
namespace {
constexpr std::string_view kNoTabs = "tabs in the indentation are not supported; use spaces";
}

YamlScanner::YamlScanner(std::string_view document, std::string_view source) : source_(source) {
  if (document.size() > kMaxYamlBytes)
    fail({1, 1}, "longer than ", kMaxYamlBytes, " bytes, the most that a configuration may have");
  if (document.starts_with("\xEF\xBB\xBF")) document.remove_prefix(3);
  text_.reserve(document.size());
  Place at{1, 1};
  while (!document.empty()) {
    const auto c = static_cast<unsigned char>(document[0]);
    const std::size_t length = utf8_length(document);
    if (length == 0) fail(at, "the byte 0x", "0123456789ABCDEF"[c / 16], "0123456789ABCDEF"[c % 16], " is not UTF-8");
    const bool is_break = c == '\n' || c == '\r';
    if (c < 0x20 && c != '\t' && !is_break) fail(at, "a control character: ", excerpt(document.substr(0, 1)));
    text_ += is_break ? "\n" : document.substr(0, length);
    at = is_break ? Place{at.line + 1, 1} : Place{at.line, at.column + 1};
    document.remove_prefix(document.starts_with("\r\n") ? 2 : length);
  }
}

std::string YamlScanner::rest_of_line() const {
  return excerpt(std::string_view(text_).substr(at_, text_.find('\n', at_) - at_));
}

// What is in quotes may hold all that a text of JSON may (YAML 1.2.2, 5.1).
void YamlScanner::step() {
  if (!in_quotes_ && (peek() & 0x80 || peek() == 0x7F)) {
    const Utf8Step next = utf8_step(std::string_view(text_).substr(at_));
    if (next.status == Utf8Step::valid && !is_printable(next.code_point))
      fail(place(), "the control character ", code_point_name(next.code_point), "; quote it, or leave it out");
  }
  const char c = text_[at_++];
  if (c == '\n')
    place_ = {place_.line + 1, 1};
  else if ((static_cast<unsigned char>(peek()) & 0xC0) != 0x80)
    ++place_.column;
}

bool YamlScanner::skip_blanks() {
  bool tab = false;
  for (; is_blank(peek()); step()) tab |= peek() == '\t';
  return tab;
}

int YamlScanner::skip_spaces() {
  int count = 0;
  for (; peek() == ' '; step()) ++count;
  return count;
}

void YamlScanner::end_of_line(std::string_view what) {
  skip_blanks();
  if (at_comment())
    while (!at_break()) step();
  if (!at_break()) fail(place(), "'", rest_of_line(), "' follows ", what, " on its line");
}

void YamlScanner::refuse_markers() const {
  if (in_document_ && (at_marker("---") || at_marker("...")))
    fail(place(), "several documents are not supported: '", text_.substr(at_, 3), "'");
}

bool YamlScanner::to_content() {
  for (;;) {
    const bool new_line = place_.column == 1;
    if (new_line && peek() == '%') fail(place(), "directives (%) are not supported");
    refuse_markers();
    Place tab = place_;
    for (; peek() == ' '; step()) ++tab.column;
    const bool indented_by_tab = skip_blanks() && new_line;
    if (at_comment())
      while (!at_break()) step();
    if (at_end()) return false;
    if (peek() != '\n') {
      if (indented_by_tab) fail(tab, kNoTabs);
      return true;
    }
    step();
  }
}

void YamlScanner::flow_gap(int parent) {
  for (bool new_line = false;; new_line = true) {
    refuse_markers();
    const int indent = skip_spaces();
    const bool tab = skip_blanks();
    if (at_comment())
      while (!at_break()) step();
    if (peek() != '\n') {
      const bool closes = peek() == ']' || peek() == '}';
      if (new_line && indent <= parent && !closes && !at_end())
        fail(place(), tab ? kNoTabs : "what stands within brackets is indented deeper than the entry that they are in");
      return;
    }
    step();
  }
}

void YamlScanner::refuse_unsupported() const {
  switch (peek()) {
    case '&':
      fail(place(), "anchors (&) are not supported; quote a text that starts with &");
    case '*':
      fail(place(), "aliases (*) are not supported; quote a text that starts with *");
    case '!':
      fail(place(), "tags (!) are not supported; quote a text that starts with !");
    case '>':
      fail(place(), "folded blocks (>) are not supported; use | or double quotes");
    case '@':
    case '`':
    case '%':
      fail(place(), "a plain text cannot start with '", peek(), "'; quote it");
    case ',':
    case ']':
    case '}':
    case '#':
      fail(place(), "a value is expected, not '", peek(), "'");
    case '?':
      if (is_gap(peek(1))) fail(place(), "complex keys (?) are not supported");
      break;
    case '-':
      if (is_gap(peek(1)))
        fail(place(), "a '- ' item stands where a value is expected; start a list on a line of its own");
      break;
    case ':':
      if (is_gap(peek(1))) fail(place(), "empty keys are not supported: no key stands before this ':'");
      break;
    default:
      break;
  }
}

bool YamlScanner::plain_ends(bool in_flow) const {
  const auto flow_mark = [&](char c) { return in_flow && is_flow_mark(c); };
  const char c = peek(), next = peek(1);
  return at_break() || (c == ':' && (is_gap(next) || flow_mark(next))) || flow_mark(c) || at_comment();
}

Yaml YamlScanner::plain(bool in_flow) {
  Yaml node;
  node.at = place();
  std::size_t kept = 0;
  while (!plain_ends(in_flow)) {
    node.text += peek();
    if (!is_blank(peek())) kept = node.text.size();
    step();
  }
  node.text.resize(kept);
  if (kept == 0 || (in_flow && (node.text == "-" || node.text == "?")))
    fail(node.at, "a value is expected, not '", kept == 0 ? rest_of_line() : node.text, "'");
  node.kind = core_null(node.text) ? Yaml::Kind::null : Yaml::Kind::scalar;
  return node;
}

// A line break within quotes is a space, n + 1 of them are n line breaks (YAML 1.2.2, 6.5). `kept`: how much of the
// text stands even if it ends in blanks, being escaped. `single`: what one break is, nothing after a backslash.
void YamlScanner::fold(Yaml& node, std::size_t kept, int parent, std::string_view single) {
  while (node.text.size() > kept && is_blank(node.text.back())) node.text.pop_back();
  int breaks = 0, indent = 0;
  bool tab = false;
  for (; peek() == '\n'; ++breaks) {
    step();
    refuse_markers();
    indent = skip_spaces();
    tab = skip_blanks();
  }
  if (tab && indent <= parent) fail(place(), kNoTabs);
  if (at_end() || indent <= parent) fail(node.at, "the quoted text that starts here is not closed");
  node.text += breaks == 1 ? std::string(single) : std::string(static_cast<std::size_t>(breaks - 1), '\n');
}

Yaml YamlScanner::quoted(int parent) {
  Yaml node;
  node.kind = Yaml::Kind::scalar;
  node.quoted = true;
  node.at = place();
  const char quote = peek();
  std::size_t kept = 0;
  in_quotes_ = true;
  step();
  for (;;) {
    if (at_end()) fail(node.at, "the quoted text that starts here is not closed");
    if (peek() == '\n') {
      fold(node, kept, parent, " ");
    } else if (quote == '"' && peek() == '\\' && peek(1) == '\n') {
      step();
      fold(node, node.text.size(), parent, "");
      kept = node.text.size();
    } else if (quote == '"' && peek() == '\\') {
      step();
      escape(node);
      kept = node.text.size();
    } else if (peek() == quote && !(quote == '\'' && peek(1) == quote)) {
      in_quotes_ = false;
      step();
      return node;
    } else {
      if (peek() == quote) step();
      node.text += peek();
      step();
    }
  }
}

unsigned YamlScanner::hex(Place start, int digits) {
  unsigned code = 0;
  for (int i = 0; i < digits; ++i, step()) {
    const std::size_t x = std::string_view("0123456789abcdef0123456789ABCDEF").find(peek());
    if (at_end() || x == std::string_view::npos) fail(start, "an escape that wants ", digits, " hexadecimal digits");
    code = code * 16 + static_cast<unsigned>(x % 16);
  }
  return code;
}

// After a backslash (YAML 1.2.2, 5.7).
void YamlScanner::escape(Yaml& node) {
  static constexpr std::string_view kNames = "0abt\tnvfre \"/\\";
  static constexpr std::string_view kBytes("\0\a\b\t\t\n\v\f\r\x1B \"/\\", 14);
  const Place start{place_.line, place_.column - 1};
  if (at_end()) fail(node.at, "the quoted text that starts here is not closed");
  const char name = peek();
  step();
  if (const std::size_t i = kNames.find(name); i != std::string_view::npos) {
    node.text += kBytes[i];
  } else if (name == 'N' || name == '_' || name == 'L' || name == 'P') {
    append_utf8(node.text, name == 'N' ? 0x85 : name == '_' ? 0xA0 : name == 'L' ? 0x2028 : 0x2029);
  } else if (name == 'x' || name == 'u' || name == 'U') {
    unsigned code = hex(start, name == 'x' ? 2 : name == 'u' ? 4 : 8);
    // JSON writes what lies beyond U+FFFF as two \u: RFC 8259, section 7.
    if (code >= 0xD800 && code < 0xDC00 && name == 'u' && peek() == '\\' && peek(1) == 'u') {
      step();
      step();
      const unsigned low = hex(start, 4);
      code = low >= 0xDC00 && low < 0xE000 ? 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00) : 0xD800;
    }
    if ((code >= 0xD800 && code < 0xE000) || code > 0x10FFFF) fail(start, "an escape that is no Unicode character");
    append_utf8(node.text, code);
  } else {
    fail(start, "this escape is unknown; write \\\\ for a backslash");
  }
}

// The column, from 0, of the first line that is not blank; a line of spaces before it may not be longer.
int YamlScanner::literal_indent(Place start, int parent) const {
  int longest = 0;
  for (std::size_t line = at_;;) {
    std::size_t i = line;
    while (i < text_.size() && text_[i] == ' ') ++i;
    const int spaces = static_cast<int>(i - line);
    if (i == text_.size() || text_[i] != '\n') {
      const int column = i == text_.size() ? std::max(spaces, longest) : spaces;
      if (column <= parent || i == text_.size()) return std::max({column, longest, parent + 1, 1});
      if (longest > column)
        fail(start, "the literal block starts with a blank line that is indented deeper than its text");
      return std::max(column, 1);
    }
    longest = std::max(longest, spaces);
    line = i + 1;
  }
}

Yaml YamlScanner::literal(int parent) {
  Yaml node;
  node.kind = Yaml::Kind::scalar;
  node.quoted = true;
  node.at = place();
  char chomp = ' ';
  int indent = 0;
  step();
  for (int i = 0; i < 2 && !is_gap(peek()); ++i, step()) {
    if (chomp == ' ' && (peek() == '-' || peek() == '+'))
      chomp = peek();
    else if (indent == 0 && peek() >= '1' && peek() <= '9')
      indent = std::max(parent, 0) + peek() - '0';
    else
      break;
  }
  end_of_line("the | of a literal block");
  if (at_end()) return node;
  step();
  if (indent == 0) indent = literal_indent(node.at, parent);
  while (!at_end()) {
    std::size_t spaces = 0;
    while (peek(spaces) == ' ' && static_cast<int>(spaces) < indent) ++spaces;
    const char first = peek(spaces);
    const bool blank = first == '\n' || (first == '\0' && at_ + spaces == text_.size());
    if (static_cast<int>(spaces) < indent && first == '\t') fail(place(), kNoTabs);
    if (static_cast<int>(spaces) < indent && !blank) break;
    for (; spaces > 0; --spaces) step();
    for (; !at_break(); step()) node.text += peek();
    node.text += '\n';  // also where the document ends without one
    if (!at_end()) step();
  }
  const std::size_t last = node.text.find_last_not_of('\n');
  const std::size_t content = last == std::string::npos ? 0 : last + 1;
  if (chomp == '-') node.text.resize(content);
  if (chomp == ' ') node.text.resize(std::min(node.text.size(), content + (content > 0)));
  return node;
}

}  // namespace normlab::config
