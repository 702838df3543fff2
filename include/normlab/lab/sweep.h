// Running a sweep: its points side by side in processes of this program, its results, its verdicts.
#pragma once

#include <csignal>
#include <functional>
#include <string>
#include <vector>

#include "normlab/lab/sweep_file.h"
#include "normlab/lab/table.h"
#include "normlab/train/terminal.h"

namespace normlab {

struct SweepOptions {
  std::string program;    // path of this program
  std::string directory;  // of the sweep
  bool force = false;     // measure again what is done
  const volatile std::sig_atomic_t* interrupted = nullptr;
};

// What is known of a sweep: the points that are done, in the sweep's order, and the verdicts on them.
struct SweepResult {
  std::vector<Measured> points;
  std::vector<const Point*> done;   // of each entry of `points`
  std::vector<ClaimResult> claims;  // one for each of the sweep, once all points are done; else empty
  std::size_t measured_now = 0;     // points that were not done before
  double seconds = 0;               // that this took
  double seconds_of_points = 0;     // that the processes of all points took, one after another
  bool interrupted = false;

  bool holds() const;  // all claims
};

// The directory holds, of each point, points/ID/ (a run, or result.json of another measurement) and times/ID (the
// seconds of its process), results.jsonl without clocks, timing.jsonl, sweep.json (which file and overrides it came
// from) and report.html. Points that are done are left as they are; a run that was interrupted goes on from its last
// checkpoint. UserError, SystemError with the child's own message when a point cannot be measured, or when another
// sweep works in the directory.
SweepResult run_sweep(const Sweep& sweep, const SweepOptions& options, Terminal& terminal);

// What is done so far, without running anything.
SweepResult read_sweep_result(const Sweep& sweep, const std::string& directory);
// UserError where another file's sweep has the directory: its results and its report would be replaced.
void refuse_other_sweep(const Sweep& sweep, const std::string& directory);
void write_sweep_record(const Sweep& sweep, const std::string& directory);
// The sweep that a directory was made from. DataError where it holds none.
Sweep sweep_of(const std::string& directory);
bool is_sweep(const std::string& directory);
std::string point_directory(const std::string& directory, const Point& point);

// "placement post, warmup_steps 0": the keys that tell the points of this sweep apart, without the seed.
std::string point_name(const Sweep& sweep, const Point& point);

// A value of YAML as a person writes it: 1.0e-03 is 0.001, and 0.00030000000000000003 is 3e-04.
std::string shown(const std::string& value);
// The same of several, as they are where two that differ would look the same.
std::vector<std::string> shown(const std::vector<std::string>& values);
// The keys that its grid varies, with numbers as numbers.
Json varied_settings(const Point& point);
// {"name", "runs": [...], "claims": [...]}, as interface.md has it.
Json sweep_document(const Sweep& sweep, const SweepResult& result);
// A head, and a row for each setting: its keys, seeds, outcomes, and the mean and deviation of what is measured.
std::vector<Row> setting_table(const Sweep& sweep, const SweepResult& result);
// For people: a line for each setting; and of each claim its verdict with the numbers.
std::string sweep_table(const Sweep& sweep, const SweepResult& result);
std::string sweep_verdicts(const Sweep& sweep, const SweepResult& result);

}  // namespace normlab
