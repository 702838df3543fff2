// Progress on standard error.
#include "normlab/run/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <utility>

#include "normlab/base/text.h"
#include "normlab/base/utf8.h"

namespace normlab {

Terminal Terminal::standard_error() {
  const char* term = std::getenv("TERM");
  const bool capable = term != nullptr && *term != '\0' && std::string_view(term) != "dumb";
  return Terminal(STDERR_FILENO, capable && isatty(STDERR_FILENO) == 1);
}

int Terminal::columns() const {
  winsize size{};
  return ioctl(file_, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

void Terminal::status(std::vector<Field> fields) {
  if (!live_) return;
  fields_ = std::move(fields);
  write(text(erasure(), fitting(), '\r'));
}

void Terminal::clear() {
  if (!fields_.empty()) write(erasure());
  fields_.clear();
}

void Terminal::end() {
  if (!fields_.empty()) write(text(erasure(), fitting(), '\n'));
  fields_.clear();
}

// No character takes more columns than bytes.
std::string Terminal::fitting() const {
  const std::size_t room = static_cast<std::size_t>(columns() - 1);
  std::vector<Field> fields = fields_;
  for (;;) {
    std::string out;
    for (const Field& field : fields) out += text(out.empty() ? "" : " ", printable(field.content));
    if (out.size() <= room || fields.size() <= 1) return out.substr(0, room);
    fields.erase(std::ranges::max_element(fields, {}, &Field::rank));
  }
}

// From the start of the line, where each status leaves the cursor: a terminal that was made narrower may have broken
// the line into several, and keeps the cursor at its character.
std::string Terminal::erasure() const {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color == nullptr || *no_color == '\0') return "\r\x1B[J";  // ECMA-48: erase to the end of the page
  return text('\r', std::string(static_cast<std::size_t>(columns()), ' '), '\r');
}

void Terminal::line(std::string_view content, std::string_view kept) {
  clear();
  write(text(printable(content, kept), '\n'));
}

// Progress that cannot be shown is no reason to end a run.
void Terminal::write(std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file_, bytes.data(), bytes.size());
    if (count <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(count));
  }
}

std::string for_output(std::string_view bytes) {
  return isatty(STDOUT_FILENO) == 1 ? printable(bytes, kKeptOfSamples) : std::string(bytes);
}

std::string indented(std::string_view content) {
  std::string out = "    ";
  for (const char c : content) {
    out += c;
    if (c == '\n') out += "    ";
  }
  return out;
}

std::string clock_text(double seconds) {
  const std::int64_t whole = std::llround(seconds);
  const auto two = [](std::int64_t n) { return text(n < 10 ? "0" : "", n); };
  return whole < 3600 ? text(whole / 60, ':', two(whole % 60))
                      : text(whole / 3600, ':', two(whole / 60 % 60), ':', two(whole % 60));
}

std::string bar(double share) {
  constexpr int kWidth = 8;
  const int full = static_cast<int>(share * kWidth);
  return text('[', std::string(static_cast<std::size_t>(full), '#'),
              std::string(static_cast<std::size_t>(kWidth - full), '-'), ']');
}

}  // namespace normlab
