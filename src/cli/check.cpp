// normlab check: is a configuration sane?
#include "normlab/lab/check/check.h"

#include "command.h"
#include "normlab/base/parallel.h"
#include "subject.h"

namespace normlab::cli {
namespace {

constexpr Option kOptions[] = {{"--json", "", "one JSON document"}};

int run(const Words& words) {
  const Subject subject = load_subject(words);
  const Index rows = subject.config.statistics_rows();  // what goes through a norm together
  const CheckInput input{subject.at(), subject.data.train_batch(1, 0, rows), subject.data.train_batch(2, 0, rows)};
  CheckReport report;
  with_team([&] { report = f64::run_checks(input); });
  print_result(words.has("--json") ? json_of(report).indented() + "\n" : text_of(report, subject.config.model));
  return report.failed() ? 1 : 0;
}

}  // namespace

const Command check_command{
    "check",
    "checks a configuration: gradients, initial loss, leaks of the future",
    "CONFIG|CHECKPOINT [key=value ...] [--json]",
    "In double precision, on the first batch of a run: gradients against differences of the loss; the initial loss "
    "against\n"
    "ln V + (variance of the logits) / 2; whether every parameter gets a gradient; whether a later token changes an\n"
    "earlier output, and where first, in training and in evaluation; whether a sample depends on the others; and what "
    "the\n"
    "norm's output does not depend on. Exit code 1 when one fails.",
    "  normlab check configs/tiny.yaml\n  normlab check configs/tiny.yaml model.norm=batch --json",
    kOptions,
    run};

}  // namespace normlab::cli
