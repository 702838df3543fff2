// Checkpoints cut short or with one bit flipped, full disks, and directories that may not be written.
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "normlab/base/check.h"
#include "torture.h"

using namespace normlab;

namespace {

constexpr uid_t kNobody = 65534;

// The smallest run there is: one layer of one channel over a text of two letters.
const Strings kSmallest{"model.d_model=1",    "model.n_heads=1",    "model.d_ff=1",       "model.context_length=1",
                        "train.steps=4",      "train.batch_size=1", "checkpoint.every=1", "eval.windows=1",
                        "log.layers_every=0", "log.every=1"};

// Refused as input, by name, and with advice.
bool is_refused(const std::string& path) {
  try {
    const Checkpoint checkpoint(path);
  } catch (const UserError& error) {
    const std::string_view message = error.what();
    return message.starts_with(path) && message.find("take ") != std::string_view::npos;
  }
  return false;
}

// Every `stride`th length and every `stride`th bit of a checkpoint; those that were not refused are told.
void check_damage(std::size_t stride) {
  const Workshop shop;
  const Strings data{"data.source=" + shop.write("text.txt", std::string(40, 'a') + std::string(40, 'b'))};
  const Finished done = shop.train("run", joined(kSmallest, data));
  INFO(done.err);
  REQUIRE(done.code == 0);
  const std::string older = read_file(shop.checkpoint("run", "step-000003"));
  const std::string path = shop.checkpoint("run", "step-000004"), whole = read_file(path);
  std::size_t lengths = 0, bits = 0;
  for (std::size_t length = 0; length < whole.size(); length += stride, ++lengths) {
    CAPTURE(length);
    if (truncate(path.c_str(), 0) != 0) FAIL("cannot cut " << path);
    const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
    const ssize_t written = pwrite(file, whole.data(), length, 0);
    close(file);
    REQUIRE(written == static_cast<ssize_t>(length));
    if (!is_refused(path)) FAIL("not refused");
  }
  write_file(path, whole);
  const int file = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  for (std::size_t bit = 0; bit < 8 * whole.size(); bit += stride, ++bits) {
    CAPTURE(bit);
    const char flipped = static_cast<char>(whole[bit / 8] ^ (1 << bit % 8));
    REQUIRE(pwrite(file, &flipped, 1, static_cast<off_t>(bit / 8)) == 1);
    if (!is_refused(path)) FAIL("not refused");
    REQUIRE(pwrite(file, &whole[bit / 8], 1, static_cast<off_t>(bit / 8)) == 1);
  }
  close(file);
  CHECK_FALSE(is_refused(path));
  tell("a checkpoint of ", whole.size(), " bytes: ", lengths, " lengths and ", bits, " flipped bits, each refused");

  // The program says how to go on, and then does.
  write_file(path, whole.substr(0, whole.size() - 1));
  const Finished refused = run_program({"train", "--resume", shop.path("run")});
  CHECK(refused.code == 2);
  CHECK(holds(refused.err, path));
  CHECK(holds(refused.err, "To go on from step 3 instead, delete " + path));
  CHECK((read_file(shop.checkpoint("run", "step-000003")) == older));
  std::filesystem::remove(path);
  CHECK(run_program({"train", "--resume", shop.path("run")}).code == 0);
  CHECK((read_file(path) == whole));
}

// A run of five steps, two of them done; and the same, undisturbed.
struct Halved {
  Workshop shop;
  Strings settings{"checkpoint.every=1", "log.layers_every=1"};
  Halved() {
    REQUIRE(shop.train("whole", settings).code == 0);
    REQUIRE(shop.train("half", joined(settings, {"--stop-at=2"})).code == 0);
  }
  void copy_to(const std::string& directory) const {
    std::filesystem::remove_all(directory);
    std::filesystem::copy(shop.path("half"), directory, std::filesystem::copy_options::recursive);
  }
  // Ends with exit code 4, a message that says what to do, and the checkpoints whole; true if it met a limit.
  static bool check_refusal(const Finished& done, const std::string& run, const std::string& advice) {
    INFO(done.out << done.err);
    if (done.code == 0) return false;
    CHECK(done.code == 4);
    CHECK(holds(done.err, "cannot write " + run));
    CHECK(holds(done.err, advice));
    CHECK(half_written(run) == 0);
    for (const std::string& name : names_in(run + "/checkpoints"))
      CHECK(Checkpoint(run + "/checkpoints/" + name).state().step >= 1);
    return true;
  }
  // As if nothing had been.
  void check_end(const std::string& run) const {
    const Finished done = run_program({"train", "--resume", run});
    INFO(done.err);
    REQUIRE(done.code == 0);
    CHECK((read_file(run + "/metrics.jsonl") == shop.metrics("whole")));
    for (const char* name : {"/checkpoints/step-000005.safetensors", "/checkpoints/best.safetensors"})
      CHECK((read_file(run + name) == read_file(shop.path("whole") + name)));
  }
};

const char* const kDiskAdvice = "free some space or write to another disk";

void check_file_limits(int count) {
  const Halved half;
  const std::string run = half.shop.path("run");
  const rlim_t least = 4096;  // the program's own messages are files here, too
  const rlim_t largest = std::filesystem::file_size(half.shop.checkpoint("whole", "step-000005"));
  int refused = 0;
  for (int i = 0; i < count; ++i) {
    half.copy_to(run);
    const rlim_t limit = least + (largest - least) * static_cast<rlim_t>(i) / static_cast<rlim_t>(count);
    CAPTURE(limit);
    refused += half.check_refusal(run_program({"train", "--resume", run}, {.file_limit = limit}), run, kDiskAdvice);
    half.check_end(run);
  }
  CHECK(refused == count);
  tell(count, " limits on the size of a file, up to ", largest, " bytes: each told, each run went on");
}

// A file system of `size` bytes in memory, or read-only ones; gone afterwards.
class Mounted {
 public:
  explicit Mounted(std::string directory) : directory_(std::move(directory)) {
    std::filesystem::create_directories(directory_);
  }
  ~Mounted() {
    if (mounted_) umount2(directory_.c_str(), MNT_DETACH);
  }
  Mounted(const Mounted&) = delete;
  Mounted& operator=(const Mounted&) = delete;
  bool memory(std::size_t size) {
    const unsigned long flags = mounted_ ? MS_REMOUNT : 0;
    mounted_ = mount("normlab", directory_.c_str(), "tmpfs", flags, text("size=", size).c_str()) == 0 || mounted_;
    return mounted_;
  }
  bool read_only(bool on) {
    return mount(nullptr, directory_.c_str(), nullptr, MS_REMOUNT | static_cast<unsigned long>(on ? MS_RDONLY : 0),
                 nullptr) == 0;
  }

