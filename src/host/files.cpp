// Whole files in and out, and lines added to a log, by POSIX calls: their error numbers tell what to do.
#include "normlab/host/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "normlab/base/check.h"
#include "normlab/host/process_name.h"

namespace normlab {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTemporary = ".normlab-tmp";

// A call that a signal may interrupt.
template <class Call>
auto repeated(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result;
}

// Opening a pipe waits for its other end, for ever if nobody has that. What is below /dev or /proc the shell or the
// user chose: /dev/stdin, /dev/fd/63 of a process substitution. Where the system cannot tell, opening meets the error.
void refuse_special(std::string_view action, const std::string& path) {
  struct stat about {};
  if (path.starts_with("/dev/") || path.starts_with("/proc/") || ::stat(path.c_str(), &about) != 0) return;
  const bool regular = S_ISREG(about.st_mode) || S_ISDIR(about.st_mode);
  check<UserError>(regular, "cannot ", action, " ", path, ": it is a ",
                   S_ISFIFO(about.st_mode)   ? "pipe"
                   : S_ISSOCK(about.st_mode) ? "socket"
                                             : "device",
                   "; name a regular file");
}

// An open file that closes itself.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) {
    file_ = repeated([&] { return ::open(path.c_str(), flags | O_CLOEXEC, 0666); });
  }
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);  // it was read, or written and flushed, or is given up
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int number() const { return file_; }
  int release() { return std::exchange(file_, -1); }

 private:
  int file_ = -1;
};

int write_parts(int file, std::span<const std::string_view> parts) {
  for (const std::string_view part : parts)
    if (const int error = write_all(file, part)) return error;
  return 0;
}

// A file system that cannot flush says EINVAL or the like: no error there. EROFS is one: the disk failed meanwhile.
int flush_to_disk(int file) {
#ifdef F_FULLFSYNC
  if (::fcntl(file, F_FULLFSYNC) == 0) return 0;  // macOS: fsync leaves the data in the disk's own cache
#endif
  if (repeated([&] { return ::fsync(file); }) == 0 || errno == EINVAL || errno == ENOTSUP) return 0;
  return errno;
}

// False where there is nothing.
bool get_facts(std::string_view action, const std::string& path, struct stat& about) {
  if (repeated([&] { return ::stat(path.c_str(), &about); }) == 0) return true;
  if (errno != ENOENT && errno != ENOTDIR) file_failed(action, path, errno);
  return false;
}

std::string directory_of(const std::string& path) {
  const std::string directory = fs::path(path).parent_path().string();
  return directory.empty() ? "." : directory;
}

// A file or a directory that takes the place of another, whole, or is gone.
class Temporary {
 public:
  Temporary(const std::string& given, const std::string& target)
      : given_(given),
        target_(target),
        directory_(directory_of(target), O_RDONLY | O_DIRECTORY),
        path_(temporary_name(target)) {
    // It may be writable and not readable; then it is not flushed.
    if (directory_.number() < 0 && errno != EACCES) file_failed("write", given, errno);
    remove_left_over(directory_of(target), fs::path(target).filename().string());
  }
  ~Temporary() {
    std::error_code ignored;  // if it stays, the next process removes it
    fs::remove_all(path_, ignored);
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  const std::string& path() const { return path_; }

  // The new name is on the disk once the directory is.
  void take_place() {
    if (std::rename(path_.c_str(), target_.c_str()) != 0) file_failed("write", given_, errno);
    flush_directory();
  }
  void flush_directory() const {
    const int error = directory_.number() < 0 ? 0 : flush_to_disk(directory_.number());
    check<SystemError>(error == 0, given_, ": is written, but its directory cannot be flushed to the disk (",
                       std::generic_category().message(error), "): a crash of the machine may undo it; check the disk");
  }

 private:
  std::string given_, target_;
  Descriptor directory_;
  std::string path_;
};

}  // namespace

void file_failed(std::string_view action, const std::string& path, int error) {
  const std::string what = text("cannot ", action, " ", path, ": ");
  switch (error) {
    case ENOENT:
    case ENOTDIR:
      if (action == "read") throw UserError(text(what, "there is no such file; check the path"));
      throw MissingDirectory(text(what, "its directory does not exist; create it or choose another path"));
    case EISDIR:
      throw UserError(text(what, "it is a directory; name a file"));
    case ENAMETOOLONG:
      throw UserError(text(what, "the name is too long for the file system; choose a shorter one"));
    case ELOOP:
      throw UserError(text(what, "its symbolic links lead in a circle; check the path"));
    case EEXIST:
    case ENOTEMPTY:
      throw UserError(text(what, "another process made it meanwhile, and it is kept; choose another path"));
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      throw SystemError(text(what, std::generic_category().message(error),
                             "; free some space or write to another disk, then repeat"));
    case EACCES:
    case EPERM:
    case EROFS:
      throw SystemError(
          text(what, std::generic_category().message(error), "; change the permissions or choose another path"));
    default:
      throw SystemError(text(what, std::generic_category().message(error), "; check the disk"));
  }
}

