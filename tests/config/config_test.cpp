// Reading settings: types, ranges, unknown keys, overrides, origins, and the texts made from the declarations.
#include <array>
#include <clocale>
#include <cstdio>
#include <fstream>
#include <locale>
#include <optional>
#include <string>
#include <vector>

#include "catch.h"
#include "normlab/base/check.h"
#include "normlab/config/loader.h"

using namespace normlab;
using namespace normlab::config;

namespace {

enum class Norm { none, layer, rms, batch_step };

using Betas = std::array<double, 2>;
using Lengths = std::optional<std::array<int, 2>>;

struct Model : Fields {
  FIELD(int, n_layers, 4, at_least(1), "number of blocks")
  FIELD(Norm, norm, Norm::layer, any_value, "what normalises the residual stream | or nothing")
  FIELD(std::optional<int>, d_ff, {}, at_least(1), "width of the MLP; 4 x d_model without one")
  FIELD(bool, bias, true, any_value, "bias in linear layers")
  FIELD(double, dropout, 0, from_below(0, 1), "share of values dropped")
};
struct Rotation : Fields {
  FIELD(double, base, 10000, above(0), "base of the rotation's wavelengths")
};
struct Optimizer : Fields {
  FIELD(double, lr, 1e-3, above(0), "learning rate")
  FIELD(Betas, betas, (Betas{0.9, 0.99}), from_below(0, 1), "decay of the two averages")
  FIELD(Rotation, rotation, {}, any_value, "a section within a section")
};
struct Every : Fields {
  FIELD(int, every, 10, at_least(0), "steps from one to the next")
};
struct Config : Fields {
  FIELD(std::int64_t, seed, 1337, at_least(0), "everything random follows from it")
  FIELD(std::string, source, "tales", any_value, "what to learn from")
  FIELD(Lengths, lengths, {}, at_least(2), "lengths of rows")
  FIELD(std::vector<std::string>, words, {}, any_value, "some texts")
  FIELD(Model, model, {}, any_value, "the network")
  FIELD(Optimizer, optimizer, {}, any_value, "the update rule")
  FIELD(Every, eval, {}, any_value, "evaluation")
  FIELD(Every, log, {}, any_value, "what is printed")
};

Config from_text(std::string_view yaml) {
  Config config;
  load(config, parse_yaml(yaml, "c.yaml"), "c.yaml");
  return config;
}
Config from_overrides(const std::vector<std::string>& overrides) {
  Config config;
  apply_overrides(config, overrides);
  return config;
}

template <class F>
std::string message_of(const F& f) {
  try {
    f();
  } catch (const ConfigError& error) {
    return error.what();
  }
  return "no error";
}
std::string refused(std::string_view yaml) {
  return message_of([&] { from_text(yaml); });
}
std::string override_refused(const std::string& text) {
  return message_of([&] { from_overrides({text}); });
}

}  // namespace

TEST_CASE("a value is read by the type of its key", "[config]") {
  const Config c = from_text(R"(seed: 9007199254740993
source: 017
lengths: [4, 2]
words:
- off
- "a b"
model: {n_layers: 0x10, norm: rms, d_ff: 256, bias: False}
optimizer:
  lr: 1e-4
  betas: [.5, 0]
  rotation:
    base: 500
)");
  CHECK(c.seed == 9007199254740993);
  CHECK(c.source == "017");
  CHECK(c.lengths == std::array<int, 2>{4, 2});
  CHECK(c.words == std::vector<std::string>{"off", "a b"});
  CHECK(c.model.n_layers == 16);
  CHECK(c.model.norm == Norm::rms);
  CHECK(c.model.d_ff == 256);
  CHECK(!c.model.bias);
  CHECK(c.optimizer.lr == 1e-4);
  CHECK(c.optimizer.betas == Betas{0.5, 0.0});
  CHECK(c.optimizer.rotation.base == 500);
  CHECK(from_text("").seed == 1337);
  CHECK(from_text("model:\n  # all defaults\n").model.n_layers == 4);
  CHECK(from_text("model: {d_ff: null}").model.d_ff == std::nullopt);
}

