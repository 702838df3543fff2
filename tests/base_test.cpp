// Numbers as text and the random streams.
#include <cmath>
#include <cstdlib>
#include <vector>

#include "catch.h"
#include "normlab/base/rng.h"
#include "normlab/base/text.h"

using namespace normlab;

TEST_CASE("numbers print in their shortest round-trip form") {
  CHECK(number(0.1) == "0.1");
  CHECK(number(0.1f) == "0.1");
  CHECK(fixed(2.0, 3) == "2.000");
  CHECK(parse_double("1e-4") == 1e-4);
  CHECK(!parse_double("1,5"));
}

TEST_CASE("the nearest name is found, and none when all are far") {
  const std::vector<std::string> names{"n_layers", "n_heads", "d_model"};
  CHECK(nearest("n-layers", names) == "n_layers");
  CHECK(nearest("nlayer", names) == "n_layers");
  CHECK(nearest("temperature", names).empty());
}

TEST_CASE("the first draws for seed 1337 are constants") {
  // SplitMix64 with FNV-1a, computed once with Python's integers.
  Random random(1337, "test");
  std::vector<std::uint64_t> draws;
  for (int i = 0; i < 8; ++i) draws.push_back(random.next());
  CHECK(draws == std::vector<std::uint64_t>{0xfc7e7bd1645dec4a, 0x3654524b4001bf40, 0x760585db43091ea,
                                            0x95cddeb21ed7a4da, 0x6399684c55bd1c4a, 0x7b62648246e15fa9,
                                            0x747360c0eec52ed4, 0x537325288c397702});
}

TEST_CASE("normal draws have the moments of N(0, 1)") {
  Random random(1, "moments");
  constexpr int kDraws = 200000;
  double sum = 0, squares = 0, fourth = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double x = random.normal();
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  // Five deviations of the estimates: 1 / sqrt(n), sqrt(2 / n), sqrt(96 / n).
  CHECK(std::fabs(sum / kDraws) < 0.012);
  CHECK(std::fabs(squares / kDraws - 1) < 0.016);
  CHECK(std::fabs(fourth / kDraws - 3) < 0.11);
}

TEST_CASE("draws below n are even") {
  Random random(1, "below");
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[random.below(7)];
  for (const int count : counts) CHECK(std::abs(count - 10000) < 500);  // five deviations of 93
}
