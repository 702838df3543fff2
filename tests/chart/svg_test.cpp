// Pictures: places of values, ticks, gaps, escapes.
#include "normlab/chart/svg.h"

#include <cmath>

#include "catch.h"
#include "normlab/base/text.h"

using namespace normlab;

namespace {

std::size_t count(const std::string& text, std::string_view part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

}  // namespace

TEST_CASE("a line starts again after a gap, and its values are told", "[chart]") {
  const double nan = std::nan("");
  const svg::Chart chart{"loss & more", {"step"}, {"nats"}, {{"pre", {0, 1, 2, 3}, {3, 2, nan, 1}}}, {{"floor", 0.5}}};
  const svg::Picture picture = svg::chart(chart);
  const std::size_t path = picture.body.find("class=\"line c0\" d=\"M58");  // the legend's line comes first
  REQUIRE(path != std::string::npos);
  CHECK_THAT(picture.body, ContainsSubstring("loss &amp; more"));
  CHECK_THAT(picture.body, ContainsSubstring("step 1\npre: 2"));
  CHECK_THAT(picture.body, ContainsSubstring("floor 0.50"));
  // Three steps over the plot's width, from 58 to 446: step 1 lies at 58 + 388 / 3.
  CHECK_THAT(picture.body, ContainsSubstring("L187.3 "));
  CHECK_THAT(picture.body, ContainsSubstring("M446 "));
}

TEST_CASE("a logarithmic axis has powers of ten at equal distances, and leaves out what is not above 0", "[chart]") {
  const svg::Chart chart{"", {"L", true}, {"g", true}, {{"", {0, 1, 10, 100}, {1, 1, 10, 100}}}};
  const std::string body = svg::chart(chart).body;
  CHECK_THAT(body, ContainsSubstring("L252 "));  // 10 is half way between 58 and 446
  CHECK(count(body, ">10</text>") == 2);         // a tick of either axis
}

TEST_CASE("a level without a name is a line alone, and the tick at 0 has no sign", "[chart]") {
  const std::string body = svg::chart({"", {"x"}, {"y"}, {{"", {0, 1}, {1, 2}}}, {{"", 0}}}).body;
  CHECK(count(body, "class=\"level\"") == 1);
  CHECK(count(body, "0.00") == 0);
  CHECK(count(body, ">-0</text>") == 0);
  CHECK(count(body, ">0</text>") == 2);  // of either axis
}

TEST_CASE("a heat map has a cell for each finite value, with its colour and number", "[chart]") {
  svg::HeatMap map{"map", "lr", "w", "loss", {"1e-3", "1e-2"}, {"0", "100"}, {{1, 2}, {std::nan(""), 3}}};
  map.show_values = true;
  const std::string body = svg::heat_map(map).body;
  CHECK(count(body, "<title>") == 3);
  CHECK_THAT(body, ContainsSubstring("lr 1e-2\nw 100\nloss 3"));
  CHECK_THAT(body, ContainsSubstring("class=\"cell q10\""));  // 2 is half way from 1 to 3
}

TEST_CASE("a long line is drawn with a few hundred points and keeps its peak", "[chart]") {
  svg::Series series{"loss", {}, {}};
  for (int i = 0; i < 50000; ++i) {
    series.x.push_back(i);
    series.y.push_back(i == 12345 ? 100 : 1);
  }
  const svg::Picture picture = svg::chart({"", {"step"}, {"loss"}, {series}});
  CHECK(picture.body.size() < 40000);
  CHECK(count(picture.body, "L") < 500);
  // The peak lies 5% below the top of the plot, of height 230: at 230 x 0.05 / 1.1 = 10.5 below it.
  const std::string file = svg::file(std::vector<svg::Picture>{picture, picture, picture}, 2);
  CHECK_THAT(file, ContainsSubstring("width=\"968\""));  // 2 x 460 and 3 gaps of 16
}

TEST_CASE("a long title goes on in a second line, and the picture grows by it", "[chart]") {
  svg::Chart chart{"short", {"x"}, {"y"}, {{"", {0, 1}, {1, 2}}}};
  const double height = svg::chart(chart).height;
  chart.title = "what earlier logits see of a later token, with the batch norm in training";
  const svg::Picture longer = svg::chart(chart);
  CHECK(longer.height == height + 17);  // a line of text
  CHECK(count(longer.body, "class=\"title\"") == 2);
  CHECK_THAT(longer.body, ContainsSubstring(">what earlier logits"));
  CHECK_THAT(longer.body, ContainsSubstring("in training</text>"));
}

TEST_CASE("the name of a level makes way for curves", "[chart]") {
  // Two curves that run at these heights from the middle on.
  const auto place_of_name = [](double above, double below) {
    const svg::Chart chart{
        "", {"x"}, {"y"}, {{"", {0, 5, 10}, {3, above, above}}, {"", {0, 5, 10}, {0, below, below}}}, {{"unigram", 1}}};
    const std::string body = svg::chart(chart).body;
    const std::size_t begin = body.rfind("<text x=\"", body.find("class=\"soft halo\"")) + 9;
    return parse_double(body.substr(begin, body.find('"', begin) - begin)).value();
  };
  CHECK(place_of_name(3, 0) == 443);                // at the right, 3 from the frame
  CHECK(place_of_name(1.05, 0) == 443);             // below the level
  CHECK(place_of_name(1.05, 0.95) < 58 + 388 / 2);  // left of the middle
}

TEST_CASE("an axis of whole numbers has whole ticks", "[chart]") {
  const std::string body = svg::chart({"", {"block"}, {"y"}, {{"", {0, 1, 2}, {1.5, 2.5, 2}}}}).body;
  CHECK(count(body, ">0.5</text>") == 0);
  CHECK(count(body, ">1</text>") == 1);
  const std::string halves = svg::chart({"", {"x"}, {"y"}, {{"", {0, 0.5, 2}, {1.5, 2.5, 2}}}}).body;
  CHECK(count(halves, ">0.5</text>") == 1);
}

TEST_CASE("text with control characters leaves XML that is well-formed", "[chart]") {
  // XML 1.0, 2.2: of the characters below U+0020 only tab, line feed and carriage return; no U+FFFE, no U+FFFF.
  CHECK(svg::escaped("a\x01\x1B\x7F\xC2\x85\xC2\x9F\xEF\xBF\xBE\xFF|") ==
        "a\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD|");
  CHECK(svg::escaped("\t\r\n<&>\"\xC3\xA9\xF0\x9F\x98\x80") == "\t\r\n&lt;&amp;&gt;&quot;\xC3\xA9\xF0\x9F\x98\x80");
}

TEST_CASE("an empty cell says why", "[chart]") {
  svg::HeatMap map{"map", "lr", "w", "loss", {"1e-3", "10"}, {"0"}, {{1, std::nan("")}}};
  map.notes = {{"unseen", "diverged"}};
  const std::string body = svg::heat_map(map).body;
  CHECK_THAT(body, ContainsSubstring(">diverged</text>"));
  CHECK(count(body, "unseen") == 0);
}
