// normlab data: writes one of the built-in corpora.
#include <filesystem>

#include "command.h"
#include "normlab/base/check.h"
#include "normlab/base/files.h"
#include "normlab/config/loader.h"
#include "normlab/data/corpus.h"
#include "normlab/train/run_config.h"

namespace normlab::cli {
namespace {

int run(const Words& words) {
  check<UserError>(words.files().size() == 2, "data: a corpus and a file are expected; usage: normlab data ",
                   data_command.usage);
  RunConfig config;
  config::apply_overrides(config, words.overrides());
  for (const config::Difference& difference : config::differences(RunConfig{}, config))
    check<UserError>(difference.path == "seed" || difference.path == "data.size" || difference.path == "data.order",
                     "data: ", difference.path, " changes nothing in a corpus; seed, data.size and data.order do");
  const bool streams = words.files()[1] == "/dev/stdout";
  std::error_code error;
  check<UserError>(streams || !std::filesystem::is_regular_file(words.files()[1], error), "data: ", words.files()[1],
                   " exists, and is kept; name another file, or delete it first");
  const auto corpus = make_corpus(words.files()[0], config.data.order, static_cast<std::uint64_t>(config.seed));
  const std::string content = corpus->generate(config.data.size);
  const std::string about = text(words.files()[1], ": ", content.size(), " characters of ", words.files()[0],
                                 ", entropy rate ", fixed(corpus->entropy_rate(), 4), " nats a character\n");
  if (streams) {
    print(content);
    fputs(about.c_str(), stderr);
  } else {
    write_file(words.files()[1], content);
    print(about);
  }
  return 0;
}

}  // namespace

const Command data_command{
    "data",
    "writes one of the built-in corpora to a file",
    "NAME FILE [seed=N] [data.size=N] [data.order=N]",
    "NAME is tales (short tales from a grammar), markov (a chain of order data.order), copy (what was given, again)\n"
    "or brackets (a Dyck language). The text follows from the seed. FILE must be new, or /dev/stdout.",
    "  normlab data tales tales.txt data.size=200000",
    {},
    run};

}  // namespace normlab::cli
