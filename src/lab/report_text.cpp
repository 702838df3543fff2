// Reports in characters: curves, a map of shades, and two runs side by side.
#include <algorithm>
#include <cmath>
#include <limits>

#include "normlab/lab/report.h"
#include "normlab/lab/table.h"

namespace normlab {
namespace {

constexpr int kRows = 14;           // of a chart
constexpr std::size_t kMargin = 9;  // for the numbers beside it

struct Line {
  char mark;
  std::vector<std::pair<double, double>> points;
};

Line line_of(const RunFiles& run, std::string_view kind, std::string_view field, char mark) {
  Line line{mark, {}};
  for (const Json& each : run.kind(kind))
    if (const Json* value = at_path(each, field); value != nullptr && value->is_number())
      line.points.emplace_back(each.at("step").real(), value->real());
  return line;
}

std::string padded(const std::string& content, std::size_t width) {
  return content.size() < width ? std::string(width - content.size(), ' ') + content : content;
}

// Marks in a grid, later lines over earlier ones.
std::string chart_text(const std::vector<Line>& lines, int columns) {
  double low = std::numeric_limits<double>::infinity(), high = -low, last = 1;
  for (const Line& line : lines)
    for (const auto& [x, y] : line.points) {
      low = std::min(low, y);
      high = std::max(high, y);
      last = std::max(last, x);
    }
  if (!(low <= high)) return "";
  if (high == low) high = low + 1;
  const std::size_t width = static_cast<std::size_t>(std::max(columns - static_cast<int>(kMargin) - 2, 20));
  std::vector<std::string> grid(kRows, std::string(width, ' '));
  for (const Line& line : lines)
    for (const auto& [x, y] : line.points) {
      const auto column = static_cast<std::size_t>(std::lround(x / last * static_cast<double>(width - 1)));
      const auto row = static_cast<std::size_t>(std::lround((high - y) / (high - low) * (kRows - 1)));
      grid[row][column] = line.mark;
    }
  std::string out;
  for (int row = 0; row < kRows; ++row) {
    const double value = high - (high - low) * row / (kRows - 1);
    std::string cells = grid[static_cast<std::size_t>(row)];
    cells.erase(cells.find_last_not_of(' ') + 1);
    out += text(padded(row % 3 == 1 ? significant(value, 4) : "", kMargin), " |", cells, '\n');
  }
  const std::string end = number(static_cast<std::int64_t>(last));
  return out + text(std::string(kMargin, ' '), " +", std::string(width, '-'), '\n', std::string(kMargin + 2, ' '), "0",
                    std::string(width - 1 - end.size(), ' '), end, " step\n");
}

// Blocks by steps, light to heavy by the logarithm of the value.
std::string map_text(const RunFiles& run, int columns) {
  constexpr std::string_view kShades = " .:-=+*#%@";
  const std::vector<Json>& lines = run.kind("layers");
  if (lines.empty()) return "";
  const std::size_t width = std::min(lines.size(), static_cast<std::size_t>(std::max(columns - 14, 10)));
  const auto line_at = [&](std::size_t column) -> const Json& { return lines[column * lines.size() / width]; };
  const auto value = [&](std::size_t column, std::int64_t block) {
    const Json* found = at_path(line_at(column), text("grad_norm.blocks.", block, ".mlp.down.weight"));
    return found != nullptr && found->is_number() && found->real() > 0 ? std::log(found->real()) : std::nan("");
  };
  double low = std::numeric_limits<double>::infinity(), high = -low;
  const std::int64_t blocks = run.config.model.n_layers;
  for (std::size_t column = 0; column < width; ++column)
    for (std::int64_t block = 0; block < blocks; ++block)
      if (const double v = value(column, block); std::isfinite(v)) low = std::min(low, v), high = std::max(high, v);
  if (!(low <= high)) return "";
  std::string out;
  for (std::int64_t block = blocks - 1; block >= 0; --block) {
    out += padded(text("block ", block), kMargin) + " |";
    for (std::size_t column = 0; column < width; ++column) {
      const double v = value(column, block);
      const double share = high > low ? (v - low) / (high - low) : 0.5;
      out += std::isfinite(v) ? kShades[static_cast<std::size_t>(std::lround(share * (kShades.size() - 1)))] : '?';
    }
    out += '\n';
  }
  return text("gradient norm of mlp.down, from ", significant(std::exp(low), 2), " (", kShades.front(), ") to ",
              significant(std::exp(high), 2), " (", kShades.back(), "), steps ", line_at(0).at("step").integer(),
              " to ", line_at(width - 1).at("step").integer(), '\n', out);
}

// The first line of metrics.jsonl's kinds at which two runs differ.
std::string first_difference(const RunFiles& left, const RunFiles& right) {
  const std::vector<Json>&a = left.kind("train"), &b = right.kind("train");
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] == b[i]) continue;
    const double x = field_of(a[i], "loss").value_or(std::nan("")), y = field_of(b[i], "loss").value_or(std::nan(""));
    return text("they differ from step ", a[i].at("step").integer(), " on: loss ", significant(x, 6), " against ",
                significant(y, 6));
  }
  return a.size() == b.size() ? text("their ", a.size(), " steps are the same")
                              : text("the ", std::min(a.size(), b.size()), " steps that both have are the same");
}

}  // namespace

std::string run_text(const RunFiles& run, int columns) {
  std::string out = text(run.directory, ": ", run.outcome());
  if (const auto loss = field_of(run, "val_loss")) out += text(", validation loss ", fixed(*loss, 4));
  for (const char* name : {"unigram", "bigram", "floor"})
    if (const auto value = run.entropy(name)) out += text(", ", name, " ", fixed(*value, 3));
  out += text("\n\nloss: . training, o validation\n",
              chart_text({line_of(run, "train", "loss", '.'), line_of(run, "eval", "loss", 'o')}, columns));
  const std::string map = map_text(run, columns);
  return map.empty() ? out : out + "\n" + map;
}

std::string diff_text(const RunFiles& left, const RunFiles& right, int columns) {
  std::vector<Row> rows{{"key", left.directory, right.directory}};
  for (const config::Difference& difference : config::differences(left.config, right.config))
    if (difference.path != "run.dir") rows.push_back({difference.path, difference.left, difference.right});
  const auto figure = [](const RunFiles& run) {
    const auto loss = field_of(run, "val_loss");
    return loss ? fixed(*loss, 4) : "";
  };
  std::string out = rows.size() > 1 ? "" : "their configurations are the same\n";
  rows.push_back({"outcome", left.outcome(), right.outcome()});
  rows.push_back({"validation loss", figure(left), figure(right)});
  out += aligned(rows) + "\n" + first_difference(left, right) + "\n";
  const bool evaluated = !left.kind("eval").empty() && !right.kind("eval").empty();
  const char* kind = evaluated ? "eval" : "train";
  return out + text("\n", evaluated ? "validation" : "training", " loss: o ", left.directory, ", x ", right.directory,
                    '\n', chart_text({line_of(left, kind, "loss", 'o'), line_of(right, kind, "loss", 'x')}, columns));
}

}  // namespace normlab