TEST_CASE("F1: every spelling of a float is a number, and a quoted one is told to drop its quotes", "[config]") {
  const std::vector<std::pair<std::string, double>> cases{{"1e-4", 1e-4},  {"1E-4", 1e-4}, {"1e+4", 1e4},
                                                          {"1.e-4", 1e-4}, {".5", 0.5},    {"5.", 5},
                                                          {"1", 1},        {"+3", 3},      {"+.5e1", 5}};
  for (const auto& [spelling, value] : cases) {
    CAPTURE(spelling);
    CHECK(from_text("optimizer:\n  lr: " + spelling).optimizer.lr == value);
    CHECK(from_overrides({"optimizer.lr=" + spelling}).optimizer.lr == value);
  }
  CHECK(refused("optimizer:\n  lr: \"1e-4\"") ==
        "c.yaml:2:7: optimizer.lr: wants a number, not the quoted \"1e-4\"; drop the quotes");
  CHECK(refused("model:\n  n_layers: '2'") ==
        "c.yaml:2:13: model.n_layers: wants an integer, not the quoted \"2\"; drop the quotes");
}

TEST_CASE("F2: off, no, yes and on are text", "[config]") {
  for (const std::string word : {"off", "no", "yes", "on", "y", "n", "Off", "NO"}) {
    CAPTURE(word);
    CHECK(from_text("source: " + word).source == word);
    const bool value = word == "yes" || word == "on" || word == "y";
    CHECK(refused("model:\n  bias: " + word) ==
          "c.yaml:2:9: model.bias: wants true or false, not '" + word + "'; write " + (value ? "true" : "false"));
  }
  CHECK(refused("model: {bias: \"true\"}") ==
        "c.yaml:1:15: model.bias: wants true or false, not the quoted \"true\"; drop the quotes");
}

TEST_CASE("F4: a key given twice is an error with both lines, at any depth", "[config]") {
  CHECK(refused("seed: 1\nmodel:\n  n_layers: 1\nseed: 2") ==
        "c.yaml:4:1: the key 'seed' is given twice: in line 1 and in line 4");
  CHECK(refused("optimizer:\n  rotation:\n    base: 1\n    # again\n    base: 2") ==
        "c.yaml:5:5: the key 'base' is given twice: in line 3 and in line 5");
}

TEST_CASE("F5: an unknown or misplaced key is an error that names the nearest, or where it belongs", "[config]") {
  CHECK(refused("seed: 1\nmodel:\n  n-layers: 6") ==
        "c.yaml:3:3: the section model has no key 'n-layers'; did you mean 'n_layers'?");
  CHECK(refused("modle:\n  n_layers: 6") == "c.yaml:1:1: the configuration has no key 'modle'; did you mean 'model'?");
  CHECK(refused("model:\n  lr: 0.1") ==
        "c.yaml:2:3: the section model has no key 'lr'; it belongs elsewhere: optimizer.lr");
  CHECK(refused("n_layers: 2") ==
        "c.yaml:1:1: the configuration has no key 'n_layers'; it belongs elsewhere: model.n_layers");
  CHECK(refused("every: 2") ==
        "c.yaml:1:1: the configuration has no key 'every'; it belongs elsewhere: eval.every or log.every");
  CHECK(refused("drop_out: 2") == "c.yaml:1:1: the configuration has no key 'drop_out'; did you mean model.dropout?");
  CHECK(refused("log:\n  temperature: 2") ==
        "c.yaml:2:3: the section log has no key 'temperature'; it has every (normlab train "
        "--help-config lists all keys)");
  CHECK(refused("model.norm: rms") ==
        "c.yaml:1:1: the configuration has no key 'model.norm'; in a file, write norm under model:");
  CHECK(refused("model: 3") == "c.yaml:1:8: model: a section takes keys (such as model.KEY), not '3'");
  CHECK(refused("- seed") == "c.yaml:1:1: a configuration takes keys ('key: value'), not a list");
}

