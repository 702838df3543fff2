// The path of this program, and processes that it starts.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace normlab {

// Called first, with argv[0], while the current directory is the one that it may be relative to.
void find_own_path(const std::string& called);
// The path of the running program.
const std::string& own_path();

// How a process ended.
struct Ended {
  pid_t process = 0;
  int code = 0;  // exit code, or 128 + N after signal N
};

// Starts `words`, with standard output and error in files. The child is in a process group of its own, so that Ctrl-C
// reaches this process alone, and gets SIGTERM when this process dies. SystemError when it cannot be started.
pid_t start_child(std::vector<std::string> words, const std::string& output, const std::string& errors);
// One that has ended, if any; process 0: none has.
Ended ended_child();

}  // namespace normlab
