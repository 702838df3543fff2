// A sweep on disk: its record, and its points: which are done, what they say, what to run for the others.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "normlab/claims/sweep_file.h"

namespace normlab {

// The directory of a sweep while this process works with it. What a point that is done has left is read once.
class SweepDirectory {
 public:
  SweepDirectory(const Sweep& sweep, std::string path) : sweep_(sweep), path_(std::move(path)) {}

  const Sweep& sweep() const { return sweep_; }
  const std::string& path() const { return path_; }

  // UserError where another file's sweep has the directory: its results and its report would be replaced.
  void refuse_other_sweep() const;
  void write_record() const;

  bool is_done(const Point& point) const;
  // Of a point that is done.
  const Measured& measured(const Point& point) { return result_of(point).measured; }
  const RunFiles& run(const Point& point) { return result_of(point).run.value(); }  // of an arm
  const Json& timing(const Point& point) { return result_of(point).timing; }        // its last speed and memory
  std::optional<double> seconds(const Point& point) const;
  // UserError where a claim, map or curve asks for a value that the point, being done and healthy, does not have.
  void check_values(const Point& point);

  // The words that measure it, after the program; prepares its directory. A run with a checkpoint goes on from it
  // unless `anew`.
  std::vector<std::string> command(const Point& point, std::int64_t threads, bool anew) const;
  // Where the process of a point writes.
  std::string output_path(const Point& point) const { return point_path(point) + ".out"; }
  std::string errors_path(const Point& point) const { return point_path(point) + ".log"; }
  // What its process has left is a result: makes the point done, and true. False when it is none.
  // `seconds`: how long the process took.
  bool accept(const Point& point, int exit_code, double seconds) const;
  // Removes what a point that is done needs no more; a sweep that was killed may have left it.
  void tidy(const Point& point) const;
  void remove(const Point& point) const;  // all of it, to be measured again

  // Where the runs are that points start from.
  std::string path_before() const { return path_ + "/before"; }

 private:
  struct Result {
    Measured measured;
    std::optional<RunFiles> run;
    Json timing = Json::object();
    std::string missing;  // the first value that is asked for and not there, as a message
  };
  const Result& result_of(const Point& point);
  void read(const Point& point, Result& result) const;
  std::string point_path(const Point& point) const { return path_ + "/points/" + point.id; }
  std::string configuration_path(const Point& point) const { return point_path(point) + ".yaml"; }
  std::string result_path(const Point& point) const { return point_path(point) + "/result.json"; }
  // Of the process that ended with the result, so of the last part of a run that was interrupted.
  std::string seconds_path(const Point& point) const { return path_ + "/times/" + point.id; }

  const Sweep& sweep_;
  std::string path_;
  std::map<const Point*, Result> results_;
};

// The sweep that a directory was made from. DataError where it holds none.
Sweep sweep_of(const std::string& directory);
bool is_sweep(const std::string& directory);

}  // namespace normlab