int write_all(int file, std::string_view bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // Linux writes less than 2 GiB at a time
  while (!bytes.empty()) {
    const ssize_t n = repeated([&] { return ::write(file, bytes.data(), std::min(bytes.size(), kMost)); });
    if (n <= 0) return n < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

// Interrupted, it is closed all the same (Linux), or nobody can know (POSIX).
int close_file(int file) { return ::close(file) == 0 || errno == EINTR ? 0 : errno; }

bool file_exists(const std::string& path) {
  struct stat about {};
  return get_facts("read", path, about);
}

void write_into(const std::string& directory, const std::function<void()>& act) {
  try {
    act();
  } catch (const MissingDirectory& error) {
    throw SystemError(text(directory,
                           ": this directory, or a part of it, was removed or moved while the program wrote "
                           "to it; move it back and go on from it, or start again with another run.dir (",
                           error.what(), ")"));
  }
}

std::string temporary_name(const std::string& path) {
  constexpr std::size_t kMost = 190;  // bytes of a name; file systems take 255
  // Another than those of processes that had this number before.
  static std::atomic<std::int64_t> count{std::chrono::system_clock::now().time_since_epoch().count()};
  const fs::path whole(path);
  const std::string name = whole.filename().string().substr(0, kMost);
  return (whole.parent_path() / text(name, '.', process_name(), '-', count++, kTemporary)).string();
}

namespace {

// "run.json" and "5f3a9c01-4711" of run.json.5f3a9c01-4711-0.normlab-tmp.
std::pair<std::string, std::string> target_and_process(std::string_view name) {
  if (!name.ends_with(kTemporary)) return {};
  name.remove_suffix(kTemporary.size());
  const std::size_t dot = name.rfind('.'), dash = name.rfind('-');
  if (dot == std::string_view::npos || dash == std::string_view::npos || dash < dot) return {};
  return {std::string(name.substr(0, dot)), std::string(name.substr(dot + 1, dash - dot - 1))};
}

}  // namespace

std::string target_of_temporary(std::string_view name) { return target_and_process(name).first; }

void remove_left_over(const std::string& directory, const std::string& target) {
  std::error_code error;  // what stays is met again the next time
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    const auto [name, process] = target_and_process(entry->path().filename().string());
    if (name.empty() || (!target.empty() && !target.starts_with(name))) continue;
    std::error_code gone;
    const auto written = fs::last_write_time(entry->path(), gone);
    if (has_ended(process) || (!gone && written < fs::file_time_type::clock::now() - std::chrono::hours(24)))
      fs::remove_all(entry->path(), gone);
  }
}

std::string read_file(const std::string& path, std::size_t most) {
  refuse_special("read", path);
  const Descriptor file(path, O_RDONLY);
  struct stat about {};
  if (file.number() < 0 || ::fstat(file.number(), &about) != 0) file_failed("read", path, errno);
  if (S_ISDIR(about.st_mode)) file_failed("read", path, EISDIR);
  // One byte more than the size, so that the end of a file that did not grow is met without another allocation.
  const std::size_t size = S_ISREG(about.st_mode) ? static_cast<std::size_t>(about.st_size) + 1 : 1 << 16;
  std::string bytes(std::min(size, most), '\0');
  std::size_t length = 0;
  for (;;) {
    check<DataError>(S_ISREG(about.st_mode) || length < kMostOfStream, path,
                     ": no end within 1 GiB; give a file that has one");
    if (length == bytes.size()) bytes.resize(bytes.size() * 2);
    const std::size_t room = std::min(bytes.size() - length, most - length);
    const ssize_t n = repeated([&] { return ::read(file.number(), bytes.data() + length, room); });
    if (n < 0) file_failed("read", path, errno);
    if (n == 0) break;
    length += static_cast<std::size_t>(n);
  }
  bytes.resize(length);
  return bytes;
}

void write_file(const std::string& path, std::span<const std::string_view> parts) {
  struct stat about {};
  const bool exists = get_facts("write", path, about);
  if (exists && S_ISDIR(about.st_mode)) file_failed("write", path, EISDIR);
  if (exists && !S_ISREG(about.st_mode)) {
    const Descriptor file(path, O_WRONLY | O_NONBLOCK);
    check<UserError>(file.number() >= 0 || errno != ENXIO, "cannot write ", path,
                     ": it is a pipe or a socket that nobody reads; name a file");
    if (file.number() < 0 || ::fcntl(file.number(), F_SETFL, 0) != 0) file_failed("write", path, errno);
    if (const int error = write_parts(file.number(), parts)) file_failed("write", path, error);
    return;
  }
  // A symbolic link stays one: the file that it points to is replaced.
  std::error_code unknown;
  const std::string target = exists ? fs::canonical(path, unknown).string() : path;
  if (unknown) file_failed("write", path, unknown.value());
  Temporary temporary(path, target);
  Descriptor file(temporary.path(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW);
  if (file.number() < 0) file_failed("write", path, errno);
  int error = write_parts(file.number(), parts);
  if (!error) error = flush_to_disk(file.number());
  if (!error) error = close_file(file.release());  // a network disk may report a full disk only here
  if (error) file_failed("write", path, error);
  temporary.take_place();
}

void write_file(const std::string& path, std::string_view bytes) { write_file(path, std::span(&bytes, 1)); }

void write_directory(const std::string& path, const std::function<void(const std::string&)>& fill) {
  const bool exists = file_exists(path);
  fs::path target = fs::absolute(path).lexically_normal();
  if (!target.has_filename()) target = target.parent_path();
  // One that exists may be where a disk is mounted, or somebody's current directory: it stays.
  Temporary temporary(path, exists ? target / "export" : target);
  if (::mkdir(temporary.path().c_str(), 0777) != 0) file_failed("write", path, errno);
  fill(temporary.path());
  if (!exists) return temporary.take_place();
  for (const fs::directory_entry& entry : fs::directory_iterator(temporary.path()))
    fs::rename(entry.path(), target / entry.path().filename());
  temporary.flush_directory();
}

void require_new_file(std::string_view command, const std::string& path) {
  struct stat link {
  }, about{};
  if (::lstat(path.c_str(), &link) != 0) {
    if (errno != ENOENT && errno != ENOTDIR) file_failed("write", path, errno);
    return;
  }
  const bool dangling = !get_facts("write", path, about);
  if (!dangling && S_ISDIR(about.st_mode)) file_failed("write", path, EISDIR);
  check<UserError>(path == kStandardOutput || (!dangling && !S_ISREG(about.st_mode)), command, ": ", path,
                   dangling ? " is a link to nothing" : " exists",
                   ", and is kept; name another file, or delete it first");
}

void make_directories(const std::string& path, std::string_view advice) {
  std::error_code error;
  fs::create_directories(path, error);
  check<UserError>(error != std::errc::not_a_directory, path, ": the directory cannot be made below a file; ", advice);
  check<UserError>(error != std::errc::filename_too_long, path,
                   ": the directory cannot be made: the name is too long for the file system; ", advice);
  check<UserError>(error != std::errc::too_many_symbolic_link_levels, path,
                   ": the directory cannot be made: the symbolic links in its path lead in a circle; ", advice);
  check<SystemError>(!error, path, ": the directory cannot be made: ", error.message(), "; ", advice,
                     ", or run where you may write");
}

void truncate_file(const std::string& path, std::int64_t size) {
  refuse_special("write", path);
  const Descriptor file(path, O_WRONLY);
  struct stat about {};
  if (file.number() < 0) file_failed(errno == ENOENT ? "read" : "write", path, errno);
  if (::fstat(file.number(), &about) != 0) file_failed("read", path, errno);
  check<DataError>(about.st_size >= size, path, ": holds ", about.st_size, " bytes, but ", size,
                   " were written to it; the file was changed from outside");
  if (repeated([&] { return ::ftruncate(file.number(), size); }) != 0) file_failed("write", path, errno);
  if (const int error = flush_to_disk(file.number())) file_failed("write", path, error);
}

LineWriter::LineWriter(std::string path, Start start) : path_(std::move(path)) {
  refuse_special("write", path_);
  Descriptor file(path_, O_WRONLY | O_CREAT | O_APPEND | (start == Start::empty ? O_TRUNC : 0));
  if (file.number() < 0) file_failed("write", path_, errno);
  file_ = file.release();
}

LineWriter::~LineWriter() { ::close(file_); }  // what must not be lost was flushed

void LineWriter::line(std::string_view content) {
  std::string whole(content);
  whole += '\n';
  bytes(whole);
}

void LineWriter::bytes(std::string_view content) {
  const off_t before = ::lseek(file_, 0, SEEK_END);
  if (before < 0) file_failed("write", path_, errno);
  const int error = write_all(file_, content);
  if (!error) return;
  check<SystemError>(repeated([&] { return ::ftruncate(file_, before); }) == 0, "cannot write ", path_, ": ",
                     std::generic_category().message(error), "; the line begun at byte ", before,
                     " cannot be taken back; check the disk");
  file_failed("write", path_, error);
}

void LineWriter::flush() {
  struct stat about {};
  if (::fstat(file_, &about) != 0) file_failed("write", path_, errno);
  check<SystemError>(about.st_nlink > 0, path_,
                     ": this file was removed while lines were written to it, and they are lost; --resume goes on from "
                     "the last checkpoint without them");
  if (const int error = flush_to_disk(file_)) file_failed("write", path_, error);
}

}  // namespace normlab
