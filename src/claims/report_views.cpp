// The numbers behind the pictures of a sweep.
#include "normlab/claims/report_views.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "normlab/base/spread.h"

namespace normlab {
namespace {

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

// "post, warmup_steps 0": a value that is a word needs no key next to it.
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

// What the points that meet some conditions have of a field; how those ended that have none.
struct Cell {
  double mean = std::nan("");
  std::string missing;
};

Cell cell_where(const SweepResult& result, const Conditions& conditions, const std::string& field) {
  std::vector<double> values;
  std::map<std::string, std::size_t> without;
  std::size_t all = 0;
  for (const Measured& point : result.points) {
    if (!meets(point.settings, conditions)) continue;
    ++all;
    if (const auto value = point.values.find(field); value != point.values.end())
      values.push_back(value->second);
    else
      ++without[point.outcome == "diverged" || point.outcome == "nonfinite" ? point.outcome : "none"];
  }
  std::string missing;
  for (const auto& [outcome, count] : without)
    missing += text(missing.empty() ? "" : ", ", count < all ? text(count, " of ", all, " ") : "", outcome);
  return {values.empty() ? std::nan("") : spread_of(values).mean, missing};
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

// The settings of the keys `by` that points have, as conditions, in the order of the points.
std::vector<std::pair<std::string, Conditions>> settings_by(const CurveView& view, const SweepResult& result) {
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

std::string titled(const std::string& title, const Conditions& where, const std::vector<std::string>& shown_keys,
                   const SweepResult& result) {
  const Measured* first = nullptr;
  std::vector<std::string> hidden;
  for (const Measured& point : result.points) {
    if (!meets(point.settings, where)) continue;
    if (first == nullptr) first = &point;
    for (const auto& [key, value] : point.settings)
      if (key != "seed" && value != first->settings.at(key) && std::ranges::find(shown_keys, key) == shown_keys.end() &&
          std::ranges::find(hidden, key) == hidden.end())
        hidden.push_back(key);
  }
  return title + (hidden.empty() ? "" : text(", mean over ", join(hidden, ", ")));
}

}  // namespace

Arms::Arms(SweepDirectory& directory, const SweepResult& result) {
  const Sweep& sweep = directory.sweep();
  if (sweep.head.measure != Measure::train) return;
  const std::vector<std::string> keys = arm_keys(sweep);
  const Settings usual = usual_values(sweep, keys);
  std::vector<std::string> known;
  for (const Point* point : result.done) {
    if (!point->main) continue;
    std::string name = name_by(point->settings, keys, usual);
    if (name.empty()) name = "as the recipe";
    const auto found = std::ranges::find(known, name);
    const int colour = static_cast<int>(found - known.begin()) % svg::kColours;
    all.push_back({&directory.run(*point), name, colour});
    if (found != known.end()) continue;
    known.push_back(name);
    first.push_back(all.back());
  }
}

bool Arms::have_curves() const {
  return std::ranges::any_of(all, [](const NamedRun& named) { return named.run->kind("eval").size() > 1; });
}

std::string title_of(const MapView& view, const SweepResult& result) {
  return titled(view.title, view.where, {view.x, view.y}, result);
}

std::string title_of(const CurveView& view, const SweepResult& result) {
  std::vector<std::string> shown_keys = view.by;
  shown_keys.push_back(view.x);
  return titled(view.title, view.where, shown_keys, result);
}

MapCells cells_of(const MapView& view, const SweepResult& result) {
  const std::vector<std::string> xs = values_of(result, view.where, view.x), ys = values_of(result, view.where, view.y);
  MapCells cells;
  for (const std::string& x : xs) cells.columns.push_back(shown(x));
  for (auto y = ys.rbegin(); y != ys.rend(); ++y) {
    cells.rows.push_back(shown(*y));
    cells.values.emplace_back();
    cells.missing.emplace_back();
    for (const std::string& x : xs) {
      Cell cell = cell_where(result, with(with(view.where, view.y, *y), view.x, x), view.value);
      cells.values.back().push_back(cell.mean);
      cells.missing.back().push_back(std::move(cell.missing));
    }
  }
  return cells;
}

std::vector<CurveLine> lines_of(const CurveView& view, const SweepResult& result) {
  std::vector<CurveLine> lines;
  for (const auto& [name, conditions] : settings_by(view, result)) {
    CurveLine line{name, {}, {}};
    std::string missing;
    for (const std::string& x : values_of(result, conditions, view.x)) {
      const Cell cell = cell_where(result, with(conditions, view.x, x), view.value);
      const auto at = parse_double(x);
      if (!cell.missing.empty()) missing += text(missing.empty() ? "" : ", ", shown(x), ": ", cell.missing);
      if (!at || !std::isfinite(cell.mean)) continue;
      line.x.push_back(*at);
      line.y.push_back(cell.mean);
    }
    if (!missing.empty()) line.name += text(name.empty() ? "(" : " (", missing, ")");
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace normlab
