// normlab diff: two runs side by side.
#include "command.h"
#include "normlab/base/check.h"
#include "normlab/base/utf8.h"
#include "normlab/report/report.h"
#include "normlab/run/terminal.h"

namespace normlab::cli {
namespace {

int run(const Words& words) {
  check<UserError>(words.files().size() == 2, "diff: two runs are expected; usage: normlab diff ", diff_command.usage);
  const RunFiles left = read_run(words.files()[0]), right = read_run(words.files()[1]);
  print(printable(diff_text(left, right, Terminal::standard_error().columns())));
  return 0;
}

}  // namespace

const Command diff_command{"diff",
                           "shows where two runs differ",
                           "RUN RUN",
                           "The keys that differ, the first step at which the runs do, and both curves.",
                           "  normlab diff runs/postln-warmup runs/postln-no-warmup",
                           {},
                           run};

}  // namespace normlab::cli
