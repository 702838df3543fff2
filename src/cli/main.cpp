// The program: finds the command, runs it, and turns errors into one message and an exit code.
#include <fcntl.h>

#include <csignal>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <new>

#include "command.h"
#include "normlab/base/check.h"
#include "normlab/base/did_you_mean.h"
#include "normlab/base/utf8.h"
#include "normlab/host/build_facts.h"
#include "normlab/host/process.h"

namespace normlab::cli {
namespace {

const Command* const kCommands[] = {&train_command, &eval_command,      &sample_command,    &inspect_command,
                                    &check_command, &sweep_command,     &reproduce_command, &report_command,
                                    &diff_command,  &verify_command,    &export_command,    &data_command,
                                    &bench_command, &completion_command};

std::string general_help() {
  std::string out =
      "normlab trains small language models on the CPU and shows why training works or breaks.\n\n"
      "usage: normlab COMMAND ...        normlab COMMAND --help tells more, with an example\n\ncommands:\n";
  for (const Command* command : kCommands)
    out += text("  ", command->name, std::string(11 - command->name.size(), ' '), command->summary, '\n');
  return out + "\n  --version  version, compiler, instruction set, OpenMP\n";
}

std::string version_text() {
  const BuildFacts& build = build_facts();
  return text("normlab ", build.version, build.commit.empty() ? "" : " ", build.commit, "\ncompiler: ", build.compiler,
              "\nflags: ", build.flags, "\nprocessor: ", instruction_set(),
              "\nOpenMP: ", build.openmp.empty() ? "none" : build.openmp, '\n');
}

// --help anywhere but as the value of an option or after --.
bool asks_for_help(const Command& command, const std::vector<std::string>& words) {
  for (std::size_t i = 0; i < words.size() && words[i] != "--"; ++i) {
    if (words[i] == "--help" || words[i] == "-h") return true;
    for (const Option& option : command.options)
      if (option.name == words[i] && !option.value.empty()) ++i;
    if (i >= words.size()) break;
  }
  return false;
}

int run(const std::string& program, std::vector<std::string> words) {
  if (words.empty()) {
    print(general_help());
    return 2;
  }
  const std::string name = words[0];
  const bool help = name == "--help" || name == "-h" || name == "help";
  if (help && words.size() > 1 && !words[1].starts_with('-')) return run(program, {words[1], "--help"});
  if (help) return print(general_help()), 0;
  if (name == "--version") return print(version_text()), 0;
  words.erase(words.begin());
  std::vector<std::string> names{"--help", "--version"};
  for (const Command* command : kCommands) {
    names.emplace_back(command->name);
    if (command->name != name) continue;
    if (asks_for_help(*command, words)) return print(help_of(*command)), 0;
    Words given(*command, words);
    given.program = program;
    return command->run(given);
  }
  throw UserError(
      text("there is no command '", name, "'", did_you_mean(name, names), " (normlab --help lists the commands)"));
}

// A message may quote a file: no more is shown than fits a few screens.
std::string for_terminal(std::string_view message) {
  constexpr std::size_t kMost = 4000;
  return printable(message.substr(0, kMost)) + (message.size() > kMost ? "..." : "");
}

int fail(int code, std::string_view message) {
  const std::string line = text("normlab: ", for_terminal(message), '\n');
  [[maybe_unused]] const auto written = std::fwrite(line.data(), 1, line.size(), stderr);
  return code;
}

// Without this a file of a run could be given the number of a missing standard output or error, and their text.
void fill_missing_descriptors() {
  for (int file = 0; file <= 2; ++file)
    if (fcntl(file, F_GETFD) == -1 && open("/dev/null", file == 0 ? O_RDONLY : O_WRONLY) != file) std::_Exit(4);
}

int guarded(const std::string& program, std::vector<std::string> words) {
  try {
    find_own_path(program);
    return run(program, std::move(words));
  } catch (const OutputClosed&) {
    return 0;
  } catch (const UserError& error) {
    return fail(2, error.what());
  } catch (const SystemError& error) {
    return fail(4, error.what());
  } catch (const std::filesystem::filesystem_error& error) {
    const std::string what = text(error.path1().string(), ": ", error.code().message());
    if (error.code() == std::errc::filename_too_long) return fail(2, what + "; give a shorter name");
    if (error.code() == std::errc::too_many_symbolic_link_levels) return fail(2, what + "; name another path");
    return fail(4, what + "; change the permissions or name another path");
  } catch (const std::bad_alloc&) {
    return fail(4, "out of memory; lower train.batch_size, model.context_length or the model's size");
  } catch (const std::exception& error) {
    return fail(1, text("a defect of normlab, please report it: ", error.what()));
  }
}

}  // namespace

std::span<const Command* const> commands() { return kCommands; }

}  // namespace normlab::cli

int main(int argc, char** argv) {
  normlab::cli::fill_missing_descriptors();
  // A reader that has gone and a limit on file sizes are errors of a write, not the end of the program.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  return argc > 0 ? normlab::cli::guarded(argv[0], {argv + 1, argv + argc}) : 2;
}
