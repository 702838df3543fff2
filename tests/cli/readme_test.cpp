// The README: its training loop runs and learns, and what it names is there. tests/config/settings_table_test.cpp has
// its table of settings.
#include <cstdio>
#include <filesystem>
#include <regex>

#include "catch.h"
#include "normlab/base/text.h"
#include "normlab/host/files.h"

using namespace normlab;

namespace {

std::string readme() { return read_file(NORMLAB_SOURCE_DIR "/README.md"); }

// What the pattern's first group matches, wherever it matches.
std::vector<std::string> matches(const std::string& text, const char* pattern) {
  std::vector<std::string> found;
  const std::regex regex(pattern);
  for (std::sregex_iterator match(text.begin(), text.end(), regex), end; match != end; ++match)
    found.push_back((*match)[1]);
  return found;
}

// The losses that tests/consumer/main.cpp prints, as "step 1 loss 3.97".
std::vector<double> printed_losses() {
  std::FILE* program = popen("'" NORMLAB_README_LOOP "'", "r");
  REQUIRE(program != nullptr);
  std::vector<double> losses;
  int step = 0;
  for (double loss = 0; std::fscanf(program, "step %d loss %lf ", &step, &loss) == 2;) losses.push_back(loss);
  CHECK(pclose(program) == 0);
  return losses;
}

}  // namespace

TEST_CASE("the README's training loop is tests/consumer/main.cpp, line by line", "[cli]") {
  const std::string program = read_file(NORMLAB_SOURCE_DIR "/tests/consumer/main.cpp");
  CHECK(readme().find(text("```cpp\n", program, "```\n")) != std::string::npos);
}

TEST_CASE("the README's training loop learns", "[cli]") {
  const std::vector<double> losses = printed_losses();
  REQUIRE(losses.size() == 4);
  CHECK(losses.front() > 3.5);  // ln 52 = 3.95 before the first update
  CHECK(losses.back() < 2.8);   // a model that knows nothing but how frequent each character is has 3.03
}

TEST_CASE("every file that the README names exists", "[cli]") {
  const std::filesystem::path root = NORMLAB_SOURCE_DIR;
  const std::vector<std::string> paths =
      matches(readme(), "`([a-z_0-9-]+/[A-Za-z_0-9/.-]+[.](?:h|cpp|sh|py|yaml|svg))`");
  CHECK(paths.size() > 50);
  for (const std::string& path : paths) {
    if (path.starts_with("my-")) continue;  // an example's own
    INFO(path);
    CHECK((exists(root / path) || exists(root / "src" / path) || exists(root / "include/normlab" / path)));
  }
}

TEST_CASE("every link of the README's contents leads to a heading", "[cli]") {
  const std::string page = readme();
  const std::vector<std::string> links = matches(page, "\\]\\(#([a-z-]+)\\)");
  CHECK(links.size() > 12);
  std::vector<std::string> headings = matches(page, "\n##+ ([A-Za-z ]+)");
  for (std::string& heading : headings)
    for (char& c : heading) c = c == ' ' ? '-' : static_cast<char>(c | 0x20);  // as GitHub makes them
  for (const std::string& link : links) {
    INFO(link);
    CHECK(std::ranges::find(headings, link) != headings.end());
  }
}
