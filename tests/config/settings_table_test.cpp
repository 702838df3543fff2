// The README's table of settings is what the declarations say.
#include "catch.h"
#include "normlab/config/loader.h"
#include "normlab/host/files.h"
#include "normlab/train/run_config.h"

using namespace normlab;

TEST_CASE("the README's table of settings is the declarations' (make readme writes it)", "[config]") {
  const std::string readme = read_file(NORMLAB_SOURCE_DIR "/README.md");
  const std::string begin = "<!-- settings: begin -->\n";
  const std::size_t from = readme.find(begin) + begin.size(), to = readme.find("<!-- settings: end -->");
  REQUIRE(to != std::string::npos);
  CHECK((readme.substr(from, to - from) == config::help_table<RunConfig>()));
}
