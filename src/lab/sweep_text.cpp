// A sweep in words and tables: names of points, its record, the document, the table.
#include <algorithm>
#include <filesystem>
#include <set>

#include "normlab/base/files.h"
#include "normlab/lab/sweep.h"
#include "normlab/lab/table.h"

namespace normlab {
namespace {

// The keys that grids vary and that differ between points, without the seed.
std::vector<std::string> differing_keys(const Sweep& sweep) {
  std::vector<std::string> out;
  for (const Point& point : sweep.points)
    for (const std::string& key : point.varied) {
      const bool differs = std::ranges::any_of(
          sweep.points, [&](const Point& other) { return other.settings.at(key) != sweep.points[0].settings.at(key); });
      if (key != "seed" && differs && std::ranges::find(out, key) == out.end()) out.push_back(key);
    }
  return out;
}

std::string record_path(const std::string& directory) { return text(directory, "/sweep.json"); }

// What all seeds of a setting gave.
struct Setting {
  std::vector<std::string> settings;
  std::vector<std::string> outcomes;
  std::map<std::string, std::vector<double>, std::less<>> values;
};

std::string counted(const std::vector<std::string>& outcomes) {
  std::map<std::string, int> counts;
  for (const std::string& outcome : outcomes) ++counts[outcome];
  std::string out;
  for (const auto& [outcome, count] : counts)
    out += text(out.empty() ? "" : ", ", counts.size() > 1 ? text(count, " ") : "", outcome);
  return out;
}

std::vector<Setting> settings_in(const SweepResult& result, const std::vector<std::string>& keys) {
  std::vector<Setting> rows;
  for (const Measured& point : result.points) {
    std::vector<std::string> settings;
    settings.reserve(keys.size());
    for (const std::string& key : keys) settings.push_back(shown(point.settings.at(key)));
    auto row = std::ranges::find(rows, settings, &Setting::settings);
    if (row == rows.end()) row = rows.insert(rows.end(), Setting{settings, {}, {}});
    row->outcomes.push_back(point.outcome);
    for (const auto& [field, value] : point.values) row->values[field].push_back(value);
  }
  return rows;
}

}  // namespace

std::string shown(const std::string& value) {
  const auto real = parse_double(value);
  const auto rounded = real && !parse_int(value) ? parse_double(significant(*real, 12)) : std::nullopt;
  return rounded ? number(*rounded) : value;
}

std::vector<std::string> shown(const std::vector<std::string>& values) {
  std::vector<std::string> out;
  for (const std::string& value : values) out.push_back(shown(value));
  return std::set(out.begin(), out.end()).size() == std::set(values.begin(), values.end()).size() ? out : values;
}

std::string point_name(const Sweep& sweep, const Point& point) {
  std::string out;
  for (const std::string& key : differing_keys(sweep))
    out += text(out.empty() ? "" : ", ", key.substr(key.rfind('.') + 1), ' ', shown(point.settings.at(key)));
  return out.empty() ? sweep.name : out;
}

Json varied_settings(const Point& point) {
  Json out = Json::object();
  for (const std::string& key : point.varied) {
    const std::string& value = point.settings.at(key);
    const auto whole = parse_int(value);
    const auto real = parse_double(value);
    if (key != "seed") out.set(key, value == "null" ? Json() : whole ? Json(*whole) : real ? Json(*real) : Json(value));
  }
  return out;
}

void refuse_other_sweep(const Sweep& sweep, const std::string& directory) {
  if (!is_sweep(directory)) return;
  namespace fs = std::filesystem;
  const fs::path file = parse_json(read_file(record_path(directory)), record_path(directory)).at("file").string();
  std::error_code gone;  // the folder of both may have moved
  const bool same = file.stem() == sweep.name && (!fs::exists(file, gone) || fs::equivalent(file, sweep.path, gone));
  check<UserError>(same, directory, ": this is the directory of the sweep ", file.string(), "; give ", sweep.path,
                   " another with run.dir=DIR");
}

void write_sweep_record(const Sweep& sweep, const std::string& directory) {
  const Json record = Json::object({{"file", std::filesystem::absolute(sweep.path).string()},
                                    {"overrides", sweep.overrides},
                                    {"seeds", sweep.seed_count}});
  write_file(record_path(directory), record.indented() + "\n");
}

bool is_sweep(const std::string& directory) { return std::filesystem::exists(record_path(directory)); }

Sweep sweep_of(const std::string& directory) {
  check<DataError>(is_sweep(directory), directory, ": this is no directory of a sweep: it lacks sweep.json");
  const Json record = parse_json(read_file(record_path(directory)), record_path(directory));
  std::vector<std::string> overrides;
  for (const Json& each : record.at("overrides").elements()) overrides.push_back(each.string());
  const Json& seeds = record.at("seeds");
  return load_sweep(record.at("file").string(), overrides,
                    seeds.is_null() ? std::nullopt : std::optional(seeds.integer()));
}

Json sweep_document(const Sweep& sweep, const SweepResult& result) {
  Json runs = Json::array(), claims = Json::array();
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    const Measured& measured = result.points[i];
    Json values = Json::object();
    for (const auto& [field, value] : measured.values) values.set(field, value);
    const auto loss = measured.values.find("val_loss");
    runs.push(Json::object({{"settings", varied_settings(*result.done[i])},
                            {"seed", measured.seed},
                            {"outcome", measured.outcome},
                            {"val_loss", loss == measured.values.end() ? Json() : Json(loss->second)},
                            {"values", values}}));
  }
  for (std::size_t i = 0; i < result.claims.size(); ++i)
    claims.push(Json::object({{"claim", sweep.claims[i].claim},
                              {"source", sweep.source_of(sweep.claims[i])},
                              {"verdict", config::to_string(result.claims[i].verdict)},
                              {"measured", result.claims[i].measured},
                              {"expected", result.claims[i].expected}}));
  return Json::object({{"name", sweep.name}, {"id", sweep.head.id}, {"runs", runs}, {"claims", claims}});
}

