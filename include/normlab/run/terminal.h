// Where progress goes: one live line on a terminal, plain lines elsewhere.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace normlab {

class Terminal {
 public:
  // Standard error. Live when it is a terminal that can go back in its line (TERM is set and not "dumb").
  static Terminal standard_error();
  Terminal(int file, bool live) : file_(file), live_(live) {}

  // A part of the live line. Where not all of them fit, those of the highest rank are left out first.
  struct Field {
    std::string content;
    int rank;
  };

  bool is_live() const { return live_; }
  int columns() const;
  // Replaces the live line, in this order of the fields; nothing where there is none.
  void status(std::vector<Field> fields);
  // Takes the live line away, before something else is written to the terminal.
  void clear();
  // Leaves the live line as it is; what is written next begins a line of its own.
  void end();
  // A line that stays, printable but for control characters of `kept`. Takes the live line away first.
  void line(std::string_view content, std::string_view kept = "\n");

 private:
  std::string fitting() const;
  std::string erasure() const;
  void write(std::string_view bytes);

  int file_;
  bool live_;
  std::vector<Field> fields_;  // of the live line; empty: there is none
};

inline constexpr std::string_view kKeptOfSamples = "\n\t";

// What standard output gets: exact, but printable where it is a terminal.
std::string for_output(std::string_view bytes);
// Each line after four spaces.
std::string indented(std::string_view content);
std::string clock_text(double seconds);  // "1:05", "2:00:00"
std::string bar(double share);           // "[###-----]"

}  // namespace normlab
