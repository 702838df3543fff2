// The commands as a user meets them: help, settings, and the message of each mistake.
#include <unistd.h>

#include <algorithm>

#include "catch.h"
#include "cli_runs.h"
#include "normlab/config/loader.h"
#include "normlab/train/run_config.h"

using namespace normlab;

namespace {

struct Mistake {
  Strings words;
  Strings parts;  // of the message
};

// Each is one message on standard error, exit code 2, and nothing on standard output.
void check_mistakes(const std::vector<Mistake>& mistakes) {
  for (const Mistake& mistake : mistakes) {
    const Finished done = run_program(mistake.words);
    INFO(join(mistake.words, " ") << "\n" << done.out << done.err);
    CHECK(done.code == 2);
    CHECK(done.out.empty());
    CHECK(done.err.starts_with("normlab: "));
    CHECK(std::ranges::count(done.err, '\n') == 1);
    for (const std::string& part : mistake.parts) {
      CAPTURE(part);
      CHECK(holds(done.err, part));
    }
  }
}

}  // namespace

TEST_CASE("cli: a wrong command or option is told with the nearest one") {
  const Workshop& shop = trained();
  const std::string config = shop.path("tiny.yaml"), run = shop.path("run");
  check_mistakes({
      {{"trian"}, {"no command 'trian'", "did you mean train?", "normlab --help"}},
      {{"xyzzy"}, {"no command 'xyzzy'", "normlab --help"}},
      {{"--frobnicate"}, {"'--frobnicate'", "normlab --help"}},
      {{"train", config, "--stopat", "3"}, {"train", "--stopat", "did you mean --stop-at?"}},
      {{"train", config, "-f"}, {"two dashes", "-f"}},
      {{"train", config, "--stop-at"}, {"--stop-at", "N"}},
      {{"train", config, "--stop-at", "0"}, {"--stop-at", "at least 1", "'0'"}},
      {{"train", config, "--stop-at", "ten"}, {"--stop-at", "whole number", "'ten'"}},
      {{"train", config, "--force=yes"}, {"--force", "no value"}},
      {{"train"}, {"CONFIG is missing", "usage: normlab train"}},
      {{"train", config, config}, {"one CONFIG", config}},
      {{"train", "--resume", run, config}, {"--resume takes no CONFIG", config}},
      {{"train", shop.path("none.yaml")}, {"none.yaml", "No such file"}},
      {{"sample"}, {"CHECKPOINT is missing", "usage: normlab sample"}},
      {{"sample", run, "--prompt"}, {"--prompt", "TEXT"}},
      {{"sample", run, "--temperature", "-1"}, {"--temperature", "'-1'", "from 0"}},
      {{"sample", run, "--temperature", "nan"}, {"--temperature", "'nan'"}},
      {{"sample", run, "--top-p", "1.5"}, {"--top-p", "from 0 to 1", "'1.5'"}},
      {{"sample", run, "--top-k", "-1"}, {"--top-k", "at least 0", "'-1'"}},
      {{"sample", run, "--tokens", "-1"}, {"--tokens", "at least 0", "'-1'"}},
      {{"sample", run, "model.n_layers=2"}, {"sample", "model.n_layers=2", "key=value"}},
      {{"sample", run, "--prompt", "ab\xCE\xA9"}, {"\xCE\xA9", "U+03A9", "position 2", "--prompt"}},
      {{"sample", run, "--prompt", "ab\xFF"}, {"--prompt", "byte 2", "UTF-8"}},
      {{"sample", shop.path("none")}, {"none", "no such file"}},
      {{"sample", shop.path("tiny.yaml")}, {"tiny.yaml", "safetensors"}},
      {{"eval"}, {"CHECKPOINT is missing", "usage: normlab eval"}},
      {{"eval", run, "model.n_layers=2"}, {"model.n_layers", "from 1 to 2"}},
      {{"eval", run, "--data", shop.path("none.txt")}, {"none.txt", "no such file"}},
      {{"verify"}, {"FILE is missing", "usage: normlab verify"}},
      {{"verify", shop.path("run/checkpoints/step-000005.safetensors"), "seed=1"}, {"seed=1"}},
      {{"data"}, {"usage: normlab data NAME FILE"}},
      {{"data", "tales"}, {"usage: normlab data NAME FILE"}},
      {{"data", "tails", shop.path("x.txt")}, {"'tails'", "did you mean 'tales'?"}},
      {{"data", "tales", shop.path("no/such/x.txt")}, {"x.txt", "directory does not exist"}},
      {{"data", "tales", shop.path("x.txt"), "model.norm=rms"}, {"model.norm", "seed, data.size and data.order"}},
  });
  CHECK_FALSE(shop.exists("x.txt"));
}

