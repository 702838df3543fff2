// UTF-8, byte by byte and independent of any locale (RFC 3629: no surrogates, no overlong forms, at most U+10FFFF).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace normlab {

// One step over UTF-8. `length` bytes belong together: those of the character, or of the longest start of one that
// cannot go on (Unicode 15, section 3.9: each becomes one U+FFFD). `incomplete`: the text ends within a character.
struct Utf8Step {
  enum Status { valid, invalid, incomplete } status;
  char32_t code_point;
  int length;
};

// The character at the start of `s` (not empty).
Utf8Step utf8_step(std::string_view s);

// The bytes of the character that `s` begins with, 1 to 4; 0 when it begins with none.
inline std::size_t utf8_length(std::string_view s) {
  if (s.empty()) return 0;
  const Utf8Step step = utf8_step(s);
  return step.status == Utf8Step::valid ? static_cast<std::size_t>(step.length) : 0;
}

// The first byte that belongs to no character; the size of `s` when there is none.
std::size_t first_not_utf8(std::string_view s);

void append_utf8(std::string& out, char32_t code_point);

// "U+03A9"
std::string code_point_name(char32_t code_point);

// What a message may quote, for a terminal: control characters but those of `kept`, and bytes that are not UTF-8, as
// \r, \t or \x1B.
std::string printable(std::string_view s, std::string_view kept = "\n");

// A path as a word of a command: with ./ where it would be taken for an option, an override or a value in YAML.
std::string as_path(std::string_view path);
// A word of a command that a message suggests, for a shell: as it is, or in quotes; printable.
std::string shell_word(std::string_view word);
inline std::string shell_quoted(std::string_view path) { return shell_word(as_path(path)); }

inline constexpr std::string_view kReplacement = "\xEF\xBF\xBD";  // U+FFFD

}  // namespace normlab
