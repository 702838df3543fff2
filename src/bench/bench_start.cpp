// From the start of the program to where its first step begins, and to where that is done, as a user waits for it.
#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "normlab/base/clock.h"
#include "normlab/base/parallel.h"
#include "normlab/bench/bench_parts.h"
#include "normlab/data/corpora/corpora.h"
#include "normlab/host/files.h"

extern char** environ;

namespace normlab {
namespace {

class WorkDirectory {
 public:
  WorkDirectory() {
    path_ = (std::filesystem::temp_directory_path() / "normlab-bench-XXXXXX").string();
    check<SystemError>(mkdtemp(path_.data()) != nullptr, path_,
                       ": no directory can be made here: ", std::strerror(errno), "; TMPDIR chooses another place");
  }
  ~WorkDirectory() {
    std::error_code ignored;  // the system clears its temporary directory
    std::filesystem::remove_all(path_, ignored);
  }
  WorkDirectory(const WorkDirectory&) = delete;
  WorkDirectory& operator=(const WorkDirectory&) = delete;

  std::string operator/(std::string_view name) const { return text(path_, '/', name); }

 private:
  std::string path_;
};

// Starts a program, with its standard error on a pipe, and reads that to its end; the seconds until each of `marks` had
// occurred there. Throws when one does not occur.
std::vector<double> seconds_until(std::vector<std::string> words, std::span<const std::string_view> marks) {
  const Clock::time_point begin = Clock::now();
  std::array<int, 2> ends{};
  check<SystemError>(pipe(ends.data()) == 0, "no pipe can be made: ", std::strerror(errno));
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int error = posix_spawn(&child, arguments[0], &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  std::string heard;
  std::vector<double> seconds;
  std::array<char, 4096> buffer;
  for (ssize_t count; error == 0 && (count = read(ends[0], buffer.data(), buffer.size())) != 0;) {
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) break;
    heard.append(buffer.data(), static_cast<std::size_t>(count));
    const double now = seconds_since(begin);
    while (seconds.size() < marks.size() && heard.find(marks[seconds.size()]) != std::string::npos)
      seconds.push_back(now);
  }
  close(ends[0]);
  int status = 0;
  if (error == 0) waitpid(child, &status, 0);
  check<SystemError>(error == 0, words[0], " cannot be started: ", std::strerror(error));
  check<SystemError>(seconds.size() == marks.size(), "the run that was to be timed did not come to '",
                     marks[std::min(seconds.size(), marks.size() - 1)], "'; it said: ", heard);
  return seconds;
}

}  // namespace

Json measure_start(Effort effort, const std::string& program) {
  const WorkDirectory directory;
  const std::string source = directory / "text.txt", config = directory / "start.yaml";
  write_file(source, make_corpus("tales", 0, 1)->generate(1000000));
  write_file(config, text("data: {source: ", source, "}\nmodel: {activation: gelu_tanh}\nlog: {every: 1}\n"));
  Json entry = Json::object({{"name", "start"}, {"threads", threads()}});
  std::vector<double> begins, done;
  const Clock::time_point start = Clock::now();
  const auto elapsed = [&] { return seconds_since(start); };
  for (int run = 0; run < effort.least_runs || elapsed() < effort.seconds; ++run) {
    static constexpr std::string_view kMarks[] = {"\nrun directory: ", "\nstep 1/"};  // the last words before the steps
    const std::vector<double> seconds =
        seconds_until({program, "train", config, text("run.dir=", directory / text("run-", run)),
                       text("train.threads=", threads()), "--stop-at", "1"},
                      kMarks);
    begins.push_back(seconds[0]);
    done.push_back(seconds[1]);
  }
  set_times(entry, timing_of(std::move(begins)));
  entry.set("first_step_done_ms", timing_of(std::move(done)).median * 1e3);
  return entry;
}

}  // namespace normlab
