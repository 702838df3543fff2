// The YAML parser: values, places, and everything that is refused, by message.
#include "normlab/config/yaml.h"

#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "catch.h"
#include "normlab/base/check.h"
#include "normlab/base/rng.h"

using namespace normlab;
using namespace normlab::config;

namespace {

// The tree in one line: plain scalars as they are, quoted ones in "", nothing as ~.
std::string shown(const Yaml& node) {
  std::string out;
  switch (node.kind) {
    case Yaml::Kind::null:
      return "~";
    case Yaml::Kind::scalar:
      return node.quoted ? "\"" + node.text + "\"" : node.text;
    case Yaml::Kind::sequence:
      for (const Yaml& item : node.children) out += (out.empty() ? "" : ", ") + shown(item);
      return "[" + out + "]";
    case Yaml::Kind::mapping:
      for (const Yaml& item : node.children) out += (out.empty() ? "" : ", ") + item.key + ": " + shown(item);
      return "{" + out + "}";
  }
  return out;
}

std::string parsed(std::string_view document) {
  try {
    return shown(parse_yaml(document, "f"));
  } catch (const ConfigError& error) {
    return error.what();
  }
}

std::string core_type(std::string_view text) {
  if (core_null(text)) return "null";
  if (const auto x = core_bool(text)) return *x ? "true" : "false";
  if (const auto x = core_int(text)) return "int " + number(*x);
  if (const auto x = core_float(text)) return "float " + number(*x);
  return "text";
}

using Case = std::pair<std::string, std::string>;
void check_all(const std::vector<Case>& cases) {
  for (const auto& [document, expected] : cases) {
    CAPTURE(document);
    CHECK(parsed(document) == expected);
  }
}

const std::string kSample =
    "\xEF\xBB\xBF# a comment\r\nseed: 1\r\nmodel: {norm: \"r\\u00e9\\ud83d\\ude00\", list: [1, 'it''s', {a: b}]}\n"
    "text: |+\n  one\n   two\n\nitems:\n- 1\n- - 2\n  - x: y\n    z: \"a\n      b\"\n";

}  // namespace

TEST_CASE("plain scalars by the core schema", "[config]") {
  // YAML 1.2.2, section 10.3.2
  const std::vector<Case> cases{
      {"", "null"},
      {"~", "null"},
      {"null", "null"},
      {"NULL", "null"},
      {"nUll", "text"},
      {"true", "true"},
      {"False", "false"},
      {"tRuE", "text"},
      {"no", "text"},
      {"off", "text"},
      {"yes", "text"},
      {"on", "text"},
      {"y", "text"},
      {"n", "text"},
      {"017", "int 17"},
      {"08", "int 8"},
      {"0o17", "int 15"},
      {"0x1F", "int 31"},
      {"0xg", "text"},
      {"0o8", "text"},
      {"-0x1", "text"},
      {"0b11", "text"},
      {"1_000", "text"},
      {"12:30:45", "text"},
      {"+5", "int 5"},
      {"-5", "int -5"},
      {"--5", "text"},
      {"+", "text"},
      {"-", "text"},
      {".", "text"},
      {"1e-4", "float 1e-04"},
      {"1E-4", "float 1e-04"},
      {"1e+4", "float 10000"},
      {"1.0e4", "float 10000"},
      {"1.e-4", "float 1e-04"},
      {"-.5e3", "float -500"},
      {".5", "float 0.5"},
      {"5.", "float 5"},
      {"+.5", "float 0.5"},
      {"1e", "text"},
      {"1e+", "text"},
      {"e1", "text"},
      {".e1", "text"},
      {"1.5.2", "text"},
      {"1,5", "text"},
      {".inf", "float inf"},
      {"-.INF", "float -inf"},
      {"+.Inf", "float inf"},
      {".NaN", "float nan"},
      {"inf", "text"},
      {"nan", "text"},
      {"-.nan", "text"},
      {"2024-01-01", "text"},
      {"=", "text"},
      {"9223372036854775807", "int 9223372036854775807"},
      {"9223372036854775808", "float 9223372036854775808"},
      {"0x8000000000000000", "text"},
      {"1e999", "text"},
  };
  for (const auto& [text, expected] : cases) {
    CAPTURE(text);
    CHECK(core_type(text) == expected);
  }
}

