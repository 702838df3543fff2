// The merges of byte-pair encoding from the pairs that a text has most often.
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <utility>

#include "normlab/base/check.h"
#include "normlab/data/tokenizer/byte_pairs.h"

namespace normlab {
namespace {

using Merge = BytePairs::Merge;

struct Word {
  std::vector<std::int32_t> ids;
  std::int64_t count = 0;
};

// A pair of neighbours: how often it occurs, and the words that have had it (some may no more).
struct Pair {
  std::int64_t count = 0;
  std::vector<std::size_t> words;
};

// A pair with the count that it had; counts only fall until it is pushed again.
struct Candidate {
  std::int64_t count;
  Merge pair;
  bool operator<(const Candidate& b) const { return std::tie(count, b.pair) < std::tie(b.count, pair); }
};

std::vector<Word> words_of(std::span<const std::string_view> texts) {
  std::map<std::string_view, std::int64_t> counts;
  for (std::string_view text : texts)
    while (!text.empty()) {
      const std::size_t length = pre_token_length(text);
      ++counts[text.substr(0, length)];
      text.remove_prefix(length);
    }
  std::vector<Word> words;
  words.reserve(counts.size());
  for (const auto& [piece, count] : counts) {
    Word& word = words.emplace_back();
    word.count = count;
    word.ids.reserve(piece.size());
    for (const char c : piece) word.ids.push_back(static_cast<unsigned char>(c));
  }
  return words;
}

// The words, and the pairs in them.
class Counts {
 public:
  explicit Counts(std::vector<Word> words) : words_(std::move(words)) {
    for (std::size_t i = 0; i < words_.size(); ++i) count_pairs(i, 1, [](Merge) { return true; });
    for (const auto& [pair, about] : pairs_) candidates_.push({about.count, pair});
  }

  // Measured with words of many lengths: a word has its place among the words, a node of the map that it came from and
  // blocks of the allocator; a letter its id, and its word's place at a pair, in a vector that grows.
  double bytes() const {
    double letters = 0;
    for (const Word& word : words_) letters += static_cast<double>(word.ids.size());
    return kBytesOfWord * static_cast<double>(words_.size()) + kBytesOfLetter * letters;
  }

  // The most frequent pair; its count is 0 when there is none.
  Candidate best() {
    while (!candidates_.empty()) {
      Candidate top = candidates_.top();
      candidates_.pop();
      const std::int64_t now = pairs_[top.pair].count;
      if (now == top.count) return top;
      if (now > 0) candidates_.push({now, top.pair});
    }
    return {0, {}};
  }

  void merge(Merge pair, std::int32_t id) {
    const auto made_now = [&](Merge other) { return other[0] == id || other[1] == id; };
    std::set<Merge> changed;
    for (const std::size_t i : std::exchange(pairs_[pair].words, {})) {
      std::vector<std::int32_t>& ids = words_[i].ids;
      std::size_t kept = 0;
      for (std::size_t at = 0; at < ids.size(); ++at) {
        const bool here = at + 1 < ids.size() && ids[at] == pair[0] && ids[at + 1] == pair[1];
        if (here && kept == at) count_pairs(i, -1, made_now);  // the first one: the word as it was
        ids[kept++] = here ? id : ids[at];
        at += here;
      }
      if (kept == ids.size()) continue;
      ids.resize(kept);
      count_pairs(i, 1, made_now);
      for (std::size_t at = 0; at + 1 < ids.size(); ++at)
        if (made_now({ids[at], ids[at + 1]})) changed.insert({ids[at], ids[at + 1]});
    }
    for (const Merge& each : changed) candidates_.push({pairs_[each].count, each});
  }

 private:
  static constexpr double kBytesOfWord = 80, kBytesOfLetter = 11;

  // Adds or takes away the pairs of a word; notes the word at the pairs that it has had not yet.
  template <class IsNew>
  void count_pairs(std::size_t word, std::int64_t sign, const IsNew& is_new) {
    const std::vector<std::int32_t>& ids = words_[word].ids;
    for (std::size_t at = 0; at + 1 < ids.size(); ++at) {
      const Merge pair{ids[at], ids[at + 1]};
      Pair& about = pairs_[pair];
      about.count += sign * words_[word].count;
      if (sign > 0 && is_new(pair) && (about.words.empty() || about.words.back() != word)) about.words.push_back(word);
    }
  }

  std::vector<Word> words_;
  std::map<Merge, Pair> pairs_;
  std::priority_queue<Candidate> candidates_;
};

}  // namespace

BytePairs BytePairs::train(std::span<const std::string_view> texts, std::int64_t vocab_size) {
  Counts counts(words_of(texts));
  const double bytes = counts.bytes();
  std::map<std::string, std::int32_t> known;
  std::vector<std::string> tokens = BytePairs().tokens_;
  for (std::size_t id = 0; id < tokens.size(); ++id) known[tokens[id]] = static_cast<std::int32_t>(id);
  std::vector<Merge> merges;
  while (static_cast<std::int64_t>(tokens.size()) < vocab_size) {
    const Candidate best = counts.best();
    check<ConfigError>(best.count >= 2, "data.vocab_size: ", vocab_size, " tokens cannot be made: when there are ",
                       tokens.size(),
                       ", no two neighbours within a word, a number or a run of other characters, which ",
                       "alone are joined, occur twice; give at most that many, or more text");
    const std::string joined =
        tokens[static_cast<std::size_t>(best.pair[0])] + tokens[static_cast<std::size_t>(best.pair[1])];
    const auto [place, is_new] = known.emplace(joined, static_cast<std::int32_t>(tokens.size()));
    if (is_new) tokens.push_back(joined);
    merges.push_back(best.pair);
    counts.merge(best.pair, place->second);
  }
  BytePairs trained(merges);
  trained.training_bytes_ = bytes;
  return trained;
}

}  // namespace normlab
