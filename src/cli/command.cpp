// Reading the words of a command, and its help.
#include "command.h"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "normlab/base/check.h"
#include "normlab/base/did_you_mean.h"
#include "normlab/base/utf8.h"
#include "normlab/config/loader.h"
#include "normlab/host/files.h"
#include "normlab/train/observer.h"
#include "normlab/train/run_config.h"

namespace normlab::cli {

bool takes_settings(const Command& command) { return command.usage.find('=') != std::string_view::npos; }

namespace {

// --train.steps=5; no option has a '.'.
bool is_setting(const Command& command, const std::string& word) {
  const std::size_t equals = word.find('=');
  return takes_settings(command) && word.starts_with("--") && equals != std::string::npos && word.find('.') < equals;
}

// `value`: what follows it.
[[noreturn]] void fail_unknown_option(const Command& command, const std::string& name, const std::string& value) {
  std::vector<std::string> names{"--help"};
  for (const Option& option : command.options) names.emplace_back(option.name);
  RunConfig config;
  std::string hint;
  if (takes_settings(command))
    hint = config::setting_hint(config::keys_of(config), std::string_view(name).substr(2),
                                value.empty() || value.starts_with("-") ? "VALUE" : value);
  if (hint.empty()) hint = did_you_mean(name, names);
  throw UserError(
      text(command.name, ": there is no option ", name, hint, " (normlab ", command.name, " --help lists them)"));
}

}  // namespace

Words::Words(const Command& command, std::span<const std::string> words) : command_(command) {
  bool options_end = false;
  for (std::size_t i = 0; i < words.size(); ++i) {
    std::string word = words[i];
    if (!options_end && word == "--") {
      options_end = true;
      continue;
    }
    if (!options_end && is_setting(command, word)) word.erase(0, 2);
    const std::size_t equals = word.find('=');
    if (options_end || !word.starts_with("--")) {
      check<UserError>(options_end || !word.starts_with("-") || word.size() == 1, command.name,
                       ": options begin with two dashes, got ", word);
      // A path may hold '=' too, but only after a '/'.
      const bool is_override = equals != std::string::npos && word.substr(0, equals).find('/') == std::string::npos;
      check<UserError>(!is_override || takes_settings(command), command.name, ": '", word,
                       "' is a setting, and this command takes none; write ./", word, " if it is a file");
      (is_override ? overrides_ : files_).push_back(word);
      continue;
    }
    const std::string next = i + 1 < words.size() ? words[i + 1] : "";
    const auto known = std::ranges::find(command.options, word.substr(0, equals), &Option::name);
    if (known == command.options.end())
      fail_unknown_option(command, word.substr(0, equals),
                          equals == std::string::npos ? next : word.substr(equals + 1));
    const Option& option = *known;
    std::string value;
    if (option.value.empty()) {
      check<UserError>(equals == std::string::npos, command.name, ": ", option.name, " takes no value, got ", word);
    } else if (equals != std::string::npos) {
      value = word.substr(equals + 1);
    } else {
      check<UserError>(i + 1 < words.size(), command.name, ": ", option.name, " needs a value: ", option.name, ' ',
                       option.value);
      value = words[++i];
    }
    options_[std::string(option.name)].push_back(value);
  }
}

std::optional<std::string> Words::value(std::string_view option) const {
  const auto found = options_.find(option);
  return found == options_.end() ? std::nullopt : std::optional(found->second.back());
}

std::vector<std::string> Words::values(std::string_view option) const {
  const auto found = options_.find(option);
  return found == options_.end() ? std::vector<std::string>() : found->second;
}

std::optional<std::int64_t> Words::integer(std::string_view option, std::int64_t low) const {
  const auto given = value(option);
  if (!given) return std::nullopt;
  const auto parsed = parse_int(*given);
  check<UserError>(parsed && *parsed >= low, command_.name, ": ", option, " takes a whole number of at least ", low,
                   ", got '", *given, "'");
  return parsed;
}

std::optional<double> Words::real(std::string_view option, double low, double high) const {
  const auto given = value(option);
  if (!given) return std::nullopt;
  const auto parsed = parse_double(*given);
  check<UserError>(parsed && *parsed >= low && *parsed <= high, command_.name, ": ", option, " takes a number from ",
                   low, " to ", high, ", got '", *given, "'");
  return parsed;
}

const std::string& Words::only_file(std::string_view what) const {
  check<UserError>(!files_.empty(), command_.name, ": ", what, " is missing; usage: normlab ", command_.name, ' ',
                   command_.usage);
  check<UserError>(files_.size() == 1, command_.name, ": one ", what, " is expected, and there is '",
                   files_.size() > 1 ? files_[1] : "", "' too; usage: normlab ", command_.name, ' ', command_.usage);
  return files_[0];
}

namespace {

volatile std::sig_atomic_t interrupted = 0;

bool is_order(int number) { return number == SIGINT || number == SIGTERM; }

[[noreturn]] void end_at_once(int number, std::string_view message) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, message.data(), message.size());
  _exit(128 + number);
}

// The first signal lets what is at hand finish; a second order ends the program at once. Warnings may come again and
// again (SIGXCPU each second), and before an order.
void on_signal(int number) {
  if (is_order(number) && is_order(interrupted))
    end_at_once(number, "\nnormlab: ended at once by a second signal; what was not saved by then is lost\n");
  if (is_order(number) || interrupted == 0) interrupted = number;
}

// What reads and prepares can take long, and there is nothing to save.
void on_early_signal(int number) {
  end_at_once(number, "\nnormlab: ended by a signal before the first step; nothing was trained yet\n");
}

void handle_signals(void (*handler)(int)) {
  for (const RunSignal& each : kRunSignals) {
    struct sigaction before {};
    sigaction(each.number, nullptr, &before);
    if (each.number != SIGHUP || before.sa_handler != SIG_IGN) std::signal(each.number, handler);  // as nohup set it
  }
}

}  // namespace

void end_on_signals() { handle_signals(on_early_signal); }

const volatile std::sig_atomic_t& watch_signals() {
  handle_signals(on_signal);
  return interrupted;
}

std::string help_of(const Command& command) {
  std::string out = text("usage: normlab ", command.name, ' ', command.usage, "\n\n", command.about, "\n");
  std::size_t width = std::string_view("--help").size();
  const auto head = [](const Option& option) {
    return text(option.name, option.value.empty() ? "" : " ", option.value);
  };
  for (const Option& option : command.options) width = std::max(width, head(option).size());
  out += "\noptions:\n";
  for (const Option& option : command.options)
    out += text("  ", head(option), std::string(width - head(option).size() + 2, ' '), option.help, '\n');
  out += text("  --help", std::string(width - 6 + 2, ' '), "this text\n");
  return out + text("\nexample:\n", command.example, '\n');
}

void print(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(STDOUT_FILENO, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && errno == EPIPE) throw OutputClosed{};
    check<SystemError>(count >= 0, "standard output cannot be written: ", std::strerror(errno));
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

void write_output(const std::string& path, std::string_view content) {
  if (path == kStandardOutput)
    print(content);
  else
    write_file(path, content);
}

void warn(std::string_view what) { std::fputs(printable(text("normlab: warning: ", what, '\n')).c_str(), stderr); }

void print_result(std::string_view bytes) {
  try {
    print(bytes);
  } catch (const OutputClosed&) {
  }
}

}  // namespace normlab::cli
