// JSON: what is read, what is refused and where, what is written.
#include "normlab/formats/json.h"

#include <cmath>
#include <limits>

#include "catch.h"

using namespace normlab;

namespace {

Json parse(std::string_view text) { return parse_json(text, "x.json"); }

std::string error_of(std::string_view text) {
  try {
    parse(text);
  } catch (const DataError& error) {
    return error.what();
  }
  return "read without an error";
}

}  // namespace

TEST_CASE("json values of every kind are read", "[formats]") {
  const Json json = parse(" {\"a\": [1, -2.5e3, true, false, null],\n\t\"b\": {\"c\": \"d\"}, \"\": []}\r\n");
  CHECK(json.at("a").elements().size() == 5);
  CHECK(json.at("a").elements()[0].integer() == 1);
  CHECK(json.at("a").elements()[1].real() == -2500.0);
  CHECK(json.at("a").elements()[2].boolean());
  CHECK(!json.at("a").elements()[3].boolean());
  CHECK(json.at("a").elements()[4].is_null());
  CHECK(json.at("b").at("c").string() == "d");
  CHECK(json.members()[2].name.empty());
  CHECK(json.find("z") == nullptr);
  CHECK(json.line() == R"({"a":[1,-2.5e3,true,false,null],"b":{"c":"d"},"":[]})");
}

TEST_CASE("json numbers stay exact", "[formats]") {
  CHECK(parse("9223372036854775807").integer() == std::numeric_limits<std::int64_t>::max());
  CHECK(parse("-9223372036854775808").integer() == std::numeric_limits<std::int64_t>::min());
  CHECK(parse("9007199254740993").integer() == 9007199254740993);  // 2^53 + 1: a double would round it
  CHECK(parse("0.1").real() == 0.1);
  CHECK(parse("5e-324").real() == 5e-324);
  CHECK(std::signbit(parse("-0").real()));
  CHECK(parse("18446744073709551615").line() == "18446744073709551615");
  CHECK(Json(0.1f).line() == "0.1");
  CHECK(Json(0.1).line() == "0.1");
  CHECK(Json(static_cast<double>(0.1f)).line() == "0.10000000149011612");
  CHECK(Json(1e300).line() == "1e+300");
  CHECK(Json(std::numeric_limits<std::int64_t>::min()).line() == "-9223372036854775808");
  CHECK(Json(std::numeric_limits<double>::quiet_NaN()).line() == "null");
  CHECK(Json(-std::numeric_limits<float>::infinity()).line() == "null");
  CHECK_THROWS_WITH(
      parse("9223372036854775808").integer(),
      "expected a whole number of 64 bits (-9223372036854775808 to 9223372036854775807), found the number "
      "9223372036854775808");
  CHECK_THROWS_WITH(parse("1.0").integer(), ContainsSubstring("whole number"));
  CHECK_THROWS_WITH(parse("1e400").real(), ContainsSubstring("a double can hold"));
  CHECK_THROWS_WITH(parse("\"1\"").real(), ContainsSubstring("found the text \"1\""));
  CHECK_THROWS_WITH(parse("{}").at("step"), ContainsSubstring("\"step\""));
}

