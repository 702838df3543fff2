// An axis of a picture: which place a value has, and where its ticks are. Also the few elements that pictures share.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace normlab::svg {

inline constexpr double kWidth = 460;             // of every picture
inline constexpr double kLetter = 7.3;            // mean width of a letter
inline constexpr double kTitleLetter = 8.4;       // of a title
inline constexpr double kLine = 17;               // height of a line of text
inline constexpr double kLeft = 58, kRight = 14;  // next to the plot

// Values from `low` to `high` at the places from `from` to `to`.
class Scale {
 public:
  // Of the values' range, with a little air; `log` when only the positive ones count.
  Scale(const std::vector<double>& values, bool log, double from, double to, double air);

  bool holds(double value) const;  // finite, and positive on a logarithmic axis
  double operator()(double value) const;
  // Round numbers inside the range, at most about seven; whole ones where all values are.
  std::vector<double> ticks() const;

 private:
  bool log_, whole_ = true;
  double low_ = 0, high_ = 1, from_, to_;
};

std::string place(double value);  // a coordinate, to a tenth
std::string label(double x, double y, std::string_view text, std::string_view css, std::string_view anchor);
// The title of a picture, whose first line stands at `y`; moves `y` to its last line.
std::string title(std::string_view text, double& y);

}  // namespace normlab::svg
