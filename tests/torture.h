// What the long tests share: their seed, what they say, and runs that can be compared.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "catch.h"
#include "cli_runs.h"
#include "normlab/base/rng.h"
#include "normlab/base/text.h"
#include "normlab/run/checkpoint.h"

namespace normlab {

// SEED of the environment, as `make torture` gives it.
inline std::uint64_t torture_seed() {
  const char* given = std::getenv("SEED");
  return static_cast<std::uint64_t>(given ? parse_int(given).value_or(1) : 1);
}

// A line of figures, told by `make torture`.
template <class... Parts>
void tell(const Parts&... parts) {
  if (std::getenv("SEED") == nullptr) return;
  std::fprintf(stdout, "  %s\n", text(parts...).c_str());
  std::fflush(stdout);
}

// What could not be tested here, and why.
template <class... Parts>
void tell_skipped(const Parts&... parts) {
  std::fprintf(stdout, "  skipped: %s\n", text(parts...).c_str());
  std::fflush(stdout);
}

inline Strings names_in(const std::string& directory) {
  Strings names;
  std::error_code missing;
  for (const auto& entry : std::filesystem::directory_iterator(directory, missing))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

// The name of a temporary file of `path` as a process left it that is no more.
inline std::string left_over_name(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, nullptr, 0);
  std::string name = temporary_name(path);
  const std::string own = text('-', static_cast<std::int64_t>(getpid()), '-');
  name.replace(name.rfind(own), own.size(), text('-', static_cast<std::int64_t>(child), '-'));
  return name;
}

// Files that a process was writing when it ended.
inline std::size_t half_written(const std::string& run, const std::string& but_of = "-") {
  std::size_t count = 0;
  for (const std::string& directory : {run, run + "/checkpoints"})
    for (const std::string& name : names_in(directory))
      count += name.ends_with(".normlab-tmp") && target_of_temporary(name) != but_of;
  return count;
}

// Settings of a run that has much to remember: batch statistics, dropout, accumulation, averages of gradients; and that
// saves after each of its 30 steps.
inline const Strings kManyStates{"model.norm=batch",    "model.dropout=0.1",  "train.grad_accumulation=2",
                                 "train.steps=30",      "eval.every=7",       "log.layers_every=3",
                                 "log.sample_tokens=5", "checkpoint.every=1", "log.every=10"};

// The same parameters, averages, state and log as the other run's, and no file left over.
inline void check_equal_runs(const Workshop& shop, const std::string& run, const std::string& other) {
  CHECK(names_in(shop.path(run + "/checkpoints")) == names_in(shop.path(other + "/checkpoints")));
  for (const std::string& name : names_in(shop.path(other + "/checkpoints"))) {
    INFO(name);
    CHECK((read_file(shop.path(run + "/checkpoints/" + name)) == read_file(shop.path(other + "/checkpoints/" + name))));
  }
  CHECK((shop.metrics(run) == shop.metrics(other)));
  CHECK(shop.record(run).at("outcome").string() == shop.record(other).at("outcome").string());
  // The process that writes a report may outlive its killed run by a moment; the next run removes what it leaves.
  CHECK(half_written(shop.path(run), "report.html") == 0);
}

// The step of the newest checkpoint, which must be whole; 0 where there is none.
inline std::int64_t newest_step(const Workshop& shop, const std::string& run) {
  if (names_in(shop.path(run + "/checkpoints")).empty()) return 0;
  std::int64_t newest = 0;
  for (const std::string& name : names_in(shop.path(run + "/checkpoints")))
    if (name.ends_with(".safetensors")) {
      const std::int64_t step = Checkpoint(shop.path(run + "/checkpoints/" + name)).state().step;
      if (name.starts_with("step-")) newest = std::max(newest, step);
    }
  return newest;
}

}  // namespace normlab
