// Writing an export into a directory.
#include "export_files.h"

#include <utility>

#include "normlab/base/files.h"

namespace normlab {

void write_export(const std::string& directory, std::vector<StoredTensor> tensors, const Tokenizer& tokenizer,
                  std::vector<ExportedFile> others) {
  others.push_back({"tokenizer.json", tokenizer_json(tokenizer)});
  const auto path = [&](const std::string& name) { return text(directory, '/', name); };
  const std::string weights = path("model.safetensors");
  require_new_file("export", weights);
  for (const ExportedFile& each : others) require_new_file("export", path(each.name));
  make_directories(directory, "name another one");
  write_safetensors(weights, {{"format", "pt"}}, std::move(tensors));
  for (const ExportedFile& each : others) write_file(path(each.name), each.content);
}

}  // namespace normlab
