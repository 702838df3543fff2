// The page of a sweep: its verdicts, and the pictures that show why.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "normlab/base/files.h"
#include "report_page.h"

namespace normlab {
namespace {

constexpr std::size_t kMostArms = 4;  // that get layer maps of their own

// Keys that tell the points of the first grid apart.
std::vector<std::string> arm_keys(const Sweep& sweep) {
  std::vector<std::string> out;
  const Point* first = nullptr;
  for (const Point& point : sweep.points) {
    if (!point.main) continue;
    if (first == nullptr) first = &point;
    for (const std::string& key : point.varied)
      if (key != "seed" && point.settings.at(key) != first->settings.at(key) &&
          std::ranges::find(out, key) == out.end())
        out.push_back(key);
  }
  return out;
}

// The value of a key that at least three quarters of the arms' points have: names need not tell it.
Settings usual_values(const Sweep& sweep, const std::vector<std::string>& keys) {
  Settings out;
  for (const std::string& key : keys) {
    std::map<std::string, std::size_t> counts;
    std::size_t all = 0;
    for (const Point& point : sweep.points)
      if (point.main) ++counts[point.settings.at(key)], ++all;
    for (const auto& [value, count] : counts)
      if (4 * count >= 3 * all) out.emplace(key, value);
  }
  return out;
}

// "post, warmup_steps 0": a value that is a word needs no key beside it.
std::string name_by(const Settings& settings, const std::vector<std::string>& keys, const Settings& usual = {}) {
  std::string out;
  for (const std::string& key : keys) {
    const std::string& value = settings.at(key);
    const auto known = usual.find(key);
    if (known != usual.end() && known->second == value) continue;
    const bool word = !parse_double(value) && value != "true" && value != "false" && value != "null";
    out += text(out.empty() ? "" : ", ", word ? "" : key.substr(key.rfind('.') + 1) + " ", shown(value));
  }
  return out;
}

// The runs of the first grid, named by arm; those of an arm share a colour.
struct Arms {
  std::vector<RunFiles> runs;
  std::vector<NamedRun> all, first;  // `first`: one of each arm

  Arms(const Sweep& sweep, const std::string& directory, const SweepResult& result) {
    if (sweep.head.measure != Measure::train) return;
    const std::vector<std::string> keys = arm_keys(sweep);
    const Settings usual = usual_values(sweep, keys);
    std::vector<std::string> names, known;
    for (const Point* point : result.done) {
      if (!point->main) continue;
      runs.push_back(read_run(point_directory(directory, *point)));
      names.push_back(name_by(point->settings, keys, usual));
      if (names.back().empty()) names.back() = "as the recipe";
    }
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const auto found = std::ranges::find(known, names[i]);
      const int colour = static_cast<int>(found - known.begin()) % svg::kColours;
      all.push_back({&runs[i], names[i], colour});
      if (found != known.end()) continue;
      known.push_back(names[i]);
      first.push_back(all.back());
    }
  }
};

std::optional<double> mean_where(const SweepResult& result, const Conditions& conditions, const std::string& field) {
  std::vector<double> values;
  for (const Measured& point : result.points) {
    const auto value = point.values.find(field);
    if (meets(point.settings, conditions) && value != point.values.end()) values.push_back(value->second);
  }
  return values.empty() ? std::nullopt : std::optional(spread_of(values).mean);
}

// The values that a key takes among the points, numbers in rising order.
std::vector<std::string> values_of(const SweepResult& result, const Conditions& conditions, const std::string& key) {
  std::vector<std::string> out;
  for (const Measured& point : result.points)
    if (meets(point.settings, conditions) && std::ranges::find(out, point.settings.at(key)) == out.end())
      out.push_back(point.settings.at(key));
  std::ranges::stable_sort(out, [](const std::string& a, const std::string& b) {
    const auto x = parse_double(a), y = parse_double(b);
    return x && y && *x < *y;
  });
  return out;
}

Conditions with(Conditions conditions, const std::string& key, const std::string& value) {
  conditions.push_back({key, {value}});
  return conditions;
}

svg::Picture map_picture(const MapView& view, const SweepResult& result) {
  const std::vector<std::string> xs = values_of(result, view.where, view.x), ys = values_of(result, view.where, view.y);
  svg::HeatMap map{view.title, view.x, view.y, view.value, {}, {}, {}, view.log, true};
  for (const std::string& x : xs) map.columns.push_back(shown(x));
  for (auto y = ys.rbegin(); y != ys.rend(); ++y) {  // the greatest at the top
    map.rows.push_back(shown(*y));
    map.values.emplace_back();
    for (const std::string& x : xs)
      map.values.back().push_back(
          mean_where(result, with(with(view.where, view.y, *y), view.x, x), view.value).value_or(std::nan("")));
  }
  return svg::heat_map(map);
}

// The settings of the keys `by` that points have, as conditions, in the order of the points.
std::vector<std::pair<std::string, Conditions>> lines_of(const CurveView& view, const SweepResult& result) {
  std::vector<std::pair<std::string, Conditions>> out;
  for (const Measured& point : result.points) {
    if (!meets(point.settings, view.where)) continue;
    Conditions conditions = view.where;
    for (const std::string& key : view.by) conditions.push_back({key, {point.settings.at(key)}});
    const std::string name = name_by(point.settings, view.by);
    if (std::ranges::find(out, name, &std::pair<std::string, Conditions>::first) == out.end())
      out.emplace_back(name, std::move(conditions));
  }
  return out;
}

svg::Picture curve_picture(const CurveView& view, const SweepResult& result) {
  svg::Chart chart{view.title, {view.x, view.log_x}, {view.value, view.log_y}, {}};
  int colour = 0;
  for (const auto& [name, conditions] : lines_of(view, result)) {
    svg::Series line{name, {}, {}, colour % svg::kColours}, dots{"", {}, {}, line.colour, svg::Series::Form::points};
    for (const std::string& x : values_of(result, conditions, view.x)) {
      const auto value = mean_where(result, with(conditions, view.x, x), view.value), at = parse_double(x);
      if (!value || !at) continue;
      line.x.push_back(*at);
      line.y.push_back(*value);
      dots.titles.push_back(
          text(name, name.empty() ? "" : "\n", view.x, " ", shown(x), "\n", view.value, " ", significant(*value, 4)));
    }
    dots.x = line.x;
    dots.y = line.y;
    chart.series.push_back(line);
    chart.series.push_back(dots);
    if (const auto nth = static_cast<std::size_t>(colour++); nth < view.powers.size() && !line.x.empty()) {
      svg::Series theory{text(name, ": power ", view.powers[nth]), line.x, {}, line.colour, svg::Series::Form::dashed};
      for (const double x : line.x) theory.y.push_back(line.y[0] * std::pow(x / line.x[0], view.powers[nth]));
      chart.series.push_back(std::move(theory));
    }
  }
  return svg::chart(chart);
}

std::vector<svg::Picture> view_pictures(const Sweep& sweep, const SweepResult& result) {
  std::vector<svg::Picture> out;
  for (const CurveView& view : sweep.curves) out.push_back(curve_picture(view, result));
  for (const MapView& view : sweep.maps) out.push_back(map_picture(view, result));
  return out;
}

std::string verdict_table(const Sweep& sweep, const SweepResult& result) {
  if (sweep.claims.empty()) return "";
  std::vector<Row> rows{{"claim", "verdict", "measured", "expected", "source"}};
  for (std::size_t i = 0; i < sweep.claims.size(); ++i) {
    const Claim& claim = sweep.claims[i];
    if (i < result.claims.size())
      rows.push_back({claim.claim, std::string(config::to_string(result.claims[i].verdict)), result.claims[i].measured,
                      result.claims[i].expected, claim.source});
    else
      rows.push_back({claim.claim, "not yet", "", "", claim.source});
  }
  return text("<div class=\"stacked\">", html_table(rows), "</div>\n");
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
  std::set<std::string> varied{"run.dir", "train.threads"};
  for (const Point& point : sweep.points) varied.insert(point.varied.begin(), point.varied.end());
  std::vector<Row> rows{{"key", "value"}};
  RunConfig config = sweep.points[0].config;
  for (const config::Key& key : config::keys_of(config))
    if (!key.is_section() && !varied.contains(key.path)) rows.push_back({key.path, key.value()});
  return html_table(rows);
}

}  // namespace

