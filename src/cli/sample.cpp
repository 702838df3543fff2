// normlab sample: text from a checkpoint.
#include <algorithm>

#include "command.h"
#include "normlab/base/check.h"
#include "normlab/base/parallel.h"
#include "normlab/base/utf8.h"
#include "normlab/formats/foreign_format.h"
#include "normlab/host/files.h"
#include "normlab/host/limits.h"
#include "normlab/run/checkpoint.h"
#include "normlab/run/terminal.h"
#include "normlab/train/sampler.h"

namespace normlab::cli {
namespace {

using Ids = std::vector<std::int32_t>;

constexpr Option kOptions[] = {
    {"--prompt", "TEXT", "what the text begins with (a new line by default)"},
    {"--prompt-file", "FILE", "the same, from a file; - is standard input"},
    {"--tokens", "N", "tokens to write (200)"},
    {"--samples", "N", "that many texts, of the seeds SEED, SEED + 1, ... (1)"},
    {"--stop", "TEXT", "end a text before TEXT; can be given several times"},
    {"--temperature", "X", "above 1 wilder, below 1 tamer, 0 always the likeliest token (0.8)"},
    {"--top-k", "N", "choose among the N likeliest tokens; 0 is off (0)"},
    {"--top-p", "P", "choose among the likeliest tokens that make up P of the probability; 1 is off (1)"},
    {"--seed", "N", "another seed, another text (1337)"},
};

void require_utf8(std::string_view option, std::string_view given, std::string_view advice) {
  const std::size_t at = first_not_utf8(given);
  check<UserError>(at == given.size(), "sample: ", option, ": byte ", at, " is not UTF-8; ", advice);
}

std::string prompt_of(const Words& words) {
  const auto file = words.value("--prompt-file");
  check<UserError>(!file || !words.has("--prompt"), "sample: give --prompt or --prompt-file, not both");
  if (!file) return words.value("--prompt").value_or("");
  std::string prompt = read_file(*file == "-" ? "/dev/stdin" : *file);
  refuse_foreign(prompt, text("--prompt-file ", *file), "UTF-8 text");
  return prompt;
}

// The text that follows the prompt, as it comes.
void print_sample(const Gpt& model, const Tokenizer& tokenizer, std::span<const std::int32_t> prompt,
                  std::int64_t count, const SampleOptions& options, StopStrings stop) {
  StreamDecoder decoder(tokenizer);
  for (const std::int32_t id : prompt) print(for_output(decoder.push(id)));
  Sampler sampler(model, prompt.empty() ? default_prompt(tokenizer) : Ids(prompt.begin(), prompt.end()), options);
  for (std::int64_t i = 0; i < count && !stop.met(); ++i) print(for_output(stop.push(decoder.push(sampler.next()))));
  print(for_output(stop.push(decoder.finish()) + stop.finish() + "\n"));
}

int run(const Words& words) {
  const Checkpoint checkpoint(checkpoint_path(words.only_file("CHECKPOINT")));
  const Gpt model = checkpoint.model();
  SampleOptions options;
  options.temperature = words.real("--temperature", 0, 1e6).value_or(options.temperature);
  options.top_k = words.integer("--top-k", 0).value_or(options.top_k);
  options.top_p = words.real("--top-p", 0, 1).value_or(options.top_p);
  options.seed = static_cast<std::uint64_t>(words.integer("--seed", 0).value_or(1337));
  const std::int64_t count = words.integer("--tokens", 0).value_or(200);
  const std::int64_t samples = words.integer("--samples", 1).value_or(1);
  const std::vector<std::string> stops = words.values("--stop");
  check<UserError>(std::ranges::count(stops, "") == 0, "sample: --stop takes a text that is not empty");
  for (const std::string& stop : stops) require_utf8("--stop", stop, "give a text, as the terminal writes it");

  const bool from_file = words.has("--prompt-file");
  const SourceText prompt = source_text(prompt_of(words), checkpoint.config().data.newlines);
  Ids ids;
  checkpoint.tokenizer().append({prompt.text, from_file ? "--prompt-file" : "--prompt", &prompt}, ids);
  if (!from_file) require_utf8("--prompt", prompt.text, "--prompt-file takes any bytes");
  if (static_cast<std::int64_t>(ids.size()) > model.config().context_length)
    fputs(text("normlab: the prompt has ", ids.size(), " tokens; the model sees the last ",
               model.config().context_length, " of them\n")
              .c_str(),
          stderr);
  set_threads(allowed_threads().count);
  with_team([&] {
    for (std::int64_t i = 0; i < samples; ++i, ++options.seed) {
      if (samples > 1) print(text(i > 0 ? "\n" : "", "--- ", i + 1, " of ", samples, ", seed ", options.seed, '\n'));
      print_sample(model, checkpoint.tokenizer(), ids, count, options, StopStrings(stops));
    }
  });
  return 0;
}

}  // namespace

const Command sample_command{
    "sample",
    "writes text with a trained model",
    "CHECKPOINT [options]",
    "CHECKPOINT is a file, or a run directory, which means its last checkpoint. Nothing else "
    "is needed. Past the model's\n"
    "context the window slides by one token.",
    "  normlab sample runs/tiny --prompt \"Once \" --tokens 300 --temperature 0.7\n"
    "  head -c 100 data/tales-sample.txt | normlab sample runs/tiny --prompt-file - --samples 3 --stop \". \"",
    kOptions,
    run};

}  // namespace normlab::cli
