// Runs from the command line: what is written where, interruption, resuming, and a machine that gets in the way.
#include "normlab/run/run.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <csignal>
#include <thread>

#include "catch.h"
#include "cli_runs.h"
#include "normlab/base/clock.h"
#include "normlab/config/loader.h"
#include "normlab/host/build_facts.h"
#include "normlab/host/limits.h"
#include "normlab/run/checkpoint.h"

using namespace normlab;

namespace {

// Waits until the run has written a metrics line of `step`; false after ten seconds.
bool reaches_step(const Workshop& shop, const std::string& run, int step) {
  const std::string wanted = text("{\"step\":", step, ",\"kind\":\"train\"");
  for (int i = 0; i < 2000; ++i) {
    if (shop.exists(run + "/metrics.jsonl") && holds(shop.metrics(run), wanted)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return false;
}

Strings names_in(const std::string& directory) {
  Strings names;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

// Settings of a run too long to wait for.
const Strings kLong{"train.steps=1000000", "log.every=1000000", "log.layers_every=0", "eval.every=1000000",
                    "checkpoint.every=1000000"};

}  // namespace

TEST_CASE("cli: the files of a run and what they hold", "[cli]") {
  const Workshop& shop = trained();
  Strings names = names_in(shop.path("run"));
  CHECK(std::erase_if(names, [](const auto& name) { return name.starts_with("events.out.tfevents."); }) == 1);
  CHECK(names == Strings{"checkpoints", "config.yaml", "metrics.jsonl", "report.html", "run.json", "timing.jsonl"});
  CHECK(names_in(shop.path("run/checkpoints")) == Strings{"best.safetensors", "step-000005.safetensors"});

  const Json record = shop.record("run");
  for (const char* name : {"seed", "threads_asked", "threads", "threads_source", "flush_denormals", "compiler", "flags",
                           "instruction_set", "run_id", "data_hash", "tokenizer_hash", "train_tokens",
                           "validation_tokens", "parameters", "start", "end", "outcome"}) {
    CAPTURE(name);
    REQUIRE(record.find(name) != nullptr);
    CHECK_FALSE(record.at(name).is_null());
  }
  CHECK(record.at("seed").integer() == 1337);
  CHECK(record.at("data_hash").string() == Checkpoint(shop.checkpoint("run", "step-000005")).data_hash());

  Strings kinds;
  for (const std::string& line : lines_of(shop.metrics("run"))) {
    const Json json = parse_json(line, "metrics.jsonl");
    const std::string kind = json.at("kind").string();
    kinds.push_back(kind + number(json.at("step").integer()));
    const Strings names = names_of(json);
    if (kind == "train")
      CHECK(names == Strings{"step", "kind", "loss", "lr", "grad_norm", "clip_coef", "tokens", "crc"});
    if (kind == "eval")
      CHECK(names ==
            Strings{"step", "kind", "loss", "loss_second_half", "loss_by_position", "bits_per_byte", "floor", "crc"});
    if (kind == "layers") CHECK(json.at("grad_norm").find("blocks.0.attn.qkv.weight") != nullptr);
  }
  CHECK(kinds == Strings{"run0", "layers0", "train1", "train2", "train3", "train4", "train5", "eval5"});
  CHECK(names_of(parse_json(lines_of(read_file(shop.path("run/timing.jsonl")))[0], "timing.jsonl")) ==
        Strings{"step", "seconds", "tokens_per_s", "peak_rss_mb", "crc"});

  // D10: the first update has a rate above 0. D13: the first loss is near ln V.
  const Json first = parse_json(lines_of(shop.metrics("run"))[2], "metrics.jsonl");
  CHECK(first.at("lr").real() > 0);
  const double vocab = static_cast<double>(Checkpoint(shop.checkpoint("run", "step-000005")).tokenizer().vocab_size());
  CHECK(first.at("loss").real() == Approx(std::log(vocab)).epsilon(0.05));

  // The resolved configuration trains the same run again.
  const Finished again = run_program({"train", shop.path("run/config.yaml"), "run.dir=" + shop.path("again")});
  CHECK(again.code == 0);
  CHECK(shop.metrics("again") == shop.metrics("run"));
}

TEST_CASE("cli: results on standard output, plain progress on standard error, a line every log.every steps", "[cli]") {
  const Workshop shop;
  for (const auto& environment : {std::map<std::string, std::string>{{"TERM", "xterm"}}, {{"NO_COLOR", "1"}}}) {
    const Finished done = shop.train("run", {"--force"}, {.environment = environment});
    CHECK(done.code == 0);
    CHECK_FALSE(holds(done.out + done.err, "\x1b"));
    CHECK_FALSE(holds(done.out + done.err, "\r"));
    Strings steps;
    for (const std::string& line : lines_of(done.err))
      if (line.starts_with("step ") && holds(line, " lr ")) steps.push_back(line.substr(0, line.find(" loss")));
    CHECK(steps == Strings{"step 2/5", "step 4/5", "step 5/5"});
    CHECK(holds(done.out, shop.path("run")));
    CHECK(holds(done.out, "normlab sample "));
  }
}

TEST_CASE("cli: a terminal gets a live line, without an escape sequence where NO_COLOR is set", "[cli]") {
  const Workshop shop;
  const Finished live = shop.train("a", {}, {.environment = {{"TERM", "xterm"}, {"NO_COLOR", ""}}, .terminal = true});
  CHECK(live.code == 0);
  CHECK(holds(live.err, "\r"));
  CHECK(holds(live.err, "] 5/5 loss"));
  const Finished plain = shop.train("b", {}, {.environment = {{"TERM", "xterm"}, {"NO_COLOR", "1"}}, .terminal = true});
  CHECK(plain.code == 0);
  CHECK(holds(plain.err, "] 5/5 loss"));
  CHECK_FALSE(holds(plain.err, "\x1b"));
}

TEST_CASE("cli: no locale and no language of the environment changes a byte", "[cli]") {
  const Workshop& shop = trained();
  const Strings bytes{"data.source=" + shop.write("umlaute.txt", [] {
    std::string content;
    for (int i = 0; i < 60; ++i) content += text("Z\xC3\xBCge ", i, ", \xE2\x82\xAC 0,5\n");
    return content;
  }())};
  std::string reference;
  for (const char* language : {"C", "C.UTF-8", "de_DE.UTF-8", "tr_TR.UTF-8"}) {
    CAPTURE(language);
    const Finished done =
        shop.train("language", joined(bytes, {"--force"}), {.environment = {{"LC_ALL", language}, {"LANG", language}}});
    INFO(done.err);
    REQUIRE(done.code == 0);
    const std::string all = shop.metrics("language") + read_file(shop.checkpoint("language", "step-000005"));
    if (reference.empty()) reference = all;
    CHECK((all == reference));
  }
}

TEST_CASE("cli: names with spaces, letters of any script and equals signs", "[cli]") {
  const Workshop shop;
  const std::string folder = shop.path("m\xC3\xA4rchen \xE2\x82\xAC 'a' $HOME");
  std::filesystem::create_directory(folder);
  const Surroundings there{.directory = folder};
  write_file(folder + "/\xCE\xB1 \xCE\xB2.yaml", kTinyConfig);
  const Finished done = run_program({"train", "\xCE\xB1 \xCE\xB2.yaml"}, there);
  INFO(done.err);
  CHECK(done.code == 0);
  const std::string run = "runs/\xCE\xB1 \xCE\xB2";
  CHECK(std::filesystem::exists(folder + "/" + run + "/run.json"));
  CHECK(run_program({"train", "\xCE\xB1 \xCE\xB2.yaml"}, there).code == 0);
  CHECK(std::filesystem::exists(folder + "/" + run + "-2/run.json"));
  CHECK(run_program({"sample", run, "--tokens", "3"}, there).code == 0);
  CHECK(run_program({"train", "--resume", run, "train.steps=6"}, there).code == 0);
  CHECK(run_program({"sample", "./" + run, "--prompt=a=b", "--tokens", "3"}, there).code == 2);  // '=' is not in tales
}

TEST_CASE("cli: what the system refuses is exit code 4, and who may not write here is told so", "[cli]") {
  const Workshop shop;
  if (geteuid() == 0) {
    // The superuser may write anywhere; a place where nobody can make a directory is left.
    const Finished done = run_program({"train", shop.path("tiny.yaml"), "run.dir=/proc/normlab"});
    INFO(done.err);
    CHECK(done.code != 0);
    CHECK(holds(done.err, "run.dir"));
    return;
  }
  const std::string folder = shop.path("closed");
  std::filesystem::create_directory(folder);
  std::filesystem::permissions(folder, std::filesystem::perms(0555));
  const Finished done = run_program({"train", shop.path("tiny.yaml")}, {.directory = folder});
  std::filesystem::permissions(folder, std::filesystem::perms(0755));
  CHECK(done.code == 4);
  CHECK(holds(done.err, "give another run.dir, or run where you may write"));
}

TEST_CASE("cli: readers that go away and descriptors that were never there", "[cli]") {
  const Workshop& shop = trained();
  for (const Strings& words : {Strings{"sample", shop.path("run")},
                               {"eval", shop.path("run")},
                               {"--help"},
                               {"data", "tales", "/dev/stdout", "data.size=300000"}}) {
    INFO(words[0]);
    const Finished done = run_program(words, {.deaf_output = true});
    CHECK(done.code == 0);
    CHECK(done.err.empty());
  }
  CHECK(shop.train("closed-0", {}, {.closed = {0}}).code == 0);
  // Without standard output and error the run's own files must not take their place.
  const Finished silent = shop.train("closed-012", {}, {.closed = {0, 1, 2}});
  CHECK(shop.record("closed-012").at("outcome").string() == shop.record("run").at("outcome").string());
  CHECK(shop.metrics("closed-012") == shop.metrics("run"));
  CHECK(lines_of(read_file(shop.path("closed-012/timing.jsonl"))).size() == 2);
  CHECK(silent.code == 0);
  REQUIRE(shop.train("closed-2", {}, {.closed = {2}}).code == 0);
  CHECK(shop.metrics("closed-2") == shop.metrics("run"));
}

TEST_CASE("cli: the number of threads, its source, and a warning above what may run", "[cli]") {
  if (build_facts().openmp.empty()) return;
  const Workshop shop;
  REQUIRE(shop.train("one").code == 0);
  CHECK(shop.record("one").at("threads_asked").integer() == 1);
  CHECK(shop.record("one").at("threads").integer() == 1);
  const bool one_core = allowed_threads().count == 1;
  if (!one_core) CHECK(shop.record("one").at("threads_source").string() == "OMP_NUM_THREADS=1");
  const Finished more = shop.train("more", {"train.threads=3"});
  CHECK(more.code == 0);
  CHECK(holds(more.err, "warning: train.threads asks for 3 threads where 1 may run"));
  CHECK(shop.record("more").at("threads").integer() == 3);
  CHECK(shop.record("more").at("threads_source").string() == "train.threads");
  CHECK(read_file(shop.checkpoint("one", "step-000005")) == read_file(shop.checkpoint("more", "step-000005")));
}

TEST_CASE(
    "cli: Ctrl-C, SIGTERM and the warnings of job schedulers write a checkpoint, and the run goes on as if unbroken",
    "[cli]") {
  const Workshop shop;
  for (const auto& [signal, code] : {std::pair{SIGINT, 130},
                                     {SIGTERM, 143},
                                     {SIGHUP, 128 + SIGHUP},
                                     {SIGUSR1, 128 + SIGUSR1},
                                     {SIGUSR2, 128 + SIGUSR2},
                                     {SIGXCPU, 128 + SIGXCPU}}) {
    CAPTURE(signal);
    const std::string run = text("run-", signal);
    Process process(shop.training(run, kLong));
    REQUIRE(reaches_step(shop, run, 3));
    process.send(signal);
    const Finished done = process.wait();
    INFO(done.out << done.err);
    CHECK(done.code == code);
    CHECK(holds(done.out, "normlab train --resume"));
    CHECK(shop.record(run).at("outcome").string() == "interrupted");
    const std::string last = checkpoint_path(shop.path(run));
    const std::int64_t step = Checkpoint(last).state().step, steps = step + 3;
    CHECK(step >= 3);

    const Strings length{text("--stop-at=", steps)};
    CHECK(run_program(joined({"train", "--resume", shop.path(run)}, length)).code == 0);
    CHECK(shop.train("unbroken", joined(kLong, joined(length, {"--force"}))).code == 0);
    CHECK((shop.metrics(run) == shop.metrics("unbroken")));
    CHECK((read_file(checkpoint_path(shop.path(run))) == read_file(checkpoint_path(shop.path("unbroken")))));
  }
}

TEST_CASE("cli: a second Ctrl-C does not wait for the step", "[cli]") {
  const Workshop shop;
  Process process(shop.training("run", {"train.grad_accumulation=100000", "log.layers_every=0"}));  // a step of seconds
  for (int i = 0; i < 2000 && !shop.exists("run/timing.jsonl"); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  process.send(SIGINT);
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  process.send(SIGINT);
  const Finished done = process.wait();
  CHECK(done.code == 130);
  CHECK(done.err.ends_with("\nnormlab: ended at once by a second signal; what was not saved by then is lost\n"));
  CHECK(names_in(shop.path("run/checkpoints")).empty());
}

TEST_CASE("cli: warnings that come again wait for the step, and SIGHUP that is ignored stays so", "[cli]") {
  const Workshop shop;
  void (*const before)(int) = std::signal(SIGHUP, SIG_IGN);
  Process process(shop.training("run", joined(kLong, {"train.grad_accumulation=1000"})));  // a step of some 100 ms
  std::signal(SIGHUP, before);
  REQUIRE(reaches_step(shop, "run", 1));
  process.send(SIGHUP);
  REQUIRE(reaches_step(shop, "run", 2));
  for (const int warning : {SIGUSR1, SIGXCPU, SIGXCPU, SIGTERM}) process.send(warning);
  const Finished done = process.wait();
  INFO(done.err);
  CHECK(done.code == 143);
  CHECK(shop.record("run").at("outcome").string() == "interrupted");
  CHECK(Checkpoint(checkpoint_path(shop.path("run"))).state().step >= 2);
}

TEST_CASE("cli: train.time_limit ends a run in time with 75, again and again, and the end is that of an unbroken one",
          "[cli]") {
  const Workshop shop;
  const Strings limit{"train.time_limit=0.02"};  // 1.2 seconds
  const Clock::time_point start = Clock::now();
  const Finished done = shop.train("run", joined(kLong, limit));
  CHECK(seconds_since(start) > 0.6);
  CHECK(seconds_since(start) < 1.7);
  INFO(done.out << done.err);
  CHECK(done.code == 75);
  CHECK_THAT(done.out, ContainsSubstring("by train.time_limit") && ContainsSubstring("normlab train --resume"));
  CHECK(shop.record("run").at("outcome").string() == "interrupted");
  const std::int64_t step = Checkpoint(checkpoint_path(shop.path("run"))).state().step;
  REQUIRE(step > 0);
  // A limit that is over at once still lets each process do a step.
  CHECK(run_program({"train", "--resume", shop.path("run"), "train.time_limit=1e-9"}).code == 75);
  CHECK(Checkpoint(checkpoint_path(shop.path("run"))).state().step == step + 1);
  const Strings length{text("--stop-at=", step + 3)};
  CHECK(run_program(joined({"train", "--resume", shop.path("run"), "train.time_limit=null"}, length)).code == 0);
  REQUIRE(shop.train("unbroken", joined(kLong, length)).code == 0);
  CHECK((shop.metrics("run") == shop.metrics("unbroken")));
  CHECK((read_file(checkpoint_path(shop.path("run"))) == read_file(checkpoint_path(shop.path("unbroken")))));

  // A sample that would take minutes is cut.
  const Finished cut = shop.train("cut", {"eval.every=1", "log.sample_tokens=1000000", "train.time_limit=0.01"});
  CHECK(cut.code == 75);
  CHECK(seconds_since(start) < 20);
}

TEST_CASE("cli: a run that was killed goes on from its last checkpoint", "[cli]") {
  const Workshop shop;
  const Strings settings{"train.steps=400", "checkpoint.every=1", "log.layers_every=0", "log.every=1000",
                         "eval.every=100000"};
  REQUIRE(shop.train("unbroken", joined(settings, {"--stop-at=40"})).code == 0);
  for (const int step : {1, 7, 20}) {
    CAPTURE(step);
    {
      Process process(shop.training("run", joined(settings, {"--force"})));
      REQUIRE(reaches_step(shop, "run", step + 1));
      process.send(SIGKILL);
      CHECK(process.wait().code == -SIGKILL);
    }
    const std::int64_t saved = Checkpoint(checkpoint_path(shop.path("run"))).state().step;
    CHECK(saved >= step);
    if (saved >= 40) continue;  // a machine so quick that nothing is left to compare
    const Finished done = run_program({"train", "--resume", shop.path("run"), "--stop-at=40"});
    INFO(done.err);
    CHECK(done.code == 0);
    CHECK((shop.metrics("run") == shop.metrics("unbroken")));
    CHECK((read_file(shop.checkpoint("run", "step-000040")) == read_file(shop.checkpoint("unbroken", "step-000040"))));
  }
}

TEST_CASE("cli: what --resume refuses, and that nothing is lost", "[cli]") {
  const Workshop& shop = trained();
  const std::string run = shop.path("run");
  const auto refused = [&](const Strings& words) {
    const Finished done = run_program(joined({"train", "--resume"}, words));
    CHECK(done.code == 2);
    CHECK(done.out.empty());
    return done.err;
  };
  CHECK_THAT(refused({shop.path("none")}), ContainsSubstring("there is none"));
  CHECK_THAT(refused({shop.path("")}), ContainsSubstring("holds no config.yaml"));
  CHECK_THAT(refused({run, "model.norm=rms"}), ContainsSubstring("model.norm cannot change from layer to rms"));
  CHECK_THAT(refused({run, "seed=2"}), ContainsSubstring("seed cannot change from 1337 to 2"));
  CHECK_THAT(refused({run, "train.steps=3"}), ContainsSubstring("beyond train.steps = 3"));
  CHECK_THAT(refused({run, "--stop-at=3"}), ContainsSubstring("--stop-at 3") && ContainsSubstring("is at step 5"));
  CHECK_THAT(refused({run, "train.stepz=3"}), ContainsSubstring("did you mean 'steps'?"));
  const std::string begun = shop.path("begun");
  std::filesystem::create_directories(begun + "/checkpoints");
  write_file(begun + "/config.yaml", read_file(run + "/config.yaml"));
  CHECK_THAT(refused({begun}), ContainsSubstring("there is no checkpoint"));
  CHECK(lines_of(shop.metrics("run")).size() == 8);
}

TEST_CASE("cli: --resume refuses a checkpoint of another step's name, or of another run, and deletes nothing",
          "[cli]") {
  const Workshop shop;
  const Strings settings{"checkpoint.every=1", "checkpoint.keep=2", "--force"};
  const auto refused = [&](const std::string& told) {
    const Strings names = names_in(shop.path("run/checkpoints"));
    const std::string metrics = shop.metrics("run");
    const Finished done = run_program({"train", "--resume", shop.path("run")});
    CHECK(done.code == 2);
    CHECK_THAT(done.err, ContainsSubstring(told));
    CHECK(names_in(shop.path("run/checkpoints")) == names);
    CHECK((shop.metrics("run") == metrics));
  };
  REQUIRE(shop.train("run", settings).code == 0);
  const std::string foreign = shop.checkpoint("run", "step-000009");
  std::filesystem::copy(shop.checkpoint("run", "step-000004"), foreign);
  refused(foreign + ": the name is that of step 9, and the checkpoint of step 4; name it step-000004.safetensors");
  std::filesystem::remove(foreign);

  const auto id = [&](const std::string& run) { return shop.record(run).at("run_id").string(); };
  REQUIRE(shop.train("equal", joined(settings, {"train.threads=2", "log.every=1"})).code == 0);
  CHECK(id("equal") == id("run"));
  const Strings text_file{"data.source=" + shop.write("text.txt", std::string(900, 'a') + std::string(900, 'b'))};
  for (const Strings& other : {Strings{"seed=2"}, {"model.from=" + shop.path("equal")}, text_file}) {
    CAPTURE(other);
    REQUIRE(shop.train("other", joined(settings, other)).code == 0);
    CHECK(id("other") != id("run"));
    const std::string own = shop.checkpoint("run", "step-000005"), kept = read_file(own);
    write_file(own, read_file(shop.checkpoint("other", "step-000005")));
    const std::string told = own + ": this is a checkpoint of run " + id("other") + ", and " + shop.path("run") +
                             " is run " + id("run") + ": seed, settings, data, model.from or build differ";
    refused(told);
    const std::string record = read_file(shop.path("run/run.json"));
    std::filesystem::remove(shop.path("run/run.json"));  // the log has it too
    refused(told);
    shop.write("run/run.json", record);
    write_file(own, kept);
  }
  // From other weights under the same name.
  const Strings from{"model.from=" + shop.path("other/checkpoints/step-000005.safetensors")};
  REQUIRE(shop.train("other", settings).code == 0);
  REQUIRE(shop.train("a", joined(settings, from)).code == 0);
  REQUIRE(shop.train("other", joined(settings, {"optimizer.lr=0.1"})).code == 0);
  REQUIRE(shop.train("b", joined(settings, from)).code == 0);
  CHECK(id("a") != id("b"));
}

TEST_CASE("cli: a finished run that is resumed stays as it is, also where it was moved", "[cli]") {
  const Workshop shop;
  REQUIRE(shop.train("run").code == 0);
  CHECK(shop.record("run").at("outcome").string() == "stuck");  // five steps are few
  const std::string metrics = shop.metrics("run"), last = read_file(shop.checkpoint("run", "step-000005"));
  std::filesystem::rename(shop.path("run"), shop.path("moved"));
  const Finished done = run_program({"train", "--resume", shop.path("moved")});
  CHECK(done.code == 0);
  CHECK(holds(done.err, "run directory: " + shop.path("moved")));
  CHECK_FALSE(shop.exists("run"));
  CHECK(shop.record("moved").at("outcome").string() == "stuck");
  CHECK((shop.metrics("moved") == metrics));
  CHECK((read_file(shop.checkpoint("moved", "step-000005")) == last));
}

TEST_CASE("cli: a directory that exists is kept, and --force takes only a run", "[cli]") {
  const Workshop shop;
  REQUIRE(shop.train("run").code == 0);
  const std::string before = shop.metrics("run");
  const Finished refused = shop.train("run", {"seed=2"});
  CHECK(refused.code == 2);
  CHECK_THAT(refused.err, ContainsSubstring("run.dir exists") && ContainsSubstring("--force"));
  CHECK(shop.metrics("run") == before);
  CHECK(shop.train("run", {"seed=2", "--force"}).code == 0);
  CHECK(shop.metrics("run") != before);
  const Finished inside =
      run_program({"train", "../tiny.yaml", "run.dir=.", "--force"}, {.directory = shop.path("run")});
  CHECK(inside.code == 0);
  CHECK(shop.metrics("run") == before);
  CHECK(
      run_program({"train", "../tiny.yaml", "run.dir=.", "--force", "seed=2"}, {.directory = shop.path("run")}).code ==
      0);
  // With --force a mistake that comes to light later costs nothing either.
  const std::string kept = shop.metrics("run");
  CHECK(shop.train("run", {"data.source=tails", "--force"}).code == 2);
  CHECK(shop.metrics("run") == kept);

  std::filesystem::create_directory(shop.path("papers"));
  shop.write("papers/thesis.txt", "years of work");
  const Finished forced = shop.train("papers", {"--force"});
  CHECK(forced.code == 2);
  CHECK_THAT(forced.err, ContainsSubstring("no run.json") && ContainsSubstring("give another run.dir"));
  CHECK(read_file(shop.path("papers/thesis.txt")) == "years of work");
  const Finished file = shop.train("tiny.yaml", {"--force"});
  CHECK(file.code == 2);
  CHECK(read_file(shop.path("tiny.yaml")) == kTinyConfig);
  CHECK(shop.train("tiny.yaml/run").code != 0);
}

TEST_CASE("cli: a full disk ends the run with exit code 4 and leaves the older checkpoint", "[cli]") {
  const Workshop shop;
  // The first run tells how long a checkpoint is; the next one may not write as much.
  REQUIRE(shop.train("run", {"--stop-at=2"}).code == 0);
  const std::string older = read_file(shop.checkpoint("run", "step-000002"));
  const Finished full = run_program({"train", "--resume", shop.path("run")}, {.file_limit = older.size() - 100});
  INFO(full.err);
  CHECK(full.code == 4);
  CHECK(holds(full.err, "cannot write"));
  CHECK(holds(full.err, "free some space or write to another disk"));
  CHECK((read_file(shop.checkpoint("run", "step-000002")) == older));
  for (const std::string& name : names_in(shop.path("run/checkpoints"))) CHECK_FALSE(holds(name, "tmp"));
  CHECK(run_program({"train", "--resume", shop.path("run")}).code == 0);
}

TEST_CASE("cli: resuming takes the run's own text, wherever it lies by now, and no other", "[cli]") {
  const Workshop shop;
  std::string content;
  for (int i = 0; i < 100; ++i) content += "the cat sat on the mat\n";
  std::filesystem::create_directories(shop.path("project/texts"));
  shop.write("project/texts/a.txt", content);
  shop.write("project/texts/b.txt", "the mat sat on the cat, the cat on the mat\n");
  const Surroundings project{.directory = shop.path("project")};
  const auto begin = [&](const std::string& name, const Strings& more) {
    return run_program(joined({"train", "../tiny.yaml", "run.dir=runs/" + name, "data.source=texts/a.txt",
                               "data.validation=texts/b.txt"},
                              more),
                       project)
        .code;
  };
  REQUIRE(begin("whole", {}) == 0);
  REQUIRE(begin("run", {"--stop-at=2"}) == 0);
  const auto resume = [&](const std::string& run, const Strings& more = {}) {
    return run_program(joined({"train", "--resume", shop.path(run)}, more));
  };

  shop.write("project/texts/a.txt", content + "the cat\n");
  const std::string metrics = shop.metrics("project/runs/run");
  const Finished other = run_program({"train", "--resume", "runs/run"}, project);
  CHECK(other.code == 2);
  CHECK_THAT(other.err,
             ContainsSubstring("data.source: texts/a.txt: this is another text than the run's: its hash is ") &&
                 ContainsSubstring("name it with data.source=PATH") && ContainsSubstring("model.from=runs/run"));
  shop.write("project/texts/a.txt", "THE DOG");  // characters that the tokenizer does not know
  const Finished unknown = run_program({"train", "--resume", "runs/run"}, project);
  CHECK(unknown.code == 2);
  CHECK_THAT(unknown.err, ContainsSubstring("name it with data.source=PATH"));
  CHECK((shop.metrics("project/runs/run") == metrics));

  // A text that was moved is named; a wrong one, or a built-in corpus, is refused.
  shop.write("elsewhere.txt", content);
  std::filesystem::copy(shop.path("project/runs/run"), shop.path("named"), std::filesystem::copy_options::recursive);
  const Strings validation{"data.validation=" + shop.path("project/texts/b.txt")};
  CHECK(resume("named", joined(validation, {"data.source=" + shop.path("project/texts/b.txt")})).code == 2);
  CHECK_THAT(resume("named", {"data.source=markov"}).err, ContainsSubstring("data.source cannot change"));
  CHECK(resume("named", joined(validation, {"data.source=" + shop.path("elsewhere.txt")})).code == 0);
  CHECK((shop.metrics("named") == shop.metrics("project/runs/whole")));
  CHECK(resume("named").code == 0);

  // A folder that was moved as a whole, from another folder, and again.
  shop.write("project/texts/a.txt", content);
  std::filesystem::rename(shop.path("project"), shop.path("moved"));
  CHECK(resume("moved/runs/run", {"--stop-at=3"}).code == 0);
  std::filesystem::create_directory(shop.path("deep"));
  std::filesystem::rename(shop.path("moved"), shop.path("deep/project"));
  CHECK(resume("deep/project/runs/run").code == 0);
  const std::string last = "/checkpoints/step-000005.safetensors";
  for (const std::string& file : {std::string("/metrics.jsonl"), last})
    CHECK((read_file(shop.path("deep/project/runs/run" + file)) ==
           read_file(shop.path("deep/project/runs/whole" + file))));
}

TEST_CASE("cli: a config.yaml that was lost is written anew from the checkpoint", "[cli]") {
  const Workshop shop;
  REQUIRE(shop.train("whole", {"train.threads=1"}).code == 0);
  REQUIRE(shop.train("run", {"train.threads=1", "--stop-at=2"}).code == 0);
  std::filesystem::remove(shop.path("run/config.yaml"));
  const Finished done = run_program({"train", "--resume", shop.path("run"), "log.sample_tokens=0"});
  CHECK(done.code == 0);
  CHECK_THAT(done.err, ContainsSubstring(shop.path("run/config.yaml") + " was lost, and is written again from " +
                                         shop.checkpoint("run", "step-000002") +
                                         ", train.threads from run.json; log.*, checkpoint.* and train.time_limit have "
                                         "their defaults where they are not given again"));
  CHECK((shop.metrics("run") == shop.metrics("whole")));
  CHECK((read_file(shop.checkpoint("run", "step-000005")) == read_file(shop.checkpoint("whole", "step-000005"))));
  // All but what lies outside of checkpoints.
  Strings differ;
  for (const config::Difference& each : config::differences(load_run_config(shop.path("run/config.yaml"), {}).config,
                                                            load_run_config(shop.path("whole/config.yaml"), {}).config))
    differ.push_back(each.path);
  CHECK(differ == Strings{"run.dir", "log.every"});
}

TEST_CASE("cli: a value that is not finite, and a loss that grew, have their own exit codes and outcomes", "[cli]") {
  const Workshop shop;
  const Strings wild{"optimizer.name=sgd", "optimizer.grad_clip=0", "schedule.warmup_steps=0"};
  const Finished lost = shop.train("lost", joined(wild, {"optimizer.lr=1e30", "train.steps=50"}));
  INFO(lost.out << lost.err);
  CHECK(lost.code == 3);
  CHECK_THAT(lost.out + lost.err, ContainsSubstring("not finite") && ContainsSubstring("step ") &&
                                      ContainsSubstring("the gradient norm of the step before") &&
                                      ContainsSubstring("begin at training tokens "));
  CHECK(shop.record("lost").at("outcome").string() == "nonfinite");
  const std::int64_t step = shop.record("lost").at("step").integer();
  CHECK(Checkpoint(checkpoint_path(shop.path("lost"))).state().step == step);
  // The step that failed has its line; on resuming it goes, and comes again.
  const std::string metrics = shop.metrics("lost");
  const Json line = parse_json(lines_of(metrics).back(), "metrics.jsonl");
  CHECK(line.at("kind").string() == "train");
  CHECK(line.at("step").integer() == step + 1);
  CHECK((line.at("loss").is_null() || line.at("grad_norm").is_null()));
  CHECK(line.at("clip_coef").is_null());
  CHECK(line.at("tokens").integer() == 64);
  CHECK_FALSE(line.at("finite").boolean());
  CHECK(run_program({"train", "--resume", shop.path("lost")}).code == 3);
  CHECK((shop.metrics("lost") == metrics));
  for (const Strings& reader :
       {Strings{"report", shop.path("lost"), "--text"}, {"diff", shop.path("lost"), shop.path("lost")}})
    CHECK(run_program(reader).code == 0);

  const Finished grew =
      shop.train("grew", {"optimizer.name=sgd", "optimizer.lr=10", "schedule.warmup_steps=0", "train.steps=60"});
  INFO(grew.out << grew.err);
  CHECK(grew.code == 1);
  CHECK(shop.record("grew").at("outcome").string() == "diverged");
}

TEST_CASE("cli: a start far from ln V and an implausible rate are warned of", "[cli]") {
  const Workshop shop;
  const Finished far = shop.train("far", {"model.init=xavier", "model.embed_std=1"});
  CHECK(far.code == 0);
  CHECK_THAT(far.err, ContainsSubstring("warning") && ContainsSubstring("ln"));
  const Finished rate = shop.train("rate", {"optimizer.lr=2", "train.steps=1"});
  CHECK_THAT(rate.err, ContainsSubstring("warning: optimizer.lr = 2"));
}

TEST_CASE("cli: running averages that have hardly moved are warned of, once, in training and eval", "[cli]") {
  const Workshop shop;
  const auto times = [](const std::string& in, const std::string& what) {
    int count = 0;
    for (std::size_t at = in.find(what); at != std::string::npos; at = in.find(what, at + 1)) ++count;
    return count;
  };
  // 5 steps, 2 micro-batches, 2 shards: 20 updates; 0.9^20 = 0.12
  const std::string few = "have had 20 updates, fewer than 3 / 0.1 (model.norm_momentum): 12 %";
  const Finished young =
      shop.train("young", {"model.norm=batch", "train.grad_accumulation=2", "train.shards=2", "eval.every=1"});
  INFO(young.err);
  CHECK(times(young.err, "warning: the running averages of model.norm batch") == 1);
  CHECK_THAT(young.err, ContainsSubstring("each in 2 shards of 2, each with batch statistics of its own"));
  CHECK_THAT(run_program({"eval", shop.path("young")}).err, ContainsSubstring(few));
  CHECK(run_program({"eval", shop.path("young"), "eval.statistics=batch"}).err == "");
  CHECK(times(shop.train("own", {"model.norm=batch", "eval.statistics=batch"}).err, "running averages of") == 0);
  CHECK(times(shop.train("power", {"model.norm=power"}).err, "the running averages of") == 0);
  // 3 / 0.6 = 5 updates; synchronised shards update them once
  CHECK(times(shop.train("moved", {"model.norm=batch", "model.norm_momentum=0.6"}).err, "the running averages of") ==
        0);
  CHECK(times(shop.train("synced", {"model.norm=batch", "model.norm_momentum=0.5", "train.shards=2",
                                    "model.norm_sync=true", "train.grad_accumulation=1"})
                  .err,
              "have had 5 updates") == 1);
  const Finished parts = shop.train("parts", {"model.norm=batch", "train.grad_accumulation=2"});
  CHECK_THAT(parts.err, ContainsSubstring("a step: 2 micro-batches of 4 rows, each with batch statistics of its own"));
  const Finished shared =
      shop.train("shared", {"model.norm=batch", "train.grad_accumulation=2", "train.shards=2", "model.norm_sync=true"});
  CHECK_THAT(shared.err, ContainsSubstring("shards of 2, which share batch statistics within a micro-batch"));
}

TEST_CASE("cli: parameters that no gradient reaches are named, once, in training", "[cli]") {
  const Workshop shop;
  // LayerNorm of one channel gives its bias whatever comes in: nothing but the last norm's bias and the head learns,
  // and rounding, which the compiler's options decide, moves a few others.
  const Strings one{"model.n_heads=1", "model.d_model=1", "model.d_ff=1"};
  const Finished longer = shop.train("longer", joined(one, {"train.steps=25"}));
  INFO(longer.err);
  CHECK_THAT(longer.err, ContainsSubstring("warning: on none of the 20 steps so far did a gradient reach "));
  CHECK_THAT(longer.err, ContainsSubstring("parameter tensors, which do not learn: "));
  CHECK_THAT(longer.err, ContainsSubstring("blocks.0.attn"));
  CHECK(longer.err.find("so far did") == longer.err.rfind("so far did"));
  const Finished shorter = shop.train("shorter", one);
  CHECK_THAT(shorter.err, ContainsSubstring("warning: on none of the 5 steps so far did a gradient reach "));
  CHECK(shop.train("sound", {"model.norm=batch"}).err.find("did a gradient reach") == std::string::npos);
}
