// Tokens in two parts, what is known about them, and the rows that training and evaluation take from them.
#include "normlab/data/dataset.h"

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "draws.h"
#include "normlab/base/check.h"
#include "normlab/base/files.h"
#include "normlab/base/hash.h"
#include "normlab/base/memory.h"
#include "normlab/data/tokenizer_json.h"
#include "texts.h"

namespace normlab {
namespace {

// The texts that a tokenizer must know, with data.rot13 turned ones too; `turned` holds those.
std::vector<NamedText> known_texts(const DataConfig& config, std::vector<NamedText> texts,
                                   std::vector<std::string>& turned) {
  if (config.rot13 == Rot13::none) return texts;
  for (const NamedText& each : texts) turned.push_back(rot13(each.text));
  for (std::size_t i = 0; i < turned.size(); ++i) texts.push_back({turned[i], texts[i].name});
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
  const std::vector<std::string> choices{"char", "byte", "bpe"};
  const std::string near = nearest(config.tokenizer, choices);
  throw ConfigError(text("data.tokenizer: '", config.tokenizer, "' is neither one of char byte bpe nor a file",
                         near.empty() ? "" : "; did you mean '", near, near.empty() ? "" : "'?"));
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

// Added to each count, so that what training never saw is not impossible.
constexpr double kUnseen = 0.1;

// Mean of -ln p over `tokens`, p(a) = (n_a + kUnseen) / (N + V kUnseen) by the counts in `from`.
double unigram_entropy(const Tokens& from, const Tokens& tokens, std::int64_t vocab) {
  if (tokens.empty()) return 0;
  std::vector<Index> seen(static_cast<std::size_t>(vocab)), wanted(seen.size());
  for (const std::int32_t id : from) ++seen[static_cast<std::size_t>(id)];
  for (const std::int32_t id : tokens) ++wanted[static_cast<std::size_t>(id)];
  const double all = static_cast<double>(from.size()) + kUnseen * static_cast<double>(vocab);
  double sum = 0;
  for (std::size_t a = 0; a < seen.size(); ++a)
    sum += static_cast<double>(wanted[a]) * std::log(all / (static_cast<double>(seen[a]) + kUnseen));
  return sum / static_cast<double>(tokens.size());
}

// How many pairs of neighbours have first token 0, 1, ...
std::vector<std::size_t> pairs_by_first(const Tokens& tokens, std::int64_t vocab) {
  std::vector<std::size_t> counts(static_cast<std::size_t>(vocab));
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) ++counts[static_cast<std::size_t>(tokens[i])];
  return counts;
}

// The second tokens of the pairs of neighbours whose first token lies in [first, last).
class Pairs {
 public:
  Pairs(const Tokens& tokens, const std::vector<std::size_t>& by_first, std::size_t first, std::size_t last)
      : first_(first), begin_{0} {
    for (std::size_t a = first; a < last; ++a) begin_.push_back(begin_.back() + by_first[a]);
    second_.resize(begin_.back());
    std::vector<std::size_t> next = begin_;
    for (std::size_t i = 0; i + 1 < tokens.size(); ++i)
      if (const auto a = static_cast<std::size_t>(tokens[i]); a >= first && a < last)
        second_[next[a - first]++] = tokens[i + 1];
  }
  std::span<const std::int32_t> after(std::size_t a) const {
    return std::span(second_).subspan(begin_[a - first_], begin_[a - first_ + 1] - begin_[a - first_]);
  }

