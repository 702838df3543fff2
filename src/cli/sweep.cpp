// normlab sweep: a grid of runs, with verdicts.
#include "command.h"
#include "normlab/base/check.h"
#include "normlab/base/utf8.h"
#include "normlab/claims/report_sweep.h"
#include "normlab/claims/sweep_loader.h"
#include "normlab/claims/sweep_result.h"
#include "normlab/host/process.h"
#include "normlab/report/report.h"
#include "normlab/run/terminal.h"
#include "sweep_command.h"

namespace normlab::cli {
namespace {

constexpr Option kOptions[] = {
    {"--seeds", "N", "number of seeds, in place of the file's"},
    {"--force", "", "measure again what is done"},
    {"--dry-run", "", "list the points and measure nothing"},
    {"--json", "", "one JSON document"},
};

std::string listed(const Sweep& sweep) {
  std::string out = text(sweep.points.size(), " points\n");
  for (const Point& point : sweep.points) out += text("  ", point_name(sweep, point), ", seed ", point.seed, '\n');
  return out;
}

int run(const Words& words) {
  const std::string& path = words.only_file("SWEEP");
  const SweepWords given = sweep_words(words);
  const Sweep sweep = load_sweep(path, given.overrides, words.integer("--seeds", 1));
  if (words.has("--dry-run")) return print(printable(listed(sweep))), 0;
  SweepDirectory directory(sweep, given.directory.value_or("runs/" + sweep.name));
  Terminal terminal = Terminal::standard_error();
  const SweepResult result = run_in(directory, words, terminal);
  if (result.interrupted) return 128 + watch_signals();
  if (words.has("--json"))
    print_result(for_output(sweep_document(sweep, result).indented() + "\n"));
  else
    print_result(printable(text(sweep_text(directory, result, Terminal::standard_error().columns()),
                                "\nreport: ", directory.path(), "/report.html\n")));
  return result.holds() ? 0 : 1;
}

}  // namespace

SweepWords sweep_words(const Words& words) {
  SweepWords out;
  for (const std::string& given : words.overrides()) {
    if (given.starts_with("run.dir="))
      out.directory = given.substr(given.find('=') + 1);
    else
      out.overrides.push_back(given);
  }
  return out;
}

SweepResult run_in(SweepDirectory& directory, const Words& words, Terminal& terminal) {
  const Sweep& sweep = directory.sweep();
  check<UserError>(!is_run(directory.path()), directory.path(),
                   ": this is the directory of a run; give the sweep another run.dir");
  SweepResult result = run_sweep(directory, {own_path(), words.has("--force"), &watch_signals()}, terminal);
  if (result.interrupted)
    terminal.line(text(sweep.name, ": interrupted with ", result.points.size(), " of ", sweep.points.size(),
                       " points done; the same command goes on from here"));
  return result;
}

const Command sweep_command{
    "sweep",
    "runs a grid of configurations over seeds, with verdicts on claims",
    "SWEEP [key=value ...]",
    "SWEEP is a YAML file: base (a configuration, or the path of one), measure, grid (KEY: [VALUES], or a list of "
    "such\n"
    "grids), seeds, claims; and maps and curves for the report. Runs are side by side, one thread each. The directory\n"
    "runs/NAME (run.dir=DIR chooses another) gets results.jsonl, timing.jsonl and report.html; what is done stays, so\n"
    "a sweep can be ended at any moment and started again. key=value changes the base.\n"
    "Exit codes: 0 all claims hold, 1 one does not, 2 wrong input, 4 the system refused, 130 Ctrl-C, 143 SIGTERM.",
    "  normlab sweep configs/claims/warmup.yaml data.source=data/tales-sample.txt --seeds 3",
    kOptions,
    run};

}  // namespace normlab::cli
