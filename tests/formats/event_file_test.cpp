// Event files against a recorded one, and taken apart again.
#include "normlab/formats/event_file.h"

#include <cstring>
#include <string>
#include <vector>

#include "catch.h"
#include "normlab/formats/crc32c.h"

using namespace normlab;

namespace {

std::string from_hex(std::string_view digits) {
  std::string bytes;
  for (std::size_t i = 0; i < digits.size(); i += 2)
    bytes += static_cast<char>(std::stoi(std::string(digits.substr(i, 2)), nullptr, 16));
  return bytes;
}

}  // namespace

TEST_CASE("event file: the bytes that tensorboardX writes for a version and a scalar", "[formats]") {
  const EventScalar loss[] = {{"loss", 1.5f}};
  CHECK(
      version_event(1) + scalar_event(2, 3, loss) ==
      from_hex("1800000000000000a37f4b2209000000000000f03f1a0d627261696e2e4576656e743a3286bf577a1a00000000000000129bd8"
               "2d09000000000000004010032a0d0a0b0a046c6f7373150000c03f22bc952a"));
}

TEST_CASE("event file: several scalars share a record; large steps and texts have long numbers", "[formats]") {
  const EventScalar two[] = {{"a/b", 1}, {"c/d", -2}};
  const std::string record = scalar_event(0, 300, two);  // 300 is AC 02 as a varint
  CHECK(record.find(from_hex("10ac02")) == 12 + 9);
  CHECK(record.find("a/b") < record.find("c/d"));
  double latest = 0;
  const std::string file =
      version_event(1) + scalar_event(2, 300, two) + scalar_event(3, 301, two) + text_event(4, 5, "t", "x");
  CHECK(events_before(file, 301, latest) == version_event(1) + scalar_event(2, 300, two) + text_event(4, 5, "t", "x"));
  CHECK(latest == 4);
  for (std::size_t cut = 0; cut < file.size(); ++cut) {  // what is damaged, and what lies after it, stays
    std::string bad = file;
    bad[cut] ^= 1;
    const std::string kept = events_before(bad, 1000, latest);
    CHECK((kept == bad));
    CHECK((events_before(file.substr(0, cut), 1000, latest) == file.substr(0, cut)));
  }
  const std::string text = text_event(0, 0, "config", std::string(1000, 'x'));
  std::uint64_t length = 0;
  std::memcpy(&length, text.data(), 8);
  CHECK(text.size() == length + 16);
  CHECK(text.find(std::string(1000, 'x')) != std::string::npos);
  CHECK(restart_event(0, 5).find(from_hex("10053a020801")) == 12 + 9);  // step 5, session_log {status: START}
}
