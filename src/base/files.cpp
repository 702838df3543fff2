// Whole files in and out, and lines added to a log, by POSIX calls: their error numbers tell what to do.
#include "normlab/base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <utility>

#include "normlab/base/check.h"

namespace normlab {
namespace {

// `action`: "read", "write".
[[noreturn]] void fail(std::string_view action, const std::string& path, int error) {
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

// Opening a pipe waits for its other end, for ever if nobody has that.
void refuse_special(std::string_view action, const std::string& path) {
  const std::string_view kind = special_kind(path);
  check<UserError>(kind.empty(), "cannot ", action, " ", path, ": it is a ", kind, "; name a regular file");
}

// An open file that closes itself.
class Descriptor {
 public:
  Descriptor(const std::string& path, int flags) {
    do file_ = ::open(path.c_str(), flags | O_CLOEXEC, 0666);
    while (file_ < 0 && errno == EINTR);
  }
  ~Descriptor() {
    if (file_ >= 0) ::close(file_);
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

// A pipe or a terminal cannot be flushed, and says EINVAL or the like: no error there.
int flush_to_disk(int file) {
#ifdef F_FULLFSYNC
  if (::fcntl(file, F_FULLFSYNC) == 0) return 0;  // macOS: fsync leaves the data in the disk's own cache
#endif
  if (::fsync(file) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP) return 0;
  return errno;
}

// The directory's entry after a rename is on the disk once the directory is.
void flush_directory_of(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  const Descriptor opened(directory.empty() ? "." : directory, O_RDONLY | O_DIRECTORY);
  if (opened.number() < 0) return;  // a directory may be writable and not readable; the file itself is safe
  if (const int error = flush_to_disk(opened.number())) fail("write", path, error);
}

// A temporary file that is gone unless it was renamed.
class Temporary {
 public:
  explicit Temporary(std::string path) : path_(std::move(path)) {}
  ~Temporary() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;
  const std::string& path() const { return path_; }
  int rename_to(const std::string& target) {
    if (std::rename(path_.c_str(), target.c_str()) != 0) return errno;
    path_.clear();
    return 0;
  }

 private:
  std::string path_;
};

}  // namespace

int write_all(int file, std::string_view bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 30;  // Linux writes less than 2 GiB at a time
  while (!bytes.empty()) {
    const ssize_t n = ::write(file, bytes.data(), std::min(bytes.size(), kMost));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0 ? errno : EIO;
    bytes.remove_prefix(static_cast<std::size_t>(n));
  }
  return 0;
}

std::string_view special_kind(const std::string& path) {
  struct stat about {};
  if (path.starts_with("/dev/") || path.starts_with("/proc/") || ::stat(path.c_str(), &about) != 0) return "";
  if (S_ISFIFO(about.st_mode)) return "pipe";
  if (S_ISSOCK(about.st_mode)) return "socket";
  return S_ISCHR(about.st_mode) || S_ISBLK(about.st_mode) ? "device" : "";
}

void write_into(const std::string& directory, const std::function<void()>& act) {
  try {
    act();
  } catch (const MissingDirectory& error) {
    throw SystemError(text(directory,
                           ": this directory, or a part of it, was removed or moved while the program wrote "
                           "to it; move it back and go on from it, or begin anew with another run.dir (",
                           error.what(), ")"));
  }
}

std::string temporary_name(const std::string& path) { return path + ".normlab-tmp"; }

std::string read_file(const std::string& path) {
  refuse_special("read", path);
  const Descriptor file(path, O_RDONLY);
  struct stat about {};
  if (file.number() < 0 || ::fstat(file.number(), &about) != 0) fail("read", path, errno);
  if (S_ISDIR(about.st_mode)) fail("read", path, EISDIR);
  // One byte more than the size, so that the end of a file that did not grow is met without another allocation.
  std::string bytes(S_ISREG(about.st_mode) ? static_cast<std::size_t>(about.st_size) + 1 : 1 << 16, '\0');
  std::size_t length = 0;
  for (;;) {
    check<DataError>(S_ISREG(about.st_mode) || length < kMostOfStream, path,
                     ": no end within 1 GiB; give a file that has one");
    if (length == bytes.size()) bytes.resize(bytes.size() * 2);
    const ssize_t n = ::read(file.number(), bytes.data() + length, bytes.size() - length);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) fail("read", path, errno);
    if (n == 0) break;
    length += static_cast<std::size_t>(n);
  }
  bytes.resize(length);
  return bytes;
}

void write_file(const std::string& path, std::span<const std::string_view> parts) {
  std::error_code ignored;
  const bool exists = std::filesystem::exists(path, ignored);
  if (exists && std::filesystem::is_directory(path, ignored)) fail("write", path, EISDIR);
  if (exists && !std::filesystem::is_regular_file(path, ignored)) {
    const Descriptor file(path, O_WRONLY | O_NONBLOCK);
    check<UserError>(file.number() >= 0 || errno != ENXIO, "cannot write ", path,
                     ": it is a pipe or a socket that nobody reads; name a file");
    if (file.number() < 0 || ::fcntl(file.number(), F_SETFL, 0) != 0) fail("write", path, errno);
    if (const int error = write_parts(file.number(), parts)) fail("write", path, error);
    return;
  }
  // A symbolic link stays one: the file that it points to is replaced.
  const std::string target = exists ? std::filesystem::canonical(path, ignored).string() : path;
  const std::string temporary_path = temporary_name(target);
  Descriptor file(temporary_path, O_WRONLY | O_CREAT | O_TRUNC);
  if (file.number() < 0) fail("write", path, errno);
  Temporary temporary(temporary_path);
  int error = write_parts(file.number(), parts);
  if (!error) error = flush_to_disk(file.number());
  if (!error && ::close(file.release()) != 0) error = errno;  // a network disk may report a full disk only here
  if (!error) error = temporary.rename_to(target);
  if (error) fail("write", path, error);
  flush_directory_of(target);
}

void write_file(const std::string& path, std::string_view bytes) { write_file(path, std::span(&bytes, 1)); }

void require_new_file(std::string_view command, const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) fail("write", path, EISDIR);
  const bool dangling = std::filesystem::is_symlink(path, error) && !std::filesystem::exists(path, error);
  check<UserError>(path == kStandardOutput || (!std::filesystem::is_regular_file(path, error) && !dangling), command,
                   ": ", path, dangling ? " is a link to nothing" : " exists",
                   ", and is kept; name another file, or delete it first");
}

void make_directories(const std::string& path, std::string_view advice) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  check<UserError>(error != std::errc::not_a_directory, path, ": the directory cannot be made below a file; ", advice);
  check<UserError>(error != std::errc::filename_too_long, path,
                   ": the directory cannot be made: the name is too long for the file system; ", advice);
  check<SystemError>(!error, path, ": the directory cannot be made: ", error.message(), "; ", advice,
                     ", or run where you may write");
}

void truncate_file(const std::string& path, std::int64_t size) {
  refuse_special("write", path);
  const Descriptor file(path, O_WRONLY);
  struct stat about {};
  if (file.number() < 0) fail(errno == ENOENT ? "read" : "write", path, errno);
  if (::fstat(file.number(), &about) != 0) fail("read", path, errno);
  check<DataError>(about.st_size >= size, path, ": holds ", about.st_size, " bytes, but ", size,
                   " were written to it; the file was changed from outside");
  if (::ftruncate(file.number(), size) != 0) fail("write", path, errno);
  if (const int error = flush_to_disk(file.number())) fail("write", path, error);
}

LineWriter::LineWriter(std::string path, Start start) : path_(std::move(path)) {
  refuse_special("write", path_);
  Descriptor file(path_, O_WRONLY | O_CREAT | O_APPEND | (start == Start::empty ? O_TRUNC : 0));
  if (file.number() < 0) fail("write", path_, errno);
  file_ = file.release();
}

LineWriter::~LineWriter() { ::close(file_); }

void LineWriter::line(std::string_view content) {
  std::string whole(content);
  whole += '\n';
  bytes(whole);
  if (listener_) listener_(content);
}

void LineWriter::bytes(std::string_view content) {
  const off_t before = ::lseek(file_, 0, SEEK_END);
  const int error = write_all(file_, content);
  if (!error) return;
  if (before >= 0 && ::ftruncate(file_, before) != 0) fail("write", path_, error);
  fail("write", path_, error);
}

void LineWriter::flush() {
  struct stat about {};
  check<SystemError>(::fstat(file_, &about) != 0 || about.st_nlink > 0, path_,
                     ": this file was removed while lines were written to it, and they are lost; --resume goes on from "
                     "the last checkpoint without them");
  if (const int error = flush_to_disk(file_)) fail("write", path_, error);
}

}  // namespace normlab
