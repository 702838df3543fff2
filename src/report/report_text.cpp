// Runs in characters: curves, maps of shades, and two side by side.
#include "normlab/report/report_text.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "normlab/report/report_page.h"

namespace normlab {
namespace {

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

TextLine line_of(const RunFiles& run, std::string_view kind, std::string_view field, char mark, double factor) {
  TextLine line{mark, {}};
  for (const Json& each : run.kind(kind))
    if (const Json* value = at_path(each, field); value != nullptr && value->is_number())
      line.points.emplace_back(each.at("step").real(), value->real() * factor);
  return line;
}

std::string loss_chart(const std::vector<TextLine>& lines, int columns) {
  const bool far = std::ranges::any_of(lines, [](const TextLine& line) {
    return std::ranges::any_of(line.points, [](const auto& point) { return point.second > kFarLoss; });
  });
  return text_chart(lines, columns, {"step"}, far);
}

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
    out += padded(text("block ", block), kTextMargin) + " |";
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

std::string run_text(const RunFiles& run, int columns) {
  std::string out = text(run.directory, ": ", run.outcome());
  if (const auto loss = field_of(run, "val_loss")) out += text(", validation loss ", fixed(*loss, 4));
  for (const char* name : {"unigram", "bigram", "floor"})
    if (const auto value = run.entropy(name)) out += text(", ", name, " ", fixed(*value, 3));
  if (const std::string reason = run.reason(); !reason.empty()) out += "\n" + reason;
  out += text("\n\nloss: . training, o validation\n",
              loss_chart({line_of(run, "train", "loss", '.'), line_of(run, "eval", "loss", 'o')}, columns));
  const std::string map = map_text(run, columns);
  return map.empty() ? out : out + "\n" + map;
}

std::string diff_text(const RunFiles& left, const RunFiles& right, int columns) {
  std::vector<Row> rows{{"key", left.directory, right.directory}};
  for (const config::Difference& difference : config::differences(left.config, right.config))
    if (difference.path != "run.dir") rows.push_back(shown(Row{difference.path, difference.left, difference.right}));
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
    const std::vector<TextLine> lines{line_of(left, kind, "loss", mark_of(0), unit.factor(left)),
                                      line_of(right, kind, "loss", mark_of(1), unit.factor(right))};
    const std::string chart = loss_chart(lines, columns);
    if (chart.empty()) return std::string();
    return text("\n", name, " loss", in, ": ", mark_of(0), ' ', left.directory, ", ", mark_of(1), ' ', right.directory,
                ", ", kBoth, " both\n", chart);
  };
  return out + curves("train", "training") + curves("eval", "validation");
}

}  // namespace normlab
