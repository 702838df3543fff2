// The built-in corpora by name.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/data/corpora/corpus.h"

namespace normlab {

// tales markov copy brackets
const std::vector<std::string>& corpus_names();

// DataError where data.source is neither one of them nor a path that exists.
void require_source(const std::string& source);

// `order`: of markov alone. ConfigError for an unknown name.
std::unique_ptr<Corpus> make_corpus(std::string_view name, int order, std::uint64_t seed);

}  // namespace normlab
