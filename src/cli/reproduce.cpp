// normlab reproduce: the claims of articles and papers, each a sweep with verdicts.
#include <algorithm>
#include <filesystem>

#include "command.h"
#include "normlab/base/check.h"
#include "normlab/base/did_you_mean.h"
#include "normlab/base/utf8.h"
#include "normlab/claims/sweep_loader.h"
#include "normlab/host/process.h"
#include "sweep_command.h"

namespace normlab::cli {
namespace {

namespace fs = std::filesystem;

constexpr Option kOptions[] = {
    {"--seeds", "N", "number of seeds, in place of the files'"},
    {"--force", "", "measure again what is done"},
    {"--list", "", "the claims by name; measures nothing"},
    {"--json", "", "one JSON document"},
};

// Beside the program as it is built in its source tree or installed, wherever that was moved; else where it was built
// from.
fs::path claims_directory() {
  const fs::path prefix = fs::path(own_path()).parent_path().parent_path();
  for (const char* below : {"configs/claims", "share/normlab/configs/claims"})
    if (fs::is_directory(prefix / below)) return prefix / below;
  return NORMLAB_CLAIMS;
}

// K2 before K10.
bool by_id(const Sweep& a, const Sweep& b) {
  const auto number_in = [](const std::string& id) {
    return parse_int(id.substr(std::min<std::size_t>(1, id.size())));
  };
  return std::pair(number_in(a.head.id).value_or(1000), a.name) <
         std::pair(number_in(b.head.id).value_or(1000), b.name);
}

// The sweeps with these names or ids, all of them without any; in the order of their ids.
std::vector<Sweep> chosen(const Words& words, const SweepWords& given) {
  const fs::path directory = claims_directory();
  check<SystemError>(fs::is_directory(directory), directory.string(), ": the claim files are not there");
  std::vector<std::string> names;
  std::vector<Sweep> all, out;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory)) {
    if (entry.path().extension() != ".yaml") continue;
    const std::string name = entry.path().stem().string();
    names.push_back(name);
    // The others are not loaded: an override may fit the ones that are wanted alone.
    const std::string id = sweep_id(entry.path().string());
    const auto is_wanted = [&](const std::string& word) { return word == name || word == id; };
    if (words.files().empty() || std::ranges::any_of(words.files(), is_wanted))
      all.push_back(load_sweep(entry.path().string(), given.overrides, words.integer("--seeds", 1)));
  }
  std::ranges::sort(names);
  std::ranges::sort(all, by_id);
  if (words.files().empty()) return all;
  for (const std::string& wanted : words.files()) {
    const std::size_t before = out.size();
    for (const Sweep& sweep : all)
      if (sweep.name == wanted || sweep.head.id == wanted) out.push_back(sweep);
    check<UserError>(out.size() > before, "reproduce: there is no claim '", wanted, "'", did_you_mean(wanted, names),
                     " (", join(names, " "), ")");
  }
  return out;
}

std::string verdicts(const Sweep& sweep, const SweepResult& result, const std::string& directory) {
  std::string source = sweep.head.source;
  std::ranges::replace(source, '\n', ' ');
  std::string out = text(sweep.head.id, sweep.head.id.empty() ? "" : " ", sweep.name, ": ", sweep.head.title, "\n    ",
                         source, source.empty() ? "" : "\n    ",
                         result.measured_now == 0
                             ? text("done before, in ", clock_text(result.seconds_of_points), " minutes of processes")
                             : text(clock_text(result.seconds), " minutes"),
                         ", ", directory, "/report.html\n");
  for (std::size_t i = 0; i < result.claims.size(); ++i) {
    std::string verdict(config::to_string(result.claims[i].verdict));
    verdict.resize(11, ' ');
    const std::string& own = sweep.claims[i].source;
    out += text("  ", verdict, sweep.claims[i].claim, own.empty() ? "" : text(" [", own, "]"), "\n             ",
                result.claims[i].measured, "; expected ", result.claims[i].expected, '\n');
  }
  return out;
}

void append(Json& all, const Json& document, const char* part, const std::string& name) {
  Json entries = all.at(part);
  for (Json entry : document.at(part).elements()) entries.push(entry.set("sweep", name));
  all.set(part, entries);
}

int run(const Words& words) {
  const SweepWords given = sweep_words(words);
  const std::vector<Sweep> sweeps = chosen(words, given);
  if (words.has("--list")) {
    for (const Sweep& sweep : sweeps)
      print(for_output(text(sweep.head.id, '\t', sweep.name, '\t', sweep.head.title, '\n')));
    return 0;
  }
  Terminal terminal = Terminal::standard_error();
  Json document = Json::object({{"runs", Json::array()}, {"claims", Json::array()}});
  bool all_hold = true;
  for (const Sweep& sweep : sweeps) {
    SweepDirectory directory(sweep, text(given.directory.value_or("runs"), '/', sweep.name));
    const SweepResult result = run_in(directory, words, terminal);
    if (result.interrupted) return 128 + watch_signals();
    all_hold = all_hold && result.holds();
    for (const char* part : {"runs", "claims"}) append(document, sweep_document(sweep, result), part, sweep.name);
    if (!words.has("--json")) print_result(printable(verdicts(sweep, result, directory.path())) + "\n");
  }
  if (words.has("--json")) print_result(for_output(document.indented() + "\n"));
  return all_hold ? 0 : 1;
}

}  // namespace

const Command reproduce_command{
    "reproduce",
    "runs the claims of articles and papers, and says which hold",
    "[CLAIM...] [key=value ...]",
    "CLAIM is the name or the number of a file in configs/claims (--list shows them); without one, all. Each is a "
    "sweep\n"
    "that takes at most two minutes on two cores, in runs/CLAIM (run.dir=DIR: DIR/CLAIM); what is done stays.\n"
    "data.source=FILE puts the same claims to any text.\n"
    "Exit codes: 0 all claims hold, 1 one does not, 2 wrong input, 4 the system refused, 130 Ctrl-C, 143 SIGTERM.",
    "  normlab reproduce warmup\n  normlab reproduce K2 K3 data.source=data/tales-sample.txt",
    kOptions,
    run};

}  // namespace normlab::cli