TEST_CASE("block and flow collections", "[config]") {
  check_all({
      {"", "~"},
      {"# only\n\n", "~"},
      {"x", "x"},
      {"a: 1\nb:\nc: 'x' # comment\n", "{a: 1, b: ~, c: \"x\"}"},
      {"a: x#y\nb: c d  # e", "{a: x#y, b: c d}"},
      {"a:\n  b:\n    c: 1\n  d: 2\ne: 3", "{a: {b: {c: 1}, d: 2}, e: 3}"},
      {"a:\n- 1\n- 2\nb:\n  - 3", "{a: [1, 2], b: [3]}"},
      {"- - 1\n  - 2\n-\n- a: 1\n  b: 2\n-\n  c: 3", "[[1, 2], ~, {a: 1, b: 2}, {c: 3}]"},
      {"a: [1, two, [3], {b: c}, \"x\", 'y',]", "{a: [1, two, [3], {b: c}, \"x\", \"y\"]}"},
      {"a: {b: 1, 'c': 2, \"d\":3, e: , f: [ ]}", "{a: {b: 1, c: 2, d: 3, e: ~, f: []}}"},
      {"a: [\n  1, # one\n  2\n]\nb: 2", "{a: [1, 2], b: 2}"},
      {"a: http://x/y\nb: c:d\nc: -x\nd: ?x\ne: :x", "{a: http://x/y, b: c:d, c: -x, d: ?x, e: :x}"},
      {"a: 12:30\n\"b c\": 1\nd e : 2", "{a: 12:30, b c: 1, d e: 2}"},
      {"a:\tb", "{a: b}"},
      {"# c\n--- # d\na: 1", "{a: 1}"},
      {"\xC3\xBC: \xF0\x9F\x98\x80", "{\xC3\xBC: \xF0\x9F\x98\x80}"},
  });
}

TEST_CASE("JSON, with tabs too", "[config]") {
  check_all({
      {R"({"a": [1, 2.5e3, true, null, "x\u00fc"], "b": {"c": {}}, "d": []})",
       "{a: [1, 2.5e3, true, ~, \"x\xC3\xBC\"], b: {c: {}}, d: []}"},
      {"{\n\t\"a\":1,\n\t\"b\" : [\n\t\t\"\\/\"\n\t]\n}\n", "{a: 1, b: [\"/\"]}"},
  });
}

TEST_CASE("quotes, escapes and lines within quotes", "[config]") {
  check_all({
      {"'it''s'", "\"it's\""},
      {"''", "\"\""},
      {R"("\t\n\"\\\/\x41\u00e9\U0001F600\ud83d\ude00\_")",
       "\"\t\n\"\\/A\xC3\xA9\xF0\x9F\x98\x80\xF0\x9F\x98\x80\xC2\xA0\""},
      {R"("\a\b\e\f\r\v\ \N\L\P")", "\"\a\b\x1B\f\r\v \xC2\x85\xE2\x80\xA8\xE2\x80\xA9\""},
      {"a: 'one\n  two\n\n  three  \n   four'", "{a: \"one two\nthree four\"}"},
      {"a: \"one \\n \n  two\\\n   three\n\n\n  five\\ \n  six\"", "{a: \"one \n twothree\n\nfive  six\"}"},
      // Escaped breaks, empty lines after them, and blanks before them: YAML 1.2.2, 7.3.1.
      {"\"a\\\n\nb\"", "\"a\nb\""},
      {"a: \"x \\\n\n \n  y\\\n  \\ z\"", "{a: \"x \n\ny z\"}"},
      {R"(["\q"])", "f:1:3: this escape is unknown; write \\\\ for a backslash"},
      {R"(a: "\ud83d")", "f:1:5: an escape that is no Unicode character"},
      {R"(a: "\ud83d\u0041")", "f:1:5: an escape that is no Unicode character"},
      {R"(a: "\udc00")", "f:1:5: an escape that is no Unicode character"},
      {R"(a: "\U00110000")", "f:1:5: an escape that is no Unicode character"},
      {R"(a: "\u12g4")", "f:1:5: an escape that wants 4 hexadecimal digits"},
      {"a: \"x\nb: 2", "f:1:4: the quoted text that starts here is not closed"},
      {"a: 'x", "f:1:4: the quoted text that starts here is not closed"},
      {"a: \"x\\", "f:1:4: the quoted text that starts here is not closed"},
  });
  CHECK(parse_yaml("\"\\0\"", "f").text == std::string(1, '\0'));
}

