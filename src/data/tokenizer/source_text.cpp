// Byte order mark, line ends, and places in the file.
#include "normlab/data/tokenizer/source_text.h"

#include <algorithm>

#include "normlab/base/text.h"

namespace normlab {
namespace {

constexpr std::string_view kMark = "\xEF\xBB\xBF";

}  // namespace

SourceText source_text(std::string bytes, Newlines newlines) {
  SourceText out;
  out.mark = bytes.starts_with(kMark);
  if (out.mark) bytes.erase(0, kMark.size());
  std::size_t kept = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    char c = bytes[i];
    if (c == '\r') {
      const bool pair = i + 1 < bytes.size() && bytes[i + 1] == '\n';
      ++(pair ? out.crlf : out.cr);
      if (newlines == Newlines::normalise && pair) {
        out.dropped.push_back(kept);
        continue;
      }
      if (newlines == Newlines::normalise) c = '\n';
    }
    bytes[kept++] = c;
  }
  bytes.resize(kept);
  out.text = std::move(bytes);
  return out;
}

std::string SourceText::place(std::size_t at) const {
  const std::string_view before = std::string_view(text).substr(0, at);
  const std::string_view line = before.substr(before.rfind('\n') + 1);  // npos + 1 is 0
  const auto begins_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; };
  const auto left_out = std::upper_bound(dropped.begin(), dropped.end(), at) - dropped.begin();
  return normlab::text("byte ", at + (mark ? kMark.size() : 0) + static_cast<std::size_t>(left_out), " (line ",
                       1 + std::count(before.begin(), before.end(), '\n'), ", column ",
                       1 + std::count_if(line.begin(), line.end(), begins_character), ")");
}

std::string SourceText::remark() const {
  std::string out = mark ? "begins with a byte order mark, which is left out" : "";
  if (crlf + cr > 0)
    out += normlab::text(out.empty() ? "" : "; ", "has ", crlf, " line ends CRLF and ", cr, " CR, which ",
                         text.find('\r') == std::string::npos ? "become LF" : "stay (data.newlines keep)");
  return out;
}

}  // namespace normlab
