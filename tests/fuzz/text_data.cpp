// Text to train on: tokens make the text again, batches hold nothing but tokens and targets, and each target of the
// validation part is counted once. The first five characters choose the settings.
#include <cmath>

#include "fuzz.h"
#include "normlab/data/dataset.h"
#include "normlab/host/files.h"

namespace normlab::fuzz {
namespace {

struct Settings {
  DataConfig data;
  Index context;
};

Settings settings_of(std::string_view chosen) {
  const auto digit = [&](std::size_t i, unsigned choices) {
    return i < chosen.size() ? (static_cast<unsigned char>(chosen[i]) + choices * 256 - '0') % choices : 0;
  };
  Settings settings;
  settings.data.source = scratch_file();
  settings.data.tokenizer = std::array{"char", "byte", "bpe"}[digit(0, 3)];
  settings.data.documents = std::array{Documents::stream, Documents::lines}[digit(1, 2)];
  if (digit(1, 8) == 2) settings.data.batches = BatchesFrom::topic, settings.data.topic_span = 9;
  if (digit(1, 8) == 4) settings.data.lengths = DataConfig::Lengths{2, 3};
  settings.data.rot13 = std::array{Rot13::none, Rot13::batch, Rot13::sample}[digit(2, 3)];
  settings.data.vocab_size = 256 + digit(3, 32);
  settings.data.val_fraction = 0.05 + 0.1 * digit(4, 10);
  settings.data.newlines = Newlines::keep;  // so that the text is what the file holds
  settings.context = 1 + digit(4, 7);
  return settings;
}

// How many targets there are.
Index look_at(const Batch& batch, std::int64_t vocab_size) {
  Index targets = 0;
  promise(batch.tokens.size() == static_cast<std::size_t>(batch.rows * batch.time), "rows x time tokens");
  for (const std::int32_t id : batch.tokens) promise(id >= 0 && id < vocab_size, "tokens are in the vocabulary");
  for (const std::int32_t id : batch.targets) {
    promise(id == kIgnore || (id >= 0 && id < vocab_size), "targets are in the vocabulary, or ignored");
    targets += id != kIgnore;
  }
  return targets;
}

void look_at(const Dataset& data, const Settings& settings, std::string_view text) {
  const Tokenizer& tokenizer = data.tokenizer();
  for (const double figure : {data.facts().unigram, data.facts().bigram, data.facts().bytes_per_token})
    promise(std::isfinite(figure) && figure >= 0, "the facts are finite");
  std::string joined;
  for (const std::int32_t id : tokenizer.encode(text)) joined += tokenizer.bytes_of(id);
  promise(joined == text, "the tokens of a text make that text");
  promise(tokenizer.decode(tokenizer.encode(text)) == text || tokenizer.pairs() != nullptr, "decode undoes encode");
  promise(Tokenizer::load(tokenizer.save()) == tokenizer, "the tokenizer reads back equal");
  for (Index step = 0; step < 3; ++step)
    promise(look_at(data.train_batch(step, 0, 3), tokenizer.vocab_size()) > 0, "a batch has a target");
  const std::vector<Window> windows = data.all_windows();
  Index targets = 0, expected = 0;
  for (std::span<const Window> rest = windows; !rest.empty();) {
    const std::span<const Window> batch = data.first_batch(rest, 4);
    targets += look_at(data.validation_batch(batch), tokenizer.vocab_size());
    rest = rest.subspan(batch.size());
  }
  for (const Window& window : windows) expected += window.targets;
  promise(targets == expected, "as many targets as the windows have");
  if (settings.data.documents == Documents::stream && settings.data.rot13 == Rot13::none)
    promise(targets == data.facts().validation_tokens - 1, "each target is counted once");
  if (settings.data.documents == Documents::lines)
    promise(targets <= data.facts().validation_tokens, "no target is counted twice");
  look_at(data.validation_batch(data.first_batch(data.spread_windows(5), 4)), tokenizer.vocab_size());
}

}  // namespace

void text_data(std::string_view bytes) {
  const Settings settings = settings_of(bytes.substr(0, 5));
  std::string_view text = bytes.substr(std::min<std::size_t>(5, bytes.size()));
  write_file(scratch_file(), text);
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  const auto data = accepted([&] { return Dataset::load(settings.data, settings.context, 1337); });
  if (!data) return;
  look_at(*data, settings, text);
  accepted([&] { return Dataset::evaluation_of(scratch_file(), data->tokenizer(), settings.context, settings.data); });
}

}  // namespace normlab::fuzz
