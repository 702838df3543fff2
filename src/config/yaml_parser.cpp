// The YAML parser: recursive descent over characters, block collections by the column of their first entry.
#include <algorithm>
#include <map>
#include <utility>

#include "normlab/base/check.h"
#include "normlab/config/yaml.h"
#include "normlab/formats/foreign_format.h"
#include "normlab/host/files.h"
#include "yaml_text.h"

namespace normlab::config {
namespace {

class Parser : YamlScanner {
 public:
  Parser(std::string_view text, std::string_view source) : YamlScanner(text, source) {}

  Yaml document() {
    Yaml root;
    if (!to_content()) return root;
    if (at_marker("---")) {
      for (int i = 0; i < 3; ++i) step();
      skip_blanks();
      if (!at_break() && !at_comment())
        fail(place(), "a value on the line of '---' is not supported; start it on the next line");
      end_of_line("the document's start");
      start_document();
      if (!to_content()) return root;
    }
    start_document();
    root = block_node(-1, true, 0);
    if (to_content()) fail(place(), "'", rest_of_line(), "' stands outside of the document's value; ", kLayoutHint);
    return root;
  }

  // What a command line gives: the whole text is one value.
  Yaml value() {
    flow_gap(-1);
    Yaml node = flow_node(-1, 0);
    flow_gap(-1);
    if (!at_end()) fail(place(), "'", rest_of_line(), "' follows the value");
    return node;
  }

 private:
  static constexpr std::string_view kLayoutHint =
      "entries of one mapping or list start in the same column; plain text over several lines is not supported: quote "
      "it";

  int indent() const { return place().column - 1; }
  bool at_dash() const { return peek() == '-' && is_gap(peek(1)); }
  bool at_colon() const { return peek() == ':' && is_gap(peek(1)); }

  void check_depth(int depth) const {
    if (depth >= kMaxYamlDepth) fail(place(), "nested deeper than ", kMaxYamlDepth, " levels");
  }

  static bool lacks_space(const Yaml& node) { return !node.quoted && node.text.find(':') != std::string::npos; }

  Yaml scalar(bool in_flow, int parent) { return peek() == '"' || peek() == '\'' ? quoted(parent) : plain(in_flow); }

  // The value at the cursor, inside of entries that start in column `parent` + 1. `may_open`: a block collection may
  // start here.
  Yaml block_node(int parent, bool may_open, int depth) {
    check_depth(depth);
    const int column = indent();
    if (at_dash()) {
      if (!may_open) fail(place(), "a list in block form starts on a line of its own; on this line write [a, b]");
      return sequence(column, depth);
    }
    if (peek() == '|') return literal(parent);
    refuse_unsupported();
    if (peek() == '[' || peek() == '{') {
      Yaml node = flow(parent, depth);
      skip_blanks();
      if (at_colon()) fail(node.at, "complex keys are not supported: a key is text");
      end_of_line("the value");
      return node;
    }
    Yaml node = scalar(false, parent);
    skip_blanks();
    if (!at_colon()) {
      end_of_line("the value");
      if (may_open && lacks_space(node) && to_content() && indent() > parent)
        fail(node.at, "a space is missing after the colon of '", excerpt(node.text), "'");
      return node;
    }
    if (!may_open) fail(place(), "a second ': ' on this line; quote a value that holds ': '");
    return mapping(column, std::move(node), depth);
  }

  // What follows the ':' or '-' of an entry in `column`. In a mapping, a list may start in the mapping's own column.
  Yaml entry_value(int column, bool in_mapping, int depth) {
    const bool tab = skip_blanks();
    if (!at_break() && !at_comment()) {
      if (tab && !in_mapping) fail(place(), "tabs between '-' and its item are not supported; use spaces");
      return block_node(column, !in_mapping, depth + 1);
    }
    Yaml absent;
    absent.at = place();
    if (!to_content()) return absent;
    if (indent() > column || (in_mapping && indent() == column && at_dash()))
      return block_node(column, true, depth + 1);
    return absent;
  }

