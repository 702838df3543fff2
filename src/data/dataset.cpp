// Tokens in two parts, what is known about them, and the rows that training and evaluation take from them.
#include "normlab/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "normlab/base/check.h"
#include "normlab/base/did_you_mean.h"
#include "normlab/base/hash.h"
#include "normlab/base/memory.h"
#include "normlab/data/tokenizer/tokenizer_json.h"
#include "normlab/host/files.h"
#include "texts.h"

namespace normlab {
namespace {

// The texts that a tokenizer must know, with data.rot13 turned ones too; `turned` holds those.
std::vector<NamedText> known_texts(const DataConfig& config, std::vector<NamedText> texts,
                                   std::vector<std::string>& turned) {
  if (config.rot13 == Rot13::none) return texts;
  for (const NamedText& each : texts) turned.push_back(rot13(each.text));
  for (std::size_t i = 0; i < turned.size(); ++i)
    texts.push_back({turned[i], texts[i].name, texts[i].source, texts[i].begin});
  return texts;
}

Tokenizer trained_on(std::span<const NamedText> texts, std::int64_t vocab_size) {
  std::vector<std::string_view> all;
  for (const NamedText& each : texts) all.push_back(each.text);
  BytePairs trained = BytePairs::train(all, vocab_size);
  return_freed_memory();  // of the words, before there are tokens
  return Tokenizer::byte_pairs(std::move(trained));
}

Tokenizer tokenizer_for(const DataConfig& config, const Texts& texts) {
  std::vector<std::string> turned;
  if (config.tokenizer == "byte") return Tokenizer::bytes();
  if (config.tokenizer == "char")
    return Tokenizer::characters(known_texts(config, {texts.train(), texts.validation()}, turned));
  if (config.tokenizer == "bpe") return trained_on(known_texts(config, {texts.train()}, turned), config.vocab_size);
  if (file_exists(config.tokenizer) && std::filesystem::is_regular_file(config.tokenizer))
    return read_tokenizer_json(read_file(config.tokenizer), text("data.tokenizer '", config.tokenizer, "'"));
  throw ConfigError(text("data.tokenizer: '", config.tokenizer, "' is neither one of char byte bpe nor a file",
                         did_you_mean(config.tokenizer, {"char", "byte", "bpe"})));
}

// FNV-1a of both texts, each followed by its length, so that moving the border between them changes the hash.
std::string hash_of(const Texts& texts) {
  std::uint64_t hash = kNoBytes;
  for (const std::string_view part : {texts.train().text, texts.validation().text}) {
    hash = fnv1a(part, hash);
    for (std::size_t i = 0; i < 8; ++i) {
      const char byte = static_cast<char>(part.size() >> (8 * i));
      hash = fnv1a({&byte, 1}, hash);
    }
  }
  return hexadecimal(hash);
}

using Tokens = std::vector<std::int32_t>;
using TokenSpan = std::span<const std::int32_t>;

// Added to each count, so that what training never saw is not impossible.
constexpr double kUnseen = 0.1;

// p1(b) = (n_b + kUnseen) / (N + V kUnseen) by the counts in `from`: their frequencies, mixed with equal ones.
std::vector<double> unigram_of(TokenSpan from, std::int64_t vocab) {
  std::vector<double> p(static_cast<std::size_t>(vocab), kUnseen);
  for (const std::int32_t id : from) ++p[static_cast<std::size_t>(id)];
  for (double& each : p) each /= static_cast<double>(from.size()) + kUnseen * static_cast<double>(vocab);
  return p;
}

// Mean of -ln p1 over `tokens`.
double unigram_entropy(TokenSpan from, TokenSpan tokens, std::int64_t vocab) {
  if (tokens.empty()) return 0;
  std::vector<double> nats = unigram_of(from, vocab);
  for (double& each : nats) each = -std::log(each);
  double sum = 0;
  for (const std::int32_t id : tokens) sum += nats[static_cast<std::size_t>(id)];
  return sum / static_cast<double>(tokens.size());
}

// How many pairs of neighbours have first token 0, 1, ...
std::vector<std::size_t> pairs_by_first(TokenSpan tokens, std::int64_t vocab) {
  std::vector<std::size_t> counts(static_cast<std::size_t>(vocab));
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) ++counts[static_cast<std::size_t>(tokens[i])];
  return counts;
}

// The second tokens of the pairs of neighbours whose first token lies in [first, last).
class Pairs {
 public:
  Pairs(TokenSpan tokens, const std::vector<std::size_t>& by_first, std::size_t first, std::size_t last)
      : first_(first), begin_{0} {
    for (std::size_t a = first; a < last; ++a) begin_.push_back(begin_.back() + by_first[a]);
    second_.resize(begin_.back());
    std::vector<std::size_t> next = begin_;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
      if (const auto a = static_cast<std::size_t>(tokens[i]); a >= first && a < last)
        second_[next[a - first]++] = tokens[i + 1];
  }
  TokenSpan after(std::size_t a) const {
    return std::span(second_).subspan(begin_[a - first_], begin_[a - first_ + 1] - begin_[a - first_]);
  }

