// The report of a sweep in characters.
#include "normlab/report/report_text.h"

#include <algorithm>
#include <cmath>

#include "normlab/claims/report_sweep.h"
#include "normlab/claims/report_views.h"

namespace normlab {
namespace {

// The validation losses of the arms, each with a mark of its own.
std::string arms_text(const Arms& arms, int columns) {
  std::vector<TextLine> lines;
  std::string names;
  const LossUnit unit = loss_unit(arms.all);
  for (const NamedRun& named : arms.all) {
    const auto same = [&](const NamedRun& other) { return other.name == named.name; };
    const auto nth = static_cast<std::size_t>(std::ranges::find_if(arms.first, same) - arms.first.begin());
    lines.push_back(line_of(*named.run, "eval", "loss", mark_of(nth), unit.factor(*named.run)));
  }
  for (std::size_t nth = 0; nth < arms.first.size(); ++nth)
    names += text("  ", mark_of(nth), ' ', arms.first[nth].name, '\n');
  const std::string chart = arms.have_curves() ? loss_chart(lines, columns) : "";
  return chart.empty() ? ""
                       : text("\nvalidation loss", unit.bytes ? ", bits per byte" : "", " (", kBoth, ": several)\n",
                              names, chart);
}

std::string view_text(const MapView& view, const SweepResult& result) {
  const MapCells cells = cells_of(view, result);
  std::vector<Row> rows{{view.y}};
  rows[0].insert(rows[0].end(), cells.columns.begin(), cells.columns.end());
  for (std::size_t row = 0; row < cells.rows.size(); ++row) {
    rows.push_back({cells.rows[row]});
    for (std::size_t i = 0; i < cells.columns.size(); ++i)
      rows.back().push_back(std::isfinite(cells.values[row][i]) ? significant(cells.values[row][i], 3)
                                                                : cells.missing[row][i]);
  }
  return text("\n", title_of(view, result), " (", view.value, "), across: ", view.x, '\n', aligned(rows));
}

std::string view_text(const CurveView& view, const SweepResult& result, int columns) {
  std::vector<TextLine> lines;
  std::string names;
  for (const CurveLine& curve : lines_of(view, result)) {
    TextLine line{mark_of(lines.size()), {}};
    for (std::size_t i = 0; i < curve.x.size(); ++i) line.points.emplace_back(curve.x[i], curve.y[i]);
    if (!curve.name.empty()) names += text("  ", line.mark, ' ', curve.name, '\n');
    lines.push_back(std::move(line));
  }
  const std::string chart = text_chart(lines, columns, {view.x, view.log_x}, view.log_y);
  return chart.empty() ? "" : text("\n", title_of(view, result), " (", view.value, ")\n", names, chart);
}

}  // namespace

std::string sweep_text(SweepDirectory& directory, const SweepResult& result, int columns) {
  const Sweep& sweep = directory.sweep();
  const Arms arms(directory, result);
  std::string out = sweep_table(sweep, result) + arms_text(arms, columns);
  for (const MapView& view : sweep.maps) out += view_text(view, result);
  for (const CurveView& view : sweep.curves) out += view_text(view, result, columns);
  for (std::size_t i = 0; i < std::min(arms.first.size(), kMostArms); ++i)
    if (const std::string map = map_text(*arms.first[i].run, columns); !map.empty())
      out += text("\n", arms.first[i].name, ", seed ", arms.first[i].run->config.seed, "; ", map);
  return out + sweep_verdicts(sweep, result);
}

}  // namespace normlab
