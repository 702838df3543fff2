// The name of a process, and whether it lives.
#include "normlab/host/process_name.h"

#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <system_error>

#include "normlab/base/hash.h"
#include "normlab/base/text.h"

namespace normlab {
namespace {

// Containers may share a host's name, and not the numbers of its processes.
std::string host() {
  std::error_code none;  // elsewhere than on Linux there are no such namespaces
  return hexadecimal(fnv1a(std::filesystem::read_symlink("/proc/self/ns/pid", none).string(), fnv1a(host_name())), 8);
}

}  // namespace

std::string host_name() {
  char name[256] = "";
  // Without a name a host is its processes' namespace alone.
  return ::gethostname(name, sizeof name - 1) == 0 ? name : "?";
}

std::string process_name() { return text(host(), '-', static_cast<std::int64_t>(::getpid())); }

bool has_ended(std::string_view name) {
  const std::size_t dash = name.find('-');
  if (dash == std::string_view::npos || name.substr(0, dash) != host()) return false;
  const auto id = parse_int(name.substr(dash + 1));
  return id && *id > 0 && ::kill(static_cast<pid_t>(*id), 0) != 0 && errno == ESRCH;
}

}  // namespace normlab
