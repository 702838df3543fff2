// normlab inspect: a model layer by layer.
#include "normlab/lab/inspect/inspect.h"

#include <unistd.h>

#include "command.h"
#include "normlab/base/check.h"
#include "normlab/base/parallel.h"
#include "normlab/base/utf8.h"
#include "normlab/host/files.h"
#include "normlab/lab/curvature/curvature.h"
#include "normlab/run/memory_estimate.h"
#include "normlab/run/terminal.h"
#include "subject.h"

namespace normlab::cli {
namespace {

constexpr Option kOptions[] = {
    {"--seeds", "N", "means over N initialisations, with seeds from the configuration's on (1)"},
    {"--depths", "L,L,...", "also gradients of fresh models of these depths, and the exponents of their growth"},
    {"--shards", "K,K,...", "also how the gradient changes when each of N shards of the batch has its own statistics"},
    {"--curvature", "", "also sharpness, and how loss and gradient change along a step (in double; takes longer)"},
    {"--svg", "FILE", "also draws it"},
    {"--json", "", "one JSON document"},
};

// Of an option as 6,12,24.
std::vector<Index> rising_numbers(const Words& words, std::string_view option, std::string_view of_what) {
  std::vector<Index> values;
  if (!words.has(option)) return values;
  const std::string given = *words.value(option);
  std::string_view rest = given;
  while (true) {
    const std::size_t comma = rest.find(',');
    const auto value = parse_int(rest.substr(0, comma));
    check<UserError>(value && *value >= 1 && *value <= 10000 && (values.empty() || *value > values.back()),
                     "inspect: ", option, " takes rising numbers of ", of_what, ", as 6,12,24, got '", given, "'");
    values.push_back(*value);
    if (comma == std::string_view::npos) return values;
    rest.remove_prefix(comma + 1);
  }
}

std::vector<Index> depths_of(const Words& words) {
  std::vector<Index> depths = rising_numbers(words, "--depths", "layers");
  check<UserError>(depths.size() != 1, "inspect: --depths takes two depths or more, to fit an exponent through");
  return depths;
}

// Of the terminal that standard output is; 0 where it is none.
std::size_t output_columns() {
  return isatty(STDOUT_FILENO) == 1 ? static_cast<std::size_t>(Terminal(STDOUT_FILENO, false).columns()) : 0;
}

Inspection inspection_of(const Subject& subject, std::int64_t seeds, const Batch& batch) {
  if (seeds == 1) return inspect_model(subject.model, batch);
  std::vector<Inspection> inspections;
  for (std::int64_t i = 0; i < seeds; ++i)
    inspections.push_back(inspect_model(
        Gpt(subject.config.model, subject.model.vocab_size(), static_cast<std::uint64_t>(subject.config.seed + i)),
        batch));
  return mean_of(inspections);
}

Curvature curvature_of(const Subject& subject, const Batch& batch) {
  const RunConfig& config = subject.config;
  CurvatureAt at{subject.at(), config.optimizer, 0, subject.updates(), {}};
  at.lr = learning_rate(config.schedule, config.optimizer.lr, std::min(at.updates + 1, config.train.steps),
                        config.train.steps);
  Optimizer optimizer(config.optimizer, subject.model.store());
  if (subject.checkpoint) {
    subject.checkpoint->restore(optimizer);
    at.second_moments = stored_tensors(optimizer.state());
  }
  return f64::measure_curvature(at, batch);
}

int run(const Words& words) {
  const std::int64_t seeds = words.integer("--seeds", 1).value_or(1);
  const std::vector<Index> depths = depths_of(words), shards = rising_numbers(words, "--shards", "shards");
  const auto picture = words.value("--svg");
  if (picture) require_new_file("inspect", *picture);
  const Subject subject = load_subject(words);
  check<UserError>(!subject.checkpoint || (seeds == 1 && depths.empty()),
                   "inspect: --seeds and --depths are about fresh models; give a configuration instead of ",
                   subject.path);
  if (!depths.empty()) {
    RunConfig deepest = subject.config;
    deepest.model.n_layers = depths.back();
    require_memory(deepest, subject.data.facts(), subject.model.vocab_size());
  }
  const Batch batch = subject.data.train_batch(1, 0, subject.config.train.batch_size);  // the first of a run
  InspectReport report{
      subject.config, subject.description(), {}, costs_of(subject.config, subject.data.facts(), subject.model), {}};
  if (seeds > 1) report.subject += text(", means over ", seeds, " seeds");
  std::optional<Curvature> curvature;
  with_team([&] {
    report.inspection = inspection_of(subject, seeds, batch);
    if (!depths.empty())
      report.depths = fit_depths(subject.config.model, subject.model.vocab_size(),
                                 static_cast<std::uint64_t>(subject.config.seed), seeds, depths, batch);
    if (!shards.empty()) report.shards = shard_differences(subject.model, batch, shards);
    if (words.has("--curvature")) curvature = curvature_of(subject, batch);
  });
  if (picture) write_output(*picture, svg_of(report));
  if (!words.has("--json")) {
    print(printable(text_of(report, output_columns())));
    if (curvature) print(text('\n', text_of(*curvature)));
    return 0;
  }
  Json document = json_of(report);
  if (curvature) document.set("curvature", json_of(*curvature));
  print(for_output(document.indented() + "\n"));
  return 0;
}

}  // namespace

const Command inspect_command{
    "inspect",
    "shows gradients, sizes and norm statistics layer by layer",
    "CONFIG|CHECKPOINT [key=value ...] [--seeds N] [--depths L,L,...] [--shards K,K,...] [--curvature] [--svg FILE] "
    "[--json]",
    "Runs one training batch forward and backward, and compares what theory expects of the placement with what is "
    "measured.\n"
    "CHECKPOINT is a .safetensors file, or a run directory, which means its last checkpoint.",
    "  normlab inspect configs/postln-no-warmup.yaml --seeds 5\n"
    "  normlab inspect configs/preln-no-warmup.yaml --seeds 5 --depths 6,12,24\n"
    "  normlab inspect runs/postln-no-warmup --curvature",
    kOptions,
    run};

}  // namespace normlab::cli
