// The corpora of the fuzz targets, gone through: every file is refused or keeps its promises.
#include "fuzz/fuzz.h"

#include <algorithm>
#include <filesystem>
#include <utility>
#include <vector>

#include "catch.h"
#include "normlab/host/files.h"
#include "normlab/run/checkpoint.h"
#include "normlab/run/metrics.h"
#include "temporary.h"

using namespace normlab;
namespace fs = std::filesystem;

namespace {

fs::path corpus(const std::string& name) { return fs::path(NORMLAB_SOURCE_DIR) / "tests/fuzz/corpus" / name; }

// A checkpoint of the corpus, with the checksum that it lacks.
Checkpoint checkpoint_of(const std::string& name) {
  const TemporaryDirectory directory;
  const Safetensors file = Safetensors::read(corpus("checkpoint/" + name).string());
  write_checksummed(directory.path("c"), file.metadata(), file.tensors());
  return Checkpoint(directory.path("c"));
}

}  // namespace

TEST_CASE("small files cannot ask for much memory", "[formats]") {
  // 44 merges of a token with itself make 2^45 bytes.
  CHECK_THROWS_WITH(Tokenizer::load(read_file(corpus("tokenizer_json/saved-bomb").string())),
                    ContainsSubstring("all tokens together may have 67108864"));
  CHECK(checkpoint_of("model-a").model().vocab_size() > 0);
  for (const char* larger : {"wide", "deep", "long-context"}) {
    CAPTURE(larger);
    const Checkpoint checkpoint = checkpoint_of(larger);
    CHECK_THROWS_WITH(checkpoint.model(), ContainsSubstring("numbers or more, and the file holds"));
  }
}

TEST_CASE("a log that is resumed has each step once, in order", "[formats]") {
  const auto kept = [](std::string_view lines) { return kept_lines(lines, 2, "m").bytes; };
  const std::string train = "{\"step\":1,\"kind\":\"train\"}\n", evaluation = "{\"step\":1,\"kind\":\"eval\"}\n";
  CHECK(kept(train + evaluation) == static_cast<std::int64_t>(train.size() + evaluation.size()));
  CHECK_THROWS_WITH(kept(train + evaluation + train), ContainsSubstring("m:3: step 1 comes after step 1"));
  CHECK_THROWS_WITH(kept("{\"step\":2}\n{\"step\":1}\n"), ContainsSubstring("m:2: step 1 comes after step 2"));
  for (const std::string line : {"{\"step\":-1}", "{\"step\":1.5}", "{\"step\":99999999999999999999}", "[1]", "{}"})
    CHECK_THROWS_WITH(kept(line + "\n"), ContainsSubstring("m:1: a line of a log is an object with a step"));
}

TEST_CASE("every reader keeps its promises over its fuzz corpus", "[formats]") {
  const std::vector<std::pair<std::string, void (*)(std::string_view)>> targets{
      {"checkpoint", fuzz::checkpoint},
      {"json", fuzz::json},
      {"metrics", fuzz::metrics},
      {"run_config", fuzz::run_config},
      {"safetensors", fuzz::safetensors},
      {"text_data", fuzz::text_data},
      {"tokenizer_json", fuzz::tokenizer_json},
      {"yaml", fuzz::yaml}};
  for (const auto& [name, target] : targets) {
    CAPTURE(name);
    std::vector<fs::path> files;
    for (const auto& entry : fs::directory_iterator(corpus(name))) files.push_back(entry.path());
    std::sort(files.begin(), files.end());
    for (const fs::path& file : files) {
      CAPTURE(file.string());
      CHECK_NOTHROW(target(read_file(file.string())));
    }
    CHECK(files.size() >= 10);
  }
  // No target is without a corpus, and no corpus without a target.
  const auto corpora = fs::directory_iterator(corpus(""));
  CHECK(std::distance(begin(corpora), end(corpora)) == static_cast<std::ptrdiff_t>(targets.size()));
}
