// From `data.*` to batches: the text, its tokens in a training and a validation part, and rows of both.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "normlab/base/real.h"
#include "normlab/data/data_config.h"
#include "normlab/data/draws.h"
#include "normlab/data/tokenizer/tokenizer.h"
#include "normlab/nn/batch.h"

namespace normlab {

struct Texts;

// What is known about the data before any training; entropies and floor in nats per token.
struct DataFacts {
  std::string hash;                  // of both texts as they are trained on, 16 hexadecimal digits (FNV-1a, 64 bits)
  std::vector<std::string> remarks;  // what is to be told of the files before a run
  Index train_tokens = 0, validation_tokens = 0;
  Index windows = 0, windows_in_long_lines = 0;  // for `lines`: of the training part, see Domain
  // H1 and H2: the loss on the validation tokens of a model that knows the frequencies p1 of the training tokens (0.1
  // added to each count), or also those of pairs of neighbours, p2: l p2 + (1 - l) p1. l is fitted on the last tenth of
  // the training tokens by counts of the others; then all are counted. H2 is at most H1. Where nothing is trained on,
  // the validation tokens take the place of the training tokens.
  double unigram = 0, bigram = 0;
  double bytes_per_token = 1;          // of the validation part: bits per byte = loss / (ln 2 bytes_per_token)
  std::optional<double> floor;         // -ln p of the validation text per target; built-in corpora only
  double peak_bytes = 0;               // about what reading, drawing and making tokens held at once
  std::optional<double> entropy_rate;  // of the source that the text was drawn from; built-in corpora only
};

// The floor takes each target given everything before it in its part (its line, for `lines`), so a window's first
// tokens, which have no history, cannot reach it.
//
// With data.rot13, both parts hold the text and its ROT13, one after the other, and all figures but the floor are of
// both: the floor is the text's own, which a model that must first tell the two apart cannot quite reach.
//
// The validation part is a file of its own or the last val_fraction of the bytes, from the next character on (from the
// next line on, for `lines` and for built-in corpora, whose floor is then exact).
class Dataset {
 public:
  // Reads or draws the text. Without `tokenizer` it is made from data.tokenizer; char takes the characters of both
  // parts, so that evaluation never meets an unknown one. A checkpoint passes its own.
  // ConfigError, DataError, SystemError for whatever is wrong with the settings or the files; `stream` needs at least
  // context_length + 1 tokens to train on (topic: topic_span), and 2 to validate; `lines` a line with a target in each
  // part.
  static Dataset load(const DataConfig& config, Index context_length, std::uint64_t seed,
                      const std::optional<Tokenizer>& tokenizer = std::nullopt);

  // All of a file as the validation part, and nothing to train on; documents and newlines as in `config`.
  static Dataset evaluation_of(const std::string& path, const Tokenizer& tokenizer, Index context_length,
                               const DataConfig& config);

  const Tokenizer& tokenizer() const { return tokenizer_; }
  const DataFacts& facts() const { return facts_; }

  // Rows drawn at random, with replacement, as data.batches, data.rot13 and data.lengths say. Row r of micro-batch m of
  // step s is a function of (seed, s, m, r) alone, so resuming needs the step and nothing else. [rows, context_length]
  Batch train_batch(Index step, Index micro_batch, Index rows) const;

  // Windows of the validation part, in order. At most `count` of them, spread evenly; fewer when that many would
  // overlap.
  std::vector<Window> spread_windows(Index count) const;
  // Windows side by side, the last one (for `lines`, of each document) shorter, so that every target counts once.
  std::vector<Window> all_windows() const;
  // The first of `windows` that are evaluated together: `rows` of them at most, with data.rot13 = batch of one domain.
  std::span<const Window> first_batch(std::span<const Window> windows, Index rows) const;
  // The rows of the given windows of the validation part. [windows, context_length]
  Batch validation_batch(std::span<const Window> windows) const;

 private:
  Dataset(const Texts& texts, const Tokenizer& tokenizer, const DataConfig& config, Index context_length,
          std::uint64_t seed);
  double peak_bytes(const Texts& texts) const;
  // The windows of one domain of the validation part.
  std::vector<Window> spread_windows(const Domain& domain, Index count) const;
  std::vector<Window> all_windows(const Domain& domain) const;
  // Of both domains, one after the other or, with data.rot13 = sample, in turn.
  std::vector<Window> of_all_domains(const std::function<std::vector<Window>(const Domain&)>& windows) const;
  Batch batch_of(const std::vector<std::int32_t>& tokens, std::span<const Window> windows) const;

  DataConfig config_;
  Index context_length_;
  std::uint64_t seed_;
  Tokenizer tokenizer_;
  std::vector<std::int32_t> train_, validation_;
  std::vector<Domain> train_domains_, validation_domains_;
  DataFacts facts_;
};

}  // namespace normlab
