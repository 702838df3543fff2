// The built-in corpora: texts drawn from a known distribution, so that the least possible loss on them is known too.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/base/real.h"

namespace normlab {

// A source of text with exact probabilities, given character by character from left to right. All characters are ASCII
// and every text is a sequence of lines, drawn independently but for `markov`, which remembers across them.
class Corpus {
 public:
  virtual ~Corpus() = default;

  // As many whole lines as fit into `size` characters, at least one. markov: exactly `size` characters.
  virtual std::string generate(Index size) const = 0;

  // -ln p(character | all before it) for text[from], text[from + 1], ...; text[from] begins a line. DataError with the
  // position (counted from 0 in `text`) of the first character that this source cannot write.
  virtual std::vector<double> nats(std::string_view text, std::size_t from) const = 0;

  // Expected nats over expected characters, exact.
  virtual double entropy_rate() const = 0;
};

// tales markov copy brackets
const std::vector<std::string>& corpus_names();

// DataError where data.source is neither one of them nor a path that exists.
void require_source(const std::string& source);

// `order`: of markov alone. ConfigError for an unknown name.
std::unique_ptr<Corpus> make_corpus(std::string_view name, int order, std::uint64_t seed);

}  // namespace normlab
