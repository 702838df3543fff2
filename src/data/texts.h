// The two texts of a data set, training and validation, before they become tokens.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "normlab/data/corpora/corpus.h"
#include "normlab/data/data_config.h"
#include "normlab/data/tokenizer/source_text.h"
#include "normlab/data/tokenizer/tokenizer.h"

namespace normlab {

struct Texts {
  SourceText first;  // training, and validation from `split` on unless `second` holds it
  std::size_t split = 0;
  SourceText second;                    // data.validation
  std::string first_name, second_name;  // what messages call them
  bool separate = false;                // whether validation is `second`
  std::unique_ptr<Corpus> corpus;       // what `first` was drawn from; null for a file

  NamedText train() const { return {std::string_view(first.text).substr(0, split), first_name, &first, 0}; }
  NamedText validation() const {
    if (separate) return {second.text, second_name, &second, 0};
    return {std::string_view(first.text).substr(split), first_name, &first, split};
  }
};

// ConfigError, DataError, SystemError for what is wrong with data.source, data.order, data.validation and their files.
Texts read_texts(const DataConfig& config, std::uint64_t seed);

// ROT13: each of the letters A to Z and a to z thirteen places on, the rest as it is.
std::string rot13(std::string_view text);

// `name` begins the messages. DataError where it is empty or of another format.
SourceText read_text_file(const std::string& path, std::string_view name, Newlines newlines);

}  // namespace normlab