TEST_CASE("text is written so that readers of YAML 1.1 take it for the same", "[config]") {
  CHECK(yaml_text("a\xC2\x85"
                  "b.txt") == "\"a\\x85b.txt\"");
  CHECK(yaml_text("\x7F\xC2\x9F\xEF\xBF\xBE\xEF\xBF\xBF\xE2\x80\xA8\xE2\x80\xA9") ==
        "\"\\x7F\\x9F\\uFFFE\\uFFFF\\u2028\\u2029\"");
  CHECK(yaml_text("\xC2\xA0\xC3\xA9\xF0\x9F\x98\x80\\\"") == "\"\xC2\xA0\xC3\xA9\xF0\x9F\x98\x80\\\\\\\"\"");
}

TEST_CASE("literal blocks", "[config]") {
  check_all({
      {"a: |\n  x\n   y\n\n  z\n\n\nb: 1", "{a: \"x\n y\n\nz\n\", b: 1}"},
      {"a: |- # c\n  x\n\n", "{a: \"x\"}"},
      {"a: |+\n  x\n\n\nb: 1", "{a: \"x\n\n\n\", b: 1}"},
      {"a: |2\n    x\n  y", "{a: \"  x\ny\n\"}"},
      {"a: |1-\n  x\nb: 2", "{a: \" x\", b: 2}"},
      {"a: |\n\n\n  x\n", "{a: \"\n\nx\n\"}"},
      {"a: |\n\nb: 1", "{a: \"\", b: 1}"},
      {"a: |", "{a: \"\"}"},
      {"- |\n x\n- b: |\n   # y: z\n", "[\"x\n\", {b: \"# y: z\n\"}]"},
      {"a: |\n  x\n    \n  y: \"\tz\n", "{a: \"x\n  \ny: \"\tz\n\"}"},
      {"a: |\n    \n  x", "f:1:4: the literal block starts with a blank line that is indented deeper than its text"},
      {"a: |x\n y", "f:1:5: 'x' follows the | of a literal block on its line"},
  });
}

TEST_CASE("line breaks and a byte order mark", "[config]") {
  check_all({
      {"\xEF\xBB\xBF"
       "a: 1\r\nb:\r\n  - 2\r\n",
       "{a: 1, b: [2]}"},
      {"a: 1\rb: |\r  x\r  y\r", "{a: 1, b: \"x\ny\n\"}"},
      {"a: 1\r\n\r\nb c",
       "f:3:1: 'b c' has no ': '; 'key: value' is expected; entries of one mapping or list start in the "
       "same column; plain text over several lines is not supported: quote it"},
  });
}

TEST_CASE("what the subset has not is refused by name, with its place", "[config]") {
  check_all({
      {"a: &x 1", "f:1:4: anchors (&) are not supported; quote a text that starts with &"},
      {"a:\n  - *x", "f:2:5: aliases (*) are not supported; quote a text that starts with *"},
      {"a: [!t 1]", "f:1:5: tags (!) are not supported; quote a text that starts with !"},
      {"a: >\n  x", "f:1:4: folded blocks (>) are not supported; use | or double quotes"},
      {"? a\n: b", "f:1:1: complex keys (?) are not supported"},
      {"{? a : b}", "f:1:2: complex keys (?) are not supported"},
      {"[1]: 2", "f:1:1: complex keys are not supported: a key is text"},
      {"{[1]: 2}", "f:1:2: complex keys are not supported: a key is text"},
      {"a: 1\n<<: {b: 2}", "f:2:1: merge keys (<<) are not supported; write the keys out"},
      {"%YAML 1.2\n---\na: 1", "f:1:1: directives (%) are not supported"},
      {"a: 1\n---\nb: 2", "f:2:1: several documents are not supported: '---'"},
      {"a: [1,\n--- ]", "f:2:1: several documents are not supported: '---'"},
      {"a: 1\n...", "f:2:1: several documents are not supported: '...'"},
      {"a:\n\tb: 1", "f:2:1: tabs in the indentation are not supported; use spaces"},
      {"a:\n  b: 1\n \tc: 2", "f:3:2: tabs in the indentation are not supported; use spaces"},
      {"-\ta: 1", "f:1:3: tabs between '-' and its item are not supported; use spaces"},
      {"a: @x", "f:1:4: a plain text cannot start with '@'; quote it"},
      {"a: [b: 1]", "f:1:5: a 'key: value' pair within [ ] is not supported; write {key: value}"},
      {"a: [|\n x]", "f:1:5: a literal block cannot stand within brackets; use double quotes"},
  });
}

