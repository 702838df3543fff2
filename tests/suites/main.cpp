// Runs the readers over published suites, wherever they lie below a directory, and counts what comes of each case:
//   yaml-test-suite, as its `data` branch has it: directories with in.yaml, in.json (the values of its documents) where
//   there are such, and a file `error` where the text is no YAML;
//   JSONTestSuite, as its test_parsing has it: y_*.json is JSON, n_*.json is not, i_*.json may be taken either way.
// Exit code 1 when one has a wrong value, is wrongly accepted or wrongly refused, 2 when there is no case.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "../json_values.h"
#include "normlab/config/yaml.h"
#include "normlab/host/files.h"

using namespace normlab;
namespace fs = std::filesystem;

namespace {

// What became of the cases: a line of the summary, and the cases of each.
class Tally {
 public:
  enum class Verdict { fine, failure };

  void add(Verdict verdict, const std::string& outcome, const std::string& name, const std::string& more = {}) {
    ++counts_[outcome];
    if (verdict == Verdict::fine) return;
    failures_ += 1;
    std::printf("FAILED %s: %s%s%s\n", name.c_str(), outcome.c_str(), more.empty() ? "" : ": ", more.c_str());
  }

  int failures() const { return failures_; }
  std::size_t print(const char* suite) const {
    std::size_t all = 0;
    for (const auto& [outcome, count] : counts_) all += count;
    std::printf("%s: %zu cases\n", suite, all);
    for (const auto& [outcome, count] : counts_) std::printf("  %5zu %s\n", count, outcome.c_str());
    return all;
  }

 private:
  std::map<std::string, std::size_t> counts_;
  int failures_ = 0;
};

using enum Tally::Verdict;

// The value, or the refusal. Nothing but UserError may leave a reader.
struct Outcome {
  Json value;
  std::string refusal, defect;
};
Outcome outcome_of(const std::function<Json()>& read) {
  try {
    return {read(), {}, {}};
  } catch (const UserError& error) {
    return {{}, error.what(), {}};
  } catch (const std::exception& error) {
    return {{}, {}, error.what()};
  }
}

// The feature that a refusal names: what stands before "not supported", without the place.
std::string feature_of(const std::string& refusal) {
  const std::size_t end = refusal.find("not supported");
  if (end == std::string::npos) return {};
  std::size_t start = 0;
  if (const std::size_t at = refusal.find(": "); at < end) start = at + 2;
  if (const std::size_t at = refusal.rfind("; ", end); at != std::string::npos) start = std::max(start, at + 2);
  std::string feature = refusal.substr(start, end - start);
  for (const char* verb : {", which are ", " are ", " is "})
    if (feature.ends_with(verb)) feature.resize(feature.size() - std::string_view(verb).size());
  return feature;
}

void run_yaml(const fs::path& directory, Tally& tally) {
  const std::string name = directory.string();
  const std::string document = read_file((directory / "in.yaml").string());
  const Outcome outcome = outcome_of([&] { return config::json_of(config::parse_yaml(document, "in.yaml")); });
  if (!outcome.defect.empty()) return tally.add(failure, "DEFECT", name, outcome.defect);
  const bool refused = !outcome.refusal.empty();
  if (fs::exists(directory / "error"))
    return tally.add(refused ? fine : failure, refused ? "no YAML, and refused" : "no YAML, but ACCEPTED", name,
                     outcome.value.line());
  if (refused) {
    const std::string feature = feature_of(outcome.refusal);
    if (feature.empty()) return tally.add(failure, "refused WITHOUT NAMING A FEATURE", name, outcome.refusal);
    return tally.add(fine, text("refused, naming the feature: ", feature), name);
  }
  if (!fs::exists(directory / "in.json")) return tally.add(fine, "read, and the suite has no value to compare", name);
  const std::string expected = read_file((directory / "in.json").string());
  const bool empty = expected.find_first_not_of(" \t\r\n") == std::string::npos;  // a stream without a document
  const Json value = empty ? Json() : parse_json(expected, (directory / "in.json").string());
  const bool same = same_value(outcome.value, value);
  tally.add(same ? fine : failure, same ? "the right value" : "a WRONG VALUE", name,
            text(outcome.value.line(), " instead of ", value.line()));
}

void run_json(const fs::path& path, Tally& tally) {
  const std::string bytes = read_file(path.string());
  const Outcome outcome = outcome_of([&] {
    Json value = parse_json(bytes, path.filename().string());
    check(parse_json(value.line(), "again") == value, "written and read again it is another value");
    return value;
  });
  if (!outcome.defect.empty()) return tally.add(failure, "DEFECT", path.string(), outcome.defect);
  const bool refused = !outcome.refusal.empty();
  switch (path.filename().string()[0]) {
    case 'y':
      if (outcome.refusal.find("stands here a second time") != std::string::npos)
        return tally.add(fine, "y: refused, naming the name that stands twice", path.string());
      // RFC 8259 leaves open what a name that stands twice means (section 4), and older versions of the suite have
      // UTF-16, which it took out of JSON (section 8.1).
      if (const std::string feature = feature_of(outcome.refusal); !feature.empty())
        return tally.add(fine, text("y: refused, naming the feature: ", feature), path.string());
      if (outcome.refusal.find("stands here a second time") != std::string::npos)
        return tally.add(fine, "y: refused, naming the name that stands twice", path.string());
      return tally.add(refused ? failure : fine, refused ? "y: REFUSED" : "y: accepted", path.string(),
                       outcome.refusal);
    case 'n':
      return tally.add(refused ? fine : failure, refused ? "n: refused" : "n: ACCEPTED", path.string(),
                       outcome.value.line());
    default:
      return tally.add(fine, refused ? "i: refused" : "i: accepted", path.string());
  }
}

bool is_json_case(const fs::path& path) {
  const std::string name = path.filename().string();
  return path.extension() == ".json" && name.size() > 2 && name[1] == '_' &&
         std::string_view("yni").find(name[0]) != std::string_view::npos;
}

int run(const fs::path& directory) {
  std::set<fs::path> yaml, json;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.path().filename() == "in.yaml") yaml.insert(fs::weakly_canonical(entry.path().parent_path()));
    if (is_json_case(entry.path())) json.insert(entry.path());
  }
  Tally yaml_tally, json_tally;
  for (const fs::path& path : yaml) run_yaml(path, yaml_tally);
  for (const fs::path& path : json) run_json(path, json_tally);
  std::size_t cases = 0;
  if (!yaml.empty()) cases += yaml_tally.print("yaml-test-suite");
  if (!json.empty()) cases += json_tally.print("JSONTestSuite");
  const int failures = yaml_tally.failures() + json_tally.failures();
  std::printf("%zu cases, %d failed\n", cases, failures);
  if (cases == 0)
    std::fprintf(stderr, "no case below %s: neither in.yaml nor y_*.json, n_*.json, i_*.json\n", directory.c_str());
  return cases == 0 ? 2 : failures > 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2 || !fs::is_directory(argv[1])) {
    std::fprintf(stderr, "usage: normlab_suites DIR; yaml-test-suite (branch data) and JSONTestSuite lie below it\n");
    return 2;
  }
  try {
    return run(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
