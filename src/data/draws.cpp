// Which windows of the training part a batch takes. Each setting draws from a stream of its own, so that one does not
// change what the others give.
#include "normlab/data/draws.h"

#include <algorithm>

#include "normlab/base/check.h"
#include "normlab/base/rng.h"

namespace normlab {
namespace {

Random stream_of(BatchPlace place, std::string_view name) {
  return Random(place.seed, name)
      .sub(static_cast<std::uint64_t>(place.step))
      .sub(static_cast<std::uint64_t>(place.micro_batch));
}

// From 0 to n - 1, of whichever row of a batch.
Index row_draw(const Random& stream, Index row, Index n) {
  return static_cast<Index>(stream.sub(static_cast<std::uint64_t>(row)).below(static_cast<std::uint64_t>(n)));
}

}  // namespace

void check_draws(const DataConfig& config, Index context_length, const Domain& text, std::string_view name) {
  const bool stream = config.documents == Documents::stream, topic = config.batches == BatchesFrom::topic;
  check<ConfigError>(stream || !topic, "data.batches: topic goes with data.documents = stream only");
  check<ConfigError>(stream || !config.lengths,
                     "data.lengths goes with data.documents = stream only; lines have theirs");
  if (config.lengths) {
    const Index least = (*config.lengths)[0];
    check<ConfigError>(context_length >= 2, "data.lengths: a row has at least 2 tokens, and model.context_length is ",
                       context_length, "; take 2 or more, or leave data.lengths out");
    check<ConfigError>(least >= 1 && least <= context_length, "data.lengths: [", least, ", ", (*config.lengths)[1],
                       "] is [min, jitter], and min takes 1 to model.context_length, ", context_length, ", got ",
                       least);
  }
  if (!stream) return;
  const Index size = text.end - text.begin;
  check<DataError>(size > context_length, name, ": there are ", size, " tokens to train on, but a window takes ",
                   context_length + 1, " (model.context_length + 1); give more text, or lower model.context_length");
  if (!topic) return;
  check<ConfigError>(config.topic_span > context_length, "data.topic_span: ", config.topic_span,
                     " tokens hold no window, which takes ", context_length + 1, " (model.context_length + 1)");
  check<DataError>(size >= config.topic_span, name, ": there are ", size,
                   " tokens to train on, less than data.topic_span = ", config.topic_span,
                   "; give more text, or lower data.topic_span");
}

std::vector<Window> draw_windows(const DataConfig& config, Index context_length, std::span<const Domain> domains,
                                 BatchPlace place, Index rows) {
  const Random starts = stream_of(place, "data.rows"), rot13 = stream_of(place, "data.rot13"),
               lengths = stream_of(place, "data.lengths");
  const auto of_batch = [](Random stream, Index n) {
    return static_cast<Index>(stream.below(static_cast<std::uint64_t>(n)));
  };
  const Index batch_domain = config.rot13 == Rot13::batch ? of_batch(rot13, 2) : 0;
  Index text_size = domains[0].end - domains[0].begin;
  for (const Domain& domain : domains) text_size = std::min(text_size, domain.end - domain.begin);
  // Where in a domain the windows of the batch may lie.
  const bool topic = config.batches == BatchesFrom::topic;
  const Index span = topic ? config.topic_span : text_size;
  const Index span_begin = topic ? of_batch(stream_of(place, "data.span"), text_size - span + 1) : 0;
  const Index centre =
      config.lengths ? (*config.lengths)[0] + of_batch(lengths, context_length - (*config.lengths)[0] + 1) : 0;
  std::vector<Window> windows;
  for (Index row = 0; row < rows; ++row) {
    const Index which = config.rot13 == Rot13::sample ? row_draw(rot13, row, 2) : batch_domain;
    const Domain& domain = domains[static_cast<std::size_t>(which)];
    if (config.documents == Documents::lines) {
      const auto documents = static_cast<Index>(domain.documents.size());
      windows.push_back(domain.documents[static_cast<std::size_t>(row_draw(starts, row, documents))]);
      continue;
    }
    Window window{domain.begin + span_begin + row_draw(starts, row, span - context_length), context_length};
    if (config.lengths) {
      const Index jitter = (*config.lengths)[1];
      window.targets = std::clamp(centre - jitter + row_draw(lengths, row, 2 * jitter + 1), Index{2}, context_length);
    }
    windows.push_back(window);
  }
  return windows;
}

}  // namespace normlab
