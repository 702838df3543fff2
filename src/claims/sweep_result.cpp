// What is known of a sweep, as files, as a document and as tables.
#include "normlab/claims/sweep_result.h"

#include <algorithm>
#include <map>

#include "normlab/base/spread.h"
#include "normlab/host/files.h"
#include "normlab/run/run_reader.h"

namespace normlab {
namespace {

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

Json values_json(const Measured& measured) {
  Json out = Json::object();
  for (const auto& [field, value] : measured.values) out.set(field, value);
  return out;
}

Json optional_of(const std::map<std::string, double, std::less<>>& map, std::string_view name) {
  const auto found = map.find(name);
  return found == map.end() ? Json() : Json(found->second);
}

// A bench measures time itself, so its values stand with the clocks.
Json result_line(const Sweep& sweep, const Point& point, const Measured& measured) {
  Json line = Json::object({{"settings", varied_settings(point)}, {"seed", point.seed}, {"outcome", measured.outcome}});
  if (sweep.head.measure == Measure::bench) return line;
  line.set("val_loss", optional_of(measured.values, "val_loss"));
  for (const char* name : {"unigram", "bigram", "floor", "ln_vocab"})
    line.set(name, optional_of(measured.entropies, name));
  return line.set("values", values_json(measured));
}

Json timing_line(SweepDirectory& directory, const Point& point, const Measured& measured) {
  Json line = Json::object({{"settings", varied_settings(point)}, {"seed", point.seed}});
  if (const auto seconds = directory.seconds(point)) line.set("seconds", *seconds);
  if (directory.sweep().head.measure == Measure::bench) return line.set("values", values_json(measured));
  for (const Json::Member& member : directory.timing(point).members()) line.set(member.name, member.value);
  return line;
}

}  // namespace

bool SweepResult::holds() const {
  return std::ranges::all_of(claims, [](const ClaimResult& claim) { return claim.verdict == Verdict::holds; });
}

SweepResult read_sweep_result(SweepDirectory& directory) {
  const Sweep& sweep = directory.sweep();
  SweepResult result;
  for (const Point& point : sweep.points) {
    if (!directory.is_done(point)) continue;
    result.points.push_back(directory.measured(point));
    result.seconds_of_points += directory.seconds(point).value_or(0);
    result.done.push_back(&point);
  }
  if (result.points.size() == sweep.points.size())
    for (const Claim& claim : sweep.claims) result.claims.push_back(judge(claim, result.points));
  return result;
}

void write_results(SweepDirectory& directory, const SweepResult& result) {
  std::string results, timing;
  for (std::size_t i = 0; i < result.points.size(); ++i) {
    results += result_line(directory.sweep(), *result.done[i], result.points[i]).line() + '\n';
    timing += timing_line(directory, *result.done[i], result.points[i]).line() + '\n';
  }
  write_file(text(directory.path(), "/results.jsonl"), results);
  write_file(text(directory.path(), "/timing.jsonl"), timing);
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
