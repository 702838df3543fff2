// Faults of single system calls, injected by strace: each is told or overcome, and costs nothing.
#include <sys/syscall.h>
#include <sys/wait.h>

#include <map>

#include "normlab/base/check.h"
#include "torture.h"

using namespace normlab;

namespace {

#ifdef SYS_rename
const std::string kRename = "rename";
#else
const std::string kRename = "renameat";
#endif

// A command under strace; standard error, and the trace where it is asked for.
class Traced {
 public:
  explicit Traced(const Workshop& shop) : shop_(shop) {}

  bool is_possible() const {
    if (shell("strace -qq -o /dev/null true >/dev/null 2>&1") == 0) return true;
    tell_skipped("strace is missing, or may not trace here; it makes system calls fail");
    return false;
  }
  // inject: "fsync:error=EIO:when=3"
  Finished run(const Strings& words, const std::string& inject) const {
    return strace("-o /dev/null -e inject=" + inject, words);
  }
  // Which calls of each kind concern what is below a path: the first is 1.
  std::map<std::string, std::vector<int>> calls(const Strings& words, const std::string& below) const {
    const Finished done = strace("-y -o '" + shop_.path("trace") + "'", words);
    INFO(done.err);
    REQUIRE(done.code == 0);
    std::map<std::string, int> counts;
    std::map<std::string, std::vector<int>> out;
    for (const std::string& line : lines_of(read_file(shop_.path("trace")))) {
      const std::string name = line.substr(0, line.find('('));
      const int index = ++counts[name];
      const bool begins = name == "execve" || line.find(shop_.path("err")) != std::string::npos;
      if (!begins && holds(line, below)) out[name].push_back(index);
    }
    return out;
  }

