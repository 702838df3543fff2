// Tokenizers from files: what is accepted is equal when it is written and read again, and loses no byte.
#include "normlab/data/tokenizer/tokenizer_json.h"

#include "fuzz.h"

namespace normlab::fuzz {
namespace {

void look_at(const Tokenizer& tokenizer, std::string_view bytes) {
  promise(Tokenizer::load(tokenizer.save()) == tokenizer, "what is saved loads equal");
  promise(read_tokenizer_json(tokenizer_json(tokenizer), "written") == tokenizer, "tokenizer.json reads back equal");
  const auto ids = accepted([&] { return tokenizer.encode(bytes); });
  promise(ids.has_value() || tokenizer.pairs() == nullptr, "byte pairs take any bytes");
  std::string joined;
  if (ids)
    for (const std::int32_t id : *ids) joined += tokenizer.bytes_of(id);
  promise(!ids || joined == bytes, "the tokens of a text make that text");
}

}  // namespace

void tokenizer_json(std::string_view bytes) {
  const auto read = accepted([&] { return read_tokenizer_json(bytes, "tokenizer.json"); });
  const auto loaded = accepted([&] { return Tokenizer::load(bytes); });
  if (read) look_at(*read, bytes);
  if (loaded) look_at(*loaded, bytes);
}

}  // namespace normlab::fuzz
