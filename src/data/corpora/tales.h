// The tales: short stories with names, things and places that come again and must agree.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "normlab/data/corpora/corpus.h"
#include "normlab/data/corpora/grammar.h"

namespace normlab {

std::unique_ptr<Corpus> make_tales(std::uint64_t seed);

std::vector<Rule> tale_sentences();  // the first rule is the tale
std::vector<Rule> tale_words();

}  // namespace normlab
