// The fuzz targets. Each takes any bytes, as a file could hold them, lets a reader read them, and throws Broken where
// it breaks a promise. `make fuzz` looks for such bytes; `make test` goes through those of tests/fuzz/corpus/NAME.
#pragma once

#include <unistd.h>

#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "normlab/base/check.h"

namespace normlab::fuzz {

void checkpoint(std::string_view bytes);      // a checkpoint, its checksum made right
void json(std::string_view bytes);            // a JSON document
void metrics(std::string_view bytes);         // metrics.jsonl of a run that is resumed
void run_config(std::string_view bytes);      // a configuration; its lines as words on the command line
void safetensors(std::string_view bytes);     // a file of tensors
void text_data(std::string_view bytes);       // five characters that choose settings, and a text to train on
void tokenizer_json(std::string_view bytes);  // tokenizer.json; a tokenizer as checkpoints hold it
void yaml(std::string_view bytes);            // a YAML document; a value on the command line

struct Broken : std::logic_error {
  using std::logic_error::logic_error;
};
inline void promise(bool kept, const char* what) {
  if (!kept) throw Broken(what);
}

// What `read` gives, or nothing where it refuses by UserError; whatever else it throws goes on.
template <class Read>
auto accepted(const Read& read) -> std::optional<decltype(read())> {
  try {
    return read();
  } catch (const UserError& error) {
    promise(*error.what() != '\0', "a refusal says why");
    return std::nullopt;
  }
}

// The path of a file of this process, in memory where the system has that, for what takes a path; gone at the end.
inline const std::string& scratch_file() {
  struct File {
    std::string path = ((std::filesystem::exists("/dev/shm") ? "/dev/shm" : std::filesystem::temp_directory_path()) /
                        std::filesystem::path("normlab-fuzz-" + std::to_string(::getpid())))
                           .string();
    ~File() {
      std::error_code ignored;
      std::filesystem::remove(path, ignored);
    }
  };
  static const File file;
  return file.path;
}

}  // namespace normlab::fuzz
