// What reaches a terminal: control characters of names and samples are escaped there, and exact in a pipe or a file;
// a live line that fits; and commands that can be copied from it.

#include <sys/ioctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "catch.h"
#include "cli_runs.h"
#include "normlab/base/utf8.h"

using namespace normlab;

namespace {

const Surroundings kTerminal{
    .environment = {{"TERM", "xterm"}, {"NO_COLOR", "1"}}, .terminal = true, .terminal_output = true};

// Whether it holds a control character, C1 included, other than line ends and tabs, or what is not UTF-8. Returns are
// the live line's too.
bool steers(std::string_view shown) {
  while (!shown.empty()) {
    const Utf8Step step = utf8_step(shown);
    const std::string_view character = shown.substr(0, static_cast<std::size_t>(step.length));
    shown.remove_prefix(character.size());
    const bool is_control = step.code_point < 0x20 || (step.code_point >= 0x7F && step.code_point < 0xA0);
    if (step.status != Utf8Step::valid || (is_control && character.find_first_of("\n\t\r") != 0)) return true;
  }
  return false;
}

// A text, a configuration and a run directory full of control characters, trained on a terminal.
struct Hostile {
  Hostile() {
    std::string content;
    for (int i = 0; i < 400; ++i) content += "a\x1B[31mb\tc\xC2\x9B\x7F\xC3\xBC\n";
    shop.write("text\x1B.txt", content);
    config = shop.write("c\x1B.yaml", kTinyConfig);
    trained = run_program(
        {"train", config, "data.source=\"text\\e.txt\"", "run.dir=\"r\\e\\u009B\"", "log.sample_tokens=200"},
        around(kTerminal));
  }
  Surroundings around(Surroundings surroundings) const {
    surroundings.directory = shop.path("");
    return surroundings;
  }

  Workshop shop;
  std::string config, run = "r\x1B\xC2\x9B";
  Finished trained;
};

}  // namespace

TEST_CASE("terminal: no control character of a text, a path or a setting reaches it, whatever the command") {
  const Hostile hostile;
  CAPTURE(hostile.trained.err);
  CHECK(hostile.trained.code == 0);
  CHECK_FALSE(steers(hostile.trained.err));
  CHECK(holds(hostile.trained.err, "run directory: r\\x1B\\xC2\\x9B\n"));
  CHECK(holds(hostile.trained.err, "\t"));  // of the sample, as its line ends
  hostile.shop.write("s\x1B\x7F.yaml",
                     "base: \"c\\e.yaml\"\nmeasure: train\ngrid: {optimizer.lr: [0.01]}\nseeds: [1]\n");
  hostile.shop.write("p.json", "{\"a\": \"\x7F\xC2\x9B\"}");
  const std::string& run = hostile.run;
  for (const Strings& words : {Strings{"sample", run, "--prompt", "a\x1B[31mb"},
                               {"sample", run, "--prompt", "a\x1B\x07"},
                               {"eval", run},
                               {"inspect", run},
                               {"inspect", run, "--json"},
                               {"check", run},
                               {"report", run},
                               {"report", run, "--text"},
                               {"diff", run, run},
                               {"export", run, "--to", "hf", "h\x1B"},
                               {"data", "tales", "d\x1B", "data.size=1000"},
                               {"data", "--parse", "p.json"},
                               {"train", "c\x1B.yaml", "--print-config"},
                               {"verify", "n\x1B"},
                               {"verify", "n\x1B", "m\x7F", "--json"},
                               {"sweep", "s\x1B\x7F.yaml", "--dry-run"},
                               {"sweep", "s\x1B\x7F.yaml", "run.dir=runs/s", "data.source=\"text\\e.txt\""},
                               {"sweep", "s\x1B\x7F.yaml", "run.dir=runs/s", "data.source=\"text\\e.txt\"", "--json"},
                               {"report", "runs/s", "--text"},
                               {"train", "--resume", run},
                               {"no\x1B"}}) {
    const Finished done = run_program(words, hostile.around(kTerminal));
    CAPTURE(words, done.code, done.err);
    CHECK_FALSE(done.err.empty());
    CHECK_FALSE(steers(done.err));
  }
  CHECK(run_program({"eval", "no\x1B\r\xC2\x9B\xFF"}, hostile.around(kTerminal)).err ==
        "normlab: cannot read no\\x1B\\r\\xC2\\x9B\\xFF: there is no such file; check the path\n");
}

TEST_CASE("terminal: a sample in a pipe or a file is exact, byte for byte") {
  const Hostile hostile;
  const Strings words{"sample", hostile.run, "--prompt", "a\x1B[31mb\t", "--tokens", "60", "--stop", "\xC3\xBC\n\n"};
  const Finished exact = run_program(words, hostile.around({}));
  const Finished shown = run_program(words, hostile.around(kTerminal));
  CHECK(exact.code == 0);
  CHECK(exact.out.starts_with("a\x1B[31mb\t"));
  CHECK(shown.err.starts_with("a\\x1B[31mb\t"));
  CHECK(shown.err == printable(exact.out, "\n\t"));
}
