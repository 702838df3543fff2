// The commands as a user meets them: help, settings, corpora, references. The messages are in messages_*_test.cpp.
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "catch.h"
#include "cli_runs.h"
#include "normlab/config/loader.h"
#include "normlab/formats/safetensors.h"
#include "normlab/train/run_config.h"

using namespace normlab;

TEST_CASE("cli: a text that is too short names what there is, what is needed, and the key; one more character trains",
          "[cli]") {
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

TEST_CASE("cli: text that is not UTF-8 is refused by characters with the byte's place and taken as bytes", "[cli]") {
  const Workshop shop;
  std::string content;
  for (int i = 0; i < 30; ++i) content += "some text \xC3\xA4 ";
  content[100] = '\xFF';
  const Strings settings{"data.source=" + shop.write("text.txt", content), "data.val_fraction=0.2"};
  const Finished refused = shop.train("run", settings);
  CHECK(refused.code == 2);
  CHECK(holds(refused.err, "byte 100 (line 1, column 94) is not UTF-8"));
  CHECK(holds(refused.err, "data.tokenizer=byte"));
  CHECK(shop.train("run", joined(settings, {"data.tokenizer=byte"})).code == 0);
}

TEST_CASE("cli: CRLF is counted and trained on as LF, in training, resuming, evaluating and prompts", "[cli]") {
  const Workshop shop;
  std::string content;
  for (int i = 0; i < 40; ++i) content += "a line of it\r\n";
  const std::string file = shop.write("windows.txt", content);
  const Finished done = shop.train("run", {"data.source=" + file, "data.val_fraction=0.2", "--stop-at", "3"});
  INFO(done.err);
  REQUIRE(done.code == 0);
  CHECK(holds(done.err, "note: data.source '" + file + "' has 40 line ends CRLF and 0 CR, which become LF"));
  const Finished resumed = run_program({"train", "--resume", shop.path("run")});
  CHECK(resumed.code == 0);
  CHECK_FALSE(holds(resumed.err, "the data is not what"));
  CHECK(run_program({"eval", shop.path("run"), "--data", file}).code == 0);
  const auto sampled = [&](const std::string& prompt) {
    return run_program({"sample", shop.path("run"), "--prompt", prompt, "--tokens", "20"});
  };
  CHECK(sampled("a\r\nline").code == 0);
  CHECK(sampled("a\r\nline").out == sampled("a\nline").out);
}

TEST_CASE("cli: help and version are results", "[cli]") {
  const Finished general = run_program({"--help"});
  CHECK(general.code == 0);
  CHECK(general.err.empty());
  for (const char* command : {"train", "eval", "sample", "inspect", "check", "sweep", "reproduce", "report", "diff",
                              "verify", "export", "data", "bench", "completion"}) {
    CAPTURE(command);
    CHECK(holds(general.out, std::string("\n  ") + command));
    const Finished help = run_program({command, "--help"});
    CHECK(help.code == 0);
    CHECK(help.err.empty());
    CHECK(help.out.starts_with(std::string("usage: normlab ") + command));
    CHECK(holds(help.out, std::string("example:\n  normlab ") + command));
    CHECK(run_program({"help", command}).out == help.out);
  }
  CHECK(run_program({"help"}).out == general.out);
  CHECK(run_program({"help", "help"}).out == general.out);
  const Finished version = run_program({"--version"});
  CHECK(version.code == 0);
  CHECK(version.out.starts_with("normlab 0."));
  CHECK(holds(version.out, "compiler: "));
  CHECK(holds(version.out, "OpenMP: "));
  const Finished nothing = run_program({});
  CHECK(nothing.code == 2);
  CHECK(holds(nothing.out + nothing.err, "usage: normlab COMMAND"));
}

TEST_CASE("cli: --print-config tells each value's origin and is a configuration itself", "[cli]") {
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

TEST_CASE("cli: --section.key=value is a setting, and after -- no word is an option", "[cli]") {
  const Workshop shop;
  shop.write("--odd.yaml", kTinyConfig);
  const Surroundings there{.directory = shop.path("")};
  const Finished printed =
      run_program({"train", "--train.steps=7", "--print-config", "--", "--odd.yaml", "optimizer.lr=1"}, there);
  INFO(printed.err);
  CHECK(printed.code == 0);
  CHECK(holds(printed.out, "\n  steps: 7 "));
  CHECK(holds(printed.out, "\n  lr: 1 "));
  CHECK(run_program({"train", "--help", "--"}).code == 0);
}

TEST_CASE("cli: the files that the examples of --help name are there, or come from a run of a configuration", "[cli]") {
  for (const std::string& line : lines_of(run_program({"--help"}).out)) {
    const std::string command = line.substr(0, line.find(' ', 3));
    if (!line.starts_with("  ") || command.find('-') != std::string::npos) continue;
    const std::string help = run_program({command.substr(2), "--help"}).out;
    std::string words = help.substr(help.find("\nexample:\n"));
    std::replace_if(
        words.begin(), words.end(), [](char c) { return c == ' ' || c == '='; }, '\n');
    for (std::string word : lines_of(words)) {
      if (word.starts_with("runs/")) word = "configs/" + word.substr(5, word.find('/', 5) - 5) + ".yaml";
      if (word.ends_with(".txt") && word.find('/') == std::string::npos && command != "  data") word = "data/" + word;
      if (const std::size_t star = word.find('*'); star != std::string::npos) word = word.substr(0, word.rfind('/'));
      if (word.find('/') == std::string::npos) continue;
      INFO(help << word);
      CHECK(std::filesystem::exists(NORMLAB_SOURCE_DIR "/" + word));
    }
  }
}

TEST_CASE("cli: completion in bash completes commands, options, keys, their words, and files", "[cli]") {
  if (std::system("bash -c : 2>/dev/null") != 0) {
    std::fprintf(stdout, "  skipped: bash is missing\n");
    return;
  }
  const Workshop shop;
  std::filesystem::create_directory(shop.path("modelled"));
  shop.write("normlab.bash", run_program({"completion", "bash"}).out);
  const auto completed = [&](const std::string& line) {
    shop.write("test.bash", "cd \"${0%/*}\" && source ./normlab.bash || exit 1\nCOMP_LINE='" + line +
                                "'; COMP_POINT=${#COMP_LINE}; _normlab\necho \"${COMPREPLY[*]}\" > said\n");
    CHECK(std::system(("bash '" + shop.path("test.bash") + "'").c_str()) == 0);
    return read_file(shop.path("said"));
  };
  CHECK(completed("normlab tr") == "train\n");
  CHECK(completed("normlab help re") == "reproduce report\n");
  CHECK(completed("build/normlab train --st") == "--stop-at\n");
  CHECK(completed("normlab train tiny.yaml optimizer.wei") == "optimizer.weight_decay=\n");
  CHECK(completed("normlab eval model.norm_e") == "model.norm_eps=\n");
  CHECK(completed("normlab eval model.p") == "model.placement= model.position=\n");
  CHECK(completed("normlab train tiny.yaml model.norm=l") == "layer layer_seq\n");
  CHECK(completed("normlab train tiny.yaml model.bias=") == "true false\n");
  CHECK(completed("normlab export --to ") == "hf pytorch csv\n");
  CHECK(completed("normlab export run --to=p") == "pytorch\n");
  CHECK(completed("normlab completion z") == "zsh\n");
  CHECK(holds(completed("normlab check mode"), "model.norm= "));
  CHECK(holds(completed("normlab check mode"), " modelled\n"));
  for (const char* files : {"normlab train ti", "normlab train --resume mode", "normlab diff mode",
                            "normlab train tiny.yaml data.source=ti"})
    CHECK(completed(files) == "\n");  // bash completes files where nothing is offered
}

TEST_CASE("cli: completion's scripts are what zsh and fish read, and know every command, option and key", "[cli]") {
  const Workshop shop;
  RunConfig config;
  for (const std::string shell : {"bash", "zsh", "fish"}) {
    CAPTURE(shell);
    const Finished done = run_program({"completion", shell});
    CHECK(done.code == 0);
    for (const config::Key& key : config::keys_of(config))
      CHECK((key.is_section() || holds(done.out, ' ' + key.path + '=')));
    for (const char* word : {"reproduce", "completion", "hf pytorch csv", "stop-at", "layer_seq"})
      CHECK(holds(done.out, word));
    if (std::system((shell + " -c : 2>/dev/null").c_str()) == 0)
      CHECK(std::system((shell + " -n '" + shop.write("script", done.out) + "'").c_str()) == 0);
    else
      std::fprintf(stdout, "  skipped: %s is missing\n", shell.c_str());
  }
}

TEST_CASE("cli: --help-config lists every key", "[cli]") {
  const Finished help = run_program({"train", "--help-config"});
  CHECK(help.code == 0);
  RunConfig config;
  for (const config::Key& key : config::keys_of(config)) {
    CAPTURE(key.path);
    CHECK(holds(help.out, std::string(key.help)));
    CHECK(holds(help.out, std::string(key.name()) + ":"));
  }
}

TEST_CASE("cli: data writes the corpus to the byte, and nothing else where the file is standard output", "[cli]") {
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

TEST_CASE("cli: data --parse prints what was read as JSON, or says what is wrong", "[cli]") {
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

TEST_CASE("cli: verify says ok, refuses with the key that it does not know, and counts neither for the other",
          "[cli]") {
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
  CHECK(refused.code == 1);
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

TEST_CASE("cli: verify goes on past files that are damaged, and says what is wrong with each", "[cli]") {
  const Workshop shop;
  const std::string good = NORMLAB_SOURCE_DIR "/tests/reference/layer-pre.safetensors", whole = read_file(good);
  const std::string cut = shop.write("cut.safetensors", whole.substr(0, whole.size() / 2));
  // The file with one tensor of another size, or with other values.
  const auto with = [&](const std::string& name, const StoredTensor& other) {
    const Safetensors file = Safetensors::parse(whole, good);
    std::vector<StoredTensor> tensors = file.tensors();
    *std::ranges::find(tensors, other.name, &StoredTensor::name) = other;
    Metadata metadata = file.metadata();
    metadata.erase("crc32c");
    write_safetensors(shop.path(name), metadata, tensors);
    return shop.path(name);
  };
  const std::vector<double> nothing, one{1}, two{1, 2};
  const std::vector<std::int64_t> ids{1, 99999};
  const std::string loss = with("loss.safetensors", stored("losses", {0}, std::span(nothing)));
  const std::string norm = with("norm.safetensors", stored("grad_norm", {2}, std::span(two)));
  const std::string grad = with("grad.safetensors", stored("grad.tok_embed.weight", {2}, std::span(two)));
  const std::string after = with("after.safetensors", stored("after.final_norm.bias", {1}, std::span(one)));
  const std::string logits = with("logits.safetensors", stored("logits", {2}, std::span(two)));
  const std::string targets = with("targets.safetensors", stored("targets", {1, 2}, std::span(ids)));
  const std::string input = with("input.safetensors", stored("input_ids", {1, 2}, std::span(ids)));
  const std::string other = with("other.safetensors", stored("grad_norm", {}, std::span(one)));
  const Strings damaged{cut, loss, norm, grad, after, logits, targets, input, shop.path("none.safetensors")};
  const Finished all = run_program(joined(joined({"verify", "--json"}, damaged), {good, other}));
  INFO(all.err);
  CHECK(all.code == 1);
  const Json document = parse_json(all.out, "verify");
  const auto& files = document.at("files").elements();
  REQUIRE(files.size() == damaged.size() + 2);
  const Strings reasons{"is damaged or was cut short",
                        "losses has 0 numbers",
                        "grad_norm has 2 numbers and must have 1",
                        "grad.tok_embed.weight has 2 numbers",
                        "after.final_norm.bias has 1 numbers",
                        "logits has 2 numbers",
                        "targets must have the shape of input_ids",
                        "input_ids",
                        "there is no such file"};
  for (std::size_t i = 0; i < damaged.size(); ++i) {
    INFO(files[i].line());
    CHECK(files[i].at("file").string() == damaged[i]);
    CHECK(files[i].at("status").string() == "refused");
    CHECK(holds(files[i].at("reason").string(), reasons[i]));
  }
  CHECK(files[damaged.size()].at("status").string() == "ok");
  CHECK(files.back().at("status").string() == "differs");
  const Finished in_words = run_program({"verify", cut, good});
  CHECK(in_words.code == 1);
  CHECK(holds(in_words.out, "cut.safetensors        refused: "));
  CHECK(holds(in_words.out, "1 agree, 0 differ, 1 refused"));
  // Nothing that could be verified.
  const Finished none = run_program({"verify", "--json", cut, norm});
  CHECK(none.code == 2);
  CHECK(holds(none.err, "verify: no file could be verified; the first: " + cut));
  CHECK(parse_json(none.out, "verify").at("files").elements().size() == 2);
}
