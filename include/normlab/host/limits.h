// What the machine and the control group allow a process: threads and memory.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace normlab {

// How many threads may run, and what says so: "2 cores of the affinity mask".
struct ThreadLimit {
  int count;
  std::string source;
};

// What limits a process.
struct ThreadSources {
  int affinity = 1;                    // processors that it may run on
  std::optional<double> cgroup_cores;  // quota / period of its control group, or of one above it
  std::optional<std::string> omp_num_threads;
  std::optional<int> omp_thread_limit;  // OMP_THREAD_LIMIT, above which the runtime gives none
};

// The least of: affinity, the quota rounded up, the first number of OMP_NUM_THREADS ("4,3,2" is 4 in the outermost
// region, the only one here), OMP_THREAD_LIMIT. What cannot be read as a number above 0 limits nothing.
ThreadLimit thread_limit(const ThreadSources& sources);

// The quota of the calling process, in cores: version 2 (cpu.max) or 1 (cpu.cfs_quota_us, cpu.cfs_period_us). `root`
// stands before /proc and /sys.
std::optional<double> cgroup_cores(const std::string& root = "");

// The most memory that this process may come to have, and what says so: the least of the machine's total (not what is
// free), the limits of its control group and of those above it (memory.max, memory.limit_in_bytes), and that of its
// address space.
struct MemoryLimit {
  double bytes;
  std::string source;
};
std::optional<MemoryLimit> memory_limit(const std::string& root = "");

// thread_limit of this process; 1 in a build without OpenMP.
ThreadLimit allowed_threads();

}  // namespace normlab
