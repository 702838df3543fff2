// Heat maps: a value as the colour of a cell.
#include <algorithm>
#include <cmath>
#include <limits>
#include <tuple>

#include "normlab/base/check.h"
#include "normlab/base/text.h"
#include "normlab/chart/svg.h"
#include "svg_scale.h"

namespace normlab::svg {
namespace {

constexpr int kShades = 20;     // classes q0 to q20 of style()
constexpr int kLightFrom = 12;  // from this shade on, text on it is dark

// The share of the range that a value reaches, in shades; -1 for one that has no place in it.
struct Shades {
  bool log;
  double low = std::numeric_limits<double>::infinity(), high = -std::numeric_limits<double>::infinity();

  bool holds(double value) const { return std::isfinite(value) && (!log || value > 0); }
  int of(double value) const {
    if (!holds(value)) return -1;
    const double at = log ? std::log(value) : value, from = log ? std::log(low) : low, to = log ? std::log(high) : high;
    if (!(to > from)) return kShades / 2;
    return static_cast<int>(std::lround(std::clamp((at - from) / (to - from), 0.0, 1.0) * kShades));
  }
};

std::string cells(const HeatMap& map, const Shades& shades, double left, double top, double width, double height) {
  std::string out;
  for (std::size_t row = 0; row < map.rows.size(); ++row)
    for (std::size_t column = 0; column < map.columns.size(); ++column) {
      const double value = map.values[row][column];
      const int shade = shades.of(value);
      const double x = left + width * static_cast<double>(column), y = top + height * static_cast<double>(row);
      if (shade < 0) {
        if (!map.notes.empty())
          out +=
              text("<g><title>", escaped(map.notes[row][column]), "</title>",
                   label(x + width / 2, y + height / 2 + 4,
                         map.notes[row][column].substr(0, static_cast<std::size_t>(width / kLetter)), "soft", "middle"),
                   "</g>");
        continue;
      }
      out += text("<rect class=\"cell q", shade, "\" x=\"", place(x), "\" y=\"", place(y), "\" width=\"",
                  place(width + (map.show_values ? -1 : 0.3)), "\" height=\"",
                  place(height + (map.show_values ? -1 : 0.3)), "\"><title>",
                  escaped(text(map.x_label, " ", map.columns[column], "\n", map.y_label, " ", map.rows[row], "\n",
                               map.value_label, " ", significant(value, 4))),
                  "</title></rect>");
      if (map.show_values)
        out += label(x + width / 2, y + height / 2 + 4, significant(value, 3),
                     shade >= kLightFrom ? "on-light" : "on-dark", "middle");
    }
  return out;
}

// The colours from the least to the greatest value.
std::string colour_bar(const Shades& shades, double y) {
  constexpr double kLength = 150, kPiece = kLength / (kShades + 1);
  const std::string least = significant(shades.low, 3);
  const double begin = kLeft + 8 + kLetter * static_cast<double>(least.size());
  std::string out = label(kLeft, y, least, "soft", "start");
  for (int i = 0; i <= kShades; ++i)
    out += text("<rect class=\"q", i, "\" x=\"", place(begin + kPiece * i), "\" y=\"", place(y - 10), "\" width=\"",
                place(kPiece + 0.3), "\" height=\"12\"/>");
  return out + label(begin + kLength + 6, y, significant(shades.high, 3), "soft", "start");
}

}  // namespace

Picture heat_map(const HeatMap& map) {
  check(map.values.size() == map.rows.size(), "svg: ", map.values.size(), " rows of values for ", map.rows.size());
  Shades shades{map.log};
  for (const std::vector<double>& row : map.values) {
    check(row.size() == map.columns.size(), "svg: ", row.size(), " values for ", map.columns.size(), " columns");
    for (const double value : row)
      if (shades.holds(value)) {
        shades.low = std::min(shades.low, value);
        shades.high = std::max(shades.high, value);
      }
  }
  if (map.range) std::tie(shades.low, shades.high) = *map.range;
  const double rows = static_cast<double>(map.rows.size()), columns = static_cast<double>(map.columns.size());
  std::size_t longest = 0;
  for (const std::string& row : map.rows) longest = std::max(longest, row.size());
  const double left = std::clamp(14 + kLetter * static_cast<double>(longest), kLeft, 0.45 * kWidth);
  const double height = std::clamp(200 / std::max(rows, 1.0), map.show_values ? 22.0 : 8.0, 34.0);
  const double width = (kWidth - left - kRight) / std::max(columns, 1.0);
  double top = kLine;
  std::string body = title(map.title, top);
  top += kLine + 4;
  body += label(0, top, map.y_label, "soft", "start");
  body += label(kWidth - kRight, top, map.value_label, "soft", "end");
  top += 8;
  body += cells(map, shades, left, top, width, height);

  double written = -1e9;  // names that would touch the one before stay silent
  for (std::size_t i = 0; i < map.rows.size(); ++i) {
    const double y = top + height * (static_cast<double>(i) + 0.5) + 4;
    if (y - written >= 14) body += label(left - 6, written = y, map.rows[i], "soft", "end");
  }
  const double bottom = top + height * rows;
  written = -1e9;
  for (std::size_t i = 0; i < map.columns.size(); ++i) {
    const double x = left + width * (static_cast<double>(i) + 0.5);
    const double half = kLetter * static_cast<double>(map.columns[i].size()) / 2;
    if (x - half < written + 8) continue;
    body += label(x, bottom + 16, map.columns[i], "soft", "middle");
    written = x + half;
  }
  body += label((left + kWidth - kRight) / 2, bottom + 33, map.x_label, "soft", "middle");
  if (shades.low <= shades.high) body += colour_bar(shades, bottom + 56);
  return {kWidth, bottom + 64, std::move(body)};
}

}  // namespace normlab::svg
