// Work over threads that gives the same bytes for any number of them: a thread owns what it writes, and sums that cross
// threads are made of chunks of constant length, added from left to right.
#pragma once

#include <algorithm>
#include <functional>
#include <vector>

#include "normlab/base/real.h"

#ifdef _OPENMP
#include <omp.h>
#endif

namespace normlab {

// The team that parallel_for uses, from set_threads on.
int threads();
void set_threads(int count);
// How many threads really ran in a parallel region.
int measured_threads();

// Runs `body` with the team kept together: one parallel region is open for all of it, its other threads wait for the
// parts that parallel_ranges hands out, and whoever is free takes the next part. So a part costs no region of its own,
// and a thread that the system runs late is not waited for. What `body` throws comes out of here.
void with_team(const std::function<void()>& body);

// call(f, begin, end) over parts of [0, items); see parallel_ranges. Not from within a part.
void run_on_team(Index items, void (*call)(const void* f, Index begin, Index end), const void* f);
// True in a thread that is at work on a part.
bool in_part();

// Work of fewer elementary operations than this is not worth handing out.
inline constexpr Index kParallelWork = 1 << 15;

// f(begin, end) over contiguous ranges that together are [0, items). `cost`: elementary operations an item.
// What f computes for an item must not depend on the range that it lies in.
template <class F>
void parallel_ranges(Index items, Index cost, const F& f) {
  if (threads() > 1 && items > 1 && items * cost >= kParallelWork && !in_part())
    run_on_team(
        items, [](const void* g, Index begin, Index end) noexcept { (*static_cast<const F*>(g))(begin, end); }, &f);
  else if (items > 0)
    f(Index{0}, items);
}

// f(item) for each of [0, items).
template <class F>
void parallel_for(Index items, Index cost, const F& f) {
  parallel_ranges(items, cost, [&](Index begin, Index end) {
    for (Index i = begin; i < end; ++i) f(i);
  });
}

// f(thread) once in each thread of the team. Not within with_team.
template <class F>
void in_every_thread(const F& f) {
#ifdef _OPENMP
#pragma omp parallel num_threads(threads())
  f(omp_get_thread_num());
#else
  f(0);
#endif
}

// f(begin, end) over [0, n) in blocks of constant length. An element lies at the same place of the same block for any
// number of threads, so even what a compiler does with a loop's tail cannot make its result depend on them.
template <class F>
void parallel_blocks(Index n, Index cost, const F& f) {
  constexpr Index kBlock = 1 << 11;
  parallel_for((n + kBlock - 1) / kBlock, cost * kBlock,
               [&](Index block) { f(block * kBlock, std::min(n, (block + 1) * kBlock)); });
}

// The sum of term(begin, end) over chunks of [0, n) whose length is a constant, added from left to right.
template <class F>
double ordered_sum(Index n, const F& term) {
  constexpr Index kChunk = 1 << 14;
  const Index chunks = (n + kChunk - 1) / kChunk;
  if (chunks <= 1) return n > 0 ? static_cast<double>(term(Index{0}, n)) : 0.0;
  std::vector<double> partial(static_cast<std::size_t>(chunks));
  parallel_for(chunks, kChunk, [&](Index c) {
    partial[static_cast<std::size_t>(c)] = static_cast<double>(term(c * kChunk, std::min(n, (c + 1) * kChunk)));
  });
  double total = 0;
  for (const double p : partial) total += p;
  return total;
}

// Sets in every thread of the team whether subnormal numbers count as 0 (denormals.h). Call it after set_threads;
// later, larger teams inherit what the calling thread has.
void flush_denormals(bool on);

}  // namespace normlab
