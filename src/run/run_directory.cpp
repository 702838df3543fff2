// Claiming a directory, and run.json.
#include "normlab/run/run_directory.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <utility>

#include "normlab/base/check.h"
#include "normlab/base/hash.h"
#include "normlab/base/utf8.h"
#include "normlab/config/loader.h"
#include "normlab/data/corpora/corpora.h"
#include "normlab/host/build_facts.h"
#include "normlab/host/files.h"
#include "normlab/run/checkpoint.h"
#include "normlab/run/checksum.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAdvice = "give another run.dir";
constexpr const char* kMetricsChecksum = "metrics_crc";

// Empty, or with no more than a run.json begun, and a lock.
bool is_free(const fs::path& path) {
  if (!fs::is_directory(path)) return false;
  return std::ranges::all_of(fs::directory_iterator(path), [](const fs::directory_entry& entry) {
    const std::string name = entry.path().filename().string();
    return target_of_temporary(name) == "run.json" || name == DirectoryLock::kFile;
  });
}

// A name that a run gives to a file of its directory, or of the checkpoints in it.
bool is_name_of_run(const std::string& name, bool in_checkpoints) {
  if (in_checkpoints) return name == "best.safetensors" || checkpoint_step(name);
  constexpr std::string_view kNames[] = {"config.yaml", "run.json",    "metrics.jsonl",     "timing.jsonl",
                                         "report.html", "checkpoints", DirectoryLock::kFile};
  return std::ranges::find(kNames, name) != std::end(kNames) || name.starts_with("events.out.tfevents.");
}

// --force deletes what a run has written, and no file of anybody else.
void refuse_files_of_others(const fs::path& directory, bool in_checkpoints = false) {
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    const std::string name = entry.path().filename().string(), target = target_of_temporary(name);
    const bool is_of_run = is_name_of_run(target.empty() ? name : target, in_checkpoints);
    check<UserError>(
        is_of_run && (!fs::is_directory(entry) || name == "checkpoints"), entry.path().string(),
        ": no run writes this file, and --force would delete it; move it elsewhere, or give another run.dir");
    if (fs::is_directory(entry)) refuse_files_of_others(entry, true);
  }
}

// Nor one that the new run reads.
void refuse_own_sources(const fs::path& directory, const RunConfig& config) {
  const std::pair<const char*, std::string> sources[] = {{"data.source", config.data.source},
                                                         {"data.validation", config.data.validation.value_or("")},
                                                         {"data.tokenizer", config.data.tokenizer},
                                                         {"model.from", config.model.from.value_or("")}};
  const fs::path replaced = fs::canonical(directory);
  for (const auto& [key, source] : sources) {
    std::error_code missing;
    const fs::path path = fs::canonical(source, missing);
    if (missing && file_exists(source)) file_failed("read", source, missing.value());
    const bool is_inside = std::ranges::mismatch(replaced, path).in1 == replaced.end();
    check<UserError>(missing || !is_inside, key, ": '", source, "' lies in run.dir, ", directory.string(),
                     ", which --force replaces; give another run.dir, or copy the file elsewhere");
  }
}

// What is in it, not itself: it may be the current directory, or a link to another disk. run.json is the last to go: a
// directory half emptied is still that of a run.
void remove_run(const fs::path& path) {
  std::error_code error;
  fs::remove_all(path / "checkpoints", error);  // first: what can be resumed has its whole log
  if (!error)
    for (const fs::directory_entry& entry : fs::directory_iterator(path, error))
      if (!error && entry.path().filename() != "run.json" && entry.path().filename() != DirectoryLock::kFile)
        fs::remove_all(entry.path(), error);
  if (!error) fs::remove(path / "run.json", error);
  check<SystemError>(!error, path.string(), ": the old run cannot be removed: ", error.message());
}

// Made here, so that of two runs that start at once each has its own.
fs::path first_free(const std::string& name) {
  make_directories("runs", kAdvice);
  for (int number = 1;; ++number) {
    fs::path path = fs::path("runs") / (number == 1 ? name : text(name, '-', number));
    std::error_code error;
    if (fs::create_directory(path, error)) return path;
    check<SystemError>(!error || fs::exists(path), path.string(), ": the directory cannot be made: ", error.message(),
                       "; give another run.dir, or run where you may write");
  }
}

// The texts by their path from the run's directory, so that they are found where both have been moved.
Json sources_of(const DataConfig& data, const std::string& directory) {
  Json sources = Json::object();
  const auto add = [&](const char* key, const std::string& path) {
    std::error_code error;
    const fs::path relative = fs::proximate(path, directory, error);
    if (!error && fs::is_regular_file(path, error)) sources.set(key, relative.string());
  };
  if (std::ranges::count(corpus_names(), data.source) == 0) add("data.source", data.source);
  if (data.validation) add("data.validation", *data.validation);
  return sources;
}

}  // namespace

std::string claim_directory(const RunConfig& config, const std::string& name, bool force) {
  const fs::path path = config.run.dir ? fs::path(*config.run.dir) : first_free(name);
  check<ConfigError>(!path.empty(), "run.dir: '' names no directory; give one, or leave run.dir out");
  if (fs::exists(path) && !is_free(path)) {
    check<UserError>(force, path.string(), ": run.dir exists; give another one, or --force to replace the run in it");
    check<UserError>(
        fs::exists(path / "run.json"), path.string(),
        ": --force replaces only the directory of a run, and this one holds no run.json; give another run.dir");
    const RunLock lock(path.string());
    refuse_own_sources(path, config);
    refuse_files_of_others(path);
    remove_run(path);
  }
  make_directories(path.string(), kAdvice);
  return path.string();
}

