// Pictures of an inspection.
#include <algorithm>
#include <cmath>

#include "normlab/chart/svg.h"
#include "normlab/lab/inspect/inspect.h"

namespace normlab {
namespace {

// From 0 on, or logarithmic where values lie further apart than a linear axis shows.
svg::Picture drawn(svg::Chart chart) {
  double low = HUGE_VAL, high = 0;
  for (const svg::Series& series : chart.series)
    for (const double value : series.y) low = std::min(low, value), high = std::max(high, value);
  chart.y.log = low > 0 && high > 20 * low;
  if (!chart.y.log) chart.levels.push_back({"", 0});
  return svg::chart(chart);
}

svg::Picture gradient_chart(const InspectReport& report) {
  const Inspection& in = report.inspection;
  svg::Chart chart{.title = "gradient norm by block", .x = {"block"}, .y = {"norm"}, .series = {}};
  std::vector<double> blocks;
  for (std::size_t i = 0; i < in.blocks.size(); ++i) blocks.push_back(static_cast<double>(i));
  int colour = 0;
  for (const std::string& matrix : in.matrices()) {
    svg::Series series{.name = matrix, .x = blocks, .y = {}, .colour = colour++ % svg::kColours};
    for (std::size_t i = 0; i < blocks.size(); ++i) series.y.push_back(in.matrix_gradient(i, matrix));
    chart.series.push_back(series);
  }
  svg::Series theory{.name = "theory (mlp.down)",
                     .x = blocks,
                     .y = expected_shape(report.config.model, in.stream()),
                     .colour = (colour - 1) % svg::kColours,
                     .form = svg::Series::Form::dashed};
  for (double& value : theory.y) value *= in.matrix_gradient(blocks.size() - 1, "mlp.down");
  chart.series.push_back(theory);
  return drawn(std::move(chart));
}

svg::Picture block_chart(const InspectReport& report, const std::string& title, const std::string& label,
                         const std::vector<std::pair<const char*, double InspectedBlock::*>>& figures) {
  svg::Chart chart{.title = title, .x = {"block"}, .y = {label}, .series = {}};
  for (const auto& [name, figure] : figures) {
    svg::Series series{.name = name, .x = {}, .y = {}, .colour = static_cast<int>(chart.series.size())};
    for (const InspectedBlock& block : report.inspection.blocks) {
      series.x.push_back(static_cast<double>(series.x.size()));
      series.y.push_back(block.*figure);
    }
    chart.series.push_back(series);
  }
  return drawn(std::move(chart));
}

svg::Picture depth_chart(const DepthFit& fit) {
  svg::Chart chart{
      .title = "gradient norm of mlp.down by depth", .x = {"layers", true}, .y = {"norm", true}, .series = {}};
  svg::Series last{.name = "last block", .x = {}, .y = {}, .colour = 0},
      first{.name = "first block", .x = {}, .y = {}, .colour = 1},
      theory{.name = "last block, theory", .x = {}, .y = {}, .colour = 0, .form = svg::Series::Form::dashed};
  for (const DepthPoint& point : fit.points) {
    const double depth = static_cast<double>(point.n_layers);
    for (svg::Series* series : {&last, &first, &theory}) series->x.push_back(depth);
    last.y.push_back(point.last);
    first.y.push_back(point.first);
    theory.y.push_back(fit.points[0].last *
                       std::pow(depth / static_cast<double>(fit.points[0].n_layers), fit.expected_last));
  }
  chart.series = {last, first, theory};
  return svg::chart(chart);
}

}  // namespace

std::string svg_of(const InspectReport& report) {
  using B = InspectedBlock;
  std::vector<svg::Picture> pictures{
      gradient_chart(report),
      block_chart(report, "sizes by block", "root mean square",
                  {{"residual stream", &B::residual_rms},
                   {"attention's output", &B::attn_output_rms},
                   {"MLP's output", &B::mlp_output_rms}}),
      block_chart(report, "gradient of the residual stream", "root mean square",
                  {{"after the block", &B::residual_grad_rms}}),
      block_chart(report, "tokens and attention by block", "",
                  {{"cosine of two tokens", &B::token_cosine}, {"entropy / uniform", &B::entropy_share}})};
  if (report.depths) pictures.push_back(depth_chart(*report.depths));
  return svg::file(pictures, 2);
}

}  // namespace normlab