 private:
  static int shell(const std::string& command) {
    const int status = std::system(command.c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }
  Finished strace(const std::string& options, const Strings& words) const {
    std::string command = "OMP_NUM_THREADS=1 strace -qq " + options + " '" NORMLAB_PROGRAM "'";
    for (const std::string& word : words) command += " '" + word + "'";
    Finished done;
    done.code = shell("exec >/dev/null 2>'" + shop_.path("err") + "'; " + command);
    done.err = read_file(shop_.path("err"));
    return done;
  }

  const Workshop& shop_;
};

// Up to `most` of them.
std::vector<int> sample(std::vector<int> from, std::size_t most, Random& random) {
  while (from.size() > most) from.erase(from.begin() + static_cast<std::ptrdiff_t>(random.below(from.size())));
  return from;
}

// A signal may interrupt these (POSIX), and it costs nothing.
bool may_be_interrupted(const std::string& name) {
  for (const char* each : {"read", "write", "fsync", "ftruncate", "flock"})
    if (name == each) return true;
  return false;
}

// strace does not close where it makes close fail, so that a lock that was tried stays with the process itself.
bool is_known(const Finished& done, const std::string& fault) {
  const bool locks_itself_out = fault.starts_with("close:") && holds(done.err, "another process trains");
  return done.code == 0 || done.code == 4 || (done.code == 2 && locks_itself_out);
}

}  // namespace

TEST_CASE("torture: any system call on files that fails in a run is told, and the run goes on", "[run][.torture]") {
  const Workshop shop;
  const Traced traced(shop);
  if (!traced.is_possible()) return;
  const Strings settings{"checkpoint.every=1", "log.layers_every=1", "log.report=false", "checkpoint.keep=2"};
  REQUIRE(shop.train("whole", settings).code == 0);
  REQUIRE(shop.train("half", joined(settings, {"--stop-at=2"})).code == 0);
  const std::string run = shop.path("run");
  const auto begin = [&] {
    std::filesystem::remove_all(run);
    std::filesystem::copy(shop.path("half"), run, std::filesystem::copy_options::recursive);
  };
  const Strings resume{"train", "--resume", run};
  begin();
  const auto calls = traced.calls(resume, shop.path(""));
  Random random(torture_seed(), "faults");
  std::size_t refused = 0, overcome = 0;
  std::string names;
  for (const auto& [name, all] : calls) {
    names += " " + name;
    for (const int index : sample(all, 6, random))
      for (const char* error : {"EIO", may_be_interrupted(name) ? "EINTR" : name == kRename ? "ENOSPC" : ""}) {
        if (*error == '\0') continue;
        const std::string fault = text(name, ":error=", error, ":when=", index);
        begin();
        const Finished done = traced.run(resume, fault);
        INFO(fault << " ended " << done.code << ": " << done.err);
        CHECK(is_known(done, fault));
        if (std::string_view(error) == "EINTR") CHECK(done.code == 0);
        if (done.code == 4) CHECK(holds(done.err, "normlab: "));
        CHECK_FALSE(holds(done.err, "a defect"));
        (done.code == 0 ? overcome : refused) += 1;
        newest_step(shop, "run");  // each checkpoint is whole
        parse_json(read_file(run + "/run.json"), "run.json");
        if (done.code != 0) {
          const Finished again = run_program(resume);
          INFO(again.err);
          CHECK(again.code == 0);
        }
        check_equal_runs(shop, "run", "whole");
      }
  }
  CHECK(refused > 0);
  for (const char* name : {"close", "fsync", "openat", "read", "write"}) CHECK(calls.contains(name));
  CHECK(calls.contains(kRename));
  tell("faults in a run:", names, ": ", refused, " told and mended by --resume, ", overcome, " without effect");
}

TEST_CASE("any system call that fails while a file is replaced: the old one, whole, or a success with the new one",
          "[run]") {
  const Workshop& shop = trained();
  const Traced traced(shop);
  if (!traced.is_possible()) return;
  const std::string report = shop.path("run/report.html"), old(1 << 20, 'x');
  const Strings words{"report", shop.path("run")};
  const auto calls = traced.calls(words, report);
  for (const char* name : {"close", "fsync", "openat", "write"}) CHECK(calls.contains(name));
  CHECK(calls.contains(kRename));
  const std::string whole = read_file(report);
  const Strings before = names_in(shop.path("run"));
  for (const auto& [name, all] : calls)
    for (const int index : all)
      for (const char* error : {"EIO", "ENOSPC", "EROFS", "EINTR"}) {
        const std::string fault = text(name, ":error=", error, ":when=", index);
        write_file(report, old);
        const Finished done = traced.run(words, fault);
        INFO(fault << " ended " << done.code << ": " << done.err);
        CHECK(is_known(done, fault));
        CHECK((read_file(report) == (done.code == 0 ? whole : old)));
        CHECK(names_in(shop.path("run")) == before);
      }
  write_file(report, whole);
}

TEST_CASE("any system call that fails while a file is made: no file or a whole one, and none replaced", "[run]") {
  const Workshop& shop = trained();
  const Traced traced(shop);
  if (!traced.is_possible()) return;
  const std::string table = shop.path("table.csv"), run = shop.path("run");
  const Strings words{"export", run, "--to", "csv", table};
  const auto calls = traced.calls(words, shop.path(""));
  const std::string whole = read_file(table);
  const std::string old = "old";
  std::filesystem::remove(table);
  Random random(torture_seed(), "faults");
  for (const auto& [name, all] : calls)
    for (const int index : sample(all, 3, random)) {
      const std::string fault = text(name, ":error=EIO:when=", index);
      const Finished done = traced.run(words, fault);
      INFO(fault << " ended " << done.code << ": " << done.err);
      CHECK(is_known(done, fault));
      if (shop.exists("table.csv")) CHECK((read_file(table) == whole));
      if (done.code == 0) CHECK(shop.exists("table.csv"));
      const Strings all_names = names_in(shop.path(""));
      const auto is_temporary = [](const std::string& each) { return !target_of_temporary(each).empty(); };
      if (!name.starts_with("unlink")) CHECK(std::ranges::none_of(all_names, is_temporary));
      // What exists is kept even if the system does not say that it does.
      write_file(table, old);
      const Finished refused = traced.run(words, fault);
      INFO(refused.err);
      CHECK(refused.code != 0);
      CHECK(read_file(table) == old);
      std::filesystem::remove(table);
    }
}

TEST_CASE("an export that is killed leaves no folder, and its leftovers go with the next", "[run]") {
  const Workshop& shop = trained();
  const Traced traced(shop);
  if (!traced.is_possible()) return;
  const std::string folder = shop.path("folder");
  const Strings words{"export", shop.path("run"), "--to", "pytorch", folder};
  const std::size_t renames = traced.calls(words, folder).at(kRename).size();
  CHECK(renames == 4);  // three files and the folder
  std::filesystem::remove_all(folder);
  const Strings before = names_in(shop.path(""));
  for (std::size_t i = 1; i <= renames; ++i) {
    const Finished killed = traced.run(words, text(kRename, ":signal=KILL:when=", i));
    CHECK(killed.code != 0);
    CHECK_FALSE(shop.exists("folder"));
    CHECK(names_in(shop.path("")).size() == before.size() + 1);
  }
  CHECK(run_program(words).code == 0);
  CHECK(names_in(folder) == Strings{"model.py", "model.safetensors", "tokenizer.json"});
  CHECK(names_in(shop.path("")).size() == before.size() + 1);
  CHECK(run_program(words).code == 2);
}

TEST_CASE("a file system without locks: a file stands in, it is said, and the second process is refused", "[run]") {
  const Workshop shop;
  const Traced traced(shop);
  if (!traced.is_possible()) return;
  const Strings few{"log.report=false", "--force"};
  for (const char* error : {"ENOLCK", "EOPNOTSUPP", "ENOSYS", "EBADF"}) {
    CAPTURE(error);
    const std::string none = text("flock:error=", error);
    const Finished alone = traced.run(shop.training("run", few), none);
    INFO(alone.err);
    CHECK(alone.code == 0);
    CHECK_THAT(alone.err, ContainsSubstring("cannot be locked (") &&
                              ContainsSubstring(shop.path("run/normlab.lock") + " stands in for the lock"));
    CHECK_FALSE(shop.exists("run/normlab.lock"));
  }
  const std::string none = "flock:error=ENOLCK";
  // Killed while it trains, it leaves the file; the next takes it over.
  CHECK(traced.run(shop.training("run", few), text(none, " -e inject=", kRename, ":signal=KILL:when=4")).code != 0);
  CHECK(shop.exists("run/normlab.lock"));
  CHECK(traced.run(shop.training("run", few), none).code == 0);
  CHECK_FALSE(shop.exists("run/normlab.lock"));

  shop.write("run/normlab.lock", "00000000-1 elsewhere\n");
  const std::string before = shop.metrics("run");
  for (const Strings& words : {shop.training("run", few), Strings{"train", "--resume", shop.path("run")}}) {
    for (const Finished& refused : {traced.run(words, none), run_program(words)}) {
      CHECK(refused.code == 2);
      CHECK_THAT(refused.err, ContainsSubstring(shop.path("run/normlab.lock") + " says so: 00000000-1 elsewhere; if " +
                                                "that process has ended, delete the file"));
    }
  }
  CHECK(shop.metrics("run") == before);

  shop.write("s.yaml", "base: tiny.yaml\nseeds: [1]\n");
  const Finished sweep = traced.run({"sweep", shop.path("s.yaml"), "run.dir=" + shop.path("s")}, none);
  INFO(sweep.err);
  CHECK(sweep.code == 0);
  CHECK_THAT(sweep.err, ContainsSubstring(shop.path("s/normlab.lock") + " stands in for the lock"));
}

TEST_CASE("a run whose end could not be written is told as interrupted by every command", "[run]") {
  const Workshop shop;
  const Strings settings{"checkpoint.every=1", "log.report=false"};
  REQUIRE(shop.train("whole", settings).code == 0);
  {
    Process process(shop.training("run", joined(settings, {"train.steps=1000000", "--force"})));
    while (newest_step(shop, "run") < 3 && !process.has_ended()) usleep(2000);
    CHECK(holds(run_program({"report", shop.path("run"), "--text"}).out, "run: running"));
    process.send(SIGKILL);
    process.wait();
  }
  CHECK(shop.record("run").at("outcome").string() == "running");
  const std::string run = shop.path("run"), said = run + ": the run was interrupted: run.json says running, but";
  CHECK(holds(run_program({"report", run, "--text"}).out, "run: interrupted"));
  CHECK(holds(run_program({"eval", run}).err, said));
  CHECK_FALSE(holds(run_program({"eval", shop.path("whole")}).err, "interrupted"));
  const Finished resumed = run_program({"train", "--resume", run, text("--stop-at=", newest_step(shop, "run") + 1)});
  CHECK(resumed.code == 0);
  CHECK(holds(resumed.err, said));
  CHECK_FALSE(holds(run_program({"train", "--resume", shop.path("whole")}).err, "interrupted"));
}