TEST_CASE("cli: a wrong setting is told with its place and what would be right") {
  const Workshop shop;
  const std::string config = shop.path("tiny.yaml"), run = "run.dir=" + shop.path("none");
  std::vector<Mistake> mistakes{
      {{"model.norms=rms"}, {"command line", "'norms'", "did you mean 'norm'?"}},
      {{"model.n-layers=2"}, {"did you mean 'n_layers'?"}},
      {{"modle.norm=rms"}, {"'modle'", "did you mean 'model'?"}},
      {{"model.lr=0.1"}, {"it belongs elsewhere: optimizer.lr"}},
      {{"model.norm=rmz"}, {"model.norm: 'rmz'", "layer", "did you mean 'rms'?"}},
      {{"optimizer.lr=\"1e-4\""}, {"optimizer.lr", "a number", "quoted", "drop the quotes"}},
      {{"model.bias=off"}, {"model.bias", "true or false", "'off'", "write false"}},
      {{"model.n_layers=2.0"}, {"model.n_layers", "integer", "'2.0'", "write 2"}},
      {{"optimizer.lr=a=b"}, {"optimizer.lr", "a number", "'a=b'"}},
      {{"optimizer.lr=0,1"}, {"optimizer.lr", "a number", "'0,1'"}},
      {{"optimizer.grad_clip=-1"}, {"optimizer.grad_clip: -1 is out of range", "at least 0"}},
      {{"model.dropout=1"}, {"model.dropout: 1 is out of range", "below 1"}},
      {{"model.norm_eps=0"}, {"model.norm_eps: 0 is out of range", "above 0"}},
      {{"optimizer.eps=-1e-8"}, {"optimizer.eps", "above 0"}},
      {{"model.n_heads=3"}, {"model.n_heads: 3 does not divide model.d_model, 16"}},
      {{"model.position=rope", "model.d_model=6"}, {"rope", "even", "3"}},
      {{"schedule.min_lr=1"}, {"schedule.min_lr", "optimizer.lr"}},
      {{"data.source=tails"}, {"'tails'", "did you mean 'tales'?"}},
      {{"data.source=" + shop.path("none.txt")}, {"none.txt", "neither a file nor"}},
      {{"data.validation=" + shop.path("none.txt")}, {"data.validation", "none.txt", "no such file"}},
      {{"data.source=" + shop.path("")}, {"directory"}},
      {{"data.source=" + shop.write("empty.txt", "")}, {"empty.txt", "is empty"}},
      {{"data.tokenizer=chars"}, {"data.tokenizer: 'chars'", "did you mean 'char'?"}},
      {{"model.d_model=1000000000000", "model.n_heads=1"}, {"model.d_model", "out of range"}},
      {{"model.d_ff=4611686018427387904"}, {"model.d_ff", "out of range"}},
      {{"train.batch_size=1000000000000"}, {"train.batch_size", "out of range"}},
      {{"train.steps=1000000000000000000"}, {"train.steps", "out of range"}},
      {{"data.size=1000000000000000"}, {"data.size", "out of range"}},
  };
  for (Mistake& mistake : mistakes) mistake.words = joined({"train", config, run}, mistake.words);
  const auto in_file = [&](const std::string& name, const std::string& content, Strings parts) {
    parts.push_back(name);
    mistakes.push_back({{"train", shop.write(name, content), run}, parts});
  };
  in_file("unknown.yaml", "model:\n  n-layers: 2\n", {"unknown.yaml:2:3", "model", "did you mean 'n_layers'?"});
  in_file("misplaced.yaml", "model:\n  lr: 0.1\n", {"misplaced.yaml:2:3", "it belongs elsewhere: optimizer.lr"});
  in_file("twice.yaml", "model:\n  d_model: 256\n  norm: rms\n  d_model: 1024\n",
          {"twice.yaml:4:3", "'d_model' is given twice: in line 2 and in line 4"});
  in_file("quoted.yaml", "optimizer:\n  lr: \"1e-4\"\n", {"quoted.yaml:2:7", "optimizer.lr", "drop the quotes"});
  in_file("off.yaml", "model:\n  bias: off\n", {"off.yaml:2:9", "model.bias", "write false"});
  in_file("tab.yaml", "model:\n\tbias: true\n", {"tab.yaml:2", "tab"});
  check_mistakes(mistakes);
  CHECK_FALSE(shop.exists("none"));
}