 private:
  std::size_t first_;
  std::vector<std::size_t> begin_;
  Tokens second_;
};

// Of this many tokens: pairs that are sorted at once, so that they take little memory besides; a single token may have
// more.
std::size_t pairs_at_once(std::size_t tokens) { return std::max(tokens / 8, std::size_t{1} << 21); }

// f(b, p2 / p1) for each pair of neighbours a b in `tokens`, by the counts in `from`: p2(b | a) = n_ab / n_a, or p1(b)
// where no a is followed by anything. By a, and in order.
template <class F>
void for_each_pair(TokenSpan from, TokenSpan tokens, std::int64_t vocab, const F& f) {
  const std::vector<double> p1 = unigram_of(from, vocab);
  const std::vector<std::size_t> seen_by_first = pairs_by_first(from, vocab),
                                 wanted_by_first = pairs_by_first(tokens, vocab);
  std::vector<Index> counts(p1.size());
  for (std::size_t first = 0, last = 0; first < counts.size(); first = last) {
    for (std::size_t pairs = 0; last < counts.size(); ++last) {
      pairs += seen_by_first[last] + wanted_by_first[last];
      if (last > first && pairs > pairs_at_once(from.size() + tokens.size())) break;
    }
    const Pairs seen(from, seen_by_first, first, last), wanted(tokens, wanted_by_first, first, last);
    for (std::size_t a = first; a < last; ++a) {
      const TokenSpan after = seen.after(a);
      for (const std::int32_t b : after) ++counts[static_cast<std::size_t>(b)];
      for (const std::int32_t each : wanted.after(a)) {
        const auto b = static_cast<std::size_t>(each);
        const double p2 = after.empty() ? p1[b] : static_cast<double>(counts[b]) / static_cast<double>(after.size());
        f(b, p2 / p1[b]);
      }
      for (const std::int32_t b : after) counts[static_cast<std::size_t>(b)] = 0;
    }
  }
}

// The l in [0, 1) under which l p2 + (1 - l) p1, by the counts in the rest of `from`, finds the pairs of its last tenth
// likeliest; as if one more were among them that the rest has not.
double bigram_weight(TokenSpan from, std::int64_t vocab) {
  const std::size_t tenth = from.size() / 10;
  std::vector<float> ratios{0};
  ratios.reserve(tenth + 1);
  for_each_pair(from.first(from.size() - tenth), from.last(tenth), vocab,
                [&](std::size_t, double ratio) { ratios.push_back(static_cast<float>(ratio)); });
  double low = 0, high = 1;
  for (int i = 0; i < 30; ++i) {
    const double l = (low + high) / 2;
    double slope = 0;  // of the sum of ln(1 + l (ratio - 1)), which is concave
    for (const double ratio : ratios) slope += (ratio - 1) / (1 + l * (ratio - 1));
    (slope > 0 ? low : high) = l;
  }
  return low;
}

// Mean of -ln(l p2 + (1 - l) p1) over `tokens` but the first; `unigram` where that is lower.
double bigram_entropy(TokenSpan from, TokenSpan tokens, std::int64_t vocab, double unigram) {
  if (tokens.size() < 2) return unigram;
  const double l = bigram_weight(from, vocab);
  const std::vector<double> p1 = unigram_of(from, vocab);
  double sum = 0;
  for_each_pair(from, tokens, vocab,
                [&](std::size_t b, double ratio) { sum -= std::log(p1[b] * (1 + l * (ratio - 1))); });
  return std::min(unigram, sum / static_cast<double>(tokens.size() - 1));
}

std::string remark_on_unseen(TokenSpan train, TokenSpan validation, const Tokenizer& tokenizer) {
  enum : std::uint8_t { unseen, found, seen };
  std::vector<std::uint8_t> state(static_cast<std::size_t>(tokenizer.vocab_size()), unseen);
  for (const std::int32_t id : train) state[static_cast<std::size_t>(id)] = seen;
  Index kinds = 0, places = 0;
  for (const std::int32_t id : validation) {
    std::uint8_t& its = state[static_cast<std::size_t>(id)];
    kinds += its == unseen;
    places += its != seen;
    if (its == unseen) its = found;
  }
  if (kinds == 0) return {};
  return text("of the ", tokenizer.pairs() ? "tokens" : "characters", " of the validation part ", kinds,
              kinds == 1 ? " is" : " are", " nowhere in the training part; places with ", kinds == 1 ? "it" : "them",
              ": ", places);
}

// -ln p of each token, the sum over its characters, in their place; built-in corpora are ASCII.
std::vector<double> nats_by_token(std::vector<double> nats, std::span<const std::int32_t> tokens,
                                  const Tokenizer& tokenizer) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    double sum = 0;
    for (std::size_t left = tokenizer.bytes_of(tokens[i]).size(); left > 0; --left) sum += nats[at++];
    nats[i] = sum;
  }
  nats.resize(tokens.size());
  return nats;
}

