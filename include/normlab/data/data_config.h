// The settings under `data.`: what text is trained on, how it becomes tokens, and how tokens become rows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "normlab/config/fields.h"
#include "normlab/data/tokenizer/source_text.h"

namespace normlab {

enum class Documents { stream, lines };
enum class BatchesFrom { random, topic };
enum class Rot13 { none, batch, sample };

inline constexpr config::Range kInsideUnit{.low = 0, .high = 1, .low_open = true, .high_open = true};  // (0, 1)

struct DataConfig : config::Fields {
  FIELD(std::string, source, "tales", config::any_value,
        "tales, markov, copy or brackets (built in, with a known floor), or the path of a UTF-8 text file")
  FIELD(std::int64_t, size, 1000000, config::between(1, 1000000000),
        "characters of a built-in corpus, at most; it ends with a whole line")
  FIELD(int, order, 3, config::between(0, 5), "order of the markov corpus: how many characters the next one depends on")
  FIELD(std::optional<std::string>, validation, std::nullopt, config::any_value,
        "path of a text file to validate on; without it, the last part of the data")
  FIELD(double, val_fraction, 0.1, kInsideUnit, "the last part of the data, kept for validation and never trained on")
  FIELD(std::string, tokenizer, "char", config::any_value,
        "char (one token a character), byte, bpe (byte pairs of the training part), or the path of a tokenizer.json of "
        "ours")
  FIELD(std::int64_t, vocab_size, 1024, config::between(256, 1000000), "bpe: tokens, of which 256 are the bytes")
  FIELD(Documents, documents, Documents::stream, config::any_value,
        "stream: windows over one token stream; lines: a document is the newline before a line, the line and its own "
        "newline, padded on the right, in several windows where it is longer than the context; empty lines are none")
  FIELD(Newlines, newlines, Newlines::normalise, config::any_value,
        "line ends of files and prompts: normalise makes LF of CRLF and of a CR alone, keep leaves every byte")
  FIELD(BatchesFrom, batches, BatchesFrom::random, config::any_value,
        "topic: all windows of a batch come from one span of topic_span tokens; for stream")
  FIELD(std::int64_t, topic_span, 4000, config::between(2, 1000000000), "topic: tokens of such a span")
  FIELD(Rot13, rot13, Rot13::none, config::any_value,
        "a second domain, the text in ROT13: batch (each batch is of one domain), sample (each row is)")
  using Lengths = std::array<std::int64_t, 2>;
  FIELD(std::optional<Lengths>, lengths, std::nullopt, config::between(0, 1000000),
        "[min, jitter], for stream: a batch draws a centre from [min, context_length], a row a length within jitter of "
        "it, at least 2; the rest is padding")
};

}  // namespace normlab
