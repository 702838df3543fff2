// One process at a time in a directory.
#pragma once

#include <string>
#include <string_view>

namespace normlab {

// Held while a process works in a directory, and gone with the process, however it ends. Where the file system has no
// locks, a file stands in for one: DIRECTORY/normlab.lock, with the process's name. That of a process of this host that
// has ended is taken over; another is heeded, by processes that got a lock too.
class DirectoryLock {
 public:
  enum class Reach { process, children };  // children: held until the last of them has ended, which is waited for
  static constexpr std::string_view kFile = "normlab.lock";

  // UserError where another process holds it: "DIRECTORY: another `holder` in this directory; `advice`".
  DirectoryLock(const std::string& directory, std::string_view holder, std::string_view advice, Reach reach);
  ~DirectoryLock();
  DirectoryLock(const DirectoryLock&) = delete;
  DirectoryLock& operator=(const DirectoryLock&) = delete;

  const std::string& warning() const { return warning_; }  // for the person; empty where there is a lock

  static bool is_held(const std::string& directory);

 private:
  int file_;
  std::string lock_file_, warning_;
};

}  // namespace normlab
