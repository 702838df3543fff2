// Whole files in and out, and lines added to a log. Every failure names the path and says what to do: UserError where
// the path is wrong (it does not exist, it is a directory), SystemError where the system refuses (permission, full
// disk, I/O).
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "normlab/base/check.h"

namespace normlab {

// The directory that a file should be written to does not exist.
struct MissingDirectory : UserError {
  using UserError::UserError;
};

// Does what writes into a directory that the program made or found there. That it is missing now is the system's doing:
// SystemError in place of MissingDirectory.
void write_into(const std::string& directory, const std::function<void()>& act);

// The error `error` of an attempt to "read" or "write" a path, as what to do about it.
[[noreturn]] void file_failed(std::string_view action, const std::string& path, int error);

// Whether there is something of this name; an error where the system cannot tell.
bool file_exists(const std::string& path);

inline constexpr std::size_t kMostOfStream = std::size_t{1} << 30;  // read of what has no size and may have no end

// All bytes of a file, or of a pipe or a device below /dev or /proc; or the first `most`.
std::string read_file(const std::string& path, std::size_t most = std::string::npos);

// Replaces `path` by the parts, one after another. A reader at any moment, after a crash too, sees the old bytes or the
// new ones: they go to a temporary file, which is flushed to the disk and renamed. When this throws, the temporary one
// is gone, and the old file as before, unless the message says that the new one is there. A path that exists and is no
// regular file (/dev/stdout) is written directly.
void write_file(const std::string& path, std::span<const std::string_view> parts);
void write_file(const std::string& path, std::string_view bytes);

// A directory with what `fill` writes into the one that it is given, whole or not at all; that is renamed, or, where
// `path` exists, its files are.
void write_directory(const std::string& path, const std::function<void(const std::string& directory)>& fill);

// Another at each call, in the directory of `path`: `path`.PROCESS-N.normlab-tmp, with the process's name. A long name
// is cut.
std::string temporary_name(const std::string& path);
// The name, cut, of what a file or directory is the temporary one of; empty for any other.
std::string target_of_temporary(std::string_view name);
// Removes temporary files and directories of `target`, or of all where it is empty: those of processes that have ended,
// and those that nobody has written to for a day.
void remove_left_over(const std::string& directory, const std::string& target);

// UserError when the file that a user names for `command` to write is there already; standard output, a device or a
// pipe may be.
inline constexpr std::string_view kStandardOutput = "/dev/stdout";
void require_new_file(std::string_view command, const std::string& path);

// Makes it, and those above it. `advice` is what to do when that cannot be: "give another run.dir".
void make_directories(const std::string& path, std::string_view advice);

// Into an open file; 0, or the error number.
int write_all(int file, std::string_view bytes);
int close_file(int file);  // likewise

// Cuts a file to its first `size` bytes, on the disk too.
void truncate_file(const std::string& path, std::int64_t size);

// A log of lines. Each line reaches the system before line() returns, so a crash of the program loses none; a line that
// could not be written whole is taken back.
class LineWriter {
 public:
  enum class Start { empty, append };

  LineWriter(std::string path, Start start);
  ~LineWriter();
  LineWriter(const LineWriter&) = delete;
  LineWriter& operator=(const LineWriter&) = delete;

  void line(std::string_view content);   // without its newline
  void bytes(std::string_view content);  // as they are, likewise whole or not at all
  void flush();                          // to the disk

 private:
  std::string path_;
  int file_;
};

}  // namespace normlab
