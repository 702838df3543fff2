// normlab data: writes one of the built-in corpora, or what the readers of YAML and JSON make of a file.
#include "command.h"
#include "normlab/base/check.h"
#include "normlab/base/utf8.h"
#include "normlab/config/loader.h"
#include "normlab/data/corpora/corpora.h"
#include "normlab/formats/json.h"
#include "normlab/host/files.h"
#include "normlab/run/terminal.h"
#include "normlab/train/run_config.h"

namespace normlab::cli {
namespace {

constexpr Option kOptions[] = {
    {"--parse", "FILE",
     "prints what was read, as JSON; YAML, or JSON where the name ends in .json; - is standard input"}};

int parse(const std::string& path) {
  const std::string file = path == "-" ? "/dev/stdin" : path;
  const Json value =
      file.ends_with(".json") ? parse_json(read_file(file), file) : config::json_of(config::read_yaml(file));
  print(for_output(value.indented() + "\n"));
  return 0;
}

int run(const Words& words) {
  if (const auto file = words.value("--parse")) {
    check<UserError>(words.files().empty() && words.overrides().empty(),
                     "data: --parse takes a file and nothing else; usage: normlab data --parse FILE");
    return parse(*file);
  }
  check<UserError>(words.files().size() == 2, "data: a corpus and a file are expected; usage: normlab data ",
                   data_command.usage);
  RunConfig config;
  config::apply_overrides(config, words.overrides());
  for (const config::Difference& difference : config::differences(RunConfig{}, config))
    check<UserError>(difference.path == "seed" || difference.path == "data.size" || difference.path == "data.order",
                     "data: ", difference.path, " changes nothing in a corpus; seed, data.size and data.order do");
  const std::string &name = words.files()[0], &file = words.files()[1];
  require_new_file("data", file);
  const auto corpus = make_corpus(name, config.data.order, static_cast<std::uint64_t>(config.seed));
  const std::string content = corpus->generate(config.data.size);
  const std::string about = text(printable(file), ": ", content.size(), " characters of ", name, ", entropy rate ",
                                 fixed(corpus->entropy_rate(), 4), " nats a character\n");
  write_output(file, content);
  if (file == kStandardOutput)
    fputs(about.c_str(), stderr);
  else
    print(about);
  return 0;
}

}  // namespace

const Command data_command{
    "data",
    "writes one of the built-in corpora to a file",
    "NAME FILE [seed=N] [data.size=N] [data.order=N] | --parse FILE",
    "NAME is tales (short tales from a grammar), markov (a chain of order data.order), copy (what was given, again)\n"
    "or brackets (a Dyck language). The text follows from the seed. FILE must be new, or /dev/stdout.\n"
    "With --parse alone, what the program reads in a file of YAML or JSON, by the core schema of YAML 1.2.",
    "  normlab data tales tales.txt data.size=200000\n  normlab data --parse configs/tiny.yaml",
    kOptions,
    run};

}  // namespace normlab::cli
