// normlab export: a model, or the metrics of a run, for other tools.
#include "normlab/interop/export.h"

#include <filesystem>

#include "command.h"
#include "normlab/base/check.h"
#include "normlab/base/did_you_mean.h"
#include "normlab/base/utf8.h"
#include "normlab/host/files.h"
#include "normlab/run/checkpoint.h"
#include "normlab/run/figures.h"
#include "normlab/run/run_directory.h"

namespace normlab::cli {
namespace {

constexpr Option kOptions[] = {{"--to", "hf|pytorch|csv", "what is written"}};

int run(const Words& words) {
  const std::string to = words.value("--to").value_or("");
  check<UserError>(to == "hf" || to == "pytorch" || to == "csv", "export: --to takes hf, pytorch or csv, ",
                   to.empty() ? "and is missing" : text("got '", to, "'"), did_you_mean(to, {"hf", "pytorch", "csv"}));
  const std::string what = to == "csv" ? "a run and a file" : "a checkpoint and a directory";
  check<UserError>(words.files().size() == 2, "export: --to ", to, " takes ", what, ", and there are ",
                   words.files().size(), " names; usage: normlab export ", export_command.usage);
  const std::string &from = words.files()[0], &target = words.files()[1];
  if (to == "csv") {
    require_new_file("export", target);
    const bool is_directory = std::filesystem::is_directory(from);
    const std::string metrics = is_directory ? from + "/metrics.jsonl" : from, log = read_file(metrics);
    const std::string table = metrics_csv(log, metrics);
    if (is_directory && file_exists(from + "/run.json")) {
      check_metrics(read_run_record(from), log, metrics);
      if (const auto end = unsaid_end(from)) warn(*end);
    }
    write_output(target, table);
    return 0;
  }
  const Checkpoint checkpoint(checkpoint_path(from));
  const Gpt model = checkpoint.model();
  const TrainedModel trained{checkpoint.config(), checkpoint.tokenizer(), model};
  if (to == "hf")
    export_hugging_face(trained, target);
  else
    export_pytorch(trained, target);
  print(printable(text(target, ": written from ", checkpoint.path(), '\n')));
  return 0;
}

}  // namespace

const Command export_command{
    "export",
    "writes a model for transformers or PyTorch, or metrics as CSV",
    "CHECKPOINT --to hf|pytorch DIR  |  RUN --to csv FILE",
    "hf: a folder for transformers' from_pretrained, of models that GPT-2 (norm layer, placement pre, learned "
    "positions)\n"
    "or Llama (norm rms, placement pre, rope, swiglu, no bias) can express; others are refused with the keys in the "
    "way.\n"
    "pytorch: of every model, one readable model.py that loads the weights, writes text and trains on.\n"
    "csv: metrics.jsonl with the columns step, layer, part, measure, value; FILE may be /dev/stdout.\n"
    "No file is replaced: name another DIR or FILE, or delete what is there first.",
    "  normlab export runs/gpt-style --to hf my-gpt\n  normlab export runs/tiny --to csv tiny.csv",
    kOptions,
    run};

}  // namespace normlab::cli