TEST_CASE("nonsense is refused, with its place", "[config]") {
  const std::string layout =
      "entries of one mapping or list start in the same column; plain text over several lines is not supported: quote "
      "it";
  check_all({
      {"a: 1\na: 2", "f:2:1: the key 'a' is given twice: in line 1 and in line 2"},
      {"x:\n  - b: 1\n    \"b\": 2", "f:3:5: the key 'b' is given twice: in line 2 and in line 3"},
      {"{b: 1,\n b: 2}", "f:2:2: the key 'b' is given twice: in line 1 and in line 2"},
      {"a: b\n  c", "f:2:3: 'c' stands in column 3, where column 1 is expected; " + layout},
      {"a:\n  b: 1\n c: 2", "f:3:2: 'c: 2' stands in column 2, where column 1 is expected; " + layout},
      {"a:\n  lr:0.1\n  b: 2", "f:2:3: a space is missing after the colon of 'lr:0.1'"},
      {"a:\n  b: 2\n  lr:0.1", "f:3:3: a space is missing after the colon of 'lr:0.1'"},
      {"a:\n  lr:0.1\n\n  b:[1] # c\nc: 1", "f:2:3: a space is missing after the colon of 'lr:0.1'"},
      {"lr:0.1\nb: 2", "f:1:1: a space is missing after the colon of 'lr:0.1'"},
      {"b: 2\nlr:0.1", "f:2:1: a space is missing after the colon of 'lr:0.1'"},
      {"a:\n  b:c\nd:\n- e:f\n- g", "{a: b:c, d: [e:f, g]}"},
      {"- a\nb: 1", "f:2:1: 'b: 1' stands outside of the document's value; " + layout},
      {"a: b: c", "f:1:5: a second ': ' on this line; quote a value that holds ': '"},
      {"a: - b", "f:1:4: a list in block form starts on a line of its own; on this line write [a, b]"},
      {"a: 1\n- b", "f:2:1: a list item among the keys of a mapping"},
      {"a: 'x' y", "f:1:8: 'y' follows the value on its line"},
      {"a: [1, 2", "f:1:4: this '[' is never closed by ']'"},
      {"a: {b: 1", "f:1:4: this '{' is never closed by '}'"},
      {"a: [1 2\n]b", "f:2:2: 'b' follows the value on its line"},
      {"a: ['1' 2]", "f:1:9: ',' or ']' is expected for the '[' of line 1, not '2]'"},
      {"a: [1}", "f:1:6: ',' or ']' is expected for the '[' of line 1, not '}'"},
      {"a: [,]", "f:1:5: nothing stands before this ','"},
      {"a: {b:1}", "f:1:5: a key without ':' is not supported: 'b:1' has no value; write 'key: value', with a space"},
      {"{foo\n :bar}", "f:1:2: plain text over several lines is not supported: quote 'foo' and what follows"},
      {"{foo\n : bar, \"a\"\n :b, c\n :}", "{foo: bar, a: b, c: ~}"},
      {"a: [-]", "f:1:5: a value is expected, not '-'"},
      {"a: ]", "f:1:4: a value is expected, not ']'"},
      {": a", "f:1:1: empty keys are not supported: no key stands before this ':'"},
      {"\"a\nb\": 1", "f:1:1: a key stands on one line"},
      {"\xC3\xBC: \x07", "f:1:4: a control character: \\x07"},
      {"a: b\xC2\x85z", "f:1:5: the control character U+0085; quote it, or leave it out"},
      {"\xC3\xBC: \x7F", "f:1:4: the control character U+007F; quote it, or leave it out"},
      {"a: 1 # \xC2\x80", "f:1:8: the control character U+0080; quote it, or leave it out"},
      {"a: |\n  x\xC2\x9F", "f:2:4: the control character U+009F; quote it, or leave it out"},
      {"a: [\xEF\xBF\xBE]", "f:1:5: the control character U+FFFE; quote it, or leave it out"},
      {"\xEF\xBF\xBF: 1", "f:1:1: the control character U+FFFF; quote it, or leave it out"},
      {"a: '\x7F' # \xC2\xA0\xEF\xBF\xBD", "{a: \"\x7F\"}"},  // JSON may hold it
      {"a: \xC3", "f:1:4: the byte 0xC3 is not UTF-8"},
      {"a: \xED\xA0\x80", "f:1:4: the byte 0xED is not UTF-8"},
      {"a: \xC0\xAF", "f:1:4: the byte 0xC0 is not UTF-8"},
      {std::string("a: \0", 4), "f:1:4: a control character: \\x00"},
  });
}

