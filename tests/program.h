// The built program run as a user runs it: words, environment, standard input; what it wrote and how it ended.
#pragma once

#include <fcntl.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <vector>

extern char** environ;

namespace normlab {

struct Surroundings {
  std::map<std::string, std::string> environment{};  // added to the test's own; OMP_NUM_THREADS is 1 unless given
  bool bare = false;                                 // no environment but what is given
  std::string directory{};                           // current directory; the test's own when empty
  std::string input{};                               // what standard input holds
  std::vector<int> closed{};                         // descriptors that the program starts without
  std::optional<rlim_t> file_limit{};                // bytes of the largest file that it may write
  std::optional<rlim_t> process_limit{};             // of its user; the superuser has none
  std::optional<rlim_t> memory_limit{};              // bytes of its address space
  bool deaf_output = false;                          // standard output is a pipe that nobody reads
  bool terminal = false;                             // standard error is a terminal, without translation of line ends
  bool terminal_output = false;                      // standard output is it too; what comes out is all in `err`
  unsigned short columns = 0;                        // of the terminal
  std::optional<uid_t> user{};                       // who runs it, where the tests are the superuser's
};

struct Finished {
  int code = 0;  // exit code; -N after signal N
  std::string out, err;
};

// Outputs go to unnamed files, so that no amount of them can block the program.
class Process {
 public:
  explicit Process(std::vector<std::string> words, const Surroundings& around = {})
      : input_(unnamed_file(around.input)), out_(unnamed_file("")), err_(unnamed_file("")) {
    words.insert(words.begin(), NORMLAB_PROGRAM);
    std::vector<std::string> settings = environment(around);
    std::vector<char*> argv = pointers(words), envp = pointers(settings);
    int deaf[2] = {-1, -1}, terminal = -1;
    if (around.deaf_output && pipe(deaf) == 0) {  // macOS has no pipe2
      close(deaf[0]);
      fcntl(deaf[1], F_SETFD, FD_CLOEXEC);
    }
    if (around.terminal) terminal = open_terminal(around.columns);
    child_ = fork();
    if (child_ == 0) {
      dup2(input_, 0);
      dup2(around.deaf_output ? deaf[1] : around.terminal_output ? terminal : out_, 1);
      dup2(around.terminal ? terminal : err_, 2);
      for (const int file : around.closed) close(file);
      const std::pair<std::optional<rlim_t>, decltype(RLIMIT_AS)> limits[] = {
          {around.file_limit, RLIMIT_FSIZE}, {around.process_limit, RLIMIT_NPROC}, {around.memory_limit, RLIMIT_AS}};
      for (const auto& [most, resource] : limits) {
        if (!most) continue;
        const rlimit limit{*most, *most};
        setrlimit(resource, &limit);
      }
      if (around.user && (setgid(*around.user) != 0 || setuid(*around.user) != 0)) _exit(126);
      if (!around.directory.empty() && chdir(around.directory.c_str()) != 0) _exit(126);
      execve(argv[0], argv.data(), envp.data());
      _exit(127);
    }
    if (deaf[1] >= 0) close(deaf[1]);
    if (terminal >= 0) close(terminal);
  }
  ~Process() {
    if (child_ > 0) kill(child_, SIGKILL), wait();
    for (const int file : {input_, out_, err_, master_})
      if (file >= 0) close(file);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  void send(int signal) const { kill(child_, signal); }
  pid_t id() const { return child_; }
  bool has_ended() const {  // and waits to be asked how, by wait()
    siginfo_t about{};
    return waitid(P_PID, static_cast<id_t>(child_), &about, WEXITED | WNOHANG | WNOWAIT) == 0 && about.si_pid != 0;
  }

  Finished wait() {
    Finished finished;
    if (master_ >= 0) finished.err = content_of(master_);  // until the program closes its end
    int status = 0;
    while (waitpid(child_, &status, 0) < 0 && errno == EINTR) {
    }
    child_ = -1;
    finished.code = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
    lseek(out_, 0, SEEK_SET);
    lseek(err_, 0, SEEK_SET);
    finished.out = content_of(out_);
    if (master_ < 0) finished.err = content_of(err_);
    return finished;
  }

 private:
  static std::vector<std::string> environment(const Surroundings& around) {
    std::map<std::string, std::string> all = around.environment;  // the first to give a value wins
    all.emplace("OMP_NUM_THREADS", "1");
    for (char** entry = environ; !around.bare && *entry != nullptr; ++entry) {
      const std::string whole = *entry;
      all.emplace(whole.substr(0, whole.find('=')), whole.substr(whole.find('=') + 1));
    }
    std::vector<std::string> out;
    for (const auto& [name, value] : all) out.push_back(name + "=" + value);
    return out;
  }

  static std::vector<char*> pointers(std::vector<std::string>& strings) {
    std::vector<char*> out;
    for (std::string& each : strings) out.push_back(each.data());
    out.push_back(nullptr);
    return out;
  }

  static int unnamed_file(const std::string& content) {
    std::FILE* file = std::tmpfile();
    const int copy = fcntl(fileno(file), F_DUPFD_CLOEXEC, 3);
    std::fclose(file);
    if (write(copy, content.data(), content.size()) < 0) std::abort();
    lseek(copy, 0, SEEK_SET);
    return copy;
  }

  static std::string content_of(int file) {
    std::string out;
    char block[4096];
    for (ssize_t n; (n = read(file, block, sizeof block)) > 0;) out.append(block, static_cast<std::size_t>(n));
    return out;
  }

  int open_terminal(unsigned short columns) {
    master_ = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (master_ < 0 || grantpt(master_) != 0 || unlockpt(master_) != 0) return -1;
    const int terminal = open(ptsname(master_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    termios settings{};
    tcgetattr(terminal, &settings);
    settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    tcsetattr(terminal, TCSANOW, &settings);
    winsize size{};
    size.ws_col = columns;
    if (columns > 0) ioctl(terminal, TIOCSWINSZ, &size);
    return terminal;
  }

  int input_, out_, err_, master_ = -1;
  pid_t child_ = -1;
};

inline Finished run_program(std::vector<std::string> words, const Surroundings& around = {}) {
  return Process(std::move(words), around).wait();
}

}  // namespace normlab
