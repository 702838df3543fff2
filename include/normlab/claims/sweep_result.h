// What is known of a sweep: the points that are done, and the verdicts on them.
#pragma once

#include <string>
#include <vector>

#include "normlab/chart/table.h"
#include "normlab/claims/sweep_directory.h"

namespace normlab {

// The points in the sweep's order.
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

// What is done so far, without running anything.
SweepResult read_sweep_result(SweepDirectory& directory);
// results.jsonl and timing.jsonl of what is done.
void write_results(SweepDirectory& directory, const SweepResult& result);

// {"name", "runs": [...], "claims": [...]}, as interface.md has it.
Json sweep_document(const Sweep& sweep, const SweepResult& result);
// A head, and a row for each setting: its keys, seeds, outcomes, and the mean and deviation of what is measured.
std::vector<Row> setting_table(const Sweep& sweep, const SweepResult& result);
// For people: a line for each setting; and of each claim its verdict with the numbers.
std::string sweep_table(const Sweep& sweep, const SweepResult& result);
std::string sweep_verdicts(const Sweep& sweep, const SweepResult& result);

}  // namespace normlab
