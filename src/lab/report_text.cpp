// Reports in characters: curves, maps of shades, sweeps, and two runs side by side.
#include <algorithm>
#include <cmath>
#include <limits>

#include "report_views.h"

namespace normlab {
namespace {

constexpr int kRows = 14;           // of a chart
constexpr std::size_t kMargin = 9;  // for the numbers beside it

constexpr char kBoth = '*';  // a place that marks of several kinds have
constexpr std::string_view kMarks = "ox+abcdefghijklmnpqrstuvwyz";

struct Line {
  char mark;
  std::vector<std::pair<double, double>> points;
};

char mark_of(std::size_t nth) { return kMarks[nth % kMarks.size()]; }

Line line_of(const RunFiles& run, std::string_view kind, std::string_view field, char mark, double factor = 1) {
  Line line{mark, {}};
  for (const Json& each : run.kind(kind))
    if (const Json* value = at_path(each, field); value != nullptr && value->is_number())
      line.points.emplace_back(each.at("step").real(), value->real() * factor);
  return line;
}

std::string padded(const std::string& content, std::size_t width) {
  return content.size() < width ? std::string(width - content.size(), ' ') + content : content;
}

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

// Marks in a grid; later lines over the first, which are lines of dots.
std::string chart_text(const std::vector<Line>& lines, int columns, const svg::Axis& x_axis, bool log_y = false) {
  Range across{x_axis.log}, up{log_y};
  const auto holds = [&](const std::pair<double, double>& point) {
    return std::isfinite(point.second) && (!across.log || point.first > 0) && (!up.log || point.second > 0);
  };
  for (const Line& line : lines)
    for (const auto& point : line.points)
      if (holds(point)) across.take(point.first), up.take(point.second);
  if (!(up.low <= up.high)) return "";
  if (up.high == up.low) up.high = up.low + 1;
  if (x_axis.label == "step") across.take(0);
  const std::size_t width = static_cast<std::size_t>(std::max(columns - static_cast<int>(kMargin) - 2, 20));
  std::vector<std::string> grid(kRows, std::string(width, ' '));
  for (const Line& line : lines)
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
    out += text(padded(row % 3 == 1 ? significant(up.value(share), 4) : "", kMargin), " |", cells, '\n');
  }
  const std::string begin = significant(across.value(0), 6), end = significant(across.value(1), 6);
  const std::size_t space = width - std::min(width - 1, begin.size() + end.size());
  return out + text(std::string(kMargin, ' '), " +", std::string(width, '-'), '\n', std::string(kMargin + 2, ' '),
                    begin, std::string(space, ' '), end, ' ', x_axis.label, '\n');
}

const svg::Axis kStep{"step"};

// Losses over the steps.
std::string loss_chart(const std::vector<Line>& lines, int columns) {
  const bool far = std::ranges::any_of(lines, [](const Line& line) {
    return std::ranges::any_of(line.points, [](const auto& point) { return point.second > kFarLoss; });
  });
  return chart_text(lines, columns, kStep, far);
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

std::string brief(const Json& value) { return value.is_number() ? significant(value.real(), 6) : value.line(); }

// The first line of metrics.jsonl's kinds at which two runs differ, and what of it does.
std::string first_difference(const RunFiles& left, const RunFiles& right) {
  const std::vector<Json>&a = left.kind("train"), &b = right.kind("train");
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    if (a[i] == b[i]) continue;
    std::string out = text("they differ from step ", a[i].at("step").integer(), " on:");
    for (const Json::Member& member : a[i].members())
      if (const Json* other = b[i].find(member.name); other == nullptr || !(*other == member.value))
        out += text(out.ends_with(':') ? " " : ", ", member.name, ' ', brief(member.value), " against ",
                    other ? brief(*other) : "none");
    return out;
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
              loss_chart({line_of(run, "train", "loss", '.'), line_of(run, "eval", "loss", 'o')}, columns));
  const std::string map = map_text(run, columns);
  return map.empty() ? out : out + "\n" + map;
}

std::string diff_text(const RunFiles& left, const RunFiles& right, int columns) {
  std::vector<Row> rows{{"key", left.directory, right.directory}};
  for (const config::Difference& difference : config::differences(left.config, right.config))
    if (difference.path != "run.dir")
      rows.push_back(shown(Row{difference.path, difference.left, difference.right}));
  const NamedRun both[] = {{&left, left.directory}, {&right, right.directory}};
  const LossUnit unit = loss_unit(both);
  const std::string in = unit.bytes ? ", bits per byte" : "";
  const auto figure = [&](const RunFiles& run) {
    const auto loss = field_of(run, "val_loss");
    return !loss ? "" : std::isnan(unit.factor(run)) ? "unknown" : fixed(*loss * unit.factor(run), 4);
  };
  std::string out = rows.size() > 1 ? "" : "their configurations are the same\n";
  rows.push_back({"outcome", left.outcome(), right.outcome()});
  rows.push_back({"validation loss" + in, figure(left), figure(right)});
  out += aligned(rows) + "\n" + first_difference(left, right) + (unit.bytes ? " (losses in nats per token)\n" : "\n");
  for (const NamedRun& each : both)
    if (std::isnan(unit.factor(*each.run)))
      out += text(each.name, ": bits per byte are unknown before an evaluation\n");
  const auto curves = [&](const char* kind, const char* name) {
    const std::vector<Line> lines{line_of(left, kind, "loss", mark_of(0), unit.factor(left)),
                                  line_of(right, kind, "loss", mark_of(1), unit.factor(right))};
    const std::string chart = loss_chart(lines, columns);
    if (chart.empty()) return std::string();
    return text("\n", name, " loss", in, ": ", mark_of(0), ' ', left.directory, ", ", mark_of(1), ' ', right.directory,
                ", ", kBoth, " both\n", chart);
  };
  return out + curves("train", "training") + curves("eval", "validation");
}

namespace {

// The validation losses of the arms, each with a mark of its own.
std::string arms_text(const Arms& arms, int columns) {
  std::vector<Line> lines;
  std::string names;
  const LossUnit unit = loss_unit(arms.all);
  for (const NamedRun& named : arms.all) {
    const auto same = [&](const NamedRun& other) { return other.name == named.name; };
    const auto nth = static_cast<std::size_t>(std::ranges::find_if(arms.first, same) - arms.first.begin());
    lines.push_back(line_of(*named.run, "eval", "loss", mark_of(nth), unit.factor(*named.run)));
  }
  for (std::size_t nth = 0; nth < arms.first.size(); ++nth)
    names += text("  ", mark_of(nth), ' ', arms.first[nth].name, '\n');
  const std::string chart = arms.have_curves() ? loss_chart(lines, columns) : "";
  return chart.empty() ? "" : text("\nvalidation loss", unit.bytes ? ", bits per byte" : "", " (", kBoth,
                                    ": several)\n", names, chart);
}

std::string view_text(const MapView& view, const SweepResult& result) {
  const MapCells cells = cells_of(view, result);
  std::vector<Row> rows{{view.y}};
  rows[0].insert(rows[0].end(), cells.columns.begin(), cells.columns.end());
  for (std::size_t row = 0; row < cells.rows.size(); ++row) {
    rows.push_back({cells.rows[row]});
    for (std::size_t i = 0; i < cells.columns.size(); ++i)
      rows.back().push_back(std::isfinite(cells.values[row][i]) ? significant(cells.values[row][i], 3)
                                                                : cells.missing[row][i]);
  }
  return text("\n", title_of(view, result), " (", view.value, "), across: ", view.x, '\n', aligned(rows));
}

std::string view_text(const CurveView& view, const SweepResult& result, int columns) {
  std::vector<Line> lines;
  std::string names;
  for (const CurveLine& curve : lines_of(view, result)) {
    Line line{mark_of(lines.size()), {}};
    for (std::size_t i = 0; i < curve.x.size(); ++i) line.points.emplace_back(curve.x[i], curve.y[i]);
    if (!curve.name.empty()) names += text("  ", line.mark, ' ', curve.name, '\n');
    lines.push_back(std::move(line));
  }
  const std::string chart = chart_text(lines, columns, {view.x, view.log_x}, view.log_y);
  return chart.empty() ? "" : text("\n", title_of(view, result), " (", view.value, ")\n", names, chart);
}

}  // namespace

std::string sweep_text(const Sweep& sweep, const std::string& directory, const SweepResult& result, int columns) {
  const Arms arms(sweep, directory, result);
  std::string out = sweep_table(sweep, result) + arms_text(arms, columns);
  for (const MapView& view : sweep.maps) out += view_text(view, result);
  for (const CurveView& view : sweep.curves) out += view_text(view, result, columns);
  for (std::size_t i = 0; i < std::min(arms.first.size(), kMostArms); ++i)
    if (const std::string map = map_text(*arms.first[i].run, columns); !map.empty())
      out += text("\n", arms.first[i].name, ", seed ", arms.first[i].run->config.seed, "; ", map);
  return out + sweep_verdicts(sweep, result);
}

}  // namespace normlab
