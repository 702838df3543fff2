// The directory of a run: claimed for a new one, and its record run.json.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "normlab/data/dataset.h"
#include "normlab/formats/json.h"
#include "normlab/host/lock.h"
#include "normlab/train/observer.h"
#include "normlab/train/run_config.h"

namespace normlab {

// Makes the directory of a new run: run.dir, or the first free of runs/NAME, runs/NAME-2, ... One that exists is
// replaced by `force` if it holds a run.json, nothing that no run writes, and nothing that the new run reads; otherwise
// UserError.
std::string claim_directory(const RunConfig& config, const std::string& name, bool force);

// Held while a process trains in a run's directory.
struct RunLock : DirectoryLock {
  explicit RunLock(const std::string& directory);
};

// How many threads were asked for and what said so, and how many really ran.
struct Team {
  int asked = 1, measured = 1;
  std::string source;
};

struct RunRecord {
  const RunConfig& config;
  const DataFacts& data;
  const Tokenizer& tokenizer;
  Index parameters = 0;
  Team team;
  std::string start;        // UTC, as 2026-01-31T12:00:00Z
  std::string id;           // run_id
  const DataConfig& found;  // where the texts were found
};

std::string utc_now();
// Removes what killed processes left half written.
void remove_half_written(const std::string& directory);
// Makes what a run begins with: run.json, the directory of its checkpoints, config.yaml. run.json is the first, so that
// wherever a run is killed, its directory is empty or claim_directory knows it as one.
void begin_run_files(const std::string& directory, const RunRecord& record);
// `report` is empty while the run goes on; at its end the record also has the checksum of metrics.jsonl.
void write_run_record(const std::string& directory, const RunRecord& record, const std::optional<RunReport>& report);

// run.json. DataError where it is damaged; that of an earlier version has no checksum.
Json read_run_record(const std::string& directory);
// DataError where these bytes of metrics.jsonl are not those with which the run of this record ended.
void check_metrics(const Json& record, std::string_view jsonl, const std::string& path);

// For the person: that the run in a directory was cut off, where run.json says that it goes on; else nothing.
std::optional<std::string> unsaid_end(const std::string& directory);

}  // namespace normlab
