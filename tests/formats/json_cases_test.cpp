// JSON by the kinds of cases that JSONTestSuite has: y is JSON, n is not, i may be either and must not crash. `make
// suites` runs the suite itself.
#include <string>
#include <vector>

#include "catch.h"
#include "json_values.h"

using namespace normlab;
using namespace std::string_literals;

namespace {

bool is_accepted(const std::string& text) {
  try {
    const Json json = parse_json(text, "f");
    REQUIRE(parse_json(json.line(), "again") == json);
    return true;
  } catch (const DataError& error) {
    REQUIRE(std::string(error.what()).starts_with("f:"));
    return false;
  }
}

}  // namespace

TEST_CASE("json that RFC 8259 has is accepted", "[formats]") {
  for (const std::string& text : {"[]"s,
                                  "{}"s,
                                  " [ ] "s,
                                  "\t{\n}\r\n"s,
                                  "null"s,
                                  "true"s,
                                  "false"s,
                                  "\"\""s,
                                  "0"s,
                                  "-0"s,
                                  "-0.0"s,
                                  "1e1"s,
                                  "1E+2"s,
                                  "1.5e-3"s,
                                  "0e1"s,
                                  "123456789012345678901234567890"s,
                                  "[1,2]"s,
                                  "[[],[[]]]"s,
                                  "{\"\":0}"s,
                                  "{\"a\":{\"b\":[]}}"s,
                                  R"("\"\\\/\b\f\n\r\t")"s,
                                  R"("\u0000\u001F\u00e9\uFFFF")"s,
                                  R"("\uD834\uDD1E")"s,
                                  R"("\u2028")"s,
                                  "\"\x7F\""s,
                                  "\"\xC3\xA9\xE2\x80\xA8\xF4\x8F\xBF\xBF\""s,
                                  "\"\xEF\xBB\xBF\""s,
                                  "[1 , \"a\"\n]"s,
                                  "{\"a\" : 1 , \"b\":null}"s,
                                  "\"'\""s,
                                  "\"/*\"//\"\""s.substr(0, 4),
                                  "[\"a,/*b*/\"]"s,
                                  "1.0000000000000001"s,
                                  "-123123e-5"s}) {
    CAPTURE(text);
    CHECK(is_accepted(text));
  }
}

TEST_CASE("json that RFC 8259 has not is refused", "[formats]") {
  for (const std::string& text : {""s,
                                  " "s,
                                  "["s,
                                  "]"s,
                                  "{"s,
                                  "}"s,
                                  "[1,]"s,
                                  "[,1]"s,
                                  "[1 2]"s,
                                  "[1,,2]"s,
                                  "[1]]"s,
                                  "[1]x"s,
                                  "[}"s,
                                  "{]"s,
                                  "{\"a\":1,}"s,
                                  "{,}"s,
                                  "{\"a\"}"s,
                                  "{\"a\",1}"s,
                                  "{\"a\":}"s,
                                  "{a:1}"s,
                                  "{1:1}"s,
                                  "{'a':1}"s,
                                  "{\"a\"::1}"s,
                                  "{\"a\":1 \"b\":2}"s,
                                  "{\"a\":1}#"s,
                                  "{\"a\":1}/**/"s,
                                  "// a\n1"s,
                                  "\"a"s,
                                  "\"\\\""s,
                                  "\"\\x41\""s,
                                  "\"\\u12\""s,
                                  "\"\\u12G4\""s,
                                  "\"\\U0041\""s,
                                  "\"\\a\""s,
                                  "\"\t\""s,
                                  "\"\n\""s,
                                  "\"a\0b\""s,
                                  "'a'"s,
                                  "+1"s,
                                  "-"s,
                                  "--1"s,
                                  "01"s,
                                  "-01"s,
                                  "1."s,
                                  ".5"s,
                                  "-.5"s,
                                  "1e"s,
                                  "1e+"s,
                                  "1.e1"s,
                                  "0x1"s,
                                  "1_0"s,
                                  "1 000"s,
                                  "Infinity"s,
                                  "-Infinity"s,
                                  "NaN"s,
                                  "nan"s,
                                  "inf"s,
                                  "True"s,
                                  "nul"s,
                                  "truefalse"s,
                                  "undefined"s,
                                  "\xEF\xBB\xBF{}"s,
                                  "\xEF\xBB"s,
                                  "[\0]"s,
                                  "1\0"s,
                                  "\xFF"s,
                                  "\"\xFF\""s,
                                  "\"\xC0\xAF\""s,
                                  "\"\xED\xA0\x80\""s,
                                  "\"\xE2\x80\""s,
                                  "\"\xF4\x90\x80\x80\""s,
                                  R"("\uD800")"s,
                                  R"("\uDC00")"s,
                                  R"("\uD800\u0041")"s,
                                  R"("\uD800\uD800")"s,
                                  "\v1"s,
                                  "\f1"s,
                                  "\xC2\xA0"s
                                  "1"s,
                                  "[\"a\",\n4\n,1,"s,
                                  "{\"a\":\"b\",\"a\":\"c\"}"s,
                                  "{\"a\":1,\"\\u0061\":2}"s,
                                  "\xFF\xFE[\0]\0"s,
                                  "\0[\0]"s,
                                  std::string(100000, '['),
                                  std::string(50000, '{'),
                                  []() {
                                    std::string deep;
                                    for (int i = 0; i < 20000; ++i) deep += "[{\"\":";
                                    return deep;
                                  }()}) {
    CAPTURE(text.substr(0, 40));
    CHECK(!is_accepted(text));
  }
}

TEST_CASE("json at the limits", "[formats][slow]") {
  const auto nested = [](int depth) {
    const auto n = static_cast<std::size_t>(depth);
    return std::string(n, '[') + std::string(n, ']');
  };
  CHECK(is_accepted(nested(kMaxJsonDepth)));
  CHECK_THROWS_WITH(parse_json(nested(kMaxJsonDepth + 1), "f"), "f:1:129: more than 128 levels of arrays and objects");
  CHECK_THROWS_WITH(parse_json(std::string(kMaxJsonBytes + 1, ' '), "f"),
                    ContainsSubstring("longer than 134217728 bytes"));
  std::string many = "[0";
  for (std::size_t i = 2; i < kMaxJsonValues; ++i) many += ",0";
  CHECK(parse_json(many + "]", "f").elements().size() == kMaxJsonValues - 1);
  CHECK_THROWS_WITH(parse_json(many + ",0]", "f"), ContainsSubstring("more than 8388608 values"));
  // RFC 8259 leaves numbers beyond a double open: they are kept as written, and refused where one is asked for.
  const Json huge = parse_json("1e400", "f");
  CHECK(huge.line() == "1e400");
  CHECK_THROWS_AS(huge.real(), DataError);
  CHECK_THROWS_WITH(parse_json("\xFE\xFF", "f"), ContainsSubstring("is UTF-16, not JSON"));
}
