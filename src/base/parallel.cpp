// The size of the team, and what really ran.
#include "normlab/base/parallel.h"

namespace normlab {
namespace {
int team_size = 1;
}

int threads() { return team_size; }

void set_threads(int count) {
  team_size = std::max(1, count);
#ifdef _OPENMP
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

}  // namespace normlab
