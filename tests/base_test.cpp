// Numbers as text and the random streams.
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