  // Whether the cursor is on one more entry in `column`.
  bool next_entry(int column) {
    if (!to_content() || indent() < column) return false;
    if (indent() > column)
      fail(place(), "'", rest_of_line(), "' stands in column ", indent() + 1, ", where column ", column + 1,
           " is expected; ", kLayoutHint);
    return true;
  }

  Yaml sequence(int column, int depth) {
    Yaml node;
    node.kind = Yaml::Kind::sequence;
    node.at = place();
    while (next_entry(column) && at_dash()) {
      step();
      node.children.push_back(entry_value(column, false, depth));
    }
    return node;
  }

  // `key` has been read, the cursor is on its ':'.
  Yaml mapping(int column, Yaml key, int depth) {
    Yaml node;
    node.kind = Yaml::Kind::mapping;
    node.at = key.at;
    std::map<std::string, int> lines;
    for (;;) {
      check_key(key, lines);
      step();
      add(node, key, entry_value(column, true, depth));
      if (!next_entry(column)) return node;
      if (at_dash()) fail(place(), "a list item among the keys of a mapping");
      refuse_unsupported();
      if (peek() == '[' || peek() == '{') fail(place(), "'key: value' is expected, not a flow collection");
      const std::string line = rest_of_line();
      key = scalar(false, column);
      skip_blanks();
      if (!at_colon() && lacks_space(key)) fail(key.at, "a space is missing after the colon of '", line, "'");
      if (!at_colon()) fail(key.at, "'", line, "' has no ': '; 'key: value' is expected; ", kLayoutHint);
    }
  }

  static void add(Yaml& mapping, Yaml& key, Yaml value) {
    value.key = std::move(key.text);
    value.key_at = key.at;
    mapping.children.push_back(std::move(value));
  }

  // A key is on one line, and new in its mapping.
  void check_key(const Yaml& key, std::map<std::string, int>& lines) const {
    if (key.at.line != place().line && !in_flow_) fail(key.at, "a key stands on one line");
    if (key.text.size() > kMaxYamlKey) fail(key.at, "the key is longer than ", kMaxYamlKey, " characters");
    if (key.text == "<<" && !key.quoted) fail(key.at, "merge keys (<<) are not supported; write the keys out");
    const auto [first, is_new] = lines.emplace(key.text, key.at.line);
    if (!is_new)
      fail(key.at, "the key '", excerpt(key.text), "' is given twice: in line ", first->second, " and in line ",
           key.at.line);
  }

  Yaml flow_node(int parent, int depth) {
    refuse_unsupported();
    if (peek() == '|') fail(place(), "a literal block cannot stand within brackets; use double quotes");
    return peek() == '[' || peek() == '{' ? flow(parent, depth) : scalar(true, parent);
  }

  // [a, b] or {a: 1, b: 2}, over any number of lines.
  Yaml flow(int parent, int depth) {
    check_depth(depth);
    const bool outer = std::exchange(in_flow_, true);
    Yaml node;
    node.at = place();
    const bool is_mapping = peek() == '{';
    const char close = is_mapping ? '}' : ']';
    node.kind = is_mapping ? Yaml::Kind::mapping : Yaml::Kind::sequence;
    std::map<std::string, int> lines;
    step();
    for (bool more = true; more;) {
      flow_gap(parent);
      if (peek() == close) break;
      if (at_end()) break;
      if (peek() == ',') fail(place(), "nothing stands before this ','");
      if (is_mapping)
        flow_pair(node, lines, parent, depth);
      else
        flow_item(node, parent, depth);
      flow_gap(parent);
      more = peek() == ',';
      if (more) step();
    }
    const char open = is_mapping ? '{' : '[';
    if (at_end()) fail(node.at, "this '", open, "' is never closed by '", close, "'");
    if (peek() != close)
      fail(place(), "',' or '", close, "' is expected for the '", open, "' of line ", node.at.line, ", not '",
           rest_of_line(), "'", over_lines(node));
    step();
    in_flow_ = outer;
    return node;
  }

