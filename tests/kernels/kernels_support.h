// What the kernels' tests share: seeded numbers, and running a kernel at several thread counts.
#pragma once

#include <cmath>
#include <cstring>
#include <string_view>
#include <vector>

#include "catch.h"
#include "normlab/base/parallel.h"
#include "normlab/base/rng.h"
#include "normlab/kernels/kernels.h"

namespace normlab {
inline namespace NORMLAB_REAL {

using Numbers = std::vector<Real>;

inline Numbers zeros(Index n) { return Numbers(static_cast<std::size_t>(n)); }

// n normal variates, the same on every call with the same stream.
inline Numbers normals(Index n, std::string_view stream, double mean = 0, double deviation = 1) {
  Random random(7, stream);
  Numbers out = zeros(n);
  for (Real& value : out) value = static_cast<Real>(mean + deviation * random.normal());
  return out;
}

inline std::vector<double> in_double(In x) { return {x.begin(), x.end()}; }

inline bool same_bytes(const Numbers& a, const Numbers& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(Real)) == 0;
}

inline void check_all_near(In values, const std::vector<double>& right, double tolerance) {
  REQUIRE(values.size() == right.size());
  for (std::size_t i = 0; i < right.size(); ++i) {
    INFO("element " << i << ": " << values[i] << " instead of " << right[i]);
    REQUIRE(std::fabs(static_cast<double>(values[i]) - right[i]) <= tolerance);
  }
}

// run() returns all that a kernel writes: it must be the same bytes for 1, 2, 3 and 8 threads.
template <class F>
void check_threads(const F& run) {
  set_threads(1);
  const Numbers one = run();
  for (const int count : {2, 3, 8}) {
    set_threads(count);
    INFO(count << " threads");
    CHECK(same_bytes(one, run()));
  }
  set_threads(1);
}

inline Numbers joined(std::initializer_list<const Numbers*> parts) {
  Numbers all;
  for (const Numbers* part : parts) all.insert(all.end(), part->begin(), part->end());
  return all;
}

}  // namespace NORMLAB_REAL
}  // namespace normlab