 private:
  std::string directory_;
  bool mounted_ = false;
};

}  // namespace

TEST_CASE("a damaged checkpoint is refused with advice, and the run goes on from the one before", "[run]") {
  check_damage(389);
}

TEST_CASE("torture: a checkpoint cut at every length, and with every bit flipped", "[run][.torture]") {
  check_damage(1);
}

TEST_CASE("a limit on the size of files ends a run with advice, and costs it nothing", "[run]") {
  check_file_limits(3);
}

TEST_CASE("torture: limits on the size of files", "[run][.torture]") { check_file_limits(40); }

TEST_CASE("torture: a disk that is full, then larger", "[run][.torture]") {
  const Halved half;
  const std::string disk = half.shop.path("disk"), run = disk + "/run";
  Mounted mounted(disk);
  if (!mounted.memory(1 << 20)) {
    tell_skipped("no file system in memory can be mounted here (", std::strerror(errno), ")");
    return;
  }
  std::size_t used = 0;
  half.copy_to(run);
  for (const auto& entry : std::filesystem::recursive_directory_iterator(disk))
    used += entry.is_regular_file() ? (entry.file_size() + 4095) / 4096 * 4096 : 0;
  int refused = 0, sizes = 0;
  for (std::size_t more = 4096; more <= 40 * 4096; more += 4096, ++sizes) {
    CAPTURE(used, more);
    REQUIRE(mounted.memory(1 << 20));
    half.copy_to(run);
    REQUIRE(mounted.memory(used + more));
    refused += half.check_refusal(run_program({"train", "--resume", run}), run, kDiskAdvice);
    REQUIRE(mounted.memory(1 << 20));
    half.check_end(run);
  }
  CHECK(refused > 0);
  tell(sizes, " sizes of a disk in memory: ", refused,
       " runs found it full and said so, and went on once it was larger");
}

TEST_CASE("torture: a directory that is made read-only during a run", "[run][.torture]") {
  const Workshop shop;
  chmod(shop.path("").c_str(), 0755);
  std::filesystem::create_directory(shop.path("open"));
  chmod(shop.path("open").c_str(), 0777);
  const bool may_drop = geteuid() == 0 && run_program({"--version"}, {.user = kNobody}).code == 0;
  if (geteuid() == 0 && !may_drop) {
    tell_skipped("the superuser may write anywhere, and no other user can run ", NORMLAB_PROGRAM);
    return;
  }
  Surroundings around;
  if (may_drop) around.user = kNobody;
  const Strings settings{"train.steps=1000000", "log.layers_every=0", "log.every=1000000", "checkpoint.every=1"};
  Process process(shop.training("open/run", settings), around);
  while (newest_step(shop, "open/run") < 3 && !process.has_ended()) usleep(2000);
  chmod(shop.path("open/run/checkpoints").c_str(), 0555);
  const Finished done = process.wait();
  chmod(shop.path("open/run/checkpoints").c_str(), 0777);
  INFO(done.out << done.err);
  CHECK(done.code == 4);
  CHECK(holds(done.err, shop.path("open/run/checkpoints")));
  CHECK(holds(done.err, "change the permissions or choose another path"));
  const std::int64_t step = newest_step(shop, "open/run"), end = step + 5;
  CHECK(step >= 3);
  const Strings stop{text("--stop-at=", end)};
  CHECK(run_program(joined({"train", "--resume", shop.path("open/run")}, stop)).code == 0);
  CHECK(shop.train("whole", joined(settings, stop)).code == 0);
  check_equal_runs(shop, "open/run", "whole");
  tell("a directory of checkpoints made read-only at step ", step, ": told, and the run went on to equal bytes");
}

TEST_CASE("torture: a file system that is made read-only", "[run][.torture]") {
  const Halved half;
  const std::string disk = half.shop.path("disk"), run = disk + "/run";
  Mounted mounted(disk);
  if (!mounted.memory(1 << 22)) {
    tell_skipped("no file system can be mounted here (", std::strerror(errno), ")");
    return;
  }
  half.copy_to(run);
  REQUIRE(mounted.read_only(true));
  CHECK(half.check_refusal(run_program({"train", "--resume", run}), run, "change the permissions"));
  const Finished anew = half.shop.train("disk/other");
  CHECK(anew.code == 4);
  CHECK(holds(anew.err, "give another run.dir, or run where you may write"));
  REQUIRE(mounted.read_only(false));
  half.check_end(run);
  tell("a read-only file system: told, and the run went on once it could");
}
