// UTF-8, byte by byte and independent of any locale.
#include "normlab/base/utf8.h"

#include <algorithm>

namespace normlab {

Utf8Step utf8_step(std::string_view s) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned lead = byte(0);
  if (lead < 0x80) return {Utf8Step::valid, lead, 1};
  if (lead < 0xC2 || lead > 0xF4) return {Utf8Step::invalid, 0, 1};
  const int length = lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
  // The second byte's range shuts out overlong forms, surrogates and what lies above U+10FFFF.
  unsigned low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  unsigned high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  char32_t code_point = lead & (0x7Fu >> length);
  for (int i = 1; i < length; ++i, low = 0x80, high = 0xBF) {
    if (static_cast<std::size_t>(i) == s.size()) return {Utf8Step::incomplete, 0, i};
    const unsigned next = byte(static_cast<std::size_t>(i));
    if (next < low || next > high) return {Utf8Step::invalid, 0, i};
    code_point = code_point << 6 | (next & 0x3F);
  }
  return {Utf8Step::valid, code_point, length};
}

std::size_t first_not_utf8(std::string_view s) {
  std::size_t at = 0;
  while (const std::size_t length = utf8_length(s.substr(at))) at += length;
  return at;
}

void append_utf8(std::string& out, char32_t c) {
  const auto put = [&](char32_t byte) { out += static_cast<char>(static_cast<unsigned char>(byte)); };
  if (c < 0x80) {
    put(c);
  } else if (c < 0x800) {
    put(0xC0 | c >> 6);
    put(0x80 | (c & 0x3F));
  } else if (c < 0x10000) {
    put(0xE0 | c >> 12);
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  } else {
    put(0xF0 | c >> 18);
    put(0x80 | (c >> 12 & 0x3F));
    put(0x80 | (c >> 6 & 0x3F));
    put(0x80 | (c & 0x3F));
  }
}

std::string code_point_name(char32_t code_point) {
  std::string digits;
  for (char32_t rest = code_point; rest != 0 || digits.size() < 4; rest >>= 4) digits += "0123456789ABCDEF"[rest & 15];
  std::reverse(digits.begin(), digits.end());
  return "U+" + digits;
}

std::string printable(std::string_view s, std::string_view kept) {
  constexpr std::string_view kHex = "0123456789ABCDEF";
  std::string out;
  while (!s.empty()) {
    const Utf8Step step = utf8_step(s);
    const bool is_control = step.code_point < 0x20 || (step.code_point >= 0x7F && step.code_point < 0xA0);
    const std::string_view bytes = s.substr(0, static_cast<std::size_t>(step.length));
    s.remove_prefix(bytes.size());
    if ((step.status == Utf8Step::valid && !is_control) || kept.find(bytes) != std::string_view::npos)
      out += bytes;
    else if (bytes == "\r" || bytes == "\t")
      out += bytes == "\r" ? "\\r" : "\\t";
    else
      for (const char c : bytes)
        out += {'\\', 'x', kHex[static_cast<unsigned char>(c) / 16], kHex[static_cast<unsigned char>(c) % 16]};
  }
  return out;
}

std::string as_path(std::string_view path) {
  const bool is_ambiguous = path.empty() || std::string_view("-'\"[{~ ").find(path[0]) != std::string_view::npos ||
                            path.find('=') < path.find('/');
  return (is_ambiguous ? "./" : "") + std::string(path);
}

std::string shell_word(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./,:+@%=";
  if (word.find_first_not_of(kPlain) == std::string::npos) return std::string(word);
  std::string out = "'";
  for (std::string_view rest = word; !rest.empty();) {
    const std::string_view bytes = rest.substr(0, static_cast<std::size_t>(utf8_step(rest).length));
    rest.remove_prefix(bytes.size());
    const std::string shown = bytes == "'" ? "'\\''" : printable(bytes, "");
    out += shown.starts_with('\\') && bytes != "\\" ? "'$'" + shown + "''" : shown;
  }
  return out + "'";
}

}  // namespace normlab
