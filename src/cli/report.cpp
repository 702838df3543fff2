// normlab report: what runs and sweeps have written, as a page, a picture or text.
#include "normlab/lab/report.h"

#include "command.h"
#include "normlab/base/check.h"
#include "normlab/base/files.h"
#include "normlab/train/terminal.h"

namespace normlab::cli {
namespace {

constexpr Option kOptions[] = {
    {"--out", "FILE", "the page; by default report.html, in the directory where it is one run or sweep"},
    {"--svg", "FILE", "of a sweep: the pictures that say most, as one SVG file"},
    {"--text", "", "in characters, on the terminal"},
};

int report_sweep(const Words& words, const std::string& directory) {
  const Sweep sweep = sweep_of(directory);
  const SweepResult result = read_sweep_result(sweep, directory);
  if (words.has("--text")) return print(sweep_text(sweep, directory, result, Terminal::standard_error().columns())), 0;
  if (const auto file = words.value("--svg")) return write_file(*file, sweep_picture(sweep, directory, result)), 0;
  const std::string path = words.value("--out").value_or(directory + "/report.html");
  write_file(path, sweep_page(sweep, directory, result));
  print(path + "\n");
  return 0;
}

int run(const Words& words) {
  const std::vector<std::string>& files = words.files();
  check<UserError>(!files.empty(), "report: RUN is missing; usage: normlab report ", report_command.usage);
  check<UserError>(words.overrides().empty(), "report: the runs are as they are; '",
                   words.overrides().empty() ? "" : words.overrides()[0], "' cannot change them");
  if (files.size() == 1 && is_sweep(files[0])) return report_sweep(words, files[0]);
  check<UserError>(!words.has("--svg"), "report: --svg takes the directory of a sweep");
  std::vector<RunFiles> runs;
  for (const std::string& directory : files) runs.push_back(read_run(directory));
  if (words.has("--text")) {
    for (const RunFiles& run : runs) print(run_text(run, Terminal::standard_error().columns()) + "\n");
    return 0;
  }
  const std::string path = words.value("--out").value_or(runs.size() == 1 ? files[0] + "/report.html" : "report.html");
  write_file(path, run_page(runs));
  print(path + "\n");
  return 0;
}

}  // namespace

const Command report_command{
    "report",
    "draws runs and sweeps: one HTML file that needs no network",
    "RUN...",
    "RUN is the directory of a run or of a sweep; several runs are drawn over one another. A run's report.html is\n"
    "written anew at each of its evaluations, so this is for those that have none, and for several.",
    "  normlab report runs/postln-warmup runs/preln-no-warmup\n  normlab report runs/tiny --text",
    kOptions,
    run};

}  // namespace normlab::cli
