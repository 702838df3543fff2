// Reading a configuration or a checkpoint.
#include "subject.h"

#include <filesystem>

#include "normlab/base/parallel.h"
#include "normlab/config/loader.h"
#include "normlab/host/limits.h"
#include "normlab/run/memory_estimate.h"
#include "normlab/run/run.h"
#include "normlab/run/starting_model.h"

namespace normlab::cli {
namespace {

RunConfig changed_config(const Checkpoint& checkpoint, const Words& words) {
  RunConfig config = checkpoint.config();
  config::apply_overrides(config, words.overrides());
  config.resolve();
  for (const config::Difference& difference : config::differences(checkpoint.config(), config))
    check<ConfigError>(!difference.path.starts_with("model.") && difference.path != "data.tokenizer", difference.path,
                       " cannot change from ", difference.left, " to ", difference.right,
                       "; a trained model keeps its settings");
  return config;
}

}  // namespace

std::string Subject::description() const {
  if (!checkpoint) return text(path, ", as initialised");
  return text(checkpoint->path(), ", after ", updates(), " steps");
}

ModelAt Subject::at() const {
  ModelAt at{config.model, model.vocab_size(), static_cast<std::uint64_t>(config.seed), {}};
  if (!checkpoint && !config.model.from) return at;
  at.weights = stored_tensors(model.store().parameters());
  for (StoredTensor& buffer : stored_tensors(model.store().buffers())) at.weights.push_back(std::move(buffer));
  return at;
}

Subject load_subject(const Words& words) {
  const std::string& path = words.only_file("CONFIG or CHECKPOINT");
  std::optional<Checkpoint> checkpoint;
  if (std::filesystem::is_directory(path) || path.ends_with(".safetensors")) checkpoint.emplace(checkpoint_path(path));
  RunConfig config = checkpoint ? changed_config(*checkpoint, words) : load_run_config(path, words.overrides()).config;
  std::optional<StartingPoint> start = checkpoint ? std::nullopt : read_starting_point(config);
  std::optional<Tokenizer> tokenizer = start ? start->tokenizer : std::nullopt;
  if (checkpoint) tokenizer = checkpoint->tokenizer();
  set_threads(static_cast<int>(config.train.threads.value_or(allowed_threads().count)));
  flush_denormals(config.train.flush_denormals);
  const std::uint64_t seed = static_cast<std::uint64_t>(config.seed);
  require_memory(config, {}, 1);
  Dataset data = Dataset::load(config.data, config.model.context_length, seed, tokenizer);
  require_memory(config, data.facts(), data.tokenizer().vocab_size());
  if (checkpoint && data.facts().hash != checkpoint->data_hash()) warn("the data is not what the model was trained on");
  Gpt model = checkpoint ? checkpoint->model() : starting_model(config, data, std::move(start));
  return {path, std::move(config), std::move(data), std::move(checkpoint), std::move(model)};
}

}  // namespace normlab::cli
