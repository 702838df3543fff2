// Where progress goes: one live line on a terminal, plain lines elsewhere.
#pragma once

#include <string>
#include <string_view>

namespace normlab {

class Terminal {
 public:
  // Standard error. Live when it is a terminal that can go back in its line (TERM is set and not "dumb").
  static Terminal standard_error();
  Terminal(int file, bool live) : file_(file), live_(live) {}

  bool is_live() const { return live_; }
  int columns() const;
  // Replaces the live line; nothing where there is none.
  void status(std::string_view content);
  // Takes the live line away, before something else is written to the terminal.
  void clear();
  // A line that stays, printable but for control characters of `kept`. Takes the live line away first.
  void line(std::string_view content, std::string_view kept = "\n");

 private:
  void write(std::string_view bytes);

  int file_;
  bool live_;
  std::size_t status_width_ = 0;  // columns of the live line; 0: there is none
};

inline constexpr std::string_view kKeptOfSamples = "\n\t";

// What standard output gets: exact, but printable where it is a terminal.
std::string for_output(std::string_view bytes);
// Each line behind four spaces.
std::string indented(std::string_view content);
std::string clock_text(double seconds);  // "1:05", "2:00:00"
std::string bar(double share);           // "[###-----]"

}  // namespace normlab
