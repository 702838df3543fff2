// YAML 1.2, the part that configurations need, as a tree whose nodes know their line and column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {
class Json;
}

namespace normlab::config {

inline constexpr int kMaxYamlDepth = 64;                            // collections within one another
inline constexpr std::size_t kMaxYamlBytes = std::size_t{1} << 22;  // of a document
inline constexpr int kMaxYamlKey = 1024;                            // characters of a key (YAML 1.2.2, 7.4.2)

// Counted from 1; a column is a character, not a byte. Line 0: nowhere in a file.
struct Place {
  int line = 0, column = 0;
};

struct Yaml {
  enum class Kind { null, scalar, sequence, mapping };

  Kind kind = Kind::null;
  std::string text;            // of a scalar, unescaped; of a null as written: null, ~ or nothing
  bool quoted = false;         // '...', "..." or a literal block: always text, never a number
  Place at;                    // where the value starts
  std::string key;             // within a mapping
  Place key_at;                // within a mapping
  std::vector<Yaml> children;  // the items of a sequence; the values of a mapping, in order, no key twice

  const Yaml* find(std::string_view name) const;  // a mapping's value, or nothing
};

// The tree of one document; an empty document is a null. Block and flow collections, plain, single- and double-quoted
// scalars, literal blocks, comments, and so JSON. Anchors, aliases, tags, merge keys, directives, several documents,
// folded blocks, complex and empty keys, keys without ':', plain text over several lines, tabs in indentation and a
// value on the line of '---' are refused by name ("... not supported"). What stands within brackets, or in quotes over
// several lines, is indented deeper than its entry, as YAML asks; the closing bracket need not be. Throws ConfigError
// "SOURCE:LINE:COLUMN: ...".
Yaml parse_yaml(std::string_view document, std::string_view source);
// A value as typed on a command line: a flow collection or quoted text, else all of it as one plain scalar.
Yaml parse_yaml_value(std::string_view value, std::string_view source);
// The document in a file. Throws ConfigError, or SystemError when there is no permission.
Yaml read_yaml(const std::string& path);

// {a: {b: value}} for the path "a.b".
Yaml nest(std::string_view dotted_path, Yaml value);

// What a plain scalar means by the core schema (YAML 1.2.2, 10.3.2), or nothing where it means something else.
bool core_null(std::string_view text);
std::optional<bool> core_bool(std::string_view text);
std::optional<std::int64_t> core_int(std::string_view text);  // nothing beyond 64 bits, too
std::optional<double> core_float(std::string_view text);      // integers too; nothing beyond the range of a double

inline constexpr std::string_view kBeyond64Bits =
    " does not fit into 64 bits, which go from -9223372036854775808 to 9223372036854775807";
bool is_integer_form(std::string_view text);  // also where it is beyond 64 bits
bool is_number_form(std::string_view text);   // likewise beyond a double

// What YAML allows outside of quotes (YAML 1.2.2, 5.1), but for U+0085, which YAML 1.1 takes for a line's end.
bool is_printable(char32_t code_point);

// The tree as JSON, plain scalars as what the core schema makes of them. JSON has no numbers that are not finite, so
// these are texts, as written; so are hexadecimal and octal integers beyond 64 bits.
Json json_of(const Yaml& node);

// The text as a YAML scalar that every reader, also one of YAML 1.1, takes for this text: quoted where needed.
std::string yaml_text(std::string_view text);
// The shortest digits that read back as the same double, in a form that is a number in YAML 1.1 too: 1.0e-05.
std::string yaml_number(double value);
// One line: what is not printable, and what YAML 1.1 takes for a line's end, as \n, \x85 or \u2028.
std::string one_line(std::string_view text);
// For messages: one line, cut after 60 characters.
std::string excerpt(std::string_view text);

}  // namespace normlab::config