// The mean of -ln p over the targets of the windows; nats[0] is of token `begin`.
double mean_over_targets(const std::vector<double>& nats, std::span<const Window> windows, Index begin) {
  double sum = 0;
  Index count = 0;
  for (const Window& window : windows)
    for (Index i = 1; i <= window.targets; ++i, ++count)
      sum += nats[static_cast<std::size_t>(window.start + i - begin)];
  return count > 0 ? sum / static_cast<double>(count) : 0.0;
}

// The tokens of a text and, with data.rot13, of its ROT13 after them; for `lines`, each after a newline, from which
// its first line is predicted as every other is.
std::vector<Domain> append_domains(const NamedText& text, const DataConfig& config, const Tokenizer& tokenizer,
                                   Tokens& tokens) {
  std::vector<Domain> domains;
  // Never moved, so that memory stays within four bytes a token.
  tokens.reserve((text.text.size() + 1) * (config.rot13 == Rot13::none ? 1 : 2));
  const std::int32_t newline = config.documents == Documents::lines ? tokenizer.newline() : -1;
  const auto append = [&](std::string_view content) {
    if (newline >= 0 && (tokens.empty() || tokens.back() != newline)) tokens.push_back(newline);
    const auto begin = static_cast<Index>(tokens.size());
    tokenizer.append({content, text.name, text.source, text.begin}, tokens);
    domains.push_back({begin, static_cast<Index>(tokens.size()), {}, 0});
  };
  append(text.text);
  if (config.rot13 != Rot13::none) append(rot13(text.text));
  return domains;
}

// The windows of a domain whose documents are lines: side by side over each line that is not empty, from the newline
// before it on, or its first token where the vocabulary has no newline.
void add_documents(const Tokens& tokens, std::int32_t newline, Index context, Domain& domain) {
  Index start = domain.begin - (newline >= 0 ? 1 : 0);
  for (Index i = domain.begin; i < domain.end; ++i) {
    const bool ends = tokens[static_cast<std::size_t>(i)] == newline;
    if (!ends && i + 1 < domain.end) continue;
    const Index targets = ends && i == start + 1 ? 0 : i - start;  // none of an empty line
    if (targets > context) domain.in_long_lines += (targets + context - 1) / context;
    for (Index done = 0; done < targets; done += context)
      domain.documents.push_back({start + done, std::min(targets - done, context)});
    start = i;
  }
}

}  // namespace

Dataset Dataset::load(const DataConfig& config, Index context_length, std::uint64_t seed,
                      const std::optional<Tokenizer>& tokenizer) {
  const Texts texts = read_texts(config, seed);
  Dataset data(texts, tokenizer ? *tokenizer : tokenizer_for(config, texts), config, context_length, seed);
  check_draws(config, context_length, data.train_domains_[0], texts.first_name);
  if (config.documents == Documents::lines) {
    check<DataError>(!data.train_domains_[0].documents.empty(), texts.first_name,
                     ": no line of the training part has anything to predict; data.documents=lines needs some");
    check<DataError>(!data.validation_domains_[0].documents.empty(), texts.validation().name,
                     ": no line of the validation part has anything to predict; give more text, or a larger "
                     "data.val_fraction");
    return data;
  }
  check<DataError>(data.validation_domains_[0].end >= 2, texts.validation().name, ": there are ",
                   data.validation_domains_[0].end,
                   " tokens to validate on, but a window takes at least 2; give more text, or a larger "
                   "data.val_fraction");
  return data;
}

