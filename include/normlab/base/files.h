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

// "pipe", "socket" or "device"; nothing for a regular file, a directory, a path that does not exist, and what is below
// /dev or /proc, which the shell or the user chose to have read: /dev/stdin, /dev/fd/63 of a process substitution.
std::string_view special_kind(const std::string& path);

inline constexpr std::size_t kMostOfStream = std::size_t{1} << 30;  // read of what has no size and may have no end

// All bytes of a file, or of a pipe or a device below /dev or /proc.
std::string read_file(const std::string& path);

// Replaces `path` by the parts, one after another. A reader at any moment, after a crash too, sees the old bytes or the
// new ones: they go to `path`.normlab-tmp, which is flushed to the disk and renamed. When this throws, the old file is
// as before and the temporary one is gone. A path that exists and is no regular file (/dev/stdout) is written directly.
void write_file(const std::string& path, std::span<const std::string_view> parts);
void write_file(const std::string& path, std::string_view bytes);
std::string temporary_name(const std::string& path);  // `path`.normlab-tmp

// UserError when the file that a user names for `command` to write is there already; standard output, a device or a
// pipe may be.
inline constexpr std::string_view kStandardOutput = "/dev/stdout";
void require_new_file(std::string_view command, const std::string& path);

// Makes it, and those above it. `advice` is what to do when that cannot be: "give another run.dir".
void make_directories(const std::string& path, std::string_view advice);

// Into an open file; 0, or the error number.
int write_all(int file, std::string_view bytes);

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
  // Who is told each line, too, once it is written.
  void tell(std::function<void(std::string_view line)> listener) { listener_ = std::move(listener); }
  void flush();  // to the disk

 private:
  std::string path_;
  int file_;
  std::function<void(std::string_view line)> listener_;
};

}  // namespace normlab
