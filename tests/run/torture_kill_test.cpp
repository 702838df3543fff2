// Death at any moment: a run that is killed again and again ends with the bytes of one that never was.
#include <chrono>
#include <thread>

#include "normlab/base/clock.h"
#include "normlab/run/checkpoint.h"
#include "torture.h"

using namespace normlab;

namespace {

struct Counts {
  int kills = 0, while_writing = 0, before_first = 0, finished = 0;
};

class Killer {
 public:
  Killer(const Workshop& shop, int signal) : shop_(shop), signal_(signal), random_(torture_seed(), "kills") {
    const auto start = Clock::now();
    const Finished whole = shop.train("whole", kManyStates);
    INFO(whole.err);
    REQUIRE(whole.code == 0);
    duration_ = std::chrono::duration_cast<std::chrono::microseconds>(Clock::now() - start).count();
  }

  // Until `wanted` processes were ended, and the last run is done.
  Counts go(int wanted) {
    while (counts_.kills < wanted || begun_) {
      const std::int64_t at = begun_ ? newest_step(shop_, "run") : 0;
      const std::int64_t was = newest_step(shop_, "run");  // of a run that ended, which --force replaces
      const bool existed = shop_.exists("run/run.json");
      Process process(at > 0 ? Strings{"train", "--resume", shop_.path("run")}
                             : shop_.training("run", joined(kManyStates, {"--force"})));
      begun_ = true;
      if (counts_.kills < wanted) end(process, at);
      const Finished done = process.wait();
      INFO("end " << counts_.kills << " from step " << at << ": " << done.code << ' ' << done.err);
      if (done.code == 0) {
        check_equal_runs(shop_, "run", "whole");
        ++counts_.finished;
        begun_ = false;
      } else {
        examine(done, was, existed);
      }
    }
    const std::string run = shop_.path("run");
    const Clock::time_point start = Clock::now();
    do {
      CHECK(run_program({"train", "--resume", run}).code == 0);
    } while (half_written(run) > 0 && seconds_since(start) < 10);
    CHECK(half_written(run) == 0);
    return counts_;
  }

 private:
  // Every other time at any time of a run; else while the checkpoint of one of the next steps is written.
  void end(const Process& process, std::int64_t at) {
    if (random_.below(2) == 0) {
      std::this_thread::sleep_for(std::chrono::microseconds(random_.below(static_cast<std::uint64_t>(duration_))));
    } else {
      const std::string name = checkpoint_name(at + 1 + static_cast<std::int64_t>(random_.below(8)));
      const std::string saved = shop_.path("run/checkpoints/" + name);
      const auto is_begun = [&](const std::string& each) { return target_of_temporary(each) == name; };
      while (std::ranges::none_of(names_in(shop_.path("run/checkpoints")), is_begun) &&
             access(saved.c_str(), F_OK) != 0 && !process.has_ended()) {
      }
      const auto until = Clock::now() + std::chrono::microseconds(random_.below(1500));
      while (Clock::now() < until) {
      }
    }
    process.send(signal_);
  }

  void examine(const Finished& done, std::int64_t was, bool existed) {
    ++counts_.kills;
    counts_.while_writing += half_written(shop_.path("run")) > 0;
    const std::int64_t step = newest_step(shop_, "run");
    counts_.before_first += step == 0;
    if (signal_ == SIGKILL) {
      REQUIRE(done.code == -SIGKILL);
    } else if (done.code == -signal_ || holds(done.err, "nothing was trained yet")) {  // before the run begins to write
      CHECK(step == was);
      CHECK(shop_.exists("run/run.json") == existed);
    } else {
      REQUIRE(done.code == 128 + signal_);
      CHECK(shop_.record("run").at("outcome").string() == "interrupted");
      CHECK(shop_.record("run").at("step").integer() == step);
      CHECK(half_written(shop_.path("run")) == 0);
    }
  }

  const Workshop& shop_;
  int signal_;
  Random random_;
  long duration_ = 0;  // of an undisturbed run, microseconds
  bool begun_ = false;
  Counts counts_;
};

void check_ends(int signal, const char* name, int wanted) {
  const Workshop shop;
  const Counts counts = Killer(shop, signal).go(wanted);
  tell(name, ": ", counts.kills, " ends at random times, ", counts.while_writing, " of them while a file was written, ",
       counts.before_first, " before the first checkpoint; ", counts.finished,
       " runs went on to their end and equal the undisturbed one");
  CHECK(counts.kills >= wanted);
  CHECK(counts.finished > 0);
}

}  // namespace

TEST_CASE("killed 4 times, a run that is resumed equals an undisturbed one", "[run]") {
  check_ends(SIGKILL, "SIGKILL", 4);
}

TEST_CASE("torture: SIGKILL at 50 random times", "[run][.torture]") { check_ends(SIGKILL, "SIGKILL", 50); }

TEST_CASE("torture: SIGTERM and SIGINT at random times", "[run][.torture]") {
  check_ends(SIGTERM, "SIGTERM", 15);
  check_ends(SIGINT, "SIGINT", 15);
}

TEST_CASE("a run that ended before its first checkpoint is begun again, wherever it ended", "[run]") {
  const Workshop shop;
  REQUIRE(shop.train("run").code == 0);
  const std::string run = shop.path("run");
  const auto resumed = [&] { return run_program({"train", "--resume", run}); };
  const auto left = [&](const Strings& names) {
    for (const std::string& name : names_in(run))
      if (std::ranges::count(names, name) == 0) std::filesystem::remove_all(run + "/" + name);
    write_file(left_over_name(run + "/run.json"), "{");
  };
  std::filesystem::remove_all(run + "/checkpoints");
  CHECK(resumed().code == 2);
  CHECK_THAT(resumed().err,
             ContainsSubstring("ended before its first") && ContainsSubstring("run.dir=" + run + " --force"));
  CHECK(run_program({"train", run + "/config.yaml", "run.dir=" + run, "--force"}).code == 0);
  left({"run.json"});
  CHECK_THAT(resumed().err, ContainsSubstring("the run ended as it began. Start it again, with --force"));
  CHECK(shop.train("run").code == 2);
  CHECK(shop.train("run", {"--force"}).code == 0);
  CHECK(half_written(run) == 0);
  left({});
  CHECK(shop.train("run").code == 0);
}