Dataset Dataset::evaluation_of(const std::string& path, const Tokenizer& tokenizer, Index context_length,
                               const DataConfig& config) {
  Texts texts;
  texts.first_name = text("'", path, "'");
  texts.first = read_text_file(path, texts.first_name, config.newlines);
  DataConfig alone;
  alone.documents = config.documents;
  Dataset data(texts, tokenizer, alone, context_length, 0);
  check<DataError>(!data.all_windows().empty(), texts.first_name, ": there are ", data.facts_.validation_tokens,
                   " tokens and no target among them; give more text");
  return data;
}

// The texts, and either what training a tokenizer holds, or the tokens with what entropies and floor are computed from.
double Dataset::peak_bytes(const Texts& texts) const {
  const double text_bytes = static_cast<double>(texts.first.text.size() + texts.second.text.size()) *
                            (config_.rot13 == Rot13::none ? 1 : 2);  // the turned one, too
  const std::size_t count = train_.size() + validation_.size();
  const double tokens = sizeof(std::int32_t) * static_cast<double>(count);
  const double pairs = sizeof(std::int32_t) * static_cast<double>(std::min(count, pairs_at_once(count))) +
                       sizeof(float) * static_cast<double>(train_.size() / 10);
  const double nats = facts_.floor ? sizeof(double) * static_cast<double>(texts.validation().text.size()) : 0;
  return text_bytes +
         std::max(tokenizer_.pairs() ? tokenizer_.pairs()->training_bytes() : 0, tokens + std::max(pairs, nats));
}

Dataset::Dataset(const Texts& texts, const Tokenizer& tokenizer, const DataConfig& config, Index context_length,
                 std::uint64_t seed)
    : config_(config), context_length_(context_length), seed_(seed), tokenizer_(tokenizer) {
  train_domains_ = append_domains(texts.train(), config, tokenizer, train_);
  validation_domains_ = append_domains(texts.validation(), config, tokenizer, validation_);
  if (config.documents == Documents::lines) {
    for (Domain& domain : train_domains_) add_documents(train_, tokenizer.newline(), context_length, domain);
    for (Domain& domain : validation_domains_) add_documents(validation_, tokenizer.newline(), context_length, domain);
  }
  facts_.hash = hash_of(texts);
  for (const auto& [source, name] :
       {std::pair(&texts.first, &texts.first_name), std::pair(&texts.second, &texts.second_name)})
    if (const std::string remark = source->remark(); !remark.empty())
      facts_.remarks.push_back(normlab::text(*name, " ", remark));
  facts_.windows = std::ssize(train_domains_[0].documents);
  facts_.windows_in_long_lines = train_domains_[0].in_long_lines;
  const Domain& text = validation_domains_[0];
  const TokenSpan train = TokenSpan(train_).subspan(static_cast<std::size_t>(train_domains_[0].begin)),
                  validation = TokenSpan(validation_).subspan(static_cast<std::size_t>(text.begin));
  facts_.train_tokens = std::ssize(train);
  facts_.validation_tokens = std::ssize(validation);
  if (const std::string remark = remark_on_unseen(train, validation, tokenizer); !train.empty() && !remark.empty())
    facts_.remarks.push_back(remark);
  const TokenSpan counted = train.empty() ? validation : train;
  facts_.unigram = unigram_entropy(counted, validation, tokenizer.vocab_size());
  facts_.bigram = bigram_entropy(counted, validation, tokenizer.vocab_size(), facts_.unigram);
  if (!validation.empty())
    facts_.bytes_per_token =
        static_cast<double>(texts.validation().text.size()) / static_cast<double>(text.end - text.begin);
  if (texts.corpus) {
    facts_.entropy_rate = texts.corpus->entropy_rate() * facts_.bytes_per_token;
    if (!texts.separate) {
      const TokenSpan text_tokens = validation.first(static_cast<std::size_t>(text.end - text.begin));
      const std::vector<double> nats =
          nats_by_token(texts.corpus->nats(texts.first.text, texts.split), text_tokens, tokenizer);
      facts_.floor = mean_over_targets(nats, all_windows(text), text.begin);
    }
  }
  facts_.peak_bytes = peak_bytes(texts);
}

