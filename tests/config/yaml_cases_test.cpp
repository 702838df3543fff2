// YAML by the kinds of cases that yaml-test-suite has: what a document means, as JSON; the feature that a refusal
// names; what is no YAML. `make suites` runs the suite itself.
#include <utility>
#include <vector>

#include "catch.h"
#include "json_values.h"
#include "normlab/config/yaml.h"

using namespace normlab;

namespace {

using Case = std::pair<std::string, std::string>;

std::string outcome_of(const std::string& document) {
  try {
    return config::json_of(config::parse_yaml(document, "f")).line();
  } catch (const ConfigError& error) {
    return error.what();
  }
}

}  // namespace

TEST_CASE("yaml documents mean what YAML 1.2 says", "[config]") {
  const std::vector<Case> cases{
      // Scalars at the top, and nothing at all.
      {"", "null"},
      {"# nothing but a comment\n", "null"},
      {"---\n", "null"},
      {"---\n'a'\n", R"("a")"},
      {"12\n", "12"},
      {"-0.5\n", "-0.5"},
      {"0x1f\n", "31"},
      {".inf\n", R"(".inf")"},
      {"'12'\n", R"("12")"},
      {"9223372036854775807", "9223372036854775807"},
      {"9223372036854775808", "9223372036854775808"},
      {"[+018446744073709551617, -18446744073709551617]", "[18446744073709551617,-18446744073709551617]"},
      {"truest", R"("truest")"},
      // Collections in block form.
      {"- a\n- b\n-\n- ~\n", R"(["a","b",null,null])"},
      {"-\n  - a\n-\n  b: c\n", R"([["a"],{"b":"c"}])"},
      {"- - a\n  - - b\n", R"([["a",["b"]]])"},
      {"- x: 1\n  y:\n  - 2\n- z:\n", R"([{"x":1,"y":[2]},{"z":null}])"},
      {"a:\n- 1\nb:\n  - 2\n", R"({"a":[1],"b":[2]})"},
      {"a:   b   \nc:\t d\n", R"({"a":"b","c":"d"})"},
      {"? x\n", "f:1:1: complex keys (?) are not supported"},
      {"1: a\ntrue: b\n~: c\n", R"({"1":"a","true":"b","~":"c"})"},
      {"a b: c d\n", R"({"a b":"c d"})"},
      {"'a: b': c\n\"d\\te\": f\n", R"({"a: b":"c","d\te":"f"})"},
      // Marks that mean nothing where they stand.
      {"a: -b\nc: ?d\ne: :f\ng: h:i\nj: k#l\n", R"({"a":"-b","c":"?d","e":":f","g":"h:i","j":"k#l"})"},
      {"a: b - c ? d\ne: f [g] {h}, i\n", R"({"a":"b - c ? d","e":"f [g] {h}, i"})"},
      {"a: --- b\n", R"({"a":"--- b"})"},
      {"--: a\n...b: c\n", R"({"--":"a","...b":"c"})"},
      // Comments and empty lines.
      {"# x\n\na: 1 # y\n\n  # z\nb: 2\n#", R"({"a":1,"b":2})"},
      {"a: # x\n  1\n", R"({"a":1})"},
      {"a: 1\n\t\nb: 2\n", R"({"a":1,"b":2})"},
      // Collections in flow form.
      {"[]", "[]"},
      {"{}", "{}"},
      {"a: [b, [c], {d: e}, 'f', \"g\",]\n", R"({"a":["b",["c"],{"d":"e"},"f","g"]})"},
      {"{\"a\":1,\"b\" :2, c : 3}", R"({"a":1,"b":2,"c":3})"},
      {"{a: , b: }", R"({"a":null,"b":null})"},
      {"- [a,\n  b # c\n  , d]\n- {e: f,\n\n  g: h}\n", R"([["a","b","d"],{"e":"f","g":"h"}])"},
      {"[a-b, c:d, e?f, http://g/h]", R"(["a-b","c:d","e?f","http://g/h"])"},
      {"[\na\n]\n", R"(["a"])"},
      {"a: [\n  1\n]\n", R"({"a":[1]})"},
      // Quotes.
      {"'it''s'", R"("it's")"},
      {"''", R"("")"},
      {"'a\\nb'", R"("a\\nb")"},
      {R"("\x41\u00e9\U0001F600\/\e\0")", "\"A\xC3\xA9\xF0\x9F\x98\x80/\\u001b\\u0000\""},
      {"'a\n  b\n\n  c'", R"("a b\nc")"},
      {"\"a  \n  b \\\n  c\\\n  \\  d\"", R"("a b c  d")"},
      {"\"\n  a\n\n\"", R"(" a\n")"},
      {"a: 'x\n ...y'\n", R"({"a":"x ...y"})"},
      // Literal blocks.
      {"a: |\n  b\n   c\n\n  d\n", R"({"a":"b\n c\n\nd\n"})"},
      {"a: |-\n  b\n\n", R"({"a":"b"})"},
      {"a: |+\n  b\n\nc: d\n", R"({"a":"b\n\n","c":"d"})"},
      {"a: |\n  b", R"({"a":"b\n"})"},
      {"a: |\n  b\n   ", R"({"a":"b\n \n"})"},
      {"- |+\n   ", R"(["\n"])"},
      {"a: |2\n   b\n", R"({"a":" b\n"})"},
      {"a: |\n  # b\n  c: d\n", R"({"a":"# b\nc: d\n"})"},
      {"a: |\n\n  b\n # c\n", R"({"a":"\nb\n"})"},
      {"a: |\n \t\nb: 1\n", R"({"a":"\t\n","b":1})"},
      {"a: |+\n\nb: |-\n\nc: |\n\n", R"({"a":"\n","b":"","c":""})"},
      {"- a: |\n    b\n  c: d\n", R"([{"a":"b\n","c":"d"}])"},
  };
  for (const auto& [document, expected] : cases) {
    CAPTURE(document);
    CHECK(outcome_of(document) == expected);
  }
}

TEST_CASE("yaml that the subset has not is refused by the feature's name", "[config]") {
  const std::vector<Case> cases{
      {"a: &x b\n", "anchors (&)"},
      {"- &x a\n- *x\n", "anchors (&)"},
      {"a: *x\n", "aliases (*)"},
      {"&x a: b\n", "anchors (&)"},
      {"a: !!str 1\n", "tags (!)"},
      {"! a\n", "tags (!)"},
      {"a: [!x b]\n", "tags (!)"},
      {"%YAML 1.2\n---\na\n", "directives (%)"},
      {"a\n---\nb\n", "several documents"},
      {"a: 1\n...\n", "several documents"},
      {"a: >\n  b\n", "folded blocks (>)"},
      {"- >-\n  b\n", "folded blocks (>)"},
      {"? a\n: b\n", "complex keys (?)"},
      {"[a]: b\n", "complex keys"},
      {"{a: b}: c\n", "complex keys"},
      {"{[a]: b}\n", "complex keys"},
      {": a\n", "empty keys"},
      {"- : a\n", "empty keys"},
      {"[: a]\n", "empty keys"},
      {"{a, b: c}\n", "a key without ':'"},
      {"{\"a\"}\n", "a key without ':'"},
      {"[a: b]\n", "a 'key: value' pair within [ ]"},
      {"a\nb\n", "plain text over several lines"},
      {"a: b\n  c\n", "plain text over several lines"},
      {"a:\n  b\n  c\n", "plain text over several lines"},
      {"[a\n b]\n", "plain text over several lines"},
      {"{a\n b: c}\n", "plain text over several lines"},
      {"a:\n \tb\n", "tabs in the indentation"},
      {"\t[]\n", "tabs in the indentation"},
      {"-\ta\n", "tabs between '-' and its item"},
      {"--- a\n", "a value on the line of '---'"},
      {"--- |\n a\n", "a value on the line of '---'"},
      {"<<: {a: b}\n", "merge keys (<<)"},
  };
  for (const auto& [document, feature] : cases) {
    CAPTURE(document);
    const std::string outcome = outcome_of(document);
    CHECK_THAT(outcome, ContainsSubstring(feature));
    CHECK_THAT(outcome, ContainsSubstring("not supported"));
  }
}

TEST_CASE("what is no yaml is refused", "[config]") {
  for (const std::string document : {"a: 1\na: 2\n",
                                     "{a: 1, a: 2}",
                                     "a: b: c\n",
                                     "a: - b\n",
                                     "- a\nb: c\n",
                                     "a: b\n- c\n",
                                     "a:\n  b: c\n d: e\n",
                                     "a: 'b\n",
                                     "a: \"b\n",
                                     "'a' b\n",
                                     "a: 'b' c\n",
                                     "[a, b\n",
                                     "{a: b\n",
                                     "[a]]\n",
                                     "[a}\n",
                                     "[a,, b]\n",
                                     "[,a]\n",
                                     "a: [b,\nc]\n",
                                     "k: {\nk\n:\nv\n}\n",
                                     "a: \"b\nc\"\n",
                                     "a: \"b\n\tc\"\n",
                                     "- [\n\ta]\n",
                                     "a: |\n\t\nb: 1\n",
                                     "a: | b\n",
                                     "a: |x\n",
                                     "a: |0\n b\n",
                                     "a: |\n   \n b\n",
                                     "\"\\q\"",
                                     "\"\\x4\"",
                                     "a: @b\n",
                                     "a: `b\n",
                                     "a: %b\n",
                                     "[#a\n]b\n",
                                     "[a]#b\n",
                                     "\"a\"#b\n",
                                     "a:\n\tb: c\n",
                                     "a: ]\n",
                                     "a: }\n",
                                     "a: ,b\n",
                                     "a: \x01\n",
                                     "a: \xFF\n",
                                     "\"a\nb\": c\n",
                                     "[a, b] c\n",
                                     "a\n b: c\n",
                                     "a:\n  - b\n  c: d\n",
                                     "- a\n - b\n-\tc\n"}) {
    CAPTURE(document);
    CHECK_THROWS_AS(config::parse_yaml(document, "f"), ConfigError);
  }
}
