// Lines and points over two axes.
#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "normlab/base/check.h"
#include "normlab/base/text.h"
#include "normlab/chart/svg.h"
#include "svg_scale.h"

namespace normlab::svg {
namespace {

constexpr double kPlot = 230;             // height of the plot
constexpr double kBelow = 44;             // for the ticks and the label of the x axis
constexpr std::size_t kMostPoints = 400;  // of a line: more are drawn as the least and the greatest of each stretch
constexpr std::size_t kStrips = 60;       // places along x that tell their values

// Which points of a line are drawn.
std::vector<std::size_t> drawn(const Series& series) {
  const std::size_t count = series.x.size();
  std::vector<std::size_t> out;
  if (count <= kMostPoints) {
    for (std::size_t i = 0; i < count; ++i) out.push_back(i);
    return out;
  }
  constexpr std::size_t kStretches = kMostPoints / 2;
  for (std::size_t stretch = 0; stretch < kStretches; ++stretch) {
    const std::size_t first = stretch * count / kStretches, end = (stretch + 1) * count / kStretches;
    const auto [least, greatest] = std::minmax_element(series.y.begin() + static_cast<std::ptrdiff_t>(first),
                                                       series.y.begin() + static_cast<std::ptrdiff_t>(end));
    const auto a = static_cast<std::size_t>(std::min(least, greatest) - series.y.begin());
    const auto b = static_cast<std::size_t>(std::max(least, greatest) - series.y.begin());
    out.push_back(a);
    if (b != a) out.push_back(b);
  }
  return out;
}

// A line of one point is a dot.
std::string line_of(const Series& series, const Scale& x, const Scale& y) {
  std::string path;
  bool pen_down = false;
  std::size_t points = 0, last = 0;
  for (const std::size_t i : drawn(series)) {
    if (!x.holds(series.x[i]) || !y.holds(series.y[i])) {
      pen_down = false;
      continue;
    }
    path += text(pen_down ? "L" : "M", place(x(series.x[i])), " ", place(y(series.y[i])));
    pen_down = true;
    ++points, last = i;
  }
  if (points == 1)
    return text("<circle class=\"f", series.colour % kColours, "\" cx=\"", place(x(series.x[last])), "\" cy=\"",
                place(y(series.y[last])), "\" r=\"3.5\"/>");
  return text("<path class=\"line", series.form == Series::Form::dashed ? " dashed" : "", " c",
              series.colour % kColours, "\" d=\"", path, "\"/>");
}

std::string points_of(const Series& series, const Scale& x, const Scale& y) {
  std::string out;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    if (!x.holds(series.x[i]) || !y.holds(series.y[i])) continue;
    const std::string title = i < series.titles.size()
                                  ? series.titles[i]
                                  : text(series.name, series.name.empty() ? "" : ": ", significant(series.x[i], 5),
                                         ", ", significant(series.y[i], 5));
    out += text("<circle class=\"cell f", series.colour % kColours, "\" cx=\"", place(x(series.x[i])), "\" cy=\"",
                place(y(series.y[i])), "\" r=\"4\"><title>", escaped(title), "</title></circle>");
  }
  return out;
}

// The legend in lines of its own, from `top` on; moves `top` below it.
std::string legend(const Chart& chart, double& top) {
  std::string out;
  std::vector<std::string> said;
  double x = kLeft;
  for (const Series& series : chart.series) {
    if (series.name.empty() || std::ranges::find(said, series.name) != said.end()) continue;
    said.push_back(series.name);
    std::string name = series.name;
    if (constexpr std::size_t kMost = 50; name.size() > kMost)
      name = text(name.substr(0, kMost / 2 - 2), "...", name.substr(name.size() - kMost / 2));
    if (!std::ranges::any_of(series.y, [](double y) { return std::isfinite(y); })) name += " (no value)";
    const double width = 24 + kLetter * static_cast<double>(name.size()) + 14;
    if (x > kLeft && x + width > kWidth) {
      x = kLeft;
      top += kLine;
    }
    if (series.form == Series::Form::points)
      out += text("<circle class=\"f", series.colour % kColours, "\" cx=\"", place(x + 9), "\" cy=\"", place(top - 4),
                  "\" r=\"4\"/>");
    else
      out += text("<path class=\"line", series.form == Series::Form::dashed ? " dashed" : "", " c",
                  series.colour % kColours, "\" d=\"M", place(x), " ", place(top - 4), "h18\"/>");
    out += label(x + 24, top, name, "name", "start");
    x += width;
  }
  if (!said.empty()) top += kLine;
  return out;
}

std::string axes(const Chart& chart, const Scale& x, const Scale& y, double top) {
  std::string out;
  const double bottom = top + kPlot, right = kWidth - kRight;
  for (const double tick : y.ticks())
    out += text("<path class=\"grid\" d=\"M", place(kLeft), " ", place(y(tick)), "H", place(right), "\"/>",
                label(kLeft - 6, y(tick) + 4, significant(tick, 4), "soft", "end"));
  double last = -1e9;  // ticks whose numbers would touch stay silent
  for (const double tick : x.ticks()) {
    out += text("<path class=\"grid\" d=\"M", place(x(tick)), " ", place(bottom), "v4\"/>");
    if (x(tick) - last < 40) continue;
    out += label(x(tick), bottom + 17, significant(tick, 6), "soft", "middle");
    last = x(tick);
  }
  out += text("<path class=\"grid\" d=\"M", place(kLeft), " ", place(bottom), "H", place(right), "\"/>");
  out += label((kLeft + right) / 2, bottom + 35, chart.x.label, "soft", "middle");
  return out + label(kLeft, top - 8, chart.y.label, "soft", "start");
}

struct Box {
  double left, right, top, bottom;
};

// Whether the straight line between two points passes through the box.
bool crosses(const Box& box, double x0, double y0, double x1, double y1) {
  if (x0 > x1) std::swap(x0, x1), std::swap(y0, y1);
  if (x1 < box.left || x0 > box.right) return false;
  const auto height = [&](double x) { return x1 > x0 ? y0 + (y1 - y0) * (x - x0) / (x1 - x0) : y0; };
  const double a = height(std::max(x0, box.left)), b = x1 > x0 ? height(std::min(x1, box.right)) : y1;
  return std::min(a, b) <= box.bottom && std::max(a, b) >= box.top;
}

bool crosses(const Box& box, const Chart& chart, const Scale& x, const Scale& y) {
  for (const Series& series : chart.series) {
    bool pen_down = false;
    double last_x = 0, last_y = 0;
    for (const std::size_t i : drawn(series)) {
      const bool held = x.holds(series.x[i]) && y.holds(series.y[i]);
      if (held) {
        const double to_x = x(series.x[i]), to_y = y(series.y[i]);
        if (crosses(box, pen_down ? last_x : to_x, pen_down ? last_y : to_y, to_x, to_y)) return true;
        last_x = to_x, last_y = to_y;
      }
      pen_down = held && series.form != Series::Form::points;
    }
  }
  return std::ranges::any_of(chart.levels, [&](const Level& level) {
    return y.holds(level.y) && y(level.y) > box.top && y(level.y) < box.bottom;
  });
}

// Level lines with their names, each as far to the right as no curve and no other name is in its way.
std::string levels_of(const Chart& chart, const Scale& x, const Scale& y, double top) {
  constexpr double kHeight = 12, kStep = 20, kAir = 2;
  std::string out;
  std::vector<Box> taken;
  for (const Level& level : chart.levels) {
    if (!y.holds(level.y)) continue;
    const double at = y(level.y), end = kWidth - kRight - 3;
    out += text("<path class=\"level\" d=\"M", place(kLeft), " ", place(at), "H", place(kWidth - kRight), "\"/>");
    if (level.name.empty()) continue;
    const std::string name = text(level.name, " ", fixed(level.y, 2));
    const double width = kLetter * static_cast<double>(name.size());
    const auto free = [&](const Box& box) {
      const auto touches = [&](const Box& other) {
        return box.left < other.right && other.left < box.right && box.top < other.bottom && other.top < box.bottom;
      };
      return box.top >= top && box.bottom <= top + kPlot && !std::ranges::any_of(taken, touches) &&
             !crosses(box, chart, x, y);
    };
    std::optional<Box> chosen;
    for (double right = end; !chosen && right - width > kLeft; right -= kStep)
      for (const double above : {at - kAir - kHeight, at + kAir})
        if (const Box box{right - width, right, above, above + kHeight}; !chosen && free(box)) chosen = box;
    if (!chosen) chosen = Box{end - width, end, at - kAir - kHeight, at - kAir};
    taken.push_back(*chosen);
    out += label(chosen->right, chosen->bottom - 2, name, "soft halo", "end");
  }
  return out;
}

// Strips across the plot, each telling the values of all lines near its middle.
std::string strips(const Chart& chart, const Scale& x, double top) {
  std::vector<double> at;
  for (const Series& series : chart.series)
    if (series.form != Series::Form::points)
      for (const double value : series.x)
        if (x.holds(value)) at.push_back(value);
  std::ranges::sort(at);
  at.erase(std::unique(at.begin(), at.end()), at.end());
  std::vector<double> chosen;
  for (const double value : at)
    if (chosen.empty() || x(value) - x(chosen.back()) >= (kWidth - kLeft - kRight) / kStrips) chosen.push_back(value);
  std::string out;
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    const double left = i == 0 ? kLeft : (x(chosen[i - 1]) + x(chosen[i])) / 2;
    const double right = i + 1 == chosen.size() ? kWidth - kRight : (x(chosen[i]) + x(chosen[i + 1])) / 2;
    std::string title = text(chart.x.label, " ", significant(chosen[i], 6));
    for (const Series& series : chart.series) {
      if (series.form == Series::Form::points) continue;
      double best = right - left;
      double value = std::nan("");
      for (std::size_t k = 0; k < series.x.size(); ++k)
        if (x.holds(series.x[k]) && std::abs(x(series.x[k]) - x(chosen[i])) < best) {
          best = std::abs(x(series.x[k]) - x(chosen[i]));
          value = series.y[k];
        }
      if (std::isfinite(value))
        title += text("\n", series.name, series.name.empty() ? "" : ": ", significant(value, 5));
    }
    out += text("<rect class=\"strip\" x=\"", place(left), "\" y=\"", place(top), "\" width=\"", place(right - left),
                "\" height=\"", place(kPlot), "\"><title>", escaped(title), "</title></rect>");
  }
  return out;
}

}  // namespace

