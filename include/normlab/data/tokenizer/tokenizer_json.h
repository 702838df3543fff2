// tokenizer.json, the file of the `tokenizers` package (Hugging Face), in which a tokenizer of each kind is expressed
// exactly: bpe as BPE of ByteLevel's characters after a Split by kPreTokenPattern, byte as the same without merges,
// char as WordLevel with a split on every character.
#pragma once

#include <string>
#include <string_view>

#include "normlab/data/tokenizer/tokenizer.h"

namespace normlab {

std::string tokenizer_json(const Tokenizer& tokenizer);

// A tokenizer.json that normlab wrote; DataError with `name` for any other, saying what is different.
Tokenizer read_tokenizer_json(std::string_view json, std::string_view name);

}  // namespace normlab
