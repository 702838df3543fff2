// normlab report: what runs and sweeps have written, as a page, a picture or text.
#include "normlab/report/report.h"

#include "command.h"
#include "normlab/base/check.h"
#include "normlab/base/utf8.h"
#include "normlab/claims/report_sweep.h"
#include "normlab/claims/sweep_directory.h"
#include "normlab/claims/sweep_result.h"
#include "normlab/host/files.h"
#include "normlab/run/terminal.h"

namespace normlab::cli {
namespace {

constexpr Option kOptions[] = {
    {"--out", "FILE", "the page; by default report.html, in the directory where it is one run or sweep"},
    {"--svg", "FILE", "of a sweep: the pictures that say most, as one SVG file"},
    {"--text", "", "in characters, on the terminal"},
};

// In the directory of its one run or sweep a report is replaced; any other file is kept.
void write_page(const Words& words, std::string path, bool beside_its_run, std::string_view page) {
  const auto out = words.value("--out");
  if (out) path = *out;
  if (out || !beside_its_run) require_new_file("report", path);
  write_output(path, page);
  print(for_output(path + "\n"));
}

int report_sweep(const Words& words, const std::string& path) {
  const Sweep sweep = sweep_of(path);
  SweepDirectory directory(sweep, path);
  const SweepResult result = read_sweep_result(directory);
  if (words.has("--text"))
    return print(printable(sweep_text(directory, result, Terminal::standard_error().columns()))), 0;
  if (const auto file = words.value("--svg")) {
    require_new_file("report", *file);
    write_output(*file, sweep_picture(directory, result));
  } else {
    write_page(words, path + "/report.html", true, sweep_page(directory, result));
  }
  return 0;
}

int run(const Words& words) {
  const std::vector<std::string>& files = words.files();
  check<UserError>(!files.empty(), "report: RUN is missing; usage: normlab report ", report_command.usage);
  if (files.size() == 1 && is_sweep(files[0])) return report_sweep(words, files[0]);
  check<UserError>(!words.has("--svg"), "report: --svg takes the directory of a sweep");
  std::vector<RunFiles> runs;
  runs.reserve(files.size());
  for (const std::string& directory : files) runs.push_back(read_run(directory));
  if (words.has("--text")) {
    for (const RunFiles& run : runs) print(printable(run_text(run, Terminal::standard_error().columns())) + "\n");
    return 0;
  }
  const bool is_one = runs.size() == 1;
  write_page(words, is_one ? files[0] + "/report.html" : "report.html", is_one, run_page(runs));
  return 0;
}

}  // namespace

const Command report_command{
    "report",
    "draws runs and sweeps: one HTML file that needs no network",
    "RUN...",
    "RUN is the directory of a run or of a sweep; several runs are drawn over one another. A run's report.html is\n"
    "rewritten at each of its evaluations, so this is for those that have none, and for several.",
    "  normlab report runs/postln-warmup runs/preln-no-warmup\n  normlab report runs/tiny --text",
    kOptions,
    run};

}  // namespace normlab::cli