  // What to add where an entry of brackets is followed by something else, on a line of its own.
  std::string_view over_lines(const Yaml& node) const {
    const bool goes_on = !node.children.empty() && !node.children.back().quoted &&
                         node.children.back().kind == Yaml::Kind::scalar && node.children.back().at.line < place().line;
    return goes_on ? "; plain text over several lines is not supported: quote it" : "";
  }

  void flow_item(Yaml& node, int parent, int depth) {
    node.children.push_back(flow_node(parent, depth + 1));
    flow_gap(parent);
    if (peek() == ':')
      fail(node.children.back().at, "a 'key: value' pair within [ ] is not supported; write {key: value}");
  }

  void flow_pair(Yaml& node, std::map<std::string, int>& lines, int parent, int depth) {
    if (peek() == '[' || peek() == '{') fail(place(), "complex keys are not supported: a key is text");
    Yaml key = flow_node(parent, depth + 1);
    check_key(key, lines);
    flow_gap(parent);
    const bool at_value = peek() == ':' && (key.quoted || is_gap(peek(1)) || is_flow_mark(peek(1)));
    if (!at_value && place().line > key.at.line && peek() != ',' && peek() != '}')
      fail(key.at, "plain text over several lines is not supported: quote '", excerpt(key.text), "' and what follows");
    if (!at_value)
      fail(key.at, "a key without ':' is not supported: '", excerpt(key.text),
           "' has no value; write 'key: value', with a space");
    step();
    flow_gap(parent);
    Yaml value;
    value.at = place();
    if (peek() != ',' && peek() != '}' && !at_end()) value = flow_node(parent, depth + 1);
    add(node, key, std::move(value));
  }

  bool in_flow_ = false;
};

}  // namespace

const Yaml* Yaml::find(std::string_view name) const {
  const auto it = std::find_if(children.begin(), children.end(), [&](const Yaml& child) { return child.key == name; });
  return kind == Kind::mapping && it != children.end() ? &*it : nullptr;
}

Yaml parse_yaml(std::string_view document, std::string_view source) { return Parser(document, source).document(); }

Yaml parse_yaml_value(std::string_view value, std::string_view source) {
  const std::size_t start = value.find_first_not_of(" \t");
  value = start == std::string_view::npos ? "" : value.substr(start, value.find_last_not_of(" \t") - start + 1);
  if (!value.empty() && std::string_view("[{\"'").find(value[0]) != std::string_view::npos)
    return Parser(value, source).value();
  [[maybe_unused]] const YamlScanner checks_characters(value, source);
  Yaml node;
  node.at = {1, 1};
  node.kind = core_null(value) ? Yaml::Kind::null : Yaml::Kind::scalar;
  node.text = value;
  return node;
}

Yaml read_yaml(const std::string& path) {
  const std::string document = read_file(path, kMaxYamlBytes + 1);
  refuse_foreign(document, path, "YAML");
  return parse_yaml(document, path);
}

Yaml nest(std::string_view dotted_path, Yaml value) {
  const Place place = value.key_at.line > 0 ? value.key_at : value.at;
  for (int depth = 0; depth < kMaxYamlDepth; ++depth) {
    const std::size_t dot = dotted_path.rfind('.');
    const bool outermost = dot == std::string_view::npos;
    value.key = dotted_path.substr(outermost ? 0 : dot + 1);
    value.key_at = place;
    Yaml node;
    node.kind = Yaml::Kind::mapping;
    node.at = place;
    node.children.push_back(std::move(value));
    if (outermost) return node;
    dotted_path = dotted_path.substr(0, dot);
    value = std::move(node);
  }
  throw ConfigError(text("'", excerpt(dotted_path), "...': nested deeper than ", kMaxYamlDepth, " levels"));
}

}  // namespace normlab::config
