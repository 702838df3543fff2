// A sweep as its file states it: which points, what is measured at each, what is claimed, what is drawn.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "normlab/claims/claims.h"

namespace normlab {

// What is run for each point: a training run, or a command whose --json document is the result.
enum class Measure { train, inspect, check, shards, curvature, bench };

struct SweepHead : config::Fields {
  FIELD(std::string, id, "", config::any_value, "a short name for tables: K1")
  FIELD(std::string, title, "", config::any_value, "what it is about, in a line")
  FIELD(std::string, source, "", config::any_value, "where the claims come from, with the source's sentence")
  FIELD(std::string, about, "", config::any_value, "what is measured, and what to know about it")
  FIELD(Measure, measure, Measure::train, config::any_value, "what is run for each point")
  FIELD(std::vector<std::int64_t>, seeds, {1337}, config::at_least(0), "each point is run with each")
  FIELD(bool, keep_checkpoints, false, config::any_value, "otherwise those of a finished run are deleted")
};

// A value over two keys, as a table of colours: the mean over the seeds.
struct MapView : config::Fields {
  FIELD(std::string, title, "", config::any_value, "")
  FIELD(std::string, x, "", config::any_value, "the key of the columns")
  FIELD(std::string, y, "", config::any_value, "the key of the rows")
  FIELD(std::string, value, "val_loss", config::any_value, "what the colours are")
  FIELD(bool, log, false, config::any_value, "colours by the logarithm")
  Conditions where;
};

// A value against a key, one line for each setting of `by`: the mean over the seeds.
struct CurveView : config::Fields {
  FIELD(std::string, title, "", config::any_value, "")
  FIELD(std::string, x, "", config::any_value, "the key along the horizontal axis")
  FIELD(std::string, value, "val_loss", config::any_value, "what is drawn")
  FIELD(std::vector<std::string>, by, {}, config::any_value, "the keys that tell the lines apart")
  FIELD(bool, log_x, false, config::any_value, "")
  FIELD(bool, log_y, false, config::any_value, "")
  FIELD(std::vector<double>, powers, {}, config::any_value,
        "theory: for each line x to this power, dashed, from its first point")
  Conditions where;
};

struct Point {
  std::optional<std::size_t> before;  // in Sweep::before: the run whose last weights it starts from
  std::string id;                     // a name for its directory that follows from all that decides its result
  std::vector<std::string> varied;    // the keys of its grid, in order
  Settings settings;                  // as stated: a default that follows from other keys is null here
  std::int64_t seed = 0;
  RunConfig config;   // resolved
  bool main = false;  // of a grid over all seeds: an arm, whose curves are drawn
};

struct Sweep {
  std::string path, name;  // the file, and its stem
  SweepHead head;
  std::vector<Point> before;  // runs that come first, for `before`: a mapping of keys, each point's own added to it
  std::vector<Point> points;  // in the order of the grids, no configuration twice
  std::vector<Claim> claims;
  std::vector<MapView> maps;
  std::vector<CurveView> curves;
  std::optional<std::int64_t> threads;  // of each child, where the user says so
  std::vector<std::string> overrides;   // what it was loaded with
  std::optional<std::int64_t> seed_count;

  const std::string& source_of(const Claim& claim) const;  // its own, else that of the file
  std::vector<std::string> fields() const;   // what claims, maps and curves need of each point, without repetitions
  std::vector<std::string> columns() const;  // of tables: the same, and of runs the validation loss
};

// The keys that grids vary and that differ between points, without the seed.
std::vector<std::string> differing_keys(const Sweep& sweep);
// "placement post, warmup_steps 0": the keys that tell the points of this sweep apart, without the seed.
std::string point_name(const Sweep& sweep, const Point& point);

// The keys that its grid varies, with numbers as numbers.
Json varied_settings(const Point& point);

}  // namespace normlab
