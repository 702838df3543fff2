// Numbers as text and the random streams.
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "catch.h"
#include "normlab/base/rng.h"
#include "normlab/base/text.h"

using namespace normlab;

TEST_CASE("numbers print in their shortest round-trip form", "[base]") {
  CHECK(number(0.1) == "0.1");
  CHECK(number(0.1f) == "0.1");
  CHECK(fixed(2.0, 3) == "2.000");
  CHECK(parse_double("1e-4") == 1e-4);
  CHECK(!parse_double("1,5"));
}

TEST_CASE("the first draws for seed 1337 are constants", "[base]") {
  // SplitMix64 with FNV-1a, computed once with Python's integers.
  Random random(1337, "test");
  std::vector<std::uint64_t> draws;
  for (int i = 0; i < 8; ++i) draws.push_back(random.next());
  CHECK(draws == std::vector<std::uint64_t>{0xfc7e7bd1645dec4a, 0x3654524b4001bf40, 0x760585db43091ea,
                                            0x95cddeb21ed7a4da, 0x6399684c55bd1c4a, 0x7b62648246e15fa9,
                                            0x747360c0eec52ed4, 0x537325288c397702});
}

TEST_CASE("normal draws have the moments of N(0, 1)", "[base]") {
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

TEST_CASE("draws below n are even", "[base]") {
  Random random(1, "below");
  std::vector<int> counts(7);
  for (int i = 0; i < 70000; ++i) ++counts[random.below(7)];
  for (const int count : counts) CHECK(std::abs(count - 10000) < 500);  // five deviations of 93
}

TEST_CASE("decimal text is read as the nearest double, ties to even", "[base]") {
  // Bits by hand: 2^53 + 1 and 2^53 + 3 lie halfway between two doubles; 2^-1075 between 0 and the least one.
  CHECK(std::bit_cast<std::uint64_t>(*parse_double("9007199254740993")) == 0x4340000000000000);
  CHECK(std::bit_cast<std::uint64_t>(*parse_double("9007199254740995")) == 0x4340000000000002);
  CHECK(std::bit_cast<std::uint64_t>(*parse_double("9007199254740993.00000000000000000000000000001")) ==
        0x4340000000000001);
  CHECK(std::bit_cast<std::uint64_t>(*parse_double("9007199254740993" + std::string(900, '0') + "1e-901")) ==
        0x4340000000000001);
  CHECK(std::bit_cast<std::uint64_t>(*parse_double("4.9406564584124654e-324")) == 1);
  CHECK(std::bit_cast<std::uint64_t>(*parse_double("2.2250738585072011e-308")) == 0x000FFFFFFFFFFFFF);
  CHECK(std::bit_cast<std::uint64_t>(*parse_double("2.2250738585072014e-308")) == 0x0010000000000000);
  CHECK(std::bit_cast<std::uint64_t>(*parse_double("1.7976931348623157e308")) == 0x7FEFFFFFFFFFFFFF);
  CHECK(std::bit_cast<std::uint64_t>(*parse_double("-0")) == 0x8000000000000000);
  CHECK(*parse_double("0e999999999999999999999") == 0);
  CHECK(*parse_double("." + std::string(400, '0') + "1e401") == 1);
  CHECK(std::isinf(*parse_double("-inf")));
  for (const char* out_of_range : {"1.7976931348623159e308", "1e400", "1e-400", "2e-324", "1e99999999999999999999"})
    CHECK_FALSE(parse_double(out_of_range));
  for (const char* none : {"", ".", "-", "e5", "1e", "1e+", "+1", " 1", "1 ", "1.2.3", "0x10", "1,5"})
    CHECK_FALSE(parse_double(none));
}

TEST_CASE("every double is read back from its text, and from 17 digits", "[base]") {
  const Random random(7, "decimal");
  for (std::uint64_t i = 0; i < 20000; ++i) {
    const auto value = std::bit_cast<double>(random.bits(i));
    if (!std::isfinite(value) || value == 0) continue;
    INFO(number(value));
    REQUIRE(std::bit_cast<std::uint64_t>(*parse_double(number(value))) == random.bits(i));
    REQUIRE(std::bit_cast<std::uint64_t>(*parse_double(significant(value, 17))) == random.bits(i));
  }
}
