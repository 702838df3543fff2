// A signal is answered within a second, whatever the program is at; what it breaks off is made again on resuming.
#include <chrono>
#include <csignal>
#include <thread>

#include "catch.h"
#include "normlab/base/clock.h"
#include "normlab/lab/curvature/curvature_log.h"
#include "normlab/run/checkpoint.h"
#include "normlab/run/run.h"
#include "normlab/train/evaluate.h"
#include "torture.h"

using namespace normlab;

namespace {

volatile std::sig_atomic_t flag = 0;

// Sets the flag while update `at` is done, so that its evaluation is cut, or when the evaluation is written, so that
// its sample is.
class Signaller : public Observer {
 public:
  Signaller(const RunParts& parts, std::int64_t at, bool in_sample) : at_(in_sample ? 0 : at) {
    if (in_sample)
      parts.metrics.tell([at](const Json& line) {
        if (line.at("kind") == Json("eval") && line.at("step").integer() == at) flag = SIGTERM;
      });
  }
  void on_gradients(std::int64_t step, const ParameterStore&) override {
    if (step + 1 == at_) flag = SIGTERM;
  }

 private:
  std::int64_t at_;
};

// The curvature log, with a signal while it measures at step `at`.
class SignalledCurvature : public Observer {
 public:
  SignalledCurvature(const RunParts& parts, std::int64_t at) : log_(curvature_log(parts)), at_(at) {}
  Probe* probe(std::int64_t step) override {
    if (step == at_) flag = SIGTERM;
    return log_->probe(step);
  }

