// The page of a sweep: its verdicts, and the pictures that show why.
#include "normlab/claims/report_sweep.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "normlab/claims/report_views.h"
#include "normlab/host/files.h"

namespace normlab {
namespace {

// Maps of one value have the same colours for it.
std::vector<svg::Picture> map_pictures(const Sweep& sweep, const SweepResult& result) {
  std::vector<svg::HeatMap> maps;
  std::map<std::string, std::pair<double, double>> ranges;
  for (const MapView& view : sweep.maps) {
    MapCells cells = cells_of(view, result);
    for (const std::vector<double>& row : cells.values)
      for (const double value : row) {
        if (!std::isfinite(value) || (view.log && value <= 0)) continue;
        auto& [low, high] = ranges.try_emplace(view.value, value, value).first->second;
        low = std::min(low, value);
        high = std::max(high, value);
      }
    maps.push_back({.title = title_of(view, result),
                    .x_label = view.x,
                    .y_label = view.y,
                    .value_label = view.value,
                    .columns = std::move(cells.columns),
                    .rows = std::move(cells.rows),
                    .values = std::move(cells.values),
                    .log = view.log,
                    .show_values = true,
                    .notes = std::move(cells.missing)});
  }
  std::vector<svg::Picture> out;
  for (svg::HeatMap& map : maps) {
    if (const auto range = ranges.find(map.value_label); range != ranges.end()) map.range = range->second;
    out.push_back(svg::heat_map(map));
  }
  return out;
}

svg::Picture curve_picture(const CurveView& view, const SweepResult& result) {
  svg::Chart chart{title_of(view, result), {view.x, view.log_x}, {view.value, view.log_y}, {}};
  const std::vector<CurveLine> lines = lines_of(view, result);
  for (std::size_t nth = 0; nth < lines.size(); ++nth) {
    const auto& [name, x, y] = lines[nth];
    const int colour = static_cast<int>(nth) % svg::kColours;
    svg::Series dots{"", x, y, colour, svg::Series::Form::points};
    for (std::size_t i = 0; i < x.size(); ++i)
      dots.titles.push_back(text(name, name.empty() ? "" : "\n", view.x, " ", significant(x[i], 6), "\n", view.value,
                                 " ", significant(y[i], 4)));
    chart.series.push_back({name, x, y, colour});
    chart.series.push_back(std::move(dots));
    if (nth >= view.powers.size() || x.empty()) continue;
    svg::Series theory{text(name, ": power ", view.powers[nth]), x, {}, colour, svg::Series::Form::dashed};
    for (const double at : x) theory.y.push_back(y[0] * std::pow(at / x[0], view.powers[nth]));
    chart.series.push_back(std::move(theory));
  }
  return svg::chart(chart);
}

std::vector<svg::Picture> view_pictures(const Sweep& sweep, const SweepResult& result) {
  std::vector<svg::Picture> out;
  for (const CurveView& view : sweep.curves) out.push_back(curve_picture(view, result));
  for (svg::Picture& picture : map_pictures(sweep, result)) out.push_back(std::move(picture));
  return out;
}

std::string verdict_table(const Sweep& sweep, const SweepResult& result) {
  if (sweep.claims.empty()) return "";
  std::vector<Row> rows{{"claim", "verdict", "measured", "expected", "source"}};
  for (std::size_t i = 0; i < sweep.claims.size(); ++i) {
    const Claim& claim = sweep.claims[i];
    const std::string source = claim.source.empty() && !sweep.head.source.empty() ? "as above" : claim.source;
    if (i < result.claims.size())
      rows.push_back({claim.claim, std::string(config::to_string(result.claims[i].verdict)), result.claims[i].measured,
                      result.claims[i].expected, source});
    else
      rows.push_back({claim.claim, "not yet", "", "", source});
  }
  return html_table(rows);
}

std::string point_table(const Sweep& sweep, const SweepResult& result) {
  const std::vector<std::string> fields = sweep.columns();
  Row head{"point", "seed", "outcome"};
  head.insert(head.end(), fields.begin(), fields.end());
  std::vector<Row> rows{head};
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const Measured& point = result.points[i];
    Row row{point_name(sweep, *result.done[i]), number(point.seed), point.outcome};
    for (const std::string& field : fields) {
      const auto value = point.values.find(field);
      row.push_back(value == point.values.end() ? "" : significant(value->second, 4));
    }
    rows.push_back(std::move(row));
  }
  return html_table(rows);
}

std::string recipe_table(const Sweep& sweep) {
  std::set<std::string> varied{"run.dir", "train.threads", "seed"};
  for (const Point& point : sweep.points) varied.insert(point.varied.begin(), point.varied.end());
  std::vector<Row> rows{{"key", "value"}};
  RunConfig config = sweep.points[0].config;
  for (const config::Key& key : config::keys_of(config))
    if (!key.is_section() && !varied.contains(key.path)) rows.push_back({key.path, shown(key.value())});
  return html_table(rows);
}

}  // namespace

std::string sweep_page(SweepDirectory& directory, const SweepResult& result) {
  const Sweep& sweep = directory.sweep();
  const Arms arms(directory, result);
  std::vector<svg::Picture> main, layers;
  if (arms.have_curves()) main.push_back(loss_picture(arms.all, "Validation loss"));
  for (svg::Picture& picture : view_pictures(sweep, result)) main.push_back(std::move(picture));
  for (const svg::Picture& picture : gradients_at_start(arms.first)) layers.push_back(picture);
  const std::span<const NamedRun> mapped = std::span(arms.first).subspan(0, std::min(arms.first.size(), kMostArms));
  for (svg::Picture& picture : failure_maps(mapped)) layers.push_back(std::move(picture));

  std::string body = html_paragraph(sweep.head.source.empty() ? "" : "Source: " + sweep.head.source) +
                     html_paragraph(sweep.head.about);
  if (result.done.size() < sweep.points.size())
    body += html_paragraph(text(result.done.size(), " of ", sweep.points.size(), " points are done so far."));
  body += html_section("Verdicts", verdict_table(sweep, result));
  body += html_section("Results", html_figures(main));
  body += html_section(
      text("Layer by layer, the first seed of each arm",
           mapped.size() < arms.first.size() ? text("; maps of the first ", mapped.size(), " of ", arms.first.size())
                                             : ""),
      html_figures(layers));
  body += html_section("Every setting", html_table(setting_table(sweep, result), FirstCell::value));
  body += text("<details><summary>Every point</summary>\n", point_table(sweep, result), "</details>\n");
  body += html_section("The recipe they share", recipe_table(sweep));
  return html_page(text(sweep.head.id, sweep.head.id.empty() ? "" : ": ", sweep.head.title), body);
}

void write_sweep_report(SweepDirectory& directory, const SweepResult& result) {
  write_file(text(directory.path(), "/report.html"), sweep_page(directory, result));
}

std::string sweep_picture(SweepDirectory& directory, const SweepResult& result) {
  const Sweep& sweep = directory.sweep();
  const Arms arms(directory, result);
  std::vector<svg::Picture> pictures;
  if (!arms.all.empty()) pictures.push_back(loss_picture(arms.all, "Validation loss"));
  for (svg::Picture& picture : view_pictures(sweep, result)) pictures.push_back(std::move(picture));
  const std::span<const NamedRun> mapped =
      std::span(arms.first).subspan(0, std::min<std::size_t>(arms.first.size(), 2));
  for (svg::Picture& picture : failure_maps(mapped)) pictures.push_back(std::move(picture));
  return svg::file(pictures, 2);
}

}  // namespace normlab
