// What --force may delete: what a run wrote, and nothing that anybody still needs.
#include "messages.h"
#include "torture.h"

using namespace normlab;

namespace {

std::string contents(const Workshop& shop, const std::string& directory) {
  Strings all;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(shop.path(directory)))
    if (entry.is_regular_file()) all.push_back(entry.path().string() + read_file(entry.path().string()));
  std::ranges::sort(all);
  return join(all, "\n");
}

}  // namespace

TEST_CASE("run directory: --force refuses to delete what the new run reads, by whatever path", "[run]") {
  const Workshop shop;
  REQUIRE(shop.train("run", {"data.tokenizer=byte"}).code == 0);
  std::filesystem::create_directory_symlink(shop.path("run"), shop.path("link"));
  const std::string before = contents(shop, "run");
  const Strings sources{"data.source=@/run/config.yaml",
                        "data.source=@/link/config.yaml",
                        "data.source=@/run/checkpoints/../config.yaml",
                        "data.validation=@/run/config.yaml",
                        "model.from=@/run",
                        "model.from=@/link/checkpoints/best.safetensors"};
  for (const std::string& source : sources)
    for (const std::string run : {"run", "link"}) {
      const std::size_t equals = source.find('=');
      check_mistake(shop, {"train", "@/tiny.yaml", "--force", "data.tokenizer=byte"},
                    {{"run.dir=@/" + run, source},
                     text(source.substr(0, equals), ": '", source.substr(equals + 1), "' lies in run.dir, @/", run,
                          ", which --force replaces; give another run.dir, or copy the file elsewhere")});
    }
  CHECK(contents(shop, "run") == before);
  shop.write("text.txt", read_file(shop.path("run/config.yaml")));
  CHECK(shop.train("run", {"--force", "data.tokenizer=byte", "data.source=" + shop.path("text.txt")}).code == 0);
}

TEST_CASE("run directory: --force refuses to delete a file that no run writes", "[run]") {
  const Workshop shop;
  REQUIRE(shop.train("run").code == 0);
  for (const std::string file :
       {"notes.txt", "checkpoints/step-000005-good.safetensors", "checkpoints/step-.safetensors", "figures/loss.svg",
        "checkpoints/old/best.safetensors"}) {
    CAPTURE(file);
    const std::filesystem::path path = shop.path("run/" + file);
    std::filesystem::create_directories(path.parent_path());
    shop.write("run/" + file, "mine");
    const std::string before = contents(shop, "run");
    const Finished done = shop.train("run", {"--force"});
    CHECK(done.code == 2);
    CHECK_THAT(done.err,
               ContainsSubstring(": no run writes this file, and --force would delete it; move it elsewhere"));
    CHECK(contents(shop, "run") == before);
    std::filesystem::remove(path);
    if (file.ends_with("loss.svg") || file.find("old") != std::string::npos)
      std::filesystem::remove(path.parent_path());
  }
  write_file(left_over_name(shop.path("run/config.yaml")), "half written");
  CHECK(shop.train("run", {"--force"}).code == 0);
}