 private:
  std::unique_ptr<Observer> log_;
  std::int64_t at_;
};

RunReport resumed(const std::string& run, std::function<std::unique_ptr<Observer>(const RunParts&)> watch = {}) {
  flag = 0;
  RunOptions options;
  options.watch_signals = [] { return &flag; };
  options.watch = std::move(watch);
  Terminal quiet(-1, false);
  return resume_run(run, {}, options, quiet).report;
}

// The program itself does, not the test that it was forked from.
bool catches_signals(pid_t process) {
  const std::string about = text("/proc/", static_cast<std::int64_t>(process));
  if (!std::filesystem::read_symlink(about + "/exe").string().ends_with("/normlab")) return false;
  const std::string status = read_file(about + "/status");
  return (std::stoul(status.substr(status.find("SigCgt:") + 7), nullptr, 16) >> (SIGINT - 1) & 1) != 0;
}

// Until `ready`, for ten seconds.
template <class Ready>
void wait_for(const Ready& ready) {
  for (int i = 0; i < 2000 && !ready(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  REQUIRE(ready());
}

// Sends the signal; how the process ended, or its being killed where it did not within two seconds.
Finished ended(Process& process, int signal) {
  process.send(signal);
  const Clock::time_point sent = Clock::now();
  while (!process.has_ended() && seconds_since(sent) < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (!process.has_ended()) process.send(SIGKILL);
  return process.wait();
}

}  // namespace

TEST_CASE(
    "a signal in an evaluation or a sample cuts it, and the resumed run makes it again: the bytes of an unbroken one",
    "[run]") {
  const Workshop shop;
  const Strings settings{"train.steps=12", "eval.every=3",       "checkpoint.every=3",  "checkpoint.keep=9",
                         "log.every=1",    "log.layers_every=3", "log.sample_tokens=5", "model.norm=batch"};
  REQUIRE(shop.train("whole", settings).code == 0);
  for (const bool in_sample : {false, true})
    for (const std::int64_t at : {3, 6, 12}) {
      CAPTURE(in_sample, at);
      REQUIRE(shop.train("run", joined(settings, {"--force", "--stop-at=2"})).code == 0);
      const auto signaller = [&](const RunParts& parts) { return std::make_unique<Signaller>(parts, at, in_sample); };
      for (int time = 0; time < 3; ++time) {  // the second and third: in the evaluation that was cut
        const RunReport report = resumed(shop.path("run"), [&](const RunParts& parts) {
          if (time > 0 && !in_sample) flag = SIGTERM;
          return signaller(parts);
        });
        CHECK(report.outcome == Outcome::interrupted);
        CHECK(report.reason == "by SIGTERM");
        CHECK(report.step == at);
        CHECK(Checkpoint(shop.path("run/checkpoints/" + checkpoint_name(at))).state().evaluation_due);
        CHECK(holds(shop.metrics("run"), text("{\"step\":", at, ",\"kind\":\"train\"")));
        CHECK(holds(shop.metrics("run"), text("{\"step\":", at, ",\"kind\":\"eval\"")) == in_sample);
        CHECK(!holds(shop.metrics("run"), text("{\"step\":", at, ",\"kind\":\"sample\"")));
      }
      resumed(shop.path("run"));
      std::filesystem::remove(shop.path("run/checkpoints/step-000002.safetensors"));  // of --stop-at
      check_equal_runs(shop, "run", "whole");
    }
}

TEST_CASE("a signal in a curvature measurement ends the run before the next step, and it is measured on resuming",
          "[run]") {
  const Workshop shop;
  const Strings settings{"train.steps=6", "checkpoint.every=2", "checkpoint.keep=9", "log.curvature_every=3"};
  REQUIRE(shop.train("whole", settings).code == 0);
  REQUIRE(shop.train("run", joined(settings, {"--stop-at=2"})).code == 0);
  for (int time = 0; time < 2; ++time) {
    const RunReport report =
        resumed(shop.path("run"), [](const RunParts& parts) { return std::make_unique<SignalledCurvature>(parts, 3); });
    CHECK(report.outcome == Outcome::interrupted);
    CHECK(report.step == 3);
    CHECK(!holds(shop.metrics("run"), "{\"step\":3,\"kind\":\"curvature\""));
  }
  resumed(shop.path("run"), curvature_log);
  flag = 0;
  RunOptions options;
  options.watch_signals = [] { return &flag; };
  options.watch = [](const RunParts& parts) { return std::make_unique<SignalledCurvature>(parts, 0); };
  Terminal quiet(-1, false);
  RunConfig fresh = load_run_config(shop.path("tiny.yaml"), {"log.curvature_every=3"}).config;
  fresh.run.dir = shop.path("fresh");
  const RunResult nothing = start_run(fresh, "fresh", options, quiet);
  CHECK(nothing.report.step == 0);
  CHECK_THAT(nothing.summary, ContainsSubstring("nothing was trained yet; next: "));
  CHECK(checkpoint_steps(shop.path("fresh/checkpoints")).empty());
  std::filesystem::remove(shop.path("run/checkpoints/step-000003.safetensors"));  // of the interruption
  check_equal_runs(shop, "run", "whole");
}

TEST_CASE("a signal between the prefixes of a window ends an evaluation on them", "[run]") {
  const Workshop& shop = trained();
  const Checkpoint checkpoint(shop.path("run/checkpoints/step-000005.safetensors"));
  const Dataset data = Dataset::load(checkpoint.config().data, checkpoint.config().model.context_length, 1);
  const std::vector<Window> one = data.spread_windows(1);
  int asked = 0;
  const auto stop = [&] { return ++asked > 3; };
  CHECK(!evaluate(checkpoint.model(), data, one, kOwnPrefix, stop).has_value());
  CHECK(asked <= 6);  // no more passes than it was let
}

TEST_CASE("a signal before the first step ends the program at once, and nothing is left", "[run]") {
  const Workshop shop;
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, {SIGTERM, 143}}) {
    Process process(shop.training("run", {"data.source=markov", "data.size=900000000"}));
    wait_for([&] { return catches_signals(process.id()); });
    const Finished done = ended(process, signal);
    CHECK(done.code == code);
    CHECK_THAT(done.err, ContainsSubstring("before the first step; nothing was trained yet"));
    CHECK(!shop.exists("run"));
  }
}

TEST_CASE("a signal in a long sample ends the run after its step, and the run goes on from there", "[run]") {
  const Workshop shop;
  const Strings settings{"train.steps=3", "eval.every=1", "log.sample_tokens=1000000", "log.report=false"};
  Process process(shop.training("run", settings));
  wait_for([&] { return shop.exists("run/metrics.jsonl") && holds(shop.metrics("run"), "\"kind\":\"eval\""); });
  const Finished done = ended(process, SIGINT);
  INFO(done.err);
  CHECK(done.code == 130);
  CHECK(shop.record("run").at("outcome").string() == "interrupted");
  CHECK(run_program({"train", "--resume", shop.path("run"), "log.sample_tokens=0"}).code == 0);
  REQUIRE(shop.train("whole", joined(settings, {"log.sample_tokens=0"})).code == 0);
  CHECK((shop.metrics("run") == shop.metrics("whole")));
}

TEST_CASE("a signal ends eval, sample, inspect and check at once", "[run]") {
  const Workshop& shop = trained();
  const Strings large{"data.size=900000000", "data.source=markov"};
  const std::string run = shop.path("run"), config = shop.path("tiny.yaml");
  for (const Strings& words : {joined({"eval", run}, large), joined({"inspect", config}, large),
                               joined({"check", config}, large), Strings{"sample", run, "--tokens=100000000"}}) {
    INFO(join(words, " "));
    Process process(words);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    CHECK(ended(process, SIGINT).code == -SIGINT);  // 130 to a shell
  }
}