std::vector<Row> setting_table(const Sweep& sweep, const SweepResult& result) {
  const std::vector<std::string> keys = differing_keys(sweep);
  const std::vector<std::string> fields = sweep.columns();
  std::vector<Row> table(1);
  for (const std::string& key : keys) table[0].push_back(key.substr(key.rfind('.') + 1));
  table[0].push_back("seeds");
  table[0].push_back("outcome");
  table[0].insert(table[0].end(), fields.begin(), fields.end());
  for (const Setting& row : settings_in(result, keys)) {
    Row cells = row.settings;
    cells.push_back(text(row.outcomes.size()));
    cells.push_back(counted(row.outcomes));
    for (const std::string& field : fields) {
      const auto values = row.values.find(field);
      if (values == row.values.end()) {
        cells.emplace_back();
        continue;
      }
      const Spread spread = spread_of(values->second);
      cells.push_back(text(significant(spread.mean, 4),
                           spread.count > 1 ? text(" +- ", significant(spread.deviation, 2)) : "",
                           spread.count < row.outcomes.size() ? text(" (of ", spread.count, ")") : ""));
    }
    table.push_back(std::move(cells));
  }
  return table;
}

std::string sweep_table(const Sweep& sweep, const SweepResult& result) {
  std::vector<Row> table = setting_table(sweep, result);
  constexpr std::size_t kLongest = 24;  // a column with a longer name is for the report
  for (std::size_t column = table[0].size(); column-- > 0;)
    if (table[0][column].size() > kLongest)
      for (Row& row : table) row.erase(row.begin() + static_cast<std::ptrdiff_t>(column));
  return aligned(table);
}

std::string sweep_verdicts(const Sweep& sweep, const SweepResult& result) {
  std::string out;
  for (std::size_t i = 0; i < result.claims.size(); ++i)
    out += text("\n", config::to_string(result.claims[i].verdict), ": ", sweep.claims[i].claim, "\n    measured ",
                result.claims[i].measured, "; expected ", result.claims[i].expected, "\n");
  return out;
}

}  // namespace normlab
