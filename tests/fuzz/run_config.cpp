// The configuration of a run: what is accepted is finite, and equal when it is printed and read again.
#include "normlab/train/run_config.h"

#include "fuzz.h"
#include "normlab/config/loader.h"

namespace normlab::fuzz {
namespace {

void look_at(RunConfig config) {
  for (const config::Key& key : config::keys_of(config)) {
    if (key.is_section()) continue;
    const std::string value = key.value();
    promise(value != ".nan" && value != ".inf" && value != "-.inf", "numbers are finite");
  }
  const std::string printed = config::dump(config);
  RunConfig again;
  config::load(again, config::parse_yaml(printed, "printed"), "printed");
  again.resolve();
  promise(config::differences(config, again).empty(), "what is printed reads back equal");
  promise(config::dump(again) == printed, "printed again it is the same");
}

// The lines with '=', as the command line would have them.
std::vector<std::string> overrides_in(std::string_view bytes) {
  std::vector<std::string> overrides;
  while (!bytes.empty()) {
    const std::string_view line = bytes.substr(0, bytes.find('\n'));
    if (line.find('=') != std::string_view::npos) overrides.emplace_back(line);
    bytes.remove_prefix(std::min(line.size() + 1, bytes.size()));
  }
  return overrides;
}

}  // namespace

void run_config(std::string_view bytes) {
  const auto config = accepted([&] {
    RunConfig read;
    config::load(read, config::parse_yaml(bytes, "f.yaml"), "f.yaml");
    read.resolve();
    return read;
  });
  if (config) look_at(*config);
  const auto overridden = accepted([&] {
    RunConfig read;
    config::apply_overrides(read, overrides_in(bytes));
    read.resolve();
    return read;
  });
  if (overridden) look_at(*overridden);
}

}  // namespace normlab::fuzz
