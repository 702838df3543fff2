// Pictures of what a run has written.
#include <algorithm>
#include <cmath>

#include "normlab/base/spread.h"
#include "normlab/base/text.h"
#include "normlab/lab/inspect/inspect.h"
#include "normlab/report/report_page.h"

namespace normlab {
namespace {

// The fields of a `layers` line by block: entries of an array, or of the objects by parameter.
std::string field_of_block(const std::string& field, std::int64_t block) {
  const std::size_t star = field.find('*');
  return star == std::string::npos ? text(field, '.', block)
                                   : text(field.substr(0, star), block, field.substr(star + 1));
}

std::optional<double> number_at(const Json& line, std::string_view path) {
  const Json* value = at_path(line, path);
  return value != nullptr && value->is_number() ? std::optional(value->real()) : std::nullopt;
}

std::vector<double> stream_of(const Json& line) {
  std::vector<double> stream;
  if (const Json* found = line.find("residual_rms"))
    for (const Json& rms : found->elements()) stream.push_back(rms.is_number() ? rms.real() : 0);
  return stream;
}

}  // namespace

svg::Series series_of(const RunFiles& run, std::string_view kind, std::string_view field, std::string name,
                      int colour) {
  svg::Series series{std::move(name), {}, {}, colour};
  for (const Json& line : run.kind(kind)) {
    const Json* value = at_path(line, field);
    if (value == nullptr) continue;
    series.x.push_back(line.at("step").real());
    series.y.push_back(value->is_number() ? value->real() : std::nan(""));
  }
  return series;
}

double LossUnit::factor(const RunFiles& run) const {
  if (!bytes) return 1;
  const std::vector<Json>& lines = run.kind("eval");
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    const auto bits = number_at(*line, "bits_per_byte"), loss = number_at(*line, "loss");
    if (bits && loss && *loss > 0) return *bits / *loss;
  }
  return std::nan("");
}

LossUnit loss_unit(std::span<const NamedRun> runs) {
  const auto tokens = [](const RunFiles& run) {
    const Json* hash = run.record.find("tokenizer_hash");  // earlier versions have none
    return hash ? hash->line() : run.config.data.tokenizer;
  };
  return {std::ranges::any_of(runs, [&](const NamedRun& each) { return tokens(*each.run) != tokens(*runs[0].run); })};
}

std::vector<svg::Level> entropy_levels(std::span<const NamedRun> runs) {
  constexpr double kSame = 0.1;  // texts of one corpus, of several seeds
  std::vector<svg::Level> levels;
  for (const char* name : {"unigram", "bigram", "floor"}) {
    std::vector<double> values;
    for (const NamedRun& each : runs)
      if (const auto value = each.run->entropy(name)) values.push_back(*value);
    const Spread spread = spread_of(values);
    if (!values.empty() && values.size() == runs.size() && spread.greatest - spread.least < kSame)
      levels.push_back({name, spread.mean});
  }
  return levels;
}

// Of one run, training and validation; of several, the lines of one kind. A loss that left the scale of the entropies
// far behind is drawn on a logarithmic axis.
svg::Picture loss_picture(std::span<const NamedRun> runs, std::string title, std::string_view kind) {
  const LossUnit unit = loss_unit(runs);
  svg::Chart chart{std::move(title), {"step"}, {unit.label()}, {}};
  if (unit.bytes && kind == "train") chart.y.label += ", at the bytes per token of the validation text";
  double greatest = 0;
  for (const NamedRun& named : runs) {
    if (runs.size() == 1) {
      chart.series.push_back(series_of(*named.run, "train", "loss", "training", 7));
      chart.series.push_back(series_of(*named.run, "eval", "loss", "validation", 1));
    } else {
      chart.series.push_back(series_of(*named.run, kind, "loss", named.name, named.colour));
      for (double& y : chart.series.back().y) y *= unit.factor(*named.run);
    }
  }
  for (const svg::Series& series : chart.series)
    for (const double y : series.y)
      if (std::isfinite(y)) greatest = std::max(greatest, y);
  chart.y.log = greatest > kFarLoss;
  if (!unit.bytes) chart.levels = entropy_levels(runs);
  return svg::chart(chart);
}

