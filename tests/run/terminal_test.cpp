// What reaches a terminal: control characters of names and samples are escaped there, and exact in a pipe or a file;
// a live line that fits; and commands that can be copied from it.
#include "normlab/run/terminal.h"

#include <sys/ioctl.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "catch.h"
#include "cli_runs.h"
#include "normlab/base/text.h"
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

TEST_CASE("terminal: no control character of a text, a path or a setting reaches it, whatever the command", "[run]") {
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

TEST_CASE("terminal: a sample in a pipe or a file is exact, byte for byte", "[run]") {
  const Hostile hostile;
  const Strings words{"sample", hostile.run, "--prompt", "a\x1B[31mb\t", "--tokens", "60", "--stop", "\xC3\xBC\n\n"};
  const Finished exact = run_program(words, hostile.around({}));
  const Finished shown = run_program(words, hostile.around(kTerminal));
  CHECK(exact.code == 0);
  CHECK(exact.out.starts_with("a\x1B[31mb\t"));
  CHECK(shown.err.starts_with("a\\x1B[31mb\t"));
  CHECK(shown.err == printable(exact.out, "\n\t"));
}

namespace {

// A terminal and what it shows: rows of characters, of which each write goes to where the cursor is. It wraps at its
// last column, and where its width changes it breaks its lines again or, as xterm does, cuts them.
class Screen {
 public:
  explicit Screen(unsigned short columns) {
    const int file = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    REQUIRE(file >= 0);
    REQUIRE((grantpt(file) == 0 && unlockpt(file) == 0));
    master_ = file;
    slave_ = open(ptsname(master_), O_RDWR | O_NOCTTY | O_CLOEXEC);
    termios settings{};
    tcgetattr(slave_, &settings);
    settings.c_oflag &= ~static_cast<tcflag_t>(OPOST);
    tcsetattr(slave_, TCSANOW, &settings);
    fcntl(master_, F_SETFL, O_NONBLOCK);
    widen(columns, false);
  }
  ~Screen() { close(master_), close(slave_); }
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;

  int file() const { return slave_; }

  void widen(unsigned short columns, bool breaks) {
    winsize size{};
    size.ws_row = 24;
    size.ws_col = columns;
    REQUIRE(ioctl(slave_, TIOCSWINSZ, &size) == 0);
    columns_ = columns;
    for (std::size_t row = 0; row < rows_.size(); ++row) {
      if (rows_[row].size() <= columns_) continue;
      const std::string rest = rows_[row].substr(columns_);
      rows_[row].resize(columns_);
      if (breaks) rows_.insert(rows_.begin() + static_cast<std::ptrdiff_t>(row) + 1, rest);
      if (breaks && row < row_) ++row_;
      if (breaks && row == row_ && column_ >= columns_) ++row_, column_ -= columns_;
    }
    column_ = std::min(column_, columns_ - 1);
  }

  // Takes in what was written since; the rows without the blanks at their ends.
  Strings rows() {
    char block[4096];
    for (ssize_t n; (n = read(master_, block, sizeof block)) > 0;) show({block, static_cast<std::size_t>(n)});
    Strings out;
    for (std::string row : rows_) {
      while (row.ends_with(' ')) row.pop_back();
      out.push_back(row);
    }
    while (!out.empty() && out.back().empty()) out.pop_back();
    return out;
  }

  void show(std::string_view bytes) {
    while (!bytes.empty()) {
      const char c = bytes[0];
      if (bytes.starts_with("\x1B[J")) {
        rows_.resize(row_ + 1);
        rows_[row_].resize(std::min(column_, rows_[row_].size()));
        bytes.remove_prefix(3);
        escapes = true;
        continue;
      }
      bytes.remove_prefix(1);
      if (c == '\r') {
        column_ = 0;
      } else if (c == '\n') {
        next_row();
      } else {
        if (column_ == columns_) next_row();
        rows_[row_].resize(std::max(rows_[row_].size(), column_ + 1), ' ');
        rows_[row_][column_++] = c;
      }
    }
  }

  bool escapes = false;

 private:
  void next_row() {
    column_ = 0;
    if (++row_ == rows_.size()) rows_.emplace_back();
  }

  int master_, slave_;
  std::size_t columns_ = 0, row_ = 0, column_ = 0;
  Strings rows_{""};
};

using Fields = std::vector<Terminal::Field>;

// 10, 6, 11, 8, 9 and 9 columns.
const Fields kFields{{"[##------]", 3}, {"12/500", 0},    {"loss 3.1234", 1},
                     {"lr 0.001", 4},   {"grad 1.25", 5}, {"0:12 left", 2}};

// NO_COLOR as the test sets it, and back.
class NoColor {
 public:
  explicit NoColor(bool set) {
    if (const char* value = std::getenv("NO_COLOR")) before_ = value;
    set ? setenv("NO_COLOR", "1", 1) : unsetenv("NO_COLOR");
  }
  ~NoColor() { before_ ? setenv("NO_COLOR", before_->c_str(), 1) : unsetenv("NO_COLOR"); }

 private:
  std::optional<std::string> before_;
};

}  // namespace

TEST_CASE("terminal: a narrow one gets a live line of fewer fields, and never a second row", "[run]") {
  const std::map<int, std::string> expected{{80, "[##------] 12/500 loss 3.1234 lr 0.001 grad 1.25 0:12 left"},
                                            {59, "[##------] 12/500 loss 3.1234 lr 0.001 grad 1.25 0:12 left"},
                                            {58, "[##------] 12/500 loss 3.1234 lr 0.001 0:12 left"},
                                            {40, "[##------] 12/500 loss 3.1234 0:12 left"},
                                            {39, "12/500 loss 3.1234 0:12 left"},
                                            {20, "12/500 loss 3.1234"},
                                            {12, "12/500"},
                                            {4, "12/"},
                                            {2, "1"}};
  for (const bool no_color : {false, true}) {
    const NoColor set(no_color);
    for (const auto& [columns, line] : expected) {
      CAPTURE(no_color, columns);
      Screen screen(static_cast<unsigned short>(columns));
      Terminal terminal(screen.file(), true);
      for (int i = 0; i < 3; ++i) terminal.status(kFields);
      CHECK(join(screen.rows(), "|") == line);
      terminal.end();
      screen.rows();
      screen.show("next");
      CHECK(join(screen.rows(), "|").substr(0, line.size() + 2) == line + "|n");
      CHECK(screen.escapes == !no_color);
    }
  }
}

TEST_CASE("terminal: no old character is left of a longer live line, nor of one in another width", "[run]") {
  for (const bool no_color : {false, true})
    for (const bool breaks : {false, true}) {
      if (no_color && breaks) continue;  // a line that is broken already can be erased by an escape sequence alone
      const NoColor set(no_color);
      CAPTURE(no_color, breaks);
      Screen screen(80);
      Terminal terminal(screen.file(), true);
      terminal.line("first");
      terminal.status(kFields);
      terminal.status({{"1/2", 0}});
      CHECK(screen.rows() == Strings{"first", "1/2"});
      for (const int columns : {40, 100, 20, 80, 15}) {
        terminal.status(kFields);
        screen.rows();
        screen.widen(static_cast<unsigned short>(columns), breaks);
        terminal.status({{"1/2", 0}, {"ab", 1}});
        CHECK(screen.rows() == Strings{"first", "1/2 ab"});
      }
      terminal.status(kFields);
      screen.rows();
      screen.widen(10, breaks);
      terminal.line("last");
      CHECK(screen.rows() == Strings{"first", "last"});
      terminal.status({{"\x1B\xC3\xBC", 0}});
      CHECK(screen.rows() == Strings{"first", "last", "\\x1B\xC3\xBC"});
      screen.show("^C");
      terminal.status({{"3/4", 0}});
      terminal.end();
      terminal.line("next");
      CHECK(screen.rows() == Strings{"first", "last", "3/4", "next"});
    }
}

TEST_CASE("terminal: after an interruption the messages begin on a line of their own", "[run]") {
  const Workshop shop;
  for (const std::string no_color : {"", "1"}) {
    CAPTURE(no_color);
    const std::string run = "run" + no_color;
    Process process(shop.training(run, {"train.steps=1000000", "checkpoint.every=1000000"}),
                    {.environment = {{"TERM", "xterm"}, {"NO_COLOR", no_color}},
                     .terminal = true,
                     .terminal_output = true,
                     .columns = 40});
    for (int i = 0; i < 2000 && !(shop.exists(run + "/metrics.jsonl") && holds(shop.metrics(run), "\"step\":3,")); ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    process.send(SIGINT);
    const Finished done = process.wait();
    INFO(done.err);
    CHECK(done.code == 130);
    Screen screen(40);
    screen.show(done.err);
    const Strings rows = screen.rows();
    const auto outcome =
        std::ranges::find_if(rows, [](const std::string& row) { return row.starts_with("outcome: "); });
    REQUIRE(outcome != rows.end());
    const std::string before = *std::prev(outcome);
    CHECK(holds(before, "/1000000 loss "));
    CHECK(before.size() < 40);
    CHECK(screen.escapes == no_color.empty());
  }
}

TEST_CASE("commands: a path is one word of a shell, plain where it can be", "[run]") {
  CHECK(shell_quoted("runs/tiny-2.a_b,c:d+e@f%g") == "runs/tiny-2.a_b,c:d+e@f%g");
  CHECK(shell_quoted("it's a $run") == R"('it'\''s a $run')");
  CHECK(shell_quoted("a\\b") == R"('a\b')");
  CHECK(shell_quoted("\xC3\xBC") == "'\xC3\xBC'");
  CHECK(shell_quoted("a\x1B\nb\xFF") == R"('a'$'\x1B'''$'\x0A''b'$'\xFF''')");
  CHECK(shell_quoted("-x") == "./-x");
  CHECK(shell_quoted("/a=b") == "/a=b");
  CHECK(shell_quoted("a=b/c") == "./a=b/c");
  CHECK(shell_quoted("[a]") == "'./[a]'");
  CHECK(shell_word("run.dir=a/b") == "run.dir=a/b");
  CHECK(shell_word("run.dir=\"[a]\"") == "'run.dir=\"[a]\"'");
}

TEST_CASE("commands: what a run suggests works as it stands, whatever its directory is called", "[run]") {
  const Workshop shop;
  const auto runs = [&](const std::string& command) {
    CAPTURE(command);
    const std::string script = text("normlab() { '", NORMLAB_PROGRAM, "' \"$@\"; }; cd '", shop.path(""), "' && { ",
                                    command, "\n} > out.txt 2> err.txt");
    const int status = std::system(script.c_str());
    INFO(read_file(shop.path("out.txt")) << read_file(shop.path("err.txt")));
    CHECK(status == 0);
  };
  const auto behind = [](const std::string& said, const std::string& mark) {
    CAPTURE(said, mark);
    REQUIRE(holds(said, mark));
    const std::string rest = said.substr(said.find(mark) + mark.size());
    return rest.substr(0, rest.find('\n'));
  };
  const Surroundings there{.directory = shop.path("")};
  for (const char* name :
       {"it's a run", "-x", "a=b", "[x]: y", "~", "null", "d e/$HOME `f` \"g\"", "\xC3\xBC;#&|<>*?!(", " s"}) {
    CAPTURE(name);
    const std::filesystem::path directory = shop.path("./") + name;
    std::filesystem::create_directories(directory.parent_path());
    const Finished half = run_program({"train", "tiny.yaml", "run.dir=" + Json(name).line(), "--stop-at=2"}, there);
    INFO(half.err);
    REQUIRE(half.code == 0);
    runs(behind(half.out, "next: "));
    const std::string whole = read_file(shop.path("out.txt"));
    runs(behind(whole, "next: "));
    runs(behind(whole, " --tokens 300\n      "));
    std::filesystem::remove_all(directory / "checkpoints");
    const Finished none = run_program({"train", "--resume", name}, there);
    CHECK(none.code == 2);
    runs("normlab train" + behind(none.err, "Start it again: normlab train"));
    CHECK(std::filesystem::exists(directory / "checkpoints/best.safetensors"));
  }
}
