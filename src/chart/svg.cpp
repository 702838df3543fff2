// What all pictures share: axes, text, colours, and the file or element around them.
#include "normlab/chart/svg.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "normlab/base/text.h"
#include "normlab/base/utf8.h"
#include "svg_scale.h"

namespace normlab::svg {
namespace {

constexpr std::array<const char*, kColours> kLightColours{"#1f6fbf", "#d9480f", "#2b8a3e", "#9c36b5",
                                                          "#a07800", "#0b7285", "#c2255c", "#5c5f66"};
constexpr std::array<const char*, kColours> kDarkColours{"#6cb0f5", "#ff9466", "#69c47a", "#d28be8",
                                                         "#e0bd4a", "#5bc0d0", "#f783ac", "#adb5bd"};

// Colours of a heat map from its least value to its greatest; both modes read dark blue as small.
std::string heat_colours() {
  constexpr std::array<std::array<double, 3>, 5> stops{
      {{38, 24, 92}, {45, 92, 148}, {38, 150, 130}, {128, 198, 84}, {250, 228, 90}}};
  std::string out;
  constexpr int kSteps = 20;  // classes q0 to q20
  for (int i = 0; i <= kSteps; ++i) {
    const double at = static_cast<double>(i) / kSteps * (stops.size() - 1);
    const std::size_t left = std::min<std::size_t>(static_cast<std::size_t>(at), stops.size() - 2);
    const double share = at - static_cast<double>(left);
    out += text(".q", i, "{fill:rgb(");
    for (std::size_t part = 0; part < 3; ++part)
      out +=
          fixed(stops[left][part] + share * (stops[left + 1][part] - stops[left][part]), 0) + (part < 2 ? "," : ")}");
  }
  return out;
}

std::string colour_variables(const std::array<const char*, kColours>& colours, const char* rest) {
  std::string out = rest;
  for (int i = 0; i < kColours; ++i) out += text(";--c", i, ":", colours[static_cast<std::size_t>(i)]);
  return out;
}

// 1, 2 or 5 times a power of ten, so that about `pieces` fit into `length`.
double round_step(double length, double pieces) {
  const double least = length / pieces, power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least) return factor * power;
  return 10 * power;
}

}  // namespace

Scale::Scale(const std::vector<double>& values, bool log, double from, double to, double air)
    : log_(log), from_(from), to_(to) {
  bool any = false;
  for (const double value : values) {
    if (!holds(value)) continue;
    const double at = log_ ? std::log10(value) : value;
    whole_ = whole_ && value == std::floor(value);
    low_ = any ? std::min(low_, at) : at;
    high_ = any ? std::max(high_, at) : at;
    any = true;
  }
  if (high_ - low_ < 1e-9 * std::max(std::abs(low_), std::abs(high_)) || high_ == low_) {
    const double half = log_ || low_ == 0 ? 0.5 : std::abs(low_) * 0.1;
    low_ -= half;
    high_ += half;
  }
  const double length = high_ - low_;
  low_ -= air * length;
  high_ += air * length;
}

bool Scale::holds(double value) const { return std::isfinite(value) && (!log_ || value > 0); }

double Scale::operator()(double value) const {
  return from_ + ((log_ ? std::log10(value) : value) - low_) / (high_ - low_) * (to_ - from_);
}

std::vector<double> Scale::ticks() const {
  std::vector<double> out;
  if (log_ && high_ - low_ > 0.7) {
    const int step = std::max(1, static_cast<int>(std::ceil((high_ - low_) / 6)));
    for (int power = static_cast<int>(std::ceil(low_)); power <= high_; power += step)
      out.push_back(std::pow(10, power));
    if (out.size() > 2) return out;
    out.clear();
    for (int power = static_cast<int>(std::floor(low_)); power <= high_; ++power)
      for (const double factor : {1.0, 2.0, 5.0})
        if (const double at = power + std::log10(factor); at >= low_ && at <= high_)
          out.push_back(std::pow(10, power) * factor);
    return out;
  }
  const double low = log_ ? std::pow(10, low_) : low_, high = log_ ? std::pow(10, high_) : high_;
  const double step = std::max(round_step(high - low, 6), whole_ ? 1.0 : 0.0);
  for (double i = std::ceil(low / step); i * step <= high; i += 1) out.push_back(i * step + 0.0);  // + 0: no -0
  return out;
}

std::string place(double value) {
  std::string out = fixed(value, 1);
  if (out.ends_with(".0")) out.resize(out.size() - 2);
  return out == "-0" ? "0" : out;
}

