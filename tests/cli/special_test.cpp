// Files that are none, and directories that go away: what stands in a file's place is refused at once, and what is
// taken away from a run is the system's doing.
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <chrono>
#include <cstring>
#include <thread>

#include "catch.h"
#include "cli_runs.h"
#include "normlab/base/text.h"
#include "normlab/run/checkpoint.h"

using namespace normlab;

namespace {

// A program that still waits after five seconds would wait for ever; it is killed with its Process.
Finished in_time(const Strings& words, const Surroundings& around = {}) {
  Process process(words, around);
  for (int i = 0; i < 500 && !process.has_ended(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  if (!process.has_ended()) process.send(SIGKILL);
  return process.wait();
}

// In the place of what may be there.
void make_pipe(const std::string& path) {
  std::filesystem::remove_all(path);
  REQUIRE(mkfifo(path.c_str(), 0600) == 0);
}

void make_socket(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  REQUIRE(path.size() < sizeof address.sun_path);
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int made = socket(AF_UNIX, SOCK_STREAM, 0);
  REQUIRE(bind(made, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
  close(made);
}

void check_refused(const Strings& words, const std::string& part) {
  const Finished done = in_time(words);
  INFO(join(words, " ") << '\n' << done.out << done.err);
  CHECK(done.code == 2);
  CHECK_THAT(done.err, ContainsSubstring(part));
}

// `lines` lines of its log are written.
bool reaches(const Workshop& shop, const std::string& run, std::size_t lines) {
  for (int i = 0; i < 2000; ++i) {
    if (shop.exists(run + "/metrics.jsonl") && lines_of(shop.metrics(run)).size() >= lines) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

}  // namespace

TEST_CASE("cli: a pipe or a socket in the place of a file is refused at once", "[cli]") {
  const Workshop shop;
  const std::string pipe = shop.path("pipe"), named = shop.path("pipe.safetensors"), plug = shop.path("socket");
  make_pipe(pipe);
  make_pipe(named);
  make_socket(plug);
  for (const auto& [path, what] : {std::pair{pipe, "a pipe"}, {plug, "a socket"}}) {
    const std::string is = std::string("is ") + what + "; name ";
    check_refused({"train", path}, is);
    check_refused(shop.training("run", {"data.source=" + path}), is);
    check_refused(shop.training("run", {"data.validation=" + path}), is);
    check_refused(shop.training("run", {"data.tokenizer=" + path}), "nor a file");
    check_refused(shop.training("run", {"model.from=" + path}), is);
    check_refused({"eval", path}, is);
    check_refused({"verify", path}, is);
  }
  check_refused({"inspect", named}, "is a pipe; name ");
  check_refused({"inspect", shop.path("tiny.yaml"), "--svg", pipe},
                "a pipe or a socket that nobody reads; name a file");
  CHECK(!shop.exists("run"));
}

TEST_CASE("cli: a pipe or a directory in the place of a run's file is refused at once, and nothing else is touched",
          "[cli]") {
  const Workshop shop;
  REQUIRE(shop.train("whole", {"--stop-at=3"}).code == 0);
  for (const bool is_pipe : {true, false})
    for (const std::string name :
         {"config.yaml", "run.json", "metrics.jsonl", "timing.jsonl", "checkpoints/step-000003.safetensors"}) {
      std::filesystem::remove_all(shop.path("run"));
      std::filesystem::copy(shop.path("whole"), shop.path("run"), std::filesystem::copy_options::recursive);
      std::filesystem::remove(shop.path("run/" + name));
      if (is_pipe)
        make_pipe(shop.path("run/" + name));
      else
        std::filesystem::create_directory(shop.path("run/" + name));
      check_refused({"train", "--resume", shop.path("run")}, name);
      for (const std::string other : {"config.yaml", "run.json", "metrics.jsonl"})
        if (other != name) CHECK(read_file(shop.path("run/" + other)) == read_file(shop.path("whole/" + other)));
    }
}

TEST_CASE("cli: text, configuration and prompt are read from standard input and from a pipe of the shell", "[cli]") {
  const Workshop shop;
  std::string words;
  for (int i = 0; i < 200; ++i) words += text("the number ", i, " comes before the next\n");
  CHECK(in_time(shop.training("text", {"data.source=/dev/stdin"}), {.input = words}).code == 0);
  CHECK(in_time({"train", "/dev/stdin", "run.dir=" + shop.path("configuration")}, {.input = kTinyConfig}).code == 0);
  shop.write("words.txt", words);
  const std::string command =
      text("bash -c \"'" NORMLAB_PROGRAM "' train '", shop.path("tiny.yaml"), "' 'run.dir=", shop.path("shell"),
           "' data.source=<(cat '", shop.path("words.txt"), "') 2>'", shop.path("said"), "'\" >/dev/null");
  CHECK(std::system(command.c_str()) == 0);
  CHECK(shop.record("shell").at("data_hash").string() == shop.record("text").at("data_hash").string());
}

TEST_CASE("torture: a text without an end is refused before it takes all memory", "[cli][.torture]") {
  const Workshop shop;
  const Finished endless = shop.train("run", {"data.source=/dev/zero"});
  CHECK(endless.code == 2);
  CHECK_THAT(endless.err, ContainsSubstring("no end within 1 GiB"));
}

TEST_CASE("cli: a run whose directory is moved away ends with 4, and goes on from where it was moved to", "[cli]") {
  const Workshop shop;
  const Strings settings{"train.steps=100000", "checkpoint.every=1", "eval.every=100000", "log.layers_every=0"};
  for (const std::string part : {"", "/checkpoints"}) {
    CAPTURE(part);
    Process process(shop.training("run", joined(settings, {"--force"})));
    REQUIRE(reaches(shop, "run", 3));
    std::filesystem::rename(shop.path("run" + part), shop.path("moved"));
    const Finished done = process.wait();
    INFO(done.err);
    CHECK(done.code == 4);
    CHECK_THAT(done.err,
               ContainsSubstring(shop.path("run") + ": this directory, or a part of it, was removed or moved"));
    if (part.empty()) {
      const std::string last = checkpoint_path(shop.path("moved"));
      const std::string stop = text("--stop-at=", Checkpoint(last).state().step + 1);
      CHECK(run_program({"train", "--resume", shop.path("moved"), stop}).code == 0);
    }
    std::filesystem::remove_all(shop.path("moved"));
  }
}

TEST_CASE("cli: a sweep whose directory is moved away ends with 4", "[cli]") {
  const Workshop shop;
  shop.write("sweep.yaml", "base: tiny.yaml\ngrid:\n  optimizer.lr: [0.001, 0.002, 0.003]\nseeds: [1, 2, 3, 4]\n");
  Process process({"sweep", shop.path("sweep.yaml"), "run.dir=" + shop.path("sweep")});
  for (int i = 0; i < 2000 && !shop.exists("sweep/points"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  std::filesystem::rename(shop.path("sweep"), shop.path("moved"));
  const Finished done = process.wait();
  INFO(done.err);
  CHECK(done.code == 4);
}

TEST_CASE("cli: a log that is removed while the run writes to it ends the run with 4", "[cli]") {
  const Workshop shop;
  Process process(
      shop.training("run", {"train.steps=100000", "checkpoint.every=1", "eval.every=100000", "log.layers_every=0"}));
  REQUIRE(reaches(shop, "run", 3));
  std::filesystem::remove(shop.path("run/metrics.jsonl"));
  const Finished done = process.wait();
  CHECK(done.code == 4);
  CHECK_THAT(done.err, ContainsSubstring(shop.path("run/metrics.jsonl") + ": this file was removed while"));
}
