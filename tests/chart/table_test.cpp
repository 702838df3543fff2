// Tables of text.
#include "normlab/chart/table.h"

#include "catch.h"

using namespace normlab;

TEST_CASE("a table's first column stands to the left, and what is too wide goes on below, next to it", "[chart]") {
  const std::vector<Row> rows{{"block", "a", "bcd", "e"}, {"0", "10", "2", "3"}};
  CHECK(aligned(rows) == "block   a  bcd  e\n0      10    2  3\n");
  CHECK(aligned(rows, 17) == aligned(rows));
  CHECK(aligned(rows, 16) == "block   a  bcd\n0      10    2\n\nblock  e\n0      3\n");
  CHECK(aligned(rows, 1) == "block   a\n0      10\n\nblock  bcd\n0        2\n\nblock  e\n0      3\n");
  CHECK(aligned({{"alone"}}) == "alone\n");
}
