// A model as a Python file of its own and its weights. The file is pytorch_model.py with the settings put in.
#include "export_files.h"
#include "normlab/config/loader.h"
#include "normlab/interop/export.h"
#include "normlab/nn/weights.h"

namespace normlab {

extern const char* const kPytorchModel;  // the text of pytorch_model.py, which the build puts into the program

namespace {

// A section's keys with their values, but for where weights came from. No other key is free text.
template <class Section>
Json section_json(Section section) {
  Json json = Json::object();
  for (const config::Key& key : config::keys_of(section)) {
    if (key.name() == "from") continue;
    const std::string value = key.value();
    json.set(key.name(), key.choices.empty() ? parse_json(value, key.path) : Json(value));
  }
  return json;
}

}  // namespace

void export_pytorch(const TrainedModel& trained, const std::string& directory) {
  const RunConfig& config = trained.config;
  Json model = section_json(config.model);
  model.set("vocab_size", trained.tokenizer.vocab_size());
  const Json all = Json::object({{"model", std::move(model)},
                                 {"optimizer", section_json(config.optimizer)},
                                 {"schedule", section_json(config.schedule)},
                                 {"train", Json::object({{"batch_size", config.train.batch_size}})}});
  std::string source = kPytorchModel;
  constexpr std::string_view kPlace = "@CONFIG@";
  source.replace(source.find(kPlace), kPlace.size(), all.indented());

  std::vector<StoredTensor> tensors = stored_tensors(trained.model.store().parameters());
  for (StoredTensor& buffer : stored_tensors(trained.model.store().buffers())) tensors.push_back(std::move(buffer));
  write_export(directory, std::move(tensors), trained.tokenizer, {{"model.py", source}});
}

}  // namespace normlab
