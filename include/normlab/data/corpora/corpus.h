// A built-in corpus: text drawn from a known distribution, so that the least possible loss on it is known too.
#pragma once

#include <cstdint>
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

}  // namespace normlab
