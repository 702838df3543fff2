// What exports into a directory share.
#pragma once

#include <string>
#include <vector>

#include "normlab/data/tokenizer/tokenizer_json.h"
#include "normlab/formats/json.h"
#include "normlab/formats/safetensors.h"

namespace normlab {

struct ExportedFile {
  std::string name, content;
};

// model.safetensors, tokenizer.json and the others. UserError, with nothing written, where one of them exists.
void write_export(const std::string& directory, std::vector<StoredTensor> tensors, const Tokenizer& tokenizer,
                  std::vector<ExportedFile> others);

}  // namespace normlab