TEST_CASE("json texts: escapes and UTF-8, both ways", "[formats]") {
  // U+00E9, U+20AC, U+1F600 (the pair D83D DE00), NUL, and every short escape
  CHECK(parse(R"("\u00e9\u20AC\ud83d\ude00")").string() == "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  CHECK(parse(R"("\u0000")").string() == std::string(1, '\0'));
  CHECK(parse(R"("\"\\\/\b\f\n\r\t")").string() == "\"\\/\b\f\n\r\t");
  CHECK(parse("\"\xF4\x8F\xBF\xBF\"").string() == "\xF4\x8F\xBF\xBF");  // U+10FFFF, the last
  CHECK(Json("a\"b\\c\n\t\x01\x1F\x7F/").line() == "\"a\\\"b\\\\c\\n\\t\\u0001\\u001f\x7F/\"");
  CHECK(Json("\xF0\x9F\x98\x80").line() == "\"\xF0\x9F\x98\x80\"");
  CHECK(Json("a\xFFz\xC3").line() == "\"a\xEF\xBF\xBDz\xEF\xBF\xBD\"");
}

TEST_CASE("json that is not valid is refused with its place", "[formats]") {
  CHECK(error_of("") == "x.json:1:1: expected a value, found the end of the text");
  CHECK(error_of("{\n \"a\": 1\n \"b\": 2}") == "x.json:3:2: expected ',' or '}', found '\"'");
  CHECK(error_of("[\"\xC3\xA9\", x]") == "x.json:1:7: expected a value, found 'x'");  // columns are characters
  CHECK(error_of("{\"a\": 1, \"b\": 2,\n\"a\": 3}") ==
        "x.json:2:1: the name \"a\" stands here a second time; remove one");
  CHECK(error_of("{\"a\": 1, \"\\u0061\": 2}") == "x.json:1:10: the name \"a\" stands here a second time; remove one");
  CHECK(error_of("1 2") == "x.json:1:3: expected the end of the document, found '2'");
  CHECK(error_of("\xEF\xBB\xBF{}") == "x.json:1:1: starts with a byte order mark; save the file as UTF-8 without one");
  const auto [text, message] = GENERATE(table<std::string, std::string>({
      {"[1,]", "1:4: expected a value, found ']'"},
      {"[1", "1:3: expected ',' or ']', found the end of the text"},
      {"{\"a\":1,}", "1:8: expected a name in double quotes, found '}'"},
      {"{a:1}", "1:2: expected a name"},
      {"{\"a\" 1}", "1:6: expected ':' after a name, found '1'"},
      {"01", "1:1: a number may not start with 0"},
      {"-", "1:2: expected a digit"},
      {"+1", "1:1: expected a value, found '+'"},
      {".5", "1:1: expected a value"},
      {"1.", "1:3: expected a digit"},
      {"1e", "1:3: expected a digit"},
      {"1e+", "1:4: expected a digit"},
      {"NaN", "1:1: expected a value, found 'N'"},
      {"nul", "1:1: expected a value"},
      {"truex", "1:5: expected the end"},
      {"'a'", "1:1: expected a value"},
      {"\"a", "1:1: this text has no closing"},
      {"\"a\nb\"", "1:3: control character 10 in a text"},
      {"\"\\x\"", "1:2: unknown escape"},
      {"\"\\u12g4\"", "1:2: \\u needs four hexadecimal digits"},
      {"\"\\ud83d\"", "1:2: half of a surrogate pair"},
      {"\"\\ude00\\ud83d\"", "1:2: half of a surrogate pair"},
      {"\"\\ud83d\\u0041\"", "1:2: half of a surrogate pair"},
      {"\"\xC0\x80\"", "1:2: a byte that is not UTF-8"},          // overlong NUL
      {"\"\xED\xA0\x80\"", "1:2: a byte that is not UTF-8"},      // U+D800
      {"\"\xF4\x90\x80\x80\"", "1:2: a byte that is not UTF-8"},  // above U+10FFFF
      {"\"\xE2\x82\"", "1:2: a byte that is not UTF-8"},          // cut short
      {"[\xFF]", "1:2: expected a value, found a byte that is not UTF-8"},
      {"/* c */ 1", "1:1: expected a value, found '/'"},
  }));
  CHECK_THAT(error_of(text), ContainsSubstring("x.json:" + message));
}

TEST_CASE("json nests 128 levels deep and no further", "[formats]") {
  const auto nested = [](std::size_t levels) { return std::string(levels, '[') + std::string(levels, ']'); };
  CHECK(parse(nested(128)).is_array());
  CHECK_THAT(error_of(nested(129)), ContainsSubstring("1:129: more than 128 levels"));
  CHECK_THAT(error_of(std::string(1000000, '[')), ContainsSubstring("more than 128 levels"));
}

TEST_CASE("json is built in order and written in both forms", "[formats]") {
  Json json = Json::object({{"step", 12}, {"kind", "train"}, {"floor", std::optional<double>()}});
  json.set("loss", 2.5f).set("step", 13).set("shape", std::vector<std::int64_t>{3, 5});
  Json runs;
  runs.push(Json::object({{"seed", std::size_t{1}}}));
  runs.push(Json::object());
  json.set("runs", runs).set("on", true).set("none", Json::array());
  const std::string line =
      R"({"step":13,"kind":"train","floor":null,"loss":2.5,"shape":[3,5],"runs":[{"seed":1},{}],"on":true,"none":[]})";
  CHECK(json.line() == line);
  CHECK(json.indented() ==
        "{\n  \"step\": 13,\n  \"kind\": \"train\",\n  \"floor\": null,\n  \"loss\": 2.5,\n  \"shape\": [3, 5],\n"
        "  \"runs\": [\n    {\n      \"seed\": 1\n    },\n    {}\n  ],\n  \"on\": true,\n  \"none\": []\n}");
  CHECK(parse(line) == json);
  CHECK(parse(json.indented()) == json);
  CHECK_THROWS_AS(Json(~std::uint64_t{0}), ShapeError);
}
