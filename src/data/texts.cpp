// The two texts of a data set: read from files, or drawn from a built-in corpus, and split.
#include "texts.h"

#include <algorithm>
#include <filesystem>

#include "normlab/base/check.h"
#include "normlab/base/files.h"
#include "normlab/base/utf8.h"

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

std::string read_text_file(const std::string& path, std::string_view name) {
  check<DataError>(file_exists(path), name, ": there is no such file; check the path");
  check<DataError>(!std::filesystem::is_directory(path), name, ": is a directory; name one text file");
  const std::string_view kind = special_kind(path);
  check<DataError>(kind.empty(), name, ": is a ", kind, "; name one text file, or /dev/stdin");
  std::string bytes = read_file(path);
  if (bytes.starts_with("\xEF\xBB\xBF")) bytes.erase(0, 3);
  check<DataError>(!bytes.empty(), name, ": is empty; give a text to learn from");
  return bytes;
}

Texts read_texts(const DataConfig& config, std::uint64_t seed) {
  Texts texts;
  texts.first_name = text("data.source '", config.source, "'");
  const auto& built_in = corpus_names();
  if (std::find(built_in.begin(), built_in.end(), config.source) != built_in.end()) {
    texts.corpus = make_corpus(config.source, config.order, seed);
    texts.first = texts.corpus->generate(config.size);
  } else {
    require_source(config.source);
    texts.first = read_text_file(config.source, texts.first_name);
  }
  if (config.validation) {
    texts.separate = true;
    texts.second_name = text("data.validation '", *config.validation, "'");
    texts.second = read_text_file(*config.validation, texts.second_name);
    texts.split = texts.first.size();
  } else {
    const auto raw = static_cast<std::size_t>((1 - config.val_fraction) * static_cast<double>(texts.first.size()));
    const bool by_line = texts.corpus || config.documents == Documents::lines;
    texts.split = by_line ? next_line(texts.first, raw) : next_character(texts.first, raw);
  }
  return texts;
}

}  // namespace normlab
