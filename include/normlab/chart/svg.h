// Charts as SVG, drawn with text alone: lines, points, heat maps. Colours are CSS classes that follow the reader's
// light or dark mode; hovering over a place tells its values (<title>, no script).
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace normlab::svg {

struct Axis {
  std::string label;
  bool log = false;  // values that are not above 0 are left out
};

struct Series {
  std::string name;          // its entry in the legend; series of one name share it, an empty name has none
  std::vector<double> x, y;  // equally many; a value that is not finite is a gap
  int colour = 0;            // of kColours
  enum class Form { line, dashed, points } form = Form::line;
  std::vector<std::string> titles = {};  // points: what hovering over each tells; by default its name and values
};

// A horizontal line with its name and value, such as an entropy; an empty name leaves both out.
struct Level {
  std::string name;
  double y;
};

struct Chart {
  std::string title;
  Axis x, y;
  std::vector<Series> series;
  std::vector<Level> levels = {};
};

struct HeatMap {
  std::string title, x_label, y_label, value_label;
  std::vector<std::string> columns, rows;               // the first row is at the top
  std::vector<std::vector<double>> values;              // [rows][columns]; one that is not finite leaves its cell empty
  bool log = false;                                     // colours by the logarithm
  bool show_values = false;                             // each cell has its number
  std::optional<std::pair<double, double>> range = {};  // of the colours; by default that of the values
  std::vector<std::vector<std::string>> notes = {};     // of the same size, or none: what an empty cell says
};

inline constexpr int kColours = 8;

// Drawn, in units of 1/13 of the text's height.
struct Picture {
  double width, height;
  std::string body;
};

Picture chart(const Chart& chart);
Picture heat_map(const HeatMap& map);

// CSS rules for every picture of a page, which has them once.
std::string style();
// The <svg> element of a page that has style(); it fills the width of what holds it.
std::string element(const Picture& picture);
// A whole SVG file: the pictures row by row, `columns` in a row.
std::string file(std::span<const Picture> pictures, std::size_t columns);

// The text with & < > " written as entities, for HTML and SVG; control characters are U+FFFD.
std::string escaped(std::string_view text);

}  // namespace normlab::svg
