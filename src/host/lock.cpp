// Locks of the file system, and a file in their place.
#include "normlab/host/lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <system_error>
#include <thread>

#include "normlab/base/check.h"
#include "normlab/host/files.h"
#include "normlab/host/process_name.h"

namespace normlab {
namespace {

// The name of its process, and the host's; false where it is there already.
bool make_lock_file(const std::string& path) {
  int file;
  do file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  while (file < 0 && errno == EINTR);
  if (file < 0 && errno == EEXIST) return false;
  if (file < 0) file_failed("write", path, errno);
  int error = write_all(file, text(process_name(), ' ', host_name(), '\n'));
  if (const int closed = close_file(file); !error) error = closed;
  if (!error) return true;
  ::unlink(path.c_str());  // if it stays, the next process is refused with its path
  file_failed("write", path, error);
}

bool is_left_over(const std::string& content) { return has_ended(content.substr(0, content.find(' '))); }

// Of two processes that find a lock file left over, one takes it over: the one that makes a second.
bool take_over(const std::string& path, const std::string& second) {
  const std::string content = read_file(path);
  if (!is_left_over(content)) return false;
  check<UserError>(make_lock_file(second), second,
                   ": a process takes over the lock next to this file; if none does, delete both");
  if (read_file(path) == content) ::unlink(path.c_str());  // if it stays, it is refused now
  const bool made = make_lock_file(path);
  ::unlink(second.c_str());
  return made;
}

}  // namespace

DirectoryLock::DirectoryLock(const std::string& directory, std::string_view holder, std::string_view advice,
                             Reach reach)
    : file_(::open(directory.c_str(), O_RDONLY | O_DIRECTORY | (reach == Reach::process ? O_CLOEXEC : 0))) {
  const int attempts = reach == Reach::process ? 3 : 250;
  int error = file_ < 0 ? errno : 0;
  for (int attempt = 1; file_ >= 0 && (error = ::flock(file_, LOCK_EX | LOCK_NB) == 0 ? 0 : errno); ++attempt) {
    if (error != EINTR && (error != EWOULDBLOCK || attempt >= attempts)) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));  // it was asked about, or children are ending
  }
  const std::string path = text(directory, '/', kFile);
  try {
    const auto refuse = [&](const std::string& more) {
      throw UserError(text(directory, ": another ", holder, " in this directory; ", advice, more));
    };
    if (error == EWOULDBLOCK) refuse("");
    if (error == 0 && !file_exists(path)) return;
    if (!make_lock_file(path) && !take_over(path, path + ".takeover"))
      refuse(text(" (", path, " says so: ", trimmed(read_file(path)), "; if that process has ended, delete the file)"));
  } catch (...) {
    if (file_ >= 0) ::close(file_);  // nothing was written to it
    throw;
  }
  lock_file_ = path;
  if (error)
    warning_ = text("warning: ", directory, ": cannot be locked (", std::generic_category().message(error), "); ", path,
                    " stands in for the lock");
}

DirectoryLock::~DirectoryLock() {
  if (!lock_file_.empty()) ::unlink(lock_file_.c_str());  // if it stays, the next process takes it over
  if (file_ >= 0) ::close(file_);
}

bool DirectoryLock::is_held(const std::string& directory) {
  const int file = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const bool locked = file >= 0 && ::flock(file, LOCK_SH | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  if (file >= 0) ::close(file);
  const std::string path = text(directory, '/', kFile);
  return locked || (file_exists(path) && !is_left_over(read_file(path)));
}

}  // namespace normlab
