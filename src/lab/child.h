// A process of this program that runs one point of a sweep.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace normlab {

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
