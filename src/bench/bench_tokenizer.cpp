// Byte-pair encoding: training on a text, and encoding it.
#include "normlab/base/parallel.h"
#include "normlab/bench/bench_parts.h"
#include "normlab/data/corpora/corpora.h"
#include "normlab/data/tokenizer/byte_pairs.h"

namespace normlab {
namespace {

// As long as the works of an author; a chain of characters has more different words than a language.
constexpr std::int64_t kTextSize = 1100000, kTokens = 1024;

Json entry_of(const char* name, const Timing& timing) {
  Json entry = Json::object({{"name", name}, {"threads", threads()}});
  set_times(entry, timing);
  entry.set("mb_per_s", static_cast<double>(kTextSize) / 1e6 / timing.median);
  return entry;
}

}  // namespace

Json measure_tokenizer(Effort effort) {
  const std::string content = make_corpus("markov", 3, 1)->generate(kTextSize);
  const std::string_view texts[] = {content};
  const Timing training = time_runs(effort, [&] { BytePairs::train(texts, kTokens); });
  const BytePairs pairs = BytePairs::train(texts, kTokens);
  std::vector<std::int32_t> ids;
  const Timing encoding = time_runs(effort, [&] {
    ids.clear();
    pairs.encode(content, ids);
  });
  return Json::array({entry_of("bpe-train", training), entry_of("bpe-encode", encoding)});
}

}  // namespace normlab
