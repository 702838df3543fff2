// Small sources that ask one thing of a model each: to learn a table (markov), to look back (copy), to keep a stack
// (brackets).
#pragma once

#include <cstdint>
#include <memory>

#include "normlab/data/corpora/corpus.h"

namespace normlab {

// A chain over seven letters and the newline whose next character depends on the last `order` ones through a table
// drawn from the seed. Before the text begins, all of them count as newlines.
std::unique_ptr<Corpus> make_markov(int order, std::uint64_t seed);

// Lines `w=w`: a word of 4 to 16 random letters from a to p, and the word again.
std::unique_ptr<Corpus> make_copy(std::uint64_t seed);

// Lines of balanced brackets of three kinds.
std::unique_ptr<Corpus> make_brackets(std::uint64_t seed);

// A line source's loops, shared by copy and brackets. line(i) is the i-th line with its newline.
template <class Line>
std::string whole_lines(Index size, const Line& line) {
  std::string out;
  for (std::uint64_t i = 0;; ++i) {
    const std::string next = line(i);
    if (!out.empty() && static_cast<Index>(out.size() + next.size()) > size) return out;
    out += next;
  }
}

}  // namespace normlab
