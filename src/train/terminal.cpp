// Progress on standard error.
#include "normlab/train/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

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

void Terminal::status(std::string_view content) {
  if (!live_) return;
  std::string whole(printable(content).substr(0, static_cast<std::size_t>(columns() - 1)));
  const std::size_t width = whole.size();
  whole.resize(std::max(width, status_width_), ' ');  // over what the last one left; no escape sequence is needed
  write("\r" + whole);
  status_width_ = width;
}

void Terminal::clear() {
  if (status_width_ > 0) write(text('\r', std::string(status_width_, ' '), '\r'));
  status_width_ = 0;
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
