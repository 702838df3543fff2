// What a sweep and its points leave on disk.
#include "normlab/claims/sweep_directory.h"

#include <cmath>
#include <filesystem>

#include "normlab/base/utf8.h"
#include "normlab/claims/sweep_loader.h"
#include "normlab/host/files.h"
#include "normlab/run/checkpoint.h"
#include "normlab/run/figures.h"
#include "normlab/run/run_directory.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

std::string record_path(const std::string& directory) { return text(directory, "/sweep.json"); }

// The last speed and memory of a run's clock.
Json last_timing(const std::string& path) {
  Json out = Json::object();
  if (!fs::exists(path)) return out;
  read_log(read_file(path), path, [&](const Json& each, const std::string&, std::size_t) {
    for (const char* name : {"tokens_per_s", "peak_rss_mb"})
      if (const Json* value = each.find(name)) out.set(name, *value);
    return true;
  });
  return out;
}

// The first value that a claim, map or curve asks of the point and that `source` does not have, as a message; else
// nothing.
template <class Source>
std::string first_missing(const Sweep& sweep, const Point& point, const Measured& measured, const Source& source) {
  const auto missing = [&](std::string_view what, const std::string& name, const std::string& field,
                           const Conditions& where) {
    if (!meets(point.settings, where) || has_field(source, field)) return std::string();
    return text(what, " '", name, "': there is no value '", field, "'", why_missing(source, field));
  };
  std::string found;
  for (const Claim& claim : sweep.claims) {
    for (const std::string& field : fields_of(claim))
      if (found = missing("claim", claim.claim, field, claim.where); !found.empty()) return found;
    if (!claim.bound.empty() && meets(point.settings, claim.where) && !bound_of(claim.bound, measured.entropies))
      return text("claim '", claim.claim, "': '", claim.bound,
                  "' is not known for this data; floor is, of a built-in corpus");
  }
  for (const MapView& map : sweep.maps)
    if (found = missing("map", map.title, map.value, map.where); !found.empty()) return found;
  for (const CurveView& curve : sweep.curves)
    if (found = missing("curve", curve.title, curve.value, curve.where); !found.empty()) return found;
  return found;
}

template <class Source>
void add_values(const Sweep& sweep, const Source& source, Measured& measured) {
  for (const std::string& field : sweep.columns())
    if (const auto value = field_of(source, field); value && std::isfinite(*value))
      measured.values.emplace(field, *value);
}

}  // namespace

void SweepDirectory::refuse_other_sweep() const {
  if (!is_sweep(path_)) return;
  const fs::path file = parse_json(read_file(record_path(path_)), record_path(path_)).at("file").string();
  std::error_code gone;  // the folder of both may have moved
  const bool same = file.stem() == sweep_.name && (!fs::exists(file, gone) || fs::equivalent(file, sweep_.path, gone));
  check<UserError>(same, path_, ": this is the directory of the sweep ", file.string(), "; give ", sweep_.path,
                   " another with run.dir=DIR");
}

void SweepDirectory::write_record() const {
  const Json record = Json::object({{"file", std::filesystem::absolute(sweep_.path).string()},
                                    {"overrides", sweep_.overrides},
                                    {"seeds", sweep_.seed_count}});
  write_file(record_path(path_), record.indented() + "\n");
}

std::optional<double> SweepDirectory::seconds(const Point& point) const {
  const std::string path = seconds_path(point);
  return fs::exists(path) ? parse_double(trimmed(read_file(path))) : std::nullopt;
}

bool SweepDirectory::is_done(const Point& point) const {
  if (sweep_.head.measure != Measure::train) return fs::exists(result_path(point));
  const std::string run = point_path(point);
  return fs::exists(run + "/run.json") && is_final(read_run_record(run).at("outcome").string());
}

const SweepDirectory::Result& SweepDirectory::result_of(const Point& point) {
  const auto [found, is_new] = results_.try_emplace(&point);
  Result& result = found->second;
  if (!is_new) return result;
  try {
    read(point, result);
  } catch (...) {
    results_.erase(found);
    throw;
  }
  return result;
}

