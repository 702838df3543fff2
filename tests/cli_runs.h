// Runs that take a blink, for the tests of the commands.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "normlab/formats/json.h"
#include "normlab/host/files.h"
#include "program.h"
#include "temporary.h"

namespace normlab {

using Strings = std::vector<std::string>;

inline const std::string kTinyConfig = R"(data:
  size: 20000
model:
  n_layers: 1
  n_heads: 2
  d_model: 16
  context_length: 16
train:
  steps: 5
  batch_size: 4
eval:
  windows: 10
log:
  every: 2
  sample_tokens: 0
)";

inline Strings joined(Strings first, const Strings& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

// A directory with tiny.yaml in it.
class Workshop {
 public:
  Workshop() { write("tiny.yaml", kTinyConfig); }

  std::string path(const std::string& name) const { return directory_.path(name); }
  std::string write(const std::string& name, const std::string& content) const {
    write_file(path(name), content);
    return path(name);
  }
  bool exists(const std::string& name) const { return std::filesystem::exists(path(name)); }

  // normlab train tiny.yaml run.dir=NAME ...
  Strings training(const std::string& name, const Strings& more = {}) const {
    return joined({"train", path("tiny.yaml"), "run.dir=" + path(name)}, more);
  }
  Finished train(const std::string& name, const Strings& more = {}, const Surroundings& around = {}) const {
    return run_program(training(name, more), around);
  }
  std::string metrics(const std::string& run) const { return read_file(path(run + "/metrics.jsonl")); }
  std::string checkpoint(const std::string& run, const std::string& name) const {
    return path(run + "/checkpoints/" + name + ".safetensors");
  }
  Json record(const std::string& run) const { return parse_json(read_file(path(run + "/run.json")), "run.json"); }
  // Makes run.json as it was before it had checksums, of the log and of itself.
  void remove_checksums(const std::string& run) const {
    const std::string record = read_file(path(run + "/run.json"));
    write(run + "/run.json", record.substr(0, record.find(",\n  \"metrics_crc\"")) + "\n}\n");
  }

 private:
  TemporaryDirectory directory_;
};

// A run of five steps named "run", made once.
inline const Workshop& trained() {
  static const Workshop workshop;
  static const Finished done = workshop.train("run");
  check(done.code == 0, "the run that other tests use failed: ", done.err);
  return workshop;
}

inline Strings names_of(const Json& object) {
  Strings names;
  for (const Json::Member& member : object.members()) names.push_back(member.name);
  return names;
}

inline Strings lines_of(const std::string& content) {
  Strings lines;
  for (std::size_t begin = 0, end; (end = content.find('\n', begin)) != std::string::npos; begin = end + 1)
    lines.push_back(content.substr(begin, end - begin));
  return lines;
}

inline bool holds(const std::string& content, const std::string& part) {
  return content.find(part) != std::string::npos;
}

}  // namespace normlab
