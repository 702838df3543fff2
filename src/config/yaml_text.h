// The characters of a YAML document: position, white space, and the scalars in their four spellings.
#pragma once

#include <string>
#include <string_view>

#include "normlab/base/check.h"
#include "normlab/config/yaml.h"

namespace normlab::config {

class YamlScanner {
 public:
  // Throws ConfigError unless the document is UTF-8 without control characters, of at most kMaxYamlBytes.
  YamlScanner(std::string_view document, std::string_view source);

 protected:
  template <class... Parts>
  [[noreturn]] void fail(Place at, const Parts&... parts) const {
    throw ConfigError(normlab::text(source_, ':', at.line, ':', at.column, ": ", parts...));
  }

  Place place() const { return place_; }
  char peek(std::size_t ahead = 0) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  bool at_end() const { return at_ == text_.size(); }
  bool at_break() const { return peek() == '\n' || at_end(); }
  static bool is_blank(char c) { return c == ' ' || c == '\t'; }
  static bool is_gap(char c) { return is_blank(c) || c == '\n' || c == '\0'; }
  static bool is_flow_mark(char c) { return std::string_view(",[]{}").find(c) != std::string_view::npos; }
  bool at_comment() const { return peek() == '#' && (at_ == 0 || is_gap(text_[at_ - 1])); }
  bool at_marker(std::string_view marker) const {
    return place_.column == 1 && text_.compare(at_, 3, marker) == 0 && is_gap(peek(3));
  }
  std::string rest_of_line() const;  // an excerpt, for messages
  void step();                       // the only thing that moves the cursor forward

  bool skip_blanks();                       // whether there was a tab
  int skip_spaces();                        // how many
  void end_of_line(std::string_view what);  // nothing but a comment may follow `what`
  bool to_content();                        // in block context; false at the end of the document
  void flow_gap(int parent);                // white space, line breaks and comments within brackets
  void start_document() { in_document_ = true, refuse_markers(); }  // from here on, '---' would start another one
  void refuse_unsupported() const;                                  // what YAML has and this subset has not

  // The scalars. `parent`: the column, from 0, of the entry that a text belongs to; its further lines lie deeper.
  Yaml plain(bool in_flow);
  Yaml quoted(int parent);
  Yaml literal(int parent);

 private:
  void refuse_markers() const;
  bool plain_ends(bool in_flow) const;
  void fold(Yaml& node, std::size_t kept, int parent, std::string_view single);
  void escape(Yaml& node);
  unsigned hex(Place start, int digits);
  int literal_indent(Place start, int parent) const;

  std::string text_;  // line breaks are '\n', no byte order mark
  std::string source_;
  std::size_t at_ = 0;
  Place place_{1, 1};
  bool in_document_ = false, in_quotes_ = false;
};

}  // namespace normlab::config
