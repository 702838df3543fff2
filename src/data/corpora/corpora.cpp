// The built-in corpora by name.
#include "normlab/data/corpora/corpora.h"

#include <algorithm>

#include "lines.h"
#include "normlab/base/check.h"
#include "normlab/base/did_you_mean.h"
#include "normlab/host/files.h"
#include "tales.h"

namespace normlab {

const std::vector<std::string>& corpus_names() {
  static const std::vector<std::string> names{"tales", "markov", "copy", "brackets"};
  return names;
}

void require_source(const std::string& source) {
  if (std::ranges::find(corpus_names(), source) != corpus_names().end() || file_exists(source)) return;
  throw DataError(text("data.source: '", source, "' is neither a file nor one of the built-in corpora ",
                       join(corpus_names(), " "), did_you_mean(source, corpus_names())));
}

std::unique_ptr<Corpus> make_corpus(std::string_view name, int order, std::uint64_t seed) {
  if (name == "tales") return make_tales(seed);
  if (name == "markov") return make_markov(order, seed);
  if (name == "copy") return make_copy(seed);
  if (name == "brackets") return make_brackets(seed);
  throw ConfigError(text("'", name, "' is not one of the built-in corpora ", join(corpus_names(), " "),
                         did_you_mean(name, corpus_names())));
}

}  // namespace normlab
