// Charts in characters, for a terminal.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "normlab/chart/svg.h"

namespace normlab {

inline constexpr std::size_t kTextMargin = 9;  // for the numbers next to a chart
inline constexpr char kBoth = '*';             // a place that marks of several kinds have

struct TextLine {
  char mark;
  std::vector<std::pair<double, double>> points;
};
char mark_of(std::size_t nth);

std::string padded(const std::string& content, std::size_t width);  // blanks before it

// Marks in a grid; later lines over the first, which are lines of dots.
std::string text_chart(const std::vector<TextLine>& lines, int columns, const svg::Axis& x_axis, bool log_y = false);

}  // namespace normlab
