// What the report of a sweep shows, apart from how: the numbers behind its pictures and its text.
#pragma once

#include <string>
#include <vector>

#include "normlab/claims/sweep_result.h"
#include "normlab/report/report_page.h"

namespace normlab {

inline constexpr std::size_t kMostArms = 4;  // that get layer maps of their own

// The runs of the first grid, named by arm; those of an arm share a colour. None where no runs are measured.
struct Arms {
  std::vector<NamedRun> all, first;  // `first`: one of each arm

  Arms(SweepDirectory& directory, const SweepResult& result);
  bool have_curves() const;  // not all of them a single point
};

// The title of a view, and what it does not tell apart: the keys besides its own in which its points differ.
std::string title_of(const MapView& view, const SweepResult& result);
std::string title_of(const CurveView& view, const SweepResult& result);

// The value of a map at each setting of its two keys: the mean over the seeds that have one.
struct MapCells {
  std::vector<std::string> columns, rows;         // as people write them; the first row is the greatest
  std::vector<std::vector<double>> values;        // [rows][columns]; not finite where no seed has a value
  std::vector<std::vector<std::string>> missing;  // how the runs ended that have none
};
MapCells cells_of(const MapView& view, const SweepResult& result);

// A line of a curve, over the settings that have a value.
struct CurveLine {
  std::string name;  // by the view's `by`; settings without a value are told: "post (10: diverged)"
  std::vector<double> x, y;
};
std::vector<CurveLine> lines_of(const CurveView& view, const SweepResult& result);

}  // namespace normlab
