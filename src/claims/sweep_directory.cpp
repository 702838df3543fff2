// What a sweep and its points leave on disk.
#include "normlab/claims/sweep_directory.h"

#include <cmath>
#include <filesystem>

#include "normlab/claims/sweep_loader.h"
#include "normlab/host/files.h"
#include "normlab/run/checkpoint.h"
#include "normlab/run/figures.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

std::string record_path(const std::string& directory) { return text(directory, "/sweep.json"); }

std::string configuration_path(const std::string& directory, const Point& point) {
  return point_directory(directory, point) + ".yaml";
}
std::string result_path(const std::string& directory, const Point& point) {
  return point_directory(directory, point) + "/result.json";
}

// Of the process that ended with the result, so of the last part of a run that was interrupted.
std::string seconds_path(const std::string& directory, const Point& point) {
  return text(directory, "/times/", point.id);
}

// What makes the configuration of a point start from the run before it.
std::vector<std::string> start_of(const Sweep& sweep, const std::string& directory, const Point& point) {
  if (!point.before) return {};
  return {"model.from=" + point_directory(directory_before(directory), sweep.before[*point.before])};
}

Json document_of(const std::string& directory, const Point& point) {
  const std::string path = result_path(directory, point);
  return parse_json(read_file(path), path);
}

}  // namespace

void refuse_other_sweep(const Sweep& sweep, const std::string& directory) {
  if (!is_sweep(directory)) return;
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

std::string point_directory(const std::string& directory, const Point& point) {
  return text(directory, "/points/", point.id);
}
std::string directory_before(const std::string& directory) { return text(directory, "/before"); }
std::string output_path(const std::string& directory, const Point& point) {
  return point_directory(directory, point) + ".out";
}
std::string errors_path(const std::string& directory, const Point& point) {
  return point_directory(directory, point) + ".log";
}

std::optional<double> seconds_of(const std::string& directory, const Point& point) {
  const std::string path = seconds_path(directory, point);
  return fs::exists(path) ? parse_double(trimmed(read_file(path))) : std::nullopt;
}

bool is_done(const Sweep& sweep, const std::string& directory, const Point& point) {
  if (sweep.head.measure != Measure::train) return fs::exists(result_path(directory, point));
  const std::string path = point_directory(directory, point) + "/run.json";
  return fs::exists(path) && is_final(parse_json(read_file(path), path).at("outcome").string());
}

Measured measured_of(const Sweep& sweep, const std::string& directory, const Point& point) {
  Measured out{point.settings, point.seed, "measured", {}, {}};
  const auto add = [&](const std::string& field, std::optional<double> value) {
    if (value && std::isfinite(*value)) out.values.emplace(field, *value);
  };
  if (sweep.head.measure != Measure::train) {
    const Json document = document_of(directory, point);
    for (const std::string& field : sweep.fields()) add(field, field_of(document, field));
    return out;
  }
  const RunFiles run = read_run(point_directory(directory, point));
  out.outcome = run.outcome();
  for (const char* name : {"unigram", "bigram", "floor", "ln_vocab"})
    if (const auto value = run.entropy(name)) out.entropies.emplace(name, *value);
  add("val_loss", field_of(run, "val_loss"));
  for (const std::string& field : sweep.fields()) add(field, field_of(run, field));
  return out;
}

std::vector<std::string> command_of(const Sweep& sweep, const std::string& directory, const Point& point,
                                    std::int64_t threads, bool anew) {
  const std::string run = point_directory(directory, point), configuration = configuration_path(directory, point);
  const std::string team = text("train.threads=", threads);
  const auto with_start = [&](std::vector<std::string> words) {
    for (std::string& word : start_of(sweep, directory, point)) words.push_back(std::move(word));
    return words;
  };
  if (sweep.head.measure == Measure::train) {
    if (!anew && is_run(run) && !checkpoint_steps(run + "/checkpoints").empty())
      return {"train", "--resume", run, team, "log.sample_tokens=0", "log.report=false", "train.time_limit=null"};
    fs::remove_all(run);
    write_file(configuration, config::dump(point.config));
    return with_start({"train", configuration, "run.dir=" + run, team, "log.sample_tokens=0", "log.report=false",
                       "train.time_limit=null"});
  }
  fs::create_directories(run);
  write_file(configuration, config::dump(point.config));
  switch (sweep.head.measure) {
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
  return with_start({std::string(config::to_string(sweep.head.measure)), configuration, "--json", team});
}

// A claim that does not hold ends a check with 1, which is a result; so are the ends of a run.
bool accept(const Sweep& sweep, const std::string& directory, const Point& point, int exit_code, double seconds) {
  const bool may_be_result =
      exit_code == 0 || exit_code == 1 || (sweep.head.measure == Measure::train && exit_code == 3);
  if (!may_be_result) return false;
  if (sweep.head.measure == Measure::train) {
    if (!is_done(sweep, directory, point)) return false;
  } else {
    const std::string document = read_file(output_path(directory, point));
    if (!document.starts_with('{')) return false;
    write_file(result_path(directory, point), document);
  }
  fs::create_directories(directory + "/times");
  write_file(seconds_path(directory, point), fixed(seconds, 3) + "\n");
  tidy(sweep, directory, point);
  return true;
}

void check_values(const Sweep& sweep, const std::string& directory, const Point& point) {
  const Measured measured = measured_of(sweep, directory, point);
  if (measured.outcome == "diverged" || measured.outcome == "nonfinite") return;
  const bool trains = sweep.head.measure == Measure::train;
  const RunFiles run = trains ? read_run(point_directory(directory, point)) : RunFiles{};
  const Json document = trains ? Json() : document_of(directory, point);
  const auto look = [&](std::string_view what, const std::string& name, const std::string& field,
                        const Conditions& where) {
    if (!meets(point.settings, where) || (trains ? has_field(run, field) : has_field(document, field))) return;
    throw UserError(text(sweep.path, ": ", what, " '", name, "': there is no value '", field, "'; ",
                         trains ? why_missing(run, field) : why_missing(document, field), " (",
                         point_directory(directory, point), ")"));
  };
  for (const Claim& claim : sweep.claims) {
    for (const std::string& field : fields_of(claim)) look("claim", claim.claim, field, claim.where);
    check<UserError>(
        claim.bound.empty() || !meets(point.settings, claim.where) || bound_of(claim.bound, measured.entropies),
        sweep.path, ": claim '", claim.claim, "': '", claim.bound, "' is not known for this data; ",
        "floor is, of a built-in corpus");
  }
  for (const MapView& map : sweep.maps) look("map", map.title, map.value, map.where);
  for (const CurveView& curve : sweep.curves) look("curve", curve.title, curve.value, curve.where);
}

void tidy(const Sweep& sweep, const std::string& directory, const Point& point) {
  std::error_code ignored;  // what stays takes space, no more
  for (const std::string& path :
       {output_path(directory, point), errors_path(directory, point), configuration_path(directory, point)})
    fs::remove(path, ignored);
  if (sweep.head.measure == Measure::train && !sweep.head.keep_checkpoints)
    fs::remove_all(point_directory(directory, point) + "/checkpoints", ignored);
}

}  // namespace normlab