TEST_CASE("F7: overrides by dotted path; the message names key, wanted type and given text", "[config]") {
  CHECK(from_overrides({"optimizer.lr=1"}).optimizer.lr == 1.0);
  CHECK(from_overrides({"source=b=c"}).source == "b=c");
  CHECK(from_overrides({"source="}).source.empty());
  CHECK(from_overrides({"source=a: b #c"}).source == "a: b #c");
  CHECK(from_overrides({"seed=1", "seed=2"}).seed == 2);
  CHECK(from_overrides({"optimizer.betas=[0.5, 1e-1]"}).optimizer.betas == Betas{0.5, 0.1});
  CHECK(from_overrides({"optimizer.rotation.base=2"}).optimizer.rotation.base == 2);
  CHECK(from_overrides({"model={norm: none, bias: false}"}).model.norm == Norm::none);
  CHECK(from_overrides({"words=[a, \"b,c\"]"}).words == std::vector<std::string>{"a", "b,c"});
  CHECK(from_overrides({"model.d_ff=64", "model.d_ff=null"}).model.d_ff == std::nullopt);
  CHECK(from_overrides({"model.bias=False"}).model.bias == false);

  CHECK(override_refused("model.n_layers=2.0") == "command line: model.n_layers: wants an integer, not '2.0'; write 2");
  CHECK(override_refused("model.n_layers=1e3") ==
        "command line: model.n_layers: wants an integer, not '1e3'; write 1000");
  CHECK(override_refused("model.n_layers=2.5") == "command line: model.n_layers: wants an integer, not '2.5'");
  CHECK(override_refused("model.n_layers=") == "command line: model.n_layers: wants an integer, not nothing");
  CHECK(override_refused("model.n-layers=2") ==
        "command line: the section model has no key 'n-layers'; did you mean 'n_layers'?");
  CHECK(override_refused("norm=rms") ==
        "command line: the configuration has no key 'norm'; it belongs elsewhere: model.norm");
  CHECK(override_refused("modle.norm=rms") ==
        "command line: the configuration has no key 'modle'; did you mean 'model'?");
  CHECK(override_refused("model.norm") == "command line: 'model.norm' is not an override; write key=value");
  CHECK(override_refused("seed.x=1") == "command line: seed: wants an integer, not a mapping");
  CHECK(override_refused("optimizer.betas=0.9") ==
        "command line: optimizer.betas: wants a list of 2, each a number, not '0.9'; write it in [ ]");
  CHECK(override_refused("optimizer.betas=[0.9]") ==
        "command line: optimizer.betas: wants a list of 2, each a number, not a list of 1");
  CHECK(override_refused("optimizer.betas=[0.9, x]") == "command line: optimizer.betas[1]: wants a number, not 'x'");
  CHECK_THAT(override_refused("optimizer.betas=[0.9"),
             ContainsSubstring("command line: optimizer.betas:1:1: this '['"));
  CHECK_THAT(override_refused(std::string(100000, '.') + "=1"), ContainsSubstring("nested deeper than 64 levels"));
}

