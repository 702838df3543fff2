// normlab sample: text from a checkpoint.
#include "command.h"
#include "normlab/base/check.h"
#include "normlab/base/machine.h"
#include "normlab/base/parallel.h"
#include "normlab/train/checkpoint.h"
#include "normlab/train/sampler.h"

namespace normlab::cli {
namespace {

constexpr Option kOptions[] = {
    {"--prompt", "TEXT", "what the text begins with (a new line by default)"},
    {"--tokens", "N", "tokens to write (200)"},
    {"--temperature", "X", "above 1 wilder, below 1 tamer, 0 always the likeliest token (0.8)"},
    {"--top-k", "N", "choose among the N likeliest tokens; 0 is off (0)"},
    {"--top-p", "P", "choose among the likeliest tokens that make up P of the probability; 1 is off (1)"},
    {"--seed", "N", "another seed, another text (1337)"},
};

int run(const Words& words) {
  check<UserError>(words.overrides().empty(), "sample: '", words.overrides().empty() ? "" : words.overrides()[0],
                   "' is no option; a checkpoint has its own settings, and key=value cannot change them");
  const Checkpoint checkpoint(checkpoint_path(words.only_file("CHECKPOINT")));
  const Gpt model = checkpoint.model();
  SampleOptions options;
  options.temperature = words.real("--temperature", 0, 1e6).value_or(options.temperature);
  options.top_k = words.integer("--top-k", 0).value_or(options.top_k);
  options.top_p = words.real("--top-p", 0, 1).value_or(options.top_p);
  options.seed = static_cast<std::uint64_t>(words.integer("--seed", 0).value_or(1337));
  const std::int64_t count = words.integer("--tokens", 0).value_or(200);

  const std::string prompt = words.value("--prompt").value_or("");
  std::vector<std::int32_t> ids = checkpoint.tokenizer().encode(prompt, "--prompt");
  if (static_cast<std::int64_t>(ids.size()) > model.config().context_length)
    fputs(text("normlab: the prompt has ", ids.size(), " tokens; the model sees the last ",
               model.config().context_length, " of them\n")
              .c_str(),
          stderr);
  set_threads(allowed_threads().count);
  StreamDecoder decoder(checkpoint.tokenizer());
  for (const std::int32_t id : ids) print(decoder.push(id));
  if (ids.empty()) ids = default_prompt(checkpoint.tokenizer());
  Sampler sampler(model, ids, options);
  with_team([&] {
    for (std::int64_t i = 0; i < count; ++i) print(decoder.push(sampler.next()));
  });
  print(decoder.finish() + "\n");
  return 0;
}

}  // namespace

const Command sample_command{"sample",
                             "writes text with a trained model",
                             "CHECKPOINT [options]",
                             "CHECKPOINT is a file, or a run directory, which means its last checkpoint. Nothing else "
                             "is needed. Past the model's\n"
                             "context the window slides by one token.",
                             "  normlab sample runs/tiny --prompt \"Once \" --tokens 300 --temperature 0.7",
                             kOptions,
                             run};

}  // namespace normlab::cli
