// normlab train: a run from a configuration, or one that goes on.
#include <filesystem>

#include "command.h"
#include "normlab/base/check.h"
#include "normlab/base/utf8.h"
#include "normlab/host/process.h"
#include "normlab/lab/curvature/curvature_log.h"
#include "normlab/report/report.h"
#include "normlab/run/run.h"

namespace normlab::cli {
namespace {

constexpr Option kOptions[] = {
    {"--resume", "RUN", "go on from the last checkpoint of a run directory; takes no CONFIG"},
    {"--stop-at", "N", "write a checkpoint after N updates and end"},
    {"--force", "", "replace the directory run.dir, if it holds a run and nothing else"},
    {"--print-config", "", "show every key with its value and where it came from; trains nothing"},
    {"--help-config", "", "list every key with its default, range and meaning"},
    {"--help-table", "", "the same as a Markdown table"},
};

constexpr int kTemporaryFailure = 75;  // EX_TEMPFAIL of sysexits.h: start it again

int exit_code(Outcome outcome, int signal) {
  switch (outcome) {
    case Outcome::trained:
    case Outcome::stuck:
      return 0;
    case Outcome::diverged:
      return 1;
    case Outcome::nonfinite:
      return 3;
    case Outcome::interrupted:
      return signal == 0 ? 0 : signal == SIGALRM ? kTemporaryFailure : 128 + signal;
  }
  __builtin_unreachable();
}

RunResult train(const Words& words, const RunOptions& options, Terminal& terminal) {
  if (const auto resume = words.value("--resume")) {
    check<UserError>(words.files().empty(), "train: --resume takes no CONFIG, and there is '",
                     words.files().empty() ? "" : words.files()[0], "'; the run has its own");
    return resume_run(*resume, words.overrides(), options, terminal);
  }
  const std::string& path = words.only_file("CONFIG");
  return start_run(load_run_config(path, words.overrides()).config, std::filesystem::path(path).stem().string(),
                   options, terminal);
}

int run(const Words& words) {
  if (words.has("--help-config")) return print(config::help_config<RunConfig>()), 0;
  if (words.has("--help-table")) return print(config::help_table<RunConfig>()), 0;
  if (words.has("--print-config"))
    return print(config::print_config(load_run_config(words.only_file("CONFIG"), words.overrides()))), 0;
  RunOptions options;
  options.stop_at = words.integer("--stop-at", 1);
  options.force = words.has("--force");
  options.watch_signals = [] { return &watch_signals(); };
  end_on_signals();
  options.report = [](const std::string& directory) { write_run_report_apart(own_path(), directory); };
  options.program = words.program;
  options.watch = curvature_log;
  Terminal terminal = Terminal::standard_error();
  const RunResult result = train(words, options, terminal);
  print_result(printable(result.summary));
  const Outcome outcome = result.report.outcome;
  if (outcome == Outcome::nonfinite || outcome == Outcome::diverged)
    terminal.line(text("normlab: ", config::to_string(outcome), ": ", result.report.reason,
                       result.report.step == 0
                           ? "; the model was not sound before any update: look at model.norm_gain, model.norm_eps, "
                             "model.embed_std and model.from"
                           : "; try a lower optimizer.lr, a longer schedule.warmup_steps, or optimizer.grad_clip "
                             "above 0"));
  return exit_code(result.report.outcome, watch_signals());
}

}  // namespace

const Command train_command{
    "train",
    "trains a model from a configuration",
    "CONFIG [key=value ...]  |  --resume RUN [key=value ...]",
    "Writes a run directory (runs/NAME) with config.yaml, run.json, metrics.jsonl, timing.jsonl, checkpoints and\n"
    "report.html, which is rewritten at each evaluation.\n"
    "key=value changes a setting of the file: model.norm=rms optimizer.lr=3e-4\n"
    "Exit codes: 0 done, 1 diverged, 2 wrong input, 3 a value that is not finite, 4 the system refused,\n"
    "75 train.time_limit, 130 Ctrl-C, 143 SIGTERM, 128 + the number of SIGHUP, SIGUSR1, SIGUSR2 and SIGXCPU; after "
    "each of\n"
    "these --resume goes on. A run that is stuck was done: 0.",
    "  normlab train configs/tiny.yaml model.norm=rms train.steps=500\n"
    "  normlab train configs/shakespeare.yaml data.source=data/tales-sample.txt",
    kOptions,
    run};

}  // namespace normlab::cli