void SweepDirectory::read(const Point& point, Result& result) const {
  Measured& measured = result.measured;
  measured.settings = point.settings;
  measured.seed = point.seed;
  if (sweep_.head.measure != Measure::train) {
    measured.outcome = "measured";
    const std::string path = result_path(point);
    const Json document = parse_json(read_file(path), path);
    add_values(sweep_, document, measured);
    result.missing = first_missing(sweep_, point, measured, document);
    return;
  }
  RunFiles run = read_run(point_path(point));
  measured.outcome = run.outcome();
  for (const char* name : {"unigram", "bigram", "floor", "ln_vocab"})
    if (const auto value = run.entropy(name)) measured.entropies.emplace(name, *value);
  add_values(sweep_, run, measured);
  const bool is_healthy = measured.outcome != "diverged" && measured.outcome != "nonfinite";
  if (is_healthy) result.missing = first_missing(sweep_, point, measured, run);
  result.timing = last_timing(point_path(point) + "/timing.jsonl");
  if (point.main) result.run = std::move(run);
}

void SweepDirectory::check_values(const Point& point) {
  const std::string& missing = result_of(point).missing;
  check<UserError>(missing.empty(), sweep_.path, ": ", missing, " (", point_path(point), ")");
}

std::vector<std::string> SweepDirectory::command(const Point& point, std::int64_t threads, bool anew) const {
  const std::string run = point_path(point), configuration = as_path(configuration_path(point));
  const std::string team = text("train.threads=", threads);
  const auto with_start = [&](std::vector<std::string> words) {
    if (point.before)
      words.push_back(
          "model.from=" +
          config::yaml_text(SweepDirectory(sweep_, path_before()).point_path(sweep_.before[*point.before])));
    return words;
  };
  if (sweep_.head.measure == Measure::train) {
    if (!anew && is_run(run) && !checkpoint_steps(run + "/checkpoints").empty())
      return {
          "train", "--resume", as_path(run), team, "log.sample_tokens=0", "log.report=false", "train.time_limit=null"};
    fs::remove_all(run);
    write_file(configuration, config::dump(point.config));
    return with_start({"train", configuration, "run.dir=" + config::yaml_text(run), team, "log.sample_tokens=0",
                       "log.report=false", "train.time_limit=null"});
  }
  fs::create_directories(run);
  write_file(configuration, config::dump(point.config));
  switch (sweep_.head.measure) {
    case Measure::shards:
      return with_start({"inspect", configuration, "--shards", number(point.config.train.shards), "--json", team});
    case Measure::curvature:
      return with_start({"inspect", configuration, "--curvature", "--json", team});
    case Measure::bench:
      return {"bench", "norm", "step-A", "--json", "--threads", number(threads)};
    case Measure::train:
    case Measure::inspect:
    case Measure::check:
      break;
  }
  return with_start({std::string(config::to_string(sweep_.head.measure)), configuration, "--json", team});
}

// A claim that does not hold ends a check with 1, which is a result; so are the ends of a run.
bool SweepDirectory::accept(const Point& point, int exit_code, double seconds) const {
  const bool may_be_result =
      exit_code == 0 || exit_code == 1 || (sweep_.head.measure == Measure::train && exit_code == 3);
  if (!may_be_result) return false;
  if (sweep_.head.measure == Measure::train) {
    if (!is_done(point)) return false;
  } else {
    const std::string document = read_file(output_path(point));
    if (!document.starts_with('{')) return false;
    write_file(result_path(point), document);
  }
  fs::create_directories(path_ + "/times");
  write_file(seconds_path(point), fixed(seconds, 3) + "\n");
  tidy(point);
  return true;
}

void SweepDirectory::tidy(const Point& point) const {
  std::error_code ignored;  // what stays takes space, no more
  for (const std::string& path : {output_path(point), errors_path(point), configuration_path(point)})
    fs::remove(path, ignored);
  if (sweep_.head.measure == Measure::train && !sweep_.head.keep_checkpoints)
    fs::remove_all(point_path(point) + "/checkpoints", ignored);
}

void SweepDirectory::remove(const Point& point) const { fs::remove_all(point_path(point)); }

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

}  // namespace normlab
