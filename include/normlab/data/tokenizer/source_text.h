// A text from outside as it is trained on, and where in its file each byte of it lies.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace normlab {

enum class Newlines { normalise, keep };

struct SourceText {
  std::string text;                  // without a byte order mark and, but for Newlines::keep, with LF alone
  bool mark = false;                 // whether there was a byte order mark
  std::size_t crlf = 0, cr = 0;      // line ends of these kinds that there were
  std::vector<std::size_t> dropped;  // the LFs of `text` that were CRLF, by their places; rising

  // "byte 103 (line 5, column 4)": of the file as it lies on the disk. Bytes from 0; lines, and columns in characters,
  // from 1.
  std::string place(std::size_t at) const;
  // What was found besides text: "begins with a byte order mark, which is left out"; empty when nothing was.
  std::string remark() const;
};

SourceText source_text(std::string bytes, Newlines newlines);

}  // namespace normlab
