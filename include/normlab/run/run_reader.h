// What a run has written, read back for claims, tables and pictures; and any value of it by its dotted path.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "normlab/formats/json.h"
#include "normlab/train/run_config.h"

namespace normlab {

// Every key of a configuration with its value as YAML.
using Settings = std::map<std::string, std::string, std::less<>>;
Settings settings_of(const RunConfig& config);

// A value of YAML as a person writes it: 1.0e-03 is 0.001, and 0.00030000000000000003 is 3e-04.
std::string shown(const std::string& value);
// The same of several, as they are where two that differ would look the same.
std::vector<std::string> shown(const std::vector<std::string>& values);

struct RunFiles {
  std::string directory;
  RunConfig config;                                             // config.yaml
  Json record;                                                  // run.json
  std::map<std::string, std::vector<Json>, std::less<>> lines;  // metrics.jsonl by kind: train, eval, layers, ...

  const std::vector<Json>& kind(std::string_view name) const;  // none: empty
  std::string outcome() const;                                 // "running" while it goes on
  std::string reason() const;                                  // of it; empty where there is nothing to say
  std::optional<double> entropy(std::string_view name) const;  // unigram, bigram, floor, ln_vocab
};

// DataError where the directory holds no run. A line that is still being written is left out.
RunFiles read_run(const std::string& directory);
bool is_run(const std::string& directory);

// The value at a dotted path: names of members, which may hold dots themselves; numbers count in arrays, from the end
// below 0; in an array of objects with a "name" that name leads to its object. Null: there is none.
const Json* at_path(const Json& root, std::string_view path);

// A number of a run or of a measurement's document, or nothing where it has none (a null, a step without a line):
//   eval.loss            the last line of a kind
//   eval.loss@200        of the line of this step
//   eval.loss@200..      the mean over the lines from this step on
//   layers.grad_norm.blocks.-1.mlp.down.weight@25     blocks.-1: the last block
//   val_loss             the same as eval.loss
//   steps_to bigram - 0.1   the step at which the validation loss reached a bound, between two evaluations by
//   proportion A / B                the quotient of two of these
// In a document (inspect, check, bench) the path starts at its root.
std::optional<double> field_of(const RunFiles& run, std::string_view field);
std::optional<double> field_of(const Json& document, std::string_view field);

// Whether the value is there, be it a number or a null; a step that was not reached is there where its bound is known.
bool has_field(const RunFiles& run, std::string_view field);
bool has_field(const Json& document, std::string_view field);
// Why it is not there, for a message: the steps that there are, or the nearest name.
std::string why_missing(const RunFiles& run, std::string_view field);
std::string why_missing(const Json& document, std::string_view field);
// DataError for what is no field of a run of that many steps, whatever it writes.
void check_run_field(std::string_view field, std::int64_t steps);

// "bigram - 0.1", "2.92": a name of `entropy`, a number, or a name and a number. Nothing where the run lacks the name.
// DataError for anything else.
std::optional<double> bound_of(std::string_view bound, const std::map<std::string, double, std::less<>>& entropies);

}  // namespace normlab
