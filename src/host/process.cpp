// Finding this program, starting a process and hearing of its end.
#include "normlab/host/process.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#ifdef __linux__
#include <sys/prctl.h>
#endif
#ifdef __APPLE__
#include <mach-o/dyld.h>
#endif

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>

#include "normlab/base/check.h"

namespace normlab {

namespace {

std::string the_own_path;

// Of a name without a slash, as the shell finds it.
std::string found_in_path(const std::string& name) {
  const char* value = std::getenv("PATH");
  std::string_view rest = value ? value : "";
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(':'), rest.size());
    const std::string place = text(end == 0 ? "." : rest.substr(0, end), '/', name);
    std::error_code error;
    if (std::filesystem::is_regular_file(place, error) && ::access(place.c_str(), X_OK) == 0) return place;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return name;
}

}  // namespace

void find_own_path(const std::string& called) {
  std::error_code error;
  std::string path;
#ifdef __APPLE__
  std::uint32_t size = 0;
  _NSGetExecutablePath(nullptr, &size);  // only says how long it is
  path.resize(size);
  path = _NSGetExecutablePath(path.data(), &size) == 0 ? path.c_str() : "";
#else
  path = std::filesystem::read_symlink("/proc/self/exe", error).string();
#endif
  if (path.empty()) path = called.find('/') == std::string::npos ? found_in_path(called) : called;
  const std::filesystem::path real = std::filesystem::canonical(path, error);
  the_own_path = error ? path : real.string();
}

const std::string& own_path() { return the_own_path; }

pid_t start_child(std::vector<std::string> words, const std::string& output, const std::string& errors) {
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  const int out = open(output.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  const int err = open(errors.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  check<SystemError>(out >= 0 && err >= 0, output, ": cannot be written: ", std::strerror(errno));
  [[maybe_unused]] const pid_t parent = getpid();
  const pid_t child = fork();
  if (child == 0) {  // only calls that are safe between fork and exec
    setpgid(0, 0);
#ifdef __linux__
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != parent) _exit(143);
#endif
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    dup2(out, STDOUT_FILENO);
    dup2(err, STDERR_FILENO);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  const int error = errno;
  close(out);
  close(err);
  check<SystemError>(child > 0, words[0], " cannot be started: ", std::strerror(error));
  return child;
}

Ended ended_child() {
  int status = 0;
  const pid_t process = waitpid(-1, &status, WNOHANG);
  if (process <= 0) return {};
  return {process, WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status)};
}

}  // namespace normlab