namespace {

// Rows of a heat map over the steps, from the top: their labels, and their paths in a `layers` line.
using PathRows = std::vector<std::pair<std::string, std::string>>;

std::vector<svg::Picture> step_map(const NamedRun& named, const LayerFigure& figure, std::string_view row_label,
                                   const PathRows& rows) {
  const std::vector<Json>& lines = named.run->kind("layers");
  constexpr std::size_t kMostColumns = 60;
  const std::size_t every = lines.size() / kMostColumns + 1;
  svg::HeatMap map{text(figure.title, named.name.empty() ? "" : ": ", named.name),
                   "step",
                   std::string(row_label),
                   figure.label,
                   {},
                   {},
                   {},
                   figure.log};
  map.range = figure.range;
  for (const auto& [label, path] : rows) map.rows.push_back(label);
  map.values.resize(rows.size());
  bool any = false;
  for (std::size_t i = 0; i < lines.size(); i += every) {
    map.columns.push_back(number(lines[i].at("step").integer()));
    for (std::size_t row = 0; row < rows.size(); ++row) {
      const auto value = number_at(lines[i], rows[row].second);
      map.values[row].push_back(value.value_or(std::nan("")));
      any = any || value;
    }
  }
  if (!any) return {};
  return {svg::heat_map(map)};
}

}  // namespace

std::vector<svg::Picture> layer_map(const NamedRun& named, const LayerFigure& figure) {
  PathRows rows;
  for (std::int64_t block = named.run->config.model.n_layers - 1; block >= 0; --block)  // the last block at the top
    rows.emplace_back(number(block), field_of_block(figure.field, block));
  return step_map(named, figure, "block", rows);
}

std::vector<svg::Picture> norm_map(const NamedRun& named, const LayerFigure& figure) {
  const std::vector<Json>& lines = named.run->kind("layers");
  const Json* all = lines.empty() ? nullptr : lines.back().find(figure.field);
  if (all == nullptr || !all->is_object()) return {};
  PathRows rows;
  for (const Json::Member& norm : all->members()) {
    const std::string_view name = norm.name;
    rows.emplace_back(name.starts_with("blocks.") ? name.substr(7) : name, text(figure.field, '.', norm.name));
  }
  std::ranges::reverse(rows);
  return step_map(named, figure, "norm", rows);
}

std::vector<svg::Picture> failure_maps(std::span<const NamedRun> runs) {
  LayerFigure gradient{"Gradient", "grad_norm.blocks.*.mlp.down.weight", "gradient norm of mlp.down", true};
  const LayerFigure cosine{"Token cosine", "token_cosine", "1: all tokens are alike", false, std::pair(0.0, 1.0)};
  for (const NamedRun& named : runs)
    for (const Json& line : named.run->kind("layers"))
      for (std::int64_t block = 0; block < named.run->config.model.n_layers; ++block) {
        const double value = number_at(line, field_of_block(gradient.field, block)).value_or(0);
        if (!(value > 0)) continue;
        if (!gradient.range) gradient.range = {value, value};
        gradient.range->first = std::min(gradient.range->first, value);
        gradient.range->second = std::max(gradient.range->second, value);
      }
  std::vector<svg::Picture> out;
  for (const LayerFigure* figure : std::initializer_list<const LayerFigure*>{&gradient, &cosine})
    for (const NamedRun& named : runs)
      for (svg::Picture& picture : layer_map(named, *figure)) out.push_back(std::move(picture));
  return out;
}

std::vector<svg::Picture> gradients_at_start(std::span<const NamedRun> runs) {
  svg::Chart chart{"Gradient at the start, by block", {"block"}, {"gradient norm of mlp.down", true}, {}};
  for (const NamedRun& each : runs) {
    const std::vector<Json>& lines = each.run->kind("layers");
    if (lines.empty() || lines[0].at("step").integer() != 0) continue;
    svg::Series measured{each.name.empty() ? "measured" : each.name, {}, {}, each.colour};
    for (std::int64_t block = 0; block < each.run->config.model.n_layers; ++block) {
      const Json* value = at_path(lines[0], text("grad_norm.blocks.", block, ".mlp.down.weight"));
      if (value == nullptr || !value->is_number()) break;
      measured.x.push_back(static_cast<double>(block));
      measured.y.push_back(value->real());
    }
    if (measured.x.empty()) continue;
    svg::Series theory{"theory, from the last block", {}, {}, each.colour, svg::Series::Form::dashed};
    for (const double share : expected_shape(each.run->config.model, stream_of(lines[0]))) {
      if (theory.x.size() == measured.x.size()) break;
      theory.x.push_back(static_cast<double>(theory.x.size()));
      theory.y.push_back(share * measured.y.back());
    }
    chart.series.push_back(std::move(measured));
    chart.series.push_back(std::move(theory));
  }
  if (chart.series.empty()) return {};
  return {svg::chart(chart)};
}

}  // namespace normlab
