// Text to token ids and back. char: one token a Unicode character. byte: one token a byte. bpe: one token a frequent
// string of bytes (data/byte_pairs.h).
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/data/tokenizer/byte_pairs.h"
#include "normlab/data/tokenizer/source_text.h"

namespace normlab {

// A text, what a message calls it and, where it is known, what it is a part of and from which byte on.
struct NamedText {
  std::string_view text, name;
  const SourceText* source = nullptr;
  std::size_t begin = 0;

  std::string place(std::size_t at) const;  // of text[at], in the whole file
};

class Tokenizer {
 public:
  // The 256 bytes, id = byte. Accepts any bytes.
  static Tokenizer bytes();
  // The characters that occur in any of `texts`, in the order of their code points; the id is the rank. DataError with
  // the place for what is not UTF-8.
  static Tokenizer characters(std::span<const NamedText> texts);
  // Accepts any bytes.
  static Tokenizer byte_pairs(BytePairs pairs);
  // The tokenizer that `save` wrote. DataError for any other text.
  static Tokenizer load(std::string_view saved);

  // One text that tells everything: "byte", "char:" followed by the characters in UTF-8, or "bpe:" followed by the
  // merges, pairs of ids, as "104 101,256 108".
  std::string save() const;

  std::int64_t vocab_size() const {
    return pairs_ ? pairs_->vocab_size() : static_cast<std::int64_t>(alphabet_.size());
  }

  // The characters, in the order of their ids; empty for byte and bpe.
  const std::vector<char32_t>& alphabet() const { return alphabet_; }
  // byte is the one without merges; null for char.
  const BytePairs* pairs() const { return pairs_.get(); }

  // DataError for characters outside of the vocabulary and, for char, for bytes that are not UTF-8, with the place.
  // `name` is what the message calls the text.
  std::vector<std::int32_t> encode(std::string_view text, std::string_view name = "text") const;
  // The same, appended to the ids that are there.
  void append(const NamedText& text, std::vector<std::int32_t>& ids) const;

  // Always UTF-8: bytes that form no character become U+FFFD. Ids lie in [0, vocab_size), or ShapeError.
  std::string decode(std::span<const std::int32_t> ids) const;
  // The bytes of one token, which with bpe may be a part of a character.
  std::string bytes_of(std::int32_t id) const;

  std::int32_t newline() const { return pairs_ ? '\n' : ascii_id_['\n']; }  // its id, or -1 when absent

  friend bool operator==(const Tokenizer& a, const Tokenizer& b) { return a.save() == b.save(); }

 private:
  explicit Tokenizer(std::vector<char32_t> alphabet);
  std::int32_t id_of(char32_t code_point) const;  // -1 when absent

  std::shared_ptr<const BytePairs> pairs_;  // null for char
  std::vector<char32_t> alphabet_;          // sorted
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
