// The two texts of a data set: read from files, or drawn from a built-in corpus, and split.
#include "texts.h"

#include <algorithm>

#include "normlab/base/check.h"
#include "normlab/base/utf8.h"
#include "normlab/data/corpora/corpora.h"
#include "normlab/formats/foreign_format.h"
#include "normlab/host/files.h"

namespace normlab {
namespace {

// The start of the first line at or after `at`; the end when there is none.
std::size_t next_line(std::string_view text, std::size_t at) {
  if (at == 0) return 0;
  const std::size_t newline = text.find('\n', at - 1);
  return newline == std::string_view::npos ? text.size() : newline + 1;
}

std::size_t next_character(std::string_view text, std::size_t at) {
  while (at < text.size() && (static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  return at;
}

}  // namespace

std::string rot13(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    for (const char first : {'a', 'A'})
      if (c >= first && c < first + 26) {
        c = static_cast<char>(first + (c - first + 13) % 26);
        break;
      }
  return out;
}

SourceText read_text_file(const std::string& path, std::string_view name, Newlines newlines) {
  std::string bytes = read_file(path);
  refuse_foreign(bytes, name, "UTF-8 text");  // also for data.tokenizer=byte: nobody wants a model of packed bytes
  SourceText source = source_text(std::move(bytes), newlines);
  check<DataError>(!source.text.empty(), name, ": is empty; give a text to learn from");
  return source;
}

Texts read_texts(const DataConfig& config, std::uint64_t seed) {
  Texts texts;
  texts.first_name = text("data.source '", config.source, "'");
  const auto& built_in = corpus_names();
  if (std::find(built_in.begin(), built_in.end(), config.source) != built_in.end()) {
    texts.corpus = make_corpus(config.source, config.order, seed);
    texts.first.text = texts.corpus->generate(config.size);
  } else {
    require_source(config.source);
    texts.first = read_text_file(config.source, texts.first_name, config.newlines);
  }
  if (config.validation) {
    texts.separate = true;
    texts.second_name = text("data.validation '", *config.validation, "'");
    texts.second = read_text_file(*config.validation, texts.second_name, config.newlines);
    texts.split = texts.first.text.size();
  } else {
    const auto raw = static_cast<std::size_t>((1 - config.val_fraction) * static_cast<double>(texts.first.text.size()));
    const bool by_line = texts.corpus || config.documents == Documents::lines;
    texts.split = by_line ? next_line(texts.first.text, raw) : next_character(texts.first.text, raw);
  }
  return texts;
}

}  // namespace normlab
