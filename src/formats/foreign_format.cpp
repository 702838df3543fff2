// Files of other formats, known by their first bytes.
#include "normlab/formats/foreign_format.h"

#include <algorithm>

#include "normlab/base/check.h"

namespace normlab {
namespace {

struct Format {
  std::string_view start, name, advice;
};
constexpr std::string_view kFromUtf16 = "convert it to UTF-8: iconv -f UTF-16 -t UTF-8",
                           kFromUtf32 = "convert it to UTF-8: iconv -f UTF-32 -t UTF-8", kPicture = "name another file",
                           kWeights = "convert its weights to safetensors";
constexpr Format kFormats[] = {
    {{"\xFF\xFE\0\0", 4}, "UTF-32", kFromUtf32},
    {{"\0\0\xFE\xFF", 4}, "UTF-32", kFromUtf32},
    {"\xFF\xFE", "UTF-16", kFromUtf16},
    {"\xFE\xFF", "UTF-16", kFromUtf16},
    {"\x1F\x8B", "a gzip file", "unpack it: gunzip"},
    {"BZh91AY&SY", "a bzip2 file", "unpack it: bunzip2"},
    {"\xFD\x37zXZ", "an xz file", "unpack it: unxz"},
    {"\x28\xB5\x2F\xFD", "a zstd file", "unpack it: unzstd"},
    {"PK\x03\x04", "a zip file, as docx, odt, epub and PyTorch's files are",
     "unpack it, save the document as plain text, or convert the weights to safetensors"},
    {"\xD0\xCF\x11\xE0", "an old Office document (doc, xls, ppt)", "save it as plain text"},
    {"%PDF-", "a PDF", "take the text out: pdftotext"},
    {"\x89PNG", "a PNG picture", kPicture},
    {"\xFF\xD8\xFF", "a JPEG picture", kPicture},
    {"\x80\x02", "a Python pickle, as old files of PyTorch are", kWeights},
    {{"GGUF\3\0", 6}, "a GGUF file", kWeights},
    {"version https://git-lfs", "the pointer of a file in Git LFS", "fetch the file itself: git lfs pull"},
};

}  // namespace

void refuse_foreign(std::string_view bytes, std::string_view name, std::string_view expected) {
  for (const Format& format : kFormats)
    check<DataError>(!bytes.starts_with(format.start), name, ": is ", format.name, ", not ", expected, "; ",
                     format.advice);
  check<DataError>(bytes.size() < 10 || bytes.substr(4, 4) != std::string_view("\0\0\0\0", 4) || bytes[8] != '{', name,
                   ": is a safetensors file, not ", expected, "; name another file");
  // UTF-16 without a mark: the NULs, a 32nd of the characters or more, are all at odd places, or all at even ones.
  const std::size_t half = std::min<std::size_t>(bytes.size(), 4096) / 2;
  std::size_t nul[2] = {0, 0};
  for (std::size_t i = 0; i < 2 * half; ++i) nul[i % 2] += bytes[i] == '\0';
  for (const std::size_t first : {0, 1})
    check<DataError>(nul[first] < 2 || 32 * nul[first] < half || nul[1 - first] > 0, name, ": is UTF-16, not ",
                     expected, " (its NUL bytes are all at ", first == 0 ? "even" : "odd",
                     " places); convert it to UTF-8: iconv -f UTF-16", first == 0 ? "BE" : "LE", " -t UTF-8");
}

}  // namespace normlab
