// Files: read whole, replaced whole or not at all, logs line by line.
#include "normlab/base/files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "catch.h"
#include "normlab/base/check.h"

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

TEST_CASE("a file is read back as it was written") {
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

TEST_CASE("a write that fails leaves the old file and no other") {
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

TEST_CASE("a temporary file that a crash left behind does no harm") {
  const Folder folder;
  write_file(folder / "a.normlab-tmp", std::string(1000, 'x'));
  write_file(folder / "a", "new");
  CHECK(content(folder / "a") == "new");
  CHECK(folder.names() == std::vector<std::string>{"a"});
}

TEST_CASE("writing through a symbolic link keeps the link") {
  const Folder folder;
  write_file(folder / "target", "old");
  fs::create_symlink("target", folder / "link");
  write_file(folder / "link", "new");
  CHECK(fs::is_symlink(folder / "link"));
  CHECK(content(folder / "target") == "new");
}

TEST_CASE("a pipe is written to, not replaced") {
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

TEST_CASE("a path that cannot be is the user's error") {
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

TEST_CASE("a log grows by whole lines, also across a restart and a full disk") {
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

TEST_CASE("a file is cut back, and never made longer") {
  const Folder folder;
  const std::string path = folder / "log";
  write_file(path, "one\ntwo\n");
  truncate_file(path, 4);
  CHECK(content(path) == "one\n");
  CHECK_THROWS_WITH(truncate_file(path, 5), ContainsSubstring("holds 4 bytes, but 5 were written"));
  CHECK(content(path) == "one\n");
  CHECK_THROWS_AS(truncate_file(folder / "none", 0), UserError);
}
