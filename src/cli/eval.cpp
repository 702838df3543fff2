// normlab eval: the loss of a checkpoint over all of a text.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "command.h"
#include "normlab/base/check.h"
#include "normlab/base/parallel.h"
#include "normlab/base/utf8.h"
#include "normlab/config/loader.h"
#include "normlab/formats/json.h"
#include "normlab/host/files.h"
#include "normlab/host/limits.h"
#include "normlab/run/checkpoint.h"
#include "normlab/run/run.h"
#include "normlab/run/run_directory.h"
#include "normlab/train/evaluate.h"

namespace normlab::cli {
namespace {

constexpr Option kOptions[] = {
    {"--data", "FILE", "all of FILE instead of the validation part of the checkpoint's data"},
    {"--logits", "FILE", "also writes tokens and logits of the first windows, at most 8, as safetensors"},
    {"--json", "", "one JSON document"},
};

// The checkpoint's settings; only the place of the data may change.
RunConfig changed_config(const Checkpoint& checkpoint, const Words& words) {
  RunConfig config = checkpoint.config();
  config::apply_overrides(config, words.overrides());
  for (const config::Difference& difference : config::differences(checkpoint.config(), config))
    check<ConfigError>((difference.path.starts_with("data.") && difference.path != "data.tokenizer" &&
                        difference.path != "data.vocab_size") ||
                           difference.path == "train.threads" || difference.path == "eval.statistics",
                       "eval: ", difference.path, " cannot change from ", difference.left, " to ", difference.right,
                       "; a trained model keeps its settings, and only train.threads, eval.statistics and data.*, "
                       "without data.tokenizer and data.vocab_size, can be given");
  return config;
}

Dataset data_of(const Checkpoint& checkpoint, const RunConfig& config, const Words& words) {
  if (const auto file = words.value("--data"))
    return Dataset::evaluation_of(*file, checkpoint.tokenizer(), config.model.context_length, config.data);
  Dataset data = Dataset::load(config.data, config.model.context_length, static_cast<std::uint64_t>(config.seed),
                               checkpoint.tokenizer());
  if (data.facts().hash != checkpoint.data_hash()) warn("the data is not what the model was trained on");
  return data;
}

Json json_of(const EvalReport& report, const DataFacts& data) {
  return Json::object({{"loss", report.loss},
                       {"loss_second_half", report.loss_second_half},
                       {"loss_by_position", report.loss_by_position},
                       {"perplexity", std::exp(report.loss)},
                       {"bits_per_byte", report.loss / (std::numbers::ln2 * data.bytes_per_token)},
                       {"tokens", report.targets},
                       {"unigram", data.unigram},
                       {"bigram", data.bigram},
                       {"floor", data.floor}});
}

std::string text_of(const EvalReport& report, const DataFacts& data) {
  return text("loss             ", fixed(report.loss, 4), " nats per token over ", report.targets, " tokens\n",
              "  second half    ", fixed(report.loss_second_half, 4), " (of each window)\n", "perplexity       ",
              fixed(std::exp(report.loss), 3), "\nbits per byte    ",
              fixed(report.loss / (std::numbers::ln2 * data.bytes_per_token), 4), "\nunigram entropy  ",
              fixed(data.unigram, 4), "\nbigram entropy   ", fixed(data.bigram, 4), "\nfloor            ",
              data.floor ? fixed(*data.floor, 4) : "unknown", "\n");
}

// tokens I64 [N, T] and logits F32 [N, T, V] of whole windows, for comparison with another program.
void write_logits(const Gpt& model, const Dataset& data, const std::string& path) {
  std::vector<Window> windows = data.all_windows();
  const Index context = model.config().context_length;
  std::erase_if(windows, [&](const Window& window) { return window.targets < context; });
  windows.resize(std::min<std::size_t>(windows.size(), 8));
  check<DataError>(!windows.empty(), "--logits: the data has no whole window of ", context, " tokens; give more text");
  const Batch batch = data.validation_batch(windows);
  const WithoutGraph without_graph;
  Pass pass;
  const Tensor logits = model.logits(batch, pass);
  const std::vector<std::int64_t> tokens(batch.tokens.begin(), batch.tokens.end());
  write_safetensors(path, {},
                    {stored("tokens", {batch.rows, batch.time}, tokens),
                     stored("logits", {batch.rows, batch.time, model.vocab_size()}, In(logits.values()))});
}

int run(const Words& words) {
  const auto logits = words.value("--logits");
  if (logits) require_new_file("eval", *logits);
  const std::string& given = words.only_file("CHECKPOINT");
  if (const auto end = unsaid_end(given)) warn(*end);
  const Checkpoint checkpoint(checkpoint_path(given));
  const RunConfig config = changed_config(checkpoint, words);
  set_threads(static_cast<int>(config.train.threads.value_or(allowed_threads().count)));
  flush_denormals(config.train.flush_denormals);
  const Dataset data = data_of(checkpoint, config, words);
  if (logits) write_logits(checkpoint.model(), data, *logits);
  if (const std::string warning = young_averages(config, checkpoint.state().step); !warning.empty())
    fputs(text("normlab: ", warning, '\n').c_str(), stderr);
  const EvalReport report = evaluate(checkpoint.model(), data, data.all_windows(), own_rows(config));
  print(words.has("--json") ? json_of(report, data.facts()).indented() + "\n" : text_of(report, data.facts()));
  return 0;
}

}  // namespace

const Command eval_command{
    "eval",
    "measures the validation loss of a checkpoint",
    "CHECKPOINT [key=value ...] [--data FILE] [--json]",
    "CHECKPOINT is a file, or a run directory, which means its last checkpoint. Every token of the validation part of "
    "the\n"
    "checkpoint's data but the first is predicted once, in windows side by side; with data.documents=lines the first "
    "too,\n"
    "but not the newlines of empty lines.",
    "  normlab eval runs/tiny\n"
    "  normlab eval runs/tiny/checkpoints/best.safetensors --data data/tales-sample.txt",
    kOptions,
    run};

}  // namespace normlab::cli