TEST_CASE("values out of range, and words that are no choice", "[config]") {
  CHECK(refused("model:\n  norm: rmz") ==
        "c.yaml:2:9: model.norm: 'rmz' is not one of none layer rms batch_step; did you mean 'rms'?");
  CHECK(refused("model:\n  norm: Layer") ==
        "c.yaml:2:9: model.norm: 'Layer' is not one of none layer rms batch_step; did you mean 'layer'?");
  CHECK(refused("model: {norm: ~}") == "c.yaml:1:15: model.norm: wants one of none layer rms batch_step, not '~'");
  CHECK(refused("model: {dropout: 1}") ==
        "c.yaml:1:18: model.dropout: 1 is out of range; it takes 0 or more and below 1");
  CHECK(refused("model: {n_layers: 0}") == "c.yaml:1:19: model.n_layers: 0 is out of range; it takes at least 1");
  CHECK(refused("optimizer: {betas: [0.9, 1.5]}") ==
        "c.yaml:1:26: optimizer.betas[1]: 1.5 is out of range; it takes 0 or more and below 1");
  CHECK(refused("optimizer: {lr: .inf}") == "c.yaml:1:17: optimizer.lr: .inf is not finite; it takes finite numbers");
  CHECK(refused("optimizer: {lr: .nan}") == "c.yaml:1:17: optimizer.lr: .nan is not finite; it takes finite numbers");
  CHECK(refused("optimizer: {lr: inf}") == "c.yaml:1:17: optimizer.lr: wants a number, not 'inf'");
  CHECK(refused("model: {n_layers: 3000000000}") ==
        "c.yaml:1:19: model.n_layers: 3000000000 is out of range; it takes at most 2147483647");
  const std::string bits = " does not fit into 64 bits, which go from -9223372036854775808 to 9223372036854775807";
  CHECK(refused("seed: 99999999999999999999") == "c.yaml:1:7: seed: 99999999999999999999" + bits);
  CHECK(refused("seed: 9223372036854775808") == "c.yaml:1:7: seed: 9223372036854775808" + bits);
  CHECK(refused("seed: 0x8000000000000000") == "c.yaml:1:7: seed: 0x8000000000000000" + bits);
  CHECK(refused("seed: 1" + std::string(400, '0')).find("0..." + bits) != std::string::npos);
  const std::string sizes = " is out of range; numbers other than 0 are from 4.9e-324 to 1.8e308 in size";
  CHECK(refused("optimizer: {lr: 1e400}") == "c.yaml:1:17: optimizer.lr: 1e400" + sizes);
  CHECK(refused("optimizer: {lr: -1.5e-400}") == "c.yaml:1:17: optimizer.lr: -1.5e-400" + sizes);
  CHECK(refused("source: null") == "c.yaml:1:9: source: wants text, not 'null'; write \"null\" if that is the text");
  CHECK(refused("source:") == "c.yaml:1:8: source: wants text, not nothing; write \"\" if that is the text");
  CHECK(refused("source: [a]") == "c.yaml:1:9: source: wants text, not a list of 1; quote a text that looks so");
}

TEST_CASE("F9: no locale changes a number", "[config]") {
  struct Comma : std::numpunct<char> {
    char do_decimal_point() const override { return ','; }
    char do_thousands_sep() const override { return '.'; }
    std::string do_grouping() const override { return "\3"; }
  };
  const std::locale before = std::locale::global(std::locale(std::locale::classic(), new Comma));
  std::setlocale(LC_ALL, "de_DE.UTF-8");
  const Config c = from_text("seed: 1234567\noptimizer: {lr: 0.25}");
  const std::string dumped = dump(c), refusal = refused("model: {dropout: 1.5}");
  std::locale::global(before);
  std::setlocale(LC_ALL, "C");
  CHECK(c.optimizer.lr == 0.25);
  CHECK_THAT(dumped, ContainsSubstring("seed: 1234567\n"));
  CHECK_THAT(dumped, ContainsSubstring("lr: 0.25\n"));
  CHECK_THAT(refusal, ContainsSubstring("1.5 is out of range"));
}

TEST_CASE("F11: the resolved configuration with the origin of each value, itself YAML", "[config]") {
  const std::string path = "config_test.yaml";
  std::ofstream(path) << "seed: 7\nmodel:\n  norm: rms\n  n_layers: 2\n";
  const std::vector<std::string> overrides{"model.n_layers=3", "source=a # b"};
  const Resolved<Config> resolved = load_config<Config>(path, overrides);
  std::remove(path.c_str());
  const std::string printed = print_config(resolved);
  CHECK(printed == R"(seed: 7               # config_test.yaml:1
source: "a # b"       # command line
lengths: null         # default
words: []             # default
model:
  n_layers: 3         # command line
  norm: rms           # config_test.yaml:3
  d_ff: null          # default
  bias: true          # default
  dropout: 0          # default
optimizer:
  lr: 0.001           # default
  betas: [0.9, 0.99]  # default
  rotation:
    base: 10000       # default
eval:
  every: 10           # default
log:
  every: 10           # default
)");
  CHECK(differences(from_text(printed), resolved.config).empty());
}

