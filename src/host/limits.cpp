// Facts about the machine: thread limits and the treatment of subnormal numbers.
#include "normlab/host/limits.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <string_view>

#include "normlab/base/check.h"
#include "normlab/base/parallel.h"
#include "normlab/host/files.h"

namespace normlab {
namespace {

std::string content_or_nothing(const std::string& path) {
  try {
    return read_file(path);
  } catch (const std::runtime_error&) {
    return {};
  }
}

// The text before `separator`, which is taken away from `rest` with it.
std::string_view next_part(std::string_view& rest, char separator) {
  const std::size_t end = std::min(rest.find(separator), rest.size());
  const std::string_view part = rest.substr(0, end);
  rest.remove_prefix(std::min(end + 1, rest.size()));
  return part;
}

// Cores that a quota and its period (microseconds) allow; nothing for "max" and -1.
std::optional<double> quotient(std::string_view quota, std::string_view period) {
  const auto q = parse_int(trimmed(quota)), p = parse_int(trimmed(period));
  if (!q || !p || *q <= 0 || *p <= 0) return std::nullopt;
  return static_cast<double>(*q) / static_cast<double>(*p);
}

// In bytes; nothing for "max".
std::optional<double> group_memory(const std::string& directory, bool version_2) {
  const std::string content = content_or_nothing(directory + (version_2 ? "/memory.max" : "/memory.limit_in_bytes"));
  const auto bytes = parse_int(trimmed(content));
  if (!bytes || *bytes <= 0) return std::nullopt;
  return static_cast<double>(*bytes);
}

std::optional<double> group_quota(const std::string& directory, bool version_2) {
  if (!version_2)
    return quotient(content_or_nothing(directory + "/cpu.cfs_quota_us"),
                    content_or_nothing(directory + "/cpu.cfs_period_us"));
  const std::string both = content_or_nothing(directory + "/cpu.max");
  std::string_view rest = both;
  const std::string_view quota = next_part(rest, ' ');
  return quotient(quota, rest);
}

bool lists(std::string_view controllers, std::string_view controller) {
  while (!controllers.empty())
    if (next_part(controllers, ',') == controller) return true;
  return false;
}

// The least that the process's group, or one above it, has of what `read` finds in a group's directory.
std::optional<double> least_of_groups(
    const std::string& root, std::string_view controller,
    const std::function<std::optional<double>(const std::string& directory, bool version_2)>& read) {
  // Lines "ID:CONTROLLERS:PATH"; version 2 has the one with ID 0 and no controllers.
  std::string groups = content_or_nothing(root + "/proc/self/cgroup");
  if (groups.empty()) groups = text("0::/\n1:", controller, ":/\n");  // without /proc: those at the root
  std::optional<double> least;
  for (std::string_view rest = groups; !rest.empty();) {
    std::string_view line = next_part(rest, '\n');
    const bool version_2 = next_part(line, ':') == "0";
    if (!lists(next_part(line, ':'), controller) && !version_2) continue;
    const std::string mount = text(root, "/sys/fs/cgroup", version_2 ? "" : "/", version_2 ? "" : controller);
    // The limit of a group above holds too. In a container the path may be the host's, and only its root is there.
    for (std::string path(line);; path.erase(path.rfind('/'))) {
      if (path == "/") path.clear();
      const auto found = read(text(mount, path), version_2);
      if (found && (!least || *found < *least)) least = found;
      if (path.find('/') == std::string::npos) break;
    }
  }
  return least;
}

}  // namespace

ThreadLimit thread_limit(const ThreadSources& sources) {
  ThreadLimit limit{sources.affinity,
                    text(sources.affinity, sources.affinity == 1 ? " core" : " cores", " of the affinity mask")};
  if (sources.cgroup_cores && std::ceil(*sources.cgroup_cores) < limit.count)
    limit = {static_cast<int>(std::ceil(*sources.cgroup_cores)),
             text("the control group's quota of ", *sources.cgroup_cores, " cores")};
  if (sources.omp_num_threads) {
    std::string_view rest = *sources.omp_num_threads;
    const auto wanted = parse_int(trimmed(next_part(rest, ',')));
    if (wanted && *wanted > 0 && *wanted < limit.count)
      limit = {static_cast<int>(*wanted), text("OMP_NUM_THREADS=", *sources.omp_num_threads)};
  }
  if (sources.omp_thread_limit && *sources.omp_thread_limit < limit.count)
    limit = {*sources.omp_thread_limit, text("OMP_THREAD_LIMIT=", *sources.omp_thread_limit)};
  return limit;
}

std::optional<double> cgroup_cores(const std::string& root) { return least_of_groups(root, "cpu", group_quota); }

std::optional<MemoryLimit> memory_limit(const std::string& root) {
  const double pages = static_cast<double>(sysconf(_SC_PHYS_PAGES)), page = static_cast<double>(sysconf(_SC_PAGESIZE));
  std::optional<MemoryLimit> limit;
  if (pages > 0 && page > 0) limit = {pages * page, "the machine's memory"};
  const auto group = least_of_groups(root, "memory", group_memory);
  if (group && (!limit || *group < limit->bytes)) limit = {*group, "the control group's limit"};
  rlimit space{};
  if (::getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) {
    const double bytes = static_cast<double>(space.rlim_cur);
    if (!limit || bytes < limit->bytes) limit = {bytes, "the process's limit, ulimit -v"};
  }
  return limit;
}

ThreadLimit allowed_threads() {
#ifdef _OPENMP
  ThreadSources sources;
  // The mask that the process started with, as sched_getaffinity gives it; asked of OpenMP since with OMP_PROC_BIND its
  // runtime narrows the first thread's mask to one processor before main.
  sources.affinity = omp_get_num_procs();
  sources.cgroup_cores = cgroup_cores();
  if (const char* value = std::getenv("OMP_NUM_THREADS")) sources.omp_num_threads = value;
  sources.omp_thread_limit = omp_get_thread_limit();
  return thread_limit(sources);
#else
  return {1, "a build without OpenMP"};
#endif
}

}  // namespace normlab