Picture chart(const Chart& chart) {
  std::vector<double> xs, ys;
  for (const Series& series : chart.series) {
    check(series.x.size() == series.y.size(), "svg: a series of ", series.x.size(), " x and ", series.y.size(), " y");
    for (std::size_t i = 0; i < series.x.size(); ++i) {
      if (!std::isfinite(series.y[i]) || (chart.y.log && series.y[i] <= 0)) continue;
      xs.push_back(series.x[i]);
      ys.push_back(series.y[i]);
    }
  }
  for (const Level& level : chart.levels) ys.push_back(level.y);

  double top = kLine;
  std::string body = title(chart.title, top);
  top += kLine + 3;
  body += legend(chart, top);
  top += kLine - 6;
  const Scale x(xs, chart.x.log, kLeft, kWidth - kRight, 0), y(ys, chart.y.log, top + kPlot, top, 0.05);
  body += axes(chart, x, y, top);
  for (const Series& series : chart.series)
    if (series.form != Series::Form::points) body += line_of(series, x, y);
  body += levels_of(chart, x, y, top);  // over the lines, so that their names can be read
  body += strips(chart, x, top);
  for (const Series& series : chart.series)
    if (series.form == Series::Form::points) body += points_of(series, x, y);
  return {kWidth, top + kPlot + kBelow, std::move(body)};
}

}  // namespace normlab::svg