 private:
  std::size_t first_;
  std::vector<std::size_t> begin_;
  Tokens second_;
};

// Of so many tokens: pairs that are sorted at once, so that they take little beside them; a single token may have more.
std::size_t pairs_at_once(std::size_t tokens) { return std::max(tokens / 8, std::size_t{1} << 21); }

// Mean of -ln p over `tokens` but the first, p(b | a) = (n_ab + kUnseen) / (n_a + V kUnseen) by the counts in `from`.
double bigram_entropy(const Tokens& from, const Tokens& tokens, std::int64_t vocab) {
  if (tokens.size() < 2) return 0;
  const std::vector<std::size_t> seen_by_first = pairs_by_first(from, vocab),
                                 wanted_by_first = pairs_by_first(tokens, vocab);
  std::vector<Index> counts(static_cast<std::size_t>(vocab));
  double sum = 0;
  for (std::size_t first = 0, last = 0; first < counts.size(); first = last) {
    for (std::size_t pairs = 0; last < counts.size(); ++last) {
      pairs += seen_by_first[last] + wanted_by_first[last];
      if (last > first && pairs > pairs_at_once(from.size() + tokens.size())) break;
    }
    const Pairs seen(from, seen_by_first, first, last), wanted(tokens, wanted_by_first, first, last);
    for (std::size_t a = first; a < last; ++a) {
      for (const std::int32_t b : seen.after(a)) ++counts[static_cast<std::size_t>(b)];
      const double all = static_cast<double>(seen.after(a).size()) + kUnseen * static_cast<double>(vocab);
      for (const std::int32_t b : wanted.after(a))
        sum += std::log(all / (static_cast<double>(counts[static_cast<std::size_t>(b)]) + kUnseen));
      for (const std::int32_t b : seen.after(a)) counts[static_cast<std::size_t>(b)] = 0;
    }
  }
  return sum / static_cast<double>(tokens.size() - 1);
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

// The mean of -ln p over the targets of the windows.
double mean_over_targets(const std::vector<double>& nats, std::span<const Window> windows) {
  double sum = 0;
  Index count = 0;
  for (const Window& window : windows)
    for (Index i = 1; i <= window.targets; ++i, ++count) sum += nats[static_cast<std::size_t>(window.start + i)];
  return count > 0 ? sum / static_cast<double>(count) : 0.0;
}

// The tokens of a text and, with data.rot13, of its ROT13 behind them.
std::vector<Domain> append_domains(const NamedText& text, const DataConfig& config, const Tokenizer& tokenizer,
                                   Tokens& tokens) {
  std::vector<Domain> domains;
  // Never moved, so that memory stays within four bytes a token.
  tokens.reserve(text.text.size() * (config.rot13 == Rot13::none ? 1 : 2));
  const auto append = [&](std::string_view content) {
    const auto begin = static_cast<Index>(tokens.size());
    tokenizer.append(content, text.name, tokens);
    domains.push_back({begin, static_cast<Index>(tokens.size()), {}});
  };
  append(text.text);
  if (config.rot13 != Rot13::none) append(rot13(text.text));
  return domains;
}

// One window a line: its tokens, the newline included, at most context_length + 1 of them. Lines without a target
// (empty ones, or a single character that ends the text) are left out.
std::vector<Window> windows_by_line(const Tokens& tokens, const Domain& domain, std::int32_t newline, Index context) {
  std::vector<Window> windows;
  const Index n = domain.end;
  for (Index start = domain.begin, i = start; i < n; ++i) {
    if (tokens[static_cast<std::size_t>(i)] != newline && i + 1 < n) continue;
    if (i > start) windows.push_back({start, std::min(i - start, context)});
    start = i + 1;
  }
  return windows;
}

}  // namespace

Batch rows_of(const Batch& batch, Index begin, Index count) {
  const auto part = [&](const auto& values) {
    if (values.empty()) return values;
    const auto from = values.begin() + begin * batch.time;
    return std::remove_cvref_t<decltype(values)>(from, from + count * batch.time);
  };
  return {count,
          batch.time,
          part(batch.tokens),
          part(batch.targets),
          part(batch.valid),
          std::vector<Index>(batch.starts.begin() + begin, batch.starts.begin() + begin + count)};
}

Dataset Dataset::load(const DataConfig& config, Index context_length, std::uint64_t seed,
                      const std::optional<Tokenizer>& tokenizer) {
  const Texts texts = read_texts(config, seed);
  Dataset data(texts, tokenizer ? *tokenizer : tokenizer_for(config, texts), config, context_length, seed);
  check_draws(config, context_length, data.train_domains_[0], texts.first_name);
  if (config.documents == Documents::lines) {
    check<DataError>(!data.train_domains_[0].documents.empty(), texts.first_name,
                     ": no line of the training part has two characters or more; data.documents=lines needs some");
    check<DataError>(!data.validation_domains_[0].documents.empty(), texts.validation().name,
                     ": no line of the validation part has two characters or more; give more text, or a larger "
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
                               Documents documents) {
  Texts texts;
  texts.first_name = text("'", path, "'");
  texts.first = read_text_file(path, texts.first_name);
  DataConfig config;
  config.documents = documents;
  Dataset data(texts, tokenizer, config, context_length, 0);
  check<DataError>(!data.all_windows().empty(), texts.first_name, ": there are ", data.facts_.validation_tokens,
                   " tokens and no target among them; give more text");
  return data;
}

// The texts, and either what training a tokenizer holds, or the tokens with what entropies and floor are computed from.
double Dataset::peak_bytes(const Texts& texts) const {
  const double text_bytes = static_cast<double>(texts.first.size() + texts.second.size()) *
                            (config_.rot13 == Rot13::none ? 1 : 2);  // the turned one beside it
  const std::size_t count = train_.size() + validation_.size();
  const double tokens = sizeof(std::int32_t) * static_cast<double>(count);
  const double pairs = sizeof(std::int32_t) * static_cast<double>(std::min(count, pairs_at_once(count)));
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
    for (Domain& domain : train_domains_)
      domain.documents = windows_by_line(train_, domain, tokenizer.newline(), context_length);
    for (Domain& domain : validation_domains_)
      domain.documents = windows_by_line(validation_, domain, tokenizer.newline(), context_length);
  }
  facts_.hash = hash_of(texts);
  facts_.train_tokens = static_cast<Index>(train_.size());
  facts_.validation_tokens = static_cast<Index>(validation_.size());
  const Tokens& counted = train_.empty() ? validation_ : train_;
  facts_.unigram = unigram_entropy(counted, validation_, tokenizer.vocab_size());
  facts_.bigram = bigram_entropy(counted, validation_, tokenizer.vocab_size());
  if (!validation_.empty())
    facts_.bytes_per_token =
        static_cast<double>(texts.validation().text.size()) / static_cast<double>(validation_domains_[0].end);
  if (texts.corpus) {
    facts_.entropy_rate = texts.corpus->entropy_rate() * facts_.bytes_per_token;
    if (!texts.separate) {
      const auto text_tokens = std::span(validation_).first(static_cast<std::size_t>(validation_domains_[0].end));
      const std::vector<double> nats =
          nats_by_token(texts.corpus->nats(texts.first, texts.split), text_tokens, tokenizer);
      facts_.floor = mean_over_targets(nats, all_windows(validation_domains_[0]));
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
  const Index border = validation_domains_[1].begin;
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
