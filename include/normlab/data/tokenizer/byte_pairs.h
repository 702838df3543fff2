// Byte-level byte-pair encoding (Sennrich et al. 2016, over bytes as Radford et al. 2019): trained on texts, or given
// by its merges.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

// Merges never cross the border between two pre-tokens, which are, in this order of preference,
//   a newline;  a word (ASCII letters, and all bytes from 0x80 on), a number (ASCII digits) or other visible or control
//   characters of ASCII, each with the one space before it;  white space, which leaves its last character to what
//   follows it on its line.
// The same as a regular expression, whose classes are those of characters and of bytes alike, so that it needs no
// table of Unicode.
inline constexpr std::string_view kPreTokenPattern =
    R"(\n| ?[^\x00-@\[-`{-\x7F]+| ?[0-9]+| ?[\x00-\x08\x0E-\x1F!-/:-@\[-`{-\x7F]+)"
    R"(|[\t\x0B\f\r ]+(?![^\t-\r ])|[\t\x0B\f\r ]+)";

inline constexpr std::size_t kMaxTokenBytes = std::size_t{1} << 26;  // of all tokens of a vocabulary together

// The length in bytes of the pre-token that a text (not empty) begins with.
std::size_t pre_token_length(std::string_view text);

class BytePairs {
 public:
  using Merge = std::array<std::int32_t, 2>;

  // Ids 0 to 255 are the bytes. Each merge joins the pair of neighbouring tokens that occurs most often, counted at
  // every place; among equals the one with the lower left id, then with the lower right id. It makes the next token
  // id, unless a token of these bytes is there already. ConfigError when no pair within a pre-token occurs twice before
  // there are `vocab_size` tokens.
  static BytePairs train(std::span<const std::string_view> texts, std::int64_t vocab_size);
  // DataError for a merge of tokens that its predecessors do not make, a merge that is there twice, and tokens that
  // have more than kMaxTokenBytes together: a few dozen merges could make as many gigabytes.
  explicit BytePairs(const std::vector<Merge>& merges);

  std::int64_t vocab_size() const { return static_cast<std::int64_t>(tokens_.size()); }
  const std::vector<Merge>& merges() const { return merges_; }
  // About what training held at its peak, besides the texts; 0 where the merges were given.
  double training_bytes() const { return training_bytes_; }
  const std::string& bytes_of(std::int32_t id) const { return tokens_[static_cast<std::size_t>(id)]; }

  // Appends the ids of any bytes. In each pre-token the earliest merge that applies is done first, from left to right.
  void encode(std::string_view text, std::vector<std::int32_t>& ids) const;

 private:
  struct Rule {
    Merge pair;
    std::int32_t rank, id;
  };

  BytePairs();  // without merges
  const Rule* find(std::int32_t left, std::int32_t right) const;
  void merge_all(std::string_view piece, std::vector<std::int32_t>& ids) const;

  std::vector<std::string> tokens_;  // their bytes
  std::vector<Merge> merges_;        // in order of rank
  std::vector<Rule> rules_;          // sorted by pair
  double training_bytes_ = 0;
};

}  // namespace normlab