std::string label(double x, double y, std::string_view content, std::string_view css, std::string_view anchor) {
  return text("<text x=\"", place(x), "\" y=\"", place(y), "\" class=\"", css, "\" text-anchor=\"", anchor, "\">",
              escaped(content), "</text>");
}

std::string title(std::string_view content, double& y) {
  constexpr auto kMost = static_cast<std::size_t>((kWidth - kLeft) / kTitleLetter);  // letters in a line
  std::string out;
  for (; content.size() > kMost; y += kLine) {
    const std::size_t space = content.rfind(' ', kMost);
    if (space == std::string_view::npos) break;
    out += label(kLeft, y, content.substr(0, space), "title", "start");
    content.remove_prefix(space + 1);
  }
  return out + label(kLeft, y, content, "title", "start");
}

std::string style() {
  const std::string light = colour_variables(kLightColours, "--ink:#1c1e21;--soft:#5f6670;--grid:#e2e5e9;--paper:#fff");
  const std::string dark =
      colour_variables(kDarkColours, "--ink:#e8eaed;--soft:#a5acb5;--grid:#363b42;--paper:#16181b");
  std::string out =
      text(":root{", light, "}@media (prefers-color-scheme:dark){:root{", dark, "}}@media print{:root{", light, "}}");
  out +=
      ".chart{display:block;width:100%;height:auto}"
      ".chart text{font:13px system-ui,-apple-system,'Segoe UI',Roboto,sans-serif;fill:var(--ink)}"
      ".chart .title{font-weight:600;font-size:14px}.chart .soft{fill:var(--soft);font-size:12px}"
      ".paper{fill:var(--paper)}.grid{stroke:var(--grid);stroke-width:1}.frame{fill:none;stroke:var(--grid)}"
      ".line{fill:none;stroke-width:1.8;stroke-linejoin:round}.dashed{stroke-dasharray:5 4}"
      ".level{stroke:var(--soft);stroke-dasharray:2 3;stroke-width:1.2}"
      ".chart .halo{paint-order:stroke;stroke:var(--paper);stroke-width:3px}"
      ".strip{fill:transparent;stroke:none}.strip:hover{fill:var(--soft);fill-opacity:.18}.cell:hover{stroke:var(--ink)"
      "}"
      ".chart .on-dark{fill:#fff}.chart .on-light{fill:#111}.chart .on-dark,.chart .on-light{font-size:12px;"
      "pointer-events:none}";
  for (int i = 0; i < kColours; ++i) out += text(".c", i, "{stroke:var(--c", i, ")}.f", i, "{fill:var(--c", i, ")}");
  return out + heat_colours();
}

std::string element(const Picture& picture) {
  return text("<svg class=\"chart\" viewBox=\"0 0 ", place(picture.width), " ", place(picture.height),
              "\" role=\"img\">", picture.body, "</svg>\n");
}

std::string file(std::span<const Picture> pictures, std::size_t columns) {
  constexpr double kGap = 16;
  double width = 0, bottom = kGap;
  std::string body;
  for (std::size_t first = 0; first < pictures.size(); first += columns) {
    double x = kGap, height = 0;
    for (const Picture& picture : pictures.subspan(first, std::min(columns, pictures.size() - first))) {
      body += text("<g transform=\"translate(", place(x), " ", place(bottom), ")\">", picture.body, "</g>\n");
      x += picture.width + kGap;
      height = std::max(height, picture.height);
    }
    width = std::max(width, x);
    bottom += height + kGap;
  }
  return text("<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" width=\"", place(width), "\" height=\"",
              place(bottom), "\" viewBox=\"0 0 ", place(width), " ", place(bottom), "\">\n<style>", style(),
              "</style>\n<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n", body, "</svg>\n");
}

std::string escaped(std::string_view content) {
  std::string out;
  while (!content.empty()) {
    const Utf8Step step = utf8_step(content);
    const std::string_view bytes = content.substr(0, static_cast<std::size_t>(step.length));
    const char32_t c = step.code_point;
    content.remove_prefix(bytes.size());
    // What XML 1.0 (2.2) does not allow even as an entity, and what browsers take for another character.
    const bool is_control = (c < 0x20 && c != '\t' && c != '\n' && c != '\r') || (c >= 0x7F && c < 0xA0);
    if (step.status != Utf8Step::valid || is_control || c == 0xFFFE || c == 0xFFFF)
      out += kReplacement;
    else if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += bytes;
  }
  return out;
}

}  // namespace normlab::svg
