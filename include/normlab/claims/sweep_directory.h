// A sweep on disk: its record, and its points: which are done, what they say, what to run for the others.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "normlab/claims/sweep_file.h"

namespace normlab {

// UserError where another file's sweep has the directory: its results and its report would be replaced.
void refuse_other_sweep(const Sweep& sweep, const std::string& directory);
void write_sweep_record(const Sweep& sweep, const std::string& directory);
// The sweep that a directory was made from. DataError where it holds none.
Sweep sweep_of(const std::string& directory);
bool is_sweep(const std::string& directory);
std::string point_directory(const std::string& directory, const Point& point);

bool is_done(const Sweep& sweep, const std::string& directory, const Point& point);
// Of a point that is done.
Measured measured_of(const Sweep& sweep, const std::string& directory, const Point& point);
// The words that measure it, behind the program; prepares its directory. A run with a checkpoint goes on from it unless
// `anew`.
std::vector<std::string> command_of(const Sweep& sweep, const std::string& directory, const Point& point,
                                    std::int64_t threads, bool anew);
// Where the runs are that points start from.
std::string directory_before(const std::string& directory);
// Where the process of a point writes.
std::string output_path(const std::string& directory, const Point& point);
std::string errors_path(const std::string& directory, const Point& point);
// What its process has left is a result: makes the point done, and true. False when it is none.
// `seconds`: how long the process took.
bool accept(const Sweep& sweep, const std::string& directory, const Point& point, int exit_code, double seconds);
std::optional<double> seconds_of(const std::string& directory, const Point& point);

// UserError where a claim, map or curve asks for a value that the point, being done and healthy, does not have.
void check_values(const Sweep& sweep, const std::string& directory, const Point& point);

// Removes what a point that is done needs no more; a sweep that was killed may have left it.
void tidy(const Sweep& sweep, const std::string& directory, const Point& point);

}  // namespace normlab
