// Files of other formats are named, whatever they are taken for.
#include "normlab/formats/foreign_format.h"

#include <vector>

#include "catch.h"
#include "normlab/base/check.h"
#include "normlab/config/yaml.h"
#include "normlab/formats/json.h"
#include "normlab/formats/safetensors.h"
#include "normlab/host/files.h"
#include "temporary.h"

using namespace normlab;
using Catch::Matchers::StartsWith;

namespace {

// The text in UTF-16 without a mark; of the plane of ASCII and of Cyrillic alone.
std::string in_utf16(std::u16string_view text, bool big) {
  std::string out;
  for (const char16_t c : text) {
    const char high = static_cast<char>(c >> 8), low = static_cast<char>(c & 0xFF);
    out += big ? high : low;
    out += big ? low : high;
  }
  return out;
}

}  // namespace

TEST_CASE("files of other formats are named by their first bytes", "[formats]") {
  const std::u16string words = u"plain words\n";
  const std::string utf8 = "; convert it to UTF-8: iconv -f ";
  const std::pair<std::string, std::string> cases[] = {
      {std::string("\xFF\xFE\0\0a\0\0\0", 8), "UTF-32, not YAML" + utf8 + "UTF-32 -t UTF-8"},
      {std::string("\0\0\xFE\xFF\0\0\0a", 8), "UTF-32, not YAML" + utf8 + "UTF-32 -t UTF-8"},
      {"\xFF\xFE" + in_utf16(words, false), "UTF-16, not YAML" + utf8 + "UTF-16 -t UTF-8"},
      {"\xFE\xFF" + in_utf16(words, true), "UTF-16, not YAML" + utf8 + "UTF-16 -t UTF-8"},
      {"\x1F\x8B\x08", "a gzip file, not YAML; unpack it: gunzip"},
      {"BZh91AY&SY\xB7", "a bzip2 file, not YAML; unpack it: bunzip2"},
      {"\xFD\x37zXZ", "an xz file, not YAML; unpack it: unxz"},
      {"\x28\xB5\x2F\xFD", "a zstd file, not YAML; unpack it: unzstd"},
      {"PK\x03\x04", "a zip file, as docx, odt, epub and PyTorch's files are, not YAML; unpack it, "},
      {"\xD0\xCF\x11\xE0\xA1", "an old Office document (doc, xls, ppt), not YAML; save it as plain text"},
      {"%PDF-1.7", "a PDF, not YAML; take the text out: pdftotext"},
      {"\x89PNG\r\n", "a PNG picture, not YAML; name another file"},
      {"\xFF\xD8\xFF\xE0", "a JPEG picture, not YAML; name another file"},
      {"\x80\x02}q", "a Python pickle, as old files of PyTorch are, not YAML; convert its weights to safetensors"},
      {std::string("GGUF\3\0\0\0", 8), "a GGUF file, not YAML; convert its weights to safetensors"},
      {"version https://git-lfs.github.com/spec/v1\n", "the pointer of a file in Git LFS, not YAML; fetch the file "},
      {std::string("\x40\0\0\0\0\0\0\0{\"", 10), "a safetensors file, not YAML; name another file"},
  };
  for (const auto& [bytes, message] : cases) {
    CHECK_THROWS_AS(refuse_foreign(bytes, "f", "YAML"), DataError);
    CHECK_THROWS_WITH(refuse_foreign(bytes, "f", "YAML"), StartsWith("f: is " + message));
  }
}

TEST_CASE("UTF-16 without a byte order mark is known by where its NUL bytes are", "[formats]") {
  for (const std::u16string_view text :
       {u"plain words\n", u"\u041F\u0440\u0438\u0432\u0435\u0442 \u043C\u0438\u0440, \u043A\u0430\u043A\n"}) {
    CHECK_THROWS_WITH(refuse_foreign(in_utf16(text, false), "f", "UTF-8 text"),
                      "f: is UTF-16, not UTF-8 text (its NUL bytes are all at odd places); convert it to UTF-8: iconv "
                      "-f UTF-16LE -t UTF-8");
    CHECK_THROWS_WITH(refuse_foreign(in_utf16(text, true), "f", "UTF-8 text"),
                      ContainsSubstring("at even places); convert it to UTF-8: iconv -f UTF-16BE -t UTF-8"));
  }
}

TEST_CASE("texts that look like another format are none", "[formats]") {
  const std::string one_nul("a\0bc", 4), nuls("ab\0cd\0ef\0", 9), zeros(200, '\0');
  for (const std::string& text : {std::string(), std::string("a"), std::string("PK is a name"), one_nul, nuls, zeros,
                                  std::string("GGUF is a format"), std::string("BZh"),
                                  std::string("\xEF\xBB\xBFwith a mark"), std::string("{\"a\": 1}")})
    CHECK_NOTHROW(refuse_foreign(text, "f", "UTF-8 text"));
}

TEST_CASE("each reader names a foreign file", "[formats]") {
  const std::string gzip = "\x1F\x8B\x08" + std::string(40, '\xB7');
  CHECK_THROWS_WITH(parse_json(gzip, "f.json"), "f.json: is a gzip file, not JSON; unpack it: gunzip");
  CHECK_THROWS_WITH(Safetensors::parse(gzip, "f"), "f: is a gzip file, not safetensors; unpack it: gunzip");
  const TemporaryDirectory directory;
  const std::string path = directory.path("c.yaml");
  write_file(path, gzip);
  CHECK_THROWS_WITH(config::read_yaml(path), path + ": is a gzip file, not YAML; unpack it: gunzip");
}