TEST_CASE("cli: a text that is too short names what there is, what is needed, and the key; one more character trains") {
  const Workshop shop;
  // T + 1 = 17 characters to train on, 4 more to validate on.
  const Strings settings{"data.validation=" + shop.write("val.txt", "abab")};
  const auto train = [&](const std::string& content) {
    return shop.train("run", joined(settings, {"data.source=" + shop.write("text.txt", content)}));
  };
  const Finished refused = train("abababababababab");
  CHECK(refused.code == 2);
  CHECK(holds(refused.err, "there are 16 tokens"));
  CHECK(holds(refused.err, "takes 17"));
  CHECK(holds(refused.err, "lower model.context_length"));
  CHECK_FALSE(shop.exists("run"));
  const Finished done = train("ababababababababa");
  INFO(done.err);
  CHECK(done.code == 0);
}

TEST_CASE("cli: text that is not UTF-8 is refused by characters with the byte's place and taken as bytes") {
  const Workshop shop;
  std::string content;
  for (int i = 0; i < 30; ++i) content += "some text \xC3\xA4 ";
  content[100] = '\xFF';
  const Strings settings{"data.source=" + shop.write("text.txt", content), "data.val_fraction=0.2"};
  const Finished refused = shop.train("run", settings);
  CHECK(refused.code == 2);
  CHECK(holds(refused.err, "byte 100 is not UTF-8"));
  CHECK(holds(refused.err, "data.tokenizer=byte"));
  CHECK(shop.train("run", joined(settings, {"data.tokenizer=byte"})).code == 0);
}

