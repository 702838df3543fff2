// Surroundings that other programs meet too: threads, languages, terminals, closed descriptors, quotas, closed doors.
#include <sys/stat.h>
#include <sys/wait.h>

#include <cctype>
#include <cstring>

#include "normlab/host/build_facts.h"
#include "torture.h"

using namespace normlab;

namespace {

constexpr uid_t kNobody = 65534;

std::string everything(const Workshop& shop, const std::string& run) {
  return shop.metrics(run) + read_file(shop.checkpoint(run, "step-000005"));
}

// German numbers: a comma between digits.
bool has_comma_in_number(const std::string& content) {
  for (std::size_t i = 1; i + 1 < content.size(); ++i)
    if (content[i] == ',' && std::isdigit(static_cast<unsigned char>(content[i - 1])) &&
        std::isdigit(static_cast<unsigned char>(content[i + 1])))
      return true;
  return false;
}

// A command of the shell; its exit code.
int shell(const std::string& command) {
  const int status = std::system(command.c_str());
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

TEST_CASE("train.threads from 1 to 16: equal bytes, and as many threads as asked", "[run]") {
  if (build_facts().openmp.empty()) return;
  const Workshop shop;
  // Large enough that each kernel hands out parts.
  const Strings settings{"model.d_model=64", "model.context_length=32", "log.layers_every=2", "train.steps=5",
                         "--force"};
  std::string first;
  for (int threads = 1; threads <= 16; ++threads) {
    CAPTURE(threads);
    const Finished done = shop.train("run", joined(settings, {text("train.threads=", threads)}));
    INFO(done.err);
    REQUIRE(done.code == 0);
    CHECK(shop.record("run").at("threads_asked").integer() == threads);
    CHECK(shop.record("run").at("threads").integer() == threads);
    if (first.empty()) first = everything(shop, "run");
    CHECK((everything(shop, "run") == first));
  }
}

TEST_CASE("OMP_NUM_THREADS and OMP_THREAD_LIMIT below what is asked: said, and the same bytes", "[run]") {
  if (build_facts().openmp.empty()) return;
  const Workshop shop;
  const auto train = [&](const std::map<std::string, std::string>& environment, const Strings& words) {
    const Finished done = shop.train("run", joined(words, {"--force"}), {.environment = environment});
    INFO(done.err);
    REQUIRE(done.code == 0);
    CHECK((everything(shop, "run") == everything(trained(), "run")));
    return done.err;
  };
  const std::string limited = train({{"OMP_THREAD_LIMIT", "2"}, {"OMP_NUM_THREADS", "8"}}, {"train.threads=4"});
  CHECK_THAT(limited, ContainsSubstring("warning: 2 of the 4 threads of train.threads run"));
  CHECK(shop.record("run").at("threads").integer() == 2);
  CHECK(shop.record("run").at("threads_asked").integer() == 4);
  train({{"OMP_THREAD_LIMIT", "1"}, {"OMP_NUM_THREADS", "8"}}, {});
  CHECK(shop.record("run").at("threads").integer() == 1);
  CHECK(shop.record("run").at("threads_asked").integer() == 1);
  const std::string fewer = train({{"OMP_NUM_THREADS", "1"}}, {"train.threads=2"});
  CHECK_THAT(fewer, ContainsSubstring("train.threads asks for 2 threads where 1 may run"));
  CHECK(shop.record("run").at("threads").integer() == 2);
  train({{"OMP_DYNAMIC", "true"}, {"OMP_SCHEDULE", "dynamic,1"}, {"OMP_PROC_BIND", "true"}}, {"train.threads=2"});
  CHECK(shop.record("run").at("threads").integer() == 2);
  train({{"OMP_MAX_ACTIVE_LEVELS", "0"}}, {"train.threads=3"});
  CHECK(shop.record("run").at("threads").integer() == 1);
}

TEST_CASE("the same run in other surroundings", "[run]") {
  const Workshop shop;
  const std::string locales = shop.path("locales");
  std::filesystem::create_directory(locales);
  const bool german = shell("localedef -i de_DE -f UTF-8 '" + locales + "/de_DE.UTF-8' >/dev/null 2>&1") == 0;
  struct Case {
    const char* name;
    Surroundings around;
  };
  const std::vector<Case> cases{
      {"as it is", {}},
      {"a German locale",
       {.environment = {{"LC_ALL", "de_DE.UTF-8"}, {"LANG", "de_DE.UTF-8"}, {german ? "LOCPATH" : "X", locales}}}},
      {"no environment: no HOME, no PATH, no TERM", {.bare = true}},
      {"a HOME that is not there", {.environment = {{"HOME", "/nowhere"}}}},
      {"TERM=dumb on a terminal", {.environment = {{"TERM", "dumb"}}, .terminal = true}},
      {"standard input closed", {.closed = {0}}},
      {"standard output closed", {.closed = {1}}},
      {"standard error closed", {.closed = {2}}},
      {"all three closed", {.closed = {0, 1, 2}}},
      {"an output that nobody reads", {.deaf_output = true}},
  };
  for (const Case& each : cases) {
    CAPTURE(each.name);
    const Finished done = shop.train("run", {"--force"}, each.around);
    INFO(done.out << done.err);
    CHECK(done.code == 0);
    CHECK((everything(shop, "run") == everything(trained(), "run")));
    CHECK_FALSE(has_comma_in_number(done.out + done.err));
    CHECK_FALSE(holds(done.err, "\x1b"));
    if (each.around.terminal) CHECK_FALSE(holds(done.err, "\r["));  // no live line
    CHECK(lines_of(done.err).size() < 25);
  }
}

TEST_CASE("paths with spaces and letters of any script, for configuration, data, run and result", "[run]") {
  const Workshop shop;
  const std::string folder = shop.path("M\xC3\xA4rchen und \xE5\xAF\x93\xE8\xA9\xB1 $x");
  std::filesystem::create_directory(folder);
  write_file(folder + "/k\xC3\xBCrz er.yaml", kTinyConfig);
  std::string story;
  for (int i = 0; i < 80; ++i) story += text("Es war einmal ", i, " Gei\xC3\x9Flein. ");
  write_file(folder + "/Te xt\xC3\xA4.txt", story);
  const std::string run = folder + "/L\xC3\xA4uf e";
  const Finished done = run_program(
      {"train", folder + "/k\xC3\xBCrz er.yaml", "data.source=" + folder + "/Te xt\xC3\xA4.txt", "run.dir=" + run});
  INFO(done.err);
  REQUIRE(done.code == 0);
  CHECK(run_program({"train", "--resume", run, "train.steps=6"}).code == 0);
  CHECK(run_program({"eval", run}).code == 0);
  CHECK(run_program({"report", run}).code == 0);
  CHECK(run_program({"train", run + "/config.yaml", "--force"}).code == 0);
}

TEST_CASE("a reader that leaves early ends nothing but the output: no crash, no storm, the same exit code", "[run]") {
  const Workshop& shop = trained();
  const std::string code = shop.path("code"), err = shop.path("err");
  const auto head = [&](const Strings& words, const char* reader) {
    std::string command = "{ '" NORMLAB_PROGRAM "'";
    for (const std::string& word : words) command += " '" + word + "'";
    shell(command + " 2>'" + err + "'; echo $? >'" + code + "'; } | " + reader + " >/dev/null");
    CHECK(lines_of(read_file(err)).size() < 25);
    return read_file(code);
  };
  CHECK(head({"train", "--help-config"}, "head -1") == "0\n");
  CHECK(head({"data", "tales", "/dev/stdout"}, "head -1") == "0\n");
  CHECK(head({"sample", shop.path("run"), "--tokens", "1000000"}, "head -c 10") == "0\n");
  const Strings wild{"optimizer.name=sgd", "optimizer.grad_clip=0", "schedule.warmup_steps=0"};
  CHECK(head(shop.training("wild", joined(wild, {"--force", "optimizer.lr=1e30", "train.steps=50"})), "true") == "3\n");
  CHECK(head(shop.training("grew", {"--force", "optimizer.name=sgd", "optimizer.lr=10", "schedule.warmup_steps=0",
                                    "train.steps=60"}),
             "true") == "1\n");
  std::string unknown = read_file(NORMLAB_SOURCE_DIR "/tests/reference/dyt-pre.safetensors");
  unknown.replace(unknown.find("dyt"), 3, "dyx");
  CHECK(head({"verify", shop.write("dyx.safetensors", unknown)}, "true") == "2\n");
  // A device that is full is an error.
  CHECK(shell("'" NORMLAB_PROGRAM "' --help >/dev/full 2>'" + err + "'") == 4);
  CHECK(holds(read_file(err), "standard output cannot be written"));
}

TEST_CASE("a current directory that may not be written", "[run]") {
  const Workshop shop;
  Surroundings around{.directory = shop.path("closed")};
  std::filesystem::create_directory(shop.path("closed"));
  std::filesystem::create_directory(shop.path("open"));
  chmod(shop.path("").c_str(), 0755);
  chmod(shop.path("closed").c_str(), 0555);
  chmod(shop.path("open").c_str(), 0777);
  if (geteuid() == 0) {
    around.user = kNobody;
    if (run_program({"--version"}, around).code != 0) {
      tell_skipped("the superuser may write anywhere, and no other user can run ", NORMLAB_PROGRAM);
      return;
    }
  }
  const Finished refused = run_program({"train", shop.path("tiny.yaml")}, around);
  CHECK(refused.code == 4);
  CHECK_THAT(refused.err, ContainsSubstring("give another run.dir, or run where you may write"));
  const Finished done = run_program({"train", shop.path("tiny.yaml"), "run.dir=" + shop.path("open/run")}, around);
  INFO(done.err);
  CHECK(done.code == 0);
  CHECK(run_program({"sample", shop.path("open/run"), "--tokens", "3"}, around).code == 0);
}

TEST_CASE("a control group's quota of half a core: one thread, and why", "[run]") {
  if (build_facts().openmp.empty()) return;
  const Workshop& shop = trained();
  // The first hierarchy in which a group can be made: version 2, or the cpu controller of version 1.
  for (const auto& [root, file, value] :
       {std::tuple<std::string, const char*, const char*>{"/sys/fs/cgroup", "cpu.max", "50000 100000"},
        {"/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "50000"}}) {
    const std::string group = text(root, "/normlab-test-", static_cast<std::int64_t>(getpid()));
    std::error_code error;
    if (!std::filesystem::exists(root + "/cgroup.procs") || !std::filesystem::create_directory(group, error)) continue;
    const auto into = [](const std::string& path, const std::string& content) {
      std::FILE* out = std::fopen(path.c_str(), "w");
      if (!out) return false;
      const bool written = std::fputs(content.c_str(), out) >= 0;
      return std::fclose(out) == 0 && written;
    };
    const bool limited = into(text(group, '/', file), value);
    if (limited) {
      const int code = shell(text("echo $$ >'", group, "/cgroup.procs' && unset OMP_NUM_THREADS && '", NORMLAB_PROGRAM,
                                  "' train '", shop.path("tiny.yaml"), "' run.dir='", shop.path("quota"),
                                  "' --force >'", shop.path("out"), "' 2>&1"));
      INFO(read_file(shop.path("out")));
      CHECK(code == 0);
      CHECK(shop.record("quota").at("threads").integer() == 1);
      CHECK_THAT(shop.record("quota").at("threads_source").string(), ContainsSubstring("quota of 0.5 cores"));
      CHECK((everything(shop, "quota") == everything(shop, "run")));
    }
    std::filesystem::remove(group, error);
    if (limited) return;
  }
  tell_skipped("no control group can be made here; machine_test.cpp reads made-up ones");
}

TEST_CASE("a system that gives no second thread: refused, and one thread trains", "[run]") {
  const Workshop shop;
  chmod(shop.path("").c_str(), 0777);
  Surroundings around{.process_limit = 1};
  if (geteuid() == 0) {
    around.user = kNobody;
    if (run_program({"--version"}, around).code != 0) {
      tell_skipped("the superuser has no limit on processes, and no other user can run ", NORMLAB_PROGRAM);
      return;
    }
  }
  const Finished refused = run_program(shop.training("run", {"train.threads=2"}), around);
  INFO(refused.err);
  CHECK(refused.code == 4);
  CHECK_THAT(refused.err, ContainsSubstring("the system gives this process no 2 threads; ask for fewer"));
  CHECK(run_program(shop.training("run", {"train.threads=1"}), around).code == 0);
}

TEST_CASE("without /proc a sweep finds the program, by its path and by PATH", "[run]") {
  const Workshop shop;
  shop.write("sweep.yaml", "base: tiny.yaml\ngrid:\n  optimizer.lr: [0.001]\n");
  const std::string hide = "unshare -m sh -c 'mount -t tmpfs none /proc && test ! -e /proc/self";
  if (shell(hide + "' 2>/dev/null") != 0) {
    tell_skipped("/proc cannot be hidden here");
    return;
  }
  const std::string folder = std::filesystem::path(NORMLAB_PROGRAM).parent_path().string();
  int runs = 0;
  for (const std::string& called : {std::string(NORMLAB_PROGRAM), text("PATH=", folder, ":$PATH normlab")}) {
    const std::string out = text(shop.path("sweep-"), ++runs);
    const int code = shell(text(hide, " && cd ", shop.path(""), " && ", called,
                                " sweep sweep.yaml --seeds 1 run.dir=", out, "' >'", shop.path("said"), "' 2>&1"));
    INFO(read_file(shop.path("said")));
    CHECK(code == 0);
    CHECK(lines_of(read_file(out + "/results.jsonl")).size() == 1);
  }
}
