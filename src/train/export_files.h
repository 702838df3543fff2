// What exports into a directory share.
#pragma once

#include <filesystem>
#include <string>

#include "normlab/base/check.h"
#include "normlab/data/tokenizer_json.h"
#include "normlab/formats/json.h"
#include "normlab/formats/safetensors.h"

namespace normlab {

inline void make_export_directory(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  check<SystemError>(!error, directory, ": the directory cannot be made: ", error.message(), "; name another one");
}

}  // namespace normlab
