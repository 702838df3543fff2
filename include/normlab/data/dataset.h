// From `data.*` to batches: the text, its tokens in a training and a validation part, and rows of both.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "normlab/base/real.h"
#include "normlab/data/data_config.h"
#include "normlab/data/tokenizer.h"

namespace normlab {

struct Texts;

// The target of a position without one: padding.
inline constexpr std::int32_t kIgnore = -100;

// Rows of tokens and, for each, the token that follows. Row-major [rows, time].
struct Batch {
  Index rows = 0, time = 0;
  std::vector<std::int32_t> tokens;   // padding is id 0, on the right
  std::vector<std::int32_t> targets;  // kIgnore where padded
  std::vector<std::uint8_t> valid;    // 1 where a position is real, 0 where padded; empty when all are real
  std::vector<Index> starts;          // of each row, in the tokens of its part
};

// `targets` tokens to predict, the first of them from the token at `start`: tokens start .. start + targets.
struct Window {
  Index start, targets;
};

// What is known about the data before any training; entropies and floor in nats per token.
struct DataFacts {
  std::string hash;  // of both texts, 16 hexadecimal digits (FNV-1a, 64 bits)
  Index train_tokens = 0, validation_tokens = 0;
  // H1 and H2: the loss on the validation tokens of a model that knows the frequencies of the training tokens, or those
  // of pairs of neighbours (0.1 added to each count; where nothing is trained on, the validation tokens' own).
  double unigram = 0, bigram = 0;
  double bytes_per_token = 1;          // of the validation part: bits per byte = loss / (ln 2 bytes_per_token)
  std::optional<double> floor;         // -ln p of the validation part per target; built-in corpora only
  std::optional<double> entropy_rate;  // of the source that the text was drawn from; built-in corpora only
};

// The floor takes each target given everything before it in its part (its line, for `lines`), so a window's first
// tokens, which have no history, cannot reach it.
//
// The validation part is a file of its own or the last val_fraction of the bytes, from the next character on (from the
// next line on, for `lines` and for built-in corpora, whose floor is then exact).
class Dataset {
 public:
  // Reads or draws the text. Without `tokenizer` it is made from data.tokenizer; char takes the characters of both
  // parts, so that evaluation never meets an unknown one. A checkpoint passes its own.
  // ConfigError, DataError, SystemError for whatever is wrong with the settings or the files; `stream` needs at least
  // context_length + 1 tokens to train on, and 2 to validate; `lines` a line with a target in each part.
  static Dataset load(const DataConfig& config, Index context_length, std::uint64_t seed,
                      const std::optional<Tokenizer>& tokenizer = std::nullopt);

  // All of a file as the validation part, and nothing to train on.
  static Dataset evaluation_of(const std::string& path, const Tokenizer& tokenizer, Index context_length,
                               Documents documents);

  const Tokenizer& tokenizer() const { return tokenizer_; }
  const DataFacts& facts() const { return facts_; }

  // Rows drawn at random, with replacement. Row r of micro-batch m of step s is a function of (seed, s, m, r) alone, so
  // resuming needs the step and nothing else. [rows, context_length]
  Batch train_batch(Index step, Index micro_batch, Index rows) const;

  // Windows of the validation part, in order. At most `count` of them, spread evenly; fewer when so many would overlap.
  std::vector<Window> spread_windows(Index count) const;
  // Windows side by side, the last one shorter, so that every target counts once; for `lines` one a document.
  std::vector<Window> all_windows() const;
  // The rows of the given windows of the validation part. [windows, context_length]
  Batch validation_batch(std::span<const Window> windows) const;

 private:
  Dataset(const Texts& texts, const Tokenizer& tokenizer, Documents documents, Index context_length,
          std::uint64_t seed);
  Batch batch_of(const std::vector<std::int32_t>& tokens, std::span<const Window> windows) const;

  Documents documents_;
  Index context_length_;
  std::uint64_t seed_;
  Tokenizer tokenizer_;
  std::vector<std::int32_t> train_, validation_;
  std::vector<Window> train_documents_, validation_documents_;  // for `lines`
  DataFacts facts_;
};

}  // namespace normlab