TEST_CASE("places of keys and values, in characters", "[config]") {
  const Yaml root = parse_yaml("a: 1\n\xC3\xBC:  {b: [x, y]}\nc:\n  - |\n    t\n", "f");
  const Yaml *u = root.find("\xC3\xBC"), *c = root.find("c");
  REQUIRE((u != nullptr && c != nullptr));
  CHECK((u->key_at.line == 2 && u->key_at.column == 1 && u->at.line == 2 && u->at.column == 5));
  const Yaml& y = u->children[0].children[1];
  CHECK((y.at.line == 2 && y.at.column == 13));
  CHECK((c->key_at.line == 3 && c->at.line == 4 && c->at.column == 3 && c->children[0].at.column == 5));
  CHECK(root.find("b") == nullptr);
}

TEST_CASE("depth and size have limits", "[config]") {
  const auto nested = [](int depth) {
    const auto n = static_cast<std::size_t>(depth);
    return std::string(n, '[') + std::string(n, ']');
  };
  CHECK(parsed(nested(kMaxYamlDepth)) == nested(kMaxYamlDepth));
  CHECK(parsed(nested(kMaxYamlDepth + 1)) == "f:1:65: nested deeper than 64 levels");
  CHECK(parsed(std::string(1000000, '[')) == "f:1:65: nested deeper than 64 levels");
  std::string dashes, keys;
  for (int i = 0; i < 10000; ++i) dashes += "- ";
  for (int i = 0; i < 200; ++i) keys += std::string(static_cast<std::size_t>(i), ' ') + "a:\n";
  CHECK(parsed(dashes) == "f:1:129: nested deeper than 64 levels");
  CHECK(parsed(keys) == "f:65:65: nested deeper than 64 levels");
  CHECK(parsed(std::string(kMaxYamlBytes + 1, ' ')) ==
        "f:1:1: longer than 4194304 bytes, the most that a configuration may have");
  CHECK(parsed(std::string(kMaxYamlKey + 1, 'k') + ": 1") == "f:1:1: the key is longer than 1024 characters");
}

TEST_CASE("a value from the command line", "[config]") {
  const auto value = [](std::string_view text) { return shown(parse_yaml_value(text, "v")); };
  CHECK(value("a: b #c, [x]") == "a: b #c, [x]");
  CHECK(value(" 1e-4 ") == "1e-4");
  CHECK(value("") == "~");
  CHECK(value("null") == "~");
  CHECK(value("\"null\"") == "\"null\"");
  CHECK(value("[1, {a: 2}]") == "[1, {a: 2}]");
  CHECK(value("*x") == "*x");
  CHECK_THROWS_WITH(value("[1] 2"), "v:1:5: '2' follows the value");
  CHECK_THROWS_WITH(value("\xFF"), "v:1:1: the byte 0xFF is not UTF-8");
}

TEST_CASE("a damaged document is refused or read, never a crash", "[config]") {
  CHECK(parsed(kSample) ==
        "{seed: 1, model: {norm: \"r\xC3\xA9\xF0\x9F\x98\x80\", list: [1, \"it's\", {a: b}]}, text: \"one\n two\n\n\", "
        "items: "
        "[1, [2, {x: y, z: \"a b\"}]]}");
  for (std::size_t n = 0; n < kSample.size(); ++n) parsed(kSample.substr(0, n));
  static constexpr std::string_view kMarks = "\n \t:-#[]{}'\"\\|,?&*!%~a0\r\xC3";
  Random random(1337, "yaml_test");
  for (int round = 0; round < 3000; ++round) {
    std::string damaged = kSample;
    for (int i = 0; i < 3; ++i) {
      const auto at = static_cast<std::size_t>(random.below(damaged.size()));
      const char mark = kMarks[static_cast<std::size_t>(random.below(kMarks.size()))];
      if (i == 1)
        damaged.erase(at, 1);
      else
        damaged.insert(at, 1, mark);
    }
    parsed(damaged);
  }
}
