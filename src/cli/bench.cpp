// normlab bench: how fast it is here.
#include "normlab/bench/bench.h"

#include <algorithm>
#include <filesystem>

#include "command.h"
#include "normlab/base/check.h"
#include "normlab/base/did_you_mean.h"
#include "normlab/host/files.h"
#include "normlab/host/limits.h"
#include "normlab/host/process.h"

namespace normlab::cli {
namespace {

constexpr Option kOptions[] = {
    {"--json", "", "one JSON document"},
    {"--compare", "FILE", "also the ratio of each time to that in FILE, an earlier --json document"},
    {"--threads", "N", "measure with N threads (with 1, and with all that the process may use)"},
};

std::vector<std::string> names_of(const Words& words) {
  for (const std::string& name : words.files()) {
    if (std::ranges::count(bench_names(), name) == 1) continue;
    throw UserError(text("bench: there is no benchmark '", name, "'", did_you_mean(name, bench_names()), " (",
                         join(bench_names(), " "), ")"));
  }
  return words.files().empty() ? bench_names() : words.files();
}

Json earlier_result(const std::string& path) {
  Json earlier = parse_json(read_file(path), path);
  try {
    compare_bench(Json::object(), earlier);
  } catch (const DataError& error) {
    throw DataError(text("--compare ", path, ": ", error.what()));
  }
  return earlier;
}

int run(const Words& words) {
  BenchOptions options{names_of(words), {}, own_path()};
  const auto given = words.integer("--threads", 1);
  check<UserError>(given.value_or(1) <= 1024, "bench: --threads takes at most 1024, got ", given.value_or(1));
  if (given)
    options.threads = {static_cast<int>(*given)};
  else
    options.threads = {1};
  if (const int all = allowed_threads().count; !given && all > 1) options.threads.push_back(all);
  std::optional<Json> earlier;
  if (const auto path = words.value("--compare")) earlier = earlier_result(*path);

  const bool json = words.has("--json");
  Json document = run_bench(
      options, [](const std::string& name) { fputs(text("measuring ", name, "\n").c_str(), stderr); },
      [&](const Json& part) {
        if (!json) print(bench_table(part) + "\n");
      });
  if (earlier) {
    const Json comparison = compare_bench(document, *earlier);
    if (!json) print(text("earlier time / time now\n", comparison_table(comparison)));
    document.set("compared", comparison);
  }
  if (json) print(document.indented() + "\n");
  return 0;
}

}  // namespace

const Command bench_command{
    "bench",
    "measures kernels, training steps and the machine's peak",
    "[NAME...] [--json] [--compare FILE] [--threads N]",
    "NAME is peak gemm norm attention step-A step-B step-C step-D sample tokenizer start; without one, all. peak, "
    "which is "
    "always\n"
    "measured, is what the processor can do at best: multiply-adds in registers, copies in the caches and in memory; "
    "the\n"
    "others say their share of it. Times are the median, the least and the 90th percentile of several runs, on a "
    "quiet\n"
    "machine. The steps are whole training steps (forward, backward, clipping, AdamW) of models of\n"
    "  A  4 layers, 128 channels, 4 heads, 64 tokens x 12 rows, vocabulary 65\n"
    "  B  6, 384, 6, 256 x 16, 65        C  24, 64, 4, 64 x 16, 65        D  4, 256, 4, 128 x 8, 50304\n"
    "with FLOPs counted as 6 N + 12 L d T a token (N without the position embedding).",
    "  normlab bench gemm step-A --json > before.json\n  normlab bench gemm step-A --compare before.json",
    kOptions,
    run};

}  // namespace normlab::cli
