// A command of the program: its name, what it does, its options, and the words it was called with.
#pragma once

#include <csignal>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace normlab::cli {

struct Option {
  std::string_view name;   // "--prompt"
  std::string_view value;  // what its value is called in the help; empty for a flag
  std::string_view help;
};

struct Command {
  std::string_view name;
  std::string_view summary;  // one line in `normlab --help`
  std::string_view usage;    // after the name: "CONFIG [key=value ...]"
  std::string_view about;    // what it does, for its own help
  std::string_view example;
  std::span<const Option> options;
  int (*run)(const class Words&);  // gives the exit code
};

bool takes_settings(const Command& command);  // key=value, by its usage

// The words after a command's name. Words with '=' are overrides of configuration keys, in their order,
// --model.norm=rms too. Behind "--" no word is an option.
class Words {
 public:
  // UserError for an option that the command does not have, naming the nearest, or one without its value.
  Words(const Command& command, std::span<const std::string> words);

  bool has(std::string_view option) const { return options_.contains(option); }
  std::optional<std::string> value(std::string_view option) const;  // the last one given
  std::vector<std::string> values(std::string_view option) const;   // all of them
  // A value as a number in [low, high]; UserError otherwise.
  std::optional<std::int64_t> integer(std::string_view option, std::int64_t low) const;
  std::optional<double> real(std::string_view option, double low, double high) const;

  std::string program = "normlab";  // as the user called it

  const std::vector<std::string>& files() const { return files_; }
  // The only word that is no option and no override; UserError that says what is missing, or one too many.
  const std::string& only_file(std::string_view what) const;
  const std::vector<std::string>& overrides() const { return overrides_; }

 private:
  const Command& command_;
  std::map<std::string, std::vector<std::string>, std::less<>> options_;
  std::vector<std::string> files_, overrides_;
};

// The commands, each in the file of its name.
extern const Command train_command, eval_command, sample_command, inspect_command, check_command, sweep_command,
    reproduce_command, report_command, diff_command, verify_command, export_command, data_command, bench_command,
    completion_command;
std::span<const Command* const> commands();  // in the order of a user's day

// From here on kRunSignals end the program at once and say that nothing was trained yet; not SIGHUP where it is
// ignored.
void end_on_signals();
// From here on they set the flag to their number, and a second one of SIGINT and SIGTERM ends the program at once.
const volatile std::sig_atomic_t& watch_signals();
std::string help_of(const Command& command);

// Standard output: throws OutputClosed when its reader has gone, SystemError when the system refuses.
struct OutputClosed {};
void print(std::string_view bytes);
// "normlab: warning: ..." on standard error.
void warn(std::string_view what);
// Into the file that require_new_file has passed, or onto standard output where it is /dev/stdout.
void write_output(const std::string& path, std::string_view content);
// The same as print for a command whose exit code is a result too: it stays what it is when the reader has gone.
void print_result(std::string_view bytes);

}  // namespace normlab::cli
