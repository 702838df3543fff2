// Byte-pair encoding: pre-tokens, and merging by rank.
#include "normlab/data/tokenizer/byte_pairs.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <tuple>

#include "normlab/base/check.h"

namespace normlab {
namespace {

enum class Class : std::uint8_t { newline, space, letter, digit, mark };

Class class_of(char c) {
  if (c == '\n') return Class::newline;
  if (c == ' ' || (c >= '\t' && c <= '\r')) return Class::space;
  if (static_cast<unsigned char>(c) >= 128 || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z')) return Class::letter;
  return c >= '0' && c <= '9' ? Class::digit : Class::mark;
}

}  // namespace

std::size_t pre_token_length(std::string_view text) {
  const Class first = class_of(text[0]);
  if (first == Class::newline) return 1;
  const std::size_t word = text[0] == ' ' && text.size() > 1 ? 1 : 0;
  const Class kind = class_of(text[word]);
  std::size_t end = word + 1;
  if (kind == Class::newline) return 1;  // a space before it
  while (end < text.size() && class_of(text[end]) == kind) ++end;
  if (kind != Class::space) return end;
  const bool gives_its_last = end > 1 && end < text.size() && class_of(text[end]) != Class::newline;
  return gives_its_last ? end - 1 : end;
}

BytePairs::BytePairs() {
  for (int byte = 0; byte < 256; ++byte) tokens_.emplace_back(1, static_cast<char>(byte));
}

BytePairs::BytePairs(const std::vector<Merge>& merges) : BytePairs() {
  std::map<std::string, std::int32_t> known;
  for (std::int32_t byte = 0; byte < 256; ++byte) known[tokens_[static_cast<std::size_t>(byte)]] = byte;
  std::size_t bytes = 0;
  for (const Merge& pair : merges) {
    const auto rank = static_cast<std::int32_t>(merges_.size());
    for (const std::int32_t id : pair)
      check<DataError>(id >= 0 && id < vocab_size(), "merge ", rank, " joins token ", id, ", and there are ",
                       vocab_size(), " tokens before it");
    std::string joined = bytes_of(pair[0]) + bytes_of(pair[1]);
    bytes += joined.size();
    check<DataError>(bytes <= kMaxTokenBytes, "merge ", rank, " makes a token of ", joined.size(),
                     " bytes, and all tokens together may have ", kMaxTokenBytes);
    const auto [place, is_new] = known.emplace(joined, static_cast<std::int32_t>(tokens_.size()));
    if (is_new) tokens_.push_back(std::move(joined));
    merges_.push_back(pair);
    rules_.push_back({pair, rank, place->second});
  }
  std::ranges::sort(rules_, {}, &Rule::pair);
  const auto twice = std::ranges::adjacent_find(rules_, std::ranges::equal_to(), &Rule::pair);
  check<DataError>(twice == rules_.end(), "a merge is there twice");
}

const BytePairs::Rule* BytePairs::find(std::int32_t left, std::int32_t right) const {
  const Merge pair{left, right};
  const auto at = std::ranges::lower_bound(rules_, pair, {}, &Rule::pair);
  return at != rules_.end() && at->pair == pair ? &*at : nullptr;
}

void BytePairs::encode(std::string_view text, std::vector<std::int32_t>& ids) const {
  if (merges_.empty()) {
    for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
    return;
  }
  // Where in `ids` a pre-token's ids are, from its first time on; no more of them than fit a few megabytes.
  constexpr std::size_t kMostKnown = 1 << 16;
  std::map<std::string_view, std::pair<std::size_t, std::size_t>> known;
  while (!text.empty()) {
    const std::string_view piece = text.substr(0, pre_token_length(text));
    text.remove_prefix(piece.size());
    const std::size_t begin = ids.size();
    if (const auto place = known.find(piece); place != known.end()) {
      for (auto [i, end] = place->second; i < end; ++i) ids.push_back(ids[i]);
      continue;
    }
    merge_all(piece, ids);
    if (known.size() < kMostKnown) known.emplace(piece, std::pair(begin, ids.size()));
  }
}

// The tokens as a linked list over the bytes where they begin; a heap of the merges that may be possible.
void BytePairs::merge_all(std::string_view piece, std::vector<std::int32_t>& ids) const {
  struct Token {
    std::int32_t id;
    std::size_t before, after;
  };
  struct Candidate {
    std::int32_t rank;
    std::size_t at;
    std::int32_t left, right, id;
    bool operator>(const Candidate& b) const { return std::tie(rank, at) > std::tie(b.rank, b.at); }
  };
  std::vector<Token> tokens;
  for (std::size_t i = 0; i < piece.size(); ++i)
    tokens.push_back({static_cast<unsigned char>(piece[i]), i == 0 ? 0 : i - 1, i + 1});
  std::priority_queue<Candidate, std::vector<Candidate>, std::greater<>> candidates;
  const auto consider = [&](std::size_t at) {
    const std::size_t next = tokens[at].after;
    if (next == tokens.size()) return;
    if (const Rule* rule = find(tokens[at].id, tokens[next].id))
      candidates.push({rule->rank, at, rule->pair[0], rule->pair[1], rule->id});
  };
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) consider(i);
  while (!candidates.empty()) {
    const Candidate best = candidates.top();
    candidates.pop();
    Token& left = tokens[best.at];
    if (left.id != best.left || left.after == tokens.size() || tokens[left.after].id != best.right) continue;
    tokens[left.after].id = -1;  // it is part of its left neighbour now
    left.id = best.id;
    left.after = tokens[left.after].after;
    if (left.after < tokens.size()) tokens[left.after].before = best.at;
    if (best.at > 0) consider(left.before);
    consider(best.at);
  }
  for (std::size_t i = 0; i < tokens.size(); i = tokens[i].after) ids.push_back(tokens[i].id);
}

}  // namespace normlab