TEST_CASE("a missing file, a directory", "[config]") {
  CHECK_THROWS_WITH(load_config<Config>("no/such.yaml"),
                    "cannot read no/such.yaml: there is no such file; check the path");
  CHECK_THROWS_WITH(load_config<Config>("."), "cannot read .: it is a directory; name a file");
}

TEST_CASE("a dump reads back equal, whatever the texts and numbers", "[config]") {
  Config c;
  c.optimizer.lr = 0.1 + 0.2;
  c.optimizer.betas = {5e-324, 1e-5};
  c.optimizer.rotation.base = 1.7976931348623157e308;
  c.lengths = {{8, 3}};
  c.words = {"",     " ",    "null", "~",        "true", "No",   "1e-4", "1.5", ".5",     "0x1F",       "- a",
             "a: b", "a #b", "#",    "[a]",      "a,b",  "'",    "\"",   "\\",  "a\nb\n", "\t",         "\x01",
             "é",    "@x",   "&a",   "*a",       "!t",   "|",    "%",    "a\r", "x:",     "2024-01-01", "?",
             "=",    "<<",   "---",  "/a/b.txt", "./d",  "../d", "-x",   "\x7f"};
  for (const std::string& word : c.words) {
    CAPTURE(word);
    c.source = word;
    CHECK(from_text(dump(c)).source == word);
  }
  CHECK(differences(from_text(dump(c)), c).empty());
  CHECK(from_text(dump(c)).words == c.words);
  CHECK(from_text(dump(c)).optimizer.lr == 0.1 + 0.2);
  CHECK(dump(c).find("betas: [5.0e-324, 1.0e-05]") != std::string::npos);
}

TEST_CASE("differences by path, and a value as text", "[config]") {
  const Config a, b = from_overrides({"model.norm=rms", "optimizer.lr=0.5", "model.d_ff=3"});
  const auto changed = differences(a, b);
  REQUIRE(changed.size() == 3);
  CHECK((changed[0].path == "model.norm" && changed[0].left == "layer" && changed[0].right == "rms"));
  CHECK((changed[1].path == "model.d_ff" && changed[1].left == "null" && changed[1].right == "3"));
  CHECK((changed[2].path == "optimizer.lr" && changed[2].left == "0.001" && changed[2].right == "0.5"));
  CHECK(value_of(b, "model.norm") == "rms");
  CHECK(value_of(b, "optimizer.rotation.base") == "10000");
  CHECK_THAT(message_of([&] { value_of(b, "model.nrm"); }), ContainsSubstring("did you mean 'norm'"));
  CHECK_THAT(message_of([&] { value_of(b, "model"); }), ContainsSubstring("model is a section"));
}

TEST_CASE("help and table come from the declarations", "[config]") {
  const std::string help = help_config<Config>();
  CHECK_THAT(help, ContainsSubstring("\n# the network\nmodel:\n  # number of blocks\n  # an integer, at least 1\n"
                                     "  n_layers: 4\n"));
  CHECK_THAT(help, ContainsSubstring("  # one of none layer rms batch_step\n  norm: layer\n"));
  CHECK(differences(from_text(help), Config{}).empty());
  const std::string table = help_table<Config>();
  CHECK_THAT(table, ContainsSubstring("| key | default | range | meaning |\n|---|---|---|---|\n| `seed` | `1337` | an "
                                      "integer, at least 0 | everything random follows from it |\n"));
  CHECK_THAT(table, ContainsSubstring("residual stream \\| or nothing |\n"));
}

TEST_CASE("ranges in words", "[config]") {
  CHECK(at_least(1).describe() == "at least 1");
  CHECK(above(0).describe() == "above 0");
  CHECK(between(0, 1e6).describe() == "from 0 to 1000000");
  CHECK(from_below(0, 1).describe() == "0 or more and below 1");
  CHECK(Range{.high = 0.5}.describe() == "at most 0.5");
  CHECK((Range{.low = 0, .high = 1, .low_open = true}.describe()) == "above 0 and at most 1");
  CHECK(any_value.describe().empty());
}
