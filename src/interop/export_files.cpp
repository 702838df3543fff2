// Writing an export into a directory.
#include "export_files.h"

#include <filesystem>
#include <utility>

#include "normlab/host/files.h"

namespace normlab {

void write_export(const std::string& directory, std::vector<StoredTensor> tensors, const Tokenizer& tokenizer,
                  std::vector<ExportedFile> others) {
  others.push_back({"tokenizer.json", tokenizer_json(tokenizer)});
  require_new_file("export", text(directory, "/model.safetensors"));
  for (const ExportedFile& each : others) require_new_file("export", text(directory, '/', each.name));
  const std::string made = file_exists(directory) ? directory : std::filesystem::path(directory).parent_path().string();
  if (!made.empty()) make_directories(made, "name another one");
  write_directory(directory, [&](const std::string& folder) {
    write_safetensors(text(folder, "/model.safetensors"), {{"format", "pt"}}, std::move(tensors));
    for (const ExportedFile& each : others) write_file(text(folder, '/', each.name), each.content);
  });
}

}  // namespace normlab
