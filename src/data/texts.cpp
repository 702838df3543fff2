// The two texts of a data set: read from files, or drawn from a built-in corpus, and split.
#include "texts.h"

#include <algorithm>
#include <filesystem>

#include "normlab/base/check.h"
#include "normlab/base/utf8.h"
#include "normlab/data/corpora/corpora.h"
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

// What text is not, though one may take it for text, and what to do; known by its first bytes.
struct Format {
  std::string_view start, name, advice;
};
constexpr std::string_view kConvert = "convert it to UTF-8: iconv -f UTF-16 -t UTF-8";
constexpr Format kFormats[] = {
    {{"\xFF\xFE\0\0", 4}, "UTF-32", "convert it to UTF-8: iconv -f UTF-32 -t UTF-8"},
    {"\xFF\xFE", "UTF-16", kConvert},
    {"\xFE\xFF", "UTF-16", kConvert},
    {"\x1F\x8B", "a gzip file", "unpack it: gunzip"},
    {"\xFD"
     "7zXZ",
     "an xz file", "unpack it: unxz"},
    {"\x28\xB5\x2F\xFD", "a zstd file", "unpack it: unzstd"},
    {"PK\x03\x04", "a zip file, as docx, odt and epub are", "unpack it, or save the document as plain text"},
    {"\xD0\xCF\x11\xE0", "a document of an old Office", "save it as plain text"},
    {"%PDF-", "a PDF", "take the text out: pdftotext"},
};

// Bytes are refused too where they are taken as such: a model of packed bytes is nobody's wish.
void refuse_other_formats(std::string_view bytes, std::string_view name) {
  for (const Format& format : kFormats)
    check<DataError>(!bytes.starts_with(format.start), name, ": is ", format.name, ", not UTF-8 text; ", format.advice);
  // UTF-16 without a mark: of mostly ASCII, every other byte is NUL.
  const std::size_t half = std::min<std::size_t>(bytes.size(), 1024) / 2;
  std::size_t nul[2] = {0, 0};
  for (std::size_t i = 0; i < 2 * half; ++i) nul[i % 2] += bytes[i] == '\0';
  for (const std::size_t first : {0, 1})
    check<DataError>(half < 2 || 4 * nul[first] < 3 * half || 4 * nul[1 - first] > half, name,
                     ": is UTF-16, not UTF-8 text (every other byte is NUL); convert it to UTF-8: iconv -f UTF-16",
                     first == 0 ? "BE" : "LE", " -t UTF-8");
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
  check<DataError>(file_exists(path), name, ": there is no such file; check the path");
  check<DataError>(!std::filesystem::is_directory(path), name, ": is a directory; name one text file");
  const std::string_view kind = special_kind(path);
  check<DataError>(kind.empty(), name, ": is a ", kind, "; name one text file, or /dev/stdin");
  std::string bytes = read_file(path);
  refuse_other_formats(bytes, name);
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
