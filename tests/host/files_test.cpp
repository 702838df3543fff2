// Files: read whole, replaced whole or not at all, logs line by line.
#include "normlab/host/files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "catch.h"
#include "normlab/base/check.h"
#include "normlab/host/lock.h"
#include "normlab/host/process_name.h"
#include "torture.h"

using namespace normlab;
namespace fs = std::filesystem;

namespace {

// An empty directory for one test.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("normlab_files_" + std::to_string(::getpid()));
  Folder() {
    fs::remove_all(path);
    fs::create_directory(path);
  }
  ~Folder() { fs::remove_all(path); }
  std::string operator/(const char* name) const { return (path / name).string(); }
  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(path)) names.push_back(entry.path().filename().string());
    return names;
  }
};

// While it lives, no file of this process grows beyond `bytes`: writing stops in the middle as on a full disk.
struct FullDisk {
  rlimit before{};
  void (*handler)(int);
  explicit FullDisk(rlim_t bytes) : handler(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before);
    const rlimit limit{bytes, before.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    ::setrlimit(RLIMIT_FSIZE, &before);
    std::signal(SIGXFSZ, handler);
  }
};

std::string content(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("a file is read back as it was written", "[host]") {
  const Folder folder;
  const std::string path = folder / "a";
  const std::string bytes("\0\r\n\xFF z", 6);
  write_file(path, bytes);
  CHECK(content(path) == bytes);
  CHECK(read_file(path) == bytes);
  const std::string_view parts[] = {"one", "", "two"};
  write_file(path, parts);
  CHECK(read_file(path) == "onetwo");
  write_file(path, "");
  CHECK(read_file(path).empty());
  CHECK(folder.names() == std::vector<std::string>{"a"});
  CHECK(!read_file("/proc/self/status").empty());  // its size is given as 0
}

TEST_CASE("a write that fails leaves the old file and no other", "[host]") {
  const Folder folder;
  const std::string path = folder / "a";
  write_file(path, "old");
  {
    const FullDisk full(1000);
    CHECK_THROWS_AS(write_file(path, std::string(5000, 'x')), SystemError);
    CHECK_THROWS_WITH(write_file(path, std::string(5000, 'x')),
                      ContainsSubstring("cannot write " + path) && ContainsSubstring("free some space"));
    CHECK_THROWS_AS(write_file(folder / "new", std::string(5000, 'x')), SystemError);
  }
  CHECK(content(path) == "old");
  CHECK(folder.names() == std::vector<std::string>{"a"});
}

TEST_CASE("temporary files that crashes left behind are removed, and those of living writers are not", "[host]") {
  const Folder folder;
  const auto begin = [](const std::string& path) { std::ofstream(path) << std::string(1000, 'x'); };
  const std::string living = temporary_name(folder / "a"), old = temporary_name(folder / "a"),
                    another = left_over_name(folder / "b"), abroad = (folder / "a.00000000-1-2.normlab-tmp");
  CHECK(living != old);
  for (const std::string& path : {left_over_name(folder / "a"), living, old, another, abroad}) begin(path);
  fs::create_directory(left_over_name(folder / "a"));
  fs::last_write_time(old, fs::file_time_type::clock::now() - std::chrono::hours(25));
  write_file(folder / "a", "new");
  CHECK(content(folder / "a") == "new");
  std::vector<std::string> kept{folder / "a", living, another, abroad}, names = folder.names();
  for (std::string& path : kept) path = fs::path(path).filename().string();
  std::ranges::sort(kept);
  std::ranges::sort(names);
  CHECK(names == kept);
  // A name as long as the file system takes leaves room for the temporary one.
  const std::string longest = folder / std::string(255, 'n').c_str();
  write_file(longest, "long");
  CHECK(content(longest) == "long");
}

TEST_CASE("a link planted where a temporary file might be is not written through", "[host]") {
  const Folder folder;
  write_file(folder / "mine", "mine");
  fs::create_symlink("mine", folder / "a.normlab-tmp");
  write_file(folder / "a", "new");
  CHECK(content(folder / "mine") == "mine");
  CHECK(content(folder / "a") == "new");
}

TEST_CASE("several processes that write one file: each whole, none refused", "[host]") {
  const Folder folder;
  const std::string path = folder / "a";
  std::vector<pid_t> writers;
  for (char letter = 'a'; letter < 'e'; ++letter) {
    writers.push_back(fork());
    if (writers.back() != 0) continue;
    try {
      for (int i = 0; i < 25; ++i) write_file(path, std::string(200000, letter));
    } catch (const std::exception&) {
      _exit(1);
    }
    _exit(0);
  }
  for (const pid_t writer : writers) {
    int status = -1;
    waitpid(writer, &status, 0);
    CHECK(status == 0);
  }
  const std::string left = content(path);
  CHECK(left == std::string(200000, left.at(0)));
  CHECK(folder.names() == std::vector<std::string>{"a"});
}

TEST_CASE("a directory is written whole or not at all", "[host]") {
  const Folder folder;
  const std::string path = folder / "new", there = folder / "there";
  const auto fill = [](const std::string& directory) {
    write_file(directory + "/one", "1");
    write_file(directory + "/two", "2");
  };
  CHECK_THROWS_AS(write_directory(path,
                                  [&](const std::string& directory) {
                                    fill(directory);
                                    throw SystemError("full");
                                  }),
                  SystemError);
  CHECK(folder.names().empty());
  fs::create_directory(left_over_name(path));
  write_file(left_over_name(path) + "-as-a-file", "x");  // no temporary one
  write_directory(path + "/", fill);
  CHECK(content(path + "/one") + content(path + "/two") == "12");
  CHECK(folder.names().size() == 2);
  fs::create_directory(there);
  write_file(there + "/mine", "mine");
  write_directory(there, fill);
  CHECK(content(there + "/one") + content(there + "/two") + content(there + "/mine") == "12mine");
  CHECK(names_in(there).size() == 3);
}

TEST_CASE("links in a circle are the user's error", "[host]") {
  const Folder folder;
  const std::string loop = folder / "loop";
  fs::create_symlink("loop", loop);
  CHECK_THROWS_AS(read_file(loop), UserError);
  CHECK_THROWS_WITH(write_file(loop, ""), ContainsSubstring("its symbolic links lead in a circle; check the path"));
  CHECK_THROWS_AS(write_file(loop + "/a", ""), UserError);
  CHECK_THROWS_AS(require_new_file("export", loop), UserError);
  CHECK_THROWS_AS(LineWriter(loop, LineWriter::Start::append), UserError);
  CHECK_THROWS_AS(make_directories(loop + "/a", "give another"), UserError);
}

TEST_CASE("a directory's lock: one at a time; the file that stands in for it is heeded, and taken over from the dead",
          "[host]") {
  const Folder folder;
  const std::string directory = folder.path.string(), file = folder / "normlab.lock";
  const auto lock = [&] { DirectoryLock(directory, "test works", "wait", DirectoryLock::Reach::process); };
  {
    const DirectoryLock held(directory, "test works", "wait", DirectoryLock::Reach::process);
    CHECK(held.warning().empty());
    CHECK(DirectoryLock::is_held(directory));
    CHECK_THROWS_WITH(lock(), directory + ": another test works in this directory; wait");
  }
  CHECK_FALSE(DirectoryLock::is_held(directory));
  CHECK(folder.names().empty());
  const auto holder_of = [](const std::string& name) { return name.substr(0, name.rfind('-', name.rfind('.'))); };
  const std::string temporary = fs::path(left_over_name(folder / "x")).filename().string().substr(2);
  const std::string dead = holder_of(temporary), living = process_name();
  for (const std::string& holder : {living, std::string("00000000-1"), std::string()}) {
    write_file(file, holder + " somewhere\n");
    CHECK(DirectoryLock::is_held(directory));
    CHECK_THROWS_WITH(lock(), ContainsSubstring(file + " says so: ") && ContainsSubstring("somewhere") &&
                                  ContainsSubstring("delete the file"));
  }
  write_file(file, dead + " here\n");
  CHECK_FALSE(DirectoryLock::is_held(directory));
  lock();
  CHECK(folder.names().empty());
  write_file(file, dead + " here\n");
  write_file(file + ".takeover", living + " here\n");
  CHECK_THROWS_WITH(lock(), ContainsSubstring(file + ".takeover: a process takes over the lock"));
}

TEST_CASE("writing through a symbolic link keeps the link", "[host]") {
  const Folder folder;
  write_file(folder / "target", "old");
  fs::create_symlink("target", folder / "link");
  write_file(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(content(folder / "target") == "new");
}

TEST_CASE("a pipe is written to, not replaced", "[host]") {
  const Folder folder;
  const std::string path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK);
  write_file(path, "bytes");
  char bytes[6] = "";
  CHECK(::read(reader, bytes, 5) == 5);
  ::close(reader);
  CHECK(std::string(bytes) == "bytes");
  CHECK(fs::is_fifo(path));
  CHECK(folder.names() == std::vector<std::string>{"pipe"});
}

TEST_CASE("a path that cannot be is the user's error", "[host]") {
  const Folder folder;
  const std::string missing = folder / "no/a", directory = folder.path.string();
  CHECK_THROWS_WITH(read_file(missing), "cannot read " + missing + ": there is no such file; check the path");
  CHECK_THROWS_AS(read_file(missing), UserError);
  CHECK_THROWS_WITH(read_file(directory), "cannot read " + directory + ": it is a directory; name a file");
  CHECK_THROWS_WITH(write_file(missing, ""), ContainsSubstring("its directory does not exist; create it"));
  CHECK_THROWS_AS(write_file(missing, ""), UserError);
  CHECK_THROWS_WITH(write_file(directory, ""), ContainsSubstring("it is a directory"));
  CHECK_THROWS_AS(write_file(folder / std::string(300, 'n').c_str(), ""), UserError);
  CHECK_THROWS_AS(LineWriter(missing, LineWriter::Start::append), UserError);
  if (::geteuid() != 0) {  // the superuser may do anything
    write_file(folder / "a", "x");
    ::chmod((folder / "a").c_str(), 0);
    CHECK_THROWS_AS(read_file(folder / "a"), SystemError);
  }
}

TEST_CASE("a log grows by whole lines, also across a restart and a full disk", "[host]") {
  const Folder folder;
  const std::string path = folder / "log";
  {
    LineWriter log(path, LineWriter::Start::empty);
    log.line("one");
    CHECK(content(path) == "one\n");  // before the log is closed
    log.line("two");
    log.flush();
  }
  {
    LineWriter log(path, LineWriter::Start::append);
    log.line("three");
    const FullDisk full(20);
    CHECK_THROWS_WITH(log.line("a line too long for it"),
                      ContainsSubstring("cannot write " + path) && ContainsSubstring("free some space"));
  }
  CHECK(content(path) == "one\ntwo\nthree\n");
  LineWriter log(path, LineWriter::Start::empty);
  CHECK(content(path).empty());
}

TEST_CASE("a file is cut back, and never made longer", "[host]") {
  const Folder folder;
  const std::string path = folder / "log";
  write_file(path, "one\ntwo\n");
  truncate_file(path, 4);
  CHECK(content(path) == "one\n");
  CHECK_THROWS_WITH(truncate_file(path, 5), ContainsSubstring("holds 4 bytes, but 5 were written"));
  CHECK(content(path) == "one\n");
  CHECK_THROWS_AS(truncate_file(folder / "none", 0), UserError);
}