TEST_CASE("cli: help and version are results") {
  const Finished general = run_program({"--help"});
  CHECK(general.code == 0);
  CHECK(general.err.empty());
  for (const char* command : {"train", "eval", "sample", "inspect", "check", "sweep", "reproduce", "report", "diff",
                              "verify", "export", "data"}) {
    CAPTURE(command);
    CHECK(holds(general.out, std::string("\n  ") + command));
    const Finished help = run_program({command, "--help"});
    CHECK(help.code == 0);
    CHECK(help.err.empty());
    CHECK(help.out.starts_with(std::string("usage: normlab ") + command));
    CHECK(holds(help.out, std::string("example:\n  normlab ") + command));
  }
  const Finished version = run_program({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out.starts_with("normlab 0."));
  CHECK(holds(version.out, "compiler: "));
  CHECK(holds(version.out, "OpenMP: "));
  const Finished nothing = run_program({});
  CHECK(nothing.code == 2);
  CHECK(holds(nothing.out + nothing.err, "usage: normlab COMMAND"));
}

TEST_CASE("cli: --print-config tells each value's origin and is a configuration itself") {
  const Workshop shop;
  const std::string config = shop.path("tiny.yaml");
  const Strings settings{"optimizer.lr=1", "train.steps=7", "data.source=a=b"};
  const Finished printed = run_program(joined({"train", config, "--print-config"}, settings));
  CHECK(printed.code == 0);
  CHECK(printed.err.empty());
  const auto line_of = [&](const std::string& start) {
    for (const std::string& line : lines_of(printed.out))
      if (line.starts_with(start)) return line;
    return std::string();
  };
  CHECK(holds(line_of("  lr: 1 "), "# command line"));
  CHECK(holds(line_of("  steps: 7 "), "# command line"));
  CHECK(holds(line_of("  source: \"a=b\" "), "# command line"));
  CHECK(holds(line_of("  d_model: 16 "), "# " + config + ":6"));
  CHECK(holds(line_of("  norm: layer "), "# default"));
  CHECK(holds(line_of("  d_ff: 64 "), "# default"));
  const Finished again = run_program({"train", shop.write("printed.yaml", printed.out), "--print-config"});
  CHECK(again.code == 0);
  const auto values = [](const std::string& content) {
    std::string out;
    for (const std::string& line : lines_of(content)) out += line.substr(0, line.find("  #")) + "\n";
    return out;
  };
  CHECK(values(again.out) == values(printed.out));
}

TEST_CASE("cli: --help-config lists every key") {
  const Finished help = run_program({"train", "--help-config"});
  CHECK(help.code == 0);
  RunConfig config;
  for (const config::Key& key : config::keys_of(config)) {
    CAPTURE(key.path);
    CHECK(holds(help.out, std::string(key.help)));
    CHECK(holds(help.out, std::string(key.name()) + ":"));
  }
}

TEST_CASE("cli: data writes the corpus to the byte, and nothing else where the file is standard output") {
  const Workshop shop;
  const std::string sample = read_file(NORMLAB_SOURCE_DIR "/data/tales-sample.txt");
  const Finished done = run_program({"data", "tales", shop.path("tales.txt")});
  CHECK(done.code == 0);
  CHECK(read_file(shop.path("tales.txt")) == sample);
  CHECK(holds(done.out, "entropy rate"));
  const Finished small = run_program({"data", "brackets", shop.path("b.txt"), "data.size=500", "seed=3"});
  CHECK(small.code == 0);
  const Finished streamed = run_program({"data", "brackets", "/dev/stdout", "data.size=500", "seed=3"});
  CHECK(streamed.code == 0);
  CHECK(streamed.out == read_file(shop.path("b.txt")));
}

TEST_CASE("cli: data --parse prints what was read as JSON, or says what is wrong") {
  const Workshop shop;
  const std::string yaml = shop.write("a.yaml", "a: [1, x]\nb: 0x10\nc: |\n  t\n");
  const std::string value = "{\n  \"a\": [1, \"x\"],\n  \"b\": 16,\n  \"c\": \"t\\n\"\n}\n";
  const Finished read = run_program({"data", "--parse", yaml});
  CHECK(read.code == 0);
  CHECK(read.out == value);
  const Finished piped = run_program({"data", "--parse", "-"}, {.input = read_file(yaml)});
  CHECK(piped.out == value);
  // By its name a file is JSON, which has no numbers in hexadecimal.
  const Finished json = run_program({"data", "--parse", shop.write("a.json", "{\"b\": 0x10}")});
  CHECK(json.code == 2);
  CHECK(holds(json.err, "a.json:1:8: expected ',' or '}', found 'x'"));
  const Finished steered = run_program({"data", "--parse", shop.write("b.yaml", "\"a\": [\"\\e[31m\"\n  \"\x7F\"]")});
  CHECK(steered.code == 2);
  CHECK(holds(steered.err, "\\x7F"));
  CHECK(run_program({"data", "--parse", yaml, "seed=1"}).code == 2);
}

TEST_CASE("cli: verify says ok, refuses with the key that it does not know, and counts neither for the other") {
  const Workshop shop;
  const std::string files = NORMLAB_SOURCE_DIR "/tests/reference/";
  std::string unknown = read_file(files + "dyt-pre.safetensors");
  unknown.replace(unknown.find("dyt"), 3, "dyx");  // in its configuration
  write_file(shop.path("dyx.safetensors"), unknown);
  const Strings both{files + "layer-pre.safetensors", shop.path("dyx.safetensors")};
  const Finished ok = run_program({"verify", both[0]});
  CHECK(ok.code == 0);
  CHECK(holds(ok.out, "layer-pre.safetensors  ok"));
  const Finished refused = run_program(joined({"verify", "--json"}, both));
  CHECK(refused.code == 2);
  const Json document = parse_json(refused.out, "verify");
  CHECK(names_of(document) == Strings{"files"});
  const Json& first = document.at("files").elements()[0];
  CHECK(names_of(first) == Strings{"file", "status", "reason", "max_error"});
  CHECK(names_of(first.at("max_error")) == Strings{"logits", "loss", "grad", "grad_norm", "after"});
  CHECK(first.at("status").string() == "ok");
  const Json& second = document.at("files").elements()[1];
  CHECK(second.at("status").string() == "refused");
  CHECK(holds(second.at("reason").string(), "norm: 'dyx'"));
}