Batch Dataset::train_batch(Index step, Index micro_batch, Index rows) const {
  return batch_of(train_, draw_windows(config_, context_length_, train_domains_, {seed_, step, micro_batch}, rows));
}

std::vector<Window> Dataset::of_all_domains(const std::function<std::vector<Window>(const Domain&)>& windows_of) const {
  std::vector<Window> windows = windows_of(validation_domains_[0]);
  if (validation_domains_.size() == 1) return windows;
  std::vector<Window> second = windows_of(validation_domains_[1]);
  if (config_.rot13 == Rot13::batch) {
    windows.insert(windows.end(), second.begin(), second.end());
    return windows;
  }
  std::vector<Window> mixed;
  for (std::size_t i = 0; i < std::max(windows.size(), second.size()); ++i)
    for (const std::vector<Window>* from : {&windows, &second})
      if (i < from->size()) mixed.push_back((*from)[i]);
  return mixed;
}

std::vector<Window> Dataset::spread_windows(Index count) const {
  const auto domains = static_cast<Index>(validation_domains_.size());
  return of_all_domains([&](const Domain& domain) { return spread_windows(domain, (count + domains - 1) / domains); });
}
std::vector<Window> Dataset::all_windows() const {
  return of_all_domains([&](const Domain& domain) { return all_windows(domain); });
}

std::vector<Window> Dataset::spread_windows(const Domain& domain, Index count) const {
  std::vector<Window> windows;
  if (config_.documents == Documents::lines) {
    const auto documents = static_cast<Index>(domain.documents.size());
    count = std::min(count, documents);
    for (Index i = 0; i < count; ++i)
      windows.push_back(domain.documents[static_cast<std::size_t>(i * documents / count)]);
    return windows;
  }
  const Index targets = domain.end - domain.begin - 1;
  if (targets < context_length_) return all_windows(domain);
  count = std::min(count, targets / context_length_);
  for (Index i = 0; i < count; ++i)
    windows.push_back(
        {domain.begin + (count > 1 ? i * (targets - context_length_) / (count - 1) : 0), context_length_});
  return windows;
}

std::vector<Window> Dataset::all_windows(const Domain& domain) const {
  if (config_.documents == Documents::lines) return domain.documents;
  std::vector<Window> windows;
  const Index last = domain.end - 1;  // the last target's place
  for (Index start = domain.begin; start < last; start += context_length_)
    windows.push_back({start, std::min(context_length_, last - start)});
  return windows;
}

std::span<const Window> Dataset::first_batch(std::span<const Window> windows, Index rows) const {
  const std::size_t most = std::min(static_cast<std::size_t>(rows), windows.size());
  if (config_.rot13 != Rot13::batch) return windows.first(most);
  const Index border = validation_domains_[1].begin - 1;  // for `lines`, where the first window of the second begins
  std::size_t count = 0;
  while (count < most && (windows[count].start < border) == (windows[0].start < border)) ++count;
  return windows.first(count);
}

Batch Dataset::validation_batch(std::span<const Window> windows) const { return batch_of(validation_, windows); }

Batch Dataset::batch_of(const Tokens& tokens, std::span<const Window> windows) const {
  Batch batch;
  batch.rows = static_cast<Index>(windows.size());
  batch.time = context_length_;
  const auto places = static_cast<std::size_t>(batch.rows * batch.time);
  batch.tokens.assign(places, 0);
  batch.targets.assign(places, kIgnore);
  const bool padded =
      std::any_of(windows.begin(), windows.end(), [&](const Window& w) { return w.targets < context_length_; });
  if (padded) batch.valid.assign(places, 0);
  for (Index row = 0; row < batch.rows; ++row) {
    const Window& window = windows[static_cast<std::size_t>(row)];
    const auto from = tokens.begin() + window.start;
    batch.starts.push_back(window.start);
    std::copy_n(from, window.targets, batch.tokens.begin() + row * batch.time);
    std::copy_n(from + 1, window.targets, batch.targets.begin() + row * batch.time);
    if (padded) std::fill_n(batch.valid.begin() + row * batch.time, window.targets, std::uint8_t{1});
  }
  return batch;
}

}  // namespace normlab
