// Running a sweep: its points side by side in processes of this program, its results, its verdicts.
#pragma once

#include <csignal>
#include <string>

#include "normlab/claims/sweep_result.h"
#include "normlab/run/terminal.h"

namespace normlab {

struct SweepOptions {
  std::string program;  // path of this program
  bool force = false;   // measure again what is done
  const volatile std::sig_atomic_t* interrupted = nullptr;
};

// The directory holds, of each point, points/ID/ (a run, or result.json of another measurement) and times/ID (the
// seconds of its process), results.jsonl without clocks, timing.jsonl, sweep.json (which file and overrides it came
// from) and report.html. Points that are done are left as they are; a run that was interrupted goes on from its last
// checkpoint. UserError, SystemError with the child's own message when a point cannot be measured, or when another
// sweep works in the directory.
SweepResult run_sweep(SweepDirectory& directory, const SweepOptions& options, Terminal& terminal);

}  // namespace normlab