RunLock::RunLock(const std::string& directory)
    : DirectoryLock(directory, "process trains", "wait for its end, or end it, or give another run.dir",
                    Reach::process) {}

std::optional<std::string> unsaid_end(const std::string& directory) {
  if (!file_exists(text(directory, "/run.json")) || DirectoryLock::is_held(directory)) return std::nullopt;
  try {
    if (!(read_run_record(directory).at("outcome") == Json("running"))) return std::nullopt;
  } catch (const UserError&) {
    return std::nullopt;  // a damaged one is told by who needs more of it
  }
  return text(directory,
              ": the run was interrupted: run.json says running, but no process trains there: it was killed, or its "
              "end could not be written");
}

std::string utc_now() {
  using namespace std::chrono;
  const auto now = floor<seconds>(system_clock::now());
  const auto day = floor<days>(now);
  const year_month_day date(day);
  const hh_mm_ss time(now - day);
  const auto two = [](auto n) { return text(n < 10 ? "0" : "", static_cast<std::int64_t>(n)); };
  return text(static_cast<int>(date.year()), '-', two(static_cast<unsigned>(date.month())), '-',
              two(static_cast<unsigned>(date.day())), 'T', two(time.hours().count()), ':', two(time.minutes().count()),
              ':', two(time.seconds().count()), 'Z');
}

void remove_half_written(const std::string& directory) {
  for (const char* each : {"", "/checkpoints"}) remove_left_over(directory + each, "");
}

void begin_run_files(const std::string& directory, const RunRecord& record) {
  write_run_record(directory, record, std::nullopt);
  make_directories(text(directory, "/checkpoints"), kAdvice);
  remove_half_written(directory);
  write_file(text(directory, "/config.yaml"), config::dump(record.config));
}

void write_run_record(const std::string& directory, const RunRecord& record, const std::optional<RunReport>& report) {
  const BuildFacts& build = build_facts();
  Json json = Json::object({
      {"run_id", record.id},
      {"version", build.version},
      {"commit", build.commit},
      {"seed", record.config.seed},
      {"threads_asked", record.team.asked},
      {"threads", record.team.measured},
      {"threads_source", record.team.source},
      {"flush_denormals", record.config.train.flush_denormals},
      {"compiler", build.compiler},
      {"flags", build.flags},
      {"instruction_set", instruction_set()},
      {"data_hash", record.data.hash},
      {"tokenizer_hash", hexadecimal(fnv1a(record.tokenizer.save()))},
      {"sources", sources_of(record.found, directory)},
      {"train_tokens", record.data.train_tokens},
      {"validation_tokens", record.data.validation_tokens},
      {"unigram", record.data.unigram},
      {"bigram", record.data.bigram},
      {"floor", record.data.floor},
      {"parameters", record.parameters},
      {"vocab_size", record.tokenizer.vocab_size()},
      {"start", record.start},
      {"end", report ? Json(utc_now()) : Json()},
      {"outcome", report ? Json(config::to_string(report->outcome)) : Json("running")},
      {"step", report ? Json(report->step) : Json()},
      {"reason", report ? Json(report->reason) : Json()},
      {kMetricsChecksum, report ? Json(crc_digits(read_file(text(directory, "/metrics.jsonl")))) : Json()},
  });
  std::string open = json.indented();
  open.resize(open.size() - 2);  // its last line
  write_file(text(directory, "/run.json"), sealed(open, kFileSeal));
}

Json read_run_record(const std::string& directory) {
  const std::string path = text(directory, "/run.json"), bytes = read_file(path);
  const std::string advice = text("; normlab train --resume ", shell_quoted(directory), " writes it again");
  Json record;
  try {
    record = parse_json(bytes, path);
  } catch (const DataError& error) {
    throw DataError(error.what() + advice);
  }
  const Json* outcome = record.is_object() ? record.find("outcome") : nullptr;
  const Json* parameters = record.is_object() ? record.find("parameters") : nullptr;
  check<DataError>(outcome && outcome->is_string() && parameters && parameters->is_number(), path,
                   ": outcome or parameters are missing, which that of a run has; it is damaged", advice);
  if (claims_checksum(bytes, kFileSeal) || record.find(kMetricsChecksum) != nullptr)
    check<DataError>(bytes == sealed(unsealed(bytes, kFileSeal), kFileSeal), path,
                     ": it was damaged or edited: its checksum (crc) is not that of its text", advice);
  return record;
}

void check_metrics(const Json& record, std::string_view jsonl, const std::string& path) {
  const Json* checksum = record.find(kMetricsChecksum);
  if (checksum == nullptr || !checksum->is_string()) return;
  const std::string own = crc_digits(jsonl);
  check<DataError>(own == checksum->string(), path, ": it was edited after the run had ended: its checksum is ", own,
                   ", and run.json has ", checksum->string(),
                   "; put the file back as it was, or delete it to go on without it");
}

}  // namespace normlab
