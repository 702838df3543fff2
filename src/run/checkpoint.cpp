// Checkpoints to and from safetensors.
#include "normlab/run/checkpoint.h"

#include <algorithm>
#include <filesystem>

#include "normlab/base/hash.h"
#include "normlab/config/loader.h"
#include "normlab/formats/crc32c.h"
#include "normlab/formats/json.h"
#include "normlab/host/build_facts.h"
#include "normlab/host/files.h"
#include "normlab/nn/weights.h"

namespace normlab {
namespace {

bool is_in(std::string_view path, std::initializer_list<std::string_view> sections) {
  return std::ranges::any_of(
      sections, [&](std::string_view section) { return path == section || path.starts_with(text(section, '.')); });
}

// What may differ between a run and the same run resumed, or on another machine, is not part of its checkpoints.
bool is_part_of_checkpoint(std::string_view path) {
  return !is_in(path, {"run", "log", "checkpoint", "train.threads", "train.memory_check", "train.time_limit"});
}

std::string config_text(RunConfig config, bool (*is_wanted)(std::string_view path)) {
  config::Keys keys = config::keys_of(config);
  std::erase_if(keys, [&](const config::Key& key) { return !is_wanted(key.path); });
  return config::dump_keys(keys, nullptr);
}

// What `read` makes of a part of the metadata; its errors name file and part.
template <class Read>
auto part_of(const Safetensors& file, std::string_view part, const Read& read) {
  const std::string place = text(file.path(), " (", part, ")");
  try {
    return read(place);
  } catch (const UserError& error) {
    if (std::string_view(error.what()).starts_with(file.path())) throw;
    throw DataError(text(place, ": ", error.what(), "; the file is no checkpoint of this program"));
  }
}

RunConfig config_of(const Safetensors& file) {
  return part_of(file, "config", [&](const std::string& place) {
    RunConfig config;
    config::load(config, config::parse_yaml(file.metadata_at("config"), place), place);
    config.resolve();
    return config;
  });
}

Tokenizer tokenizer_of(const Safetensors& file) {
  return part_of(file, "tokenizer", [&](const std::string&) { return Tokenizer::load(file.metadata_at("tokenizer")); });
}

TrainingState read_state(const Safetensors& file) {
  const Json json = parse_json(file.metadata_at("state"), text(file.path(), " (state)"));
  const auto optional_real = [&](const char* name) {
    const Json& value = json.at(name);
    return value.is_null() ? std::nullopt : std::optional<double>(value.real());
  };
  const auto step = parse_int(file.metadata_at("step"));
  check<DataError>(step.has_value(), file.path(), ": the metadata's step '", file.metadata_at("step"),
                   "' is no number; the file is no checkpoint");
  const std::int64_t diverging_steps = json.at("diverging_steps").integer();
  check<DataError>(*step >= 0 && diverging_steps >= 0, file.path(), ": the metadata counts ", *step,
                   " steps, of which ", diverging_steps, " diverge; the file is no checkpoint");
  const auto average = [&](const char* name) {  // 0 in checkpoints from before they were kept
    const Json* value = json.find(name);
    return value ? value->real() : 0;
  };
  return {*step,
          optional_real("best_loss"),
          optional_real("last_loss"),
          diverging_steps,
          json.at("diverged").boolean(),
          {average("gradient_signal"), average("gradient_noise"), average("gradient_clipped")},
          json.find("best_step") != nullptr ? json.at("best_step").integer() : 0,
          json.find("evaluation_due") != nullptr && json.at("evaluation_due").boolean(),
          json.find("run_id") ? json.at("run_id").string() : ""};
}

TrainingState state_of(const Safetensors& file) {
  return part_of(file, "state", [&](const std::string&) { return read_state(file); });
}

// A run saves no value that is not finite, nor a mean of squares below 0.
void refuse_impossible_values(const Gpt& model, const std::string& path) {
  for (const std::vector<Named>* tensors : {&model.store().parameters(), &model.store().buffers()})
    if (const Named* bad = find_nonfinite(*tensors))
      throw DataError(
          text(path, ": tensor '", bad->name, "' holds a value that is not finite; take another checkpoint"));
  for (const Named& buffer : model.store().buffers())
    if (buffer.name.ends_with(".running_var") || buffer.name.ends_with(".running_square"))
      check<DataError>(std::ranges::all_of(buffer.tensor.values(), [](Real value) { return value >= 0; }), path,
                       ": tensor '", buffer.name, "' holds a mean of squares below 0; take another checkpoint");
}

// A model is not built before the file is known to hold its matrices: a small file may not ask for much memory.
void refuse_larger_model(const ModelConfig& model, std::int64_t vocab_size, const Safetensors& file) {
  const auto d = static_cast<double>(model.d_model), d_ff = static_cast<double>(*model.d_ff);
  const double rows = static_cast<double>(vocab_size) +
                      (model.position == Position::learned ? static_cast<double>(model.context_length) : 0);
  const double needed = rows * d + static_cast<double>(model.n_layers) * (4 * d * d + 2 * d * d_ff);
  double held = 0;
  for (const StoredTensor& tensor : file.tensors())
    held += static_cast<double>(tensor.bytes.size()) / static_cast<double>(byte_size(tensor.dtype));
  check<DataError>(needed <= held, file.path(), ": its configuration is that of a model of ", needed,
                   " numbers or more, and the file holds ", held, "; the file belongs to another configuration");
}

}  // namespace

bool may_change_on_resume(std::string_view path) {
  return !is_part_of_checkpoint(path) || is_in(path, {"train.steps", "eval", "data.source", "data.validation"});
}

std::string run_id(const RunConfig& config, const std::string& data_hash, const Gpt& start) {
  const BuildFacts& build = build_facts();
  std::string facts = text(build.version, '\n', build.commit, '\n', build.compiler, '\n', build.flags, '\n',
                           instruction_set(), '\n', data_hash, '\n');
  facts += config_text(config, [](std::string_view path) { return !may_change_on_resume(path); });
  std::uint32_t weights = 0;
  if (config.model.from)  // those of other runs follow from build, configuration and seed
    for (const auto* group : {&start.store().parameters(), &start.store().buffers()})
      for (const StoredTensor& tensor : stored_tensors(*group)) weights = crc32c(tensor.bytes, weights);
  return hexadecimal(fnv1a(text(facts, std::int64_t{weights})));
}

void save_checkpoint(const std::string& path, const RunConfig& config, const Tokenizer& tokenizer,
                     const std::string& data_hash, const TrainingState& state, const Gpt& model,
                     const Optimizer& optimizer) {
  Json state_json = Json::object({{"best_loss", state.best_loss},
                                  {"best_step", state.best_step},
                                  {"last_loss", state.last_loss},
                                  {"diverging_steps", state.diverging_steps},
                                  {"diverged", state.diverged},
                                  {"gradient_signal", state.gradient.signal},
                                  {"gradient_noise", state.gradient.noise},
                                  {"gradient_clipped", state.gradient.clipped}});
  if (!state.run_id.empty()) state_json.set("run_id", state.run_id);
  if (state.evaluation_due)
    state_json.set("evaluation_due", true);  // there alone, as the other bytes are an unbroken run's
  std::vector<StoredTensor> tensors;
  for (const auto* group : {&model.store().parameters(), &model.store().buffers(), &optimizer.state()})
    for (StoredTensor& tensor : stored_tensors(*group)) tensors.push_back(std::move(tensor));
  write_checksummed(path,
                    {{"config", config_text(config, is_part_of_checkpoint)},
                     {"tokenizer", tokenizer.save()},
                     {"step", number(state.step)},
                     {"state", state_json.line()},
                     {"data_hash", data_hash}},
                    std::move(tensors));
}

Checkpoint::Checkpoint(const std::string& path) : Checkpoint(Safetensors::read(path, Checksum::required)) {}

Checkpoint::Checkpoint(Safetensors file)
    : file_(std::move(file)), config_(config_of(file_)), tokenizer_(tokenizer_of(file_)), state_(state_of(file_)) {
  const auto named = checkpoint_step(std::filesystem::path(path()).filename().string());
  check<DataError>(named.value_or(state_.step) == state_.step, path(), ": the name is that of step ", named.value_or(0),
                   ", and the checkpoint of step ", state_.step, "; name it ", checkpoint_name(state_.step),
                   ", or put the one of its name back");
}

Gpt Checkpoint::model() const {
  refuse_larger_model(config_.model, tokenizer_.vocab_size(), file_);
  Gpt model(config_.model, tokenizer_.vocab_size(), static_cast<std::uint64_t>(config_.seed));
  load_tensors(model.store().parameters(), file_);
  load_tensors(model.store().buffers(), file_);
  refuse_impossible_values(model, file_.path());
  return model;
}

std::string checkpoint_path(const std::string& given) {
  if (!std::filesystem::is_directory(given)) return given;
  const std::string directory = text(given, "/checkpoints");
  const std::vector<std::int64_t> steps = checkpoint_steps(directory);
  const std::string best = text(directory, "/best.safetensors");
  check<UserError>(!steps.empty() || !std::filesystem::exists(best), given,
                   ": there is no checkpoint of the last steps in ", directory, "; name the one that is there, ", best);
  check<UserError>(!steps.empty(), given, ": there is no checkpoint in ", directory,
                   "; name a checkpoint file, or a run directory that has one");
  return text(directory, '/', checkpoint_name(steps.back()));
}

std::string checkpoint_name(std::int64_t step) {
  const std::string digits = number(step);
  return text("step-", std::string(digits.size() < 6 ? 6 - digits.size() : 0, '0'), digits, ".safetensors");
}

std::optional<std::int64_t> checkpoint_step(std::string_view name) {
  constexpr std::string_view kHead = "step-", kTail = ".safetensors";
  if (!name.starts_with(kHead) || !name.ends_with(kTail) || name.size() == kHead.size() + kTail.size())
    return std::nullopt;
  std::string_view digits = name.substr(kHead.size(), name.size() - kHead.size() - kTail.size());
  digits.remove_prefix(std::min(digits.find_first_not_of('0'), digits.size() - 1));
  const auto step = parse_int(digits);
  return step && checkpoint_name(*step) == name ? step : std::nullopt;
}

std::vector<std::int64_t> checkpoint_steps(const std::string& directory) {
  std::vector<std::int64_t> steps;
  if (!file_exists(directory)) return steps;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (const auto step = checkpoint_step(entry.path().filename().string())) steps.push_back(*step);
  std::ranges::sort(steps);
  return steps;
}

}  // namespace normlab
