// Text to token ids and back. char: one token a Unicode character. byte: one token a byte.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

// A text and what a message calls it.
struct NamedText {
  std::string_view text, name;
};

class Tokenizer {
 public:
  // The 256 bytes, id = byte. Accepts any bytes.
  static Tokenizer bytes();
  // The characters that occur in any of `texts`, in the order of their code points; the id is the rank. DataError with
  // the byte offset for what is not UTF-8.
  static Tokenizer characters(std::span<const NamedText> texts);
  // The tokenizer that `save` wrote. DataError for any other text.
  static Tokenizer load(std::string_view saved);

  // One text that tells everything: "byte", or "char:" followed by the characters in UTF-8.
  std::string save() const;

  std::int64_t vocab_size() const { return byte_ ? 256 : static_cast<std::int64_t>(alphabet_.size()); }

  // DataError for a character outside of the vocabulary (character, code point, position counted in characters from 0)
  // and, for char, for bytes that are not UTF-8 (byte offset). `name` is what the message calls the text.
  std::vector<std::int32_t> encode(std::string_view text, std::string_view name = "text") const;

  // Always UTF-8: bytes that form no character become U+FFFD. Ids lie in [0, vocab_size), or ShapeError.
  std::string decode(std::span<const std::int32_t> ids) const;

  std::int32_t newline() const { return byte_ ? '\n' : ascii_id_['\n']; }  // its id, or -1 when absent

  friend bool operator==(const Tokenizer& a, const Tokenizer& b) {
    return a.byte_ == b.byte_ && a.alphabet_ == b.alphabet_;
  }

 private:
  friend class StreamDecoder;
  Tokenizer(bool byte, std::vector<char32_t> alphabet);
  std::int32_t id_of(char32_t code_point) const;  // -1 when absent

  bool byte_;
  std::vector<char32_t> alphabet_;          // sorted; empty for bytes
  std::array<std::int32_t, 128> ascii_id_;  // of the ASCII characters, -1 when absent
};

// Tokens to text as they come, in whole characters: an incomplete end is held back until it is completed or cannot be.
// The outputs of push and finish together equal decode of all ids.
class StreamDecoder {
 public:
  explicit StreamDecoder(const Tokenizer& tokenizer) : tokenizer_(&tokenizer) {}

  std::string push(std::int32_t id);
  std::string finish();  // what was held back: nothing, or U+FFFD

 private:
  const Tokenizer* tokenizer_;
  std::string pending_;
};

}  // namespace normlab
