// Repeated timing, and what the machine can do at best.
#include <algorithm>
#include <vector>

#include "normlab/base/clock.h"
#include "normlab/base/parallel.h"
#include "normlab/bench/bench_parts.h"

namespace normlab {
namespace {

// Values so small that the search for the median costs nothing next to them.
constexpr std::size_t kMostRuns = 10000;

// f(begin, end) over equal parts of [0, n), one a thread, in multiples of a cache line.
template <class F>
void in_equal_parts(Index n, const F& f) {
  constexpr Index kLine = 64 / sizeof(Real);
  parallel_ranges(threads(), kParallelWork, [&](Index begin, Index end) {
    const auto at = [&](Index part) { return part == threads() ? n : n / kLine * part / threads() * kLine; };
    f(at(begin), at(end));
  });
}

double read_bandwidth(Effort effort, Index count) {
  const Numbers x(static_cast<std::size_t>(count), Real(1));
  std::vector<Real> sums(static_cast<std::size_t>(count));
  const Timing timing = time_runs(effort, [&] {
    in_equal_parts(count, [&](Index begin, Index end) {
      sums[static_cast<std::size_t>(begin)] =
          kernels::read_all(In(x).subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(end - begin)));
    });
  });
  return static_cast<double>(count) * sizeof(Real) / timing.min / 1e9;
}

double multiply_add_rate(Effort effort) {
  constexpr Index kRounds = 1 << 19;
  std::vector<kernels::PeakWork> work(static_cast<std::size_t>(threads()));
  const Timing timing = time_runs(effort, [&] {
    parallel_for(threads(), kParallelWork,
                 [&](Index i) { work[static_cast<std::size_t>(i)] = kernels::multiply_adds(kRounds); });
  });
  double operations = 0;
  for (const kernels::PeakWork& part : work) operations += part.operations;
  return operations / timing.min / 1e9;
}

}  // namespace

Timing timing_of(std::vector<double> seconds) {
  std::ranges::sort(seconds);
  const std::size_t last = seconds.size() - 1;
  return {(seconds[last / 2] + seconds[(last + 1) / 2]) / 2, seconds[0], seconds[last * 9 / 10],
          static_cast<int>(seconds.size())};
}

Timing time_runs(Effort effort, const std::function<void()>& run) {
  for (int i = 0; i < effort.warmup; ++i) run();
  std::vector<double> seconds;
  const Clock::time_point start = Clock::now();
  while (seconds.size() < static_cast<std::size_t>(effort.least_runs) ||
         (seconds_since(start) < effort.seconds && seconds.size() < kMostRuns)) {
    const Clock::time_point begin = Clock::now();
    run();
    seconds.push_back(seconds_since(begin));
  }
  return timing_of(std::move(seconds));
}

void set_times(Json& entry, const Timing& timing) {
  entry.set("ms", timing.median * 1e3);
  entry.set("ms_min", timing.min * 1e3);
  entry.set("ms_p90", timing.p90 * 1e3);
  entry.set("runs", timing.runs);
}

double copy_bandwidth(Effort effort, Index count) {
  Numbers x(static_cast<std::size_t>(count), Real(1)), y(x.size());
  const Timing timing = time_runs(effort, [&] {
    in_equal_parts(count, [&](Index begin, Index end) {
      const auto first = static_cast<std::size_t>(begin), length = static_cast<std::size_t>(end - begin);
      kernels::copy_scaled(1, In(x).subspan(first, length), Out(y).subspan(first, length));
    });
  });
  return 2 * static_cast<double>(count) * sizeof(Real) / timing.min / 1e9;
}

Json measure_peak(Effort effort, Index memory_mb) {
  constexpr Index kMb = (1 << 20) / sizeof(Real);
  return Json::object({{"threads", threads()},
                       {"gflops", multiply_add_rate(effort)},
                       {"cache_copy_gb_per_s", copy_bandwidth(effort, kMb)},
                       {"memory_copy_gb_per_s", copy_bandwidth(effort, memory_mb * kMb)},
                       {"memory_read_gb_per_s", read_bandwidth(effort, memory_mb * kMb)}});
}

}  // namespace normlab