std::string sweep_page(const Sweep& sweep, const std::string& directory, const SweepResult& result) {
  const Arms arms(sweep, directory, result);
  std::vector<svg::Picture> main, layers;
  if (!arms.all.empty()) main.push_back(loss_picture(arms.all, "Validation loss"));
  for (svg::Picture& picture : view_pictures(sweep, result)) main.push_back(std::move(picture));
  for (const svg::Picture& picture : gradients_at_start(arms.first)) layers.push_back(picture);
  const std::span<const NamedRun> mapped = std::span(arms.first).subspan(0, std::min(arms.first.size(), kMostArms));
  for (svg::Picture& picture : failure_maps(mapped)) layers.push_back(std::move(picture));

  std::string body = html_paragraph(sweep.head.source) + html_paragraph(sweep.head.about);
  if (result.done.size() < sweep.points.size())
    body += html_paragraph(text(result.done.size(), " of ", sweep.points.size(), " points are done so far."));
  body += html_section("Verdicts", verdict_table(sweep, result));
  body += html_section("Results", html_figures(main));
  body += html_section("Layer by layer, the first seed of each arm", html_figures(layers));
  body += html_section("Every setting", html_table(setting_table(sweep, result)));
  body += text("<details><summary>Every point</summary>\n", point_table(sweep, result), "</details>\n");
  body += html_section("The recipe they share", recipe_table(sweep));
  return html_page(text(sweep.head.id, sweep.head.id.empty() ? "" : ": ", sweep.head.title), body);
}

void write_sweep_report(const Sweep& sweep, const std::string& directory, const SweepResult& result) {
  write_file(text(directory, "/report.html"), sweep_page(sweep, directory, result));
}

std::string sweep_picture(const Sweep& sweep, const std::string& directory, const SweepResult& result) {
  const Arms arms(sweep, directory, result);
  std::vector<svg::Picture> pictures;
  if (!arms.all.empty()) pictures.push_back(loss_picture(arms.all, "Validation loss"));
  for (svg::Picture& picture : view_pictures(sweep, result)) pictures.push_back(std::move(picture));
  const std::span<const NamedRun> mapped =
      std::span(arms.first).subspan(0, std::min<std::size_t>(arms.first.size(), 2));
  for (svg::Picture& picture : failure_maps(mapped)) pictures.push_back(std::move(picture));
  return svg::file(pictures, 2);
}

}  // namespace normlab
