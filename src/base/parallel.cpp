// The team: its size, and handing out parts of work to threads that wait for them.
#include "normlab/base/parallel.h"

#include <array>
#include <atomic>
#include <exception>
#include <latch>
#include <system_error>
#include <thread>
#include <vector>

#include "normlab/base/check.h"
#include "normlab/base/denormals.h"

namespace normlab {
namespace {

int team_size = 1;
thread_local bool at_work = false;

#ifdef _OPENMP

// One piece of work at a time, published by the thread that runs with_team's body. A part is claimed by moving its slot
// from `free` of this piece of work to `taken`; a thread that comes late finds no free slot of the piece that it saw,
// so it can neither run nor disturb a later one. Nothing here decides what is computed, only by whom.
class WaitingTeam {
 public:
  void publish(Index items, void (*call)(const void*, Index, Index), const void* f, int threads) {
    const std::uint64_t number = number_.load(std::memory_order_relaxed) + 1;
    const int parts = static_cast<int>(std::min<Index>({items, 2 * Index{threads}, kMostParts}));
    items_.store(items, std::memory_order_relaxed);
    call_.store(call, std::memory_order_relaxed);
    f_.store(f, std::memory_order_relaxed);
    parts_.store(parts, std::memory_order_relaxed);
    done_.store(0, std::memory_order_relaxed);
    for (int part = 0; part < parts; ++part) slots_[slot(part)].store(2 * number, std::memory_order_relaxed);
    number_.store(number);
    if (sleepers_.load() > 0) number_.notify_all();
    work(number, 0, threads);
    // Others may still be at work on parts that they took.
    for (int spins = 0; done_.load(std::memory_order_acquire) < parts; ++spins) pause(spins);
  }

  void serve(int thread, int threads) {
    std::uint64_t seen = 0;
    for (;;) {
      std::uint64_t number = number_.load(std::memory_order_acquire);
      for (int spins = 0; number == seen && spins < kSpins; ++spins) {
        pause(spins);
        number = number_.load(std::memory_order_acquire);
      }
      if (number == seen) {
        sleepers_.fetch_add(1);
        number_.wait(seen);
        sleepers_.fetch_sub(1);
        continue;
      }
      if (closed_.load(std::memory_order_acquire)) return;
      seen = number;
      work(number, thread, threads);
    }
  }

  void open() { closed_.store(false); }
  void close() {
    closed_.store(true, std::memory_order_release);
    number_.fetch_add(1);
    number_.notify_all();
  }
  bool is_open() const { return !closed_.load(std::memory_order_relaxed); }

 private:
  static constexpr Index kMostParts = 2048;
  static constexpr int kSpins = 4000;  // about 0.1 ms

  // A processor that waits leaves its pipeline, and now and then its place, to others.
  static void pause(int spins) {
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
    if (spins % 2048 == 2047) std::this_thread::yield();
  }

  static std::size_t slot(int part) { return static_cast<std::size_t>(part); }

  // A thread takes its own parts first, the same ones of every piece of work of a size: they are in its cache.
  void work(std::uint64_t number, int thread, int threads) {
    const Index items = items_.load(std::memory_order_relaxed);
    const auto call = call_.load(std::memory_order_relaxed);
    const void* f = f_.load(std::memory_order_relaxed);
    const int parts = parts_.load(std::memory_order_relaxed);
    const int first = static_cast<int>(static_cast<Index>(parts) * thread / threads);
    at_work = true;
    for (int i = 0; i < parts; ++i) {
      const int part = (first + i) % parts;
      std::uint64_t expected = 2 * number;
      if (!slots_[slot(part)].compare_exchange_strong(expected, expected + 1, std::memory_order_acq_rel)) continue;
      call(f, items * part / parts, items * (part + 1) / parts);
      done_.fetch_add(1, std::memory_order_release);
    }
    at_work = false;
  }

  alignas(64) std::atomic<std::uint64_t> number_{0};  // of the piece of work at hand
  std::atomic<int> sleepers_{0};
  std::atomic<bool> closed_{true};
  std::atomic<Index> items_{0};
  std::atomic<void (*)(const void*, Index, Index)> call_{nullptr};
  std::atomic<const void*> f_{nullptr};
  std::atomic<int> parts_{0};
  alignas(64) std::atomic<int> done_{0};
  alignas(64) std::array<std::atomic<std::uint64_t>, kMostParts> slots_{};  // 2 number: free, 2 number + 1: taken
};

WaitingTeam& team() {
  static WaitingTeam& the_team = *new WaitingTeam;
  return the_team;
}

#endif

}  // namespace

int threads() { return team_size; }

#ifdef _OPENMP
namespace {

// OpenMP's library ends the program where the system gives no thread.
void require_threads(int count) {
  std::latch all_asked(1);
  std::vector<std::thread> others;
  bool refused = false;
  try {
    while (std::ssize(others) + 1 < count) others.emplace_back([&] { all_asked.wait(); });
  } catch (const std::system_error&) {
    refused = true;
  }
  all_asked.count_down();
  for (std::thread& other : others) other.join();
  check<SystemError>(!refused, "the system gives this process no ", count,
                     " threads; ask for fewer (train.threads=1, OMP_NUM_THREADS=1), or raise its limit on processes");
}

}  // namespace
#endif

void set_threads(int count) {
  team_size = std::max(1, count);
#ifdef _OPENMP
  require_threads(team_size);
  omp_set_dynamic(0);
  omp_set_num_threads(team_size);
#else
  team_size = 1;
#endif
}

int measured_threads() {
  int count = 1;
#ifdef _OPENMP
#pragma omp parallel num_threads(team_size)
  {
#pragma omp single
    count = omp_get_num_threads();
  }
#endif
  return count;
}

bool in_part() { return at_work; }

void with_team(const std::function<void()>& body) {
#ifdef _OPENMP
  if (team_size > 1 && !team().is_open() && !omp_in_parallel()) {
    std::exception_ptr thrown;
    team().open();
#pragma omp parallel num_threads(team_size)
    {
      if (omp_get_thread_num() == 0) {
        try {
          body();
        } catch (...) {
          thrown = std::current_exception();
        }
        team().close();
      } else {
        team().serve(omp_get_thread_num(), omp_get_num_threads());
      }
    }
    if (thrown) std::rethrow_exception(thrown);
    return;
  }
#endif
  body();
}

void run_on_team(Index items, void (*call)(const void* f, Index begin, Index end), const void* f) {
#ifdef _OPENMP
  if (team().is_open()) {
    team().publish(items, call, f, team_size);
    return;
  }
#pragma omp parallel num_threads(static_cast <int>(std::min <Index>(team_size, items)))
  {
    const Index n = omp_get_num_threads(), i = omp_get_thread_num();
    at_work = true;
    call(f, items * i / n, items * (i + 1) / n);
    at_work = false;
  }
#else
  call(f, 0, items);
#endif
}

void flush_denormals(bool on) {
  // LLVM's OpenMP gives its threads the flags of the one that opens a region, and restores these after it.
  set_denormals_flushed(on);
  in_every_thread([on](int) { set_denormals_flushed(on); });
}

}  // namespace normlab
