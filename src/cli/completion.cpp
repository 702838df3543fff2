// normlab completion: commands, options, keys and their words for a shell to complete, from their declarations.
#include <algorithm>

#include "command.h"
#include "normlab/base/check.h"
#include "normlab/config/loader.h"
#include "normlab/train/run_config.h"

namespace normlab::cli {
namespace {

// CASES set `choices` by `command`, `key` (what precedes '=', or before the word) and `word`.
constexpr std::string_view kBash = R"(# source <(normlab completion bash)
_normlab() {
  local IFS=$' \t\n' line=${COMP_LINE:0:COMP_POINT}
  local word=${line##*[[:space:]]}
  local -a before settings choices=()
  read -ra before <<< "${line%"$word"}"
  local command=${before[1]} key=${before[${#before[@]} - 1]}
  [[ $word == *=* ]] && key=${word%%=*}
CASES  COMPREPLY=($(compgen -W "${choices[*]}" -- "${word#*=}"))
  [[ $COMP_WORDBREAKS == *=* || $word != *=* ]] || COMPREPLY=("${COMPREPLY[@]/#/$key=}")
  [[ $COMPREPLY == *= ]] && compopt -o nospace 2> /dev/null
  [[ $COMPREPLY && ${choices[0]} == --* ]] || return 0  # where nothing fits, bash completes files
  IFS=$'\n'
  COMPREPLY+=($(compgen -f -- "$word"))
}
complete -o default -F _normlab normlab
)";

constexpr std::string_view kZsh = R"(# after compinit: source <(normlab completion zsh)
_normlab() {
  local word=$PREFIX command= key=$words[CURRENT-1]
  local -a settings choices
  (( CURRENT > 2 )) && command=$words[2]
  [[ $word == *=* ]] && key=${word%%=*} && compset -P 1 '*='
CASES  compadd -S '' -- ${(M)choices:#*=}
  compadd -- ${choices:#*=}
  [[ -z $choices || $choices[1] == --* ]] && _files
}
compdef _normlab normlab
)";

// hf|pytorch|csv as words; nothing where there is no choice.
std::string choices_of(std::string_view value) {
  std::string out(value);
  std::ranges::replace(out, '|', ' ');
  return out == value || value.find(' ') != std::string_view::npos ? "" : out;
}

std::string fish_quoted(std::string_view s) {
  std::string out = "'";
  for (const char c : s) out += c == '\'' ? "'\\''" : std::string(1, c);
  return out + "'";
}

std::string script(std::string_view shell) {
  std::string settings, settings_with_words, commands_with_settings, names = "help ", by_key, by_command;
  std::string fish = "# normlab completion fish | source\n";
  const auto add_fish = [&](std::string_view condition, const auto&... rest) {
    fish += text("complete -c normlab -n ", fish_quoted(condition), rest..., '\n');
  };
  const auto add_case = [&](std::string_view command, std::string_view key, std::string_view choices) {
    by_key += text("    ", command, ' ', key, "') choices=(", choices, ") ;;\n");
  };
  RunConfig config;
  for (const config::Key& key : config::keys_of(config)) {
    if (key.is_section()) continue;
    settings += text(' ', key.path, '=');
    std::vector<std::string> choices(key.choices.begin(), key.choices.end());
    if (key.type == "true or false") choices = {"true", "false"};
    if (!choices.empty()) add_case("*'", key.path, join(choices, " "));
    for (const std::string& choice : choices) settings_with_words += text(' ', key.path, '=', choice);
  }
  for (const Command* command : commands()) {
    const std::string seen = text("__fish_seen_subcommand_from ", command->name), words = choices_of(command->usage);
    names += text(command->name, ' ');
    add_fish("__fish_use_subcommand", " -f -a ", command->name, " -d ", fish_quoted(command->summary));
    if (!words.empty()) add_fish(seen, " -f -a ", fish_quoted(words));
    by_command += text("      ", command->name, ") choices=(", words, words.empty() ? "" : " ");
    for (const Option& option : command->options) {
      const std::string few = choices_of(option.value);
      by_command += text(option.name, ' ');
      if (!option.value.empty()) add_case(text('\'', command->name), option.name, few);
      add_fish(seen, " -l ", option.name.substr(2), option.value.empty() ? "" : " -r", " -d ", fish_quoted(option.help),
               few.empty() ? "" : text(" -f -a ", fish_quoted(few)));
    }
    by_command += takes_settings(*command) ? "--help \"${settings[@]}\") ;;\n" : "--help) ;;\n";
    if (takes_settings(*command)) commands_with_settings += text(' ', command->name);
  }
  add_fish("__fish_use_subcommand", " -f -a help -l help -l version");
  add_fish("__fish_seen_subcommand_from help", " -f -a ", fish_quoted(names));
  const std::string seen = text("__fish_seen_subcommand_from", commands_with_settings, "; and ");
  add_fish(seen + "not string match -q '*=*' -- (commandline -ct)", " -a ", fish_quoted(settings));
  add_fish(seen + "string match -q '*=*' -- (commandline -ct)", " -a ", fish_quoted(settings_with_words));
  if (shell == "fish") return fish;
  std::string out(shell == "bash" ? kBash : kZsh);
  return out.replace(
      out.find("CASES"), 5,
      text("  settings=(", settings, ")\n  case \"$command $key\" in\n", by_key,
           "    *) [[ $word == *=* ]] || case $command in\n      '') choices=(", names,
           "--help --version) ;;\n      help) choices=(", names, ") ;;\n", by_command, "    esac ;;\n  esac\n"));
}

int run(const Words& words) {
  const std::string& shell = words.only_file("SHELL");
  check<UserError>(shell == "bash" || shell == "zsh" || shell == "fish", "completion: ", completion_command.usage,
                   " is expected, got '", shell, "'");
  print(script(shell));
  return 0;
}

}  // namespace

const Command completion_command{"completion",
                                 "prints a script that completes its words in a shell",
                                 "bash|zsh|fish",
                                 "Commands, options, keys and their words, and files are completed after normlab.",
                                 "  normlab completion fish | source\n"
                                 "  source <(normlab completion bash)",
                                 {},
                                 run};

}  // namespace normlab::cli
