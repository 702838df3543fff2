// Marks in a grid of characters.
#include "normlab/chart/text_chart.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>

#include "normlab/base/text.h"

namespace normlab {
namespace {

constexpr int kRows = 14;  // of a chart

// The least and the greatest value, of the logarithms where the axis has them.
struct Range {
  bool log;
  double low = std::numeric_limits<double>::infinity(), high = -low;

  double at(double value) const { return log ? std::log10(value) : value; }
  double value(double share) const {
    return log ? std::pow(10, low + share * (high - low)) : low + share * (high - low);
  }
  void take(double v) { low = std::min(low, at(v)), high = std::max(high, at(v)); }
  // The nearest of `count` places.
  std::size_t place(double v, std::size_t count) const {
    return static_cast<std::size_t>(
        std::lround(high > low ? (at(v) - low) / (high - low) * static_cast<double>(count - 1) : 0));
  }
};

}  // namespace

char mark_of(std::size_t nth) {
  constexpr std::string_view kMarks = "ox+abcdefghijklmnpqrstuvwyz";
  return kMarks[nth % kMarks.size()];
}

std::string padded(const std::string& content, std::size_t width) {
  return content.size() < width ? std::string(width - content.size(), ' ') + content : content;
}

std::string text_chart(const std::vector<TextLine>& lines, int columns, const svg::Axis& x_axis, bool log_y) {
  Range across{x_axis.log}, up{log_y};
  const auto holds = [&](const std::pair<double, double>& point) {
    return std::isfinite(point.second) && (!across.log || point.first > 0) && (!up.log || point.second > 0);
  };
  for (const TextLine& line : lines)
    for (const auto& point : line.points)
      if (holds(point)) across.take(point.first), up.take(point.second);
  if (!(up.low <= up.high)) return "";
  if (up.high == up.low) up.high = up.low + 1;
  if (x_axis.label == "step") across.take(0);
  const std::size_t width = static_cast<std::size_t>(std::max(columns - static_cast<int>(kTextMargin) - 2, 20));
  std::vector<std::string> grid(kRows, std::string(width, ' '));
  for (const TextLine& line : lines)
    for (const auto& point : line.points) {
      if (!holds(point)) continue;
      char& cell = grid[kRows - 1 - up.place(point.second, kRows)][across.place(point.first, width)];
      cell = cell == ' ' || cell == '.' || cell == line.mark ? line.mark : kBoth;
    }
  std::string out;
  for (int row = 0; row < kRows; ++row) {
    std::string& cells = grid[static_cast<std::size_t>(row)];
    cells.erase(cells.find_last_not_of(' ') + 1);
    const double share = 1 - static_cast<double>(row) / (kRows - 1);
    out += text(padded(row % 3 == 1 ? significant(up.value(share), 4) : "", kTextMargin), " |", cells, '\n');
  }
  const std::string begin = significant(across.value(0), 6), end = significant(across.value(1), 6);
  const std::size_t space = width - std::min(width - 1, begin.size() + end.size());
  return out + text(std::string(kTextMargin, ' '), " +", std::string(width, '-'), '\n',
                    std::string(kTextMargin + 2, ' '), begin, std::string(space, ' '), end, ' ', x_axis.label, '\n');
}

}  // namespace normlab
